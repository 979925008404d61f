"""Where every bar and pane stands, for any size of terminal. Pure: sizes in, places out.

From 80x24 up header, lamps, rail, alarm, NEXT and key line always have their rows. Below that the least urgent goes
first, and what is left is the alarm line, the pane in focus and one row of keys: it degrades, it never refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from widgets.glance import Layout, layout_for

BARS = ("header", "lamps", "rail", "alarm", "next", "keys")
ONE_ROW = ("download", "rows", "lane", "decode", "kv", "watchdog", "drift", "wayback")
"""Panes that can be one row each in the small layout."""
LEAST_EVENTS = 3
"""Rows of events that nothing else takes."""
LEAST_OPEN = 7
"""Rows that a pane which is opened between the others needs; with less it takes the whole middle."""
_SIDE = ("watchdog", "drift")
"""Panes that stand beside events and log where there is room for history."""


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
    """In the order in which they stand."""
    nodes: int
    """Rows of the nodes table, without titles."""
    containers: int = 0
    """Rows of the containers table, without titles."""
    by_memory: bool = False
    """The nodes pane has a row for each memory: at 200 columns no second one for each host."""


def grid(columns: int, rows: int, wish: Wish, zoomed: str = "", opened: str = "") -> dict[str, Place]:
    """The place of everything that is shown; what is not named is not shown.

    A pane that has no place of its own is opened between the others: the last row of panes makes room for it.
    """
    return dict(_grid(columns, rows, wish, zoomed, opened))


@lru_cache(maxsize=64)
def _grid(columns: int, rows: int, wish: Wish, zoomed: str, opened: str) -> dict[str, Place]:
    """The same four times a second, and another one only where the terminal or the lane changes."""
    columns, rows = max(1, columns), max(1, rows)
    layout = layout_for(columns, rows)
    places = _bars(columns, rows, layout)
    top, bottom = _pane_rows(rows, layout, places)
    if bottom <= top:
        return places
    if zoomed:
        return places | {zoomed: Place(0, top, columns, bottom - top)}
    small = layout is Layout.SMALL
    wide = layout is Layout.WIDE
    panes = _small(columns, top, bottom, wish) if small else _boxed(columns, top, bottom, wish, wide=wide)
    if not opened or opened in panes:
        return places | panes
    room = {} if small else _boxed(columns, top, bottom, wish, wide=wide, opened=opened)
    return places | (room or {opened: Place(0, top, columns, bottom - top)})


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


# --- unboxed ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Small:
    """What the middle of a small terminal holds."""

    table: bool
    """The containers as a table; one row otherwise, and none where the nodes table says the same of each rank."""
    more: bool
    """One row each for watchdog, drift and the way back."""
    blanks: bool
    """Blank rows between the blocks."""


_STAGED = (_Small(True, True, True), _Small(False, True, True), _Small(False, False, True),
           _Small(False, False, False))  # fmt: skip
_ALONE = (_Small(True, True, True), _Small(True, False, True), *_STAGED[1:])
"""From the roomiest; the last one is taken where nothing fits. What has a download names each rank's container."""
_MORE = ("watchdog", "drift", "wayback")
_FIRST_KEPT = ("lane", "decode", "kv", "containers", "rows", "download", *_MORE)


def _small(columns: int, top: int, bottom: int, wish: Wish) -> dict[str, Place]:
    """Unboxed sections: nodes, one row a subject, events; blank rows between only where there is room."""
    room = bottom - top
    forms = _STAGED if "download" in wish.panes else _ALONE
    form = next((form for form in forms if _needed(form, wish) <= room), forms[-1])
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
    left_out: tuple[str, ...] = () if form.more else _MORE
    if form.table or "download" in wish.panes:
        left_out += ("containers",)
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
    for name in sorted(ones, key=_FIRST_KEPT.index)[: max(0, left)]:
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


# --- in frames --------------------------------------------------------------------------------------------------------


def _boxed(columns: int, top: int, bottom: int, wish: Wish, *, wide: bool, opened: str = "") -> dict[str, Place]:
    """Frames in rows: nodes; what is prepared, or the containers; lane, decode, KV pool; events and log.

    With a pane opened it stands above the lane, and the last row makes room; empty where that is not enough.
    """
    second = _second_row(wish, wide=wide)
    heights = _boxed_heights(bottom - top, wish, second, wide=wide, opened=bool(opened))
    lines = [("nodes",), second, *([(opened,)] if opened else []), ("lane", "decode", "kv")]
    places: dict[str, Place] = {}
    y = top
    for line, height in zip(lines, heights, strict=False):
        x = 0
        for name, width in zip(line, _widths(columns, line), strict=True):
            places[name] = Place(x, y, width, height)
            x += width
        y += height
    if opened:
        return places if places[opened].height >= LEAST_OPEN else {}
    return places | _last_row(columns, y, heights[-1], [name for name in _SIDE if wide and name in wish.panes])


def _second_row(wish: Wish, *, wide: bool) -> tuple[str, ...]:
    """Download and row copies, or the containers; with room for history the way back beside them."""
    staged = tuple(name for name in ("download", "rows") if name in wish.panes)
    first: tuple[str, ...] = staged or tuple(name for name in ("containers",) if name in wish.panes)
    alone = len(staged) == 1
    return (*first, "wayback") if (wide or alone) and "wayback" in wish.panes else first


def _last_row(columns: int, y: int, height: int, side: Sequence[str]) -> dict[str, Place]:
    """Events and log; watchdog and drift stand over each other between them, one alone below the events."""
    if not side:
        events, log = _widths(columns, ("events", "log"))
        return {"events": Place(0, y, events, height), "log": Place(events, y, log, height)}
    left, middle, right = _widths(columns, ("events", "side", "log"))
    if len(side) == 1:
        below = min(7, height // 2)
        return {
            "events": Place(0, y, left, height - below),
            side[0]: Place(0, y + height - below, left, below),
            "log": Place(left, y, middle + right, height),
        }
    upper = height // 2
    return {
        "events": Place(0, y, left, height),
        side[0]: Place(left, y, middle, upper),
        side[1]: Place(left, y + upper, middle, height - upper),
        "log": Place(left + middle, y, right, height),
    }


def _widths(columns: int, line: Sequence[str]) -> list[int]:
    """Equal ones, the last takes what is over; containers need three fifths for their names."""
    if line == ("containers", "wayback"):
        return [3 * (columns // 5), columns - 3 * (columns // 5)]
    each = columns // max(1, len(line))
    return [*[each] * (len(line) - 1), columns - each * (len(line) - 1)] if line else []


def _boxed_heights(room: int, wish: Wish, line: Sequence[str], *, wide: bool, opened: bool) -> tuple[int, ...]:
    """Of each row of panes, from the top; the last takes what is over."""
    least = (13 if wide else 7, 14 if wide else 7, 8 if wide else 6)
    second = (13 if wide else 8) if line and line[0] == "download" else min(wish.containers, 8) + 4
    if wide and "wayback" in line:
        second = 13
    if not line:
        least, second = (0, *least[1:]), 0
    third = 14 if wide else 8
    twice = wide and not wish.by_memory
    nodes = wish.nodes * (2 if twice else 1) + (4 if twice else 3)
    nodes = max(5, min(nodes, room - sum(least)))
    left = room - nodes
    second = max(5, min(second, left - third - least[2])) if second else 0
    left -= second
    if opened:
        third = least[1]
        return nodes, second, left - third, third
    third = max(7, min(third, left - least[2]))
    return nodes, second, third, left - third
