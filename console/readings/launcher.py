"""What became of a launch, out of a launcher's exit code, terminal and log: the truth behind its last line. Pure.

Forms: `relaunch.sh` and `production.sh` of aidendle94/sparkrun-recipes, `cluster.sh` of tsw2k, `restore_boot*.sh` of
tonyd2wild. `relaunch.sh` ends every failure with `the fleet is DOWN`, also where its preflight ended it before anything
was stopped; what the preflight found stands in its log only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from console.sanitize import line as safe

MOST_CHARACTERS = 1 << 21
"""Of terminal and log each that are looked at: their ends."""


class LaunchKind(StrEnum):
    """What it came to."""

    SERVING = "serving"
    REFUSED = "refused"
    """It gave up before it stopped or started anything."""
    STOPPED = "stopped"
    """Only a stop was asked for, and done."""
    CLEARED = "stopped, not started"
    """The old containers are removed, and none or only some of the new ones run."""
    DIED = "died"
    """A container ended during the boot."""
    TIMED_OUT = "not healthy in time"
    UNKNOWN = "unknown"


class WatchdogAfter(StrEnum):
    """What the launcher left of the watchdog."""

    UNTOUCHED = "untouched"
    DISARMED = "disarmed"
    PAUSED = "paused"
    STARTED = "started"
    """It arms itself at its first good check."""
    UNPAUSED = "no longer paused"
    """A file that says that it gave up stays, if there is one."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LaunchOutcome:
    """One launch; all texts are safe."""

    kind: LaunchKind
    words: str
    """One sentence for the operator."""
    touched: bool | None = None
    """Whether anything was stopped or started; False: what ran before still runs. None: not known."""
    watchdog: WatchdogAfter = WatchdogAfter.UNKNOWN
    exit_code: int | None = None
    launched: tuple[int, ...] = ()
    """Ranks whose container was started, in that order."""
    failed: tuple[str, ...] = ()
    """Ranks (`rank 2`) or hosts that it failed on, with what was wrong: `rank 2: rows-MISSING`."""
    seconds: float | None = None
    """From the start of the wait until it was healthy, as the launcher counts."""
    log: str = ""
    """Path of its log on the head."""
    says: str = ""
    """Its last line, where that is not true."""


def read_launcher(exit_code: int | None, terminal: str, log: str = "") -> LaunchOutcome:
    """What a launcher did. `exit_code` is None while it is not known. Never raises.

    `terminal` is what it printed, `log` the file that it wrote, where it has one.
    """
    terminal, log = (_lines_of(text) for text in (terminal, log))
    both = f"{log}\n{terminal}" if log else terminal
    if _CLUSTER.search(both):
        return replace(_cluster(exit_code, both), exit_code=exit_code)
    if _RESTORE.search(both):
        return replace(_restore(exit_code, both), exit_code=exit_code)
    if _STOP.search(both) and not _RELAUNCH.search(both):
        return replace(_stop(exit_code, both), exit_code=exit_code)
    if _RELAUNCH.search(both):
        return replace(_relaunch(exit_code, terminal, log), exit_code=exit_code)
    said = next((safe(row, 200) for row in reversed(both.split("\n")) if row.strip()), "")
    return LaunchOutcome(LaunchKind.UNKNOWN, _ended(exit_code, said), None, WatchdogAfter.UNKNOWN, exit_code)


def _lines_of(text: str) -> str:
    return text[-MOST_CHARACTERS:].replace("\r\n", "\n").replace("\r", "\n")


def _ended(exit_code: int | None, said: str) -> str:
    how = "its exit code is not known" if exit_code is None else f"it ended with exit {exit_code}"
    return f"what the launcher did is not known: {how}" + (
        f", its last line: {said}" if said else " and it said nothing"
    )


# --- relaunch.sh and production.sh -----------------------------------------------------------------------------------

