"""Real keys on the embedded fleet: a window is opened, `B` and its letter lead back, until the old revision serves."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import told
from drills import BACK
from textual.pilot import Pilot

from console.actions.strip import Phase
from console.app import LaneswapApp
from console.headless import lane_settled
from console.readings.acting_types import OperationState
from console.readings.ledger import Kind
from console.readings.lights import LaneState
from console.rehearsal.source import RehearsalSource
from console.snapshot import LaneView

LIMIT = 120.0
LANE = "station"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told.look_often(monkeypatch)
    monkeypatch.setenv("LANESWAP_STATE", str(tmp_path / "own"))


@asynccontextmanager
async def console(folder: Path, speed: float) -> AsyncIterator[tuple[LaneswapApp, Pilot[None], RehearsalSource]]:
    source = RehearsalSource("station", speed)
    app = LaneswapApp(
        source,
        keymap=folder / "keys.toml",
        faults=folder / "faults.log",
        hands=lambda tell: source.hands(tell=tell),
    )
    async with app.run_test(size=(120, 40)) as pilot:
        yield app, pilot, source
    assert not (folder / "faults.log").exists(), (folder / "faults.log").read_text()


def text_of(app: LaneswapApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def until(app: LaneswapApp, pilot: Pilot[None], shows: Callable[[], object], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not shows():
        assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}\n{text_of(app)}"
        await pilot.pause(0.05)


def serving(app: LaneswapApp) -> bool:
    """By the picture that the strip goes by: one whose state flips is cancelled."""
    newest = app.timeline.newest
    return newest is not None and newest.lane(LANE).verdict.state is LaneState.SERVING


def in_a_window(app: LaneswapApp) -> bool:
    newest = app.timeline.newest
    acting = newest.lane(LANE).acting if newest is not None else None
    return acting is not None and acting.value is not None and acting.value.window is not None


async def test_a_window_then_b_and_its_letter_lead_back_until_the_old_revision_serves(tmp_path: Path) -> None:
    async with console(tmp_path, 60.0) as (app, pilot, source):

        def lane() -> LaneView:
            return source.snapshot().lane(LANE)

        async def typing() -> None:
            await until(app, pilot, lambda: (found := app.desk.glance()) and found.phase is Phase.TYPING, "it asks")

        await until(app, pilot, lambda: app.hands is not None, "there are hands")
        await until(app, pilot, lambda: lane_settled(source.snapshot(), lane()), "the lane was read")
        await until(app, pilot, lambda: serving(app) and "● BACK" in text_of(app), "the screen knows it")
        assert "REHEARSAL" in text_of(app)
        await pilot.press("w")
        await typing()
        assert "REHEARSAL" in text_of(app) and "OPEN A WINDOW FOR" in text_of(app)
        for answer in (LANE, "drill", "30"):
            await typing()
            await pilot.press(*answer, "enter")
        await until(app, pilot, lambda: in_a_window(app), "the window is open")
        await until(app, pilot, lambda: not app.desk.hushed, "keys count again")

        await pilot.press("B")
        await until(
            app, pilot, lambda: (found := app.desk.glance()) and found.phase is Phase.ARMED, "the strip is live"
        )
        strip = app.desk.glance()
        assert strip is not None and "ROLL BACK" in text_of(app) and "REHEARSAL" in text_of(app)
        await pilot.press(strip.letter)

        def done() -> bool:
            operation = lane().acting.value.operation  # type: ignore[union-attr]
            return operation is not None and operation.state is OperationState.DONE

        await until(app, pilot, done, "the way back is done")
        await until(app, pilot, lambda: lane().verdict.state is LaneState.SERVING, "it serves")
        await until(app, pilot, lambda: {rank.revision for rank in lane().ranks} == {BACK}, "on the old revision")
        await until(app, pilot, lambda: "SERVING" in text_of(app) and BACK[:7] in text_of(app), "the screen says so")

        def outcome() -> bool:
            return any(record.kind is Kind.OUTCOME for record in source.ledger().verify().text.records)

        await until(app, pilot, outcome, "the outcome is recorded")
        verified = source.ledger().verify()
        assert verified.problem == ""
        intents = [record for record in verified.text.records if record.kind is Kind.INTENT]
        assert len(intents) == 1 and "confirmed by letter" in intents[0].text
    assert not (tmp_path / "own").exists() or not list((tmp_path / "own").rglob("*ledger*"))
