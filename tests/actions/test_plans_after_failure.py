"""Where R and B lead once an operation did not come up: for a reason that is no guess, and never to the same unsaid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import scenes
from scenes import HOSTS, NEW, OLD, RETIRED, SERVING, box, docker, ids, spark, step

from console.actions.plan import Verb
from console.readings.acting_types import Acting, Operation, OperationState, WindowState
from console.readings.boot import BootRecord
from console.readings.containers import Container, Containers, ContainerState
from console.readings.health import LaneState, LaneVerdict
from console.snapshot import RankView

EXITED, RUNNING = ContainerState.EXITED, ContainerState.RUNNING
DOWN = LaneVerdict(LaneState.DOWN, "no container")
BEFORE = box("one", "a", EXITED, revision=NEW, finished_at=100.0)
"""Served until the rollback stopped it; its name says nothing."""
TRIED = box("two", "b", EXITED, revision=OLD, finished_at=200.0, exit_code=1)
"""Was started by the rollback, and ended last."""
FROM, TO = "one 89abcde", "two 0123456"


def acting(verb: str, state: OperationState, origin: str, target: str, **more: Any) -> Any:
    """What the head says: this operation was the newest one."""
    op = Operation("op-1", verb, "station", "ana", "p", "t", state, 8100.0, 8200.0, (), origin=origin, target=target)
    return scenes.pictures.reading(Acting(8300.0, operation=op, **more), 1.0, 5.0)


def failed(*boxes: Container, verb: str = "rollback", origin: str = FROM, target: str = TO, **more: Any) -> scenes.Lane:
    """A lane whose newest operation did not come up. What is seen first is what ended last."""
    held = boxes or (TRIED, BEFORE)
    state = more.pop("state", OperationState.HALF_DONE)
    made = docker(*held, recipe="docker-generic", rest='containers = "*"')
    return made.but(acting=acting(verb, state, origin, target, **more), verdict=DOWN)


def starts(lane: scenes.Lane, verb: Verb) -> str:
    """Id of what a key would start, in one letter."""
    plan = lane.plan(verb)
    assert not plan.refused, plan.refused
    return step(plan, "start-station").argv[4][0]


@pytest.mark.parametrize("state", [OperationState.FAILED, OperationState.HALF_DONE, OperationState.LOST])
def test_after_a_failed_rollback_r_starts_what_served_and_b_tries_again(state: OperationState) -> None:
    """By its end alone `two` would speak for the lane: R would have tried it again, and B called `one` the way back."""
    lane = failed(state=state)
    assert (starts(lane, Verb.RELAUNCH), starts(lane, Verb.ROLLBACK)) == ("a", "b")
    assert (lane.plan(Verb.RELAUNCH).target, lane.plan(Verb.ROLLBACK).target) == (FROM, TO)
    said = "the rollback by ana at 02:15:00Z did not come up"
    assert f"R starts {FROM} again: {said}" in lane.plan(Verb.RELAUNCH).warnings
    assert f"B starts two once more: {said}; R starts {FROM} again" in lane.plan(Verb.ROLLBACK).notes


def test_without_that_operation_the_one_that_ended_last_is_started_again() -> None:
    over = failed(state=OperationState.DONE)
    assert (starts(over, Verb.RELAUNCH), starts(over, Verb.ROLLBACK)) == ("b", "a")
    other = failed(origin="three 89abcde")
    assert starts(other, Verb.RELAUNCH) == "b", "what it names is not there"
    moved = failed(origin="one 7777777")
    assert starts(moved, Verb.RELAUNCH) == "b", "another container has that name now"
    up = replace(TRIED, state=RUNNING, finished_at=None)
    assert starts(failed(up, BEFORE), Verb.RELAUNCH) == "b", "what is up speaks for itself"


def test_what_a_window_froze_goes_before_what_was_tried() -> None:
    third = box("three", "c", EXITED, revision="7" * 40, finished_at=50.0)
    frozen = docker(replace(BEFORE, state=RUNNING), third, recipe="docker-generic", rest='containers = "*"')
    way = frozen.plan(Verb.ROLLBACK)
    window = WindowState("w-1", "ana", "r", 1.0, 9e9, "three", way.id)
    lane = failed(TRIED, BEFORE, third, window=window)
    plan = lane.plan(Verb.ROLLBACK, frozen=way)
    assert step(plan, "start-station").argv[4][0] == "c"
    assert not [note for note in plan.notes if "once more" in note]


def test_of_several_that_are_kept_the_others_are_named_and_how_to_choose() -> None:
    third = box("three", "c", EXITED, revision="7" * 40, finished_at=50.0)
    plan = failed(TRIED, BEFORE, third).plan(Verb.ROLLBACK)
    assert "kept too: three 7777777; of several one whose name holds 'retired' is taken first" in plan.notes
    assert not [note for note in docker(SERVING, RETIRED).plan(Verb.ROLLBACK).notes if "kept too" in note]


def test_after_a_failed_relaunch_both_still_lead_where_they_led() -> None:
    lane = failed(BEFORE, TRIED, verb="relaunch", origin="serving", target=FROM)
    assert (starts(lane, Verb.RELAUNCH), starts(lane, Verb.ROLLBACK)) == ("a", "b")
    same = failed(BEFORE, replace(TRIED, revision=NEW), verb="relaunch", origin="serving", target=FROM)
    said = f"R and B lead to the same revision, {NEW[:7]}: two"
    assert said in same.plan(Verb.RELAUNCH).warnings


def two_ranks(worker: Sequence[Container]) -> scenes.Lane:
    """The same on two hosts: on the second one `worker` is there."""
    made = failed()
    config = made.snapshot.fleet.hosts["station"]
    fleet = made.snapshot.fleet.model_copy(update={"hosts": {"station": config, "second": config}})
    held = scenes.pictures.reading(Containers(tuple(worker)), 1.0, 5.0)
    second = replace(made.snapshot.hosts[0], name="second", containers=held)
    lane = made.view.lane.model_copy(update={"ranks": ("station", "second")})
    ranks = (*made.view.ranks, RankView(1, "second", worker[0], "up", worker[0].revision))
    view = replace(made.view, lane=lane, ranks=ranks)
    snapshot = replace(made.snapshot, fleet=fleet, hosts=(*made.snapshot.hosts, second), lanes=(view,))
    return scenes.Lane(snapshot, made.recipe, made.places)


def test_every_rank_starts_the_same_revision_though_a_worker_still_runs_the_tried_one() -> None:
    """A worker of the failed rollback may be up: it is stopped, never mixed with a head of the other revision."""
    worker_old = box("w-two", "d", RUNNING, ports=(), revision=OLD)
    worker_new = box("w-one", "c", EXITED, ports=(), revision=NEW, finished_at=90.0)
    plan = two_ranks((worker_old, worker_new)).plan(Verb.RELAUNCH)
    assert step(plan, "stop-second").argv[4][0] == "d"
    assert [step(plan, f"start-{host}").argv[4][0] for host in ("station", "second")] == ["a", "c"]
    assert ids(plan).index("stop-second") < ids(plan).index("start-second")
    gone = two_ranks((worker_old,)).plan(Verb.RELAUNCH)
    assert gone.refused.startswith("second: no container of 89abcde is there, which served until the rollback by ana")


# --- by the site file ------------------------------------------------------------------------------------------------


def fleet_down(**more: Any) -> scenes.Lane:
    """Nothing runs, nobody opened a window; the site file names NEW."""
    boxes = scenes.rank_boxes(state=EXITED)
    return spark(boxes=boxes, verdict=DOWN, **more)


def boots(*revisions: str) -> tuple[BootRecord, ...]:
    return tuple(BootRecord(1000.0 * at, 500.0, revision=one) for at, one in enumerate(revisions, 1))


def test_b_leads_to_what_served_last_and_r_to_the_site_file() -> None:
    """NEW is in the file and was launched; it never came up."""
    lane = fleet_down(boots=boots(NEW, OLD))
    assert lane.plan(Verb.ROLLBACK).target == OLD[:7]
    assert lane.plan(Verb.RELAUNCH).target == NEW[:7]
    assert not [text for text in lane.plan(Verb.RELAUNCH).warnings if "the same revision" in text]


def test_where_both_lead_to_the_same_revision_both_strips_say_so() -> None:
    lane = fleet_down(boots=boots(OLD, NEW))
    why = f"{NEW[:7]} served last"
    assert f"R and B lead to the same revision, {NEW[:7]}: {why}" in lane.plan(Verb.RELAUNCH).warnings
    back = lane.plan(Verb.ROLLBACK)
    assert back.target == NEW[:7]
    assert any(f"R and B lead to the same revision: {why}" in text for text in back.warnings)


def test_a_fresh_console_knows_what_served_last_by_the_lanes_ledger() -> None:
    """This machine saw NEW come up; since then a colleague has rolled back to OLD, and it was that which served."""
    lane = fleet_down(boots=boots(NEW), came_up=((5000.0, OLD[:7]),))
    assert lane.plan(Verb.ROLLBACK).target == OLD[:7]
    older = fleet_down(boots=boots(OLD, NEW), came_up=((900.0, OLD[:7]),))
    assert older.plan(Verb.ROLLBACK).target == NEW[:7]
    assert HOSTS[0] == lane.plan(Verb.ROLLBACK).head
