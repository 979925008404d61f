"""Answers of hosts taken apart, whatever they hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.readings.look import Answer, Status, bare, number, parse_answer, raw_bytes, safe_name


def test_answers() -> None:
    assert parse_answer("ok size=3 mtime=1.5 odd\none\ntwo") == Answer(
        Status.OK, "", {"size": "3", "mtime": "1.5"}, "one\ntwo"
    )
    assert parse_answer("missing") == Answer(Status.MISSING)
    assert parse_answer("denied\n") == Answer(Status.DENIED)
    assert parse_answer("error no systemctl") == Answer(Status.ERROR, "no systemctl")
    assert parse_answer("what\x1b[2J") == Answer(Status.ERROR, "no answer of ours: 'what'")
    assert parse_answer("").status is Status.ERROR


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    assert parse_answer(text).words.isprintable()
    assert parse_answer(f"error {text}").words.isprintable()


def test_numbers() -> None:
    assert [number(text) for text in ("0", "4096", "-1", "1.0", "", "٣", " 1", "1\n", "9" * 5000)] == [
        0, 4096, None, None, None, None, None, None, None,
    ]  # fmt: skip


def test_names_are_shown_and_stay_apart() -> None:
    assert safe_name("model-00001-of-00048.safetensors") == "model-00001-of-00048.safetensors"
    assert safe_name("modèle e\u0301") == "modèle e\u0301"
    for odd in ("mo\x1b[31mdel", "mo\u200bdel", "mo\u202edel", "mo\u009b1mdel", "\u0301model", "x\rmodel"):
        assert safe_name(odd) != "model"
        assert safe_name(odd) != safe_name(odd.replace("\x1b[31m", "")) or "\x1b" not in odd
    assert bare("a\\\\b\\tc") == "a\\b\\tc"


@given(st.text(max_size=300))
def test_names_are_safe(text: str) -> None:
    shown = safe_name(text)
    assert all(character.isprintable() for character in shown)
    assert len(shown) <= 1000
    assert safe_name(text, 5) == "" or len(safe_name(text, 5)) <= 5


def test_the_bytes_of_a_body_never_raise() -> None:
    """JSON may hold any half of a character; only those that stand for a byte of a file are one."""
    assert raw_bytes("a\udcff\udc80b") == b"a\xff\x80b"
    assert raw_bytes("\ud9b6x\udfff\udc7f") == "\ufffdx\ufffd\ufffd".encode()
    assert raw_bytes("é\U0001f512") == "é\U0001f512".encode()
