"""What real Docker engines do to containers, as the console reads it: exits, policies, events missed, logs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
from bed.client import Bed, BedHost
from bed_links import linked, until

from console.reach.docker_engine import INSPECT_MOST, DockerEngine
from console.reach.ssh import SshLink
from console.readings.containers import Container, ContainerState
from console.readings.exits import ContainerEvent
from console.readings.roles import returns_by_itself
from console.readings.throughput import EngineKind

pytestmark = pytest.mark.bed

SOCKET = "/var/run/docker.sock"
IMAGE = "laneswap/engine:bed"
SLEEPER = "import time; time.sleep(600)"
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
POLITE = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); print('on', flush=True); time.sleep(600)"


class Crate:
    """Containers of one test on one host; all removed afterwards."""

    def __init__(self, host: BedHost) -> None:
        self.host = host
        self.names: list[str] = []

    def run(self, name: str, program: str, *options: str, command: tuple[str, ...] = ()) -> str:
        """Start `python3 -c PROGRAM COMMAND` as the first process of a container; its id."""
        self.names.append(name)
        start = ("run", "--detach", "--network=none", f"--name={name}")
        return self.host.docker(*start, *options, IMAGE, "python3", "-c", program, *command)

    def wait_log(self, name: str, word: str) -> None:
        """Wait, on the host, until the container has logged `word`."""
        self.host.root(
            "sh", "-c", 'until docker logs "$1" 2>&1 | grep -q "$2"; do sleep 0.1; done', "sh", name, word, limit=30
        )


@pytest.fixture
def crate(bed: Bed) -> Iterator[Crate]:
    found = Crate(bed.spare)
    yield found
    if found.names:
        found.host.docker("rm", "--force", *found.names)


@contextlib.asynccontextmanager
async def docker_of(link: SshLink) -> AsyncIterator[tuple[DockerEngine, list[ContainerEvent]]]:
    """A Docker Engine with its event stream open."""
    events: list[ContainerEvent] = []
    docker = DockerEngine(link, SOCKET, events.append)
    watch = asyncio.create_task(docker.watch())
    try:
        await until(lambda: docker.watching, "the event stream is open")
        yield docker, events
    finally:
        await docker.close()
        await asyncio.gather(watch, return_exceptions=True)


def actions(events: list[ContainerEvent], name: str) -> list[str]:
    """What happened to one container, in order."""
    return [event.action for event in events if event.name == name]


async def named(docker: DockerEngine, name: str) -> Container:
    """The container of that name. Fails where Docker cannot be read."""
    answer = await docker.read()
    assert answer.problem == ""
    return {item.name: item for item in answer.items}[name]


async def test_a_stop_that_runs_out_of_time_is_told_from_an_oom_kill(crate: Crate) -> None:
    crate.run("deaf", DEAF)
    crate.wait_log("deaf", "deaf")
    async with linked(crate.host) as link, docker_of(link) as (docker, events):
        crate.host.docker("stop", "--time=1", "deaf")
        await until(lambda: "die" in actions(events, "deaf"), "the death is announced")
        found = await named(docker, "deaf")
    assert (found.state, found.exit_code, found.oom_killed) == (ContainerState.EXITED, 137, False)
    assert found.exit_meaning.startswith("killed after stop timeout: 1")


async def test_exit_0_is_a_stop_only_where_one_was_asked(crate: Crate) -> None:
    crate.run("polite", POLITE, command=("vllm", "serve"))
    crate.run("quits", "print('on', flush=True)", command=("vllm", "serve"))
    crate.wait_log("polite", "on")
    crate.host.docker("stop", "polite")
    crate.host.docker("wait", "quits")
    async with linked(crate.host) as link, docker_of(link) as (docker, _):
        quits = await named(docker, "quits")
        await until(lambda: docker._history.of(quits.id), "past events are replayed")
        polite, quits = await named(docker, "polite"), await named(docker, "quits")
    assert (polite.exit_code, polite.exit_meaning) == (0, "stopped on request, exit 0")
    assert (quits.exit_code, quits.engine) == (0, EngineKind.VLLM)
    assert quits.exit_meaning == "exit 0 with no stop asked: crash or unasked exit, engine exits 0 on fatal error"


async def test_pause_and_health_show_through_events_without_noise(crate: Crate) -> None:
    async with linked(crate.host) as link, docker_of(link) as (docker, events):
        crate.run("checked", SLEEPER, "--health-cmd=no shell here", "--health-interval=300ms")
        await until(lambda: [event for event in events if event.health == "unhealthy"], "Docker's verdict comes")
        assert (await named(docker, "checked")).health == "unhealthy"
        crate.host.docker("pause", "checked")
        await until(lambda: "pause" in actions(events, "checked"), "the pause is announced")
        assert (await named(docker, "checked")).state is ContainerState.PAUSED
        crate.host.docker("unpause", "checked")
        await until(lambda: "unpause" in actions(events, "checked"), "its end is announced")
        assert (await named(docker, "checked")).state is ContainerState.RUNNING
        assert not [event for event in events if event.action.startswith("exec")]


async def test_a_death_during_a_lost_link_is_told_once_it_is_back(crate: Crate) -> None:
    crate.run("dies", SLEEPER)
    async with linked(crate.host) as link, docker_of(link) as (docker, events):
        await docker.read()
        with crate.host.ssh_stopped():
            crate.host.kill_ssh_sessions()
            await until(lambda: not docker.watching, "the event stream is lost")
            assert (await docker.read()).problem != ""
            crate.host.docker("kill", "dies")
        await until(lambda: "die" in actions(events, "dies"), "the death is told")
        assert actions(events, "dies")[-2:] == ["kill", "die"]
        assert actions(events, "dies").count("die") == 1
        assert (await named(docker, "dies")).exit_meaning == "killed by docker kill (SIGKILL)"


async def test_what_returns_after_a_daemon_restart_is_foretold(crate: Crate) -> None:
    policies = ("no", "always", "unless-stopped", "on-failure")
    for policy in policies:
        crate.run(policy, DEAF, f"--restart={policy}")
        crate.run(f"{policy}-up", POLITE, f"--restart={policy}")
    for policy in policies:
        crate.wait_log(policy, "deaf")
        crate.wait_log(f"{policy}-up", "on")
    crate.host.docker("stop", "--time=0", *policies)
    async with linked(crate.host) as link, docker_of(link) as (docker, _):
        before = {item.name: item for item in (await docker.read()).items}
        foretold = {name: returns_by_itself(before[name]) for name in crate.names}
        crate.host.root("systemctl", "restart", "docker.service", limit=120)
        await until(lambda: docker.watching, "the event stream is open again")
        for name in [name for name in crate.names if foretold[name]]:
            running = f"docker inspect -f '{{{{.State.Running}}}}' {name} | grep -q true"
            crate.host.root("sh", "-c", f"until {running}; do sleep 0.1; done", limit=30)
        after = {item.name: item.up for item in (await docker.read()).items}
    assert foretold.pop("on-failure-up") is None
    assert {name: after[name] for name in foretold} == foretold
    assert [name for name in foretold if foretold[name]] == ["always", "always-up", "unless-stopped-up", "on-failure"]


async def test_a_terminals_log_and_progress_bars_are_followed(crate: Crate) -> None:
    bar = "print('\\r'.join(f'shards: {n}/48' for n in range(49)), flush=True)"
    container_id = crate.run("tty", f"import time; {bar}; print('\\x1b[31mred\\x1b[0m'); time.sleep(600)", "--tty")
    lines: list[tuple[float | None, str]] = []
    async with linked(crate.host) as link, docker_of(link) as (docker, _):
        follower = docker.follow_log(container_id, lambda wall, text: lines.append((wall, text)))
        await until(lambda: len(lines) >= 2, "the log comes")
        assert follower.problem == ""
    assert [text for _, text in lines] == ["shards: 48/48", "red"]
    assert all(wall is not None for wall, _ in lines)


async def test_many_containers_are_bounded(crate: Crate) -> None:
    wanted = INSPECT_MOST + 3
    names = [f"many-{number}" for number in range(wanted)]
    crate.names += names
    crate.host.root("sh", "-c", 'for n in "$@"; do docker create --name "$n" $0 true; done', IMAGE, *names, limit=120)
    async with linked(crate.host) as link, docker_of(link) as (docker, _):
        answer = await docker.read()
    assert len(answer.items) >= wanted
    assert len([item for item in answer.items if item.inspected]) == INSPECT_MOST
    assert {item.state for item in answer.items if item.name in names} == {ContainerState.CREATED}
