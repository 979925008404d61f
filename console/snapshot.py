"""The one immutable picture of the fleet that lamps, alarms, panes and the JSON twin are functions of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from console.fleet.inventory import Fleet, Lane
from console.fleet.sitefile import Site
from console.readings.acting_types import Acting, ForeignAct
from console.readings.binds import BindSource, Deed, Ready
from console.readings.boot import Boot, BootProgress, BootRecord
from console.readings.containers import Container, Containers
from console.readings.download import Download
from console.readings.drift import Drift
from console.readings.facts import HostFacts
from console.readings.gpu import Gpu
from console.readings.health import HttpAnswer, LaneVerdict, Lights
from console.readings.hubcache import HubRepo
from console.readings.link import LinkState
from console.readings.memory import Memory
from console.readings.quality import Reading
from console.readings.rows import RowCopies
from console.readings.throughput import Throughput
from console.readings.watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """One point of a node's memory history."""

    at: float
    used: float
    """Bytes: total - free - cached; NaN where there was no data."""
    cached: float
    free: float


@dataclass(frozen=True, slots=True)
class HostView:
    """One host at one moment."""

    name: str
    link: LinkState
    memory: Reading[Memory]
    gpus: Reading[tuple[Gpu, ...]]
    facts: Reading[HostFacts]
    containers: Reading[Containers]
    drift: float | None
    """Seconds the host's wall clock is ahead of the console's; None if unknown."""
    unified: bool
    """CPU and GPU share one memory, so MemFree is what the driver can allocate."""
    history: Sequence[MemoryPoint] = ()
    """Oldest first; never changed."""


@dataclass(frozen=True, slots=True)
class RatePoint:
    """One point of a lane's history. NaN where there was no data."""

    at: float
    decode_tps: float
    kv_fraction: float


@dataclass(frozen=True, slots=True)
class RankView:
    """One rank of a lane: the container that serves it there, if one was recognised."""

    rank: int
    host: str
    container: Container | None
    word: str
    """`serving`, `exited 137`, `no container`, `unknown`..."""
    revision: str


@dataclass(frozen=True, slots=True)
class LaneView:
    """One lane at one moment."""

    name: str
    lane: Lane
    health: Reading[HttpAnswer]
    throughput: Reading[Throughput]
    served: Reading[str]
    """The name that /v1/models answers: identity for clients, never the checkpoint."""
    lights: Lights
    verdict: LaneVerdict
    state_since: float
    """Monotonic time at which the lane entered its present state."""
    ranks: tuple[RankView, ...]
    history: Sequence[RatePoint] = ()
    """Oldest first; never changed."""
    pools: tuple[int, ...] = ()
    """KV pool sizes of the boots seen, tokens, oldest first."""
    usual_decode: tuple[float, float] | None = None
    """The lane's own usual band, tok/s (10th to 90th percentile while serving); None before enough data."""
    last_decode: float | None = None
    """tok/s when the lane last served."""
    site: Reading[Site] | None = None
    """The site file as it stands on the head; None for a recipe without one."""
    repos: tuple[tuple[str, Reading[HubRepo]], ...] = ()
    """(host, the checkpoint's repository through that host's own mount), in rank order."""
    download: Reading[Download] | None = None
    """None where nothing says which folder to look at."""
    rows: Reading[RowCopies] | None = None
    """None for a lane whose ranks read no local copies."""
    next_rows: Reading[RowCopies] | None = None
    """The copies being prepared for the next revision; None where none are named."""
    previous_rows: Reading[RowCopies] | None = None
    """The copies kept of the revision that served before; None where nobody says where they are."""
    watchdog: Reading[Watchdog] | None = None
    """None where the recipe has none: restart policies are all there is."""
    boot: Reading[Boot] | None = None
    """The head's present start, from its log; None before its log was read."""
    boot_progress: BootProgress | None = None
    """While it boots."""
    boots: tuple[BootRecord, ...] = ()
    """Earlier boots of this lane, oldest first."""
    drift: Drift | None = None
    """What differs between the ranks; None for a lane of one."""
    front: Reading[HttpAnswer] | None = None
    """The proxy in front of the engine; None where none is named."""
    usual_by_running: tuple[tuple[int, float, float, int], ...] = ()
    """(running requests, 10th percentile, 90th percentile, points): decode tok/s kept per concurrency."""
    unfilled: tuple[str, ...] = ()
    """What cannot be looked at, each with the key that would say where it is."""
    acting: Reading[Acting] | None = None
    """Lease, window, debts and the newest operation, from the head; None before it was first looked for."""
    unsynced: int = 0
    """Lines of this machine's ledger about this lane that its head does not have yet."""
    foreign: tuple[ForeignAct, ...] = ()
    """What was done of late to its hosts by nobody's step; newest last."""
    binds: tuple[BindSource, ...] = ()
    """What is bound into its containers, kept ones too, as the hosts find it now."""
    kept_repo: Reading[HubRepo] | None = None
    """The checkpoint's folder that the kept container mounts, where no other look covers it."""
    came_up: tuple[tuple[float, str], ...] = ()
    """(Unix seconds, first seven digits of the revision) of starts that came up, by the lane's ledger on its head."""
    deeds: tuple[Deed, ...] = ()
    """Ways back that were really gone, oldest first."""
    ready: Ready | None = None
    """Its way back when it was last whole; None where it never was, as far as records go."""
    looked: float | None = None
    """Monotonic time at which all of this was put together: what `acting` calls its clock is of that moment."""
    removed_at: float | None = None
    """Unix seconds at which the container of `ready` was removed, by Docker's events; None where they do not say."""


