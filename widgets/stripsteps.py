"""The plan on the strip: a row a stage, a column a host, and a chart of the time that it takes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.actions.plan import Plan, Stage, Step, groups
from console.snapshot import Severity
from widgets import format as fmt
from widgets.bar import EIGHTHS
from widgets.cells import Line, measure
from widgets.glance import Glance
from widgets.ink import BRIGHT, DIM, TEXT, Ink, Row, Span, ink_of

SURFACE = Ink("text", "surface")
STAGES = {
    Stage.EVIDENCE: "evidence",
    Stage.WATCHDOG: "watchdog",
    Stage.STOP: "stop",
    Stage.ROWS: "rows",
    Stage.SITE: "site file",
    Stage.BOOT: "boot",
    Stage.ARM: "arm",
}
"""What a row of the table is called."""
_STAGE_AT, _HOSTS_AT = 3, 18
_FOUR = (18, 33, 48, 65)
"""Columns of up to four hosts at 80 and 120 cells."""
_LEAST_COLUMN = 15
_CHART = 35
"""Cells of the chart at 120; more where there is more room."""


@dataclass(frozen=True, slots=True)
class Part:
    """One stage of a plan: its steps in order, and when it begins and ends after the start, in seconds."""

    stage: Stage
    steps: tuple[Step, ...]
    begins: float | None
    ends: float | None

    @property
    def seconds(self) -> float | None:
        """How long it usually takes."""
        return None if self.begins is None or self.ends is None else self.ends - self.begins


def parts(plan: Plan) -> tuple[Part, ...]:
    """The plan's stages in their order; neighbours of one stage are one part."""
    found: list[Part] = []
    at: float | None = 0.0
    for group in groups(plan.steps):
        ends = [_add(at, _took(steps)) for steps in _by_stage(group).values()]
        for (stage, steps), end in zip(_by_stage(group).items(), ends, strict=True):
            if found and found[-1].stage is stage:
                before = found.pop()
                found.append(Part(stage, (*before.steps, *steps), before.begins, end))
            else:
                found.append(Part(stage, steps, at, end))
        known = [end for end in ends if end is not None]
        at = max(known) if len(known) == len(ends) else None
    return tuple(found)


def _by_stage(group: Sequence[Step]) -> dict[Stage, tuple[Step, ...]]:
    """Steps that run at the same time, apart by what they are for: evidence beside a stop is a row of its own."""
    return {stage: tuple(s for s in group if s.stage is stage) for stage in dict.fromkeys(s.stage for s in group)}


def _took(steps: Sequence[Step]) -> float | None:
    known = [step.usual for step in steps if not step.optional]
    if any(usual is None for usual in known):
        return None
    return max((usual for usual in known if usual is not None), default=0.0)


def _add(at: float | None, seconds: float | None) -> float | None:
    return None if at is None or seconds is None else at + seconds


def serving_after(plan: Plan) -> float | None:
    """Seconds until the lane serves again: the end of its boot; None where that is not known or there is none."""
    boots = [part for part in parts(plan) if part.stage is Stage.BOOT]
    return boots[-1].ends if boots else None


def path_of(plan: Plan) -> str:
    """`stop 0m20s › rows 8m00s › boot 9m35s`: the stages that take time."""
    timed = [(name_of(part), part.seconds) for part in parts(plan)]
    return " › ".join(
        f"{name} {fmt.duration(seconds)}" if seconds is not None else name
        for name, seconds in timed
        if seconds is None or seconds >= 1.0
    )


def long_parts(plan: Plan, until: float | None = None) -> str:
    """`stop, rows, boot`: what most of the time goes to, in order; `until`: only what begins before that second."""
    whole = until if until is not None else plan.total or 0.0
    return ", ".join(
        name_of(part)
        for part in parts(plan)
        if (until is None or part.begins is None or part.begins < until)
        and (part.seconds is None or part.seconds >= max(1.0, _SHARE * whole))
    )


_SHARE = 0.08
"""Of the whole time, from which a stage is worth its name."""


def name_of(part: Part) -> str:
    """What its row is called; a launcher's dry run changes nothing, whatever stage it belongs to."""
    return "dry run" if all(step.id.startswith(_DRY) for step in part.steps) else STAGES[part.stage]


_DRY = ("dry-run", "compare")


def table_height(plan: Plan | None, room: int, *, facts: int) -> int:
    """Rows for heads, stages and a blank below, beside that many rows of facts; 0 where not even one has room."""
    if plan is None or not plan.steps:
        return 0
    wanted = len(parts(plan)) + 1
    free = room - facts
    if free > wanted:
        return wanted + 1
    if free >= 3:
        return min(wanted, free)
    return 1 if free >= 1 else 0


