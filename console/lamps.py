"""The four lamps: Serving, Revision, Watchdog, Rollback. Pure functions of a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from console import format as fmt
from console.readings import underway
from console.readings.acting_types import Acting, Debt, StepView
from console.readings.containers import ContainerState
from console.readings.health import HttpVerdict, LaneState
from console.readings.watchdog import WatchdogState
from console.snapshot import LaneView, Severity, Snapshot
from console.wayback import Word, lamp_words, way_back
from console.wayback.standing import unfinished

NO_STEP_SHOWN_S = 2.0
"""Seconds without a step, with work present, after which the rate is no longer shown as if it were current."""
BOOT_OVERDUE = 1.5
"""Times the usual boot after which a boot is no longer just `good to know`."""


@dataclass(frozen=True, slots=True)
class Lamp:
    """One of the four answers always on screen."""

    title: str
    """`SERVING`, `REVISION`, `WATCHDOG`, `ROLLBACK`."""
    word: str
    """The answer itself: `66.3 tok/s`, `STALLED 41s`, `9f2c1a7`, `UNKNOWN`."""
    rest: str
    """What follows in plain text on the same line: `· 3 running`."""
    note: str
    """Quiet words beside the title: `up 3d04h`, `4 of 4 ranks`."""
    severity: Severity


def lamps(snapshot: Snapshot, lane: LaneView) -> tuple[Lamp, Lamp, Lamp, Lamp]:
    """Serving, Revision, Watchdog, Rollback for one lane."""
    return serving(snapshot, lane), revision(snapshot, lane), watchdog(snapshot, lane), rollback(snapshot, lane)


def serving(snapshot: Snapshot, lane: LaneView) -> Lamp:
    """What the four lights of the lane add up to, as one word with its number."""
    words = _planned(snapshot, lane)
    if words is not None:
        return words
    word, rest, severity = _SERVING[lane.verdict.state](snapshot, lane)
    return Lamp("SERVING", word, rest, _uptime(snapshot, lane), severity)


_PLANNED = {
    LaneState.DOWN: "DOWN",
    LaneState.DEGRADED: "DEGRADED",
    LaneState.DRAINING: "DRAINING",
    LaneState.STALLED: "STALLED",
}
"""States that an operation of ours brings along: something to look at, nothing that needs another hand."""


def _planned(snapshot: Snapshot, lane: LaneView) -> Lamp | None:
    """`DOWN 0m41s, planned`: while an operation has the lane down, or because somebody stopped it."""
    word = _PLANNED.get(lane.verdict.state)
    acting = acting_now(snapshot, lane)
    lasted = snapshot.now - lane.state_since
    if word is None or acting is None:
        return None
    age = lane.health.age(snapshot.now)
    heard = None if age is None else acting.clock - age
    operation = underway.planned_down(acting, acting.clock - lasted, heard)
    if operation is None:
        return None
    if (step := underway.booting(acting)) is not None and lane.lights.http.verdict is HttpVerdict.UNAVAILABLE:
        return _loads(step, acting.clock)
    stopped = operation.verb in underway.LEAVES_DOWN and not underway.running(acting)
    rest = f", stopped by {operation.operator or 'somebody'}" if stopped else ", planned"
    was = f"was {fmt.number(lane.last_decode)} tok/s" if lane.last_decode is not None else ""
    return Lamp("SERVING", f"{word} {fmt.duration(lasted)}", rest, was, Severity.LOOK)


def _loads(step: StepView, clock: float) -> Lamp:
    """503 while a step of ours waits for the engine: a phase of its boot, whatever the one before it had said."""
    elapsed = max(0.0, clock - (step.began if step.began is not None else clock))
    of_usual = f" of {fmt.duration(step.usual)}" if step.usual else ""
    late = bool(step.usual) and elapsed > BOOT_OVERDUE * (step.usual or 0.0)
    word = f"BOOT {fmt.duration(elapsed)}{of_usual}"
    return Lamp("SERVING", word, "it loads", "", Severity.LOOK if late else Severity.INFO)


def acting_now(snapshot: Snapshot, lane: LaneView) -> Acting | None:
    """What is under way on the lane, while that may be taken as current."""
    return None if lane.acting is None else lane.acting.current(snapshot.now)


_Words = tuple[str, str, Severity]


def _uptime(snapshot: Snapshot, lane: LaneView) -> str:
    started = lane.lights.process.started_at
    if started is None or lane.lights.process.running == 0:
        return ""
    return f"up {fmt.duration(_head_wall(snapshot, lane) - started)}"


def _head_wall(snapshot: Snapshot, lane: LaneView) -> float:
    """Unix time now by the head's clock: container times are by that one."""
    return snapshot.wall + (snapshot.host(lane.lane.head).drift or 0.0)


