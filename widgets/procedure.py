"""The procedure rail, and NEXT: what happens by itself if the operator does nothing. Pure."""

from __future__ import annotations

from console.actions.plan import Stage
from console.actions.strip import By, Phase
from console.actions.underway import BAD, FINE, Progress, StageNow, acting_of, forecast, head_now, runs, stages
from console.readings.acting_types import Operation, OperationState
from widgets import format as fmt
from widgets.barparts import chip, exactly
from widgets.cells import Line, measure
from widgets.glance import Glance, StripGlance
from widgets.ink import BOLD, CHIP, CHIP_ACT, CHIP_LOOK, DIM, FAINT, LABEL, LOOK, TEXT, Ink, Row
from widgets.pane import Bar
from widgets.said import fits
from widgets.stripfacts import goes_at
from widgets.stripsteps import STAGES, parts, serving_after

_SHORT = {"watchdog": "wd", "evidence": "logs"}
_ENDED: dict[OperationState, tuple[str, Ink]] = {
    OperationState.HALF_DONE: ("HALF DONE", CHIP_ACT),
    OperationState.FAILED: ("FAILED", CHIP_LOOK),
    OperationState.STOPPED: ("STOPPED", CHIP_LOOK),
    OperationState.LOST: ("LOST", CHIP_ACT),
    OperationState.UNKNOWN: ("UNKNOWN", CHIP_LOOK),
}
"""What is said of an operation that ended otherwise than well, for as long as it is the newest."""


class RailBar(Bar):
    """The procedure rail."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        acting = acting_of(glance.lane)
        operation = acting.operation if acting is not None else None
        second = int(head_now(glance.snapshot, glance.lane)) if runs(glance.lane) is not None else 0
        return glance.snapshot.rehearsal, operation, second, glance.acts

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rail`."""
        return exactly((rail(glance, width),), width, height)


class NextBar(Bar):
    """The NEXT line: what happens if the operator does nothing."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        acting = acting_of(glance.lane)
        timed = glance.strip is not None or (acting is not None and (runs(glance.lane) is not None or acting.debts))
        second = int(head_now(glance.snapshot, glance.lane)) if timed else 0
        kept = (acting.operation, acting.window, acting.debts) if acting is not None else ()
        return glance.notice, glance.strip, kept, second, glance.acts, _ways_on(glance)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `next_line`."""
        return exactly((next_line(glance, width),), width, height)


# --- rail -------------------------------------------------------------------------------------------------------------


def rail(glance: Glance, width: int) -> Row:
    """The stages of the procedure that runs: those done, the one now against its usual time, those to come."""
    line = Line(width, glance.signs)
    acting = acting_of(glance.lane)
    operation = acting.operation if acting is not None else None
    if operation is not None and operation.state is OperationState.RUNNING:
        after = _running(line, glance, operation, width)
    elif operation is not None and operation.unread:
        after = line.put(1, f"{operation.verb} was begun", TEXT)
        after = line.put(after + 2, "its steps are not read yet", DIM)
    elif operation is not None and operation.state in _ENDED:
        return _ended(line, glance, operation, width)
    else:
        after = line.put(1, "no procedure runs", DIM)
        if operation is not None and operation.ended is not None:
            after = line.put(after + 2, _last(operation), DIM, to=width - 1 - measure(_kind(glance)))
    kind = _kind(glance)
    said = next((text for text in (kind, kind.partition(":")[0]) if after + 2 + measure(text) <= width - 1), "")
    line.right(width - 1, said, DIM, start=min(width - 1, after + 2))
    return line.build()


def _kind(glance: Glance) -> str:
    if glance.snapshot.rehearsal:
        return "REHEARSAL: simulated hosts"
    return "" if glance.acts else "this console only reads"


def _last(operation: Operation) -> str:
    took = fmt.duration((operation.ended or operation.began) - operation.began)
    return f"last: {operation.verb} done {fmt.utc(operation.ended)}, {took}"


def _ended(line: Line, glance: Glance, operation: Operation, width: int) -> Row:
    """`HALF DONE after stop-spark-1, next: start rank 0`: on every console, until something else is begun."""
    word, ink = _ENDED[operation.state]
    after = chip(line, 1, word, ink, glance) + 1
    said = operation.words.removeprefix(word).lstrip(" :,") or f"{operation.verb}: nothing says why"
    if operation.state is OperationState.HALF_DONE and after + measure(glance.signs.words(said)) > width - 1:
        said = _by_stages(operation) or said
    after = line.put(after, said, BOLD, to=width - 1) + 2
    line.put(after, f"{operation.verb} by {operation.operator}", DIM, to=width - 1)
    return line.build()


def _by_stages(operation: Operation) -> str:
    """`after stop, next: boot on station FAILED, exited 1`: where titles with names of containers have no room."""
    done = [step for step in operation.steps if step.state in FINE]
    left = next((step for step in operation.steps if step.state not in FINE and not step.optional), None)
    if not done or left is None:
        return ""
    bad = f" {left.state.value.upper()}" + (f", {left.words}" if left.words else "") if left.state in BAD else ""
    return f"after {_called(done[-1].stage)}, next: {_called(left.stage)} on {left.host}{bad}"


