"""The sampler stream over ssh: from the login shell to the frames, through every kind of interruption."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sampler_bench import MEMINFO, machine, program
from ssh_host import QUICK, SshHost, eventually, up
from stuck_proxy import StuckProxy

from console.fleet.inventory import Rates
from console.reach.limits import Timings
from console.reach.link import Frame
from console.reach.ssh import SshLink
from console.readings.link import LinkStatus
from console.readings.look import Look, LookKind

FAST = Rates(node=0.2, gpu=1)


class Watcher:
    """Collects the frames of a link in the background, as the feed does."""

    def __init__(self, link: SshLink) -> None:
        self.link = link
        self.frames: list[Frame] = []

    async def watch(self) -> None:
        async for frame in self.link.frames():
            self.frames.append(frame)

    def kinds(self, kind: str) -> list[Frame]:
        return [frame for frame in self.frames if frame.kind == kind]


@asynccontextmanager
async def watched(link: SshLink) -> AsyncIterator[Watcher]:
    watcher = Watcher(link)
    async with up(link):
        task = asyncio.create_task(watcher.watch())
        try:
            yield watcher
        finally:
            await link.close()
            async with asyncio.timeout(60):
                await task  # frames end with the link


def environment(folder: Path, *, python: bool) -> dict[str, str]:
    machine(folder / "root")
    (folder / "bin").mkdir(exist_ok=True)
    if not python:
        program(folder / "bin/python3", "#!/bin/sh\nexit 1\n")
    return {"LANESWAP_SAMPLER_ROOT": str(folder / "root"), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


@pytest.mark.parametrize("python", [True, False])
@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/dash"])
async def test_frames_over_ssh(tmp_path: Path, shell: str, python: bool) -> None:
    env = environment(tmp_path, python=python)
    noise = b"\x1b]0;ops@spark-2\x07Welcome\nMemAvailable: 1 kB\n"
    async with SshHost(shell=(shell, "-c"), env=env, before=noise) as host:
        async with watched(host.link(rates=FAST)) as watcher:
            await eventually(lambda: len(watcher.kinds("node")) >= 3, "three node frames")
            assert (host.logins, host.open_sessions) == (1, 1)
        await eventually(lambda: host.running == 0, "nothing is left on the host")
    assert watcher.kinds("node")[0].texts["meminfo"] == MEMINFO
    assert watcher.kinds("facts")[0].texts["python"].startswith("python3" if python else "sh")
    assert watcher.kinds("error") == []
    assert all(frame.received > 0 for frame in watcher.frames)


async def test_after_a_lost_connection_the_stream_begins_again(tmp_path: Path) -> None:
    async with SshHost(env=environment(tmp_path, python=True)) as host:
        async with watched(host.link(rates=FAST)) as watcher:
            await eventually(lambda: watcher.kinds("node"), "frames")
            host.cut()
            await eventually(lambda: len(watcher.kinds("facts")) == 2, "a second stream")
            await eventually(lambda: host.running == 1, "only the new sampler runs")
    assert watcher.link.connections == 2
    assert watcher.kinds("error") == [], "the link's state tells of a lost connection, not the stream"


async def test_a_stream_that_dies_is_started_again_on_the_same_connection(tmp_path: Path) -> None:
    async with SshHost(env=environment(tmp_path, python=True)) as host:
        async with watched(host.link(rates=FAST)) as watcher:
            await eventually(lambda: watcher.kinds("node"), "frames")
            os.killpg(host.children[0].pid, signal.SIGKILL)
            await eventually(lambda: len(watcher.kinds("facts")) == 2, "a second stream")
            assert watcher.link.state.status is LinkStatus.UP
    assert host.logins == 1
    (error,) = watcher.kinds("error")
    assert error.source == "sampler"
    assert "ended" in error.error


async def test_a_host_that_cannot_run_the_sampler_says_why_and_is_not_hammered(tmp_path: Path) -> None:
    program(tmp_path / "shell", "#!/bin/sh\necho 'Connect to the bastion first.'\nexit 2\n")
    slow = dataclasses.replace(QUICK, first_retry=0.2, longest_retry=0.4)
    async with SshHost(shell=(str(tmp_path / "shell"), "-c")) as host:
        async with watched(host.link(rates=FAST, timings=slow)) as watcher:
            await eventually(lambda: len(watcher.frames) >= 3, "three errors")
            assert len(host.commands) <= len(watcher.frames) + 1
    assert {frame.kind for frame in watcher.frames} == {"error"}
    assert "Connect to the bastion first." in watcher.frames[0].error


async def test_heartbeats_keep_the_sampler_and_their_end_ends_it(tmp_path: Path) -> None:
    """As under DROP: the connection stands, and nothing passes any more, not even its end."""
    quick = dataclasses.replace(QUICK, keepalive_interval=60.0, beat=0.2, beat_limit=2.0, close_limit=0.5)
    async with SshHost(env=environment(tmp_path, python=True)) as host, StuckProxy(host.port) as proxy:
        known = host.known_hosts.replace(str(host.port).encode(), str(proxy.port).encode())
        link = host.link(rates=FAST, timings=quick, port=proxy.port, known_hosts=known)
        async with watched(link) as watcher:
            await eventually(
                lambda: watcher.kinds("node") and watcher.frames[-1].host_mono - watcher.frames[0].host_mono > 3,
                "it outlives its limit",
            )
            assert host.running == 1
            proxy.stick()
            await eventually(lambda: host.running == 0, "gone without a word from the console")
            assert link.state.status is LinkStatus.UP, "the console could not know yet"


def test_the_sampler_is_gone_within_30_s_of_the_last_heartbeat() -> None:
    limit = Timings().beat_limit
    assert limit + 2.0 < 30.0, "the python script looks at once, its alarm rings a second later"
    step = int(limit) // 6
    assert step * math.ceil(limit / step) < 30.0, "the sh script counts in steps"
    assert limit > 4 * Timings().beat, "four lost heartbeats are survived"


async def test_a_stuck_connection_is_noticed_by_keepalives(tmp_path: Path) -> None:
    quick = dataclasses.replace(QUICK, keepalive_interval=0.2, keepalive_count=2)
    async with SshHost(env=environment(tmp_path, python=True)) as host, StuckProxy(host.port) as proxy:
        known = host.known_hosts.replace(str(host.port).encode(), str(proxy.port).encode())
        async with watched(host.link(rates=FAST, timings=quick, port=proxy.port, known_hosts=known)) as watcher:
            await eventually(lambda: watcher.kinds("node"), "frames")
            proxy.stick()
            await eventually(lambda: watcher.link.state.status is LinkStatus.DOWN, "noticed")
            assert "lost" in watcher.link.state.error
            proxy.heal()
            await eventually(lambda: len(watcher.kinds("facts")) == 2, "and begun again")


async def test_closing_the_iterator_ends_the_sampler_and_leaves_the_link(tmp_path: Path) -> None:
    async with SshHost(env=environment(tmp_path, python=True)) as host, up(host.link(rates=FAST)) as link:
        frames = link.frames()
        assert (await anext(frames)).kind == "facts"
        await frames.aclose()
        await eventually(lambda: host.running == 0, "the sampler is gone")
        assert (await link.run(["true"])).ok


async def test_a_cancelled_consumer_ends_the_sampler(tmp_path: Path) -> None:
    async with SshHost(env=environment(tmp_path, python=True)) as host, up(host.link(rates=FAST)) as link:
        watcher = Watcher(link)
        task = asyncio.create_task(watcher.watch())
        await eventually(lambda: watcher.kinds("node"), "frames")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await eventually(lambda: host.running == 0, "the sampler is gone")


async def test_looks_over_ssh_across_a_reconnect(tmp_path: Path) -> None:
    env = environment(tmp_path, python=True)
    (tmp_path / "root/log").write_text("one\n")
    log = Look("log", LookKind.FILE, ("/log", "last", "100"), 0.2)
    async with SshHost(env=env) as host:
        link = host.link(rates=FAST)
        link.look([log])
        async with watched(link) as watcher:

            def texts(key: str) -> list[str]:
                return [frame.texts[key] for frame in watcher.kinds("look") if key in frame.texts]

            await eventually(lambda: len(texts("log")) >= 2, "answers to what was asked before there was a link")
            link.look([log, Look("tree", LookKind.TREE, ("/", "1", "10"), 0.2)])
            await eventually(lambda: texts("tree"), "a changed set is sent at once")
            before = len(texts("log"))
            host.cut()
            await eventually(lambda: len(watcher.kinds("facts")) == 2, "a second stream")
            await eventually(lambda: len(texts("log")) > before + 2, "the set is told again")
            assert all(text is texts("log")[0] for text in texts("log"))
        await eventually(lambda: host.running == 0, "nothing is left on the host")
    assert watcher.kinds("error") == []
