"""The feed on the embedded fleet: truth while all is well, and each fault shown for what it is, with its age."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest
import pytest_asyncio
from watched_fleet import HEAD, LANE, POOL, TPS, USED, Watched, watching

from console.reach.sampler import LABEL

pytestmark = pytest.mark.asyncio(loop_scope="module")

LEAP = 4.0
"""Times the true rate beyond which one is a leap; late scrapes of a busy machine make up to two."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet() -> AsyncIterator[Watched]:
    async with watching() as watched:
        yield watched


@pytest_asyncio.fixture(loop_scope="module")
async def watched(fleet: Watched) -> AsyncIterator[Watched]:
    """The fleet, well before and after the test."""
    await fleet.serving()
    yield fleet
    await fleet.heal()
    await fleet.serving()


def alarm(said: dict[str, Any], key: str) -> dict[str, Any] | None:
    return next((item for item in said["alarms"] if item["key"] == key), None)


def unreadable(reading: dict[str, Any], why: str) -> bool:
    """No value is shown as current, the last good one is kept with its age, and the reason is said."""
    assert reading["error"] is None or reading["value"] is None
    return bool(
        reading["value"] is None
        and reading["last"] is not None
        and reading["age_s"] > 0
        and (reading["error"] or "").startswith(why)
    )


# all is well


async def test_the_true_rate_and_pool_of_a_serving_lane(watched: Watched) -> None:
    lane = await watched.until_lane(
        lambda lane: abs(lane["throughput"]["value"]["decode_tps"] - TPS) <= 0.01 * TPS, "the true rate"
    )
    value = lane["throughput"]["value"]
    assert value["kv"]["tokens"] == POOL and value["kv"]["used_fraction"] == USED
    assert value["running"] == 3 and value["restarted"] is False
    await watched.until_lane(
        lambda lane: (lane["throughput"]["quality"], lane["health"]["quality"]) == ("LIVE", "LIVE"), "both LIVE"
    )
    assert lane["lamps"]["serving"]["word"].endswith("tok/s") and lane["lamps"]["serving"]["severity"] == "normal"
    assert lane["lamps"]["revision"]["word"] == "1bae0e1"
    assert lane["served"]["value"] == "deepseek-v4.1-flash"
    assert [rank["word"] for rank in lane["ranks"]] == ["up"] * 4


async def test_every_value_of_a_well_fleet_is_dated_and_current(watched: Watched) -> None:
    said = await watched.until(
        lambda said: said if all(host["gpus"]["value"] for host in said["hosts"].values()) else None, "all GPUs"
    )
    for host in said["hosts"].values():
        for name in ("memory", "gpus", "facts", "containers"):
            reading = host[name]
            assert reading["quality"] == "LIVE" and reading["value"] is not None and reading["error"] is None
            assert 0 <= reading["age_s"] <= 2 * reading["interval_s"] and reading["taken_at"].endswith("Z")
        assert host["memory"]["value"]["total"] == pytest.approx(119.7 * 2**30, rel=1e-6)
    assert said["rehearsal"] is True and said["alarms"] == []


# the eight faults


async def test_a_hang_behind_a_200_is_a_stall_whose_age_grows(watched: Watched) -> None:
    await watched.fault("hang")
    lane = await watched.until_lane(lambda lane: lane["state"] == "stalled", "the stall")
    assert lane["lamps"]["serving"]["word"].startswith("STALLED ") and lane["lamps"]["serving"]["severity"] == "act"
    assert lane["health"]["value"]["status"] == 200 and "health says 200" in lane["why"]
    assert lane["throughput"]["quality"] == "LIVE", "the scrape itself is current: it says that nothing moves"
    frozen = lane["lights"]["progress"]["frozen_for"]
    assert frozen >= 2.0
    later = await watched.until_lane(
        lambda lane: lane["lights"]["progress"]["frozen_for"] > frozen + 1.0, "a stall that grows older"
    )
    assert later["state"] == "stalled"
    found = alarm(watched.document(), f"state:{LANE}")
    assert found is not None and found["severity"] == "act" and found["text"].startswith("STALLED: no step for")
    assert "STALLED" in watched.text()


