"""Where every bar and pane stands, for any size of terminal. Pure: sizes in, places out.

From 80x24 up header, lamps, rail, alarm, NEXT and key line always have their rows. Below that the least urgent goes
first, and what is left is the alarm line, the pane in focus and one row of keys: it degrades, it never refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from widgets.glance import Layout, layout_for

BARS = ("header", "lamps", "rail", "alarm", "next", "keys")
ONE_ROW = ("download", "rows", "lane", "decode", "kv")
"""Panes that are one row each in the small layout."""
LEAST_EVENTS = 3
"""Rows of events that nothing else takes."""


@dataclass(frozen=True, slots=True)
class Place:
    """A rectangle of cells."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Wish:
    """What a lane's dashboard holds, and how many rows its tables would fill."""

    panes: tuple[str, ...]
    """In the order of their numbers."""
    nodes: int
    """Rows of the nodes table, without titles."""
    containers: int = 0
    """Rows of the containers table, without titles."""
    by_memory: bool = False
    """The nodes pane has a row for each memory: at 200 columns no second one for each host."""


def grid(columns: int, rows: int, wish: Wish, zoomed: str = "") -> dict[str, Place]:
    """The place of everything that is shown; what is not named is not shown."""
    columns, rows = max(1, columns), max(1, rows)
    layout = layout_for(columns, rows)
    places = _bars(columns, rows, layout)
    top, bottom = _pane_rows(rows, layout, places)
    if bottom <= top:
        return places
    if zoomed:
        return places | {zoomed: Place(0, top, columns, bottom - top)}
    if layout is Layout.SMALL:
        return places | _small(columns, top, bottom, wish)
    return places | _boxed(columns, top, bottom, wish, wide=layout is Layout.WIDE)


def _bars(columns: int, rows: int, layout: Layout) -> dict[str, Place]:
    if layout is not Layout.SMALL:
        heights = {"header": (0, 1), "lamps": (1, 2), "rail": (4, 1), "alarm": (5, 1)}
        heights |= {"next": (rows - 3, 1), "keys": (rows - 2, 2)}
        return {name: Place(0, y, columns, height) for name, (y, height) in heights.items()}
    sizes = {"header": 1, "lamps": 2, "rail": 1, "alarm": 1, "next": 1, "keys": 2}
    for name in ("rail", "next", "lamps", "header"):
        if sum(sizes.values()) + 6 <= rows:
            break
        del sizes[name]
    if sum(sizes.values()) + 3 > rows:
        sizes["keys"] = 1
    if sum(sizes.values()) > rows:
        del sizes["alarm"]
    return _stacked(columns, rows, sizes)


def _stacked(columns: int, rows: int, sizes: Mapping[str, int]) -> dict[str, Place]:
    places: dict[str, Place] = {}
    y = 0
    for name in ("header", "lamps", "rail", "alarm"):
        if name in sizes:
            places[name] = Place(0, y, columns, sizes[name])
            y += sizes[name]
    y = rows
    for name in ("keys", "next"):
        if name in sizes:
            y -= sizes[name]
            places[name] = Place(0, y, columns, sizes[name])
    return places


def _pane_rows(rows: int, layout: Layout, places: Mapping[str, Place]) -> tuple[int, int]:
    if layout is not Layout.SMALL:
        return 6, rows - 3
    above = [place for name, place in places.items() if name in ("header", "lamps", "rail", "alarm")]
    below = [place for name, place in places.items() if name in ("next", "keys")]
    top = max((place.y + place.height for place in above), default=0)
    return top, min((place.y for place in below), default=rows)


@dataclass(frozen=True, slots=True)
class _Small:
    """What the middle of a small terminal holds."""

    table: bool
    """The containers as a table; one row otherwise."""
    unread: bool
    """Download and row copies, which this version does not read."""
    blanks: bool
    """Blank rows between the blocks."""


_SMALL = (_Small(True, True, True), _Small(True, False, True), _Small(False, True, True), _Small(False, False, True),
          _Small(False, False, False))  # fmt: skip
"""From the roomiest; the last one is taken where nothing fits."""


