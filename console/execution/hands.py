"""The operator's hands: a plan from the newest picture, a decision by the policy, and only with its Grant an effect.

Everything that acts comes through here: keys, palette, `:` commands and the command line. Answers are safe words.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from console.actions.plan import Plan, Verb
from console.actions.telling import command_words
from console.actions.underway import acting_of, runs
from console.execution import policy
from console.execution.attempt import Attempt
from console.execution.carrying import Begun, Carrying, Unclear, operation_id
from console.execution.clearing import Cleared
from console.execution.deciding import NO_WISH, Deciding, Wish, changed, same_situation, windowed
from console.execution.holding import Holding
from console.execution.inflight import alone, beginning
from console.execution.ledger import Entry, Ledger, LedgerError, ledger_file
from console.execution.policy import Confirmation, Decision, Grant, Refused
from console.execution.recording import NOT_BEGUN, Recording
from console.execution.settling import Settling
from console.execution.situation import is_mine, me
from console.execution.tenure import Ground, HeldByAnother, Tenure
from console.readings.acting_types import Lease, Operation, OperationState
from console.readings.ledger import Record
from console.readings.redaction import secrets_of
from console.sanitize import word
from console.snapshot import LaneView
from console.wayback.standing import unfinished

__all__ = ["NO_WISH", "Begun", "Hands", "Unclear", "Wish"]

T = TypeVar("T")
COPY_AFTER_S = 1.0
"""Seconds from an intent to its copy on the head: both would want the lock there, and the operation goes first."""
LET_GO_S = 5.0
"""Seconds in which what is left to record and to give back has to be done at the end."""


class Hands:
    """What one console can do to its fleet."""

    def __init__(
        self,
        ground: Ground,
        operator: str,
        *,
        read_only: bool = False,
        ledger: Ledger | None = None,
        keep: Path | None = None,
        tell: Callable[[str], None] = lambda words: None,
    ) -> None:
        """Contacts nothing. `ledger` and `keep`, the folder of sequences that run in this console, are the
        account's own if left out. `tell` is called with what has to be said later, in safe words."""
        self.own = me(operator)
        self.read_only = read_only
        self._ground, self._tell = ground, tell
        self.tenure = Tenure(ground, self.own)
        fleet = ground.snapshot().fleet
        known = secrets_of(os.environ, (fleet.notify.webhook_env,))
        self._ledger = ledger or Ledger(ledger_file(fleet.name), fleet.name, self.own.operator, known=known)
        self.recording = Recording(ground, self._ledger, self.tenure, tell)
        self._carrying = Carrying(ground, self.own, keep)
        self._carrying.ended_here = self.recording.ended_here
        self.deciding = Deciding(ground, self.own, self.tenure, self._ledger, read_only=read_only)
        self.deciding.here = self._carrying.runs_here
        self._holding = Holding(ground, self.deciding, self._carrying, self.recording, self._ledger, tell)
        self._settling = Settling(ground, self._ledger, self.tenure)
        self._tasks: set[asyncio.Task[None]] = set()
        self._whole_tasks: set[asyncio.Task[Any]] = set()

    # --- life ------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to look after what is under way: outcomes are recorded, also of what an earlier console began."""
        task = asyncio.create_task(self.recording.run(), name="recording")
        self._tasks.add(task)

    async def close(self) -> None:
        """Let go: what runs goes on; a lease whose lane has neither window nor operation is given back."""
        if self._whole_tasks:
            await asyncio.wait(set(self._whole_tasks), timeout=LET_GO_S)
        ending = (*self._tasks, *self._holding.tasks)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        snapshot = self._ground.snapshot()
        busy = {view.name for view in snapshot.lanes if runs(view) is not None or windowed(view)}
        busy |= self.deciding.frozen.keys() | self.recording.lanes() | self.tenure.taken() | self._carrying.here()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LET_GO_S):
                await self.recording.flush()
                for lane in self.tenure.to_give_back() - busy:
                    await self._settling.settled(lane)
        await self.tenure.close()
        await self._carrying.close()

    async def plan(self, lane: str, verb: Verb, wish: Wish = NO_WISH) -> tuple[Plan, Decision]:
        """What the action would do now, and what it takes for it to go. What it needs is tried out meanwhile."""
        plan, decision = await self.deciding.plan(lane, verb, wish)
        if not decision.denied:
            self._carrying.prepare(self.deciding.view(lane), plan)
        return plan, decision

    # --- acting ----------------------------------------------------------------------------------------------------

    async def act(self, plan: Plan, decision: Decision, confirmation: Confirmation, wish: Wish = NO_WISH) -> str:
        """Carry it out, if the policy gives leave; says what became of the attempt. Raises as `begin` does."""
        return (await self.begin(plan, decision, confirmation, wish)).words

    async def begin(self, plan: Plan, decision: Decision, confirmation: Confirmation, wish: Wish = NO_WISH) -> Begun:
        """The same, for who goes on with it. Raises Refused where nothing was begun, Unclear where nobody knows.

        Whoever stops waiting for it ends nothing: between intent and answer there is no half way.
        """
        return await self._whole(self._begin(plan, decision, confirmation, wish))

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        self._whole_tasks.add(task)
        task.add_done_callback(self._whole_tasks.discard)
        return await asyncio.shield(task)

    async def _begin(self, plan: Plan, decision: Decision, confirmation: Confirmation, wish: Wish) -> Begun:
        async with self.tenure.turn(plan.lane), alone(self._ledger.file, plan.lane) as first:
            if not first and plan.verb is not Verb.ROLLBACK:
                raise Refused(f"another console of yours is just beginning something on {plan.lane}; look again")
            if not decision.break_glass and not plan.unknown:
                await self.deciding.until_read(plan.lane)
            now = self.deciding.planned(plan.lane, plan.verb, wish)
            if now.id != plan.id:
                raise Refused(f"what it rests on has changed: {changed(plan, now)}")
            writable, newest, broken = await asyncio.gather(
                self.deciding.writable(), self.deciding.newest(plan.lane), self.deciding.broken(plan.lane)
            )
            fresh = self.deciding.decided(now, wish, ledger_ok=writable, broken=broken)
            await self.deciding.no_other(plan.lane, plan.verb, newest)
            same_situation(decision, fresh, self.tenure.given_back(plan.lane))
            grant = policy.grant(fresh, confirmation, plan.id, policy.clock())
            # held against the lease before a new one is asked for; whoever begins the operation spends it
            policy.take_up(grant, plan.id, plan.verb, plan.lane, policy.clock(), fresh.epoch)
            return await self._under_lease(plan, fresh, grant, confirmation)

    async def _under_lease(self, plan: Plan, decision: Decision, grant: Grant, confirmation: Confirmation) -> Begun:
        attempt, op = Attempt(plan.verb.value, plan.lane), operation_id(plan.verb)
        try:
            held, came_from = await self._held(plan, decision, attempt)
            epoch = held.epoch if held is not None else 0
            with beginning(self._ledger.file, op):
                ledgered = await self._intent(plan, op, epoch, confirmation, came_from, glass=decision.break_glass)
                try:
                    begun = await self._sent(plan, op, held, grant, attempt, ledgered=ledgered)
                except Refused as refused:
                    await self._not_begun(plan, op, epoch, str(refused))
                    raise
        except Refused as refused:
            await self._let_go(plan.lane, attempt)
            attempt.account_for(refused)
            raise
        self.recording.look_after(op, plan.lane, plan.id)
        self._holding.watch_over(plan.lane)
        return begun

    async def _sent(
        self, plan: Plan, op: str, held: Lease | None, grant: Grant, attempt: Attempt, *, ledgered: bool
    ) -> Begun:
        view, deadline = self.deciding.view(plan.lane), self.deciding.deadline(plan.lane)
        if attempt.what:
            await self._end(plan, view, held, grant, attempt)
        if held is not None:
            await self.tenure.still(plan.lane, held, ask=bool(attempt.what))  # ending something may have taken its time
        try:
            return await self._carrying.begin(view, plan, op, held, grant, ledgered=ledgered, deadline=deadline)
        except Unclear:
            self.recording.look_after(op, plan.lane, plan.id, unclear=True)
            raise

    async def _end(self, plan: Plan, view: LaneView, held: Lease | None, grant: Grant, attempt: Attempt) -> None:
        """End what runs. Raises Refused where it may still act elsewhere than on hosts that were shown as left out."""
        epoch = held.epoch if held is not None else None
        left = await self._carrying.pre_empt(view, epoch, grant, plan.verb)
        attempt.told(over=not left)
        words = f"what should have been ended may still act: {'; '.join(one.words for one in left)}"
        if plan.verb is not Verb.ROLLBACK and any(one.host not in plan.left_out for one in left):
            raise Refused(words)
        if left:
            self._tell(words)  # the way back waits for nobody

    async def _not_begun(self, plan: Plan, op: str, epoch: int, why: str) -> None:
        """An intent that nothing came of is no open end in the record."""
        entry = Entry(plan.lane, why, host=plan.head, op=op, epoch=epoch, plan=plan.id, result=NOT_BEGUN)
        with contextlib.suppress(LedgerError):
            await asyncio.to_thread(self._ledger.outcome, entry)
        self.recording.sync_soon(plan.lane)

    async def _let_go(self, lane: str, attempt: Attempt) -> None:
        """A lease that was taken for nothing keeps others away for nothing."""
        view = self.deciding.view(lane)
        if attempt.new or (not windowed(view) and runs(view) is None):
            await self.tenure.release(lane)
        attempt.given_back = self.tenure.held(lane) is None

    async def carry_on(self, lane: str, typed: str, shown: str) -> Begun:
        """Go on with the newest operation, which nobody carries out any more. Raises Refused. `shown`: the id of the
        lease that the lane was shown with, '' without one."""
        view = self.deciding.view(lane)
        acting = view.acting.value if view.acting is not None else None
        found = acting.operation if acting is not None else None
        if found is None or found.state in (OperationState.RUNNING, OperationState.DONE):
            raise Refused("there is nothing to carry on" if found is None else f"{found.id} is {found.state.value}")
        following = "What comes next is R or B" if unfinished(view) is None else "B says what is left"
        if found.ended is not None:
            raise Refused(f"{found.id} has ended: {found.words or found.state.value}. {following}")
        if not found.plan_id:
            raise Refused(f"the plan of {found.id} cannot be read: nobody can carry it on. {following}")
        verb = Verb(found.verb)
        plan = self.deciding.planned(lane, verb, NO_WISH)
        decision = self.deciding.decided(
            replace(plan, refused="", unknown=()), NO_WISH, ledger_ok=await self.deciding.writable()
        )
        confirmation = Confirmation(policy.How.NAME, found.plan_id, policy.clock(), name=typed)
        async with self._settling.by_itself(lane):
            grant = policy.grant(decision, confirmation, found.plan_id, policy.clock())
            policy.take_up(grant, found.plan_id, verb, lane, policy.clock(), decision.epoch)
            over = decision.takes_over
            async with self._holding.taken(view, found.verb, over=over, shown=shown) as (held, came_from):
                await self._holding.note(
                    lane, f"{found.id} is carried on", held.epoch, found.plan_id, came_from, op=found.id
                )
                begun = await self._carrying.carry_on(view, found.id, held, grant)
            self.recording.look_after(found.id, lane, found.plan_id, after=found.spoke)
            return begun

    async def _held(self, plan: Plan, decision: Decision, attempt: Attempt) -> tuple[Lease | None, str]:
        """The lease that it goes under; None only for break-glass without a head. Raises Refused."""
        view = self.deciding.view(plan.lane)
        # a rollback takes the lane from whoever holds it; all else from nobody but the one who was shown
        seen = self.deciding.lease_id(plan.lane) if plan.verb is not Verb.ROLLBACK else None
        if decision.ends:
            acting = acting_of(view)
            attempt.ending(decision.ends, acting.operation if acting is not None else None)
        ours = self.tenure.ours(view)
        try:
            held, came_from = await self.tenure.hold(view, plan.verb.value, over=decision.takes_over, shown=seen)
            attempt.held(came_from, new=held.id not in ours, other=came_from not in ("", self.own.operator))
            if decision.ends:
                held = await self.tenure.renumber(view, plan.verb.value)
                attempt.fenced()
        except HeldByAnother:
            raise  # break-glass goes without a lease that nobody can give, never past one that another holds
        except Refused:
            if decision.break_glass:
                return None, ""
            raise
        return held, came_from

    async def _intent(
        self, plan: Plan, op: str, epoch: int, confirmation: Confirmation, came_from: str, *, glass: bool
    ) -> bool:
        """On the disk before anything is sent. Raises Refused where it cannot be; break-glass goes without."""
        how = f"confirmed by {confirmation.how.value}"
        reason = f", reason: {word(confirmation.reason, 400)}" if confirmation.reason else ""
        text = f"{plan.title}: {plan.origin} to {plan.target}; {how}{reason}"
        commands = tuple(f"{step.host}: {command_words(step)}" for step in plan.steps if step.argv)
        entry = Entry(plan.lane, text, host=plan.head, op=op, epoch=epoch, plan=plan.id, argv=commands)
        try:
            if came_from and came_from != self.own.operator:
                words = f"{self.own.operator} takes {plan.lane} over from {came_from}"
                await asyncio.to_thread(self._ledger.takeover, replace(entry, text=words))
            record = self._ledger.break_glass if glass else self._ledger.intent
            await asyncio.to_thread(record, entry)
        except LedgerError as error:
            if not glass:
                raise Refused(f"{error}: no record, no action; or break-glass") from error
            self.recording.owe(replace(entry, text=f"UNLEDGERED until now. {text}"))
            return False
        self.recording.sync_soon(plan.lane, after=COPY_AFTER_S)
        return True

    # --- windows and the lease -------------------------------------------------------------------------------------

    async def open_window(
        self, lane: str, reason: str, deadline_s: float, typed: str, *, without_way_back: bool = False
    ) -> str:
        """Open a switch window: the lease is taken, way back and target are frozen."""
        work = self._holding.open_window(lane, reason, deadline_s, typed, without_way_back=without_way_back)
        return await self._whole(work)

    async def close_window(self, lane: str, typed: str) -> str:
        """Close it, and give the lease back."""
        return await self._whole(self._holding.close_window(lane, typed))

    async def offer(self, lane: str, to: str) -> str:
        """Offer the lease to another operator; '' takes the offer back."""
        return await self._whole(self._holding.offer(lane, to))

    async def accept(self, lane: str) -> str:
        """Take a lease that was offered to us."""
        return await self._whole(self._holding.accept(lane))

    async def take_over(self, lane: str, typed: str, shown: str) -> str:
        """Take the lane from whom it was shown with: their next step is fenced off. `shown`: the id of that lease, ''
        where nobody could be named."""
        return await self._whole(self._holding.take_over(lane, typed, shown))

    def mine(self, lane: str) -> bool:
        """Whether the lane's lease is this operator's on this machine, as far as its head was read."""
        acting = self.deciding.view(lane).acting
        held = acting.value.lease if acting is not None and acting.value is not None else None
        if held is None:
            return False
        own = self.tenure.held(lane)
        return (own is not None and own.id == held.id) or is_mine(held, self.own)

    def carries(self) -> tuple[str, ...]:
        """Lanes whose operation runs in this console, and is cut when it closes."""
        return tuple(sorted(self._carrying.here()))

    def cleared(self, op: str) -> Cleared:
        """What was found out of a start whose answer was lost (`Unclear`); it is asked for again and again."""
        return self.recording.cleared(op)

    def seen_here(self, lane: str) -> Operation | None:
        """The operation that this console carries out itself, where its head may not tell of it."""
        return self._carrying.seen_here(lane)

    async def ledger(self) -> tuple[Record, ...]:
        """The record, oldest first."""
        verified = await asyncio.to_thread(self._ledger.verify)
        return verified.text.records
