"""An operation from plan to sequence: placeholders filled, debts written down on the way, started on the head, or in
this console where the head cannot reach a rank. Whatever acts here spends a Grant itself, before it does anything.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.actions.plan import Plan, Verb
from console.actions.underway import head_now
from console.execution import detached, policy, sequence_head
from console.execution.broken import spares
from console.execution.detached import Modes
from console.execution.placing import filled, with_debts
from console.execution.policy import Grant, Refused
from console.execution.sequence import Operation, compile_operation, taken_over
from console.execution.sequence_console import InConsole, run_in_console
from console.execution.sequence_head import OnHead
from console.execution.sequence_reach import reach_from_head, ways_to_try
from console.execution.situation import Me
from console.execution.tenure import Ground, stamp
from console.reach.link import Link
from console.readings.acting_types import Lease, OperationState, StepState, StepView
from console.readings.acting_types import Operation as OperationSeen
from console.readings.link import LinkStatus
from console.snapshot import LaneView

OWED_S = 30 * 60.0
"""A debt is due after this, or at its window's deadline where that has not passed."""
REACH_KEPT_S = 600.0
"""Seconds for which it is believed that the head reaches its ranks."""
MODES_ASKED_S, MODES_KEPT_S = 60.0, 600.0
"""Seconds after which a head is asked anew where steps can run, and for which that is believed: the head looks again
whether it still holds."""
PRE_EMPT_S = 20
"""Seconds that a step which is pre-empted has to end."""
_MAY_RUN = (OperationState.RUNNING, OperationState.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Begun:
    """An operation that runs."""

    operation: str
    runs_on: str
    """`head` or `console`."""
    words: str


@dataclass(frozen=True, slots=True)
class Left:
    """What was to be ended and may still act."""

    host: str
    words: str
    """Safe."""


class Unclear(Exception):
    """It may or may not have begun: this console looks it up, and tells, before anything else is done."""

    def __init__(self, words: str, operation: str = "") -> None:
        """`operation`: its id."""
        super().__init__(words)
        self.operation = operation


def operation_id(verb: Verb) -> str:
    """`20261201T031502Z-rollback-4c19e0`."""
    return f"{stamp()}-{verb.value}-{secrets.token_hex(3)}"


class Carrying:
    """The operations that one console begins."""

    def __init__(self, ground: Ground, own: Me, keep: Path | None = None) -> None:
        """`keep`: where journals of sequences in this console go; this account's own folder if left out."""
        self._ground, self._own, self._keep = ground, own, keep
        self._ways: dict[str, tuple[float, asyncio.Task[Mapping[str, list[str]] | str]]] = {}
        self._able: dict[str, asyncio.Task[str]] = {}
        """By head: why it cannot carry a sequence out, '' if it can."""
        self._modes: dict[str, tuple[float, asyncio.Task[Modes]]] = {}
        """By head: where a step can run there."""
        self._here: dict[str, InConsole] = {}
        self._ends: set[asyncio.Task[None]] = set()
        self.ended_here: Callable[[InConsole], None] = lambda one: None
        """Told of a sequence of this console that has ended and that the head cannot tell of."""

    def here(self) -> frozenset[str]:
        """Lanes whose operation runs in this console."""
        return frozenset(lane for lane, one in self._here.items() if not one.over)

    def runs_here(self, lane: str) -> tuple[str, Verb] | None:
        """Id and verb of the operation that runs in this console on a lane."""
        one = self._here.get(lane)
        return None if one is None or one.over else (one.operation["id"], Verb(one.operation["verb"]))

    def seen_here(self, lane: str) -> OperationSeen | None:
        """The operation that this console began last on a lane and carries out itself, as its journal here tells it."""
        one = self._here.get(lane)
        return None if one is None else one.seen()

    async def close(self) -> None:
        """What runs in this console is cut: every console shows what is half done."""
        asking: list[asyncio.Task[Any]] = [task for _, task in (*self._ways.values(), *self._modes.values())]
        asking += self._able.values()
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        for one in self._here.values():
            await one.close()
        await asyncio.gather(*self._ends, return_exceptions=True)

    # --- how the head reaches its ranks

    def prepare(self, view: LaneView, plan: Plan) -> None:
        """Find out how the head reaches the plan's hosts, while the operator reads the strip."""
        if plan.refused:
            return
        able = self._able.get(plan.head)
        if able is None or _worth_asking(able):
            self._able[plan.head] = asyncio.create_task(self._can_run(plan.head), name=f"python on {plan.head}")
        asked = self._modes.get(plan.head)
        if asked is None or time.monotonic() - asked[0] > MODES_ASKED_S:
            task_of = asyncio.create_task(self._where(view, plan.head), name=f"modes of {plan.head}")
            self._modes[plan.head] = (time.monotonic(), task_of)
        hosts = _hosts(plan)
        if hosts <= {plan.head}:
            return
        kept = self._ways.get(plan.lane)
        if kept is None or time.monotonic() - kept[0] > REACH_KEPT_S or _failed(kept[1]):
            task = asyncio.create_task(self._find_ways(view, plan), name=f"reach {plan.lane}")
            self._ways[plan.lane] = (time.monotonic(), task)

    async def _can_run(self, head: str) -> str:
        return await sequence_head.can_run(self._ground.links[head])

    async def _where(self, view: LaneView, head: str) -> Modes:
        return await detached.modes(self._ground.links[head], self._folder(view), path=True)

    def _known(self, head: str) -> Modes | None:
        """What was found out while the strip was shown; None where that was not, or too long ago."""
        asked, task = self._modes.get(head, (0.0, None))
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result() if time.monotonic() - asked < MODES_KEPT_S else None

    async def ways(self, view: LaneView, plan: Plan) -> Mapping[str, list[str]] | str:
        """What stands before a command on each host, as the head needs it; or why it cannot reach them all."""
        if _hosts(plan) <= {plan.head}:
            return {plan.head: []}
        self.prepare(view, plan)
        return await asyncio.shield(self._ways[plan.lane][1])

    async def _find_ways(self, view: LaneView, plan: Plan) -> Mapping[str, list[str]] | str:
        fleet = self._ground.snapshot().fleet
        link, folder = self._ground.links[plan.head], fleet.lane_folder(plan.lane)
        site = view.site.value if view.site is not None else None
        others = ways_to_try(view.lane, fleet.hosts, site.values if site is not None else {})
        found = await reach_from_head(link, folder, others)
        if found.problems:
            return "; ".join(found.problems)
        return {plan.head: [], **found.ways}

    # --- beginning

    async def begin(
        self,
        view: LaneView,
        plan: Plan,
        op: str,
        held: Lease | None,
        grant: Grant,
        *,
        ledgered: bool,
        deadline: float | None,
    ) -> Begun:
        """Spend the Grant and start it; raises Refused where nothing was begun, Unclear where that is not known."""
        epoch = held.epoch if held is not None else 0
        glass = policy.spend(grant, plan.id, plan.verb, plan.lane, policy.clock(), epoch)
        if held is None and not glass:
            raise Refused("without a lease nothing goes but by break-glass")
        folder = self._folder(view)
        spare = await spares(self._up(plan), _hosts(plan) | {plan.head}, folder) if glass else {}
        ways = await self._ways_now(view, plan, held, spare)
        operation = self._compiled(view, plan, op, held, ways, spare, ledgered=ledgered, deadline=deadline)
        if not isinstance(ways, str):
            able = self._able.get(plan.head)
            checked = able is not None and able.done() and not _worth_asking(able)
            link, known = self._ground.links[plan.head], self._known(plan.head)
            started = await sequence_head.start_on_head(link, operation, checked=checked, known=known)
            if started.started:
                return Begun(op, "head", f"{plan.verb.value} began: operation {op}, detached on {plan.head}")
            if started.unknown or started.fenced or not (started.cannot or glass):
                if started.unknown:
                    raise Unclear(f"whether {op} began is not known: {started.problem}; it is being looked up", op)
                raise Refused(_not_started(started))
            ways = started.problem
        return await self._here_then(operation, plan, ways, glass=glass)

    def _up(self, plan: Plan) -> dict[str, Link]:
        """Links of the plan's hosts that can be asked now."""
        snapshot = self._ground.snapshot()
        names = (name for name in _hosts(plan) | {plan.head} if name in self._ground.links)
        return {name: self._ground.links[name] for name in names if snapshot.host(name).link.status is LinkStatus.UP}

    async def _ways_now(
        self, view: LaneView, plan: Plan, held: Lease | None, spare: Mapping[str, str]
    ) -> Mapping[str, list[str]] | str:
        """How the head reaches the plan's hosts; or why the sequence has to stay here."""
        if plan.head in spare:
            return f"the state folder of {plan.head} is broken"
        if held is None and plan.head not in self._up(plan):
            return "the head is out of reach"
        return await self.ways(view, plan)

    def _compiled(
        self,
        view: LaneView,
        plan: Plan,
        op: str,
        held: Lease | None,
        ways: Mapping[str, list[str]] | str,
        spare: Mapping[str, str],
        *,
        ledgered: bool,
        deadline: float | None,
    ) -> Operation:
        """The operation file. Raises Refused."""
        folder, now = self._folder(view), head_now(self._ground.snapshot(), view)
        due = deadline if deadline and deadline > now else now + OWED_S  # late is not overdue at once
        debt = "" if _owed(view) else self._debt(op, due, view)
        owing = with_debts(plan, folder, debt, must=plan.head not in spare)
        ready = filled(owing, folder, op, spare)
        reach = dict(ways) if not isinstance(ways, str) else {host: [] for host in {plan.head, *_hosts(plan)}}
        try:
            operation = compile_operation(
                ready,
                op=op,
                operator=self._own.operator,
                console=self._own.console,
                epoch=held.epoch if held is not None else "-",
                folder=folder,
                spare=spare,
                reach=reach,
                created=now,
                ledgered=ledgered,
            )
        except ValueError as error:
            raise Refused(str(error)) from error
        operation["plan_id"] = plan.id
        return operation

    async def _here_then(self, operation: Operation, plan: Plan, why: str, *, glass: bool) -> Begun:
        self._here[plan.lane] = await self._in_console(operation, glass=glass)
        op = operation["id"]
        return Begun(op, "console", f"{plan.verb.value} began: operation {op}, in this console, keep it open: {why}")

    async def _in_console(self, operation: Operation, *, glass: bool = False) -> InConsole:
        """Its journal is dated by the head's clock, as far as that is known."""
        snapshot = self._ground.snapshot()
        ahead = head_now(snapshot, snapshot.lane(operation["lane"])) - snapshot.wall
        began = await run_in_console(self._ground.links, operation, keep=self._keep, ahead=ahead, glass=glass)
        task = asyncio.create_task(self._see_to_its_end(began), name=f"end of {operation['id']}")
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
        return began

    async def _see_to_its_end(self, one: InConsole) -> None:
        """A head that never got the journal tells nobody how it ended: this console does."""
        await one.wait()
        if one.unsynced:
            self.ended_here(one)

    async def carry_on(self, view: LaneView, op: str, held: Lease, grant: Grant) -> Begun:
        """Spend the Grant and go on with an operation that nobody carries out any more, or that goes on under another
        lease. Raises Refused."""
        link, folder = self._ground.links[view.lane.head], self._folder(view)
        stored = await sequence_head.stored(link, folder, op)
        if stored is None:
            raise Refused(f"{op}: its operation file is not there or cannot be read")
        verb, plan_id = Verb(str(stored.get("verb"))), str(stored.get("plan_id"))
        policy.spend(grant, plan_id, verb, view.name, policy.clock(), held.epoch)
        own = self._own
        operation = taken_over(stored, operator=own.operator, console=own.console, epoch=held.epoch)
        if all(way or host == operation["head"] for host, way in operation["reach"].items()):
            started = await sequence_head.carry_on(link, operation)
            if started.started:
                return Begun(op, "head", f"{op} is carried on, detached on {operation['head']}")
            if not started.cannot:
                raise Refused(_not_started(started))
        self._here[view.name] = await self._in_console(operation)
        return Begun(op, "console", f"{op} is carried on in this console: keep it open")

    def _debt(self, op: str, due: float, view: LaneView) -> str:
        since = head_now(self._ground.snapshot(), view)
        row = {"what": "watchdog", "since": since, "deadline": due, "operator": self._own.operator, "operation": op}
        return json.dumps([row]) + "\n"

    # --- ending what runs

    async def pre_empt(self, view: LaneView, epoch: int | None, grant: Grant, verb: Verb) -> tuple[Left, ...]:
        """End the operation that runs, or may run: its runner, then every step of it that is a unit of its own. Asks
        for the Grant of what comes in its place, and does not spend it: raises Refused.

        `epoch` of the newer lease, which fences its steps off in any case; None for break-glass, where nothing does.
        What may still act; nothing where all was seen to end.
        """
        policy.ensure(grant, verb, view.name, policy.clock())
        here = self._here.get(view.name)
        if here is not None and not here.over:  # also one that the head does not tell of
            await here.close(f"ended by {self._own.operator}", steps=True, epoch=epoch)
        running = view.acting.value.operation if view.acting is not None and view.acting.value is not None else None
        if running is None or running.state not in _MAY_RUN:
            return ()
        link, folder = self._ground.links[view.lane.head], self._folder(view)
        left = []
        if here is not None and here.operation["id"] == running.id:
            pass  # ended just now
        elif (stored := await sequence_head.stored(link, folder, running.id)) is not None:
            words = await sequence_head.stop(link, stored, operator=self._own.operator, epoch=epoch, steps=True)
            left += [Left(view.lane.head, f"{running.id}: {words}")] if words else []
        else:
            words = f"{running.id}: its operation file cannot be read, its runner was not ended"
            left.append(Left(view.lane.head, words))
        steps = [step for step in running.steps if step.state in (StepState.RUNNING, StepState.UNKNOWN)]
        said = await asyncio.gather(*(self._end(folder, running.id, step, epoch) for step in steps))
        return (*left, *(Left(step.host, words) for step, words in zip(steps, said, strict=True) if words))

    async def _end(self, folder: str, op: str, step: StepView, epoch: int | None) -> str:
        """'' once nothing of a step runs, else why it may."""
        link = self._ground.links.get(step.host)
        if link is None:
            return ""
        found = await detached.stop(link, folder, op, step.id, epoch=epoch, seconds=PRE_EMPT_S)
        over = found.over or found.phase is detached.Phase.ABSENT
        return "" if over else f"{step.title} on {step.host}: {found.words or found.phase.value}"

    def _folder(self, view: LaneView) -> str:
        return self._ground.snapshot().fleet.lane_folder(view.name)


def _owed(view: LaneView) -> bool:
    """Whether the watchdog is owed already: its debt keeps its beginning and its deadline."""
    acting = view.acting.value if view.acting is not None else None
    return acting is not None and any(debt.what == "watchdog" for debt in acting.debts)


def _worth_asking(task: asyncio.Task[str]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None or bool(task.result()))


def _failed(task: asyncio.Task[Mapping[str, list[str]] | str]) -> bool:
    """Whether it is worth asking anew."""
    return task.done() and (task.cancelled() or task.exception() is not None or isinstance(task.result(), str))


def _not_started(found: OnHead) -> str:
    if found.fenced:
        return f"fenced off: {found.problem}"
    if found.unknown:
        return (
            f"whether it began is not known: {found.problem}. It is being looked up: wait for that before you try again"
        )
    return found.problem


def _hosts(plan: Plan) -> set[str]:
    steps = (*plan.steps, *plan.rescue)
    probes = [probe for step in steps for probe in (*step.before, *step.already, *step.after, *step.watch)]
    return {step.host for step in steps} | {probe.host for probe in probes}
