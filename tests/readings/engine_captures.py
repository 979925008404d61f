"""Helpers of the engine tests: captures as answers and scrapes, and an endpoint whose truth is known."""

from __future__ import annotations

from pathlib import Path

from console.readings.answers import HttpAnswer, Transport
from console.readings.scrape import Scrape, read_scrape
from console.readings.series import EngineKind

CAPTURES = Path(__file__).parent.parent / "data" / "engines"

DECODE_TPS = 66.3
POOL = 6_198_016
KV_SHARE = 0.4375


def body_of(name: str) -> bytes:
    return (CAPTURES / name).read_bytes()


def answered(body: bytes, at: float = 0.0, status: int = 200, **headers: str) -> HttpAnswer:
    told = {"content-length": str(len(body)), "content-type": "text/plain; version=0.0.4", **headers}
    told = {name.replace("_", "-"): value for name, value in told.items()}
    return HttpAnswer(at, 0.01, Transport.ANSWERED, status, told["content-type"], told, body)


def failed(transport: Transport, at: float = 0.0, took: float = 0.01) -> HttpAnswer:
    return HttpAnswer(at, took, transport)


def capture(name: str, at: float | None = None, expected: EngineKind = EngineKind.UNKNOWN) -> Scrape:
    """A captured scrape, dated by its own first line unless `at` is given."""
    body = body_of(name)
    if at is None:
        first = body.partition(b"\n")[0]
        assert first.startswith(b"# scraped_at "), name
        at = float(first.split()[-1])
    return read_scrape(answered(body, at), expected)


def sglang_text(
    at: float, *, running: int = 3, waiting: int = 0, prefill: float = 0.0, decode: float = DECODE_TPS
) -> bytes:
    """SGLang metrics of an endpoint with known truth `at` seconds after its start."""
    labels = 'engine_type="unified",model_name="dsv41",pp_rank="0",tp_rank="0"'
    return "".join(
        (
            f"sglang:num_running_reqs{{{labels}}} {running}\n",
            f"sglang:num_queue_reqs{{{labels}}} {waiting}\n",
            f'sglang:realtime_tokens_total{{mode="decode",{labels}}} {1000 + decode * at}\n',
            f'sglang:realtime_tokens_total{{mode="prefill_compute",{labels}}} {5000 + prefill * at}\n',
            f"sglang:max_total_num_tokens{{{labels}}} {float(POOL)}\n",
            f"sglang:kv_used_tokens{{{labels}}} {POOL * KV_SHARE}\n",
            f"sglang:token_usage{{{labels}}} {KV_SHARE}\n",
        )
    ).encode()


def vllm_text(
    at: float, *, running: int = 3, waiting: int = 0, decode: float = DECODE_TPS, steps: float = 24.0
) -> bytes:
    """vLLM metrics of an endpoint with known truth `at` seconds after its start."""
    labels = 'engine="0",model_name="dsv41-flash-uva"'
    return "".join(
        (
            f"vllm:num_requests_running{{{labels}}} {running}\n",
            f"vllm:num_requests_waiting{{{labels}}} {waiting}\n",
            f"vllm:generation_tokens_total{{{labels}}} {1000 + decode * at}\n",
            f"vllm:prompt_tokens_total{{{labels}}} 5000\n",
            f"vllm:iteration_tokens_total_count{{{labels}}} {400 + steps * at}\n",
            f"vllm:kv_cache_usage_perc{{{labels}}} {KV_SHARE}\n",
            f'vllm:cache_config_info{{{labels},kv_cache_size_tokens="{POOL}",num_gpu_blocks="9",block_size="4"}} 1.0\n',
            "process_start_time_seconds 1760770000\n",
        )
    ).encode()
