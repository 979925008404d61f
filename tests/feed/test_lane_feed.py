"""One lane's feed without an engine: what it asks when, and what it makes of what came."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from console.feed import Feed
from console.feed.lane import FAST_HEALTH_LIMIT_S, SLOW_HEALTH_LIMIT_S, LaneFeed
from console.fleet.inventory import build
from console.readings.answers import HttpAnswer, Transport
from console.readings.containers import Containers, parse_inspect
from console.readings.health import LaneState
from console.readings.link import LinkState, LinkStatus
from console.readings.throughput import read_scrape

COMMAND = ["vllm", "serve", "/m", "--port", "9"]


def lane_feed(**lane: Any) -> LaneFeed:
    raw: dict[str, Any] = {
        "name": "alone",
        "hosts": {"a": {"ssh": "a.invalid"}},
        "lanes": {"lane": {"recipe": "docker-generic", "url": "http://127.0.0.1:9", "head": "a", **lane}},
    }
    return Feed(build(raw))._lanes["lane"]


def reachable(lane: LaneFeed) -> None:
    lane._head.link._state = LinkState(LinkStatus.UP, time.monotonic())  # type: ignore[attr-defined]


def metrics(at: float, kind: str = "vllm", steps: int = 10, pool: int = 0, running: int = 0) -> HttpAnswer:
    if kind == "vllm":
        text = f"vllm:iteration_tokens_total_count {steps}\nvllm:generation_tokens_total {steps}\n"
        text += f"vllm:num_requests_running {running}\nvllm:num_requests_waiting 0\n"
        text += f'vllm:cache_config_info{{kv_cache_size_tokens="{pool}"}} 1\n' if pool else ""
    else:
        text = f'sglang:num_running_reqs {running}\nsglang:realtime_tokens_total{{mode="decode"}} {steps}\n'
    return HttpAnswer(at, 0.01, Transport.ANSWERED, 200, "text/plain", {}, text.encode())


def hear(lane: LaneFeed, answer: HttpAnswer) -> None:
    lane._take_scrape(read_scrape(answer, lane.lane.kind))


def probed(lane: LaneFeed, at: float, status: int = 200) -> None:
    lane._probes.append(HttpAnswer(at, 0.01, Transport.ANSWERED, status))
    lane._heard += 1


def test_an_engine_that_may_be_sglang_is_given_the_time_its_health_takes() -> None:
    lane = lane_feed()
    assert lane.health_pace() == (2.0, SLOW_HEALTH_LIMIT_S)
    hear(lane, metrics(1.0, "sglang"))
    assert lane.health_pace() == (10.0, SLOW_HEALTH_LIMIT_S)
    hear(lane, metrics(2.0, "vllm"))
    assert lane.health_pace() == (2.0, FAST_HEALTH_LIMIT_S)
    assert lane_feed(engine="sglang", health_interval=3.0).health_pace() == (3.0, SLOW_HEALTH_LIMIT_S)


def test_a_server_that_says_503_while_it_starts_is_asked_until_it_says_200() -> None:
    lane = lane_feed(engine="sglang")
    assert lane.health_pace()[0] == 10.0
    probed(lane, 1.0, 503)
    assert lane.health_pace()[0] == 2.0
    lane._probes.append(HttpAnswer(30.0, 20.0, Transport.ANSWERED, 503))  # a generation that did not come
    assert lane.health_pace()[0] == 10.0
    probed(lane, 40.0)
    assert lane.health_pace()[0] == 10.0


def test_a_restart_at_rest_is_one_boot_however_long_it_stays_in_the_window() -> None:
    lane = lane_feed(engine="vllm")
    for second, steps in enumerate([50, 50, 0, 0, 0, 0, 0, 0]):
        hear(lane, metrics(float(second), steps=steps, pool=4096))
    assert list(lane._history.pools) == [4096, 4096]
    assert lane._throughput.value is not None and lane._throughput.value.restarted


def test_the_usual_band_comes_whatever_else_is_heard() -> None:
    lane = lane_feed(engine="vllm")
    for second in range(90):
        hear(lane, metrics(float(second), steps=10 * second + 1, running=1))
        probed(lane, second + 0.5)
    assert lane._history.usual is not None and lane._history.usual[0] == pytest.approx(10.0)


def test_the_last_rate_is_that_of_the_last_token_not_of_the_window_that_runs_empty() -> None:
    lane = lane_feed(engine="vllm")
    for second in range(15):
        hear(lane, metrics(float(second), steps=20 * second, running=2))
    for second in range(15, 30):
        hear(lane, metrics(float(second), steps=20 * 14, running=2))
    assert lane._throughput.value is not None and lane._throughput.value.decode_tps == 0
    assert lane._history.last_decode == pytest.approx(20.0)


@pytest.mark.parametrize("kept", [1.0, 0.2])
async def test_a_port_that_closes_or_opens_is_asked_for_its_health_at_once(kept: float) -> None:
    lane = lane_feed(engine="vllm", health_interval=300.0)
    refused = HttpAnswer(2.0, 0.01, Transport.REFUSED)
    hear(lane, metrics(1.0))
    assert not lane._ask_health.is_set()
    for answer in (refused, metrics(3.0)):
        hear(lane, answer)
        assert lane._ask_health.is_set()
        lane._ask_health.clear()
        hear(lane, replace(answer, at=answer.at + kept))
        assert not lane._ask_health.is_set()


async def test_the_health_loop_wakes_when_it_is_asked_to() -> None:
    lane = lane_feed(engine="vllm", health_interval=300.0, via="direct")
    asked = asyncio.Event()

    async def get(path: str, **_: Any) -> HttpAnswer:
        asked.set()
        return HttpAnswer(time.monotonic(), 0.0, Transport.ANSWERED, 200)

    lane._http.get = get  # type: ignore[method-assign]
    task = asyncio.create_task(lane._health_loop())
    try:
        for _ in range(3):
            async with asyncio.timeout(60):
                await asked.wait()
            asked.clear()
            lane._ask_health.set()
    finally:
        task.cancel()
    assert len(lane._probes) >= 2


def test_a_200_of_long_ago_is_not_health_now() -> None:
    lane = lane_feed(engine="vllm", via="direct")
    now = time.monotonic()
    for ago in (2.0, 1.0):
        hear(lane, metrics(now - ago, steps=int(100 - ago), running=1))
    probed(lane, now - 10.0)
    assert lane.view(now, time.time()).lights.http.verdict == "ok"
    lane._probes.clear()
    probed(lane, now - 600.0)
    found = lane.view(now, time.time())
    assert found.verdict.state is LaneState.UNKNOWN
    assert found.verdict.why == "health unknown: last answer 600 s ago"


def test_a_closed_port_is_not_down_before_the_containers_were_read() -> None:
    lane = lane_feed(engine="vllm")
    reachable(lane)
    now = time.monotonic()
    lane._probes.append(HttpAnswer(now, 0.01, Transport.REFUSED))
    assert lane.view(now, time.time()).verdict.state is LaneState.UNKNOWN
    lane._head._containers.put(Containers(()))
    found = lane.view(now, time.time())
    assert (found.verdict.state, found.lights.process.absent) == (LaneState.DOWN, ("a no container on port 9",))


def test_an_engine_in_a_container_that_is_not_recognised_is_not_down() -> None:
    lane = lane_feed(engine="vllm")
    reachable(lane)
    now = time.monotonic()
    for ago in (2.0, 1.0):
        hear(lane, metrics(now - ago, steps=int(100 - ago), running=1))
    probed(lane, now - 0.5)
    other = {"Id": "f" * 64, "Name": "/other", "Config": {"Image": "db"}, "State": {"Status": "running"}}
    lane._head._containers.put(Containers((parse_inspect(other),)))
    found = lane.view(now, time.time())
    assert (found.verdict.state, found.verdict.why) == (
        LaneState.DEGRADED,
        "a no container on port 9, though the port answers 200",
    )


def test_a_container_whose_state_has_no_word_is_unknown_not_dead() -> None:
    lane = lane_feed(engine="vllm")
    reachable(lane)
    now = time.monotonic()
    raw = {"Id": "f" * 64, "Name": "/odd", "Path": "vllm", "Args": COMMAND[1:], "State": {"Status": "improper"}}
    raw["HostConfig"] = {"NetworkMode": "host"}
    lane._head._containers.put(Containers((parse_inspect(raw),)))
    light = lane.view(now, time.time()).lights.process
    assert (light.dead, light.unknown) == ((), ("a: Docker names no state of odd",))
