"""Plots in braille, two samples a cell, the usual band behind them and a gap where there was no data. Pure."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from widgets.ink import Ink, Row, Span

NAN = math.nan
HOLD = 2.0
"""Steps for which a sample stands when the next is not there yet, as for a reading that is LATE."""
HEADROOM = 1.1
SMALLEST = 1e-9

_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""Bits of the left and the right column of a braille cell, bottom up."""
_LEVELS = "_.:#"


def resample(points: Sequence[tuple[float, float]], now: float, step: float, count: int) -> list[float]:
    """`count` samples, `step` seconds each, the last one at `now`; NaN where there was no data.

    `points` are (time, value), oldest first. Samples lie on a fixed grid of two steps, so that a plot
    moves by whole cells.
    """
    if count <= 0 or step <= 0:
        return []
    pair = 2 * step
    end = math.ceil(now / pair) * pair
    times = [at for at, _ in points]
    samples: list[float] = []
    for index in range(count):
        until = end - (count - 1 - index) * step
        samples.append(_at(points, times, until, step) if until - step < now else NAN)
    return samples


def _at(points: Sequence[tuple[float, float]], times: list[float], until: float, step: float) -> float:
    stop = bisect.bisect_right(times, until)
    start = bisect.bisect_right(times, until - step)
    inside = [points[i][1] for i in range(start, stop)]
    if inside:
        good = [value for value in inside if math.isfinite(value)]
        return sum(good) / len(good) if good else NAN
    if stop and until - times[stop - 1] < HOLD * step:
        return points[stop - 1][1]
    return NAN


def top_of(values: Sequence[float], band: tuple[float, float] | None, rows: int) -> float:
    """The value at the top edge; y starts at 0. With a band, a row boundary lies at or just under its lower end."""
    finite = [v for v in values if math.isfinite(v)]
    highest = max([*finite, band[1] if band else 0.0, 0.0])
    need = highest * HEADROOM
    if need < SMALLEST:
        return 1.0
    if band and band[0] > SMALLEST:
        for boundary in range(rows - 1, 0, -1):
            row = band[0] / boundary
            if row * rows >= need:
                nice = _round_down(row)
                return nice * rows if nice * rows >= need else row * rows
    return _round_up(need)


def _round_down(value: float) -> float:
    unit = 10.0 ** math.floor(math.log10(value))
    for step in (1.0, 0.5, 0.1):
        rounded = math.floor(value / (unit * step)) * unit * step
        if rounded >= value * 0.9:
            return rounded
    return value


def _round_up(value: float) -> float:
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * m for m in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 20) if unit * m >= value)


def plot(
    values: Sequence[float],
    width: int,
    height: int,
    top: float,
    band: tuple[float, float] | None = None,
    *,
    plain: bool = False,
    quiet: bool = False,
) -> list[Row]:
    """`height` rows of `width` cells, the newest samples at the right. `plain` draws `_.:#`, one sample a cell."""
    ink = "fill" if quiet else "text"
    grounds = [_ground(y, height, top, band) for y in range(height)]
    if width <= 0:
        return [() for _ in range(height)]
    if plain:
        return _plain(values, width, height, top, ink)
    masks = _masks(list(values[-2 * width :]), width, height, top)
    return [_row(masks[y], Ink(ink, grounds[y])) for y in range(height)]


def _row(masks: list[int], ink: Ink) -> Row:
    text = "".join(chr(0x2800 + mask) if mask else " " for mask in masks)
    return (Span(text, ink),) if text else ()


def _ground(y: int, height: int, top: float, band: tuple[float, float] | None) -> str:
    """Rows that touch the band are tinted; one-row plots are not."""
    if band is None or height < 2:
        return "background"
    upper, lower = top * (height - y) / height, top * (height - y - 1) / height
    return "band" if lower < band[1] and upper > band[0] else "background"


def _level(value: float, levels: int, top: float) -> int | None:
    if not math.isfinite(value):
        return None
    return min(levels - 1, int(min(1.0, max(0.0, value / top)) * levels))


def _masks(values: list[float], width: int, height: int, top: float) -> list[list[int]]:
    masks = [[0] * width for _ in range(height)]
    offset = 2 * width - len(values)
    before: int | None = None
    for index, value in enumerate(values):
        level = _level(value, height * 4, top)
        if level is not None:
            x, side = divmod(index + offset, 2)
            low, high = _span(before, level)
            for dot in range(low, high + 1):
                masks[height - 1 - dot // 4][x] |= _DOTS[side][dot % 4]
        before = level
    return masks


def _span(before: int | None, level: int) -> tuple[int, int]:
    """The dots of one sample: its own, and those that join it to the one before."""
    if before is None or abs(before - level) <= 1:
        return level, level
    return (level, before - 1) if before > level else (before + 1, level)


def _plain(values: Sequence[float], width: int, height: int, top: float, ink: str) -> list[Row]:
    halved = _halved(list(values[-2 * width :]))
    shown = [NAN] * (width - len(halved)) + halved[-width:]
    rows: list[Row] = []
    levels = [_level(value, height * 4, top) for value in shown]
    for y in range(height):
        base = (height - 1 - y) * 4
        text = "".join(" " if n is None or not base <= n < base + 4 else _LEVELS[n - base] for n in levels)
        rows.append((Span(text, Ink(ink)),))
    return rows


def _halved(values: list[float]) -> list[float]:
    """Two samples to one; a gap stays a gap only if both are missing."""
    if len(values) % 2:
        values = [NAN, *values]
    halved: list[float] = []
    for a, b in zip(values[::2], values[1::2], strict=True):
        good = [v for v in (a, b) if math.isfinite(v)]
        halved.append(sum(good) / len(good) if good else NAN)
    return halved
