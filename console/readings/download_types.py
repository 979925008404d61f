"""What a download's reading holds. Pure data; `console/readings/download.py` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from console.readings.download_pace import Clocks, Point
from console.readings.hubcache import HubRepo, Partial
from console.readings.processes import Process
from console.readings.units import UnitMemory, Units


class DownloadState(StrEnum):
    """The one word for a download."""

    NONE = "none"
    """Nothing is being fetched and nothing is half there."""
    RUNNING = "running"
    WAITING = "no new byte"
    """Bytes on disk stand still, but network or memory of the downloader moves, or it is too early to say."""
    STALLED = "stalled"
    """All clocks stand still."""
    COMPLETE = "complete"
    """Every expected file is there in its expected size. Not a checksum."""
    INCOMPLETE = "incomplete"
    """Something is missing and nobody fetches it."""
    FAILED_CAP = "failed: memory cap"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DownloadSample:
    """What was read of a download at one time."""

    at: float
    """Monotonic seconds."""
    repo: HubRepo
    processes: Sequence[Process] | None = None
    """None where they were not read."""
    units: Units | None = None
    wall: float | None = None
    """Unix seconds by the host's clock; the listing's own time if left out."""
    received: int | None = None
    """Bytes that the host's interfaces received so far (`download_pace.parse_received`)."""
    memo: list[tuple[tuple[str, str, str], object, Point]] = field(default_factory=list, compare=False, repr=False)
    """What was made of it for a revision, a unit and a model: the same sample is read again with every new one."""


@dataclass(frozen=True, slots=True)
class Download:
    """One download at one time. Bytes and seconds."""

    state: DownloadState
    why: str
    """One plain sentence; '' where the word says all."""
    revision: str
    """What is being fetched; '' if it cannot be told."""
    host: str
    repo: str
    """Folder on the host."""
    done: int | None
    expected: int | None
    """None where nobody says what there should be: then there is no percentage and no time to go."""
    shards_done: int | None
    shards_total: int | None
    files_done: int | None = None
    files_total: int | None = None
    rate: float | None = None
    """Bytes on disk a second over `window`; None before there are two readings."""
    window: float = 0.0
    stalled_for: float | None = None
    """Seconds since the last new byte on disk."""
    eta: float | None = None
    """Seconds to go at `rate`; None while stalled, and where the total is not known."""
    clocks: Clocks | None = None
    current: Partial | None = None
    """The partial file that moves."""
    partials: int = 0
    orphans: tuple[Partial, ...] = ()
    memory: UnitMemory | None = None
    processes: int | None = None
    """Downloaders that run for this repository; None if processes were not read."""
    upstream: str = ""
    """Where the repository's main branch stands now; '' if not asked."""
    warnings: tuple[str, ...] = ()
    """Safe sentences, worst first: prune would drop the serving snapshot, two downloaders, cap not in force..."""
    notes: tuple[str, ...] = ()
    """What is good to know and asks for nothing now: upstream moved, left-over partial files..."""
    current_file: str = ""
    """The file of the revision that `current` becomes; '' where no list says."""
    current_size: int | None = None
    attempt: int | None = None
    """How often `current` was begun, as far as earlier attempts left something behind; a new one begins at zero."""
    usual_rate: tuple[float, float] | None = None
    """10th and 90th percentile of this download's rates, bytes a second; None before there are enough."""
    pids: tuple[int, ...] = ()
    """Of the downloaders."""
    warning_kinds: tuple[str, ...] = ()
    """A stable word for each of `warnings`: `two`, `cap`, `oom`, `room`, `prune`, `unread`, `list`, `size`, `dangling`,
    `outside`, `absolute`, `sparse`, `xet`, `settings`, `attempts`."""

    @property
    def share(self) -> float | None:
        """0..1; None where the total is not known."""
        return None if not self.expected or self.done is None else min(1.0, self.done / self.expected)
