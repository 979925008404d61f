"""Whether a lane could go back right now, proved again and again: what its containers bind, and what is remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from console import format as fmt
from console.feed.host import HostFeed
from console.feed.records import LaneRecords, Tell
from console.feed.surveyed import Parsed, meaning
from console.fleet.inventory import Lane
from console.fleet.looks import REPO_DEPTH, REPO_MOST, SLOW_S
from console.readings.acting_types import Operation, OperationState
from console.readings.binds import BAD, BindSource, BindState, Deed, Ready, is_volume, judge, mark_of
from console.readings.containers import Container, serving_container
from console.readings.hubcache import HubRepo, read_repo
from console.readings.listing import parse_listing
from console.readings.look import Look, LookKind
from console.readings.paths import PathSeen, parse_paths
from console.readings.quality import Reading
from console.sanitize import REPLACEMENT
from console.snapshot import LaneView, Severity, Snapshot
from console.wayback import Word, way_back
from console.wayback.by_container import kept_containers

MOST_SOURCES = 32
"""Of one container; a source beyond them is not looked at, and is told as such."""
MOST_KEPT = 3
"""Kept containers of which the bind sources are looked at."""
READY_EVERY_S = 600.0
"""Seconds between two notes that the way back is whole: how long ago it was, is known that well after a restart."""


class Readiness:
    """Looks at what the containers of one lane bind, and remembers what a later console needs to know."""

    def __init__(self, name: str, lane: Lane, hosts: Mapping[str, HostFeed], records: LaneRecords, tell: Tell) -> None:
        self._name, self._lane, self._hosts, self._records, self._tell = name, lane, hosts, records, tell
        self._parsed = Parsed(parse_paths)
        self._repos = Parsed(_repo_of)
        self._wanted: dict[str, tuple[Look, ...]] = {}
        self._since: dict[tuple[str, str], float] = {}
        self._repo: tuple[str, str] = ("", "")
        """Host and folder of the checkpoint that the kept container mounts."""

    def view(self, now: float, looked: str) -> tuple[tuple[BindSource, ...], Reading[HubRepo] | None]:
        """Every bind source at monotonic time `now`, and the kept container's checkpoint; asks for what is new.

        `looked` is the folder that the head is asked for anyway.
        """
        found: list[BindSource] = []
        for host in self._lane.rank_hosts:
            feed = self._hosts[host]
            containers = self._containers(feed, looked)
            self._ask(host, feed, containers)
            for container in containers:
                found += [self._source(feed, container, source, now) for source in sources_of(container)]
        host, folder = self._repo
        reading = self._hosts[host].looked(self._key("repo")) if folder else None
        repo = None if reading is None else meaning(reading, self._repos.of("repo", reading))
        return tuple(found), repo

    def _containers(self, feed: HostFeed, looked: str) -> list[Container]:
        """The serving one and those that may be started again: the lane as a whole tells which a way back takes."""
        held = feed.view_containers().value
        if held is None:
            return []
        serving = serving_container(held.items, self._lane.port, self._lane.containers)
        kept = kept_containers(held.items, serving, self._lane)
        if feed.name == self._lane.head:
            folder = checkpoint_folder(kept[0]) if kept else ""
            self._repo = (feed.name, folder if folder != looked.rstrip("/") else "")
        return [item for item in (serving, *kept[:MOST_KEPT]) if item is not None]

    def _ask(self, host: str, feed: HostFeed, containers: Sequence[Container]) -> None:
        sources = dict.fromkeys(source for item in containers for source in sources_of(item) if _plain(source))
        looks = [Look(self._key(source), LookKind.PATHS, (source,), SLOW_S) for source in sources]
        if self._repo[0] == host and self._repo[1]:
            looks.append(Look(self._key("repo"), LookKind.TREE, (self._repo[1], REPO_DEPTH, REPO_MOST), SLOW_S))
        if self._wanted.get(host) != tuple(looks):
            self._wanted[host] = tuple(looks)
            feed.look(f"{self._name}:way", looks)

    def _key(self, what: str) -> str:
        return f"{self._name}:way.{what}"

    def _source(self, feed: HostFeed, container: Container, source: str, now: float) -> BindSource:
        raw = feed.looked(self._key(source))
        if raw is None:
            nobody: Reading[PathSeen] = Reading(f"{feed.name}:{source}", SLOW_S, error="its name cannot be asked for")
            return BindSource(feed.name, container.id, source, nobody, words=nobody.error)
        seen = (self._parsed.of((feed.name, source), raw) or (None,))[0]
        mark = self._records.mark(container.id, source)
        state, words = judge(source, seen, mark)
        key, wall = (container.id, source), feed.host_wall(now)
        if state is BindState.NEW and mark is None and seen is not None and self._records.read:
            self._records.add_mark(mark_of(container.id, source, seen, wall))
        if state not in BAD:
            self._since.pop(key, None)
        since = self._since.setdefault(key, wall) if state in BAD else None
        return BindSource(feed.name, container.id, source, meaning(raw, seen), mark, state, words, since)

    # What is remembered

    def remember(self, lane: LaneView, snapshot: Snapshot, told: Sequence[Deed] = ()) -> None:
        """Keep that the way back is whole, and that it was gone, for consoles to come; `told` by the head's ledger."""
        way = way_back(snapshot, lane)
        for deed in told if self._records.read else ():
            self._records.add_deed(deed)
        acting = None if lane.acting is None else lane.acting.current(snapshot.now)
        done = None if acting is None or acting.operation is None else deed_of(acting.operation)
        if done is not None:
            self._records.add_deed(done)
        if way.possible is not True or not self._records.read:
            return
        last = self._records.ready
        same = last is not None and (last.by, last.subject, last.revision) == (way.by, way.subject, way.revision)
        held = {item.name for item in way.items if item.word is Word.OK} | set(last.items if last and same else ())
        grown = last is None or not same or len(held) > len(last.items)
        if grown or (last is not None and snapshot.wall - last.at >= READY_EVERY_S):
            if last is not None and not same and self.removed_at is not None:
                now = way.subject or fmt.revision(way.revision)
                self._tell(f"the way back by {last.subject} is gone, it is by {now} now", Severity.LOOK)
            names = tuple(sorted(held))
            self._records.set_ready(Ready(snapshot.wall, way.revision, way.by, way.subject, way.container, names))

    @property
    def removed_at(self) -> float | None:
        """When the container that was the way back was removed; None while it is there, or nobody says."""
        ready, head = self._records.ready, self._hosts[self._lane.head]
        return None if ready is None or not ready.container else head.removed_at(ready.container)

    @property
    def deeds(self) -> tuple[Deed, ...]:
        """Ways back that were gone, oldest first."""
        return self._records.deeds

    @property
    def ready(self) -> Ready | None:
        """The way back when it was last whole."""
        return self._records.ready


