"""KV pools of a lane's boots: one for each, whenever its start becomes known."""

from __future__ import annotations

from dataclasses import replace

from console.feed.lane_history import LaneHistory
from console.feed.records import LaneRecords
from console.readings.answers import HttpAnswer, Transport
from console.readings.recorded import Pool, Recorded
from console.readings.throughput import EngineKind, Throughput, read_scrape, throughput
from console.snapshot import Severity

TEXT = b'vllm:num_requests_running 0\nvllm:cache_config_info{kv_cache_size_tokens="1"} 1\n'
BASE: Throughput = throughput([read_scrape(HttpAnswer(0.0, 0.01, Transport.ANSWERED, 200, body=TEXT), EngineKind.VLLM)])


def told(text: str, severity: Severity) -> None:
    raise AssertionError(text)


def history(*pools: Pool) -> LaneHistory:
    return LaneHistory(LaneRecords(told, None, Recorded(pools=pools)))


def scraped(lane: LaneHistory, pool: int, started: float | None, *, restarted: bool = False) -> tuple[int, ...]:
    found = replace(BASE, kv=replace(BASE.kv, tokens=pool), restarted=restarted)
    lane.take(1.0, found, started)
    return lane.pools


def test_a_pool_that_is_read_before_its_start_is_known_counts_once() -> None:
    """The engine's metrics come before Docker's list of containers, at every start of the console."""
    lane = history(Pool(100.0, 5_000_000))
    assert scraped(lane, 6_000_000, None) == (5_000_000, 6_000_000)
    assert scraped(lane, 6_000_000, 200.0) == (5_000_000, 6_000_000)
    assert scraped(lane, 6_000_000, 200.0) == (5_000_000, 6_000_000)


def test_while_docker_cannot_be_read_the_same_pool_is_no_new_one() -> None:
    lane = history()
    scraped(lane, 6_000_000, 200.0)
    for started in (None, None, 200.0, None):
        assert scraped(lane, 6_000_000, started) == (6_000_000,)
    assert scraped(lane, 6_000_000, None, restarted=True) == (6_000_000, 6_000_000), "another boot with the same pool"
    assert scraped(lane, 6_000_000, None, restarted=True) == (6_000_000, 6_000_000)
    assert scraped(lane, 6_000_000, 300.0) == (6_000_000, 6_000_000)


def test_a_boot_whose_start_is_known_at_once_takes_no_pool_of_another() -> None:
    lane = history()
    assert scraped(lane, 5_000_000, None) == (5_000_000,)
    assert scraped(lane, 6_000_000, 300.0, restarted=True) == (5_000_000, 6_000_000)
    assert scraped(lane, 6_000_000, 300.0, restarted=True) == (5_000_000, 6_000_000)
