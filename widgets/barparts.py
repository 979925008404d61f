"""What the bars that never scroll away share."""

from __future__ import annotations

from widgets.cells import Line, blank
from widgets.glance import Glance
from widgets.ink import Ink, Row

SURFACE = Ink("text", "surface")


def exactly(rows: tuple[Row, ...], width: int, height: int) -> tuple[Row, ...]:
    """Exactly `height` rows."""
    return (*rows[:height], *(blank(width) for _ in range(height - len(rows))))


def chip(line: Line, column: int, text: str, ink: Ink, glance: Glance) -> int:
    """A word on a ground of its own. Without colour it takes no room beside the word. Returns the column after it."""
    return line.put(column, text if glance.no_colour else f" {text} ", ink)
