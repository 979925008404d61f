"""What each host of a lane is asked to look at, again and again. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import dirname

from console.fleet.places import DownloadPlace, Places, RankPlace, WatchdogPlace
from console.fleet.sitefile import MOST_BYTES
from console.readings.look import Look, LookKind
from console.readings.rows import MANIFEST

FAST_S = 5.0
SLOW_S = 15.0
"""Trees that nobody fills, processes of a watchdog, units that seldom change."""
REPO_DEPTH, REPO_MOST = "4", "6000"
"""Deep enough for `snapshots/REVISION/FOLDER/FILE`."""
ROWS_DEPTH, ROWS_MOST = "1", "1000"
LOG_TAIL = str(64 * 1024)
SMALL_FILE = str(64 * 1024)
"""A manifest, a lock or a flag has a few hundred bytes."""
NETWORK = "/proc/net/dev"
"""Bytes that the interfaces received: the clock of a download whose process does not count what it receives."""
BESIDE_S, BESIDE_MOST = 60.0, "1000"
"""Of the site file's folder, in which its earlier texts lie."""
SITE_FILE = str(MOST_BYTES + 1)
"""One byte more than is read, so that a larger file is seen to be larger."""


def looks(
    name: str, places: Places, pids: Sequence[int] = (), *, moving: bool = True, backup: str | None = None
) -> Mapping[str, tuple[Look, ...]]:
    """Looks by host, each with a key `LANE:WHAT`. `pids` are those that the watchdog's log and lock name.
    Folders that may fill are looked at more often while something is `moving`: a host that serves is left in peace.
    `backup`: an earlier text of the site file; '' for one that is still to be found beside it, None for none wanted.

    Keys: `site`, `site.beside` (its folder), `site.former` (that earlier text), `repo` (the checkpoint's folder on that
    host), `download.repo` (the one that is fetched to, where that is another), `rows`, `next`, `previous` (folders of
    row copies), each with its `.manifest`,
    `watchdog.{log,lock,pause,gaveup,processes,units}`, `download.{processes,units,net}`.
    """
    book = _Book(name, FAST_S if moving else SLOW_S)
    if places.site_file:
        book.add(places.head, "site", LookKind.FILE, places.site_file, "first", SITE_FILE)
        if backup is not None:
            book.add(
                places.head, "site.beside", LookKind.TREE, dirname(places.site_file), "1", BESIDE_MOST, every=BESIDE_S
            )
        if backup:
            book.add(places.head, "site.former", LookKind.FILE, backup, "first", SITE_FILE, every=BESIDE_S)
    for rank in places.ranks:
        _rank(book, rank, places)
    if places.download:
        _download(book, places.download, places)
    if places.watchdog:
        _watchdog(book, places.watchdog, pids)
    return {host: tuple(items.values()) for host, items in book.hosts.items()}


@dataclass(slots=True)
class _Book:
    """Looks of one lane by host and key; the first one under a key stays."""

    lane: str
    filling: float
    """Seconds between two looks at a folder that may fill."""
    hosts: dict[str, dict[str, Look]] = field(default_factory=dict)

    def add(self, host: str, what: str, kind: LookKind, *arguments: str, every: float = FAST_S) -> None:
        """Ask `host` for one more thing."""
        key = f"{self.lane}:{what}"
        self.hosts.setdefault(host, {}).setdefault(key, Look(key, kind, arguments, every))

    def file(self, host: str, what: str, path: str) -> None:
        """A small file from its beginning; none where there is no path."""
        if path:
            self.add(host, what, LookKind.FILE, path, "first", SMALL_FILE)


def _rank(book: _Book, rank: RankPlace, places: Places) -> None:
    if rank.repo:
        filled = {places.holder, places.download.host if places.download else ""}
        every = book.filling if rank.host in filled else SLOW_S
        book.add(rank.host, "repo", LookKind.TREE, rank.repo, REPO_DEPTH, REPO_MOST, every=every)
    for what, folder in (("rows", rank.rows), ("next", rank.next_rows), ("previous", rank.previous_rows)):
        if folder:
            every = SLOW_S if what == "previous" else book.filling
            book.add(rank.host, what, LookKind.TREE, folder, ROWS_DEPTH, ROWS_MOST, every=every)
            book.file(rank.host, f"{what}.manifest", f"{folder}/{places.rows_manifest or MANIFEST}")


def _download(book: _Book, place: DownloadPlace, places: Places) -> None:
    own = any(rank.host == place.host and rank.repo and rank.repo != place.repo for rank in places.ranks)
    what = "download.repo" if own else "repo"
    book.add(place.host, what, LookKind.TREE, place.repo, REPO_DEPTH, REPO_MOST, every=book.filling)
    if places.downloaders:
        book.add(place.host, "download.processes", LookKind.PROCESSES, *places.downloaders, every=SLOW_S)
    if place.unit:
        book.add(place.host, "download.units", LookKind.UNITS, place.manager, place.unit, every=book.filling)
    book.add(place.host, "download.net", LookKind.FILE, NETWORK, "first", SMALL_FILE, every=book.filling)


def _watchdog(book: _Book, dog: WatchdogPlace, pids: Sequence[int]) -> None:
    if dog.log:
        book.add(dog.host, "watchdog.log", LookKind.FILE, dog.log, "last", LOG_TAIL)
    book.file(dog.host, "watchdog.lock", dog.lock)
    book.file(dog.host, "watchdog.pause", dog.pause_flag)
    book.file(dog.host, "watchdog.gaveup", dog.gaveup_flag)
    parts = [part for part in (dog.process, *dog.process_also) if part] + [
        f"pid:{pid}" for pid in sorted(set(pids)) if pid > 0
    ]
    if parts:
        book.add(dog.host, "watchdog.processes", LookKind.PROCESSES, *parts, every=SLOW_S)
    units = ([dog.unit] if dog.unit else []) + [unit for unit in dog.foreign if unit != dog.unit]
    if units:
        book.add(dog.host, "watchdog.units", LookKind.UNITS, dog.manager, *units, every=SLOW_S)
