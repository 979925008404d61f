"""The grid: the pictures' rows at their sizes, and no overlap at any size."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from screens.grid import Place, Wish, grid
from widgets.glance import Layout, layout_for

RANKS = Wish(
    ("nodes", "containers", "download", "rows", "lane", "decode", "kv", "events", "log"), nodes=4, containers=4
)
"""A fleet in this version: containers stand where download and row copies will."""
FLEET = Wish(("nodes", "download", "rows", "lane", "decode", "kv", "events", "log"), nodes=4)
STATION = Wish(("nodes", "containers", "lane", "decode", "kv", "events", "log"), nodes=2, containers=2)


def test_80x24_is_the_picture() -> None:
    places = grid(80, 24, FLEET)
    rows = {name: (place.y, place.height) for name, place in places.items()}
    assert rows == {
        **{"header": (0, 1), "lamps": (1, 2), "rail": (3, 1), "alarm": (4, 1), "nodes": (6, 5)},
        **{"download": (12, 1), "rows": (13, 1), "lane": (14, 1), "decode": (15, 1), "kv": (16, 1)},
        **{"events": (18, 3), "next": (21, 1), "keys": (22, 2)},
    }
    assert all(place.width == 80 and place.x == 0 for place in places.values())


def test_120x40_is_the_picture() -> None:
    places = grid(120, 40, FLEET)
    assert places["rail"] == Place(0, 4, 120, 1)
    assert places["alarm"] == Place(0, 5, 120, 1)
    assert places["nodes"] == Place(0, 6, 120, 7)
    assert (places["download"], places["rows"]) == (Place(0, 13, 60, 8), Place(60, 13, 60, 8))
    assert [places[n] for n in ("lane", "decode", "kv")] == [Place(x, 21, 40, 8) for x in (0, 40, 80)]
    assert (places["events"], places["log"]) == (Place(0, 29, 60, 8), Place(60, 29, 60, 8))
    assert (places["next"], places["keys"]) == (Place(0, 37, 120, 1), Place(0, 38, 120, 2))


def test_120x40_of_the_station() -> None:
    places = grid(120, 40, STATION)
    assert places["nodes"] == Place(0, 6, 120, 5)
    assert places["containers"] == Place(0, 11, 120, 6)
    assert "download" not in places


def test_120x40_of_the_ranks_moves_no_other_pane() -> None:
    """What takes the second row now and in the next version is as high."""
    now, then = grid(120, 40, RANKS), grid(120, 40, FLEET)
    assert now.pop("containers") == Place(0, 13, 120, 8)
    assert {name: then[name] for name in now} == now
    assert set(then) - set(now) == {"download", "rows"}


def test_80x24_of_the_ranks_keeps_the_events() -> None:
    places = grid(80, 24, RANKS)
    assert [(places[name].y, places[name].height) for name in ("nodes", "containers", "lane", "decode", "kv")] == [
        *((6, 5), (12, 1), (13, 1), (14, 1), (15, 1))
    ]
    assert (places["events"].y, places["events"].height) == (17, 4)


def test_a_taller_small_terminal_has_the_whole_table_then_what_is_not_read() -> None:
    assert [grid(80, rows, RANKS)["containers"].height for rows in (24, 27, 28, 32)] == [1, 1, 5, 5]
    assert [name for name in ("download", "rows") if name in grid(80, 32, RANKS)] == ["download", "rows"]


def test_200x60_has_all_three_beside_each_other() -> None:
    places = grid(200, 60, RANKS)
    assert places["nodes"] == Place(0, 6, 200, 12)
    assert [places[n] for n in ("containers", "download", "rows")] == [
        *(Place(0, 18, 120, 8), Place(120, 18, 40, 8), Place(160, 18, 40, 8))
    ]
    assert [places[n] for n in ("lane", "decode", "kv")] == [
        *(Place(0, 26, 66, 14), Place(66, 26, 66, 14), Place(132, 26, 68, 14))
    ]
    assert (places["events"], places["log"]) == (Place(0, 40, 100, 17), Place(100, 40, 100, 17))


@pytest.mark.parametrize("rows", range(24, 70))
@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_table_of_containers_has_room_for_a_row(columns: int, rows: int) -> None:
    for hosts in (1, 4, 5, 8, 16, 32, 256):
        height = grid(columns, rows, Wish(RANKS.panes, hosts, hosts))["containers"].height
        assert height == 1 or height >= (5 if layout_for(columns, rows) is not Layout.SMALL else 2), (hosts, height)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (200, 60), (20, 5)])
def test_zoom_gives_one_pane_the_whole_middle(size: tuple[int, int]) -> None:
    places = grid(*size, FLEET, "kv")
    assert set(places) <= {"header", "lamps", "rail", "alarm", "next", "keys", "kv"}
    assert places["kv"].width == size[0]


@given(
    columns=st.integers(1, 300),
    rows=st.integers(1, 120),
    hosts=st.integers(1, 300),
    containers=st.integers(0, 40),
    kind=st.sampled_from([STATION, FLEET, RANKS]),
    zoomed=st.sampled_from(["", "nodes", "kv"]),
)
def test_everything_has_room_of_its_own_on_every_terminal(
    columns: int, rows: int, hosts: int, containers: int, kind: Wish, zoomed: str
) -> None:
    wish = Wish(kind.panes, hosts, containers)
    places = grid(columns, rows, wish, zoomed)
    for place in places.values():
        assert place.width > 0 and place.height > 0
        assert 0 <= place.x and place.x + place.width <= columns
        assert 0 <= place.y and place.y + place.height <= rows
    for (one, a), (other, b) in combinations(places.items(), 2):
        apart = a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
        assert apart, (one, a, other, b)
    assert "keys" in places
    if rows >= 24:
        assert {"header", "lamps", "rail", "alarm", "next", "keys"} <= set(places)
        assert places["keys"].height == 2 and places["lamps"].height == 2
        if not zoomed:
            assert {"nodes", "lane", "decode", "kv"} <= set(places)
    if rows >= 5:
        assert "alarm" in places
