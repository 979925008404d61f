"""The lines that never scroll away: header, lamps, rail, alarm, NEXT and keys. Pure functions and their widgets."""

from __future__ import annotations

from console.alarms import Alarm
from console.alarms.book import Booked, worst_returned
from console.lamps import Lamp
from console.snapshot import Severity
from widgets import format as fmt
from widgets.barparts import SURFACE, chip, exactly
from widgets.cells import Line, measure
from widgets.glance import Glance
from widgets.header import HeaderBar as HeaderBar
from widgets.header import fresh as fresh
from widgets.header import header as header
from widgets.ink import BOLD, DIM, LABEL, LINE, LOOK, TEXT, WORDS, Row, chip_of, ink_of
from widgets.keyline import KeyBar as KeyBar
from widgets.keyline import key_rows as key_rows
from widgets.pane import Bar
from widgets.procedure import NextBar as NextBar
from widgets.procedure import RailBar as RailBar
from widgets.procedure import next_line as next_line
from widgets.procedure import rail as rail

_LEAST_ADVICE = 8
"""Cells of an alarm's advice below which there is none: one letter of it says nothing."""


class LampsBar(Bar):
    """Rows 1 and 2: the four lamps."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return (glance.lamps,)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `lamp_rows`."""
        return exactly(lamp_rows(glance, width), width, height)


class AlarmBar(Bar):
    """The alarm line."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return glance.alarms, glance.acknowledged, glance.returned, bool(glance.alarms) or _anything_read(glance)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `alarm_line`."""
        return exactly((alarm_line(glance, width),), width, height)


def lamp_rows(glance: Glance, width: int) -> tuple[Row, Row]:
    """Four across from 120 columns on, else two by two."""
    if width >= 120:
        return _lamps_across(glance, width)
    return _lamps_square(glance, width)


def _lamps_across(glance: Glance, width: int) -> tuple[Row, Row]:
    titles, answers = Line(width, glance.signs, SURFACE), Line(width, glance.signs, SURFACE)
    each = width // 4
    for index, lamp in enumerate(glance.lamps[:4]):
        left = each * index + 1
        right = width - 1 if index == 3 else each * (index + 1) - 1
        after = titles.put(left, lamp.title, LABEL.on("surface"), to=right)
        titles.put(after + 2, _beside_title(lamp, right - left - 3, glance), DIM.on("surface"), to=right)
        if index < 3:
            titles.put(right, "│", LINE.on("surface"))
            answers.put(right, "│", LINE.on("surface"))
        _answer(answers, lamp, left, right - (1 if index < 3 else 0), glance)
    return titles.build(), answers.build()


def _beside_title(lamp: Lamp, room: int, glance: Glance) -> str:
    """The note; in its place the reason in brackets behind the word, where there it has no room."""
    taken = measure(glance.signs.words(lamp.word)) + 1 + measure(lamp.rest)
    return lamp.rest.strip("()") if lamp.rest.startswith("(") and taken > room - 1 else lamp.note


def _answer(line: Line, lamp: Lamp, column: int, right: int, glance: Glance, *, note: bool = False) -> None:
    shape = glance.signs.of(lamp.severity)
    if shape:
        ink = DIM if lamp.severity is Severity.NORMAL else ink_of(lamp.severity)
        column = line.put(column, shape, ink._replace(bold=False).on("surface")) + 1
    after = line.put(column, lamp.word, ink_of(lamp.severity).on("surface"), to=right)
    rest, said = _what_fits(lamp, right - after, note=note)
    if rest:
        comma = 0 if glance.signs.words(rest).startswith(",") else 1
        after = line.put(after + comma, rest, TEXT.on("surface"), to=right)
    if said:
        line.put(after + 1, said, DIM.on("surface"), to=right)


def _what_fits(lamp: Lamp, room: int, *, note: bool) -> tuple[str, str]:
    """Whole words behind a lamp's own: rest and note, the rest, or the note. Why something is wrong is cut instead."""
    said = lamp.note if note else ""
    size = measure(lamp.rest) + 1 if lamp.rest else 0
    if said and size + 1 + measure(said) <= room:
        return lamp.rest, said
    if size <= room:
        return lamp.rest, ""
    if lamp.severity in (Severity.LOOK, Severity.ACT):
        what, _, why = lamp.rest.partition(": ")
        odd = lamp.rest.rpartition(", ")[2] if lamp.word.startswith("BACK") else ""
        return odd or (why if why and "(" not in what else lamp.rest), ""
    if said and 1 + measure(said) <= room:
        return "", said
    if lamp.rest.startswith("("):  # half of what is in brackets says nothing
        return "", ""
    words = lamp.rest.split()
    while words and measure(" ".join(words)) + 1 > room:
        words.pop()
    return " ".join(words), ""


