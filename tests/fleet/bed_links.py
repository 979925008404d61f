"""Links of the console to the bed's hosts, with time limits that a test can wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bed.client import BedHost

from console.fleet.inventory import Host, Rates
from console.reach.limits import HandshakeLimits, Timings
from console.reach.link import Frame
from console.reach.ssh import SshLink
from console.readings.link import LinkStatus

QUICK = Timings(
    keepalive_interval=0.5,
    keepalive_count=3,
    connect_limit=2.0,
    login_limit=5.0,
    first_retry=0.1,
    longest_retry=0.5,
    stubborn_retry=0.5,
    beat=0.5,
    beat_limit=4.0,
)
PATIENCE = 60.0
"""Seconds after which a wait has failed; nothing is asserted about how long it took."""


def inventory(host: BedHost, **changes: str) -> Host:
    """The host as fleet.toml would name it: by its name in an ssh_config."""
    return Host(**{"ssh": host.name, "config": str(host.ssh_config), **changes})


@asynccontextmanager
async def linked(
    host: BedHost, *, limits: HandshakeLimits | None = None, timings: Timings = QUICK, **changes: str
) -> AsyncIterator[SshLink]:
    """A started link; closed, and its processes gone from the host, on the way out."""
    rates = Rates(node=0.2, gpu=1.0)
    link = SshLink(host.name, inventory(host, **changes), rates, limits=limits or HandshakeLimits(), timings=timings)
    await link.start()
    try:
        yield link
    finally:
        await link.close()


async def until(ready: Callable[[], object], what: str) -> None:
    """Ask `ready`, in a thread, until it is true. Fails the test after PATIENCE seconds."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not await asyncio.to_thread(ready):  # noqa: ASYNC110 - it is true or not on another machine
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{what}: not so after {PATIENCE:.0f} s") from None


async def until_status(link: SshLink, status: LinkStatus) -> None:
    """Wait until the link has this status."""
    await until(lambda: link.state.status is status, f"{link.name} is {status}")


async def next_frame(frames: AsyncIterator[Frame], kind: str = "node") -> Frame:
    """The next frame of one kind, within PATIENCE seconds."""
    async with asyncio.timeout(PATIENCE):
        async for frame in frames:
            if frame.kind == kind:
                return frame
    raise AssertionError(f"the stream ended without a {kind} frame")
