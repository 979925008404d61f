"""This console's hold on its lanes: leases renewed, taken, handed over and given back; windows beside them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from console.actions.plan import Plan
from console.execution import files, lease, window
from console.execution.lease import Keeper, LeaseAnswer, holder_words
from console.execution.policy import Refused
from console.execution.situation import Me, is_mine
from console.fleet.operator import trouble
from console.fleet.places import Places
from console.fleet.recipe import Recipe
from console.reach.link import Link
from console.readings.acting import LEASE, lease_text
from console.readings.acting_types import Acting, Lease
from console.snapshot import LaneView, Snapshot

WINDOW, DEBTS = "window.json", "debts.json"


class HeldByAnother(Refused):
    """Somebody else holds the lane, by the head's own word."""


class Ground(Protocol):
    """What the operator's hands stand on: the feed, or a rehearsal of it."""

    @property
    def links(self) -> Mapping[str, Link]:
        """The way to each host."""
        ...

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """By lane."""
        ...

    def places(self, lane: str) -> Places:
        """Where the things of a lane lie."""
        ...

    def snapshot(self) -> Snapshot:
        """The newest picture."""
        ...

    def told(self, lane: str, file: str, text: str | None) -> None:
        """What the head has just said of a file in the lane's folder, because this console wrote it; None: it is gone.

        A reading like any other, as old as the answer: the console need not wait for the next look to know it.
        """
        ...

    def unsynced(self, lane: str, lines: int) -> None:
        """Show how many lines of this machine's ledger the lane's head does not have yet."""
        ...


