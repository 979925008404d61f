"""The ledger as data: one JSON line a record, chained by hashes; parsed strictly, verified line by line, merged. Pure.

A line ends with `,"h":"<64 hex>"}`; `h` is the sha256 of the same line with that end replaced by `}`, so it can be
checked with nothing but `sha256sum`. `prev` is the `h` of the line before it in the same chain, zeros in the first.
Every file on an operator's machine is one chain; the copy on a head holds lines of several, each with gaps where the
lines belong to other lanes. Copies come from folders that others may write to: texts are made safe on reading.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate
from typing import Any

from console.sanitize import line as safe_line
from console.sanitize import word

VERSION = 1
ZERO = "0" * 64
"""`prev` of the first record of a chain."""
MOST_LINE = 256 * 1024
"""Bytes of one line; longer ones are none of ours."""
MOST_RECORDS = 100_000
"""Records that are kept; of more the newest."""
MOST_WORDS = 512
"""Words of one command."""
LAST_TIME = 253_402_300_000.0
LAST_NUMBER = 2**53
_HASH = re.compile(r"[0-9a-f]{64}")
_CHAIN = re.compile(r"[0-9a-f]{16}")
_END = re.compile(rb',"h":"([0-9a-f]{64})"\}\Z')


class Kind(StrEnum):
    """What a record tells."""

    INTENT = "intent"
    """Before the command leaves."""
    START = "start"
    """It was accepted on its host."""
    OUTCOME = "outcome"
    """What became of it, `unknown` included."""
    NOTE = "note"
    TAKEOVER = "takeover"
    """The lease changed hands; the text names both people."""
    WAIVER = "waiver"
    """A rule was set aside by a named person."""
    BREAK_GLASS = "break-glass"
    """Acted without ledger, lease or head; written up here."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line. As read, all texts are safe; as written, secrets are references already."""

    chain: str
    """16 hex digits: the file that it was first written to."""
    seq: int
    """From 1, without gaps in its file."""
    ts: float
    """Unix seconds by the writer's clock."""
    mono: float
    """Seconds since the writer's boot, sleep included."""
    boot: str
    """The writer's boot id; '' where it has none."""
    epoch: int
    """Of the lease that it was done under; 0 without one."""
    operator: str
    fleet: str
    lane: str
    """'' for what concerns the file itself."""
    host: str
    op: str
    kind: Kind
    argv: tuple[str, ...]
    plan: str
    """Plan id."""
    result: str
    text: str
    prev: str
    h: str = ""
    """'' until it is encoded."""


@dataclass(frozen=True, slots=True)
class LedgerText:
    """What a ledger, or a copy of one, holds."""

    records: tuple[Record, ...] = ()
    """In the order of the text; lines that are broken in themselves are left out."""
    lines: int = 0
    problem: str = ""
    """The first broken line and what is wrong with it: `line 7: ...`; '' if the chain holds."""
    line: int = 0
    """Its number; 0 if there is none."""
    broken: int = 0
    """How many lines are broken or do not follow."""
    torn: int = 0
    """Bytes of a last line that was never finished; the next write puts them aside."""
    heads: dict[str, Record] = field(default_factory=dict)
    """The newest record of each chain; its hash stands for the whole chain."""


# Writing


def encode(record: Record) -> tuple[Record, bytes]:
    """The record with its hash, and its line. ASCII only, so that a terminal can show the file as it is."""
    document = {
        "v": VERSION,
        "chain": record.chain,
        "seq": record.seq,
        "ts": round(record.ts, 6),
        "mono": round(record.mono, 6),
        "boot": record.boot,
        "epoch": record.epoch,
        "operator": record.operator,
        "fleet": record.fleet,
        "lane": record.lane,
        "host": record.host,
        "op": record.op,
        "kind": record.kind,
        "argv": list(record.argv),
        "plan": record.plan,
        "result": record.result,
        "text": record.text,
        "prev": record.prev,
    }
    body = json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")
    digest = hashlib.sha256(body).hexdigest()
    return replace(record, h=digest), body[:-1] + f',"h":"{digest}"}}\n'.encode()


# Reading


class BadLine(ValueError):
    """A line that is no record; the text says what is wrong with it."""