def _lamps_square(glance: Glance, width: int) -> tuple[Row, Row]:
    rows = []
    half = width // 2
    for pair in (glance.lamps[:2], glance.lamps[2:4]):
        line = Line(width, glance.signs, SURFACE)
        for index, lamp in enumerate(pair):
            left = 1 if index == 0 else half + 2
            right = half - 1 if index == 0 else width - 1
            line.put(left, lamp.title, LABEL.on("surface"), to=right)
            _answer(line, lamp, left + 9, right, glance, note=True)
        line.put(half, "│", LINE.on("surface"))
        rows.append(line.build())
    return rows[0], rows[1]


def _anything_read(glance: Glance) -> bool:
    """Before the first reading nobody knows whether there would be an alarm."""
    hosts, lanes = glance.snapshot.hosts, glance.snapshot.lanes
    return any(host.memory.taken_mono is not None for host in hosts) or any(
        lane.health.taken_mono is not None for lane in lanes
    )


def alarm_line(glance: Glance, width: int) -> Row:
    """The worst alarm that is not acknowledged, and how many more there are; then those that nobody saw."""
    line = Line(width, glance.signs)
    unseen = any(alarm.key not in glance.acknowledged for alarm in glance.alarms)
    if not unseen and (gone := worst_returned(glance.returned)) is not None:
        return _returned_line(line, glance, gone, width)
    if not glance.alarms:
        line.put(1, "no alarms" if _anything_read(glance) else "nothing read yet", DIM)
        return line.build()
    alarm = glance.alarms[0]
    acked = alarm.key in glance.acknowledged
    edge = _alarm_right(line, glance, width, acked=acked)
    after = chip(line, 1, WORDS[alarm.severity] or "INFO", chip_of(alarm.severity), glance) + 1
    strong, advice = (TEXT, DIM) if acked else (BOLD, TEXT)
    said = f"{alarm.subject} {alarm.text}"
    room = edge - after - measure(glance.signs.words(said)) - 3
    more = alarm.advice if room >= min(_LEAST_ADVICE, measure(alarm.advice)) else ""
    after = line.put(after, f"{said}:" if more else said, strong, to=edge - 1)
    line.put(after + 1, more, advice, to=edge - 1)
    return line.build()


def _returned_line(line: Line, glance: Glance, gone: Booked, width: int) -> Row:
    """One whose cause is gone, and that nobody has seen: when it went, what it was, and that `a` clears it."""
    more = len(glance.alarms) + len(glance.returned) - 1
    words = ((("a", BOLD), ("clears", DIM)), (("a", BOLD),))[width < 120]
    edge = line.words_right(width - 1, *words) - 2
    edge = line.right(edge, f"+{more}{' more' if width >= 120 else ''}", TEXT) - 2 if more else edge
    after = line.put(1, "returned", LOOK) + 1
    after = line.put(after, fmt.utc(gone.ended), DIM, to=edge) + 1
    line.put(after, f"{gone.alarm.subject} {gone.alarm.text}", TEXT, to=edge - 1)
    return line.build()


def _alarm_right(line: Line, glance: Glance, width: int, *, acked: bool) -> int:
    more = len(glance.alarms) - 1
    if width < 120:
        words = ("acked" if acked else "", DIM), (f"+{more}" if more else "", TEXT)
        return line.words_right(width - 1, *words, gap=2)
    edge = line.words_right(width - 1, *((("a", BOLD), ("ack", DIM)) if not acked else ()))
    edge = edge if acked else edge - 3
    edge = line.right(edge, f"+{more} more", TEXT) - 3 if more else edge
    return line.right(edge, "acked" if acked else "not acked", DIM)


def worst_first(alarms: tuple[Alarm, ...], acknowledged: frozenset[str]) -> tuple[Alarm, ...]:
    """Unacknowledged first, each group in the order given."""
    return (
        *(alarm for alarm in alarms if alarm.key not in acknowledged),
        *(alarm for alarm in alarms if alarm.key in acknowledged),
    )
