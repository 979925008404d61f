"""Pane 3: each rank's node-local Engram row copy, and whether all ranges tile the tables."""

from __future__ import annotations

from dataclasses import dataclass

from console.readings.quality import Reading
from console.readings.rows import RowCopies, RowCopy, RowState, Tiling
from console.snapshot import LaneView, Severity
from widgets import format as fmt
from widgets.ages import NO_AGE, AgeMark, age_room, oldest, pulse, shown
from widgets.bar import Parts, bar
from widgets.cells import Line, cut_middle, measure
from widgets.empty import one_line, say_unread
from widgets.glance import Glance
from widgets.ink import BOLD, BRIGHT, DIM, TEXT, Ink, Row, ink_of, loudness
from widgets.pane import Pane
from widgets.sheet import Sheet, Title, section
from widgets.slots import NUMBERS

Pieces = tuple[tuple[str, Ink], ...]

SERVING = {
    RowState.NO_ROOM: Severity.INFO,
    RowState.OLD_REVISION: Severity.ACT,
    RowState.WRONG_RANK: Severity.ACT,
    RowState.WRONG_RANGES: Severity.ACT,
    RowState.HOLES: Severity.ACT,
    RowState.OLD_MANIFEST: Severity.LOOK,
    RowState.UNREADABLE: Severity.LOOK,
    RowState.UNKNOWN: Severity.LOOK,
}
"""How loud a copy's state is while its lane serves from it; what is not here is as it should be."""
_PANE = NUMBERS["rows"]
_MISSING = "Nothing says where ranks keep copies of Engram rows."
_FILLS = "Fills where the recipe or the lane's vars name the folder of the copies."
_SUBJECTS = ("rows", "next")
_GOING = (RowState.READY, RowState.COPYING, RowState.WAITS)
"""States that are drawn as a bar; the others are words."""


class RowsPane(Pane):
    """Pane 3."""

    NUMBER = _PANE
    NAME = "row copies"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        readings = _readings(glance.lane)
        return *readings, glance.lane.unfilled, pulse(glance.now, *readings)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """The copies being prepared, else those that serve: a row a rank, then the ranges; one line where there is one."""
    readings = _readings(glance.lane)
    age = oldest(readings, glance.now) if readings else NO_AGE
    if not glance.boxed and height == 1:
        return (_one_line(glance, age, width),)
    reading = readings[0] if readings else None
    value, dim = (None, True) if reading is None else shown(reading, glance.now)
    sheet = Sheet(glance, Title(_PANE, "row copies", age, _note(value)), width, height)
    if value is None:
        say_unread(sheet, reading, _MISSING, _FILLS, *_SUBJECTS)
        return sheet.done()
    _table(sheet, value, dim=dim, below=1 if sheet.room >= 4 else 0)
    if sheet.left_over:
        _tiling(sheet, value.tiling, _other(glance, value), dim=dim)
    if sheet.left_over >= 2:
        _details(sheet, value.tiling)
    return sheet.done()


def severity_of(copy: RowCopy, *, for_next: bool) -> Severity:
    """Copies that are only being prepared serve nobody yet: what is wrong with them is for looking at."""
    found = SERVING.get(copy.state, Severity.NORMAL)
    return Severity.LOOK if for_next and found is Severity.ACT else found


def _readings(lane: LaneView) -> tuple[Reading[RowCopies], ...]:
    """The copies being prepared first, then those that serve."""
    return tuple(reading for reading in (lane.next_rows, lane.rows) if reading is not None)


def _note(value: RowCopies | None) -> str:
    if value is None:
        return ""
    return f"{'next' if value.for_next else 'serving'} {fmt.revision(value.revision)}"


@dataclass(frozen=True, slots=True)
class _Grid:
    host: int
    bar: int
    bar_end: int
    copied: int
    percent: int
    rate: int
    left: int


def _grid(sheet: Sheet, copies: tuple[RowCopy, ...]) -> _Grid:
    names = max((measure(copy.host) for copy in copies), default=2)
    start = sheet.left + max(5, min(names, 16) + 1)
    copied = sheet.right - 25
    return _Grid(sheet.left, start, max(start + 2, copied - 6), copied, copied + 7, copied + 16, sheet.right)


def _table(sheet: Sheet, value: RowCopies, *, dim: bool, below: int) -> None:
    grid = _grid(sheet, value.copies)
    _heads(sheet.line(), grid, value.copies)
    found = [copy for copy in value.copies if sheet.glance.matches(copy.host, copy.words, copy.state.value)]
    if not found:
        sheet.say(_no_copy(sheet.glance, value))
        return
    room = max(1, sheet.left_over - below)
    each = 2 if len(found) * 2 <= room else 1
    hidden = 0
    if len(found) > room:
        room = max(1, room - 1)
        worst = sorted(found, key=lambda copy: -loudness(severity_of(copy, for_next=value.for_next)))
        skip = min(sheet.glance.scrolled(_PANE), len(worst) - room)
        found, hidden = worst[skip : skip + room], len(worst) - room
    for copy in found:
        _copy(sheet.line(), grid, copy, sheet.glance, dim=dim, for_next=value.for_next)
        if each == 2:
            _second(sheet.line(), grid, copy)
    if hidden:
        sheet.line().put(sheet.left, f"{hidden} more ranks, worst first", DIM, to=sheet.right)


