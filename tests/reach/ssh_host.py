"""An asyncssh server in process that runs real login shells, with the faults that the tests ask for."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncssh

from console.fleet.inventory import Host, Rates
from console.reach.limits import HandshakeLimits, Timings
from console.reach.ssh import SshLink

QUICK = Timings(
    keepalive_interval=0.5,
    first_retry=0.05,
    longest_retry=0.2,
    stubborn_retry=0.1,
    beat=0.2,
    beat_limit=5.0,
    hello_limit=10.0,
    slow_after=1.0,
    slow_limit=3.0,
    close_limit=2.0,
)


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

    def session_requested(self) -> Any:
        host = self._host
        if host.open_sessions >= host.most_sessions:
            host.refused += 1
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "open failed")
        host.open_sessions += 1
        host.highest = max(host.highest, host.open_sessions)
        return asyncssh.SSHServerProcess(host.session, None, 3, False)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        self._host.check_forwarding()
        return True

    def unix_connection_requested(self, dest_path: str) -> Any:
        self._host.check_forwarding()
        return True


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

    def check_forwarding(self) -> None:
        """As sshd with AllowTcpForwarding no."""
        if not self.forwarding:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")

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

    @property
    def running(self) -> int:
        """Login shells that have not ended."""
        return sum(child.returncode is None for child in self.children)

    def cut(self) -> None:
        """The machine's end of every connection goes away, as when sshd is killed."""
        for connection in self.connections:
            connection.abort()

    @property
    def known_hosts(self) -> bytes:
        """What a known_hosts file says of this host."""
        return b"".join(
            f"[127.0.0.1]:{self.port} ".encode() + key.export_public_key()
            for key in self.keys
            if isinstance(key, asyncssh.SSHKey)
        )

    def link(self, name: str = "n1", *, rates: Rates | None = None, **more: Any) -> SshLink:
        """A link to this host, not started."""
        limits = more.pop("limits", None) or HandshakeLimits()
        timings = more.pop("timings", QUICK)
        overrides = self.overrides(**more)
        return SshLink(name, Host(ssh=name), rates or Rates(), limits=limits, timings=timings, overrides=overrides)

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

    async def session(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        try:
            await self._session(process)
        finally:
            self.open_sessions -= 1

    async def _session(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        self.commands.append(command)
        if self.before:
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
        feeding = asyncio.create_task(_pump(process.stdin, child.stdin))
        await asyncio.gather(_pump(child.stdout, process.stdout), _pump(child.stderr, process.stderr))
        status = await child.wait()
        feeding.cancel()
        with suppress(asyncssh.Error, OSError):
            process.stdout.write(self.after)
            if status < 0:
                process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
            else:
                process.exit(status)


async def _pump(reader: Any, writer: Any) -> None:
    """asyncssh's own redirection ends the whole connection when one channel is closed early; sshd does not."""
    with suppress(asyncssh.Error, OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with suppress(asyncssh.Error, OSError):
        if isinstance(writer, asyncio.StreamWriter):
            writer.close()
    with suppress(asyncssh.Error, OSError):
        while not isinstance(writer, asyncio.StreamWriter) and await reader.read(65536):
            pass  # as sshd: what nobody reads any more is dropped


@asynccontextmanager
async def up(link: SshLink) -> AsyncIterator[SshLink]:
    """Started, and closed afterwards."""
    await link.start()
    try:
        yield link
    finally:
        await link.close()


async def eventually(condition: Callable[[], Any], what: str, limit: float = 60.0) -> None:
    """Wait until the condition holds; a bound, not a measurement."""
    end = asyncio.get_running_loop().time() + limit
    while not condition():
        assert asyncio.get_running_loop().time() < end, f"never came about: {what}"
        await asyncio.sleep(0.02)
