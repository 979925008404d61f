"""Outages of real length, with the time limits that operators get."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from bed.client import Bed
from bed_links import linked, next_frame, until, until_status

from console.reach.limits import Timings
from console.readings.link import LinkStatus

pytestmark = [pytest.mark.bed, pytest.mark.soak]


@pytest.mark.parametrize("python", ["full", "minimal"])
async def test_a_minute_of_lost_packets_with_the_real_limits(bed: Bed, python: str) -> None:
    host = getattr(bed, python)
    async with linked(host, timings=Timings()) as link, contextlib.aclosing(link.frames()) as frames:
        await next_frame(frames)
        with host.dropped():
            await until(lambda: not host.remote_processes(), "the sampler is gone without its heartbeat")
            await until_status(link, LinkStatus.DOWN)
            await asyncio.sleep(60)
        await until_status(link, LinkStatus.UP)
        await next_frame(frames)
    await until(lambda: not host.remote_processes(), "the sampler is gone after close")


async def test_fifty_lost_sessions_leave_nothing_behind(bed: Bed) -> None:
    host = bed.full
    async with linked(host) as link, contextlib.aclosing(link.frames()) as frames:
        for round_ in range(50):
            await next_frame(frames)
            assert host.kill_ssh_sessions() >= 1
            await until(lambda seen=round_ + 2: link.connections >= seen, "logged in again")  # type: ignore[misc]
        await next_frame(frames)
        standing = len(host.remote_processes())
        assert standing <= 4, host.remote_processes()
    await until(lambda: not host.remote_processes(), "nothing is left after close")
