"""Pane 6: the KV pool, speculation, prefix cache and prefill."""

from __future__ import annotations

from console.readings.quality import Basis
from console.readings.throughput import KvPool, Percentiles, Speculation, Throughput
from console.snapshot import LaneView
from widgets import format as fmt
from widgets.ages import age_room, pulse, shown
from widgets.bar import Parts, bar
from widgets.boots import pool_sizes
from widgets.cells import Line
from widgets.decode import WIDE_HISTORY, axis, engine_age
from widgets.glance import Glance
from widgets.ink import BOLD, BRIGHT, DIM, TEXT, Ink, Row
from widgets.pane import Pane
from widgets.plot import plot, resample
from widgets.sheet import Sheet, Title, section

FULL_MARK = 0.9
"""From here on an engine begins to preempt or to queue under long requests."""
_BOOTS_SHOWN = 4
_BELOW_HISTORY = 6
"""Rows under the plot: its axis, boots, acceptance, prefix, prefill, evidence."""


class KvPane(Pane):
    """Pane 6."""

    NUMBER = 6
    NAME = "KV pool"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        lane = glance.lane
        history = lane.history if glance.wide else ()
        return (
            lane.throughput,
            pool_sizes(lane),
            history,
            lane.lights.scrape.detail,
            lane.verdict.state,
            pulse(glance.now, lane.throughput),
        )

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """Pool, boots, acceptance, prefix hits, prefill; one line where there is but one."""
    if not glance.boxed and height == 1:
        return (_one_line(glance, width),)
    lane = glance.lane
    sheet = Sheet(glance, Title(6, "KV pool", engine_age(glance)), width, height)
    value, dim = shown(lane.throughput, glance.now)
    _pool(sheet, value, glance, dim=dim)
    if glance.wide and sheet.left_over >= _BELOW_HISTORY + 2:
        _history(sheet, glance, value, sheet.left_over - _BELOW_HISTORY)
    _boots(sheet, glance)
    if value is None:
        sheet.say(*_empty(glance))
        return sheet.done()
    ink = DIM if dim else BRIGHT
    _accept(sheet, value.speculation, ink)
    _prefix(sheet, value, ink)
    _prefill(sheet, value, ink)
    if sheet.left_over:
        _notes(sheet, value)
    return sheet.done()


def pool_cells(value: Throughput | None, lane: LaneView) -> tuple[float | None, str, float | None]:
    """Used tokens, pool size with `≈` where it is an estimate, and the used fraction.

    The size is fixed at boot, so that of the last boot seen stands while no scrape is read.
    """
    if value is None:
        return None, fmt.mtok(sizes[-1] if (sizes := pool_sizes(lane)) else None), None
    kv = value.kv
    return kv.used_tokens, _size(kv), kv.used_fraction


def _size(kv: KvPool) -> str:
    text = fmt.mtok(kv.tokens)
    return f"≈{text}" if kv.tokens is not None and kv.tokens_basis is Basis.ESTIMATE else text


def _pool(sheet: Sheet, value: Throughput | None, glance: Glance, *, dim: bool) -> None:
    used, size, fraction = pool_cells(value, glance.lane)
    line = sheet.line()
    strong, ink = (DIM, DIM) if dim else (BOLD, TEXT)
    line.words(sheet.left, (fmt.mtok(used), strong), ("of", DIM), (size, ink), ("M tok", DIM), to=sheet.right - 7)
    line.words_right(sheet.right, (fmt.percent(fraction, 4), DIM if dim else BRIGHT), ("%", DIM))
    parts = Parts(fraction, 0.0, FULL_MARK if fraction is not None else None, quiet=dim)
    plain = glance.ascii or glance.no_colour
    sheet.line().spans(sheet.left, bar(parts, sheet.right - sheet.left, plain=plain))


def _history(sheet: Sheet, glance: Glance, value: Throughput | None, height: int) -> None:
    width = sheet.right - sheet.left - 4
    step = WIDE_HISTORY / (2 * width)
    points = [(point.at, point.kv_fraction) for point in glance.lane.history]
    values = resample(points, glance.now, step, 2 * width)
    _, dim = shown(glance.lane.throughput, glance.now)
    drawn = plot(values, width, height, 1.0, plain=glance.ascii, quiet=dim)
    for y, row in enumerate(drawn):
        line = sheet.line()
        line.spans(sheet.left, row)
        top = fmt.mtok(value.kv.tokens if value is not None else None, 4)
        line.right(sheet.right, top if y == 0 else "0" if y == height - 1 else "", DIM)
    axis(sheet.line(), sheet.left, width, values, step * 2 * width)


