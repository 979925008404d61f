"""The four lamps, on pictures of lanes in every state."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "widgets"))

import pictures

from console.alarms import upkeep_alarms
from console.fleet.sitefile import Site, SiteFile, SiteKind
from console.lamps import lamps
from console.readings.boot import Boot, BootFailure, BootProgress, PhaseName
from console.readings.health import LaneState, LaneVerdict, Lights, ProcessLight, ProgressLight
from console.readings.quality import Reading
from console.readings.rows import RowManifest, RowRange, RowState
from console.readings.watchdog import Watchdog, WatchdogState
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


def dog(state: WatchdogState, **more: Any) -> Reading[Watchdog]:
    found = Watchdog(state, f"{state}: because", None, host="n1", **more)
    return Reading("n1:log", 5.0, found, pictures.NOW - 1, pictures.WALL - 1)


def test_what_is_not_read_yet_says_so() -> None:
    snapshot = pictures.spark4()
    lane = lane_of(snapshot, watchdog=Reading("n1:log", 5.0))
    watchdog = lamps(snapshot, lane)[2]
    assert (watchdog.word, watchdog.note, watchdog.severity) == ("UNKNOWN", "not read yet", Severity.INFO)


@pytest.mark.parametrize(
    ("state", "more", "word", "severity"),
    [
        (WatchdogState.ARMED, {}, "ARMED", Severity.NORMAL),
        (WatchdogState.STARTING, {}, "STARTING", Severity.INFO),
        (WatchdogState.BUSY, {}, "ARMED, BUSY", Severity.INFO),
        (WatchdogState.CHECKING, {"attempt": (2, 3)}, "CHECK FAILED 2/3", Severity.LOOK),
        (WatchdogState.RECOVERY, {"attempt": (1, 3)}, "IN RECOVERY 1/3", Severity.LOOK),
        (WatchdogState.PAUSED, {"since": pictures.WALL - 372}, "PAUSED 6m12s", Severity.LOOK),
        (WatchdogState.OFF, {"since": pictures.WALL - 372}, "OFF 6m12s", Severity.LOOK),
        (WatchdogState.OFF, {}, "OFF", Severity.LOOK),
        (WatchdogState.GAVE_UP, {}, "GAVE UP", Severity.ACT),
        (WatchdogState.STANDING_DOWN, {}, "STANDING DOWN", Severity.LOOK),
        (WatchdogState.FAILED, {}, "UNIT FAILED", Severity.ACT),
        (WatchdogState.IN_FLIGHT, {}, "IN FLIGHT", Severity.INFO),
        (WatchdogState.DEAD_LOCK, {}, "DEAD LOCK", Severity.ACT),
        (WatchdogState.TWO, {}, "TWO OF THEM", Severity.ACT),
        (WatchdogState.REUSED_PID, {}, "PID REUSED", Severity.ACT),
        (WatchdogState.NONE, {}, "NONE", Severity.NORMAL),
        (WatchdogState.UNKNOWN, {}, "UNKNOWN", Severity.LOOK),
    ],
)
def test_every_state_of_a_watchdog_has_its_word(
    state: WatchdogState, more: dict[str, Any], word: str, severity: Severity
) -> None:
    snapshot = pictures.spark4()
    drift = snapshot.host("n1").drift or 0.0
    if "since" in more:
        more = {"since": more["since"] + drift}  # it is by the host's clock
    lamp = lamps(snapshot, lane_of(snapshot, watchdog=dog(state, **more)))[2]
    assert (lamp.word, lamp.severity) == (word, severity)


def test_no_state_of_a_watchdog_is_without_word() -> None:
    snapshot = pictures.spark4()
    for state in WatchdogState:
        assert lamps(snapshot, lane_of(snapshot, watchdog=dog(state)))[2].word != ""


def test_a_watchdog_that_can_no_longer_be_read_is_unknown_not_armed() -> None:
    snapshot = pictures.spark4()
    old = replace(dog(WatchdogState.ARMED), taken_mono=snapshot.now - 60)
    lamp = lamps(snapshot, lane_of(snapshot, watchdog=old))[2]
    assert (lamp.word, lamp.rest, lamp.severity) == ("UNKNOWN", "stale", Severity.LOOK)
    failed = replace(dog(WatchdogState.ARMED), error="look has not answered for 12 s")
    assert lamps(snapshot, lane_of(snapshot, watchdog=failed))[2].rest == "look has not answered for 12 s"


def test_without_a_watchdog_restart_policies_are_what_there_is() -> None:
    snapshot = pictures.spark4()
    lamp = lamps(snapshot, lane_of(snapshot, watchdog=None))[2]
    assert (lamp.word, lamp.rest, lamp.note, lamp.severity) == (
        "NONE", "(unless-stopped)", "docker only", Severity.NORMAL,
    )  # fmt: skip


def test_rows_of_another_revision_make_the_revision_bad() -> None:
    snapshot = pictures.spark4()
    lane = snapshot.lanes[0]
    assert lane.rows is not None and lane.rows.value is not None
    copies = list(lane.rows.value.copies)
    manifest = RowManifest((RowRange(1, 0, 10),), "local", revision=OLD)
    copies[2] = replace(
        copies[2], manifest=manifest, state=RowState.OLD_REVISION, words="old revision df42c101, rebuild"
    )
    rows = replace(lane.rows, value=replace(lane.rows.value, copies=tuple(copies)))
    lamp = lamps(snapshot, replace(lane, rows=rows))[1]
    assert (lamp.rest, lamp.severity) == (f"rows of df42c10 on {copies[2].host}", Severity.ACT)
    assert f"rows:{lane.name}:{copies[2].host}" in [
        alarm.key for alarm in upkeep_alarms(snapshot, replace(lane, rows=rows))
    ]


def test_a_site_file_that_names_another_revision_is_said() -> None:
    snapshot = pictures.spark4()
    site = Reading("n1:fleet.env", 5.0, Site("/f", SiteFile(SiteKind.BASH, ()), OLD), snapshot.now, snapshot.wall)
    lane = lane_of(snapshot, site=site)
    lamp = lamps(snapshot, lane)[1]
    assert (lamp.rest, lamp.severity) == ("site file df42c10", Severity.LOOK)
    assert "site-revision:dsv41" in [alarm.key for alarm in upkeep_alarms(snapshot, lane)]


def test_a_boot_says_its_phase_and_its_own_earlier_boots() -> None:
    snapshot, lane = in_state(LaneState.BOOTING)
    boot = Boot("sglang", (), PhaseName.POST_PROCESS)
    started = snapshot.wall + (snapshot.host("n1").drift or 0.0) - 250
    lights = replace(lane.lights, process=replace(lane.lights.process, started_at=started))
    progress = BootProgress(250, (560.0, 600.0), 575.0, PhaseName.POST_PROCESS, 60, 480, 325, False)
    lane = replace(
        lane, lights=lights, boot=Reading("n1:log", 5.0, boot, snapshot.now, snapshot.wall), boot_progress=progress
    )
    lamp = lamps(snapshot, lane)[0]
    assert (lamp.word, lamp.rest, lamp.severity) == ("BOOT 4m10s of 9m35s", "post-process", Severity.INFO)
    late = replace(lane, boot_progress=replace(progress, late=True))
    assert lamps(snapshot, late)[0].severity is Severity.LOOK
    failure = BootFailure("row ranges of layer 1 do not tile", "RuntimeError: ...", heals=False, advice="rebuild")
    fails = replace(lane, boot=Reading("n1:log", 5.0, replace(boot, failure=failure), snapshot.now, snapshot.wall))
    lamp = lamps(snapshot, fails)[0]
    assert (lamp.word, lamp.rest, lamp.severity) == ("BOOT FAILS 4m10s", failure.cause, Severity.ACT)
    assert "boot:dsv41" in [alarm.key for alarm in upkeep_alarms(snapshot, fails)]


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


def test_containers_that_cannot_be_read_say_so_in_the_place_of_a_revision() -> None:
    snapshot = pictures.spark4()
    lane = snapshot.lanes[0]
    none = tuple(replace(rank, revision="", container=None, word="unknown") for rank in lane.ranks)
    process = ProcessLight(expected=4, unknown=("n1: permission denied for /var/run/docker.sock",))
    blind = replace(lane, ranks=none, lights=replace(lane.lights, process=process))
    assert lamps(snapshot, blind)[1].rest == "n1: permission denied for /var/run/docker.sock"
    asked = replace(blind, lights=replace(blind.lights, process=replace(process, unasked=True)))
    assert lamps(snapshot, asked)[1].rest == "no container read yet"