_RELAUNCH = re.compile(r"^(?:relaunch start \d|== preflight$|== launched: |ABORT\b)|^\s*rank \d+ launch", re.MULTILINE)
_PREFLIGHT = re.compile(r"^== preflight$", re.MULTILINE)
_ABORT_PREFLIGHT = re.compile(r"^ABORT preflight \(nothing was stopped or started\)", re.MULTILINE)
_ABORT = re.compile(r"^ABORT: (.+)$", re.MULTILINE)
_CHECK = re.compile(r"^  rank (\d+): (?!image \+ overlay \+ engram rows OK|GPU )(.+)$", re.MULTILINE)
_CHECK_WORDS = re.compile(r"\b[a-z]+-(?:MISSING|MISMATCH)\b")
_GPU = re.compile(r"^  rank \d+: GPU (?:free|busy)", re.MULTILINE)
_LAUNCHED = re.compile(r"^  rank (\d+) launched$", re.MULTILINE)
_LAUNCH_FAILED = re.compile(r"^rank (\d+) launch FAILED", re.MULTILINE)
_ALL_LAUNCHED = re.compile(r"^== launched: ", re.MULTILINE)
_HEALTHY = re.compile(r"^healthy \S+ after (\d{1,6}) s", re.MULTILINE)
_NOT_HEALTHY = re.compile(r"^not healthy after (\d+) min", re.MULTILINE)
_HEAD_EXITED = re.compile(r"^head container exited (\S+)", re.MULTILINE)
_DISARMED = re.compile(r"^watchdog (\d+) disarmed$", re.MULTILINE)
_STARTED = re.compile(r"^watchdog: .*watchdog started \(pid (\d+)", re.MULTILINE)
_DOWN = re.compile(r"^(.*the fleet is DOWN and the watchdog is DISARMED.*)$", re.MULTILINE)
_LOG = re.compile(r"\(log: ([^)\n]+)\)\s*$", re.MULTILINE)
_OWN = re.compile(r"relaunch start |watchdog \d+ disarmed|== preflight|$")
"""What `relaunch.sh` itself writes before the preflight; anything else there comes from PREVIOUS_STACK_STOP."""


def _relaunch(exit_code: int | None, terminal: str, log: str) -> LaunchOutcome:
    both = f"{log}\n{terminal}" if log else terminal
    path = _LOG.search(both)
    down = _DOWN.search(both)
    found = LaunchOutcome(
        LaunchKind.UNKNOWN,
        "",
        watchdog=_pid_watchdog(both, down is not None),
        launched=tuple(dict.fromkeys(int(rank) for rank in _LAUNCHED.findall(both))),
        log=safe(path.group(1)) if path else "",
    )
    if healthy := _HEALTHY.search(both):
        return _healthy(found, float(healthy.group(1)), exit_code)
    if early := _refused(found, both, _stopped_before(log)):
        return _with_last_line(early, down)
    if _HEAD_EXITED.search(both):
        words = "the head's container ended during the boot; those of the other ranks may still run"
        return _sentence(replace(found, kind=LaunchKind.DIED, touched=True, failed=("rank 0: exited",)), words)
    if late := _NOT_HEALTHY.search(both):
        words = f"not healthy after {late.group(1)} min; the containers still run: their logs say how far they came"
        return _sentence(replace(found, kind=LaunchKind.TIMED_OUT, touched=True), words)
    return _half(found, both, exit_code, log)


def _healthy(found: LaunchOutcome, seconds: float, exit_code: int | None) -> LaunchOutcome:
    found = replace(found, kind=LaunchKind.SERVING, touched=True, seconds=seconds)
    words = f"healthy after {seconds:.0f} s"
    if exit_code not in (0, None):
        words += f", though the launcher ended with exit {exit_code}"
    return _sentence(found, words)


def _refused(found: LaunchOutcome, text: str, stopped_before: bool) -> LaunchOutcome | None:
    """An end before the old containers were removed; None where it came further, or where nothing tells."""
    abort = _ABORT.search(text)
    if found.launched:
        return None
    if _ABORT_PREFLIGHT.search(text):
        # behind the dash stand explanations, which name every word that there is
        checks = [
            (rank, _CHECK_WORDS.findall(words.partition(" — ")[0]), words) for rank, words in _CHECK.findall(text)
        ]
        failed = [f"rank {rank}: {', '.join(names) or safe(words, 120)}" for rank, names, words in checks]
        why = "; ".join(dict.fromkeys(failed)) or "its log does not say on which rank"
        found = replace(found, failed=tuple(dict.fromkeys(failed)))
        words = f"the preflight failed ({why})"
    elif abort and not _PREFLIGHT.search(text):
        words = f"it gave up at once ({safe(abort.group(1), 200)})"
    else:
        return None
    if stopped_before:
        words += ": the launcher stopped and started nothing, but PREVIOUS_STACK_STOP ran before and said something"
        return _sentence(replace(found, kind=LaunchKind.REFUSED, touched=None), words)
    words += ": nothing was stopped or started, so the engine that served before still does"
    return _sentence(replace(found, kind=LaunchKind.REFUSED, touched=False), words)


