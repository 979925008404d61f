"""A switch window as rules and as JSON: opened calmly, with the way back frozen; overdue, never closed by itself. Pure.

The way back is frozen as a plan, and apart from it as a target: what has to stay as it is for going back to be possible
(container and image ids, bind sources, old snapshot and rows), told by the plan's facts whose names begin with `back `.
The steps may come out anew after every step of a switch; the target must not. Nothing of the live engine is in it.
Times are Unix seconds by the head's clock.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from console import format as fmt
from console.actions.plan import Plan, Probe, Step, Verb
from console.execution.policy import SHORTEST_REASON, Refused
from console.readings.acting_types import Debt
from console.sanitize import line, word

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SHORTEST_S, LONGEST_S = 300.0, 86_400.0
"""A deadline lies this far ahead: 5 minutes to 24 hours."""
TARGET = "back "
"""How the names of the facts begin that make the rollback target."""
MOST_BYTES = 4 << 20
"""Of a window's JSON."""
VERSION = 1
LAST_TIME = 253_402_300_000.0
_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-window-[0-9a-f]{6}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_STEP = re.compile(r"[a-z0-9][a-z0-9.-]{0,127}")


class Due(StrEnum):
    """Where a window stands against its deadline."""

    OPEN = "open"
    OVERDUE = "OVERDUE"


class WindowUnreadable(ValueError):
    """What should be a window's JSON is none; safe words."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What the operator gave to open a window."""

    typed: str
    """As the lane's name."""
    reason: str
    seconds: float
    """From now to the deadline."""
    without_way_back: bool = False
    """They were told that there is no way back, and open it all the same."""


@dataclass(frozen=True, slots=True)
class Window:
    """An open window."""

    id: str
    lane: str
    operator: str
    reason: str
    opened: float
    deadline: float
    target: str
    """What `B` leads back to, in words; '' without a way back."""
    target_facts: tuple[tuple[str, str], ...]
    target_hash: str
    """12 hex digits over the target's facts; '' without a way back."""
    plan_id: str
    epoch: int
    plan: Plan
    """The frozen way back; without steps, and refused, where there was none."""

    def due(self, now: float) -> Due:
        """Nothing but the deadline counts; who closes it is a person."""
        return Due.OVERDUE if now > self.deadline else Due.OPEN

    def overdue(self, now: float) -> float:
        """Seconds past the deadline; 0 before it."""
        return max(0.0, now - self.deadline)


@dataclass(frozen=True, slots=True)
class Closing:
    """What the operator gave to close a window, and how the lane stands."""

    operator: str
    holds: bool
    """The lane's lease is this console's."""
    typed: str = ""
    """As the lane's name; wanted where something is owed."""
    debts: tuple[Debt, ...] = ()
    running: str = ""
    """The operation that runs, in words."""


# Rules


def window_id(now: float) -> str:
    """`20261130T215510Z-window-3f9ac1`."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}-window-{secrets.token_hex(3)}"


def open_window(asked: Opening, plan: Plan, *, operator: str, epoch: int, now: float) -> Window:
    """The window to write on the head, under a lease of this `epoch`; `plan` is the way back. Raises Refused."""
    if asked.typed != plan.lane:
        raise Refused(f"{word(asked.typed, 80) or 'nothing'} was typed, the lane is {plan.lane}")
    if len(word(asked.reason, 400)) < SHORTEST_REASON:
        raise Refused(f"a window needs a reason of at least {SHORTEST_REASON} characters")
    if not SHORTEST_S <= asked.seconds <= LONGEST_S:  # also refuses NaN
        raise Refused(f"a window's deadline lies {SHORTEST_S / 60:g} minutes to {LONGEST_S / 3600:g} hours ahead")
    if plan.verb is not Verb.ROLLBACK:
        raise Refused(f"a window freezes the way back, not a plan to {plan.verb}")
    facts = target_facts(plan)
    if plan.refused and not asked.without_way_back:
        raise Refused(f"there is no way back: {plan.refused}")
    window = Window(
        id=window_id(now),
        lane=plan.lane,
        operator=word(operator),
        reason=word(asked.reason, 400),
        opened=now,
        deadline=now + asked.seconds,
        target="" if plan.refused else line(plan.target, 400),
        target_facts=facts,
        target_hash=target_hash(facts),
        plan_id=plan.id,
        epoch=epoch,
        plan=plan,
    )
    try:
        return from_json(to_json(window))
    except ValueError as error:  # what could not be read again would leave a window that nobody can close
        raise Refused(f"this window cannot be written down: {error}") from error


def target_facts(plan: Plan) -> tuple[tuple[str, str], ...]:
    """What of a plan's facts makes the rollback target: none of the live engine."""
    return () if plan.refused else tuple(sorted(fact for fact in plan.facts if fact[0].startswith(TARGET)))


