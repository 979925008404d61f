"""What the console says at length: a denial with its way out is read to its end, also where a row is short. Pure."""

from __future__ import annotations

from widgets.barparts import SURFACE
from widgets.cells import Line, measure
from widgets.glance import Glance
from widgets.ink import BOLD, LINE, LOOK, Row
from widgets.pane import Bar
from widgets.sheet import wrap

AT = 7
"""The column at which the words of the NEXT row begin."""
MOST_ROWS = 6
_LOUD = ("DENIED", "REFUSED", "CANCELLED")
"""First words that say that nothing was done."""


class SaidPane(Bar):
    """Lies right above the NEXT row for as long as something is said that has no room on it."""

    DEFAULT_CSS = "SaidPane { display: none; }"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return (glance.notice,)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def fits(glance: Glance, width: int) -> bool:
    """Whether all of the notice stands on the NEXT row."""
    return AT + measure(glance.signs.words(glance.notice)) <= width - 1


def said_height(glance: Glance, width: int, room: int) -> int:
    """Rows of what is said, its rule included; 0 where the NEXT row holds it, or a strip is open."""
    if not glance.notice or glance.strip is not None or fits(glance, width):
        return 0
    return max(0, min(len(_lines(glance, width)) + 1, MOST_ROWS, room))


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """A rule, then all of its words."""
    top = Line(width, glance.signs, SURFACE)
    top.put(0, glance.signs.heavy * width, LINE.on("surface"))
    lines = [top]
    for number, text in enumerate(_lines(glance, width)[: max(0, height - 1)]):
        line = Line(width, glance.signs, SURFACE)
        first, colon, rest = text.partition(":")
        loud = number == 0 and first in _LOUD
        column = line.put(1, first + colon, LOOK.on("surface")) if loud else 1
        line.put(column, rest if loud else text, BOLD.on("surface"), to=width - 1)
        lines.append(line)
    return tuple(line.build() for line in lines[:height])


def _lines(glance: Glance, width: int) -> list[str]:
    return wrap(glance.signs.words(glance.notice), max(8, width - 2))
