"""B after a rollback that is not over though its target serves: never the other way unsaid, and how it goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import scenes
from scenes import HOSTS, NEW, OLD, box, docker, spark, step

from console.actions.plan import Plan, Verb
from console.actions.prices import prices
from console.alarms.acting import acting_alarms
from console.lamps import rollback as lamp
from console.readings.acting_types import Acting, Debt, Operation, OperationState, StepState, StepView, WindowState
from console.readings.containers import Container, ContainerState
from console.readings.health import LaneState, LaneVerdict

EXITED, RUNNING = ContainerState.EXITED, ContainerState.RUNNING
LEFT = box("one", "a", EXITED, revision=NEW, finished_at=100.0)
"""Served until the rollback; it is what the operator wanted to leave."""
THERE = box("two", "b", RUNNING, revision=OLD)
"""Was started by the rollback, and serves."""
FROM, TO = "one 89abcde", "two 0123456"
STEPS = (
    StepView("start-station", "boot", "start two", "station", StepState.DONE),
    StepView("arm", "arm", "arm the watchdog", "station", StepState.UNKNOWN),
)
FORWARD = "; at once: laneswap do station rollback --forward"
UNEASY = [OperationState.HALF_DONE, OperationState.LOST, OperationState.FAILED, OperationState.STOPPED]


def acting(state: OperationState, **more: Any) -> Any:
    """What the head says: the newest operation was this rollback."""
    held = {name: more.pop(name) for name in ("debts", "window") if name in more}
    told = {"ended": None, "origin": FROM, "target": TO, "verb": "rollback", "operator": "ana", **more}
    verb, who, ended = (told.pop(name) for name in ("verb", "operator", "ended"))
    op = Operation("op-1", verb, "station", who, "p", "t", state, 8100.0, ended, STEPS, **told)
    return scenes.pictures.reading(Acting(8300.0, operation=op, **held), 1.0, 5.0)


def station(*boxes: Container) -> scenes.Lane:
    """The lane without any operation."""
    return docker(*boxes, recipe="docker-generic", rest='containers = "*"')


def after(
    *boxes: Container,
    state: OperationState = OperationState.HALF_DONE,
    lane: LaneState = LaneState.SERVING,
    **more: Any,
) -> scenes.Lane:
    """A lane whose newest operation was a rollback; the first container is what runs."""
    return station(*(boxes or (THERE, LEFT))).but(acting=acting(state, **more), verdict=LaneVerdict(lane, "as it is"))


def leads(plan: Plan) -> str:
    """Id of what a plan would start, in one letter; '' for one that is refused."""
    return "" if plan.refused else step(plan, "start-station").argv[4][0]


@pytest.mark.parametrize("state", UNEASY)
def test_b_does_not_go_the_other_way_unsaid(state: OperationState) -> None:
    """Without the guard B would stop `two`, to which ana wanted, and start `one`."""
    plan = after(state=state).plan(Verb.ROLLBACK)
    assert plan.refused and not plan.steps
    assert plan.refused.startswith("the rollback by ana at 02:15:00Z ")
    assert f" after start two, and its target {TO} serves. " in plan.refused and plan.refused.endswith(FORWARD)


def test_what_nobody_carries_on_is_carried_on() -> None:
    assert after().plan(Verb.ROLLBACK).refused == (
        f"the rollback by ana at 02:15:00Z is half done after start two, and its target {TO} serves. "
        f"laneswap attach station --carry-on finishes it, then B rolls forward{FORWARD}"
    )
    boots = after(state=OperationState.LOST, lane=LaneState.BOOTING).plan(Verb.ROLLBACK).refused
    assert f"was lost after start two, and its target {TO} boots. laneswap attach" in boots
    unsure = after(state=OperationState.UNKNOWN).plan(Verb.ROLLBACK).refused
    assert "02:15:00Z may still run after start two, and" in unsure and "--carry-on" in unsure


def test_the_way_out_stands_in_what_is_shown_whatever_the_names() -> None:
    """A row of words holds 400 characters; a container's name may have 128."""
    long = box("n" * 120, "b", RUNNING, revision=OLD)
    steps = tuple(replace(one, title=f"start {long.name} and wait until it serves") for one in STEPS)
    lane = after(long, LEFT, target=f"{long.name} {OLD[:7]}", operator="o" * 60)
    reading = lane.view.acting
    assert reading is not None and reading.value is not None and reading.value.operation is not None
    told = replace(reading.value, operation=replace(reading.value.operation, steps=steps))
    refused = lane.but(acting=scenes.pictures.reading(told, 1.0, 5.0)).plan(Verb.ROLLBACK).refused
    assert len(refused) < 360 and refused.endswith(FORWARD)


def test_what_has_ended_is_not_carried_on_but_its_debt_is_paid() -> None:
    debt = (Debt("watchdog", 8100.0, 9900.0, "ana", "op-1"),)
    owed = after(ended=8200.0, debts=debt).plan(Verb.ROLLBACK).refused
    assert "D arms its watchdog, which is owed, then B rolls forward" in owed and "--carry-on" not in owed
    nothing = after(ended=8200.0).plan(Verb.ROLLBACK).refused
    assert f"{TO} serves. nothing else of it is left{FORWARD}" in nothing


def test_once_it_is_finished_or_for_the_asking_it_rolls_forward() -> None:
    assert leads(after(state=OperationState.DONE).plan(Verb.ROLLBACK)) == "a"
    assert leads(after(verb="arm").plan(Verb.ROLLBACK)) == "a", "D came after it"
    assert leads(after().plan(Verb.ROLLBACK, forward=True)) == "a"


