"""Twins of the scripts that run a launcher and look at what became of it."""

from __future__ import annotations

import asyncio

from console.rehearsal.acting import launchers
from console.rehearsal.acting.playing import Job, Twin
from console.rehearsal.docker_api import stamp

TAIL = 60
"""Lines of a launcher's own log that are shown."""


def head_engine(job: Job, name: str) -> str:
    """`ID STARTED STATE` of the head's container; `none` where nobody asks, else `absent`."""
    box = job.box(name) if name != "-" else None
    return f"{box.id} {stamp(box.started)} {box.state}" if box is not None else "none" if name == "-" else "absent"


async def launch(job: Job) -> int:
    """launch.sh: what the launcher says is told, and then what is seen."""
    _, evidence, _, name, glob, *rest = job.args
    at = rest.index("--")
    meanings, command = dict(row.partition("=")[::2] for row in rest[:at]), rest[at + 1 :]
    before = head_engine(job, name)
    job.write(f"{evidence}/before.launch", f"{before}\n")
    try:
        code = await launchers.run(job, command)
    except asyncio.CancelledError:
        keep_log(job, evidence, glob)
        job.say("the launcher was ended")
        raise
    keep_log(job, evidence, glob)
    if code == 0:
        job.say("the launcher ended well")
        return 0
    words = meanings.get(str(code), "")
    job.say(f"the launcher ended with {code}{f': {words}' if words else ''}")
    if name != "-":
        _told(job, name, before)
    return 1


def keep_log(job: Job, evidence: str, glob: str) -> None:
    """Its own log, the newest one, into the evidence."""
    if glob == "-":
        return
    folder, _, pattern = glob.rpartition("/")
    start, _, end = pattern.partition("*")
    names = [name for name in job.files.names(folder) if name.startswith(start) and name.endswith(end)]
    if not names:
        return
    newest = f"{folder}/{max(names)}"
    text = job.read(newest) or ""
    job.write(f"{evidence}/launcher.log", text)
    job.say(f"== the launcher's own log, {newest}:")
    for row in text.splitlines()[-TAIL:]:
        job.say(row)


def _told(job: Job, name: str, before: str) -> None:
    after = head_engine(job, name)
    state = after.rpartition(" ")[2]
    if after == "absent":
        job.say(f"seen now: no container {name} is there")
    elif after.rpartition(" ")[0] == before.rpartition(" ")[0]:
        job.say(f"seen now: {name} is the one from before ({state}): this launch replaced nothing on the head")
    else:
        job.say(f"seen now: {name} is a new one ({state})")


async def launched(job: Job) -> int:
    """launched.sh."""
    _, name, evidence = job.args
    before = (job.read(f"{evidence}/before.launch") or "").strip()
    box = job.box(name)
    if box is None:
        raise job.no(f"no container {name} yet")
    if box.state != "running":
        raise job.no(f"it is {box.state} with {box.exit_code}")
    if before.startswith(f"{box.id} {stamp(box.started)} "):
        raise job.no("it is still the one from before")
    job.say("a new one runs")
    return 0


async def launcher(job: Job) -> int:
    """launcher.sh: a command of the recipe, which ends as it ends."""
    _, *command = job.args
    code = await launchers.run(job, command)
    if code:
        job.say(f"{command[0]} ended with {code}")
    return code


TWINS: dict[str, Twin] = {"launch.sh": launch, "launched.sh": launched, "launcher.sh": launcher}
