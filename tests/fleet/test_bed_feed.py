"""The whole feed on real hosts: the truth is shown, and each fault within two intervals of the source that sees it.

How soon is counted in readings of that source, not in seconds: after a fault at most two may still look well.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from bed.client import Bed
from bed.engines import REVISION, BedEngine
from bed_fleet import fleet_text
from bed_links import PATIENCE, until

from console.feed import Feed
from console.fleet.inventory import parse
from console.headless import settled
from console.lamps import lamps
from console.readings.health import HttpVerdict, LaneState
from console.readings.quality import Quality
from console.readings.scrape import ScrapeVerdict
from console.snapshot import Event, LaneView, Snapshot

pytestmark = pytest.mark.bed

ALLOWED = 2
"""Readings after a fault that may still look well: what was under way, and one more."""
TRUE_RATE, TRUE_KV, TRUE_POOL = 66.3, 0.4375, 6198016


@contextlib.asynccontextmanager
async def feeding(bed: Bed, vllm: BedEngine, sglang: BedEngine) -> AsyncIterator[Feed]:
    """A feed that has read everything once; after it nothing of it runs on any host."""
    feed = Feed(parse(fleet_text(bed, vllm, sglang)))
    await feed.start()
    try:
        await until_shown(feed, well)
        yield feed
    finally:
        await feed.stop()
    for host in bed.hosts:
        await until(lambda host=host: not host.remote_processes(), f"nothing is left on {host.name}")  # type: ignore[misc]


def well(snapshot: Snapshot) -> bool:
    """Every source has answered and both lanes serve at a rate."""
    serving = all(lane.verdict.state is LaneState.SERVING for lane in snapshot.lanes)
    return settled(snapshot) and serving and all(lane.lights.http.ever_ok for lane in snapshot.lanes)


async def until_shown(feed: Feed, shown: Callable[[Snapshot], object]) -> Snapshot:
    """The first snapshot for which `shown` is true. Fails the test after PATIENCE seconds."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not shown(snapshot := feed.snapshot()):  # noqa: ASYNC110 - a snapshot is asked for, never pushed
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"never shown; the lanes: {[lane.verdict for lane in snapshot.lanes]}") from None
    return snapshot


async def readings_until(
    feed: Feed, shown: Callable[[Snapshot], object], source: Callable[[Snapshot], float | None]
) -> int:
    """How many new good readings `source` brought before `shown` was true."""
    seen: set[float | None] = {source(feed.snapshot())}

    def noted(snapshot: Snapshot) -> object:
        done = shown(snapshot)
        if not done:
            seen.add(source(snapshot))
        return done

    await until_shown(feed, noted)
    return len(seen) - 1


async def test_the_truth_of_both_engines_is_shown(bed: Bed, vllm: BedEngine, sglang: BedEngine) -> None:
    async with feeding(bed, vllm, sglang) as feed:
        snapshot = await until_shown(feed, lambda s: all(steady(lane) for lane in s.lanes))
        for lane in snapshot.lanes:
            found = lane.throughput.current(snapshot.now)
            assert found is not None
            assert (found.kv.used_fraction, found.kv.tokens) == (TRUE_KV, TRUE_POOL)
            assert found.running == 3
            assert {rank.revision for rank in lane.ranks} == {REVISION}
            assert [lamp.word for lamp in lamps(snapshot, lane)][1] == REVISION[:7]
        assert all(host.memory.quality(snapshot.now) is Quality.LIVE for host in snapshot.hosts)
        assert snapshot.lane("station").served.value == "dsv41-flash-uva"


def steady(lane: LaneView) -> bool:
    """The shown rate is within 1 % of the truth."""
    found = lane.throughput.value
    return found is not None and found.decode_tps == pytest.approx(TRUE_RATE, rel=0.01)


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        ("html", ScrapeVerdict.HTML),
        ("truncated", ScrapeVerdict.TRUNCATED),
        ("empty", ScrapeVerdict.EMPTY),
        ("other-engine", ScrapeVerdict.OTHER_ENGINE),
        ("metrics-off", ScrapeVerdict.OFF),
    ],
)
async def test_bad_metrics_are_shown_for_what_they_are(
    bed: Bed, vllm: BedEngine, sglang: BedEngine, fault: str, verdict: ScrapeVerdict
) -> None:
    async with feeding(bed, vllm, sglang) as feed:
        vllm.fault(fault)
        extra = await readings_until(
            feed,
            lambda s: s.lane("station").lights.scrape.verdict is verdict,
            lambda s: s.lane("station").throughput.taken_mono,
        )
        assert extra <= ALLOWED
        snapshot = feed.snapshot()
        reading = snapshot.lane("station").throughput
        assert reading.current(snapshot.now) is None and reading.error
        assert snapshot.lane("dsv41").verdict.state is LaneState.SERVING


