"""What each head has acknowledged of a ledger: up to which record of which chain. A small file beside the ledger."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.execution.lockedfile import Sync
from console.plainfile import read_plain
from console.readings.ledger import LedgerText
from console.sanitize import word
from console.wholefile import write_whole

MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Mark:
    """Up to where one head has the lines of its lane."""

    chain: str
    seq: int
    h: str
    end: int
    """Bytes of the ledger up to the end of that record."""

    def stands_in(self, descriptor: int) -> bool:
        """Whether the record that is meant still ends where it did."""
        end = f'"h":"{self.h}"}}\n'.encode()
        return self.end >= len(end) and os.pread(descriptor, len(end), self.end - len(end)) == end


def read_marks(file: Path) -> tuple[dict[str, Mark], str]:
    """What the heads have, by lane, and what is odd about the file. Where it is damaged all is sent again, which is
    harmless. Raises OSError."""
    try:
        _, data = read_plain(file, MOST_BYTES)
    except FileNotFoundError:
        return {}, ""
    try:
        return {str(lane): _mark(row) for lane, row in json.loads(data)["lanes"].items()}, ""
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}, f"{file} is damaged: what the heads have is not known, all is sent again"


def _mark(row: Any) -> Mark:
    """Raises ValueError and TypeError for what is none."""
    chain, seq, h, end = row
    if not (isinstance(chain, str) and isinstance(h, str) and type(seq) is int and type(end) is int and end >= 0):
        raise ValueError("no mark")
    return Mark(chain, seq, h, end)


def write_marks(file: Path, marks: Mapping[str, Mark], sync: Sync) -> None:
    """Raises OSError; the file is then as it was."""
    rows = {lane: [mark.chain, mark.seq, mark.h, mark.end] for lane, mark in sorted(marks.items())}
    write_whole(file, json.dumps({"schema": 1, "lanes": rows}).encode() + b"\n", sync=sync)


def missed(marks: Mapping[str, Mark], text: LedgerText) -> tuple[str, list[str]]:
    """What is gone or changed that a head has acknowledged, '' if nothing is; and what is odd and no fault."""
    by_place = {(record.chain, record.seq): record.h for record in text.records}
    notes: list[str] = []
    for lane, mark in sorted(marks.items()):
        kept = by_place.get((mark.chain, mark.seq))
        name = word(lane.partition(" ")[0], 80)  # one of an earlier state of the file has its chain behind the name
        if kept is not None and kept != mark.h:
            return f"record {mark.seq} is another than the one that the head of {name} has acknowledged", notes
        if kept is None and text.records and text.records[0].chain == mark.chain and mark.seq < text.records[0].seq:
            continue  # older than what is kept of a very long file
        if kept is None and (not text.heads or mark.chain in text.heads):
            return f"the head of {name} has acknowledged record {mark.seq}, which is gone: lines were removed", notes
        if kept is None:
            notes.append(f"the head of {name} holds records of an earlier file (chain {word(mark.chain, 16)})")
    return "", notes
