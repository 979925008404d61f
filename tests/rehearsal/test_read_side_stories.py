"""Each scenario of the read side shows its fault through the real feed: what the operator would be told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from console.alarms import alarms
from console.feed import Feed, survey
from console.fleet.looks import looks
from console.fleet.places import Places
from console.readings.answers import Transport
from console.readings.download import DownloadState
from console.readings.lights import LaneState
from console.readings.look import Look
from console.readings.rows import RowState
from console.readings.watchdog import WatchdogState
from console.rehearsal import Rehearsal
from console.rehearsal.scenario import Scenario, load_scenario
from console.snapshot import LaneView, Severity, Snapshot

LIMIT = 90.0
"""Bound of every wait, seconds; long, because machines that run tests are busy."""
SPEED = 40.0
"""What begins at 15 s begins after 0.4."""
Shows = Callable[[LaneView], object]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is looked at every 1.5 s, in place of every 5 or 15 s."""

    def soon(name: str, places: Places, pids: Sequence[int] = ()) -> Mapping[str, tuple[Look, ...]]:
        wanted = looks(name, places, pids)
        return {host: tuple(replace(look, every=1.5) for look in items) for host, items in wanted.items()}

    monkeypatch.setattr(survey, "looks", soon)


def for_good(scenario: Scenario) -> Scenario:
    """The story without its happy end: what a fault does, stays."""
    lasting = tuple(fault.model_copy(update={"until": None}) for fault in scenario.faults if fault.at < 110)
    return scenario.model_copy(update={"faults": lasting})


@asynccontextmanager
async def watched(scenario: str, speed: float = SPEED) -> AsyncIterator[tuple[Rehearsal, Feed]]:
    async with Rehearsal(for_good(load_scenario(scenario)), speed) as rehearsal:
        rates = rehearsal.fleet.rates.model_copy(update={"containers": 1.0, "gpu": 1.0})
        fleet = rehearsal.fleet.model_copy(update={"rates": rates})
        feed = Feed(fleet, rehearsal.overrides, remembered=rehearsal.remembered)
        await feed.start()
        try:
            yield rehearsal, feed
        finally:
            await feed.stop()


async def until(feed: Feed, lane: str, shows: Shows, what: str) -> Snapshot:
    """The first snapshot that shows it. Fails after LIMIT with what was shown instead."""
    end = time.monotonic() + LIMIT
    while True:
        snapshot = feed.snapshot()
        if shows(snapshot.lane(lane)):
            return snapshot
        assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}; now {snapshot.lane(lane)}"
        await asyncio.sleep(0.1)


def download(state: DownloadState) -> Shows:
    return lambda view: view.download and view.download.value and view.download.value.state is state


def warned(words: str) -> Shows:
    def shows(view: LaneView) -> bool:
        found = view.download.value if view.download else None
        return found is not None and any(words in warning for warning in found.warnings)

    return shows


def copies(*states: RowState, coming: bool = False) -> Shows:
    def shows(view: LaneView) -> bool:
        reading = view.next_rows if coming else view.rows
        return bool(reading and reading.value and tuple(copy.state for copy in reading.value.copies) == states)

    return shows


def watchdog(state: WatchdogState, words: str = "") -> Shows:
    def shows(view: LaneView) -> bool:
        found = view.watchdog.value if view.watchdog else None
        return found is not None and found.state is state and words in found.words

    return shows


def differs(what: str, *odd: str) -> Shows:
    def shows(view: LaneView) -> bool:
        found = view.drift.differences if view.drift else ()
        return any(what in item.what and item.odd == odd for item in found)

    return shows


def seen_by(host: str, shows: Callable[[int, int], bool]) -> Shows:
    """`shows` is asked with how many links of the serving snapshot dangle, and how many leave the folder."""

    def found(view: LaneView) -> bool:
        repo = next((reading.value for name, reading in view.repos if name == host), None)
        snapshot = repo.snapshot("1bae0e1") if repo else None
        return snapshot is not None and shows(len(snapshot.dangling), len(snapshot.outside))

    return found


def failing(cause: str) -> Shows:
    def shows(view: LaneView) -> bool:
        boot = view.boot.value if view.boot else None
        return boot is not None and boot.failure is not None and cause in boot.failure.cause

    return shows


