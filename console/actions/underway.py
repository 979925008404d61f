"""What is under way on a lane: the stages of its operation against their usual times, and what comes next by itself.

Pure functions of what the head keeps (`console/readings/acting_types.py`). Times are Unix seconds by the head's clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from console.readings.acting_types import Acting, Lease, Operation, OperationState, StepState, StepView
from console.snapshot import LaneView, Snapshot

FINE = (StepState.DONE, StepState.SATISFIED)
BAD = (StepState.FAILED, StepState.STOPPED, StepState.FENCED, StepState.UNKNOWN)


class Progress(StrEnum):
    """How far a stage is."""

    DONE = "done"
    NOW = "now"
    NEXT = "next"
    BROKEN = "broken"
    """A step of it failed, was stopped, fenced off, or was not seen to end."""


@dataclass(frozen=True, slots=True)
class StageNow:
    """One place on the rail."""

    number: int
    stage: str
    progress: Progress
    done: int
    count: int
    elapsed: float | None
    """Seconds since its first step began."""
    usual: float | None
    """Seconds that all of it usually takes."""
    left: float | None
    """Seconds until it is usually done, from now; None where nothing tells."""
    word: str = ""
    """Of a broken one: `FAILED`."""


def acting_of(lane: LaneView) -> Acting | None:
    """What is known of lease, window and operations; None before it was read."""
    return lane.acting.value if lane.acting is not None else None


def head_now(snapshot: Snapshot, lane: LaneView) -> float:
    """Now by the head's clock; by the console's own where nothing was read from the head."""
    acting = acting_of(lane)
    if acting is None or lane.acting is None or lane.acting.taken_mono is None:
        return snapshot.wall
    # Where nobody says of which moment that clock is, it is that of the reading.
    since = lane.acting.taken_mono if lane.looked is None else lane.looked
    return acting.clock + max(0.0, snapshot.now - since)


class Transfer(StrEnum):
    """What `H` does with a lease."""

    OFFER = "hand over"
    ACCEPT = "accept"
    TAKE = "take over"


def transfer(lease: Lease, operator: str, now: float, *, mine: bool) -> Transfer:
    """`mine`: the lease is this operator's on this machine. One that ran out cannot be offered, only taken anew."""
    if mine and not lease.expired(now):
        return Transfer.OFFER
    return Transfer.ACCEPT if not mine and lease.offered_to == operator else Transfer.TAKE


def runs(lane: LaneView) -> Operation | None:
    """The operation that is under way; None where none is."""
    acting = acting_of(lane)
    found = acting.operation if acting is not None else None
    return found if found is not None and found.state is OperationState.RUNNING else None


def newest_state(lane: LaneView) -> OperationState | None:
    """What became of the newest operation; None where there is none, or nothing was read."""
    acting = acting_of(lane)
    return acting.operation.state if acting is not None and acting.operation is not None else None


def stages(operation: Operation, now: float) -> tuple[StageNow, ...]:
    """The operation's steps by stage, in their order; neighbours of one stage are one."""
    found: list[list[StepView]] = []
    for step in operation.steps:
        if found and found[-1][0].stage == step.stage:
            found[-1].append(step)
        else:
            found.append([step])
    return tuple(_stage(number, steps, now) for number, steps in enumerate(found, 1))


def _stage(number: int, steps: list[StepView], now: float) -> StageNow:
    done = sum(step.state in FINE for step in steps)
    began = [step.began for step in steps if step.began is not None]
    ended = [step.ended for step in steps if step.ended is not None]
    broken = next((step for step in steps if step.state in BAD), None)
    progress = _progress(steps, done, broken=broken is not None)
    until = max(ended) if ended and progress in (Progress.DONE, Progress.BROKEN) else now
    return StageNow(
        number,
        steps[0].stage,
        progress,
        done,
        len(steps),
        max(0.0, until - min(began)) if began else None,
        _sum(max_or_none([step.usual for step in group]) for group in _groups(steps)),
        _sum(max_or_none([_left(step, now) for step in group]) for group in _groups(steps)),
        broken.state.value.upper() if broken is not None else "",
    )


def _progress(steps: list[StepView], done: int, *, broken: bool) -> Progress:
    if broken:
        return Progress.BROKEN
    if done == len(steps):
        return Progress.DONE
    begun = done or any(step.state is StepState.RUNNING for step in steps)
    return Progress.NOW if begun else Progress.NEXT


def _left(step: StepView, now: float) -> float | None:
    if step.state in FINE:
        return 0.0
    if step.usual is None:
        return None
    return max(0.0, step.usual - (now - step.began)) if step.began is not None else step.usual


def _groups(steps: list[StepView]) -> Iterator[list[StepView]]:
    """Steps that run at the same time."""
    group: list[StepView] = []
    for step in steps:
        if group and not (step.together and step.together == group[-1].together):
            yield group
            group = []
        group.append(step)
    if group:
        yield group


def max_or_none(values: list[float | None]) -> float | None:
    """The largest; None where one is not known."""
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) and known else None


def _sum(values: Iterator[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def forecast(operation: Operation, now: float) -> tuple[tuple[str, float | None], ...]:
    """(stage, when it is usually done) of every stage that is not done yet; None from the first unknown one on."""
    at: float | None = now
    found: list[tuple[str, float | None]] = []
    for stage in stages(operation, now):
        if stage.progress is Progress.DONE:
            continue
        at = None if at is None or stage.left is None else at + stage.left
        found.append((stage.stage, at))
    return tuple(found)
