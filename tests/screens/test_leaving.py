"""What `q` says that it leaves behind."""

from __future__ import annotations

from dataclasses import replace

import strips

from console.readings.acting_types import Acting
from console.snapshot import Snapshot
from screens.leaving import left_behind

HOME = "q again leaves: "


def of(snapshot: Snapshot, *carries: str, mine: bool = True) -> str:
    return left_behind(snapshot, carries, lambda lane: mine and lane == "dsv41")


def with_acting(**changes: object) -> Snapshot:
    snapshot = strips.under_way()
    lane = snapshot.lanes[0]
    assert lane.acting is not None and isinstance(lane.acting.value, Acting)
    acting = replace(lane.acting, value=replace(lane.acting.value, **changes))  # type: ignore[arg-type]
    return replace(snapshot, lanes=(replace(lane, acting=acting), *snapshot.lanes[1:]))


def test_what_goes_on_and_what_does_not_is_said_in_one_line() -> None:
    words = of(strips.under_way())
    assert words.startswith(HOME) and "\n" not in words
    assert "rollback of dsv41 goes on on n1" in words
    assert "the window of dsv41 stays open until 22:13:58Z, its lease runs out in 60 s" in words
    assert "the watchdog of dsv41 stays off" in words


def test_what_this_console_carries_out_is_cut() -> None:
    words = of(strips.under_way(), "dsv41")
    assert words.startswith("q again cuts dsv41 after the step under way (HALF DONE): this console carries it out")
    assert "goes on" not in words


def test_nothing_is_asked_where_nothing_of_ours_is_left() -> None:
    assert of(with_acting(window=None, debts=(), operation=None)) == ""
    assert of(strips.under_way(), mine=False) == "", "what others do needs no word of ours"
