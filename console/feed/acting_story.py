"""What operators did on a lane, as events, out of what its head keeps. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from console import format as fmt
from console.readings.acting_types import Acting, Operation, OperationState, StepState, StepView, WindowState
from console.snapshot import Event, Severity

_ENDS = {
    OperationState.DONE: Severity.INFO,
    OperationState.STOPPED: Severity.LOOK,
    OperationState.FAILED: Severity.LOOK,
    OperationState.UNKNOWN: Severity.LOOK,
}
_FINE = (StepState.DONE, StepState.SATISFIED, StepState.SKIPPED)


def acting_changes(lane: str, before: Acting | None, after: Acting, ahead: float) -> Iterator[Event]:
    """What was done between two readings; `ahead`: the head's clock, seconds. Nothing of a first reading."""
    if before is None:
        return
    yield from _window(lane, before.window, after.window, after.clock - ahead, ahead)
    yield from _lease(lane, before, after, ahead)
    yield from _debts(lane, before, after, ahead)
    yield from _operation(lane, before.operation, after.operation, ahead)


def _window(
    lane: str, before: WindowState | None, after: WindowState | None, now: float, ahead: float
) -> Iterator[Event]:
    if before is not None and (after is None or after.id != before.id):
        # who closed it stands in the ledger; whoever opened it need not be the one
        who = f", opened by {before.operator}" if before.operator else ""
        yield Event(now, lane, f"window closed{who}: {before.reason}", Severity.INFO)
    if after is None:
        return
    if before is None or before.id != after.id:
        lasts = fmt.duration(after.deadline - after.opened)
        text = f"window on {lane} opened, {lasts}: {after.reason}; back to {_short(after.target)}"
        yield Event(after.opened - ahead, after.operator or lane, text, Severity.INFO)
    elif before.deadline != after.deadline:
        text = f"window on {lane} now until {fmt.clock(after.deadline - ahead)}"
        yield Event(now, after.operator or lane, text, Severity.INFO)


def _short(target: str) -> str:
    return fmt.revision(target) if len(target) == 40 else target or "nothing"


def _lease(lane: str, before: Acting, after: Acting, ahead: float) -> Iterator[Event]:
    was, now = before.lease, after.lease
    if was is not None and now is not None and was.operator != now.operator:
        text = f"takes {lane} over from {was.operator}"
        if was.offered_to == now.operator:
            text = f"has {lane} now, handed over by {was.operator}"
        yield Event(now.acquired - ahead, now.operator, text, Severity.LOOK)


def _debts(lane: str, before: Acting, after: Acting, ahead: float) -> Iterator[Event]:
    was, now = {item.what: item for item in before.debts}, {item.what: item for item in after.debts}
    for what, debt in now.items():
        if what not in was:
            text = f"{what} of {lane} switched off, owed by {fmt.clock(debt.deadline - ahead)}"
            yield Event(debt.since - ahead, debt.operator or lane, text, Severity.INFO)
    for what, debt in was.items():
        if what not in now:
            yield Event(after.clock - ahead, lane, f"{what}: debt of {debt.operator or 'somebody'} settled")


def _operation(lane: str, before: Operation | None, after: Operation | None, ahead: float) -> Iterator[Event]:
    if after is None:
        return
    who, known = after.operator or lane, before is not None and before.id == after.id
    if not known:
        plan = f", plan {after.plan_id}" if after.plan_id else ""
        yield Event(after.began - ahead, who, f"{after.verb.upper()} began: {after.title}{plan}", Severity.INFO)
    told = (*before.steps, *before.rescue) if before is not None and known else ()
    old = {step.id: step for step in told}
    for step in (*after.steps, *after.rescue):
        yield from _step(old.get(step.id), step, ahead)
    if after.took_over and (not known or (before is not None and before.took_over != after.took_over)):
        yield Event(after.spoke or 0.0, who, f"{after.verb} taken over: {after.took_over}", Severity.LOOK)
    if not known or (before is not None and before.state is not after.state):
        yield from _ended(who, after, ahead)


def _step(before: StepView | None, after: StepView, ahead: float) -> Iterator[Event]:
    """Steps that ended; those that begin are on the rail."""
    if after.ended is None or after.state is StepState.SKIPPED or (before is not None and before.ended == after.ended):
        return
    took = f", {fmt.duration(after.ended - after.began)}" if after.began is not None else ""
    words = f": {after.words}" if after.words and after.state not in _FINE else ""
    severity = Severity.NORMAL if after.state in _FINE else Severity.LOOK
    yield Event(after.ended - ahead, after.host, f"{after.title}: {after.state}{took}{words}", severity)


def _ended(who: str, after: Operation, ahead: float) -> Iterator[Event]:
    if after.state is OperationState.RUNNING or not (after.ended or after.words):
        return
    at = after.ended or after.spoke or 0.0
    took = f" after {fmt.duration(after.ended - after.began)}" if after.ended is not None else ""
    words = f": {after.words}" if after.words else ""
    severity = _ENDS.get(after.state, Severity.ACT)
    yield Event(at - ahead, who, f"{after.verb.upper()} {after.state}{took}{words}", severity)