def _half(found: LaunchOutcome, text: str, exit_code: int | None, log: str) -> LaunchOutcome:
    """Stopped, and not started as a whole; or not known."""
    failed = [f"rank {rank}: could not be started" for rank in dict.fromkeys(_LAUNCH_FAILED.findall(text))]
    abort = _ABORT.search(text)
    busy = re.match(r"rank (\d+) GPU still busy", abort.group(1)) if abort else None
    if busy:
        failed.append(f"rank {busy.group(1)}: GPU still busy")
    elif abort:
        failed.append(safe(abort.group(1), 200))
    found = replace(found, failed=tuple(failed))
    begun = ", ".join(map(str, found.launched))
    if _ALL_LAUNCHED.search(text):
        words = "all ranks were launched and nothing tells whether they came up"
        return _sentence(replace(found, touched=True), words)
    if failed or found.launched or _GPU.search(text):
        words = f"the old containers are removed, {'; '.join(failed) or 'and the launcher went no further'}"
        words += f"; launched and left running: rank {begun}" if begun else "; none of the new ones was started"
        return _sentence(replace(found, kind=LaunchKind.CLEARED, touched=True), words)
    if not log:
        where = f": its log {found.log} says" if found.log else ": only its log says"
        return _sentence(found, f"the launch failed{where} whether anything was stopped")
    said = next((safe(row, 200) for row in reversed(text.split("\n")) if row.strip()), "")
    return _sentence(found, _ended(exit_code, said))


def _stopped_before(log: str) -> bool:
    """Whether PREVIOUS_STACK_STOP left words in the log: what it did is not known here."""
    before = _PREFLIGHT.split(log, maxsplit=1)[0] if _PREFLIGHT.search(log) else ""
    return any(not _OWN.match(row) for row in before.split("\n"))


def _pid_watchdog(text: str, failed: bool) -> WatchdogAfter:
    if _STARTED.search(text):
        return WatchdogAfter.STARTED
    if _DISARMED.search(text) or failed:
        return WatchdogAfter.DISARMED  # it removes the lock in any case, so that one which it did not find goes too
    return WatchdogAfter.UNKNOWN if "relaunch start" in text else WatchdogAfter.UNTOUCHED


_TAILS = {
    WatchdogAfter.STARTED: "the watchdog was started and arms itself at its first good check",
    WatchdogAfter.DISARMED: "the watchdog is disarmed",
    WatchdogAfter.PAUSED: "the watchdog is paused",
    WatchdogAfter.UNPAUSED: "the watchdog is no longer paused",
}


def _sentence(found: LaunchOutcome, words: str) -> LaunchOutcome:
    tail = _TAILS.get(found.watchdog, "")
    return replace(found, words=f"{words}; {tail}" if tail else words)


def _with_last_line(found: LaunchOutcome, down: re.Match[str] | None) -> LaunchOutcome:
    """Say that the last line is wrong, where it is."""
    if down is None or found.touched is not False:
        return found
    words = f"{found.words} (its last line says that the fleet is DOWN: it is not)"
    return replace(found, words=words, says=safe(down.group(1), 300))


# --- production.sh --stop, cluster.sh down ---------------------------------------------------------------------------

_STOP = re.compile(r"^  stopped rank \d+$|^  rank \d+: nothing to stop$", re.MULTILINE)
_STOPPED_RANK = re.compile(r"^  stopped rank (\d+)$", re.MULTILINE)


def _stop(exit_code: int | None, text: str) -> LaunchOutcome:
    ranks = list(dict.fromkeys(_STOPPED_RANK.findall(text)))
    words = f"stopped: rank {', '.join(ranks)}" if ranks else "nothing was running on any rank"
    armed = "NOTE: the fleet watchdog" in text
    words += "; an armed watchdog will start it again within minutes" if armed else ""
    kind = LaunchKind.STOPPED if exit_code in (0, None) else LaunchKind.UNKNOWN
    return LaunchOutcome(kind, words, bool(ranks), WatchdogAfter.UNTOUCHED)


# --- cluster.sh ------------------------------------------------------------------------------------------------------