def _no_copy(glance: Glance, value: RowCopies) -> str:
    if glance.filter and value.copies:
        return f"No rank here holds /{glance.filter}: {len(value.copies)} hidden. Esc drops the filter."
    return "No rank of this lane keeps a copy of its own."


def _heads(line: Line, grid: _Grid, copies: tuple[RowCopy, ...]) -> None:
    sizes = {copy.expected for copy in copies if copy.expected}
    line.put(grid.host, "host", DIM)
    if len(sizes) == 1:
        line.words(grid.bar, (fmt.gib(sizes.pop()), DIM), ("GiB a rank", DIM), to=grid.copied - 7)
    for edge, word in ((grid.copied, "copied"), (grid.percent, "%"), (grid.rate, "GiB/s"), (grid.left, "left")):
        line.right(edge, word, DIM)


def _copy(line: Line, grid: _Grid, copy: RowCopy, glance: Glance, *, dim: bool, for_next: bool) -> None:
    quiet = dim or copy.state in (RowState.WAITS, RowState.SHARDS)
    name = cut_middle(glance.signs.words(copy.host), grid.bar - 1 - grid.host, glance.signs.dots)
    line.put(grid.host, name, DIM if dim else TEXT if quiet else BOLD)
    if copy.state not in _GOING:
        _words(line, grid, copy, glance, severity_of(copy, for_next=for_next), dim=dim)
        return
    ink = DIM if quiet else BRIGHT if copy.state is RowState.COPYING else TEXT
    parts = Parts(copy.share, quiet=dim or copy.state is RowState.READY)
    line.spans(grid.bar, bar(parts, grid.bar_end - grid.bar, plain=glance.ascii or glance.no_colour))
    line.right(grid.copied, fmt.gib(copy.present, 6), ink)
    line.right(grid.percent, fmt.percent(copy.share, 4), DIM if quiet else TEXT)
    line.right(grid.rate, _rate(copy), DIM if quiet else TEXT)
    line.right(grid.left, _left(copy), DIM if quiet else TEXT)


def _rate(copy: RowCopy) -> str:
    """Of a copy that is whole nothing moves any more."""
    if copy.state is not RowState.COPYING or copy.rate is None:
        return fmt.NONE
    return fmt.number(copy.rate / fmt.GIB, 2, 6)


def _left(copy: RowCopy) -> str:
    if copy.state is RowState.READY:
        return "ready"
    if copy.state is RowState.WAITS:
        return "waits"
    return fmt.duration(copy.left)


def _words(line: Line, grid: _Grid, copy: RowCopy, glance: Glance, severity: Severity, *, dim: bool) -> None:
    """A state that is no progress: its word, and what there is to say about it."""
    state = copy.state.value
    if severity is Severity.NORMAL:
        line.put(grid.bar, copy.words or state, DIM, to=grid.left)
        return
    ink = ink_of(severity) if not dim else DIM
    word = f"{glance.signs.of(severity)} {state.upper()}".strip()
    rest = copy.words.removeprefix(state).lstrip(" ,:;")
    after = line.words(grid.bar, (word, ink), (rest, TEXT), to=grid.left)
    there = f"{fmt.gib(copy.present)} GiB there" if copy.present else ""
    if there and after + 2 + measure(there) <= grid.left:
        line.right(grid.left, there, DIM)


def _second(line: Line, grid: _Grid, copy: RowCopy) -> None:
    """Where there is room for two rows a rank: its ranges, what is free beside it, and where it lies."""
    ranges = copy.manifest.ranges if copy.manifest is not None else ()
    spans = [f"layer {item.layer}: {fmt.count(item.start)}–{fmt.count(item.end)}" for item in ranges[:2]]
    said = "; ".join(spans) + ("…" if len(ranges) > 2 else "")
    free: Pieces = ((fmt.gib(copy.free), DIM), ("GiB free", DIM)) if copy.free is not None else ()
    edge = line.words_right(grid.left, *free, start=grid.bar) - 2 if free else grid.left
    line.put(grid.bar, said or copy.path, DIM, to=edge)


def _other(glance: Glance, value: RowCopies) -> tuple[str, Severity]:
    """What there is to say of the copies that serve while those being prepared have the table."""
    if not value.for_next or glance.lane.rows is None:
        return "", Severity.NORMAL
    serving, _ = shown(glance.lane.rows, glance.now)
    if serving is None:
        return "serving copies not read", Severity.LOOK
    good = sum(1 for copy in serving.copies if copy.state in (RowState.READY, RowState.SHARDS))
    worst = max((severity_of(copy, for_next=False) for copy in serving.copies), key=loudness, default=Severity.NORMAL)
    return f"serving {fmt.revision(serving.revision)}: {good} of {len(serving.copies)} in place", worst


