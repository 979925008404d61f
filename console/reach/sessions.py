"""The sessions of one ssh connection: bounded, queued, and given back only when the server has closed them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from console.reach.connection import load_asyncssh
from console.reach.jumps import Watch
from console.reach.limits import MOST_SESSIONS, SessionSlots

if TYPE_CHECKING:
    import asyncssh

    Process = asyncssh.SSHClientProcess[bytes]

_AGAIN = 0.05
"""Seconds before a refused opening is tried again; grows with each refusal."""
_SESSION_FAILED = 0xFFFFFFFF
"""asyncssh's code for a session that opened but would not run a command."""


class SessionRefused(Exception):
    """sshd opened a session but will not run commands in it (ForceCommand, a subsystem-only account)."""


class LinkLost(Exception):
    """The connection ended before the session began: nothing was sent."""


class Sessions:
    """Opens sessions on one connection. `close` ends them all."""

    def __init__(
        self, connection: asyncssh.SSHClientConnection, watch: Watch, *, close_limit: float, most: int = MOST_SESSIONS
    ) -> None:
        self.connection = connection
        self.watch = watch
        self.slots = SessionSlots(most)
        self._close_limit = close_limit
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def process(self, command: str, *, operator: bool = False) -> AsyncIterator[Process]:
        """A session that runs `command`, in bytes, without a terminal. Waits its turn: the caller bounds the wait.

        Raises LinkLost or SessionRefused. On leaving, the session is closed whatever state it is in.
        """
        process = await self._open(command, operator)
        try:
            yield process
        finally:
            self.background(self._settle(process))

    async def close(self) -> None:
        """Close the connection and wait, within the limit, until nothing of it is left."""
        self.connection.close()
        try:
            async with asyncio.timeout(self._close_limit):
                await self.connection.wait_closed()
        except TimeoutError:
            pass
        finally:
            self.connection.abort()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _open(self, command: str, operator: bool) -> Process:
        asyncssh = load_asyncssh()
        refusals = 0
        while True:
            await self.slots.acquire(operator)
            opening = asyncio.ensure_future(self.connection.create_process(command, encoding=None, request_pty=False))
            try:
                return await asyncio.shield(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(self._abandon)
                raise
            except asyncssh.ChannelOpenError as error:
                self._refused(error)
            except (asyncssh.Error, OSError) as error:
                self.slots.release()
                raise LinkLost(str(error)) from error
            refusals += 1
            await asyncio.sleep(min(1.0, _AGAIN * refusals))

    def _refused(self, error: asyncssh.ChannelOpenError) -> None:
        """An opening failed: `open failed` is our limit and is tried again; anything else is raised."""
        lost = self.watch.lost.is_set() or "connection closed" in error.reason
        if not lost and error.code != _SESSION_FAILED:
            self.slots.refused()
        self.slots.release()
        if lost:
            raise LinkLost(error.reason)
        if error.code == _SESSION_FAILED:
            raise SessionRefused(error.reason)

    def _abandon(self, opening: asyncio.Future[Process]) -> None:
        """The caller went away while the session was being opened."""
        if opening.cancelled() or opening.exception() is not None:
            self.slots.release()
        else:
            self.background(self._settle(opening.result()))

    async def _settle(self, process: Process) -> None:
        try:
            process.channel.abort()
            async with asyncio.timeout(self._close_limit):
                await process.wait_closed()
        except TimeoutError:
            return  # the server never closed it: the slot counts as free, and a refusal would teach otherwise
        finally:
            self.slots.release()

    def background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that does not outlive this connection."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