def _for(snapshot: Snapshot, lane: LaneView) -> str:
    return fmt.short_age(snapshot.now - lane.state_since)


def _serving(snapshot: Snapshot, lane: LaneView) -> _Words:
    progress = lane.lights.progress
    running = f"· {progress.running} running" if progress.running is not None else ""
    if progress.frozen_for is not None and progress.frozen_for >= NO_STEP_SHOWN_S:
        return f"NO STEP {fmt.short_age(progress.frozen_for)}", running, Severity.LOOK
    if progress.decode_tps is None:
        return "SERVING", running, Severity.NORMAL
    return f"{fmt.number(progress.decode_tps)} tok/s", running, Severity.NORMAL


def _busy(snapshot: Snapshot, lane: LaneView) -> _Words:
    progress = lane.lights.progress
    lasted = progress.moving_for if progress.moving_for is not None else snapshot.now - lane.state_since
    running = f"· {progress.running} running" if progress.running is not None else ""
    return f"PREFILL {fmt.short_age(lasted)}", running, Severity.INFO


def _booting(snapshot: Snapshot, lane: LaneView) -> _Words:
    started = lane.lights.process.started_at
    elapsed = snapshot.now - lane.state_since if started is None else _head_wall(snapshot, lane) - started
    progress = lane.boot_progress
    usual = progress.median if progress is not None and progress.median is not None else lane.lane.usual_boot_s
    late = progress.late if progress is not None else usual is not None and elapsed > BOOT_OVERDUE * usual
    of_usual = f" of {fmt.duration(usual)}" if usual else ""
    boot = None if lane.boot is None else lane.boot.current(snapshot.now)
    if boot is not None and boot.failure is not None and not boot.failure.heals:
        return f"BOOT FAILS {fmt.duration(elapsed)}", boot.failure.cause, Severity.ACT
    phase = str(boot.now) if boot is not None and boot.now is not None else ""
    return f"BOOT {fmt.duration(elapsed)}{of_usual}", phase, Severity.LOOK if late else Severity.INFO


def _stalled(snapshot: Snapshot, lane: LaneView) -> _Words:
    frozen = lane.lights.progress.frozen_for
    lasted = fmt.short_age(frozen) if frozen is not None else _for(snapshot, lane)
    running = lane.lights.progress.running
    return f"STALLED {lasted}", f"· {running} running" if running else "", Severity.ACT


def _down(snapshot: Snapshot, lane: LaneView) -> _Words:
    was = f"was {fmt.number(lane.last_decode)} tok/s" if lane.last_decode is not None else ""
    return f"DOWN {_for(snapshot, lane)}", was, Severity.ACT


def _plain(word: str, severity: Severity, *, timed: bool = False, why: bool = False) -> Callable[..., _Words]:
    def words(snapshot: Snapshot, lane: LaneView) -> _Words:
        lasted = f" {_for(snapshot, lane)}" if timed else ""
        return word + lasted, lane.verdict.why if why else "", severity

    return words


_SERVING: dict[LaneState, Callable[[Snapshot, LaneView], _Words]] = {
    LaneState.SERVING: _serving,
    LaneState.IDLE: _plain("IDLE", Severity.NORMAL),
    LaneState.BUSY: _busy,
    LaneState.BOOTING: _booting,
    LaneState.READY: _plain("READY", Severity.INFO, why=True),
    LaneState.STALLED: _stalled,
    LaneState.DRAINING: _plain("DRAINING", Severity.LOOK, timed=True),
    LaneState.DEGRADED: _plain("DEGRADED", Severity.ACT, timed=True, why=True),
    LaneState.BLIND: _plain("UP, BLIND", Severity.LOOK, why=True),
    LaneState.PAUSED: _plain("PAUSED", Severity.ACT, timed=True),
    LaneState.DOWN: _down,
    LaneState.UNKNOWN: lambda snapshot, lane: _unknown(snapshot, lane),
}


