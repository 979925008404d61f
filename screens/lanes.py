"""Which lane is the worst one: the console opens on it. Pure."""

from __future__ import annotations

from console.lamps import lamps
from console.readings.health import LaneState
from console.snapshot import LaneView, Severity, Snapshot

_WORST_FIRST = (
    LaneState.STALLED,
    LaneState.DOWN,
    LaneState.DEGRADED,
    LaneState.PAUSED,
    LaneState.UNKNOWN,
    LaneState.BLIND,
    LaneState.DRAINING,
    LaneState.BOOTING,
    LaneState.READY,
    LaneState.BUSY,
    LaneState.IDLE,
    LaneState.SERVING,
)


def worst_lane(snapshot: Snapshot) -> str:
    """The name of the worst lane: first those with a red lamp, then by state, then those with an orange one; of equals
    the first in the fleet file."""
    return min(snapshot.lanes, key=lambda lane: _badness(snapshot, lane)).name


def _badness(snapshot: Snapshot, lane: LaneView) -> tuple[bool, int, bool]:
    try:
        shown = {lamp.severity for lamp in lamps(snapshot, lane)}
    except Exception:  # a lane that cannot be judged is looked at first; the fault itself is told with its lamps
        shown = {Severity.ACT}
    return Severity.ACT not in shown, _rank(lane), Severity.LOOK not in shown


def settled(snapshot: Snapshot) -> bool:
    """Whether something is known of every lane, so that the worst one can be told."""
    return all(lane.verdict.state is not LaneState.UNKNOWN for lane in snapshot.lanes)


def neighbour(snapshot: Snapshot, name: str, step: int) -> str:
    """The lane `step` places after `name` in the fleet file, round and round."""
    names = [lane.name for lane in snapshot.lanes]
    at = names.index(name) if name in names else 0
    return names[(at + step) % len(names)]


def lane_or_worst(snapshot: Snapshot, name: str) -> LaneView:
    """The named lane, or the worst one if there is none of that name."""
    try:
        return snapshot.lane(name)
    except KeyError:
        return snapshot.lane(worst_lane(snapshot))


def _rank(lane: LaneView) -> int:
    return _WORST_FIRST.index(lane.verdict.state)
