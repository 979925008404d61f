"""httpx over any byte stream: a socket, or a channel of a host's ssh connection. Imports httpx: load it when needed."""

# ruff: noqa: ASYNC109 (httpcore's interface has `timeout`)
from __future__ import annotations

import asyncio
import ssl
import sys
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpcore

# httpx's own command line is not wanted: 3 MB where click happens to be installed. Without it httpx imports the same.
sys.modules.setdefault("httpx._main", typing.cast(typing.Any, None))
import httpx  # noqa: E402

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Opener = Callable[[str, int], Awaitable[Streams]]

KEEP_ALIVE = 30.0
"""Seconds that an idle connection to the engine is kept."""
_CHUNK = 65_536


class OpenFailed(httpcore.ConnectError):
    """The stream could not be opened; `cause` says why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class PlainStream(httpcore.AsyncNetworkStream):
    """asyncio streams as httpcore wants them. Time limits are the caller's (asyncio.timeout)."""

    def __init__(self, streams: Streams) -> None:
        self.reader, self.writer = streams
        self.received = 0
        """Bytes that came so far."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data = await self.reader.read(max_bytes)
        except Exception as error:  # whatever ended the channel: asyncssh and asyncio differ
            raise httpcore.ReadError(str(error) or type(error).__name__) from error
        self.received += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            self.writer.write(buffer)
            await self.writer.drain()
        except Exception as error:
            raise httpcore.WriteError(str(error) or type(error).__name__) from error

    async def aclose(self) -> None:
        self.writer.transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        secure = TlsStream(self, ssl_context, server_hostname)
        try:
            await secure.handshake()
        except (ssl.SSLError, httpcore.NetworkError) as error:
            await self.aclose()
            raise OpenFailed(error) from error
        return secure

    def get_extra_info(self, info: str) -> typing.Any:
        if info == "is_readable":  # httpcore: an idle connection that is readable was closed by the server
            return self.reader.at_eof() or self.reader.exception() is not None
        return None


class TlsStream(httpcore.AsyncNetworkStream):
    """TLS over a PlainStream; asyncio's own needs a real socket, and a channel is none."""

    def __init__(self, plain: PlainStream, context: ssl.SSLContext, name: str | None) -> None:
        self._plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    async def handshake(self) -> None:
        """Raises ssl.SSLError, or NetworkError where the far end hangs up."""
        await self._carry(self._object.do_handshake)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data: bytes = await self._carry(lambda: self._object.read(max_bytes))
            return data
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except ssl.SSLError as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            await self._carry(lambda: self._object.write(buffer))
        except ssl.SSLError as error:
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        await self._plain.aclose()

    def get_extra_info(self, info: str) -> typing.Any:
        return self._object if info == "ssl_object" else self._plain.get_extra_info(info)

    async def _carry(self, step: Callable[[], typing.Any]) -> typing.Any:
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._plain.read(_CHUNK)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
                continue
            await self._flush()
            return result

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await self._plain.write(data)


class Backend(httpcore.AsyncNetworkBackend):
    """Opens streams by `opener`."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[typing.Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            return PlainStream(await self._opener(host, port))
        except Exception as error:
            raise OpenFailed(error) from error

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: typing.Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class Transport(httpx.AsyncBaseTransport):
    """One pool of kept connections over a Backend; httpcore's exceptions come through as they are."""

    def __init__(self, backend: Backend, *, secure: bool) -> None:
        # the authorities take tens of milliseconds to load: only where https needs them; SSL_CERT_FILE is honoured
        context = httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=8,
            max_keepalive_connections=4,
            keepalive_expiry=KEEP_ALIVE,
            network_backend=backend,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        wanted = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=wanted,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            status_code=answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


def make_client(backend: Backend, headers: dict[str, str], *, secure: bool) -> httpx.AsyncClient:
    """A client without cookies, proxies, redirects or limits of its own; `secure` where https is asked. Blocking."""
    return httpx.AsyncClient(
        transport=Transport(backend, secure=secure),
        headers=headers,
        timeout=None,  # noqa: S113 (asyncio.timeout bounds each request as a whole)
        trust_env=False,
        follow_redirects=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )
