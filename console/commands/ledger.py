"""`laneswap ledger [--verify] [--json] [LANE]`: the record on this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from console.commands.parts import FleetFile, Json, UsageError, fleet_file, print_answer
from console.fleet.inventory import load
from console.fleet.tomlfile import suggest
from console.headless import EXIT_GOOD, EXIT_NEEDS_OPERATOR, EXIT_UNKNOWN
from console.sanitize import line

if TYPE_CHECKING:
    from console.execution.ledger import Ledger, Verified
    from console.readings.ledger import Record

Verify = Annotated[bool, Parameter(negative="", help="Check every line, and say no more than what came of it.")]
Lane = Annotated[str, Parameter(help="Records of this lane alone; without it all of the fleet.")]


def ledger(lane: Lane = "", *, fleet: FleetFile = None, verify: Verify = False, json: Json = False) -> int:
    """What was done, by whom and with what outcome; oldest first. Asks no host, changes nothing."""
    from console.execution.ledger import Ledger, LedgerError, ledger_file

    written = load(fleet_file(fleet))
    kept = Ledger(ledger_file(written.name), written.name, known={})
    try:
        found = kept.verify()
        waiting = _waiting(kept, tuple(written.lanes))
    except LedgerError as error:
        print(line(f"laneswap: {error}", 1000), file=sys.stderr)
        return EXIT_UNKNOWN
    records = _of_lane(found, lane, tuple(written.lanes))
    if json:
        print_answer(_document(written.name, found, waiting, None if verify else records), as_json=True)
    elif verify:
        print("\n".join(_verdict(found, waiting)))
    else:
        _print(found, records)
    return EXIT_NEEDS_OPERATOR if found.problem else EXIT_GOOD


def _waiting(kept: Ledger, lanes: tuple[str, ...]) -> dict[str, int]:
    """By lane: lines that its head has not acknowledged."""
    return {lane: len(kept.pending(lane).lines) for lane in lanes}


def _of_lane(found: Verified, lane: str, lanes: tuple[str, ...]) -> list[Record]:
    """Those of one lane, and those that concern the file itself. Raises UsageError for a lane that nobody knows."""
    if not lane:
        return list(found.text.records)
    known = {*lanes, *(record.lane for record in found.text.records)}
    if lane not in known:
        raise UsageError(f"no lane {lane!r} in the fleet or in its ledger{suggest(lane, sorted(known - {''}))}")
    return [record for record in found.text.records if record.lane in ("", lane)]


def _print(found: Verified, records: list[Record]) -> None:
    for record in records:
        print(line(_row(record), 1000))
    if not records:
        print(line(f"nothing is recorded yet ({found.file})", 1000))
    if found.problem:
        print(line(f"laneswap: NOT WHOLE: {found.file}: {found.problem}", 1000), file=sys.stderr)


def _row(record: Record) -> str:
    from console.format import moment

    time = moment(record.ts)
    said = [record.text, record.result, " ".join(record.argv) if record.argv else ""]
    cells = [
        f"{time:%Y-%m-%d %H:%M:%SZ}" if time else "-",
        record.lane or "-",
        record.operator or "-",
        str(record.kind),
        record.host or "-",
        "  ".join(item for item in said if item) or "-",
    ]
    marks = [record.op, f"plan {record.plan}" if record.plan else "", f"epoch {record.epoch}" if record.epoch else ""]
    return "  ".join([*cells, *(f"[{item}]" for item in marks if item)])


def _verdict(found: Verified, waiting: dict[str, int]) -> list[str]:
    """What came of the check, safe lines; the last one names the hash that stands for all."""
    rows = [f"NOT WHOLE: {found.problem}" if found.problem else f"good: {found.text.lines} lines"]
    rows.append(f"file: {found.file}")
    if found.text.broken > 1:
        rows.append(f"lines that are broken or do not follow: {found.text.broken}")
    if found.text.torn:
        rows.append(f"{found.text.torn} bytes of a last line that was never finished: put aside on the next write")
    rows += [*found.notes]
    rows += [f"not on the head of {lane} yet: {count} lines" for lane, count in waiting.items() if count]
    if found.head is not None:
        rows.append(f"head: {found.head.h} (record {found.head.seq} of chain {found.head.chain})")
    return [line(row, 1000) for row in rows]


def _document(fleet: str, found: Verified, waiting: dict[str, int], records: list[Record] | None) -> dict[str, Any]:
    newest = found.head
    answer: dict[str, Any] = {
        "good": not found.problem,
        "problem": found.problem or None,
        "fleet": fleet,
        "file": line(str(found.file), 1000),
        "lines": found.text.lines,
        "broken": found.text.broken,
        "torn": found.text.torn,
        "notes": [line(note, 1000) for note in found.notes],
        "unsynced": waiting,
        "head": None if newest is None else {"chain": newest.chain, "seq": newest.seq, "h": newest.h},
    }
    if records is not None:
        answer["records"] = [_plain(record) for record in records]
    return answer


def _plain(record: Record) -> dict[str, Any]:
    """The record's own keys, as they stand in the file, its time as text besides."""
    from console.document import iso

    values: dict[str, Any] = {name: getattr(record, name) for name in type(record).__slots__}
    return {**values, "argv": list(record.argv), "at": iso(record.ts)}
