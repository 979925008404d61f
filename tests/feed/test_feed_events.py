"""What the feed notes about alarms that come and go."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "widgets"))
sys.path.insert(0, str(Path(__file__).parents[1]))

import pictures
import upkeep
from moved import later

from console.alarms.book import CLEAR_AFTER_S
from console.feed import Feed, feed
from console.feed.changes import NOW
from console.feed.story import Story
from console.fleet.inventory import build
from console.readings.link import LinkState, LinkStatus
from console.snapshot import Severity, Snapshot

FLEET = {
    "name": "x",
    "hosts": {"n3": {"ssh": "n3.invalid"}},
    "lanes": {"l": {"recipe": "docker-generic", "url": "http://127.0.0.1:9", "head": "n3"}},
}


LOW = "free 2.9 of 119.7 GiB, 61.0 cached"


async def notes(monkeypatch: pytest.MonkeyPatch, *told: Snapshot) -> list[str]:
    """The events of a feed that sees these snapshots one after the other, the oldest first."""
    monkeypatch.setattr(feed, "WATCH_EVERY_S", 0.0)
    watched = Feed(build(FLEET))
    left, done = list(told), asyncio.Event()

    def snapshot() -> Snapshot:
        if len(left) == 1:
            done.set()
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(watched, "snapshot", snapshot)
    watching = asyncio.create_task(watched._watch())
    await asyncio.wait_for(done.wait(), 60)
    await asyncio.sleep(0)
    watching.cancel()
    return [event.text for event in watched._events]


def low(*, gone: bool) -> Snapshot:
    """n3 is low on free memory; `gone`: and cannot be reached."""
    picture = pictures.spark4()
    memory = pictures.reading(pictures.memory(2.9, 90.0, 61.0))
    host = replace(picture.hosts[2], memory=memory)
    if gone:
        link = LinkState(LinkStatus.DOWN, picture.now - 3, "connection lost", "")
        host = replace(host, link=link, memory=replace(memory, down_since=picture.now - 3))
    return replace(picture, hosts=(*picture.hosts[:2], host, *picture.hosts[3:]))


async def test_an_alarm_whose_cause_is_gone_for_a_while_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    well = pictures.spark4()
    told = await notes(monkeypatch, low(gone=False), well, later(well, CLEAR_AFTER_S))
    assert set(told) == {LOW, f"cleared: {LOW}"}


async def test_an_alarm_that_swings_around_its_threshold_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    well, bad = pictures.spark4(), low(gone=False)
    seconds = [later(well if at % 2 else bad, at) for at in range(40)]
    assert await notes(monkeypatch, *seconds) == [LOW]


async def test_an_alarm_whose_host_went_away_is_out_of_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    away = low(gone=True)
    told = await notes(monkeypatch, low(gone=False), away, later(away, CLEAR_AFTER_S))
    assert set(told) == {LOW, f"out of sight: {LOW}"}


def test_a_cleared_alarm_is_dated_when_its_cause_was_last_seen() -> None:
    story, bad, well = Story(), low(gone=False), pictures.spark4()
    (raised,) = story.take(bad, {})
    assert story.take(later(well, 1.0), {}) == ()
    (cleared,) = story.take(later(well, CLEAR_AFTER_S + 3), {})
    assert (raised.wall, cleared.wall, cleared.text) == (NOW, bad.wall, f"cleared: {LOW}")


def test_what_has_an_event_of_its_own_is_not_told_twice() -> None:
    story, picture = Story(), pictures.neglected()
    assert {event.text for event in story.take(picture, {}) if event.text.startswith("watchdog")} == set()
    view = picture.lanes[0]
    armed = replace(view, watchdog=pictures.reading(upkeep.ARMED, 3, 5.0))
    told = story.take(replace(picture, lanes=(armed,)), {})
    assert [event.text for event in told if "watchdog" in event.text] == [
        f"watchdog on n1 says: {upkeep.ARMED.last_act}", "watchdog armed"
    ]  # fmt: skip
    back = story.take(picture, {})
    assert [(event.text, event.severity) for event in back if event.text.startswith("watchdog gave up")] == [
        (f"watchdog {upkeep.GAVE_UP.words}", Severity.ACT)
    ]
