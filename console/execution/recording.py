"""What became of the operations that this operator began: read from the head, recorded here, copied to the head.

It goes by the ledger alone: an intent without an outcome is looked after by whichever console of the operator runs
next, so a console that was killed leaves no gap. A copy that fails is tried again; a step never waits for one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from console.execution import files
from console.execution.aftercare import Aftercare
from console.execution.clearing import Cleared, clear_up
from console.execution.detached import Phase
from console.execution.inflight import is_beginning
from console.execution.ledger import CARRIED_ON, Entry, Ledger, LedgerError
from console.execution.sequence_console import InConsole
from console.execution.sequence_head import newest_run
from console.execution.settling import Settling
from console.execution.tenure import Ground, Tenure
from console.readings.acting import CURRENT
from console.readings.acting_operation import FRESH_S, read_operation
from console.readings.acting_types import Operation, OperationState, StepState, StepView
from console.readings.ledger import Kind, Record
from console.sanitize import line
from console.snapshot import LaneView

EVERY_S = 0.5
RETRY_S = 10.0
"""Seconds between two tries to copy what the head has not got."""
UP_EVERY_S = 5.0
"""Seconds between two looks for what is not the newest operation of its lane."""
LAST_LOOK_S = 2.0
"""Seconds that the last one of these looks may take when the console ends."""
LATE_S = 5.0
"""Seconds that what a console sent before it died may take to arrive."""
LOST_S = 30.0
"""Seconds after which a start that has left no trace on the head is kept from beginning at all."""
NOT_BEGUN = "not begun"
"""The outcome of an intent that nothing came of."""
LEDGER = "ledger.jsonl"
_STILL = (StepState.WAITING, StepState.RUNNING)
_GOES_ON = (OperationState.RUNNING, OperationState.UNKNOWN)
_LIVES = (Phase.RUNNING, Phase.WAITING, Phase.UNKNOWN)


@dataclass(slots=True)
class _Open:
    """An operation whose outcome is not recorded yet."""

    lane: str
    plan: str
    epoch: int
    told: set[str] = field(default_factory=set)
    """Steps that are recorded."""
    since: float | None = None
    """Unix seconds at which an earlier console meant it; None for one of this console."""
    after: float | None = None
    """Of one that is carried on: what its journal said until then is known already."""
    seen: bool = False
    """It was the newest of its lane once."""
    due: float | None = None
    """Loop time of the next look for it by its name; None before it was missed."""
    sent: float | None = None
    """Seconds of the event loop's clock at which it was sent without an answer; None once it is known that it began."""


