"""The embedded fleet as a client finds it: real ssh with pinned keys, real processes, the real Docker SDK."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import docker
import pytest
import pytest_asyncio

from console.fleet.inventory import Rates
from console.reach.limits import Timings
from console.reach.sampler import loader, script
from console.reach.shell import guarded
from console.readings.memory import parse_memory
from console.readings.output import SHELL_LINE, cut_noise
from console.rehearsal import Rehearsal, RehearsalError
from console.rehearsal.commands import REFUSAL

LIMIT = 90.0
MARK = "0123456789abcdef"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def spark4() -> AsyncIterator[Rehearsal]:
    async with Rehearsal("spark4") as rehearsal:
        yield rehearsal


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def station() -> AsyncIterator[Rehearsal]:
    async with Rehearsal("station") as rehearsal:
        yield rehearsal


async def until(true: Callable[[], Awaitable[object]], what: str) -> Any:
    """Ask until the answer is truthy; fails after LIMIT."""
    end = time.monotonic() + LIMIT
    while not (answer := await true()):
        assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}"
        await asyncio.sleep(0.1)
    return answer


@asynccontextmanager
async def connected(rehearsal: Rehearsal, host: str, **change: Any) -> AsyncIterator[asyncssh.SSHClientConnection]:
    async with asyncio.timeout(LIMIT):
        connection = await asyncssh.connect(**{**rehearsal.overrides[host], **change})
    async with connection:
        yield connection


async def shell(connection: asyncssh.SSHClientConnection, stdin: str, line: str = SHELL_LINE, eof: bool = False) -> Any:
    """As the console runs a command: stdin stays open while it runs."""
    async with asyncio.timeout(LIMIT), connection.create_process(line) as process:
        with contextlib.suppress(BrokenPipeError):  # a refusal may come before all is written
            process.stdin.write(stdin)
            if eof:
                process.stdin.write_eof()
        return await process.wait()


async def http(connection: asyncssh.SSHClientConnection, port: int, path: str) -> tuple[int, bytes]:
    """GET through the ssh channel. Raises asyncssh.ChannelOpenError where the port is closed."""
    async with asyncio.timeout(LIMIT):
        reader, writer = await connection.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: lane\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    return int(head.split(b" ", 2)[1]), body


# ssh


async def test_every_host_answers_with_its_pinned_key(spark4: Rehearsal) -> None:
    assert list(spark4.overrides) == list(spark4.fleet.hosts)
    keys = {bytes(o["known_hosts"]).split()[2] for o in spark4.overrides.values()}
    assert len(keys) == 5  # one key a host
    for host in spark4.overrides:
        async with connected(spark4, host) as connection:
            assert (await shell(connection, guarded(["true"]).script)).exit_status == 0


async def test_a_client_with_another_key_is_refused(station: Rehearsal) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    with pytest.raises(asyncssh.PermissionDenied):
        async with connected(station, "station", client_keys=[other]):
            pass
    with pytest.raises(asyncssh.PermissionDenied):
        async with connected(station, "station", username="root"):
            pass
    with pytest.raises(asyncssh.PermissionDenied):
        async with connected(station, "station", client_keys=None, password="ops"):
            pass


async def test_a_host_with_another_key_is_not_trusted(station: Rehearsal) -> None:
    port = station.overrides["station"]["port"]
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        async with connected(station, "station", known_hosts=f"[127.0.0.1]:{port} {other}".encode()):
            pass


async def test_nothing_of_the_clients_reaches_a_shell(station: Rehearsal, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    known = guarded(["true"])
    attempts = [
        (f"touch {trap}", ""),
        ("", ""),
        (f"{SHELL_LINE}; touch {trap}", known.script),
        (f"{SHELL_LINE} -c 'touch {trap}'", ""),
        (SHELL_LINE, f"touch {trap}\n"),
        (SHELL_LINE, guarded(["touch", str(trap)]).script),
        (SHELL_LINE, known.script.replace("exec 3", f"touch {trap}; exec 3")),
        (SHELL_LINE, known.script + f"touch {trap}\n"),
        (SHELL_LINE, loader(MARK, Rates(), Timings()).replace(MARK, f"{MARK};touch {trap}")),
        (SHELL_LINE, loader(MARK, Rates(), Timings()) + f"touch {trap}\n"),
        (SHELL_LINE, "x" * 200_000),
    ]
    async with connected(station, "station") as connection:
        for line, stdin in attempts:
            done = await shell(connection, stdin, line, eof=True)
            assert done.exit_status == 126, (line, stdin)
            assert REFUSAL in str(done.stderr)
        with pytest.raises(asyncssh.Error):
            await connection.start_sftp_client()
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.forward_remote_port("127.0.0.1", 0, "127.0.0.1", 1)
    assert not trap.exists()


async def test_a_foreign_script_after_the_loader_is_not_run(station: Rehearsal, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    foreign = f"open({str(trap)!r}, 'w')\n".encode().ljust(len(script("python").encode()), b"#")
    async with connected(station, "station") as connection, asyncio.timeout(LIMIT):
        async with connection.create_process(SHELL_LINE, encoding=None) as process:
            process.stdin.write(loader(MARK, Rates(), Timings()).encode())
            await process.stdout.readuntil(b" python\n")
            process.stdin.write(foreign)
            await process.wait_closed()
    assert not trap.exists()


async def test_a_known_probe_runs_and_is_about_the_rehearsal_host(station: Rehearsal) -> None:
    command = guarded(["uname", "-r"])
    async with connected(station, "station") as connection:
        done = await shell(connection, command.script)
    cut = cut_noise(str(done.stdout).encode(), command.nonce)
    assert (cut.status, cut.body) == (0, b"6.17.0-1031-nvidia\n")


# the sampler


async def frames(connection: asyncssh.SSHClientConnection, wanted: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(LIMIT), connection.create_process(SHELL_LINE, encoding=None) as process:
        process.stdin.write(loader(MARK, Rates(node=0.2), Timings()).encode())
        await process.stdout.readuntil(b" python\n")
        process.stdin.write(script("python").encode())
        lines = [await process.stdout.readline() for _ in range(wanted)]
    return [json.loads(line.partition(b" ")[2]) for line in lines]


async def test_the_sampler_is_a_real_process_over_simulated_files(spark4: Rehearsal) -> None:
    async with connected(spark4, "spark-2") as connection:
        seen = await frames(connection, 4)
    facts = next(frame["t"] for frame in seen if frame["k"] == "facts")
    assert (facts["hostname"], facts["kernel"], facts["cpus"]) == ("spark-2", "6.17.0-1031-nvidia", "20")
    memory = parse_memory(next(frame["t"] for frame in seen if frame["k"] == "node")["meminfo"])
    assert memory.total == pytest.approx(119.7 * 2**30, rel=1e-6)
    gpu = next(frame["t"] for frame in seen if frame["k"] == "gpu")["csv"]
    assert "NVIDIA GB10" in gpu and "[N/A]" in gpu


async def test_memory_low_shows_in_the_sampler(spark4: Rehearsal) -> None:
    await spark4.inject("memory", host="spark-2", free_gib=2.9, cached_gib=61.0, over=0)
    async with connected(spark4, "spark-2") as connection:

        async def low() -> bool:
            seen = await frames(connection, 3)
            memory = parse_memory(next(frame["t"] for frame in seen if frame["k"] == "node")["meminfo"])
            return abs(memory.free / 2**30 - 2.9) < 0.01 and abs(memory.cached / 2**30 - 61.0) < 0.01

        await until(low, "2.9 GiB free and 61 GiB of cache")
        await spark4.inject("memory", host="spark-2", over=0)

        async def well() -> bool:
            seen = await frames(connection, 3)
            return parse_memory(next(frame["t"] for frame in seen if frame["k"] == "node")["meminfo"]).free > 5 * 2**30

        await until(well, "free memory back")


# the engine


async def test_the_lanes_ports_lead_to_real_engines(spark4: Rehearsal) -> None:
    async with connected(spark4, "spark-0") as head:
        status, body = await http(head, 8210, "/v1/models")
        assert status == 200 and json.loads(body)["data"][0]["id"] == "deepseek-v4.1-flash"
        for port in (22, 8211, 30006, spark4.overrides["station"]["port"]):
            with pytest.raises(asyncssh.ChannelOpenError):
                await http(head, port, "/")
        with pytest.raises(asyncssh.ChannelOpenError):
            await head.open_connection("192.0.2.1", 8210)
    async with connected(spark4, "spark-1") as worker:
        assert (await http(worker, 8210, "/health"))[0] == 200
        assert (await http(worker, 8210, "/v1/models"))[0] == 404
    async with connected(spark4, "station") as station:
        assert json.loads((await http(station, 30006, "/version"))[1]) == {"version": "0.32.0"}
    assert (await spark4.truth("dsv41"))["rate"] == 66.3
    assert (await spark4.truth("station"))["rate"] == 261.8


async def test_engine_faults_are_switched_by_lane(spark4: Rehearsal) -> None:
    async def answers(path: str) -> tuple[int, bytes]:
        async with connected(spark4, "spark-0") as head:
            return await http(head, 8210, path)

    await spark4.inject("engine", lane="dsv41", fault="html")
    assert (await until(lambda: _html(answers), "the HTML page"))[0] == 200
    await spark4.inject("engine", lane="dsv41", fault="hang")
    assert (await until(lambda: _rate(spark4, 0.0), "a hang"))["running"] == 3
    await spark4.inject("engine", lane="dsv41", fault="none")
    await until(lambda: _rate(spark4, 66.3), "work again")
    assert (await spark4.truth("station"))["fault"] == "none"


async def _html(answers: Callable[[str], Awaitable[tuple[int, bytes]]]) -> tuple[int, bytes] | None:
    status, body = await answers("/metrics")
    return (status, body) if body.startswith(b"<!DOCTYPE") else None


async def _rate(rehearsal: Rehearsal, wanted: float) -> dict[str, Any] | None:
    truth = await rehearsal.truth("dsv41")
    return truth if truth["rate"] == wanted else None


async def test_an_order_that_does_not_fit_is_refused_in_words(station: Rehearsal) -> None:
    with pytest.raises(RehearsalError, match="no lane 'dsv41'"):
        await station.inject("engine", lane="dsv41", fault="hang")
    with pytest.raises(RehearsalError, match="no host 'spark-1'"):
        await station.inject("host", host="spark-1")
    with pytest.raises(RehearsalError):
        await station.inject("flood")
    with pytest.raises(RehearsalError):
        await station.inject("engine", lane="station", fault="flood")
    assert (await station.truth("station"))["fault"] == "none"


# Docker


@asynccontextmanager
async def docker_socket(connection: asyncssh.SSHClientConnection, folder: Path) -> AsyncIterator[str]:
    path = folder / "d.sock"
    listener = await connection.forward_local_path(str(path), "/var/run/docker.sock")
    try:
        yield f"unix://{path}"
    finally:
        listener.close()
        path.unlink(missing_ok=True)


async def test_the_docker_sdk_lists_the_stations_containers(station: Rehearsal, tmp_path: Path) -> None:
    def ask(url: str) -> None:
        client = docker.DockerClient(base_url=url, timeout=LIMIT)
        try:
            assert client.api.api_version == "1.50" or client.api.api_version < "1.50"
            assert [c.name for c in client.containers.list()] == ["dsv41-vllm-1017-v21cfg-BOUND-REF"]
            serving, retired = client.containers.list(all=True)
            assert (serving.status, retired.status) == ("running", "exited")
            assert retired.name == "dsv41-vllm-v21-fused-split-RETIRED-REF"
            sources = [mount["Source"] for mount in serving.attrs["Mounts"]]
            assert sources[0] == "/models/DeepSeek-V4.1-Flash-1017-1bae0e1088993b9b82de08f59de5be5a34e42170"
            assert json.loads(serving.attrs["Args"][serving.attrs["Args"].index("--speculative-config") + 1])
            assert serving.attrs["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"
            assert serving.attrs["State"]["Pid"] > 0 == retired.attrs["State"]["Pid"]
            assert b"Application startup complete." in serving.logs(tail=5, timestamps=True)
            with pytest.raises(docker.errors.NotFound):
                client.containers.get("nothing-here")
            with pytest.raises(docker.errors.APIError, match="nothing is changed"):
                serving.stop()
        finally:
            client.close()

    async with connected(station, "station") as connection, docker_socket(connection, tmp_path) as url:
        await asyncio.wait_for(asyncio.to_thread(ask, url), LIMIT)


async def test_every_rank_has_its_own_container(spark4: Rehearsal, tmp_path: Path) -> None:
    def ask(url: str) -> dict[str, Any]:
        client = docker.DockerClient(base_url=url, timeout=LIMIT)
        try:
            (only,) = client.containers.list(all=True)
            return dict(only.attrs)
        finally:
            client.close()

    ids = set()
    for rank in range(4):
        async with connected(spark4, f"spark-{rank}") as connection, docker_socket(connection, tmp_path) as url:
            attributes = await asyncio.wait_for(asyncio.to_thread(ask, url), LIMIT)
        ids.add(attributes["Id"])
        arguments = attributes["Args"]
        assert arguments[arguments.index("--node-rank") + 1] == str(rank)
        assert "/models/repo/snapshots/1bae0e1088993b9b82de08f59de5be5a34e42170" in arguments
    assert len(ids) == 4


async def test_a_death_is_an_event_at_once_and_its_exit_is_137(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []

    def listen(url: str) -> None:
        client = docker.DockerClient(base_url=url, timeout=LIMIT)
        try:
            for event in client.events(decode=True, filters={"type": ["container"], "event": ["die", "start"]}):
                heard.append(event)
                if event["Action"] == "start":
                    break
        finally:
            client.close()

    def inspect(url: str) -> tuple[str, int]:
        client = docker.DockerClient(base_url=url, timeout=LIMIT)
        try:
            (only,) = client.containers.list(all=True)
            return only.status, only.attrs["State"]["ExitCode"]
        finally:
            client.close()

    async with (
        Rehearsal("spark4") as fleet,
        connected(fleet, "spark-2") as connection,
        docker_socket(connection, tmp_path) as url,
    ):
        listening = asyncio.create_task(asyncio.to_thread(listen, url))
        await asyncio.sleep(0.3)
        await fleet.inject("container", host="spark-2", name="sgldsv41", action="exit", code=137)
        await until(lambda: _heard(heard, "die"), "the event of the death")
        assert heard[0]["Actor"]["Attributes"]["exitCode"] == "137"
        assert heard[0]["Actor"]["Attributes"]["name"] == "sgldsv41"
        assert await asyncio.wait_for(asyncio.to_thread(inspect, url), LIMIT) == ("exited", 137)
        with pytest.raises(asyncssh.ChannelOpenError):
            await http(connection, 8210, "/health")
        async with connected(fleet, "spark-0") as head:  # the head answers as if nothing had happened
            assert (await http(head, 8210, "/health"))[0] == 200
        await fleet.inject("container", host="spark-2", name="sgldsv41", action="start")
        await until(lambda: _heard(heard, "start"), "the event of the start")
        await asyncio.wait_for(listening, LIMIT)
        assert await asyncio.wait_for(asyncio.to_thread(inspect, url), LIMIT) == ("running", 0)


async def _heard(events: list[dict[str, Any]], action: str) -> bool:
    return any(event["Action"] == action for event in events)


async def test_past_events_come_first_for_who_asks_since(tmp_path: Path) -> None:
    name = "dsv41-vllm-1017-v21cfg-BOUND-REF"
    before = int(time.time()) - 1

    def ask(url: str) -> list[str]:
        client = docker.DockerClient(base_url=url, timeout=LIMIT)
        try:
            return [event["Action"] for event in client.events(decode=True, since=before, until=int(time.time()))]
        finally:
            client.close()

    async def died() -> bool:
        return await asyncio.wait_for(asyncio.to_thread(ask, url), LIMIT) == ["oom", "die"]

    async with Rehearsal("station") as fleet:
        await fleet.inject("container", host="station", name=name, action="exit", code=1, oom=True)
        async with connected(fleet, "station") as connection, docker_socket(connection, tmp_path) as url:
            await until(died, "both events")


async def test_a_followed_log_goes_on(spark4: Rehearsal, tmp_path: Path) -> None:
    def follow(url: str) -> list[bytes]:
        client = docker.DockerClient(base_url=url, timeout=LIMIT)
        try:
            (only,) = client.containers.list()
            lines = []
            for line in only.logs(stream=True, follow=True, tail=1, timestamps=True):
                lines.append(line)
                if len(lines) == 3:
                    break
            return lines
        finally:
            client.close()

    async with connected(spark4, "spark-0") as connection, docker_socket(connection, tmp_path) as url:
        lines = await asyncio.wait_for(asyncio.to_thread(follow, url), LIMIT)
    assert b"Decode batch, #running-req: 3" in lines[-1] and b"gen throughput (token/s): 66.30" in lines[-1]
    assert sorted(lines) == lines  # RFC 3339 stamps in order


async def test_a_stranger_on_the_docker_socket_is_cut_off(station: Rehearsal) -> None:
    async with connected(station, "station") as connection, asyncio.timeout(LIMIT):
        reader, writer = await connection.open_unix_connection("/var/run/docker.sock")
        writer.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_unix_connection("/etc/passwd")


# the host itself


async def test_a_silent_host_passes_nothing_and_comes_back(station: Rehearsal) -> None:
    async with connected(station, "station") as connection:
        assert (await http(connection, 30006, "/health"))[0] == 200
        await station.inject("host", host="station", mode="silent")
        asking = asyncio.create_task(http(connection, 30006, "/health"))
        done, _ = await asyncio.wait([asking], timeout=0.5)
        assert not done
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await asyncssh.connect(**station.overrides["station"])
        await station.inject("host", host="station", mode="open")
        assert (await asyncio.wait_for(asking, LIMIT))[0] == 200


async def test_a_host_that_refuses_resets_what_is_connected(station: Rehearsal) -> None:
    async with connected(station, "station") as connection:
        await station.inject("host", host="station", mode="refused")
        await asyncio.wait_for(connection.wait_closed(), LIMIT)
        with pytest.raises(OSError):
            await asyncio.wait_for(asyncssh.connect(**station.overrides["station"]), LIMIT)
    await station.inject("host", host="station", mode="open")
    async with connected(station, "station") as connection:
        assert (await shell(connection, guarded(["true"]).script)).exit_status == 0


async def test_a_port_taken_meanwhile_is_told_in_words(station: Rehearsal) -> None:
    await station.inject("host", host="station", mode="refused")
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", station.overrides["station"]["port"]))
        thief.listen()
        with pytest.raises(RehearsalError, match="in use"):
            await station.inject("host", host="station", mode="open")
    await station.inject("host", host="station", mode="open")
    async with connected(station, "station") as connection:
        assert (await shell(connection, guarded(["true"]).script)).exit_status == 0


async def test_simulated_files_are_private(station: Rehearsal) -> None:
    assert station.root is not None
    assert stat.S_IMODE(station.root.stat().st_mode) == 0o700
