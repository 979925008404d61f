"""The nodes pane where device memory is apart from the host's: one row for HBM, one for the host (Grace)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from console.snapshot import HostView
from widgets import format as fmt
from widgets.bar import Parts, bar
from widgets.cells import Line, cut_middle, measure
from widgets.glance import Glance
from widgets.ink import BOLD, BRIGHT, CHIP_ACT, DIM, LOOK, TEXT, Ink, Row
from widgets.nodes_history import HISTORY
from widgets.plot import plot, resample, top_of
from widgets.pools import Pool, is_station, pools_of
from widgets.sheet import Sheet

__all__ = ["is_station", "station_rows"]

_AGE, _PINNED = 6, 7
"""Cells of an age with a blank before it, and of the pinned column."""
_HISTORY_FROM = 16
"""Cells from the pinned column to the plot."""


def station_rows(sheet: Sheet, hosts: list[tuple[HostView, float]]) -> tuple[Row, ...]:
    """Header and one row a memory, host by host, each with its threshold in bytes; scrolls by rows."""
    now = sheet.glance.now
    several = len(hosts) > 1
    pools = [pool for view, threshold in hosts for pool in pools_of(view, now, threshold, several=several)]
    columns = _columns(sheet, max(measure(pool.label) for pool in pools))
    if sheet.boxed:
        _heads(sheet.line(), columns, sheet.glance)
    room = sheet.left_over
    if len(pools) > room:
        room = max(1, room - 1)
        skip = min(sheet.glance.scrolled(sheet.title.number), len(pools) - room)
        visible = pools[skip : skip + room]
    else:
        visible = pools
    for pool in visible:
        _pool(sheet.line(), columns, pool, sheet.glance)
    if len(visible) < len(pools):
        sheet.say(f"{len(pools) - len(visible)} more rows, worst hosts first")
    done = sheet.done()
    if sheet.boxed or not done:
        return done
    head = sheet.head_line(to=columns.total - 4)
    _heads(head, columns, sheet.glance)
    return (head.build(), *done[1:])


@dataclass(frozen=True, slots=True)
class _Columns:
    label: int
    total: int
    bar: int
    bar_end: int
    free: int
    used: int
    cache: int
    swap: int
    busy: int
    temperature: int
    power: int
    pinned: int
    age: int


def _columns(sheet: Sheet, labels: int) -> _Columns:
    if not sheet.boxed:
        extra = sheet.width - 80
        grow = max(0, min(24, extra // 2))
        shift = max(0, min(labels, 15) - 6)
        at = _Columns(1, 13 + shift, 14 + shift, 28 + grow, 34 + grow, 41 + grow, 47 + grow, 0,
                      52 + grow, 55 + grow, 60 + grow, 62 + grow, sheet.right)  # fmt: skip
        return _narrowed(at)
    grow = max(0, min(36, (sheet.width - 120) // 2))
    shift = max(0, min(labels, 20) - 8)
    return _Columns(2, 16 + shift, 18 + shift, 40 + grow, 47 + grow, 55 + grow, 63 + grow, 70 + grow, 77 + grow,
                    81 + grow, 87 + grow, 91 + grow, sheet.right)  # fmt: skip


def _narrowed(at: _Columns) -> _Columns:
    """Without the columns that would run into the age; 0 is not drawn."""
    last = at.age - _AGE
    names = ("free", "used", "cache", "busy", "temperature", "power")
    gone = {name: 0 for name in names if getattr(at, name) > last}
    return replace(at, **gone, pinned=at.pinned if at.pinned + _PINNED <= last else 0)


def _heads(line: Line, at: _Columns, glance: Glance) -> None:
    if glance.boxed:
        line.put(at.label, "host", DIM)
    line.right(at.total, "GiB", DIM)
    plain = glance.ascii or glance.no_colour
    if at.bar_end - at.bar >= 14:
        after = line.put(at.bar, "#" if plain else "▌", Ink("fill"))
        after = line.put(after, "used", DIM)
        after = line.put(after + 1, "=" if plain else "▌", Ink("fill2"))
        line.put(after, "cache", DIM)
    degree = "C" if glance.ascii else "°C"
    for edge, word in ((at.free, "free"), (at.used, "used"), (at.cache, "cache"), (at.swap, "swap"),
                       (at.busy, "busy%" if glance.boxed else "gpu%"), (at.temperature, degree), (at.power, "W"),
                       (at.age, "age")):  # fmt: skip
        if edge:
            line.right(edge, word, DIM)
    if at.pinned:
        line.put(at.pinned, "pinned", DIM)
    if glance.wide and at.age - at.pinned > _HISTORY_FROM + 20:
        line.put(at.pinned + _HISTORY_FROM, "free of the host, last 10 min", DIM, to=at.age - 5)


def _history(line: Line, at: _Columns, pool: Pool, glance: Glance) -> None:
    start, end = at.pinned + _HISTORY_FROM, at.age - 9
    count = 2 * (end - start)
    samples = resample(pool.history, glance.now, HISTORY / count, count)
    drawn = plot(samples, end - start, 1, top_of(samples, None, 1), plain=glance.ascii, quiet=pool.dim)
    line.spans(start, drawn[0])


def _pool(line: Line, at: _Columns, pool: Pool, glance: Glance) -> None:
    base = DIM if pool.dim else TEXT
    label = cut_middle(glance.signs.words(pool.label), at.bar - 1 - at.label - 6, glance.signs.dots)
    line.put(at.label, label, DIM if pool.dim else BOLD)
    line.right(at.total, fmt.gib(pool.total, 6), DIM)
    share = None if not pool.total or pool.used is None else pool.used / pool.total
    cache = 0.0 if not pool.total or pool.cache is None else pool.cache / pool.total
    parts = Parts(share, cache, pool.mark, passed=bool(pool.short), quiet=pool.dim)
    line.spans(at.bar, bar(parts, at.bar_end - at.bar, plain=glance.ascii or glance.no_colour))
    # This grid has no cell for what is available, so the chip stands on what is free.
    if at.free:
        line.right(at.free, fmt.gib(pool.free, 6), CHIP_ACT if pool.short else DIM if pool.dim else BRIGHT)
    for edge, value in ((at.used, pool.used), (at.cache, pool.cache)):
        if edge:
            line.right(edge, fmt.gib(value, 6), base)
    line.right(at.age, pool.age.text, pool.age.ink, start=at.bar_end, age=True)
    if pool.problem:
        word, _, rest = pool.problem.partition(" ")
        ink = LOOK if word in ("UNREACHABLE", "FAILED") else TEXT
        line.words((at.cache or at.free) + 2, (word, ink), (rest, DIM), to=at.age - 13)
        return
    if glance.wide and at.age - at.pinned > _HISTORY_FROM + 20 and pool.history:
        _history(line, at, pool, glance)
    if at.swap:
        line.right(at.swap, fmt.gib(pool.swap, 5), base)
    if pool.fault:
        line.right(at.power or at.age - _AGE, pool.fault, DIM if pool.dim else CHIP_ACT, start=at.swap or at.cache)
    else:
        _gpu_figures(line, at, pool, base)
    if not at.pinned:
        return
    unit = "GiB" if pool.pinned is not None and glance.boxed else ""
    line.words(at.pinned, (fmt.gib(pool.pinned), base), (unit, DIM), to=at.age - 6)


def _gpu_figures(line: Line, at: _Columns, pool: Pool, base: Ink) -> None:
    for edge, value, width in (
        (at.busy, pool.busy, 4),
        (at.temperature, pool.temperature, 3),
        (at.power, pool.power, 5),
    ):
        if edge:
            line.right(edge, fmt.number(value, 0, width), base)
