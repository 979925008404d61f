"""What guarded keys cost, as the key line says it, and what is under way with what comes next."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("widgets", "screens")]

import pictures  # noqa: E402
import strips  # noqa: E402

from console.actions.disarm import guard_verb  # noqa: E402
from console.actions.plan import Verb  # noqa: E402
from console.actions.prices import asks, prices, verb_of  # noqa: E402
from console.actions.underway import Progress, Transfer, forecast, head_now, runs, stages, transfer  # noqa: E402
from console.execution.policy import decide  # noqa: E402
from console.readings.acting_types import OperationState, StepState  # noqa: E402
from console.readings.health import LaneState, LaneVerdict  # noqa: E402
from console.readings.link import LinkState, LinkStatus  # noqa: E402
from console.readings.watchdog import Watchdog, WatchdogState  # noqa: E402
from console.snapshot import HostView, Snapshot  # noqa: E402


def costs(snapshot: Snapshot, *, mine: bool = True) -> dict[str, str]:
    return {ident: price.words for ident, price in prices(snapshot, snapshot.lanes[0], mine=mine).items()}


def going(snapshot: Snapshot, *, mine: bool = True) -> set[str]:
    """The actions whose key would open a strip."""
    return {ident for ident, price in prices(snapshot, snapshot.lanes[0], mine=mine).items() if price.goes}


def calm(**extra: Any) -> Snapshot:
    """A serving lane in a window, where nothing runs."""
    return strips.under_way(pictures.spark4(), **{"operation": None, "debts": (), **extra})


def lane_as(snapshot: Snapshot, **extra: Any) -> Snapshot:
    return replace(snapshot, lanes=(replace(snapshot.lanes[0], **extra), *snapshot.lanes[1:]))


def test_a_serving_lane_costs_its_requests_a_stop_and_a_boot() -> None:
    snapshot = pictures.spark4()
    found = costs(snapshot)
    assert found["disarm"] == "disarm"
    assert found["stop"] == "cuts 3 requests"
    assert found["relaunch"].startswith("≈") and found["rollback"].startswith("≈")
    assert found["rollback"].endswith(" to c0ffee1")


def test_waiting_requests_are_cut_too_and_one_is_one() -> None:
    base = pictures.spark4()
    for running, waiting, words in ((3, 4, "cuts 7 requests"), (1, 0, "cuts 1 request"), (0, 0, "cuts 0 requests")):
        load = pictures.throughput(running=running, waiting=waiting)
        lane = replace(base.lanes[0], throughput=pictures.reading(load))
        assert costs(replace(base, lanes=(lane,)))["stop"] == words


def test_what_is_not_known_is_no_number() -> None:
    found = costs(pictures.nothing_read())
    assert found["stop"] == "stop" and "0" not in found["stop"]
    assert found["rollback"] in ("roll back", "NO WAY BACK")
    assert costs(pictures.trouble())["stop"] == "cuts 0 requests", "a lane that is down has none"
    base = pictures.spark4()
    old = replace(base.lanes[0], throughput=pictures.reading(pictures.throughput(), 600.0))
    assert costs(replace(base, lanes=(old,)))["stop"] == "stop", "a count that is stale is none"


@pytest.mark.parametrize(
    ("state", "verb"),
    [(WatchdogState.ARMED, Verb.DISARM), (WatchdogState.OFF, Verb.ARM), (WatchdogState.PAUSED, Verb.ARM),
     (WatchdogState.GAVE_UP, Verb.ARM), (WatchdogState.RECOVERY, Verb.DISARM)],
)  # fmt: skip
def test_d_goes_the_way_that_the_watchdog_is_not(state: WatchdogState, verb: Verb) -> None:
    base = pictures.spark4()
    reading = base.lanes[0].watchdog
    assert reading is not None and reading.value is not None
    lane = replace(base.lanes[0], watchdog=replace(reading, value=replace(reading.value, state=state)))
    snapshot = replace(base, lanes=(lane,))
    assert verb_of("disarm", snapshot, lane) is verb
    assert costs(snapshot)["disarm"] == verb.value


def test_a_debt_is_armed_also_where_the_watchdog_was_not_read() -> None:
    base = strips.under_way(pictures.spark4())
    lane = replace(base.lanes[0], watchdog=None)
    assert verb_of("disarm", base, lane) is Verb.ARM
    assert [verb_of(ident, base, lane) for ident in ("stop", "relaunch", "rollback")] == [
        Verb.STOP,
        Verb.RELAUNCH,
        Verb.ROLLBACK,
    ]


# --- which keys go, and what they ask for -----------------------------------------------------------------------------

EVERY = {"disarm", "stop", "relaunch", "rollback"}


def test_a_lane_without_a_watchdog_has_nothing_to_disarm() -> None:
    for bare in (lane_as(calm(), watchdog=None), lane_as(calm(), watchdog=pictures.reading(_dog(WatchdogState.NONE)))):
        assert costs(bare)["disarm"] == "no watchdog" and going(bare) == {*EVERY, "hand-over"} - {"disarm"}
    owed = strips.under_way(lane_as(pictures.spark4(), watchdog=None), operation=None)
    assert costs(owed)["disarm"] == "arm", "a debt says that there is one"


def _dog(state: WatchdogState) -> Watchdog:
    reading = pictures.spark4().lanes[0].watchdog
    assert reading is not None and reading.value is not None
    return replace(reading.value, state=state)


def test_d_goes_the_way_that_its_plan_goes() -> None:
    for state in WatchdogState:
        snapshot = lane_as(calm(), watchdog=pictures.reading(_dog(state)))
        assert verb_of("disarm", snapshot, snapshot.lanes[0]) is guard_verb(_dog(state)), state


def test_while_something_runs_keys_say_what_they_end_or_wait_for() -> None:
    rolling = calm(operation=strips.SWITCH)
    found = costs(rolling)
    assert found["stop"] == "ends rollback" and found["rollback"] == "rollback runs"
    assert found["disarm"] == found["relaunch"] == "after rollback"
    assert going(rolling) == {"stop", "hand-over"}
    stopping = calm(operation=replace(strips.SWITCH, verb="stop"))
    assert costs(stopping)["rollback"].startswith("ends stop, ≈") and costs(stopping)["stop"] == "stop runs"
    assert going(stopping) == {"rollback", "hand-over"}
    ended = calm(operation=replace(strips.SWITCH, state=OperationState.HALF_DONE))
    assert going(ended) == {*EVERY, "hand-over"}


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("state", [OperationState.RUNNING, OperationState.UNKNOWN, OperationState.DONE])
def test_what_the_key_line_calls_going_is_what_the_policy_lets_go(verb: Verb, state: OperationState) -> None:
    snapshot = calm(operation=replace(strips.SWITCH, verb=verb.value, state=state))
    found = going(snapshot)
    running = verb if state in (OperationState.RUNNING, OperationState.UNKNOWN) else None
    for ident in EVERY:
        asked = verb_of(ident, snapshot, snapshot.lanes[0])
        told = decide(asked, replace(strips.IN_WINDOW, running=verb.value if running else "", running_verb=running))
        assert (ident in found) is not bool(told.denied), (ident, told.denied)


def test_no_way_back_is_said_and_does_not_go_but_by_what_a_window_has_frozen() -> None:
    gone = replace(pictures.station(), hosts=tuple(_without_retired(host) for host in pictures.station().hosts))
    price = prices(gone, gone.lanes[0], mine=False)["rollback"]
    assert (price.words, price.short, price.goes, price.grave) == ("NO WAY BACK", "NO WAY BACK", False, True)
    inside = strips.under_way(gone, operation=None)
    assert prices(inside, inside.lanes[0], mine=True)["rollback"].goes


def _without_retired(host: HostView) -> HostView:
    held = host.containers.value
    if held is None:
        return host
    kept = tuple(item for item in held.items if item.up)
    return replace(host, containers=replace(host.containers, value=replace(held, items=kept)))


def test_a_lane_of_another_operator_or_machine_leaves_b_and_h() -> None:
    held = calm(lease=replace(strips.LEASE, operator="ben"))
    assert going(held, mine=False) == {"rollback", "hand-over"}
    assert costs(held, mine=False)["hand-over"] == "take over"
    assert asks(held, held.lanes[0], mine=False) == "held by ben: H takes over, B too"
    own = calm()
    assert asks(own, own.lanes[0], mine=False) == "held by ana: H takes over, B too", "at another machine"
    late = calm(lease=replace(strips.LEASE, operator="ben", renewed=strips.CLOCK - 900))
    assert going(late, mine=False) == {*EVERY, "hand-over"}
    assert asks(late, late.lanes[0], mine=False) == "lease ran out: the lane's name is typed"
    nobody = calm(lease=None, window=None)
    assert "hand-over" not in going(nobody, mine=False)


@pytest.mark.parametrize(
    ("extra", "mine", "found"),
    [
        ({}, True, Transfer.OFFER),
        ({}, False, Transfer.TAKE),
        ({"operator": "ben"}, False, Transfer.TAKE),
        ({"operator": "ben", "offered_to": "ana"}, False, Transfer.ACCEPT),
        ({"operator": "ben", "offered_to": "eve"}, False, Transfer.TAKE),
        ({"renewed": strips.CLOCK - 900}, True, Transfer.TAKE),
        ({"operator": "ben", "renewed": strips.CLOCK - 900}, False, Transfer.TAKE),
    ],
)
def test_what_h_does_with_a_lease(extra: dict[str, Any], mine: bool, found: Transfer) -> None:
    assert transfer(replace(strips.LEASE, **extra), "ana", strips.CLOCK, mine=mine) is found


def test_what_the_keys_ask_for_holds_for_each_of_them() -> None:
    snapshot = calm()
    lane = snapshot.lanes[0]
    assert asks(snapshot, lane, mine=True) == "in the window: one letter"
    assert lane.health.taken_mono is not None
    unread = lane_as(snapshot, health=replace(lane.health, taken_mono=lane.health.taken_mono - 600.0))
    assert asks(unread, unread.lanes[0], mine=True) == "one letter for D, else the lane's name"
    assert "relaunch" not in going(unread), "denied until it is read"
    down = lane_as(unread, verdict=LaneVerdict(LaneState.DOWN, "port closed"))
    assert asks(down, down.lanes[0], mine=True) == "one letter for D B, else the lane's name"
    outside = calm(lease=None, window=None)
    assert asks(outside, outside.lanes[0], mine=False) == "no window: the lane's name is typed"
    blind = lane_as(snapshot, acting=None)
    assert asks(blind, blind.lanes[0], mine=False) == "head not read: the lane's name and a reason"
    hosts = (replace(snapshot.hosts[0], link=LinkState(LinkStatus.DOWN, 0.0, "no route")), *snapshot.hosts[1:])
    cut = replace(snapshot, hosts=hosts)
    assert asks(cut, cut.lanes[0], mine=True) == "head not read: the lane's name and a reason"


# --- under way --------------------------------------------------------------------------------------------------------


def test_stages_are_counted_and_timed() -> None:
    found = stages(strips.SWITCH, strips.CLOCK)
    assert [stage.progress for stage in found[:4]] == [Progress.DONE, Progress.DONE, Progress.NOW, Progress.NEXT]
    stop = found[2]
    assert (stop.done, stop.count, stop.elapsed, stop.usual, stop.left) == (2, 4, 41.0, 52.0, 11.0)
    assert [stage.number for stage in found] == [1, 2, 3, 4, 5, 6, 7]


def test_one_after_the_other_adds_up_and_together_takes_as_long_as_the_slowest() -> None:
    steps = tuple(replace(step, together="") for step in strips.SWITCH.steps)
    assert stages(replace(strips.SWITCH, steps=steps), strips.CLOCK)[2].usual == 4 * 52.0


def test_the_forecast_adds_what_is_left_and_stops_at_what_nobody_knows() -> None:
    found = dict(forecast(strips.SWITCH, strips.CLOCK))
    assert found["stop"] == strips.CLOCK + 11.0
    assert found["rows"] == strips.CLOCK + 491.0
    assert found["boot"] == pytest.approx(strips.CLOCK + 1066.3)
    steps = tuple(replace(step, usual=None) if step.stage == "rows" else step for step in strips.SWITCH.steps)
    unknown = dict(forecast(replace(strips.SWITCH, steps=steps), strips.CLOCK))
    assert unknown["stop"] == strips.CLOCK + 11.0 and unknown["rows"] is None and unknown["boot"] is None


def test_a_stage_over_its_time_is_due_now() -> None:
    later = strips.CLOCK + 600.0
    assert dict(forecast(strips.SWITCH, later))["stop"] == later


@pytest.mark.parametrize("state", [StepState.FAILED, StepState.STOPPED, StepState.FENCED, StepState.UNKNOWN])
def test_a_bad_step_breaks_its_stage(state: StepState) -> None:
    steps = list(strips.SWITCH.steps)
    steps[3] = replace(steps[3], state=state)
    stop = stages(replace(strips.SWITCH, steps=tuple(steps)), strips.CLOCK)[2]
    assert (stop.progress, stop.word) == (Progress.BROKEN, state.value.upper())


def test_only_what_runs_is_under_way_and_time_is_the_heads() -> None:
    snapshot = strips.under_way()
    assert runs(snapshot.lanes[0]) is strips.SWITCH
    ended = strips.under_way(operation=replace(strips.SWITCH, state=OperationState.DONE))
    assert runs(ended.lanes[0]) is None
    later = replace(snapshot, now=snapshot.now + 30.0)
    assert head_now(later, later.lanes[0]) == strips.CLOCK + 30.0
    assert head_now(pictures.spark4(), pictures.spark4().lanes[0]) == pictures.WALL
