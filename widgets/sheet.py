"""The frame of a pane and its title row: boxed, or a section with a label. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from widgets.ages import NO_AGE, AgeMark
from widgets.cells import Line, blank, measure
from widgets.glance import Glance
from widgets.ink import ACCENT, DIM, LINE, STRONG, TITLE_FOCUS, Ink, Row
from widgets.slots import digit


@dataclass(frozen=True, slots=True)
class Title:
    """What stands in a title row."""

    number: int
    """Of the pane (`widgets/slots.py`); 0 for what is none."""
    name: str
    age: AgeMark = NO_AGE
    note: str = ""
    """Quiet words after the name."""


class Sheet:
    """Rows of one pane, filled from the top and framed at the end."""

    def __init__(self, glance: Glance, title: Title, width: int, height: int) -> None:
        self.glance = glance
        self.title = title
        self.width = width
        self.height = height
        self.boxed = glance.boxed
        self.left = 2 if self.boxed else 1
        self.right = width - self.left
        """The column before which the last number ends."""
        self._lines: list[Line] = []

    @property
    def focused(self) -> bool:
        """True when the operator's focus is here."""
        return 0 < self.title.number == self.glance.focus

    @property
    def room(self) -> int:
        """Rows inside the frame."""
        return max(0, self.height - (2 if self.boxed else 1))

    @property
    def left_over(self) -> int:
        """Rows inside the frame that are not filled yet."""
        return max(0, self.room - len(self._lines))

    def line(self) -> Line:
        """A new row; rows beyond the room are dropped when the sheet is done."""
        line = Line(self.width, self.glance.signs)
        self._lines.append(line)
        return line

    def say(self, *sentences: str, ink: Ink = DIM) -> None:
        """Sentences, broken at words over as many rows as they need."""
        for sentence in sentences:
            for part in wrap(sentence, self.right - self.left):
                self.line().put(self.left, part, ink, to=self.right)

    def done(self) -> tuple[Row, ...]:
        """All rows of the pane, framed."""
        if self.height <= 0 or self.width <= 0:
            return ()
        lines = self._lines[: self.room]
        lines += [Line(self.width, self.glance.signs) for _ in range(self.room - len(lines))]
        if not self.boxed:
            return (self._section_title(), *(line.build() for line in lines))
        rows = [self._top(), *(self._framed(line) for line in lines)]
        if self.height > 1:
            rows.append(self._bottom())
        return tuple(rows[: self.height])

    @property
    def _frame_ink(self) -> Ink:
        return ACCENT if self.focused else LINE

    @property
    def title_ink(self) -> Ink:
        """Of the pane's name."""
        return TITLE_FOCUS if self.focused else STRONG

    def _framed(self, line: Line) -> Row:
        line.put(0, self.glance.signs.down, self._frame_ink)
        line.put(self.width - 1, self.glance.signs.down, self._frame_ink)
        return line.build()

    def _top(self) -> Row:
        signs, ink, title = self.glance.signs, self._frame_ink, self.title
        line = Line(self.width, signs)
        line.put(0, signs.top_left + signs.across, ink)
        number = f"{key} " if (key := digit(self.glance, title.number)) else ""
        gap = 1 if title.age.text else 0
        # The blank before a quiet age is part of it, so that both wait where the age is painted later.
        lead = " " if gap and title.age.ink == DIM else ""
        age = line.right(self.width - 3, lead + title.age.text, title.age.ink, start=2, age=True) + len(lead)
        line.put(self.width - 3, " " if gap else signs.across, ink)
        line.put(self.width - 2, signs.across + signs.top_right, ink)
        limit = age - 1 - gap
        after = line.put(3, number, ACCENT if self.focused else DIM, to=limit)
        after = line.put(after, title.name, self.title_ink, to=limit)
        if title.note:
            after = line.put(after + 2, title.note, DIM, to=limit)
        line.put(after + 1, signs.across * max(0, age - after - 1 - gap), ink)
        return line.build()

    def _bottom(self) -> Row:
        signs = self.glance.signs
        line = Line(self.width, signs)
        line.put(0, signs.bottom_left + signs.across * max(0, self.width - 2) + signs.bottom_right, self._frame_ink)
        return line.build()

    def head_line(self, to: int) -> Line:
        """At 80 columns: a title row whose right part is for the column heads; the rows carry their own ages."""
        line = Line(self.width, self.glance.signs)
        after = line.put(1, self.title.name, self.title_ink, to=to)
        line.put(after + 1, self.title.note, DIM, to=to)
        return line

    def _section_title(self) -> Row:
        line = Line(self.width, self.glance.signs)
        age = line.right(self.right, self.title.age.text, self.title.age.ink, start=1, age=True)
        after = line.put(1, self.title.name, self.title_ink, to=age - 1)
        line.put(after + 2, self.title.note, DIM, to=age - 1)
        return line.build()


def section(glance: Glance, title: Title, width: int) -> Line:
    """One line that is a whole pane: label at 1, age at the right; the value goes from 11 on."""
    line = Line(width, glance.signs)
    ink = TITLE_FOCUS if 0 < title.number == glance.focus else STRONG
    line.put(1, title.name, ink, to=10)
    line.right(width - 1, title.age.text, title.age.ink, start=11, age=True)
    return line


def fitted(rows: tuple[Row, ...], width: int, height: int) -> tuple[Row, ...]:
    """Exactly `height` rows."""
    return (*rows[:height], *(blank(width) for _ in range(height - len(rows))))


def wrap(text: str, width: int, rest: int | None = None) -> list[str]:
    """`text` broken at words: the first row `width` cells wide, the others `rest`. A longer word stands alone."""
    rest = width if rest is None else rest
    if width <= 0 or rest <= 0:
        return []
    lines: list[str] = []
    for word in text.split():
        room = width if len(lines) <= 1 else rest
        if lines and measure(lines[-1]) + 1 + measure(word) <= room:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines
