"""The ledger as text: what is written is what is read, every change to it is named by its line, copies become one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.ledger import (
    MOST_LINE,
    ZERO,
    BadLine,
    Kind,
    Record,
    decode,
    encode,
    merged,
    read_ledger,
)

A, B = "a" * 16, "b" * 16
FIRST = Record(
    chain=A, seq=1, ts=1_790_000_000.25, mono=5.5, boot="b00t", epoch=3, operator="ana", fleet="spark4", lane="dsv41",
    host="spark-0", op="20261130T031200Z-stop-3f9ac1", kind=Kind.INTENT, argv=("docker", "stop", "sgldsv41"),
    plan="0123456789ab", result="", text="stop rank 0", prev=ZERO,
)  # fmt: skip


def chain(count: int, start: Record = FIRST, **each: Any) -> tuple[list[Record], list[bytes]]:
    """Records that follow from each other, and their lines."""
    records: list[Record] = []
    lines: list[bytes] = []
    for number in range(count):
        prev = records[-1].h if records else ZERO
        record, raw = encode(replace(start, seq=number + 1, ts=start.ts + number, prev=prev, h="", **each))
        records.append(record)
        lines.append(raw)
    return records, lines


def test_what_is_written_is_what_is_read() -> None:
    records, lines = chain(5)
    text = read_ledger(b"".join(lines))
    assert (text.records, text.lines, text.problem, text.torn) == (tuple(records), 5, "", 0)
    assert text.heads == {A: records[-1]}


def test_the_hash_can_be_checked_with_sha256sum() -> None:
    _, (raw,) = chain(1)
    body, _, rest = raw.decode().partition(',"h":"')
    assert hashlib.sha256(f"{body}}}".encode()).hexdigest() == rest[:64]
    assert rest[64:] == '"}\n'
    assert json.loads(raw)["argv"] == ["docker", "stop", "sgldsv41"]


def test_a_line_is_ascii_whatever_it_tells() -> None:
    _, (raw,) = chain(1, replace(FIRST, text="r\u00fcck \x1b]0;x\x07 \u202e \ud800", argv=("a\nb\t\x00",)))
    assert raw.isascii() and raw.count(b"\n") == 1 and b"\x1b" not in raw
    (record,) = read_ledger(raw).records
    assert record.text.isprintable() and record.argv[0].isprintable()


texts = st.text(max_size=40)


@given(texts, texts, texts, st.lists(texts, max_size=5), st.integers(0, 2**53), st.floats(0, 2e11))
def test_every_record_is_read_again(text: str, name: str, result: str, argv: list[str], epoch: int, ts: float) -> None:
    start = replace(FIRST, text=text, operator=name, lane=name, result=result, argv=tuple(argv), epoch=epoch, ts=ts)
    record, raw = encode(start)
    again = decode(raw[:-1])
    assert (again.h, again.epoch, again.seq, len(again.argv)) == (record.h, epoch, 1, len(argv))


# What was changed

CHANGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int, str]] = {
    "a byte": (lambda rows: [*rows[:2], rows[2].replace(b"stop rank", b"stop Rank"), *rows[3:]], 3, "was changed"),
    "the hash": (lambda rows: [rows[0].replace(b'"h":"', b'"h":"0', 1), *rows[1:]], 1, "does not end with its hash"),
    "a line gone": (lambda rows: [*rows[:2], *rows[3:]], 3, "record 4 follows record 2"),
    "the first gone": (lambda rows: rows[1:], 1, "begins with record 2"),
    "a line twice": (lambda rows: [*rows[:2], rows[1], *rows[2:]], 3, "record 2 follows record 2"),
    "two exchanged": (lambda rows: [rows[0], rows[2], rows[1], *rows[3:]], 2, "record 3 follows record 1"),
    "not JSON": (lambda rows: [*rows[:4], b"hello\n", *rows[4:]], 5, "does not end with its hash"),
    "empty line": (lambda rows: [rows[0], b"\n", *rows[1:]], 2, "does not end with its hash"),
    "other file": (lambda rows: [rows[0], *chain(5, replace(FIRST, chain=B))[1][1:]], 2, "of another chain"),
    "rewritten": (lambda rows: [*rows[:2], chain(6, text="nothing happened")[1][2], *rows[3:]], 3, "does not follow"),
    "huge": (lambda rows: [rows[0], b"x" * (MOST_LINE + 1) + b"\n", *rows[1:]], 2, "longer than"),
    "CRLF": (lambda rows: [*rows[:3], rows[3][:-1] + b"\r\n", *rows[4:]], 4, "does not end with its hash"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_first_broken_line_is_named(what: str) -> None:
    change, line, words = CHANGES[what]
    text = read_ledger(b"".join(change(chain(6)[1])))
    assert text.line == line
    assert text.problem.startswith(f"line {line}: ") and words in text.problem
    assert text.broken >= 1


@given(st.data())
def test_no_change_of_a_byte_goes_unseen(data: st.DataObject) -> None:
    whole = b"".join(chain(4)[1])
    at = data.draw(st.integers(0, len(whole) - 2))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != whole[at]))
    text = read_ledger(whole[:at] + bytes([byte]) + whole[at + 1 :])
    assert text.problem


@pytest.mark.parametrize("cut", [1, 10, 200])
def test_a_line_that_was_never_finished_is_torn_and_nothing_else(cut: int) -> None:
    records, lines = chain(3)
    text = read_ledger(b"".join(lines)[:-cut])
    assert (text.records, text.problem, text.torn) == (tuple(records[:2]), "", len(lines[2]) - cut)


def signed(document: Any) -> bytes:
    """A line with a right hash, whatever it says."""
    body = document if isinstance(document, bytes) else json.dumps(document, separators=(",", ":")).encode()
    return body[:-1] + f',"h":"{hashlib.sha256(body).hexdigest()}"}}'.encode()


def body(**changes: Any) -> dict[str, Any]:
    """The keys of a good line but its hash."""
    document = json.loads(chain(1)[1][0])
    del document["h"]
    return {**document, **changes}


HOSTILE: list[tuple[Any, str]] = [
    (body(seq=0), "seq"),
    (body(seq=True), "seq"),
    (body(seq="1"), "seq"),
    (body(seq=10**30), "seq"),
    (body(epoch=-1), "epoch"),
    (body(ts="now"), "ts"),
    (body(ts=-1), "ts"),
    (body(ts=1e300), "ts"),
    (body(mono=None), "mono"),
    (body(kind="deed"), "kind"),
    (body(kind=["intent"]), "kind"),
    (body(argv="docker stop"), "argv"),
    (body(argv=[1]), "argv"),
    (body(argv=["x"] * 600), "argv"),
    (body(chain="A" * 16), "chain"),
    (body(prev="0"), "prev"),
    (body(lane=7), "lane"),
    (body(v=2), "newer laneswap"),
    (body(v="1"), "v:"),
    (b'{"v":1,"seq":NaN}', "argv"),
    (b'{"v":1,"v":1}', "no JSON object"),
    (b'{"v":1,"x":' + b"[" * 50_000 + b"}", "no JSON object"),
    (b"{]}", "no JSON object"),
    (b"\xff\xff}", "no JSON object"),
]


@pytest.mark.parametrize(("document", "words"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_line_with_a_right_hash_is_still_checked(document: Any, words: str) -> None:
    with pytest.raises(BadLine) as error:
        decode(signed(document))
    assert words in str(error.value) and str(error.value).isprintable()


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes) -> None:
    text = read_ledger(data)
    assert not text.records
    assert text.problem or text.torn == len(data)
    read_ledger(data, copy=True, excerpt=True)


# Copies on a head


def test_a_copy_holds_lines_of_several_chains_with_gaps_and_repeats() -> None:
    ana, hers = chain(6)
    ben, his = chain(3, replace(FIRST, chain=B, operator="ben"))
    text = read_ledger(b"".join([hers[0], his[0], hers[2], hers[2], hers[3], his[1], hers[5]]), copy=True)
    assert text.problem == ""
    assert text.records == (ana[0], ben[0], ana[2], ana[3], ben[1], ana[5])
    assert text.heads == {A: ana[5], B: ben[1]}


def test_what_was_changed_in_a_copy_is_named() -> None:
    _, good = chain(4)
    _, other = chain(4, text="nothing happened")
    cases = {
        2: ([good[0], other[1]], "does not follow from line 1"),
        3: ([good[0], good[1], other[1]], "differs from line 2"),
        4: ([good[0], good[1], good[3], other[2]], "does not follow from line 2"),
    }
    for line, (rows, words) in cases.items():
        text = read_ledger(b"".join(rows), copy=True)
        assert text.line == line and words in text.problem
    late = read_ledger(b"".join([good[3], other[2]]), copy=True)
    assert (late.line, "after it does not follow" in late.problem) == (2, True)


def test_an_excerpt_may_begin_in_the_middle_of_a_line() -> None:
    records, lines = chain(5)
    whole = b"".join(lines)
    for cut in (1, len(lines[0]) - 1, len(lines[0])):
        for copy in (True, False):
            text = read_ledger(whole[cut:], excerpt=True, copy=copy)
            assert (text.problem, text.records) == ("", tuple(records[1:]))


# Merging


def test_copies_become_one_and_each_record_stands_there_once() -> None:
    ana, _ = chain(4)
    ben, _ = chain(2, replace(FIRST, chain=B, operator="ben", epoch=4, ts=FIRST.ts - 1000))
    found = merged([ana, [ana[0], ben[0], ana[2]], ben])
    assert found.conflicts == ()
    assert [record.h for record in found.records] == [record.h for record in (*ana, *ben)]


def test_a_newer_epoch_stands_behind_an_older_one_whatever_the_clocks_say() -> None:
    ana, _ = chain(3, epoch=7)
    ben, _ = chain(3, replace(FIRST, chain=B, ts=FIRST.ts + 500), epoch=6)
    assert [record.epoch for record in merged([ana, ben]).records] == [6, 6, 6, 7, 7, 7]


def test_what_was_done_without_a_lease_stands_where_it_was_done() -> None:
    ana, _ = chain(2, epoch=7)
    ben, _ = chain(1, replace(FIRST, chain=B, kind=Kind.BREAK_GLASS, ts=FIRST.ts + 100), epoch=0)
    later, _ = chain(2, replace(FIRST, chain="c" * 16, ts=FIRST.ts + 200), epoch=8)
    found = merged([ben, later, ana]).records
    assert [record.chain for record in found] == [A, A, B, "c" * 16, "c" * 16]


def test_lanes_stand_among_each_other_by_time() -> None:
    one, _ = chain(2)
    two, _ = chain(2, replace(FIRST, chain=B, ts=FIRST.ts + 0.5, epoch=99), lane="station")
    assert [record.lane for record in merged([one, two]).records] == ["dsv41", "station", "dsv41", "station"]


def test_copies_that_tell_different_things_are_a_conflict() -> None:
    one, _ = chain(3)
    two, _ = chain(3, text="nothing happened")
    found = merged([one, two])
    assert len(found.conflicts) == 3 and "record 1" in found.conflicts[0]
    assert [record.text for record in found.records] == ["stop rank 0"] * 3
