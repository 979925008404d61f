"""What one picture does not show: nothing is raised where nothing is wrong, and what is mended is seen."""

from __future__ import annotations

import asyncio
import time

import pytest
import told

from console.alarms import alarms
from console.readings.lights import LaneState
from console.rehearsal import Rehearsal
from console.snapshot import LaneView, Severity, Snapshot


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    told.look_often(monkeypatch)


def loud(snapshot: Snapshot) -> set[str]:
    """Alarms that somebody should look at."""
    found = [alarm for alarm in alarms(snapshot) if alarm.severity in (Severity.LOOK, Severity.ACT)]
    return {f"{alarm.key}: {alarm.text}" for alarm in found}


@pytest.mark.parametrize("scenario", list(told.WELL))
async def test_a_fleet_with_nothing_wrong_raises_no_alarm_while_the_console_is_young_or_later(scenario: str) -> None:
    """What is not read yet differs from nothing and is nothing to look at."""
    name, all_there = told.WELL[scenario]

    def well(view: LaneView) -> bool:
        read = view.site is not None and view.site.value is not None and view.download is not None
        return bool(read and view.drift and all_there(view) and view.boots and view.usual_by_running)

    def everything(snapshot: Snapshot) -> bool:
        shows = well if scenario == "spark4" else all_there
        serves = all(lane.verdict.state is LaneState.SERVING for lane in snapshot.lanes)
        return bool(shows(snapshot.lane(name))) and serves

    # In a process of its own: on a busy machine what is played here as well would be late, and rightly said to be.
    async with told.watched(scenario, speed=1.0, play=Rehearsal) as (_, feed):
        end = time.monotonic() + told.LIMIT
        while not everything(snapshot := feed.snapshot()):
            assert loud(snapshot) == set()
            assert time.monotonic() < end, f"not within {told.LIMIT:.0f} s: everything well; now {snapshot.lane(name)}"
            await asyncio.sleep(0.05)
        end = time.monotonic() + 6.0
        while time.monotonic() < end:
            assert loud(feed.snapshot()) == set()
            await asyncio.sleep(0.5)


async def test_a_mount_that_comes_back_is_seen_again() -> None:
    async with told.watched("drift-mount") as (rehearsal, feed):
        await told.until(feed, "dsv41", told.differs("snapshot", "spark-1"), "the lost mount")
        await rehearsal.inject("snapshot", checkpoint="dsv41", host="spark-1", what="back")
        await told.until(feed, "dsv41", lambda view: view.drift and not view.drift.differences, "the mount")


@pytest.mark.soak
async def test_an_autotune_that_takes_over_a_minute_has_missed_its_cache() -> None:
    async with told.watched("boot-autotune-missed") as (_, feed):
        await told.until(
            feed,
            "station",
            lambda view: view.boot and view.boot.value and view.boot.value.autotune == "missed",
            "missed",
        )
