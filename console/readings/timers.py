"""When a systemd timer that stands still was due: what is overdue runs at once when the timer is started again. Pure.

Read is what repeats whatever the time zone: `*:0/5`, `hourly`, `*-*-* *:30:00`; and what says that it means UTC. Of any
other calendar expression (systemd.time(7)) nothing is known.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_NAMES = {"minutely": "*:*:00", "hourly": "*:00:00"}
_FIELD = re.compile(r"(\*|[0-9]{1,2}(?:\.\.[0-9]{1,2})?)(?:/([0-9]{1,2}))?")
_SPEC = re.compile(r"OnCalendar=([^;}]*)")
_DAYS = 2


def calendar_of(shown: str) -> str:
    """The expression in what systemctl shows of a timer: `{ OnCalendar=*:0/5 ; next_elapse=n/a }`, or bare."""
    found = _SPEC.search(shown)
    return (found[1] if found else shown).strip()


def first_missed(calendar: str, last: float) -> float | None:
    """Unix seconds of the first run after `last`; None for an expression that is not read."""
    parsed = _parsed(calendar)
    if parsed is None:
        return None
    hours, minutes, seconds = parsed
    start = int(last) // 60 * 60
    for minute in range(start, start + _DAYS * 86_400 + 60, 60):
        moment = datetime.fromtimestamp(minute, UTC)
        if moment.hour in hours and moment.minute in minutes:
            for second in sorted(seconds):
                if minute + second > last:
                    return float(minute + second)
    return None


def _parsed(calendar: str) -> tuple[set[int], set[int], set[int]] | None:
    words = _NAMES.get(calendar, calendar).split()
    in_utc = bool(words) and words[-1] == "UTC"
    words = words[:-1] if in_utc else words
    if words and words[0] == "*-*-*":
        words = words[1:]
    fields = words[0].split(":") if len(words) == 1 else []
    if len(fields) not in (2, 3):
        return None
    hours, minutes = _values(fields[0], 24), _values(fields[1], 60)
    seconds = _values(fields[2], 60) if len(fields) == 3 else {0}
    if not hours or not minutes or not seconds or not (in_utc or len(hours) == 24):
        return None
    return hours, minutes, seconds


def _values(text: str, most: int) -> set[int]:
    """The numbers that a field stands for; an empty set for what is not read."""
    found: set[int] = set()
    for part in text.split(","):
        match = _FIELD.fullmatch(part)
        if match is None:
            return set()
        first, _, last = match[1].partition("..")
        begin = 0 if first == "*" else int(first)
        end = int(last) if last else most - 1 if first == "*" or match[2] else begin
        if end >= most or begin > end or match[2] == "0":
            return set()
        found |= set(range(begin, end + 1, int(match[2] or 1)))
    return found
