"""The lane pane's boots: the phase it is in, elapsed against this lane's own earlier boots. Pure.

The shard bar of a log is reading of files and never stands for the boot's progress: all shards are read in the first
minute of ten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from console.readings.boot import Boot, BootFailure, BootProgress, BootRecord, PhaseName
from console.readings.health import LaneState
from console.snapshot import LaneView
from widgets import format as fmt
from widgets.bar import segments
from widgets.cells import Line, measure
from widgets.glance import Glance
from widgets.ink import ACT, BRIGHT, DIM, LOOK, TEXT, Ink
from widgets.sheet import Sheet, wrap

Pieces = tuple[tuple[str, Ink], ...]

GROUPS: tuple[tuple[str, tuple[PhaseName, ...]], ...] = (
    ("weights", (PhaseName.START, PhaseName.DISTRIBUTED, PhaseName.WEIGHTS)),
    ("post-process", (PhaseName.POST_PROCESS, PhaseName.DRAFT, PhaseName.KV_POOL)),
    ("graphs", (PhaseName.AUTOTUNE, PhaseName.GRAPHS)),
    ("warm-up", (PhaseName.HTTP, PhaseName.READY)),
)
"""What the bars are parted into, in the order of a boot."""
_NOW = ("fill", "fill2", "fill", "fill2")
_EARLIER = ("fill2", "panel", "fill2", "panel")
_SAME = 60.0
"""Seconds between the start of a container and the first line of its log."""
_LATE = 1.5
"""Times the usual after which a boot is late where no earlier boot tells."""
_VALUE, _BAR = 10, 9
"""Cells from a label to its value, and to its bar."""
LEAST_ROWS = 4
"""Rows that a history of boots needs: heads, now, one earlier boot, what is usual."""


def booting(lane: LaneView) -> bool:
    """Whether the pane speaks of a boot in place of requests."""
    return lane.verdict.state is LaneState.BOOTING


def failure_of(lane: LaneView) -> BootFailure | None:
    """Why the present start will not come up; None once the lane serves."""
    boot = None if lane.boot is None else lane.boot.value
    return None if boot is None or lane.verdict.state in _WELL else boot.failure


_WELL = (LaneState.SERVING, LaneState.IDLE, LaneState.BUSY, LaneState.READY)


def usual_words(lane: LaneView) -> tuple[str, str]:
    """`9m35s–10m03s` and where it comes from; the recipe's or operator's own figure where no boot was kept."""
    totals = [record.total for record in lane.boots]
    progress = lane.boot_progress
    if not totals and progress is not None and progress.usual is not None:
        totals = list(progress.usual)
    if totals:
        low, high = fmt.duration(min(totals)), fmt.duration(max(totals))
        return (low if low == high else f"{low}–{high}"), "earlier boots"
    return (fmt.duration(lane.lane.usual_boot_s), "by the recipe") if lane.lane.usual_boot_s else ("", "")


def phase_row(sheet: Sheet, lane: LaneView) -> bool:
    """`phase  graphs 0m41s of 0m25s`, or the failure that will not heal. Returns whether it took the next row too."""
    failure = failure_of(lane)
    line = sheet.line()
    line.put(sheet.left, "phase", DIM)
    if failure is not None:
        return _failure(sheet, line, failure)
    pieces = phase_pieces(lane)
    if sum(measure(text) + 1 for text, _ in pieces) - 1 > sheet.right - sheet.left - _VALUE:
        pieces = pieces[:2]
    line.words(sheet.left + _VALUE, *pieces, to=sheet.right)
    return False


def _failure(sheet: Sheet, line: Line, failure: BootFailure) -> bool:
    word, ink = ("FAILS", LOOK) if failure.heals else ("FAILED", ACT)
    sign = sheet.glance.signs.look if failure.heals else sheet.glance.signs.act
    start = sheet.left + _VALUE
    after = line.put(start, f"{sign} {word}".strip(), ink, to=sheet.right) + 1
    parts = wrap(failure.cause, sheet.right - after, sheet.right - start)
    line.put(after, parts[0] if parts else "", TEXT, to=sheet.right)
    if len(parts) > 1:
        sheet.line().put(start, " ".join(parts[1:]), TEXT, to=sheet.right)
    return len(parts) > 1


def phase_pieces(lane: LaneView) -> Pieces:
    """The phase, how long it has taken, and how long it usually takes."""
    progress = lane.boot_progress
    if progress is None or progress.phase is None:
        boot = None if lane.boot is None else lane.boot.value
        return (("no phase in the log yet" if boot is None or boot.now is None else boot.now.value, DIM),)
    pieces: list[tuple[str, Ink]] = [(progress.phase.value, BRIGHT)]
    if progress.phase_elapsed is not None:
        pieces += [(fmt.duration(progress.phase_elapsed), TEXT)]
    if progress.phase_usual is not None:
        pieces += [("of", DIM), (fmt.duration(progress.phase_usual), DIM)]
    return tuple(pieces)


def elapsed_pieces(lane: LaneView, elapsed: float | None) -> Pieces:
    """`4m10s of 9m35s–10m03s`; orange once it is late."""
    progress = lane.boot_progress
    if progress is not None:
        elapsed = progress.elapsed
    usual, _ = usual_words(lane)
    late = progress.late if progress is not None else _late(elapsed, lane.lane.usual_boot_s)
    pieces: Pieces = ((fmt.duration(elapsed), LOOK if late else BRIGHT),)
    return (*pieces, ("of", DIM), (usual, TEXT)) if usual else (*pieces, ("usual not known", DIM))


def _late(elapsed: float | None, usual: float | None) -> bool:
    return elapsed is not None and usual is not None and elapsed > _LATE * usual


def left_pieces(glance: Glance) -> Pieces:
    """`≈5m25s to ≈22:01`; nothing once it is late or without earlier boots."""
    progress = glance.lane.boot_progress
    if progress is None or progress.left is None:
        return ()
    return ((f"≈{fmt.duration(progress.left)}", TEXT), ("to", DIM), (f"≈{fmt.hour(glance.wall + progress.left)}", DIM))


def history(sheet: Sheet, glance: Glance) -> None:
    """Bars of this boot and of earlier ones on one scale, and what is usual. Needs LEAST_ROWS rows."""
    lane = glance.lane
    room = sheet.left_over - 2
    now = _now(glance)
    kept = [record for record in lane.boots if not (now and _is_present(record, lane))]
    records = kept[::-1][: max(0, room - (1 if now else 0))]
    totals = [*(record.total for record in records), *([now[1]] if now else [])]
    if not totals:
        line = sheet.line()
        line.put(sheet.left, "boots", DIM)
        line.put(sheet.left + _VALUE, "none kept yet: fills with the next boot", DIM, to=sheet.right)
        return
    _heads(sheet)
    scale = max(totals)
    if now:
        _bar(sheet, "now" if booting(lane) else "last", now[0], now[1], scale, _NOW)
    for record in records:
        label = fmt.time_of_day(record.started, glance.wall)[:6].rstrip(":")
        _bar(sheet, label, _groups(record.phases), record.total, scale, _EARLIER)
    if sheet.left_over:
        usual, source = usual_words(lane)
        said = (usual, TEXT), (f"over the last {len(lane.boots)} boots" if lane.boots else source, DIM)
        sheet.line().words(sheet.left, ("usual", DIM), *said, to=sheet.right)


def _is_present(record: BootRecord, lane: LaneView) -> bool:
    """Whether a record is of the start that the lane has now."""
    boot = None if lane.boot is None else lane.boot.value
    began = lane.lights.process.started_at if boot is None or boot.began is None else boot.began
    return began is not None and abs(record.started - began) < _SAME


def _heads(sheet: Sheet) -> None:
    line = sheet.line()
    line.put(sheet.left, "boots", DIM)
    line.right(sheet.right, "total", DIM)
    column = sheet.left + _BAR
    plain = sheet.glance.ascii or sheet.glance.no_colour
    for number, (name, _) in enumerate(GROUPS):
        sign = "#=+-"[number] if plain else "▌"
        if column + len(name) + 2 < sheet.right - 7:
            after = line.put(column, sign, Ink(_NOW[number]) if not plain else TEXT)
            column = line.put(after, name, DIM) + 2


def _bar(sheet: Sheet, label: str, parts: Sequence[float], total: float, scale: float, inks: Sequence[str]) -> None:
    line = sheet.line()
    line.put(sheet.left, label, DIM, to=sheet.left + _BAR - 1)
    width = sheet.right - sheet.left - _BAR - 8
    shares = [part / scale if scale > 0 else 0.0 for part in _whole(parts, total)]
    plain = sheet.glance.ascii or sheet.glance.no_colour
    line.spans(sheet.left + _BAR, segments(list(zip(shares, inks, strict=False)), width, plain=plain))
    line.right(sheet.right, fmt.duration(total), TEXT if inks is _EARLIER else BRIGHT)


def _whole(parts: Sequence[float], total: float) -> list[float]:
    """Phases that add up to the total: what the log says nothing of belongs to the first one, the start."""
    known = sum(parts)
    if not known:
        return [total, 0.0, 0.0, 0.0]
    rest = max(0.0, total - known)
    return [parts[0] + rest, *parts[1:]] if known <= total else [part * total / known for part in parts]


def _groups(phases: Sequence[tuple[str, float]]) -> list[float]:
    """Seconds by group; a phase of another name counts to the group before it."""
    sums, at = [0.0] * len(GROUPS), 0
    for name, took in phases:
        at = next((n for n, (_, members) in enumerate(GROUPS) if name in members), at)
        sums[at] += max(0.0, took)
    return sums


def _now(glance: Glance) -> tuple[list[float], float] | None:
    """Seconds by group and in all of the present start."""
    lane = glance.lane
    boot: Boot | None = None if lane.boot is None else lane.boot.value
    progress: BootProgress | None = lane.boot_progress
    if boot is None or boot.began is None:
        return ([progress.elapsed, 0.0, 0.0, 0.0], progress.elapsed) if progress is not None else None
    until = boot.ready if boot.ready is not None else glance.host_wall(lane.lane.head)
    total = progress.elapsed if progress is not None else until - boot.began
    if progress is None and boot.ready is None:
        return None
    return _groups(tuple(_spans(boot, until))), max(0.0, total)


def _spans(boot: Boot, until: float) -> Iterator[tuple[str, float]]:
    for phase in boot.phases:
        if phase.began is not None:
            yield phase.name.value, (until if phase.ended is None else phase.ended) - phase.began


def pool_sizes(lane: LaneView) -> tuple[int, ...]:
    """KV pool of this lane's boots in tokens, oldest first, the present one last once its metrics were read."""
    kept = [record for record in lane.boots if record.kv_tokens]
    if not kept:
        return lane.pools
    sizes = tuple(record.kv_tokens or 0 for record in kept)
    value = None if lane.throughput.error else lane.throughput.value
    now = value.kv.tokens if value is not None else None
    return sizes if now is None or _is_present(kept[-1], lane) else (*sizes, now)


def notes(sheet: Sheet, lane: LaneView) -> None:
    """Where there is room: what the boot did not show, why it failed, and what to do."""
    boot = None if lane.boot is None else lane.boot.value
    if boot is None or not sheet.left_over:
        return
    if boot.missing:
        line = sheet.line()
        after = line.put(sheet.left, "missing", LOOK)
        line.put(max(sheet.left + _VALUE, after + 1), ", ".join(boot.missing), TEXT, to=sheet.right)
    failure = failure_of(lane)
    if failure is not None:
        for words in (failure.advice, f"log: {failure.line}" if failure.line else ""):
            if words and sheet.left_over:
                sheet.say(words, ink=TEXT)
