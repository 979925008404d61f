"""Which cells of a row changed. Pure."""

from __future__ import annotations

from widgets.ages import young
from widgets.cells import measure, quiet
from widgets.ink import Ink, Row

JOIN = 10
"""Cells between two changes that are cheaper to paint again than to jump over."""

_OTHER, _YOUNG, _OLD = 0, 1, 2
"""Kinds of cells: no age, an age that changes at every tick, any other age."""
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
    for column, (a, b) in enumerate(zip(before, after, strict=True), start):
        if a[:2] != b[:2]:
            (later if _can_wait(a[2], b[2]) else now).append(column)
    return _join(now), _join(later)


def _can_wait(before: int, after: int) -> bool:
    return _YOUNG in (before, after) and _OLD not in (before, after)


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
