"""The pid/lock/log kind: a script that says what it does in a log, and holds a lock with its pid. Pure.

The log counts only while its process lives, has the watchdog's command line, and is not younger than what it wrote:
after a reboot the pid in the log belongs to anybody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from console.readings.look import Answer, Status
from console.readings.processes import Process, unseen
from console.readings.watchdog_log import (
    Stamp,
    Story,
    overdue,
    read_story,
    span,
    there,
    why_not,
    written,
    zone_between,
)
from console.readings.watchdog_types import ENDED, Watchdog, WatchdogSpec, WatchdogState, protecting, short_of
from console.sanitize import line

_SLACK = 60.0
"""Seconds by which a process may seem younger than its own first line: start times are counted in ticks since boot."""
_SETTLE = 30.0
"""Seconds after lock or log were begun in which a list of processes may still be the one from before: processes are
looked at less often than files."""
_RUNNERS = re.compile(
    r"(?:ba|da|a|z|k)?sh|fish|python[0-9.]*|perl|ruby|node|env|nohup|setsid|timeout|flock|nice|ionice|chrt|sudo"
)
"""What runs a script; an editor or a pager that shows it is no watchdog."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known, put together."""

    spec: WatchdogSpec
    story: Story
    log: Answer | None
    lock: Answer | None
    lock_pid: int | None
    alive: dict[int, Process]
    mine: dict[int, Process]
    """Those of `alive` that are the watchdog by their command line."""
    roots: tuple[Process, ...]
    """Those of `mine` that no other of them started: a shell's own children look like it."""
    now: float
    booted: float | None
    offset: float | None
    unseen: str
    """Why it may run although it is not among the processes; '' where it would be."""

    def unix(self, stamp: Stamp | None) -> float | None:
        return stamp.unix(self.offset) if stamp is not None else None


def read(
    spec: WatchdogSpec,
    *,
    log: Answer | None,
    lock: Answer | None,
    processes: Sequence[Process] | None,
    now: float,
    booted: float | None,
    offset: float | None,
) -> Watchdog:
    """See `console/readings/watchdog.py:read_watchdog`."""
    story = read_story(spec.says, log, now) if log is not None else Story()
    lock_pid = _pid_in(lock) if spec.lock else None
    alive = {item.pid: item for item in processes or () if item.alive}
    named = {pid for pid in (story.pid, lock_pid) if pid is not None}
    mine = {pid: item for pid, item in alive.items() if _is_watchdog(item, spec, by_name=pid in named)}
    roots = tuple(item for pid, item in sorted(mine.items()) if item.ppid not in mine or item.ppid == pid)
    zone = _offset(story, log, mine.get(story.pid or -1), offset)
    seen = _Seen(spec, story, log, lock, lock_pid, alive, mine, roots, now, booted, zone, unseen(processes))
    if processes is None:
        said = f"its log says {short_of(story.state, story.attempt)}" if story.state is not None else ""
        return _unknown(seen, "processes not read", said)
    if len(roots) > 1:
        return _two(seen)
    return _running(seen, roots[0]) if roots else _not_running(seen)


def _is_watchdog(process: Process, spec: WatchdogSpec, *, by_name: bool) -> bool:
    parts = (spec.process, *(spec.process_also if by_name else ()))
    words = process.command.split()
    if not words or not any(part and part in process.command for part in parts):
        return False
    first = words[0].rpartition("/")[2].lstrip("-")
    return _RUNNERS.fullmatch(first) is not None or any(part and part in words[0] for part in parts)


def _pid_in(lock: Answer | None) -> int | None:
    text = lock.body.strip()[:20] if lock is not None and lock.status is Status.OK else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _offset(story: Story, log: Answer | None, process: Process | None, given: float | None) -> float | None:
    """How far the host's wall clock is ahead of UTC: by the file's time against its last line, and by the process's
    start against the first; None where they disagree, as on the two sides of a change to summer time."""
    if given is not None:
        return given
    found: set[float | None] = set()
    mtime = written(log)
    if story.newest is not None and not story.newest.zoned and mtime is not None:
        found.add(zone_between(story.newest.seconds, mtime))
    started = process.started if process is not None else None
    if story.started is not None and not story.started.zoned and started is not None:
        found.add(zone_between(story.started.seconds, started))
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def _watchdog(
    seen: _Seen,
    state: WatchdogState,
    *,
    why: str = "",
    detail: str = "",
    process: Process | None = None,
    acts: bool | None = None,
    told: bool = False,
) -> Watchdog:
    """`told`: the state is the log's own, so that its attempt and time belong to it."""
    story = seen.story
    attempt = story.attempt if told else None
    short = short_of(state, attempt, why)
    return Watchdog(
        state,
        line(f"{short}: {detail}" if detail else short, 300),
        protecting(state) if acts is None else acts,
        kind="log",
        host=seen.spec.host,
        pid=process.pid if process is not None else story.pid or seen.lock_pid,
        may_signal=process is not None and process.pid in seen.mine,
        since=seen.unix(story.at) if told else None,
        last_act=story.act,
        last_act_at=seen.unix(story.act_at),
        attempt=attempt,
        next_check=story.every or seen.spec.interval,
        instances=len(seen.roots),
        short=short,
    )


