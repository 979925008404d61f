"""Pane 2: the download of a checkpoint, on three clocks and under its memory cap."""

from __future__ import annotations

from typing import NamedTuple

from console.readings.download import Clocks, Download, DownloadState
from console.readings.units import UnitMemory
from console.snapshot import Severity
from widgets import format as fmt
from widgets.ages import NO_AGE, AgeMark, age_room, mark, pulse, shown
from widgets.bar import Parts, bar
from widgets.cells import Line, cut_middle, measure
from widgets.empty import one_line, say_unread
from widgets.glance import Glance
from widgets.ink import BOLD, BRIGHT, DIM, INFO, LOOK, TEXT, Ink, Row, ink_of
from widgets.pane import Pane
from widgets.sheet import Sheet, Title, section, wrap
from widgets.slots import NUMBERS

Pieces = tuple[tuple[str, Ink], ...]

SEVERITY = {
    DownloadState.WAITING: Severity.INFO,
    DownloadState.STALLED: Severity.LOOK,
    DownloadState.INCOMPLETE: Severity.INFO,
    DownloadState.FAILED_CAP: Severity.LOOK,
    DownloadState.FAILED: Severity.LOOK,
    DownloadState.UNKNOWN: Severity.LOOK,
}
"""What is not here is as it should be."""
_PANE = NUMBERS["download"]
_MISSING = "Nothing says which folder a checkpoint is fetched into."
_FILLS = "Fills with a `download` table of the lane in fleet.toml: host, repo, unit."
_SUBJECTS = ("download", "repo")
_GOING = (DownloadState.RUNNING, DownloadState.WAITING, DownloadState.STALLED)
"""States in which somebody fetches, so that there are clocks to compare."""
_HARMLESS = {"prune"}
"""Kinds of warnings that hurt nobody by themselves."""
_LABEL = 9
"""Cells from a label to its value."""
_PREALLOCATED = 1.01
"""Times what is there from which a partial file's apparent size is that of the whole file."""
_ROOMY = 9
"""Rows inside the frame from which shards and partial files have rows of their own."""


