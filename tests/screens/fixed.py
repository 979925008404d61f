"""Sources that answer with fixed pictures, and the console over them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pictures
from textual.pilot import Pilot

from console.app import LaneswapApp
from console.fleet.inventory import parse
from console.snapshot import Snapshot
from screens.base import ConsoleScreen

SIZE = (120, 40)
PATIENCE = 60.0
"""Bound of every wait, seconds; long, because machines that run tests are busy."""


class FixedSource:
    """One picture, or one that a function makes of the count of pictures so far."""

    def __init__(self, picture: Snapshot | Callable[[int], Snapshot] | None = None) -> None:
        self.picture = picture or pictures.spark4()
        self.taken = 0
        self.calls: list[Any] = []

    async def start(self) -> None:
        self.calls.append("start")

    async def stop(self) -> None:
        self.calls.append("stop")

    def snapshot(self) -> Snapshot:
        self.taken += 1
        return self.picture if isinstance(self.picture, Snapshot) else self.picture(self.taken)

    def follow(self, lane: str, host: str) -> None:
        self.calls.append(("follow", lane, host))


def at(snapshot: Snapshot, seconds: float) -> Snapshot:
    """The same picture some seconds on; its readings grow older."""
    return replace(snapshot, now=snapshot.now + seconds, wall=snapshot.wall + seconds, sequence=int(seconds * 4))


def two_lanes() -> Snapshot:
    """The lane of spark4, and a second one that is down."""
    base = pictures.trouble()
    fleet = parse(pictures.SPARK4 + pictures.SPARK4[pictures.SPARK4.index("[lanes.dsv41]") :].replace("dsv41", "other"))
    well = replace(pictures.spark4().lanes[0], lane=fleet.lanes["dsv41"])
    other = replace(base.lanes[0], name="other", lane=fleet.lanes["other"])
    return replace(base, fleet=fleet, lanes=(well, other))


@asynccontextmanager
async def console(
    source: FixedSource | None = None, size: tuple[int, int] = SIZE, **options: Any
) -> AsyncIterator[tuple[LaneswapApp, Pilot[None]]]:
    """The console running without a terminal, after its first picture; toasts on, so that their text is parsed too."""
    app = LaneswapApp(source or FixedSource(), **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield app, pilot


def text_of(app: LaneswapApp) -> str:
    """What the terminal shows, row by row."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def resize(app: LaneswapApp, pilot: Pilot[None], size: tuple[int, int]) -> None:
    """Another size of terminal, and everything arranged for it."""
    await pilot.resize_terminal(*size)
    await until(pilot, lambda: tuple(app.screen.size) == size and len(text_of(app).splitlines()) == size[1])
    app.tick()
    await pilot.pause()


def front(app: LaneswapApp) -> ConsoleScreen:
    """The front screen of our own."""
    screen = app.front()
    assert screen is not None
    return screen


def fault_text(tmp_path: Path) -> str:
    """What the private fault file holds."""
    file = tmp_path / "state" / "laneswap" / "faults.log"
    return file.read_text() if file.exists() else ""


async def until(pilot: Pilot[None], done: Callable[[], bool]) -> None:
    """Rest until it is so. Fails after PATIENCE."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, f"did not come about within {PATIENCE:.0f} s"
        await pilot.pause(0.02)