async def test_503_is_down_in_the_servers_own_word(watched: Watched) -> None:
    await watched.fault("503")
    lane = await watched.until_lane(lambda lane: lane["state"] == "down", "the lane is down")
    assert lane["health"]["value"]["status"] == 503 and "503" in lane["why"]
    assert lane["lights"]["http"]["verdict"] == "503"
    assert lane["lamps"]["serving"]["word"].startswith("DOWN ") and lane["lamps"]["serving"]["severity"] == "act"
    found = alarm(watched.document(), f"state:{LANE}")
    assert found is not None and "503" in found["text"]


async def test_html_is_another_program(watched: Watched) -> None:
    await watched.fault("html")
    lane = await watched.until_lane(
        lambda lane: lane["state"] == "down" and unreadable(lane["throughput"], "html"), "a page in place of the engine"
    )
    assert "HTML" in lane["why"] and lane["lights"]["scrape"]["verdict"] == "html"
    assert lane["lights"]["progress"]["decode_tps"] is None
    found = alarm(watched.document(), f"state:{LANE}")
    assert found is not None and "HTML" in found["text"]


async def test_a_counter_reset_is_a_restart_and_no_rate_leaps(watched: Watched) -> None:
    before = watched.lane()["throughput"]["value"]["generation_total"]
    rates: list[float | None] = []

    def restarted(lane: dict[str, Any]) -> bool:
        value = lane["throughput"]["value"]
        if value:  # on a busy machine a scrape may be late: then there is no value, and no rate to judge
            rates.append(value["decode_tps"])
        return bool(value and value["restarted"] and value["generation_total"] < before)

    await watched.fault("reset")
    lane = await watched.until_lane(restarted, "the restart")
    assert lane["state"] == "serving" and "counters started again" in lane["why"]
    await watched.until_lane(lambda lane: not restarted(lane), "the restart has left the window")
    assert rates and all(rate is not None and 0 <= rate <= LEAP * TPS for rate in rates), rates
    events = [event["text"] for event in watched.document()["events"] if event["subject"] == LANE]
    assert "counters started again: the engine was restarted" in events


async def test_another_engines_metrics_are_not_this_lanes(watched: Watched) -> None:
    await watched.fault("other-engine")
    lane = await watched.until_lane(
        lambda lane: lane["state"] == "degraded" and unreadable(lane["throughput"], "other engine"), "the other engine"
    )
    assert "vllm" in lane["why"] and "sglang" in lane["why"]
    assert lane["lamps"]["serving"]["word"].startswith("DEGRADED ")
    assert alarm(watched.document(), f"state:{LANE}") is not None


@pytest.mark.parametrize(
    ("fault", "verdict", "words"),
    [("truncated", "truncated", "ended inside the body"), ("empty", "empty", "empty body")],
)
async def test_a_body_that_cannot_be_believed_leaves_the_lane_blind(
    watched: Watched, fault: str, verdict: str, words: str
) -> None:
    await watched.fault(fault)
    lane = await watched.until_lane(
        lambda lane: lane["state"] == "blind" and unreadable(lane["throughput"], verdict), "the lane is blind"
    )
    assert words in lane["why"] and lane["health"]["value"]["status"] == 200
    assert lane["lamps"]["serving"]["word"] == "UP, BLIND" and lane["lamps"]["serving"]["severity"] == "look"
    aged = lane["throughput"]["age_s"]
    later = await watched.until_lane(lambda lane: lane["throughput"]["age_s"] > aged + 0.5, "an age that grows")
    assert later["throughput"]["value"] is None
    await watched.until_lane(lambda lane: lane["throughput"]["quality"] == "STALE", "STALE")


