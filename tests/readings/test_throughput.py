"""Rates, queues, KV pool, percentiles and speculation: known truth, and every trap by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from engine_captures import (
    DECODE_TPS,
    KV_SHARE,
    POOL,
    answered,
    sglang_text,
    vllm_text,
)
from hypothesis import given
from hypothesis import strategies as st

from console.readings.histogram import Percentiles, percentile
from console.readings.quality import Basis
from console.readings.rates import window
from console.readings.scrape import Scrape, read_scrape
from console.readings.series import EngineKind
from console.readings.speculation import from_meta_info
from console.readings.throughput import Throughput, heartbeat, live_series, throughput


def scrape(text: str | bytes, at: float = 0.0) -> Scrape:
    found = read_scrape(answered(text.encode() if isinstance(text, str) else text, at))
    assert found.verdict == "ok", found.detail
    return found


def over(*texts: str | bytes, step: float = 5.0) -> Throughput:
    """Scrapes `step` seconds apart."""
    return throughput([scrape(text, number * step) for number, text in enumerate(texts)])


def buckets(first: int, whole: int | None = None, name: str = "vllm:time_to_first_token_seconds") -> str:
    """A histogram of two buckets, up to 1 and +Inf."""
    return f'{name}_bucket{{le="1"}} {first}\n{name}_bucket{{le="+Inf"}} {first if whole is None else whole}\n'


# The endpoint whose truth is known


@pytest.mark.parametrize("text", [sglang_text, vllm_text])
def test_known_truth(text: Callable[[float], bytes]) -> None:
    found = throughput([scrape(text(at), at) for at in (0.0, 1.0, 2.0, 5.0, 6.0)])
    assert found.decode_tps == pytest.approx(DECODE_TPS)
    assert (found.kv.tokens, found.kv.used_fraction) == (POOL, KV_SHARE)
    assert found.kv.used_tokens == 2_711_632
    assert (found.running, found.waiting, found.restarted) == (3, 0, False)


# Traps, one by one


def test_window_is_the_last_ten_seconds_and_at_least_two_scrapes() -> None:
    at = [0.0, 1.0, 20.0, 21.0, 29.0, 31.0]
    scrapes = [scrape(vllm_text(item), item) for item in at]
    assert [item.at for item in window(scrapes)] == [21.0, 29.0, 31.0]
    assert [item.at for item in window(scrapes[:3])] == [1.0, 20.0]
    assert [item.at for item in window(scrapes[:1])] == [0.0]


@pytest.mark.parametrize("text", [sglang_text, vllm_text])
def test_the_rate_is_zero_once_no_token_came_for_three_seconds(text: Callable[[float], bytes]) -> None:
    scrapes = [scrape(text(min(float(at), 20.0)), float(at)) for at in range(30)]
    shown = [throughput(scrapes[: at + 1]).decode_tps for at in range(20, 25)]
    assert shown[0] == pytest.approx(DECODE_TPS)
    assert [rate == 0 for rate in shown] == [False, False, False, True, True]
    again = [*scrapes, scrape(text(21.0), 30.0)]
    assert throughput(again).decode_tps == pytest.approx(DECODE_TPS / 10)


def test_a_failed_newest_scrape_shows_nothing() -> None:
    found = throughput([scrape(vllm_text(0)), scrape(vllm_text(5), 5), read_scrape(answered(b"", 6))])
    assert (found.decode_tps, found.running, found.kv.tokens, found.engine) == (None, None, None, EngineKind.UNKNOWN)
    assert found.notes == ("empty: 200 with an empty body",)


def test_a_missed_scrape_widens_the_window() -> None:
    found = throughput([scrape(vllm_text(0)), read_scrape(answered(b"", 5)), scrape(vllm_text(12), 12)])
    assert (found.window, found.decode_tps) == (12, pytest.approx(DECODE_TPS))


def test_scrapes_of_another_engine_before_do_not_count() -> None:
    found = throughput([scrape(sglang_text(0)), scrape(sglang_text(1), 1), scrape(vllm_text(2), 2)])
    assert (found.engine, found.window, found.decode_tps, found.restarted) == (EngineKind.VLLM, 0, None, False)


def test_no_scrape_at_all() -> None:
    assert throughput([]).notes == ("no scrape yet",)


def test_resets_are_handled_per_series_before_the_sum() -> None:
    def text(first: float, second: float) -> str:
        return (
            f'vllm:generation_tokens_total{{engine="0"}} {first}\nvllm:generation_tokens_total{{engine="1"}} {second}\n'
        )

    found = over(text(1000, 1000), text(1100, 40), step=10)
    assert (found.decode_tps, found.restarted) == (14.0, True)


def test_after_a_reset_the_rate_is_the_new_processs_own_as_soon_as_two_scrapes_say_it() -> None:
    texts = [f"vllm:generation_tokens_total {value}\n" for value in (1000, 1100, 30, 130)]
    first = over(*texts[:3], step=2)
    assert (first.decode_tps, first.restarted) == (pytest.approx(130 / 4), True)
    second = over(*texts, step=2)
    assert (second.decode_tps, second.restarted) == (50.0, True)


def test_the_time_of_a_reboot_does_not_dilute_the_rate() -> None:
    scrapes = [
        scrape(f"vllm:generation_tokens_total {value}\n".encode(), at)
        for value, at in ((9000, 0.0), (66.3, 8.0), (132.6, 9.0))
    ]
    assert throughput(scrapes).decode_tps == pytest.approx(66.3)


def test_a_new_process_that_overtook_the_old_count_is_still_new() -> None:
    text = "vllm:generation_tokens_total {}\nprocess_start_time_seconds {}\n"
    found = over(text.format(100, 1_760_770_000), text.format(250, 1_760_778_018), step=10)
    assert (found.decode_tps, found.restarted) == (25.0, True)
    created = "vllm:generation_tokens_total {}\nvllm:generation_tokens_created {}\n"
    assert over(created.format(1, 1.7e9), created.format(2, 1.7e9 + 60)).restarted
    assert not over(created.format(1, 1.7e9), created.format(2, 1.7e9)).restarted


def test_a_pool_of_another_size_is_another_start() -> None:
    text = "sglang:max_total_num_tokens {}\nsglang:num_running_reqs 0\n"
    assert over(text.format(5_160_000), text.format(6_040_000)).restarted
    assert not over(text.format(5_160_000), text.format(5_160_000)).restarted


def test_a_series_that_appears_is_a_baseline() -> None:
    found = over(
        'vllm:generation_tokens_total{m="a"} 10\n',
        'vllm:generation_tokens_total{m="a"} 20\nvllm:generation_tokens_total{m="b"} 5000\n',
    )
    assert found.decode_tps == 2.0


def test_a_series_that_goes_missing_for_a_scrape_is_compared_with_its_last_value() -> None:
    both = 'vllm:generation_tokens_total{{m="a"}} {}\nvllm:generation_tokens_total{{m="b"}} {}\n'
    found = over(both.format(0, 100), 'vllm:generation_tokens_total{m="a"} 10\n', both.format(20, 130))
    assert (found.decode_tps, found.restarted) == (5.0, False)


def test_answers_that_jump_between_processes_give_no_rate() -> None:
    texts = [f"vllm:generation_tokens_total {value}\n" for value in (5000, 100, 5010, 110, 5020)]
    found = over(*texts, step=2)
    assert found.decode_tps is None
    assert any("several processes" in note for note in found.notes)


def test_copies_of_ranks_are_taken_once_and_parts_are_summed() -> None:
    tp = "".join(f'sglang:num_running_reqs{{tp_rank="{rank}"}} 4\n' for rank in range(8))
    assert over(tp).running == 4
    dp = "".join(
        f'sglang:max_total_num_tokens{{dp_rank="{dp}",tp_rank="{tp}"}} {1000 + tp}\n'
        for dp in range(2)
        for tp in range(2)
    )
    assert over(dp).kv.tokens == 2002
    pids = 'vllm:kv_cache_usage_perc{engine="0",pid="1"} 0.0\nvllm:kv_cache_usage_perc{engine="0",pid="2"} 0.4\n'
    found = over(pids)
    assert found.kv.used_fraction == 0.4
    assert any("pid" in note for note in found.notes)


def test_priorities_are_parts_of_the_total() -> None:
    rows = [("", 5), ("0", 3), ("1", 2)]
    for order in (rows, rows[::-1], [rows[1], rows[0], rows[2]]):
        text = "".join(f'sglang:num_queue_reqs{{priority="{name}",tp_rank="0"}} {count}\n' for name, count in order)
        assert over(text).waiting == 5
    assert over('sglang:num_queue_reqs{priority="0"} 3\nsglang:num_queue_reqs{priority="1"} 2\n').waiting == 5


def test_not_a_number_is_unknown_and_named() -> None:
    found = over("vllm:num_requests_running NaN\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc NaN\n")
    assert (found.running, found.waiting, found.kv.used_fraction) == (None, 2, None)
    assert "series vllm:num_requests_running is not a number" in found.notes
    assert "series vllm:kv_cache_usage_perc is not a number" in found.notes


def test_absent_series_are_unknown_and_named() -> None:
    found = over("vllm:prompt_tokens_total 5\n", "vllm:prompt_tokens_total 9\n")
    assert (found.decode_tps, found.running, found.waiting, found.preemptions) == (None, None, None, None)
    assert (found.kv.tokens, found.kv.used_fraction, found.speculation, found.ttft) == (None, None, None, None)
    for name in ("num_requests_running", "num_requests_waiting", "generation_tokens_total", "kv_cache_usage_perc"):
        assert f"series vllm:{name} missing" in found.notes


def test_product_of_blocks_is_an_estimate_and_counted_once_in_data_parallel() -> None:
    text = "".join(f'vllm:cache_config_info{{engine="{n}",num_gpu_blocks="80",block_size="128"}} 1\n' for n in range(2))
    pool = over(text).kv
    assert (pool.tokens, pool.tokens_basis) == (10_240, Basis.ESTIMATE)
    assert "num_gpu_blocks x block_size" in pool.evidence


@pytest.mark.parametrize("size", ["None", "", "nan", "inf", "0", "-4", "many"])
def test_a_size_that_is_no_number_is_unknown(size: str) -> None:
    found = over(f'vllm:cache_config_info{{num_gpu_blocks="{size}",block_size="16",kv_cache_size_tokens="{size}"}} 1\n')
    assert found.kv.tokens is None
    assert any(note.startswith("KV pool size unknown") for note in found.notes)


def test_the_binding_pool_of_a_hybrid_model_is_named() -> None:
    text = (
        "sglang:max_total_num_tokens 1000\nsglang:kv_used_tokens 100\nsglang:token_usage 0.9\n"
        "sglang:full_token_usage 0.1\nsglang:swa_token_usage 0.9\nsglang:mamba_usage 0.2\n"
    )
    pool = over(text).kv
    assert (pool.used_fraction, pool.binding, pool.used_tokens) == (0.9, "swa", 100)


def test_more_used_than_there_is_is_suspect() -> None:
    found = over("sglang:max_total_num_tokens 1000\nsglang:kv_used_tokens 8000\n")
    assert any("suspect" in note for note in found.notes)


def test_older_sglang_counts_at_the_end_of_a_request() -> None:
    text = "sglang:generation_tokens_total {}\nsglang:num_running_reqs {}\nsglang:gen_throughput 36.2\n"
    busy = over(text.format(700, 2), text.format(700, 2))
    assert (busy.decode_tps, busy.decode_basis) == (36.2, Basis.ENGINE_REPORTED)
    assert not busy.steps_live
    idle = over(text.format(700, 0), text.format(700, 0))
    assert (idle.decode_tps, idle.decode_basis) == (0.0, Basis.MEASURED)
    single = over(text.format(700, 0))
    assert single.decode_tps is None


def test_llama_cpp_counts_at_the_end_of_a_request() -> None:
    text = "llamacpp:tokens_predicted_total {}\nllamacpp:requests_processing {}\nllamacpp:n_decode_total {}\n"
    found = over(text.format(700, 1, 10), text.format(700, 1, 90))
    assert (found.decode_tps, found.steps, found.step_delta, found.steps_live) == (None, 90, 80, True)
    assert any("only when a request ends" in note for note in found.notes)
    jump = over(text.format(700, 1, 10), text.format(800, 1, 90))
    assert (jump.decode_tps, jump.decode_basis) == (20.0, Basis.ESTIMATE)
    idle = over(text.format(800, 0, 90), text.format(800, 0, 90))
    assert idle.decode_tps == 0.0
    spec = "".join(
        f"llamacpp:spec_decode_num_{name}_total {{}}\n" for name in ("drafts", "draft_tokens", "accepted_tokens")
    )
    drafts = over(spec.format(0, 0, 0), spec.format(10, 50, 20)).speculation
    assert drafts is not None
    assert (drafts.acceptance, drafts.accepted_per_step) == (0.4, 2.0)


def test_prefill_is_what_was_computed_not_what_was_cached() -> None:
    text = (
        'vllm:prompt_tokens_total {0}\nvllm:prompt_tokens_by_source_total{{source="local_compute"}} {1}\n'
        'vllm:prompt_tokens_by_source_total{{source="local_cache_hit"}} {2}\n'
    )
    assert over(text.format(0, 0, 0), text.format(1000, 200, 800), step=10).prefill_tps == 20.0


def test_prefix_hits_are_of_the_window() -> None:
    text = "vllm:prefix_cache_queries_total {}\nvllm:prefix_cache_hits_total {}\n"
    assert over(text.format(10_000, 9_000), text.format(10_100, 9_025)).prefix_hit_rate == 0.25
    assert over(text.format(10_000, 9_000), text.format(10_000, 9_000)).prefix_hit_rate is None
    mode = "".join(f'sglang:realtime_tokens_total{{{{mode="prefill_{name}"}}}} {{}}\n' for name in ("compute", "cache"))
    assert over(mode.format(50, 50), mode.format(80, 60)).prefix_hit_rate == 0.25


def test_no_drafts_in_the_window_is_no_acceptance() -> None:
    text = "".join(
        f"vllm:spec_decode_num_{name}_total {{}}\n" for name in ("drafts", "draft_tokens", "accepted_tokens")
    )
    found = over(text.format(10, 50, 30), text.format(10, 50, 30)).speculation
    assert found is not None
    assert (found.acceptance, found.accepted_per_step, found.drafted_per_step) == (None, None, None)
    assert found.lifetime_acceptance == 0.6


@pytest.mark.parametrize(
    ("text", "acceptance", "basis", "word"),
    [
        (
            "sglang:spec_accept_length 2.5\nsglang:spec_accept_rate 0.41666666666666669\n",
            2.5 / 6,
            "engine-reported",
            "old build",
        ),
        ("sglang:spec_accept_length 2.5\nsglang:spec_accept_rate 0.3\n", 0.3, "engine-reported", ""),
        ("sglang:spec_accept_length 2.5\nsglang:spec_accept_rate 1.2\n", 1.2, "suspect", "cannot be"),
        ("sglang:spec_accept_length 0.5\n", None, "suspect", "cannot be"),
        (
            "sglang:spec_accept_length 2.75\nsglang:spec_accept_rate 0.458\nsglang:spec_num_draft_tokens 6\n",
            0.35,
            "engine-reported",
            "",
        ),
        (
            "sglang:spec_accept_length 2\nsglang:spec_num_draft_tokens 6\nsglang:spec_cap_length 3\n",
            0.2,
            "engine-reported",
            "capped",
        ),
    ],
)
def test_sglang_acceptance_is_derived_from_the_length(
    text: str, acceptance: float | None, basis: str, word: str
) -> None:
    found = over(text)
    assert found.speculation is not None
    assert found.speculation.acceptance == (None if acceptance is None else pytest.approx(acceptance))
    assert found.speculation.basis == basis
    spoken = [part for part in ("old build", "cannot be", "capped") if part in " ".join(found.notes)]
    assert spoken == ([word] if word else [])


def test_sglang_without_speculation() -> None:
    assert over("sglang:spec_accept_length 0\nsglang:num_running_reqs 1\n").speculation is None


@pytest.mark.parametrize(
    "meta",
    [{}, {"spec_verify_ct": 0}, {"spec_verify_ct": True}, {"spec_verify_ct": "many"}, {"spec_verify_ct": math.nan}],
)
def test_meta_info_without_counts(meta: dict[str, object]) -> None:
    assert from_meta_info({"spec_num_correct_drafts": 3, **meta}) is None


def test_a_percentile_above_the_last_bound_says_so() -> None:
    found = over(buckets(0, 0), buckets(60, 100)).ttft
    assert found is not None
    assert (found.observations, found.p50, found.p95, found.p99, found.beyond) == (
        100,
        pytest.approx(5 / 6),
        None,
        None,
        1.0,
    )


def test_few_observations_give_their_number_only() -> None:
    found = over(buckets(1000), buckets(1019)).ttft
    assert found is not None
    assert (found.observations, found.p50) == (19, None)
    assert over(buckets(1000), buckets(1020)).ttft == Percentiles(20, 0.5, 0.95, pytest.approx(0.99))


def test_buckets_that_fell_started_again() -> None:
    found = over(buckets(1000), buckets(30)).ttft
    assert found is not None
    assert found.observations == 30


def test_the_old_name_of_the_latency_is_read() -> None:
    old = "vllm:time_per_output_token_seconds"
    found = over(buckets(0, name=old), buckets(40, name=old))
    assert found.itl is not None
    assert found.itl.observations == 40
    assert not found.itl_is_per_step


def test_percentile_needs_observations_and_an_infinite_bucket() -> None:
    assert percentile({}, 0.5) is None
    assert percentile({1.0: 3}, 0.5) is None
    assert percentile({1.0: 0, math.inf: 0}, 0.5) is None
    assert percentile({1.0: 2, 2.0: 2, math.inf: 4}, 0.5) == 1.0
    assert percentile({1.0: 2, 2.0: 2, math.inf: 4}, 0.9) is None


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8),
    st.floats(0.01, 1.0),
)
def test_percentiles_stay_within_their_bucket_and_grow(counts: list[int], fraction: float) -> None:
    held, seen = {}, 0
    for bound, count in enumerate(counts, 1):
        seen += count
        held[float(bound)] = float(seen)
    held[math.inf] = float(seen)
    found = percentile(held, fraction)
    if seen == 0:
        assert found is None
        return
    assert found is not None
    place = next(bound for bound, count in held.items() if count >= fraction * seen and count > 0)
    assert place - 1 <= found <= place
    assert found <= (percentile(held, 1.0) or 0)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=2, max_size=10))
def test_no_counters_make_a_rate_negative_or_not_finite(rows: list[tuple[int, int]]) -> None:
    texts = [
        f'vllm:generation_tokens_total{{engine="0"}} {first}\nvllm:generation_tokens_total{{engine="1"}} {second}\n'
        for first, second in rows
    ]
    found = over(*texts, step=1)
    assert found.decode_tps is None or (found.decode_tps >= 0 and math.isfinite(found.decode_tps))
    falls = any(b[0] < a[0] or b[1] < a[1] for a, b in pairwise(rows))
    assert found.restarted is falls


@given(st.floats())
def test_no_gauge_comes_out_as_not_finite(value: float) -> None:
    names = ("num_requests_running", "kv_cache_usage_perc", "generation_tokens_total")
    found = over("".join(f"vllm:{name} {value!r}\n" for name in names))
    for number in (found.running, found.kv.used_fraction, found.generation_total, found.steps):
        assert number is None or math.isfinite(number)


def test_a_sleeping_engine_says_so() -> None:
    text = (
        'vllm:engine_sleep_state{sleep_state="awake"} 0\nvllm:engine_sleep_state{sleep_state="weights_offloaded"} 1\n'
    )
    assert "the engine sleeps: weights_offloaded" in over(text).notes


def test_a_hostile_model_name_is_made_safe() -> None:
    found = over(b'vllm:num_requests_running{model_name="\x1b[31m[red]x\\ny"} 1\n')
    assert "\x1b" not in found.model_name
    assert "\n" not in found.model_name


def test_heartbeats() -> None:
    assert heartbeat(scrape(sglang_text(10))) == (pytest.approx(6000 + DECODE_TPS * 10), True)
    assert heartbeat(scrape(vllm_text(10))) == (640, True)
    assert heartbeat(scrape("sglang:generation_tokens_total 7\n")) == (7, False)
    assert heartbeat(scrape("sglang:num_running_reqs 7\n")) == (None, False)
    assert not live_series(scrape("sglang:max_total_num_tokens 5\n"))
    assert live_series(scrape("sglang:num_running_reqs 0\n"))
