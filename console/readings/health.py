"""The four lights of a lane and the state that they add up to; see also `throughput` for the scrape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from console.readings.throughput import ScrapeVerdict


class Transport(StrEnum):
    """How an HTTP exchange ended below HTTP."""

    ANSWERED = "answered"
    REFUSED = "refused"
    CONNECT_TIMEOUT = "connect timeout"
    READ_TIMEOUT = "read timeout"
    RESET = "reset"
    TRUNCATED = "truncated"
    TOO_LARGE = "too large"
    NOT_HTTP = "not http"
    UNREACHABLE = "unreachable"
    """The link to the host that asks is down: nothing is known about the engine."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One answer of the engine's HTTP server, or how it failed. Filled by `reach.engine_http`."""

    at: float
    """Console's monotonic time at the end of the exchange."""
    took: float
    """Seconds."""
    transport: Transport
    status: int | None = None
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    detail: str = ""


class HttpVerdict(StrEnum):
    """What the health endpoint says, in one word for the HTTP light."""

    OK = "ok"
    UNAVAILABLE = "503"
    SERVER_ERROR = "5xx"
    OTHER_STATUS = "status"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    RESET = "reset"
    NOT_HTTP = "not http"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HttpLight:
    """HTTP health, over the recent probes."""

    verdict: HttpVerdict = HttpVerdict.UNKNOWN
    status: int | None = None
    took: float | None = None
    misses: int = 0
    """Consecutive probes that were not 200."""
    ever_ok: bool = False
    """A 200 was seen since the serving container last started."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ProcessLight:
    """The containers (or processes) of all ranks."""

    expected: int = 0
    running: int = 0
    dead: tuple[str, ...] = ()
    """Words per dead rank: `spark-2 exited 137 (OOM-killed)`."""
    unknown: tuple[str, ...] = ()
    """Hosts whose containers cannot be read, with the reason."""
    paused: tuple[str, ...] = ()
    started_at: float | None = None
    """Unix seconds of the head's current start."""
    id: str = ""
    """Id of the head's serving container; a change means a new process."""


@dataclass(frozen=True, slots=True)
class ScrapeLight:
    """The metrics endpoint."""

    verdict: ScrapeVerdict = ScrapeVerdict.UNREACHABLE
    detail: str = ""
    series: int = 0


class Progress(StrEnum):
    """Whether the engine steps."""

    MOVING = "moving"
    NO_WORK = "no work"
    NO_STEP_YET = "no step yet"
    FROZEN = "frozen"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ProgressLight:
    """The engine's step counter against the work present."""

    progress: Progress = Progress.UNKNOWN
    steps: float | None = None
    frozen_for: float | None = None
    """Seconds the counter has stood still with work present."""
    decode_tps: float | None = None
    prefill_tps: float | None = None
    running: int | None = None
    waiting: int | None = None
    moving_for: float | None = None
    """Seconds since prefill-only work began (for `PREFILL 45s`)."""


@dataclass(frozen=True, slots=True)
class Lights:
    """The four lights apart."""

    process: ProcessLight = ProcessLight()
    http: HttpLight = HttpLight()
    scrape: ScrapeLight = ScrapeLight()
    progress: ProgressLight = ProgressLight()


class LaneState(StrEnum):
    """What the four lights add up to."""

    SERVING = "serving"
    IDLE = "idle"
    BUSY = "busy"
    """Prefill moves, decode does not; also when /health misses meanwhile."""
    BOOTING = "booting"
    READY = "ready"
    """200, but no step was seen yet."""
    STALLED = "stalled"
    DRAINING = "draining"
    DEGRADED = "degraded"
    """A light disagrees: a rank is dead behind a 200, /health 5xx while tokens flow, metrics fail."""
    BLIND = "blind"
    """HTTP is 200 but metrics are off or unreadable: up, work unknown."""
    PAUSED = "paused"
    DOWN = "down"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LaneVerdict:
    """The lane's state and the reason in one sentence."""

    state: LaneState
    why: str
