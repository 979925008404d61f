"""What did not change between two snapshots is the same object; what ages is judged again all the same."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from console.feed import Feed
from console.feed.kept import Kept
from console.fleet.inventory import Fleet, build
from console.readings.answers import HttpAnswer, Transport
from console.readings.quality import Quality
from console.readings.throughput import EngineKind, read_scrape
from console.snapshot import Severity


def fleet() -> Fleet:
    raw: dict[str, Any] = {
        "name": "still",
        "hosts": {"a": {"ssh": "a.invalid"}, "b": {"ssh": "b.invalid", "docker": ""}},
        "lanes": {"lane": {"recipe": "docker-generic", "url": "http://127.0.0.1:9", "head": "a", "engine": "vllm"}},
    }
    return build(raw)


def answer(at: float, steps: int) -> HttpAnswer:
    text = (
        f"vllm:iteration_tokens_total_count {steps}\nvllm:generation_tokens_total {steps * 3}\n"
        "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"
    ).encode()
    return HttpAnswer(at, 0.01, Transport.ANSWERED, 200, "text/plain", {}, text, "")


async def test_an_unchanged_fleet_gives_the_same_parts() -> None:
    feed = Feed(fleet())
    one, two = feed.snapshot(), feed.snapshot()
    assert one.hosts[0] is two.hosts[0] and one.hosts[1] is two.hosts[1] and one.events is two.events
    assert one.lanes[0] is two.lanes[0] and one.log is two.log
    assert two.sequence == one.sequence + 1 and two.now >= one.now
    feed.note("a", "something", Severity.NORMAL)
    three = feed.snapshot()
    assert three.events is not two.events and three.hosts[0] is two.hosts[0]


async def test_what_was_read_changes_its_own_part_alone() -> None:
    feed = Feed(fleet())
    before = feed.snapshot()
    host = feed._hosts["b"]
    host._facts.fail("no facts today")
    after = feed.snapshot()
    assert after.hosts[1] is not before.hosts[1] and after.hosts[1].facts.error == "no facts today"
    assert after.hosts[1].memory is before.hosts[1].memory and after.hosts[0] is before.hosts[0]


async def test_a_failed_scrape_shows_at_once_also_when_it_fails_the_same_way_again() -> None:
    feed = Feed(fleet())
    lane = feed._lanes["lane"]
    now = time.monotonic()
    lane._take_scrape(read_scrape(answer(now - 2, 10), EngineKind.VLLM))
    lane._take_scrape(read_scrape(answer(now - 1, 20), EngineKind.VLLM))
    good = feed.snapshot().lanes[0]
    assert good.throughput.value is not None and good.throughput.value.decode_tps == pytest.approx(30.0)
    refused = HttpAnswer(now, 0.01, Transport.REFUSED, None, "", {}, b"", "refused")
    lane._take_scrape(read_scrape(refused, EngineKind.VLLM))
    bad = feed.snapshot().lanes[0]
    lane._take_scrape(read_scrape(refused, EngineKind.VLLM))
    again = feed.snapshot().lanes[0]
    assert bad.throughput.error and bad.throughput.current(now) is None
    assert len(again.history) == len(bad.history) + 1 == len(good.history) + 2
    assert len(good.history) == 2, "the picture taken before is not changed by what came after it"


async def test_a_lane_is_judged_again_after_a_second_though_nothing_was_heard() -> None:
    feed = Feed(fleet())
    lane = feed._lanes["lane"]
    now, wall = time.monotonic(), time.time()
    first = lane.view(now, wall)
    assert lane.view(now + 0.9, wall + 0.9) is first
    assert lane.view(now + 1.1, wall + 1.1) is not first
    assert lane.view(now, wall) is not first, "a clock that was set back does not freeze the picture"


def test_a_kept_reading_is_one_object_until_it_changes() -> None:
    kept: Kept[int] = Kept("source", 1.0)
    empty = kept.reading(None)
    assert kept.reading(None) is empty and empty.quality(0.0) is Quality.ABSENT
    kept.put(7, 100.0)
    good = kept.reading(None)
    assert good is not empty and kept.reading(None) is good and good.current(101.0) == 7
    assert good.age(103.25) == 3.25, "the age is worked out when it is asked for, not when the picture was taken"
    kept.fail("gone")
    bad = kept.reading(None)
    assert bad is not good and bad.value == 7 and bad.current(101.0) is None and good.current(101.0) == 7
    kept.fail("gone")
    assert kept.reading(None) is bad
    lost = kept.reading(90.0)
    assert lost.quality(101.0) is Quality.UNREACHABLE and kept.reading(90.0) is lost
    kept.put(7, 100.0)
    assert kept.reading(None) is not bad and kept.reading(None).error == ""


async def test_a_lost_link_changes_every_reading_of_its_host() -> None:
    feed = Feed(fleet())
    host = feed._hosts["a"]
    await host.link.start()
    try:
        async with asyncio.timeout(20):
            while host.down_since() is None:
                feed.snapshot()
                await asyncio.sleep(0.05)
        snapshot = feed.snapshot()
        view = snapshot.hosts[0]
        for reading in (view.memory, view.gpus, view.facts, view.containers):
            assert reading.quality(snapshot.now) is Quality.UNREACHABLE
        assert snapshot.lanes[0].throughput.quality(snapshot.now) is Quality.UNREACHABLE
        assert snapshot.hosts[1].memory.quality(snapshot.now) is Quality.ABSENT
    finally:
        await feed.stop()
