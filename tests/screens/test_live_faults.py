"""From an engine with a known truth to the words on screen: each fault shown for what it is, with age."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

sys.path.insert(0, str(Path(__file__).parents[1] / "feed"))

from fixed import resize, text_of
from inside import Inside
from watched_fleet import LIMIT, SPEED, quick

from console.app import LaneswapApp
from console.feed import Feed


class Screen:
    """The console on a played fleet, with the engine's faults at hand."""

    def __init__(self, app: LaneswapApp, pilot: Pilot[None], rehearsal: Inside) -> None:
        self.app, self.pilot, self.rehearsal = app, pilot, rehearsal

    async def until(self, *patterns: str) -> str:
        """The screen's text once every pattern is on it. Fails after LIMIT with what stands there."""
        end = time.monotonic() + LIMIT
        while True:
            shown = text_of(self.app)
            missing = [pattern for pattern in patterns if not re.search(pattern, shown)]
            if not missing:
                return shown
            assert time.monotonic() < end, f"not on screen: {missing}\n{shown}"
            await asyncio.sleep(0.05)

    async def fault(self, name: str) -> None:
        """A fault of the lane's engine."""
        await self.rehearsal.inject("engine", lane="dsv41", fault=name)


@asynccontextmanager
async def screen() -> AsyncIterator[Screen]:
    async with Inside("spark4", SPEED) as rehearsal:
        app = LaneswapApp(Feed(quick(rehearsal.fleet, "spark-0"), rehearsal.overrides))
        async with app.run_test(size=SIZES[0]) as pilot:
            shown = Screen(app, pilot, rehearsal)
            await shown.until(r"66\.[234] tok/s")
            yield shown


SIZES = ((120, 40), (80, 24))
FAULTS: dict[str, tuple[str, ...]] = {
    # what the serving lamp says, what the alarm line or a light says
    "hang": (r"STALLED \d+s", r"CRIT .*no step for \d+ s with 3 running"),
    "503": (r"DOWN \d+s", r"CRIT .*503"),
    "html": (r"DOWN \d+s", r"CRIT .*HTML"),
    "other-engine": (r"DEGRADED \d+s", r"CRIT .*another engine"),
    "truncated": (r"UP, BLIND", r"LOOK .*(truncated|ended inside)"),
    "empty": (r"UP, BLIND", r"LOOK .*empty"),
    "exit": (r"DOWN \d+s", r"CRIT .*exited"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_stands_on_screen_for_what_it_is_at_both_sizes(fault: str) -> None:
    async with screen() as shown:
        for size in SIZES:
            await resize(shown.app, shown.pilot, size)
            await shown.until(r"66\.[234] tok/s", r"44 %|43\.75 %", r"6\.20 M tok")
        await shown.fault(fault)
        for size in reversed(SIZES):
            await resize(shown.app, shown.pilot, size)
            said = await shown.until(*FAULTS[fault])
            if fault in ("truncated", "empty", "html", "other-engine"):
                # The last rate is never left standing as if it were current: a dash, and how long ago reading failed.
                said = await shown.until(r"(FAILED|STALE|LATE) ?\d*s?")
                assert not re.search(r"decode +66\.\d tok/s", said)
            assert not re.search(r"● 66\.\d tok/s", said), "the lamp still says that it serves"
            assert (max(map(len, said.splitlines())), len(said.splitlines())) == size


async def test_a_counter_reset_stands_on_screen_as_a_restart_and_no_rate_leaps() -> None:
    async with screen() as shown:
        await shown.fault("reset")
        said = await shown.until(r"counters started again")
        rates: list[Any] = re.findall(r"(-?\d+\.\d) tok/s", said)
        assert rates and all(0 <= float(rate) < 300 for rate in rates)