READY, SHARDS = RowState.READY, RowState.SHARDS
STORIES: dict[str, tuple[str, Shows]] = {
    "prepare": (
        "dsv41",
        lambda view: (
            copies(RowState.COPYING, RowState.COPYING, RowState.NO_ROOM, SHARDS, coming=True)(view)
            and download(DownloadState.RUNNING)(view)
        ),
    ),
    "download-oom": ("dsv41", download(DownloadState.FAILED_CAP)),
    "download-done": ("dsv41", download(DownloadState.COMPLETE)),
    "download-cap-not-in-force": ("dsv41", warned("not in force")),
    "download-two": (
        "dsv41",
        lambda view: view.download and view.download.value and view.download.value.processes == 2,
    ),
    "dangling-link": ("dsv41", seen_by("spark-1", lambda dangling, outside: dangling == 1)),
    "shared-blobs": ("dsv41", seen_by("spark-1", lambda dangling, outside: dangling > 40)),
    "rows-stale": ("dsv41", copies(READY, READY, RowState.OLD_REVISION, SHARDS)),
    "rows-wrong-partition": ("dsv41", copies(READY, READY, RowState.WRONG_RANGES, SHARDS)),
    "rows-wrong-rank": (
        "dsv41",
        lambda view: view.rows and view.rows.value and view.rows.value.copies[2].state is RowState.WRONG_RANK,
    ),
    "rows-holes": ("dsv41", copies(READY, RowState.HOLES, READY, SHARDS)),
    "watchdog-gaveup": ("dsv41", watchdog(WatchdogState.GAVE_UP)),
    "watchdog-busy": ("dsv41", watchdog(WatchdogState.BUSY)),
    "watchdog-dead": ("dsv41", watchdog(WatchdogState.DEAD_LOCK)),
    "watchdog-two": ("dsv41", watchdog(WatchdogState.TWO)),
    "watchdog-pid-reused": ("dsv41", watchdog(WatchdogState.REUSED_PID)),
    "watchdog-stopped": ("dsv41", watchdog(WatchdogState.OFF)),
    "watchdog-recovery": ("dsv41", watchdog(WatchdogState.RECOVERY)),
    "watchdog-paused": ("dsv41", watchdog(WatchdogState.PAUSED, "ben")),
    "watchdog-flag": ("dsv41", watchdog(WatchdogState.GAVE_UP)),
    "watchdog-unit-failed": ("dsv41", watchdog(WatchdogState.FAILED)),
    "watchdog-unknown": ("dsv41", watchdog(WatchdogState.UNKNOWN)),
    "boot-tiling": ("dsv41", failing("do not tile")),
    "boot-oom": ("dsv41", failing("out of GPU memory")),
    "boot-stock": ("dsv41", lambda view: view.boot and view.boot.value and view.boot.value.missing),
    "boot-late": ("dsv41", lambda view: view.boot_progress and view.boot_progress.late),
    "boot-autotune-missed": (
        "station",
        lambda view: view.boot and view.boot.value and view.boot.value.autotune == "missed",
    ),
    "drift-image": ("dsv41", differs("image", "spark-2")),
    "drift-env": (
        "dsv41",
        lambda view: differs("NCCL_IB_HCA", "spark-1")(view) and differs("--chunked-prefill-size", "spark-2")(view),
    ),
    "drift-clock": ("dsv41", differs("clock", "spark-2")),
    "drift-gpu-latch": ("dsv41", differs("GPU clock", "spark-1")),
    "drift-mount": ("dsv41", differs("snapshot", "spark-1")),
    "site-changed": ("dsv41", lambda view: view.site and view.site.value and view.site.value.revision[:7] == "df42c10"),
    "download-stalled": ("dsv41", download(DownloadState.STALLED)),
    "download-waiting": ("dsv41", download(DownloadState.WAITING)),
    "download-interrupted": (
        "dsv41",
        lambda view: view.download and view.download.value and view.download.value.orphans,
    ),
    "prune-risk": ("dsv41", lambda view: any(repo.value and repo.value.prunable for _, repo in view.repos)),
    "upstream-moved": (
        "dsv41",
        lambda view: view.download and view.download.value and view.download.value.upstream[:7] == "8d1f4a6",
    ),
    "rows-rebuilt": (
        "dsv41",
        lambda view: not copies(READY, READY, READY, SHARDS)(view) and view.rows and view.rows.value,
    ),
    "rows-stop": ("dsv41", lambda view: "no new byte" in words_of_next(view)),
    "disk-full": (
        "dsv41",
        lambda view: any(
            host == "spark-3" and repo.value and repo.value.free is not None and repo.value.free < 1 << 30
            for host, repo in view.repos
        ),
    ),
    "mount-hangs": ("dsv41", lambda view: dict(view.repos)["spark-1"].error if view.repos else None),
    "front-down": (
        "dsv41",
        lambda view: view.front and view.front.value and view.front.value.transport is not Transport.ANSWERED,
    ),
}


