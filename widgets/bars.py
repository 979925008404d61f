"""The lines that never scroll away: header, lamps, rail, alarm, NEXT and keys. Pure functions and their widgets."""

from __future__ import annotations

from console.alarms import Alarm
from console.alarms.book import Booked, worst_returned
from console.lamps import Lamp
from console.readings.quality import Quality, Reading
from console.snapshot import Severity, Snapshot
from widgets import format as fmt
from widgets.cells import Line, blank, measure
from widgets.glance import Glance, KeyHint, LaneGlance
from widgets.ink import (
    BOLD,
    BRIGHT,
    CHIP_INFO,
    CHIP_KEY,
    CHIP_LOOK,
    DIM,
    LABEL,
    LINE,
    LOOK,
    TEXT,
    WORDS,
    Ink,
    Row,
    chip_of,
    ink_of,
    loudness,
)
from widgets.pane import Bar

SURFACE = Ink("text", "surface")
_FRESH = (Quality.LIVE, Quality.LATE)
_LEAST_ADVICE = 8
"""Cells of an alarm's advice below which there is none: one letter of it says nothing."""


class HeaderBar(Bar):
    """Row 0: fleet and lane, what kind of fleet, who, how much is fresh, the clock."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        snapshot = glance.snapshot
        lanes = (glance.lanes, glance.lane.name, glance.lane.lane.served)
        state = (snapshot.rehearsal, snapshot.fleet.name, snapshot.fleet.production, _held(glance))
        return *lanes, *state, fresh(snapshot), int(glance.wall)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `header`."""
        return _exactly((header(glance, width),), width, height)


class LampsBar(Bar):
    """Rows 1 and 2: the four lamps."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return (glance.lamps,)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `lamp_rows`."""
        return _exactly(lamp_rows(glance, width), width, height)


class RailBar(Bar):
    """The procedure rail."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return (glance.snapshot.rehearsal,)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rail`."""
        return _exactly((rail(glance, width),), width, height)


class AlarmBar(Bar):
    """The alarm line."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return glance.alarms, glance.acknowledged, glance.returned, bool(glance.alarms) or _anything_read(glance)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `alarm_line`."""
        return _exactly((alarm_line(glance, width),), width, height)


class NextBar(Bar):
    """The NEXT line: what happens if the operator does nothing."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return (glance.notice,)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `next_line`."""
        return _exactly((next_line(glance, width),), width, height)


class KeyBar(Bar):
    """The two rows of keys."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return glance.keys, glance.snapshot.rehearsal

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `key_rows`."""
        return _exactly(key_rows(glance, width), width, height)


def _exactly(rows: tuple[Row, ...], width: int, height: int) -> tuple[Row, ...]:
    return (*rows[:height], *(blank(width) for _ in range(height - len(rows))))


def chip(line: Line, column: int, text: str, ink: Ink, glance: Glance) -> int:
    """A word on a ground of its own. Without colour it takes no room beside the word. Returns the column after it."""
    return line.put(column, text if glance.no_colour else f" {text} ", ink)


def fresh(snapshot: Snapshot) -> tuple[int, int]:
    """How many readings are current, of how many that are asked for: node memory, containers, health and scrape."""
    readings: list[Reading[object]] = []
    for host in snapshot.hosts:
        readings.append(host.memory)
        configured = snapshot.fleet.hosts.get(host.name)
        if configured is None or configured.docker:
            readings.append(host.containers)
    for lane in snapshot.lanes:
        readings += [lane.health, lane.throughput]
    current = sum(1 for r in readings if not r.error and r.quality(snapshot.now) in _FRESH)
    return current, len(readings)


def header(glance: Glance, width: int) -> Row:
    """`spark4 / dsv41  PROD  deepseek-v4.1-flash      no window   by ana   9 of 9 fresh   21:55:10Z`."""
    small = width < 120
    snapshot, fleet = glance.snapshot, glance.snapshot.fleet
    line = Line(width, glance.signs)
    gap = 2 if small else 3
    current, asked = fresh(snapshot)
    number = f"{current} of {asked}"
    start = line.right(width - 1, fmt.utc(glance.wall), BRIGHT) - (1 if small else gap)
    start = line.words_right(start, (number, BRIGHT if current == asked else LOOK), ("fresh", DIM)) - gap
    operator = fleet.operator_name()
    if operator != "-" and start > 50:
        start = line.words_right(start, ("" if small else "by", DIM), (operator, TEXT), start=start - 19) - gap
    if said := _held(glance):
        wide = len(said) + (0 if glance.no_colour else 2)
        chip(line, start - wide, said, CHIP_LOOK, glance)
        start -= wide + gap
    else:
        start = line.right(start, "no window", DIM) - gap
    name = f"{fleet.name}/{glance.lane.name}" if small else f"{fleet.name} / {glance.lane.name}"
    word, ink = _kind(snapshot)
    after = line.put(1, name, BOLD, to=start - len(word) - 4) + (1 if small else 2)
    if word:
        after = chip(line, after, word, ink, glance) + 2
    after = _other_lanes(line, glance, after, start)
    if not small and glance.lane.lane.served:
        line.put(after, glance.lane.lane.served, DIM, to=start)
    return line.build()


def _held(glance: Glance) -> str:
    """`HELD 12s`: not PAUSED, which is what a lane is whose containers are paused."""
    return "" if glance.held is None else f"HELD {fmt.behind(glance.held)}"