class Tenure:
    """The leases of one console."""

    def __init__(self, ground: Ground, own: Me) -> None:
        self._ground, self.own = ground, own
        self._keepers: dict[str, Keeper] = {}
        self._given_back: dict[str, int] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    def turn(self, lane: str) -> asyncio.Lock:
        """Held by whatever begins on a lane or changes its lease or window, so that none of it lets go of the lease
        under which another is just beginning."""
        return self._turns.setdefault(lane, asyncio.Lock())

    def taken(self) -> frozenset[str]:
        """Lanes whose turn is taken now."""
        return frozenset(lane for lane, turn in self._turns.items() if turn.locked())

    def to_give_back(self) -> frozenset[str]:
        """Lanes whose lease this console keeps, and offers to nobody."""
        return frozenset(lane for lane, keeper in self._keepers.items() if not keeper.lease.offered_to)

    def given_back(self, lane: str) -> int:
        """The epoch under which this console held the lane when it gave it back last; 0 without one."""
        return self._given_back.get(lane, 0)

    def held(self, lane: str) -> Lease | None:
        """The lease that this console keeps renewed; None without one, or once it was lost."""
        keeper = self._keepers.get(lane)
        return None if keeper is None or keeper.lost.is_set() else keeper.lease

    def ours(self, view: LaneView) -> frozenset[str]:
        """Ids of the leases of the lane that are ours, by this console's knowledge and by the picture's."""
        return frozenset(one.id for one in (self.held(view.name), self._ours(view)) if one is not None)

    def lost(self, lane: str) -> str:
        """Who took the lane from this console, in words; '' if nobody did."""
        keeper = self._keepers.get(lane)
        return keeper.words if keeper is not None and keeper.lost.is_set() and keeper.holder is not None else ""

    def way(self, lane: str) -> tuple[Link, str]:
        """The link to the lane's head, and the lane's folder there. Raises KeyError."""
        fleet = self._ground.snapshot().fleet
        return self._ground.links[fleet.lanes[lane].head], fleet.lane_folder(lane)

    async def hold(
        self, view: LaneView, purpose: str, *, over: bool = False, shown: str | None = None
    ) -> tuple[Lease, str]:
        """A lease that is ours for sure, and whom it was taken from ('' if nobody). Raises Refused, and HeldByAnother.

        `over`: may be taken from another, or from whoever let it run out; with `shown` from the lease of that id alone,
        with '' from nobody who can be named.
        """
        keeper = self._keepers.get(view.name)
        if keeper is not None and await keeper.mine():
            return keeper.lease, ""
        words = await self._drop(view.name)
        if words and not over:
            raise HeldByAnother(f"fenced off: {words}. Queued keys were dropped")
        link, folder = self.way(view.name)
        if (known := self._ours(view)) is not None:
            answer = await lease.renew(link, folder, known.id)
            if answer.granted:
                return self._keep(view.name, answer), ""
        answer = await lease.take(link, folder, self.own.operator, self.own.console, purpose)
        found = answer.lease if not answer.granted else None
        if found is not None and over and not is_mine(found, self.own) and shown not in (None, found.id):
            raise HeldByAnother(f"held by {found.operator} by now, which was not shown; look again")
        if found is not None and (is_mine(found, self.own) or over):
            seen = found.id
            answer = await lease.take(link, folder, self.own.operator, self.own.console, purpose, over=True, seen=seen)
        elif answer.damaged and over:
            answer = await lease.take(link, folder, self.own.operator, self.own.console, purpose, over=True)
        return self._keep(view.name, answer), answer.taken_from

    async def renumber(self, view: LaneView, purpose: str) -> Lease:
        """The same hold under a newer epoch: whatever was begun under the old one is fenced off. Raises Refused."""
        current, _ = await self.hold(view, purpose)
        await self._drop(view.name)
        link, folder = self.way(view.name)
        own = self.own
        answer = await lease.take(link, folder, own.operator, own.console, purpose, over=True, seen=current.id)
        return self._keep(view.name, answer)

    async def still(self, lane: str, held: Lease, *, ask: bool) -> None:
        """Raises Refused unless that lease is ours still; `ask`: by the head's own word of now, whatever was known."""
        keeper = self._keepers.get(lane)
        if keeper is not None and ask and not keeper.lost.is_set():
            await keeper.renew()  # one that does not answer changes nothing
        if keeper is None or keeper.lease.epoch != held.epoch or not await keeper.mine():
            words = self.lost(lane) or (keeper.words if keeper is not None else "") or "it was given back"
            raise HeldByAnother(f"the lease is not ours any more: {words}")

    async def release(self, lane: str) -> None:
        """Give the lease back, if it is ours."""
        keeper = self._keepers.pop(lane, None)
        if keeper is not None:
            if not keeper.lost.is_set():
                self._given_back[lane] = keeper.lease.epoch
            if (await keeper.release()).granted:
                self._ground.told(lane, LEASE, None)

    async def close(self) -> None:
        """Stop renewing: leases that were not given back run out by themselves."""
        for lane in tuple(self._keepers):
            await self._drop(lane)

    async def offer(self, view: LaneView, to: str) -> None:
        """Offer the lease to another operator, who may accept it when this console is gone. Raises Refused."""
        if to and (why := trouble(to)):
            raise Refused(f"not an operator's name: {why}")
        held, _ = await self.hold(view, "hand over")
        link, folder = self.way(view.name)
        answer = await lease.offer(link, folder, held.id, to)
        if not answer.granted or answer.lease is None:
            raise Refused(_why(answer))
        self._keepers[view.name].lease = answer.lease
        self._ground.told(view.name, LEASE, lease_text(answer.lease))

    async def accept(self, view: LaneView) -> tuple[Lease, str]:
        """Take what was offered to us: the lease, and who offered it. Raises Refused."""
        link, folder = self.way(view.name)
        await self._drop(view.name)
        answer = await lease.accept(link, folder, self.own.operator, self.own.console)
        found = self._keep(view.name, answer)
        await self._inherit(view, found)
        return found, answer.taken_from

    async def _inherit(self, view: LaneView, held: Lease) -> None:
        """An open window goes with the lease."""
        link, folder = self.way(view.name)
        found = await files.read(link, folder, WINDOW, most=window.MOST_BYTES)
        if not found.there:
            return
        try:
            moved = window.handed_over(window.from_json(found.data), self.own.operator, held.epoch)
        except (window.WindowUnreadable, Refused):
            return  # it stays as it is: an alarm names what is wrong with it
        if (await files.put(link, folder, held.epoch, WINDOW, text := window.to_json(moved))).ok:
            self._ground.told(view.name, WINDOW, text)

    # --- windows

    async def read_window(self, lane: str) -> window.Window | None:
        """The open window as the head has it. Raises Refused where that cannot be told."""
        link, folder = self.way(lane)
        found = await files.read(link, folder, WINDOW, most=window.MOST_BYTES)
        if found.unknown:
            raise Refused(f"the window could not be read: {found.problem}")
        if not found.there:
            return None
        try:
            return window.from_json(found.data)
        except window.WindowUnreadable as error:
            raise Refused(f"{folder}/{WINDOW}: {error}; remove it by hand once you know what it was") from error

    async def write_window(self, lane: str, opened: window.Window, epoch: int) -> None:
        """Put a window on the head. Raises Refused."""
        link, folder = self.way(lane)
        written = await files.put(link, folder, epoch, WINDOW, text := window.to_json(opened))
        if not written.ok:
            raise Refused(f"the window was not written: {written.problem}")
        self._ground.told(lane, WINDOW, text)

    async def drop_window(self, lane: str, epoch: int) -> None:
        """Remove the window from the head. Raises Refused."""
        link, folder = self.way(lane)
        written = await files.drop(link, folder, epoch, WINDOW)
        if not written.ok:
            raise Refused(f"the window was not removed: {written.problem}")
        self._ground.told(lane, WINDOW, None)

    # --- inside

    def _keep(self, lane: str, answer: LeaseAnswer) -> Lease:
        if not answer.granted or answer.lease is None:
            held = not answer.unknown and answer.lease is not None
            raise (HeldByAnother if held else Refused)(_why(answer))
        link, folder = self.way(lane)
        keeper = self._keepers[lane] = Keeper(link, folder, answer.lease)
        keeper.start()
        self._ground.told(lane, LEASE, lease_text(answer.lease))
        return answer.lease

    async def _drop(self, lane: str) -> str:
        """Let go of a keeper without giving anything back; who took the lease, in words, '' if nobody did."""
        words = self.lost(lane)
        keeper = self._keepers.pop(lane, None)
        if keeper is not None:
            await keeper.close()
        return words

    def _ours(self, view: LaneView) -> Lease | None:
        """A lease on the head that an earlier console of this operator took."""
        acting: Acting | None = view.acting.value if view.acting is not None else None
        found = acting.lease if acting is not None else None
        return found if found is not None and is_mine(found, self.own) else None


def _why(answer: LeaseAnswer) -> str:
    if answer.unknown:
        return f"who holds the lane is not known: {answer.problem or 'the head did not answer'}"
    if answer.lease is not None:
        return f"{holder_words(answer.lease, answer.now)}: ask them to hand it over (H), or take it over"
    return answer.problem or "the lease was not granted"


def frozen_plan(opened: window.Window | None) -> Plan | None:
    """The way back that a window froze; None without one."""
    return None if opened is None or opened.plan.refused else opened.plan


def renewed_window(opened: window.Window, held: Lease) -> window.Window:
    """The same window under the epoch of a lease that is still ours."""
    return opened if opened.epoch == held.epoch else replace(opened, epoch=held.epoch)


def stamp() -> str:
    """`20261201T031502Z`, for names."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