def target_hash(facts: Sequence[tuple[str, str]]) -> str:
    """12 hex digits; '' where nothing is frozen."""
    return hashlib.sha256(json.dumps(sorted(facts)).encode()).hexdigest()[:12] if facts else ""


def target_moved(window: Window, plan: Plan) -> tuple[str, ...]:
    """What of the frozen target is another thing now, or gone, in words; `plan` is the way back as it comes out now.

    Nothing where the live engine alone differs, or the steps.
    """
    if plan.refused:
        return (line(plan.refused, 400),) if window.target_facts else ()
    now = dict(target_facts(plan))
    found = []
    for name, value in window.target_facts:
        what = line(name.removeprefix(TARGET), 200)
        if name not in now:
            found.append(f"{what}: gone; it was {line(value, 200)}")
        elif now[name] != value:
            found.append(f"{what}: {line(now[name], 200)}; frozen was {line(value, 200)}")
    return tuple(found)


def handed_over(window: Window, operator: str, epoch: int) -> Window:
    """The same window under another operator's newer lease. Raises Refused."""
    if epoch <= window.epoch:
        raise Refused(f"the window is held under epoch {window.epoch}: an older lease cannot take it over")
    return replace(window, operator=word(operator), epoch=epoch)


def close_window(window: Window, closing: Closing, now: float) -> str:
    """One sentence for the ledger that says how it was closed, debts by name. Raises Refused."""
    if not closing.holds:
        raise Refused(f"{window.lane} is not held by this console: take it over, then close its window")
    if closing.running:
        raise Refused(f"{closing.running} runs: wait for it or end it, then close the window")
    owed = "; ".join(_owed(debt, now) for debt in closing.debts)
    if closing.debts and closing.typed != window.lane:
        given = f"{word(closing.typed, 80)} was typed" if closing.typed else "nothing was typed"
        raise Refused(f"still owed: {owed}. To close with that open, type the lane's name ({given})")
    late = window.overdue(now)
    parts = [
        f"window {window.id} closed by {word(closing.operator)} after {fmt.duration(now - window.opened)}",
        f"{fmt.duration(late)} past its deadline" if late else "within its deadline",
        f"still owed: {owed}" if owed else "nothing owed",
    ]
    return "; ".join(parts)


def _owed(debt: Debt, now: float) -> str:
    late = now - debt.deadline
    due = f"overdue by {fmt.duration(late)}" if late > 0 else f"due in {fmt.duration(-late)}"
    return f"{word(debt.what, 60)} off for {fmt.duration(now - debt.since)} ({word(debt.operator, 60)}), {due}"


# As JSON


def to_json(window: Window) -> str:
    """The text of `window.json`; the plan stands last, so that a reader who is cut short has the rest."""
    document: dict[str, Any] = {"v": VERSION}
    for name in Window.__slots__:
        document[name] = getattr(window, name)
    document["plan"] = asdict(window.plan)
    return json.dumps(document, allow_nan=False) + "\n"