class DownloadPane(Pane):
    """Pane 2."""

    NUMBER = _PANE
    NAME = "download"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        reading = glance.lane.download
        if reading is None:
            return (glance.lane.unfilled,)
        return reading, glance.lane.unfilled, pulse(glance.now, reading), int(glance.wall // 60)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """How far, how fast, how long still, what moves, and what would hurt; one line where there is but one."""
    reading = glance.lane.download
    age = NO_AGE if reading is None else mark(reading, glance.now, word=True)
    if not glance.boxed and height == 1:
        return (_one_line(glance, age, width),)
    sheet = Sheet(glance, Title(_PANE, "download", age), width, height)
    value, dim = (None, True) if reading is None else shown(reading, glance.now)
    if value is None:
        say_unread(sheet, reading, _MISSING, _FILLS, *_SUBJECTS)
        return sheet.done()
    if value.state is DownloadState.NONE:
        _nothing(sheet, value)
        return sheet.done()
    roomy = sheet.room >= _ROOMY
    _headline(sheet, value, dim=dim, roomy=roomy)
    _bar(sheet, value, dim=dim)
    if roomy:
        _shards(sheet, value, dim=dim)
    _state(sheet, value, dim=dim)
    if value.state in _GOING:
        _clocks(sheet, value.clocks, dim=dim)
    if value.state is not DownloadState.COMPLETE or value.memory is not None:
        _memory(sheet, value.memory, dim=dim)
    _below(sheet, value, dim=dim)
    return sheet.done()


def word_of(value: Download) -> tuple[str, Severity]:
    """`STALLED 4m10s`, `DONE`, `92 %`: the state in one word, and how loud it is."""
    severity = SEVERITY.get(value.state, Severity.NORMAL)
    if value.state is DownloadState.COMPLETE:
        return "DONE", severity
    word = value.state.value.upper()
    if value.state in (DownloadState.STALLED, DownloadState.WAITING) and value.stalled_for is not None:
        return f"{word} {fmt.duration(value.stalled_for)}", severity
    return word, severity


def _nothing(sheet: Sheet, value: Download) -> None:
    where = f"Nothing is being fetched on {value.host}" if value.host else "Nothing is being fetched"
    sheet.say(f"{where}, and nothing is half there.", value.why)
    if value.upstream:
        _labelled(sheet, "upstream", (("main at", DIM), (fmt.revision(value.upstream), TEXT)))
    _warnings(sheet, value.warnings, sheet.left_over)
    if sheet.left_over >= 2:
        sheet.say(f"Looked into: {value.repo}")


def _headline(sheet: Sheet, value: Download, *, dim: bool, roomy: bool) -> None:
    """`1bae0e1 to n4    44 of 48 shards 467.3 of 510.0 GB  92 %`."""
    line = sheet.line()
    strong = DIM if dim else BOLD
    edge = line.words_right(sheet.right, *_percent(value, strong)) - 2
    to = "on" if value.state is DownloadState.COMPLETE else "to"
    revision = (fmt.revision(value.revision), TEXT if dim else BRIGHT) if value.revision else ("revision unknown", DIM)
    host = (cut_middle(sheet.glance.signs.words(value.host), 16, sheet.glance.signs.dots), TEXT)
    if roomy:
        after = line.words(sheet.left, revision, (to, DIM), host, to=edge)
        repo = cut_middle(sheet.glance.signs.words(value.repo), edge - after - 7, sheet.glance.signs.dots)
        line.words(after + 2, ("repo", DIM), (repo, DIM), to=edge)
        return
    edge = line.words_right(edge, *_bytes(value, strong)) - 1
    edge = line.words_right(edge, *_count(value, strong), start=sheet.left + 12) - 1
    room = edge - sheet.left
    whole = (revision, (to, DIM), host)
    # A long name takes the place of the word before it, then that of its own middle.
    line.words(sheet.left, *(whole if _wide(whole) <= room else (revision, host)), to=edge)


def _wide(pieces: Pieces) -> int:
    return sum(measure(text) + 1 for text, _ in pieces) - 1


def _percent(value: Download, strong: Ink) -> Pieces:
    if value.state is DownloadState.COMPLETE:
        return (("DONE", strong),)
    return ((fmt.percent(value.share, 3), strong), ("%", DIM))


def _bytes(value: Download, strong: Ink) -> Pieces:
    unit = fmt.size_unit(value.expected or value.done)
    if value.expected is None or (value.state is DownloadState.COMPLETE and value.done == value.expected):
        unknown = "" if value.state is DownloadState.COMPLETE else f"of {fmt.NONE}"
        return ((fmt.size(value.done, unit), strong), (unit, DIM), (unknown, DIM))
    return ((fmt.size(value.done, unit), strong), ("of", DIM), (fmt.size(value.expected, unit), TEXT), (unit, DIM))


def _count(value: Download, strong: Ink) -> Pieces:
    done, total, noun = value.shards_done, value.shards_total, "shards"
    if total is None and value.files_total is not None:
        done, total, noun = value.files_done, value.files_total, "files"
    return ((fmt.count(done), strong), ("of", DIM), (fmt.count(total), TEXT), (noun, DIM))


def _bar(sheet: Sheet, value: Download, *, dim: bool) -> None:
    plain = sheet.glance.ascii or sheet.glance.no_colour
    quiet = dim or value.state is DownloadState.COMPLETE
    share = 1.0 if value.state is DownloadState.COMPLETE else value.share
    sheet.line().spans(sheet.left, bar(Parts(share, quiet=quiet), sheet.right - sheet.left, plain=plain))


def _labelled(sheet: Sheet, label: str, pieces: Pieces, right: Pieces = ()) -> Line:
    line = sheet.line()
    line.put(sheet.left, label, DIM)
    edge = sheet.right
    if right:
        edge = line.words_right(sheet.right, *right, start=sheet.left + _LABEL) - 2
    line.words(sheet.left + _LABEL, *pieces, to=edge)
    return line


def _shards(sheet: Sheet, value: Download, *, dim: bool) -> None:
    strong = DIM if dim else BRIGHT
    _labelled(sheet, "shards", _count(value, strong), _bytes(value, strong))


def _state(sheet: Sheet, value: Download, *, dim: bool) -> None:
    """The rate and the time to go; what is not going gets its word and no time."""
    glance = sheet.glance
    if value.state is DownloadState.RUNNING:
        ink = DIM if dim else BRIGHT
        _labelled(sheet, "rate", _rate(value, ink), _time_to_go(value, glance, ink))
        return
    if value.state is DownloadState.COMPLETE:
        why = "every file in its size; contents not compared" if value.expected is not None else value.why
        _labelled(sheet, "done", ((why, DIM),))
        return
    word, severity = word_of(value)
    said = (f"{glance.signs.of(severity)} {word}".strip(), DIM if dim else ink_of(severity))
    if value.state in _GOING:
        _labelled(sheet, "rate", (said,), (("no time to go", DIM),))
        return
    room = sheet.right - sheet.left - _LABEL
    if measure(said[0]) + 1 + measure(value.why) <= room:
        _labelled(sheet, "state", (said, (value.why, TEXT)))
        return
    _labelled(sheet, "state", (said,))
    parts = wrap(value.why, room)
    for part in [*parts[:1], " ".join(parts[1:])]:
        if part:
            _labelled(sheet, "", ((part, TEXT),))


def _rate(value: Download, ink: Ink) -> Pieces:
    rate = fmt.NONE if value.rate is None else fmt.number(value.rate / 1e6, 1)
    window: Pieces = (("over", DIM), (fmt.seconds(value.window), DIM), ("s", DIM)) if value.window else ()
    return ((rate, ink), ("MB/s", DIM), *window)


def _time_to_go(value: Download, glance: Glance, ink: Ink) -> Pieces:
    if value.expected is None:
        return (("no expected list: no time to go", DIM),)
    if value.eta is None:
        return (("time to go not known", DIM),)
    return ((fmt.duration(value.eta), ink), ("to", DIM), (f"≈{fmt.hour(glance.wall + value.eta)}", DIM))


def _clocks(sheet: Sheet, clocks: Clocks | None, *, dim: bool) -> None:
    """What moved: disk, network, memory of the downloader."""
    ink = DIM if dim else TEXT
    if clocks is None:
        _labelled(sheet, "clocks", (("not two looks yet", DIM),))
        return
    _labelled(
        sheet,
        "clocks",
        (
            *(("disk", DIM), (_rate_of(clocks.disk), ink)),
            *(("  network", DIM), (_rate_of(clocks.network), ink)),
            *(("  memory", DIM), (_rate_of(clocks.memory, signed=True), ink), ("MB/s", DIM)),
        ),
    )


def _rate_of(rate: float | None, *, signed: bool = False) -> str:
    text = fmt.number(None if rate is None else rate / 1e6, 1)
    return f"+{text}" if signed and rate is not None and rate / 1e6 >= 0.05 else text


def _memory(sheet: Sheet, memory: UnitMemory | None, *, dim: bool) -> None:
    """`1.9 of 4.0 GiB cap` with its bar, or that the cap asked for is not in force."""
    if memory is None:
        _labelled(sheet, "memory", (("not read: no unit is named or it has ended", DIM),))
        return
    strong = DIM if dim else BRIGHT
    kills = memory.oom_kills
    oom: Pieces = (("OOM", DIM), (fmt.count(kills), LOOK if kills else DIM))
    if memory.in_force is False:
        asked = f"{sheet.glance.signs.look} CAP NOT IN FORCE".strip()
        pieces: Pieces = ((fmt.gib(memory.current), strong), ("GiB", DIM), (asked, LOOK), (memory.why, TEXT))
        _labelled(sheet, "memory", pieces, oom)
        return
    if memory.cap is None:
        _labelled(sheet, "memory", ((fmt.gib(memory.current), strong), ("GiB, no cap", DIM)), oom)
        return
    of = (("of", DIM), (fmt.gib(memory.cap), TEXT), ("GiB cap", DIM))
    unsure: Pieces = (("in force?", DIM),) if memory.in_force is None and memory.cap_asked is not None else ()
    line = _labelled(sheet, "memory", ((fmt.gib(memory.current).rjust(4), strong), *of, *unsure), oom)
    start = sheet.left + 29 + (10 if unsure else 0)
    end = min(start + 14, sheet.right - 8)
    if end - start >= 8 and memory.current is not None:
        peak = None if memory.peak is None else min(1.0, memory.peak / memory.cap)
        parts = Parts(memory.current / memory.cap, mark=peak, quiet=dim)
        line.spans(start, bar(parts, end - start, plain=sheet.glance.ascii or sheet.glance.no_colour))


def _below(sheet: Sheet, value: Download, *, dim: bool) -> None:
    """Warnings before files: with one row left, the first warning stands there with the count of the others."""
    room = sheet.left_over
    if room <= 1 and value.warnings:
        _warnings(sheet, value.warnings, room)
        return
    _files(sheet, value, dim=dim)
    if value.warnings:
        _warnings(sheet, value.warnings, sheet.left_over)
    if sheet.left_over and value.upstream:
        moved = value.revision and value.upstream != value.revision
        said = "is not what is fetched" if moved else "is what is fetched"
        _labelled(sheet, "upstream", (("main at", DIM), (fmt.revision(value.upstream), TEXT), (said, DIM)))
    for orphan in value.orphans:
        if sheet.left_over:
            size = (fmt.size(orphan.present, fmt.size_unit(orphan.present)), fmt.size_unit(orphan.present))
            _labelled(sheet, "orphan", ((size[0], TEXT), (size[1], DIM), (orphan.path, DIM)))


def _files(sheet: Sheet, value: Download, *, dim: bool) -> None:
    """`now  a1b2c3d4 7.2 of 10.6 GB`, and how many partial files and orphans there are."""
    ink = DIM if dim else TEXT
    counts = _counts(value, ink)
    partial = value.current
    if partial is None:
        whole: Pieces = ()
        if value.files_total is not None:
            whole = ((fmt.count(value.files_done), ink), ("of", DIM), (fmt.count(value.files_total), ink))
        _labelled(sheet, "files", whole or (("no partial file", DIM),), tuple(counts))
        return
    unit = fmt.size_unit(partial.apparent or partial.present)
    etag = partial.etag[:8] or cut_middle(partial.path, 12, sheet.glance.signs.dots)
    of: Pieces = ()
    if partial.apparent > partial.present * _PREALLOCATED:
        of = (("of", DIM), (fmt.size(partial.apparent, unit), ink))
    now: Pieces = ((etag, ink), (fmt.size(partial.present, unit), ink), *of, (unit, DIM))
    _labelled(sheet, "now", now, tuple(counts))


def _counts(value: Download, ink: Ink) -> Pieces:
    """Partial files, orphans and downloaders; the most telling ones, as many as stand beside a file."""
    found: list[Pieces] = []
    if value.processes is not None and value.processes > 1:
        found.append(((fmt.count(value.processes), LOOK), ("downloaders", DIM)))
    if value.orphans:
        found.append(((fmt.count(len(value.orphans)), INFO), ("orphaned", DIM)))
    if value.partials:
        found.append(((fmt.count(value.partials), ink), ("partial", DIM)))
    if value.processes is not None and value.processes < 2:
        found.append(((fmt.count(value.processes), ink), (f"downloader{'' if value.processes else 's'}", DIM)))
    return tuple(piece for pieces in found[:2] for piece in pieces)


def _warnings(sheet: Sheet, warnings: tuple[str, ...], room: int) -> None:
    """As many as there is room for; the last row counts the others."""
    warnings = tuple(warning for warning in warnings if warning.strip())
    width = sheet.right - sheet.left - 2
    shown_rows = 0
    for number, warning in enumerate(warnings):
        left = len(warnings) - number - 1
        parts = wrap(warning, width)
        if shown_rows + len(parts) > room - (1 if left else 0):
            _one_warning(sheet, warning, left if shown_rows + 1 >= room else 0)
            shown_rows += 1
        else:
            _one_warning(sheet, parts[0], 0)
            for part in parts[1:]:
                sheet.line().put(sheet.left + 2, part, TEXT, to=sheet.right)
            shown_rows += len(parts)
        if shown_rows >= room:
            return


def _one_warning(sheet: Sheet, text: str, more: int) -> None:
    line = sheet.line()
    edge = sheet.right
    if more:
        edge = line.right(sheet.right, f"+{more} more", TEXT) - 1
    after = line.put(sheet.left, sheet.glance.signs.look or "LOOK", Ink("look"))
    line.put(after + 1, text, TEXT, to=edge)


class _Said(NamedTuple):
    pieces: Pieces
    right: Pieces


def _one_line(glance: Glance, age: AgeMark, width: int) -> Row:
    """At 80 columns: shards, bytes, percent or the state's word, rate, time to go."""
    line = section(glance, Title(_PANE, "download", age), width)
    edge = width - 1 - age_room(age.text) - 1
    reading = glance.lane.download
    value, dim = (None, True) if reading is None else shown(reading, glance.now)
    if value is None:
        line.put(11, one_line(glance, reading, _MISSING, *_SUBJECTS), DIM, to=edge)
        return line.build()
    if value.state is DownloadState.NONE:
        line.words(11, ("nothing is fetched", DIM), (value.warnings[0] if value.warnings else "", LOOK), to=edge)
        return line.build()
    said = _line_words(value, glance, dim=dim)
    edge = line.words_right(edge, *said.right, start=11) - 2
    line.words(11, *said.pieces, to=edge)
    return line.build()


def _line_words(value: Download, glance: Glance, *, dim: bool) -> _Said:
    strong = DIM if dim else BRIGHT
    left: Pieces = (*_count(value, strong), ("", DIM), *_bytes(value, strong))
    word, severity = word_of(value)
    loud = INFO if value.warning_kinds and set(value.warning_kinds) <= _HARMLESS else LOOK
    more: Pieces = ((f"+{len(value.warnings)}", loud._replace(bold=False)),) if value.warnings else ()
    if value.state is DownloadState.RUNNING:
        going = fmt.duration(value.eta) if value.eta is not None else fmt.NONE
        rate = fmt.NONE if value.rate is None else fmt.number(value.rate / 1e6, 1)
        right: Pieces = ((fmt.percent(value.share, 3), strong), ("% ", DIM), (rate, strong), ("MB/s ", DIM))
        return _Said(left, (*right, (going, TEXT), *more))
    sign = glance.signs.of(severity) if severity is not Severity.NORMAL else ""
    return _Said(left, ((f"{sign} {word}".strip(), ink_of(severity)), *more))
