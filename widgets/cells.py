"""Text at fixed columns: the one place where a row is put together, exactly as wide as asked, whatever it holds."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rich.cells import get_character_cell_size

from widgets.glyphs import UNICODE, Glyphs
from widgets.ink import TEXT, Ink, Row, Span

_CACHED = 4096
_BUILT = 512
"""Rows kept: a few screens of the largest size."""
_QUIET = frozenset({"text", "dim", "bright", "line", "faint", "fill", "fill2"})
"""Inks that leave no trace on a blank cell, in no mode."""
_LONGEST = 1024
"""Characters of one text that are looked at; no pane is wider."""


LEAST_NAME = 13
"""Cells of a name below which it is told from no other."""


@lru_cache(maxsize=_CACHED)
def _plain(text: str) -> tuple[str, int]:
    """`text` without what has no width of its own, and its width in cells.

    Combining marks, joiners and variation selectors are dropped: terminals disagree on how many cells
    a cluster takes, and one cell too many breaks the frame.
    """
    kept: list[str] = []
    width = 0
    for char in unicodedata.normalize("NFC", text[:_LONGEST]):
        if char in "\t\n\r":
            char = " "
        size = get_character_cell_size(char)
        if size <= 0 or not (char == " " or char.isprintable()):
            continue
        kept.append(char)
        width += size
    return "".join(kept), width


def measure(text: str) -> int:
    """Cells that `text` takes once drawn."""
    if text.isascii() and text.isprintable():
        return len(text)
    return _plain(text)[1]


def cut(text: str, width: int, dots: str = "…") -> str:
    """`text` in at most `width` cells; what is cut off is replaced by `dots`."""
    if width <= 0:
        return ""
    if not (text.isascii() and text.isprintable()):
        text, size = _plain(text)
    else:
        size = len(text)
    if size <= width:
        return text
    if width <= len(dots):
        return _head(text, width)
    return _head(text, width - len(dots)) + dots


def _fitted(text: str, width: int, dots: str) -> tuple[str, int]:
    """`cut`, and the cells that are left of it."""
    if len(text) <= width and text.isascii() and text.isprintable():
        return text, len(text)
    text = cut(text, width, dots)
    return text, measure(text)


def cut_middle(text: str, width: int, dots: str = "…") -> str:
    """Like `cut`, but keeps both ends: names differ in the last characters as often as in the first."""
    if measure(text) <= width:
        return cut(text, width, dots)
    if width < 4 + len(dots):
        return cut(text, width, dots)
    text = _plain(text)[0]
    tail = _tail(text, (width - len(dots)) // 2)
    return _head(text, width - len(dots) - measure(tail)) + dots + tail


def names_shortened(text: str, width: int, dots: str) -> str:
    """`dsv41-vl…OUND-REF exited 137`: names of containers give way in their middle, so that the end of a row is read.

    The longest word first; begin and end of a name tell it from others, and what became of it stands behind it.
    """
    words = text.split(" ")
    while (over := measure(" ".join(words)) - width) > 0:
        longest = max(range(len(words)), key=lambda at: measure(words[at]))
        size = measure(words[longest])
        if size <= LEAST_NAME:
            break
        words[longest] = cut_middle(words[longest], max(LEAST_NAME, size - over), dots)
    return " ".join(words)


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    taken = 0
    for index, char in enumerate(text):
        taken += get_character_cell_size(char)
        if taken > width:
            return text[:index]
    return text


def _tail(text: str, width: int) -> str:
    taken = 0
    for index in range(len(text) - 1, -1, -1):
        taken += get_character_cell_size(text[index])
        if taken > width:
            return text[index + 1 :]
    return text


_Part = tuple[int, int, str, Ink, bool]
"""Columns from and to (exclusive), text, ink, and whether it is an age."""


class Line:
    """One row being put together. Where texts meet, the one that starts further right wins."""

    __slots__ = ("_parts", "ground", "signs", "width")

    def __init__(self, width: int, signs: Glyphs = UNICODE, ground: Ink = TEXT) -> None:
        self.width = max(0, width)
        self.signs = signs
        self.ground = ground
        self._parts: list[_Part] = []

    def put(self, column: int, text: str, ink: Ink = TEXT, *, to: int | None = None, age: bool = False) -> int:
        """Place `text` at `column`, cut at `to` (exclusive). Returns the column after it."""
        limit = self.width if to is None else min(to, self.width)
        text, size = _fitted(self.signs.words(text), limit - column, self.signs.dots)
        if not text or column < 0:
            return column
        end = column + size
        self._parts.append((column, end, text, ink, age))
        return end

    def right(self, edge: int, text: str, ink: Ink = TEXT, *, start: int = 0, age: bool = False) -> int:
        """Place `text` so that it ends before `edge`, not left of `start`. Returns its first column."""
        edge = min(edge, self.width)
        text, size = _fitted(self.signs.words(text), edge - start, self.signs.dots)
        column = edge - size
        if text:
            self._parts.append((column, edge, text, ink, age))
        return column

    def words(self, column: int, *pieces: tuple[str, Ink], to: int | None = None, gap: int = 1) -> int:
        """Place pieces one after the other with `gap` cells between. Returns the column after the last."""
        for text, ink in pieces:
            if text:
                column = self.put(column, text, ink, to=to) + gap
        return column - gap if pieces else column

    def words_right(self, edge: int, *pieces: tuple[str, Ink], start: int = 0, gap: int = 1) -> int:
        """Place pieces so that the last ends before `edge`. Returns the first column."""
        for text, ink in reversed(pieces):
            if text and edge > start:
                edge = self.right(edge, text, ink, start=start) - gap
        return edge + gap if pieces else edge

    def spans(self, column: int, spans: Row) -> int:
        """Place ready spans (a bar, a plot row), whose texts are signs of one cell each."""
        for text, ink, age in spans:
            end = min(column + len(text), self.width)
            if end > column:
                self._parts.append((column, end, text[: end - column], ink, age))
            column = end
        return column

    def build(self) -> Row:
        """The row, exactly `width` cells wide. Equal lines give the same row, so that what did not change is found."""
        return _built(tuple(self._parts), self.width, self.ground)


@lru_cache(maxsize=_BUILT)
def _built(given: tuple[_Part, ...], width: int, ground: Ink) -> Row:
    parts = sorted(given, key=_start)
    row: list[Span] = []
    cursor = 0
    for index, (start, end, text, ink, age) in enumerate(parts):
        if index + 1 < len(parts) and parts[index + 1][0] < end:
            end = max(start, parts[index + 1][0])
            text = _pad(_head(text, end - start), end - start)
        if start > cursor:
            _blank(row, start - cursor, ground)
        if end > start:
            _append(row, Span(text, ink, age))
        cursor = max(cursor, end)
    if cursor < width:
        _blank(row, width - cursor, ground)
    return tuple(row)


def _blank(row: list[Span], width: int, ground: Ink) -> None:
    """Blank cells, in the ink before them where that looks the same: each run of one ink costs 40 bytes."""
    before = row[-1] if row else None
    if before is not None and not before.age and _blank_alike(before.ink, ground):
        row[-1] = Span(before.text + " " * width, before.ink)
    else:
        row.append(Span(" " * width, ground))


def _append(row: list[Span], span: Span) -> None:
    before = row[-1] if row else None
    if before is not None and before.ink == span.ink and not before.age and not span.age:
        row[-1] = Span(before.text + span.text, span.ink)
    else:
        row.append(span)


def _blank_alike(ink: Ink, ground: Ink) -> bool:
    """Whether a blank cell looks the same in both inks, also where attributes stand for colours."""
    return ink.bg == ground.bg and quiet(ink)


def quiet(ink: Ink) -> bool:
    """Whether a blank cell in this ink shows nothing but its ground."""
    return ink.fg in _QUIET and not ink.underline and not ink.key


def _start(part: _Part) -> int:
    return part[0]


def _pad(text: str, width: int) -> str:
    return text + " " * (width - measure(text))


def blank(width: int, ground: Ink = TEXT) -> Row:
    """A row without anything on it."""
    return (Span(" " * width, ground),) if width > 0 else ()
