"""Partial updates that send the changed cells alone.

Textual's own partial update renders every widget inside the smallest rectangle around all changes, nearly the whole
screen, and sends each changed line from the left edge of its widget on (measured at rest: 0.9 % of a core and 9 KB/s
in place of 0.2 % and 1 KB/s).
"""

from __future__ import annotations

from typing import NamedTuple

from rich.console import Console
from rich.control import Control
from textual._compositor import Compositor, CompositorUpdate
from textual.geometry import Region
from textual.strip import Strip


class Run(NamedTuple):
    """Cells of one row, from column `start` to `end` (exclusive)."""

    y: int
    start: int
    end: int


class CellUpdate(CompositorUpdate):
    """Sends exactly the cells that changed."""

    def __init__(self, pieces: list[tuple[Run, Strip]]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        """Escape sequences and text of all pieces, from the top."""
        out: list[str] = []
        for run, strip in sorted(self.pieces, key=_run_of):
            out.append(Control.move_to(run.start, run.y).segment.text)
            out.append(strip.render(console))
        return "".join(out)


class CellCompositor(Compositor):
    """The compositor of the console's screens."""

    def render_partial_update(self) -> CellUpdate | None:  # type: ignore[override]
        """What is dirty, cell by cell, each cell from the widget that lies uppermost there."""
        dirty = [region.intersection(self.size.region) for region in self._dirty_regions]
        self._dirty_regions.clear()
        left = [Run(*span) for span in self._regions_to_spans(region for region in dirty if region)]
        if not left:
            return None
        pieces: list[tuple[Run, Strip]] = []
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            taken, left = share_out(left, seen)
            if not taken:
                continue
            top, bottom = taken[0].y, taken[-1].y + 1
            inside = Region(seen.x - region.x, top - region.y, seen.width, bottom - top)
            strips = widget.render_lines(inside)
            for run in taken:
                pieces.append((run, strips[run.y - top].crop(run.start - seen.x, run.end - seen.x)))
            if not left:
                break
        return CellUpdate(pieces)


def share_out(runs: list[Run], region: Region) -> tuple[list[Run], list[Run]]:
    """The parts of `runs` inside a region, and those outside it; both in the order of rows."""
    inside: list[Run] = []
    outside: list[Run] = []
    for run in runs:
        start, end = max(run.start, region.x), min(run.end, region.right)
        if start >= end or not region.y <= run.y < region.bottom:
            outside.append(run)
            continue
        inside.append(Run(run.y, start, end))
        if run.start < start:
            outside.append(Run(run.y, run.start, start))
        if end < run.end:
            outside.append(Run(run.y, end, run.end))
    return inside, outside


def _run_of(piece: tuple[Run, Strip]) -> Run:
    return piece[0]
