"""Windows and the lease: opened, closed, offered, accepted, taken over, all of it recorded. Answers are safe words."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from console import format as fmt
from console.actions.plan import Verb
from console.actions.underway import head_now, runs
from console.execution import deadman, files, policy, window
from console.execution.carrying import Carrying
from console.execution.deciding import NO_WISH, Deciding, windowed
from console.execution.ledger import CARRIED_ON, Entry, Ledger, LedgerError
from console.execution.policy import Refused
from console.execution.recording import Recording
from console.execution.settling import Settling
from console.execution.tenure import Ground
from console.readings.acting_types import Lease, Operation, OperationState
from console.sanitize import word
from console.snapshot import LaneView

STANDING_S = 15.0
"""Seconds for finding out how the head reaches its ranks."""


class Holding:
    """What one console does with leases and windows."""

    def __init__(
        self,
        ground: Ground,
        deciding: Deciding,
        carrying: Carrying,
        recording: Recording,
        ledger: Ledger,
        tell: Callable[[str], None],
    ) -> None:
        self._ground, self._deciding, self._carrying = ground, deciding, carrying
        self._recording, self._ledger, self._tell = recording, ledger, tell
        self._tenure = deciding.tenure
        self._settling = Settling(ground, ledger, self._tenure)
        self.tasks: set[asyncio.Task[None]] = set()

    async def open_window(
        self, lane: str, reason: str, deadline_s: float, typed: str, *, without_way_back: bool = False
    ) -> str:
        """Open a switch window: the lease is taken, way back and target are frozen."""
        try:
            async with self._settling.by_itself(lane):
                opened = await self._opened(lane, window.Opening(typed, reason, deadline_s, without_way_back))
        except Refused as refused:
            return f"no window was opened: {_why(refused)}"
        back = f"B leads back to {opened.target}" if opened.target else "no way back"
        where = await self._standing(lane, opened)
        return f"window open until {fmt.clock(opened.deadline)}; {back}{where}; {opened.id}"

    async def _standing(self, lane: str, opened: window.Window) -> str:
        """What a sleeping laptop would mean, and who could take over: said while there is time to mend it."""
        view = self._deciding.view(lane)
        link, folder = self._tenure.way(lane)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STANDING_S):
                ways, others = await asyncio.gather(self._carrying.ways(view, opened.plan), files.sharing(link, folder))
                runs_on = f"sequences run detached on {view.lane.head}"
                if isinstance(ways, str):
                    runs_on = f"sequences run in this console, if it sleeps they are HALF DONE: {ways}"
                return "".join(f"; {words}" for words in (runs_on, others) if words)
        return "; where a sequence would run is not known yet"

    async def _opened(self, lane: str, asked: window.Opening) -> window.Window:
        await self._may_record()
        view = self._deciding.view(lane)
        plan = self._deciding.planned(lane, Verb.ROLLBACK, NO_WISH)
        now = head_now(self._ground.snapshot(), view)
        window.open_window(
            asked, plan, operator=self._deciding.own.operator, epoch=0, now=now
        )  # refused before a lease is taken
        if windowed(view):
            raise Refused("a window is open on this lane already")
        async with self.taken(view, f"window: {word(asked.reason, 120)}") as (held, came_from):
            opened = window.open_window(asked, plan, operator=self._deciding.own.operator, epoch=held.epoch, now=now)
            text = f"window {opened.id} opened until {fmt.clock(opened.deadline)}, reason: {opened.reason}"
            await self.note(lane, f"{text}; way back: {opened.target or 'none'}", held.epoch, opened.plan_id, came_from)
            await self._tenure.write_window(lane, opened, held.epoch)
        self._deciding.frozen[lane] = opened
        self._carrying.prepare(view, plan)
        self.watch_over(lane)
        return opened

    def watch_over(self, lane: str) -> None:
        """Where a webhook is configured, the head tells people should this console be gone with something owed."""
        fleet = self._ground.snapshot().fleet
        if webhook := os.environ.get(fleet.notify.webhook_env, ""):
            task = asyncio.create_task(self._arm_deadman(lane, webhook), name=f"dead man {lane}")
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _arm_deadman(self, lane: str, webhook: str) -> None:
        fleet = self._ground.snapshot().fleet
        link, folder = self._tenure.way(lane)
        asked = fleet.lanes[lane]
        health = f"{asked.url}{asked.health_path}" if asked.via == "ssh" else ""
        found = await deadman.arm(link, folder, webhook=webhook, fleet=fleet.name, lane=lane, health=health)
        if not found.armed:
            self._tell(f"the head will tell nobody if this console is gone: {found.problem or 'it did not say'}")

    async def close_window(self, lane: str, typed: str) -> str:
        """Close it, and give the lease back."""
        try:
            async with self._settling.by_itself(lane):
                words = await self._closed(lane, typed)
        except Refused as refused:
            return f"the window stays open: {_why(refused)}"
        return words

    def _may_write(self) -> None:
        """Raises Refused."""
        if self._deciding.read_only:
            raise Refused("this console is read-only (--read-only)")

    async def _may_record(self) -> None:
        """Raises Refused: what takes the lane from somebody is not done first and found to leave no record then."""
        self._may_write()
        if not await self._deciding.writable():
            raise Refused("the ledger cannot be written: no record, no lease")

    async def _closed(self, lane: str, typed: str) -> str:
        self._may_write()
        opened = await self._tenure.read_window(lane)
        if opened is None:
            raise Refused("none is open on this lane")
        newest = await self._deciding.newest(lane)  # what was begun a moment ago goes under the lease of this window
        await self._deciding.until_shown(lane, newest)
        await self._deciding.no_other(lane, None, newest)
        view = self._deciding.view(lane)
        async with self.taken(view, "close the window") as (held, _):
            words = await self._struck(view, opened, held, typed)
        self._deciding.frozen.pop(lane, None)
        await self._recording.sync(lane)
        await self._tenure.release(lane)
        return words

    async def _struck(self, view: LaneView, opened: window.Window, held: Lease, typed: str) -> str:
        """Take a window off the head; says what is owed. Raises Refused."""
        acting = view.acting.value if view.acting is not None else None
        running = self._under_way(view)
        closing = window.Closing(
            self._deciding.own.operator,
            holds=True,
            typed=typed,
            debts=acting.debts if acting is not None else (),
            running=f"{running.verb} ({running.id})" if running is not None else "",
        )
        words = window.close_window(opened, closing, head_now(self._ground.snapshot(), view))
        await self.note(view.name, words, held.epoch, opened.plan_id)
        await self._tenure.drop_window(view.name, held.epoch)
        return words

    def _under_way(self, view: LaneView) -> Operation | None:
        """What runs, also what was just begun here and has not spoken yet."""
        found = view.acting.value.operation if view.acting is not None and view.acting.value is not None else None
        silent = found is not None and found.state is OperationState.UNKNOWN
        return found if silent and view.name in self._recording.lanes() else runs(view)

    async def offer(self, lane: str, to: str) -> str:
        """Offer the lease to another operator; '' takes the offer back."""
        try:
            await self._may_record()
            async with self._tenure.turn(lane):
                await self._tenure.offer(self._deciding.view(lane), to)
        except Refused as refused:
            return f"not offered: {refused}"
        lost = await self._noted(lane, f"{lane} offered to {word(to, 80) or 'nobody any more'}", 0)
        return (f"{lane} is offered to {word(to, 80)}: they accept with H" if to else "the offer is taken back") + lost

    async def accept(self, lane: str) -> str:
        """Take a lease that was offered to us."""
        try:
            await self._may_record()
            async with self._tenure.turn(lane):
                held, came_from = await self._tenure.accept(self._deciding.view(lane))
                lost = await self._noted(lane, f"{lane} accepted", held.epoch, came_from)
                more = lost + await self._adopt(lane, held)
        except Refused as refused:
            return f"not accepted: {refused}"
        return f"{lane} is yours now, from {came_from or 'nobody'}{more}"

    async def take_over(self, lane: str, typed: str, shown: str) -> str:
        """Take the lane from the lease of id `shown`, '' where nobody could be named: its next step is fenced off."""
        if typed != lane:
            return f"not taken over: type the lane's name, {lane}"
        try:
            await self._may_record()
            async with self._tenure.turn(lane):
                view = self._deciding.view(lane)
                async with self.taken(view, "taken over", over=True, shown=shown) as (held, came_from):
                    await self.note(lane, f"{lane} taken over", held.epoch, "", came_from)
                more = await self._adopt(lane, held) if came_from else ""
        except Refused as refused:
            return f"not taken over: {_why(refused)}"
        return f"{lane} is yours now, taken from {came_from}{more}" if came_from else f"{lane} is yours"

    @contextlib.asynccontextmanager
    async def taken(
        self, view: LaneView, purpose: str, *, over: bool = False, shown: str | None = None
    ) -> AsyncIterator[tuple[Lease, str]]:
        """The lane's lease for something that may still be refused, and whom it came from. Where it is, a lease that
        was taken for it is given back, and the refusal says so. Raises Refused."""
        ours = self._tenure.ours(view)
        held, came_from = await self._tenure.hold(view, purpose, over=over, shown=shown)
        try:
            yield held, came_from
        except Refused as refused:
            if held.id not in ours:
                await self._tenure.release(view.name)
                other = came_from not in ("", self._deciding.own.operator)
                took = f"{view.name} was taken over from {came_from}" if other else "a lease was taken"
                refused.did = f"{took} and given back"
            raise

    async def _adopt(self, lane: str, held: Lease) -> str:
        """What runs on the lane's head goes on under the new lease: a stop that is cut in two helps nobody."""
        view = self._deciding.view(lane)
        running = runs(view)
        if running is None:
            return ""
        if running.runs_on != "head" or running.verb not in set(Verb):
            return f"; {running.id} ran in the other console and is fenced off"
        try:
            grant = policy.adopt(
                Verb(running.verb), lane, running.plan_id, held.epoch, policy.clock(),
                read_only=self._deciding.read_only,
            )  # fmt: skip
            await self._carrying.carry_on(view, running.id, held, grant)
        except Refused as refused:
            return f"; {running.id} does not go on: {refused}"
        self._recording.look_after(running.id, lane, running.plan_id)
        return f"; {running.id} goes on"

    async def _noted(self, lane: str, text: str, epoch: int, came_from: str = "") -> str:
        """Record what has been done already; why that was not possible, '' if it was."""
        try:
            await self.note(lane, text, epoch, "", came_from)
        except Refused as refused:
            return f"; NOT RECORDED: {refused}"
        return ""

    async def note(
        self, lane: str, text: str, epoch: int, plan: str = "", came_from: str = "", *, op: str = ""
    ) -> None:
        """Record what is done to lease or window, or that `op` is carried on. Raises Refused where it cannot be."""
        other = came_from not in ("", self._deciding.own.operator)
        words = f"{text}; {self._deciding.own.operator} takes over from {came_from}" if other else text
        entry = Entry(lane, words, op=op, epoch=epoch, plan=plan, result=CARRIED_ON if op else "")
        try:
            await asyncio.to_thread(self._ledger.takeover if other else self._ledger.note, entry)
        except LedgerError as error:
            raise Refused(str(error)) from error
        self._recording.sync_soon(lane)


def _why(refused: Refused) -> str:
    return f"{refused}; {refused.did}" if refused.did else str(refused)