def _unknown(seen: _Seen, why: str, detail: str = "", process: Process | None = None) -> Watchdog:
    return _watchdog(seen, WatchdogState.UNKNOWN, why=line(why, 160), detail=detail, process=process)


def _two(seen: _Seen) -> Watchdog:
    pids = ", ".join(str(item.pid) for item in seen.roots[:4])
    owner = f"; the lock names {seen.lock_pid}" if seen.lock_pid is not None else ""
    named = seen.mine.get(seen.story.pid or -1)
    acts = protecting(seen.story.state) if named is not None and seen.story.state is not None else None
    return _watchdog(
        seen, WatchdogState.TWO, detail=f"pids {pids}{owner}", process=named or seen.roots[0], acts=acts or None
    )


def _running(seen: _Seen, root: Process) -> Watchdog:
    story = seen.story
    process = seen.mine.get(story.pid or -1) or seen.mine.get(seen.lock_pid or -1) or root
    if there(seen.log) is not True:
        return _unknown(seen, f"pid {process.pid} runs, its log: {why_not(seen.log)}", process=process)
    if story.pid is not None and story.pid not in seen.mine:
        return _unknown(seen, f"pid {process.pid} runs, the log tells of {story.pid}", process=process)
    first = seen.unix(story.started)
    if first is not None and process.started is not None and process.started > first + _SLACK:
        words = f"pid {process.pid} is younger than the log's first line"
        return _unknown(seen, words, process=process)
    if process.state.startswith(("T", "t")):
        return _watchdog(seen, WatchdogState.PAUSED, detail="its process is stopped by a signal", process=process)
    if (lost := _lost_lock(seen, process)) and story.state not in ENDED:
        detail = f"{lost}: it ends at its next check"
        return _watchdog(seen, WatchdogState.STANDING_DOWN, detail=detail, process=process)
    if story.state is None:
        return _unknown(seen, f"pid {process.pid} runs, nothing in the log's end says its state", process=process)
    if (silence := _silence(seen)) is not None:
        words = f"silent for {span(silence)} while {short_of(story.state, story.attempt)}"
        return _unknown(seen, words, detail=story.text, process=process)
    return _as_told(seen, process)


def _as_told(seen: _Seen, process: Process) -> Watchdog:
    """The log's own state, in force."""
    story = seen.story
    assert story.state is not None
    detail = story.text
    if story.state is WatchdogState.GAVE_UP and seen.spec.gave_up:
        detail = seen.spec.gave_up
    if story.state is WatchdogState.ARMED:
        detail = ""
    if seen.spec.process and seen.spec.process not in process.command:
        detail = f"{detail}; " * bool(detail) + f"started by hand: its command line lacks {seen.spec.process}"
    return _watchdog(seen, story.state, detail=detail, process=process, told=True)


def _lost_lock(seen: _Seen, process: Process) -> str:
    if not seen.spec.lock or seen.lock is None:
        return ""
    if seen.lock.status is Status.MISSING:
        return "its lock is gone"
    if seen.lock_pid is not None and seen.lock_pid != process.pid and seen.lock_pid not in seen.mine:
        return f"its lock names {seen.lock_pid}"
    return ""


def _silence(seen: _Seen) -> float | None:
    """Seconds since it last wrote, where that is longer than its state allows; None where all is well or unknown."""
    last = written(seen.log) or seen.unix(seen.story.newest)
    return overdue(seen.story, last, seen.now, seen.spec.interval)


def _not_running(seen: _Seen) -> Watchdog:
    story, lock_pid = seen.story, seen.lock_pid
    if seen.log is None or there(seen.log) is None:
        return _unknown(seen, f"its log: {why_not(seen.log)}")
    if _just_begun(seen):
        return _unknown(seen, "just begun, its process is not looked for yet")
    other = seen.alive.get(lock_pid) if lock_pid is not None else None
    if other is None and story.pid is not None and story.state not in ENDED:
        other = seen.alive.get(story.pid)
    if other is not None:
        detail = f"{other.pid} is now `{line(other.command, 80)}`: never signal it"
        return _watchdog(seen, WatchdogState.REUSED_PID, detail=detail, process=other)
    if seen.unseen and story.state not in ENDED:
        said = f"its log says {short_of(story.state, story.attempt)}" if story.state is not None else ""
        return _unknown(seen, f"no process of it is seen, but {seen.unseen}", said)
    if lock_pid is not None:
        where = seen.spec.lock
        return _watchdog(seen, WatchdogState.DEAD_LOCK, detail=f"{where} names {lock_pid}, which is gone")
    if story.state in ENDED and story.state is not None:
        return _watchdog(seen, story.state, detail=story.text, told=True)
    return _watchdog(seen, WatchdogState.OFF, detail=_vanished(seen))


def _just_begun(seen: _Seen) -> bool:
    begun = [written(seen.lock)] if seen.lock_pid is not None else []
    if seen.story.state is WatchdogState.STARTING:
        begun.append(written(seen.log))
    return any(at is not None and abs(seen.now - at) < _SETTLE for at in begun)


def _vanished(seen: _Seen) -> str:
    story = seen.story
    if story.pid is None:
        return "no process of it runs, no log of one" if not there(seen.log) else "no process of it runs"
    first = seen.unix(story.started)
    if seen.booted is not None and first is not None and first < seen.booted:
        return f"the host was started since pid {story.pid} wrote its log"
    return f"pid {story.pid} is gone without a last word"
