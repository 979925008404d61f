"""The scripts of the state folder, run for real by /bin/sh in the host's own folder.

They are constants of ours that work on one folder, which every host of a rehearsal has for itself below its own root.
What a client said goes in as arguments and standard input of theirs, and nowhere else."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path

from console.execution.scripts import script
from console.rehearsal.acting.known import Known
from console.rehearsal.acting.playing import Ended, Job

LIMIT = 30.0
FOLDER_AT = {"lease": 1, "box": 1}
"""Which argument names the folder, where it is not the first."""
LOOKS = ("show", "read", "look")
_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")
MEMORY = "/dev/shm/laneswap-"  # noqa: S108 - where break-glass keeps what a full disk does not take
FULL = "No space left on device"


def real_folder(job: Job, folder: str) -> str:
    """Where a lane's state folder lies on this machine. Raises Ended for any other folder."""
    state = job.playing.state
    inside = folder.startswith((state + "/", MEMORY))
    if not (_PLAIN.fullmatch(folder) and inside) or ".." in folder.split("/"):
        job.err.append(f"not a state folder of this rehearsal: {folder[:100]}")
        raise Ended(5)
    job.files.folder(os.path.dirname(state if folder.startswith(state) else MEMORY) or "/")
    return job.files.real(folder)


def full(job: Job, folder: str) -> bool:
    """Whether nothing more can be written there: a full disk leaves the host's memory."""
    return job.playing.world.full(job.host) and not folder.startswith(MEMORY)


async def run(job: Job) -> int:
    """One of them, by the name that it is known by."""
    name, args = job.known.name, list(job.args)
    at = FOLDER_AT.get(name, 0)
    if len(args) <= at:
        job.err.append(f"usage: {name} FOLDER ...")
        return 5
    folder = args[at]
    args[at] = real_folder(job, folder)
    if name == "box":
        args[3] = job.real(args[3])  # the operators' own file
    writes = name not in LOOKS and args[0] not in LOOKS
    if writes and full(job, folder):
        if name == "able":
            job.say(f"uid={os.getuid()}")
        job.err.append(f"{folder} cannot be written: {FULL}")
        return 5
    status, out, err = await shell(job, ["-c", script(name), "laneswap", *args], job.known.stdin)
    root = job.files.root
    job.out += [row.replace(root, "") for row in out.split("\n")[:-1]]
    job.err += [row.replace(root, "") for row in err.split("\n")[:-1]]
    return status


async def put(job: Job, folder: str, epoch: str, name: str, text: str) -> int:
    """A file of the state folder, as a start brings it along; what went wrong is in `job`."""
    below = Job(job.playing, job.host, Known("put", (folder, epoch, name), text))
    status = await run(below)
    job.err += below.err
    return status


async def fenced(job: Job, folder: str, epoch: str) -> int:
    """Whether a command of this epoch may act: 0, or fence.sh's own answer, which is then in `job`."""
    if full(job, folder) and epoch != "-" and not _knows(job, folder, epoch):
        job.err.append(f"{folder} cannot be written: {FULL}")
        return 5
    args = [real_folder(job, folder), epoch, "--", "true"]
    status, out, err = await shell(job, ["-c", script("fence"), "laneswap", *args], "")
    if status:
        job.out += out.split("\n")[:-1]
        job.err += [row.replace(job.files.root, "") for row in err.split("\n")[:-1]]
    return status


def _knows(job: Job, folder: str, epoch: str) -> bool:
    """Whether the fence has nothing to write down."""
    try:
        return Path(real_folder(job, folder), "epoch").read_text().strip() == epoch
    except FileNotFoundError:
        return False


async def script_of(job: Job, name: str, args: list[str]) -> tuple[int, str, str]:
    """One of these scripts with arguments of our own."""
    return await shell(job, ["-c", script(name), "laneswap", *args], "")


async def shell(job: Job, words: list[str], stdin: str) -> tuple[int, str, str]:
    """/bin/sh with a constant script of ours, in the host's folder."""
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": job.files.root, "LANG": "C.UTF-8"},
        cwd=job.files.root,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(LIMIT):
            out, err = await child.communicate(stdin.encode())
    except (TimeoutError, asyncio.CancelledError):
        # a child of ours, in a session of its own: it and what it started
        os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
        raise
    return child.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
