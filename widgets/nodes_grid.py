"""Columns of the nodes pane at each width. Right edges are exclusive; 0 means that the column is not there."""

from __future__ import annotations

from dataclasses import dataclass

from widgets.glance import Layout


@dataclass(frozen=True, slots=True)
class Grid:
    """Where each cell of a node's row stands."""

    host: int
    bar: int
    bar_end: int
    free: int
    avail: int
    cache: int
    swap: int
    gpu: int
    temperature: int
    watt: int
    clock: int
    container: int
    rank: int
    drift: int
    age: int
    history: int = 0
    history_end: int = 0
    short_rank: bool = False


_SMALL = Grid(1, 4, 16, 21, 27, 33, 0, 38, 41, 0, 46, 48, 58, 68, 79, short_rank=True)
_BOXED = Grid(2, 8, 32, 39, 46, 53, 59, 65, 69, 73, 79, 82, 93, 107, 118)
_WIDE = Grid(2, 9, 45, 53, 60, 67, 73, 80, 85, 90, 96, 100, 116, 129, 198, 144, 189)

_BAR_GROWS = 24
_NAMES = {Layout.SMALL: 8, Layout.BOXED: 16, Layout.WIDE: 20}


def grid_for(layout: Layout, width: int, names: int) -> Grid:
    """The grid for a pane of `width` cells whose longest host name takes `names` cells."""
    if layout is Layout.WIDE and width >= 190:
        base, nominal = _WIDE, 200
    elif layout is Layout.SMALL:
        base, nominal = _SMALL, 80
    else:
        base, nominal = _BOXED, 120
    extra = width - nominal
    wider_bar = max(0, min(_BAR_GROWS, extra // 2))
    after = max(0, extra - wider_bar) // 3
    bar_at = max(base.bar, base.host + min(names, _NAMES[layout]) + 1)
    return Grid(
        base.host,
        bar_at,
        base.bar_end + wider_bar,
        base.free + wider_bar,
        base.avail + wider_bar,
        base.cache + wider_bar,
        base.swap + wider_bar if base.swap else 0,
        base.gpu + wider_bar,
        base.temperature + wider_bar,
        base.watt + wider_bar if base.watt else 0,
        base.clock + wider_bar,
        base.container + wider_bar,
        base.rank + wider_bar + after,
        base.drift + wider_bar + 2 * after,
        base.age + extra,
        base.history + wider_bar + 2 * after if base.history else 0,
        base.history_end + extra if base.history else 0,
        base.short_rank,
    )
