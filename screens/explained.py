"""What an explanation is made of: values with basis and formula, under the reading they come from. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from console.readings.quality import Reading
from widgets import format as fmt

_ONCE = 86400.0
"""Seconds between two looks from which on something is looked at once, when its host is reached."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a pane."""

    name: str
    value: str
    how: str
    """Basis and formula in words."""


@dataclass(frozen=True, slots=True)
class Explained:
    """Values that come from one reading."""

    subject: str
    origin: str
    facts: tuple[Fact, ...]


def origin(reading: Reading[Any], now: float) -> str:
    """`sampler, read 21:55:09Z, 0.4s ago, every 1 s, LIVE`."""
    words = [reading.source]
    if reading.taken_mono is None:
        words.append("never read")
    else:
        words.append(f"read {fmt.utc(reading.taken_wall)}, {fmt.age(reading.age(now))} ago")
    if reading.interval < _ONCE:
        words.append(f"every {fmt.number(reading.interval, 1).removesuffix('.0')} s")
    words.append(str(reading.quality(now)))
    if reading.error:
        words.append(f"newest attempt failed: {reading.error}")
    return ", ".join(words)
