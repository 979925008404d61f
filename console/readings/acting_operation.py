"""One operation of a lane out of its plan and its journal: which step runs, what became of it, what is next. Pure.

A journal is appended to a line at a time: its last line may be torn, and of a long one only the end is read. An
operation is RUNNING only while something carries it on; one that nobody carries on and that never said how it ended is
HALF DONE or LOST, and says what is next.
"""

from __future__ import annotations

import calendar
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from console.readings.acting import JOURNAL, PLAN, Pulse, prefix_object, text_of, time_of, whole_of
from console.readings.acting_types import Lease, Operation, OperationState, StepState, StepView
from console.sanitize import word

FRESH_S = 10.0
"""Seconds since the newest line of a journal within which somebody is writing it, whatever else is known."""
STARTING_S = 30.0
"""Seconds in which a runner that was not seen yet may still be on its way to its first line: on a busy head a start
takes long, and LOST would be said of what is just beginning."""
BOOT_SLACK_S = 5.0
"""Seconds by which a host's own word on its start may be off: its clock was set since."""
MOST_STEPS = 200
MOST_LINES = 20_000
_FINE = (StepState.DONE, StepState.SATISFIED)
_STEP_STATES = {state.value: state for state in StepState}
_STATES = {state.value: state for state in OperationState if state is not OperationState.RUNNING}
_STEP_ID = re.compile(r"[a-z0-9][a-z0-9.-]{0,100}")


@dataclass(slots=True)
class _Told:
    """What a journal says of one step."""

    state: StepState = StepState.WAITING
    began: float | None = None
    ended: float | None = None
    words: str = ""
    waits_for: str = ""


@dataclass(slots=True)
class _Journal:
    """What a journal says."""

    steps: dict[str, _Told] = field(default_factory=dict)
    rescue: dict[str, _Told] = field(default_factory=dict)
    began: float | None = None
    operator: str = ""
    runs_on: str = ""
    epoch: int | None = None
    took_over: str = ""
    end: tuple[OperationState, float | None, str] | None = None
    spoke: float | None = None
    damaged: int = 0


def begun_at(name: str) -> float:
    """Unix seconds that an operation's name begins with; 0 for none."""
    try:
        return float(calendar.timegm(time.strptime(name.partition("-")[0], "%Y%m%dT%H%M%SZ")))
    except ValueError:
        return 0.0


def read_operation(
    name: str, lane: str, plan: str | None, journal: str | None, whole: bool, troubles: list[str]
) -> Operation:
    """The operation `name` by its files; `whole` is False where `journal` is the end of a longer one. Never raises.

    RUNNING where the journal does not say how it ended: whether it still runs is for `judged_operation` to tell.
    """
    found, entire = prefix_object(plan) if plan is not None else ({}, False)
    outline = found.get("outline")
    told_by = outline if isinstance(outline, dict) else found
    steps = _steps(told_by.get("steps"))
    cut = not entire and told_by is found
    if cut and plan is not None:
        troubles.append(f"{PLAN} of {name} is damaged or too long: {len(steps)} steps of it were read")
    ids = {step.id for step in steps}
    told = _journal(journal or "", whole)
    if told.damaged:
        troubles.append(f"{JOURNAL} of {name}: {told.damaged} damaged line{'s' if told.damaged > 1 else ''}")
    operation = Operation(
        id=name,
        verb=text_of(found.get("verb"), 40) or name.split("-")[1],
        lane=text_of(found.get("lane"), 120) or lane,
        operator=told.operator or text_of(found.get("operator"), 80),
        plan_id=text_of(found.get("plan_id"), 40),
        title=text_of(found.get("title")) or name.split("-")[1],
        state=OperationState.RUNNING,
        began=told.began or time_of(found.get("created")) or begun_at(name),
        ended=None,
        steps=_told(steps, told.steps, whole),
        origin=text_of(found.get("origin"), 120),
        target=text_of(found.get("target"), 120),
        runs_on=told.runs_on or text_of(found.get("runs_on"), 20) or "head",
        epoch=told.epoch if told.epoch is not None else whole_of(found.get("epoch")) or 0,
        ledgered=found.get("ledgered") is not False,
        head=text_of(found.get("head"), 120),
        rescue=tuple(one for one in _told(_steps(told_by.get("rescue")), told.rescue, True) if one.began or one.ended),
        took_over=told.took_over,
        spoke=told.spoke,
        whole=bool(steps) and not cut and _tells(told, ids, whole),
    )
    if told.end is None:
        return operation
    state, at, words = told.end
    steps = tuple(_never_begun(step) for step in operation.steps)
    return replace(operation, state=state, ended=at, steps=steps, words=words)


