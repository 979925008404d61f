"""Text to read in the middle of a screen: rows of pieces at fixed columns, scrolled by the row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from console.actions.catalog import Place
from screens.base import bindings_for
from screens.framed import FramedScreen
from widgets.cells import cut, measure
from widgets.glance import Glance
from widgets.ink import TEXT, Ink, Row
from widgets.pane import Drawn
from widgets.sheet import Sheet, Title

Piece = tuple[int, str, Ink]
"""Column, text, ink."""
Text = tuple[Piece, ...]
"""One row to read."""
Body = Callable[[Glance, int], tuple[Title, list[Text]]]
"""Title and rows for a width in cells. Pure."""


class Reader(Drawn):
    """Draws a body from a row on; knows how far there is to scroll."""

    def __init__(self, body: Body) -> None:
        super().__init__(id="reader")
        self._body = body
        self.first = 0
        self.length = 0
        self.room = 1

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """The rows in view, in a frame where there is room for one."""
        title, texts = self._body(glance, width)
        sheet = Sheet(glance, title, width, height)
        self.length, self.room = len(texts), max(1, sheet.room)
        self.first = max(0, min(self.first, self.length - self.room))
        for text in texts[self.first : self.first + self.room]:
            line = sheet.line()
            for column, piece, ink in text:
                line.put(sheet.left + column, piece, ink, to=sheet.right)
        return sheet.done()

    def move(self, rows: int) -> None:
        """Scroll by rows, not past either end."""
        self.first = max(0, min(self.first + rows, self.length - self.room))

    @property
    def at_end(self) -> bool:
        """Whether the last row is in view."""
        return self.first >= self.length - self.room


class ReadingScreen(FramedScreen, inherit_bindings=False):
    """A screen whose middle is a reader."""

    MIDDLE = "reader"
    PLACE: ClassVar[Place] = Place.HELP
    BINDINGS = bindings_for(Place.HELP)

    def __init__(self) -> None:
        super().__init__()
        self.reader = Reader(self.body)

    def middle(self) -> Iterator[tuple[str, Drawn]]:
        """The reader alone."""
        yield "reader", self.reader

    def body(self, glance: Glance, width: int) -> tuple[Title, list[Text]]:
        """Title and rows to read."""
        raise NotImplementedError

    def do_scroll_up(self, _: str) -> None:
        """One row up."""
        self.reader.move(-1)

    def do_scroll_down(self, _: str) -> None:
        """One row down."""
        self.reader.move(1)

    def do_page_up(self, _: str) -> None:
        """One page up, with one row of overlap."""
        self.reader.move(1 - self.reader.room)

    def do_page_down(self, _: str) -> None:
        """One page down, with one row of overlap."""
        self.reader.move(self.reader.room - 1)

    def do_top(self, _: str) -> None:
        """To the first row."""
        self.reader.move(-self.reader.length)

    def do_end(self, _: str) -> None:
        """To the last row."""
        self.reader.move(self.reader.length)


def wrapped(text: str, width: int) -> list[str]:
    """`text` broken at blanks into pieces of at most `width` cells; a longer word is cut."""
    pieces: list[str] = []
    for word in text.split():
        if pieces and measure(pieces[-1]) + 1 + measure(word) <= width:
            pieces[-1] += " " + word
        else:
            pieces.append(cut(word, width))
    return pieces or [""]


def table_rows(cells: tuple[tuple[int, str, Ink], ...], last_column: int, text: str, width: int) -> list[Text]:
    """One row of cells whose last text wraps under itself; behind a cell that is too long a new row begins."""
    parts = wrapped(text, max(8, width - last_column))
    rows: list[Text] = [()]
    edges = [*(column for column, _, _ in cells[1:]), last_column]
    for cell, edge in zip(cells, edges, strict=True):
        rows[-1] = (*rows[-1], cell)
        if cell[0] + measure(cell[1]) >= edge:
            rows.append(())
    rows[-1] = (*rows[-1], (last_column, parts[0], TEXT))
    rows += [((last_column, part, TEXT),) for part in parts[1:]]
    return rows
