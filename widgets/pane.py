"""Panes and bars: widgets that draw rows by the line API and repaint only the cells that changed."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.color import Color
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from widgets.ages import AGE_REPAINT
from widgets.cells import Line, blank
from widgets.glance import Glance
from widgets.ink import LOOK, Row
from widgets.repaint import Painted
from widgets.theme import Palette, palette_for

_NO_GROUND = Color(0, 0, 0)
"""For filters, which ask for what lies below: every cell of a row has a ground of its own."""

BEAT = 0.5
"""Seconds between two drawings of a table in which nothing but ages can have changed."""


def beat(now: float) -> int:
    """Changes every half second; part of the slice of a table with more ages than are looked at each tick."""
    return int(now / BEAT)


class Drawn(Widget, can_focus=False):
    """A widget whose content is a tuple of rows, a pure function of a glance and its size."""

    ALLOW_SELECT: ClassVar[bool] = False
    DEFAULT_CSS = ""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glance: Glance | None = None
        self._slice: tuple[object, ...] = ()
        self._rows: tuple[Row, ...] = ()
        self._painted = Painted()
        self._drawn_for = (0, 0)
        self._ages_painted = 0
        self._strips: dict[int, tuple[Palette, Row, Strip]] = {}

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """`height` rows, each `width` cells wide. Pure."""
        raise NotImplementedError

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """All that `draw` looks at besides what `common` names; equal ones are not drawn again, this one always is."""
        return (object(),)

    def common(self, glance: Glance) -> tuple[object, ...]:
        """What every pane looks at: layout and what the operator has set."""
        return glance.layout, glance.ascii, glance.no_colour

    def show(self, glance: Glance, coming: tuple[int, int] | None = None) -> int:
        """Take a new glance and repaint what changed. Returns the number of rows that need paint.

        Where another size is `coming` nothing is drawn before it is there: rows of the old one would show for a moment.
        """
        self._glance = glance
        width, height = self.size
        if not width or not height or (coming is not None and coming != (width, height)):
            return 0
        part = (width, height, *self.common(glance), *self.slice(glance))
        if part == self._slice and self._drawn_for == (width, height):
            return 0
        self._slice = part
        if self._drawn_for != (width, height):
            self._draw_whole(glance, width, height)
            self.refresh()
            return height
        return self._repaint(glance, self._drawn(glance, width, height))

    def _draw_whole(self, glance: Glance, width: int, height: int) -> None:
        self._rows = self._drawn(glance, width, height)
        self._drawn_for = (width, height)
        self._painted.whole(self._rows)
        self._ages_painted = int(glance.now / AGE_REPAINT)

    def _repaint(self, glance: Glance, rows: tuple[Row, ...]) -> int:
        self._rows = rows
        at = int(glance.now / AGE_REPAINT)
        due, self._ages_painted = at != self._ages_painted, at
        found = self._painted.update(rows, due=due)
        if found:
            self.refresh(*(Region(start, y, end - start, 1) for y, start, end in found))
        return len({y for y, _, _ in found})

    def _drawn(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """The rows, or words in their place: a fault in one pane must not end the console, also inside a resize."""
        try:
            return self.draw(glance, width, height)
        except Exception as error:
            fault = getattr(self.app, "fault", None)
            if fault is None:
                raise
            fault(f"pane {type(self).__name__}", error)
            line = Line(width, glance.signs)
            line.put(1, "cannot be drawn: a fault of the console, see the alarm line", LOOK)
            return (line.build(), *(blank(width) for _ in range(height - 1)))

    @property
    def glance_now(self) -> Glance | None:
        """What the widget was last given to show."""
        return self._glance

    @property
    def rows_now(self) -> tuple[Row, ...]:
        """The rows as last drawn."""
        return self._rows

    def on_resize(self) -> None:
        """Draw anew for the new size, unless that is done already."""
        if self._fit():
            self.refresh()

    def _fit(self) -> bool:
        """Draw for the size that the pane has now. Returns whether that was another one than before."""
        width, height = self.size
        if self._glance is None or not width or not height or self._drawn_for == (width, height):
            return False
        self._slice = ()
        self._draw_whole(self._glance, width, height)
        return True

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as there is room; a pane never asks for layout."""
        return container.width

    def render_line(self, y: int) -> Strip:
        """One row as Textual wants it; made once per row and palette."""
        plain = self._glance is not None and self._glance.no_colour
        palette = palette_for(self.app.theme, plain)
        row = self._rows[y] if y < len(self._rows) else blank(self.size.width)
        kept = self._strips.get(y)
        if kept is not None and kept[0] is palette and (kept[1] is row or kept[1] == row):
            return kept[2]
        strip = Strip([Segment(text, palette.style(ink)) for text, ink, _ in row], self.size.width)
        self._strips[y] = (palette, row, strip)
        return strip

    def render_lines(self, crop: Region) -> list[Strip]:
        """Rows as they are drawn: a pane has no border, padding or opacity that Textual would have to add."""
        self._fit()
        strips = [self.render_line(y) for y in crop.line_range]
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, _NO_GROUND) for strip in strips]
        return strips if crop.column_span == (0, self.size.width) else [s.crop(*crop.column_span) for s in strips]


class Pane(Drawn):
    """A numbered pane of the dashboard. Subclasses give NUMBER, NAME and `draw`."""

    NUMBER: ClassVar[int] = 0
    NAME: ClassVar[str] = ""

    def common(self, glance: Glance) -> tuple[object, ...]:
        """Layout, focus, filter and scroll."""
        focused = glance.focus == self.NUMBER
        return glance.layout, glance.ascii, glance.no_colour, focused, glance.filter, glance.scrolled(self.NUMBER)


class Bar(Drawn):
    """A row or two that never scroll away."""