def steps_table(glance: Glance, plan: Plan, width: int, height: int, *, chart: bool, head: str = "") -> list[Line]:
    """Heads and a row a stage; with a row less they are one line: `stop 0m20s › boot 9m35s`.

    `head` stands above the stages and says whose they are.
    """
    if height == 1:
        line = Line(width, glance.signs, SURFACE)
        after = line.put(_STAGE_AT, "steps", DIM.on("surface")) + 2
        line.put(after, path_of(plan), TEXT.on("surface"), to=width - 1)
        return [line]
    found = parts(plan)
    total = plan.total
    room = _room(width, chart=chart and total is not None)
    hosts, over = _columns(_hosts(glance, plan), room)
    top = Line(width, glance.signs, SURFACE)
    top.put(_STAGE_AT, head, DIM.on("surface"), to=_HOSTS_AT - 1)
    for column, host in hosts:
        _head(top, glance, plan, column, host, room)
    if over:
        top.put(room - 4, f"+{over}", DIM.on("surface"), to=room)
    lines = [top]
    whole = len(found) if len(found) < height else height - 2
    for number, part in enumerate(found[:whole], 1):
        lines.append(_stage_line(glance, plan, number, part, hosts, width, room))
    if whole < len(found):
        rest = Line(width, glance.signs, SURFACE)
        rest.put(_STAGE_AT, _rest_of(found, whole), TEXT.on("surface"), to=room)
        lines.append(rest)
    if chart and total:
        _chart(lines, glance, found, total, room + 2, width - 3)
    return lines


def _rest_of(found: tuple[Part, ...], first: int) -> str:
    """`4 boot 9m23s › 5 arm`: stages for which there is no row each."""
    said = []
    for number, part in enumerate(found[first:], first + 1):
        time = f" {fmt.duration(part.seconds)}" if part.seconds is not None and part.seconds >= 1.0 else ""
        said.append(f"{number} {name_of(part)}{time}")
    return " › ".join(said)


