"""Remote text becomes safe text: whatever comes in, nothing that a terminal would act on comes out."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from console import sanitize
from console.sanitize import line, lines, word

BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

hostile = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.text(alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Mn", "Zs", "Zl"]), max_size=6),
        st.sampled_from(
            [
                "\x1b[31m", "\x1b]0;t\x07", "\x1b]52;c;AA\x1b\\", "\x1b]8;;http://x\x1b\\", "\x1bP", "\x1b_", "\x1b^", 
                "\x1bX",
                "\x1b\\", "\x1b", "\x9b2J", "\x9d0;t", "\x9c", "\x07", "\r", "\n", "\r\n", "\x1b[K", 
                "\x1b[2K", "\x1b(0",
                "\u202e", "\u2066", "\u200b", "\ufeff", "\t", "…", "[/b]", "e\u0301\u0301\u0301\u0301", 
                "\ud800", "\x00",
            ]
        ),
    ),
    max_size=20,
).map("".join)  # fmt: skip


def assert_safe(text: str) -> None:
    for character in text:
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), repr(character)
        assert character not in BIDI
    assert text.isprintable()
    assert len(re.findall("[\u0300-\u036f]{4,}", text)) == 0
    text.encode("utf-8")


@settings(max_examples=400, deadline=None)
@given(hostile, st.integers(1, 60))
@example("\x1b]0;no end", 10)
@example("a\ufeff\u0301\u0301\u0301\u0301", 10)
def test_line_is_safe_short_and_settled(text: str, limit: int) -> None:
    shown = line(text, limit)
    assert_safe(shown)
    assert len(shown) <= limit
    assert line(shown, limit) == shown


@settings(max_examples=200, deadline=None)
@given(hostile, st.integers(1, 60))
def test_word_is_safe_short_and_settled(text: str, limit: int) -> None:
    shown = word(text, limit)
    assert_safe(shown)
    assert len(shown) <= limit
    assert word(shown, limit) == shown
    assert shown == " ".join(shown.split()) or shown.endswith("…")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_safe_lines(data: bytes) -> None:
    shown = lines(data)
    assert len(shown) == data.count(b"\n") + (0 if not data or data.endswith(b"\n") else 1)
    for text in shown:
        assert_safe(text)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[1;32mgreen\x1b[0m", "green"),
        ("\x1b]0;title\x07rest", "rest"),
        ("\x1b]0;title\x1b\\rest", "rest"),
        ("\x1b]52;c;cm0gLXJmIC8K\x07rest", "rest"),
        ("\x1b]8;;http://192.0.2.1/\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x9d0;title\x9crest", "rest"),
        ("\x1bP+q544e\x1b\\rest", "rest"),
        ("\x1b_apc\x1b\\a\x1b^pm\x1b\\b\x1bXsos\x1b\\c", "abc"),
        ("\x1b]0;swallowed\x1b[31mkept", "kept"),
        ("\x1b]0;never ended", ""),
        ("\x1bcreset\x1b(Bdone\x1b#8", "resetdone"),
        ("\x1b", ""),
        ("\x1b[", ""),
        ("\x1b[38;5", ""),
        ("\x1b[?1049h\x1b[>4;2mx\x1b[!p", "x"),
        ("bell\x07 null\x00 back\x08 del\x7f", "bell␇ null␀ back␈ del␡"),
        ("a\tb", "a       b"),
        ("one\ntwo\r\nthree\n", "one two three"),
        ("user \u202etxt.exe\u202c end", "user txt.exe end"),
        ("a\u200bb\u2060c\ufeffd\u00ade", "abcde"),
        ("lone \ud800 surrogate", "lone � surrogate"),
        ("nbsp\u00a0wide\u3000filler\u3164end", "nbsp wide filler end"),
        ("z" + "\u0310" * 40 + "a", "z" + "\u0310" * 3 + "a"),
        ("\u0301start", "start"),
        ("private \ue000 non \ufffe unassigned \U0001fbff", "private � non � unassigned �"),
        ("日本語 ümlaut 😀", "日本語 ümlaut 😀"),
        ("[b]not bold[/b] [@click=app.quit] \\[x", "[b]not bold[/b] [@click=app.quit] \\[x"),
    ],
)
def test_one_line(raw: str, shown: str) -> None:
    assert line(raw) == shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("10%\r20%\r30%", "30%"),
        ("10%\r20%\r30%\r", "30%"),
        ("text\r\n", "text"),
        ("\rtext", "text"),
        ("a longer line\rshort", "shortger line"),
        ("a longer line\rshort\x1b[K", "short"),
        ("a longer line\x1b[2K\rshort", "short"),
        ("\x1b[32m100%\x1b[0m\r\x1b[31m7\x1b[0m", "700%"),
        ("real error\r\x1b[2Kall is well", "all is well"),
        ("one\rtwo\nthree\rfour", "two foure"),
    ],
)
def test_carriage_returns_overwrite_as_on_a_terminal(raw: str, shown: str) -> None:
    assert line(raw) == shown


def test_invalid_utf8_is_replaced_one_for_one() -> None:
    assert lines(b"\xff\xfe bad\ncaf\xe9\n\xf0\x9f\x98 cut\nlast \xc3") == ["�� bad", "caf�", "� cut", "last �"]


def test_cut_with_an_ellipsis() -> None:
    assert line("x" * 2000) == "x" * 2000
    assert line("x" * 2001) == "x" * 1999 + "…"
    assert word("name" * 100) == ("name" * 30)[:119] + "…"
    assert line("xy", 1) == "…"


@pytest.mark.parametrize(
    "raw",
    [
        "\x1b" * 90_000, "\x1b[" * 60_000, "\x1b]0;" * 60_000, "a\r" * 90_000, 
        "\t" * 90_000, "e" + "\u0301" * 90_000, 
        "\x00\u200b" * 90_000,
    ],
)  # fmt: skip
def test_hostile_long_lines_are_looked_at_only_so_far(raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    plain = sanitize._plain
    monkeypatch.setattr(sanitize, "_plain", lambda text: looked.append(len(text)) or plain(text))
    shown = line(raw * 4)
    assert_safe(shown)
    assert len(shown) <= 2000
    assert looked and max(looked) <= sanitize.LOOKED_AT


def test_seven_megabytes_in_one_line() -> None:
    assert line(b"x" * 7_000_000) == "x" * 1999 + "…"
    assert line(b"old\r" * 1_500_000 + b"newest 48/48") == "newest 48/48"
    assert line("old\r" * 1_500_000 + "newest 48/48") == "newest 48/48"
    assert line(b"\x1b]0;" + b"x" * 7_000_000) == "…", "something was cut, so it says so"


def test_only_the_last_lines_are_kept_when_there_are_too_many() -> None:
    assert lines(b"".join(b"%d\n" % number for number in range(10)), most=3) == ["7", "8", "9"]
