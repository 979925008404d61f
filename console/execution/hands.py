"""The operator's hands: a plan from the newest picture, a decision by the policy, and only with its Grant an effect.

Everything that acts comes through here: keys, palette, `:` commands and the command line. Answers are safe words.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from console import format as fmt
from console.actions.plan import Plan, Verb
from console.actions.plans import plan_of
from console.actions.telling import command_words
from console.actions.underway import head_now, runs
from console.execution import deadman, policy, window
from console.execution.carrying import Begun, Carrying, operation_id
from console.execution.ledger import CARRIED_ON, Entry, Ledger, LedgerError, ledger_file
from console.execution.policy import Confirmation, Decision, Refused
from console.execution.recording import Recording
from console.execution.situation import me, situation
from console.execution.tenure import Ground, Tenure, frozen_plan
from console.readings.acting_types import Lease, OperationState
from console.readings.ledger import Record
from console.readings.redaction import secrets_of
from console.sanitize import word
from console.snapshot import LaneView, Snapshot


@dataclass(frozen=True, slots=True)
class Wish:
    """How an action is asked for beyond its verb."""

    drain_s: float = 0.0
    break_glass: bool = False
    take_over: bool = False


NO_WISH = Wish()


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
        self._frozen: dict[str, window.Window] = {}
        self._acting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    # --- life ------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to look after what is under way: outcomes are recorded, also of what an earlier console began."""
        task = asyncio.create_task(self.recording.run(), name="recording")
        self._tasks.add(task)

    async def close(self) -> None:
        """Let go: what runs goes on; a lease whose lane has neither window nor operation is given back."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        snapshot = self._ground.snapshot()
        busy = {view.name for view in snapshot.lanes if runs(view) is not None or _windowed(view)}
        busy |= self._frozen.keys() | self.recording.lanes()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                await self.recording.flush()
                await self.tenure.close(frozenset(busy | self._carrying.here()))
        await self._carrying.close()

    # --- deciding --------------------------------------------------------------------------------------------------

    async def plan(self, lane: str, verb: Verb, wish: Wish = NO_WISH) -> tuple[Plan, Decision]:
        """What the action would do now, and what it takes for it to go."""
        await self._read_frozen(lane)
        plan = self._planned(lane, verb, wish)
        self._carrying.prepare(self._view(lane), plan)
        return plan, self._decided(plan, wish, ledger_ok=await self._writable())

    async def _writable(self) -> bool:
        """Whether the ledger could be written now: a full disk is found before the operator confirms."""
        try:
            await asyncio.to_thread(self._ledger.check)
        except LedgerError:
            return False
        return True

    def _view(self, lane: str) -> LaneView:
        return self._ground.snapshot().lane(lane)

    def _planned(self, lane: str, verb: Verb, wish: Wish) -> Plan:
        snapshot = self._ground.snapshot()
        view = snapshot.lane(lane)
        frozen = frozen_plan(self._frozen.get(lane)) if verb is Verb.ROLLBACK else None
        recipe, places = self._ground.recipes[lane], self._ground.places(lane)
        plan = plan_of(verb, snapshot, view, recipe, places, frozen=frozen, drain_s=wish.drain_s)
        if frozen is not None and plan.refused and not _all_read(snapshot, view):
            # not proved impossible, only not seen now: the steps as they were frozen still name everything by id
            return replace(frozen, unknown=(f"readiness: {plan.refused}",))
        return plan

    def _decided(self, plan: Plan, wish: Wish, *, ledger_ok: bool) -> Decision:
        snapshot = self._ground.snapshot()
        found = situation(
            snapshot,
            snapshot.lane(plan.lane),
            plan,
            self.own,
            held=self.tenure.held(plan.lane),
            ledger_ok=ledger_ok,
            read_only=self.read_only,
            break_glass=wish.break_glass,
        )
        if wish.take_over and found.holder is policy.Holder.OTHER:
            found = replace(found, holder=policy.Holder.EXPIRED)
        return policy.decide(plan.verb, found)

    async def _read_frozen(self, lane: str) -> None:
        """The window as the head has it, once: its frozen way back is what B goes by."""
        view = self._view(lane)
        seen = view.acting.value.window if view.acting is not None and view.acting.value is not None else None
        if seen is None:
            self._frozen.pop(lane, None)
        elif lane not in self._frozen or self._frozen[lane].id != seen.id:
            with contextlib.suppress(Refused):
                found = await self.tenure.read_window(lane)
                if found is not None:
                    self._frozen[lane] = found

    # --- acting ----------------------------------------------------------------------------------------------------

    async def act(self, plan: Plan, decision: Decision, confirmation: Confirmation, wish: Wish = NO_WISH) -> str:
        """Carry it out, if the policy gives leave; says what became of the attempt."""
        try:
            begun = await self.begin(plan, decision, confirmation, wish)
        except Refused as refused:
            return f"{plan.verb} refused: {refused}. Nothing was sent."
        return begun.words

    async def begin(self, plan: Plan, decision: Decision, confirmation: Confirmation, wish: Wish = NO_WISH) -> Begun:
        """The same, for who goes on with it. Raises Refused: then nothing was begun."""
        async with self._acting:
            now = self._planned(plan.lane, plan.verb, wish)
            if now.id != plan.id:
                raise Refused(f"what it rests on has changed: {_changed(plan, now)}")
            fresh = self._decided(now, wish, ledger_ok=await self._writable())
            _same_situation(decision, fresh)
            grant = policy.grant(fresh, confirmation, plan.id, policy.clock())
            # spent before lease and record are asked for: a slow head must not let a leave run out half used
            policy.spend(grant, plan.id, plan.verb, plan.lane, policy.clock(), fresh.epoch)
            held, came_from = await self._held(plan, fresh)
            op = operation_id(plan.verb)
            epoch = held.epoch if held is not None else 0
            ledgered = await self._intent(plan, op, epoch, confirmation, came_from, glass=fresh.break_glass)
            if fresh.ends:
                await self._carrying.pre_empt(self._view(plan.lane), epoch)
            begun = await self._carrying.begin(
                self._view(plan.lane), plan, op, held, ledgered=ledgered, deadline=self._deadline(plan.lane)
            )
            self.recording.look_after(op, plan)
            self._watch_over(plan.lane)
            return begun

    async def carry_on(self, lane: str, typed: str) -> Begun:
        """Go on with the newest operation, which nobody carries out any more. Raises Refused."""
        view = self._view(lane)
        acting = view.acting.value if view.acting is not None else None
        found = acting.operation if acting is not None else None
        if found is None or found.state in (OperationState.RUNNING, OperationState.DONE):
            raise Refused("there is nothing to carry on" if found is None else f"{found.id} is {found.state.value}")
        verb = Verb(found.verb)
        plan = self._planned(lane, verb, NO_WISH)
        decision = self._decided(replace(plan, refused="", unknown=()), NO_WISH, ledger_ok=await self._writable())
        confirmation = Confirmation(policy.How.NAME, found.plan_id, policy.clock(), name=typed)
        async with self._acting:
            grant = policy.grant(decision, confirmation, found.plan_id, policy.clock())
            policy.spend(grant, found.plan_id, verb, lane, policy.clock(), decision.epoch)
            held, came_from = await self.tenure.hold(view, found.verb, over=decision.takes_over)
            await self._note(lane, f"{found.id} is carried on", held.epoch, found.plan_id, came_from, op=found.id)
            begun = await self._carrying.carry_on(view, found.id, held)
            self.recording.look_after(found.id, replace(plan, lane=lane))
            return begun

    async def _held(self, plan: Plan, decision: Decision) -> tuple[Lease | None, str]:
        """The lease that it goes under; None only for break-glass without a head. Raises Refused."""
        view = self._view(plan.lane)
        try:
            held, came_from = await self.tenure.hold(view, plan.verb.value, over=decision.takes_over)
        except Refused:
            if decision.break_glass:
                return None, ""
            raise
        if decision.ends:
            held = await self.tenure.renumber(view, plan.verb.value)
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
        self.recording.sync_soon(plan.lane)
        return True

    def _deadline(self, lane: str) -> float | None:
        """Until when a debt that is made now is to be paid: the window's deadline, Unix seconds by the head's clock."""
        found = self._frozen.get(lane)
        return found.deadline if found is not None else None

    # --- windows and the lease -------------------------------------------------------------------------------------

    async def open_window(
        self, lane: str, reason: str, deadline_s: float, typed: str, *, without_way_back: bool = False
    ) -> str:
        """Open a switch window: the lease is taken, way back and target are frozen."""
        try:
            opened = await self._opened(lane, window.Opening(typed, reason, deadline_s, without_way_back))
        except Refused as refused:
            return f"no window was opened: {refused}"
        back = f"B leads back to {opened.target}" if opened.target else "no way back"
        return f"window {opened.id} open until {fmt.clock(opened.deadline)}; {back}"

    async def _opened(self, lane: str, asked: window.Opening) -> window.Window:
        if self.read_only:
            raise Refused("this console is read-only (--read-only)")
        view = self._view(lane)
        plan = self._planned(lane, Verb.ROLLBACK, NO_WISH)
        now = head_now(self._ground.snapshot(), view)
        window.open_window(asked, plan, operator=self.own.operator, epoch=0, now=now)  # refused before a lease is taken
        if _windowed(view):
            raise Refused("a window is open on this lane already")
        held, came_from = await self.tenure.hold(view, f"window: {word(asked.reason, 120)}")
        opened = window.open_window(asked, plan, operator=self.own.operator, epoch=held.epoch, now=now)
        text = f"window {opened.id} opened until {fmt.clock(opened.deadline)}, reason: {opened.reason}"
        await self._note(lane, f"{text}; way back: {opened.target or 'none'}", held.epoch, opened.plan_id, came_from)
        await self.tenure.write_window(lane, opened, held.epoch)
        self._frozen[lane] = opened
        self._carrying.prepare(view, plan)
        self._watch_over(lane)
        return opened

    def _watch_over(self, lane: str) -> None:
        """Where a webhook is configured, the head tells people should this console be gone with something owed."""
        fleet = self._ground.snapshot().fleet
        if webhook := os.environ.get(fleet.notify.webhook_env, ""):
            task = asyncio.create_task(self._arm_deadman(lane, webhook), name=f"dead man {lane}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _arm_deadman(self, lane: str, webhook: str) -> None:
        fleet = self._ground.snapshot().fleet
        link, folder = self.tenure.way(lane)
        asked = fleet.lanes[lane]
        health = f"{asked.url}{asked.health_path}" if asked.via == "ssh" else ""
        found = await deadman.arm(link, folder, webhook=webhook, fleet=fleet.name, lane=lane, health=health)
        if not found.armed:
            self._tell(f"the head will tell nobody if this console is gone: {found.problem or 'it did not say'}")

    async def close_window(self, lane: str, typed: str) -> str:
        """Close it, and give the lease back."""
        try:
            words = await self._closed(lane, typed)
        except Refused as refused:
            return f"the window stays open: {refused}"
        return words

    async def _closed(self, lane: str, typed: str) -> str:
        view = self._view(lane)
        opened = await self.tenure.read_window(lane)
        if opened is None:
            raise Refused("none is open on this lane")
        held, _ = await self.tenure.hold(view, "close the window")
        acting = view.acting.value if view.acting is not None else None
        running = runs(view)
        closing = window.Closing(
            self.own.operator,
            holds=True,
            typed=typed,
            debts=acting.debts if acting is not None else (),
            running=f"{running.verb} ({running.id})" if running is not None else "",
        )
        words = window.close_window(opened, closing, head_now(self._ground.snapshot(), view))
        await self._note(lane, words, held.epoch, opened.plan_id)
        await self.tenure.drop_window(lane, held.epoch)
        self._frozen.pop(lane, None)
        await self.recording.sync(lane)
        await self.tenure.release(lane)
        return words

    async def offer(self, lane: str, to: str) -> str:
        """Offer the lease to another operator; '' takes the offer back."""
        try:
            await self.tenure.offer(self._view(lane), to)
            await self._note(lane, f"{lane} offered to {word(to, 80) or 'nobody any more'}", 0)
        except Refused as refused:
            return f"not offered: {refused}"
        return f"{lane} is offered to {word(to, 80)}: they accept with H" if to else "the offer is taken back"

    async def accept(self, lane: str) -> str:
        """Take a lease that was offered to us."""
        try:
            held, came_from = await self.tenure.accept(self._view(lane))
            await self._note(lane, f"{lane} accepted", held.epoch, "", came_from)
        except Refused as refused:
            return f"not accepted: {refused}"
        return f"{lane} is yours now, from {came_from or 'nobody'}"

    async def take_over(self, lane: str, typed: str) -> str:
        """Take the lane from whoever holds it: their next step is fenced off."""
        if typed != lane or self.read_only:
            why = "this console is read-only" if self.read_only else f"type the lane's name, {lane}"
            return f"not taken over: {why}"
        try:
            held, came_from = await self.tenure.hold(self._view(lane), "taken over", over=True)
            await self._note(lane, f"{lane} taken over", held.epoch, "", came_from)
        except Refused as refused:
            return f"not taken over: {refused}"
        return f"{lane} is yours now, taken from {came_from}" if came_from else f"{lane} is yours"

    async def ledger(self) -> tuple[Record, ...]:
        """The record, oldest first."""
        verified = await asyncio.to_thread(self._ledger.verify)
        return verified.text.records

    async def _note(
        self, lane: str, text: str, epoch: int, plan: str = "", came_from: str = "", *, op: str = ""
    ) -> None:
        """Record what is done to lease or window, or that `op` is carried on. Raises Refused where it cannot be."""
        other = came_from not in ("", self.own.operator)
        words = f"{text}; {self.own.operator} takes over from {came_from}" if other else text
        entry = Entry(lane, words, op=op, epoch=epoch, plan=plan, result=CARRIED_ON if op else "")
        try:
            await asyncio.to_thread(self._ledger.takeover if other else self._ledger.note, entry)
        except LedgerError as error:
            raise Refused(str(error)) from error
        self.recording.sync_soon(lane)


def _all_read(snapshot: Snapshot, view: LaneView) -> bool:
    """Whether containers and site file are known as they are now."""
    site = view.site is None or view.site.current(snapshot.now) is not None
    readings = (snapshot.host(host).containers.current(snapshot.now) for host in view.lane.rank_hosts)
    return site and all(held is not None and not held.problem for held in readings)


def _windowed(view: LaneView) -> bool:
    acting = view.acting.value if view.acting is not None else None
    return acting is not None and acting.window is not None


def _same_situation(shown: Decision, fresh: Decision) -> None:
    """Raises Refused where the operator did not see what it takes now."""
    if shown.denied:
        raise Refused(shown.denied)
    if shown.epoch not in (0, fresh.epoch):
        raise Refused("the lease changed hands since this was shown; look again")
    for name, words in (("takes_over", "takes the lane over"), ("break_glass", "is break-glass"), ("ends", "ends")):
        if getattr(fresh, name) and getattr(fresh, name) != getattr(shown, name):
            more = f" {fresh.ends}" if name == "ends" else ""
            raise Refused(f"it {words}{more} now, which was not shown; look again")


def _changed(before: Plan, now: Plan) -> str:
    """What differs between two plans, in words."""
    if now.refused:
        return now.refused
    was, is_now = dict(before.facts), dict(now.facts)
    for name in sorted(was.keys() | is_now.keys()):
        if was.get(name) != is_now.get(name):
            return f"{name} was {was.get(name, 'not there')}, is {is_now.get(name, 'not there')}"
    return "its steps came out different; look at it again"