def _unknown(snapshot: Snapshot, lane: LaneView) -> _Words:
    """Blue before the first answer: unknown because the console is young is nothing to look at."""
    if lane.verdict.late_since is not None:
        last = f"last known {lane.verdict.last.upper()}" if lane.verdict.last is not None else ""
        return f"LATE {fmt.short_age(snapshot.now - lane.verdict.late_since)}", last, Severity.LOOK
    asked = lane.health.taken_mono is not None or lane.health.error or lane.health.down_since is not None
    return "UNKNOWN", lane.verdict.why, Severity.LOOK if asked else Severity.INFO


def revision(snapshot: Snapshot, lane: LaneView) -> Lamp:
    """The checkpoint really mounted, by rank; never the served name. Bad where rows or site file say another one."""
    known = [rank for rank in lane.ranks if rank.revision]
    distinct = sorted({rank.revision for rank in known})
    if not distinct and (folder := _in_folder(snapshot, lane)) is not None:
        return folder
    note = f"{len(known)} of {len(lane.ranks)} ranks" if len(lane.ranks) > 1 else ""
    acting = acting_now(snapshot, lane)
    if (ways := underway.switching(acting)) is not None and underway.leads_between(acting, distinct):
        return Lamp("REVISION", f"{fmt.revision(ways[0])} → {fmt.revision(ways[1])}", "", note, Severity.NORMAL)
    if not distinct:
        why = _why_no_revision(lane)
        return Lamp("REVISION", "UNKNOWN", why, note, Severity.LOOK)
    if len(distinct) > 1:
        return Lamp("REVISION", "MIXED", " ".join(fmt.revision(item) for item in distinct), note, Severity.ACT)
    word = fmt.revision(distinct[0])
    site = _other_site(snapshot, lane, distinct[0])
    if rows := _other_rows(snapshot, lane, distinct[0], bool(site)):
        return Lamp("REVISION", word, rows, note, Severity.ACT)
    running = any(rank.container and rank.container.state is ContainerState.RUNNING for rank in known)
    rest = "" if running else "not running"
    if len(known) < len(lane.ranks):
        return Lamp("REVISION", word, rest or "not all ranks read", note, Severity.LOOK)
    if site:
        return Lamp("REVISION", word, site, note, Severity.LOOK)
    source = known[0].container.revision_source.split(" ", 1)[0] if known[0].container else ""
    return Lamp("REVISION", word, rest, note or f"read from {source}", Severity.NORMAL)


def _why_no_revision(lane: LaneView) -> str:
    if any(rank.container for rank in lane.ranks):
        return "not in mounts or arguments"
    unread = lane.lights.process.unknown
    return unread[0] if unread and not lane.lights.process.unasked else "no container read yet"


def _in_folder(snapshot: Snapshot, lane: LaneView) -> Lamp | None:
    """A plain folder says nothing of its revision: the site file does, and the row copies in it are asked for another.

    None where not every rank mounts the folder that the site file names.
    """
    site = None if lane.site is None else lane.site.current(snapshot.now)
    folder = (site.values.get("repo", ()) or ("",))[0].rstrip("/") if site is not None else ""
    if site is None or not site.revision or not folder:
        return None
    mounts = [rank.container.mounts if rank.container is not None else () for rank in lane.ranks]
    if not all(any(mount.source.rstrip("/") == folder for mount in own) for own in mounts):
        return None
    note = f"{len(mounts)} of {len(mounts)} ranks" if len(mounts) > 1 else ""
    if rows := _other_rows(snapshot, lane, site.revision, False):
        return Lamp("REVISION", fmt.revision(site.revision), rows, note, Severity.ACT)
    copies = None if lane.rows is None else lane.rows.current(snapshot.now)
    agreed = copies is not None and any(copy.manifest is not None and copy.manifest.revision for copy in copies.copies)
    severity = Severity.NORMAL if agreed else Severity.INFO
    return Lamp("REVISION", fmt.revision(site.revision), "by the site file", note, severity)


