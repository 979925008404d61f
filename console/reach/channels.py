"""Byte streams and sockets through a host's ssh connection, with no listening port on this machine."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from console.reach.connection import load_asyncssh
from console.reach.link import ReachError, Reason
from console.reach.private import PrivateFolder
from console.reach.sessions import Sessions
from console.sanitize import line

T = TypeVar("T")
_FOLDER = "laneswap-s-"
_MOST_BASE = 80
"""Bytes of the path of the folder around it: a socket's whole path has 103 at most (sun_path, macOS; Linux has 107)."""
_WORDS = (
    (re.compile(r"refused", re.IGNORECASE), Reason.REFUSED),
    (re.compile(r"timed? ?out", re.IGNORECASE), Reason.TIMEOUT),
    (re.compile(r"prohibited|permi|not allowed|denied", re.IGNORECASE), Reason.FORBIDDEN),
    (re.compile(r"no such file|not known|resolve|unknown host|Name or service", re.IGNORECASE), Reason.NOT_FOUND),
    (re.compile(r"no route|unreachable", re.IGNORECASE), Reason.UNREACHABLE),
)
_PROHIBITED = 1
"""SSH_OPEN_ADMINISTRATIVELY_PROHIBITED, RFC 4254 section 5.1."""


class ChannelTransport(asyncio.Transport):
    """An asyncssh channel as asyncio's streams expect a transport to be."""

    def __init__(self, channel: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._channel = channel
        self._loop = loop

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """asyncssh knows `connection`, `peername` and what the connection knows."""
        return self._channel.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Queue bytes; what comes after the end of the channel is dropped, as asyncio's transports do."""
        with suppress(OSError):
            self._channel.write(bytes(data))

    def write_eof(self) -> None:
        """Half-close."""
        with suppress(OSError):
            self._channel.write_eof()

    def can_write_eof(self) -> bool:
        """SSH channels can."""
        return True

    def close(self) -> None:
        """Close once what is queued has been sent."""
        self._channel.close()

    def abort(self) -> None:
        """Close at once."""
        self._channel.abort()

    def is_closing(self) -> bool:
        """True once it is closing or closed."""
        return bool(self._channel.is_closing())

    def get_write_buffer_size(self) -> int:
        """Bytes queued."""
        return int(self._channel.get_write_buffer_size())

    def pause_reading(self) -> None:
        """The reader has enough."""
        self._channel.pause_reading()

    def resume_reading(self) -> None:
        """The channel hands over its backlog in the call itself, which StreamReader cannot take: so a little later."""
        self._loop.call_soon(self._channel.resume_reading)


class ChannelStream(asyncio.StreamReaderProtocol):
    """Lets an asyncssh channel be read and written as asyncio streams."""

    transport: ChannelTransport

    def connection_made(self, transport: Any) -> None:
        """asyncssh: the channel exists."""
        self.transport = ChannelTransport(transport, asyncio.get_running_loop())
        super().connection_made(self.transport)

    def session_started(self) -> None:
        """asyncssh: the channel is open."""

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        """asyncssh: bytes came; there is no extended data on a TCP or socket channel."""
        super().data_received(data)


async def open_tcp(
    sessions: Sessions, host_name: str, host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """asyncio streams to host:port as seen from the far machine. Raises ReachError with its reason."""
    asyncssh = load_asyncssh()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = ChannelStream(reader, loop=loop)
    connection: Any = sessions.connection  # typed for text sessions only
    what = f"connect {host}:{port}"
    try:
        await _kept(connection.create_connection(lambda: protocol, host, port), lambda made: made[0].abort())
    except asyncssh.ChannelOpenError as error:
        raise _channel_error(host_name, what, error, lost=sessions.watch.lost.is_set()) from error
    except (asyncssh.Error, OSError) as error:
        raise ReachError(host_name, what, line(str(error), 200) or type(error).__name__) from error
    return reader, asyncio.StreamWriter(protocol.transport, protocol, reader, loop)


async def _kept(work: Awaitable[T], undo: Callable[[T], object]) -> T:
    """What `work` makes. If the caller goes away meanwhile it is made all the same, and undone then."""
    making = asyncio.ensure_future(work)

    def late(made: asyncio.Future[T]) -> None:
        if not made.cancelled() and made.exception() is None:
            undo(made.result())

    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(late)
        raise


def _channel_error(host: str, what: str, error: Any, *, lost: bool) -> ReachError:
    words = line(str(error.reason), 200)
    if lost or "connection closed" in words:
        return ReachError(host, what, "connection lost", "connecting again")
    if error.code == _PROHIBITED:
        hint = "set AllowTcpForwarding and AllowStreamLocalForwarding to yes in sshd_config on that host"
        return ReachError(host, what, f"sshd forbids forwarding: {words}", hint, Reason.FORBIDDEN)
    # OpenSSH often says no more than `open failed`: the far machine could not connect
    reason = next((reason for pattern, reason in _WORDS if pattern.search(words)), Reason.REFUSED)
    return ReachError(host, what, words or "open failed", "is it listening on that host?", reason)


@asynccontextmanager
async def forward_unix(
    ready: Callable[[], Awaitable[Sessions]], host_name: str, remote_path: str
) -> AsyncIterator[Path]:
    """A socket file in a new 0700 folder, forwarded to `remote_path`; both are gone afterwards. Raises ReachError."""
    asyncssh = load_asyncssh()
    sessions = await ready()
    try:
        folder = await _kept(asyncio.to_thread(private_folder), lambda made: made.remove())
    except OSError as error:
        hint = "this machine: free space, or set XDG_RUNTIME_DIR or TMPDIR to a folder that can be written to"
        problem = f"no folder for the forwarded socket: {line(str(error), 200)}"
        raise ReachError(host_name, f"forward {remote_path}", problem, hint) from error
    local = folder.path / "s"
    try:
        try:
            opening = sessions.connection.forward_local_path(str(local), remote_path)
            listener = await _kept(opening, lambda made: made.close())
        except (asyncssh.Error, OSError) as error:
            raise ReachError(host_name, f"forward {remote_path}", line(str(error), 200)) from error
        try:
            yield local
        finally:
            listener.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await listener.wait_closed()
    finally:
        folder.remove()


def private_folder() -> PrivateFolder:
    """A new folder that only this user can enter; those that killed consoles left are removed. Blocking."""
    places = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")  # noqa: S108 (mkdtemp below it)
    fit = [place for place in places if len(os.fsencode(place)) <= _MOST_BASE and os.access(place, os.W_OK)]
    return PrivateFolder(_FOLDER, Path(fit[0]) if fit else None)
