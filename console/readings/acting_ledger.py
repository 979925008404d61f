"""What a lane's ledger on its head says lately: ways back that were gone, and what was written up afterwards. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from console.readings.acting_operation import begun_at
from console.readings.acting_types import OperationState
from console.readings.binds import Deed
from console.readings.ledger import Kind, Record, read_ledger
from console.readings.look import Status, parse_answer, raw_bytes

_LED = re.compile(r" to (?:[A-Za-z0-9][A-Za-z0-9_.-]* )?([0-9a-f]{7}); confirmed by ")
"""Where an intent leads to, as `console/execution/hands.py` writes it: a revision, perhaps with its container."""


@dataclass(frozen=True, slots=True)
class LedgerSays:
    """What is of use beside the operation's own files."""

    deeds: tuple[Deed, ...] = ()
    """Rollbacks that are done, oldest first; by whichever console."""
    written_up: frozenset[str] = frozenset()
    """Operations that were done without a ledger and are in it now."""
    came_up: tuple[tuple[float, str], ...] = ()
    """(Unix seconds, first seven digits of the revision) of relaunches and rollbacks that are done, oldest first."""


def parse_ledger_tail(text: str) -> LedgerSays:
    """A host's answer: the end of the file. Never raises; what is no record says nothing."""
    answer = parse_answer(text)
    if answer.status is not Status.OK or not answer.body:
        return LedgerSays()
    records = read_ledger(raw_bytes(answer.body), copy=True, excerpt=True).records
    deeds = {record.op: deed for record in records if (deed := _deed(record)) is not None}
    written_up = frozenset(record.op for record in records if record.kind is Kind.BREAK_GLASS and record.op)
    return LedgerSays(tuple(deeds.values()), written_up, tuple(_came_up(records)))


def _came_up(records: Sequence[Record]) -> Iterator[tuple[float, str]]:
    """Where operations led that are done: the intent says where to, the outcome that it came to be so."""
    led: dict[str, str] = {}
    for record in records:
        if record.kind is Kind.INTENT and (found := _LED.search(record.text)) is not None:
            led[record.op] = found[1]
        elif _is_done(record) and record.op in led and ("-rollback-" in record.op or "-relaunch-" in record.op):
            yield record.ts, led[record.op]


def _is_done(record: Record) -> bool:
    """Whether it closes a whole operation: it is of no host."""
    return record.kind is Kind.OUTCOME and record.result == OperationState.DONE.value and not record.host


def _deed(record: Record) -> Deed | None:
    """An outcome that closes a whole rollback: it is of no host."""
    began = begun_at(record.op)
    if not _is_done(record) or "-rollback-" not in record.op or not 0 < began <= record.ts:
        return None
    return Deed(record.op, began, record.ts - began, "", record.operator)
