"""Which cells changed and have to be painted again. Pure."""

from __future__ import annotations

from widgets.ages import young
from widgets.cells import measure, quiet
from widgets.ink import Ink, Row

JOIN = 10
"""Cells between two changes that are cheaper to paint again than to jump over."""

_OTHER, _YOUNG, _OLD = 0, 1, 2
"""Kinds of cells: no age, an age that changes at every tick, any other age."""
_AGE_WIDTH = 5
_FILL = " ─-"
"""What stands in the place of an age's first cells when it is shorter."""
_Cell = tuple[str, Ink, int]
Ranges = list[tuple[int, int]]


def changed(old: Row, new: Row) -> tuple[Ranges, Ranges]:
    """Column ranges (start, end) to paint again: those that must, and those of young ages, which can wait."""
    if old is new:
        return [], []
    start, left, right = _differing(old, new)
    before, after = _cells(left), _cells(right)
    if len(before) != len(after):
        return [(start, max(_width(old), _width(new)))], []
    now: list[int] = []
    later: list[int] = []
    whole = True
    for column, (a, b) in enumerate(zip(before, after, strict=True), start):
        waits = _can_wait(a, b)
        if a[:2] != b[:2]:
            (later if waits else now).append(column)
        elif a[2] == b[2]:
            continue
        whole = whole and (waits or _YOUNG not in (a[2], b[2]))
    # An age is never half painted: where one of its cells must be, all of them are.
    return (_join(now), _join(later)) if whole else (_join(sorted([*now, *later])), [])


class Painted:
    """What is on the terminal of one pane, and which cells of young ages it is behind with."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._waiting: dict[int, set[tuple[int, int]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def whole(self, rows: tuple[Row, ...]) -> None:
        """All of it is painted."""
        self._rows = list(rows)
        self._waiting.clear()

    def update(self, rows: tuple[Row, ...], *, due: bool) -> list[tuple[int, int, int]]:
        """Row, start and end of what is to be painted; cells of young ages only when they are `due`."""
        found: list[tuple[int, int, int]] = []
        for y, row in enumerate(rows):
            if row is self._rows[y] and not (due and y in self._waiting):
                continue
            ranges, later = changed(self._rows[y], row)
            self._rows[y] = row
            if later:
                self._waiting.setdefault(y, set()).update(later)
            if y in self._waiting and (due or _near(ranges, self._waiting[y])):
                ranges = [*ranges, *self._waiting.pop(y)]
            found += [(y, start, end) for start, end in ranges]
        return found


def _near(ranges: Ranges, waiting: set[tuple[int, int]]) -> bool:
    """Whether a range to paint may be of an age whose other cells wait."""
    return any(a < d + _AGE_WIDTH and c < b + _AGE_WIDTH for a, b in ranges for c, d in waiting)


def _can_wait(before: _Cell, after: _Cell) -> bool:
    kinds = before[2], after[2]
    return _YOUNG in kinds and all(
        kind == _YOUNG or cell[0] in _FILL for kind, cell in zip(kinds, (before, after), strict=True)
    )


def _differing(old: Row, new: Row) -> tuple[int, Row, Row]:
    """The column after the spans that both rows begin with, and what is left without those that both end with."""
    shorter = min(len(old), len(new))
    first = 0
    while first < shorter and old[first] == new[first]:
        first += 1
    last = 0
    while last < shorter - first and old[-1 - last] == new[-1 - last]:
        last += 1
    return _width(old[:first]), old[first : len(old) - last], new[first : len(new) - last]


def _width(row: Row) -> int:
    return sum(measure(text) for text, _, _ in row)


def _cells(row: Row) -> list[_Cell]:
    """One entry a cell. Both halves of a wide character carry it, so that a range never cuts one in two."""
    cells: list[_Cell] = []
    for text, ink, age in row:
        kind = (_YOUNG if young(text) else _OLD) if age else _OTHER
        if text.isascii() or measure(text) == len(text):
            blank = Ink(bg=ink.bg) if quiet(ink) else ink
            cells.extend((char, blank if char == " " else ink, kind) for char in text)
            continue
        for char in text:
            cells.append((char, ink, kind))
            if measure(char) == 2:
                cells.append((f"{char} right half", ink, kind))
    return cells


def _join(columns: list[int]) -> Ranges:
    joined: Ranges = []
    for column in columns:
        if joined and column - joined[-1][1] <= JOIN:
            joined[-1] = (joined[-1][0], column + 1)
        else:
            joined.append((column, column + 1))
    return joined
