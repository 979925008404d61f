"""Alarms of what is under way on a lane: debts, windows, operations that nobody carries on, leases, foreign hands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from console import format as fmt
from console.alarms.alarm import Alarm
from console.readings import underway
from console.readings.acting_types import Acting, Operation, OperationState, WindowState
from console.readings.health import LaneState
from console.snapshot import LaneView, Severity, Snapshot
from console.wayback.standing import unfinished

TOLD_FOR_S = 3600.0
"""Seconds for which an operation that failed, or was done without a ledger, is told while its lane serves again."""
_BROKEN_OFF = {OperationState.FAILED: "failed", OperationState.STOPPED: "was stopped"}
_WELL = (LaneState.SERVING, LaneState.IDLE, LaneState.BUSY, LaneState.READY)


def acting_alarms(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    """Everything that somebody began on this lane and that needs a hand, and what nobody of ours did."""
    if lane.acting is None:
        return
    acting = lane.acting.value
    if acting is None:
        if lane.acting.error:
            text = f"what is under way cannot be seen: {lane.acting.error}"
            yield Alarm(f"acting:{lane.name}", Severity.INFO, lane.name, text, "")
        return
    yield from _debts(lane, acting)
    current = lane.acting.current(snapshot.now) is not None
    if current:
        yield from _window(lane, acting)
        yield from _operation(lane, acting)
        yield from _lease(lane, acting)
        yield from _foreign(lane, acting)
        if acting.problem:
            text = f"{lane.lane.head} {acting.folder}: {acting.problem}"
            yield Alarm(
                f"acting-files:{lane.name}", Severity.LOOK, lane.name, text, "look at it before anything is done"
            )
    if lane.unsynced:
        count = f"{lane.unsynced} ledger line{'s' if lane.unsynced > 1 else ''}"
        text = f"{count} not yet on {lane.lane.head}"
        yield Alarm(f"unsynced:{lane.name}", Severity.LOOK, lane.name, text, "sent as soon as it can be reached")


def _debts(lane: LaneView, acting: Acting) -> Iterator[Alarm]:
    for debt in acting.debts:
        late = acting.clock - debt.deadline
        if late <= -underway.SOON_S:
            continue
        who = debt.operator or "somebody"
        when = f"OVERDUE {fmt.short_age(late)}" if late > 0 else f"owed in {fmt.short_age(-late)}"
        severity = Severity.ACT if late > 0 else Severity.LOOK
        text = f"{debt.what} off for {fmt.short_age(acting.clock - debt.since)}, {when}: switched off by {who}"
        advice = "arm it: D" if debt.what == "watchdog" else "switch it on again"
        yield Alarm(f"debt:{lane.name}:{debt.what}", severity, lane.name, text, advice)


def _window(lane: LaneView, acting: Acting) -> Iterator[Alarm]:
    window = acting.window
    if window is None or acting.clock <= window.deadline:
        return
    late = fmt.short_age(acting.clock - window.deadline)
    text = f"window of {window.operator or 'somebody'} OVERDUE {late}: {window.reason or 'no reason given'}"
    severity = Severity.LOOK if lane.verdict.state in _WELL else Severity.ACT
    yield Alarm(f"window:{lane.name}", severity, lane.name, text, "close it: w")


def _operation(lane: LaneView, acting: Acting) -> Iterator[Alarm]:
    operation = acting.operation
    if operation is None:
        return
    by = f"{operation.verb} by {operation.operator or 'somebody'}"
    if operation.state in underway.UNFINISHED:
        there = unfinished(lane) is not None  # then B would lead away from it, and is denied
        advice = "B says what is left" if there else "R goes on, B goes back"
        if operation.ended is None and operation.plan_id:
            advice = f"laneswap attach {lane.name} --carry-on" + ("" if there else ", or B")
        yield Alarm(f"operation:{lane.name}", Severity.ACT, lane.name, f"{by}: {operation.words}", advice)
    elif operation.state is OperationState.UNKNOWN and not operation.unread:
        text = f"{by}: {operation.words or 'its state is unknown'}"
        yield Alarm(f"operation:{lane.name}", Severity.LOOK, lane.name, text, "")
    elif operation.state in _BROKEN_OFF and _still_told(lane, acting, operation):
        severity = Severity.LOOK if lane.verdict.state in _WELL else Severity.ACT
        text = f"{by} {_BROKEN_OFF[operation.state]}: {operation.words or 'no words'}"
        yield Alarm(f"operation:{lane.name}", severity, lane.name, text, "read its log and ledger (e)")
    if not operation.ledgered and _still_told(lane, acting, operation):
        text = f"UNLEDGERED: {by} at {fmt.clock(operation.began)}"
        yield Alarm(f"unledgered:{lane.name}", Severity.LOOK, lane.name, text, "write it up: laneswap ledger")


def _still_told(lane: LaneView, acting: Acting, operation: Operation) -> bool:
    recent = operation.ended is None or acting.clock - operation.ended < TOLD_FOR_S
    return recent or acting.window is not None or lane.verdict.state not in _WELL or not operation.ledgered


def _lease(lane: LaneView, acting: Acting) -> Iterator[Alarm]:
    lease = acting.lease
    if lease is None:
        return
    if lease.offered_to and not lease.expired(acting.clock):
        text = f"{lease.operator} hands the lane over to {lease.offered_to}"
        yield Alarm(f"offer:{lane.name}", Severity.INFO, lane.name, text, "accept it: H")
    if not lease.expired(acting.clock):
        return
    ago = fmt.short_age(acting.clock - lease.renewed - lease.ttl)
    running, window = underway.running(acting), acting.window
    step = running.step if running is not None else None
    if running is not None:
        does = step.title if step is not None else running.verb
        text = f"lease of {lease.operator} ran out {ago} ago while {does} runs: take over?"
        severity = Severity.LOOK if running.runs_on == "head" and lane.verdict.state in _WELL else Severity.ACT
        yield Alarm(f"lease:{lane.name}", severity, lane.name, text, "it goes on by itself; B takes the lane over")
    elif window is not None or acting.debts:
        what = _left_by(window, acting)
        text = f"lease of {lease.operator} ran out {ago} ago, {what}: take over?"
        severity = Severity.LOOK if lane.verdict.state in _WELL else Severity.ACT
        yield Alarm(f"lease:{lane.name}", severity, lane.name, text, "H takes the lane over")


def _left_by(window: WindowState | None, acting: Acting) -> str:
    if window is not None:
        return "the window is still open"
    return f"the {acting.debts[0].what} is still off"


def _foreign(lane: LaneView, acting: Acting) -> Iterator[Alarm]:
    """What others did while an operation runs, or since a window was opened: plans rest on what was there before."""
    operation, window = acting.operation, acting.window
    acts = [act for act in lane.foreign if operation is not None and act.during == operation.id]
    running = underway.running(acting) is not None
    unfinished = operation is not None and operation.state in underway.UNFINISHED
    if acts and (running or unfinished):
        newest, more = acts[-1], f" and {len(acts) - 1} more" if len(acts) > 1 else ""
        text = f"foreign hand during {operation.verb if operation else ''}: {newest.host} {newest.text}{more}"
        yield Alarm(f"foreign:{lane.name}", Severity.ACT, lane.name, text, "ask who it is before you go on")
    elif window is not None and (since := [act for act in lane.foreign if act.at >= window.opened]):
        newest, more = since[-1], f" and {len(since) - 1} more" if len(since) > 1 else ""
        text = f"foreign hand in the window: {newest.host} {newest.text}{more}"
        yield Alarm(f"foreign:{lane.name}", Severity.LOOK, lane.name, text, "ask who it is before you go on")


_BROUGHT_ALONG = ("state", "front", "site-revision", "revision", "rank", "rows", "tiling", "boot-missing", "unhealthy")
"""Alarms that an operation brings along by stopping an engine and starting another."""


def expected(snapshot: Snapshot) -> Mapping[str, str]:
    """By the beginning of their keys, the alarms that running operations bring along, with the step that does."""
    found: dict[str, str] = {}
    for lane in snapshot.lanes:
        acting = None if lane.acting is None else lane.acting.current(snapshot.now)
        operation = underway.running(acting)
        if operation is not None and operation.verb in underway.TAKES_DOWN:
            title = operation.step.title if operation.step is not None else operation.title
            found |= {f"{kind}:{lane.name}": title for kind in _BROUGHT_ALONG}
        if acting is not None and (debt := underway.debt(acting)) is not None and acting.clock <= debt.deadline:
            found[f"watchdog:{lane.name}"] = "disarmed"
    return found
