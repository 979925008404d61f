"""The drift pane: what differs between the ranks of a lane. One different rank paces or hangs them all."""

from __future__ import annotations

from console.readings.drift import Difference, Drift
from console.snapshot import Severity
from widgets.ages import NO_AGE, AgeMark
from widgets.cells import measure
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, TEXT, WORDS, Ink, Row, ink_of
from widgets.pane import Pane
from widgets.sheet import Sheet, Title, section, wrap
from widgets.slots import NUMBERS

_PANE = NUMBERS["drift"]
_LABEL = 10
_NOT_YET = "Not compared yet. Fills once two ranks' containers are read."


class DriftPane(Pane):
    """Reached by name."""

    NUMBER = _PANE
    NAME = "drift"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return (glance.lane.drift, len(glance.lane.ranks))

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """Each difference with the odd hosts and what it leads to; what is equal; what could not be read."""
    if not glance.boxed and height == 1:
        return (_one_line(glance, width),)
    drift = glance.lane.drift
    sheet = Sheet(glance, Title(_PANE, "drift", AgeMark("", DIM), _note(drift)), width, height)
    if drift is None:
        sheet.say(_NOT_YET if len(glance.lane.ranks) > 1 else "A lane of one rank has nothing to compare.")
        return sheet.done()
    found = [item for item in drift.differences if _matches(glance, item)]
    if drift.differences and not found:
        sheet.say(f"Nothing here holds /{glance.filter}: {len(drift.differences)} hidden. Esc drops the filter.")
    _differences(sheet, found, keep=1 if drift.unread else 0)
    if not drift.differences:
        _equal(sheet, drift, room=sheet.left_over - (1 if drift.unread else 0))
    elif sheet.left_over > (1 if drift.unread else 0):
        _equal(sheet, drift, room=sheet.left_over - (1 if drift.unread else 0))
    _unread(sheet, drift)
    return sheet.done()


def severity_of(item: Difference) -> Severity:
    """Of the difference's own word; a word that is none of ours is for looking at."""
    try:
        return Severity(item.severity)
    except ValueError:
        return Severity.LOOK


def _note(drift: Drift | None) -> str:
    if drift is None or not drift.differences:
        return ""
    count = len(drift.differences)
    return f"{count} difference{'s' if count != 1 else ''}"


def _matches(glance: Glance, item: Difference) -> bool:
    return glance.matches(item.what, item.why, *item.odd, *(value for _, value in item.values))


def _differences(sheet: Sheet, found: list[Difference], *, keep: int) -> None:
    """One row each where it is narrow; with room a second row with every rank's value, and what it leads to."""
    room = sheet.left_over - keep
    each = next((rows for rows in (3, 2) if len(found) * rows <= room), 1)
    skip = min(sheet.glance.scrolled(_PANE), max(0, len(found) - 1))
    for number, item in enumerate(found[skip:]):
        left = len(found) - skip - number - 1
        if sheet.left_over <= keep:
            return
        last = left and sheet.left_over - keep <= each
        _difference(sheet, item, more=left if last else 0, rows=each)


def _difference(sheet: Sheet, item: Difference, *, more: int, rows: int) -> None:
    glance = sheet.glance
    severity = severity_of(item)
    line = sheet.line()
    edge = line.right(sheet.right, f"+{more}", TEXT) - 1 if more else sheet.right
    word = f"{glance.signs.of(severity)} {WORDS[severity]}".strip()
    after = line.put(sheet.left, word, ink_of(severity), to=edge)
    after = line.put(after + 1, item.what, BOLD, to=edge)
    odd = ", ".join(item.odd[:4]) + (f" +{len(item.odd) - 4}" if len(item.odd) > 4 else "")
    value = _odd_value(item)
    after = line.words(after + 2, (odd, TEXT), (value, TEXT), to=edge)
    if rows > 1:
        if after + 3 + measure(item.why) <= edge:
            line.right(edge, item.why, DIM, start=after + 2)
            _values(sheet, item)
        else:
            sheet.line().put(sheet.left + 2, item.why, DIM, to=sheet.right)
            if rows > 2:
                _values(sheet, item)
    elif after + 12 < edge:
        line.put(after + 2, item.why, DIM, to=edge)


def _odd_value(item: Difference) -> str:
    """What the odd ones have, against what the others have."""
    values = dict(item.values)
    theirs = list(dict.fromkeys(values[host] for host in item.odd if host in values))
    others = list(dict.fromkeys(value for host, value in item.values if host not in item.odd))
    said = ", ".join(theirs[:3])
    return f"{said}, others {', '.join(others[:2])}" if others and said else said


def _values(sheet: Sheet, item: Difference) -> None:
    line = sheet.line()
    pieces: list[tuple[str, Ink]] = []
    for host, value in item.values:
        pieces += [(host, DIM), (f"{value} ", TEXT)]
    line.words(sheet.left + 2, *pieces, to=sheet.right)


def _equal(sheet: Sheet, drift: Drift, *, room: int) -> None:
    if room <= 0:
        return
    if not drift.compared:
        sheet.say("Nothing could be compared yet.")
        return
    if not drift.equal:
        return
    head = "equal" if drift.differences else "no difference in"
    parts = wrap(f"{head}: {', '.join(drift.equal)}", sheet.right - sheet.left)
    for number, part in enumerate(parts[:room]):
        text = part if number < room - 1 or len(parts) <= room else " ".join(parts[number:])
        sheet.line().put(sheet.left, text, DIM, to=sheet.right)


def _unread(sheet: Sheet, drift: Drift) -> None:
    if not drift.unread or not sheet.left_over:
        return
    said = ", ".join(f"{host} {what}" for host, what in drift.unread)
    line = sheet.line()
    after = line.put(sheet.left, "not read", Ink("look"))
    line.put(max(after + 1, sheet.left + _LABEL), said, TEXT, to=sheet.right)


def _one_line(glance: Glance, width: int) -> Row:
    line = section(glance, Title(_PANE, "drift", NO_AGE._replace(text="")), width)
    drift = glance.lane.drift
    if drift is None:
        line.put(11, "not compared yet", DIM)
        return line.build()
    if not drift.differences:
        unread = f"not read: {drift.unread[0][0]} {drift.unread[0][1]}" if drift.unread else ""
        said = f"no difference in {len(drift.compared)} things" if drift.compared else "nothing compared yet"
        line.words(11, (said, DIM), (unread, Ink("look")), to=width - 1, gap=2)
        return line.build()
    item = drift.differences[0]
    severity = severity_of(item)
    more = f"+{len(drift.differences) - 1}" if len(drift.differences) > 1 else ""
    edge = line.right(width - 1, more, TEXT) - 1 if more else width - 1
    word = f"{glance.signs.of(severity)} {WORDS[severity]}".strip()
    line.words(11, (word, ink_of(severity)), (item.what, BOLD), (", ".join(item.odd), TEXT), (_odd_value(item), DIM),
               to=edge)  # fmt: skip
    return line.build()