def _tiling(sheet: Sheet, tiling: Tiling, other: tuple[str, Severity], *, dim: bool) -> None:
    """`ranges tile every table: yes`, or what is wrong with them."""
    line = sheet.line()
    edge = sheet.right
    words, severity = other
    if words:
        sign = f"{sheet.glance.signs.of(severity)} " if severity is not Severity.NORMAL else ""
        ink = DIM if severity is Severity.NORMAL else ink_of(severity)
        edge = line.right(edge, sign + words, ink, start=sheet.left + 16) - 2
    if tiling.ok is False:
        faults = [fault for layer in tiling.layers for fault in layer.faults]
        after = line.put(sheet.left, f"{sheet.glance.signs.act} NO TILING".strip(), ink_of(Severity.ACT), to=edge)
        line.put(after + 1, tiling.words or "; ".join(faults), TEXT, to=edge)
        return
    if tiling.ok is None:
        why = f": {tiling.words}" if tiling.words else ""
        line.put(sheet.left, _first_fit(edge - sheet.left, f"ranges not known yet{why}", "ranges not known yet",
                                        "ranges unknown"), DIM, to=edge)  # fmt: skip
        return
    family = f" ({tiling.family})" if tiling.family else ""
    head = _first_fit(edge - sheet.left - 5, f"ranges tile every table{family}:", "ranges tile every table:",
                      "ranges tile:")  # fmt: skip
    line.words(sheet.left, (head, DIM), ("yes", DIM if dim else BRIGHT), to=edge)


def _first_fit(room: int, *texts: str) -> str:
    return next((text for text in texts if measure(text) <= room), texts[-1])


def _details(sheet: Sheet, tiling: Tiling) -> None:
    """Where there is room: every fault of every layer."""
    for layer in tiling.layers:
        for fault in layer.faults:
            if sheet.left_over:
                sheet.say(f"layer {layer.layer}: {fault}", ink=TEXT)
    if len(set(tiling.families.values())) > 1 and sheet.left_over:
        by_rank = ", ".join(f"rank {rank} {family}" for rank, family in sorted(tiling.families.items()))
        sheet.say(f"partition by {by_rank}", ink=TEXT)


def _one_line(glance: Glance, age: AgeMark, width: int) -> Row:
    """At 80 columns: `n1 ready  n2 ready  n3 NO ROOM  n4 31.4 of 48.1 GiB 0m31s`, what stands out first."""
    line = section(glance, Title(_PANE, "rows", age), width)
    edge = width - 1 - age_room(age.text) - 1
    readings = _readings(glance.lane)
    value, dim = (None, True) if not readings else shown(readings[0], glance.now)
    if value is None:
        line.put(11, one_line(glance, readings[0] if readings else None, _MISSING, *_SUBJECTS), DIM, to=edge)
        return line.build()
    if value.tiling.ok is False:
        line.words(11, ("NO TILING", ink_of(Severity.ACT)), (value.tiling.words, TEXT), to=edge)
        return line.build()
    column = 11
    for at, copy in enumerate(_in_order(value)):
        pieces = _short(copy, glance, severity_of(copy, for_next=value.for_next), dim=dim)
        size = sum(measure(text) + 1 for text, _ in pieces if text) - 1
        more = len(value.copies) - at
        if column + size + (0 if more == 1 else 5) > edge:
            line.put(column, f"+{more}", TEXT, to=edge)
            break
        column = line.words(column, *pieces, to=edge) + 2
    else:
        if value.tiling.ok and column + len("tile") <= edge:
            line.put(column, "tile", DIM)
    return line.build()


def _in_order(value: RowCopies) -> list[RowCopy]:
    """In rank order where all fit anyway; what is loud or moves comes first where many ranks may be cut off."""
    if len(value.copies) <= 4:
        return list(value.copies)
    moving = (RowState.COPYING, RowState.WAITS)
    key = {copy.rank: -loudness(severity_of(copy, for_next=value.for_next)) for copy in value.copies}
    return sorted(value.copies, key=lambda copy: (key[copy.rank], copy.state not in moving))


def _short(copy: RowCopy, glance: Glance, severity: Severity, *, dim: bool) -> Pieces:
    host = (glance.signs.words(copy.host), DIM if dim else TEXT)
    if copy.state is RowState.COPYING:
        return (host, (fmt.percent(copy.share), DIM if dim else BRIGHT), ("%", DIM), (fmt.duration(copy.left), TEXT))
    word = {RowState.SHARDS: "shards"}.get(copy.state, copy.state.value)
    if severity is Severity.NORMAL:
        return (host, (word, DIM))
    return (host, (word.upper(), ink_of(severity)))
