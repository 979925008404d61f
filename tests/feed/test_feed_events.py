"""What the feed notes about alarms that come and go."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "widgets"))

import pictures

from console.feed import Feed, feed
from console.fleet.inventory import build
from console.readings.link import LinkState, LinkStatus
from console.snapshot import Snapshot

FLEET = {
    "name": "x",
    "hosts": {"n3": {"ssh": "n3.invalid"}},
    "lanes": {"l": {"recipe": "docker-generic", "url": "http://127.0.0.1:9", "head": "n3"}},
}


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
    await asyncio.wait_for(done.wait(), 30)
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


async def test_an_alarm_whose_cause_is_gone_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    raised, cleared = await notes(monkeypatch, low(gone=False), pictures.spark4())
    assert raised.startswith("free 2.9") and cleared == f"cleared: {raised}"


async def test_an_alarm_whose_host_went_away_is_out_of_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    raised, hidden = await notes(monkeypatch, low(gone=False), low(gone=True))
    assert raised.startswith("free 2.9") and hidden == f"out of sight: {raised}"
