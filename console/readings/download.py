"""A checkpoint's download: how far, how fast, on which clocks, under which cap. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from console.readings.hubcache import Partial
from console.readings.units import UnitMemory


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
class Expected:
    """What a revision consists of, from a Hub listing or a manifest."""

    files: tuple[tuple[str, int, str], ...]
    """(path, bytes, sha256 or `git:` blob id), in the listing's order."""
    source: str
    revision: str = ""

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(size for _, size, _ in self.files)


@dataclass(frozen=True, slots=True)
class Clocks:
    """What of a download moved in the window; None where it cannot be read."""

    disk: float | None
    """Bytes a second that came to be allocated."""
    network: float | None
    """Bytes a second that the downloader read (its rchar, or its unit's)."""
    memory: float | None
    """Bytes a second by which its memory grew or shrank (sign kept)."""


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

    @property
    def share(self) -> float | None:
        """0..1; None where the total is not known."""
        return None if not self.expected or self.done is None else min(1.0, self.done / self.expected)
