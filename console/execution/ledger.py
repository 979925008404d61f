"""The ledger on the operator's machine: append-only, on the disk before anything is sent, one chain a file.

Several consoles of one account append to the same file under a lock, so the chain does not fork. A line is written
whole or not at all; one that was cut off by a crash is put aside on the next write, and a note says so. Nothing here
waits for a host: what a head has not got yet is `pending`, and `acknowledge` remembers what it has.

All calls block for as long as the disk takes: call them from a thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from console.execution.acknowledged import Mark, missed, read_marks, write_marks
from console.execution.lockedfile import Sync, append_whole, keep, locked, replace_tail, rows, sync_folder
from console.execution.policy import clock
from console.feed.records import state_folder
from console.readings.ledger import (
    MOST_LINE,
    MOST_WORDS,
    ZERO,
    BadLine,
    Kind,
    LedgerText,
    Reader,
    Record,
    decode,
    encode,
)
from console.readings.redaction import bounded, redacted, redacted_argv, secrets_of
from console.sanitize import LOOKED_AT, line, word

ROOM = 64 * 1024
"""Bytes that must have room on the disk for the ledger to count as writable."""
LOOKED_BACK = 1024 * 1024
"""Bytes at the end of the file in which what is to be said once is looked for."""
MOST_TEXT = 2000
"""Characters of a text."""
CARRIED_ON = "carried on"
"""Result of the note that an operation whose outcome was told goes on."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class LedgerError(Exception):
    """The ledger cannot be written or read; the text names the file and the reason. Nothing half written is left."""


def ledger_file(fleet: str) -> Path:
    """The ledger of one fleet: LANESWAP_STATE, else the user's state folder. The name is one as fleet.toml has it."""
    return state_folder() / "ledger" / fleet / "ledger.jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is to be recorded; secrets become references, texts become safe, before any of it is written."""

    lane: str
    text: str = ""
    """One sentence: what, why, who else."""
    host: str = ""
    op: str = ""
    """Operation id."""
    epoch: int = 0
    argv: tuple[str, ...] = ()
    plan: str = ""
    result: str = ""
    """Of an outcome: `done`, `failed: exit 3`, `unknown: connection lost`."""
    operator: str = ""
    """Where it is another than the console's own."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Where the times of a record come from."""

    wall: Callable[[], float] = time.time
    mono: Callable[[], float] = clock
    boot: Callable[[], str] = field(default=lambda: _boot_id())


@dataclass(frozen=True, slots=True)
class Pending:
    """Lines that the head of one lane has not acknowledged."""

    lines: tuple[str, ...]
    """With their line ends, to be appended as they are."""
    upto: Record | None
    """The newest whole record of the file, whatever its lane."""
    end: int
    """Bytes up to the end of that record."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What the file holds and whether it is whole."""

    file: Path
    text: LedgerText
    problem: str
    """The first thing that is wrong, in words; '' if nothing is."""
    notes: tuple[str, ...]
    """What is odd and no fault."""

    @property
    def head(self) -> Record | None:
        """The newest record: its hash stands for all before it."""
        return self.text.records[-1] if self.text.records else None


@dataclass(frozen=True, slots=True)
class _Tail:
    """The end of the file."""

    end: int
    """Bytes up to the end of the last whole line."""
    last: Record | None
    torn: bytes
    """What comes behind that: a line that was never finished."""


