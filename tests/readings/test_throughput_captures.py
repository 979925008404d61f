"""Rates, queues, KV pool, percentiles and speculation of the captures, on exact values."""

from __future__ import annotations

from itertools import pairwise

import pytest
from engine_captures import POOL, body_of, capture

from console.readings.exposition import parse
from console.readings.histogram import percentiles
from console.readings.quality import Basis
from console.readings.rates import increase
from console.readings.series import EngineKind, indexed, total, values
from console.readings.throughput import throughput

SPEC = "vllm_metrics_spec_{}.prom"

# Captures, on the values computed from them


@pytest.mark.parametrize(
    ("first", "dt", "tokens", "tps", "acceptance", "accepted", "length", "drafted", "per_draft"),
    [
        (4, "2.15", 742, "344.7", "0.797", "3.37", "4.37", "4.23", "4.76"),
        (5, "2.09", 777, "372.1", "0.587", "2.70", "3.70", "4.60", "4.01"),
        (6, "2.09", 549, "262.4", "0.764", "3.59", "4.59", "4.69", "4.82"),
        (7, "2.11", 582, "275.9", "0.847", "3.72", "4.72", "4.39", "5.02"),
    ],
)
def test_speculation_run_scrape_to_scrape(
    first: int,
    dt: str,
    tokens: int,
    tps: str,
    acceptance: str,
    accepted: str,
    length: str,
    drafted: str,
    per_draft: str,
) -> None:
    pair = [capture(SPEC.format(f"load_{number}")) for number in (first, first + 1)]
    found = throughput(pair)
    spec = found.speculation
    assert spec is not None
    assert spec.acceptance is not None
    assert found.decode_tps is not None
    assert spec.steps is not None
    moved = increase(pair, "vllm:generation_tokens_total")
    assert moved is not None
    assert (f"{found.window:.2f}", moved.amount, f"{found.decode_tps:.1f}") == (dt, tokens, tps)
    assert f"{spec.acceptance:.3f}" == acceptance
    assert f"{spec.accepted_per_step:.2f}" == accepted
    assert f"{spec.length_with_bonus:.2f}" == length
    assert f"{spec.drafted_per_step:.2f}" == drafted
    assert f"{moved.amount / spec.steps:.2f}" == per_draft
    assert len(spec.by_position) == 5
    assert found.itl_is_per_step
    assert not found.restarted


@pytest.mark.parametrize(
    ("number", "blocks", "share"),
    [(4, 14, 0.608696), (5, 20, 0.869565), (6, 22, 0.956522), (7, 23, 1.0), (8, 16, 0.695652)],
)
def test_kv_use_of_the_speculation_run(number: int, blocks: int, share: float) -> None:
    pool = throughput([capture(SPEC.format(f"load_{number}"))]).kv
    assert pool.used_fraction is not None
    assert round(pool.used_fraction, 6) == share
    assert round(pool.used_fraction * 23, 9) == blocks
    assert (pool.tokens, pool.tokens_basis) == (3072, Basis.MEASURED)
    assert pool.used_tokens == pool.used_fraction * 3072


