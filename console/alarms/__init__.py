"""What the readings mean for the operator: alarms, worst first. Pure functions of a snapshot."""

from __future__ import annotations

from console.alarms.acting import acting_alarms, expected
from console.alarms.alarm import Alarm
from console.alarms.hosts import (
    AVAILABLE_ALARM,
    DRIFT_ALARM_S,
    FIRST_SECONDS,
    FREE_ALARM_GIB,
    free_alarm_bytes,
    host_alarms,
    memory_alarms,
)
from console.alarms.lanes import lane_alarms
from console.alarms.readiness import readiness_alarms
from console.alarms.upkeep import upkeep_alarms
from console.snapshot import Severity, Snapshot

__all__ = [
    "AVAILABLE_ALARM",
    "DRIFT_ALARM_S",
    "FIRST_SECONDS",
    "FREE_ALARM_GIB",
    "Alarm",
    "acting_alarms",
    "alarms",
    "expected",
    "free_alarm_bytes",
    "host_alarms",
    "lane_alarms",
    "memory_alarms",
    "readiness_alarms",
    "upkeep_alarms",
]

_RANK = {Severity.ACT: 0, Severity.LOOK: 1, Severity.INFO: 2, Severity.NORMAL: 3}


def alarms(snapshot: Snapshot) -> tuple[Alarm, ...]:
    """All alarms of the fleet, worst first; then lost links that hide a lane, then lanes, then hosts."""
    kept: tuple[Alarm, ...] | None = snapshot.memo.get("alarms")
    if kept is None:
        kept = snapshot.memo["alarms"] = _found(snapshot)
    return kept


def _found(snapshot: Snapshot) -> tuple[Alarm, ...]:
    hiding = {f"link:{lane.lane.head}" for lane in snapshot.lanes if lane.health.down_since is not None}
    found = [alarm for lane in snapshot.lanes for alarm in acting_alarms(snapshot, lane)]
    found += [alarm for lane in snapshot.lanes for alarm in lane_alarms(snapshot, lane)]
    found += [alarm for lane in snapshot.lanes for alarm in upkeep_alarms(snapshot, lane)]
    found += [alarm for lane in snapshot.lanes for alarm in readiness_alarms(snapshot, lane)]
    found += [alarm for host in snapshot.hosts for alarm in host_alarms(snapshot, host)]
    return tuple(sorted(found, key=lambda alarm: (_RANK[alarm.severity], alarm.key not in hiding)))
