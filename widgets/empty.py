"""Why a pane has nothing to show, and what would fill it. Pure."""

from __future__ import annotations

from typing import Any

from console.readings.quality import Quality, Reading
from widgets import format as fmt
from widgets.glance import Glance
from widgets.sheet import Sheet


def unfilled(glance: Glance, *subjects: str) -> tuple[str, ...]:
    """What the lane's configuration leaves open about these subjects, each with the key that would say it."""
    return tuple(words for words in glance.lane.unfilled if words.partition(":")[0].strip() in subjects)


def why_unread(reading: Reading[Any], now: float) -> str:
    """One sentence for a reading that has no value to show; '' where it has one."""
    quality = reading.quality(now)
    if quality is Quality.UNREACHABLE:
        since = "" if reading.down_since is None else f" for {fmt.duration(now - reading.down_since)}"
        return f"Unreachable{since}: {reading.error or 'the link to the host is down'}."
    if reading.error:
        return f"Not read: {reading.error.rstrip('.')}."
    return "Not read yet." if quality is Quality.ABSENT else ""


def say_unread(sheet: Sheet, reading: Reading[Any] | None, missing: str, fills: str, *subjects: str) -> None:
    """Fills a pane that has no value: why, and what would fill it. `missing` is said where nothing is configured."""
    glance = sheet.glance
    open_ends = unfilled(glance, *subjects)
    if reading is None:
        sheet.say(missing, *open_ends, fills)
        return
    why = why_unread(reading, glance.now)
    sheet.say(why, *open_ends, f"Fills with the next look, every {fmt.number(reading.interval)} s.")


def one_line(glance: Glance, reading: Reading[Any] | None, missing: str, *subjects: str) -> str:
    """The same in one sentence."""
    open_ends = unfilled(glance, *subjects)
    if open_ends:
        return open_ends[0].partition(":")[2].strip()
    return missing if reading is None else why_unread(reading, glance.now)