async def test_a_dead_engine_is_down_and_boots_before_it_serves(watched: Watched) -> None:
    await watched.rehearsal.inject("container", host=HEAD, name="sgldsv41", action="exit", code=137)
    lane = await watched.until_lane(
        lambda lane: (
            lane["state"] == "down"
            and unreadable(lane["throughput"], "refused")
            and lane["ranks"][0]["word"] == "exited 137"
        ),
        "the lane is down and its container read",
    )
    assert "spark-0 exited 137" in lane["why"]
    assert lane["health"]["value"]["transport"] == "refused"
    found = alarm(watched.document(), f"state:{LANE}")
    assert found is not None and found["severity"] == "act" and "exited 137" in found["text"]
    events = watched.document()["events"]
    assert any(event["text"].startswith("container sgldsv41 died, exit 137: ") for event in events)
    states: list[str] = []

    def seen(lane: dict[str, Any]) -> bool:
        if not states or states[-1] != lane["state"]:
            states.append(lane["state"])
        return states[-1] == "serving"

    await watched.rehearsal.inject("container", host=HEAD, name="sgldsv41", action="start")
    await watched.until_lane(seen, "it serves again")
    assert "booting" in states and states.index("booting") < states.index("serving")


async def test_an_engine_that_never_answers_is_not_serving(watched: Watched) -> None:
    await watched.fault("silent")
    lane = await watched.until_lane(
        lambda lane: lane["state"] != "serving" and unreadable(lane["throughput"], "timeout"), "the silence"
    )
    assert lane["lights"]["scrape"]["verdict"] == "timeout"


# hosts and ranks


async def test_a_dead_worker_is_never_serving_whatever_the_head_says(watched: Watched) -> None:
    await watched.rehearsal.inject("container", host="spark-2", name="sgldsv41", action="exit", code=137)
    lane = await watched.until_lane(lambda lane: lane["ranks"][2]["word"] == "exited 137", "the death")
    for _ in range(20):
        lane = watched.lane()
        assert lane["state"] in ("degraded", "down") and "spark-2 exited 137" in lane["why"], lane["why"]
        assert "tok/s" not in lane["lamps"]["serving"]["word"]
        await asyncio.sleep(0.05)
    lane = await watched.until_lane(lambda lane: lane["state"] == "degraded", "degraded: the head goes on")
    assert lane["health"]["value"]["status"] == 200, "the head answers as if nothing had happened"


async def test_a_silent_host_grows_late_then_stale_and_comes_back(watched: Watched) -> None:
    qualities: list[str] = []

    def memory(said: dict[str, Any]) -> dict[str, Any]:
        reading: dict[str, Any] = said["hosts"]["spark-1"]["memory"]
        if not qualities or qualities[-1] != reading["quality"]:
            qualities.append(reading["quality"])
        return reading

    await watched.rehearsal.inject("host", host="spark-1", mode="silent")
    await watched.until(lambda said: memory(said)["quality"] == "STALE", "STALE")
    assert qualities in (["LIVE", "LATE", "STALE"], ["LATE", "STALE"])
    reading = memory(watched.document())
    assert reading["value"] is None and reading["last"] is not None and reading["age_s"] >= 5 * 0.3
    assert watched.document()["hosts"]["spark-0"]["memory"]["quality"] in ("LIVE", "LATE")
    found = await watched.until(lambda said: alarm(said, "stale:spark-1"), "the alarm")
    assert found["text"].startswith("memory no reading for")
    await watched.rehearsal.inject("host", host="spark-1", mode="open")
    await watched.until(lambda said: memory(said)["quality"] == "LIVE" and memory(said)["value"], "LIVE again")


