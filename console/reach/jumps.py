"""Connections to jump hosts: one each, shared by every host behind it, closed after its last user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from console.reach.faults import ConnectFailed, Fault
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
        self._attempts = 0
        """Attempts that failed."""
        self._fault: Fault | None = None

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
        """The connection in use, or a new one by `make`; whatever `make` raises comes through.

        Who waited for an attempt that failed shares its failure: hundreds in a row would each try, one after another.
        """
        before = self._attempts
        async with self._one_at_a_time:
            if self._connection is not None and self._watch is not None and not self._watch.lost.is_set():
                return self._connection
            if self._attempts > before and self._fault is not None:
                raise ConnectFailed(self._fault)
            try:
                self._connection, self._watch = await make()
            except ConnectFailed as failed:
                self._attempts, self._fault = self._attempts + 1, failed.fault
                raise
            self.made, self._fault = self.made + 1, None
            return self._connection
