"""What each shipped scenario is about, as a condition on the console's own picture, and how to watch one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from inside import Inside

from console.alarms import alarms
from console.feed import Feed, survey
from console.fleet.looks import looks
from console.readings.answers import Transport
from console.readings.download import DownloadState
from console.readings.lights import HttpVerdict, LaneState
from console.readings.look import Look
from console.readings.rows import RowState
from console.readings.scrape import ScrapeVerdict
from console.readings.watchdog import WatchdogState
from console.rehearsal import Rehearsal
from console.rehearsal.scenario import Scenario, load_scenario
from console.snapshot import LaneView, Snapshot

LIMIT = 90.0
"""Bound of every wait, seconds; long, because machines that run tests are busy."""
SPEED = 40.0
"""What begins at 15 s begins after 0.4."""
WATCHED_FROM_THE_START = 3.0
"""The speed at which what begins at 15 s finds the console watching."""
Shows = Callable[[LaneView], object]


def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is looked at every 1.5 s, in place of every 5 or 15 s."""

    def soon(*arguments: Any, **named: Any) -> Mapping[str, tuple[Look, ...]]:
        wanted = looks(*arguments, **named)
        return {host: tuple(replace(look, every=1.5) for look in items) for host, items in wanted.items()}

    monkeypatch.setattr(survey, "looks", soon)


def for_good(scenario: Scenario) -> Scenario:
    """The story without its happy end: what a fault does, stays."""
    lasting = tuple(fault.model_copy(update={"until": None}) for fault in scenario.faults if fault.at < 110)
    return scenario.model_copy(update={"faults": lasting})


@asynccontextmanager
async def watched(
    scenario: str, speed: float = SPEED, play: type[Rehearsal] = Inside, **of_lane: float
) -> AsyncIterator[tuple[Rehearsal, Feed]]:
    """The real feed on a scenario without its happy end; `of_lane` are other values for its lanes."""
    async with play(for_good(load_scenario(scenario)), speed) as rehearsal:
        rates = rehearsal.fleet.rates.model_copy(update={"containers": 1.0, "gpu": 1.0})
        lanes = {name: lane.model_copy(update=of_lane) for name, lane in rehearsal.fleet.lanes.items()}
        fleet = rehearsal.fleet.model_copy(update={"rates": rates, "lanes": lanes})
        feed = Feed(fleet, rehearsal.overrides, remembered=rehearsal.remembered)
        await feed.start()
        try:
            yield rehearsal, feed
        finally:
            await feed.stop()


async def until(feed: Feed, lane: str, shows: Shows, what: str) -> Snapshot:
    """The first snapshot in which the lane shows it. Fails after LIMIT with what was shown instead."""
    return await until_all(feed, lambda snapshot: shows(snapshot.lane(lane)), what, lane)


async def until_all(feed: Feed, shows: Callable[[Snapshot], object], what: str, lane: str = "") -> Snapshot:
    """The first snapshot that shows it."""
    end = time.monotonic() + LIMIT
    while True:
        snapshot = feed.snapshot()
        if shows(snapshot):
            return snapshot
        shown = snapshot.lane(lane) if lane else snapshot
        assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}; now {shown}"
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


def words_of_next(view: LaneView) -> str:
    reading = view.next_rows
    return reading.value.copies[0].words if reading and reading.value else ""


def state(*states: LaneState) -> Shows:
    return lambda view: view.verdict.state in states


def scraped(verdict: ScrapeVerdict) -> Shows:
    return lambda view: view.lights.scrape.verdict is verdict


def alarmed(*keys: str) -> Callable[[Snapshot], bool]:
    return lambda snapshot: {alarm.key for alarm in alarms(snapshot)} >= set(keys)


def retired(snapshot: Snapshot) -> list[str]:
    containers = snapshot.host("station").containers.value
    return [] if containers is None else [item.restart_policy for item in containers.items if "RETIRED" in item.name]


READY, SHARDS = RowState.READY, RowState.SHARDS


def copying(view: LaneView) -> bool:
    """Two copies are under way or done by now, the third has no room."""
    going = (RowState.COPYING, READY)
    return any(copies(a, b, RowState.NO_ROOM, SHARDS, coming=True)(view) for a in going for b in going)


READ_SIDE: dict[str, tuple[str, Shows]] = {
    "prepare": (
        "dsv41",
        lambda view: copying(view) and download(DownloadState.RUNNING)(view),
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
        lambda view: view.boot and view.boot.value and view.boot.value.autotune in ("running", "missed"),
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
        lambda view: (
            view.front
            and view.front.value
            and (view.front.value.transport is not Transport.ANSWERED or view.front.value.status == 502)
        ),
    ),
}

