"""Numbers in columns: exact strings, and never wider than the column."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets import format as fmt

DAY = 86400.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (fmt.tps(66.3), "66.3"),
        (fmt.tps(0.0), "0.0"),
        (fmt.tps(999.96), "1000"),
        (fmt.tps(2913.4), "2913"),
        (fmt.tps(None), "-"),
        (fmt.tps(math.nan), "-"),
        (fmt.mtok(6_040_000), "6.04"),
        (fmt.mtok(6_198_016), "6.20"),
        (fmt.mtok(None), "-"),
        (fmt.gib(2.9 * fmt.GIB), "2.9"),
        (fmt.gib(510.04 * fmt.GIB), "510.0"),
        (fmt.gib(0), "0.0"),
        (fmt.percent(0.304), "30"),
        (fmt.percent(0.9999), "99"),
        (fmt.percent(1.0), "100"),
        (fmt.percent(None), "-"),
        (fmt.ghz(2410), "2.41"),
        (fmt.count(3), "3"),
        (fmt.count(2913), "2913"),
        (fmt.count(12_041), "12 041"),
        (fmt.count(184_302), "184 302"),
        (fmt.count(9_999.7), "10 000"),
        (fmt.seconds(0.9), "0.9"),
        (fmt.seconds(0.02), "0.02"),
        (fmt.seconds(41.2), "41"),
        (fmt.drift(0.1), "+0.1s"),
        (fmt.drift(0.01), "0.0s"),
        (fmt.drift(-0.2), "−0.2s"),
        (fmt.drift(-5000, 7), "−5000s"),
        (fmt.drift(-5000, 5), "−1h"),
        (fmt.drift(None), "-"),
        (fmt.duration(41), "0m41s"),
        (fmt.duration(575), "9m35s"),
        (fmt.duration(2 * 3600 + 18 * 60), "2h18m"),
        (fmt.duration(3 * DAY + 4 * 3600), "3d04h"),
        (fmt.duration(12 * DAY), "12 d"),
        (fmt.age(0.4), "0.4s"),
        (fmt.age(6.9), "6s"),
        (fmt.age(14.2), "14s"),
        (fmt.age(299), "4m"),
        (fmt.age(41 * DAY), "41 d"),
        (fmt.age(None), "-"),
        (fmt.utc(1_795_989_310), "21:55:10Z"),
        (fmt.utc(1e30), "-"),
        (fmt.utc(math.nan), "-"),
        (fmt.time_of_day(1_795_989_220, 1_795_989_310), "21:53:40"),
        (fmt.time_of_day(1_795_989_220 - 11 * DAY, 1_795_989_310), "18 Nov"),
        (fmt.revision("9f2c1a7" + "0" * 33), "9f2c1a7"),
        (fmt.revision(""), "-"),
        (fmt.number(119_700.0, 1, 5), "120k"),
        (fmt.number(1.5e12, 0, 4), "1.5T"),
        (fmt.number(1e30, 0, 3), "###"),
    ],
)
def test_exact_strings(text: str, expected: str) -> None:
    assert text == expected


FLOATS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))


@given(FLOATS, st.integers(min_value=1, max_value=12), st.integers(min_value=0, max_value=3))
def test_a_number_is_never_wider_than_its_column(value: float | None, width: int, decimals: int) -> None:
    assert 1 <= len(fmt.number(value, decimals, width)) <= width


@given(FLOATS, st.integers(min_value=1, max_value=12))
def test_every_format_keeps_to_its_column(value: float | None, width: int) -> None:
    for write in (
        fmt.gib,
        fmt.tps,
        fmt.mtok,
        fmt.percent,
        fmt.ghz,
        fmt.count,
        fmt.seconds,
        fmt.drift,
        fmt.duration,
        fmt.age,
    ):
        assert 1 <= len(write(value, width)) <= width, write.__name__


@given(st.floats(min_value=-1e15, max_value=1e15))
def test_what_is_known_is_never_written_as_unknown(value: float) -> None:
    for write in (fmt.gib, fmt.tps, fmt.mtok, fmt.percent, fmt.count, fmt.seconds, fmt.drift, fmt.duration, fmt.age):
        assert write(value) != "-"


@given(st.floats())
def test_clocks_take_any_number(value: float) -> None:
    assert fmt.utc(value)
    assert fmt.time_of_day(value, 0.0)
