"""One start of one rank's container, and the words for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from console import format as fmt
from console.reach.docker_scan import LogScan
from console.readings.boot import Boot, PhaseName
from console.readings.boot_reader import BootReader
from console.readings.containers import Container

Key = tuple[str, float | None]
"""A container's id and the Unix time of its start: a restart is another one."""


@dataclass(slots=True)
class RankStart:
    """One start of one rank's container."""

    host: str
    container: Container
    """As last read."""
    reader: BootReader
    lock: Lock = field(default_factory=Lock)
    """The reader is fed in the thread that reads the log."""
    scan: LogScan | None = None
    words: str = ""
    """Why its log is not read."""
    ended_at: float | None = None
    """Monotonic time at which the container was first seen to have ended."""
    closed: bool = False
    """All that its log could tell is known."""

    @property
    def key(self) -> tuple[str, float | None]:
        return self.container.id, self.container.started_at

    def take(self, lines: Sequence[tuple[float | None, str]], growing: str) -> bool:
        """In the reading thread; True once it is up."""
        with self.lock:
            for wall, text in lines:
                self.reader.take(wall, text)
            if growing:
                self.reader.growing(growing)
            return self.reader.ready

    def boot(self, now: float) -> Boot | None:
        """What its log told so far; None before it told anything."""
        with self.lock:
            found = self.reader.boot(now)
        return found if found.lines or found.ready else None


def phrase(boot: Boot, now: float) -> str:
    """`post-process 4m10s, weights read`: the running phase, for how long, and what is telling about it."""
    if boot.now is None:
        return ""
    began = boot.phases[-1].began if boot.phases else None
    said = [str(boot.now) + ("" if began is None else f" {fmt.duration(now - began)}")]
    if boot.now in (PhaseName.WEIGHTS, PhaseName.DRAFT) and boot.shards is not None:
        said.append(f"files {boot.shards.text}")
    elif boot.now is PhaseName.POST_PROCESS:
        said.append("weights read")
    elif boot.now is PhaseName.AUTOTUNE and boot.autotune in ("hit", "missed"):
        said.append(f"cache {boot.autotune}")
    return ", ".join(said)


def facts(boot: Boot | None) -> str:
    """`, KV pool 2.99 M tokens, autotune hit`."""
    if boot is None:
        return ""
    pool = f", KV pool {fmt.mega_tokens(boot.kv_tokens)} M tokens" if boot.kv_tokens else ""
    return pool + (f", autotune {boot.autotune}" if boot.autotune in ("hit", "missed") else "")
