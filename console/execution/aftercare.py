"""What is done once an operation has ended: an entry in the ledger that people keep on the head, and old operations
removed from the hosts. It runs in the background; nothing waits for it, and what fails is told and recorded."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, timedelta, timezone, tzinfo

from console import format as fmt
from console.execution import boxledger
from console.execution.ledger import Entry, Ledger, LedgerError
from console.execution.scripts import Answer, Exit, ask
from console.execution.tenure import Ground, Tenure
from console.fleet.filling import Filling
from console.reach.link import Link
from console.readings.acting_types import Operation, StepState
from console.readings.redaction import secrets_of

FINISH_S = 2.0
"""Seconds that an entry which is being written has left when the console ends."""
PAUSES_S = (0.0, 5.0, 30.0)
"""Seconds before each try to write an entry; asked anew only where the head did not answer."""
KEEP, KEEP_DAYS, MOST_REMOVED = 50, 30, 200
"""Operations and days that are kept on a host; the most that are removed there at once."""
PRUNE_LIMIT = 75.0
PRUNED_S = 86_400.0
"""Seconds between two tries of this console to remove old operations of a lane; each host keeps a date of its own."""
NOT_BOXED = "box ledger: not written"
"""The result of a note about an entry that could not be written."""
_OFFSET = re.compile(r"([+-])([0-9]{2})([0-9]{2})")


@dataclass(frozen=True, slots=True)
class Boxed:
    """What became of an entry."""

    written: bool
    """It stands there; `already`: not by this call."""
    already: bool = False
    problem: str = ""
    """Safe words, '' if written."""
    again: bool = False
    """The head did not answer: it is worth asking once more, nothing is written twice."""


async def add_entry(
    link: Link, folder: str, op: str, path: str, told: boxledger.BoxEntry, known: Mapping[str, str] | None = None
) -> Boxed:
    """Append an entry to the file `path` of the head, once for each operation, in the time zone of that host.

    The file has to be there; links are refused. `known`: values that are secret, by name. Never raises for what the
    head does. The session that is kept for acting stays free.
    """
    at = str(max(0, int(told.at)))
    seen = await ask(link, "box", ["look", folder, op, path, at], looks=True)
    if seen.exit is not Exit.OK:
        return _boxed(seen)
    text = boxledger.entry(told, zone_of(seen.values.get("offset", ""), seen.text("zone", 20)), known)
    size = str(len(text.encode()))
    return _boxed(await ask(link, "box", ["add", folder, op, path, size], stdin=text, looks=True))


async def look_at_box(link: Link, folder: str, path: str) -> Boxed:
    """Whether an entry could be written there; `written` means yes. Changes nothing."""
    return _boxed(await ask(link, "box", ["look", folder, "doctor", path, "0"], looks=True))


def _boxed(answer: Answer) -> Boxed:
    there = answer.exit is Exit.THERE
    return Boxed(answer.exit is Exit.OK or there, there, "" if there else answer.problem, answer.exit is None)


def zone_of(offset: str, name: str) -> tzinfo:
    """The zone that `date +%z` and `date +%Z` name; UTC for what is none."""
    match = _OFFSET.fullmatch(offset)
    if match is None or int(match[2]) > 23 or int(match[3]) > 59:
        return UTC
    ahead = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(ahead if match[1] == "+" else -ahead, name or "UTC")


def told(operation: Operation, lane: str) -> boxledger.BoxEntry:
    """The entry about an operation that has ended."""
    ended = operation.ended if operation.ended is not None else operation.began
    took = fmt.duration(max(0.0, ended - operation.began))
    rows = [f"{operation.origin or lane} to {operation.target or 'as planned'}: {operation.state.value} after {took}."]
    rows += [operation.words] if operation.words else []
    odd = (StepState.FAILED, StepState.FENCED, StepState.STOPPED, StepState.UNKNOWN)
    rows += [
        f"{step.title} on {step.host}: {step.state.value}. {step.words}"
        for step in operation.steps
        if step.state in odd
    ]
    rows += ["UNLEDGERED when it was begun."] if not operation.ledgered else []
    title = f"{operation.title}: {operation.state.value}"
    who = f"laneswap {operation.id}"
    return boxledger.BoxEntry(ended, title, who, operation.operator, "\n".join(rows))


class Aftercare:
    """What one console still does for operations that have ended."""

    def __init__(
        self,
        ground: Ground,
        ledger: Ledger,
        tenure: Tenure,
        tell: Callable[[str], None],
        recorded: Callable[[str], None],
    ) -> None:
        """`tell` is called with safe words, `recorded` with a lane whose ledger has got another line."""
        self._ground, self._ledger, self._tenure = ground, ledger, tenure
        self._tell, self._recorded = tell, recorded
        self._known = secrets_of(os.environ, (ground.snapshot().fleet.notify.webhook_env,))
        self._entries: dict[asyncio.Task[None], Entry] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._pruned: dict[str, float] = {}

    def ended(self, lane: str, operation: Operation, epoch: int) -> None:
        """Begin with it. `epoch`: of the lease that the operation went under, 0 without one."""
        if path := self._path(lane, operation, epoch):
            made = asyncio.create_task(self._enter(lane, operation, epoch, path), name=f"box ledger {operation.id}")
            self._entries[made] = _note(lane, operation, epoch, f"{path}: this console ended before it was written")
            made.add_done_callback(lambda task: self._entries.pop(task, None))
        if epoch and time.monotonic() - self._pruned.get(lane, -PRUNED_S) >= PRUNED_S:
            self._pruned[lane] = time.monotonic()
            self._begin(self._prune(lane, epoch), f"prune {lane}")

    async def finish(self) -> None:
        """Let entries be written to their end, for FINISH_S at most; all else ends at once."""
        others = tuple(self._others)
        for task in others:
            task.cancel()
        try:
            if self._entries:
                await asyncio.wait(tuple(self._entries), timeout=FINISH_S)
        finally:
            cut = dict(self._entries)
            for task in cut:
                task.cancel()
        await asyncio.gather(*cut, *others, return_exceptions=True)
        for task, entry in cut.items():
            if task.cancelled():
                await self._failed(entry)

    def _begin(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    # --- the ledger that people keep

    def _path(self, lane: str, operation: Operation, epoch: int) -> str:
        """Where the recipe says that people keep their ledger; '' where it says nothing. What is missing is told."""
        template = self._ground.recipes[lane].acts.box_ledger
        view = self._ground.snapshot().lane(lane)
        site = view.site.value if view.site is not None else None
        fill = Filling(self._ground.recipes[lane], view.lane.vars, site, lane)
        path = fill.path("box ledger", template)
        if template and not path and fill.unfilled:
            self._begin(self._failed(_note(lane, operation, epoch, fill.unfilled[0])), f"box ledger {operation.id}")
        return path

    async def _enter(self, lane: str, operation: Operation, epoch: int, path: str) -> None:
        link, folder = self._tenure.way(lane)
        entry = told(operation, lane)
        found = Boxed(False)
        for pause in PAUSES_S:
            await asyncio.sleep(pause)
            found = await add_entry(link, folder, operation.id, path, entry, self._known)
            if found.written:
                return
            if not found.again:
                break
        await self._failed(_note(lane, operation, epoch, found.problem or f"{path}: the head did not answer"))

    async def _failed(self, entry: Entry) -> None:
        self._tell(f"box ledger: {entry.text}")
        try:
            await asyncio.to_thread(self._ledger.note, entry)
        except LedgerError as error:
            self._tell(f"ledger: {error}")
            return
        self._recorded(entry.lane)

    # --- old operations

    async def _prune(self, lane: str, epoch: int) -> None:
        """On every host of the lane; one that is out of reach is left for another day."""
        fleet = self._ground.snapshot().fleet
        hosts = dict.fromkeys((fleet.lanes[lane].head, *fleet.lanes[lane].rank_hosts))
        folder, links = fleet.lane_folder(lane), self._ground.links
        answers = await asyncio.gather(*(prune(links[host], folder, epoch) for host in hosts))
        for host, answer in zip(hosts, answers, strict=True):
            if answer.exit is Exit.CANNOT:
                self._tell(f"{host}: old operations stay: {answer.problem}")


async def prune(link: Link, folder: str, epoch: int) -> Answer:
    """Remove old operations of a lane from one host: `removed=` of them. At most once a day there (THERE before that),
    and not where a newer lease was seen (FENCED)."""
    arguments = [folder, str(epoch), str(KEEP), str(KEEP_DAYS), str(MOST_REMOVED)]
    return await ask(link, "prune", arguments, limit=PRUNE_LIMIT, looks=True)


def _note(lane: str, operation: Operation, epoch: int, problem: str) -> Entry:
    return Entry(lane, problem, host=operation.head, op=operation.id, epoch=epoch, result=NOT_BOXED)
