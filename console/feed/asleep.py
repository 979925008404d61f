"""Sleep of the console's own machine: the clock that ages are counted by stands still meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

SHORTEST_S = 2.0
"""Seconds of sleep from which on readings are made as old as they are."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux counts sleep in CLOCK_BOOTTIME (clock_gettime(2)), macOS in CLOCK_MONOTONIC, Python's monotonic on neither."""


def slept_so_far() -> float:
    """Seconds that the machine slept since it started; only differences of it mean anything."""
    return time.clock_gettime(_CLOCK) - time.monotonic()


class Asleep:
    """Tells each part of the feed once how long the machine slept."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or slept_so_far
        self._told = self._clock()

    def since(self) -> float:
        """Seconds slept since the last time that this was not 0; 0 for less than SHORTEST_S."""
        slept = self._clock() - self._told
        if slept < SHORTEST_S:
            return 0.0
        self._told += slept
        return slept
