"""One way to write a number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console import format as fmt


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (41, "0m41s"),
        (575, "9m35s"),
        (7500, "2h05m"),
        (273600, "3d04h"),
        (12 * 86400, "12 d"),
        (None, "-"),
        (-3, "0m00s"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert fmt.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.42, "0.4s"),
        (0.0, "0.0s"),
        (0.97, "1s"),
        (6.9, "6s"),
        (59.9, "59s"),
        (60, "1m"),
        (7200, "2h"),
        (3542400, "41 d"),
    ],
)
def test_ages(seconds: float, text: str) -> None:
    assert fmt.age(seconds) == text


def test_numbers_have_one_precision_and_unknown_is_a_dash() -> None:
    assert fmt.number(66.349) == "66.3"
    assert fmt.number(-0.04) == "0.0"
    assert fmt.number(math.nan) == fmt.number(None) == "-"
    assert fmt.gib(3 * fmt.GIB) == "3.0"
    assert fmt.mega_tokens(6_198_016) == "6.20"
    assert fmt.percent(0.4375, 2) == "43.75"
    assert fmt.whole(184302) == "184 302"
    assert fmt.clock(1791496510) == "21:55:10Z"
    assert fmt.signed_seconds(0.12) == "+0.1s"
    assert fmt.signed_seconds(-0.21) == "-0.2s"
    assert fmt.signed_seconds(0.01) == "0.0s"
    assert fmt.revision("1bae0e1088993b9b82de08f59de5be5a34e42170") == "1bae0e1"
    assert fmt.revision("") == "-"


@given(st.floats(allow_nan=True, allow_infinity=True) | st.none())
def test_no_number_ever_reads_as_nan_or_raises(value: float | None) -> None:
    for write in (
        fmt.number,
        fmt.gib,
        fmt.mega_tokens,
        fmt.percent,
        fmt.duration,
        fmt.age,
        fmt.whole,
        fmt.signed_seconds,
    ):
        text = write(value)
        assert "nan" not in text and "inf" not in text
        assert text == "-" if not fmt.known(value) else text


@given(st.floats(min_value=0, max_value=1e9))
def test_ages_and_durations_fit_their_columns(seconds: float) -> None:
    assert len(fmt.age(seconds)) <= 7
    assert len(fmt.duration(seconds)) <= 7


@given(st.floats(allow_nan=True, allow_infinity=True) | st.none())
def test_a_time_that_no_calendar_holds_is_unknown(wall: float | None) -> None:
    text = fmt.clock(wall)
    assert (text == "-") == (fmt.moment(wall) is None)
    assert fmt.clock(1e20) == "-"
