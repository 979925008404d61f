"""The strip of a guarded action: what, from, to, per-host steps, time, what is cut off, and how it goes. Pure."""

from __future__ import annotations

from console.actions.plan import Verb
from console.actions.strip import By, Phase
from console.snapshot import Severity
from widgets import format as fmt
from widgets.bar import segments
from widgets.cells import Line, cut, measure, names_shortened
from widgets.glance import Glance, StripGlance
from widgets.ink import ACCENT, BOLD, BRIGHT, CHIP, DIM, STRONG, TEXT, WORDS, Ink, Row, ink_of
from widgets.pane import Bar
from widgets.stripfacts import Fact, facts, fitted, kept, on_one_row, wrapped
from widgets.stripsteps import SURFACE, parts, steps_table, table_height

HEADINGS = {
    Verb.DISARM: "DISARM THE WATCHDOG OF",
    Verb.ARM: "ARM THE WATCHDOG OF",
    Verb.STOP: "STOP",
    Verb.RELAUNCH: "RELAUNCH",
    Verb.ROLLBACK: "ROLL BACK",
}
_CHIP_AT, _CHIP_WIDTH, _WORDS_AT = 4, 9, 15
_RIGHT_AT, _CLOCK_AT = 61, 58
"""Columns of the second column of facts and of the countdown's bar, at 120 cells and more."""
_VALUE = 9
"""Cells from a label to its value."""
_LETTER = Ink("background", "accent", bold=True, key=True)
_FIELD = Ink("bright", "panel", bold=True)
_WAITING = Ink("text", "panel")
"""What Enter alone would answer."""


