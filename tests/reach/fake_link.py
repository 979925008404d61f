"""A Link to this machine for tests: commands run here, a forwarded socket is a symlink in a directory of its own."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from console.reach.link import Frame, ReachError, Reason
from console.readings.link import LinkState, LinkStatus
from console.readings.look import Look
from console.readings.output import Outcome, Output


class FakeLink:
    """Up unless `down` is set; then every question fails as over a lost connection."""

    def __init__(self, name: str = "spark-0") -> None:
        self.name = name
        self.down = False
        self.refuse: Reason | None = None
        self.probe: str | None = None
        """What `run` answers instead of running."""
        self.ran: list[tuple[str, ...]] = []
        self.folders: list[Path] = []
        self.forwards_open = 0
        self.looks: tuple[Look, ...] = ()

    @property
    def state(self) -> LinkState:
        return LinkState(LinkStatus.DOWN if self.down else LinkStatus.UP, time.monotonic())

    async def start(self) -> None:
        """Nothing to connect."""

    async def close(self) -> None:
        """Nothing to end."""

    async def run(self, argv: Sequence[str], *, stdin: str = "", limit: float = 10.0, operator: bool = False) -> Output:
        command = tuple(argv)
        self.ran.append(command)
        if self.down:
            return Output(self.name, command, Outcome.UNREACHABLE, None, "", "", "", 0.0)
        if self.probe is not None:
            return Output(self.name, command, Outcome.DONE, 0, "", self.probe, "", 0.0)
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), limit)
        outcome = Outcome.DONE if process.returncode == 0 else Outcome.FAILED
        return Output(self.name, command, outcome, process.returncode, "", out.decode(), err.decode(), 0.0)

    def look(self, looks: Sequence[Look]) -> None:
        self.looks = tuple(looks)

    async def frames(self) -> AsyncIterator[Frame]:
        return
        yield

    async def open_tcp(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(host, port)

    @asynccontextmanager
    async def forward_unix(self, remote_path: str) -> AsyncIterator[Path]:
        if self.down:
            raise ReachError(self.name, f"forward {remote_path}", "connection lost", "it is tried again")
        if self.refuse is not None:
            raise ReachError(self.name, f"forward {remote_path}", "refused", "", self.refuse)
        with tempfile.TemporaryDirectory(prefix="laneswap-test-") as folder:
            self.folders.append(Path(folder))
            local = Path(folder) / "docker.sock"
            local.symlink_to(remote_path)
            self.forwards_open += 1
            try:
                yield local
            finally:
                self.forwards_open -= 1
