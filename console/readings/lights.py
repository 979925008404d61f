"""The four lights of a lane (process, HTTP health, scrape, progress), kept apart, and the states they can add up to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from console.readings.scrape import ScrapeVerdict


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
    html: bool = False
    """The answer is an HTML page: not the engine's."""
    connected: bool = True
    """False where even the TCP connection did not come about in time."""
    started: float | None = None
    """Console-monotonic start of the container that `ever_ok` speaks of."""
    old_process: bool = False
    """The newest 200 came from a process older than the container's present start."""
    just_started: bool = False
    """No probe was sent since the container's present start."""
    loading: bool = False
    """The server itself says that it loads its model (llama.cpp's 503)."""


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
    absent: tuple[str, ...] = ()
    """Those of `dead` where no container was recognised: it may be one that is not known for the lane's."""
    unasked: bool = False
    """The containers of some rank were not read yet, because the console has only just begun."""
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
    prefill_only: bool = False
    """The engine steps and no token comes out: it reads prompts."""
    frozen_ranks: tuple[str, ...] = ()
    """Data-parallel engines that stand still with work while others move: `engine 1 (3 running, 41 s)`."""
    restarted: bool = False
    """The counters started again inside the window."""
    live_gauges: bool = True
    """False where the scrape holds start-up constants alone, as a SGLang rank above 0 does."""
    frozen_since: float | None = None
    """Console-monotonic time since which nothing has stepped, with work present."""
    prefill_since: float | None = None
    """Console-monotonic time since which prompts alone are read."""
    live_steps: bool = True
    """False where the step counter moves only when a request ends: standing still proves little."""


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
    late_since: float | None = None
    """Console-monotonic time since which nothing comes from the head, while nobody can say why yet."""
    last: LaneState | None = None
    """What was known before that."""

    @property
    def word(self) -> str:
        """`SERVING`, `DOWN`; `LATE` while nothing comes from the head."""
        return "LATE" if self.late_since is not None else self.state.upper()
