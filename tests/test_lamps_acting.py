"""Lamps while an operation runs, a window is open or something is owed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from manual import beside

from console.alarms import lane_alarms, upkeep_alarms
from console.lamps import Lamp, lamps
from console.readings.acting_types import Acting, Debt, Operation, OperationState, StepState, StepView
from console.readings.binds import Deed
from console.readings.health import HttpLight, HttpVerdict, LaneState, LaneVerdict, Lights
from console.readings.watchdog import Watchdog, WatchdogState
from console.snapshot import LaneView, Severity, Snapshot

pictures = beside("widgets", "pictures")
NOW, WALL = pictures.NOW, pictures.WALL
OLD, NEW = "9f2c1a7" + "0" * 33, "1bae0e1" + "0" * 33
STOP = StepView("stop-0", "stop", "stop rank 0", "n1", StepState.RUNNING, WALL - 41)
RUNS = Operation(
    "op", "rollback", "dsv41", "ana", "p", "roll back", OperationState.RUNNING, WALL - 90, None, (STOP,), OLD, NEW
)


def lane(state: LaneState = LaneState.DOWN, since: float = 41.0, **changes: Any) -> tuple[Snapshot, LaneView]:
    """The lane in a state since so many seconds, and what is under way by `acting`."""
    snapshot = pictures.spark4()
    acting = changes.pop("acting", {})
    reading = pictures.reading(Acting(WALL, **acting), changes.pop("age", 0.5), 2.5)
    view = replace(
        snapshot.lanes[0], verdict=LaneVerdict(state, "refused"), state_since=NOW - since, acting=reading, **changes
    )
    return replace(snapshot, lanes=(view, *snapshot.lanes[1:])), view


def shown(lamp: Lamp) -> tuple[str, str, Severity]:
    return lamp.word, lamp.rest, lamp.severity


def serving(*arguments: Any, **changes: Any) -> tuple[str, str, Severity]:
    return shown(lamps(*lane(*arguments, **changes))[0])


def test_a_lane_that_an_operation_stopped_is_down_as_planned() -> None:
    snapshot, view = lane(acting={"operation": RUNS})
    lamp = lamps(snapshot, view)[0]
    assert shown(lamp) == ("DOWN 0m41s", ", planned", Severity.LOOK)
    assert lamp.note == "was 66.3 tok/s"
    (alarm,) = (item for item in lane_alarms(snapshot, view) if item.key.startswith("state:"))
    assert (alarm.severity, alarm.advice) == (Severity.LOOK, "planned: rollback by ana")


BOOT = StepView("boot", "boot", "boot on n1", "n1", StepState.RUNNING, WALL - 20, usual=600.0)
SAYS_503 = Lights(http=HttpLight(HttpVerdict.UNAVAILABLE, 503, 0.01))


def of_state(snapshot: Snapshot, view: LaneView) -> list[Severity]:
    return [item.severity for item in lane_alarms(snapshot, view) if item.key.startswith("state:")]


@pytest.mark.parametrize("state", [LaneState.DRAINING, LaneState.DEGRADED, LaneState.STALLED, LaneState.DOWN])
def test_a_503_while_a_step_of_ours_waits_for_the_engine_is_its_boot(state: LaneState) -> None:
    loads = replace(RUNS, steps=(replace(STOP, state=StepState.DONE, ended=WALL - 20), BOOT))
    snapshot, view = lane(state, acting={"operation": loads}, lights=SAYS_503)
    assert shown(lamps(snapshot, view)[0]) == ("BOOT 0m20s of 10m00s", "it loads", Severity.INFO)
    assert of_state(snapshot, view) == []
    late = replace(loads, steps=(loads.steps[0], replace(BOOT, began=WALL - 920)), began=WALL - 990)
    assert serving(state, acting={"operation": late}, lights=SAYS_503)[2] is Severity.LOOK


def test_a_503_from_before_the_end_of_our_operation_is_no_alarm_until_health_was_asked_again() -> None:
    done = replace(RUNS, state=OperationState.DONE, ended=WALL - 4, steps=(replace(STOP, state=StepState.DONE),))

    def seen(asked: float, **changes: object) -> list[Severity]:
        health = pictures.reading(None, asked, 10.0)
        return of_state(*lane(LaneState.DEGRADED, acting={"operation": replace(done, **changes)}, health=health))

    assert seen(6.0) == [Severity.LOOK], "it was loading when it was asked"
    assert seen(2.0) == [Severity.ACT], "asked after the operation had seen it serve"
    assert seen(30.0, ended=WALL - 25) == [Severity.ACT], "by now it ought to have been asked"
    assert seen(6.0, verb="disarm") == [Severity.ACT]


@pytest.mark.parametrize(
    "changes",
    [
        {"since": 500.0},
        {"acting": {"operation": replace(RUNS, steps=(replace(STOP, stage="watchdog"),))}},
        {"acting": {"operation": replace(RUNS, verb="disarm")}},
        {"acting": {"operation": replace(RUNS, state=OperationState.HALF_DONE)}},
        {"acting": {"operation": replace(RUNS, state=OperationState.DONE, ended=WALL - 60)}},
        {"acting": {}},
        {"age": 100.0},
    ],
)
def test_what_nobody_planned_is_down_in_red(changes: dict[str, Any]) -> None:
    found = serving(**({"acting": {"operation": RUNS}} | changes))
    assert (found[0].split()[0], found[2]) == ("DOWN", Severity.ACT)


def test_a_stop_that_is_done_names_who_did_it() -> None:
    stop = replace(RUNS, verb="stop", state=OperationState.DONE, ended=WALL - 700, began=WALL - 760)
    assert serving(since=724.0, acting={"operation": stop}) == ("DOWN 12m04s", ", stopped by ana", Severity.LOOK)
    assert serving(since=100.0, acting={"operation": stop})[2] is Severity.ACT, "it served again in between"


@pytest.mark.parametrize("state", [LaneState.DRAINING, LaneState.DEGRADED, LaneState.STALLED])
def test_what_comes_before_down_is_planned_too(state: LaneState) -> None:
    assert serving(state, acting={"operation": RUNS}) == (f"{state.upper()} 0m41s", ", planned", Severity.LOOK)


def test_a_boot_stays_a_boot() -> None:
    assert serving(LaneState.BOOTING, acting={"operation": RUNS})[0].startswith("BOOT ")


def mixed(operation: Operation, *revisions: str) -> Lamp:
    snapshot, view = lane(acting={"operation": operation})
    ranks = tuple(replace(rank, revision=revisions[at % len(revisions)]) for at, rank in enumerate(view.ranks))
    return lamps(snapshot, replace(view, ranks=ranks))[1]


def test_between_two_revisions() -> None:
    assert shown(mixed(RUNS, OLD, NEW)) == ("9f2c1a7 → 1bae0e1", "", Severity.NORMAL)
    assert shown(mixed(RUNS, OLD))[0] == "9f2c1a7 → 1bae0e1"
    assert mixed(RUNS, OLD, "c" * 40).word == "MIXED", "a third one is no part of it"
    assert mixed(replace(RUNS, state=OperationState.DONE), OLD, NEW).word == "MIXED"
    assert mixed(replace(RUNS, origin="serving", target="stopped"), OLD, NEW).word == "MIXED"


OWED = Debt("watchdog", WALL - 372, WALL + 960, "ana", "op")


def dog(state: WatchdogState = WatchdogState.OFF, debt: Debt = OWED, **changes: Any) -> Lamp:
    found = Watchdog(state, "off", changes.pop("protecting", False), host="n1", since=WALL - 5000)
    return lamps(*lane(watchdog=pictures.reading(found, 1.0, 5.0), acting={"debts": (debt,)}, **changes))[2]


def test_a_debt_in_time_is_blue_then_orange_then_red() -> None:
    lamp = dog()
    assert shown(lamp) == ("OFF 6m12s", ", owed in 16m", Severity.INFO)
    assert lamp.note == "owed by 22:11:10"
    assert shown(dog(debt=replace(OWED, deadline=WALL + 300)))[1:] == (", owed in 5m", Severity.LOOK)
    late = dog(debt=replace(OWED, deadline=WALL - 125))
    assert shown(late) == ("OFF 6m12s", ", OVERDUE 2m", Severity.ACT)
    assert late.note == "arm it: D"


def test_a_debt_does_not_hide_what_the_watchdog_is() -> None:
    assert shown(dog(WatchdogState.GAVE_UP))[2] is Severity.ACT
    assert shown(dog(WatchdogState.UNKNOWN)) == ("UNKNOWN", ", owed in 16m", Severity.LOOK)
    armed = dog(WatchdogState.ARMED, protecting=True)
    assert shown(armed) == ("ARMED", ", debt of ana not settled", Severity.INFO)


def test_a_debt_is_owed_also_when_the_head_is_away() -> None:
    assert shown(dog(age=100.0, debt=replace(OWED, deadline=WALL - 125)))[2] is Severity.ACT


def test_the_watchdogs_own_alarm_waits_for_the_deadline() -> None:
    for deadline, severity in ((WALL + 960, Severity.INFO), (WALL - 1, Severity.LOOK)):
        found = Watchdog(WatchdogState.OFF, "off", False, host="n1")
        acting = {"debts": (replace(OWED, deadline=deadline),)}
        snapshot, view = lane(LaneState.SERVING, watchdog=pictures.reading(found, 1.0, 5.0), acting=acting)
        (alarm,) = (item for item in upkeep_alarms(snapshot, view) if item.key.startswith("watchdog:"))
        assert alarm.severity is severity


def test_the_last_deed_stands_beside_the_rollback_lamp() -> None:
    snapshot, view = lane(deeds=(Deed("op", WALL - 12 * 86400 - 478, 478.0, OLD, "ana"),))
    assert lamps(snapshot, view)[3].note == "did 7m58s 12 d ago"
