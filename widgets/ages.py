"""What a pane may show of a reading, and the words for how old it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from console.readings.health import LaneState
from console.readings.quality import Quality, Reading
from console.snapshot import LaneView
from widgets import format as fmt
from widgets.ink import DIM, LOOK, Ink

T = TypeVar("T")

AGE_REPAINT = 2.0
"""Seconds between paints of ages that stay young: all of a pane at once, so that they agree."""
_RANK = {Quality.LIVE: 0, Quality.ABSENT: 1, Quality.LATE: 2, Quality.STALE: 4, Quality.UNREACHABLE: 5}
_FAILED = 3


class AgeMark(NamedTuple):
    """Age and word of a reading, as drawn."""

    text: str
    ink: Ink


NO_AGE = AgeMark(fmt.NONE, DIM)


def shown(reading: Reading[T], now: float) -> tuple[T | None, bool]:
    """The value that may be drawn, and whether it must be drawn dim because it is not current."""
    quality = reading.quality(now)
    if reading.error or quality in (Quality.UNREACHABLE, Quality.ABSENT):
        return None, True
    return reading.value, quality is Quality.STALE


def mark(reading: Reading[Any], now: float, *, word: bool = False) -> AgeMark:
    """`0.4s`, orange `3s` when LATE, `STALE 14s`, `FAILED 3s`, `since 2m10s`. `word` spells LATE out too."""
    quality = reading.quality(now)
    age = fmt.age(reading.age(now))
    if quality is Quality.UNREACHABLE:
        gone = fmt.duration(now - reading.down_since) if reading.down_since is not None else fmt.NONE
        return AgeMark(f"{'UNREACHABLE' if word else 'since'} {gone}", LOOK)
    if quality is Quality.STALE:
        return AgeMark(f"STALE {age}", LOOK)
    if reading.error:
        return AgeMark("FAILED" if quality is Quality.ABSENT else f"FAILED {age}", LOOK)
    if quality is Quality.LATE:
        return AgeMark(f"LATE {age}" if word else age, LOOK if word else Ink("look"))
    return AgeMark("not read" if word and quality is Quality.ABSENT else age, DIM)


def in_lane(found: AgeMark, lane: LaneView) -> AgeMark:
    """The mark of what is asked of a lane's engine: a boot answers nothing yet, and a dead one does not any more."""
    if lane.verdict.state is LaneState.BOOTING and found.text.startswith("FAILED"):
        return NO_AGE
    quiet = lane.verdict.state is LaneState.BOOTING or (
        lane.verdict.state is LaneState.DOWN and lane.lights.process.running == 0
    )
    return AgeMark(found.text, DIM) if quiet else found


def pulse(now: float, *readings: Reading[Any]) -> tuple[object, ...]:
    """Changes whenever the ages of these readings have to be drawn again: part of the slice of a pane.

    Young ones change at every tick; they are drawn again with a new value, else once in AGE_REPAINT.
    """
    marks = (mark(reading, now) for reading in readings)
    return int(now / AGE_REPAINT), *((coarse(text), ink) for text, ink in marks)


def age_room(text: str) -> int:
    """Cells to keep for an age: as many for `1s` as for `0.4s`, so that nothing beside it jumps."""
    return max(4, len(text))


def young(text: str) -> bool:
    """An age that a reading taken each second goes through every second."""
    text = text.strip()
    return text.startswith("0.") or text == "1s"


def coarse(text: str) -> str:
    """The age, but for what changes at every tick."""
    return "" if young(text) else text


def oldest(readings: Iterable[Reading[Any]], now: float, *, word: bool = True) -> AgeMark:
    """The mark of the worst reading: worst quality first, then the greatest age.

    What was never read has no age: it counts only where nothing else was read either.
    """
    all_of_them = list(readings)
    read = [r for r in all_of_them if r.quality(now) is not Quality.ABSENT or r.error] or all_of_them
    if not read:
        return NO_AGE
    return mark(max(read, key=lambda r: _badness(r, now)), now, word=word)


def _badness(reading: Reading[Any], now: float) -> tuple[int, float]:
    rank = _RANK[reading.quality(now)]
    if reading.error and rank < _FAILED:
        rank = _FAILED
    return rank, reading.age(now) or 0.0
