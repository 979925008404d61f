"""What guarded keys cost, as the key line says it, and what is under way with what comes next."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("widgets", "screens")]

import pictures  # noqa: E402
import strips  # noqa: E402

from console.actions.plan import Verb  # noqa: E402
from console.actions.prices import prices, verb_of  # noqa: E402
from console.actions.underway import Progress, forecast, head_now, runs, stages  # noqa: E402
from console.readings.acting_types import OperationState, StepState  # noqa: E402
from console.readings.watchdog import WatchdogState  # noqa: E402
from console.snapshot import Snapshot  # noqa: E402


def costs(snapshot: Snapshot) -> dict[str, str]:
    return {ident: words for ident, (words, _) in prices(snapshot, snapshot.lanes[0]).items()}


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
    assert found["rollback"] in ("roll back", "no way back")
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