@pytest.mark.parametrize("state", [LaneState.DOWN, LaneState.STALLED, LaneState.DEGRADED])
def test_a_target_that_does_not_serve_holds_nobody(state: LaneState) -> None:
    assert leads(after(lane=state).plan(Verb.ROLLBACK)) == "a"


def test_a_rollback_that_did_not_get_there_is_begun_anew() -> None:
    still = after(replace(LEFT, state=RUNNING), replace(THERE, state=EXITED, finished_at=50.0))
    assert leads(still.plan(Verb.ROLLBACK)) == "b"
    down = after(replace(THERE, state=EXITED, finished_at=200.0), LEFT, lane=LaneState.DOWN)
    assert leads(down.plan(Verb.ROLLBACK)) == "b"
    other = box("three", "c", RUNNING, revision="7" * 40)
    stopped = replace(THERE, state=EXITED, finished_at=200.0)
    assert leads(after(other, stopped, LEFT).plan(Verb.ROLLBACK)) == "b", "somebody started another one"


def test_of_one_revision_on_both_sides_the_names_tell() -> None:
    """Two images with one checkpoint; the names are swapped by the rollback's own step."""
    told = {"origin": "x-SERVING 0123456", "target": "y-RETIRED 0123456"}
    one, two = box("x-SERVING", "a", EXITED, revision=OLD, finished_at=100.0), box("y-RETIRED", "b", revision=OLD)
    assert after(two, one, **told).plan(Verb.ROLLBACK).refused
    renamed = replace(two, name="y-SERVING"), replace(one, name="x-RETIRED")
    assert after(*renamed, **told).plan(Verb.ROLLBACK).refused
    back = replace(one, state=RUNNING, finished_at=None), replace(two, state=EXITED, finished_at=90.0)
    assert leads(after(*back, **told).plan(Verb.ROLLBACK)) == "b"
    by_hand = replace(back[0], name="x-RETIRED"), replace(back[1], name="y-SERVING")
    assert leads(after(*by_hand, **told).plan(Verb.ROLLBACK)) == "b"
    nameless = {"origin": "one -", "target": "two -"}
    bare = replace(THERE, revision=""), replace(LEFT, revision="")
    assert after(*bare, **nameless).plan(Verb.ROLLBACK).refused
    assert leads(after(bare[0], bare[1], origin="two -", target="one -").plan(Verb.ROLLBACK)) == "a"


# --- windows ---------------------------------------------------------------------------------------------------------


def opened(target: str) -> WindowState:
    return WindowState("w-1", "ana", "r", 1.0, 9e9, target, "p")


def test_a_frozen_target_and_a_rollback_that_is_half_done_agree() -> None:
    """A frozen target that serves is none any more, which makes B roll forward: not while its rollback is half done."""
    before = station(replace(LEFT, state=RUNNING, finished_at=None), replace(THERE, state=EXITED, finished_at=50.0))
    frozen = before.plan(Verb.ROLLBACK)
    assert frozen.target == TO
    for state in (LaneState.IDLE, LaneState.BOOTING):
        lane = after(window=opened(TO), lane=state)
        assert "--carry-on" in lane.plan(Verb.ROLLBACK, frozen=frozen).refused
        assert leads(lane.plan(Verb.ROLLBACK, frozen=frozen, forward=True)) == "a"
    over = after(window=opened(TO), state=OperationState.DONE, lane=LaneState.IDLE)
    assert leads(over.plan(Verb.ROLLBACK, frozen=frozen)) == "a"


def test_what_a_window_froze_is_gone_to_from_any_other_one() -> None:
    """It was rolled forward in the window, and that is half done: the window's promise is kept."""
    before = station(THERE, replace(LEFT, finished_at=50.0))
    frozen = before.plan(Verb.ROLLBACK)
    assert frozen.target == FROM
    lane = after(window=opened(FROM))
    assert leads(lane.plan(Verb.ROLLBACK, frozen=frozen)) == "a"


# --- by the site file ------------------------------------------------------------------------------------------------


def fleet(**more: Any) -> scenes.Lane:
    """Four ranks serve NEW by the site file; OLD is the other one. The rollback went to NEW."""
    told = acting(OperationState.HALF_DONE, **{"origin": OLD[:7], "target": NEW[:7], **more})
    return spark(acting=told, verdict=LaneVerdict(LaneState.SERVING, "steps"))


def test_a_fleet_goes_by_the_revision_alone() -> None:
    refused = fleet().plan(Verb.ROLLBACK).refused
    assert f"its target {NEW[:7]} serves" in refused and "laneswap attach dsv41 --carry-on" in refused
    assert fleet().plan(Verb.ROLLBACK, forward=True).target == OLD[:7]
    assert fleet(origin=NEW[:7], target=OLD[:7]).plan(Verb.ROLLBACK).target == OLD[:7], "it did not get there"
    assert fleet().plan(Verb.ROLLBACK).head == HOSTS[0]


# --- what is said without a key --------------------------------------------------------------------------------------


def test_key_line_lamp_and_alarm_say_the_same() -> None:
    lane = after()
    price = prices(lane.snapshot, lane.view, mine=True)["rollback"]
    assert (price.words, price.goes) == ("not finished", False)
    said = lamp(lane.snapshot, lane.view)
    assert (said.word, said.rest) == ("NOT FINISHED", f"to {TO}")
    alarm = next(one for one in acting_alarms(lane.snapshot, lane.view) if one.key == "operation:station")
    assert alarm.advice == "laneswap attach station --carry-on"
    ended = after(ended=8200.0)
    alarm = next(one for one in acting_alarms(ended.snapshot, ended.view) if one.key == "operation:station")
    assert alarm.advice == "B says what is left"
    over = after(state=OperationState.DONE)
    assert prices(over.snapshot, over.view, mine=True)["rollback"].goes
