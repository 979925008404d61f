"""How good a value is: when it was taken, from where, and whether it still counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T", covariant=True)

LATE_AFTER = 2.0
"""Intervals without a new value after which a reading is LATE."""
STALE_AFTER = 5.0
"""Intervals without a new value after which a reading is STALE and left out of totals."""


class Quality(StrEnum):
    """Whether a value may be read as current."""

    LIVE = "LIVE"
    LATE = "LATE"
    STALE = "STALE"
    UNREACHABLE = "UNREACHABLE"
    ABSENT = "ABSENT"


class Basis(StrEnum):
    """How a number came to be."""

    MEASURED = "measured"
    ESTIMATE = "estimate"
    ENGINE_REPORTED = "engine-reported"
    SUSPECT = "suspect"


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """One dated value and what became of the newest attempt to read it again.

    `value` is the last good value, `taken_mono`/`taken_wall` say when (console's monotonic clock and
    Unix time, both seconds). `error` is why the *newest* attempt failed, empty after a success: a reading
    with an error keeps its last value only to say how old it is, never to show it as current.
    `down_since` is the monotonic time at which the link to the source was lost, None while it is up.
    """

    source: str
    interval: float
    value: T | None = None
    taken_mono: float | None = None
    taken_wall: float | None = None
    error: str = ""
    down_since: float | None = None

    def age(self, now: float) -> float | None:
        """Seconds since the last good value at monotonic time `now`; None if there never was one."""
        return None if self.taken_mono is None else max(0.0, now - self.taken_mono)

    def quality(self, now: float) -> Quality:
        """LIVE, LATE (over 2 intervals), STALE (over 5), UNREACHABLE (link down) or ABSENT (never read)."""
        if self.down_since is not None:
            return Quality.UNREACHABLE
        age = self.age(now)
        if age is None:
            return Quality.ABSENT
        if age > STALE_AFTER * self.interval:
            return Quality.STALE
        return Quality.LATE if age > LATE_AFTER * self.interval else Quality.LIVE

    def current(self, now: float) -> T | None:
        """The value if it may be read as current (LIVE or LATE and no newer failure), else None."""
        if self.error or self.quality(now) not in (Quality.LIVE, Quality.LATE):
            return None
        return self.value
