"""One line of an engine's log: who wrote it, when and how loud; and whether it is the one that a pattern means. Pure.

Stamps: SGLang `[2026-09-11 23:34:13 TP0 EP0]`, vLLM `(Worker_TP1 pid=186) INFO 09-28 15:19:48 [file.py:1]` (no year),
flashinfer `2026-09-20 17:10:22,436 - INFO - `, all in UTC as containers have it; torch's `[rank1]:[W926 ...` has only a
level.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

_HEAD = re.compile(
    r"(?:\((?P<who>[A-Za-z_][A-Za-z0-9_-]{0,60}) pid=[0-9]{1,10}\) ?)?"
    r"(?:\[(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}) (?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?: (?P<rank>[A-Z]{1,6}[0-9]{1,6}(?: [A-Z]{1,6}[0-9]{1,6}){0,5}))?\] ?"
    r"|(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<day>[0-9]{2}-[0-9]{2}) (?P<hour>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?: \[[^\]]{1,120}\])? ?"
    r"|(?P<date2>[0-9]{4}-[0-9]{2}-[0-9]{2}) (?P<time2>[0-9]{2}:[0-9]{2}:[0-9]{2}),[0-9]{3} - (?P<level2>[A-Z]{4,8}) - "
    r"|(?:\[rank[0-9]{1,6}\]:)?\[(?P<torch>[IWEF])[0-9]{3,4} [0-9:.]{8,20} )?"
)
_QUIET = frozenset({"DEBUG", "INFO", "WARNING"})
_TORCH = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "ERROR"}
_HALF_YEAR_S = 183 * 86400
_NO_YEAR = 2000
"""Stands for the year where nothing tells it: a leap year, so that every day of one exists."""


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before a line's own words."""

    who: str
    """`TP0 EP0`, `Worker_TP1`; '' where the line does not say."""
    level: str
    date: str
    """`2026-09-11`, `09-28` or ''."""
    time: str
    message: str

    @property
    def quiet(self) -> bool:
        """The engine itself does not call it an error."""
        return self.level in _QUIET


def read_head(text: str) -> Head:
    """The parts of one line; always something."""
    match = _HEAD.match(text)
    if match is None:  # cannot be: every part may be missing
        return Head("", "", "", "", text)
    part = match.groupdict("")
    level = part["level"] or part["level2"] or _TORCH.get(part["torch"], "")
    date, time = part["date"] or part["day"] or part["date2"], part["time"] or part["hour"] or part["time2"]
    return Head(part["rank"] or part["who"], level, date, time, text[match.end() :])


def is_access(text: str) -> bool:
    """An access log's line, which a poller writes several of a second."""
    return " HTTP/1." in text and ' - "' in text


class LogClock:
    """The time of a log's lines: the log keeper's own stamps where there are any, else the engine's."""

    def __init__(self, near: float | None) -> None:
        """`near` is Unix seconds not half a year away: it tells the year of stamps that have none."""
        self._near = near
        self._kept = False
        self._seen = ("", "", 0.0)
        self.absolute = True
        """False where no year is known: then only differences mean anything."""
        self.first: float | None = None
        self.now: float | None = None
        """Of the newest stamped line; never goes back."""

    def stamp(self, wall: float | None, text: str) -> float | None:
        """The time of one line; None where it has no stamp."""
        if wall is not None and isfinite(wall):
            self._kept = True
            return self._keep(wall)
        if self._kept:
            return None
        head = read_head(text)
        if not head.time:
            return None
        if self._seen[:2] != (head.date, head.time):
            found = self._seconds(head)
            if found is None:
                return None
            self._seen = (head.date, head.time, found)
        return self._keep(self._seen[2])

    def _keep(self, at: float) -> float:
        self.now = at if self.now is None else max(self.now, at)
        if self.first is None:
            self.first = self.now
        return self.now

    def _seconds(self, head: Head) -> float | None:
        fields = [int(part) for part in (*head.date.split("-"), *head.time.split(":"))]
        if len(fields) == 6:
            if not self.absolute:
                return None
            return _unix(fields)
        if self._near is None and self.absolute:
            if self.now is not None:  # a line before told the year
                self._near = self.now
            else:
                self.absolute = False
        if self._near is None:
            found = _unix([_NO_YEAR, *fields])
            over = self.now is not None and found is not None and found < self.now - _HALF_YEAR_S
            return _unix([_NO_YEAR + 1, *fields]) if over else found
        return _nearest(self._near, fields)


def _unix(fields: Sequence[int]) -> float | None:
    year, month, day, hour, minute, second = fields
    if not (1970 <= year <= 9998 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    return float(timegm((year, month, day, hour, minute, second)))


def _nearest(near: float, fields: Sequence[int]) -> float | None:
    """The time of a stamp without a year, in the year that brings it closest."""
    middle = 1970 + int(near // 31_556_952)
    found = [at for year in (middle - 1, middle, middle + 1) if (at := _unix([year, *fields])) is not None]
    return min(found, key=lambda at: abs(at - near)) if found else None


def pieces(pattern: str) -> tuple[str, ...]:
    """A pattern's literal parts, between its `*`."""
    return tuple(pattern.split("*"))


def needle(parts: Sequence[str]) -> str:
    """The longest part: what a line must hold to be worth a closer look."""
    return max(parts, key=len)


def held(parts: Sequence[str], text: str) -> tuple[str, ...] | None:
    """What the `*` of a pattern hold in this line; None if the line is another one. Linear in its length."""
    at = text.find(parts[0])
    if at < 0:
        return None
    at += len(parts[0])
    found: list[str] = []
    for part in parts[1:]:
        end = text.find(part, at) if part else len(text)
        if end < 0:
            return None
        found.append(text[at:end].strip())
        at = end + len(part)
    return tuple(found)


def filled(template: str, stars: Sequence[str], most: int = 80) -> str:
    """A template with `{1}`, `{2}`... put in, each cut to `most` characters."""
    for number, star in enumerate(stars, 1):
        template = template.replace(f"{{{number}}}", star if len(star) <= most else star[: most - 1] + "…")
    return template
