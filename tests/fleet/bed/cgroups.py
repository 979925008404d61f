"""A control group a host: systemd in a host needs writable ones, and whatever is left in them belongs to the bed."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from bed.system import BedError, wait_for

ROOT = Path("/sys/fs/cgroup")
V1_CONTROLLERS = ("memory", "pids", "cpu", "cpuacct", "blkio", "devices", "freezer", "cpuset")
V1_OTHERS = ("systemd", "unified")


def is_v2() -> bool:
    """True where this machine has the unified hierarchy alone."""
    return (ROOT / "cgroup.controllers").exists()


def folders(name: str) -> list[Path]:
    """The host's folder in every hierarchy that this machine has."""
    if is_v2():
        return [ROOT / name]
    return [ROOT / part / name for part in (*V1_CONTROLLERS, *V1_OTHERS) if (ROOT / part).is_dir()]


def make(name: str) -> list[Path]:
    """Make the host's groups; a cpuset group takes no process before it has CPUs and memory nodes."""
    made = folders(name)
    for folder in made:
        folder.mkdir(exist_ok=True)
        if not is_v2() and folder.parent.name == "cpuset":
            for key in ("cpuset.cpus", "cpuset.mems"):
                (folder / key).write_text((folder.parent / key).read_text())
    return made


def processes(name: str) -> set[int]:
    """Pids of all processes in the host's groups."""
    found: set[int] = set()
    for folder in folders(name):
        # os.walk passes over groups that vanish meanwhile: systemd in the host may still be removing some.
        for inside, _, _ in os.walk(folder):
            with contextlib.suppress(OSError):
                found.update(int(word) for word in Path(inside, "cgroup.procs").read_text().split())
    return found - {0}


def remove(name: str) -> None:
    """End what still runs in the host's groups and remove them. Raises BedError when something will not go."""
    for pid in processes(name):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not processes(name), f"end of all processes of {name}", limit=20, pause=0.02)
    for folder in folders(name):
        if folder.is_dir():
            _remove_tree(folder)


def _remove_tree(folder: Path) -> None:
    for inside, _, _ in os.walk(folder, topdown=False):
        try:
            Path(inside).rmdir()
        except OSError as error:
            raise BedError(f"cgroup {inside}", str(error)) from error
