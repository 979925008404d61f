"""The four lamps, on pictures of lanes in every state."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "widgets"))

import pictures

from console.lamps import lamps, retired_containers
from console.readings.health import LaneState, LaneVerdict, Lights, ProcessLight, ProgressLight
from console.snapshot import LaneView, Severity, Snapshot

OLD = "df42c10" + "1" * 33


def lane_of(snapshot: Snapshot, **changes: Any) -> LaneView:
    return replace(snapshot.lanes[0], **changes)


def in_state(state: LaneState, progress: ProgressLight | None = None, **changes: Any) -> tuple[Snapshot, LaneView]:
    snapshot = pictures.spark4()
    lights = replace(snapshot.lanes[0].lights, progress=progress or snapshot.lanes[0].lights.progress)
    changes.setdefault("state_since", snapshot.now - 41)
    return snapshot, lane_of(snapshot, verdict=LaneVerdict(state, "because"), lights=lights, **changes)


def test_serving_says_rate_and_requests() -> None:
    snapshot = pictures.spark4()
    serving = lamps(snapshot, snapshot.lanes[0])[0]
    assert (serving.word, serving.rest, serving.note, serving.severity) == (
        "66.3 tok/s",
        "· 3 running",
        "up 3d04h",
        Severity.NORMAL,
    )


@pytest.mark.parametrize(
    ("state", "progress", "word", "severity"),
    [
        (LaneState.IDLE, None, "IDLE", Severity.NORMAL),
        (LaneState.BUSY, ProgressLight(running=4, moving_for=45.2), "PREFILL 45s", Severity.INFO),
        (LaneState.STALLED, ProgressLight(running=2, frozen_for=41.0), "STALLED 41s", Severity.ACT),
        (LaneState.DOWN, None, "DOWN 41s", Severity.ACT),
        (LaneState.DEGRADED, None, "DEGRADED 41s", Severity.ACT),
        (LaneState.PAUSED, None, "PAUSED 41s", Severity.ACT),
        (LaneState.BLIND, None, "UP, BLIND", Severity.LOOK),
        (LaneState.DRAINING, None, "DRAINING 41s", Severity.LOOK),
        (LaneState.READY, None, "READY", Severity.INFO),
        (LaneState.UNKNOWN, None, "UNKNOWN", Severity.LOOK),
        (LaneState.SERVING, ProgressLight(running=3, decode_tps=66.3, frozen_for=3.1), "NO STEP 3s", Severity.LOOK),
        (LaneState.SERVING, ProgressLight(running=3, decode_tps=66.3, frozen_for=1.0), "66.3 tok/s", Severity.NORMAL),
        (LaneState.SERVING, ProgressLight(running=3), "SERVING", Severity.NORMAL),
    ],
)
def test_every_state_has_its_word(
    state: LaneState, progress: ProgressLight | None, word: str, severity: Severity
) -> None:
    snapshot, lane = in_state(state, progress)
    serving = lamps(snapshot, lane)[0]
    assert (serving.word, serving.severity) == (word, severity)


def test_every_state_is_drawn() -> None:
    for state in LaneState:
        snapshot, lane = in_state(state)
        assert lamps(snapshot, lane)[0].word


def test_down_remembers_what_it_served() -> None:
    snapshot, lane = in_state(LaneState.DOWN)
    assert lamps(snapshot, lane)[0].rest == "was 66.3 tok/s"
    assert lamps(snapshot, replace(lane, last_decode=None))[0].rest == ""


def test_a_boot_stands_beside_its_usual_time_and_is_louder_when_overdue() -> None:
    snapshot, lane = in_state(LaneState.BOOTING)
    lane = replace(lane, lane=lane.lane.model_copy(update={"usual_boot_s": 575.0}))

    def booting(for_seconds: float) -> tuple[str, Severity]:
        process = ProcessLight(4, 4, started_at=snapshot.wall - for_seconds)
        lamp = lamps(snapshot, replace(lane, lights=Lights(process=process)))[0]
        return lamp.word, lamp.severity

    assert booting(250) == ("BOOT 4m10s of 9m35s", Severity.INFO)
    assert booting(900) == ("BOOT 15m00s of 9m35s", Severity.LOOK)


def test_revision_is_read_by_rank_and_mixed_is_loud() -> None:
    snapshot = pictures.spark4()
    lane = snapshot.lanes[0]
    same = lamps(snapshot, lane)[1]
    assert (same.word, same.note, same.severity) == ("9f2c1a7", "4 of 4 ranks", Severity.NORMAL)
    ranks = (*lane.ranks[:3], replace(lane.ranks[3], revision=OLD))
    mixed = lamps(snapshot, replace(lane, ranks=ranks))[1]
    assert (mixed.word, mixed.rest, mixed.severity) == ("MIXED", "9f2c1a7 df42c10", Severity.ACT)


def test_a_rank_that_cannot_be_read_is_not_counted_as_agreeing() -> None:
    snapshot = pictures.spark4()
    lane = snapshot.lanes[0]
    ranks = (*lane.ranks[:3], replace(lane.ranks[3], revision="", container=None))
    lamp = lamps(snapshot, replace(lane, ranks=ranks))[1]
    assert (lamp.word, lamp.note, lamp.severity) == ("9f2c1a7", "3 of 4 ranks", Severity.LOOK)
    none = tuple(replace(rank, revision="", container=None) for rank in lane.ranks)
    assert lamps(snapshot, replace(lane, ranks=none))[1].word == "UNKNOWN"


def test_what_is_not_read_yet_says_so() -> None:
    snapshot = pictures.spark4()
    _, _, watchdog, rollback = lamps(snapshot, snapshot.lanes[0])
    assert (watchdog.word, watchdog.note) == ("UNKNOWN", "not read yet")
    assert (rollback.word, rollback.note) == ("UNKNOWN", "not judged yet")
    assert watchdog.rest == "(unless-stopped)"


def test_retired_containers_are_named_from_a_current_reading_only() -> None:
    snapshot = pictures.station()
    host = snapshot.hosts[0]
    docker = host.containers.value
    assert docker is not None
    apart = replace(docker, items=(docker.items[0], replace(docker.items[1], id="5be0a1c9d2f4")))
    host = replace(host, containers=replace(host.containers, value=apart))
    snapshot = replace(snapshot, hosts=(host,))
    lane = snapshot.lanes[0]
    names = retired_containers(snapshot, lane)
    assert names == ("dsv41-vllm-v21-fused-split-RETIRED-REF",)
    head = snapshot.host(lane.lane.head)
    stale = replace(head, containers=replace(head.containers, taken_mono=snapshot.now - 1000))
    old = replace(snapshot, hosts=tuple(stale if host.name == head.name else host for host in snapshot.hosts))
    assert retired_containers(old, lane) == ()


def test_retired_containers_are_those_of_the_lane_whatever_rank_its_head_has() -> None:
    snapshot = pictures.station()
    lane = snapshot.lanes[0]
    docker = snapshot.hosts[0].containers.value
    assert docker is not None
    retired = replace(docker.items[1], id="a" * 12)
    foreign = replace(retired, id="b" * 12, name="other-lane-RETIRED", ports=(30007,))
    host = replace(snapshot.hosts[0], containers=replace(snapshot.hosts[0].containers, value=replace(docker, items=(
        docker.items[0], retired, foreign))))  # fmt: skip
    snapshot = replace(snapshot, hosts=(host,))
    assert retired_containers(snapshot, replace(lane, lane=lane.lane.model_copy(update={"containers": ""}))) == (
        retired.name,
    )
    worker = replace(lane.ranks[0], host="worker", container=foreign)
    stopped = replace(lane.ranks[0], rank=1, container=retired)
    assert retired_containers(snapshot, replace(lane, ranks=(worker, stopped))) == ()


def test_times_of_containers_are_by_the_clock_of_their_host() -> None:
    snapshot = pictures.spark4()
    ahead = replace(snapshot.hosts[0], drift=3600.0)
    snapshot = replace(snapshot, hosts=(ahead, *snapshot.hosts[1:]))
    lane = snapshot.lanes[0]
    process = ProcessLight(4, 4, started_at=snapshot.wall + 3600 - 250)
    lights = replace(lane.lights, process=process)
    assert lamps(snapshot, replace(lane, lights=lights))[0].note == "up 4m10s"
    booting = replace(lane, lights=lights, verdict=LaneVerdict(LaneState.BOOTING, "loading"))
    assert lamps(snapshot, booting)[0].word.startswith("BOOT 4m10s")