def from_json(text: str | bytes) -> Window:
    """The window that a text holds. Raises WindowUnreadable, and nothing else, for everything that is none."""
    if len(text) > MOST_BYTES:
        raise WindowUnreadable(f"larger than {MOST_BYTES >> 20} MiB")
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise WindowUnreadable("no JSON object") from None
    if not isinstance(document, dict):
        raise WindowUnreadable("no JSON object")
    if document.pop("v", None) != VERSION:
        raise WindowUnreadable(f"not of version {VERSION}: another laneswap opened it")
    window = _validated(document)
    for problem in _inconsistent(window):
        raise WindowUnreadable(problem)
    return window


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


@cache
def _adapter() -> TypeAdapter[Window]:
    from pydantic import TypeAdapter

    return TypeAdapter(Window)


def _validated(document: dict[str, Any]) -> Window:
    from pydantic import ValidationError

    if unknown := sorted(set(document) - set(Window.__slots__)):
        raise WindowUnreadable(f"{word(unknown[0], 60)}: unknown key")
    try:
        return _adapter().validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(word(str(part), 60) for part in first["loc"])
        raise WindowUnreadable(line(f"{where}: {first['msg']}", 300)) from None
    except (ValueError, RecursionError):
        raise WindowUnreadable("no window") from None


def _inconsistent(window: Window) -> Iterator[str]:
    """What cannot be so in a file that laneswap wrote and nobody changed."""
    if _ID.fullmatch(window.id) is None:
        yield "id: no window's"
    if _NAME.fullmatch(window.lane) is None:
        yield "lane: no name"
    times = (window.opened, window.deadline)
    if not all(math.isfinite(time) and 0 < time < LAST_TIME for time in times):
        yield "opened, deadline: no times"
    if not SHORTEST_S <= window.deadline - window.opened <= LONGEST_S + 1:
        yield "deadline: not 5 minutes to 24 hours behind the opening"
    if not 0 <= window.epoch < 2**53:
        yield "epoch: no number of a lease"
    plan = window.plan
    if plan.verb is not Verb.ROLLBACK or plan.lane != window.lane:
        yield "plan: not a way back of this lane"
    if plan.id != window.plan_id:
        yield f"plan: it is {plan.id}, the window froze another: the file was changed"
    if window.target_facts != target_facts(plan) or window.target_hash != target_hash(window.target_facts):
        yield "target_facts: not those that were frozen: the file was changed"
    yield from _unsafe_step(plan)
    if any(line(text, len(text) + 1) != text for text in _shown(window)):
        yield "control or invisible characters in its words"


def _unsafe_step(plan: Plan) -> Iterator[str]:
    steps = (*plan.steps, *plan.rescue)
    ids = [step.id for step in steps]
    if any(_STEP.fullmatch(name) is None for name in ids) or len(set(ids)) != len(ids):
        yield "plan: a step's name is none, or stands there twice"
    numbers = [step.limit for step in steps] + [step.usual for step in steps if step.usual is not None]
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        yield "plan: a step's seconds are none"


def _shown(window: Window) -> Iterator[str]:
    """Every text that people are shown of it; what is sent to hosts may have line ends."""
    plan = window.plan
    yield from (window.operator, window.reason, window.target)
    yield from (text for fact in plan.facts for text in fact)
    yield from (plan.fleet, plan.lane, plan.head, plan.title, plan.origin, plan.target, plan.cuts, plan.refused)
    yield from (plan.owes, plan.pays, *plan.ends, *plan.warnings, *plan.unknown, *plan.left_out, *plan.notes)
    for step in (*plan.steps, *plan.rescue):
        yield from _of_step(step)


def _of_step(step: Step) -> Iterator[str]:
    yield from (step.title, step.host, step.basis, step.undo, step.together)
    probes: tuple[Probe, ...] = (*step.before, *step.already, *step.after, *step.watch)
    yield from (text for probe in probes for text in (probe.host, probe.words))
