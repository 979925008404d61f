"""What a watchdog's own log tells: its process, the state it says it is in, and its newest act. Pure.

Which words mean which state is data of the recipe (`Says`); this module knows only time stamps and the order of lines.
Stamps: `2026-10-18 05:42:09`, `2026-09-13T05:42:09Z`, and without a year `10-17 21:00:00`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from console.readings.look import Answer, Status
from console.readings.watchdog_types import ENDED, Says, WatchdogState
from console.sanitize import lines

MOST_LINES, MOST_CHARACTERS = 20_000, 400
"""What is looked at of one log, and of one line in it."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as a log writes it."""

    seconds: float
    """Unix seconds if `zoned`; else of the wall clock there, counted as if it were UTC."""
    zoned: bool

    def unix(self, offset: float | None) -> float | None:
        """Unix seconds, given how far the host's wall clock is ahead of UTC; None where that is not known."""
        if self.zoned:
            return self.seconds
        return None if offset is None else self.seconds - offset


@dataclass(frozen=True, slots=True)
class Story:
    """What the newest run of the watchdog wrote."""

    pid: int | None = None
    started: Stamp | None = None
    state: WatchdogState | None = None
    """The state it says; None where no line says one."""
    text: str = ""
    """The line that says it, without its stamp; safe text."""
    at: Stamp | None = None
    attempt: tuple[int, int] | None = None
    silent_after: float | None = None
    every: float | None = None
    """Seconds between two checks, in its own words."""
    act: str = ""
    act_at: Stamp | None = None
    newest: Stamp | None = None
    """Stamp of the last line that has one."""


_STAMP = re.compile(
    r"(?:(?P<year>\d{4})-)?(?P<month>\d\d)-(?P<day>\d\d)[ T](?P<clock>\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?(?=[\s,:)\]]|$)"
)
_LATE = 3600.0
"""Seconds by which a stamp without a year may lie ahead of `now` before it is taken for last year's: local time may
be half a day ahead of UTC, and clocks differ, so half a day is added to it."""


