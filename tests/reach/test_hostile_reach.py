"""Hosts, engines and daemons that mean harm or are half dead: an answer of its own kind, in bounded time."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import asyncssh
import pytest
from fake_docker import container, fake_docker
from fake_link import FakeLink
from ssh_host import QUICK, SshHost, eventually, up

from console.fleet.inventory import Rates
from console.reach import channels, docker_follow
from console.reach.docker_engine import DockerEngine
from console.reach.engine_http import EngineHttp
from console.reach.link import ReachError
from console.reach.sampler import StreamEnded, sample
from console.reach.sessions import Sessions
from console.readings.health import HttpAnswer, Transport
from console.readings.output import Outcome

METRICS = b"sglang:num_running_reqs 3\nsglang:gen_throughput 66.3\n"


@asynccontextmanager
async def raw_server(answer: bytes, path: Path | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answers every request with the same bytes; its port (0 on a socket file) and the heads of the requests."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                heads.append(head)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    if path is None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
    else:
        server, port = await asyncio.start_unix_server(serve, str(path)), 0
    try:
        yield port, heads
    finally:
        server.close()


async def asked(answer: bytes) -> HttpAnswer:
    async with raw_server(answer) as (port, _):
        engine = EngineHttp(f"http://127.0.0.1:{port}", None)
        try:
            return await engine.get("/metrics", limit=10.0, max_bytes=1 << 20)
        finally:
            await engine.close()


def packed(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body) + body


# engines


@pytest.mark.parametrize(
    "where", [b"http://[evil", b"http://h:99999/", b"//[::1", b"http://169.254.169.254/latest", b"file:///etc/passwd"]
)
async def test_a_redirect_to_nowhere_or_elsewhere_is_an_answer(where: bytes) -> None:
    answer = await asked(b"HTTP/1.1 302 Found\r\nlocation: " + where + b"\r\ncontent-length: 0\r\n\r\n")
    if answer.transport is Transport.ANSWERED:
        assert answer.status == 302 and answer.detail.startswith("redirect to another place is not followed")
    else:  # httpx cannot read every target
        assert answer.transport is Transport.NOT_HTTP and "Invalid URL" in answer.detail


async def test_metrics_in_several_compressed_pieces_are_never_taken_for_whole() -> None:
    """A cut between two lines would look like an engine without the second half of its series."""
    first, second = METRICS.splitlines(keepends=True)
    answer = await asked(packed(gzip.compress(first) + gzip.compress(second)))
    assert answer.transport is Transport.TRUNCATED
    assert (await asked(packed(gzip.compress(METRICS)))).body == METRICS


# Docker


@pytest.mark.parametrize("status", [b"301 Moved Permanently", b"307 Temporary Redirect"])
async def test_a_daemon_cannot_send_the_console_to_another_place(status: bytes, tmp_path: Path) -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as (port, elsewhere):
        away = b"HTTP/1.1 %s\r\nlocation: http://127.0.0.1:%d/containers\r\ncontent-length: 0\r\n\r\n" % (status, port)
        async with raw_server(away, tmp_path / "docker.sock") as (_, heads):
            engine = DockerEngine(FakeLink(), str(tmp_path / "docker.sock"), lambda event: None)
            found = await engine.read()
            await engine.close()
    assert found.problem.startswith("cannot read Docker: what answers at its socket does not speak its API")
    assert heads and elsewhere == []


async def test_no_room_for_a_forwarded_socket_is_said_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(channels, "private_folder", full)
    async with SshHost() as host, up(host.link()) as link:
        with pytest.raises(ReachError, match=r"no folder for the forwarded socket.*No space left") as caught:
            async with link.forward_unix("/var/run/docker.sock"):
                raise AssertionError("never entered")
        assert "TMPDIR" in caught.value.hint
        engine = DockerEngine(link, "/var/run/docker.sock", lambda event: None)
        found = await engine.read()
        await engine.close()
    assert "No space left" in found.problem and found.items == ()


async def test_a_log_that_cannot_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the fault: a task that ends in silence would look like a container that says nothing."""

    def broken(line: bytes) -> Any:
        raise LookupError("odd\x1b[2J")

    monkeypatch.setattr(docker_follow, "stamped", broken)
    with fake_docker(tmp_path / "docker.sock") as docker:
        raw = docker.add(container(1, "vllm"))
        docker.log_pieces[raw["Id"]] = [b"2026-10-18T09:10:11Z hello\n"]
        engine = DockerEngine(FakeLink(), str(docker.path), lambda event: None)
        follower = engine.follow_log(raw["Id"], lambda wall, text: None)
        await eventually(lambda: follower.problem, "a word on the log")
        assert follower.problem == "log cannot be read: LookupError: odd"
        await engine.close()


# sampler


async def test_a_server_that_opens_no_session_ends_the_wait() -> None:
    class Silent:
        @asynccontextmanager
        async def process(self, command: str, *, operator: bool = False) -> AsyncIterator[None]:
            await asyncio.Event().wait()
            yield

    frames = sample(cast(Sessions, Silent()), Rates(), dataclasses.replace(QUICK, hello_limit=0.1))
    with pytest.raises(StreamEnded, match="no session for the sampler"):
        async with asyncio.timeout(60):
            await anext(frames)


@pytest.mark.parametrize("comment", ["ops@caf\u00e9", "[@click=app.quit]", "\u202e\u009b2J", "a\u0085b", "two words"])
async def test_a_comment_in_known_hosts_may_be_anything(comment: str) -> None:
    """asyncssh drops lines whose comment is not ASCII; the host's own key was then reported as changed."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with SshHost(keys=[key]) as host:
        known = host.known_hosts.strip() + b" " + comment.encode() + b"\n"
        async with up(host.link(known_hosts=known)) as link:
            done = await link.run(["echo", "in"])
            assert (done.outcome, done.stdout.strip()) == (Outcome.DONE, "in"), link.state.error


@pytest.mark.parametrize("flood", ["yes", "yes ''", "cat /dev/zero"])
async def test_a_host_that_floods_the_stream_is_cut_off_and_said_so(flood: str) -> None:
    """Neither its lines nor a line without an end may take the loop or the memory of the console."""
    async with SshHost(shell=("/bin/sh", "-c", f"exec {flood}")) as host, up(host.link()) as link:
        frames = link.frames()
        async with asyncio.timeout(150):
            # A machine too busy to carry a flood says at first that the sampler did not start; it is tried again.
            async for frame in frames:
                assert (frame.kind, frame.source) == ("error", "sampler")
                if "floods the sampler stream" in frame.error:
                    break
        await frames.aclose()  # type: ignore[attr-defined]
