"""The live source of snapshots: one set of loops a host and a lane, one immutable picture on demand."""

from __future__ import annotations

import asyncio
import time
from bisect import insort
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from console.feed.asleep import Asleep
from console.feed.follow import LogFeed
from console.feed.foreign import Hands, deeds_of
from console.feed.host import HostFeed
from console.feed.lane import LaneFeed
from console.feed.records import LaneRecords, record_file
from console.feed.story import Story
from console.feed.supervise import forever
from console.fleet.inventory import Fleet
from console.fleet.places import Places
from console.fleet.recipe import lane_recipes
from console.format import duration
from console.reach.limits import allow_open_files
from console.reach.link import Link
from console.reach.links import HandshakeLimits, make_link
from console.readings.recorded import NOTHING, Recorded
from console.sanitize import line, word
from console.snapshot import Event, Severity, Snapshot

EVENTS_KEPT = 1000
FILES_OWN, FILES_A_HOST = 256, 8
"""Open files of the console itself, and of each host: its connection, the forwarded Docker socket, what goes through it
(events, questions, logs), an engine."""
WATCH_EVERY_S = 1.0


class Feed:
    """Every source of a fleet, asked in the background from `start` to `stop`."""

    def __init__(
        self,
        fleet: Fleet,
        overrides: Mapping[str, Mapping[str, Any]] | None = None,
        beside: Path | None = None,
        remembered: Mapping[str, Recorded] | None = None,
    ) -> None:
        """`overrides` are asyncssh connect options by host, for an embedded fleet with keys in memory; `beside` is the
        fleet file's folder, for recipes of the operator's own; `remembered` is what a rehearsed lane did before, as a
        rehearsal keeps nothing on disk. Raises FleetError.
        """
        self.limits = HandshakeLimits()
        """Of the whole fleet."""
        self.recipes = lane_recipes(fleet, beside)
        """By lane."""
        self._fleet = fleet
        self._events: list[Event] = []
        self._events_view: tuple[Event, ...] | None = ()
        self._sequence = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._story = Story()
        self._hosts = {
            name: HostFeed(
                name,
                host,
                fleet.rates,
                make_link(name, host, fleet.rates, limits=self.limits, overrides=(overrides or {}).get(name)),
                self.note,
            )
            for name, host in fleet.hosts.items()
        }
        self._lanes = {
            name: LaneFeed(
                name,
                lane,
                self.recipes[name],
                self._hosts,
                fleet.rates,
                self.note,
                self._records(name, remembered or {}),
                fleet.lane_folder(name),
            )
            for name, lane in fleet.lanes.items()
        }
        self._hands = Hands()
        self._heads = {name: lane.head for name, lane in fleet.lanes.items()}
        self._log = LogFeed()
        self._asleep = Asleep()

    def _records(self, lane: str, remembered: Mapping[str, Recorded]) -> LaneRecords:
        def tell(text: str, severity: Severity) -> None:
            self.note(lane, text, severity)

        file = None if self._fleet.rehearsal else record_file(self._fleet.name, lane)
        return LaneRecords(tell, file, remembered.get(lane, NOTHING))

    async def start(self) -> None:
        """Begin to ask every source; returns at once."""
        self._make_room()
        for host in self._hosts.values():
            await host.link.start()
        loops = [loop for host in self._hosts.values() for loop in host.tasks()]
        loops += [loop for lane in self._lanes.values() for loop in lane.tasks()]
        loops.append(forever("alarm watch", self._watch, self._failed))
        loops.append(forever("log follower", self._log.run, self._log.fail))
        self._tasks = [asyncio.create_task(loop) for loop in loops]
        if self._lanes:
            first = next(iter(self._lanes.values()))
            self.follow(first.name, first.lane.head)

    def _make_room(self) -> None:
        """A connection that has no number left in this process would look like a host that is down."""
        wanted = FILES_OWN + FILES_A_HOST * len(self._hosts)
        allowed = allow_open_files(wanted)
        if allowed < wanted:
            text = f"{allowed} open files allowed, {len(self._hosts)} hosts may need {wanted}: raise `ulimit -n`"
            self.note("console", text, Severity.LOOK)

    async def stop(self) -> None:
        """End every task, close every connection; leaves nothing running on any host."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._tasks:
            self._remember(self.snapshot())  # a console that looked once remembers what it saw, too
        self._tasks = []
        closing = [lane.close() for lane in self._lanes.values()] + [host.close() for host in self._hosts.values()]
        await asyncio.gather(self._log.close(), *closing, return_exceptions=True)

    def note(self, subject: str, text: str, severity: Severity, wall: float | None = None, deed: str = "") -> Event:
        """Keep an event in order of time (Unix seconds) and return it; both texts are made safe here.

        Now where the time is left out, absurd, or ahead of the console's clock: what was heard has happened.
        """
        now = time.time()
        at = wall if wall is not None and 0 < wall <= now else now
        event = Event(at, word(subject), line(text), severity, deed)
        insort(self._events, event, key=lambda item: item.wall)
        self._events_view = None
        if len(self._events) > EVENTS_KEPT:
            del self._events[0]
        return event

    def _failed(self, why: str) -> None:
        self.note("console", why, Severity.LOOK)

    def _retell(self, before: Event, after: Event) -> None:
        """What was told is known better now; nothing where it has gone meanwhile."""
        for at in range(len(self._events) - 1, -1, -1):
            if self._events[at] is before:
                self._events[at], self._events_view = after, None
                return

    def snapshot(self) -> Snapshot:
        """The newest picture. Parts in which nothing changed since the last one are the same objects."""
        self._sequence += 1
        if slept := self._asleep.since():
            self.note("console", f"this machine slept for {duration(slept)}: all is read anew", Severity.LOOK)
        now, wall = time.monotonic(), time.time()
        hosts = tuple(host.view() for host in self._hosts.values())
        lanes = tuple(lane.view(now, wall) for lane in self._lanes.values())
        if self._events_view is None:  # asked last: a view may note what it found
            self._events_view = tuple(self._events)
        return Snapshot(
            sequence=self._sequence,
            now=now,
            wall=wall,
            fleet=self._fleet,
            rehearsal=self._fleet.rehearsal,
            hosts=hosts,
            lanes=lanes,
            events=self._events_view,
            log=self._log.view(),
        )

    def follow(self, lane: str, host: str) -> None:
        """Follow the log of the container that serves `lane` on `host`."""
        feed = self._hosts[host]
        self._log.choose(host, feed.docker, lambda: self._container_id(lane, host))

    @property
    def links(self) -> Mapping[str, Link]:
        """The way to each host, for what acts there."""
        return {name: host.link for name, host in self._hosts.items()}

    def places(self, lane: str) -> Places:
        """Where the things of a lane lie, as far as known. Raises KeyError."""
        return self._lanes[lane].places

    def told(self, lane: str, file: str, text: str | None) -> None:
        """What the head has just said of a file in the folder of `lane`; None: it is gone. Raises KeyError."""
        self._lanes[lane].told(file, text)

    def unsynced(self, lane: str, lines: int) -> None:
        """How many lines of this machine's ledger the head of `lane` does not have yet. Raises KeyError."""
        self._lanes[lane].underway.unsynced = lines

    def _container_id(self, lane: str, host: str) -> tuple[str, str] | None:
        container = self._lanes[lane].container_on(host)
        return None if container is None else (container.id, container.name)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            told = {name: host.told_ends for name, host in self._hosts.items()}
            picture = self.snapshot()
            noted = [
                self.note(event.subject, event.text, event.severity, event.wall, event.deed)
                for event in self._story.take(picture, told)
            ]
            self._tell_hands(picture, noted)
            self._remember(picture)

    def _remember(self, picture: Snapshot) -> None:
        for view in picture.lanes:
            if view.name in self._lanes:
                self._lanes[view.name].underway.remember(view, picture)

    def _tell_hands(self, picture: Snapshot, noted: Sequence[Event]) -> None:
        """Tell whose deeds the newest ones were, as soon as that is known."""
        for host in self._hosts.values():
            while host.deeds:
                self._hands.add(host.deeds.popleft())
        for deed in deeds_of(noted, self._heads, picture.now):
            self._hands.add(deed)
        for before, after in self._hands.settle(picture):
            self._retell(before, after)
        for name, lane in self._lanes.items():
            lane.underway.foreign = self._hands.acts(name)
