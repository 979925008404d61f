"""What an operation, a window, a debt or a lease mean at this moment, in plain answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from console.readings.acting_types import Acting, Debt, Operation, OperationState, StepState, StepView

TAKES_DOWN = ("stop", "relaunch", "rollback")
"""Verbs whose operations take a lane down on purpose."""
LEAVES_DOWN = ("stop",)
SOON_S = 300.0
"""Seconds before a debt is due from which on somebody should look at it."""
SETTLE_S = 60.0
"""Seconds after a stop within which the lane's last rank goes down."""
ASKED_AGAIN_S = 15.0
"""Seconds after the end of an operation by which health has been asked again, where it can be asked at all."""
REVISION = re.compile(r"[0-9a-f]{7,40}")
UNFINISHED = (OperationState.HALF_DONE, OperationState.LOST)
"""It stopped in the middle: somebody has to go on, or back."""
_AT_THE_ENGINE = ("stop", "rows", "site", "boot")
"""Stages in which a lane may be down on purpose."""


def running(acting: Acting | None) -> Operation | None:
    """The operation that is carried on right now."""
    operation = None if acting is None else acting.operation
    return operation if operation is not None and operation.state is OperationState.RUNNING else None


def planned_down(acting: Acting | None, since: float, heard: float | None = None) -> Operation | None:
    """The operation on whose account a lane is not serving since Unix time `since` (head's clock); None if it is not.

    One that runs and has come to stopping the engine, or a stop that is the last thing that was done. One that brought
    the lane up counts until health was asked again: at `heard` (same clock) the engine was still loading.
    """
    if acting is None or acting.operation is None:
        return None
    operation = acting.operation
    if operation.verb not in TAKES_DOWN:
        return None
    begun = [step for step in operation.steps if step.stage in _AT_THE_ENGINE and step.began is not None]
    if operation.state is OperationState.RUNNING:
        return operation if begun and since >= min(step.began or 0.0 for step in begun) - SETTLE_S else None
    if operation.state is not OperationState.DONE or operation.ended is None:
        return None
    if operation.verb in LEAVES_DOWN:
        return operation if operation.began - SETTLE_S <= since <= operation.ended + SETTLE_S else None
    unheard = heard is not None and heard < operation.ended and acting.clock - operation.ended < ASKED_AGAIN_S
    return operation if unheard and begun and since <= operation.ended else None


def booting(acting: Acting | None) -> StepView | None:
    """The step of a running operation that waits for the engine to come up."""
    operation = running(acting)
    steps = operation.steps if operation is not None else ()
    return next((step for step in steps if step.stage == "boot" and step.state is StepState.RUNNING), None)


def switching(acting: Acting | None) -> tuple[str, str] | None:
    """(from, to) of the revisions that a running operation leads between; None where it does not."""
    operation = running(acting)
    if operation is None or operation.verb not in TAKES_DOWN or operation.origin == operation.target:
        return None
    if not REVISION.fullmatch(operation.origin) or not REVISION.fullmatch(operation.target):
        return None
    return operation.origin, operation.target


def leads_between(acting: Acting | None, revisions: Iterable[str]) -> bool:
    """Whether a running operation explains that these are mounted at the same time."""
    ways = switching(acting)
    return ways is not None and all(any(item.startswith(end) for end in ways) for item in revisions)


def debt(acting: Acting | None, what: str = "watchdog") -> Debt | None:
    """The debt that is due first, of one kind."""
    debts = [item for item in acting.debts if item.what == what] if acting is not None else []
    return min(debts, key=lambda item: item.deadline, default=None)


def under_step(operation: Operation) -> StepView | None:
    """The step that runs, or whose outcome nobody saw."""
    return next((step for step in operation.steps if step.state in (StepState.RUNNING, StepState.UNKNOWN)), None)
