"""The docker SDK over a socket forwarded from real hosts: containers, events, refusals, logs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

import pytest
from bed.client import Bed
from bed.engines import REVISION, BedEngine
from bed_links import linked, until

from console.reach.docker_engine import DockerEngine
from console.reach.ssh import SshLink
from console.readings.containers import ContainerState, serving_container
from console.readings.exits import ContainerEvent

pytestmark = pytest.mark.bed

SOCKET = "/var/run/docker.sock"


@contextlib.asynccontextmanager
async def watched(link: SshLink) -> AsyncIterator[tuple[DockerEngine, list[ContainerEvent]]]:
    """A Docker Engine that is being watched, and the events that come; no thread of it is left afterwards."""
    events: list[ContainerEvent] = []
    docker = DockerEngine(link, SOCKET, events.append)
    watch = asyncio.create_task(docker.watch())
    try:
        await until(lambda: docker.watching, "the event stream is open")
        yield docker, events
    finally:
        await docker.close()
        await asyncio.gather(watch, return_exceptions=True)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("docker-")]


async def test_the_container_that_serves_the_port_and_its_revision_are_read(vllm: BedEngine) -> None:
    async with linked(vllm.host) as link:
        docker = DockerEngine(link, SOCKET, lambda event: None)
        containers = await docker.read()
        await docker.close()
    assert (containers.problem, containers.api_version) == ("", "1.41")
    serving = serving_container(containers.items, vllm.port)
    assert serving is not None
    assert (serving.name, serving.state, serving.revision) == (vllm.name, ContainerState.RUNNING, REVISION)


async def test_a_docker_kill_is_seen_through_events(vllm: BedEngine) -> None:
    async with linked(vllm.host) as link, watched(link) as (docker, events):
        await docker.read()
        vllm.host.docker("kill", vllm.name)
        await until(lambda: [event for event in events if event.action == "die"], "the death is announced")
        died = next(event for event in events if event.action == "die")
        assert (died.name, died.exit_code) == (vllm.name, 137)
        found = {item.name: item for item in (await docker.read()).items}[vllm.name]
        assert (found.state, found.exit_code) == (ContainerState.EXITED, 137)
        assert "SIGKILL" in found.exit_meaning


async def test_a_container_killed_for_memory_says_so(bed: Bed) -> None:
    host = bed.spare
    eat = "x = [bytearray(1 << 20) for _ in range(400)]"
    limits = ("--memory=32m", "--memory-swap=32m")
    host.root("docker", "run", "--name=eater", *limits, "laneswap/engine:bed", "python3", "-c", eat, check=False)
    try:
        async with linked(host) as link:
            docker = DockerEngine(link, SOCKET, lambda event: None)
            eater = {item.name: item for item in (await docker.read()).items}["eater"]
            await docker.close()
        assert eater.oom_killed is True
        assert "OOM" in eater.exit_meaning
    finally:
        host.docker("rm", "--force", "eater")


async def test_an_account_outside_the_docker_group_is_told_so(bed: Bed) -> None:
    host = bed.full
    async with linked(host, ssh=f"{host.stranger}@{host.name}") as link:
        docker = DockerEngine(link, SOCKET, lambda event: None)
        containers = await docker.read()
        await docker.close()
    assert containers.items == ()
    assert "permission" in containers.problem and "docker" in containers.hint


async def test_a_stopped_docker_is_explained_and_found_again(bed: Bed) -> None:
    host = bed.spare
    async with linked(host) as link, watched(link) as (docker, _):
        try:
            host.root("systemctl", "stop", "docker.socket", "docker.service")
            containers = await docker.read()
            assert containers.items == () and containers.problem
        finally:
            host.root("systemctl", "start", "docker.socket", "docker.service")
        await until(lambda: docker.watching, "the event stream is open again")
        assert (await docker.read()).problem == ""


async def test_a_log_is_followed(sglang: BedEngine) -> None:
    lines: list[str] = []
    async with linked(sglang.host) as link, watched(link) as (docker, _):
        found = {item.name: item for item in (await docker.read()).items}[sglang.name]
        follower = docker.follow_log(found.id, lambda at, text: lines.append(text))
        await until(lambda: lines, "old lines come")
        seen = len(lines)
        await until(lambda: [line for line in lines[seen:] if "gen throughput" in line], "new lines come")
        await follower.close()