class Severity(StrEnum):
    """How loud a word is: grey, blue, orange, red."""

    NORMAL = "normal"
    INFO = "info"
    LOOK = "look"
    ACT = "act"


SEVERITY_WORDS = {Severity.NORMAL: "", Severity.INFO: "INFO", Severity.LOOK: "LOOK", Severity.ACT: "CRIT"}
"""The word that stands for each severity, on screen and in text."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; all texts are safe."""

    wall: float
    subject: str
    text: str
    severity: Severity = Severity.NORMAL
    deed: str = ""
    """Of something that somebody did: `container`, `watchdog`, `site`, `image`; '' for what happens by itself."""
    foreign: bool = False
    """It was done, and is no step of an operation of ours."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the followed container log, sanitised at ingest."""

    wall: float | None
    text: str


@dataclass(frozen=True, slots=True)
class LogView:
    """The log being followed, newest line last."""

    host: str
    container: str
    lines: tuple[LogLine, ...]
    skipped: int = 0
    """Lines dropped to keep up."""
    problem: str = ""
    taken_mono: float | None = None
    asked: bool = True
    """False while the newest lines are still being asked for: no line does not mean an empty log yet."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything known at monotonic time `now` / Unix time `wall`."""

    sequence: int
    now: float
    wall: float
    fleet: Fleet
    rehearsal: bool
    hosts: tuple[HostView, ...]
    lanes: tuple[LaneView, ...]
    events: tuple[Event, ...] = ()
    """Newest last."""
    log: LogView | None = None
    memo: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)
    """What was worked out of this picture before: lamps, alarms and panes ask for the same."""

    def host(self, name: str) -> HostView:
        """The view of host `name`. Raises KeyError."""
        views: dict[str, HostView] | None = self.memo.get("hosts")
        if views is None:
            views = self.memo["hosts"] = {view.name: view for view in self.hosts}
        return views[name]

    def lane(self, name: str) -> LaneView:
        """The view of lane `name`. Raises KeyError."""
        for view in self.lanes:
            if view.name == name:
                return view
        raise KeyError(name)


class Source(Protocol):
    """Where the screens and the headless twin get their snapshots: the feed, or a fixed picture in a test."""

    async def start(self) -> None:
        """Begin to ask every source in the background; returns at once."""
        ...

    async def stop(self) -> None:
        """End every task and leave nothing running on any host."""
        ...

    def snapshot(self) -> Snapshot:
        """The newest picture; cheap, never blocks, never raises."""
        ...

    def follow(self, lane: str, host: str) -> None:
        """Follow the log of the container that serves `lane` on `host`."""
        ...
