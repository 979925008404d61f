"""What an action would do now and what it takes for it to go: a plan from the newest picture, decided by the policy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from console.actions.plan import Plan, Verb
from console.actions.plans import plan_of
from console.actions.underway import acting_of
from console.execution import files, policy, window
from console.execution.broken import able
from console.execution.ledger import Ledger, LedgerError
from console.execution.policy import Decision, Refused
from console.execution.situation import Me, situation
from console.execution.tenure import Ground, Tenure, frozen_plan
from console.readings.acting import CURRENT, JOURNAL, OPERATION, PLAN
from console.readings.acting_operation import read_operation
from console.readings.link import LinkStatus
from console.sanitize import word
from console.snapshot import LaneView, Snapshot


@dataclass(frozen=True, slots=True)
class Wish:
    """How an action is asked for beyond its verb."""

    drain_s: float = 0.0
    break_glass: bool = False
    take_over: bool = False
    forward: bool = False
    """Away from where a rollback led that is not finished."""


NO_WISH = Wish()
NEWEST_S = 2.0
"""Seconds that the head has to name its newest operation before an action begins, and that a console which slept has
to read its hosts again; nothing waits longer for that."""


class Deciding:
    """Plans and decisions of one console. Changes nothing anywhere."""

    def __init__(self, ground: Ground, own: Me, tenure: Tenure, ledger: Ledger, *, read_only: bool) -> None:
        self._ground, self.own, self.tenure, self._ledger = ground, own, tenure, ledger
        self.read_only = read_only
        self.here: Callable[[str], tuple[str, Verb] | None] = lambda lane: None
        """Id and verb of the operation that this console itself carries out on a lane."""
        self.frozen: dict[str, window.Window] = {}
        """Open windows as their heads have them."""

    async def plan(self, lane: str, verb: Verb, wish: Wish) -> tuple[Plan, Decision]:
        """What the action would do now, and what it takes for it to go."""
        writable, broken, _ = await asyncio.gather(self.writable(), self.broken(lane), self.read_frozen(lane))
        plan = self.planned(lane, verb, wish)
        return plan, self.decided(plan, wish, ledger_ok=writable, broken=broken)

    def deadline(self, lane: str) -> float | None:
        """The window's, Unix seconds by the head's clock; it may have passed. None without a window."""
        found = self.frozen.get(lane)
        return found.deadline if found is not None else None

    async def writable(self) -> bool:
        """Whether the ledger could be written now: a full disk is found before the operator confirms."""
        try:
            await asyncio.to_thread(self._ledger.check)
        except LedgerError:
            return False
        return True

    async def broken(self, lane: str) -> str:
        """Why the head's state folder cannot be used, found before the operator confirms; '' where it can, where the
        head is out of reach anyway, or where it does not say."""
        snapshot = self._ground.snapshot()
        link, folder = self.tenure.way(lane)
        if self.read_only or snapshot.host(snapshot.lane(lane).lane.head).link.status is not LinkStatus.UP:
            return ""
        return (await able(link, folder)).broken

    async def until_read(self, lane: str, *, of_all: bool = True) -> None:
        """Wait until what a plan rests on is read as it is now, for NEWEST_S at most: a console that slept between a
        look and its confirmation knows nothing for a moment, and would say that something has changed. Without
        `of_all` only of hosts that can be asked: one that is out of reach keeps nobody waiting."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(NEWEST_S):
                while not self._read_now(lane, of_all=of_all):  # noqa: ASYNC110 - a snapshot is asked for
                    await asyncio.sleep(0.05)

    def _read_now(self, lane: str, *, of_all: bool) -> bool:
        snapshot, view = self._ground.snapshot(), self.view(lane)

        def asked(host: str) -> bool:
            return of_all or snapshot.host(host).link.status is LinkStatus.UP

        hosts = view.lane.rank_hosts if view.lane.runs_in == "docker" else ()
        boxes = [snapshot.host(host).containers for host in hosts if asked(host)]
        acting = view.acting is not None and view.acting.current(snapshot.now) is not None
        return (acting or not asked(view.lane.head)) and all(one.current(snapshot.now) is not None for one in boxes)

    async def newest(self, lane: str) -> str:
        """The newest operation by the head's own word, now; '' where there is none, or it does not say in time."""
        link, folder = self.tenure.way(lane)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(NEWEST_S):
                return (await files.read(link, folder, CURRENT)).text.strip()
        return ""

    async def until_shown(self, lane: str, op: str) -> None:
        """Wait until the picture shows this operation as the newest one, for NEWEST_S at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(NEWEST_S if OPERATION.fullmatch(op) else 0.0):
                while not self._shows(lane, op):  # noqa: ASYNC110 - a snapshot is asked for
                    await asyncio.sleep(0.05)

    def _shows(self, lane: str, op: str) -> bool:
        acting = acting_of(self.view(lane))
        return acting is not None and acting.operation is not None and acting.operation.id == op

    async def no_other(self, lane: str, verb: Verb | None, newest: str) -> None:
        """Raises Refused where the head names a newer operation than the one that was seen: it was begun just now, by
        this console or by another one, and may run. Says whose it is, as the head has it at this moment."""
        reading, now = self.view(lane).acting, self._ground.snapshot().now
        acting = reading.current(now) if reading is not None else None
        seen = acting.operation.id if acting is not None and acting.operation is not None else ""
        if acting is not None and newest != seen and OPERATION.fullmatch(newest):
            raise Refused(await self._just_begun(lane, verb, newest))

    async def _just_begun(self, lane: str, verb: Verb | None, op: str) -> str:
        """What an operation is that this console has not read yet, in safe words."""
        link, folder = self.tenure.way(lane)
        plan = journal = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(NEWEST_S):
                plan, journal = await asyncio.gather(
                    *(files.read(link, folder, f"ops/{op}/{name}") for name in (PLAN, JOURNAL))
                )
        if plan is None or journal is None or not plan.there:
            return f"{word(op, 80)} was just begun and is not read yet; look again"
        whole = journal.size == len(journal.data)
        found = read_operation(op, lane, plan.text, journal.text if journal.there else None, whole, [])
        what = f"{found.verb} by {found.operator or 'another console'} (operation {found.id})"
        if verb is not None and found.ended is None and found.verb == verb.value:
            return f"{what} runs already: attach to it, or end it first"
        return f"{what} was begun since this was shown, it is {found.state.value}; look again"

    def lease_id(self, lane: str) -> str:
        """Of the lease that is shown; '' without one."""
        acting = acting_of(self.view(lane))
        return acting.lease.id if acting is not None and acting.lease is not None else ""

    def view(self, lane: str) -> LaneView:
        """The lane now."""
        return self._ground.snapshot().lane(lane)

    def planned(self, lane: str, verb: Verb, wish: Wish) -> Plan:
        """What the action would do now."""
        snapshot = self._ground.snapshot()
        view = snapshot.lane(lane)
        frozen = frozen_plan(self.frozen.get(lane)) if verb is Verb.ROLLBACK else None
        recipe, places = self._ground.recipes[lane], self._ground.places(lane)
        plan = plan_of(verb, snapshot, view, recipe, places, frozen=frozen, drain_s=wish.drain_s, forward=wish.forward)
        if frozen is not None and plan.refused and not wish.forward and not _all_read(snapshot, view):
            # not proved impossible, only not seen now: the steps as they were frozen still name everything by id
            return replace(frozen, unknown=(f"readiness: {plan.refused}",))
        return plan

    def decided(self, plan: Plan, wish: Wish, *, ledger_ok: bool, broken: str = "") -> Decision:
        """What it takes for the plan to go now. `broken`: why the head's state folder cannot be used."""
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
            broken=broken,
            here=self.here(plan.lane),
        )
        if wish.take_over and found.holder is policy.Holder.OTHER:
            found = replace(found, holder=policy.Holder.EXPIRED)
        return policy.decide(plan.verb, found)

    async def read_frozen(self, lane: str) -> None:
        """The window as the head has it, once: its frozen way back is what B goes by."""
        view = self.view(lane)
        seen = view.acting.value.window if view.acting is not None and view.acting.value is not None else None
        if seen is None:
            self.frozen.pop(lane, None)
        elif lane not in self.frozen or self.frozen[lane].id != seen.id:
            with contextlib.suppress(Refused):
                found = await self.tenure.read_window(lane)
                if found is not None:
                    self.frozen[lane] = found


