"""The whole screen over one picture, row by row, as the dashboard arranges it; no terminal and no event loop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from console.actions.catalog import Place as Where
from console.snapshot import Snapshot
from screens.dashboard import ONE_ROW, DashboardScreen, wish_of
from screens.grid import grid
from screens.lanes import worst_lane
from screens.view import Moment, View, glance
from widgets import bars
from widgets.cells import measure
from widgets.glance import Glance, Layout
from widgets.ink import Row, Span, text_of
from widgets.pane import Drawn

SIZES = ((80, 24), (120, 40), (200, 60))
BARS: dict[str, type[Drawn]] = {
    "header": bars.HeaderBar,
    "lamps": bars.LampsBar,
    "rail": bars.RailBar,
    "alarm": bars.AlarmBar,
    "next": bars.NextBar,
    "keys": bars.KeyBar,
}


class Faulty(AssertionError):
    """Lamps or alarms could not be judged."""


@dataclass(frozen=True)
class Screenful:
    """One drawn screen."""

    columns: int
    rows: int
    blocks: dict[str, tuple[Row, ...]]
    lines: tuple[str, ...]
    """Every row of the terminal as text."""

    @property
    def text(self) -> str:
        """All of it, with one blank between words, so that folded words can be looked for."""
        return "\n".join(" ".join(line.split()) for line in self.lines)

    @property
    def spans(self) -> list[Span]:
        """Everything that is drawn, with its inks."""
        return self.spans_of("")

    def spans_of(self, left_out: str) -> list[Span]:
        """The same without one block."""
        return [span for name, rows in self.blocks.items() if name != left_out for row in rows for span in row]


def _faulty(where: str, error: Exception) -> object:
    raise Faulty(where) from error


def look_at(snapshot: Snapshot, columns: int, rows: int, *, ascii: bool = False, no_colour: bool = False) -> Glance:
    """What the console would show first: the worst lane, nothing in the way."""
    view = View(lane=worst_lane(snapshot), ascii=ascii, no_colour=no_colour)
    return glance(Moment(snapshot, snapshot), view, Where.DASHBOARD, columns, rows, _faulty)


def draw(shown: Glance, columns: int, rows: int) -> Screenful:
    """All bars and panes at their places. Raises what a pane raises."""
    places = grid(columns, rows, wish_of(shown))
    widgets = {**{name: kind() for name, kind in BARS.items()}, **dict(DashboardScreen().middle())}
    cells = [[" "] * columns for _ in range(rows)]
    blocks: dict[str, tuple[Row, ...]] = {}
    for name, place in places.items():
        roomy = name in ONE_ROW and place.height > 2 and shown.layout is Layout.SMALL
        of = replace(shown, layout=Layout.BOXED) if roomy else shown
        drawn = widgets[name].draw(of, place.width, place.height)
        assert len(drawn) == place.height, (name, len(drawn), place)
        for number, row in enumerate(drawn):
            text = text_of(row)
            assert measure(text) == place.width, (name, number, measure(text), place, text)
            _put(cells[place.y + number], place.x, text)
        blocks[name] = drawn
    return Screenful(columns, rows, blocks, tuple("".join(line) for line in cells))


def _put(line: list[str], column: int, text: str) -> None:
    if text.isascii():  # most rows: a cell each
        line[column : column + len(text)] = text
        return
    for char in text:
        size = measure(char)
        line[column : column + size] = [char] + [""] * (size - 1)
        column += size
