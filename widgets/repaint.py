"""Which cells of a row changed. Pure."""

from __future__ import annotations

from widgets.cells import measure
from widgets.ink import Ink, Row

JOIN = 10
"""Cells between two changes that are cheaper to paint again than to jump over."""

_Cell = tuple[str, Ink, bool]


def changed(old: Row, new: Row, *, ages_due: bool = True) -> list[tuple[int, int]]:
    """Column ranges (start, end) to paint again.

    An age that stays under one second is no change unless `ages_due`.
    """
    if old is new:
        return []
    start, left, right = _differing(old, new)
    before, after = _cells(left), _cells(right)
    if len(before) != len(after):
        return [(start, max(_width(old), _width(new)))]
    columns = [start + i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    if not ages_due:
        columns = [i for i in columns if not (before[i - start][2] and after[i - start][2])]
    return _join(columns)


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
        young = age and text.startswith("0.")
        if text.isascii() or measure(text) == len(text):
            cells.extend((char, ink, young) for char in text)
            continue
        for char in text:
            cells.append((char, ink, young))
            if measure(char) == 2:
                cells.append((f"{char} right half", ink, young))
    return cells


def _join(columns: list[int]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for column in columns:
        if joined and column - joined[-1][1] <= JOIN:
            joined[-1] = (joined[-1][0], column + 1)
        else:
            joined.append((column, column + 1))
    return joined
