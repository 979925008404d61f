"""The sampler stream on real hosts: what it reads, what it survives, and that it never stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest
from bed.client import Bed, BedHost
from bed_links import PATIENCE, linked, next_frame, until, until_status

from console.readings.facts import parse_facts
from console.readings.link import LinkStatus
from console.readings.memory import parse_memory

pytestmark = pytest.mark.bed


@pytest.fixture(params=["full", "minimal"])
def host(bed: Bed, request: pytest.FixtureRequest) -> BedHost:
    """A host with the whole of python3, and one whose python3 has no json."""
    chosen: BedHost = getattr(bed, request.param)
    return chosen


async def test_memory_and_facts_come_from_the_host(host: BedHost) -> None:
    async with linked(host) as link, contextlib.aclosing(link.frames()) as frames:
        facts = parse_facts((await next_frame(frames, "facts")).texts)
        assert facts.hostname == host.name
        first, second = await next_frame(frames), await next_frame(frames)
        assert second.sequence > first.sequence and second.host_mono > first.host_mono
        total = host.root("grep", "MemTotal", "/proc/meminfo").split()[1]
        assert parse_memory(second.texts["meminfo"]).total == int(total) * 1024
    await until(lambda: not host.remote_processes(), "the sampler is gone after close")


async def test_the_sampler_goes_under_drop_and_comes_back_after_it(host: BedHost) -> None:
    async with linked(host) as link, contextlib.aclosing(link.frames()) as frames:
        await next_frame(frames)
        assert host.remote_processes()
        with host.dropped():
            await until(lambda: not host.remote_processes(), "the sampler is gone without its heartbeat")
            await until_status(link, LinkStatus.DOWN)
        before = link.connections
        await until_status(link, LinkStatus.UP)
        await next_frame(frames)
        assert link.connections > before
    await until(lambda: not host.remote_processes(), "the sampler is gone after close")


async def test_the_stream_goes_on_after_its_sshd_was_killed(host: BedHost) -> None:
    async with linked(host) as link, contextlib.aclosing(link.frames()) as frames:
        await next_frame(frames)
        assert host.kill_ssh_sessions() >= 1
        await until(lambda: link.connections == 2, "logged in again")
        await next_frame(frames)


CONSOLE = """
import asyncio, sys
sys.path[:0] = sys.argv[1:3]
from bed.client import BedHost
from bed_links import linked, next_frame
import json
host = BedHost(**json.loads(sys.argv[3]))

async def main():
    async with linked(host) as link:
        frames = link.frames()
        while True:
            await next_frame(frames)
            print("frame", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("lossy", [False, True], ids=["kill -9", "kill -9 under DROP"])
async def test_a_console_that_was_killed_leaves_no_sampler(host: BedHost, lossy: bool) -> None:
    here = Path(__file__).parent
    console = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CONSOLE, str(here), str(here.parents[1]), host.as_json()),
        stdout=asyncio.subprocess.PIPE,
    )
    assert console.stdout is not None
    try:
        assert await asyncio.wait_for(console.stdout.readline(), PATIENCE) == b"frame\n"
        assert host.remote_processes()
        with host.dropped() if lossy else contextlib.nullcontext():
            console.kill()
            await console.wait()
            await until(lambda: not host.remote_processes(), "the sampler is gone")
    finally:
        if console.returncode is None:
            console.kill()
            await console.wait()
