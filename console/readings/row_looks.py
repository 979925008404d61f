"""Looks at the folder of a row copy: how many bytes of its shards are there, and whether they move. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from console.readings.listing import Entry, Leads, Listing

MANIFEST = "engram-local.json"
WINDOW_S = 30.0
"""Seconds over which the rate of a copy is taken."""
QUIET_AFTER_S = 30.0
"""Seconds without a new byte after which a copy is said to stand still."""


@dataclass(frozen=True, slots=True)
class RowSample:
    """One look at a copy's folder."""

    at: float
    """Monotonic seconds."""
    listing: Listing
    manifest_text: str | None
    """None where there is none, or where it could not be read: the listing tells which."""
    manifest_mtime: float | None = None
    """Unix seconds; the listing's where it is None."""


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of one listing."""

    present: int
    """Bytes."""
    apparent: int
    newest: float | None
    """mtime of the newest one, Unix seconds."""
    files: int
    partial: bool
    """Some are still under the name that a tool gives them while it writes."""


_SHARD = re.compile(r"^(?P<name>[^/]+\.safetensors)(?P<partial>(?:\.[0-9a-f]{8})?\.(?:partial|incomplete))?$")


def only(sample: RowSample, shards: Sequence[str]) -> RowSample:
    """The same look without the files that hold no rows; without names of shards all of them stay."""
    if not shards:
        return sample
    kept = tuple(
        entry
        for entry in sample.listing.entries
        if entry.path == MANIFEST or ((match := _SHARD.match(entry.path)) and match["name"] in shards)
    )
    return replace(sample, listing=replace(sample.listing, entries=kept))


def shards_of(listing: Listing) -> Shards:
    """Bytes of the shards: where one is being written anew beside the whole one, the new file alone counts."""
    shards: dict[str, list[tuple[Entry, bool]]] = {}
    for entry in listing.entries:
        real = entry.kind == "f" or (entry.kind == "l" and entry.leads in (Leads.INSIDE, Leads.OUTSIDE))
        if real and (match := _SHARD.match(entry.path)):
            shards.setdefault(match["name"], []).append((entry, bool(match["partial"])))
    kept: dict[object, Entry] = {}
    for files in shards.values():
        growing = [entry for entry, partial in files if partial]
        for entry in growing or [entry for entry, _ in files]:
            kept[entry.inode or entry.path] = entry
    return Shards(
        present=sum(entry.present for entry in kept.values()),
        apparent=sum(entry.apparent for entry in kept.values()),
        newest=max((entry.mtime for entry in kept.values() if entry.mtime is not None), default=None),
        files=len(kept),
        partial=any(partial for files in shards.values() for _, partial in files),
    )


def rate(samples: Sequence[RowSample]) -> float | None:
    """Bytes a second over the last WINDOW_S, since the last time that bytes went away; None before two looks."""
    end = samples[-1]
    bytes_there = last = shards_of(end.listing).present
    begin: RowSample | None = None
    for sample in reversed(samples[:-1]):
        if end.at - sample.at > WINDOW_S:
            break
        present = shards_of(sample.listing).present
        if sample.listing.problem or present > last:
            break
        begin, last = sample, present
    if begin is None or end.at - begin.at < 0.5:
        return None
    return (bytes_there - last) / (end.at - begin.at)


def still_for(samples: Sequence[RowSample], now: float) -> float:
    """Seconds for which neither bytes nor times of the shards have moved, as far back as the looks go."""
    mark = _mark(samples[-1])
    since = samples[-1].at
    for sample in reversed(samples):
        if _mark(sample) != mark:
            break
        since = sample.at
    return max(0.0, now - since)


def _mark(sample: RowSample) -> tuple[int, float | None]:
    data = shards_of(sample.listing)
    return data.present, data.newest


def being_written(samples: Sequence[RowSample]) -> bool:
    """Whether bytes or times of the shards moved within the window."""
    recent = [sample for sample in samples if samples[-1].at - sample.at <= WINDOW_S]
    return len({_mark(sample) for sample in recent}) > 1


def grows(samples: Sequence[RowSample]) -> bool:
    """Whether bytes came to be there within the window."""
    found = rate(samples)
    return found is not None and found > 0
