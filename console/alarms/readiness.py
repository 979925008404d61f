"""Alarms of a way back that was there and is lost, or rests on something that no longer holds."""

from __future__ import annotations

from collections.abc import Iterator

from console import format as fmt
from console.alarms.alarm import Alarm
from console.readings import underway
from console.readings.binds import Ready
from console.snapshot import LaneView, Severity, Snapshot
from console.wayback import Item, WayBack, Word, way_back

TOLD_FOR_S = 86400.0
"""Seconds after which a way back that is gone is believed to have been tidied up; in a window it is told throughout."""


def readiness_alarms(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    """What was lost of the way back, by name, and since when as far as that is known."""
    ready = lane.ready
    if ready is None:
        return
    acting = None if lane.acting is None else lane.acting.current(snapshot.now)
    if underway.running(acting) is not None:
        return  # it is being gone, or changed
    window = acting is not None and acting.window is not None
    way = way_back(snapshot, lane)
    if way.possible is False:
        if window or snapshot.wall - ready.at < TOLD_FOR_S:
            severity = Severity.ACT if window else Severity.LOOK
            text = f"way back lost: {_what(way, ready)}{_when(lane, ready, way, snapshot)}"
            yield Alarm(f"wayback:{lane.name}", severity, lane.name, text, _advice(ready))
        return
    for item in way.items:
        if item.word is Word.FAIL and item.name in ready.items and _same_way(way, ready):
            severity = Severity.ACT if window and not _only_slower(item) else Severity.LOOK
            text = f"way back no longer sure: {item.name}: {item.text}"
            yield Alarm(f"wayback:{lane.name}:{item.name}", severity, lane.name, text, _advice(ready))


def _same_way(way: WayBack, ready: Ready) -> bool:
    return (way.by, way.subject, way.revision) == (ready.by, ready.subject, ready.revision)


def _only_slower(item: Item) -> bool:
    return item.name in ("autotune", "old rows", "restart")


def _what(way: WayBack, ready: Ready) -> str:
    failed = next((item for item in way.items if item.shuts), None)
    subject = ready.subject or fmt.revision(ready.revision)
    name = f"{failed.name}: " if failed is not None and failed.name != "container" else ""
    return f"{subject}: {name}{way.why}"


def _when(lane: LaneView, ready: Ready, way: WayBack, snapshot: Snapshot) -> str:
    if lane.removed_at is not None and not way.subject:
        return f", removed at {fmt.clock(lane.removed_at)}"
    long_ago = snapshot.wall - ready.at > 43200
    return f"; last whole {fmt.day(ready.at) + ' ' if long_ago else ''}{fmt.clock(ready.at)}"


def _advice(ready: Ready) -> str:
    return "stop nothing before there is one again" if ready.by == "container" else "stop nothing before it is back"
