"""Committed pictures of the screen: what changes the look changes a file that a reviewer sees.

`pytest tests/screens/test_look.py --snapshot-update` draws them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pictures
import pytest
from fixed import FixedSource, two_lanes
from textual.pilot import Pilot

from console.app import LaneswapApp

SIZES = [(80, 24), (120, 40), (200, 60)]
MODES: dict[str, dict[str, Any]] = {
    "dark": {},
    "light": {"theme": "light"},
    "safe": {"theme": "safe"},
    "ascii": {"ascii": True},
    "no-colour": {"no_colour": True},
    "no-colour-ascii": {"no_colour": True, "ascii": True},
}
Compare = Callable[..., bool]


def app_for(picture: str, monkeypatch: pytest.MonkeyPatch, no_colour: bool = False, **options: Any) -> LaneswapApp:
    if no_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    return LaneswapApp(FixedSource(pictures.PICTURES[picture]()), **options)


def keys(*pressed: str) -> Callable[[Pilot[None]], Any]:
    async def press(pilot: Pilot[None]) -> None:
        await pilot.press(*pressed)
        await pilot.pause()

    return press


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("mode", list(MODES))
def test_all_well(mode: str, size: tuple[int, int], snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_for("spark4", monkeypatch, **MODES[mode])
    assert snap_compare(app, terminal_size=size, run_before=keys())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("picture", [name for name in pictures.PICTURES if name != "spark4"])
def test_pictures(picture: str, size: tuple[int, int], snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    assert snap_compare(app_for(picture, monkeypatch), terminal_size=size, run_before=keys())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "dark"])
@pytest.mark.parametrize("picture", ["neglected", "booting"])
def test_what_keeps_a_lane_alive_in_every_mode(
    picture: str, mode: str, size: tuple[int, int], snap_compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_for(picture, monkeypatch, **MODES[mode])
    assert snap_compare(app, terminal_size=size, run_before=keys())


@pytest.mark.parametrize("size", SIZES[:2], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["wayback", "watchdog", "drift", "containers", "download", "rows"])
def test_a_pane_that_is_opened_or_zoomed(
    name: str, size: tuple[int, int], snap_compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = ["z"] if name in ("download", "rows") else []
    pressed = keys(":", *f"focus {name}", "enter", *after)
    assert snap_compare(app_for("neglected", monkeypatch), terminal_size=size, run_before=pressed)


@pytest.mark.parametrize("name", ["download", "rows", "watchdog", "drift", "wayback", "lane"])
def test_the_explanation_of_a_pane(name: str, snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_for("neglected", monkeypatch)
    assert snap_compare(app, terminal_size=(80, 24), run_before=keys(":", *f"explain {name}", "enter"))


def test_another_lane_is_down(snap_compare: Compare) -> None:
    assert snap_compare(LaneswapApp(FixedSource(two_lanes())), terminal_size=(120, 40), run_before=keys("n"))


@pytest.mark.parametrize("mode", ["no-colour", "no-colour-ascii", "light"])
def test_trouble_without_hue(mode: str, snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_for("trouble", monkeypatch, **MODES[mode])
    assert snap_compare(app, terminal_size=(80, 24), run_before=keys())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    "key", ["?", "x", "l", "v", "z", "p", ":"], ids=["help", "explain", "log", "events", "zoom", "paused", "command"]
)
def test_after_a_key(key: str, size: tuple[int, int], snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    assert snap_compare(app_for("spark4", monkeypatch), terminal_size=size, run_before=keys(key))


@pytest.mark.parametrize("size", [(20, 5), (40, 12), (79, 23), (100, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_other_sizes(size: tuple[int, int], snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    assert snap_compare(app_for("trouble", monkeypatch), terminal_size=size, run_before=keys())


def test_a_rehearsal_says_so(snap_compare: Compare) -> None:
    app = LaneswapApp(FixedSource(replace(pictures.spark4(), rehearsal=True)))
    assert snap_compare(app, terminal_size=(120, 40), run_before=keys())


def test_every_zoomed_pane(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    assert snap_compare(app_for("spark4", monkeypatch), terminal_size=(80, 24), run_before=keys("6", "z"))
