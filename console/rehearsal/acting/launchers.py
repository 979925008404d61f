"""The launchers of a rehearsal host: which one a command of the recipe is. Anything else is not found."""

from __future__ import annotations

from collections.abc import Sequence

from console.rehearsal.acting.cluster import checks, down, up
from console.rehearsal.acting.launch import CLUSTER, SGLANG, bare, launch_of
from console.rehearsal.acting.playing import Ended, Job
from console.rehearsal.acting.sglang import dry, production, relaunch
from console.rehearsal.files import host_path


async def run(job: Job, command: Sequence[str]) -> int:
    """One of the launchers. It shows as a process of the host meanwhile."""
    place, *words = bare(command)
    pid = job.playing.next_pid()
    processes = job.there.processes
    processes.start(pid, ["bash", host_path(place), *words], job.there.wall)
    try:
        return await _run(job, place.rpartition("/")[2], tuple(words), command)
    except Ended as ended:
        return ended.status
    finally:
        processes.end(pid)


async def _run(job: Job, script: str, words: tuple[str, ...], command: Sequence[str]) -> int:
    if script == "relaunch.sh":
        return await relaunch(launch_of(job, SGLANG, script, command))
    if script == "production.sh" and "--dry-run" in words:
        for row in (await dry(job, command)).splitlines():
            job.say(row)
        return 0
    if script == "production.sh" and not words:
        return await production(launch_of(job, SGLANG, script, command))
    if script == "cluster.sh" and words in (("up",), ("down",), ("preflight",)):
        found = launch_of(job, CLUSTER, script, command)
        return await {"up": up, "down": down, "preflight": checks}[words[0]](found)
    raise job.ends(127, f"{command[0]}: not found")
