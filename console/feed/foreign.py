"""What was done on the hosts, told apart: a step of an operation of ours, or a foreign hand.

Docker and files name nobody. A deed is a step's when an operation, whoever started it, had a step of that kind on that
host at that time. The journal of an operation is read a little later than Docker speaks, so a deed is first told as
what it is, and a few seconds later as whose it was.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from console.readings.acting_types import Acting, ForeignAct, Operation, OperationState, StepView
from console.readings.quality import Reading
from console.readings.watchdog_types import WatchdogState
from console.snapshot import Event, LaneView, Snapshot

HEARD_S = 4.0
"""Seconds by which the head must have been read later than a deed for its operation to be known: a new one is looked
for every 2.5 s, and its journal a second after that."""
GIVEN_UP_S = 30.0
"""Seconds after which a deed stays untold: its lane's head cannot be read."""
BEFORE_S, AFTER_S = 2.0, 6.0
"""Seconds by which a deed may seem to come before its step or after it: two clocks, and what a command leaves."""
MOST_PENDING, MOST_ACTS, MOST_OPERATIONS = 200, 20, 8
KEPT_S = 3600.0
"""Seconds for which a foreign act is kept with its lane."""
FOREIGN = "foreign: "
NOT_US = "not by this console"
"""What is said of a deed until it is known whose it was."""
_STAGES = {
    "container": ("watchdog", "stop", "rows", "boot", "arm"),
    "watchdog": ("watchdog", "stop", "boot", "arm"),
    "site": ("site",),
    "image": (),
}
"""Stages whose steps do a thing of that kind."""


@dataclass(frozen=True, slots=True)
class Deed:
    """One event of something that somebody did."""

    event: Event
    host: str
    heard: float
    """Monotonic seconds."""
    lane: str = ""
    """Of what concerns one lane alone; '' for what happened on a host."""
    container: str = ""
    """Its name."""


class Hands:
    """Remembers deeds until it is known whose they were, and the foreign ones for a while."""

    def __init__(self) -> None:
        self._pending: deque[Deed] = deque(maxlen=MOST_PENDING)
        self._operations: dict[str, dict[str, Operation]] = {}
        self._acts: dict[str, tuple[ForeignAct, ...]] = {}

    def add(self, deed: Deed) -> None:
        """Something was done."""
        self._pending.append(deed)

    def acts(self, lane: str) -> tuple[ForeignAct, ...]:
        """What foreign hands did to a lane of late, newest last."""
        return self._acts.get(lane, ())

    def settle(self, snapshot: Snapshot) -> tuple[tuple[Event, Event], ...]:
        """What is known now of deeds that were told: (the event as it was told, as it is to be told)."""
        for lane in snapshot.lanes:
            self._remember(lane, snapshot)
        told: list[tuple[Event, Event]] = []
        waiting = []
        for deed in self._pending:
            new = self._settled(deed, snapshot)
            if new is not None:
                told.append((deed.event, new))
            elif snapshot.now - deed.heard < GIVEN_UP_S:
                waiting.append(deed)
        self._pending = deque(waiting, maxlen=MOST_PENDING)
        return tuple(told)

    def _remember(self, lane: LaneView, snapshot: Snapshot) -> None:
        acting = None if lane.acting is None else lane.acting.value
        if acting is not None and acting.operation is not None:
            known = self._operations.setdefault(lane.name, {})
            known[acting.operation.id] = acting.operation
            while len(known) > MOST_OPERATIONS:
                del known[next(iter(known))]
        kept = self._acts.get(lane.name, ())
        if kept and kept[0].at < snapshot.wall - KEPT_S:
            self._acts[lane.name] = tuple(act for act in kept if act.at >= snapshot.wall - KEPT_S)

    def _settled(self, deed: Deed, snapshot: Snapshot) -> Event | None:
        """The event as it is to be told; None while that is not known."""
        lanes = [lane for lane in snapshot.lanes if _concerns(deed, lane, snapshot)]
        for lane in lanes:
            for operation in reversed(self._operations.get(lane.name, {}).values()):
                step = _step_of(deed, operation, lane, _ahead(snapshot, lane))
                if step is not None:
                    return replace(deed.event, text=_told_as(deed.event.text, f"{operation.operator}: {step.title}"))
        if not lanes or not all(_heard(lane.acting, deed.event.wall) for lane in lanes):
            return None
        for lane in lanes:
            self._take(deed, lane)
        by = " (its watchdog recovers the lane)" if any(map(_recovers, lanes)) else ""
        return replace(deed.event, text=FOREIGN + _bare(deed.event.text) + by, foreign=True)

    def _take(self, deed: Deed, lane: LaneView) -> None:
        operation = lane.acting.value.operation if lane.acting is not None and lane.acting.value is not None else None
        during = operation.id if operation is not None and _meanwhile(operation, deed.event.wall) else ""
        act = ForeignAct(deed.event.wall, deed.host, deed.event.deed, _bare(deed.event.text), during)
        self._acts[lane.name] = (*self.acts(lane.name), act)[-MOST_ACTS:]