def _small(columns: int, top: int, bottom: int, wish: Wish) -> dict[str, Place]:
    """Unboxed sections: nodes, one row a subject, events; blank rows between only where there is room."""
    room = bottom - top
    form = next((form for form in _SMALL if _needed(form, wish) <= room), _SMALL[-1])
    tables = [name for name in wish.panes if name == "containers" and form.table]
    ones = _one_row_panes(form, wish)
    gaps = 3 + len(tables) if form.blanks else 0
    heights = _small_heights(room - gaps, wish, ones, tables)
    blocks: list[tuple[str, ...]] = [("nodes",), *[(name,) for name in tables], tuple(ones), ("events",), ("log",)]
    places: dict[str, Place] = {}
    y = top + (1 if form.blanks else 0)
    for block in blocks:
        shown = [name for name in block if heights.get(name, 0) > 0 and name in wish.panes]
        for name in shown:
            places[name] = Place(0, y, columns, min(heights[name], bottom - y))
            y += heights[name]
        y += 1 if form.blanks and shown and block[0] not in ("events", "log") else 0
    return {name: place for name, place in places.items() if place.height > 0}


def _one_row_panes(form: _Small, wish: Wish) -> list[str]:
    left_out: tuple[str, ...] = ("containers",) if form.table else ()
    if not form.unread and "containers" in wish.panes:
        left_out += ("download", "rows")
    return [name for name in wish.panes if name in ("containers", *ONE_ROW) and name not in left_out]


def _needed(form: _Small, wish: Wish) -> int:
    tables = [name for name in wish.panes if name == "containers" and form.table]
    blanks = 3 + len(tables) if form.blanks else 0
    return wish.nodes + 1 + _table_rows(wish, tables) + len(_one_row_panes(form, wish)) + LEAST_EVENTS + blanks


def _table_rows(wish: Wish, tables: Sequence[str]) -> int:
    return 1 + max(1, wish.containers) if tables else 0


def _small_heights(room: int, wish: Wish, ones: Sequence[str], tables: Sequence[str]) -> dict[str, int]:
    heights = {"nodes": min(wish.nodes + 1, max(2, room // 2))}
    left = room - heights["nodes"]
    wanted_first = sorted(ones, key=("lane", "decode", "kv", "containers", "rows", "download").index)
    for name in wanted_first[: max(0, left)]:
        heights[name] = 1
    left -= min(len(ones), max(0, left))
    if tables and left >= 2:
        heights["containers"] = min(_table_rows(wish, tables), max(2, left - LEAST_EVENTS))
        left -= heights["containers"]
    if left >= 1:
        heights["events"] = left if left < 12 else left // 2
        left -= heights["events"]
    if left >= 6:
        heights["log"] = left - 1
    return heights


def _boxed(columns: int, top: int, bottom: int, wish: Wish, *, wide: bool) -> dict[str, Place]:
    """Frames in rows: nodes; containers, or download and row copies; lane, decode, KV pool; events and log."""
    lines = (("nodes",), _second_row(wish, wide=wide), ("lane", "decode", "kv"), ("events", "log"))
    heights = _boxed_heights(bottom - top, wish, wide=wide)
    places: dict[str, Place] = {}
    y = top
    for line, height in zip(lines, heights, strict=True):
        x = 0
        for name, width in zip(line, _widths(columns, line), strict=True):
            places[name] = Place(x, y, width, height)
            x += width
        y += height
    return places


def _second_row(wish: Wish, *, wide: bool) -> tuple[str, ...]:
    """Download and row copies stand beside the containers where there is room for all three, else for one subject."""
    both = tuple(name for name in ("download", "rows") if name in wish.panes)
    if "containers" not in wish.panes:
        return both
    return ("containers", *both) if wide else ("containers",)


def _widths(columns: int, line: Sequence[str]) -> list[int]:
    """Equal ones, the last takes what is over; containers need three fifths for their names."""
    if len(line) == 3 and line[0] == "containers":
        return [columns - 2 * (columns // 5), columns // 5, columns // 5]
    each = columns // max(1, len(line))
    return [*[each] * (len(line) - 1), columns - each * (len(line) - 1)] if line else []


def _boxed_heights(room: int, wish: Wish, *, wide: bool) -> tuple[int, int, int, int]:
    least = (13, 14, 8) if wide else (7, 7, 6)
    second = min(wish.containers, 8) + 4 if "containers" in wish.panes else 8
    if not _second_row(wish, wide=wide):
        least, second = (0, *least[1:]), 0
    third = 14 if wide else 8
    twice = wide and not wish.by_memory
    nodes = wish.nodes * (2 if twice else 1) + (4 if twice else 3)
    nodes = max(5, min(nodes, room - least[0] - least[1] - least[2]))
    left = room - nodes
    second = max(5, min(second, left - third - least[2])) if second else 0
    left -= second
    third = max(7, min(third, left - least[2]))
    return nodes, second, third, left - third
