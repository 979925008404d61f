"""Real keys on the embedded fleet: each guarded key carries its action out, and what is so afterwards was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
import told
from drills import BACK, NOW
from pressing import Pressing, pressing

from console.readings.acting_types import OperationState
from console.readings.ledger import Kind
from console.readings.lights import LaneState
from console.readings.watchdog import WatchdogState


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told.look_often(monkeypatch)
    monkeypatch.setenv("LANESWAP_STATE", str(tmp_path / "own"))


def owed(made: Pressing) -> list[str]:
    acting = made.acting()
    return [debt.what for debt in acting.debts] if acting is not None else []


async def watchdog_is(made: Pressing, state: WatchdogState) -> None:
    await made.until(lambda: told.watchdog(state)(made.view()), f"the watchdog is {state.value}")


async def serves(made: Pressing, revision: str) -> None:
    await made.until(lambda: made.view().verdict.state is LaneState.SERVING, "it serves")
    await made.until(lambda: {rank.revision for rank in made.view().ranks} == {revision}, f"it serves {revision[:7]}")


async def open_a_window(made: Pressing) -> None:
    await made.pilot.press("w")
    await made.until(lambda: "OPEN A WINDOW FOR" in made.text(), "the window is asked for")
    await made.typing(made.lane, "drill", "30")
    await made.until(lambda: (acting := made.acting()) and acting.window is not None, "the window is open")


async def test_a_window_then_b_and_its_letter_lead_back_until_the_old_revision_serves(tmp_path: Path) -> None:
    async with pressing("station", "station", tmp_path) as made:
        assert "REHEARSAL" in made.text()
        await open_a_window(made)
        assert (await made.by_letter("B")).state is OperationState.DONE
        await serves(made, BACK)
        await made.until(lambda: "SERVING" in made.text() and BACK[:7] in made.text(), "the screen says so")
        intents = made.records(Kind.INTENT)
        assert len(intents) == 1 and "confirmed by letter" in intents[0].text
    assert not (tmp_path / "own").exists() or not list((tmp_path / "own").rglob("*ledger*"))


@pytest.mark.timeout(600)
async def test_every_guarded_key_acts_on_a_fleet_with_launcher_and_watchdog(tmp_path: Path) -> None:
    async with pressing("spark4", "dsv41", tmp_path) as made:
        assert (await made.by_name("D")).state is OperationState.DONE
        await watchdog_is(made, WatchdogState.OFF)
        await made.until(lambda: owed(made) == ["watchdog"], "the watchdog is owed")
        assert made.view().verdict.state is LaneState.SERVING

        assert (await made.by_name("D")).state is OperationState.DONE  # the same key pays it
        await watchdog_is(made, WatchdogState.ARMED)
        await made.until(lambda: owed(made) == [], "nothing is owed")

        await open_a_window(made)
        before = made.ids()
        assert (await made.by_letter("S")).state is OperationState.DONE
        await made.until(lambda: made.running() == [], "no rank runs")
        await made.until(lambda: made.view().verdict.state is LaneState.DOWN, "it is down")
        await watchdog_is(made, WatchdogState.OFF)

        assert (await made.by_letter("R")).state is OperationState.DONE
        await serves(made, NOW)
        assert len(made.running()) == 4 and not before & made.ids(), "every rank is a new one"
        await watchdog_is(made, WatchdogState.ARMED)
        await made.until(lambda: owed(made) == [], "nothing is owed")

        assert (await made.by_letter("B")).state is OperationState.DONE
        await serves(made, BACK)
        await watchdog_is(made, WatchdogState.ARMED)
        assert f"SNAP=snapshots/{BACK}\n" in site_file(made)

        verbs = [record.op.split("-")[1] for record in made.records(Kind.INTENT)]
        assert verbs == ["disarm", "arm", "stop", "relaunch", "rollback"]
        how = [record.text.rpartition("confirmed by ")[2] for record in made.records(Kind.INTENT)]
        assert how == ["lane name", "lane name", "letter", "letter", "letter"]
        assert [record.result for record in made.records(Kind.OUTCOME)] == ["done"] * 5


def site_file(made: Pressing) -> str:
    """What the head's launcher reads."""
    assert made.source.rehearsal.root is not None
    recipe = "spark-0/home/ops/sparkrun-recipes/recipes/deepseek-v4.1-flash/sglang"
    return (made.source.rehearsal.root / recipe / "launch/fleet.env").read_text()
