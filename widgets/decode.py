"""Pane 5: decode tokens a second, with the lane's own usual band behind its history."""

from __future__ import annotations

import math

from console.readings.health import LaneState
from console.snapshot import LaneView
from widgets import format as fmt
from widgets.ages import AgeMark, age_room, in_lane, mark, pulse, shown
from widgets.bands import Band, usual_band
from widgets.cells import Line, measure
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, TEXT, Ink, Row
from widgets.pane import Pane
from widgets.plot import plot, resample, top_of
from widgets.sheet import Sheet, Title, section

WIDE_HISTORY = 300.0
"""Seconds of history at 200 columns; narrower panes show two samples a cell, one a second."""
_WORKING = (LaneState.SERVING, LaneState.BUSY)


class DecodePane(Pane):
    """Pane 5."""

    NUMBER = 5
    NAME = "decode"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        lane = glance.lane
        bands = lane.usual_decode, lane.usual_by_running, lane.last_decode
        return lane.throughput, lane.history, *bands, lane.verdict.state, pulse(glance.now, lane.throughput)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """The rate, its plot and the time axis; one line where there is but one."""
    if not glance.boxed and height == 1:
        return (_one_line(glance, width),)
    sheet = Sheet(glance, Title(5, "decode", engine_age(glance)), width, height)
    _headline(sheet.line(), sheet, glance)
    below = 1 if glance.wide else 0
    plot_rows = sheet.left_over - 1 - below
    if plot_rows >= 1:
        _plot(sheet, glance, plot_rows)
    if below and sheet.left_over:
        _rest(sheet.line(), sheet, glance)
    return sheet.done()


def engine_age(glance: Glance) -> AgeMark:
    """How old the lane's newest good scrape is."""
    return in_lane(mark(glance.lane.throughput, glance.now, word=True), glance.lane)


def rate_cells(lane: LaneView, glance: Glance) -> tuple[str, Ink]:
    """The rate in a field wide enough for the usual one, so that its digits never jump."""
    value, dim = shown(lane.throughput, glance.now)
    rate = value.decode_tps if value is not None else None
    highs = [high for _, _, high, _ in lane.usual_by_running]
    highest = max([lane.usual_decode[1] if lane.usual_decode else 0.0, *highs])
    field = max(4, len(fmt.tps(highest)))
    text = fmt.tps(rate)
    return (text if text == fmt.NONE else text.rjust(field)), DIM if dim else BOLD


def band_now(glance: Glance) -> Band | None:
    """The usual band at the present number of running requests."""
    value, _ = shown(glance.lane.throughput, glance.now)
    running = value.running if value is not None else None
    return usual_band(glance.lane, None if running is None else round(running))


def usual_words(band: Band | None) -> str:
    """`usual 63–69 at 3 running`; empty before it is known."""
    if band is None:
        return ""
    low, high = fmt.number(band.low), fmt.number(band.high)
    said = f"usual {low}–{high}" if low != high else f"usual {low}"
    return said if band.running is None else f"{said} at {band.running} running"


def _headline(line: Line, sheet: Sheet, glance: Glance) -> None:
    lane = glance.lane
    text, ink = rate_cells(lane, glance)
    after = line.words(sheet.left, (text, ink), ("tok/s", DIM), to=sheet.right)
    said = _context(lane, glance)
    for words in (said, said.removesuffix(" running"), usual_words(band_now(glance)).partition(" at ")[0]):
        if words and after + 1 + measure(words) <= sheet.right:
            line.right(sheet.right, words, DIM, start=after + 1)
            return


def _context(lane: LaneView, glance: Glance) -> str:
    usual = usual_words(band_now(glance))
    if lane.verdict.state not in _WORKING and lane.last_decode:
        was = f"was {fmt.tps(lane.last_decode)}"
        return f"{was}, {usual}" if usual else was
    return usual or "usual not known yet"