@pytest.mark.parametrize(
    ("name", "wanted", "value"),
    [
        ("vllm_metrics_spec_after.prom", "vllm:generation_tokens_total", 5928),
        ("vllm_metrics_spec_after.prom", "vllm:inter_token_latency_seconds_count", 1709),
        ("vllm_metrics_spec_after.prom", "vllm:inter_token_latency_seconds_sum", 195.8263453219995),
        ("vllm_metrics_spec_after.prom", "vllm:time_to_first_token_seconds_count", 19),
        ("vllm_metrics_spec_after.prom", "vllm:request_time_per_output_token_seconds_count", 19),
        ("vllm_metrics_spec_after.prom", "vllm:iteration_tokens_total_count", 290),
        ("vllm_metrics_spec_after.prom", "vllm:iteration_tokens_total_sum", 9344),
        ("vllm_metrics_spec_after.prom", "vllm:num_preemptions_total", 13),
        ("vllm_metrics_spec_after.prom", "vllm:prompt_tokens_total", 3416),
        ("vllm_metrics_spec_after.prom", "vllm:request_generation_tokens_sum", 5928),
        ("vllm_metrics_spec_after.prom", "vllm:spec_decode_num_drafts_total", 1273),
        ("vllm_metrics_spec_after.prom", "vllm:spec_decode_num_accepted_tokens_total", 4240),
        ("vllm_metrics_spec_after.prom", "vllm:request_decode_time_seconds_sum", 195.8263453219995),
        ("vllm_metrics_after.prom", "vllm:generation_tokens_total", 6772),
        ("vllm_metrics_after.prom", "vllm:inter_token_latency_seconds_count", 6737),
        ("vllm_metrics_after.prom", "vllm:inter_token_latency_seconds_sum", 210.0120547059995),
        ("sglang_metrics_load.made.prom", "sglang:generation_tokens_total", 111_445),
        ("sglang_metrics_load.made.prom", "sglang:gen_throughput", 66.31),
        ("sglang_metrics_load.made.prom", "sglang:kv_available_tokens", 3_735_808),
        ("sglang_metrics_after.made.prom", "sglang:kv_available_tokens", 3_987_712),
        ("sglang_metrics_load.made.prom", "sglang:token_usage", 0.0406),
        ("sglang_metrics_load.made.prom", "sglang:spec_accept_rate", 0.35),
    ],
)
def test_values_of_the_captures(name: str, wanted: str, value: float) -> None:
    assert total(indexed(parse(body_of(name), frozenset({wanted})).samples), wanted) == value


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("vllm:time_to_first_token_seconds", (8.472222222222221, 17.625, 19.525)),
        ("vllm:inter_token_latency_seconds", (0.0848551637279597, 0.19575925925925924, 0.9070454545454564)),
    ],
)
def test_percentiles_of_the_speculation_run(metric: str, expected: tuple[float, float, float]) -> None:
    pair = [capture(SPEC.format("idle"), 0.0), capture(SPEC.format("after"), 60.0)]
    found = percentiles(pair, (metric,), enough=1)
    assert found is not None
    assert (found.p50, found.p95, found.p99) == pytest.approx(expected, rel=1e-12)
    assert found.beyond is None


def test_whole_speculation_run() -> None:
    found = throughput([capture(SPEC.format("idle"), 0.0), capture(SPEC.format("after"), 60.0)])
    assert found.ttft is not None
    assert (found.ttft.observations, found.ttft.p50) == (19, None)
    assert found.itl is not None
    assert (found.itl.observations, found.itl.p50) == (1709, pytest.approx(0.0848551637279597))
    assert (found.preemptions, found.generation_total, found.steps, found.step_delta) == (13, 5928, 290, 290)
    assert (found.model_name, found.process_started) == ("tiny", 1796075210.85)
    assert found.notes == ()


@pytest.mark.parametrize(
    ("run", "numbers", "rates"),
    [
        ("vllm_metrics_load_{}.prom", (1, 2, 3, 4, 5), ["164.7", "129.5", "307.2", "378.5"]),
        ("vllm_metrics_2api_load_{}.prom", (1, 2, 3), ["328.5", "238.1"]),
        ("vllm_metrics_dp2_load_{}.prom", (1, 2, 3, 4), ["49.4", "77.8", "69.9"]),
    ],
)
def test_rates_of_the_other_runs(run: str, numbers: tuple[int, ...], rates: list[str]) -> None:
    scrapes = [capture(run.format(number)) for number in numbers]
    found = [throughput([first, last]) for first, last in pairwise(scrapes)]
    assert [f"{item.decode_tps:.1f}" for item in found] == rates
    assert not any(item.restarted for item in found)


