"""What a played command can touch: the fleet as it is played, and one command under way with what it says."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from console.fleet.inventory import Lane
from console.rehearsal.acting.known import Known
from console.rehearsal.box import Box
from console.rehearsal.boxes import Boxes
from console.rehearsal.files import HostFiles, host_path
from console.rehearsal.gate import Gate
from console.rehearsal.hosts import PlayedHost
from console.rehearsal.scenario import Scenario
from console.rehearsal.world import World

if TYPE_CHECKING:
    from console.rehearsal.acting.units import Unit

T = TypeVar("T")
Heard = Callable[[str, str], None]
"""Called with host and step when one begins."""
PIDS = 81_000


class Ended(Exception):
    """A played command ends here, with this exit status; what it had to say is said."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True)
class Playing:
    """The fleet that is played."""

    scenario: Scenario
    speed: float
    boxes: Mapping[str, Boxes]
    hosts: Mapping[str, PlayedHost]
    world: World
    gates: Mapping[str, Gate]
    heard: Heard = lambda host, step: None
    _pids: int = PIDS
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Something that goes on beside the commands, until the rehearsal ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """End all that goes on."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def state(self) -> str:
        """The state folder, as hosts name it."""
        return self.scenario.fleet.state

    async def sleep(self, seconds: float) -> None:
        """So many seconds of the scenario."""
        await asyncio.sleep(seconds / self.speed)

    def next_pid(self) -> int:
        """A number for a process that begins."""
        self._pids += 1
        return self._pids

    def lane_on(self, head: str, recipe: str) -> tuple[str, Lane] | None:
        """The lane of a recipe that this host is the head of."""
        for name, lane in self.scenario.fleet.lanes.items():
            if lane.head == head and lane.recipe == recipe:
                return name, lane
        return None

    def reaches(self, head: str, host: str) -> str:
        """'' if the head gets to another host by its own ssh, else ssh's words."""
        if host == head:
            return ""
        if host in self.scenario.deaf.get(head, ()):
            return f"ops@{host}: Permission denied (publickey)."
        gate = self.gates[host]
        if not gate.is_open:
            return f"ssh: connect to host {host} port 22: Connection refused"
        if gate.silent:
            return f"ssh: connect to host {host} port 22: Connection timed out"
        return ""


@dataclass(slots=True)
class Job:
    """One command of ours on one host."""

    playing: Playing
    host: str
    known: Known
    hear: Callable[[str], None] = lambda text: None
    """Called with every line as it comes; else all is in `out`."""
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    unit: Unit | None = None
    """The detached step that it is, if it is one."""

    @property
    def args(self) -> tuple[str, ...]:
        """Its arguments."""
        return self.known.args

    @property
    def boxes(self) -> Boxes:
        """The containers of its host."""
        return self.playing.boxes[self.host]

    @property
    def there(self) -> PlayedHost:
        """Its host."""
        return self.playing.hosts[self.host]

    @property
    def files(self) -> HostFiles:
        """The files of its host."""
        return self.there.files

    def say(self, words: str) -> None:
        """One line on standard output."""
        self.out.append(words)
        self.hear(words)

    def no(self, words: str) -> Ended:
        """It ends with 1: no, or failed."""
        return self.ends(1, words)

    def unknown(self, words: str) -> Ended:
        """It ends with 2: that cannot be told."""
        return self.ends(2, words)

    def cannot(self, words: str) -> Ended:
        """It ends with 5."""
        return self.ends(5, words)

    def ends(self, status: int, words: str) -> Ended:
        """It says this and ends so."""
        self.say(words)
        return Ended(status)

    def real(self, path: str) -> str:
        """Where a path of the host's lies on this machine. Raises Ended for one that leads out of the host's folder."""
        asked = host_path(path)
        real = self.files.real(os.path.normpath(asked)) if asked.startswith("/") else ""
        root = os.path.realpath(self.files.root)
        found = os.path.realpath(os.path.dirname(real)) if real else ""
        if not real or ".." in asked.split("/") or not (found == root or found.startswith(root + "/")):
            raise self.cannot(f"{path} cannot be used in a rehearsal")
        return real

    def read(self, path: str) -> str | None:
        """A text file of the host; None where there is none."""
        try:
            with open(self.real(path), encoding="utf-8", errors="replace", newline="") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def write(self, path: str, text: str) -> None:
        """A text file of the host, replaced at once. Raises Ended where its disk is full."""
        if self.playing.world.full(self.host) and not path.startswith("/dev/shm/"):  # noqa: S108 - memory is no disk
            raise self.cannot(f"{path} cannot be written: No space left on device")
        self.real(path)
        self.files.text(path, text)

    def box(self, name: str) -> Box | None:
        """A container by name or id."""
        return self.boxes.find(name)

    def running(self, *patterns: str) -> list[tuple[int, str]]:
        """Processes of the host whose command line matches a shell pattern that stands for a part of it."""
        found = []
        for pid, command in self.there.processes.alive():
            line = " ".join(command)
            if any(fnmatch.fnmatchcase(line, f"*{pattern}*") for pattern in patterns):
                found.append((pid, line))
        return found


Twin = Callable[[Job], Awaitable[int]]
"""Plays one of our scripts and returns its exit status; may raise Ended."""


def short(name: str) -> str:
    """The first digits of a container's id, as the scripts name their files."""
    return name[:12]


def number(text: str) -> int:
    """A decimal argument. Raises Ended for anything else: the console sends none."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Ended(5)
    return int(text)


def stamp(at: float | None = None) -> str:
    """`20261130T215510Z`."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
