"""Alarms of what is under way: debts, windows, operations, leases, foreign hands, ledger lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from manual import beside

from console.alarms import Alarm, acting_alarms, alarms, expected
from console.alarms.acting import TOLD_FOR_S
from console.alarms.book import AlarmBook
from console.readings.acting_types import (
    Acting,
    Debt,
    ForeignAct,
    Lease,
    Operation,
    OperationState,
    StepState,
    StepView,
    WindowState,
)
from console.readings.health import LaneState, LaneVerdict
from console.snapshot import LaneView, Severity, Snapshot

pictures = beside("widgets", "pictures")
NOW, WALL = pictures.NOW, pictures.WALL
NAME = pictures.spark4().lanes[0].name
ACT, LOOK, INFO = Severity.ACT, Severity.LOOK, Severity.INFO
OWED = Debt("watchdog", WALL - 372, WALL + 960, "ana", "op")
WINDOW = WindowState("w", "ana", "switch to 1bae0e1", WALL - 400, WALL + 600, "x", "p")
LEASE = Lease("ana", "ana@laptop 4711", "l", 7, WALL - 400, WALL - 5, 60.0)
STEP = StepView("stop-1", "stop", "stop rank 1", "n2", StepState.RUNNING, WALL - 30)
RUNS = Operation("op", "rollback", NAME, "ana", "p", "roll back", OperationState.RUNNING, WALL - 90, None, (STEP,))


def lane(*, well: bool = True, **changes: Any) -> tuple[Snapshot, LaneView]:
    snapshot = pictures.spark4()
    state = LaneVerdict(LaneState.SERVING if well else LaneState.DOWN, "because")
    beyond = {key: changes.pop(key) for key in ("unsynced", "foreign") if key in changes}
    reading = pictures.reading(Acting(WALL, folder="/f", **changes), beyond.pop("age", 0.5), 2.5)
    view = replace(snapshot.lanes[0], acting=reading, verdict=state, **beyond)
    return replace(snapshot, lanes=(view, *snapshot.lanes[1:])), view


def told(**changes: Any) -> list[Alarm]:
    return list(acting_alarms(*lane(**changes)))


def only(**changes: Any) -> Alarm:
    (found,) = told(**changes)
    return found


def test_a_lane_at_rest_or_never_read_has_none() -> None:
    snapshot, view = lane()
    assert told() == []
    assert list(acting_alarms(snapshot, replace(view, acting=None))) == []
    assert told(lease=LEASE, window=WINDOW, debts=(OWED,), operation=RUNS) == []


def test_a_debt_is_told_in_its_last_minutes_and_is_red_when_overdue() -> None:
    soon = only(debts=(replace(OWED, deadline=WALL + 200),))
    assert (soon.key, soon.severity) == (f"debt:{NAME}:watchdog", LOOK)
    assert soon.text == "watchdog off for 6m12s, owed in 3m20s: switched off by ana"
    late = only(debts=(replace(OWED, deadline=WALL - 125),))
    assert (late.severity, late.advice) == (ACT, "arm it: D")
    assert late.text == "watchdog off for 6m12s, OVERDUE 2m05s: switched off by ana"


def test_an_overdue_debt_is_told_while_the_head_is_away() -> None:
    snapshot, view = lane(debts=(replace(OWED, deadline=WALL - 125),), window=replace(WINDOW, deadline=WALL - 1))
    assert view.acting is not None
    away = replace(view, acting=replace(view.acting, down_since=NOW - 60))
    assert [alarm.key for alarm in acting_alarms(snapshot, away)] == [f"debt:{NAME}:watchdog"]


def test_an_overdue_window() -> None:
    late = replace(WINDOW, deadline=WALL - 61)
    found = only(window=late)
    assert (found.key, found.severity) == (f"window:{NAME}", LOOK)
    assert found.text == "window of ana OVERDUE 1m01s: switch to 1bae0e1"
    assert only(window=late, well=False).severity is ACT


HALF = "HALF DONE after stop rank 1, next: start the lane on n1"


@pytest.mark.parametrize("state", [OperationState.HALF_DONE, OperationState.LOST])
def test_what_stopped_in_the_middle_needs_a_hand_everywhere(state: OperationState) -> None:
    found = only(operation=replace(RUNS, state=state, words=HALF))
    assert (found.key, found.severity) == (f"operation:{NAME}", ACT)
    assert found.text == f"rollback by ana: {HALF}"
    assert found.advice == f"laneswap attach {NAME} --carry-on, or B"
    ended = only(operation=replace(RUNS, state=state, words=HALF, ended=WALL - 5))
    assert ended.advice == "R goes on, B goes back"  # a runner that has said its end says nothing more


def test_what_an_operator_stopped_is_told_like_a_failure() -> None:
    stopped = replace(RUNS, state=OperationState.STOPPED, ended=WALL - 10, words=HALF)
    assert only(operation=stopped, well=False).severity is ACT
    assert only(operation=stopped).text == f"rollback by ana was stopped: {HALF}"


def test_what_cannot_be_told_is_said_and_what_is_not_read_yet_is_not() -> None:
    unknown = replace(RUNS, state=OperationState.UNKNOWN, words="cannot be seen")
    assert only(operation=unknown).severity is LOOK
    assert told(operation=replace(unknown, unread=True)) == []


def test_a_failure_is_told_for_as_long_as_it_matters() -> None:
    failed = replace(RUNS, state=OperationState.FAILED, ended=WALL - 10, words="exit 1")
    assert (only(operation=failed).severity, only(operation=failed, well=False).severity) == (LOOK, ACT)
    old = replace(failed, ended=WALL - TOLD_FOR_S - 1)
    assert told(operation=old) == []
    assert only(operation=old, window=WINDOW).text == "rollback by ana failed: exit 1"
    assert only(operation=old, well=False).severity is ACT


def test_what_was_done_without_a_ledger_is_told_until_it_is_written_up() -> None:
    done = replace(RUNS, state=OperationState.DONE, ended=WALL - 9 * TOLD_FOR_S, ledgered=False)
    assert (only(operation=done).key, only(operation=done).severity) == (f"unledgered:{NAME}", LOOK)


EXPIRED = replace(LEASE, renewed=WALL - 240)


def test_a_lease_that_ran_out_asks_for_somebody() -> None:
    found = only(lease=EXPIRED, operation=RUNS)
    assert found.key == f"lease:{NAME}"
    assert found.text == "lease of ana ran out 3m00s ago while stop rank 1 runs: take over?"
    assert (found.severity, only(lease=EXPIRED, operation=RUNS, well=False).severity) == (LOOK, ACT)
    assert only(lease=EXPIRED, operation=replace(RUNS, runs_on="console")).severity is ACT
    assert (
        only(lease=EXPIRED, window=WINDOW).text
        == "lease of ana ran out 3m00s ago, the window is still open: take over?"
    )
    assert "the watchdog is still off" in only(lease=EXPIRED, debts=(OWED,)).text
    assert told(lease=EXPIRED) == [], "somebody went away and left nothing behind"


def test_handing_over_is_good_to_know() -> None:
    found = only(lease=replace(LEASE, offered_to="ben"))
    assert (found.key, found.severity, found.text) == (f"offer:{NAME}", INFO, "ana hands the lane over to ben")


HAND = ForeignAct(WALL - 20, "n2", "container", "container x was sent SIGTERM through Docker", "op")


def test_a_foreign_hand_during_an_operation_is_loud() -> None:
    found = only(operation=RUNS, foreign=(replace(HAND, at=WALL - 30), HAND))
    assert (found.key, found.severity) == (f"foreign:{NAME}", ACT)
    assert found.text == ("foreign hand during rollback: n2 container x was sent SIGTERM through Docker and 1 more")
    half = replace(RUNS, state=OperationState.HALF_DONE, words=HALF)
    assert {alarm.key for alarm in told(operation=half, foreign=(HAND,))} == {f"operation:{NAME}", f"foreign:{NAME}"}


def test_in_a_window_it_wants_looking_at_and_else_it_is_an_event() -> None:
    other = replace(HAND, during="")
    assert only(window=WINDOW, foreign=(other,)).severity is LOOK
    assert told(window=replace(WINDOW, opened=WALL - 10), foreign=(other,)) == []
    assert told(foreign=(other,)) == []
    done = replace(RUNS, state=OperationState.DONE, ended=WALL - 1)
    assert told(operation=done, foreign=(HAND,)) == []


def test_ledger_lines_that_are_not_on_the_head() -> None:
    assert only(unsynced=3).text.startswith("3 ledger lines not yet on ")
    assert only(unsynced=1).text.startswith("1 ledger line not yet on ")


def test_damage_and_blindness() -> None:
    assert only(problem="lease is damaged: somebody may hold the lane").severity is LOOK
    snapshot, view = lane()
    blind = replace(view, acting=pictures.unread(error="needs python3 on the host"))
    (found,) = acting_alarms(snapshot, blind)
    assert (found.key, found.severity) == (f"acting:{NAME}", INFO)


def test_what_an_operation_brings_along_calls_nobody() -> None:
    snapshot, _ = lane(well=False, operation=RUNS, debts=(OWED,))
    planned = expected(snapshot)
    assert planned[f"state:{NAME}"] == "stop rank 1"
    assert planned[f"watchdog:{NAME}"] == "disarmed"
    book = AlarmBook()
    booked = {item.alarm.key: item.expected for _, item in book.update(alarms(snapshot), NOW, WALL, planned)}
    assert booked[f"state:{NAME}"] == "stop rank 1"
    assert expected(lane(operation=replace(RUNS, verb="disarm"))[0]) == {}
    assert expected(lane(debts=(replace(OWED, deadline=WALL - 1),))[0]) == {}
    assert expected(pictures.spark4()) == {}