def words_of_next(view: LaneView) -> str:
    reading = view.next_rows
    return reading.value.copies[0].words if reading and reading.value else ""


@pytest.mark.parametrize("scenario", STORIES)
async def test_the_console_tells_what_the_scenario_is_about(scenario: str) -> None:
    lane, shows = STORIES[scenario]
    async with watched(scenario) as (_, feed):
        await until(feed, lane, shows, scenario)


def alarmed(*keys: str) -> Callable[[Snapshot], bool]:
    return lambda snapshot: {alarm.key for alarm in alarms(snapshot)} >= set(keys)


def retired(snapshot: Snapshot) -> list[str]:
    containers = snapshot.host("station").containers.value
    return [] if containers is None else [item.restart_policy for item in containers.items if "RETIRED" in item.name]


SNAPSHOTS: dict[str, Callable[[Snapshot], bool]] = {
    "image-moved": alarmed("image:dsv41:spark-0"),
    "host-reboots": alarmed("link:spark-2"),
    "retired-always": lambda snapshot: retired(snapshot) == ["always"],
    "retired-gone": lambda snapshot: any("was removed" in event.text for event in snapshot.events),
}


@pytest.mark.parametrize("scenario", SNAPSHOTS)
async def test_the_console_tells_what_befalls_hosts_and_containers(scenario: str) -> None:
    async with watched(scenario, speed=3.0) as (_, feed):  # what begins at 15 s finds the console watching
        end = time.monotonic() + LIMIT
        while not SNAPSHOTS[scenario](feed.snapshot()):
            assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {scenario}; now {feed.snapshot()}"
            await asyncio.sleep(0.1)


NOTHING_WRONG: dict[str, Shows] = {
    "spark4": lambda view: copies(READY, READY, READY, SHARDS)(view) and watchdog(WatchdogState.ARMED)(view),
    "cluster4": lambda view: copies(READY, READY, READY, READY)(view) and watchdog(WatchdogState.ARMED)(view),
}


@pytest.mark.parametrize("scenario", NOTHING_WRONG)
async def test_a_fleet_with_nothing_wrong_raises_no_alarm(scenario: str) -> None:
    def well(view: LaneView) -> bool:
        read = view.site is not None and view.site.value is not None and view.download is not None
        return bool(read and view.drift and NOTHING_WRONG[scenario](view) and view.boots and view.usual_by_running)

    async with watched(scenario, speed=1.0) as (_, feed):
        await until(feed, "dsv41", well if scenario == "spark4" else NOTHING_WRONG[scenario], "everything well")
        for lane in feed.snapshot().lanes:
            await until(feed, lane.name, lambda view: view.verdict.state is LaneState.SERVING, "serving")
        end = time.monotonic() + 6.0
        while time.monotonic() < end:
            raised = [alarm for alarm in alarms(feed.snapshot()) if alarm.severity in (Severity.LOOK, Severity.ACT)]
            assert raised == []
            await asyncio.sleep(0.5)


async def test_a_mount_that_comes_back_is_seen_again() -> None:
    async with watched("drift-mount") as (rehearsal, feed):
        await until(feed, "dsv41", differs("snapshot", "spark-1"), "the lost mount")
        await rehearsal.inject("snapshot", checkpoint="dsv41", host="spark-1", what="back")
        await until(feed, "dsv41", lambda view: view.drift and not view.drift.differences, "the mount")