def test_a_window_smooths_the_pairs() -> None:
    scrapes = [capture(SPEC.format(f"load_{number}")) for number in range(4, 9)]
    found = throughput(scrapes)
    assert found.decode_tps is not None
    assert found.window == scrapes[-1].at - scrapes[0].at
    assert found.decode_tps == pytest.approx(2650 / found.window)


@pytest.mark.parametrize(
    ("name", "tokens"),
    [("vllm_metrics_load_3.prom", 1_048_576), (SPEC.format("load_5"), 3072), ("vllm_metrics_dp2_load_2.prom", 10_240)],
)
def test_pool_sizes(name: str, tokens: int) -> None:
    pool = throughput([capture(name)]).kv
    assert (pool.tokens, pool.tokens_basis) == (tokens, Basis.MEASURED)


def test_data_parallel_use_is_weighted_over_engines() -> None:
    newest = capture("vllm_metrics_dp2_load_2.prom")
    shares = list(values(newest.index, "vllm:kv_cache_usage_perc").values())
    pool = throughput([newest]).kv
    assert len(shares) == 2
    assert pool.used_tokens == pytest.approx(sum(share * 5120 for share in shares))
    assert pool.used_fraction == pytest.approx(sum(shares) / 2)


def test_between_the_two_runs_the_server_was_restarted() -> None:
    found = throughput([capture("vllm_metrics_after.prom", 0.0), capture(SPEC.format("idle"), 60.0)])
    assert (found.restarted, found.decode_tps, found.step_delta) == (True, 0.0, 0.0)


def test_accepted_but_not_stepped() -> None:
    found = throughput([capture(SPEC.format(f"load_{number}")) for number in (1, 2, 3)])
    assert (found.running, found.waiting, found.steps, found.decode_tps) == (0, 0, 0, 0.0)
    assert found.speculation is not None
    assert found.speculation.acceptance is None
    assert found.speculation.lifetime_acceptance is None


def test_sglang_under_load() -> None:
    found = throughput([capture("sglang_metrics_load.made.prom", 0.0)])
    assert (found.engine, found.running, found.waiting) == (EngineKind.SGLANG, 4, 1)
    kv = found.kv
    assert (kv.tokens, kv.used_tokens, kv.evictable_tokens) == (6_198_016, 251_904, 2_210_304)
    assert kv.used_fraction == 251_904 / 6_198_016
    spec = found.speculation
    assert spec is not None
    assert (spec.length_with_bonus, spec.accepted_per_step, spec.drafted_per_step) == (2.75, 1.75, 5)
    assert (spec.acceptance, spec.basis) == (pytest.approx(0.35), Basis.ENGINE_REPORTED)
    assert (
        total(capture("sglang_metrics_load.made.prom", 0.0).index, "sglang:realtime_tokens_total", mode="decode")
        == 112_755
    )
    assert found.generation_total == 111_445
    assert found.window == 0
    assert (found.decode_tps, found.prefill_tps, found.step_delta) == (None, None, None)


def test_sglang_after_load_keeps_no_last_value() -> None:
    found = throughput(
        [capture(f"sglang_metrics_{name}.made.prom", at) for name, at in (("load", 0.0), ("after", 5.0))]
    )
    assert (found.running, found.decode_tps, found.kv.used_tokens, found.kv.evictable_tokens) == (0, 0.0, 0, 2_210_304)
    assert found.speculation is not None
    assert (found.speculation.acceptance, found.speculation.length_with_bonus) == (None, None)
    assert any("2.75" in note and "not a current value" in note for note in found.notes)


def test_sglang_before_its_first_request_has_no_counters() -> None:
    found = throughput([capture("sglang_metrics_idle.made.prom", at) for at in (0.0, 5.0)])
    assert (found.running, found.decode_tps, found.prefill_tps, found.steps) == (0, None, None, None)
    assert "series sglang:realtime_tokens_total missing" in found.notes
    assert found.speculation is None
    assert found.kv.tokens == POOL
