"""What the strip says of a plan in words: from, to, what it cuts, what is unusual, when it is done. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from console.actions.plan import Plan, Verb
from console.actions.strip import By
from console.execution.policy import Decision
from console.snapshot import Severity
from widgets import format as fmt
from widgets.cells import measure
from widgets.glance import Glance, StripGlance
from widgets.ink import WORDS
from widgets.sheet import wrap
from widgets.stripsteps import long_parts, serving_after

_SERVES = (Verb.RELAUNCH, Verb.ROLLBACK)


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of what the strip says: `ends  ▲ STEP 3  stop on n1 goes on as step 1`."""

    label: str
    strong: str
    rest: str = ""
    severity: Severity = Severity.NORMAL


def facts(glance: Glance, strip: StripGlance) -> tuple[list[Fact], list[Fact]]:
    """Left: from, to, cuts and what is asked for besides. Right: warnings, what it ends, when it is done."""
    plan = strip.plan
    left = [Fact(label, text) for label, text in strip.told]
    right = []
    if plan is not None:
        to = Fact("to", plan.target or fmt.NONE, _by_what(glance, plan))
        what, _, whose = plan.cuts.partition(_USERS)
        cuts = Fact("cuts", what, f"{_USERS[2:]}{whose}" if whose else "")
        cuts = cuts if what else Fact("cuts", "nothing,", _state_since(glance))
        # A plan that is only frozen cuts nothing now: what is told of it comes first.
        left = [*left, to] if left else [Fact("from", "", plan.origin or fmt.NONE), to, cuts, *_owed(plan)]
        notes = [Fact("note", "", words) for words in plan.notes if words != to.rest]
        right = [*_warnings(plan, strip.decision), *notes, _later(plan) if strip.told else _when(glance, strip, plan)]
    right += [] if plan is not None else [Fact("warning", "", words, Severity.LOOK) for words in strip.warnings]
    return left, right


_USERS = "; used by "
"""What parts requests from consumers in `Plan.cuts`."""
_BESIDE = 30
"""Cells of a note that may stand beside the target."""


def _by_what(glance: Glance, plan: Plan) -> str:
    """Beside the target: the revision that a relaunch would start, by the site file, or the plan's first note."""
    site = glance.lane.site.value if glance.lane.site is not None else None
    if plan.verb is Verb.RELAUNCH and site is not None and site.revision:
        return f"{fmt.revision(site.revision)} by the site file"
    return plan.notes[0] if plan.notes and measure(plan.notes[0]) <= _BESIDE else ""


def _owed(plan: Plan) -> list[Fact]:
    """A watchdog that stays off afterwards."""
    return [Fact("owes", plan.owes, "stays off until D arms it again")] if plan.owes and not plan.pays else []


def _state_since(glance: Glance) -> str:
    """`down for 0m41s`: why there is nothing to cut."""
    lasted = fmt.duration(glance.now - glance.lane.state_since)
    return f"{glance.lane.verdict.word.lower()} for {lasted}"


def _warnings(plan: Plan, decision: Decision | None) -> list[Fact]:
    """Everything that is out of the ordinary, the weightiest first; each names its host."""
    found: list[Fact] = []
    if decision is not None and decision.break_glass:
        found.append(Fact("by", "BREAK-GLASS", "UNLEDGERED until it is written up", Severity.ACT))
    if decision is not None and decision.takes_over:
        found.append(Fact("and", "TAKES OVER", "the lane from its holder", Severity.LOOK))
    for words in plan.ends:
        what, _, rest = words.partition(" ")
        found.append(Fact("ends" if words is plan.ends[0] else "and", what.upper(), rest, Severity.LOOK))
    found += [Fact("without", "LEFT OUT", f"{host}: out of reach", Severity.LOOK) for host in plan.left_out]
    said = decision.warnings if decision is not None else ()
    found += [Fact("warning", "", words, Severity.LOOK) for words in (*said, *plan.warnings)]
    untold = [words for words in plan.unknown if not any(words in told for told in said)]
    found += [Fact("unknown", "UNKNOWN", words, Severity.LOOK) for words in untold]
    return found


def goes_at(glance: Glance, strip: StripGlance) -> float:
    """Unix seconds at which it goes: at the end of a countdown, else now. Strip and NEXT row count from it alike."""
    return glance.wall + (strip.left if strip.by is By.COUNTDOWN else 0.0)


def _when(glance: Glance, strip: StripGlance, plan: Plan) -> Fact:
    """When the lane serves again, else how long it takes."""
    serves = serving_after(plan)
    if plan.verb in _SERVES and serves is not None:
        at = fmt.time_of_day(goes_at(glance, strip) + serves)
        return Fact("serving", f"≈{at},", f"in {fmt.duration(serves)}: {long_parts(plan, serves)}")
    total = plan.total
    if total is None:
        return Fact("takes", "", "how long is not known")
    return Fact("takes", f"≈{fmt.duration(total)}", long_parts(plan))


def _later(plan: Plan) -> Fact:
    """How long it would take, of a plan that nothing carries out now."""
    serves = serving_after(plan)
    took = f"≈{fmt.duration(serves)}" if serves is not None else ""
    return Fact("takes", took, "from B until it serves" if took else "how long is not known")


def on_one_row(found: list[Fact], size: int) -> list[Fact]:
    """`to  c0ffee1  from df42c10`: where it is narrow, where the lane goes and where it stands share a row."""
    origin = next((fact for fact in found if fact.label == "from" and fact.rest), None)
    to = next((fact for fact in found if fact.label == "to"), None)
    if origin is None or to is None or not to.strong:
        return found
    whole = ", ".join(text for text in (f"from {origin.rest}", to.rest) if text)
    both = replace(to, rest=whole if measure(f"{to.strong}  {whole}") <= size else f"from {origin.rest}")
    return [both if fact is to else fact for fact in found if fact is not origin]


def wrapped(found: list[Fact], size: int) -> list[Fact]:
    """Each fact on as many rows as its words need; a row that goes on has no label."""
    rows: list[Fact] = []
    for fact in found:
        lead = measure(fact.strong or (WORDS[fact.severity])) + 3
        pieces = wrap(fact.rest, max(8, size - lead), max(8, size)) or [""]
        rows.append(replace(fact, rest=pieces[0]))
        rows += [Fact("", "", piece) for piece in pieces[1:]]
    return rows


def fitted(found: list[Fact], size: int, room: int) -> list[Fact]:
    """On as many rows as there are: warnings get the rows that are over first, then the others in their order."""
    spare = room - len(found)
    more: dict[int, list[Fact]] = {}
    for at in sorted(range(len(found)), key=lambda at: found[at].severity is Severity.NORMAL):
        rows = wrapped([found[at]], size)
        if 1 < len(rows) <= spare + 1:
            more[at], spare = rows, spare - len(rows) + 1
    return [row for at, fact in enumerate(found) for row in more.get(at, [fact])]


def kept(found: list[Fact], room: int) -> list[Fact]:
    """As many as there is room for: the last one (when it is done) stays, those before it are counted."""
    if len(found) <= room or room <= 0:
        return found[: max(0, room)]
    over = len(found) - room + 1
    if room < 3 or found[-1].severity is not Severity.NORMAL:
        return found[:room]
    left = found[room - 2 : -1]
    loud = any(fact.severity is not Severity.NORMAL for fact in left)
    more = Fact("and", f"{over} MORE", "Esc, then d shows all", Severity.LOOK if loud else Severity.NORMAL)
    return [*found[: room - 2], more, found[-1]]