def _other_rows(snapshot: Snapshot, lane: LaneView, serving: str, site_differs: bool) -> str:
    """`rows of df42c10 on spark-2`: a copy of another checkpoint, which would serve wrong rows without an error.

    Where the site file names another checkpoint its row folder may be another one too: only what is mounted counts.
    """
    copies = None if lane.rows is None else lane.rows.current(snapshot.now)
    mounts = {rank.host: rank.container.mounts for rank in lane.ranks if rank.container is not None}
    for copy in copies.copies if copies is not None else ():
        of = copy.manifest.revision if copy.manifest is not None else ""
        if not of or serving.startswith(of) or of.startswith(serving):
            continue
        if not site_differs or copy.read_by(mount.source for mount in mounts.get(copy.host, ())):
            return f"rows of {fmt.revision(of)} on {copy.host}"
    return ""


def _other_site(snapshot: Snapshot, lane: LaneView, serving: str) -> str:
    site = None if lane.site is None else lane.site.current(snapshot.now)
    if site is None or not site.revision or site.revision == serving:
        return ""
    return f"site file {fmt.revision(site.revision)}"


_WATCHDOG: dict[WatchdogState, tuple[str, Severity]] = {
    WatchdogState.ARMED: ("ARMED", Severity.NORMAL),
    WatchdogState.STARTING: ("STARTING", Severity.INFO),
    WatchdogState.BUSY: ("ARMED, BUSY", Severity.INFO),
    WatchdogState.CHECKING: ("CHECK FAILED", Severity.LOOK),
    WatchdogState.RECOVERY: ("IN RECOVERY", Severity.LOOK),
    WatchdogState.PAUSED: ("PAUSED", Severity.LOOK),
    WatchdogState.GAVE_UP: ("GAVE UP", Severity.ACT),
    WatchdogState.STANDING_DOWN: ("STANDING DOWN", Severity.LOOK),
    WatchdogState.OFF: ("OFF", Severity.LOOK),
    WatchdogState.FAILED: ("UNIT FAILED", Severity.ACT),
    WatchdogState.IN_FLIGHT: ("IN FLIGHT", Severity.INFO),
    WatchdogState.DEAD_LOCK: ("DEAD LOCK", Severity.ACT),
    WatchdogState.TWO: ("TWO OF THEM", Severity.ACT),
    WatchdogState.REUSED_PID: ("PID REUSED", Severity.ACT),
    WatchdogState.NONE: ("NONE", Severity.NORMAL),
    WatchdogState.UNKNOWN: ("UNKNOWN", Severity.LOOK),
}
_COUNTED = (WatchdogState.CHECKING, WatchdogState.RECOVERY)
_TIMED = (WatchdogState.PAUSED, WatchdogState.OFF, WatchdogState.GAVE_UP, WatchdogState.STANDING_DOWN)


def watchdog(snapshot: Snapshot, lane: LaneView) -> Lamp:
    """Whether somebody restarts the lane while nobody looks; without a watchdog restart policies are all there is."""
    lamp = _watchdog(snapshot, lane)
    acting = None if lane.acting is None else lane.acting.value  # a debt that was made is owed until it is seen paid
    owed = underway.debt(acting)
    return lamp if owed is None or acting is None else _owed(lamp, owed, acting.clock, lane)


_QUIET = (WatchdogState.OFF, WatchdogState.PAUSED, WatchdogState.STANDING_DOWN, WatchdogState.NONE)
"""What a watchdog that was disarmed on purpose looks like: as good or bad as its debt."""


