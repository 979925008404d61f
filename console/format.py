"""How numbers are written, everywhere: one precision each, `-` for unknown, never 0 instead. Pure."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

GIB = 1024**3
UNKNOWN = "-"


def known(value: float | None) -> bool:
    """True for a finite number."""
    return value is not None and math.isfinite(value)


def number(value: float | None, digits: int = 1) -> str:
    """`66.3`; `-` for None, NaN or infinity."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("-") and float(text) == 0 else text


def whole(value: float | None) -> str:
    """`184 302`: thousands parted by one cell."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{round(value):,}".replace(",", " ")


def gib(size: float | None) -> str:
    """Bytes as GiB with one digit, without the unit."""
    return number(None if size is None else size / GIB, 1)


def mega_tokens(tokens: float | None) -> str:
    """Tokens as millions with two digits, without the unit: `6.20`."""
    return number(None if tokens is None else tokens / 1e6, 2)


def percent(fraction: float | None, digits: int = 0) -> str:
    """0..1 as percent, without the sign."""
    return number(None if fraction is None else fraction * 100, digits)


def no_answer(error: str) -> str:
    """`no answer for 14 s` of a look that hangs, whose own words name the look and not what is behind it."""
    found = re.search(r"has not answered( for \d{1,9} s)?", error)
    return f"no answer{found[1] or ''}" if found else error


def duration(seconds: float | None) -> str:
    """`0m41s`, `9m35s`, `2h05m`, `3d04h`, `12 d`."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    left = int(max(0.0, seconds))
    days, left = divmod(left, 86400)
    hours, left = divmod(left, 3600)
    minutes, secs = divmod(left, 60)
    if days >= 10:
        return f"{days} d"
    if days:
        return f"{days}d{hours:02}h"
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{secs:02}s"


def age(seconds: float | None) -> str:
    """`0.4s` below 1, then `6s`, `59s`, `4m`, `3h`, `41 d`."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 0.95:
        return f"{max(0.0, seconds):.1f}s"
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{int(max(seconds, 1) // size)}{unit}"
    return f"{int(seconds // 86400)} d"


def short_age(seconds: float | None) -> str:
    """Seconds below a minute, else `duration`: `41s`, `4m10s`; for lamps."""
    if seconds is not None and math.isfinite(seconds) and seconds < 60:
        return f"{int(max(0.0, seconds))}s"
    return duration(seconds)


def moment(wall: float | None) -> datetime | None:
    """Unix seconds as a time in UTC; None for what no calendar holds."""
    try:
        return None if wall is None else datetime.fromtimestamp(wall, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def clock(wall: float | None) -> str:
    """Unix seconds as `21:55:10Z` (UTC)."""
    time = moment(wall)
    return UNKNOWN if time is None else time.strftime("%H:%M:%SZ")


def day(wall: float | None) -> str:
    """Unix seconds as `12 Nov` (UTC)."""
    time = moment(wall)
    return UNKNOWN if time is None else f"{time.day} {time.strftime('%b')}"


def signed_seconds(seconds: float | None) -> str:
    """`+0.1s`, `0.0s`, `-0.2s`; whole seconds from 100 up."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    text = number(seconds, 0 if abs(seconds) >= 100 else 1)
    return f"{'' if float(text) <= 0 else '+'}{text}s"


def revision(commit: str) -> str:
    """The first 7 hex digits; `-` for an unknown revision."""
    return commit[:7] if commit else UNKNOWN
