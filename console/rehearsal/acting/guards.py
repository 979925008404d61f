"""Twins of the scripts that end, start and look for a watchdog. A played process is asked to end; none of this machine
ever is."""

from __future__ import annotations

import asyncio

from console.rehearsal.acting import web
from console.rehearsal.acting.node import watchdogs
from console.rehearsal.acting.playing import Job, Twin
from console.rehearsal.watching import LogWatchdog, UnitWatchdog

ENDS_S = 1.5
"""Seconds from TERM until it is gone: it waits for its own sleep."""
STARTS_S = 1.0
FIRST_CHECK_S = 20.0
"""Seconds after which a watchdog that was started makes its first check, and arms itself where that is good."""


def log_watchdog(job: Job, lock: str) -> LogWatchdog | None:
    """The one of this host that has this lock."""
    return next((dog for dog in watchdogs(job) if isinstance(dog, LogWatchdog) and lock in ("-", dog.model.lock)), None)


async def watchdog_end(job: Job) -> int:
    """watchdog_end.sh: only what its lock or a reading names is asked, and only while it is the watchdog."""
    given, lock, kind, also, evidence = job.args
    dog = log_watchdog(job, lock)
    owner = (job.read(lock) or "").strip() if lock != "-" else ""
    seen = {str(pid) for pid, _ in job.running(kind, also)}
    alive = {str(pid) for pid, _ in job.there.processes.alive()}
    asked: list[str] = []
    for pid in dict.fromkeys((given, owner)):
        if pid not in alive:
            continue
        if pid not in seen or dog is None or not dog.asked_to_end(int(pid)):
            job.say(f"pid {pid} is another program: not signalled")
            continue
        asked.append(pid)
    if not asked and (others := sorted(seen)):
        raise job.no(f"pid {' '.join(others)} looks like it, but neither its log nor its lock names it: not signalled")
    await job.playing.sleep(ENDS_S)
    if dog is not None and lock != "-":
        dog.unlock()
    job.write(f"{evidence}/watchdog", " ".join(asked) + "\n")
    job.say("ended pid" if asked else "none runs")
    return 0


async def watchdog_gone(job: Job) -> int:
    """watchdog_gone.sh."""
    lock, kind, _ = job.args
    if found := job.running(kind):
        raise job.no(f"runs as pid {' '.join(str(pid) for pid, _ in found)}")
    if lock != "-" and job.read(lock) is not None:
        raise job.no("its lock is still there")
    job.say("none runs")
    return 0


async def watchdog_runs(job: Job) -> int:
    """watchdog_runs.sh."""
    lock, kind, _ = job.args
    found = [str(pid) for pid, _ in job.running(kind)]
    if not found:
        raise job.no("none runs")
    owner = (job.read(lock) or "").strip() if lock != "-" else found[0]
    if owner not in found:
        raise job.no(f"pid {' '.join(found)} runs, its lock names {owner or 'none'}")
    job.say(f"runs as pid {owner}")
    return 0


async def watchdog_start(job: Job) -> int:
    """watchdog_start.sh."""
    kind = job.args[0]
    if found := job.running(kind):
        job.say(f"runs already as pid {found[0][0]}")
        return 0
    dog = log_watchdog(job, "-")
    if dog is None:
        raise job.cannot(f"{job.args[3]} cannot be run")
    await job.playing.sleep(STARTS_S)
    begin(job, dog)
    job.say("started")
    return 0


def begin(job: Job, dog: LogWatchdog) -> None:
    """A watchdog starts, and arms itself once its check is good."""
    dog.begin()
    job.playing.keep(_arms_itself(job, dog))


async def _arms_itself(job: Job, dog: LogWatchdog) -> None:
    pid = dog.pid
    while dog.pid == pid and not dog.watches:
        await job.playing.sleep(FIRST_CHECK_S)
        code, _ = await web.get(job, f"http://127.0.0.1:{dog.model.port}/health", web.HEALTH_S)
        if code == 200 and dog.pid == pid and not dog.watches:
            dog.become("armed")
        await asyncio.sleep(0.05)


async def watchdog_on(job: Job) -> int:
    """watchdog_on.sh: flags removed, the unit started where it is not active."""
    manager, unit, *flags = job.args
    dogs = [dog for dog in watchdogs(job) if isinstance(dog, UnitWatchdog)]
    removed = [flag for flag in flags if job.read(flag) is not None]
    for flag in removed:
        job.real(flag)
        job.files.remove(flag)
        job.say(f"{flag} removed")
    for dog in dogs:
        if removed and {dog.model.pause_flag, dog.model.gaveup_flag} & set(removed):
            dog.unpaused()
        rows = job.read(f"/units/{manager}/{unit}") or ""
        if dog.model.unit == unit and "ActiveState=active" not in rows:
            dog.become("armed")
            job.say(f"systemctl start {unit}")
    return 0


TWINS: dict[str, Twin] = {
    "watchdog_end.sh": watchdog_end,
    "watchdog_gone.sh": watchdog_gone,
    "watchdog_runs.sh": watchdog_runs,
    "watchdog_start.sh": watchdog_start,
    "watchdog_on.sh": watchdog_on,
}
