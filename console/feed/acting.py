"""What is under way on a lane, as its head keeps it: looked at again and again, more often while something runs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from console.feed.host import HostFeed
from console.feed.same import Same
from console.feed.surveyed import Parsed, oldest
from console.readings.acting import (
    CURRENT,
    DEBTS,
    JOURNAL,
    JOURNAL_TAIL,
    LEASE,
    PLAN,
    WHOLE_FILE,
    WINDOW,
    Pulse,
    Texts,
    current_operation,
    judged,
    read_texts,
)
from console.readings.acting_types import Acting, Operation, OperationState
from console.readings.look import Answer, Look, LookKind, parse_answer
from console.readings.processes import Processes, parse_processes, unseen
from console.readings.quality import Reading

if TYPE_CHECKING:
    from console.readings.acting_ledger import LedgerSays

AT_REST_S = 2.5
"""Seconds between two looks at a lane's folder; every second of them falls together with the other looks of a host."""
RUNNING_S = 1.0
"""While an operation runs."""
ENDED_S = 15.0
"""Plan, and journal of an operation that has ended: they no longer change, but a colleague may carry it on."""
LEDGER_S = 60.0
"""The end of the lane's ledger."""
LEDGER, LEDGER_TAIL = "ledger.jsonl", 64 * 1024
SMALL = "4096"
_BASE = {
    "lease": (LEASE, SMALL),
    "window": (WINDOW, str(WHOLE_FILE)),
    "debts": (DEBTS, SMALL),
    "current": (CURRENT, SMALL),
}


class ActingFeed:
    """Asks the head for one lane's folder, and hands out what is in it."""

    def __init__(self, name: str, folder: str, head: HostFeed) -> None:
        self._name, self._folder, self._head = name, folder, head
        self._answers = Parsed(parse_answer)
        self._processes = Parsed(parse_processes)
        self._says: LedgerSays | None = None
        self._ledger: str | None = None
        self._told: dict[str, Reading[str]] = {}
        self._found: Same[Acting] = Same()
        self._operation = ""
        self._pace = AT_REST_S, AT_REST_S, AT_REST_S
        """Seconds between two looks at the lane's folder, at the newest operation's journal, and at its plan."""
        self._ask()

    def _ask(self) -> None:
        every, journal, plan = self._pace
        looks = [self._file(what, f"{self._folder}/{file}", most, every) for what, (file, most) in _BASE.items()]
        looks.append(self._file("ledger", f"{self._folder}/{LEDGER}", str(LEDGER_TAIL), LEDGER_S, "last"))
        if self._operation:
            folder = f"{self._folder}/ops/{self._operation}"
            looks.append(self._file("plan", f"{folder}/{PLAN}", str(WHOLE_FILE), plan))
            looks.append(self._file("journal", f"{folder}/{JOURNAL}", str(JOURNAL_TAIL), journal, "last"))
            if journal < ENDED_S:
                part = f"run {folder}"
                looks.append(Look(self._key(self._runner), LookKind.PROCESSES, (part,), 2 * journal))
        self._head.look(f"{self._name}:acting", looks)

    @property
    def _runner(self) -> str:
        """Named by the operation: what was seen of another one's runner says nothing of this one's."""
        return f"runner.{self._operation}"

    def _file(self, what: str, path: str, most: str, every: float, where: str = "first") -> Look:
        state = self._folder.rpartition("/")[0]
        return Look(self._key(what), LookKind.FILE, (path, where, most, state), every)

    def _key(self, what: str) -> str:
        return f"{self._name}:acting.{what}"

    def _looked(self, what: str) -> Reading[str] | None:
        """The newer of what was looked at, and what the head said when this console wrote it."""
        looked, told = self._head.looked(self._key(what)), self._told.get(what)
        if told is None or looked is None:
            return looked
        if looked.taken_mono is not None and told.taken_mono is not None and looked.taken_mono > told.taken_mono:
            del self._told[what]
            return looked
        return replace(told, interval=looked.interval, error=looked.error, down_since=looked.down_since)

    def told(self, file: str, text: str | None) -> None:
        """What the head has just said of one of the lane's files; None: it is gone. Counts until it is looked at."""
        what = next(name for name, (known, _) in _BASE.items() if known == file)
        answer = "missing" if text is None else f"ok size={len(text)}\n{text}"
        self._told[what] = Reading(f"{self._folder}/{file}", AT_REST_S, answer, time.monotonic(), time.time())

    def _answer(self, what: str) -> Answer | None:
        return self._answers.of(what, self._looked(what))

    def view(self, now: float) -> Reading[Acting]:
        """Everything at monotonic time `now`; asks for the newest operation's files as soon as it has a name."""
        name = current_operation(self._answer("current"))
        if name != self._operation:
            self._operation, self._pace = name, (RUNNING_S,) * 3 if name else (AT_REST_S,) * 3
            self._ask()
        texts = Texts(*(self._answer(what) for what in (*_BASE, "plan", "journal")))
        parsed = self._found.of(
            (texts.lease, texts.window, texts.debts, texts.current, texts.plan, texts.journal),
            lambda: read_texts(texts, self._name, self._folder),
        )
        found = judged(parsed, self._head.host_wall(now), Pulse(self._alive(), self._head.booted))
        found = self._written_up(found)
        self._keep_pace(found.operation)
        parts = [self._looked(what) for what in _BASE]
        unread = [part for part in parts if part is not None and part.taken_mono is None]
        return oldest(f"{self._head.name}:{self._folder}", unread or parts, None if unread else found)

    def ledger(self) -> LedgerSays | None:
        """What the newest lines of the lane's ledger on the head say; None before they were read, or without any."""
        reading = self._looked("ledger")
        text = None if reading is None else reading.value
        if text is not None and text is not self._ledger:
            self._ledger = text
            if text.startswith("ok"):
                from console.readings.acting_ledger import parse_ledger_tail  # a lane that nobody acted on has none

                self._says = parse_ledger_tail(text)
        return self._says

    def _written_up(self, found: Acting) -> Acting:
        """What was done without a ledger is in it once somebody has written it up."""
        operation, says = found.operation, self.ledger()
        if operation is None or operation.ledgered or says is None or operation.id not in says.written_up:
            return found
        return replace(found, operation=replace(operation, ledgered=True))

    def _keep_pace(self, operation: Operation | None) -> None:
        """Often while it runs or was not read yet; less where nobody carries it on, seldom once it has ended."""
        if operation is None:
            return
        unread = operation.unread or (not operation.steps and operation.ended is None)
        every = RUNNING_S if operation.state is OperationState.RUNNING or unread else AT_REST_S
        pace = every, ENDED_S if operation.ended is not None else every, every if unread else ENDED_S
        if pace != self._pace:
            self._pace = pace
            self._ask()

    def _alive(self) -> bool | None:
        """Whether the runner was seen; None where others' processes are hidden or none were read yet."""
        reading = self._looked(self._runner)
        processes: Processes | None = self._processes.of(self._runner, reading)
        if reading is None or reading.error or processes is None:
            return None
        if any(item.alive for item in processes):
            return True
        return None if unseen(processes) else False