_CLUSTER = re.compile(
    r"^started \S+ rank=\d|^waiting for http\S+/health \(|^preflight passed: rank|PREFLIGHT FAIL"
    r"|run cluster\.sh down first|^watchdog paused \(|^\S+: stopped, log in "
    r"|^(?:image IDs|recipe revisions) differ across nodes",
    re.MULTILINE,
)
_STILL = re.compile(r"^(\S+) still has (\S+); run cluster\.sh down first", re.MULTILINE)
_FAIL = re.compile(r"PREFLIGHT FAIL \[rank (\d+) ([^\]\n]+)\]: (.+)$", re.MULTILINE)
_DIFFER = re.compile(r"^(image IDs|recipe revisions) differ across nodes", re.MULTILINE)
_RANK_STARTED = re.compile(r"^started \S+ rank=(\d+)", re.MULTILINE)
_ENDED = re.compile(r"^(\S+): (\S+) is (created|restarting|removing|paused|exited|dead|gone)$", re.MULTILINE)
_TRIPPED = re.compile(r"^memguard TRIPPED on (\S+): (.+?);", re.MULTILINE)
_NO_HEALTH = re.compile(r"^no /health after (\d+) min", re.MULTILINE)
_SERVING_AFTER = re.compile(r"^serving after (\d{1,4}) min$", re.MULTILINE)
_ROWS = re.compile(r"^(\S+) rank (\d+): (\d+) tables read node-local, (\d+) warnings$", re.MULTILINE)
_PAUSED = re.compile(r"^watchdog paused \(", re.MULTILINE)
_NODE_STOPPED = re.compile(r"^(\S+): stopped, log in (\S+)$", re.MULTILINE)


def _cluster(exit_code: int | None, text: str) -> LaunchOutcome:
    paused = list(_PAUSED.finditer(text))
    if paused and not _UP.search(text, paused[-1].end()):
        return _down(text[paused[-1].start() :])
    watchdog = WatchdogAfter.PAUSED if paused else WatchdogAfter.UNTOUCHED
    text = text[paused[-1].end() :] if paused else text
    launched = tuple(dict.fromkeys(int(rank) for rank in _RANK_STARTED.findall(text)))
    found = LaunchOutcome(LaunchKind.UNKNOWN, "", bool(launched) or None, watchdog, launched=launched)
    if serving := _SERVING_AFTER.search(text):
        return _cluster_serving(found, text, float(serving.group(1)) * 60, exit_code)
    if ended := _ENDED.search(text):
        return _cluster_died(found, text, ended)
    if late := _NO_HEALTH.search(text):
        words = f"not healthy after {late.group(1)} min; the containers still run"
        return _sentence(replace(found, kind=LaunchKind.TIMED_OUT, touched=True), words)
    return _cluster_refused(found, text, exit_code)


_UP = re.compile(r"^\s*ok: |preflight|PREFLIGHT|^started \S+ rank=|^waiting for http|still has", re.MULTILINE)


def _down(text: str) -> LaunchOutcome:
    nodes = [node for node, _ in _NODE_STOPPED.findall(text)]
    saved = _NODE_STOPPED.search(text)
    words = f"stopped: {safe(', '.join(nodes), 200)}" if nodes else "no node had a container"
    found = LaunchOutcome(LaunchKind.STOPPED, "", bool(nodes), WatchdogAfter.PAUSED)
    return _sentence(found, f"{words}, logs in {safe(saved.group(2))}" if saved else words)


def _cluster_serving(found: LaunchOutcome, text: str, seconds: float, exit_code: int | None) -> LaunchOutcome:
    rows = _ROWS.findall(text)
    bad = [f"rank {rank} ({safe(node, 60)})" for node, rank, read, warned in rows if int(read) < 2 or int(warned)]
    whole = exit_code == 0 or (exit_code is None and bool(rows) and not bad)
    after = WatchdogAfter.UNPAUSED if whole else found.watchdog
    found = replace(found, kind=LaunchKind.SERVING, touched=True, seconds=seconds, watchdog=after)
    words = f"serving after {seconds / 60:.0f} min"
    if bad:
        found = replace(found, failed=tuple(f"{one}: rows not read from its own disk" for one in bad))
        words += f", but rows are not read from the node's own disk on {', '.join(bad)}"
    elif exit_code not in (0, None):
        words += f", though cluster.sh ended with exit {exit_code} and leaves the watchdog as it was"
    return _sentence(found, words)


