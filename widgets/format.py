"""How numbers are written: one precision each, `-` for what is not known, never wider than the column. Pure text."""

from __future__ import annotations

import math
from datetime import UTC, datetime

NONE = "-"
"""What stands for a value that is not known."""

GIB = 2**30
MINUS = "−"

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_DAYS_ONLY_FROM = 10 * _DAY
_GAP_FROM = 10_000
_SCALES = ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))


def known(value: float | None) -> bool:
    """True for a number that can be shown."""
    return value is not None and math.isfinite(value)


def number(value: float | None, decimals: int = 0, width: int = 0) -> str:
    """`value` with a fixed number of decimals, thousands parted by a gap from five digits on.

    With `width`, decimals go first, then the number is scaled (`12k`), and what still does not fit is `#`.
    """
    if value is None or not math.isfinite(value):
        return NONE
    for places in range(decimals, -1, -1):
        text = _grouped(value, places)
        if not width or len(text) <= width:
            return text
    for scale, unit in _SCALES:
        for places in (1, 0):
            text = f"{value / scale:.{places}f}{unit}".replace("-", MINUS)
            if len(text) <= width and abs(value) >= scale / 10:
                return text
    return "#" * width


def _grouped(value: float, places: int) -> str:
    text = f"{abs(value):,.{places}f}" if abs(value) >= _GAP_FROM - 0.5 else f"{abs(value):.{places}f}"
    sign = MINUS if value < 0 and any(c in "123456789" for c in text) else ""
    return sign + text.replace(",", " ")


def count(value: float | None, width: int = 0) -> str:
    """A whole number: `3`, `2913`, `184 302`."""
    return number(value, 0, width)


def gib(size: float | None, width: int = 0) -> str:
    """Bytes as GiB with one decimal: `2.9`."""
    return number(None if size is None else size / GIB, 1, width)


def tps(rate: float | None, width: int = 0) -> str:
    """Tokens a second: `66.3`, from a thousand on without decimals: `2913`."""
    if rate is not None and abs(rate) >= 999.95:
        return number(rate, 0, width)
    return number(rate, 1, width)


def mtok(tokens: float | None, width: int = 0) -> str:
    """Tokens in millions with two decimals: `6.04`."""
    return number(None if tokens is None else tokens / 1e6, 2, width)


def percent(fraction: float | None, width: int = 0) -> str:
    """A fraction as whole percent: `92`. 100 is written only when nothing is missing."""
    if fraction is None or not math.isfinite(fraction):
        return NONE
    value = fraction * 100
    return number(min(99.0, value) if 99 < value < 100 else value, 0, width)


def ghz(clock_mhz: float | None, width: int = 0) -> str:
    """MHz as GHz with two decimals: `2.41`."""
    return number(None if clock_mhz is None else clock_mhz / 1000, 2, width)


def seconds(value: float | None, width: int = 0) -> str:
    """A short time in seconds: `0.9`, `41`; under a tenth `0.02`."""
    if value is None or not math.isfinite(value):
        return NONE
    if abs(value) < 0.095:
        return number(value, 2, width)
    return number(value, 1 if abs(value) < 9.95 else 0, width)


def drift(value: float | None, width: int = 0) -> str:
    """How far a host's clock is ahead: `+0.1s`, `0.0s`, `−0.2s`, `+41s`, `−4m`."""
    if value is None or not math.isfinite(value):
        return NONE
    size = abs(value)
    if size < 0.05:
        return "0.0s"
    sign = "+" if value > 0 else MINUS
    text = f"{size:.1f}s" if size < 9.95 else age(size)
    return _limit(sign + text.replace(" ", ""), width)


def duration(value: float | None, width: int = 0) -> str:
    """How long something took or lasts: `0m41s`, `9m35s`, `2h18m`, `3d04h`, `12 d`."""
    if value is None or not math.isfinite(value):
        return NONE
    whole = int(max(0.0, value))
    if whole < _HOUR:
        return _limit(f"{whole // _MINUTE}m{whole % _MINUTE:02}s", width)
    if whole < _DAY:
        return _limit(f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m", width)
    if whole < _DAYS_ONLY_FROM:
        return _limit(f"{whole // _DAY}d{whole % _DAY // _HOUR:02}h", width)
    return _limit(f"{number(whole // _DAY)} d", width)


def age(value: float | None, width: int = 0) -> str:
    """How old a value is, rounded down: `0.4s` under one second, `6s`, `14s`, `4m`, `3h`, `41 d`."""
    if value is None or not math.isfinite(value):
        return NONE
    value = max(0.0, value)
    if value < 1:
        return _limit(f"{math.floor(value * 10 + 1e-6) / 10:.1f}s", width)
    for limit, unit, suffix in ((_MINUTE, 1, "s"), (_HOUR, _MINUTE, "m"), (_DAY, _HOUR, "h")):
        if value < limit:
            return _limit(f"{int(value // unit)}{suffix}", width)
    return _limit(f"{number(value // _DAY)} d", width)


def clock(wall: float | None) -> str:
    """Unix time as UTC: `21:55:10Z`."""
    moment = _moment(wall)
    return NONE if moment is None else f"{moment:%H:%M:%S}Z"


def time_of_day(wall: float | None, now: float | None = None) -> str:
    """Unix time as UTC without the Z, `21:53:40`; of another day than `now` the day alone: `18 Nov`."""
    moment = _moment(wall)
    if moment is None:
        return NONE
    today = _moment(now)
    if today is not None and today.date() != moment.date():
        return f"{moment.day} {_MONTHS[moment.month - 1]}"
    return f"{moment:%H:%M:%S}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _moment(wall: float | None) -> datetime | None:
    if wall is None or not math.isfinite(wall):
        return None
    try:
        return datetime.fromtimestamp(wall, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def revision(commit: str) -> str:
    """A checkpoint's commit in 7 characters."""
    return commit[:7] or NONE


def of(part: str, whole: str) -> str:
    """`44 of 48`."""
    return f"{part} of {whole}"


def _limit(text: str, width: int) -> str:
    if not width or len(text) <= width:
        return text
    squeezed = text.replace(" ", "")
    return squeezed if len(squeezed) <= width else "#" * width