def _concerns(deed: Deed, lane: LaneView, snapshot: Snapshot) -> bool:
    if deed.lane:
        return deed.lane == lane.name
    if deed.host not in lane.lane.rank_hosts:
        return False
    if not deed.container:
        return True
    if lane.lane.containers:
        return fnmatchcase(deed.container, lane.lane.containers)
    if any(rank.host == deed.host and rank.container and rank.container.name == deed.container for rank in lane.ranks):
        return True
    found = snapshot.host(deed.host).containers.value
    named = [item for item in found.items if item.name == deed.container] if found is not None else []
    return any(lane.lane.port in item.ports for item in named)


def _ahead(snapshot: Snapshot, lane: LaneView) -> float:
    return snapshot.host(lane.lane.head).drift or 0.0


def _step_of(deed: Deed, operation: Operation, lane: LaneView, ahead: float) -> StepView | None:
    """The step that it was, by kind, host and time; launchers on the head reach every rank."""
    at = deed.event.wall + ahead
    found = []
    for step in (*operation.steps, *operation.rescue):
        if step.began is None or not step.acts or step.stage not in _STAGES.get(deed.event.deed, ()):
            continue
        if step.host not in (deed.host, lane.lane.head):
            continue
        away = max(step.began - at, at - _end(step, operation), 0.0)
        if step.began - BEFORE_S <= at <= _end(step, operation) + AFTER_S:
            found.append((away, -step.began, step))
    return min(found, key=lambda one: one[:2])[2] if found else None


def _end(step: StepView, operation: Operation) -> float:
    """Until when a step did anything; of one whose outcome nobody saw, as long as it may have run."""
    if step.ended is not None:
        return step.ended
    if operation.state is OperationState.RUNNING:
        return math.inf
    return (step.began or 0.0) + step.limit


def _meanwhile(operation: Operation, at: float) -> bool:
    ends = operation.ended
    return operation.state is not OperationState.DONE and (ends is None or at <= ends)


def _recovers(lane: LaneView) -> bool:
    dog = None if lane.watchdog is None else lane.watchdog.value
    return dog is not None and dog.state is WatchdogState.RECOVERY


def _heard(acting: Reading[Acting] | None, at: float) -> bool:
    """Whether the head was read late enough after Unix time `at` to know every step that was begun by then."""
    return (
        acting is not None and not acting.error and acting.taken_wall is not None and acting.taken_wall >= at + HEARD_S
    )


def _told_as(text: str, whose: str) -> str:
    return f"{_bare(text)} ({whose})"


def _bare(text: str) -> str:
    """Without the words that it was not this console: it is known better by now."""
    return text.removesuffix(NOT_US).rstrip(",; ")


def deeds_of(events: Iterable[Event], lanes: Mapping[str, str], now: float) -> Iterator[Deed]:
    """The deeds among events that pictures told; `lanes` are heads by lane, `now` is monotonic."""
    for event in events:
        if event.deed and event.subject in lanes:
            yield Deed(event, lanes[event.subject], now, lane=event.subject)
        elif event.deed:
            yield Deed(event, event.subject, now)
