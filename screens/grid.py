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


def _small(columns: int, top: int, bottom: int, wish: Wish) -> dict[str, Place]:
    """Unboxed sections: nodes, one row a subject, events; blank rows between only where there is room."""
    ones = [name for name in wish.panes if name in ONE_ROW]
    tables = [name for name in wish.panes if name == "containers"]
    room = bottom - top
    gaps = 3 + len(tables)
    blanks = room >= wish.nodes + 1 + len(ones) + _table_rows(wish, tables) + 3 + gaps
    blocks: list[tuple[str, ...]] = [("nodes",), *[(name,) for name in tables], tuple(ones), ("events",), ("log",)]
    heights = _small_heights(room - (gaps if blanks else 0), wish, ones, tables)
    places: dict[str, Place] = {}
    y = top + (1 if blanks else 0)
    for block in blocks:
        shown = [name for name in block if heights.get(name, 0) > 0 and name in wish.panes]
        for name in shown:
            places[name] = Place(0, y, columns, min(heights[name], bottom - y))
            y += heights[name]
        y += 1 if blanks and shown and block[0] in ("nodes", "containers", *ones) else 0
    return {name: place for name, place in places.items() if place.height > 0}


def _table_rows(wish: Wish, tables: Sequence[str]) -> int:
    return 1 + min(4, max(1, wish.containers)) if tables else 0


def _small_heights(room: int, wish: Wish, ones: Sequence[str], tables: Sequence[str]) -> dict[str, int]:
    heights = {"nodes": min(wish.nodes + 1, max(2, room // 2))}
    left = room - heights["nodes"]
    wanted_first = sorted(ones, key=("lane", "decode", "kv", "rows", "download").index)
    for name in wanted_first[: max(0, left)]:
        heights[name] = 1
    left -= min(len(ones), max(0, left))
    if tables and left >= 2:
        # Events keep three rows where there are three.
        heights["containers"] = min(_table_rows(wish, tables), max(2, left - 3))
        left -= heights["containers"]
    if left >= 1:
        heights["events"] = left if left < 12 else left // 2
        left -= heights["events"]
    if left >= 6:
        heights["log"] = left - 1
    return heights


def _boxed(columns: int, top: int, bottom: int, wish: Wish, *, wide: bool) -> dict[str, Place]:
    """Frames in rows: nodes; download and row copies, or containers; lane, decode, KV pool; events and log."""
    room = bottom - top
    second: tuple[str, ...] = ("containers",) if "containers" in wish.panes else ("download", "rows")
    lines: tuple[tuple[str, ...], ...] = (("nodes",), second, ("lane", "decode", "kv"), ("events", "log"))
    heights = _boxed_heights(room, wish, wide=wide)
    places: dict[str, Place] = {}
    y = top
    for line, height in zip(lines, heights, strict=True):
        x = 0
        for at, name in enumerate(line):
            width = columns - x if at == len(line) - 1 else columns // len(line)
            places[name] = Place(x, y, width, height)
            x += width
        y += height
    return places


def _boxed_heights(room: int, wish: Wish, *, wide: bool) -> tuple[int, int, int, int]:
    least = (13, 14, 8) if wide else (7, 7, 6)
    second = min(wish.containers, 8) + 4 if "containers" in wish.panes else (13 if wide else 8)
    third = 14 if wide else 8
    nodes = wish.nodes * (2 if wide else 1) + (4 if wide else 3)
    nodes = max(5, min(nodes, room - least[0] - least[1] - least[2]))
    left = room - nodes
    second = max(5, min(second, left - third - least[2]))
    left -= second
    third = max(7, min(third, left - least[2]))
    return nodes, second, third, left - third