def _all_read(snapshot: Snapshot, view: LaneView) -> bool:
    """Whether containers and site file are known as they are now."""
    site = view.site is None or view.site.current(snapshot.now) is not None
    readings = (snapshot.host(host).containers.current(snapshot.now) for host in view.lane.rank_hosts)
    return site and all(held is not None and not held.problem for held in readings)


def windowed(view: LaneView) -> bool:
    """Whether a window is open on the lane."""
    acting = view.acting.value if view.acting is not None else None
    return acting is not None and acting.window is not None


def same_situation(shown: Decision, fresh: Decision, given_back: int = 0) -> None:
    """Raises Refused where the operator did not see what it takes now. `given_back`: the epoch of the lease that this
    console itself gave back last, at the end of what it did before: nothing changed hands by that."""
    if shown.denied or fresh.denied:
        raise Refused(shown.denied or fresh.denied)
    for name, words in (("takes_over", "takes"), ("break_glass", "is break-glass"), ("ends", "ends")):
        if getattr(fresh, name) and getattr(fresh, name) != getattr(shown, name):
            told = next((warning for warning in fresh.warnings if warning.startswith(f"{words} ")), words)
            raise Refused(f"it {told} now, which was not shown; look again")
    if shown.epoch not in (0, fresh.epoch, given_back):
        what = "changed hands" if fresh.epoch else "was given back"
        raise Refused(f"the lease {what} since this was shown; look again")


def changed(before: Plan, now: Plan) -> str:
    """What differs between two plans, in words."""
    if now.refused:
        return now.refused
    was, is_now = dict(before.facts), dict(now.facts)
    for name in sorted(was.keys() | is_now.keys()):
        if was.get(name) != is_now.get(name):
            return f"{name} was {was.get(name, 'not there')}, is {is_now.get(name, 'not there')}"
    return "its steps came out different; look at it again"
