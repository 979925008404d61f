"""Series whose values no engine has: nothing escapes, nothing absurd is shown as a size."""

from __future__ import annotations

import pytest
from engine_captures import answered
from hypothesis import given, settings
from hypothesis import strategies as st

from console.readings.health import Progress, progress_light
from console.readings.scrape import read_scrape
from console.readings.series import WANTED
from console.readings.throughput import throughput


@pytest.mark.parametrize(
    "text",
    [
        'vllm:cache_config_info{num_gpu_blocks="1e308",block_size="1e308"} 1\nvllm:kv_cache_usage_perc 0.5\n',
        'vllm:cache_config_info{kv_cache_size_tokens="1.7e308"} 1\nvllm:kv_cache_usage_perc 0.5\n',
        "sglang:max_total_num_tokens 1e308\nsglang:token_usage 0.5\nsglang:num_running_reqs 1\n",
    ],
)
def test_a_pool_larger_than_any_is_unknown(text: str) -> None:
    found = throughput([read_scrape(answered(text.encode(), 0.0))])
    assert found.kv.tokens is None and found.kv.used_tokens is None
    assert found.kv.used_fraction == 0.5


@pytest.mark.parametrize(("length", "rate"), [("2.5", "1e-320"), ("1e308", "0.5"), ("2.5", "5e-324")])
def test_speculation_gauges_that_cannot_be_are_no_error(length: str, rate: str) -> None:
    rows = [f'sglang:num_running_reqs 1\nsglang:realtime_tokens_total{{mode="decode"}} {n}' for n in (0, 90)]
    both = [
        f'{row}\nsglang:spec_accept_length{{dp_rank="{rank}"}} {length}\nsglang:spec_accept_rate {rate}\n'
        for row, rank in zip(rows, (0, 1), strict=True)
    ]
    found = throughput([read_scrape(answered(text.encode(), 2.0 * n)) for n, text in enumerate(both)])
    assert found.decode_tps == 45.0
    assert found.speculation is not None and found.speculation.length_with_bonus == float(length)


@settings(max_examples=60)
@given(
    st.sampled_from(("vllm", "sglang", "llamacpp")),
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from(sorted(WANTED)),
                st.sampled_from(
                    (
                        "",
                        '{engine="0"}',
                        '{dp_rank="1",priority="2"}',
                        '{le="+Inf"}',
                        '{mode="decode"}',
                        '{num_gpu_blocks="1e308",block_size="1e308"}',
                        '{position="0"}',
                    )
                ),
                st.floats(),
            ),
            min_size=1,
            max_size=30,
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_no_series_of_any_value_is_an_error(kind: str, bodies: list[list[tuple[str, str, float]]]) -> None:
    texts = ["".join(f"{name}{labels} {value!r}\n" for name, labels, value in rows) for rows in bodies]
    scrapes = [read_scrape(answered(f"{kind}:x 1\n{text}".encode(), 2.0 * n)) for n, text in enumerate(texts)]
    found = throughput(scrapes)
    assert found.kv.tokens is None or 0 < found.kv.tokens < 2**60
    assert progress_light(scrapes, 2.0 * len(scrapes), 15.0, reading=found).progress in Progress
