"""The console under a flood of log lines, measured from inside: `python -m bench.flood_console FLEET LINES KEYS`.

Runs the Textual app without a terminal, opens the log screen, presses KEYS there, and then lets the daemon on the other
side write LINES, which it asks for by a line on stdout. Prints one JSON line: the loop's longest stall at rest and in
the flood in ms, seconds until the last line was here, how many lines are kept and how many were left out.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from bench.stall import Stall
from console.app import LaneswapApp
from console.feed import Feed
from console.fleet.inventory import load
from console.snapshot import LogView

LIMIT = 60.0
REST = 5.0


async def until(app: LaneswapApp, seen: Any) -> LogView:
    """The log once `seen` is true of it. Raises TimeoutError."""
    async with asyncio.timeout(LIMIT):
        while True:
            newest = app.timeline.newest
            if newest is not None and newest.log is not None and seen(newest.log):
                return newest.log
            await asyncio.sleep(0.02)


async def measure(app: LaneswapApp, lines: int, keys: list[str]) -> dict[str, float]:
    """At rest, then in the flood."""
    await until(app, lambda log: log.lines)
    app.perform("logs")
    for key in keys:
        app.perform(key)
    async with Stall() as rest:
        await asyncio.sleep(REST)
    print(lines, flush=True)
    began = time.monotonic()
    async with Stall() as flood:
        after = await until(app, lambda log: _number(log) >= lines)
        took = time.monotonic() - began
        await asyncio.sleep(1.0)  # what comes of the last lines is painted within it
    return {
        "rest": rest.longest,
        "flood": flood.longest,
        "took": took,
        "kept": len(after.lines),
        "skipped": after.skipped,
        "faults": len(app.faults.newest),
    }


def _number(log: LogView) -> int:
    words = log.lines[-1].text.split(" ")
    return int(words[1].rstrip(":")) if words[0] == "line" else -1


async def main(fleet: Path, lines: int, keys: list[str]) -> None:
    """One run."""
    with tempfile.TemporaryDirectory() as folder:
        app = LaneswapApp(Feed(load(fleet)), faults=Path(folder) / "faults.log")
        said: list[dict[str, float]] = []

        async def drive(pilot: Pilot[Any]) -> None:
            said.append(await measure(app, lines, keys))
            app.exit(0)

        await app.run_async(headless=True, size=(120, 40), auto_pilot=drive)
    print(json.dumps(said[0]), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
