"""What every way of reaching a host offers: the interface that `ssh` and `local` share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from console.readings.link import LinkState
from console.readings.look import Look
from console.readings.output import Output


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a host's sampler stream: raw texts by name, dated by both clocks.

    `kind` is the source group: `node` (meminfo, psi_memory, numa, zoneinfo), `gpu`, `facts`, `look`, `error`.
    `sequence` grows by one per frame of the stream; `host_mono` is the host's monotonic clock and `host_wall` its Unix
    time, `received` the console's monotonic time. `started` is the host's monotonic time before the source was read:
    `host_mono - started` is how long the source took.

    The texts of a `look` frame are answers by the `key` of their look, of those only that were due; an answer that is
    what it was the last time is the very same object.
    """

    kind: str
    sequence: int
    host_mono: float
    host_wall: float
    received: float
    texts: dict[str, str] = field(default_factory=dict)
    error: str = ""
    started: float | None = None
    source: str = ""
    """Of an `error` frame: `nvidia-smi`, `look`, `sampler` (the stream itself) or `/proc/meminfo`. Of `look` the texts
    hold the `key` of the one that does not answer; where they do not, none can be answered."""


class Reason(StrEnum):
    """Why a byte stream could not be opened."""

    UNREACHABLE = "unreachable"
    """The link is down, or went down: nothing is known about the far end."""
    REFUSED = "refused"
    TIMEOUT = "timeout"
    FORBIDDEN = "forbidden"
    """sshd does not allow forwarding, or the socket's permissions do not."""
    NOT_FOUND = "not found"
    """No such socket file, or the name does not resolve."""


class ReachError(Exception):
    """A host could not be asked. Carries host, command, a hint for the operator and the reason as one word."""

    def __init__(
        self, host: str, command: str, problem: str, hint: str = "", reason: Reason = Reason.UNREACHABLE
    ) -> None:
        super().__init__(f"{host}: {command}: {problem}" + (f" ({hint})" if hint else ""))
        self.host = host
        self.command = command
        self.problem = problem
        self.hint = hint
        self.reason = reason


class Link(Protocol):
    """One host, kept connected in the background. Nothing here raises because a host is down."""

    name: str

    @property
    def state(self) -> LinkState:
        """The link's newest state."""
        ...

    async def start(self) -> None:
        """Begin to connect and stay connected (background task, reconnects with jitter)."""
        ...

    async def close(self) -> None:
        """End sampler, channels and connection; leaves nothing running on the host."""
        ...

    async def run(self, argv: Sequence[str], *, stdin: str = "", limit: float = 10.0, operator: bool = False) -> Output:
        """Run one program (not a shell builtin). Never raises for a remote failure: see `Output.outcome`.

        `limit` in seconds, all in: queue, start and run. While the first connection is being made it waits for it;
        once the link is down it answers UNREACHABLE at once. `operator` commands may take the session slot that is
        kept free for them. `stdout` is the command's own text as it came (parse it, or put it through `sanitize`);
        `stderr` is safe text. When the call is cancelled, or its channel or the link closes, the program gets TERM.
        """
        ...

    def frames(self) -> AsyncIterator[Frame]:
        """The sampler stream, across reconnects, until `close`. One consumer at a time; closing the iterator ends it.

        While the link is down nothing comes: its state says why. A source that fails is a frame of kind `error`;
        that of source `sampler` (the stream itself ended, and begins again) has no host clock: both are 0.
        """
        ...

    def look(self, looks: Sequence[Look]) -> None:
        """Replace the whole set of what the host looks at again and again; answers come as frames of kind `look`.

        Works while the link is down, too: each new stream is told the set. Raises ValueError for a key that is there
        twice and for more than 500 looks.
        """
        ...

    async def open_tcp(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A byte stream to host:port as seen from this host, with no listening port here. Raises ReachError.

        The caller bounds it in time (`asyncio.timeout`) and closes the writer.
        """
        ...

    def forward_unix(self, remote_path: str) -> AbstractAsyncContextManager[Path]:
        """A local socket file in a 0700 directory that leads to `remote_path` on the host. Raises ReachError."""
        ...