async def test_a_503_is_shown(bed: Bed, vllm: BedEngine, sglang: BedEngine) -> None:
    async with feeding(bed, vllm, sglang) as feed:
        vllm.fault("503")
        extra = await readings_until(
            feed,
            lambda s: s.lane("station").lights.http.verdict is HttpVerdict.UNAVAILABLE,
            lambda s: s.lane("station").health.taken_mono,
        )
        assert extra <= ALLOWED
        assert feed.snapshot().lane("station").verdict.state is not LaneState.SERVING


async def test_counters_that_start_again_are_a_restart_and_no_rate(
    bed: Bed, vllm: BedEngine, sglang: BedEngine
) -> None:
    async with feeding(bed, vllm, sglang) as feed:
        vllm.fault("reset")
        extra = await readings_until(feed, restarted, lambda s: s.lane("station").throughput.taken_mono)
        assert extra <= ALLOWED
        found = feed.snapshot().lane("station").throughput.value
        assert found is not None and (found.decode_tps is None or 0 <= found.decode_tps < 2 * TRUE_RATE)


def restarted(snapshot: Snapshot) -> bool:
    """The station's counters are known to have started again."""
    found = snapshot.lane("station").throughput.value
    return found is not None and found.restarted


async def test_a_hung_engine_behind_a_200_is_stalled(bed: Bed, vllm: BedEngine, sglang: BedEngine) -> None:
    async with feeding(bed, vllm, sglang) as feed:
        vllm.fault("hang")
        snapshot = await until_shown(feed, lambda s: s.lane("station").verdict.state is LaneState.STALLED)
        assert snapshot.lane("station").lights.http.verdict is HttpVerdict.OK
        assert snapshot.lane("dsv41").verdict.state is LaneState.SERVING


async def test_a_stopped_process_leaves_no_value_that_looks_current(
    bed: Bed, vllm: BedEngine, sglang: BedEngine
) -> None:
    async with feeding(bed, vllm, sglang) as feed:
        vllm.signal("STOP")
        extra = await readings_until(
            feed,
            lambda s: s.lane("station").throughput.quality(s.now) is not Quality.LIVE,
            lambda s: s.lane("station").throughput.taken_mono,
        )
        assert extra <= ALLOWED
        snapshot = await until_shown(feed, lambda s: s.lane("station").lights.http.verdict is HttpVerdict.TIMEOUT)
        assert snapshot.lane("station").throughput.current(snapshot.now) is None
        assert snapshot.host(vllm.host.name).memory.quality(snapshot.now) is Quality.LIVE


async def test_a_killed_container_is_down_with_its_exit_and_comes_back(
    bed: Bed, vllm: BedEngine, sglang: BedEngine
) -> None:
    async with feeding(bed, vllm, sglang) as feed:
        vllm.host.docker("kill", vllm.name)
        extra = await readings_until(
            feed,
            is_down_with_137,  # HTTP may have said first that it is down
            lambda s: s.host(vllm.host.name).containers.taken_mono,
        )
        assert extra <= ALLOWED
        assert any(is_death(event) for event in feed.snapshot().events)
        vllm.heal()
        await until_shown(feed, well)


def is_down_with_137(snapshot: Snapshot) -> bool:
    """The station is down, and its container says how it ended."""
    lane = snapshot.lane("station")
    return lane.verdict.state is LaneState.DOWN and "137" in lane.ranks[0].word


def is_death(event: Event) -> bool:
    """The event that a container died with SIGKILL's code."""
    return "died, exit 137" in event.text


async def test_a_dropped_host_goes_late_then_unreachable_and_comes_back(
    bed: Bed, vllm: BedEngine, sglang: BedEngine
) -> None:
    name = vllm.host.name
    async with feeding(bed, vllm, sglang) as feed:
        with vllm.host.dropped():
            extra = await readings_until(
                feed,
                lambda s: s.host(name).memory.quality(s.now) is not Quality.LIVE,
                lambda s: s.host(name).memory.taken_mono,
            )
            assert extra <= ALLOWED
            snapshot = await until_shown(feed, lambda s: s.host(name).memory.quality(s.now) is Quality.UNREACHABLE)
            assert snapshot.host(name).link.error
            assert snapshot.lane("station").verdict.state is LaneState.UNKNOWN
            assert snapshot.lane("station").throughput.current(snapshot.now) is None
            assert snapshot.lane("dsv41").verdict.state is LaneState.SERVING
        await until_shown(feed, lambda s: well(s) and s.host(name).memory.quality(s.now) is Quality.LIVE)
