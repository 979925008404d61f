"""Docker's log stream taken apart, however it is cut."""

from __future__ import annotations

import asyncio
import threading

import pytest
from fake_docker import frame
from hypothesis import given
from hypothesis import strategies as st

from console.reach.docker_log import MAX_LINE, Demultiplexer, Lines, Pending, StampedLine, api_time, stamped
from console.reach.docker_threads import Threads

CUTS = st.lists(st.integers(1, 40), min_size=1, max_size=30)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """`data` in pieces of these sizes, over and over."""
    pieces, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=50)), max_size=12), CUTS)
def test_frames_come_out_whatever_the_cuts(frames: list[tuple[int, bytes]], sizes: list[int]) -> None:
    demultiplexer = Demultiplexer()
    out = {1: b"", 2: b""}
    for piece in cut(b"".join(frame(*one) for one in frames), sizes):
        for stream, payload in demultiplexer.feed(piece):
            out[stream] += payload
    assert out == {n: b"".join(payload for stream, payload in frames if stream == n) for n in (1, 2)}


@given(st.text(alphabet="abc \r\n2026-T:Z", min_size=1, max_size=100), CUTS)
def test_a_terminals_stream_passes_unframed(text: str, sizes: list[int]) -> None:
    demultiplexer = Demultiplexer()
    data = text.encode()
    assert b"".join(part for piece in cut(data, sizes) for _, part in demultiplexer.feed(piece)) == data


def test_a_frame_of_impossible_length_is_no_frame() -> None:
    data = b"\x01\x00\x00\x00\xff\xff\xff\xfftext\n"
    assert b"".join(part for _, part in Demultiplexer().feed(data)) == data


@given(st.binary(max_size=300), CUTS)
def test_lines_come_out_whatever_the_cuts(data: bytes, sizes: list[int]) -> None:
    lines = Lines()
    whole = [line for piece in cut(data, sizes) for line in lines.feed(piece)]
    assert [*whole, lines.last()] == data.split(b"\n")


def test_a_line_without_end_is_bounded() -> None:
    lines = Lines()
    for _ in range(100):
        assert list(lines.feed(b"x" * 10_000)) == []
    assert list(lines.feed(b"\nnext\n")) == [b"x" * MAX_LINE, b"next"]


@pytest.mark.parametrize(
    ("line", "nanos", "text"),
    [
        (b"2026-10-18T09:00:00.000000001Z out", 1_792_314_000_000_000_001, b"out"),
        (b"2026-10-18T09:00:00.5Z  two", 1_792_314_000_500_000_000, b" two"),
        (b"2026-10-18T11:00:00+02:00 x", 1_792_314_000_000_000_000, b"x"),
        (b"2026-10-18T09:00:00Z", 1_792_314_000_000_000_000, b""),
        (b"2026-99-18T09:00:00Z x", 0, b"2026-99-18T09:00:00Z x"),
        (b"no time", 0, b"no time"),
        (b"", 0, b""),
    ],
)
def test_stamps(line: bytes, nanos: int, text: bytes) -> None:
    found = stamped(line)
    assert found == StampedLine(nanos, text)
    assert (found.wall is None) is (nanos == 0)


@given(st.binary(max_size=60))
def test_any_line_has_a_stamp_or_none(line: bytes) -> None:
    assert line.endswith(stamped(line).text)


def test_since_keeps_every_nanosecond() -> None:
    assert api_time(1_792_314_000_000_000_001) == "1792314000.000000001"


def test_the_buffer_drops_the_oldest_and_counts() -> None:
    pending = Pending(3)
    for number in range(5):
        pending.put(StampedLine(number, b""))
    assert [line.nanos for line in pending.take()] == [2, 3, 4]
    assert pending.skipped == 2
    assert pending.take() == []


async def test_a_call_that_takes_too_long_is_aborted() -> None:
    threads, release = Threads("test-thread"), threading.Event()
    with pytest.raises(TimeoutError):
        await threads.call(lambda: release.wait(30), limit=0.01, abort=release.set)
    assert await threads.ended()


async def test_a_cancelled_call_is_aborted() -> None:
    threads, started, release = Threads("test-thread"), threading.Event(), threading.Event()

    def work() -> bool:
        started.set()
        return release.wait(30)

    task = asyncio.create_task(threads.call(work, limit=None, abort=release.set))
    assert await asyncio.to_thread(started.wait, 20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert await threads.ended()


async def test_an_error_in_the_thread_reaches_the_caller() -> None:
    threads = Threads("test-thread")

    def fail() -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await threads.call(fail, limit=5.0, abort=lambda: None)


async def test_a_thread_that_does_not_end_is_told() -> None:
    threads, release = Threads("test-thread"), threading.Event()
    with pytest.raises(TimeoutError):
        await threads.call(lambda: release.wait(30), limit=0.01, abort=lambda: None)
    assert not await threads.ended(0.05)
    release.set()
    assert await threads.ended()
