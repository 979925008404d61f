"""Every drill: what an operator's action comes to when something goes wrong in the middle, and what is left then."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import told
from drills import BACK, Drill, drill, drill_once_read

from console.actions.plan import Verb
from console.execution.hands import Wish
from console.execution.policy import Confirmation, How, Need, Refused, clock
from console.readings.acting_types import OperationState, StepState
from console.readings.ledger import Kind
from console.readings.lights import LaneState
from console.readings.watchdog import WatchdogState

SERVING, RETIRED = "dsv41-vllm-1017-v21cfg-BOUND-REF", "dsv41-vllm-v21-fused-split-RETIRED-REF"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told.look_often(monkeypatch)
    monkeypatch.setenv("LANESWAP_STATE", str(tmp_path))


def ran_once(made: Drill, op: str) -> bool:
    """No step of an operation was begun a second time, by its journal on the head."""
    head = made.view().lane.head
    fleet = made.snapshot().fleet.name
    journal = made.root / head / f"var/tmp/laneswap/{fleet}.{made.lane}/ops/{op}/journal.jsonl"
    begun = [line["id"] for line in map(json.loads, journal.read_text().splitlines()) if line.get("state") == "running"]
    return len(begun) == len(set(begun)) and bool(begun)


async def test_a_worker_that_dies_ends_the_launcher_and_the_survivors_are_stopped() -> None:
    async with drill("drill-worker-dies", "dsv41") as made:
        operation = await made.do(Verb.RELAUNCH)
        assert operation.state is OperationState.HALF_DONE
        launch = next(step for step in operation.steps if step.id == "launch")
        assert launch.state is StepState.FAILED and "exited with 137" in launch.words
        assert {step.state for step in operation.rescue} == {StepState.DONE}
        await made.until(lambda: not any(made.running().values()), "what was left is stopped")
        kept = made.root / f"spark-2/var/tmp/laneswap/spark4.dsv41/ops/{operation.id}/evidence/sgldsv41.log"
        assert kept.read_text()
        assert ran_once(made, operation.id)
        await made.recorded(operation)
        again = await made.do(Verb.RELAUNCH)
        assert again.state is OperationState.DONE, again


async def test_a_preflight_that_fails_leaves_the_old_engine_serving_whatever_the_launcher_says() -> None:
    async with drill("drill-preflight", "dsv41") as made:
        await made.until(lambda: len(made.source.rehearsal.played) == 1, "the rows are gone")
        operation = await made.do(Verb.RELAUNCH)
        assert operation.state is OperationState.HALF_DONE
        assert made.view().verdict.state is LaneState.SERVING
        log = made.root / f"spark-0/var/tmp/laneswap/spark4.dsv41/ops/{operation.id}/launch/log"
        assert "rank 1: image-ok overlay-ok rows-MISSING" in log.read_text()
        assert "the fleet is DOWN" in log.read_text() and "this launch replaced nothing" in log.read_text()
        await made.until(lambda: told.watchdog(WatchdogState.OFF)(made.view()), "the launcher left the watchdog off")
        assert (await made.do(Verb.ARM)).state is OperationState.DONE
        await made.until(lambda: told.watchdog(WatchdogState.ARMED)(made.view()), "the watchdog is armed")


async def test_a_container_that_hangs_is_killed_after_its_grace_and_counted_as_stopped() -> None:
    async with drill("drill-stop-hangs", "station") as made:
        operation = await made.do(Verb.STOP)
        assert operation.state is OperationState.DONE
        stop = next(step for step in operation.steps if step.id == "stop-station")
        assert "exited 137" in stop.words
        held = made.snapshot().host("station").containers.value
        assert held is not None and next(item for item in held.items if item.name == SERVING).exit_code == 137


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("drill-image-removed", "No such image"),
        ("drill-port-taken", "exited with 1"),
        ("drill-exits-at-once", "exited with 1"),
        ("drill-stop-underneath", "exited with 0"),
    ],
)
async def test_a_retired_container_that_does_not_come_up_leaves_the_way_forward(scenario: str, words: str) -> None:
    async with drill(scenario, "station") as made:
        operation = await made.do(Verb.ROLLBACK)
        assert operation.state is OperationState.HALF_DONE
        assert operation.words.startswith(f"HALF DONE after stop {SERVING}, next: start {RETIRED}")
        log = made.root / f"station/var/tmp/laneswap/station.station/ops/{operation.id}/start-station/out"
        assert words in log.read_text()
        await made.recorded(operation)
        await made.until(lambda: made.view().verdict.state is LaneState.DOWN, "it is down")
        held = made.snapshot().host("station").containers.value
        assert held is not None and {SERVING, RETIRED} == {item.name for item in held.items}
        await mended(made, scenario)
        again = await made.do(Verb.RELAUNCH)
        assert again.state is OperationState.DONE, again
        await made.until(lambda: made.view().verdict.state is LaneState.SERVING, "it serves")


async def mended(made: Drill, scenario: str) -> None:
    """What the operator puts right first."""
    if scenario == "drill-image-removed":
        image = "vllm/vllm-openai:deepseekv41-flash-0909"
        await made.source.rehearsal.inject("image", host="station", image=image, what="back")
    elif scenario == "drill-port-taken":
        await made.source.rehearsal.inject("port", host="station", port=30006, taken=False)


async def test_a_retired_container_that_is_removed_closes_the_way_back() -> None:
    async with drill_once_read("retired-gone", "station", 10.0) as made:
        await made.until(lambda: any("was removed" in event.text for event in made.snapshot().events), "that is told")
        plan, decision = await made.asked(Verb.ROLLBACK)
        async with asyncio.timeout(90):  # Docker's event is told before the containers were listed anew
            while plan.steps:
                await asyncio.sleep(0.1)
                plan, decision = await made.asked(Verb.ROLLBACK)
        assert decision.denied
        with pytest.raises(Refused):
            await made.begin(Verb.ROLLBACK)
        assert made.running() == {"station": [SERVING]}


async def test_a_folder_that_is_another_one_now_is_named_before_anybody_needs_the_way_back() -> None:
    async with drill_once_read("drill-bind-replaced", "station", 10.0) as made:

        def named() -> bool:
            return any("/home/milo/dsv41/hook" in f"{row}" for row in (made.view().ready, made.snapshot().events))

        await made.until(named, "the folder is named")


async def test_a_relaunch_by_the_watchdog_in_the_middle_is_waited_for_and_the_way_back_goes_on() -> None:
    async with drill("drill-watchdog-fires", "dsv41", 20.0) as made:
        operation = await made.do(Verb.ROLLBACK)
        assert operation.state is OperationState.DONE, operation
        played = [fault.kind for fault in made.source.rehearsal.played]
        assert played == ["launch"]
        await made.until(lambda: made.revisions() == {BACK}, "every rank is on the old revision")
        await made.recorded(operation)


async def test_while_somebody_else_relaunches_the_lane_no_watchdog_is_ended_and_no_launch_begun() -> None:
    async with drill("drill-relaunch-underneath", "dsv41", 2.0) as made:
        await made.until(lambda: made.source.rehearsal.played, "somebody launches")
        begun = await made.begin(Verb.RELAUNCH)
        operation = await made.ended(begun)
        assert operation.state in (OperationState.FAILED, OperationState.HALF_DONE), operation
        assert "a launch is under way" in operation.words, operation.words
        states = {step.id: step.state for step in operation.steps}
        assert states["disarm"] in (StepState.SATISFIED, StepState.FAILED)  # the other launcher has ended it
        assert states["launch"] in (StepState.FAILED, StepState.SKIPPED)


async def test_another_operators_lane_is_denied_and_taken_over_by_the_way_back_or_on_demand() -> None:
    async with drill("drill-lease-held", "dsv41") as made:
        await made.until(lambda: made.view().acting.value.lease is not None, "the lease is read")  # type: ignore[union-attr]
        _, decision = await made.asked(Verb.STOP)
        assert "held by ben" in decision.denied
        with pytest.raises(Refused, match="held by ben"):
            await made.begin(Verb.STOP)
        _, back = await made.asked(Verb.ROLLBACK)
        assert not back.denied and back.takes_over and back.need is Need.NAME
        operation = await made.do(Verb.DISARM, Wish(take_over=True))
        assert operation.state is OperationState.DONE
        verified = await made.recorded(operation)
        taken = [record for record in verified.text.records if record.kind is Kind.TAKEOVER]
        assert len(taken) == 1 and "ben" in taken[0].text and taken[0].operator == "ana"
        epoch = made.root / "spark-0/var/tmp/laneswap/spark4.dsv41/epoch"
        assert int(epoch.read_text()) > 7


async def test_where_the_head_does_not_get_to_a_rank_the_sequence_stays_in_the_console() -> None:
    async with drill("drill-head-deaf", "dsv41") as made:
        begun = await made.begin(Verb.STOP)
        assert begun.runs_on == "console" and "spark-2" in begun.words
        operation = await made.ended(begun)
        assert operation.state is OperationState.DONE and operation.runs_on == "console"
        await made.until(lambda: not any(made.running().values()), "no rank runs")
        assert ran_once(made, operation.id)
        await made.recorded(operation)


async def test_a_rank_that_falls_silent_is_asked_again_and_no_step_runs_twice() -> None:
    async with drill("drill-host-lost", "dsv41", 10.0) as made:
        operation = await made.do(Verb.STOP)
        assert operation.state is OperationState.DONE, operation
        played = made.source.rehearsal.played
        await made.until(lambda: [fault.kind for fault in played] == ["host", "host"], "it was silent and came back")
        assert ran_once(made, operation.id)
        await made.until(lambda: not any(made.running().values()), "no rank runs")


async def test_a_head_that_restarts_leaves_a_half_done_lane_that_can_be_launched_anew() -> None:
    async with drill("drill-head-reboots", "dsv41", 40.0) as made:
        begun = await made.begin(Verb.RELAUNCH)
        await made.until(lambda: made.source.rehearsal.played, "the head restarts")
        operation = await made.ended(begun)
        assert operation.state is OperationState.HALF_DONE and "next: launch" in operation.words
        again = await made.do(Verb.RELAUNCH)
        assert again.state is OperationState.DONE, again
        await made.until(lambda: made.view().verdict.state is LaneState.SERVING, "it serves")


async def test_on_a_full_disk_of_the_head_only_break_glass_goes_and_all_of_it() -> None:
    async with drill("drill-head-full", "dsv41") as made:
        await made.until(lambda: made.source.rehearsal.played, "the disk is full")
        plan, decision = await made.hands.plan("dsv41", Verb.STOP)
        assert decision.break_glass and "No space left on device" in " ".join(decision.warnings)
        with pytest.raises(Refused, match="reason"):
            await made.hands.begin(plan, decision, Confirmation(How.NAME, plan.id, clock(), name="dsv41"))
        assert all(made.running().values()) and made.view().verdict.state is LaneState.SERVING
        begun = await made.begin(Verb.STOP)
        assert begun.runs_on == "console" and "is broken" in begun.words
        await made.until(lambda: any("stop done" in words for words in made.said), "its end is told")
        await made.until(lambda: not any(made.running().values()), "nothing runs any more")


async def test_a_disk_that_fills_in_the_middle_ends_the_sequence_and_leaves_no_half_line() -> None:
    async with drill("spark4", "dsv41", 10.0) as made:
        begun = await made.begin(Verb.STOP)
        await made.until(lambda: (found := made.operation()) and any(s.began for s in found.steps), "it has begun")
        await made.source.rehearsal.inject("disk", host="spark-0", free_gib=0.0)
        folder = made.root / f"spark-0/var/tmp/laneswap/spark4.dsv41/ops/{begun.operation}"
        await made.until(lambda: "No space left" in (folder / "sequence/log").read_text(), "the runner gave up")
        lines = (folder / "journal.jsonl").read_text()
        assert lines.endswith("\n") and all(json.loads(line)["seq"] for line in lines.splitlines())
        await made.source.rehearsal.inject("disk", host="spark-0")
        await made.until(
            lambda: (found := made.operation()) and found.state in (OperationState.LOST, OperationState.HALF_DONE),
            "nobody carries it on",
        )
        assert (await made.do(Verb.STOP)).state is OperationState.DONE


async def test_a_cut_between_console_and_head_does_not_touch_the_sequence() -> None:
    async with drill("spark4", "dsv41", 20.0) as made:
        begun = await made.begin(Verb.STOP)
        await made.source.rehearsal.inject("host", host="spark-0", mode="refused")
        folder = made.root / f"spark-0/var/tmp/laneswap/spark4.dsv41/ops/{begun.operation}"

        await made.until(lambda: '"kind": "end"' in (folder / "journal.jsonl").read_text(), "the sequence has ended")
        await made.source.rehearsal.inject("host", host="spark-0", mode="open")
        operation = await made.ended(begun)
        assert operation.state is OperationState.DONE
        await made.recorded(operation)