class Ledger:
    """One fleet's ledger file. Every call opens and locks it anew, so threads and other consoles may write too."""

    def __init__(
        self,
        file: Path,
        fleet: str,
        operator: str = "",
        *,
        known: Mapping[str, str] | None = None,
        times: Clock | None = None,
        sync: Sync = os.fsync,
    ) -> None:
        """`known`: values that are secret whatever they look like, by name; default: those of the environment."""
        self.file = file
        self._fleet = fleet
        self._operator = operator
        self._known = secrets_of(os.environ) if known is None else known
        self._times = times or Clock()
        self._sync = sync

    # Writing; each raises LedgerError, and has the record on the disk when it returns

    def intent(self, entry: Entry) -> Record:
        """Before the command leaves."""
        return self.write(Kind.INTENT, entry)

    def start(self, entry: Entry) -> Record:
        """Its host has accepted it."""
        return self.write(Kind.START, entry)

    def outcome(self, entry: Entry) -> Record:
        """What became of it; `entry.result` must say it."""
        if not entry.result:
            raise ValueError("an outcome without a result")
        return self.write(Kind.OUTCOME, entry)

    def note(self, entry: Entry) -> Record:
        """Anything else worth keeping."""
        return self.write(Kind.NOTE, entry)

    def once(self, kind: Kind, entry: Entry) -> Record | None:
        """What every console of the operator would record: the outcome of an operation, or a note with this result.
        None where it is there already."""
        return self._write(kind, entry, once=True)

    def takeover(self, entry: Entry) -> Record:
        """The lease changed hands; the text names both people."""
        return self.write(Kind.TAKEOVER, entry)

    def waiver(self, entry: Entry) -> Record:
        """A rule was set aside by a named person."""
        return self.write(Kind.WAIVER, entry)

    def break_glass(self, entry: Entry) -> Record:
        """Acted without ledger, lease or head; written up here."""
        return self.write(Kind.BREAK_GLASS, entry)

    def write(self, kind: Kind, entry: Entry) -> Record:
        """Append one record. Raises LedgerError; the file is then as it was."""
        record = self._write(kind, entry)
        assert record is not None
        return record

    def _write(self, kind: Kind, entry: Entry, *, once: bool = False) -> Record | None:
        with self._spoken("written"), locked(self.file, self._sync, write=True) as descriptor:
            if once and _told(descriptor, kind, entry):
                return None
            tail = self._tail(descriptor)
            if tail.last is None:
                sync_folder(self.file.parent, self._sync)
            if tail.torn:
                tail = self._set_aside(descriptor, tail)
            record, raw = self._encoded(tail.last, kind, entry)
            append_whole(descriptor, raw, tail.end, self._sync)
            return record

    def check(self) -> None:
        """Whether a record could be written now: lock, last line, folder and room on the disk. Raises LedgerError."""
        with self._spoken("written"), locked(self.file, self._sync, write=True) as descriptor:
            self._tail(descriptor)
            probe = self.file.with_name(".room")
            try:
                keep(probe, bytes(ROOM), self._sync)
            finally:
                probe.unlink(missing_ok=True)

    def _encoded(self, last: Record | None, kind: Kind, entry: Entry) -> tuple[Record, bytes]:
        """The next record and its line, which can be read again: one that cannot would end the ledger."""
        try:
            record, raw = encode(self._record(last, kind, entry))
            decode(raw[:-1])
        except ValueError as error:
            raise LedgerError(f"{self.file}: this cannot be recorded: {error}") from error
        return record, raw

    def _record(self, last: Record | None, kind: Kind, entry: Entry) -> Record:
        return Record(
            chain=last.chain if last else secrets.token_hex(8),
            seq=last.seq + 1 if last else 1,
            ts=max(0.0, self._times.wall()),
            mono=max(0.0, self._times.mono()),
            boot=word(self._times.boot(), 40),
            epoch=entry.epoch,
            operator=word(entry.operator or self._operator),
            fleet=word(self._fleet),
            lane=word(entry.lane),
            host=word(entry.host),
            op=word(entry.op),
            kind=kind,
            argv=bounded(
                redacted_argv([item[:LOOKED_AT] for item in entry.argv], self._known), MOST_WORDS, MOST_LINE // 2
            ),
            plan=word(entry.plan, 64),
            result=self._safe(entry.result),
            text=self._safe(entry.text),
            prev=last.h if last else ZERO,
        )

    def _safe(self, text: str) -> str:
        return line(redacted(text[:LOOKED_AT], self._known), MOST_TEXT)

    def _set_aside(self, descriptor: int, tail: _Tail) -> _Tail:
        """Put the torn bytes into a file of their own, and a note where they stood; again if this is cut off too."""
        aside = self.file.with_suffix(".jsonl.torn")
        keep(aside, tail.torn + b"\n", self._sync)
        if b"\n" in tail.torn:  # overwritten in part it might look like a line
            os.ftruncate(descriptor, tail.end)
        text = f"torn: the last line was never finished; its {len(tail.torn)} bytes are kept in {aside.name}"
        record, raw = self._encoded(tail.last, Kind.NOTE, Entry(lane="", text=text))
        replace_tail(self.file, raw, tail.end, self._sync)
        return _Tail(tail.end + len(raw), record, b"")

    # Reading; each raises LedgerError where the file is there and cannot be read

    def verify(self) -> Verified:
        """Check every line, and that nothing is gone that a head has acknowledged."""
        with self._spoken("read"):
            try:
                with locked(self.file, self._sync, write=False) as descriptor:
                    text = _read(descriptor)
            except FileNotFoundError:
                text = LedgerText()
            marks, odd = read_marks(self._mark_file)
        problem, notes = missed(marks, text)
        return Verified(self.file, text, text.problem or problem, (*((odd,) if odd else ()), *notes))

    def pending(self, lane: str) -> Pending:
        """What the head of this lane has not acknowledged; lines that concern the file itself go to every head."""
        with self._spoken("read"):
            try:
                with locked(self.file, self._sync, write=False) as descriptor:
                    return self._pending(descriptor, lane)
            except FileNotFoundError:
                return Pending((), None, 0)

    def _pending(self, descriptor: int, lane: str) -> Pending:
        mark = read_marks(self._mark_file)[0].get(lane)
        start = mark.end if mark is not None and mark.stands_in(descriptor) else 0
        found: list[str] = []
        upto, end = None, start
        for raw, after in rows(descriptor, MOST_LINE, start):
            with contextlib.suppress(BadLine):
                record = decode(raw.rstrip(b"\n"))
                upto, end = record, after
                if record.lane in ("", lane):
                    found.append(raw.decode("ascii"))
        return Pending(tuple(found), upto, end)

    def acknowledge(self, lane: str, pending: Pending) -> None:
        """The head of this lane has these lines on its disk. Raises LedgerError; they are then pending still."""
        if pending.upto is None:
            return
        with self._spoken("marked"), locked(self.file, self._sync, write=True) as descriptor:
            marks, _ = read_marks(self._mark_file)
            before, upto = marks.get(lane), pending.upto
            if before is None or before.chain != upto.chain or before.seq < upto.seq:
                if before is not None and not before.stands_in(descriptor):
                    # lines were removed: what is written after them must not hide it
                    marks.setdefault(f"{lane} {before.chain}", before)
                marks[lane] = Mark(upto.chain, upto.seq, upto.h, pending.end)
                write_marks(self._mark_file, marks, self._sync)

    @property
    def _mark_file(self) -> Path:
        return self.file.with_name("acknowledged.json")

    # The file

    def _tail(self, descriptor: int) -> _Tail:
        size = os.fstat(descriptor).st_size
        start = max(0, size - 2 * MOST_LINE)
        data = os.pread(descriptor, size - start, start)
        end = data.rfind(b"\n") + 1
        while end:
            begin = data.rfind(b"\n", 0, end - 1) + 1
            if b"\0" not in data[begin:end]:
                break
            end = begin  # zeros where a crash kept the disk from writing the middle of a line
        if not end:
            if start:
                raise LedgerError(f"{self.file}: no whole line at its end; move it aside to begin a new one")
            return _Tail(0, None, data)
        try:
            return _Tail(start + end, decode(data[begin : end - 1]), data[end:])
        except BadLine as error:
            raise LedgerError(
                f"{self.file}: its last line is damaged ({error}); see `laneswap ledger --verify`, "
                "then move the file aside to begin a new one"
            ) from None

    @contextlib.contextmanager
    def _spoken(self, what: str) -> Iterator[None]:
        """Errors of the system in the ledger's words."""
        try:
            yield
        except OSError as error:
            words = "it is a link, not a file" if error.errno == errno.ELOOP else error.strerror or str(error)
            raise LedgerError(f"the ledger cannot be {what}: {error.filename or self.file}: {words}") from error


def _told(descriptor: int, kind: Kind, entry: Entry) -> bool:
    """Whether one of the newest lines says it already, since the operation was carried on."""
    size, told = os.fstat(descriptor).st_size, False
    for raw, _ in rows(descriptor, MOST_LINE, max(0, size - LOOKED_BACK)):
        if entry.op.encode() not in raw:
            continue
        with contextlib.suppress(BadLine):
            record = decode(raw.rstrip(b"\n"))
            if record.op == entry.op and record.result == CARRIED_ON:
                told = False
            told |= (record.op, record.kind, record.result) == (entry.op, kind, entry.result)
    return told


def _read(descriptor: int) -> LedgerText:
    reader = Reader()
    for raw, _ in rows(descriptor, MOST_LINE):
        reader.feed(raw)
    return reader.done()


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