def _tells(told: _Journal, steps: Set[str], whole: bool) -> bool:
    """Whether a journal leaves no doubt of what was begun: it is whole, or what is left of it speaks of the steps."""
    if told.damaged:
        return steps <= told.steps.keys()
    return whole or not steps.isdisjoint(told.steps)


# --- the plan --------------------------------------------------------------------------------------------------------


def _steps(raw: Any) -> tuple[StepView, ...]:
    return tuple(_planned(raw)) if isinstance(raw, list) else ()


def _planned(raw: Sequence[Any]) -> Iterator[StepView]:
    seen: set[str] = set()
    for item in raw[:MOST_STEPS]:
        name = item.get("id") if isinstance(item, dict) else None
        if not isinstance(name, str) or _STEP_ID.fullmatch(name) is None or name in seen:
            continue
        seen.add(name)
        yield StepView(
            id=name,
            stage=text_of(item.get("stage"), 40),
            title=text_of(item.get("title"), 120) or name,
            host=text_of(item.get("host"), 120),
            state=StepState.WAITING,
            usual=time_of(item.get("usual")),
            limit=time_of(item.get("limit")) or 0.0,
            together=text_of(item.get("together"), 40),
            detached=item.get("detached") is True,
            optional=item.get("optional") is True,
            acts=item.get("acts") is not False,
        )


def _told(steps: Sequence[StepView], told: Mapping[str, _Told], whole: bool) -> tuple[StepView, ...]:
    """The steps with what the journal says. Of a journal that is cut, what came before its oldest line went well: no
    step begins before those ahead of it are done."""
    begun = [at for at, step in enumerate(steps) if step.id in told]
    first = begun[0] if begun and not whole else 0
    views = []
    for at, step in enumerate(steps):
        said = told.get(step.id)
        if said is not None:
            words, waits = said.words, said.waits_for if said.state is StepState.RUNNING else ""
            step = replace(step, state=said.state, began=said.began, ended=said.ended, words=words, waits_for=waits)
        elif at < first:
            step = replace(step, state=StepState.DONE, words="told in a part of the journal that is not read")
        views.append(step)
    return tuple(views)


# --- the journal -----------------------------------------------------------------------------------------------------


def _journal(text: str, whole: bool) -> _Journal:
    told = _Journal()
    rows = text.split("\n")
    torn = rows.pop()  # without its line break it was never finished; '' where the last line is whole
    if not whole and rows:
        del rows[0]  # the end of a line whose beginning was not read
    for row in [*rows[-MOST_LINES:], *([torn] if torn.endswith("}") else [])]:
        if not row.strip():
            continue
        try:
            found = json.loads(row)
        except (ValueError, RecursionError):
            told.damaged += row is not torn
            continue
        if isinstance(found, dict):
            _take(told, found)
        else:
            told.damaged += 1
    return told


def _take(told: _Journal, found: Mapping[str, Any]) -> None:
    """One line; a kind that is not known says nothing."""
    at = time_of(found.get("t"))
    told.spoke = at if at is not None else told.spoke
    kind, name = found.get("kind"), found.get("id")
    if kind == "begin":
        told.began, told.end = told.began or at, None
        told.operator = text_of(found.get("operator"), 80) or told.operator
        told.runs_on = text_of(found.get("runs_on"), 20) or told.runs_on
        told.epoch = whole_of(found.get("epoch")) if whole_of(found.get("epoch")) is not None else told.epoch
    elif kind == "takeover":
        told.end = None
        told.took_over = f"{text_of(found.get('operator'), 80)} from {text_of(found.get('from'), 80)}"
    elif kind in ("step", "rescue") and isinstance(name, str):
        _take_step(told.steps if kind == "step" else told.rescue, name, found, at)
    elif kind == "seen" and isinstance(name, str) and name in told.steps:
        told.steps[name].waits_for = text_of(found.get("words"))
    elif kind == "end":
        state = _STATES.get(text_of(found.get("state"), 40), OperationState.UNKNOWN)
        told.end = (state, at, text_of(found.get("words"), 300))


def _take_step(into: dict[str, _Told], name: str, found: Mapping[str, Any], at: float | None) -> None:
    state = _STEP_STATES.get(text_of(found.get("state"), 40), StepState.UNKNOWN)
    step = into.setdefault(name, _Told())
    step.state, step.words = state, text_of(found.get("words"), 300)
    if state is StepState.RUNNING:
        step.began, step.ended = step.began if step.began is not None and step.ended is None else at, None
    else:
        step.ended, step.waits_for = at, ""
        if step.began is None and state is not StepState.SKIPPED:
            step.began = at


# --- the verdict -----------------------------------------------------------------------------------------------------