def _called(stage: str) -> str:
    return STAGES.get(_stage_of(stage), stage)


_Piece = tuple[str, Ink]


def _running(line: Line, glance: Glance, operation: Operation, width: int) -> int:
    """All stages, with as much of their times as there is room for. The column after the last."""
    found = stages(operation, head_now(glance.snapshot, glance.lane))
    roomy = width >= 120
    forms = _FORMS if roomy else _FORMS[-2:]
    for times, of_usual, gap in forms:
        if _size(glance, found, times=times, of_usual=of_usual, gap=gap, short=not roomy) < width - 1:
            break
    column = 1
    for stage in found:
        if stage.number > 1:
            line.put(column + gap // 2, glance.signs.step, FAINT, to=width - 1)
            column += max(1, gap)
        column = _put_stage(line, glance, stage, column, width, times=times, of_usual=of_usual, short=not roomy)
    return column


_FORMS = ((True, True, 5), (True, True, 3), (False, True, 5), (False, True, 3), (False, False, 3), (False, False, 1))
"""Usual times of the stages to come, the usual time of the one now, and the gap; from the roomiest."""


def _size(glance: Glance, found: tuple[StageNow, ...], *, times: bool, of_usual: bool, gap: int, short: bool) -> int:
    total = 1 + gap * (len(found) - 1)
    for stage in found:
        pieces = _pieces(stage, times=times, of_usual=of_usual, short=short)
        total += measure(glance.signs.words(" ".join(text for text, _ in pieces)))
        total += 2 if stage.progress in (Progress.NOW, Progress.BROKEN) else 0
    return total


def _put_stage(
    line: Line, glance: Glance, stage: StageNow, column: int, width: int, *, times: bool, of_usual: bool, short: bool
) -> int:
    pieces = _pieces(stage, times=times, of_usual=of_usual, short=short)
    if stage.progress not in (Progress.NOW, Progress.BROKEN):
        return line.words(column, *pieces, to=width - 1)
    text = " ".join(text for text, _ in pieces)
    ink = CHIP if stage.progress is Progress.NOW else CHIP_ACT
    if glance.no_colour:
        return line.put(column, f"[{text}]", BOLD if stage.progress is Progress.NOW else ink, to=width - 1)
    return line.put(column, f" {text} ", ink, to=width - 1)


def _pieces(stage: StageNow, *, times: bool, of_usual: bool, short: bool) -> tuple[_Piece, ...]:
    name = STAGES.get(_stage_of(stage.stage), stage.stage) if stage.stage else "-"
    name = "site" if name == "site file" else name
    name = _SHORT.get(name, name) if short else name
    if stage.progress is Progress.DONE:
        return (f"{stage.number} {name}", DIM), ("OK", DIM)
    if stage.progress is Progress.NEXT:
        usual = fmt.duration(stage.usual) if times and stage.usual and stage.usual >= 1 else ""
        return ((f"{stage.number} {name}", TEXT), (usual, DIM)) if usual else ((f"{stage.number} {name}", TEXT),)
    head = f"{stage.number} {name.upper()}"
    if stage.progress is Progress.BROKEN:
        return (head, BOLD), (stage.word, BOLD)
    count = f" {stage.done}/{stage.count}" if stage.count > 1 else ""
    usual = f" of {fmt.duration(stage.usual)}" if of_usual and stage.usual else ""
    gap = " " if of_usual else ""
    return (f"{head}{count}{gap}", BOLD), (f"{fmt.duration(stage.elapsed)}{usual}", BOLD)


def _stage_of(name: str) -> Stage:
    try:
        return Stage(name)
    except ValueError:
        return Stage.EVIDENCE


# --- NEXT -------------------------------------------------------------------------------------------------------------


def next_line(glance: Glance, width: int) -> Row:
    """What happens by itself: the end of the countdown, the rest of what runs, or nothing."""
    line = Line(width, glance.signs)
    after = line.put(1, "NEXT", LABEL) + 2
    if glance.strip is not None:
        return _with(line, after, width, _of_strip(glance, glance.strip), glance)
    if glance.notice and fits(glance, width):
        line.put(after, glance.notice, BOLD, to=width - 1)
        return line.build()
    return _with(line, after, width, _of_lane(glance), glance)


def _with(line: Line, after: int, width: int, pieces: list[_Piece], glance: Glance) -> Row:
    """`if you do nothing:` and the pieces; where they have no room the quiet ones are left out."""
    after = line.put(after, "if you do nothing:", TEXT) + 1
    while after + _long(pieces, glance) > width - 1:
        spare = [at for at, (_, ink) in enumerate(pieces) if ink not in (BOLD, LOOK)]
        if not spare or len(pieces) == 1:
            break
        del pieces[spare[-1]]
    for number, (text, ink) in enumerate(pieces):
        if number and text[:1] != ",":
            after = line.put(after, f" {glance.signs.step} ", FAINT, to=width - 1)
        after = line.put(after, text, ink, to=width - 1)
    return line.build()


def _long(pieces: list[_Piece], glance: Glance) -> int:
    gaps = sum(3 for text, _ in pieces[1:] if text[:1] != ",")
    return gaps + sum(measure(glance.signs.words(text)) for text, _ in pieces)


def _of_strip(glance: Glance, strip: StripGlance) -> list[_Piece]:
    """While a countdown runs, doing nothing lets it go; any other strip waits."""
    if strip.by is not By.COUNTDOWN or strip.phase is Phase.PLANNING or strip.plan is None:
        waits = f"it waits for the {strip.asked}" if strip.asked else "the strip waits"
        if strip.phase in (Phase.ARMED, Phase.DEAD_TIME) and strip.by is By.LETTER:
            waits = "it waits for its letter"
        return [("nothing goes", BOLD), (f", {waits}", DIM)]
    pieces: list[_Piece] = [(f"this way back goes in {strip.left:.1f} s", BOLD)]
    start = goes_at(glance, strip)
    serves = serving_after(strip.plan)
    for part in parts(strip.plan):
        if part.ends is not None and (part.seconds or 0.0) >= 1.0 and part.stage is not Stage.BOOT:
            pieces.append((f"{STAGES[part.stage]} {fmt.time_of_day(start + part.ends)}", TEXT))
    pieces.append((f"serving ≈{fmt.time_of_day(start + serves)}", BOLD) if serves is not None else _NOT_KNOWN)
    return pieces


_NOT_KNOWN: _Piece = ("serving: time not known", LOOK)


def _of_lane(glance: Glance) -> list[_Piece]:
    operation = runs(glance.lane)
    if operation is not None:
        return _of_operation(glance, operation)
    acting = acting_of(glance.lane)
    ended = acting.operation if acting is not None else None
    if ended is not None and ended.state in (OperationState.HALF_DONE, OperationState.LOST):
        ways = " or ".join(_ways_on(glance))
        # With the keys that lead out beside it, that nothing else carries it on need not be said where it is narrow.
        quiet: list[_Piece] = [(", nothing carries it on", DIM)]
        return [(f"it stays {ended.state.value.upper()}", BOLD), *([(f", {ways}", BOLD)] if ways else []), *quiet]
    if acting is not None and acting.debts:
        owed = min(debt.deadline for debt in acting.debts) - head_now(glance.snapshot, glance.lane)
        said = f", owed in {fmt.duration(owed)}" if owed > 0 else f", OVERDUE {fmt.duration(-owed)}"
        return [(f"the {acting.debts[0].what} stays off", BOLD), (said, DIM if owed > 0 else LOOK)]
    if not glance.acts:
        return [("the console starts nothing by itself, it only reads.", DIM)]
    return [("the console starts nothing by itself.", DIM)]


def _ways_on(glance: Glance) -> tuple[str, ...]:
    """`R ≈17m46s`, `B ≈17m35s to 9f2c1a7`: the keys that lead out of something half done, with their times."""
    return tuple(
        f"{hint.key} {hint.word}" for hint in glance.keys if hint.key in ("R", "B") and hint.guarded and hint.available
    )


def _of_operation(glance: Glance, operation: Operation) -> list[_Piece]:
    """When each stage is usually done, when the lane serves again, and what is to spare of the window."""
    now = head_now(glance.snapshot, glance.lane)
    pieces: list[_Piece] = []
    serves: float | None = None
    before = now
    for stage, at in forecast(operation, now):
        if serves is not None and stage != Stage.BOOT.value:
            break  # what comes after it serves again is on the rail
        name = STAGES.get(_stage_of(stage), stage)
        if stage == Stage.BOOT.value:
            serves = at
            pieces.append((name, TEXT))
        elif at is None or at - before >= 1.0:
            done = "stop done" if stage == Stage.STOP.value else name
            pieces.append((f"{done} {fmt.time_of_day(at)}" if at is not None else name, TEXT))
        before = at if at is not None else before
    boots = any(step.stage == Stage.BOOT.value for step in operation.steps)
    if serves is not None:
        pieces.append((f"serving ≈{fmt.time_of_day(serves)}", BOLD))
        pieces += _spare(glance, serves)
    elif boots and any(stage == Stage.BOOT.value for stage, _ in forecast(operation, now)):
        pieces.append(_NOT_KNOWN)
    else:
        pieces.append((operation.target or f"{operation.verb} done", BOLD))
    if operation.runs_on == "console":
        pieces.append((", while this console stays", LOOK))
    return pieces


def _spare(glance: Glance, serves: float) -> list[_Piece]:
    acting = acting_of(glance.lane)
    window = acting.window if acting is not None else None
    if window is None:
        return []
    left = window.deadline - serves
    return [(f", {fmt.duration(left)} to spare", DIM) if left >= 0 else (f", {fmt.duration(-left)} late", LOOK)]
