"""Which series of each engine are read, under which names they went by, and how ranks of one series are put together.

Names are those of vLLM 0.8.5 to 0.32, SGLang 0.4.0 to 0.5.23 and llama.cpp's server; a tuple of names is an alias list,
newest first: the first one present counts, they are never added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

from console.readings.exposition import Labels, Sample


class EngineKind(StrEnum):
    """Which engine's series a scrape holds."""

    SGLANG = "sglang"
    VLLM = "vllm"
    LLAMACPP = "llamacpp"
    UNKNOWN = "unknown"


KINDS = (EngineKind.SGLANG, EngineKind.VLLM, EngineKind.LLAMACPP)
Names = tuple[str, ...]

PROCESS_START = "process_start_time_seconds"

RUNNING: Mapping[EngineKind, Names] = {
    EngineKind.VLLM: ("vllm:num_requests_running",),
    EngineKind.SGLANG: ("sglang:num_running_reqs",),
    EngineKind.LLAMACPP: ("llamacpp:requests_processing",),
}
WAITING: Mapping[EngineKind, Names] = {
    EngineKind.VLLM: ("vllm:num_requests_waiting",),
    EngineKind.SGLANG: ("sglang:num_queue_reqs",),
    EngineKind.LLAMACPP: ("llamacpp:requests_deferred",),
}
GENERATION: Mapping[EngineKind, Names] = {
    EngineKind.VLLM: ("vllm:generation_tokens_total",),
    EngineKind.SGLANG: ("sglang:generation_tokens_total",),
    EngineKind.LLAMACPP: ("llamacpp:tokens_predicted_total",),
}
PROMPT: Mapping[EngineKind, Names] = {
    EngineKind.VLLM: ("vllm:prompt_tokens_total",),
    EngineKind.SGLANG: ("sglang:prompt_tokens_total",),
    EngineKind.LLAMACPP: ("llamacpp:prompt_tokens_total",),
}
PREEMPTIONS: Mapping[EngineKind, Names] = {
    EngineKind.VLLM: ("vllm:num_preemptions_total",),
    EngineKind.SGLANG: ("sglang:num_retracted_requests_total",),
    EngineKind.LLAMACPP: (),
}
PROMPT_BY_SOURCE = "vllm:prompt_tokens_by_source_total"
REALTIME = "sglang:realtime_tokens_total"
GEN_THROUGHPUT = "sglang:gen_throughput"
STEPS: Mapping[EngineKind, Names] = {
    EngineKind.VLLM: ("vllm:iteration_tokens_total_count",),
    EngineKind.SGLANG: (),
    EngineKind.LLAMACPP: ("llamacpp:n_decode_total",),
}
CACHE_CONFIG = "vllm:cache_config_info"
VLLM_USAGE: Names = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
SGLANG_POOL: Names = ("sglang:max_total_num_tokens",)
SGLANG_USED: Names = ("sglang:kv_used_tokens", "sglang:num_used_tokens")
SGLANG_EVICTABLE: Names = ("sglang:kv_evictable_tokens",)
SGLANG_USAGE: Names = ("sglang:token_usage",)
SGLANG_USAGE_PARTS: Mapping[str, str] = {
    "full": "sglang:full_token_usage",
    "swa": "sglang:swa_token_usage",
    "mamba": "sglang:mamba_usage",
}
LLAMACPP_USAGE: Names = ("llamacpp:kv_cache_usage_ratio",)
PREFIX_HITS: Names = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
PREFIX_QUERIES: Names = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
SGLANG_CACHED: Names = ("sglang:cached_tokens_total",)
TTFT: Mapping[EngineKind, Names] = {
    EngineKind.VLLM: ("vllm:time_to_first_token_seconds",),
    EngineKind.SGLANG: ("sglang:time_to_first_token_seconds",),
    EngineKind.LLAMACPP: (),
}
ITL: Mapping[EngineKind, Names] = {
    EngineKind.VLLM: ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    EngineKind.SGLANG: ("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
    EngineKind.LLAMACPP: (),
}
SLEEP_STATE = "vllm:engine_sleep_state"
DRAFTS = "spec_decode_num_drafts_total"
DRAFT_TOKENS = "spec_decode_num_draft_tokens_total"
ACCEPTED = "spec_decode_num_accepted_tokens_total"
ACCEPTED_BY_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"
SPEC_LENGTH = "sglang:spec_accept_length"
SPEC_RATE = "sglang:spec_accept_rate"
SPEC_DRAFT_TOKENS = "sglang:spec_num_draft_tokens"
SPEC_CAP_LENGTH = "sglang:spec_cap_length"
CREATED: Names = ("vllm:generation_tokens_created",)

_SINGLE = (
    PROCESS_START,
    PROMPT_BY_SOURCE,
    REALTIME,
    GEN_THROUGHPUT,
    CACHE_CONFIG,
    SLEEP_STATE,
    SPEC_LENGTH,
    SPEC_RATE,
    SPEC_DRAFT_TOKENS,
    SPEC_CAP_LENGTH,
    *CREATED,
    *VLLM_USAGE,
    *SGLANG_POOL,
    *SGLANG_USED,
    *SGLANG_EVICTABLE,
    *SGLANG_USAGE,
    *SGLANG_USAGE_PARTS.values(),
    *LLAMACPP_USAGE,
    *PREFIX_HITS,
    *PREFIX_QUERIES,
    *SGLANG_CACHED,
)
_BY_KIND = (RUNNING, WAITING, GENERATION, PROMPT, PREEMPTIONS, STEPS)

WANTED: frozenset[str] = frozenset(
    (
        *_SINGLE,
        *(name for table in _BY_KIND for names in table.values() for name in names),
        *(
            name + part
            for table in (TTFT, ITL)
            for names in table.values()
            for name in names
            for part in ("_bucket", "_count")
        ),
        *(f"{kind}:{name}" for kind in ("vllm", "llamacpp") for name in (DRAFTS, DRAFT_TOKENS, ACCEPTED)),
        *(f"{kind}:{ACCEPTED_BY_POSITION}" for kind in ("vllm", "llamacpp")),
    )
)
"""Every series that a reading is made of; all other lines of a scrape are passed over."""

COPY_LABELS = frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid"})
"""Labels under which the same work is reported more than once: copies, never parts."""
SCOPE_LABELS = ("engine", "dp_rank")
"""Labels of data-parallel engines: parts of a sum."""

Index = Mapping[str, tuple[Sample, ...]]
Series = dict[Labels, float]


def indexed(samples: Sequence[Sample]) -> Index:
    """Samples by name."""
    table: dict[str, list[Sample]] = {}
    for sample in samples:
        table.setdefault(sample.name, []).append(sample)
    return {name: tuple(found) for name, found in table.items()}


def present(index: Index, names: Iterable[str]) -> str | None:
    """The first of the alias names that the scrape holds, or None."""
    return next((name for name in names if name in index), None)


def values(index: Index, name: str | None, **only: str) -> Series:
    """Values of `name` by identity: copies of one rank are taken once (the largest), NaN is left out.

    With priority scheduling SGLang exports the total as priority="" and its parts beside it: the total counts.
    """
    found: Series = {}
    totals: set[Labels] = set()
    for sample in index.get(name, ()) if name else ():
        if math.isnan(sample.value) or any(sample.label(key) != value for key, value in only.items()):
            continue
        key, priority = _identity(sample.labels)
        if priority and key in totals:
            continue
        if priority:
            found[key] = found.get(key, 0.0) + sample.value
        elif key in totals or key not in found:
            found[key] = max(found.get(key, -math.inf), sample.value)
            totals.add(key)
        else:
            found[key] = sample.value
            totals.add(key)
    return found


@lru_cache(maxsize=4096)
def _identity(labels: Labels) -> tuple[Labels, str]:
    priority = ""
    kept = []
    for pair in labels:
        if pair[0] == "priority":
            priority = pair[1]
        elif pair[0] not in COPY_LABELS:
            kept.append(pair)
    return tuple(kept), priority


def total(index: Index, names: Names | str | None, **only: str) -> float | None:
    """The sum over data-parallel ranks of the first alias present; None where it is absent or not a number."""
    name = names if isinstance(names, str) or names is None else present(index, names)
    found = values(index, name, **only)
    summed = sum(found.values())
    return summed if found and math.isfinite(summed) else None


def scope(labels: Labels) -> str:
    """Which data-parallel engine a series belongs to; empty where there is one only."""
    return next((value for key, value in labels if key in SCOPE_LABELS), "")


def has_pid(index: Index) -> bool:
    """Some live series carry a `pid` label: several processes report, only one of them may be right."""
    names = [name for kind in KINDS for table in (RUNNING, WAITING) for name in table[kind]]
    return any(sample.label("pid") is not None for name in (*names, *VLLM_USAGE) for sample in index.get(name, ()))
