"""Commands, processes and locks: the few things that the bed needs from this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


class BedError(Exception):
    """The bed could not do something: says what, why and what helps."""

    def __init__(self, what: str, why: str, hint: str = "") -> None:
        super().__init__(f"{what}: {why.strip()}" + (f" ({hint})" if hint else ""))


def run(argv: Sequence[str], *, limit: float = 60.0, stdin: str = "", check: bool = True) -> str:
    """Run one command and return its standard output. Raises BedError on failure or after `limit` seconds."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=limit, errors="replace")
    except FileNotFoundError as error:
        raise BedError(argv[0], "not installed", "python3 -m bed install") from error
    except subprocess.TimeoutExpired as error:
        raise BedError(" ".join(argv), f"no end after {limit:.0f} s") from error
    if check and done.returncode != 0:
        raise BedError(" ".join(argv), f"exit {done.returncode}: {done.stderr[-2000:] or done.stdout[-2000:]}")
    return done.stdout


def wait_for(ready: Callable[[], bool], what: str, *, limit: float = 30.0, pause: float = 0.1) -> None:
    """Ask `ready` until it is true. Raises BedError after `limit` seconds."""
    end = time.monotonic() + limit
    while not ready():
        if time.monotonic() > end:
            raise BedError(what, f"not so after {limit:.0f} s")
        time.sleep(pause)


@dataclass(frozen=True, slots=True)
class Process:
    """A process that the bed started; the start time tells it from a later one with the same pid."""

    pid: int
    started: int
    """Clock ticks after boot: field 22 of /proc/PID/stat."""

    @classmethod
    def of(cls, pid: int) -> Process:
        """The process that has this pid now. Raises ProcessLookupError."""
        started = _start_ticks(pid)
        if started is None:
            raise ProcessLookupError(pid)
        return cls(pid, started)

    @property
    def alive(self) -> bool:
        """True while it runs; a zombie is not alive."""
        return _start_ticks(self.pid) == self.started

    def signal(self, number: int) -> None:
        """Send a signal, if it is still the same process."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self, *, limit: float = 10.0) -> None:
        """SIGKILL and wait until it is gone."""
        self.signal(signal.SIGKILL)
        wait_for(lambda: not self.alive, f"end of process {self.pid}", limit=limit, pause=0.02)


def _start_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def children(pid: int) -> list[int]:
    """Pids of the direct children of a process; empty when it is gone."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def namespace_pids(pid: int) -> list[int]:
    """The process's pid in each pid namespace, from this one inwards; empty when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    line = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
    return [int(word) for word in line.split()[1:]]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; waits for whoever holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
