"""The events of one feed: what changed between pictures, and alarms that came and went. Pure: a picture comes in.

An alarm that swings around its threshold is told once, as the book of alarms has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from console.alarms import Alarm, alarms, expected
from console.alarms.book import AlarmBook, Booked, Change
from console.feed.changes import NOW, HostKnown, LaneKnown, host_changes, lane_changes
from console.snapshot import Event, HostView, LaneView, Severity, Snapshot

TOLD_OTHERWISE = ("state:", "link:", "watchdog:", "download:", "image:", "foreign:", "operation:")
"""Alarms whose cause is an event with words of its own."""


class Story:
    """Remembers what was told of one fleet."""

    def __init__(self) -> None:
        self._book = AlarmBook()
        self._hosts: dict[str, tuple[HostView, HostKnown]] = {}
        self._lanes: dict[str, tuple[LaneView, LaneKnown]] = {}

    def take(self, snapshot: Snapshot, told: Mapping[str, Collection[tuple[str, float]]]) -> tuple[Event, ...]:
        """What happened since the last picture. `told` are ends of containers that were told, by host: (id, time)."""
        events: list[Event] = []
        for host in snapshot.hosts:
            seen = self._hosts.get(host.name)
            if seen is None or seen[0] is not host:
                known, new = host_changes(seen[1] if seen else HostKnown(), host, told.get(host.name, ()))
                self._hosts[host.name] = (host, known)
                events += new
        ahead = {host.name: host.drift or 0.0 for host in snapshot.hosts}
        for lane in snapshot.lanes:
            before = self._lanes.get(lane.name)
            if before is None or before[0] is not lane:
                self._lanes[lane.name], new = _lane(lane, before, snapshot, ahead)
                events += new
        events += self._alarms(alarms(snapshot), snapshot)
        return tuple(events)

    def _alarms(self, found: Collection[Alarm], snapshot: Snapshot) -> Iterator[Event]:
        present = {alarm.key for alarm in found}
        for change, booked in self._book.update(_own(found), snapshot.now, snapshot.wall, expected(snapshot)):
            alarm = booked.alarm
            if change is not Change.ENDED:
                yield Event(NOW, alarm.subject, alarm.text, alarm.severity)
                continue
            word = "out of sight" if hidden(alarm.subject, present, snapshot) else "cleared"
            yield Event(_last_seen(booked, snapshot), alarm.subject, f"{word}: {alarm.text}", Severity.NORMAL)


def _lane(
    lane: LaneView, before: tuple[LaneView, LaneKnown] | None, snapshot: Snapshot, ahead: Mapping[str, float]
) -> tuple[tuple[LaneView, LaneKnown], tuple[Event, ...]]:
    known, events = lane_changes(
        before[1] if before else LaneKnown(),
        lane,
        now=snapshot.now,
        wall=snapshot.wall,
        ahead=ahead.get(lane.lane.head, 0.0),
    )
    return (lane, known), events


def _own(found: Iterable[Alarm]) -> Iterator[Alarm]:
    return (alarm for alarm in found if not alarm.key.startswith(TOLD_OTHERWISE))


def _last_seen(booked: Booked, snapshot: Snapshot) -> float:
    """Unix time at which the cause was last there: that it is gone was only believed a while later."""
    return snapshot.wall - (snapshot.now - booked.seen)


def hidden(subject: str, present: Collection[str], snapshot: Snapshot) -> bool:
    """Whether a host behind an alarm is away: then nobody knows whether its cause is gone."""
    lane = snapshot.fleet.lanes.get(subject)
    return any(f"link:{host}" in present for host in (subject, *(lane.rank_hosts if lane else ())))
