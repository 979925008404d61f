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
    if old == new:
        return []
    before, after = _cells(old), _cells(new)
    if len(before) != len(after):
        return [(0, max(len(before), len(after)))]
    differing = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    if not ages_due:
        differing = [i for i in differing if not (before[i][2] and after[i][2])]
    return _join(differing)


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
