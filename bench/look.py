"""Draws every scenario as an operator sees it: three sizes, every theme, NO_COLOR and ASCII, to look at side by side.

`make look` writes SVG files and an index.html into `look/`; `--png` adds a PNG beside each, with a Chromium that is
installed. One scenario is run once, live, and its last picture is drawn in every form:

    python bench/look.py --scenario download-stalled rows-stale --size 80x24 --mode dark safe --out /tmp/pictures
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from textual.pilot import Pilot

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "rehearsal")]

import pytest  # noqa: E402
import told  # noqa: E402

from console.app import LaneswapApp  # noqa: E402
from console.rehearsal.scenario import list_scenarios  # noqa: E402
from console.snapshot import Snapshot  # noqa: E402
from screens.lanes import worst_lane  # noqa: E402

SIZES = ((80, 24), (120, 40), (200, 60))
MODES: dict[str, tuple[str, bool, bool]] = {
    "dark": ("dark", False, False),
    "light": ("light", False, False),
    "safe": ("safe", False, False),
    "ascii": ("dark", True, False),
    "no-colour": ("dark", False, True),
    "no-colour-ascii": ("dark", True, True),
}
"""Theme, ASCII glyphs, NO_COLOR."""
AFTER = 6.0
"""Seconds for which a scenario goes on once its point is there: rates want a few samples."""


class Still:
    """A source with one picture, which goes on being now."""

    def __init__(self, picture: Snapshot) -> None:
        self.picture = picture

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""

    def snapshot(self) -> Snapshot:
        """The picture."""
        return self.picture

    def follow(self, lane: str, host: str) -> None:
        """Its log is the one that it has."""


async def live(scenario: str, seconds: float) -> Snapshot:
    """Run a scenario until its point is there, and some seconds more. Raises AssertionError if it does not come."""
    async with told.played(scenario) as feed:
        await told.told(scenario, feed)
        worst = feed.snapshot().lane(worst_lane(feed.snapshot()))
        feed.follow(worst.name, worst.lane.head)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            feed.snapshot()
            await asyncio.sleep(0.25)
        return feed.snapshot()


async def draw(picture: Snapshot, mode: str, sizes: Iterable[tuple[int, int]], keys: list[str]) -> list[str]:
    """The real console over one picture, at each size, after some keys: SVG texts."""
    theme, ascii_only, no_colour = MODES[mode]
    os.environ.pop("NO_COLOR", None)
    if no_colour:
        os.environ["NO_COLOR"] = "1"
    drawn: list[str] = []
    for columns, rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            app = LaneswapApp(Still(picture), theme=theme, ascii=ascii_only, faults=Path(folder) / "faults.log")

            async def take(pilot: Pilot[object]) -> None:
                await pilot.pause()
                await pilot.press(*keys)
                await pilot.pause()
                app.exit(app.export_screenshot(title=f"{mode} {columns}x{rows}"))  # noqa: B023

            svg = await app.run_async(headless=True, size=(columns, rows), auto_pilot=take)
            if app.faults.newest or not isinstance(svg, str):
                raise SystemExit(f"no picture: {app.faults.newest or 'the console ended early'}")
            drawn.append(svg)
    os.environ.pop("NO_COLOR", None)
    return drawn


def to_png(svg: Path, columns: int, rows: int) -> None:
    """A PNG beside an SVG. Needs Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("--png needs Chromium, and none is installed: without it the SVG files open in any browser")
    size = f"--window-size={int(columns * 12.2) + 20},{int(rows * 24.4) + 55}"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size]
    target = f"--screenshot={svg.with_suffix('.png')}"
    subprocess.run([chromium, *options, target, svg.as_uri()], capture_output=True, timeout=60, check=True)


def index(folder: Path, names: Iterable[str]) -> None:
    """A page with all of them, one row a scenario."""
    titles = list_scenarios()
    parts = ["<!doctype html><meta charset=utf-8><title>laneswap, every scenario</title><body style='background:#888'>"]
    for name in names:
        parts.append(f"<h2>{html.escape(name)}: {html.escape(titles.get(name, ''))}</h2>")
        parts += [f"<img loading=lazy width=600 src='{svg.name}'>" for svg in sorted(folder.glob(f"{name}@*.svg"))]
    (folder / "index.html").write_text("\n".join(parts), encoding="utf-8")


async def draw_all(options: argparse.Namespace) -> None:
    """Run the scenarios one after the other, and draw each."""
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.scenario or list(list_scenarios())
    patch = pytest.MonkeyPatch()
    told.look_often(patch)
    for name in names:
        picture = await live(name, options.seconds)
        for mode in options.mode:
            drawn = await draw(picture, mode, options.size, options.keys)
            for (columns, rows), svg in zip(options.size, drawn, strict=True):
                file = options.out / f"{name}@{columns}x{rows}-{mode}.svg"
                file.write_text(svg, encoding="utf-8")
                if options.png:
                    to_png(file, columns, rows)
        print(f"{name}: {len(options.mode) * len(options.size)} pictures", flush=True)
    patch.undo()
    index(options.out, names)
    print(f"{options.out / 'index.html'}")


def size_of(text: str) -> tuple[int, int]:
    """`120x40` as columns and rows. Raises ValueError."""
    columns, _, rows = text.partition("x")
    return int(columns), int(rows)


def main() -> None:
    """Draw the pictures and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "look")
    parser.add_argument("--scenario", nargs="*", default=[], help="all of them without it")
    parser.add_argument("--size", type=size_of, nargs="*", default=list(SIZES))
    parser.add_argument("--mode", nargs="*", choices=list(MODES), default=list(MODES))
    parser.add_argument("--seconds", type=float, default=AFTER, help="how long each goes on once its point is there")
    parser.add_argument("--keys", nargs="*", default=[], help="pressed before the picture is taken")
    parser.add_argument("--png", action="store_true", help="a PNG beside each SVG, with Chromium")
    asyncio.run(draw_all(parser.parse_args()))


if __name__ == "__main__":
    main()
