"""Bars in eighths and plots in braille."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.bar import Parts, bar
from widgets.ink import Ink, text_of
from widgets.plot import plot, resample, top_of

NAN = math.nan


def test_a_span_ends_at_an_eighth() -> None:
    row = bar(Parts(0.5 + 3 / 64), 8)
    assert [(span.text, span.ink) for span in row] == [
        ("    ", Ink("text", "fill")),
        ("▍", Ink("fill", "track")),
        ("   ", Ink("text", "track")),
    ]


def test_an_edge_of_two_fills_takes_both_colours_in_one_cell() -> None:
    row = bar(Parts(0.25 + 1 / 64, 0.5), 8)
    assert row[1].text == "▏"
    assert row[1].ink == Ink("fill", "fill2")


def test_a_passed_threshold_stands_on_act() -> None:
    row = bar(Parts(0.5, 0.5, mark=0.96, passed=True), 24)
    assert row[-1].text == "│"
    assert row[-1].ink == Ink("background", "act")


def test_a_stale_bar_loses_one_step() -> None:
    assert {span.ink.bg for span in bar(Parts(0.5, 0.25, quiet=True), 8)} == {"fill2", "track"}


@pytest.mark.parametrize("used", [None, NAN, math.inf, -1.0])
def test_unknown_is_an_empty_track(used: float | None) -> None:
    assert [span.ink.bg for span in bar(Parts(used), 8)] == ["track"]
    assert text_of(bar(Parts(used), 12, plain=True)) == "[..........]"


def test_a_little_is_more_than_nothing() -> None:
    assert text_of(bar(Parts(0.0001), 8)).startswith("▏")


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (Parts(0.587, 0.068, 0.967), "[######=..|]"),
        (Parts(0.466, 0.51, 0.967, passed=True), "[#####====!]"),
        (Parts(1.0), "[##########]"),
    ],
)
def test_ascii(parts: Parts, text: str) -> None:
    assert text_of(bar(parts, 12, plain=True)) == text


SHARE = st.one_of(st.none(), st.floats())


@given(SHARE, st.floats(), SHARE, st.booleans(), st.integers(0, 60), st.booleans())
def test_a_bar_is_as_wide_as_asked(
    used: float | None, cache: float, mark: float | None, passed: bool, width: int, plain: bool
) -> None:
    assert len(text_of(bar(Parts(used, cache, mark, passed), width, plain=plain))) == width


def test_a_steady_rate_is_a_line_in_the_band() -> None:
    rows = plot([66.0] * 8, 4, 4, 80.0, (63.0, 69.0))
    assert [text_of(row) for row in rows] == ["⠤⠤⠤⠤", "    ", "    ", "    "]
    assert [row[0].ink.bg for row in rows] == ["band", "background", "background", "background"]


def test_a_fall_is_joined_by_dots_and_a_gap_is_left_out() -> None:
    rows = [text_of(row) for row in plot([8.0, 8.0, 0.0, 0.0, NAN, NAN, 8.0, 8.0], 4, 2, 8.0)]
    assert rows == ["⠉⡆ ⠉", " ⣇  "]


def test_plain_plot_is_ascii() -> None:
    assert [text_of(row) for row in plot([8.0] * 4 + [0.0] * 4, 4, 1, 8.0, plain=True)] == ["##__"]


@given(
    st.lists(st.floats(), max_size=80), st.integers(0, 40), st.integers(1, 9), st.booleans()
)  # fmt: skip
def test_a_plot_is_as_large_as_asked(values: list[float], width: int, height: int, plain: bool) -> None:
    finite = [v for v in values if math.isfinite(v) and 0 <= v < 1e12]
    rows = plot(values, width, height, top_of(finite, None, height), plain=plain)
    assert len(rows) == height
    assert all(len(text_of(row)) == width for row in rows)


@pytest.mark.parametrize(
    ("highest", "band", "rows", "top"),
    [
        (66.0, (63.0, 69.0), 4, 80.0),
        (66.0, (63.0, 69.0), 9, 81.0),
        (262.0, (240.0, 290.0), 4, 320.0),
        (0.0, None, 4, 1.0),
    ],
)
def test_a_row_boundary_lies_at_or_just_under_the_band(
    highest: float, band: tuple[float, float] | None, rows: int, top: float
) -> None:
    assert top_of([highest, NAN], band, rows) == pytest.approx(top)


@given(st.floats(0.001, 1e6), st.floats(1.0, 3.0), st.integers(2, 20))
def test_the_band_is_always_under_the_top(low: float, ratio: float, rows: int) -> None:
    assert top_of([], (low, low * ratio), rows) >= low * ratio


def test_samples_are_placed_by_time() -> None:
    points = [(float(at), float(at)) for at in range(90, 101)]
    assert resample(points, 100.0, 1.0, 6) == [95.0, 96.0, 97.0, 98.0, 99.0, 100.0]


def test_one_late_sample_is_no_gap_but_an_outage_is() -> None:
    points = [(float(at), 5.0) for at in (*range(80, 90), 91, 98, 99, 100)]
    values = resample(points, 100.0, 1.0, 14)
    assert [math.isnan(v) for v in values] == [False] * 6 + [True] * 5 + [False] * 3


def test_a_plot_moves_by_whole_cells() -> None:
    points = [(at / 2, at / 2) for at in range(180, 210)]
    first, second = resample(points, 100.0, 1.0, 8), resample(points, 100.9, 1.0, 8)
    assert first[2:] == second[:6]
    assert math.isnan(second[-1])
