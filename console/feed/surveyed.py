"""What is known of a lane's hosts, and how a reading comes of raw answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from console.fleet.sitefile import Site
from console.readings.download import Download, DownloadState
from console.readings.hubcache import HubRepo
from console.readings.quality import Reading
from console.readings.rows import RowCopies, RowState
from console.readings.watchdog import Watchdog

T = TypeVar("T")
ON_ITS_WAY = (DownloadState.RUNNING, DownloadState.WAITING, DownloadState.STALLED)
"""States in which a download's folder is worth looking at often."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What is known of one lane at one moment; the fields are those of `LaneView`."""

    site: Reading[Site] | None = None
    repos: tuple[tuple[str, Reading[HubRepo]], ...] = ()
    download: Reading[Download] | None = None
    rows: Reading[RowCopies] | None = None
    next_rows: Reading[RowCopies] | None = None
    previous_rows: Reading[RowCopies] | None = None
    watchdog: Reading[Watchdog] | None = None
    unfilled: tuple[str, ...] = ()
    holder: str | None = ""
    """The host that holds the checkpoint; '' where each rank has its own, None where the site file that says so is not
    read."""


class Parsed(Generic[T]):
    """A parser by the key of what it reads; it is not run again while the text is the same object."""

    def __init__(self, parse: Callable[[str], T]) -> None:
        self._parse = parse
        self._kept: dict[object, tuple[str, T]] = {}

    def of(self, key: object, reading: Reading[str] | None) -> T | None:
        """What the newest text says; None where there is none."""
        if reading is None or reading.value is None:
            return None
        kept = self._kept.get(key)
        if kept is None or kept[0] is not reading.value:
            kept = self._kept[key] = (reading.value, self._parse(reading.value))
        return kept[1]


def meaning(reading: Reading[Any], value: T | None, error: str = "") -> Reading[T]:
    """The same times and troubles as of the raw text, with what it was found to mean."""
    return Reading(
        source=reading.source,
        interval=reading.interval,
        value=value,
        taken_mono=reading.taken_mono,
        taken_wall=reading.taken_wall,
        error=reading.error or error,
        down_since=reading.down_since,
    )


def oldest(source: str, parts: Iterable[Reading[Any] | None], value: T | None) -> Reading[T]:
    """A reading made of several: as old as its oldest part, in trouble where one of them is."""
    every = [part for part in parts if part is not None]
    known = [part for part in every if part.taken_mono is not None]
    first = min(known, key=lambda part: part.taken_mono or 0.0, default=None)
    return Reading(
        source=source,
        interval=max((part.interval for part in every), default=1.0),
        value=value,
        taken_mono=first.taken_mono if first else None,
        taken_wall=first.taken_wall if first else None,
        error=next((part.error for part in every if part.error), ""),
        down_since=next((part.down_since for part in every if part.down_since is not None), None),
    )


def moves(download: Reading[Download] | None, *rows: Reading[RowCopies] | None) -> bool:
    """Whether a download or a row copy is on its way, or was not read yet."""
    unread = [item for item in (download, *rows) if item is not None and item.value is None and not item.error]
    if unread or (download is not None and download.value is not None and download.value.state in ON_ITS_WAY):
        return True
    known = [item.value for item in rows if item is not None and item.value is not None]
    return any(copy.state is RowState.COPYING for copies in known for copy in copies.copies)
