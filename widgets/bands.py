"""What decode rate is usual for a lane at the present number of running requests. Pure."""

from __future__ import annotations

from typing import NamedTuple

from console.snapshot import LaneView


class Band(NamedTuple):
    """A usual band of decode, tok/s."""

    low: float
    high: float
    running: int | None
    """Running requests at which it was kept; None for all of them together."""


LEAST_POINTS = 30
"""Points of a concurrency before its band is used: half a minute of it."""


def usual_band(lane: LaneView, running: int | None) -> Band | None:
    """The band kept at this concurrency; at one that was hardly seen that of all together; None before enough data."""
    for count, low, high, points in lane.usual_by_running:
        if count == running and points >= LEAST_POINTS:
            return Band(low, high, count)
    if lane.usual_decode is None:
        return None
    return Band(*lane.usual_decode, None)
