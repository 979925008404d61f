"""Each guarded action on the embedded fleet, to its end: what is so afterwards, and what stands in the ledger."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest
import told
from drills import BACK, NOW, Drill, drill

from console.actions.plan import Verb
from console.readings.acting_types import OperationState, StepState
from console.readings.ledger import Kind
from console.readings.lights import LaneState
from console.readings.watchdog import WatchdogState

SERVING, RETIRED = "dsv41-vllm-1017-v21cfg-BOUND-REF", "dsv41-vllm-v21-fused-split-RETIRED-REF"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told.look_often(monkeypatch)
    monkeypatch.setenv("LANESWAP_STATE", str(tmp_path))


def runs(made: Drill, name: str) -> bool:
    """The one container that runs on the Station."""
    return made.running()["station"] == [name]


async def test_a_docker_lane_rolls_back_and_forward_again_with_the_names_of_their_roles() -> None:
    async with drill("station", "station") as made:
        for serves, revision in (("v21-fused-split", BACK), ("1017-v21cfg", NOW)):
            operation = await made.do(Verb.ROLLBACK)
            assert operation.state is OperationState.DONE, operation
            await made.until(partial(runs, made, f"dsv41-vllm-{serves}-BOUND-REF"), serves)
            await made.until(lambda: made.view().verdict.state is LaneState.SERVING, "it serves")
            assert made.revisions() == {revision}
            await made.recorded(operation)
        held = made.snapshot().host("station").containers.value
        assert held is not None
        policies = {item.name: item.restart_policy for item in held.items}
        assert policies == {SERVING: "unless-stopped", RETIRED: "unless-stopped"}


async def test_a_docker_lane_is_stopped_and_started_again_by_its_id() -> None:
    async with drill("station", "station") as made:
        stopped = await made.do(Verb.STOP)
        assert stopped.state is OperationState.DONE
        await made.until(lambda: made.view().verdict.state is LaneState.DOWN, "it is down")
        assert made.running() == {"station": []}
        kept = made.root / "station/var/tmp/laneswap/station.station/ops" / stopped.id / "evidence"
        assert json.loads((kept / f"{SERVING}.inspect.json").read_text())[0]["Name"] == f"/{SERVING}"
        assert "Application startup complete" in (kept / f"{SERVING}.log").read_text()
        again = await made.do(Verb.RELAUNCH)
        assert again.state is OperationState.DONE
        await made.until(lambda: made.view().verdict.state is LaneState.SERVING, "it serves")
        assert made.running() == {"station": [SERVING]}
        await made.recorded(again)


async def test_a_stop_ends_a_way_back_that_still_boots_for_minutes() -> None:
    """What the runner waits for on its own host is its child, and ends with it."""
    async with drill("station", "station", 4.0) as made:
        began = await made.begin(Verb.ROLLBACK)

        def boots() -> bool:
            found = made.operation()
            at = next((step for step in found.steps if step.stage == "boot"), None) if found is not None else None
            return at is not None and at.state is StepState.RUNNING

        await made.until(boots, "the retired one boots")
        stopped = await made.do(Verb.STOP)
        assert stopped.state is OperationState.DONE and stopped.id != began.operation
        assert made.running() == {"station": []}
        await made.recorded(stopped)


async def test_the_watchdog_of_a_fleet_is_disarmed_owed_and_armed_again() -> None:
    async with drill("spark4", "dsv41") as made:
        off = await made.do(Verb.DISARM)
        assert off.state is OperationState.DONE
        await made.until(lambda: told.watchdog(WatchdogState.OFF)(made.view()), "the watchdog is off")
        acting = made.view().acting
        assert (
            acting is not None
            and acting.value is not None
            and [debt.what for debt in acting.value.debts] == ["watchdog"]
        )
        assert made.view().verdict.state is LaneState.SERVING
        on = await made.do(Verb.ARM)
        assert on.state is OperationState.DONE
        await made.until(lambda: told.watchdog(WatchdogState.ARMED)(made.view()), "the watchdog is armed")
        await made.until(lambda: not made.view().acting.value.debts, "nothing is owed")  # type: ignore[union-attr]
        verified = await made.recorded(on)
        assert [record.result for record in verified.text.records if record.kind is Kind.OUTCOME] == ["done", "done"]


async def test_a_fleet_is_stopped_on_every_rank_and_launched_again() -> None:
    async with drill("spark4", "dsv41") as made:
        before = {rank.host: rank.container.id for rank in made.view().ranks if rank.container is not None}
        stopped = await made.do(Verb.STOP)
        assert stopped.state is OperationState.DONE
        await made.until(lambda: not any(made.running().values()), "no rank runs")
        again = await made.do(Verb.RELAUNCH)
        assert again.state is OperationState.DONE, again
        await made.until(lambda: made.view().verdict.state is LaneState.SERVING, "it serves")
        after = {rank.host: rank.container.id for rank in made.view().ranks if rank.container is not None}
        assert len(after) == 4 and not set(before.values()) & set(after.values())
        await made.until(lambda: told.watchdog(WatchdogState.ARMED)(made.view()), "the watchdog is armed")
        await made.recorded(again)


async def test_a_fleet_rolls_back_by_its_site_file_with_rows_built_where_they_were_gone() -> None:
    async with drill("spark4", "dsv41") as made:
        operation = await made.do(Verb.ROLLBACK)
        assert operation.state is OperationState.DONE, operation
        await made.until(lambda: made.revisions() == {BACK}, "every rank is on the old revision")
        await made.until(lambda: made.view().verdict.state is LaneState.SERVING, "it serves")
        site = made.root / "spark-0/home/ops/sparkrun-recipes/recipes/deepseek-v4.1-flash/sglang/launch"
        text = (site / "fleet.env").read_text()
        assert f"SNAP=snapshots/{BACK}\n" in text and "ENGRAM_LOCAL_DIR=dsv41-engram-local\n" in text
        assert len(list(site.glob("fleet.env.*.bak"))) == 1
        built = json.loads((made.root / "spark-2/home/ops/dsv41-engram-local/engram-local.json").read_text())
        assert BACK in built["source"]
        assert not (made.root / "spark-2/home/ops/dsv41-engram-local-1017").exists()  # there was room for one only
        await made.recorded(operation)


async def test_the_vllm_fleet_is_stopped_and_launched_by_its_own_launcher() -> None:
    async with drill("cluster4", "dsv41") as made:
        stopped = await made.do(Verb.STOP)
        assert stopped.state is OperationState.DONE
        await made.until(lambda: made.view().verdict.state is LaneState.DOWN, "it is down")
        await made.until(lambda: told.watchdog(WatchdogState.PAUSED)(made.view()), "the watchdog is paused")
        again = await made.do(Verb.RELAUNCH)
        assert again.state is OperationState.DONE, again
        await made.until(lambda: made.view().verdict.state is LaneState.SERVING, "it serves")
        await made.until(lambda: told.watchdog(WatchdogState.ARMED)(made.view()), "the watchdog is armed")
        await made.recorded(again)


async def test_record_and_state_of_a_rehearsal_never_lie_in_the_users_folder(tmp_path: Path) -> None:
    async with drill("drill-head-deaf", "dsv41") as made:
        begun = await made.begin(Verb.DISARM)
        await made.recorded(await made.ended(begun))
        assert (made.root / ".console/ledger.jsonl").exists()
    assert not os.listdir(tmp_path)
