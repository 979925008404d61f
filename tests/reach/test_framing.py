"""Frames out of bytes: noise skipped, losses counted, nothing hostile gets through or grows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.reach import framing
from console.reach.framing import FrameReader
from console.reach.looking import MOST_ANSWER, Looking
from console.readings.look import Look, LookKind

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


def looks(*keys: str) -> list[Look]:
    return [Look(key, LookKind.FILE, (f"/{key}", "last", "100")) for key in keys]


def test_answers_come_by_key_and_the_same_one_as_the_same_object() -> None:
    looking = Looking()
    looking.ask(looks("main:site", "main:pause"))
    reader = FrameReader(MARK, looking)
    first, second = "ok size=1\n" + "a" * 100, "missing"
    reader.feed(wire(0, "look", t={"1": first, "2": second, "3": "of nobody", "x": 1}), 0.0)
    reader.feed(wire(1, "look", t={"1": None, "2": "denied", "3": None}), 0.0)
    reader.feed(wire(2, "look", t={"1": first, "2": None}), 0.0)
    frames = [frame.texts for frame in reader.take()]
    assert frames == [
        {"main:site": first, "main:pause": second},
        {"main:site": first, "main:pause": "denied"},
        {"main:site": first, "main:pause": "denied"},
    ]
    assert frames[0]["main:site"] is frames[1]["main:site"] is frames[2]["main:site"]


def test_an_answer_to_an_old_question_is_none() -> None:
    looking = Looking()
    sent: list[bytes] = []
    looking.ask(looks("site"))
    looking.send = sent.append
    reader = FrameReader(MARK, looking)
    looking.ask([Look("site", LookKind.FILE, ("/elsewhere", "last", "100"))])
    reader.feed(wire(0, "look", t={"1": "the old one"}) + wire(1, "look", t={"2": "the new one"}), 0.0)
    assert [frame.texts for frame in reader.take()] == [{}, {"site": "the new one"}]
    assert sent == [b"look 1\n2\tsite\tfile\t5\t/elsewhere\tlast\t100\n"]
    assert not looking.ask(list(looking.looks.values())), "the same set is not sent again"
    assert len(sent) == 1


def test_after_a_lost_answer_all_are_asked_for_anew() -> None:
    looking = Looking()
    sent: list[bytes] = []
    looking.ask(looks("a", "b"))
    looking.send = sent.append
    reader = FrameReader(MARK, looking)
    reader.feed(wire(0, "look", t={"1": "old"}) + wire(2, "look", t={"1": None, "2": "b"}), 0.0)
    assert [frame.texts for frame in reader.take()] == [{"a": "old"}, {}], "nobody knows what 1 is now"
    assert sent == [b"look 2\n3\ta\tfile\t5\t/a\tlast\t100\n4\tb\tfile\t5\t/b\tlast\t100\n"]
    reader.feed(wire(3, "look", t={"1": None}) + wire(4, "look", t={"3": "new"}), 0.0)
    assert [frame.texts for frame in reader.take()] == [{}, {"a": "new"}]


def test_answers_outlive_a_stream() -> None:
    looking = Looking()
    looking.ask(looks("a"))
    texts = []
    for _ in range(2):
        reader = FrameReader(MARK, looking)
        reader.feed(wire(0, "look", t={"1": "ok size=1\n" + "a" * 100}), 0.0)
        texts.append(reader.take()[0].texts["a"])
    assert texts[0] is texts[1]


def test_answers_are_bounded_and_errors_name_their_look() -> None:
    looking = Looking()
    looking.ask(looks("a"))
    reader = FrameReader(MARK, looking)
    reader.feed(wire(0, "look", t={"1": "x" * (MOST_ANSWER + 1)}) + wire(1, "look", t=[1]), 0.0)
    reader.feed(wire(0, "error", t={"look": "1"}, e="hangs", s="look"), 0.0)
    reader.feed(wire(1, "error", t={"look": "9"}, e="hangs", s="look") + wire(2, "error", t={}, e="x", s="look"), 0.0)
    assert [frame.texts for frame in reader.take()] == [{}, {}, {"key": "a"}, {}, {}]


@given(st.dictionaries(st.text(), st.one_of(st.none(), st.text(), st.integers(), st.lists(st.none()))))
def test_hostile_answers_do_no_harm(raw: dict[str, object]) -> None:
    looking = Looking()
    looking.ask(looks("a"))
    assert looking.answers(raw).keys() <= {"a"}
    assert looking.named(raw) in ({}, {"key": "a"})


def test_sets_that_nobody_can_be_asked_for() -> None:
    looking = Looking()
    with pytest.raises(ValueError, match="a key of its own"):
        looking.ask(looks("a", "a"))
    with pytest.raises(ValueError, match="501 looks"):
        looking.ask(looks(*map(str, range(501))))
    odd = Look("a\tb", LookKind.PROCESSES, ("x\ny", "c\\d", ""), 1e6)
    looking.ask([odd])
    assert looking.order() == b"look 1\n1\ta\\tb\tprocesses\t1000000\tx\\ny\tc\\\\d\t\n"
