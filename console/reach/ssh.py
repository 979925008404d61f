"""A host over ssh: one connection, kept; commands, sampler, byte streams and sockets all go through it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from console.fleet.inventory import Host, Rates
from console.reach import channels
from console.reach.connection import Connector
from console.reach.exchange import Exchange
from console.reach.faults import ConnectFailed, Fault
from console.reach.limits import HandshakeLimits, Timings
from console.reach.link import Frame, ReachError
from console.reach.looking import Looking
from console.reach.sampler import StreamEnded, sample
from console.reach.sessions import LinkLost, SessionRefused, Sessions
from console.reach.shell import guarded
from console.readings.link import LinkState, LinkStatus
from console.readings.look import Look
from console.readings.output import Outcome, Output

_STEADY = 10.0
"""Seconds a connection has to last before its loss counts as the first failure again."""


class SshLink:
    """One host over ssh; see `Link`. Constructing it imports no asyncssh and contacts nothing."""

    def __init__(
        self,
        name: str,
        host: Host,
        rates: Rates,
        *,
        limits: HandshakeLimits,
        timings: Timings | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._rates = rates
        self._timings = timings or Timings()
        self._connector = Connector(host, limits, self._timings, overrides)
        self._state = LinkState(LinkStatus.CONNECTING, time.monotonic())
        self._fault = Fault(Outcome.UNREACHABLE, "not connected yet")
        self._sessions: Sessions | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._up = asyncio.Event()
        self._closing = asyncio.Event()
        self._looking = Looking()
        self.connections = 0
        """How often this host was logged in to."""

    @property
    def state(self) -> LinkState:
        """The link's newest state."""
        return self._state

    @property
    def fault(self) -> Fault:
        """Why the link is not up; meaningless while it is."""
        return self._fault

    async def start(self) -> None:
        """Begin to connect and stay connected. Returns at once."""
        if self._keeper is None and not self._closing.is_set():
            self._keeper = asyncio.create_task(self._keep(), name=f"ssh {self.name}")

    async def close(self) -> None:
        """End sampler, commands and connection. Bounded; nothing of this link is left running afterwards."""
        self._closing.set()
        self._settled.set()
        self._up.set()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self._drop()
        self._fault = Fault(Outcome.UNREACHABLE, "the console has closed this link")
        self._state = LinkState(LinkStatus.DOWN, time.monotonic(), self._fault.problem)

    async def run(self, argv: Sequence[str], *, stdin: str = "", limit: float = 10.0, operator: bool = False) -> Output:
        """Run one program; see `Link.run`. Raises ValueError for a command that cannot be sent (empty, NUL byte)."""
        exchange = Exchange(self.name, tuple(argv), guarded(argv, stdin=stdin, limit=limit))
        try:
            async with asyncio.timeout(limit):
                sessions = await self._ready()
                exchange.queued = True
                async with sessions.process(exchange.framed.line, operator=operator) as process:
                    return await exchange.carry_out(process)
        except TimeoutError:
            return exchange.out_of_time(limit)
        except LinkLost:
            return exchange.not_sent(self._fault_now())
        except SessionRefused as refused:
            hint = "the account may only run a forced command or sftp"
            return exchange.not_sent(Fault(Outcome.REJECTED_BY_SHELL, f"sshd runs no commands: {refused}", hint))

    async def frames(self) -> AsyncIterator[Frame]:
        """The sampler stream, across reconnects, until `close`; see `Link.frames`."""
        failures = 0
        while await self._await_up():
            sessions = self._sessions
            if sessions is None:
                continue
            began = time.monotonic()
            try:
                stream = sample(sessions, self._rates, self._timings, self._looking)
                try:
                    async for frame in stream:
                        yield frame
                finally:
                    await stream.aclose()
            except (StreamEnded, LinkLost, SessionRefused) as ended:
                if sessions.watch.lost.is_set() or self._closing.is_set():
                    failures = 0
                    continue
                failures = 1 if time.monotonic() - began > _STEADY else failures + 1
                yield _stream_error(str(ended) or "the sampler stream ended")
                await self._pause(self._timings.retry_delay(failures))

    def look(self, looks: Sequence[Look]) -> None:
        """Replace what the host looks at; see `Link.look`. Raises ValueError."""
        self._looking.ask(looks)

    async def open_tcp(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A byte stream to host:port as seen from this host; see `Link.open_tcp`. Raises ReachError."""
        sessions = await self._ready_or_raise(f"connect {host}:{port}")
        return await channels.open_tcp(sessions, self.name, host, port)

    def forward_unix(self, remote_path: str) -> AbstractAsyncContextManager[Path]:
        """A local socket file that leads to `remote_path` on the host; see `Link.forward_unix`. Raises ReachError."""
        return channels.forward_unix(lambda: self._ready_or_raise(f"connect {remote_path}"), self.name, remote_path)

    # -- keeping the connection

    async def _keep(self) -> None:
        attempt = 0
        while not self._closing.is_set():
            try:
                connection, watch = await self._connector.connect()
            except ConnectFailed as failed:
                attempt += 1
                delay = self._timings.retry_delay(attempt, stubborn=failed.fault.stubborn)
                self._down(failed.fault, attempt, delay)
                await self._pause(delay)
                continue
            self._sessions = Sessions(connection, watch, close_limit=self._timings.close_limit)
            self.connections += 1
            since = time.monotonic()
            self._state = LinkState(LinkStatus.UP, since)
            self._settled.set()
            self._up.set()
            await watch.lost.wait()
            attempt = 1 if time.monotonic() - since > _STEADY else attempt + 1
            delay = self._timings.retry_delay(attempt)
            why = f": {watch.why}" if watch.why else ""
            self._down(Fault(Outcome.UNREACHABLE, f"connection lost{why}", "connecting again"), attempt, delay)
            await self._drop()
            await self._pause(delay)

    def _down(self, fault: Fault, attempt: int, delay: float) -> None:
        now = time.monotonic()
        since = self._state.since if self._state.status is LinkStatus.DOWN else now
        self._fault = fault
        if not self._closing.is_set():
            self._up.clear()
        self._state = LinkState(LinkStatus.DOWN, since, fault.problem, fault.hint, attempt, now + delay)
        self._settled.set()

    async def _drop(self) -> None:
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            await sessions.close()
        self._connector.release()

    async def _pause(self, delay: float) -> None:
        """Sleep, but wake when the link closes."""
        try:
            async with asyncio.timeout(delay):
                await self._closing.wait()
        except TimeoutError:
            return

    async def _await_up(self) -> bool:
        await self._up.wait()
        sessions = self._sessions
        if (sessions is None or sessions.watch.lost.is_set()) and not self._closing.is_set():
            await asyncio.sleep(0.01)  # the keeper has yet to notice
        return not self._closing.is_set()

    async def _ready(self) -> Sessions:
        await self._settled.wait()
        if self._sessions is None:
            raise LinkLost(self._fault.problem)
        return self._sessions

    async def _ready_or_raise(self, what: str) -> Sessions:
        try:
            return await self._ready()
        except LinkLost:
            fault = self._fault
            raise ReachError(self.name, what, fault.problem, fault.hint) from None

    def _fault_now(self) -> Fault:
        if self._state.status is LinkStatus.UP:
            return Fault(Outcome.UNREACHABLE, "connection lost before the command was sent")
        return self._fault


def _stream_error(words: str) -> Frame:
    now = time.monotonic()
    return Frame("error", 0, 0.0, 0.0, now, error=f"sampler: {words}", source="sampler")
