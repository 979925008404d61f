"""Pane 7: what happened, newest first."""

from __future__ import annotations

from console.snapshot import Event, Severity
from widgets import format as fmt
from widgets.ages import AGE_REPAINT, AgeMark, coarse
from widgets.cells import Line, measure, names_shortened
from widgets.glance import Glance
from widgets.ink import DIM, TEXT, WORDS, Row, ink_of
from widgets.pane import Pane
from widgets.sheet import Sheet, Title, wrap

_SUBJECT = (3, 12)


class EventsPane(Pane):
    """Pane 7."""

    NUMBER = 7
    NAME = "events"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        newest = glance.snapshot.events[-1].wall if glance.snapshot.events else None
        age = None if newest is None else fmt.age(glance.wall - newest)
        return glance.snapshot.events, age and coarse(age), int(glance.now / AGE_REPAINT), glance.wall // 86400

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """Time, who, what."""
    events = [event for event in reversed(glance.snapshot.events) if glance.matches(event.subject, event.text)]
    events = events[glance.scrolled(7) :]
    if not glance.boxed:
        return _section(glance, events, width, height)
    age = AgeMark(fmt.age(glance.wall - events[0].wall), DIM) if events else AgeMark("", DIM)
    sheet = Sheet(glance, Title(7, "events", age, f"/{glance.filter}" if glance.filter else ""), width, height)
    if not events:
        sheet.say(_nothing(glance))
    visible = events[: sheet.room]
    subject = _subject_width(visible)
    spare = sheet.room - len(visible)
    for event in visible:
        more = _event(sheet.line(), event, glance, sheet.left, subject, sheet.right, spare=spare)
        spare -= len(more)
        for part in more:
            sheet.line().put(_text_at(glance, sheet.left, subject), part, TEXT, to=sheet.right)
    return sheet.done()


def _nothing(glance: Glance) -> str:
    if glance.filter:
        return "No event matches the filter."
    return "Nothing happened since the console was started."


def _subject_width(events: list[Event]) -> int:
    low, high = _SUBJECT
    return max(low, min(high, max((measure(event.subject) for event in events), default=low)))


def _text_at(glance: Glance, left: int, subject: int) -> int:
    return left + 10 + subject + (2 if glance.boxed else 1)


def _event(
    line: Line, event: Event, glance: Glance, left: int, subject: int, right: int, *, spare: int = 0
) -> list[str]:
    """Draws one event. Returns the rows of its text that come below, where `spare` rows are free."""
    line.put(left, fmt.time_of_day(event.wall, glance.wall), DIM)
    line.put(left + 10, event.subject, DIM, to=left + 10 + subject)
    start = at = _text_at(glance, left, subject)
    if event.severity in (Severity.LOOK, Severity.ACT):
        at = line.put(at, f"{glance.signs.of(event.severity)} {WORDS[event.severity]}".strip(), ink_of(event.severity))
        at += 1
    parts = wrap(event.text, right - at, right - start)
    loud = event.severity in (Severity.LOOK, Severity.ACT)
    if loud and 0 < spare < len(parts) - 1:
        # The start of a long reason is worth more than no reason.
        parts = [*parts[:spare], " ".join(parts[spare:])]
    if not 0 < len(parts) - 1 <= spare:
        line.put(at, names_shortened(glance.signs.words(event.text), right - at, glance.signs.dots), TEXT, to=right)
        return []
    line.put(at, parts[0], TEXT, to=right)
    return parts[1:]


def _section(glance: Glance, events: list[Event], width: int, height: int) -> tuple[Row, ...]:
    """At 80 columns the label stands on the first event's own row."""
    sheet = Sheet(glance, Title(7, "events"), width, height)
    lines = [Line(width, glance.signs) for _ in range(height)]
    if lines:
        lines[0].put(1, "events", sheet.title_ink)
    if lines and not events:
        lines[0].put(11, _nothing(glance), DIM, to=width - 1)
    visible = events[:height]
    subject = _subject_width(visible)
    spare, free = height - len(visible), iter(lines)
    for line, event in zip(free, visible, strict=False):
        more = _event(line, event, glance, 11, subject, width - 1, spare=spare)
        spare -= len(more)
        for part in more:
            next(free).put(_text_at(glance, 11, subject), part, TEXT, to=width - 1)
    return tuple(line.build() for line in lines)