def _plot(sheet: Sheet, glance: Glance, height: int) -> None:
    lane = glance.lane
    label_width = 4
    width = sheet.right - sheet.left - label_width
    if width < 4:
        return
    step = WIDE_HISTORY / (2 * width) if glance.wide else 1.0
    points = [(point.at, point.decode_tps) for point in lane.history]
    values = resample(points, glance.now, step, 2 * width)
    found = band_now(glance)
    band = None if found is None else (found.low, found.high)
    top = top_of(values, band, height)
    _, dim = shown(lane.throughput, glance.now)
    drawn = plot(values, width, height, top, band, plain=glance.ascii, quiet=dim)
    scaled = band is not None or any(math.isfinite(value) for value in values)
    labels = _labels(height, top) if scaled else {}
    for y, row in enumerate(drawn):
        line = sheet.line()
        line.spans(sheet.left, row)
        line.right(sheet.right, labels.get(y, ""), DIM)
    axis(sheet.line(), sheet.left, width, values, step * 2 * width)


def _labels(height: int, top: float) -> dict[int, str]:
    labels = {0: fmt.number(top, 0 if top >= 10 else 1, 4)}
    if height >= 8:
        middle = height // 2
        labels[middle] = fmt.number(top * (height - middle) / height, 0 if top >= 10 else 1, 4)
    if height > 1:
        labels[height - 1] = "0"
    return labels


def axis(line: Line, left: int, width: int, values: list[float], span: float) -> None:
    """The time axis: how far back, `no data` under a gap, and now."""
    text = f"−{span:.0f} s" if span < 120 else f"−{span / 60:.0f} min"
    after = line.put(left, text, DIM, to=left + width)
    now_at = line.right(left + width, "now", DIM, start=after)
    gap = _widest_gap(values)
    if gap is None:
        return
    centre = left + (gap[0] + gap[1]) // 4
    at = min(max(after + 1, centre - 3), now_at - 8)
    if at > after:
        line.put(at, "no data", DIM, to=now_at - 1)


def _widest_gap(values: list[float]) -> tuple[int, int] | None:
    """Samples (start, end) of the widest gap with data before it; at least two cells wide."""
    best: tuple[int, int] | None = None
    start: int | None = None
    seen = False
    for index, value in enumerate([*values, math.nan]):
        if math.isfinite(value):
            if start is not None and index - start >= 4 and (best is None or index - start > best[1] - best[0]):
                best = (start, index)
            start, seen = None, True
        elif seen and start is None:
            start = index
    if start is not None and len(values) - start >= 4 and best is None:
        best = (start, len(values))
    if not seen and values:
        return 0, len(values)
    return best


def _rest(line: Line, sheet: Sheet, glance: Glance) -> None:
    value, dim = shown(glance.lane.throughput, glance.now)
    ink = DIM if dim else TEXT
    prefill = value.prefill_tps if value is not None else None
    itl = value.itl if value is not None else None
    after = line.words(sheet.left, ("prefill", DIM), (fmt.tps(prefill), ink), ("tok/s", DIM), to=sheet.right)
    if itl is not None and itl.p50 is not None:
        noun = "step" if value is not None and value.itl_is_per_step else "token"
        took = (fmt.number(itl.p50 * 1000, 1), ink), ("ms p50", DIM)
        line.words(after + 3, (f"between {noun}s", DIM), *took, to=sheet.right)


def _one_line(glance: Glance, width: int) -> Row:
    lane = glance.lane
    line = section(glance, Title(5, "decode", engine_age(glance)), width)
    text, ink = rate_cells(lane, glance)
    line.words(11, (text, ink), ("tok/s", DIM), to=23)
    cells = 18
    points = [(point.at, point.decode_tps) for point in lane.history]
    span = 60.0
    values = resample(points, glance.now, span / (2 * cells), 2 * cells)
    _, dim = shown(lane.throughput, glance.now)
    found = band_now(glance)
    top = top_of(values, None if found is None else (found.low, found.high), 1)
    drawn = plot(values, cells, 1, top, plain=glance.ascii, quiet=dim)
    line.spans(24, drawn[0])
    line.put(44, "60s", DIM)
    limit = width - 1 - age_room(engine_age(glance).text) - 1
    usual = usual_words(found)
    shorter = usual.removesuffix(" running"), usual.partition(" at ")[0]
    said = next((w for w in (_context(lane, glance), usual, *shorter) if 49 + measure(w) <= limit), "")
    line.put(49, said, DIM)
    return line.build()