def _room(width: int, *, chart: bool) -> int:
    """The column before which hosts end."""
    if not chart:
        return width - 1
    return 80 if width < 160 else width - 3 - (_CHART + (width - 120) // 2)


def _columns(hosts: Sequence[str], room: int) -> tuple[list[tuple[int, str]], int]:
    """Where each host's column begins, and how many hosts have none."""
    if len(hosts) <= 4 and room <= 82:
        return list(zip(_FOUR, hosts, strict=False)), 0
    fit = max(1, (room - _HOSTS_AT) // _LEAST_COLUMN)
    shown = hosts if len(hosts) <= fit else hosts[: max(1, fit)]
    each = min(24, (room - _HOSTS_AT - (5 if len(shown) < len(hosts) else 0)) // len(shown))
    return [(_HOSTS_AT + each * at, host) for at, host in enumerate(shown)], len(hosts) - len(shown)


def _hosts(glance: Glance, plan: Plan) -> list[str]:
    """The lane's ranks in their order, then other hosts of the plan, then those left out."""
    named = [*glance.lane.lane.rank_hosts, *(step.host for step in plan.steps), *plan.left_out]
    used = {step.host for step in plan.steps} | set(plan.left_out) | set(glance.lane.lane.rank_hosts)
    return [host for host in dict.fromkeys(named) if host in used]


def _head(line: Line, glance: Glance, plan: Plan, column: int, host: str, room: int) -> None:
    """`n1 head`, `n4 ▲ STALE 14s`, `n2 ▲ LEFT OUT`."""
    view = glance.host(host)
    said = ""
    if host in plan.left_out:
        said = "LEFT OUT"
    elif view is not None and view.memory.current(glance.now) is None:
        age = view.memory.age(glance.now)
        said = f"STALE {fmt.age(age)}" if age is not None else "NOT READ"
    after = line.put(column, host, DIM.on("surface"), to=column + 13) + 1
    if said:
        ink = ink_of(Severity.LOOK).on("surface")
        sign = glance.signs.of(Severity.LOOK)
        after = line.put(after, sign, ink._replace(bold=False)) + (1 if sign else 0)
        line.put(after, said, ink, to=room)
    elif host == plan.head and len(glance.lane.lane.rank_hosts) > 1:
        line.put(after, "head", DIM.on("surface"), to=room)


def _stage_line(
    glance: Glance, plan: Plan, number: int, part: Part, hosts: list[tuple[int, str]], width: int, room: int
) -> Line:
    line = Line(width, glance.signs, SURFACE)
    line.put(_STAGE_AT, f"{number} {name_of(part)}", TEXT.on("surface"), to=_HOSTS_AT - 1)
    edges = [*(column for column, _ in hosts[1:]), room + 1]
    for (column, host), edge in zip(hosts, edges, strict=True):
        text, ink = _cell(plan, part, host)
        line.put(column, whole_words(text, edge - 1 - column), ink.on("surface"), to=edge - 1)
    return line


def _cell(plan: Plan, part: Part, host: str) -> tuple[str, Ink]:
    """What one host does in one stage: how long, else in words; the slowest one stands out."""
    if host in plan.left_out:
        return "left out", DIM
    own = [step for step in part.steps if step.host == host]
    if not own:
        return ("with head", DIM) if part.stage is Stage.BOOT and len({s.host for s in part.steps}) == 1 else ("", DIM)
    known = [step.usual for step in own if not step.optional]
    if any(usual is None for usual in known):
        return "time not known", TEXT
    seconds = sum(usual for usual in known if usual is not None)
    if seconds >= 1.0:
        longest = part.seconds is not None and seconds >= part.seconds - 0.5
        return fmt.duration(seconds), BRIGHT if longest else TEXT
    return _short(own[0].title, host), DIM


def whole_words(text: str, width: int) -> str:
    """As many whole words as have room, without a loose one at the end: `keep logs` of `keep logs, inspect and...`."""
    if measure(text) <= width:
        return text
    kept: list[str] = []
    for word in text.split():
        if measure(" ".join([*kept, word])) > width:
            break
        kept.append(word)
    while len(kept) > 1 and kept[-1].lower() in _LOOSE:
        kept.pop()
    return " ".join(kept).rstrip(",:;") or text


_LOOSE = ("a", "an", "and", "at", "by", "for", "in", "of", "on", "or", "that", "the", "to", "until", "with")


def _short(title: str, host: str) -> str:
    """A step's title without the host that stands above it."""
    words = title.removesuffix(f" on {host}").removesuffix(f" of {host}").removesuffix(f" {host}")
    return words or title


# --- the chart --------------------------------------------------------------------------------------------------------


def _chart(lines: list[Line], glance: Glance, found: tuple[Part, ...], total: float, left: int, right: int) -> None:
    """A row a stage, from its begin to its end; the ends of the longest one and of all are written above."""
    size = right - left
    if size < 12:
        return
    head, plain = lines[0], glance.ascii or glance.no_colour
    head.put(left, "0", DIM.on("surface"))
    edge = head.right(right, fmt.duration(total), DIM.on("surface"))
    for part in sorted(found, key=lambda part: -(part.seconds or 0.0)):
        text, at = fmt.duration(part.ends), left + round((part.ends or 0.0) / total * size)
        if part.ends is not None and left + 2 <= at and at + len(text) + 1 < edge:
            head.put(at, text, DIM.on("surface"))
            break
    for line, part in zip(lines[1:], found, strict=False):
        if part.begins is not None and part.ends is not None:
            line.spans(left, span_bar(part.begins / total, part.ends / total, size, plain=plain))


def span_bar(start: float, end: float, width: int, *, plain: bool) -> Row:
    """A bar from `start` to `end`, fractions of the width; at least an eighth of a cell, so that each stage is seen."""
    if plain:
        first = min(width - 1, int(start * width))
        last = max(first + 1, min(width, round(end * width)))
        return (Span("." * first + "#" * (last - first) + "." * (width - last), Ink("text", "surface")),)
    first = min(8 * width - 1, max(0, round(start * width * 8)))
    last = min(8 * width, max(first + 1, round(end * width * 8)))
    row: list[Span] = []
    for x in range(width):
        char, ink = _eighth(min(8, max(0, first - 8 * x)), min(8, max(0, last - 8 * x)))
        if row and row[-1].ink == ink:
            row[-1] = Span(row[-1].text + char, ink)
        else:
            row.append(Span(char, ink))
    return tuple(row)


def _eighth(first: int, last: int) -> tuple[str, Ink]:
    """One cell filled from `first` to `last` eighths. A left edge is the same glyph with its colours swapped."""
    if last <= first:
        return " ", Ink("text", "track")
    if first == 0:
        return (" ", Ink("text", "fill")) if last == 8 else (EIGHTHS[last], Ink("fill", "track"))
    if last < 8:  # both edges in one cell cannot be drawn: as wide as it is, from the cell's left
        return EIGHTHS[last - first], Ink("fill", "track")
    return EIGHTHS[first], Ink("track", "fill")
