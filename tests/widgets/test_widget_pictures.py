"""Whole panes as text, beside files that were looked at once; run this file to write them anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pictures import CRIT, DOWN_LAMPS, PICTURES, STALE, glance
from rich.cells import cell_len

from widgets import (
    bars,
    containers,
    decode,
    download,
    drift,
    events,
    kv,
    lane,
    log,
    nodes,
    rowcopies,
    watchdog,
    wayback,
)
from widgets.glance import Glance
from widgets.ink import Row, text_of

GOLDEN = Path(__file__).parent / "golden"
SIZES = ((80, 24), (120, 40), (200, 60))
MODES = ("unicode", "ascii")

Draw = Callable[[Glance, int, int], tuple[Row, ...]]

_BARS: dict[str, Draw] = {
    "header": lambda g, w, h: (bars.header(g, w),),
    "lamps": lambda g, w, h: bars.lamp_rows(g, w),
    "rail": lambda g, w, h: (bars.rail(g, w),),
    "alarm": lambda g, w, h: (bars.alarm_line(g, w),),
    "next": lambda g, w, h: (bars.next_line(g, w),),
    "keys": lambda g, w, h: bars.key_rows(g, w),
}
_PANES: dict[str, tuple[Draw, dict[int, tuple[int, int]]]] = {
    "nodes": (nodes.rows, {80: (80, 5), 120: (120, 7), 200: (200, 12)}),
    "download": (download.rows, {80: (80, 1), 120: (60, 8), 200: (66, 13)}),
    "row copies": (rowcopies.rows, {80: (80, 1), 120: (60, 8), 200: (66, 13)}),
    "way back": (wayback.rows, {80: (80, 1), 120: (120, 9), 200: (68, 13)}),
    "watchdog": (watchdog.rows, {80: (80, 1), 120: (120, 9), 200: (66, 6)}),
    "drift": (drift.rows, {80: (80, 1), 120: (120, 9), 200: (66, 6)}),
    "containers": (containers.rows, {80: (80, 1), 120: (120, 8), 200: (120, 8)}),
    "containers, more room": (containers.rows, {80: (80, 5), 120: (120, 6), 200: (200, 8)}),
    "lane": (lane.rows, {80: (80, 1), 120: (40, 8), 200: (66, 14)}),
    "decode": (decode.rows, {80: (80, 1), 120: (40, 8), 200: (66, 14)}),
    "kv": (kv.rows, {80: (80, 1), 120: (40, 8), 200: (68, 14)}),
    "events": (events.rows, {80: (80, 3), 120: (60, 8), 200: (100, 12)}),
    "log": (log.rows, {80: (80, 7), 120: (60, 8), 200: (100, 12)}),
}


def glance_of(picture: str, columns: int, rows: int, *, ascii_only: bool = False) -> Glance:
    """The glance at one picture."""
    shown = glance(PICTURES[picture](), columns, rows, ascii=ascii_only, no_colour=ascii_only)
    if picture == "trouble":
        shown = replace(shown, lamps=DOWN_LAMPS, alarms=(CRIT, STALE))
    return shown


def drawn(shown: Glance, columns: int) -> list[tuple[str, int, tuple[Row, ...]]]:
    """Every bar and pane: name, width, rows."""
    blocks = [(name, columns, draw(shown, columns, 2)) for name, draw in _BARS.items()]
    for name, (draw, sizes) in _PANES.items():
        width, height = sizes[columns]
        rows = draw(shown, width, height)
        assert len(rows) == height, name
        blocks.append((name, width, rows))
    return blocks


def as_text(shown: Glance, columns: int) -> str:
    """All blocks under their names; the right edge is marked, so that trailing blanks count."""
    lines = []
    for name, _, rows in drawn(shown, columns):
        lines.append(f"# {name}")
        lines += [text_of(row) + "¶" for row in rows]
    return "\n".join(lines) + "\n"


def _file(picture: str, columns: int, mode: str) -> Path:
    return GOLDEN / f"{picture}-{columns}-{mode}.txt"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("columns", "rows"), SIZES)
@pytest.mark.parametrize("picture", PICTURES)
def test_every_row_is_as_it_was_looked_at(picture: str, columns: int, rows: int, mode: str) -> None:
    shown = glance_of(picture, columns, rows, ascii_only=mode == "ascii")
    assert as_text(shown, columns) == _file(picture, columns, mode).read_text(encoding="utf-8")


@pytest.mark.parametrize("columns", [80, 83, 99, 119, 120, 121, 137, 160, 199, 200, 240, 300])
@pytest.mark.parametrize("picture", PICTURES)
def test_every_row_is_exactly_as_wide_as_its_pane(picture: str, columns: int) -> None:
    shown = glance_of(picture, columns, 60 if columns >= 200 else 40 if columns >= 120 else 24)
    for height in (1, 2, 3, 5, 8, 14):
        for name, (draw, _) in _PANES.items():
            rows = draw(shown, columns, height)
            assert len(rows) == height, name
            assert {cell_len(text_of(row)) for row in rows} == {columns}, name
    for name, draw in _BARS.items():
        assert {cell_len(text_of(row)) for row in draw(shown, columns, 2)} == {columns}, name


@pytest.mark.parametrize(("columns", "rows"), SIZES)
@pytest.mark.parametrize("picture", PICTURES)
def test_ascii_is_ascii(picture: str, columns: int, rows: int) -> None:
    assert as_text(glance_of(picture, columns, rows, ascii_only=True), columns).replace("¶", "").isascii()


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("columns", [80, 120, 200])
def test_nothing_unknown_is_written_as_a_number(picture: str, columns: int) -> None:
    text = as_text(glance_of(picture, columns, 60 if columns == 200 else 40 if columns == 120 else 24), columns)
    for lie in ("nan", "None", "inf"):
        assert lie not in text


def _write() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for picture in PICTURES:
        for columns, rows in SIZES:
            for mode in MODES:
                shown = glance_of(picture, columns, rows, ascii_only=mode == "ascii")
                _file(picture, columns, mode).write_text(as_text(shown, columns), encoding="utf-8")


if __name__ == "__main__":
    _write()