class StripPane(Bar):
    """Lies over the lower panes while it is open; nothing of it moves but what counts down or is typed."""

    DEFAULT_CSS = "StripPane { display: none; }"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`: the clock counts, for the time at which the lane serves again."""
        return glance.strip, int(glance.wall), glance.lane.name, stale_words(glance)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def stale_words(glance: Glance) -> tuple[str, ...]:
    """`n4 STALE 14s`, for every host of the lane whose readings are not current."""
    found = []
    for name in glance.lane.lane.rank_hosts:
        view = glance.host(name)
        if view is not None and view.memory.current(glance.now) is None:
            age = view.memory.age(glance.now)
            found.append(f"{name} {'STALE ' + fmt.age(age) if age is not None else 'NOT READ'}")
    return tuple(found)


def strip_height(columns: int, rows: int, room: int) -> int:
    """Rows of the strip on a terminal of this size, of which `room` are not taken by bars."""
    wanted = 18 if columns >= 200 and rows >= 60 else 16 if columns >= 120 and rows >= 40 else 15
    return max(0, min(wanted, room))


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """All rows of the strip; the least urgent go first where there is little room, how it goes and cancels never."""
    strip = glance.strip
    if strip is None or height <= 0 or width <= 0:
        return tuple(Line(width, glance.signs, SURFACE).build() for _ in range(max(0, height)))
    frame = height >= 6
    inner = height - (2 if frame else 1)
    foot = _foot(glance, strip, width, 3 if inner >= 6 else 1)
    # Where nothing counts down, the rows beside the letter hold what else there is to warn of.
    spill = foot if width >= 100 and len(foot) > 1 and strip.by is not By.COUNTDOWN else []
    body = _body(glance, strip, width, max(0, inner - len(foot)), spill)
    drawn = [_top(glance, strip, width), *body, *foot, *([_bottom(glance, width)] if frame else [])]
    return tuple(line.build() for line in drawn[:height])


# --- frame ------------------------------------------------------------------------------------------------------------


def _line(glance: Glance, width: int) -> Line:
    return Line(width, glance.signs, SURFACE)


def _top(glance: Glance, strip: StripGlance, width: int) -> Line:
    line, heavy = _line(glance, width), glance.signs.heavy
    line.put(0, heavy * 2, ACCENT.on("surface"))
    after = line.words(
        3,
        (strip.heading, Ink("accent", "surface", bold=True)),
        (strip.lane, BOLD.on("surface")),
        (f"on {glance.snapshot.fleet.name}" if width >= 60 else "", DIM.on("surface")),
        to=width - 3,
    )
    line.put(width - 2, heavy * 2, ACCENT.on("surface"))
    said = ([("plan", DIM), (strip.plan.id, TEXT)] if strip.plan is not None else []) + [(strip.frozen, DIM)]
    if width < 100:
        said = said[:2] if strip.plan is not None else []
    if glance.snapshot.rehearsal:
        said.insert(0, ("REHEARSAL", ink_of(Severity.INFO)))
    said = [(text, ink) for text, ink in said if text]
    edge = line.words_right(width - 3, *((text, ink.on("surface")) for text, ink in said), start=after + 2)
    end = edge - 1 if said else width - 2
    line.put(after + 1, heavy * max(0, end - after - 1), ACCENT.on("surface"))
    return line


def _bottom(glance: Glance, width: int) -> Line:
    line = _line(glance, width)
    line.put(0, glance.signs.heavy * width, ACCENT.on("surface"))
    return line


# --- what it would do -------------------------------------------------------------------------------------------------


def _body(glance: Glance, strip: StripGlance, width: int, room: int, spill: list[Line]) -> list[Line]:
    """Facts above, steps by hosts below; exactly `room` rows."""
    if strip.phase is Phase.PLANNING and strip.plan is None:
        line = _line(glance, width)
        line.put(3, "what it would do is being worked out from the newest readings", DIM.on("surface"), to=width - 1)
        return _padded(glance, [line][:room], width, room)
    wide = width >= 100
    left, right = facts(glance, strip)
    if not wide:
        left, right = _one_column(strip, [*left, *right], width, room), []
    most = room - _stage_rows(strip)
    edge = _right_at(width) - 2 if right else width - 1
    longest = max(len(wrapped(left, edge - 3 - _VALUE)), _long(right, width))
    table = table_height(strip.plan, room, facts=max(3, len(left), min(longest, most)))
    lines = _fact_lines(glance, left, right, width, room - table, spill)
    if table and strip.plan is not None:
        lines = _padded(glance, lines, width, room - table)
        would = "B would" if strip.told else ""
        lines += steps_table(glance, strip.plan, width, table, chart=wide and width >= 110, head=would)
    return _padded(glance, lines, width, room)


def _one_column(strip: StripGlance, found: list[Fact], width: int, room: int) -> list[Fact]:
    """Where it is narrow: from and to share a row, who is cut off goes before notes, and warnings leave room for the
    steps."""
    wanted = _stage_rows(strip)
    if len(wrapped(found, width - 1 - 3 - _VALUE)) + wanted > room:
        found = on_one_row(found, width - 1 - 3 - _VALUE)
    if len(wrapped(found, width - 1 - 3 - _VALUE)) + wanted > room:
        found = [fact for fact in found if fact.label != "note"]
    return kept(found, max(5, room - wanted))


def _stage_rows(strip: StripGlance) -> int:
    """Rows of heads and stages."""
    return len(parts(strip.plan)) + 1 if strip.plan is not None and strip.plan.steps else 0


def _long(found: list[Fact], width: int) -> int:
    """Rows of the second column when all of its words stand on it."""
    return len(wrapped(found, width - 1 - _right_at(width) - _VALUE))


def _padded(glance: Glance, lines: list[Line], width: int, room: int) -> list[Line]:
    return [*lines[:room], *(_line(glance, width) for _ in range(room - len(lines)))]


def _fact_lines(
    glance: Glance, left: list[Fact], right: list[Fact], width: int, room: int, spill: list[Line]
) -> list[Line]:
    """Two columns where there are two, each with its own rows; what has no room is counted in the last one."""
    at = _right_at(width)
    edge = at - 2 if right else width - 1
    lines = [_line(glance, width) for _ in range(max(0, room))]
    for line, fact in zip(lines, _shown(left, edge - 3 - _VALUE, room), strict=False):
        _put_fact(line, 3, 3 + _VALUE, fact, glance, edge)
    beside = [*lines, *spill]
    for line, fact in zip(beside, _shown(right, width - 1 - at - _VALUE, len(beside)), strict=False):
        _put_fact(line, at, at + _VALUE, fact, glance, width - 1)
    return lines


def _right_at(width: int) -> int:
    """The column at which the second column of facts begins."""
    return _RIGHT_AT if width < 160 else width // 2 + 1


def _shown(found: list[Fact], size: int, room: int) -> list[Fact]:
    """All facts on as many rows as their words need; where there are not so many, a row each."""
    whole = wrapped(found, size)
    return whole if len(whole) <= room else fitted(kept(found, room), size, room)


def _put_fact(line: Line, at: int, value: int, fact: Fact, glance: Glance, edge: int) -> None:
    line.put(at, fact.label, DIM.on("surface"), to=value - 1)
    if fact.severity is not Severity.NORMAL:
        sign = glance.signs.of(fact.severity)
        ink = ink_of(fact.severity)
        value = line.put(value, sign, ink._replace(bold=False).on("surface")) + (1 if sign else 0)
        strong = fact.strong or WORDS[fact.severity]
        value = line.put(value, strong, ink.on("surface"), to=edge) + 1
        line.put(value, fact.rest, TEXT.on("surface"), to=edge)
        return
    if fact.strong:
        value = line.put(value, fact.strong, BOLD.on("surface"), to=edge) + (1 if fact.strong.endswith(",") else 2)
    quiet = fact.strong and fact.label != "cuts"
    rest = names_shortened(glance.signs.words(fact.rest), edge - value, glance.signs.dots)
    line.put(value, rest, (DIM if quiet else TEXT).on("surface"), to=edge)


# --- how it goes ------------------------------------------------------------------------------------------------------


def _foot(glance: Glance, strip: StripGlance, width: int, height: int) -> list[Line]:
    """The letter's chip with its words, or the field that is typed into; then the countdown."""
    lines = [_line(glance, width) for _ in range(height)]
    words = foot_words(strip)
    if height == 1:
        text = " ".join(part for row in words[:1] for part, _ in row)
        if strip.by is By.TYPED and strip.phase is not Phase.DEAD_TIME:
            _field(lines[0], glance, strip, 1, width)
        else:
            lines[0].put(1, text + (f" in {strip.left:.1f} s" if strip.counts else ""), BOLD.on("surface"))
            lines[0].right(width - 1, "any other key cancels", DIM.on("surface"), start=measure(text) + 12)
        return lines
    typed = strip.by is By.TYPED and strip.phase is Phase.TYPING
    at = _CHIP_AT if typed else _WORDS_AT
    if not typed:
        _chip(lines, glance, strip)
    edge = _CLOCK_AT - 2 if strip.by is By.COUNTDOWN and width >= 100 else width - 1
    for line, row in zip(lines, words, strict=False):
        line.words(at, *((text, ink.on("surface")) for text, ink in row), to=edge)
    if typed:
        # Beside it warnings may stand that had no room above.
        _field(lines[0], glance, strip, at, width if width < 100 else _right_at(width) - 1)
    if strip.by is By.COUNTDOWN and width >= 100:
        _countdown(lines, glance, strip, width)
    return lines


def foot_words(strip: StripGlance) -> tuple[tuple[tuple[str, Ink], ...], ...]:
    """Three rows: what lets it go, whether it goes by itself, and what cancels."""
    cancels = (("any other key cancels, nothing is sent", DIM),)
    if strip.phase in (Phase.PLANNING, Phase.DEAD_TIME):
        return (("wait:", STRONG), ("no key counts yet", TEXT)), (("read what it does", DIM),), cancels
    if strip.by is By.TYPED:
        note = ((strip.note, ink_of(Severity.LOOK)),) if strip.note else ((strip.hint, DIM),)
        esc = (("Esc", BRIGHT), ("cancels, nothing is sent", DIM))
        return (
            (),
            note,
            (("Enter", BRIGHT), ("goes," if strip.last else "goes on,", DIM), *esc),
        )
    goes = ((strip.letter, BOLD), ("goes now" if strip.counts else "goes", TEXT))
    if strip.by is By.COUNTDOWN:
        return goes, (("goes by itself in", TEXT), (f"{strip.left:.1f} s", BOLD)), cancels
    return goes, (("never by itself", DIM),), cancels


def _chip(lines: list[Line], glance: Glance, strip: StripGlance) -> None:
    live = strip.phase is Phase.ARMED
    ink = _LETTER if live else CHIP
    letter = strip.letter if live else "-" if glance.ascii else "·"
    middle = letter.center(_CHIP_WIDTH)
    if glance.no_colour:
        # Without colour the chip is the letter in brackets, reversed by its key attribute.
        middle = f"[ {letter} ]".center(_CHIP_WIDTH)
        lines[1].put(_CHIP_AT + 2, middle.strip(), ink if live else TEXT)
        return
    for line, text in zip(lines, (" " * _CHIP_WIDTH, middle, " " * _CHIP_WIDTH), strict=False):
        line.put(_CHIP_AT, text, ink)


def _field(line: Line, glance: Glance, strip: StripGlance, at: int, width: int) -> None:
    """`type the lane name  [dsv4_          ]`: what was typed, its end where it is longer than the field."""
    number = f" ({strip.number} of {strip.count})" if strip.count > 1 and width >= 60 else ""
    after = line.put(at, f"type the {strip.asked}{number}", STRONG.on("surface"), to=width - 12) + 1
    size = max(4, min(30, width - after - 3))
    text = strip.typed if measure(strip.typed) < size else strip.typed[-(size - 1) :]
    waits = strip.default and not strip.typed
    shown = cut(strip.default, size) if waits else cut(text, size - 1) + "_"
    if glance.no_colour or glance.ascii:
        line.put(after, f"[{shown.ljust(size)}]", (TEXT if waits else BOLD).on("surface"), to=width - 1)
    else:
        line.put(after, f" {shown.ljust(size)}", _WAITING if waits else _FIELD, to=width - 1)


def _countdown(lines: list[Line], glance: Glance, strip: StripGlance, width: int) -> None:
    """A bar that empties from the right, with its ends written below."""
    armed = strip.phase is Phase.ARMED
    size = width - 3 - _CLOCK_AT
    said = "keys count from here on: type-ahead was dropped" if armed else "the countdown begins when keys count"
    lines[0].put(_CLOCK_AT, said, DIM.on("surface"), to=width - 1)
    share = strip.left / strip.seconds if strip.seconds else 0.0
    lines[1].spans(_CLOCK_AT, countdown_bar(share, size, plain=glance.ascii or glance.no_colour))
    lines[2].put(_CLOCK_AT, "0", DIM.on("surface"))
    lines[2].right(_CLOCK_AT + size, f"{strip.seconds:g} s", DIM.on("surface"))


def countdown_bar(share: float, width: int, *, plain: bool) -> Row:
    """What is left of the countdown in the accent, on the bar's own ground."""
    return segments(((min(1.0, max(0.0, share)), "accent"),), width, plain=plain)
