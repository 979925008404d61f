"""`console.format` for columns: the same numbers, never wider than the column they stand in. Pure text."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from console import format as plain
from console.format import GIB, known, revision
from console.format import UNKNOWN as NONE

__all__ = [
    "GIB",
    "NONE",
    "age",
    "behind",
    "count",
    "drift",
    "duration",
    "ghz",
    "gib",
    "hour",
    "known",
    "mtok",
    "number",
    "percent",
    "revision",
    "seconds",
    "size",
    "size_unit",
    "time_of_day",
    "tps",
    "utc",
]

MINUS = "−"
_GAP_FROM = 10_000
_SCALES = ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))


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


def size_unit(size: float | None) -> str:
    """The decimal unit that bytes of this order are written in: `GB`, below a tenth of it `MB`, then `kB`."""
    if size is None or not math.isfinite(size) or size >= 1e8:
        return "GB"
    return "MB" if size >= 1e5 else "kB"


def size(value: float | None, unit: str = "GB", width: int = 0) -> str:
    """Bytes in a decimal unit with one decimal: `510.0`."""
    return number(None if value is None else value / _UNITS[unit], 1, width)


_UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9}


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
    text = plain.signed_seconds(value).replace("-", MINUS if plain.known(value) else NONE)
    if value is None or not width or len(text) <= width:
        return text
    return _limit(("+" if value > 0 else MINUS) + plain.age(abs(value)).replace(" ", ""), width)


def duration(value: float | None, width: int = 0) -> str:
    """How long something took or lasts: `0m41s`, `9m35s`, `2h18m`, `3d04h`, `12 d`."""
    return _limit(plain.duration(value), width)


def age(value: float | None, width: int = 0) -> str:
    """How old a value is: `0.4s` under one second, `6s`, `14s`, `4m`, `3h`, `41 d`."""
    return _limit(plain.age(value), width)


def behind(value: float | None) -> str:
    """How far back in whole seconds: `0s`, `12s`, `4m10s`."""
    return plain.short_age(value)


def utc(wall: float | None) -> str:
    """Unix time as UTC: `21:55:10Z`; `-` for a time that no calendar has."""
    return NONE if _moment(wall) is None else plain.clock(wall)


def time_of_day(wall: float | None, now: float | None = None) -> str:
    """Unix time as UTC without the Z, `21:53:40`; of another day than `now` the day alone: `18 Nov`."""
    moment = _moment(wall)
    if moment is None:
        return NONE
    today = _moment(now)
    if today is not None and today.date() != moment.date():
        return f"{moment.day} {_MONTHS[moment.month - 1]}"
    return f"{moment:%H:%M:%S}"


def hour(wall: float | None) -> str:
    """Unix time as hours and minutes UTC: `22:06`."""
    moment = _moment(wall)
    return NONE if moment is None else f"{moment:%H:%M}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _moment(wall: float | None) -> datetime | None:
    if wall is None or not math.isfinite(wall):
        return None
    try:
        return datetime.fromtimestamp(wall, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _limit(text: str, width: int) -> str:
    if not width or len(text) <= width:
        return text
    squeezed = text.replace(" ", "")
    return squeezed if len(squeezed) <= width else "#" * width
