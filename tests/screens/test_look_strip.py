"""Committed pictures of the strip and of what stands around it while something runs.

`pytest tests/screens/test_look_strip.py --snapshot-update` draws them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import strips
from fixed import FixedSource, until
from strips import FakeHands, under_way
from textual.pilot import Pilot

from console.actions.strip import Phase
from console.app import LaneswapApp
from console.execution.policy import Situation
from screens import strip as strip_screen

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


STOPS = replace(strips.SWITCH, verb="stop")
"""What runs in the pictures, unless its key asks for calm: only B and S end something, S not what runs already."""


def app_for(
    monkeypatch: pytest.MonkeyPatch, situation: Situation, no_colour: bool = False, runs: bool = True, **options: Any
) -> LaneswapApp:
    if no_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(strip_screen.secrets, "choice", lambda letters: "k")
    return LaneswapApp(FixedSource(under_way(operation=STOPS if runs else None)), hands=FakeHands(situation), **options)


def held(key: str) -> Callable[[Pilot[None]], Any]:
    """Press a guarded key and hold the strip still right after its dead time."""

    async def press(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, LaneswapApp)
        await until(pilot, lambda: app.hands is not None)
        if not key:
            return
        await pilot.press(key)
        strip = app.desk._strip
        assert strip is not None
        await until(pilot, lambda: strip.phase in (Phase.ARMED, Phase.TYPING))
        assert app.desk._timer is not None
        app.desk._timer.pause()
        strip.left = min(strip.left, 2.4)
        app.desk._draw()
        app.tick()
        await pilot.pause()

    return press


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("mode", list(MODES))
def test_rolling_back(mode: str, size: tuple[int, int], snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_for(monkeypatch, strips.IN_WINDOW, **MODES[mode])
    assert snap_compare(app, terminal_size=size, run_before=held("B"))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("key", "situation"), [("S", "IN_WINDOW"), ("R", "NO_WINDOW"), ("B", "GLASS"), ("w", "NO_WINDOW")]
)
def test_other_strips(
    key: str, situation: str, size: tuple[int, int], snap_compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_for(monkeypatch, getattr(strips, situation), runs=key == "B")
    assert snap_compare(app, terminal_size=size, run_before=held(key))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_while_a_stop_runs(size: tuple[int, int], snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    assert snap_compare(app_for(monkeypatch, strips.IN_WINDOW), terminal_size=size, run_before=held(""))