def _cluster_died(found: LaunchOutcome, text: str, ended: re.Match[str]) -> LaunchOutcome:
    node, container, state = (safe(word, 80) for word in ended.groups())
    trips = dict(_TRIPPED.findall(text))
    failed = [f"{node}: {state}"] + [f"{safe(host, 80)}: memguard, {safe(why, 120)}" for host, why in trips.items()]
    words = f"{container} on {node} {_was(state)} during the boot"
    if trips:
        words += f": memguard ended the engine on {safe(', '.join(trips), 200)}"
    words += "; cluster.sh leaves the other ranks' containers as they are"
    return _sentence(replace(found, kind=LaunchKind.DIED, touched=True, failed=tuple(failed)), words)


def _was(state: str) -> str:
    return {"exited": "ended", "gone": "vanished", "dead": "died"}.get(state, f"was {state}")


def _cluster_refused(found: LaunchOutcome, text: str, exit_code: int | None) -> LaunchOutcome:
    still = _STILL.search(text)
    if still and not found.launched:
        node, container = safe(still.group(1), 80), safe(still.group(2), 80)
        words = f"refused: {node} still has {container}; nothing was stopped or started"
        found = replace(found, failed=(f"{node}: still has {container}",))
        return _sentence(replace(found, kind=LaunchKind.REFUSED, touched=False), words)
    failed = tuple(_preflight_failures(text))
    if failed and not found.launched:
        words = f"the preflight failed ({'; '.join(failed)}): nothing was started"
        return _sentence(replace(found, kind=LaunchKind.REFUSED, touched=False, failed=failed), words)
    if failed:
        begun = ", ".join(map(str, found.launched))
        words = f"{'; '.join(failed)}: launched and left running: rank {begun}"
        return _sentence(replace(found, kind=LaunchKind.CLEARED, touched=True, failed=failed), words)
    said = next((safe(row, 200) for row in reversed(text.split("\n")) if row.strip()), "")
    return _sentence(found, _ended(exit_code, said))


def _preflight_failures(text: str) -> Iterable[str]:
    yield from (f"rank {rank} ({safe(host, 60)}): {safe(why, 160)}" for rank, host, why in _FAIL.findall(text))
    yield from (f"{what} differ across nodes" for what in dict.fromkeys(_DIFFER.findall(text)))


# --- restore_boot*.sh ------------------------------------------------------------------------------------------------

_RESTORE = re.compile(r"^=== restore boot \d+ (\d\d:\d\d:\d\d)", re.MULTILINE)
_SERVING = re.compile(r"^SERVING (\d\d:\d\d:\d\d)$", re.MULTILINE)
_PRELAUNCH = re.compile(r"^=== prelaunch\S* done \S+ (?!PASS)(.*)$", re.MULTILINE)
_STOPPED_NODE = re.compile(r"^stopped (\S+)", re.MULTILINE)
_RESTORE_RANK = re.compile(r"^== rank (\d+) ", re.MULTILINE)


def _restore(exit_code: int | None, text: str) -> LaunchOutcome:
    begun, serving, failed = _RESTORE.search(text), _SERVING.search(text), _PRELAUNCH.search(text)
    stopped = _STOPPED_NODE.findall(text)
    launched = tuple(dict.fromkeys(int(rank) for rank in _RESTORE_RANK.findall(text)))
    found = LaunchOutcome(LaunchKind.UNKNOWN, "", bool(stopped or launched) or None, launched=launched)
    if begun and serving:
        seconds = (_clock(serving.group(1)) - _clock(begun.group(1))) % 86400.0
        words = f"serving {seconds:.0f} s after it began"
        return replace(found, kind=LaunchKind.SERVING, words=words, seconds=seconds)
    if failed:
        words = f"the checks before the launch failed ({safe(failed.group(1), 200)})"
        words += f"; stopped before that: {safe(', '.join(stopped), 200)}" if stopped else ": nothing was stopped"
        kind = LaunchKind.CLEARED if stopped else LaunchKind.REFUSED
        return replace(found, kind=kind, words=words, touched=bool(stopped))
    said = next((safe(row, 200) for row in reversed(text.split("\n")) if row.strip()), "")
    return replace(found, words=_ended(exit_code, said))


def _clock(text: str) -> float:
    hours, minutes, seconds = (int(part) for part in text.split(":"))
    return hours * 3600.0 + minutes * 60.0 + seconds