def deed_of(operation: Operation) -> Deed | None:
    """What a rollback that is done says; None for anything else."""
    if operation.verb != "rollback" or operation.state is not OperationState.DONE or operation.ended is None:
        return None
    took = max(0.0, operation.ended - operation.began)
    return Deed(operation.id, operation.began, took, operation.target, operation.operator)


def sources_of(container: Container) -> tuple[str, ...]:
    """What it binds, each once."""
    return tuple(dict.fromkeys(mount.source for mount in container.mounts if mount.source))[:MOST_SOURCES]


def _plain(source: str) -> bool:
    """Whether its name came through whole: what was made safe to show is no path any more."""
    return source.startswith("/") and REPLACEMENT not in source and "…" not in source


def checkpoint_folder(container: Container) -> str:
    """The folder on the host whose files make its checkpoint whole: the repository of a Hub's cache, else the mount
    that its revision was read from; '' where that is not known."""
    if not container.revision:
        return ""
    for source in sources_of(container):
        parts = source.split("/")
        at = next((number for number, part in enumerate(parts) if part.startswith("models--")), None)
        if at is not None and _plain(source):
            return "/".join(parts[: at + 1])
    named = container.revision_source.removeprefix("mount ").partition(" at ")[0]
    return named if named in sources_of(container) and _plain(named) and not is_volume(named) else ""


def _repo_of(text: str) -> HubRepo:
    return read_repo(parse_listing(text))
