"""Tokens, queues, KV pool and speculation out of two or more scrapes of one engine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from console.readings.exposition import Sample
from console.readings.quality import Basis


class EngineKind(StrEnum):
    """Which engine's series a scrape holds."""

    SGLANG = "sglang"
    VLLM = "vllm"
    LLAMACPP = "llamacpp"
    UNKNOWN = "unknown"


class ScrapeVerdict(StrEnum):
    """What came back from /metrics, in one word for the scrape light."""

    OK = "ok"
    OFF = "off"
    """404: the engine runs without --enable-metrics."""
    EMPTY = "empty"
    HTML = "html"
    NOT_METRICS = "not metrics"
    TRUNCATED = "truncated"
    TOO_LARGE = "too large"
    OTHER_ENGINE = "other engine"
    """Series of an engine kind other than the lane's."""
    NO_SERIES = "no engine series"
    HTTP_ERROR = "http error"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    RESET = "reset"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Scrape:
    """The wanted series of one answer, dated by the console's monotonic clock at the end of the answer."""

    at: float
    verdict: ScrapeVerdict
    detail: str
    engine: EngineKind
    samples: tuple[Sample, ...]
    lines: int
    """Lines in the body."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Interpolated from cumulative buckets between two scrapes, seconds. None: fewer than 20 observations."""

    observations: int
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class KvPool:
    """The KV cache pool of the lane."""

    tokens: int | None
    tokens_basis: Basis
    used_fraction: float | None
    """0..1, weighted over DP ranks."""
    used_tokens: float | None
    evictable_tokens: float | None
    evidence: str
    """Which series the size came from."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """Speculative decoding over the window."""

    basis: Basis
    acceptance: float | None
    """Accepted / drafted, 0..1."""
    accepted_per_step: float | None
    """Accepted drafts per step, bonus token NOT counted."""
    length_with_bonus: float | None
    """Tokens per step with the bonus token."""
    drafted_per_step: float | None
    """Which band of a draft schedule is in force."""
    by_position: tuple[float, ...] = ()
    """Acceptance per draft position, 0..1."""
    lifetime_acceptance: float | None = None


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a window of scrapes says about the lane. None is unknown, never 0."""

    engine: EngineKind
    window: float
    """Seconds between the first and the last scrape used; 0 for a single one."""
    decode_tps: float | None
    prefill_tps: float | None
    running: int | None
    waiting: int | None
    preemptions: float | None
    """Per window."""
    kv: KvPool
    speculation: Speculation | None
    ttft: Percentiles | None
    itl: Percentiles | None
    itl_is_per_step: bool
    """True for vLLM under speculation: one observation per engine step, not per token."""
    prefix_hit_rate: float | None
    steps: float | None
    """Engine step counter (heartbeat), as summed over series at the newest scrape."""
    step_delta: float | None
    """Movement of the heartbeat in the window."""
    restarted: bool
    """A counter fell or the process start time changed inside the window."""
    series: int
    model_name: str = ""
    generation_total: float | None = None
    """Raw sum of the generation counter at the newest scrape, tokens."""
    notes: tuple[str, ...] = ()
    """What is missing or suspect, in words: `series vllm:kv_cache_usage_perc missing`."""
