"""Draws docs/console.svg, the picture of the README, from the real console on the embedded fleet.

`make picture`, or `python bench/picture.py --size 80x24 --scenario station --out docs/station.svg`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from textual.pilot import Pilot

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from console.app import LaneswapApp  # noqa: E402
from console.rehearsal.scenario import load_scenario  # noqa: E402
from console.rehearsal.source import RehearsalSource  # noqa: E402

SECONDS = 75.0
"""Long enough for the plot of decode to be full at 120 columns."""


def size_of(text: str) -> tuple[int, int]:
    """`120x40` as columns and rows. Raises ValueError."""
    columns, _, rows = text.partition("x")
    return int(columns), int(rows)


async def draw(scenario: str, size: tuple[int, int], seconds: float, theme: str, keys: list[str]) -> str:
    """Run the console without a terminal for `seconds`, press keys, and return the picture as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        app = LaneswapApp(RehearsalSource(load_scenario(scenario)), theme=theme, faults=Path(folder) / "faults.log")

        async def drive(pilot: Pilot[str]) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await pilot.pause(0.5)
            await pilot.press(*keys)
            await pilot.pause()
            app.exit(app.export_screenshot(title=f"laneswap {size[0]}x{size[1]}"))

        picture = await app.run_async(headless=True, size=size, auto_pilot=drive)
        if app.faults.newest or not isinstance(picture, str):
            raise SystemExit(f"no picture: {app.faults.newest or 'the console ended early'}")
        return picture


def main() -> None:
    """Draw one picture and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "console.svg")
    parser.add_argument("--scenario", default="prepare")
    parser.add_argument("--size", type=size_of, default=(120, 40))
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--theme", default="dark")
    parser.add_argument("--keys", nargs="*", default=[])
    options = parser.parse_args()
    picture = asyncio.run(draw(options.scenario, options.size, options.seconds, options.theme, options.keys))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(picture, encoding="utf-8")
    print(f"{options.out}: {len(picture)} bytes")


if __name__ == "__main__":
    main()