async def test_a_host_that_is_gone_is_unreachable_and_null_until_it_is_back(watched: Watched) -> None:
    await watched.rehearsal.inject("host", host="spark-3", mode="refused")
    said = await watched.until(
        lambda said: said if said["hosts"]["spark-3"]["memory"]["quality"] == "UNREACHABLE" else None, "UNREACHABLE"
    )
    host = said["hosts"]["spark-3"]
    for name in ("memory", "gpus", "facts", "containers"):
        assert host[name]["value"] is None and host[name]["last"] is not None, name
    found = alarm(said, "link:spark-3")
    assert found is not None and found["text"].startswith("unreachable ")
    lane = said["lanes"][LANE]
    assert lane["lights"]["process"]["running"] == 3 and lane["ranks"][3]["word"] == "unknown"
    assert any(word.startswith("spark-3") for word in lane["lights"]["process"]["unknown"])
    await watched.rehearsal.inject("host", host="spark-3", mode="open")
    await watched.until(lambda said: said["hosts"]["spark-3"]["memory"]["value"], "its memory again")
    texts = [event["text"] for event in watched.document()["events"] if event["subject"] == "spark-3"]
    assert any(text.startswith("unreachable:") for text in texts) and "reachable again" in texts


async def test_a_lane_whose_head_is_gone_is_unknown_not_down(watched: Watched) -> None:
    await watched.rehearsal.inject("host", host=HEAD, mode="refused")
    lane = await watched.until_lane(lambda lane: lane["state"] == "unknown", "UNKNOWN")
    assert lane["throughput"]["value"] is None and lane["health"]["value"] is None
    assert lane["throughput"]["quality"] == "UNREACHABLE" and lane["lights"]["progress"]["decode_tps"] is None
    assert lane["lamps"]["serving"]["word"].startswith("UNKNOWN") and "link" in lane["why"]
    await watched.rehearsal.inject("host", host=HEAD, mode="open")


async def test_low_free_memory_on_unified_memory_is_an_alarm_to_act_on(watched: Watched) -> None:
    await watched.rehearsal.inject("memory", host="spark-2", free_gib=2.9, cached_gib=61.0, over=0)
    found = await watched.until(lambda said: alarm(said, "memory:spark-2"), "the alarm")
    assert found["severity"] == "act"
    await watched.until(
        lambda said: (alarm(said, "memory:spark-2") or {}).get("text") == "free 2.9 of 119.7 GiB, 61.0 cached",
        "its text",
    )
    await watched.until(
        lambda said: any(e["subject"] == "spark-2" and e["text"].startswith("free ") for e in said["events"]),
        "its event",
    )
    memory = watched.document()["hosts"]["spark-2"]["memory"]["value"]
    assert memory["available"] > 50 * 2**30, "plenty available: not what decides on unified memory"
    await watched.rehearsal.inject("memory", host="spark-2", over=0)
    await watched.until(lambda said: not alarm(said, "memory:spark-2"), "no alarm any more")
    await watched.until(
        lambda said: any(e["subject"] == "spark-2" and e["text"].startswith("cleared: free") for e in said["events"]),
        "the event that says so",
    )


async def test_the_log_of_the_lanes_container_is_followed(watched: Watched) -> None:
    watched.feed.follow(LANE, "spark-1")

    def lines() -> tuple[str, ...]:
        log = watched.feed.snapshot().log
        return () if log is None or log.host != "spark-1" else tuple(line.text for line in log.lines)

    await watched.until(lambda _: lines(), "lines of a worker's log")
    watched.feed.follow(LANE, HEAD)

    def steps() -> bool:
        log = watched.feed.snapshot().log
        return log is not None and log.host == HEAD and any("Decode batch" in line.text for line in log.lines)

    await watched.until(lambda _: steps(), "lines of the head's log")
    log = watched.feed.snapshot().log
    assert log is not None and log.container == "sgldsv41" and log.problem == ""


# the end


def command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # gone, or a zombie that waits to be reaped
        return ""


async def test_nothing_is_left_on_the_hosts_after_stop() -> None:
    async with watching(HEAD) as watched:
        player = psutil.Process(watched.rehearsal.pid)

        def samplers() -> list[int]:
            return [child.pid for child in player.children(recursive=True) if LABEL in command(child)]

        assert samplers()
        await watched.feed.stop()
        said = watched.document()
        assert said["hosts"][HEAD]["memory"]["value"] is None, "a stopped feed shows nothing as current"
        for _ in range(200):
            if not samplers():
                break
            await asyncio.sleep(0.05)
        assert samplers() == []
