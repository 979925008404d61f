"""Text at fixed columns: exactly as wide as asked, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from widgets.cells import Line, cut, cut_middle, measure
from widgets.glyphs import ASCII, UNICODE
from widgets.ink import BOLD, DIM, TEXT, text_of

HOSTILE = st.text(max_size=60)


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("spark-0", 7, "spark-0"),
        ("spark-0", 6, "spark…"),
        ("spark-0", 1, "s"),
        ("spark-0", 0, ""),
        ("東京-0", 5, "東京…"),
        ("東京都", 5, "東京…"),
        ("東京都", 4, "東…"),
        ("e\u0301a", 2, "éa"),
        ("x\u0336y\u200d", 2, "xy"),
        ("a\tb", 3, "a b"),
    ],
)
def test_cut(text: str, width: int, expected: str) -> None:
    assert cut(text, width) == expected


def test_cut_middle_keeps_both_ends() -> None:
    assert cut_middle("dsv41-vllm-1017-v21cfg-BOUND-REF", 21) == "dsv41-vllm…-BOUND-REF"


@given(HOSTILE, st.integers(min_value=0, max_value=30))
def test_cut_keeps_to_its_width(text: str, width: int) -> None:
    assert cell_len(cut(text, width)) <= width
    assert cell_len(cut_middle(text, width)) <= width


@given(st.lists(st.tuples(st.integers(0, 50), HOSTILE), max_size=6), st.integers(0, 60), st.booleans())
def test_a_line_is_exactly_as_wide_as_asked(texts: list[tuple[int, str]], width: int, ascii_only: bool) -> None:
    line = Line(width, ASCII if ascii_only else UNICODE)
    for column, text in texts:
        line.put(column, text)
        line.right(column + 10, text)
    row = line.build()
    assert sum(cell_len(span.text) for span in row) == width
    assert cell_len(text_of(row)) == width
    if ascii_only:
        assert text_of(row).isascii()


def test_where_texts_meet_the_right_one_wins() -> None:
    line = Line(12)
    line.put(0, "a long name", TEXT)
    line.right(12, "0.4s", DIM)
    assert text_of(line.build()) == "a long n0.4s"


def test_a_wide_character_is_never_cut_in_two() -> None:
    line = Line(6)
    line.put(0, "東京", TEXT)
    line.put(3, "x", BOLD)
    assert text_of(line.build()) == "東 x  "


def test_markup_is_text() -> None:
    line = Line(30)
    line.put(0, "[bold red]x[/] [@click=app.quit]")
    assert text_of(line.build()) == "[bold red]x[/] [@click=app.qu…"
    assert measure("[/v1/messages]") == 14
