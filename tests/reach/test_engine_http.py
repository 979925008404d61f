"""Every way an engine's HTTP server can answer or fail, asked directly and through ssh."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from ssh_host import SshHost, eventually, up
from stuck_proxy import StuckProxy

from console.reach.engine_http import EngineHttp
from console.reach.ssh import SshLink
from console.readings.health import HttpAnswer, Transport

Serve = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: 6\r\n\r\nhello\n"


class Engine:
    """A raw HTTP server: answers each request head with what `serve` writes."""

    def __init__(self, serve: Serve, *, tls: ssl.SSLContext | None = None) -> None:
        self._serve = serve
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self.port = 0

    async def __aenter__(self) -> Engine:
        self._server = await asyncio.start_server(self._handle, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(head)
                await self._serve(head, writer)
        except (asyncio.IncompleteReadError, OSError):
            writer.transport.abort()


def answer(raw: bytes, *, close: bool = False) -> Serve:
    async def serve(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()
        if close:
            writer.close()

    return serve


async def silent(_: bytes, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(600)


async def reset(_: bytes, writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    writer.transport.abort()


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


@pytest.fixture(params=["direct", "ssh"])
async def via(request: pytest.FixtureRequest) -> AsyncIterator[SshLink | None]:
    """None, or a link to a host that is up."""
    if request.param == "direct":
        yield None
        return
    async with SshHost() as host, up(host.link()) as link:
        assert (await link.run(["true"], limit=30.0)).ok
        yield link


@asynccontextmanager
async def asked(port: int, link: SshLink | None) -> AsyncIterator[EngineHttp]:
    http = EngineHttp(f"http://127.0.0.1:{port}", link)
    try:
        yield http
    finally:
        await http.close()


async def one(serve: Serve, link: SshLink | None, *, limit: float = 20.0, max_bytes: int = 1 << 20) -> HttpAnswer:
    async with Engine(serve) as engine, asked(engine.port, link) as http:
        return await http.get("/metrics", limit=limit, max_bytes=max_bytes)


async def test_an_answer_and_the_connection_kept(via: SshLink | None) -> None:
    async with Engine(answer(OK)) as engine, asked(engine.port, via) as http:
        answers = [await http.get("/metrics", limit=20.0) for _ in range(5)]
    assert {found.transport for found in answers} == {Transport.ANSWERED}
    assert (answers[0].status, answers[0].body) == (200, b"hello\n")
    assert answers[0].content_type == "text/plain; version=0.0.4"
    assert engine.connections == 1
    request = engine.requests[0].lower()
    assert request.startswith(b"get /metrics http/1.1\r\n")
    assert b"accept: text/plain" in request
    assert b"cookie" not in request
    assert [a.at for a in answers] == sorted(a.at for a in answers)


async def test_a_large_body_comes_whole(via: SshLink | None) -> None:
    body = os.urandom(3_000_000)
    found = await one(answer(head(f"content-length: {len(body)}") + body), via, max_bytes=4_000_000)
    assert (found.transport, found.body == body) == (Transport.ANSWERED, True)


@pytest.mark.parametrize("status", ["503 Service Unavailable", "404 Not Found", "500 Internal Server Error"])
async def test_any_status_is_an_answer(via: SshLink | None, status: str) -> None:
    found = await one(answer(head("content-length: 4", status=status) + b"no!\n"), via)
    assert (found.transport, found.status, found.body) == (Transport.ANSWERED, int(status[:3]), b"no!\n")


async def test_refused(via: SshLink | None) -> None:
    async with Engine(answer(OK)) as engine:
        port = engine.port
    async with asked(port, via) as http:
        found = await http.get("/health", limit=20.0)
    assert (found.transport, found.status) == (Transport.REFUSED, None)
    assert found.detail


async def test_no_answer_in_time(via: SshLink | None) -> None:
    found = await one(silent, via, limit=0.5)
    assert (found.transport, found.status) == (Transport.READ_TIMEOUT, None)
    assert "no answer within 0.5 s" in found.detail


async def test_a_body_that_does_not_end_in_time(via: SshLink | None) -> None:
    found = await one(answer(head("content-length: 100") + b"begun"), via, limit=0.5)
    assert (found.transport, found.status, found.body) == (Transport.READ_TIMEOUT, 200, b"begun")


async def test_no_connection_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        await asyncio.sleep(600)

    monkeypatch.setattr(asyncio, "open_connection", never)
    async with asked(1, None) as http:
        found = await http.get("/health", limit=0.5)
    assert found.transport is Transport.CONNECT_TIMEOUT


async def test_hung_up_without_a_word(via: SshLink | None) -> None:
    assert (await one(answer(b"", close=True), via)).transport is Transport.RESET


async def test_reset() -> None:
    assert (await one(reset, None)).transport is Transport.RESET


@pytest.mark.parametrize(
    "raw",
    [
        head("content-length: 100") + b"some of it",
        head("transfer-encoding: chunked") + b"5\r\nhello\r\n5\r\nhe",
        head("transfer-encoding: chunked") + b"5\r\nhello\r\n",
        head("content-length: 60", "content-encoding: gzip") + gzip.compress(b"x" * 1000, mtime=0)[:20],
        head("content-length: 20", "content-encoding: gzip") + gzip.compress(bytes(range(256)), mtime=0)[:20],
    ],
)
async def test_truncated(via: SshLink | None, raw: bytes) -> None:
    found = await one(answer(raw, close=True), via)
    assert (found.transport, found.status) == (Transport.TRUNCATED, 200)


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"220 smtp ready\r\n", b"HTTP/1.1 abc\r\n\r\n",
        head("content-length: minus one"), head("content-encoding: br", "content-length: 3") + b"abc",
        head("content-encoding: gzip", "content-length: 8") + b"not gzip", head("x: " + "y" * 300_000),
    ],
    ids=["ssh", "tls", "smtp", "status", "length", "encoding", "gzip", "header"],
)  # fmt: skip
async def test_not_http(via: SshLink | None, raw: bytes) -> None:
    found = await one(answer(raw, close=True), via)
    assert found.transport is Transport.NOT_HTTP
    assert found.detail.isprintable()


async def test_too_large_by_length_by_chunks_and_by_a_bomb(via: SshLink | None) -> None:
    async def endless(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(head("transfer-encoding: chunked"))
        while True:
            writer.write(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
            await writer.drain()

    bomb = gzip.compress(b"\0" * 50_000_000)
    packed = head(f"content-length: {len(bomb)}", "content-encoding: gzip") + bomb
    plain = head("content-length: 3000000") + b"x" * 3_000_000
    for serve in (endless, answer(packed), answer(plain)):
        found = await one(serve, via, max_bytes=100_000)
        assert (found.transport, found.status) == (Transport.TOO_LARGE, 200)
        assert len(found.body) == 100_000


async def test_gzip_is_unpacked(via: SshLink | None) -> None:
    body = b"metric 1\n" * 10_000
    packed = gzip.compress(body)
    found = await one(answer(head(f"content-length: {len(packed)}", "content-encoding: gzip") + packed), via)
    assert (found.transport, found.body == body) == (Transport.ANSWERED, True)


async def test_an_idle_connection_that_the_server_closed_is_no_failure(via: SshLink | None) -> None:
    async def serve(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await writer.drain()
        asyncio.get_running_loop().call_later(0.05, writer.close)

    async with Engine(serve) as engine, asked(engine.port, via) as http:
        first = await http.get("/metrics", limit=20.0)
        await asyncio.sleep(0.3)
        second = await http.get("/metrics", limit=20.0)
    assert (first.transport, second.transport) == (Transport.ANSWERED, Transport.ANSWERED)
    assert engine.connections == 2


async def test_a_kept_connection_closed_just_then_is_asked_once_more() -> None:
    async def serve(_: bytes, writer: asyncio.StreamWriter) -> None:
        if len(engine.requests) == 2:
            writer.close()
            return
        writer.write(OK)
        await writer.drain()

    engine = Engine(serve)
    async with engine, asked(engine.port, None) as http:
        assert (await http.get("/metrics", limit=20.0)).transport is Transport.ANSWERED
        again = await http.get("/metrics", limit=20.0)
    assert again.transport is Transport.ANSWERED
    assert (len(engine.requests), engine.connections) == (3, 2)


async def test_redirects_stay_at_home() -> None:
    async def serve(request: bytes, writer: asyncio.StreamWriter) -> None:
        where = {b"/metrics": "/metrics/", b"/metrics/": "", b"/ring": "/ring", b"/away": "http://example.com/"}
        target = where[request.split()[1]]
        writer.write(head(f"location: {target}", "content-length: 0", status="307 Moved") if target else OK)
        await writer.drain()

    async with Engine(serve) as engine, asked(engine.port, None) as http:
        slash = await http.get("/metrics", limit=20.0)
        ring = await http.get("/ring", limit=20.0)
        away = await http.get("/away", limit=20.0)
    assert (slash.status, slash.body) == (200, b"hello\n")
    assert (ring.status, ring.transport, ring.detail) == (307, Transport.ANSWERED, "more than 3 redirects")
    assert (away.status, away.detail) == (307, "redirect to another place is not followed: http://example.com/")
    assert len(engine.requests) == 2 + 4 + 1


async def test_never_two_requests_to_one_path_at_once(via: SshLink | None) -> None:
    inside = highest = 0

    async def serve(_: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal inside, highest
        inside += 1
        highest = max(highest, inside)
        await asyncio.sleep(0.1)
        inside -= 1
        writer.write(OK)
        await writer.drain()

    async with Engine(serve) as engine, asked(engine.port, via) as http:
        answers = await asyncio.gather(*(http.get("/health", limit=20.0) for _ in range(4)))
        assert highest == 1
        await asyncio.gather(http.get("/health", limit=20.0), http.get("/metrics", limit=20.0))
        assert highest == 2, "other paths do not wait"
    assert all(found.transport is Transport.ANSWERED for found in answers)


async def test_waiting_for_the_request_before_counts() -> None:
    async with Engine(silent) as engine, asked(engine.port, None) as http:
        first = asyncio.create_task(http.get("/health", limit=2.0))
        await eventually(lambda: engine.requests, "the first is under way")
        second = await http.get("/health", limit=0.3)
        assert (second.transport, "the request before it" in second.detail) == (Transport.READ_TIMEOUT, True)
        assert (await first).transport is Transport.READ_TIMEOUT
    assert len(engine.requests) == 1


async def test_no_cookies_and_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    raw = head("set-cookie: a=b; Path=/", "content-length: 0")
    async with Engine(answer(raw)) as engine, asked(engine.port, None) as http:
        for _ in range(2):
            assert (await http.get("/metrics", limit=20.0)).status == 200
    assert b"cookie" not in b"".join(engine.requests).lower()


async def test_a_link_that_is_down_is_unreachable() -> None:
    async with SshHost() as host:
        link = host.link()
        async with up(link), Engine(silent) as engine, asked(engine.port, link) as http:
            waiting = asyncio.create_task(http.get("/health", limit=30.0))
            await eventually(lambda: engine.requests, "it is asked")
            await host.stop()
            during = await waiting
            await eventually(lambda: link.state.error, "noticed")
            after = await http.get("/health", limit=20.0)
    assert during.transport is Transport.UNREACHABLE
    assert after.transport is Transport.UNREACHABLE
    assert after.detail


async def test_sshd_that_forbids_forwarding_says_nothing_about_the_engine() -> None:
    async with SshHost() as host, up(host.link()) as link, Engine(answer(OK)) as engine:
        host.forwarding = False
        async with asked(engine.port, link) as http:
            found = await http.get("/health", limit=20.0)
    assert (found.transport, found.status) == (Transport.UNREACHABLE, None)
    assert "AllowTcpForwarding" in found.detail


async def test_an_unknown_name_is_unreachable() -> None:
    http = EngineHttp("http://no-such-host.invalid:1", None)
    found = await http.get("/health", limit=30.0)
    await http.close()
    assert found.transport is Transport.UNREACHABLE


async def test_after_close_it_answers_unreachable() -> None:
    async with Engine(answer(OK)) as engine:
        async with asked(engine.port, None) as http:
            assert (await http.get("/health", limit=20.0)).status == 200
        assert (await http.get("/health", limit=20.0)).transport is Transport.UNREACHABLE
        await http.close()
    await asyncio.sleep(0)
    assert len([task for task in asyncio.all_tasks() if "Engine" not in repr(task)]) == 1


async def test_closing_during_a_request_is_an_answer_too() -> None:
    arrived = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        http = EngineHttp(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
        asking = asyncio.create_task(http.get("/metrics", limit=20.0))
        await arrived.wait()
        await http.close()
        answer = await asking
    assert (answer.transport, answer.detail) == (Transport.UNREACHABLE, "closed")


async def test_the_base_may_have_a_path() -> None:
    async with Engine(answer(OK)) as engine:
        http = EngineHttp(f"http://127.0.0.1:{engine.port}/lane/", None)
        await http.get("/health", limit=20.0)
        await http.close()
    assert engine.requests[0].startswith(b"GET /lane/health ")


async def test_https_checks_the_certificate_and_works_through_ssh(
    tmp_path: Path, via: SshLink | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    make += ["-keyout", "key", "-out", "cert", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    await asyncio.to_thread(subprocess.run, make, cwd=tmp_path, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    async with Engine(answer(OK), tls=tls) as engine:
        untrusted = EngineHttp(f"https://127.0.0.1:{engine.port}", via)
        refused = await untrusted.get("/health", limit=20.0)
        await untrusted.close()
        monkeypatch.setattr(
            "httpx.create_ssl_context", lambda **_: ssl.create_default_context(cafile=tmp_path / "cert")
        )
        trusted = EngineHttp(f"https://127.0.0.1:{engine.port}", via)
        answers = [await trusted.get("/health", limit=20.0) for _ in range(2)]
        await trusted.close()
    assert (refused.transport, "TLS" in refused.detail) == (Transport.NOT_HTTP, True)
    assert [(found.transport, found.body) for found in answers] == [(Transport.ANSWERED, b"hello\n")] * 2


async def test_a_stuck_link_ends_in_time() -> None:
    async with SshHost() as host, StuckProxy(host.port) as proxy, Engine(answer(OK)) as engine:
        known = host.known_hosts.replace(str(host.port).encode(), str(proxy.port).encode())
        async with up(host.link(port=proxy.port, known_hosts=known)) as link, asked(engine.port, link) as http:
            assert (await http.get("/health", limit=20.0)).status == 200
            proxy.stick()
            found = await http.get("/health", limit=0.5)
    assert found.transport in (Transport.READ_TIMEOUT, Transport.UNREACHABLE)
