"""Twins of the scripts that ask a host: memory, ports, processes, files, flags, units."""

from __future__ import annotations

from pathlib import Path

from console.rehearsal.acting.playing import Job, Twin, number
from console.rehearsal.processes import NO_BUS
from console.rehearsal.watching import PlayedWatchdog, UnitWatchdog


def watchdogs(job: Job) -> list[PlayedWatchdog]:
    """Those that run on the host of a job."""
    return [dog for dog in job.playing.world.watchdogs.values() if dog.host.name == job.host]


async def memory_back(job: Job) -> int:
    """memory_back.sh."""
    rows = (row.split() for row in (job.read("/proc/meminfo") or "").splitlines())
    table = {row[0]: int(row[1]) for row in rows if len(row) > 1}
    total, free = table.get("MemTotal:"), table.get("MemAvailable:")
    if total is None or free is None:
        raise job.unknown("/proc/meminfo says nothing")
    has = f"{free >> 20} of {total >> 20} GiB available"
    if free * 100 < total * number(job.args[0]):
        raise job.no(has)
    job.say(has)
    return 0


async def gpu_back(job: Job) -> int:
    """gpu_back.sh."""
    percent, *wanted = job.args
    cards = _cards(job)
    for uuid in wanted:
        used, total = cards.get(uuid, ("", ""))
        if not (used.isdigit() and total.isdigit()):
            raise job.unknown(f"{uuid}: its memory is not told")
        if (int(total) - int(used)) * 100 < int(total) * number(percent):
            raise job.no(f"{used} of {total} MiB in use")
    job.say("free")
    return 0


def _cards(job: Job) -> dict[str, tuple[str, str]]:
    """(used, total) MiB of each GPU by its UUID."""
    found = {}
    for card in sorted(Path(job.files.root, "gpu").glob("[0-9]*")):
        uuid, used, total = ((card / name).read_text().strip() for name in ("uuid", "memory.used", "memory.total"))
        found[uuid] = (used, total)
    return found


async def port_closed(job: Job) -> int:
    """port_closed.sh."""
    if job.boxes.listens(number(job.args[0])):
        raise job.no(f"somebody listens on {job.args[0]}")
    job.say(f"nobody listens on {job.args[0]}")
    return 0


async def no_launch(job: Job) -> int:
    """no_launch.sh."""
    for pid, line in job.running(*job.args):
        raise job.no(f"a launch is under way: pid {pid}, {line[:120]}")
    job.say("none")
    return 0


async def file_there(job: Job) -> int:
    """file_there.sh."""
    text = job.read(job.args[0])
    if text is None:
        raise job.no(f"{job.args[0]} is not there")
    job.say((text.splitlines() or ["there"])[0][:160])
    return 0


async def file_absent(job: Job) -> int:
    """file_absent.sh."""
    job.real(job.args[0])
    if job.files.has(job.args[0]):
        raise job.no(f"{job.args[0]} is there")
    job.say(f"{job.args[0]} is not there")
    return 0


async def flag_set(job: Job) -> int:
    """flag_set.sh: the watchdog sees its flag."""
    path, words = job.args
    if job.read(path) is not None:
        job.say("it is there already")
        return 0
    job.write(path, f"{words}\n")
    for dog in watchdogs(job):
        if isinstance(dog, UnitWatchdog) and dog.model.pause_flag == path:
            dog.paused(words)
    job.say(f"{path} written")
    return 0


async def unit_is(job: Job) -> int:
    """unit_is.sh: an unknown unit is inactive, a bus that is not there leaves it open."""
    manager, unit, wanted = job.args
    if job.read(f"/units/{manager}/error") is not None:
        raise job.unknown(f"{unit}: {NO_BUS.strip()} (exit 1)")
    rows = (job.read(f"/units/{manager}/{unit}") or "").splitlines()
    state = next((row.partition("=")[2] for row in rows if row.startswith("ActiveState=")), "inactive")
    settled = {"active": "active", "inactive": "inactive", "failed": "inactive"}.get(state)
    if settled != wanted:
        raise job.no(f"{unit} is {state}")
    job.say(f"{unit} is {state}")
    return 0


async def unit(job: Job) -> int:
    """unit.sh: the watchdog's unit; others are not played."""
    verb, manager, name = job.args
    for dog in watchdogs(job):
        if isinstance(dog, UnitWatchdog) and (dog.model.unit, dog.model.manager) == (name, manager):
            dog.become("armed" if verb == "start" else "off")
            job.say(f"systemctl {verb} {name}")
            return 0
    raise job.no(f"systemctl {verb}: Unit {name} not found.")


async def can_run(job: Job) -> int:
    """Whether a sequence can run on this host: it can."""
    return 0


async def nothing(job: Job) -> int:
    """`true`."""
    return 0


async def sleep(job: Job) -> int:
    """`sleep SECONDS`, of the scenario's time."""
    await job.playing.sleep(number(job.args[0]))
    return 0


async def cat(job: Job) -> int:
    """`cat .../lease`, of the state folder."""
    text = job.read(job.args[0]) if job.args[0].startswith(job.playing.state + "/") else None
    if text is None:
        job.err.append(f"cat: {job.args[0]}: No such file or directory")
        return 1
    job.out += text.splitlines()
    return 0


TWINS: dict[str, Twin] = {
    "memory_back.sh": memory_back,
    "gpu_back.sh": gpu_back,
    "port_closed.sh": port_closed,
    "no_launch.sh": no_launch,
    "file_there.sh": file_there,
    "file_absent.sh": file_absent,
    "flag_set.sh": flag_set,
    "unit_is.sh": unit_is,
    "unit.sh": unit,
    "can-run": can_run,
    "true": nothing,
    "sleep": sleep,
    "cat": cat,
}
