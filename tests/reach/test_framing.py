"""Frames out of bytes: noise skipped, losses counted, nothing hostile gets through or grows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.reach import framing
from console.reach.framing import FrameReader

MARK = "0123456789abcdef"


def wire(number: int, kind: str = "node", **more: object) -> bytes:
    body = {"k": kind, "n": number, "m": 10.0 + number, "w": 1e9, "b": 9.0, "t": {"meminfo": "MemFree: 1 kB\n"}, **more}
    return f"{MARK} {json.dumps(body)}\n".encode()


@given(st.binary(max_size=400).filter(lambda noise: MARK.encode() not in noise), st.integers(1, 60))
def test_noise_between_frames_is_skipped_whatever_the_chunks(noise: bytes, size: int) -> None:
    stream = noise + b"\n" + wire(0) + noise + b"\n" + wire(1) + wire(2)
    reader = FrameReader(MARK)
    for start in range(0, len(stream), size):
        reader.feed(stream[start : start + size], 5.0)
    frames = reader.take()
    assert [frame.sequence for frame in frames] == [1, 2, 3]
    assert frames[0].texts == {"meminfo": "MemFree: 1 kB\n"}
    assert (frames[0].host_mono, frames[0].host_wall, frames[0].started, frames[0].received) == (10.0, 1e9, 9.0, 5.0)
    assert reader.lost == 0
    assert reader.take() == []


@given(st.binary(max_size=600))
def test_hostile_bytes_do_no_harm(data: bytes) -> None:
    reader = FrameReader(MARK)
    reader.feed(f"{MARK} ".encode() + data + b"\n" + wire(0), 0.0)
    assert [frame.kind for frame in reader.take()][-1:] == ["node"]
    assert all(character.isprintable() for character in reader.noise)


@pytest.mark.parametrize(
    "body",
    [
        "{}", "[]", "null", "1", '{"k":"node"}', '{"k":"other","m":1,"w":1}', '{"k":"node","m":true,"w":1}',
        '{"k":"node","m":NaN,"w":1}', '{"k":"node","m":1e999,"w":1}', '{"k":"node","m":"1","w":1}', "[" * 100_000,
        '{"k":["node"],"m":1,"w":1}', '{"k":"node","m":' + "9" * 400 + ',"w":1}', '{"k":"node","m":1,"w":1',
    ],
)  # fmt: skip
def test_what_is_no_frame_is_none(body: str) -> None:
    reader = FrameReader(MARK)
    reader.feed(f"{MARK} {body}\n".encode() + wire(7), 0.0)
    assert [frame.sequence for frame in reader.take()] == [1]


def test_gaps_are_seen_for_each_kind() -> None:
    reader = FrameReader(MARK)
    reader.feed(wire(0) + wire(0, "gpu") + wire(1) + wire(4) + wire(2, "gpu") + wire(5), 0.0)
    assert [(frame.kind, frame.sequence) for frame in reader.take()] == [
        ("node", 1), ("gpu", 2), ("node", 3), ("node", 6), ("gpu", 8), ("node", 9),
    ]  # fmt: skip
    assert reader.lost == 3


def test_a_frame_torn_by_another_is_dropped_and_counted() -> None:
    reader = FrameReader(MARK)
    whole = wire(1)
    reader.feed(wire(0) + whole[:60] + wire(0, "gpu") + whole[60:] + wire(2), 0.0)
    assert [(frame.kind, frame.sequence) for frame in reader.take()] == [("node", 1), ("gpu", 2), ("node", 4)]
    assert reader.lost == 1


def test_a_line_without_end_takes_no_more_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MOST_LINE", 1000)
    reader = FrameReader(MARK)
    for _ in range(50):
        reader.feed(b"x" * 999, 0.0)
        assert len(reader._buffer) <= 2000
    reader.feed(b"the rest of it\n" + wire(0), 0.0)
    assert [frame.sequence for frame in reader.take()] == [1]


def test_texts_are_bounded_and_errors_are_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MOST_TEXT", 10)
    reader = FrameReader(MARK)
    reader.feed(
        wire(0, "error", t={"a": "x" * 50, "b": 3, "c": None}, e="\x1b]0;t\x07bad\x1b[31m", s="nvidia-smi"), 0.0
    )
    (frame,) = reader.take()
    assert frame.texts == {"a": "x" * 10}
    assert (frame.error, frame.source) == ("bad", "nvidia-smi")


def test_the_loaders_answer_is_heard_once_it_is_whole() -> None:
    reader = FrameReader(MARK)
    reader.feed(f"motd\n{MARK} pyt".encode(), 0.0)
    assert reader.flavour == ""
    assert reader.noise == "motd"
    reader.feed(b"hon\n", 0.0)
    assert reader.flavour == "python"
