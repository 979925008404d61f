"""Connections to jump hosts: one each, shared by every host behind it, closed after its last user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from console.readings.hostkeys import HostKeyProblem

if TYPE_CHECKING:
    import asyncssh


class Watch:
    """What happens to one connection: its start, the host key that was refused, its end and why."""

    def __init__(self) -> None:
        self.connected = False
        self.key: HostKeyProblem | None = None
        self.lost = asyncio.Event()
        self.why = ""


class SharedJump:
    """The one connection to a jump host. Whoever uses it takes it first and releases it once."""

    def __init__(self) -> None:
        self.users = 0
        self.made = 0
        """How often the jump host was logged in to."""
        self._one_at_a_time = asyncio.Lock()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._watch: Watch | None = None

    def take(self) -> SharedJump:
        """Count one more user."""
        self.users += 1
        return self

    def release(self) -> None:
        """One user less; the last one closes the connection."""
        self.users -= 1
        if self.users == 0 and self._connection is not None:
            self._connection.close()
            self._connection = None

    async def connection(
        self, make: Callable[[], Awaitable[tuple[asyncssh.SSHClientConnection, Watch]]]
    ) -> asyncssh.SSHClientConnection:
        """The connection in use, or a new one by `make`; whatever `make` raises comes through."""
        async with self._one_at_a_time:
            if self._connection is None or self._watch is None or self._watch.lost.is_set():
                self._connection, self._watch = await make()
                self.made += 1
            return self._connection
