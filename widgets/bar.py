"""Bars in eighths of a cell: used, cache and free on one ground, with a threshold mark. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from widgets.ink import Ink, Row, Span

EIGHTHS = " ▏▎▍▌▋▊▉"
_BRACKETS = 2


@dataclass(frozen=True, slots=True)
class Parts:
    """What a bar shows, as fractions of the whole. NaN and None are drawn as an empty track."""

    used: float | None
    cache: float = 0.0
    mark: float | None = None
    """Where the threshold stands, from the left."""
    passed: bool = False
    """The value has passed the threshold."""
    quiet: bool = False
    """STALE or finished: one step fainter."""


def bar(parts: Parts, width: int, *, plain: bool = False) -> Row:
    """`width` cells. `plain` draws `[##==..|]`, for ASCII and for terminals without colour."""
    if width <= 0:
        return ()
    return _plain(parts, width) if plain else _eighths(parts, width)


def segments(parts: Sequence[tuple[float, str]], width: int, *, plain: bool = False) -> Row:
    """`width` cells of a bar parted into (share, ink), one after the other. `plain` draws `[###==++..]`."""
    if width <= 0:
        return ()
    if plain:
        return _plain_segments(parts, width)
    cells, edge, at = [], 0.0, 0
    edges: list[tuple[int, str]] = []
    for share, ink in parts:
        edge += _share(share)
        edges.append((round(min(1.0, edge) * width * 8), ink))
    for x in range(width):
        while at < len(edges) and edges[at][0] <= 8 * x:
            at += 1
        if at == len(edges):
            cells.append((" ", Ink("text", "track")))
            continue
        end, ink = edges[at]
        after = next((name for until, name in edges[at + 1 :] if until > end), "track")
        cells.append((" ", Ink("text", ink)) if end >= 8 * x + 8 else (EIGHTHS[end - 8 * x], Ink(ink, after)))
    return _runs(cells)


def _plain_segments(parts: Sequence[tuple[float, str]], width: int) -> Row:
    if width <= _BRACKETS:
        return (Span("." * width, Ink()),)
    inner, text, edge = width - _BRACKETS, "", 0.0
    for sign, (share, _) in zip("#=+-", parts, strict=False):
        edge += _share(share)
        text += sign * (round(min(1.0, edge) * inner) - len(text))
    return (Span(f"[{text.ljust(inner, '.')}]", Ink()),)


def _share(value: float | None) -> float:
    return 0.0 if value is None or not math.isfinite(value) else min(1.0, max(0.0, value))


def _mark_cell(parts: Parts, width: int) -> int | None:
    if parts.mark is None or not math.isfinite(parts.mark):
        return None
    return min(width - 1, int(_share(parts.mark) * width))


def _eighths(parts: Parts, width: int) -> Row:
    used = round(_share(parts.used) * width * 8)
    cached = max(used, round(_share(_share(parts.used) + _share(parts.cache)) * width * 8))
    if used == 0 and _share(parts.used) > 0:
        used, cached = 1, max(1, cached)
    return _drawn(used, cached, _mark_cell(parts, width), parts.passed, parts.quiet, width)


@lru_cache(maxsize=256)
def _drawn(used: int, cached: int, mark: int | None, passed: bool, quiet: bool, width: int) -> Row:
    """A bar by its eighths; memory moves less than an eighth of a cell in most seconds."""
    first, second = ("fill2", "fill2") if quiet else ("fill", "fill2")
    cells = []
    for x in range(width):
        edges = ((min(8, max(0, used - 8 * x)), first), (min(8, max(0, cached - 8 * x)), second))
        char, ink = _cell(edges)
        if x == mark:
            char, ink = ("│", Ink("background", "act")) if passed else ("│", Ink("dim", _ground(edges)))
        cells.append((char, ink))
    return _runs(cells)


def _cell(edges: tuple[tuple[int, str], tuple[int, str]]) -> tuple[str, Ink]:
    (a, first), (b, second) = edges
    if a == 8 or (a == b == 8):
        return " ", Ink("text", first)
    if a == 0 and b in (0, 8):
        return " ", Ink("text", second if b else "track")
    if a > 0 and b > a:
        return EIGHTHS[a], Ink(first, second)
    if a > 0:
        return EIGHTHS[a], Ink(first, "track")
    return EIGHTHS[b], Ink(second, "track")


def _ground(edges: tuple[tuple[int, str], tuple[int, str]]) -> str:
    for filled, name in edges:
        if filled >= 4:
            return name
    return "track"


def _runs(cells: Iterable[tuple[str, Ink]]) -> Row:
    row: list[Span] = []
    for char, ink in cells:
        if row and row[-1].ink == ink:
            row[-1] = Span(row[-1].text + char, ink)
        else:
            row.append(Span(char, ink))
    return tuple(row)


def _plain(parts: Parts, width: int) -> Row:
    if width <= _BRACKETS:
        return (Span("." * width, Ink()),)
    inner = width - _BRACKETS
    used = round(_share(parts.used) * inner)
    cached = max(used, round(_share(_share(parts.used) + _share(parts.cache)) * inner))
    chars = ["#"] * used + ["="] * (cached - used) + ["."] * (inner - cached)
    mark = _mark_cell(parts, inner)
    if mark is not None:
        chars[mark] = "!" if parts.passed else "|"
    return (Span("[" + "".join(chars) + "]", Ink("bright" if parts.passed else "text", bold=parts.passed)),)