def parse_stamp(text: str, now: float | None = None) -> Stamp | None:
    """The stamp that `text` begins with. Without a year it is the newest such time before `now`; without both None."""
    match = _STAMP.match(text)
    if match is None:
        return None
    year = match["year"]
    if year is None and now is None:
        return None
    years = [int(year)] if year else _years(now or 0.0)
    zone = match["zone"] or ""
    for candidate in years:
        words = f"{candidate:04d}-{match['month']}-{match['day']}T{match['clock']}{zone.replace('Z', '+00:00')}"
        try:
            moment = datetime.fromisoformat(words)
            seconds = (moment if zone else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            continue
        if year or now is None or seconds <= now + 12 * 3600 + _LATE:
            return Stamp(seconds, bool(zone))
    return None


def _years(now: float) -> list[int]:
    try:
        year = datetime.fromtimestamp(now, UTC).year
    except (ValueError, OverflowError, OSError):
        return []
    return [year + 1, year, year - 1]


def read_story(says: Sequence[Says], log: Answer, now: float | None = None) -> Story:
    """The newest run in a log's tail. Never raises; a line that nobody knows changes nothing."""
    story = Story()
    for text in _whole_lines(log):
        stamp, rest = _split(text, now)
        if stamp is not None:
            story = replace(story, newest=stamp)
        for kind in says:
            if (match := kind.pattern.match(rest)) is not None:
                story = _told(story, kind, match, stamp, now)
                break
    return story


def _whole_lines(log: Answer) -> list[str]:
    """Safe lines; the first one goes where the tail begins within it."""
    if log.status is not Status.OK:
        return []
    size = log.values.get("size", "")
    body = log.body
    if size.isascii() and size.isdigit() and len(size) < 19 and int(size) > len(body.encode("utf-8", "replace")):
        body = body.partition("\n")[2]
    return lines(body, MOST_CHARACTERS, MOST_LINES)


def _split(text: str, now: float | None) -> tuple[Stamp | None, str]:
    match = _STAMP.match(text)
    return (parse_stamp(text, now), text[match.end() :].lstrip()) if match else (None, text)


def _told(story: Story, kind: Says, match: re.Match[str], stamp: Stamp | None, now: float | None) -> Story:
    groups = match.groupdict()
    at = parse_stamp(groups.get("at") or "", now) or stamp
    pid, every = _number(groups.get("pid")), _number(groups.get("every"))
    begins = kind.state is WatchdogState.STARTING and pid is not None
    if kind.state in ENDED and None not in (pid, story.pid) and pid != story.pid:
        return story  # another run's last words
    if pid is not None:
        story = replace(story, pid=pid)
    if begins or (pid is not None and story.started is None and kind.state not in ENDED):
        story = replace(story, started=at)
    story = replace(story, newest=at or story.newest, every=float(every) if every else story.every)
    if kind.act:
        story = replace(story, act=match.string, act_at=at)
    if begins:
        story = replace(story, state=None)
    if kind.state is None or _still_given_up(story, kind, begins):
        return story
    same = kind.state is story.state and not begins
    return replace(
        story,
        state=kind.state,
        text=match.string,
        at=story.at if same and kind.state is not WatchdogState.CHECKING else at,
        attempt=_attempt(groups) or (story.attempt if same else None),
        silent_after=kind.silent_after,
    )


def _still_given_up(story: Story, kind: Says, begins: bool) -> bool:
    """One that gave up keeps probing and says that it is not armed: that is no new start."""
    return story.state is WatchdogState.GAVE_UP and kind.state is WatchdogState.STARTING and not begins


def _attempt(groups: dict[str, str | None]) -> tuple[int, int] | None:
    number, of = _number(groups.get("attempt")), _number(groups.get("of"))
    return (number, of) if number is not None and of is not None else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 9 else None


_ZONE_STEP, _ZONE_SLACK, _ZONE_MOST = 900.0, 5.0, 14 * 3600.0


def zone_between(wall: float, unix: float) -> float | None:
    """How far a wall clock is ahead of UTC, from one moment by both; None where they do not fit a time zone.

    Zones are whole quarters of an hour (tz database, since 1972 but for a few); 5 s of slack for the writing.
    """
    offset = round((wall - unix) / _ZONE_STEP) * _ZONE_STEP
    fits = abs(wall - unix - offset) <= _ZONE_SLACK and abs(offset) <= _ZONE_MOST
    return offset if fits else None


def there(answer: Answer | None) -> bool | None:
    """Whether a file is there; None where that is not known."""
    if answer is None or answer.status in (Status.DENIED, Status.ERROR):
        return None
    return answer.status is Status.OK


def why_not(answer: Answer | None) -> str:
    """Why a file could not be read, in words."""
    if answer is None:
        return "not read yet"
    if answer.status is Status.DENIED:
        return "no permission"
    return answer.words or answer.status.value


def written(answer: Answer | None) -> float | None:
    """Unix seconds by the host's clock at which a file was last written; None if that is not known."""
    text = answer.values.get("mtime", "") if answer is not None else ""
    try:
        seconds = float(text) if len(text) <= 32 else -1.0
    except ValueError:
        return None
    return seconds if 0 < seconds < 1e11 else None


def overdue(story: Story, last: float | None, now: float, interval: float | None) -> float | None:
    """Seconds of silence, where that is longer than the state allows, and longer than three checks; else None.

    `last` is when it last wrote, in the unit of `now`; a state without a limit may be silent for good.
    """
    if story.silent_after is None or last is None:
        return None
    limit = max(story.silent_after, 3 * (story.every or interval or 0.0))
    return now - last if now - last > limit else None


def span(seconds: float) -> str:
    """A length of time in one number, rounded down: `95 s`, `12 min`, `3 h`."""
    whole = int(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"
