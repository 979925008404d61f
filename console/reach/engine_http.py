"""The engine's HTTP server, asked directly or from its host through ssh; every failure is an answer of its own kind."""

from __future__ import annotations

import asyncio
import importlib
import socket
import ssl
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from console import __version__
from console.reach.link import Link, ReachError, Reason
from console.readings.health import HttpAnswer, Transport
from console.readings.link import LinkStatus
from console.sanitize import line

if TYPE_CHECKING:
    import httpx

    from console.reach.http_transport import PlainStream

MOST_BYTES = 64 << 20
MOST_REDIRECTS = 3
HEADERS = {
    "accept": "text/plain, application/json;q=0.9, */*;q=0.1",
    "accept-encoding": "gzip",
    "user-agent": f"laneswap/{__version__}",
}


class EngineHttp:
    """One engine endpoint. `link` None asks from this machine, otherwise from the link's host.

    Connections are kept alive between requests; httpx is imported with the first one.
    """

    def __init__(self, base_url: str, link: Link | None) -> None:
        self._base = base_url.rstrip("/")
        self._link = link
        self._client: httpx.AsyncClient | None = None
        self._paths: dict[str, asyncio.Lock] = {}
        self._closed = False

    async def get(
        self,
        path: str,
        *,
        limit: float,
        max_bytes: int = MOST_BYTES,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """GET `path`. Never raises for a remote failure: see `HttpAnswer.transport`.

        `limit` seconds bound everything: a request to the same path before this one (never two at once; the second
        waits), connection, answer and body. `max_bytes` bounds the body, before and after decompression. Redirects
        are followed on the same scheme, host and port only; any other is the answer. A truncated or too large
        answer keeps status and the bytes that came.
        """
        began = time.monotonic()
        attempt = _Attempt()
        lock = self._paths.setdefault(path, asyncio.Lock())
        try:
            async with asyncio.timeout(limit):
                async with lock:
                    attempt.waiting = False
                    await self._ask(path, attempt, max_bytes, dict(headers or {}))
        except TimeoutError:
            self._timed_out(attempt, limit)
        return attempt.answer(began)

    async def close(self) -> None:
        """Close the connections. Later requests answer UNREACHABLE."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _ask(self, path: str, attempt: _Attempt, max_bytes: int, headers: dict[str, str]) -> None:
        client = await self._ready()
        if client is None:
            attempt.fail(Transport.UNREACHABLE, "closed")
            return
        url = self._base + path
        for _ in range(MOST_REDIRECTS + 1):
            await self._once(client, url, attempt, max_bytes, headers)
            if attempt.transport is Transport.RESET and not attempt.opening:
                # the server had closed the idle connection just when we used it again
                await self._once(client, url, attempt, max_bytes, headers)
            target = _same_place(url, attempt)
            if not target:
                return
            url = target
        attempt.detail = f"more than {MOST_REDIRECTS} redirects"

    async def _once(
        self, client: httpx.AsyncClient, url: str, attempt: _Attempt, max_bytes: int, headers: dict[str, str]
    ) -> None:
        attempt.reset()
        try:
            async with client.stream("GET", url, headers=headers, extensions={"trace": attempt.trace}) as response:
                attempt.start(response.status_code, response.headers)
                await _read_body(response, attempt, max_bytes)
        except (OSError, ValueError, zlib.error) as error:
            attempt.fail(Transport.NOT_HTTP, _words(error))
        except Exception as error:
            if not self._classify(error, attempt):
                raise

    async def _ready(self) -> httpx.AsyncClient | None:
        if self._client is None and not self._closed:
            client = await asyncio.to_thread(self._make_client)
            if self._client is None and not self._closed:
                self._client = client
        return self._client

    def _make_client(self) -> httpx.AsyncClient:
        http: Any = importlib.import_module("console.reach.http_transport")
        secure = self._base.startswith("https:")
        client: httpx.AsyncClient = http.make_client(http.Backend(self._open), HEADERS, secure=secure)
        return client

    async def _open(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._link is not None:
            return await self._link.open_tcp(host, port)
        return await asyncio.open_connection(host, port)

    # -- what a failure means

    def _link_down(self) -> bool:
        return self._link is not None and self._link.state.status is not LinkStatus.UP

    def _timed_out(self, attempt: _Attempt, limit: float) -> None:
        if self._link_down() and self._link is not None:
            attempt.fail(Transport.UNREACHABLE, self._link.state.error or "the link to the host is down")
        elif attempt.waiting:
            attempt.fail(Transport.READ_TIMEOUT, f"the request before it was not answered within {limit:g} s")
        elif attempt.opening and attempt.stream is None:
            attempt.fail(Transport.CONNECT_TIMEOUT, f"no connection within {limit:g} s")
        elif attempt.status is not None:
            attempt.fail(Transport.READ_TIMEOUT, f"the body did not end within {limit:g} s")
        else:
            attempt.fail(Transport.READ_TIMEOUT, f"connected, but no answer within {limit:g} s")

    def _classify(self, error: Exception, attempt: _Attempt) -> bool:
        """Fill in what an exception of the exchange means; False for one that is not its own."""
        http: Any = importlib.import_module("console.reach.http_transport")
        core = http.httpcore
        words = _words(error)
        if self._closed:
            attempt.fail(Transport.UNREACHABLE, "closed")
        elif isinstance(error, http.OpenFailed):
            attempt.fail(*_not_opened(error.cause))
        elif isinstance(error, core.NetworkError | core.RemoteProtocolError) and self._link_down():
            attempt.fail(Transport.UNREACHABLE, "the link to the host went down")
        elif attempt.status is not None and isinstance(error, core.NetworkError | core.RemoteProtocolError):
            attempt.fail(Transport.TRUNCATED, words)
        elif isinstance(error, core.RemoteProtocolError) and ("disconnected" not in words or attempt.received):
            attempt.fail(Transport.NOT_HTTP, words)
        elif isinstance(error, core.NetworkError | core.RemoteProtocolError):
            attempt.fail(Transport.RESET, words)
        elif isinstance(error, http.httpx.HTTPError | http.httpx.InvalidURL | core.ProtocolError):
            attempt.fail(Transport.NOT_HTTP, words)
        else:
            return False
        return True


@dataclass(slots=True)
class _Attempt:
    """What is known of one exchange so far."""

    waiting: bool = True
    transport: Transport = Transport.ANSWERED
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    detail: str = ""
    opening: bool = False
    """This exchange opened a connection of its own, or tried to."""
    stream: PlainStream | None = None
    """That connection, once it was there."""

    @property
    def received(self) -> int:
        """Bytes that came on a connection of its own."""
        return self.stream.received if self.stream is not None else 0

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """httpcore's trace hook: what the exchange is doing."""
        if event == "connection.connect_tcp.started":
            self.opening = True
        elif event == "connection.connect_tcp.complete":
            self.stream = info["return_value"]

    def reset(self) -> None:
        self.transport, self.status, self.detail = Transport.ANSWERED, None, ""
        self.opening, self.stream = False, None
        self.headers = {}
        self.body = bytearray()

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = {line(name, 100).lower(): line(value, 1000) for name, value in headers.items()}

    def fail(self, transport: Transport, detail: str) -> None:
        self.transport, self.detail = transport, detail

    def answer(self, began: float) -> HttpAnswer:
        at = time.monotonic()
        kind = self.headers.get("content-type", "")
        return HttpAnswer(
            at, at - began, self.transport, self.status, kind, self.headers, bytes(self.body), self.detail
        )


async def _read_body(response: httpx.Response, attempt: _Attempt, max_bytes: int) -> None:
    unpack = _unpacker(attempt.headers.get("content-encoding", ""))
    came = 0
    async for chunk in response.aiter_raw():
        came += len(chunk)
        attempt.body += unpack.decompress(chunk, max_bytes + 1 - len(attempt.body)) if unpack else chunk
        if len(attempt.body) > max_bytes or came > max_bytes:
            del attempt.body[max_bytes:]
            attempt.fail(Transport.TOO_LARGE, f"more than {max_bytes} bytes")
            return
        if unpack is not None and unpack.unused_data:
            attempt.fail(Transport.TRUNCATED, "something follows the end of the compressed body")
            return
    if unpack is not None and not unpack.eof and came:
        attempt.fail(Transport.TRUNCATED, "the compressed body is cut off")


def _unpacker(encoding: str) -> Any:
    """A bounded decompressor for gzip; None for a body that is not packed. Raises ValueError for any other."""
    if encoding.strip().lower() in ("", "identity"):
        return None
    if encoding.strip().lower() in ("gzip", "x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    raise ValueError(f"content-encoding {encoding!r} was not asked for")


def _same_place(url: str, attempt: _Attempt) -> str:
    """Where a redirect leads, if it stays on the same scheme, host and port; empty otherwise."""
    where = attempt.headers.get("location", "")
    if attempt.transport is not Transport.ANSWERED or attempt.status not in (301, 302, 303, 307, 308) or not where:
        return ""
    try:
        target = urljoin(url, where)
        old, new = urlsplit(url), urlsplit(target)
        same = (old.scheme, old.hostname, old.port) == (new.scheme, new.hostname, new.port)
    except ValueError:
        same = False
    if not same:
        attempt.detail = f"redirect to another place is not followed: {line(where, 200)}"
        return ""
    return target


def _not_opened(cause: Exception) -> tuple[Transport, str]:
    if isinstance(cause, ReachError):
        reasons = {Reason.REFUSED: Transport.REFUSED, Reason.TIMEOUT: Transport.CONNECT_TIMEOUT}
        detail = f"{cause.problem} ({cause.hint})" if cause.hint else cause.problem
        return reasons.get(cause.reason, Transport.UNREACHABLE), detail
    words = _words(cause)
    if isinstance(cause, ssl.SSLError):
        return Transport.NOT_HTTP, f"TLS: {words}"
    if isinstance(cause, ConnectionRefusedError) or "[Errno 111]" in words or "[Errno 61]" in words:
        return Transport.REFUSED, "connection refused"
    if isinstance(cause, socket.gaierror):
        return Transport.UNREACHABLE, f"name does not resolve: {words}"
    if isinstance(cause, TimeoutError):
        return Transport.CONNECT_TIMEOUT, "no connection in time"
    if isinstance(cause, ConnectionError):
        return Transport.RESET, words
    return Transport.UNREACHABLE, words


def _words(error: BaseException) -> str:
    return line(str(error) or type(error).__name__, 200)
