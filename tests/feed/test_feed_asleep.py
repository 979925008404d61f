"""A machine that slept: what was read before is as old as it is, and no rate is told across the sleep."""

from __future__ import annotations

import time
from typing import Any

import pytest

from console.feed import Feed, asleep
from console.feed.asleep import Asleep, slept_so_far
from console.fleet.inventory import Fleet, build
from console.readings.answers import HttpAnswer, Transport
from console.readings.health import LaneState
from console.readings.memory import parse_memory
from console.readings.quality import Quality
from console.readings.throughput import EngineKind, read_scrape

HOUR = 3600.0


def fleet() -> Fleet:
    lane = {"recipe": "docker-generic", "url": "http://127.0.0.1:9", "head": "a", "engine": "vllm", "via": "direct"}
    raw: dict[str, Any] = {"name": "night", "hosts": {"a": {"ssh": "a.invalid"}}, "lanes": {"lane": lane}}
    return build(raw)


def scrape(at: float, tokens: int) -> Any:
    text = (
        f"vllm:iteration_tokens_total_count {tokens}\nvllm:generation_tokens_total {tokens}\n"
        "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"
    )
    return read_scrape(HttpAnswer(at, 0.01, Transport.ANSWERED, 200, body=text.encode()), EngineKind.VLLM)


def test_the_clock_of_sleep_stands_while_the_machine_is_awake() -> None:
    before = slept_so_far()
    time.sleep(0.05)
    assert abs(slept_so_far() - before) < 0.04
    assert Asleep().since() == 0.0


def test_a_sleep_is_told_once() -> None:
    now = [100.0]
    watch = Asleep(lambda: now[0])
    assert watch.since() == 0.0
    now[0] += 1.0
    assert watch.since() == 0.0
    now[0] += 60.0
    assert watch.since() == 61.0
    assert watch.since() == 0.0


def test_what_was_read_before_a_sleep_is_as_old_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = [0.0]
    monkeypatch.setattr(asleep, "slept_so_far", lambda: slept[0])
    feed = Feed(fleet())
    lane, host = feed._lanes["lane"], feed._hosts["a"]
    now = time.monotonic()
    host._memory.put(parse_memory("MemTotal: 9 kB\nMemFree: 4 kB\nMemAvailable: 5 kB\nCached: 1 kB\n"), now)
    for ago, tokens in ((2.0, 100), (1.0, 166)):
        lane._take_scrape(scrape(now - ago, tokens))
    lane._probes.append(HttpAnswer(now, 0.01, Transport.ANSWERED, 200))
    before = feed.snapshot()
    assert before.lanes[0].verdict.state is LaneState.SERVING
    assert before.hosts[0].memory.quality(before.now) is Quality.LIVE
    slept[0] = HOUR
    after = feed.snapshot()
    age = after.hosts[0].memory.age(after.now)
    assert age is not None and HOUR <= age < HOUR + 60
    assert after.hosts[0].memory.current(after.now) is None
    assert after.lanes[0].throughput.current(after.now) is None
    assert after.lanes[0].verdict.state is LaneState.UNKNOWN
    assert sum("slept for 1h00m" in event.text for event in feed.snapshot().events) == 1


def test_no_rate_is_told_across_a_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = [0.0]
    monkeypatch.setattr(asleep, "slept_so_far", lambda: slept[0])
    lane = Feed(fleet())._lanes["lane"]
    now = time.monotonic()
    lane._take_scrape(scrape(now - 1.0, 100))
    slept[0] = HOUR
    lane._take_scrape(scrape(now, 240_000))
    assert lane._throughput.value is not None and lane._throughput.value.decode_tps is None
    lane._take_scrape(scrape(now + 1.0, 240_066))
    assert lane._throughput.value.decode_tps == pytest.approx(66.0)