def decode(raw: bytes) -> Record:
    """The record of one line, without its line end. Raises BadLine; never anything else."""
    if len(raw) > MOST_LINE:
        raise BadLine(f"longer than {MOST_LINE} bytes")
    end = _END.search(raw)
    if end is None:
        raise BadLine("no record: it does not end with its hash")
    if hashlib.sha256(raw[: end.start()] + b"}").hexdigest().encode() != end[1]:
        raise BadLine("its hash does not match: the line was changed")
    try:
        document = json.loads(raw, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise BadLine("no record: no JSON object") from None
    if not isinstance(document, dict):
        raise BadLine("no record: no JSON object")
    if _whole(document, "v", 1) > VERSION:
        raise BadLine("of a newer laneswap: update to read it")
    return _record(document)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that stands there twice would be read as one thing here and as another elsewhere."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _record(document: dict[str, Any]) -> Record:
    argv = document.get("argv")
    if not isinstance(argv, list) or len(argv) > MOST_WORDS or not all(isinstance(item, str) for item in argv):
        raise BadLine(f"argv: no list of at most {MOST_WORDS} words")
    kind = _text(document, "kind")
    if kind not in {item.value for item in Kind}:
        raise BadLine(f"kind: {word(kind, 40)!r} is none")
    return Record(
        chain=_matching(document, "chain", _CHAIN),
        seq=_whole(document, "seq", 1),
        ts=_number(document, "ts"),
        mono=_number(document, "mono"),
        boot=word(_text(document, "boot"), 40),
        epoch=_whole(document, "epoch", 0),
        operator=word(_text(document, "operator")),
        fleet=word(_text(document, "fleet")),
        lane=word(_text(document, "lane")),
        host=word(_text(document, "host")),
        op=word(_text(document, "op")),
        kind=Kind(kind),
        argv=tuple(safe_line(item) for item in argv),
        plan=word(_text(document, "plan"), 64),
        result=safe_line(_text(document, "result")),
        text=safe_line(_text(document, "text")),
        prev=_matching(document, "prev", _HASH),
        h=_matching(document, "h", _HASH),
    )


def _text(document: dict[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise BadLine(f"{key}: no text")
    return value


def _matching(document: dict[str, Any], key: str, pattern: re.Pattern[str]) -> str:
    value = _text(document, key)
    if not pattern.fullmatch(value):
        raise BadLine(f"{key}: no hex digits of its length")
    return value


def _whole(document: dict[str, Any], key: str, least: int) -> int:
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LAST_NUMBER:
        raise BadLine(f"{key}: no whole number from {least}")
    return value


def _number(document: dict[str, Any], key: str) -> float:
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LAST_TIME:
        raise BadLine(f"{key}: no number of seconds")
    return float(value)


class Reader:
    """Reads a ledger line by line and checks that each follows from the one before it in its chain.

    `copy`: lines of several chains, with gaps and repeats, as a head keeps them. `excerpt`: the text begins anywhere,
    perhaps in the middle of a line.
    """

    def __init__(self, *, copy: bool = False, excerpt: bool = False) -> None:
        self._copy = copy
        self._excerpt = excerpt
        self._records: deque[Record] = deque(maxlen=MOST_RECORDS)
        self._heads: dict[str, Record] = {}
        self._seen: dict[tuple[str, int], tuple[str, int]] = {}
        self._problem = ""
        self._line = self._broken = self._lines = self._torn = 0

    def feed(self, raw: bytes) -> None:
        """The next line with its line end; only the last one may be without."""
        if not raw.endswith(b"\n") and len(raw) <= MOST_LINE:
            self._torn = len(raw)
            return
        self._lines += 1
        try:
            record = decode(raw.rstrip(b"\n"))
        except BadLine as error:
            if not (self._excerpt and self._lines == 1):
                self._bad(str(error))
            return
        if words := self._copied(record) if self._copy else self._followed(record):
            self._bad(words)
        if self._copy:
            if (record.chain, record.seq) in self._seen:
                return
            self._seen[record.chain, record.seq] = (record.h, self._lines)
        self._records.append(record)
        newest = self._heads.get(record.chain)
        if newest is None or newest.seq < record.seq or not self._copy:
            self._heads[record.chain] = record

    def _bad(self, words: str) -> None:
        self._broken += 1
        if not self._problem:
            self._problem, self._line = f"line {self._lines}: {words}", self._lines

    def _followed(self, record: Record) -> str:
        """What is wrong with its place in a file of one chain."""
        if not self._records:
            if self._excerpt or self._broken or (record.seq, record.prev) == (1, ZERO):
                return ""
            return f"the file begins with record {record.seq}: what stood before it is gone"
        last = self._records[-1]
        if record.chain != last.chain:
            return "of another chain: it was written to another file"
        if record.seq != last.seq + 1:
            return f"record {record.seq} follows record {last.seq}: lines were removed, repeated or moved"
        return "" if record.prev == last.h else f"it does not follow from record {last.seq} as it stands there"

    def _copied(self, record: Record) -> str:
        """What is wrong with it among lines of several chains, each with gaps."""
        if (again := self._seen.get((record.chain, record.seq))) is not None:
            return "" if again[0] == record.h else f"it differs from line {again[1]}, the same record"
        before = self._seen.get((record.chain, record.seq - 1))
        after = self._heads.get(record.chain)
        if record.seq == 1 and record.prev != ZERO:
            return "the first record of a chain, but it names one before it"
        if before is not None and record.prev != before[0]:
            return f"it does not follow from line {before[1]}, the record before it"
        if after is not None and after.seq == record.seq + 1 and after.prev != record.h:
            return "the record after it does not follow from it"
        return ""

    def done(self) -> LedgerText:
        """All that was read."""
        return LedgerText(
            tuple(self._records), self._lines, self._problem, self._line, self._broken, self._torn, dict(self._heads)
        )


def read_ledger(data: bytes, *, copy: bool = False, excerpt: bool = False) -> LedgerText:
    """What a text of lines holds; see Reader. Never raises."""
    reader = Reader(copy=copy, excerpt=excerpt)
    for raw in _lines(data):
        reader.feed(raw)
    return reader.done()


def _lines(data: bytes) -> Iterator[bytes]:
    r"""Only `\n` ends a line."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


# Merging


@dataclass(frozen=True, slots=True)
class Merged:
    """Several copies as one."""

    records: tuple[Record, ...]
    """Each once; those of one lane by epoch and number, lanes among each other by time."""
    conflicts: tuple[str, ...]
    """Records that the copies tell differently, in words: one of the copies was changed."""


def merged(copies: Iterable[Sequence[Record]]) -> Merged:
    """Local file and head copies as one.

    What was done without a lease has no epoch: it stands with the newest epoch that its lane had had by then.
    """
    found: dict[tuple[str, int], Record] = {}
    conflicts: list[str] = []
    for copy in copies:
        for record in copy:
            other = found.setdefault((record.chain, record.seq), record)
            if other.h != record.h:
                conflicts.append(f"record {record.seq} of chain {record.chain} differs between two copies")
    lanes: dict[str, list[Record]] = {}
    for record in sorted(found.values(), key=lambda item: (item.chain, item.seq)):
        lanes.setdefault(record.lane, []).append(record)
    rows = heapq.merge(*(_of_one_lane(records) for records in lanes.values()), key=_time)
    return Merged(tuple(rows), tuple(conflicts))


def _time(record: Record) -> float:
    return record.ts


def _of_one_lane(records: Sequence[Record]) -> list[Record]:
    """By epoch; in one epoch each chain by its numbers, chains among each other by time."""
    known = sorted((record.ts, record.epoch) for record in records if record.epoch)
    highest = list(accumulate((epoch for _, epoch in known), max))
    times = [ts for ts, _ in known]
    epochs: dict[int, dict[str, list[Record]]] = {}
    own: dict[str, int] = {}
    for record in records:
        by_then = bisect_right(times, record.ts)
        least = max(own.get(record.chain, 0), highest[by_then - 1] if by_then else 0)
        own[record.chain] = epoch = record.epoch or least
        epochs.setdefault(epoch, {}).setdefault(record.chain, []).append(record)
    return [row for epoch in sorted(epochs) for row in heapq.merge(*epochs[epoch].values(), key=_time)]
