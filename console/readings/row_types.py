"""Engram row copies as values: ranges, manifests, copies, and the tiling of all. Pure; `rows` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

ROW_BYTES = 264
"""256 bytes of FP8 and 8 of scale a row."""


@dataclass(frozen=True, slots=True, order=True)
class RowRange:
    """Rows [start, end) of one layer's table."""

    layer: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RowManifest:
    """One `engram-local.json`."""

    ranges: tuple[RowRange, ...]
    form: str
    """`local` or `slice`: the two published ones."""
    source: str = ""
    revision: str = ""
    """The commit in `revision`, else in `source`; '' where neither names one."""
    rank: int | None = None
    tp_size: int | None = None
    quant: str = ""
    created: float | None = None
    """Unix seconds."""
    digests: int = 0

    @property
    def bytes(self) -> int:
        """What the ranges take when whole."""
        return range_bytes(self.ranges)


class RowState(StrEnum):
    """The one word for a rank's copy."""

    READY = "ready"
    """Manifest of the right revision and rank, newer than its data, all its bytes allocated. Contents not compared."""
    SHARDS = "reads the shards"
    """The rank that holds the checkpoint needs no copy."""
    COPYING = "copying"
    WAITS = "waits"
    """Nothing there yet."""
    NO_ROOM = "no room"
    """What is missing does not fit into what is free."""
    OLD_REVISION = "old revision"
    WRONG_RANK = "another rank's slice"
    WRONG_RANGES = "other ranges"
    """Its ranges leave a gap or overlap with the other ranks'."""
    HOLES = "holes"
    """A manifest, but fewer bytes than its ranges take: holes read as zeros, without an error."""
    OLD_MANIFEST = "manifest older than its data"
    UNREADABLE = "manifest unreadable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RowCopy:
    """One rank's copy. Bytes and seconds."""

    rank: int
    host: str
    path: str
    state: RowState
    words: str
    """`old revision df42c109, rebuild`; `copying, no manifest`; the state's own word where there is no more to say."""
    manifest: RowManifest | None = None
    present: int | None = None
    """Allocated bytes of its shards."""
    apparent: int | None = None
    expected: int | None = None
    """What its ranges take; before it has a manifest, what the rank's share of the tables takes, if that is known."""
    free: int | None = None
    rate: float | None = None
    """Allocated bytes a second; None before two readings."""
    left: float | None = None
    newest: float | None = None
    """mtime of its newest shard, Unix seconds."""
    basis: str = ""
    """Where `expected` comes from: `its manifest`, `its share of the tables`, `rank 2's copy`; '' where it is None."""
    note: str = ""
    """What else an operator must know before rebuilding: `no room for two: ...`; safe text."""

    @property
    def share(self) -> float | None:
        """0..1 of the expected bytes; None where they are not known."""
        return None if not self.expected or self.present is None else min(1.0, self.present / self.expected)

    def read_by(self, sources: Iterable[str]) -> bool:
        """Whether its folder is among the bind sources of a container; one below `~` is compared by its end."""
        return is_bound(self.path, sources)


def is_bound(folder: str, sources: Iterable[str]) -> bool:
    """Whether a folder is among the bind sources of a container; one below `~` is compared by its end."""
    path = folder.rstrip("/")
    below = path.removeprefix("~") if path.startswith("~/") else ""
    return any(source.rstrip("/") == path or (below and source.rstrip("/").endswith(below)) for source in sources)


@dataclass(frozen=True, slots=True)
class LayerTiling:
    """Whether the ranks' ranges of one layer cover its table once."""

    layer: int
    rows: int | None
    """Rows of the table; None where nobody says."""
    faults: tuple[str, ...] = ()
    """`gap [96000564, 96001542) between rank 0 and rank 1`, `overlap ...`, `ends at A, the table at B`."""
    ranks: tuple[tuple[int, ...], ...] = ()
    """The ranks on both sides of each fault, in the order of `faults`."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """All layers together."""

    layers: tuple[LayerTiling, ...]
    family: str = ""
    """`N*r//tp (SGLang)` or `whole hash heads (vLLM)` where all ranges are of one; `mixed` where they are of both."""
    ok: bool | None = None
    """None while ranges of some rank are not known."""
    words: str = ""
    """One sentence."""
    families: Mapping[int, str] = field(default_factory=dict)
    """Family by rank."""


@dataclass(frozen=True, slots=True)
class RowCopies:
    """All ranks of a lane."""

    revision: str
    """What the copies should be of: the site file's revision, or the one being prepared."""
    copies: tuple[RowCopy, ...]
    tiling: Tiling
    for_next: bool = False
    """The copies looked at are those of the revision being prepared, not of the one that serves."""


def range_bytes(ranges: tuple[RowRange, ...]) -> int:
    """Bytes that the rows of these ranges take."""
    return sum(item.end - item.start for item in ranges) * ROW_BYTES