class Recording:
    """Looks after the record of one console."""

    def __init__(self, ground: Ground, ledger: Ledger, tenure: Tenure, tell: Callable[[str], None]) -> None:
        self._ground, self._ledger, self._tenure, self._tell = ground, ledger, tenure, tell
        self._settling = Settling(ground, ledger, tenure)
        self._over: set[str] = set()
        """Lanes on which something of ours has ended: their lease is given back as soon as nothing is under way."""
        self._open: dict[str, _Open] = {}
        self._owed: list[Entry] = []
        self._due: dict[str, float] = {}
        self._ended_here: list[Operation] = []
        """Outcomes that only this console knows."""
        self._problem = ""
        self._known: set[str] = set()
        """Operations that stand in the ledger."""
        self._never: set[str] = set()
        """Operations of this console whose start was lost and that never began."""
        self._read = False
        self._turn = asyncio.Lock()
        self._after = Aftercare(ground, ledger, tenure, tell, self.sync_soon)

    def lanes(self) -> set[str]:
        """Lanes on which an operation of ours has no outcome yet."""
        return {one.lane for one in self._open.values()}

    def look_after(
        self, op: str, lane: str, plan_id: str, *, after: float | None = None, unclear: bool = False
    ) -> None:
        """Record what becomes of it; with `after` only what its journal says later than that, by the head's clock.
        `unclear`: nobody knows whether it began; that is found out first, and told."""
        held = self._tenure.held(lane)
        self._known.add(op)
        sent = asyncio.get_running_loop().time() if unclear else None
        self._open[op] = _Open(lane, plan_id, held.epoch if held else 0, after=after, sent=sent)

    def cleared(self, op: str) -> Cleared:
        """What is known of a start whose answer was lost."""
        if op in self._never:
            return Cleared.NEVER
        kept = self._open.get(op)
        return Cleared.UNKNOWN if kept is not None and kept.sent is not None else Cleared.BEGAN

    def ended_here(self, one: InConsole) -> None:
        """What this console carried out, ended, and could not tell the head of: recorded and told all the same."""
        found = one.seen()
        words = found.words or found.title
        self._tell(f"{found.verb} {found.state.value}: {words}. {one.behind or 'The head does not know'}: {one.path}")
        self._ended_here.append(replace(found, ledgered=True))

    def owe(self, entry: Entry) -> None:
        """What could not be recorded when it was done: written up as soon as the ledger can be written again."""
        self._owed.append(entry)

    def sync_soon(self, lane: str, after: float = 0.0) -> None:
        """Copy to the head what it has not got, `after` seconds at the earliest."""
        self._due[lane] = asyncio.get_running_loop().time() + after if after else 0.0

    async def run(self) -> None:
        """Until it is cancelled."""
        await self._take_up()
        loop = asyncio.get_running_loop()
        while True:
            # shielded: who ends us must not part a line that is written from what is remembered of it
            await asyncio.shield(self._step())
            await asyncio.shield(self._look_up())
            for lane, due in tuple(self._due.items()):
                if loop.time() >= due:
                    self._due[lane] = again = loop.time() + RETRY_S
                    if await self.sync(lane) and self._due[lane] == again:  # else more came meanwhile
                        del self._due[lane]
            await asyncio.sleep(EVERY_S)

    async def flush(self) -> None:
        """Record and copy what there is, once more before the end."""
        await self._step()
        with contextlib.suppress(TimeoutError):  # a head that does not answer keeps nobody from giving the lease back
            async with asyncio.timeout(LAST_LOOK_S):
                await self._look_up(last=True)
        await self._after.finish()
        for lane in tuple(self._due):
            await self.sync(lane)

    async def _take_up(self) -> None:
        """The intents of earlier consoles that have no outcome."""
        try:
            records = (await asyncio.to_thread(self._ledger.verify)).text.records
        except LedgerError as error:
            self._complain(error)
            return
        self._known |= {record.op for record in records if record.op}
        self._open |= unfinished(records)
        self._read = True
        for name in self._ground.snapshot().fleet.lanes:
            self.sync_soon(name)

    async def _step(self) -> None:
        async with self._turn:
            try:
                while self._owed:
                    await asyncio.to_thread(self._ledger.break_glass, self._owed[0])
                    self.sync_soon(self._owed.pop(0).lane)
                while self._ended_here:
                    await self._out_of(self._ended_here[0])
                    self._ended_here.pop(0)
                for view in self._ground.snapshot().lanes:
                    await self._look(view)
                await self._settle()
            except LedgerError as error:
                self._complain(error)
            else:
                self._problem = ""

    async def _look(self, view: LaneView) -> None:
        operation = view.acting.value.operation if view.acting is not None and view.acting.value is not None else None
        if operation is None:
            return
        await self._write_up(operation)
        if (kept := self._open.get(operation.id)) is None:
            return
        if kept.sent is not None and operation.spoke is None:
            return  # its name alone is no proof that it began
        self._began(operation.id, kept)
        kept.seen = True
        if _not_yet(operation, kept):
            return
        if operation.state in _GOES_ON:
            await self._steps(operation, kept)
            return
        if operation.ended is None and operation.runs_on != "console" and await self._lives(operation, kept):
            return  # its journal is silent, its runner is not gone: a busy head takes its time to begin
        await self._ended(view.name, operation, kept)

    async def _lives(self, operation: Operation, kept: _Open) -> bool:
        """Whether the head itself says that a runner still has it, or does not say; asked every UP_EVERY_S."""
        now = asyncio.get_running_loop().time()
        if kept.due is not None and now < kept.due:
            return True
        kept.due = now + UP_EVERY_S
        link, folder = self._tenure.way(kept.lane)
        return (await newest_run(link, folder, operation.id))[1].phase in _LIVES

    async def _out_of(self, operation: Operation) -> None:
        """The outcome of one that the head cannot tell of."""
        if (kept := self._open.get(operation.id)) is not None:
            await self._write(operation, kept, None)
            del self._open[operation.id]

    async def _write_up(self, operation: Operation) -> None:
        """What this operator did without a record, and what ended before there was one: the head kept it."""
        if (
            not self._read
            or operation.ledgered
            or operation.id in self._known
            or operation.operator != self._tenure.own.operator
        ):
            return
        text = f"UNLEDGERED until now: {operation.title}, {operation.origin} to {operation.target}"
        entry = Entry(operation.lane, text, op=operation.id, epoch=operation.epoch, plan=operation.plan_id)
        await asyncio.to_thread(self._ledger.break_glass, entry)
        self._known.add(operation.id)
        self._open[operation.id] = _Open(operation.lane, operation.plan_id, operation.epoch)
        self.sync_soon(operation.lane)

    async def _look_up(self, *, last: bool = False) -> None:
        """What earlier consoles meant and what is not the newest operation of its lane: asked of the head by name, as
        soon as the head was read (a command is short), then every UP_EVERY_S; `last`: once more, whatever the time."""
        now = asyncio.get_running_loop().time()
        async with self._turn:
            for op, kept in tuple(self._open.items()):
                try:
                    view = self._ground.snapshot().lane(kept.lane)
                except KeyError:
                    continue  # a lane that the fleet has no more
                if not _is_missed(op, kept, view):
                    continue
                if kept.due is None:  # one of our own that another one followed is given time to say how it ended
                    kept.due = now + UP_EVERY_S if kept.since is None and kept.sent is None else now
                if now < kept.due and not last:
                    continue
                kept.due = now + UP_EVERY_S
                try:
                    await (self._clear_up if kept.sent is not None else self._found_out)(op, kept, view)
                except LedgerError as error:
                    self._complain(error)

    async def _clear_up(self, op: str, kept: _Open, _: LaneView) -> None:
        """Whether a start of this console without an answer has begun. Raises LedgerError."""
        link, folder = self._tenure.way(kept.lane)
        late = asyncio.get_running_loop().time() - (kept.sent or 0.0) > LOST_S
        match await clear_up(link, folder, op, kept.epoch or None, late=late):
            case Cleared.BEGAN | Cleared.PASSED as found:
                self._began(op, kept)
                kept.seen = found is Cleared.PASSED
            case Cleared.NEVER:
                text = "its start was lost on the way and never arrived: nothing was sent to the lane"
                entry = Entry(kept.lane, text, op=op, epoch=kept.epoch, plan=kept.plan, result=NOT_BEGUN)
                await asyncio.to_thread(self._ledger.once, Kind.OUTCOME, entry)
                self._never.add(op)
                self._open.pop(op, None)
                self._tell(f"{op} never began: its start was lost on the way, and cannot arrive any more")
                self.sync_soon(kept.lane)
                self._over.add(kept.lane)

    def _began(self, op: str, kept: _Open) -> None:
        if kept.sent is not None:
            kept.sent = None
            self._tell(f"{op} did begin: only the answer was lost")

    async def _found_out(self, op: str, kept: _Open, view: LaneView) -> None:
        """By the head's own word alone: the picture may be older than the operation. Raises LedgerError."""
        clock = view.acting.value.clock if view.acting is not None and view.acting.value is not None else 0.0
        link, folder = self._tenure.way(kept.lane)
        plan, journal = await asyncio.gather(
            *(files.read(link, folder, f"ops/{op}/{name}") for name in ("plan.json", "journal.jsonl"))
        )
        newest = await files.read(link, folder, CURRENT)  # after its journal: a console names what it will carry out
        if plan.unknown or journal.unknown or newest.unknown or newest.text.strip() == op:
            return  # the newest one is looked at with every picture, as soon as one shows it
        whole = journal.size == len(journal.data)
        told = journal.text if journal.there else None
        found = read_operation(op, kept.lane, plan.text, told, whole, []) if plan.there else None
        if found is not None and found.state in _GOES_ON:
            runner = (await newest_run(link, folder, op))[1].phase
            if runner in _LIVES or (found.spoke is not None and 0 <= clock - found.spoke <= FRESH_S):
                return  # the journal of one that a console carries out is all that tells of it
            begun = journal.there or runner is not Phase.ABSENT
            found = replace(found, state=OperationState.LOST, words="nobody carries it on") if begun else None
        if found is not None:
            await self._ended(kept.lane, found, kept)
        elif not kept.epoch or time.time() - (kept.since or 0.0) < LATE_S or is_beginning(self._ledger.file, op):
            return  # break-glass need not be on the head; what a living console is beginning may still arrive
        else:
            text = "its console was gone before anything was begun: nothing was sent"
            entry = Entry(kept.lane, text, op=op, epoch=kept.epoch, plan=kept.plan, result=NOT_BEGUN)
            await asyncio.to_thread(self._ledger.once, Kind.OUTCOME, entry)
            self.sync_soon(kept.lane)
        self._open.pop(op, None)

    async def _steps(self, operation: Operation, kept: _Open) -> None:
        for step in operation.steps:
            if step.state not in _STILL and step.id not in kept.told:
                await self._write(operation, kept, step)
                kept.told.add(step.id)

    async def _ended(self, lane: str, operation: Operation, kept: _Open) -> None:
        """Into the record and to the operator, the same whichever way it was found out."""
        await self._steps(operation, kept)
        await self._write(operation, kept, None)
        self._after.ended(lane, operation, kept.epoch)
        self._open.pop(operation.id, None)
        self._over.add(lane)
        self._tell(f"{operation.verb} {operation.state.value}: {operation.words or operation.title}")

    async def _write(self, operation: Operation, kept: _Open, step: StepView | None) -> None:
        if step is None:
            text, host = operation.words or operation.title, ""
            result = operation.state.value
        else:
            text, host = f"{step.title}{f': {step.words}' if step.words else ''}", step.host
            result = f"step {step.id} {step.state.value}"
        entry = Entry(
            kept.lane,
            line(text, 1000),
            host,
            operation.id,
            kept.epoch,
            plan=kept.plan,
            result=result,
            operator=operation.operator,  # whose it is, whichever console of this machine writes it down
        )
        await asyncio.to_thread(self._ledger.once, Kind.OUTCOME if step is None else Kind.NOTE, entry)
        self.sync_soon(kept.lane)

    async def _settle(self) -> None:
        """Give leases back where nothing of ours is open any more."""
        for lane in self._over - {one.lane for one in self._open.values() if one.since is None}:
            if self._settling.idle(lane):
                await self.sync(lane)
                if await self._settling.settled(lane):
                    self._over.discard(lane)

    async def sync(self, lane: str) -> bool:
        """Copy to the lane's head what it has not got; whether it has all now."""
        left = 0
        try:
            pending = await asyncio.to_thread(self._ledger.pending, lane)
            left = len(pending.lines)
            if pending.lines:
                link, folder = self._tenure.way(lane)
                # no epoch: a record is never refused, whoever holds the lane by now
                written = await files.append(link, folder, None, LEDGER, "".join(pending.lines))
                if written.ok:
                    await asyncio.to_thread(self._ledger.acknowledge, lane, pending)
                    left = 0
        except LedgerError as error:
            self._complain(error)
            return False
        self._ground.unsynced(lane, left)
        return not left

    def _complain(self, error: Exception) -> None:
        """Once for each problem."""
        if str(error) != self._problem:
            self._problem = str(error)
            self._tell(f"ledger: {error}")


