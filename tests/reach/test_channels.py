"""Byte streams and sockets through ssh, with no listening port here."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ssh_host import SshHost, eventually, up

from console.reach.link import ReachError, Reason
from console.reach.private import PrivateFolder, sweep


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write(b"end")
    writer.close()


async def test_a_stream_carries_bytes_both_ways_to_its_end() -> None:
    async with SshHost() as host, up(host.link()) as link, await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        reader, writer = await connected(link, server.sockets[0].getsockname()[1])
        payload = os.urandom(3_000_000)
        sending = asyncio.create_task(send(writer, payload))
        assert await reader.readexactly(len(payload)) == payload
        await sending
        assert await reader.read() == b"end"
        writer.close()
        await writer.wait_closed()
    assert host.children == [], "no session is used for it"


async def send(writer: asyncio.StreamWriter, payload: bytes) -> None:
    writer.write(payload)
    await writer.drain()
    writer.write_eof()


async def connected(link: object, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(20):
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] = await link.open_tcp("127.0.0.1", port)  # type: ignore[attr-defined]
    return streams


async def test_reasons_for_no_stream() -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    async with SshHost() as host:
        link = host.link()
        async with up(link):
            with pytest.raises(ReachError) as refused:
                await connected(link, port)
            host.forwarding = False
            with pytest.raises(ReachError) as forbidden:
                await connected(link, port)
            await host.stop()
            await eventually(lambda: link.state.error, "the link is down")
            with pytest.raises(ReachError) as down:
                await connected(link, port)
    assert refused.value.reason is Reason.REFUSED
    assert forbidden.value.reason is Reason.FORBIDDEN
    assert "AllowTcpForwarding" in forbidden.value.hint
    assert down.value.reason is Reason.UNREACHABLE
    assert (down.value.host, down.value.command) == ("n1", f"connect 127.0.0.1:{port}")


async def test_a_stream_ends_with_the_connection() -> None:
    async with SshHost() as host, up(host.link()) as link, await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        reader, writer = await connected(link, server.sockets[0].getsockname()[1])
        host.cut()
        with pytest.raises(Exception, match="onnection"):
            async with asyncio.timeout(20):
                await reader.readexactly(1)
        writer.close()


async def test_a_socket_is_forwarded_into_a_private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    async with SshHost() as host, up(host.link()) as link, await asyncio.start_unix_server(echo, tmp_path / "far"):
        async with link.forward_unix(str(tmp_path / "far")) as local:
            folder = local.parent
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert folder.parent == tmp_path / "run"
            for _ in range(2):
                reader, writer = await asyncio.open_unix_connection(str(local))
                writer.write(b"ping")
                writer.write_eof()
                assert await reader.read() == b"pingend"
                writer.close()
        assert not folder.exists(), "socket and folder are gone"


async def test_a_socket_that_is_not_there_closes_what_connects(tmp_path: Path) -> None:
    async with SshHost() as host, up(host.link()) as link:
        async with link.forward_unix(str(tmp_path / "none")) as local:
            reader, writer = await asyncio.open_unix_connection(str(local))
            assert await reader.read() == b""
            writer.close()


async def test_no_socket_without_a_link(tmp_path: Path) -> None:
    async with SshHost() as host:
        link = host.link()
        async with up(link):
            pass
        with pytest.raises(ReachError) as down:
            async with link.forward_unix("/var/run/docker.sock"):
                pass
    assert down.value.reason is Reason.UNREACHABLE


async def test_a_caller_that_goes_away_leaves_no_folder_and_no_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    async with SshHost() as host, up(host.link()) as link:
        for turns in range(12):  # at every point where it can be cancelled

            async def forwarded() -> None:
                async with link.forward_unix(str(tmp_path / "none")):
                    pass

            task = asyncio.create_task(forwarded())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await eventually(lambda: list(tmp_path.iterdir()) == [], "no folder is left")


async def test_a_runtime_folder_of_a_long_name_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    async with SshHost() as host, up(host.link()) as link, link.forward_unix("/var/run/docker.sock") as local:
        assert local.is_socket()
        assert stat.S_IMODE(local.parent.stat().st_mode) == 0o700
    assert not local.parent.exists()


async def test_a_listener_that_comes_too_late_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    listeners: list[Any] = []
    go_on = asyncio.Event()

    async def forwarded() -> None:
        async with link.forward_unix(str(tmp_path / "none")):
            raise AssertionError("never entered")

    async with SshHost() as host, up(host.link()) as link:
        connection = (await link._ready()).connection
        forward = connection.forward_local_path

        async def slow(*paths: str) -> Any:
            listeners.append(await forward(*paths))
            await go_on.wait()
            return listeners[0]

        monkeypatch.setattr(connection, "forward_local_path", slow)
        task = asyncio.create_task(forwarded())
        await eventually(lambda: listeners, "it listens")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go_on.set()
        async with asyncio.timeout(20):
            await listeners[0].wait_closed()
    assert os.listdir(tmp_path) == []


def test_folders_of_the_killed_are_removed_and_others_kept(tmp_path: Path) -> None:
    killed, used, fresh, foreign = (tmp_path / name for name in ("laneswap-a", "laneswap-b", "laneswap-c", "other-d"))
    for folder in (killed, used, fresh, foreign):
        folder.mkdir()
        (folder / "socket").touch()
    (tmp_path / "laneswap-link").symlink_to(foreign)
    holder = "import sys,time; from pathlib import Path; from console.reach.private import locked; "
    holder += "locked(Path(sys.argv[1])); print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", holder, str(used)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        an_hour_ago = time.time() - 3600
        for folder in (killed, used, foreign):
            os.utime(folder, (an_hour_ago, an_hour_ago))
        sweep("laneswap-", tmp_path)
        left = (killed.exists(), used.exists(), fresh.exists(), foreign.exists())
        process.kill()
    sweep("laneswap-", tmp_path)
    assert left == (False, True, True, True)
    assert not used.exists(), "its holder was killed"


def test_a_private_folder_is_private_and_goes(tmp_path: Path) -> None:
    folder = PrivateFolder("laneswap-", tmp_path)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    (folder.path / "socket").touch()
    folder.remove()
    folder.remove()
    assert os.listdir(tmp_path) == []