def _boots(sheet: Sheet, glance: Glance) -> None:
    """Pool sizes of this lane's boots, the newest at the right; with room, between which they vary."""
    line = sheet.line()
    after = line.put(sheet.left, "boots, M", DIM)
    sizes = pool_sizes(glance.lane)
    if not sizes:
        line.right(sheet.right, fmt.NONE, DIM, start=after)
        return
    edge = sheet.right
    if len(sizes) > 1 and sheet.right - sheet.left >= 56:
        low, high = fmt.number(min(sizes) / 1e6, 1), fmt.number(max(sizes) / 1e6, 1)
        edge = line.words_right(edge, ("varies", DIM), (f"{low}–{high}", TEXT)) - 3
    for index, size in enumerate(reversed(sizes[-_BOOTS_SHOWN:])):
        if edge - 7 >= after:
            line.right(edge, fmt.mtok(size, 6), BRIGHT if index == 0 else TEXT, start=after)
        edge -= 7


def _label(line: Line, sheet: Sheet, word: str) -> None:
    line.put(sheet.left, word, DIM)


def _accept(sheet: Sheet, spec: Speculation | None, ink: Ink) -> None:
    line = sheet.line()
    _label(line, sheet, "accept")
    if spec is None:
        line.right(sheet.right, fmt.NONE, DIM)
        return
    about = "≈" if spec.basis is Basis.ESTIMATE else ""
    accepted = about + fmt.number(spec.accepted_per_step, 2)
    drafted = fmt.number(spec.drafted_per_step, 1)
    pieces: list[tuple[str, Ink]] = [(accepted, ink), ("+1 bonus of", DIM), (drafted, TEXT), ("drafted", DIM)]
    room = sheet.right - sheet.left - 10
    rate = f"{fmt.percent(spec.acceptance)} % accepted"
    if room >= 50:
        pieces = [*pieces, ("a step,", DIM), (fmt.percent(spec.acceptance), ink), ("% accepted", DIM)]
    elif spec.accepted_per_step is None:
        pieces = [(rate, ink)]
    line.words_right(sheet.right, *pieces, start=sheet.left + 7)


def _prefix(sheet: Sheet, value: Throughput, ink: Ink) -> None:
    line = sheet.line()
    _label(line, sheet, "prefix")
    after = line.words(sheet.left + 8, (fmt.percent(value.prefix_hit_rate), ink), ("% hit", DIM))
    line.words_right(sheet.right, *_first_token(value.ttft, ink), start=after + 1)


def _first_token(ttft: Percentiles | None, ink: Ink) -> tuple[tuple[str, Ink], ...]:
    if ttft is None or ttft.p50 is None:
        return (("TTFT", DIM), (fmt.NONE, DIM))
    return (("TTFT", DIM), (fmt.seconds(ttft.p50), ink), ("p95", DIM), (fmt.seconds(ttft.p95), ink), ("s", DIM))


def _prefill(sheet: Sheet, value: Throughput, ink: Ink) -> None:
    line = sheet.line()
    _label(line, sheet, "prefill")
    after = line.words(sheet.left + 8, (fmt.tps(value.prefill_tps), ink), ("tok/s", DIM))
    if value.preemptions:
        pieces = (fmt.count(value.preemptions), ink), ("preempted", DIM)
        line.words_right(sheet.right, *pieces, start=after + 1)


def _notes(sheet: Sheet, value: Throughput) -> None:
    if value.kv.evidence:
        line = sheet.line()
        _label(line, sheet, "size by")
        line.put(sheet.left + 8, value.kv.evidence, DIM, to=sheet.right)
    for note in value.notes:
        if sheet.left_over:
            sheet.say(note)


def _empty(glance: Glance) -> tuple[str, str]:
    """Why there is nothing, and what would fill it."""
    lane = glance.lane
    why = lane.throughput.error or lane.lights.scrape.detail or "no scrape was read yet"
    return f"Empty: {why.rstrip('.')}.", "Fills with the next good scrape."


def _one_line(glance: Glance, width: int) -> Row:
    lane = glance.lane
    value, dim = shown(lane.throughput, glance.now)
    age = engine_age(glance)
    line = section(glance, Title(6, "KV pool", age), width)
    used, size, fraction = pool_cells(value, lane)
    strong, ink = (DIM, DIM) if dim else (BOLD, TEXT)
    head: tuple[tuple[str, Ink], ...] = ((fmt.mtok(used), strong), ("of", DIM), (size, ink), ("M tok", DIM))
    after = line.words(11, *head)
    after = line.words(max(after + 2, 30), (fmt.percent(fraction, 3).rjust(3), ink), ("%", DIM))
    limit = width - 1 - age_room(age.text) - 2
    spec = value.speculation if value is not None else None
    accepted = fmt.number(spec.accepted_per_step if spec else None, 2)
    tail: tuple[tuple[str, Ink], ...] = (("accept", DIM), (accepted, ink), ("+1" if spec else "", DIM))
    start = line.words_right(limit, *tail, start=after + 1)
    if sizes := pool_sizes(lane):
        boots = tuple((fmt.mtok(size), TEXT) for size in sizes[-_BOOTS_SHOWN:])
        room = start - 2 - (after + 2) - 6
        while boots and sum(len(text) + 1 for text, _ in boots) > room:
            boots = boots[1:]
        if boots:
            line.words(after + 2, ("boots", DIM), *boots, to=start - 1)
    return line.build()
