"""All four guarded keys, pressed in a real terminal on a fleet with launcher and watchdog: what stands on its hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from acting_fleet import ActingFleet
from acting_operator import Head, Operator, operator
from acting_parts import NEW, OLD
from bed.client import Bed
from bed.system import BedError, wait_for
from tmux_console import LIMIT, Tmux

pytestmark = [pytest.mark.bed, pytest.mark.timeout(600)]


@pytest.fixture
def fleet(bed: Bed) -> Iterator[ActingFleet]:
    """The lane on two hosts, serving NEW with an armed watchdog; its boots are short."""
    found = ActingFleet(bed, bed.hosts[:2], boot=1.0)
    try:
        found.install()
        found.reset()
        yield found
    finally:
        found.clear()


@pytest.fixture
def ana(fleet: ActingFleet, tmp_path: Path) -> Iterator[Operator]:
    """Ana's laneswap."""
    with operator(fleet, tmp_path / "ana") as found:
        yield found


@pytest.fixture
def tmux(ana: Operator) -> Iterator[Tmux]:
    """Her console, which has seen the lane, its watchdog and its way back."""
    found = Tmux(ana)
    try:
        for words in (NEW[:7], "tok/s", "ARMED", f"to {OLD[:7]}"):
            found.until(words)
        yield found
    finally:
        found.end()


def went_well(head: Head, ana: Operator, tmux: Tmux, *verbs: str) -> None:
    """The newest action ended well: by the head's journal, on the screen and in a ledger that holds together."""
    try:
        assert head.until_ended() == "done", head.journal()
    except BedError as error:
        raise AssertionError(f"{verbs[-1]}: {error}\n{tmux.screen()}") from error
    wait_for(lambda: len(ana.outcomes()) == len(verbs), f"the outcome of {verbs[-1]} is recorded", limit=LIMIT)
    assert [(op.split("-")[1], result) for op, result in ana.outcomes()] == [(verb, "done") for verb in verbs]
    ana.ledger_good()
    tmux.until(f"last: {verbs[-1]} done")
    if not head.text("window.json"):
        wait_for(lambda: not head.lease(), "the lease is given back", limit=LIMIT)


def test_disarm_arm_stop_relaunch_and_back_by_keys(fleet: ActingFleet, ana: Operator, tmux: Tmux) -> None:
    head, serving, guard = Head(fleet.head, "dsv41"), fleet.standing(), fleet.watchdogs()
    assert serving is not None and serving.revision == NEW and len(guard) == 1

    tmux.named("D", "dsv41")
    went_well(head, ana, tmux, "disarm")
    assert fleet.watchdogs() == [] and fleet.lock() == "" and '"watchdog"' in head.text("debts.json")

    tmux.named("D", "dsv41")
    went_well(head, ana, tmux, "disarm", "arm")
    armed = fleet.watchdogs()
    assert len(armed) == 1 and armed != guard and fleet.lock() == str(armed[0]) and not head.text("debts.json")
    assert fleet.standing() == serving, "the lane served all the time"

    tmux.named("w", "dsv41")
    tmux.answers(("reason", "swap to v22"), ("deadline", "25"))
    tmux.until("in the window: one letter")

    tmux.opened("S")
    went_well(head, ana, tmux, "disarm", "arm", "stop")
    assert fleet.statuses() == ["exited"] * 2 and fleet.standing() is None
    assert fleet.watchdogs() == [] and fleet.lock() == ""

    tmux.opened("R")
    went_well(head, ana, tmux, "disarm", "arm", "stop", "relaunch")
    again, armed = fleet.standing(), fleet.watchdogs()
    assert again is not None and (again.revision, again.rows) == (NEW, {0: "own", 1: "own"})
    assert again.started > serving.started and fleet.site_revision() == NEW
    assert len(armed) == 1 and fleet.lock() == str(armed[0]), "it lives on though the unit that started it is gone"

    tmux.opened("B")
    went_well(head, ana, tmux, "disarm", "arm", "stop", "relaunch", "rollback")
    back, armed = fleet.standing(), fleet.watchdogs()
    assert back is not None and (back.revision, back.rows) == (OLD, {0: "own", 1: "own"})
    assert fleet.site_revision() == OLD and fleet.statuses() == ["running"] * 2
    assert len(armed) == 1 and fleet.lock() == str(armed[0]) and not head.text("debts.json")
    tmux.until(f"REVISION {OLD[:7]}", OLD[:7])

    tmux.named("w", "dsv41")
    wait_for(lambda: not head.text("window.json") and not head.lease(), "window and lease are given back", limit=LIMIT)
    tmux.press("q")
    assert not head.begun_twice()
