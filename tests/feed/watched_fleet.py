"""The embedded fleet with the feed on it, at quick rates: what the tests of the feed watch."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from console.document import document
from console.feed import Feed
from console.fleet.inventory import Fleet, Rates
from console.headless import text_lines
from console.rehearsal import Rehearsal

T = TypeVar("T")
LIMIT = 90.0
"""Bound of every wait, seconds; long, because machines that run tests are busy."""
SPEED = 250.0
"""Boots take 2.3 s in place of 575."""
TPS, POOL, USED = 66.3, 6_198_016, 0.4375
LANE, HEAD = "dsv41", "spark-0"


def quick(fleet: Fleet, *hosts: str) -> Fleet:
    """The lane of the four hosts with short intervals and little patience; only `hosts` where some are named."""
    wanted = hosts or fleet.lanes[LANE].rank_hosts
    change: dict[str, Any] = {"stall_after": 2.0, "health_interval": 0.5, "ranks": tuple(wanted)}
    if hosts:  # its site file and row copies speak of all four ranks
        change |= {"recipe": "docker-generic", "vars": {}}
    lane = fleet.lanes[LANE].model_copy(update=change)
    rates = Rates(node=0.3, gpu=1.0, scrape=0.3, containers=1.0)
    kept = {name: fleet.hosts[name] for name in wanted}
    return fleet.model_copy(update={"rates": rates, "hosts": kept, "lanes": {LANE: lane}})


class Watched:
    """A played fleet and its feed."""

    def __init__(self, rehearsal: Rehearsal, feed: Feed) -> None:
        self.rehearsal, self.feed = rehearsal, feed

    def document(self) -> dict[str, Any]:
        """What `status --json` would print now, after its way through JSON."""
        said: dict[str, Any] = json.loads(json.dumps(document(self.feed.snapshot(), events=1000), allow_nan=False))
        return said

    def lane(self) -> dict[str, Any]:
        """The lane's part of it."""
        lane: dict[str, Any] = self.document()["lanes"][LANE]
        return lane

    def text(self) -> str:
        """What `status` would print now."""
        return "\n".join(text_lines(self.feed.snapshot()))

    async def until(self, true: Callable[[dict[str, Any]], T], what: str) -> T:
        """Read the document until the answer is truthy. Fails after LIMIT."""
        end = time.monotonic() + LIMIT
        while not (answer := true(self.document())):
            assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}; now\n{self.text()}"
            await asyncio.sleep(0.05)
        return answer

    async def until_lane(self, true: Callable[[dict[str, Any]], object], what: str) -> dict[str, Any]:
        """Read the lane until `true`; the lane as it then was."""
        return await self.until(lambda said: said["lanes"][LANE] if true(said["lanes"][LANE]) else None, what)

    async def fault(self, name: str) -> None:
        """A fault of the lane's engine."""
        await self.rehearsal.inject("engine", lane=LANE, fault=name)

    async def heal(self) -> None:
        """Undo every fault, whatever it was."""
        await self.fault("none")
        for rank in self.lane()["ranks"]:
            host = rank["host"]
            await self.rehearsal.inject("host", host=host, mode="open")
            await self.rehearsal.inject("memory", host=host, over=0)
            if rank["word"].startswith("exited"):
                await self.rehearsal.inject("container", host=host, name="sgldsv41", action="start")

    async def serving(self) -> dict[str, Any]:
        """Wait until the lane serves and nothing is said against it."""
        await self.until(lambda said: not said["alarms"], "no alarm")
        # A probe sent while the engine was silent hangs on for its own limit.
        return await self.until_lane(
            lambda lane: lane["state"] == "serving" and lane["lights"]["http"]["verdict"] == "ok", "the lane serves"
        )


@asynccontextmanager
async def watching(*hosts: str) -> AsyncIterator[Watched]:
    """Starts fleet and feed, waits until the lane serves, ends both."""
    async with Rehearsal("spark4", SPEED) as rehearsal:
        feed = Feed(quick(rehearsal.fleet, *hosts), rehearsal.overrides)
        await feed.start()
        try:
            watched = Watched(rehearsal, feed)
            await watched.serving()
            yield watched
        finally:
            await feed.stop()