def _owed(lamp: Lamp, owed: Debt, clock: float, lane: LaneView) -> Lamp:
    """`OFF 6m12s, owed in 16m`: blue in time, orange in the last five minutes, red once it is overdue."""
    found = None if lane.watchdog is None else lane.watchdog.value
    if found is not None and found.protecting:
        rest = f", debt of {owed.operator or 'somebody'} not settled"
        return replace(lamp, rest=rest, severity=_louder(lamp.severity, Severity.INFO))
    left = owed.deadline - clock
    rest = f", owed in {fmt.age(left)}" if left >= 0 else f", OVERDUE {fmt.age(-left)}"
    note = f"owed by {fmt.clock(owed.deadline).rstrip('Z')}" if left >= 0 else "arm it: D"
    severity = Severity.ACT if left < 0 else Severity.LOOK if left <= underway.SOON_S else Severity.INFO
    if found is None or found.state not in _QUIET:
        return replace(lamp, rest=rest, note=note, severity=_louder(lamp.severity, severity))
    word = f"{_WATCHDOG[found.state][0]} {fmt.short_age(clock - owed.since)}"
    return Lamp("WATCHDOG", word, rest, note, severity)


_LOUD = (Severity.NORMAL, Severity.INFO, Severity.LOOK, Severity.ACT)


def _louder(one: Severity, other: Severity) -> Severity:
    return max(one, other, key=_LOUD.index)


def _watchdog(snapshot: Snapshot, lane: LaneView) -> Lamp:
    if lane.watchdog is None:
        policies = sorted({rank.container.restart_policy for rank in lane.ranks if rank.container})
        known = f"({_policy_words(policies)})" if policies and all(policies) else ""
        return Lamp("WATCHDOG", "NONE", known, "docker only" if known else "", Severity.NORMAL)
    found = lane.watchdog.current(snapshot.now)
    if found is None:
        if lane.watchdog.taken_mono is None and not lane.watchdog.error:
            return Lamp("WATCHDOG", "UNKNOWN", "", "not read yet", Severity.INFO)
        quality = lane.watchdog.quality(snapshot.now)
        return Lamp("WATCHDOG", "UNKNOWN", lane.watchdog.error or str(quality).lower(), "", Severity.LOOK)
    word, severity = _WATCHDOG[found.state]
    wall = snapshot.wall + (snapshot.host(found.host).drift or 0.0) if found.host else snapshot.wall
    if found.state in _TIMED and found.since is not None:
        word = f"{word} {fmt.short_age(wall - found.since)}"
    elif found.state in _COUNTED and found.attempt is not None:
        word = f"{word} {found.attempt[0]}/{found.attempt[1]}"
    rest = "" if found.state in (WatchdogState.ARMED, WatchdogState.NONE) else found.words
    acted = f"last act {fmt.age(wall - found.last_act_at)} ago" if found.last_act_at is not None else ""
    return Lamp("WATCHDOG", word, rest, acted, severity)


def _policy_words(policies: list[str]) -> str:
    return "restart=no" if policies == ["no"] else ",".join(policies)


def rollback(snapshot: Snapshot, lane: LaneView) -> Lamp:
    """Whether there is a way back, to what, and how long it takes in all: rebuild and boot, never one part."""
    if (left := unfinished(lane)) is not None:
        return Lamp("ROLLBACK", "NOT FINISHED", f"to {left.target}", "B says what is left", Severity.LOOK)
    back = way_back(snapshot, lane)
    good = sum(item.word is Word.OK for item in back.items)
    note = f"{good} of {len(back.items)} OK" if back.items else ""
    if back.last_deed is not None:
        wall, took = back.last_deed
        note = f"did {fmt.duration(took)} {fmt.age(snapshot.wall - wall)} ago"
    if back.possible is None:
        unread = any(item.word is Word.UNKNOWN for item in back.items)
        return Lamp("ROLLBACK", "UNKNOWN", back.why, note, Severity.LOOK if unread and back.items else Severity.INFO)
    if not back.possible:
        return Lamp("ROLLBACK", "NO WAY BACK", back.why, note, Severity.LOOK)
    word, _, rest = lamp_words(back).partition(" to " if not back.slow else " (")
    rest = f"to {rest}" if not back.slow else f"({rest}"
    odd = [item for item in back.items if item.word in (Word.STALE, Word.FAIL)]
    if odd:
        return Lamp("ROLLBACK", word, f"{rest}, {odd[0].name} {odd[0].word}", note, Severity.LOOK)
    return Lamp("ROLLBACK", word, rest, note, Severity.INFO if back.slow else Severity.NORMAL)