WELL: dict[str, tuple[str, Shows]] = {
    "spark4": (
        "dsv41",
        lambda view: (
            copies(READY, READY, READY, SHARDS)(view)
            and watchdog(WatchdogState.ARMED)(view)
            and state(LaneState.SERVING)(view)
        ),
    ),
    "cluster4": (
        "dsv41",
        lambda view: (
            copies(READY, READY, READY, READY)(view)
            and watchdog(WatchdogState.ARMED)(view)
            and state(LaneState.SERVING)(view)
        ),
    ),
    "station": ("station", state(LaneState.SERVING)),
}
"""Nothing is wrong in these."""

DRILLS: dict[str, tuple[str, Shows]] = {
    **{f"drill-{name}": ("dsv41", state(LaneState.SERVING)) for name in ("head-deaf", "head-full", "head-reboots")},
    **{f"drill-{name}": ("dsv41", state(LaneState.SERVING)) for name in ("host-lost", "watchdog-fires", "worker-dies")},
    **{f"drill-{name}": ("station", state(LaneState.SERVING)) for name in ("exits-at-once", "image-removed")},
    **{f"drill-{name}": ("station", state(LaneState.SERVING)) for name in ("port-taken", "stop-hangs")},
    "drill-stop-underneath": ("station", state(LaneState.SERVING)),
    "drill-lease-held": (
        "dsv41",
        lambda view: view.acting and view.acting.value and view.acting.value.lease is not None,
    ),
    "drill-preflight": ("dsv41", copies(READY, RowState.WAITS, READY, SHARDS)),
}
"""Before anybody acts: most of them befall an operator only then."""

SHUT = (LaneState.DEGRADED, LaneState.DRAINING, LaneState.DOWN)
ENGINE: dict[str, tuple[str, Shows]] = {
    "boot": ("dsv41", lambda view: view.boot_progress and state(LaneState.BOOTING)(view)),
    "worker-dead": ("dsv41", lambda view: view.lights.process.dead and state(LaneState.DEGRADED)(view)),
    "engine-hung": ("dsv41", state(LaneState.STALLED)),
    "engine-dead": ("dsv41", lambda view: view.lights.process.dead),
    "engine-503": ("dsv41", lambda view: view.lights.http.verdict is HttpVerdict.UNAVAILABLE and state(*SHUT)(view)),
    "engine-silent": ("dsv41", state(LaneState.STALLED, LaneState.DEGRADED)),
    "engine-html": ("dsv41", scraped(ScrapeVerdict.HTML)),
    "engine-empty": ("dsv41", scraped(ScrapeVerdict.EMPTY)),
    "engine-truncated": ("dsv41", scraped(ScrapeVerdict.TRUNCATED)),
    "engine-other": ("dsv41", scraped(ScrapeVerdict.OTHER_ENGINE)),
}
"""The engine goes wrong by itself."""

SNAPSHOTS: dict[str, Callable[[Snapshot], bool]] = {
    "image-moved": alarmed("image:dsv41:spark-0"),
    "host-reboots": alarmed("link:spark-2"),
    "host-gone": alarmed("link:spark-1"),
    "memory-low": alarmed("memory:spark-2"),
    "counter-reset": lambda snapshot: any("counters started again" in event.text for event in snapshot.events),
    "retired-always": lambda snapshot: retired(snapshot) == ["always"],
    "drill-bind-replaced": lambda snapshot: any("bind sources" in event.text for event in snapshot.events),
    "drill-relaunch-underneath": lambda snapshot: any(event.foreign for event in snapshot.events),
    "retired-gone": lambda snapshot: any("was removed" in event.text for event in snapshot.events),
}
"""What befalls hosts and containers: these run at WATCHED_FROM_THE_START."""


async def told(scenario: str, feed: Feed) -> Snapshot:
    """The first snapshot in which the scenario's point is there, and every lane was judged."""
    return await until_all(feed, lambda snapshot: point_of(scenario)(snapshot) and judged(snapshot), scenario)


def point_of(scenario: str) -> Callable[[Snapshot], object]:
    """The condition on the whole picture."""
    if scenario in SNAPSHOTS:
        return SNAPSHOTS[scenario]
    lane, shows = {**WELL, **DRILLS, **ENGINE, **READ_SIDE}[scenario]
    return lambda snapshot: shows(snapshot.lane(lane))


def judged(snapshot: Snapshot) -> bool:
    """Nothing is still unknown only because the console is young."""
    known = all(lane.verdict.state is not LaneState.UNKNOWN for lane in snapshot.lanes)
    sites = all(lane.site is None or lane.site.value is not None for lane in snapshot.lanes)
    ranks = all(rank.word for lane in snapshot.lanes for rank in lane.ranks)
    return known and sites and ranks


@asynccontextmanager
async def played(scenario: str) -> AsyncIterator[Feed]:
    """The feed on a scenario, at the speed at which its point comes soon."""
    speed = WATCHED_FROM_THE_START if scenario in SNAPSHOTS else SPEED
    sooner = {"health_interval": 1.0, "stall_after": 4.0} if scenario in ENGINE else {}
    async with watched(scenario, speed, **sooner) as (_, feed):
        yield feed
