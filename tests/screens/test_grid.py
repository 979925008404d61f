"""The grid: the pictures' rows at their sizes, and no overlap at any size."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from screens.grid import Place, Wish, grid
from widgets.glance import Layout, layout_for

FLEET = Wish(
    (
        *("nodes", "download", "rows", "containers", "wayback", "lane", "decode", "kv", "events", "log"),
        *("watchdog", "drift"),
    ),
    nodes=4,
    containers=4,
)
STATION = Wish(
    ("nodes", "containers", "wayback", "lane", "decode", "kv", "events", "log", "watchdog"),
    nodes=2,
    containers=2,
    by_memory=True,
)
FETCHING = Wish(("nodes", "download", "containers", "wayback", *STATION.panes[3:]), nodes=2, containers=2)
"""One host with a download: the way back stands beside it."""


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


def test_120x40_of_one_host_with_a_download() -> None:
    places = grid(120, 40, FETCHING)
    assert (places["download"], places["wayback"]) == (Place(0, 11, 60, 8), Place(60, 11, 60, 8))
    assert "containers" not in places


def test_200x60_is_the_picture_with_watchdog_and_drift_between_events_and_log() -> None:
    places = grid(200, 60, FLEET)
    assert places["nodes"] == Place(0, 6, 200, 12)
    assert [places[n] for n in ("download", "rows", "wayback")] == [
        *(Place(0, 18, 66, 13), Place(66, 18, 66, 13), Place(132, 18, 68, 13))
    ]
    assert [places[n] for n in ("lane", "decode", "kv")] == [
        *(Place(0, 31, 66, 14), Place(66, 31, 66, 14), Place(132, 31, 68, 14))
    ]
    assert [places[n] for n in ("events", "watchdog", "drift", "log")] == [
        *(Place(0, 45, 66, 12), Place(66, 45, 66, 6), Place(66, 51, 66, 6), Place(132, 45, 68, 12))
    ]


def test_200x60_of_the_station() -> None:
    places = grid(200, 60, STATION)
    assert (places["containers"], places["wayback"]) == (Place(0, 11, 120, 13), Place(120, 11, 80, 13))
    assert [places[n] for n in ("events", "watchdog", "log")] == [
        *(Place(0, 38, 66, 12), Place(0, 50, 66, 7), Place(66, 38, 134, 19))
    ]


def test_the_way_back_of_the_station_opens_as_in_the_picture() -> None:
    places = grid(120, 40, STATION, opened="wayback")
    assert places["wayback"] == Place(0, 17, 120, 13)
    assert [places[n] for n in ("lane", "decode", "kv")] == [Place(x, 30, 40, 7) for x in (0, 40, 80)]
    assert not {"events", "log"} & set(places)


@pytest.mark.parametrize("name", ["wayback", "watchdog", "drift", "containers"])
def test_an_opened_pane_takes_the_last_row_s_room_and_moves_nothing_above_it(name: str) -> None:
    rest, opened = grid(120, 40, FLEET), grid(120, 40, FLEET, opened=name)
    assert opened[name] == Place(0, 21, 120, 9)
    for above in ("nodes", "download", "rows", "header", "lamps", "rail", "alarm", "next", "keys"):
        assert opened[above] == rest[above]


def test_a_pane_that_has_its_place_is_not_opened() -> None:
    assert grid(200, 60, FLEET, opened="watchdog") == grid(200, 60, FLEET)
    assert grid(120, 40, FLEET, opened="nodes") == grid(120, 40, FLEET)


def test_without_frames_an_opened_pane_takes_the_whole_middle() -> None:
    places = grid(80, 24, FLEET, opened="drift")
    assert places["drift"] == Place(0, 5, 80, 16)
    assert set(places) == {"header", "lamps", "rail", "alarm", "next", "keys", "drift"}


def test_a_crowd_of_nodes_leaves_an_opened_pane_the_whole_middle() -> None:
    places = grid(120, 40, Wish(FLEET.panes, 256, 8), opened="drift")
    assert places["drift"].width == 120 and places["drift"].height >= 7


def test_a_taller_small_terminal_shows_what_has_no_row_of_its_own_then_the_containers() -> None:
    more = {rows: [n for n in ("watchdog", "drift", "wayback") if n in grid(80, rows, FLEET)] for rows in (24, 27, 33)}
    assert more == {24: [], 27: ["watchdog", "drift", "wayback"], 33: ["watchdog", "drift", "wayback"]}
    assert ["containers" in grid(80, rows, FLEET) for rows in (24, 27, 33)] == [False, False, True]
    assert grid(80, 24, STATION)["containers"].height == 3


@pytest.mark.parametrize("rows", range(24, 70))
@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_table_of_containers_has_room_for_a_row(columns: int, rows: int) -> None:
    for hosts in (1, 4, 5, 8, 16, 32, 256):
        place = grid(columns, rows, Wish(STATION.panes, hosts, hosts)).get("containers")
        least = 5 if layout_for(columns, rows) is not Layout.SMALL else 2
        assert place is None or place.height == 1 or place.height >= least, (hosts, place)


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
    kind=st.sampled_from([STATION, FLEET, FETCHING]),
    zoomed=st.sampled_from(["", "nodes", "kv"]),
    opened=st.sampled_from(["", "nodes", "watchdog", "wayback", "log"]),
)
def test_everything_has_room_of_its_own_on_every_terminal(
    columns: int, rows: int, hosts: int, containers: int, kind: Wish, zoomed: str, opened: str
) -> None:
    wish = Wish(kind.panes, hosts, containers)
    places = grid(columns, rows, wish, zoomed, opened)
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
        if opened and not zoomed:
            assert opened in places
        elif not zoomed:
            assert {"nodes", "lane", "decode", "kv"} <= set(places)
    if rows >= 5:
        assert "alarm" in places