def _kind(snapshot: Snapshot) -> tuple[str, Ink]:
    if snapshot.rehearsal:
        return "REHEARSAL", CHIP_INFO
    return ("PROD", CHIP_KEY) if snapshot.fleet.production else ("", TEXT)


def _other_lanes(line: Line, glance: Glance, column: int, limit: int) -> int:
    """Other lanes that are not in order: `1 other lane CRIT: station DOWN`, or as much of it as there is room for."""
    bad = [lane for lane in glance.lanes if lane.name != glance.lane.name and lane.severity in _BAD]
    if not bad:
        return column
    bad.sort(key=lambda lane: -loudness(lane.severity))
    worst, ink = bad[0], ink_of(bad[0].severity)
    room = limit - column - 2
    for text in _others_in_words(bad, glance.signs.of(worst.severity) or WORDS[worst.severity]):
        if measure(text) <= room:
            return line.put(column, text, ink) + 2
    # The name of the worst one may be cut, that there is one may not.
    return line.put(column, f"{WORDS[worst.severity]} {worst.name}", ink, to=max(column + 4, limit - 2)) + 2


_BAD = (Severity.LOOK, Severity.ACT)


def _others_in_words(bad: list[LaneGlance], sign: str) -> tuple[str, ...]:
    noun = "other lane" if len(bad) == 1 else "other lanes"
    named = ", ".join(f"{lane.name} {lane.word}".strip() for lane in bad)
    worst = f"{bad[0].name} {bad[0].word}".strip()
    more = f" +{len(bad) - 1}" if len(bad) > 1 else ""
    head = f"{len(bad)} {noun} {WORDS[bad[0].severity]}"
    return (f"{head}: {named}", f"{head}: {worst}{more}", f"{sign} {worst}{more}", f"{sign} {bad[0].name}{more}")


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


def rail(glance: Glance, width: int) -> Row:
    """The steps of the procedure that runs; none can in this version."""
    line = Line(width, glance.signs)
    line.put(1, "no procedure runs", DIM)
    said = "REHEARSAL: simulated hosts" if glance.snapshot.rehearsal else "this version only reads"
    line.right(width - 1, said, DIM, start=20)
    return line.build()


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


def next_line(glance: Glance, width: int) -> Row:
    """What happens by itself. This version starts nothing and reads no procedure."""
    line = Line(width, glance.signs)
    after = line.put(1, "NEXT", LABEL) + 2
    if glance.notice:
        line.put(after, glance.notice, BOLD, to=width - 1)
        return line.build()
    after = line.put(after, "if you do nothing:", TEXT)
    line.put(after + 1, "the console starts nothing by itself, it only reads.", DIM, to=width - 1)
    return line.build()


def key_rows(glance: Glance, width: int) -> tuple[Row, Row]:
    """Safe keys above, guarded ones below; those that cannot act are dim and say why."""
    return _safe_keys(glance, width), _guarded_keys(glance, width)


def _safe_keys(glance: Glance, width: int) -> Row:
    line = Line(width, glance.signs, SURFACE)
    hints = [hint for hint in glance.keys if not hint.guarded]
    gap, short = _spacing(hints, width - 2)
    column = 1
    for hint in hints:
        ink = BOLD if hint.available else DIM
        column = line.put(column, hint.key, ink.on("surface"), to=width - 1)
        if word := _word(hint, short=short):
            column = line.put(column + 1, word, DIM.on("surface"), to=width - 1)
        column += gap
    return line.build()


def _word(hint: KeyHint, *, short: bool) -> str:
    if not short:
        return hint.word
    return "" if hint.short == "-" else hint.short or hint.word


def _spacing(hints: list[KeyHint], room: int) -> tuple[int, bool]:
    """The widest gap at which all hints fit, and whether the short words are needed."""
    for short in (False, True):
        taken = sum(measure(h.key) + (1 + measure(w) if (w := _word(h, short=short)) else 0) for h in hints)
        for gap in (2, 1):
            if taken + gap * (len(hints) - 1) <= room and not (gap == 1 and not short):
                return gap, short
    return 1, True


def _guarded_keys(glance: Glance, width: int) -> Row:
    line = Line(width, glance.signs, SURFACE)
    hints = [hint for hint in glance.keys if hint.guarded]
    column, gap = 1, 3 if width >= 120 else 2
    for hint in hints:
        if hint.available:
            column = chip(line, column, hint.key, CHIP_KEY, glance) + 1
        else:
            column = line.put(column, hint.key, DIM.on("surface")) + 1
        word = _word(hint, short=width < 120)
        column = line.put(column, word, (TEXT if hint.available else DIM).on("surface")) + gap
    line.right(width - 1, _why_none_acts(glance, hints, width - 1 - column), DIM.on("surface"), start=column)
    return line.build()


def _why_none_acts(glance: Glance, hints: list[KeyHint], room: int) -> str:
    """Why guarded keys are dim; the part after the colon goes first where it is narrow."""
    why = next((hint.why for hint in hints if not hint.available and hint.why), "")
    kind = "REHEARSAL" if glance.snapshot.rehearsal else ""
    for words in (why, why.partition(":")[0], ""):
        said = ", ".join(part for part in (kind, words) if part)
        if measure(said) <= room:
            return said
    return kind


def worst_first(alarms: tuple[Alarm, ...], acknowledged: frozenset[str]) -> tuple[Alarm, ...]:
    """Unacknowledged first, each group in the order given."""
    return (
        *(alarm for alarm in alarms if alarm.key not in acknowledged),
        *(alarm for alarm in alarms if alarm.key in acknowledged),
    )