def _is_missed(op: str, kept: _Open, view: LaneView) -> bool:
    """Whether the head has to be asked for it by its name: no picture tells of it."""
    if kept.sent is not None:
        return True
    acting = view.acting.value if view.acting is not None else None
    newest = acting.operation if acting is not None else None
    known = kept.since is not None or kept.seen  # one that was just begun is not the newest here yet
    return known and acting is not None and (newest is None or newest.id != op)


def _not_yet(operation: Operation, kept: _Open) -> bool:
    """What was read of one that is carried on was said before."""
    before = operation.spoke is None or kept.after is None or operation.spoke <= kept.after
    return kept.after is not None and before and operation.state not in _GOES_ON


def unfinished(records: tuple[Record, ...]) -> dict[str, _Open]:
    """Operations with an intent and no outcome, by id."""
    found: dict[str, _Open] = {}
    for record in records:
        if record.kind in (Kind.INTENT, Kind.BREAK_GLASS) and record.op:
            found[record.op] = _Open(record.lane, record.plan, record.epoch, since=record.ts)
        elif record.op and record.result == CARRIED_ON:
            found[record.op] = _Open(record.lane, record.plan, record.epoch, since=record.ts)
        elif record.kind is Kind.OUTCOME and record.op:
            found.pop(record.op, None)
        elif record.kind is Kind.NOTE and record.op in found and record.result.startswith("step "):
            found[record.op].told.add(record.result.split(" ")[1])
    return found
