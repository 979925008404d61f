"""What a lane is remembered by: added up, bounded, written whole, by two consoles, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.feed import records
from console.feed.records import LaneRecords, add_records, read_records, record_file
from console.readings.boot import BootRecord
from console.readings.recorded import (
    MOST_BOOTS,
    MOST_POINTS,
    MOST_POOLS,
    MOST_RUNNING,
    NOTHING,
    SCHEMA,
    Pool,
    Rates,
    Recorded,
    RecordsNewer,
    RecordsUnreadable,
    add_rate,
    bands,
    decode,
    encode,
    faded,
    merged,
)
from console.snapshot import Severity

BOOT = BootRecord(
    started=1_789_169_630.0,
    total=799.0,
    phases=(("start", 23.0), ("weights", 60.0)),
    kv_tokens=2_999_808,
    revision="1bae0e10",
    free_at_start=120 << 30,
    autotune="done",
)


class Told:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str, severity: Severity) -> None:
        assert severity is Severity.LOOK
        self.texts.append(text)


def boot(number: int) -> BootRecord:
    return BootRecord(started=1000.0 * number, total=500.0 + number)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - what is waited for happens in a thread
            await asyncio.sleep(0.005)


# As data


def test_what_is_written_is_what_is_read() -> None:
    rates: Rates = {}
    for tps in (60.0, 66.3, 66.4, 1.0):
        assert add_rate(rates, 3, tps)
    whole = Recorded((BOOT, boot(2_000_000)), (Pool(BOOT.started, 2_999_808),), rates)
    again = decode(encode(whole))
    assert again == Recorded(whole.boots, whole.pools, rates)
    assert json.loads(encode(whole))["schema"] == SCHEMA


@pytest.mark.parametrize(
    ("document", "where"),
    [
        (b"", "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"schema": "1"}', "schema"),
        (b'{"schema": true}', "schema"),
        (b"{}", "schema"),
        (b'{"schema": 1, "boots": {}}', "boots: no list"),
        (b'{"schema": 1, "boots": [7]}', "boots[0]: no object"),
        (b'{"schema": 1, "boots": [{"total_s": 5}]}', "boots[0].started"),
        (b'{"schema": 1, "boots": [{"started": 1, "total_s": NaN}]}', "boots[0].total_s"),
        (b'{"schema": 1, "boots": [{"started": 1, "total_s": 1e400}]}', "boots[0].total_s"),
        (b'{"schema": 1, "boots": [{"started": 1, "total_s": 2, "phases": [["a"]]}]}', "boots[0].phases[0]"),
        (b'{"schema": 1, "boots": [{"started": 1, "total_s": 2, "kv_tokens": 1.5}]}', "boots[0].kv_tokens"),
        (b'{"schema": 1, "boots": [{"started": 1, "total_s": 2, "revision": 3}]}', "boots[0].revision"),
        (b'{"schema": 1, "pools": [{"at": 1, "tokens": -1}]}', "pools[0].tokens"),
        (b'{"schema": 1, "decode_rates": []}', "decode_rates"),
        (b'{"schema": 1, "decode_rates": {"65": {}}}', "decode_rates.65"),
        (b'{"schema": 1, "decode_rates": {"\\u001b[31m1": {}}}', "decode_rates."),
        (b'{"schema": 1, "decode_rates": {"1": {"9999999": 1}}}', "decode_rates.1"),
        (b'{"schema": 1, "decode_rates": {"1": {"5": 1e3}}}', "decode_rates.1"),
        (b"[" * 100_000, "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
    ],
)
def test_what_is_no_record_says_where(document: bytes, where: str) -> None:
    with pytest.raises(RecordsUnreadable) as error:
        decode(document)
    assert where in str(error.value)
    assert not isinstance(error.value, RecordsNewer)


@given(st.binary(max_size=200))
def test_bytes_are_records_or_refused(data: bytes) -> None:
    try:
        found = decode(data)
    except RecordsUnreadable:
        return
    assert decode(encode(found)) == found


def test_texts_of_a_file_are_made_safe() -> None:
    document = {
        "schema": 1,
        "boots": [{"started": 1, "total_s": 2, "revision": "\x1b[31mred\u202e", "phases": [["\n", 1]]}],
    }
    (found,) = decode(json.dumps(document).encode()).boots
    assert found.revision == "red"
    assert found.phases[0][0].isprintable()


def test_a_start_stands_there_once_with_what_tells_most() -> None:
    bare = BootRecord(started=BOOT.started + 2, total=801.0)
    assert merged(Recorded((bare,)), Recorded((BOOT,))).boots == (BOOT,)
    assert merged(Recorded((BOOT,)), Recorded((bare,))).boots == (BOOT,)
    later = BootRecord(started=BOOT.started + 60, total=5.0)
    assert merged(Recorded((later,)), Recorded((BOOT,))).boots == (BOOT, later)
    pools = merged(Recorded(pools=(Pool(5.0, 7), Pool(100.0, 8))), Recorded(pools=(Pool(101.0, 9),))).pools
    assert pools == (Pool(5.0, 7), Pool(101.0, 9))


def test_only_the_newest_are_kept() -> None:
    many = Recorded(tuple(map(boot, range(1, 200))), tuple(Pool(100.0 * n, n) for n in range(1, 200)))
    kept = merged(NOTHING, many)
    assert [item.total for item in kept.boots] == [500.0 + n for n in range(200 - MOST_BOOTS, 200)]
    assert [item.tokens for item in kept.pools] == list(range(200 - MOST_POOLS, 200))


def test_bands_are_true_within_a_percent_and_apart_by_running_requests() -> None:
    rates: Rates = {}
    for number in range(101):
        add_rate(rates, 1, 50.0 + number)
        add_rate(rates, 8, 200.0)
    for _ in range(59):
        add_rate(rates, 3, 70.0)
    (one, low, high, points), (eight, flat, top, _) = bands(rates)
    assert (one, points, eight) == (1, 101, 8)
    assert low == pytest.approx(60.0, rel=0.02) and high == pytest.approx(140.0, rel=0.02)
    assert flat == top == pytest.approx(200.0, rel=0.01)


@pytest.mark.parametrize("tps", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_what_is_no_rate_does_not_count(tps: float) -> None:
    rates: Rates = {}
    assert not add_rate(rates, 1, tps)
    assert not add_rate(rates, 0, 50.0)
    assert rates == {}


def test_more_requests_than_are_told_apart_count_as_the_most() -> None:
    rates: Rates = {}
    add_rate(rates, 5000, 900.0)
    assert list(rates) == [MOST_RUNNING]


def test_old_rates_fade() -> None:
    full = {100: MOST_POINTS, 200: MOST_POINTS // 2}
    kept = faded(full)
    assert sum(kept.values()) <= MOST_POINTS
    assert kept[100] == 2 * kept[200]
    assert faded({5: 3, 6: 0}) == {5: 3}


@given(st.lists(st.tuples(st.integers(1, 70), st.floats(0.01, 1e6)), max_size=60))
def test_two_consoles_counts_add_up(points: list[tuple[int, float]]) -> None:
    together: Rates = {}
    apart: tuple[Rates, Rates] = ({}, {})
    for number, (running, tps) in enumerate(points):
        add_rate(together, running, tps)
        add_rate(apart[number % 2], running, tps)
    assert merged(Recorded(rates=apart[0]), Recorded(rates=apart[1])).rates == together


# In a file


def test_the_file_of_a_lane(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LANESWAP_STATE", str(tmp_path))
    assert record_file("spark4", "dsv41") == tmp_path / "records" / "spark4" / "dsv41.json"
    monkeypatch.delenv("LANESWAP_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert record_file("spark4", "dsv41").parts[-4:] == ("laneswap", "records", "spark4", "dsv41.json")


async def test_what_one_sitting_saw_the_next_one_knows(tmp_path: Path) -> None:
    file, told = tmp_path / "records" / "f" / "lane.json", Told()
    one = LaneRecords(told, file)
    running = asyncio.create_task(one.run())
    one.add_boot(BOOT)
    one.add_pool(BOOT.started, 2_999_808)
    await until(lambda: file.exists())
    for _ in range(90):
        one.add_rate(3, 66.3)
    running.cancel()
    await one.close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    two = LaneRecords(told, file)
    running = asyncio.create_task(two.run())
    await until(lambda: two.boots)
    running.cancel()
    assert (two.boots, two.pools) == ((BOOT,), (2_999_808,))
    ((requests, low, high, points),) = two.usual_by_running
    assert (requests, points) == (3, 90) and low == high == pytest.approx(66.3, rel=0.01)
    assert (told.texts, two.problem) == ([], "")


async def test_two_consoles_at_once_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    file, told = tmp_path / "lane.json", Told()
    consoles = [LaneRecords(told, file) for _ in range(4)]
    for turn in range(5):
        for number, console in enumerate(consoles):
            console.add_boot(boot(10 * turn + number + 1))
            console.add_boot(boot(1000 + turn))  # the same start, seen by all
            console.add_rate(1, 50.0)
        await asyncio.gather(*(console.save() for console in consoles))
    kept = read_records(file).recorded
    assert kept is not None
    assert len(kept.boots) == 4 * 5 + 5
    assert sum(sum(counts.values()) for counts in kept.rates.values()) == 20
    assert told.texts == []


async def test_what_comes_during_a_write_is_written_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, told = tmp_path / "lane.json", Told()
    writes, go = threading.Event(), threading.Event()

    def slow(path: Path, new: Recorded) -> records.Outcome:
        writes.set()
        assert go.wait(60)
        return add_records(path, new)

    console = LaneRecords(told, file)
    console.add_boot(boot(1))
    console.add_rate(1, 50.0)
    monkeypatch.setattr(records, "add_records", slow)
    saving = asyncio.create_task(console.save())
    await until(writes.is_set)
    console.add_boot(boot(2))
    console.add_rate(1, 50.0)
    saving.cancel()  # as the end of the console does: the write goes on, and is not begun twice
    await asyncio.gather(saving, return_exceptions=True)
    go.set()
    await console.close()
    kept = read_records(file).recorded
    assert kept is not None and kept.boots == (boot(1), boot(2))
    assert [sum(counts.values()) for counts in kept.rates.values()] == [2]


async def test_a_damaged_file_is_moved_aside_and_said_once(tmp_path: Path) -> None:
    file, told = tmp_path / "lane.json", Told()
    file.write_bytes(b'{"schema": 1, "boots": [{')
    console = LaneRecords(told, file)
    running = asyncio.create_task(console.run())
    console.add_boot(BOOT)
    await until(lambda: file.exists() and told.texts)
    running.cancel()
    await console.close()
    assert file.with_suffix(".json.damaged").read_bytes() == b'{"schema": 1, "boots": [{'
    assert decode(file.read_bytes()).boots == (BOOT,)
    (text,) = told.texts
    assert "damaged" in text and "lane.json.damaged" in text


async def test_a_file_that_is_too_large_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "lane.json"
    file.write_bytes(b" " * (records.MOST_BYTES + 1))
    outcome = read_records(file)
    assert outcome.recorded == NOTHING and "larger than 4 MiB" in outcome.said
    assert not file.exists()


async def test_a_newer_laneswaps_file_is_left_alone(tmp_path: Path) -> None:
    file, told = tmp_path / "lane.json", Told()
    file.write_bytes(b'{"schema": 2, "anything": 1}')
    console = LaneRecords(told, file)
    console.add_boot(BOOT)
    await console.save()
    await console.save()
    await console.close()
    assert file.read_bytes() == b'{"schema": 2, "anything": 1}'
    assert console.boots == (BOOT,)
    (text,) = told.texts
    assert "newer laneswap" in text


async def test_a_home_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file where the folder should be")
    told = Told()
    console = LaneRecords(told, tmp_path / "records" / "f" / "lane.json")
    console.add_boot(BOOT)
    for _ in range(3):
        await console.save()
    assert console.boots == (BOOT,)
    assert console.problem.startswith("records of boots cannot be kept")
    assert told.texts == [console.problem]
    (tmp_path / "records").unlink()
    await console.save()
    assert (console.problem, read_records(tmp_path / "records" / "f" / "lane.json").recorded) == (
        "",
        Recorded((BOOT,)),
    )


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to itself"])
def test_what_is_no_file_is_not_read_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "lane.json"
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(file)
    outcome = read_records(file)
    assert outcome.recorded is None and str(file) in outcome.problem
    assert outcome.problem and not outcome.said


async def test_a_lock_that_another_console_holds_is_waited_for_and_then_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LOCK_S", 0.05)
    file, told = tmp_path / "lane.json", Told()
    console = LaneRecords(told, file)
    console.add_boot(BOOT)
    with records._locked(file.with_suffix(".lock")):
        await console.save()
    assert not file.exists() and "another console holds it" in console.problem
    await console.save()
    assert file.exists() and console.problem == ""


async def test_a_rehearsal_begins_with_what_it_is_given_and_writes_nothing(tmp_path: Path) -> None:
    told = Told()
    console = LaneRecords(told, None, Recorded((boot(1),), (Pool(1000.0, 5_000_000),)))
    running = asyncio.create_task(console.run())
    console.add_boot(BOOT)
    console.add_pool(BOOT.started, 6_000_000)
    await console.save()
    running.cancel()
    await console.close()
    assert (console.boots, console.pools) == ((boot(1), BOOT), (5_000_000, 6_000_000))
    assert (os.listdir(tmp_path), told.texts) == ([], [])


async def test_a_pool_told_again_and_again_is_no_news(tmp_path: Path) -> None:
    file = tmp_path / "lane.json"
    console = LaneRecords(Told(), file)
    console.add_pool(100.0, 5)
    await console.save()
    written = file.stat().st_mtime_ns
    for _ in range(10):
        console.add_pool(100.0, 5)
        console.add_pool(100.0, 0)
        await console.save()
    assert file.stat().st_mtime_ns == written
    assert console.pools == (5,)