def judged_operation(
    operation: Operation, clock: float, lease: Lease | None, pulse: Pulse, *, told: bool = True
) -> Operation:
    """One that never said how it ended, at `clock`: RUNNING, HALF DONE, LOST, or not to be told. `told`: the lease says
    who holds the lane."""
    alive = _alive(operation, clock, lease, pulse, told=told)
    if alive:
        return operation
    if alive is None:
        words = f"whether {_carrier(operation)} still carries it on cannot be seen"
        return replace(operation, state=OperationState.UNKNOWN, words=words)
    return _abandoned(operation, pulse, lease)


def _never_begun(step: StepView) -> StepView:
    if step.state is StepState.WAITING:
        return replace(step, state=StepState.SKIPPED)
    return _unseen(step)


def _unseen(step: StepView) -> StepView:
    """A step that nobody follows any more."""
    if step.state is not StepState.RUNNING:
        return step
    words = f"its outcome was not seen; last: {step.waits_for or step.words}" if step.waits_for or step.words else ""
    return replace(step, state=StepState.UNKNOWN, words=words or "its outcome was not seen", waits_for="")


def _carrier(operation: Operation) -> str:
    return "its console" if operation.runs_on == "console" else "its runner"


def _restarted(operation: Operation, pulse: Pulse) -> bool:
    """Whether the head was started anew after the operation had begun to speak."""
    newest = operation.spoke if operation.spoke is not None else operation.began
    return pulse.booted is not None and pulse.booted > newest + BOOT_SLACK_S


def _alive(operation: Operation, clock: float, lease: Lease | None, pulse: Pulse, *, told: bool) -> bool | None:
    """Whether somebody carries it on; None where nothing tells."""
    if operation.runs_on == "console":  # a console that lives renews its lease, wherever it runs
        if lease is not None and lease.epoch == operation.epoch and not lease.expired(clock):
            return True
        return (operation.spoke is not None and 0 <= clock - operation.spoke <= FRESH_S) or (False if told else None)
    if _restarted(operation, pulse):
        return False
    if pulse.alive:
        return True
    spoke = operation.spoke if operation.spoke is not None else operation.began
    if 0 <= clock - spoke <= FRESH_S:
        return True
    if operation.spoke is None and 0 <= clock - spoke <= STARTING_S:
        return None
    held = not told or (lease is not None and not lease.expired(clock))
    if not operation.whole and operation.spoke is None and held:
        return None  # nothing says where it runs: it may be the console that holds the lease
    return pulse.alive


def _gone(operation: Operation, lease: Lease | None, *, restarted: bool) -> str:
    """Why nobody carries it on."""
    if restarted:
        return f"{operation.head or 'the head'} was restarted"
    if operation.runs_on == "console" and lease is not None and lease.epoch > operation.epoch > 0:
        return f"its console is fenced off: {lease.operator} took the lane over"
    return f"{_carrier(operation)} is gone"


def _abandoned(operation: Operation, pulse: Pulse, lease: Lease | None) -> Operation:
    """Nobody carries it on, and it never said how it ended."""
    steps = tuple(_unseen(step) for step in operation.steps)
    left = _left(steps)
    restarted = _restarted(operation, pulse)
    gone = _gone(operation, lease, restarted=restarted)
    if steps and not left and operation.whole:
        words = f"every step is done; {gone} before it said so"
        return replace(operation, state=OperationState.DONE, steps=steps, ended=operation.spoke, words=words)
    begun = any(step.state is not StepState.WAITING for step in steps if not step.optional)
    words = f"{half_done_words(steps)} ({gone})" if begun else f"{gone} before anything was done"
    if not begun and not operation.whole:
        words = f"{gone}, and its files do not tell what was done"
    lost = restarted or not begun
    state = OperationState.LOST if lost else OperationState.HALF_DONE
    return replace(operation, state=state, steps=steps, words=f"LOST: {words}" if lost else words)


def _left(steps: Sequence[StepView]) -> list[StepView]:
    """What is still to be done; evidence that could not be saved is not done again."""
    return [step for step in steps if step.state not in _FINE and not step.optional]


def half_done_words(steps: Sequence[StepView]) -> str:
    """`HALF DONE after stop rank 1, next: start rank 0`: the same on every console."""
    done = [step for step in steps if step.state in _FINE]
    after = f"HALF DONE after {done[-1].title}" if done else "HALF DONE"
    following = next(iter(_left(steps)), None)
    if following is None:
        return after
    seen = "" if following.state in (StepState.WAITING, StepState.SKIPPED) else f" ({following.state})"
    host = f" on {following.host}" if following.host and following.host not in following.title else ""
    return word(f"{after}, next: {following.title}{host}{seen}", 300)
