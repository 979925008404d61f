"""An asyncssh server in process that runs real login shells, with the faults that the tests ask for."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import asyncssh


class HostServer(asyncssh.SSHServer):
    def __init__(self, host: SshHost) -> None:
        self._host = host

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._host.logins += 1
        self._host.connections.append(conn)
        if self._host.drop_logins > 0:
            self._host.drop_logins -= 1
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._host.gone += 1

    def begin_auth(self, username: str) -> bool:
        return self._host.ask_key

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        return self._host.forwarding

    def unix_connection_requested(self, dest_path: str) -> Any:
        return self._host.forwarding


class SshHost:
    """One host. `shell` is the login shell's argv; sshd would call it with -c and the command."""

    def __init__(
        self,
        *,
        shell: Sequence[str] = ("/bin/bash", "-c"),
        env: Mapping[str, str] | None = None,
        before: bytes = b"",
        after: bytes = b"",
        sessions: int = 10,
        keys: Sequence[Any] = (),
        authorized: Any = None,
    ) -> None:
        self.shell = tuple(shell)
        self.env = dict(env or {})
        self.before, self.after = before, after
        self.most_sessions = sessions
        self.keys = list(keys) or [asyncssh.generate_private_key("ssh-ed25519")]
        self.authorized = authorized
        self.ask_key = authorized is not None
        self.forwarding = True
        self.drop_logins = 0
        self.logins = self.gone = self.refused = self.open_sessions = self.highest = 0
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.commands: list[str] = []
        self.children: list[asyncio.subprocess.Process] = []
        self.port = 0
        self._acceptor: asyncssh.SSHAcceptor | None = None

    async def __aenter__(self) -> SshHost:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        for child in self.children:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        for child in self.children:
            await child.wait()
            child._transport.close()  # type: ignore[attr-defined]

    async def listen(self) -> None:
        self._acceptor = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            server_factory=lambda: HostServer(self),
            server_host_keys=self.keys,
            authorized_client_keys=self.authorized,
            session_factory=None,
            process_factory=self._session,
            encoding=None,
        )
        self.port = self._acceptor.get_port()

    async def stop(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()
            self._acceptor = None
        for connection in self.connections:
            connection.abort()

    def cut(self) -> None:
        """The machine's end of every connection goes away, as when sshd is killed."""
        for connection in self.connections:
            connection.abort()

    @property
    def known_hosts(self) -> bytes:
        return b"".join(f"[127.0.0.1]:{self.port} ".encode() + key.export_public_key() for key in self.keys)

    def overrides(self, **more: Any) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "username": "ops",
            "config": None,
            "client_keys": None,
            "known_hosts": self.known_hosts,
            **more,
        }

    async def _session(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        self.commands.append(command)
        self.highest = max(self.highest, self.open_sessions)
        process.stdout.write(self.before)
        child = await asyncio.create_subprocess_exec(
            *self.shell,
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **self.env},
            start_new_session=True,
        )
        self.children.append(child)
        await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr, send_eof=False)
        status = await child.wait()
        with suppress(asyncssh.Error, OSError):
            await process.stdout.drain()
            process.stdout.write(self.after)
            if status < 0:
                process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
            else:
                process.exit(status)


async def eventually(condition: Callable[[], Any], what: str, limit: float = 20.0) -> None:
    """Wait until the condition holds; a bound, not a measurement."""
    end = asyncio.get_running_loop().time() + limit
    while not condition():
        assert asyncio.get_running_loop().time() < end, f"never came about: {what}"
        await asyncio.sleep(0.02)
