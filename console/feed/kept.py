"""The mutable side of a reading: one source's last good value and what became of the newest attempt."""

from __future__ import annotations

import time
from typing import Generic, TypeVar

from console.readings.quality import Reading

T = TypeVar("T")


class Kept(Generic[T]):
    """Holds one source's newest value; `reading` hands out the frozen picture of it."""

    def __init__(self, source: str, interval: float) -> None:
        self.source = source
        self.interval = interval
        self.value: T | None = None
        self.taken_mono: float | None = None
        self._taken_wall: float | None = None
        self._picture: Reading[T] | None = None
        self.error = ""

    def put(self, value: T, taken: float | None = None) -> None:
        """Keep a good value, taken at monotonic time `taken` (now if left out)."""
        now = time.monotonic()
        self.value = value
        self.taken_mono = now if taken is None else taken
        self._taken_wall = time.time() - (now - self.taken_mono)
        self.error = ""
        self._picture = None

    def fail(self, why: str) -> None:
        """Note why the newest attempt failed; the last value stays, but no longer counts as current."""
        if why != self.error:
            self.error = why
            self._picture = None

    def pace(self, interval: float) -> None:
        """From now on a new value is due every `interval` seconds."""
        if interval != self.interval:
            self.interval = interval
            self._picture = None

    def age_by(self, seconds: float) -> None:
        """Make the value older by the `seconds` that the machine slept."""
        if self.taken_mono is not None:
            self.taken_mono -= seconds
            self._picture = None

    def reading(self, down_since: float | None) -> Reading[T]:
        """The frozen picture, the same object until something changes; `down_since` is the monotonic time at which the
        link to the source was lost."""
        seen = self._picture
        if seen is not None and seen.down_since == down_since and seen.interval == self.interval:
            return seen
        self._picture = Reading(
            source=self.source,
            interval=self.interval,
            value=self.value,
            taken_mono=self.taken_mono,
            taken_wall=self._taken_wall,
            error=self.error,
            down_since=down_since,
        )
        return self._picture
