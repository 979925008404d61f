"""The four lamps: Serving, Revision, Watchdog, Rollback. Pure functions of a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from console.snapshot import LaneView, Severity, Snapshot


@dataclass(frozen=True, slots=True)
class Lamp:
    """One of the four answers always on screen."""

    title: str
    """`SERVING`, `REVISION`, `WATCHDOG`, `ROLLBACK`."""
    word: str
    """The answer itself: `66.3 tok/s`, `STALLED 41s`, `9f2c1a7`, `UNKNOWN`."""
    rest: str
    """What follows in plain text on the same line: `· 3 running`."""
    note: str
    """Quiet words beside the title: `up 3d04h`, `4 of 4 ranks`."""
    severity: Severity


def lamps(snapshot: Snapshot, lane: LaneView) -> tuple[Lamp, Lamp, Lamp, Lamp]:
    """Serving, Revision, Watchdog, Rollback for one lane."""
    raise NotImplementedError
