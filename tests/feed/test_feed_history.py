"""Histories that snapshots share: bounded, never changed afterwards, equal to a plain window."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.feed.history import History


@given(st.lists(st.integers(), max_size=60), st.integers(1, 12))
def test_it_holds_the_newest_like_a_bounded_deque(points: list[int], most: int) -> None:
    history: History[int] = History(most)
    views = []
    for count, point in enumerate(points, 1):
        history.append(point)
        views.append((history.view(), points[max(0, count - most) : count]))
    assert len(history) == min(most, len(points))
    for view, expected in views:  # also the old ones: appending never changed them
        assert list(view) == expected and len(view) == len(expected) and view == tuple(expected)
        assert list(reversed(view)) == expected[::-1]
        assert [view[at] for at in range(-len(view), len(view))] == expected * 2
        assert (
            view[1:4] == tuple(expected[1:4])
            and view[::-2] == tuple(expected[::-2])
            and view[-3:] == tuple(expected[-3:])
        )


def test_it_cannot_be_read_beyond_its_ends() -> None:
    history: History[int] = History(3)
    for point in range(5):
        history.append(point)
    view = history.view()
    history.append(5)
    for at in (3, -4):
        with pytest.raises(IndexError):
            _ = view[at]
    assert 5 not in view and view != history.view() and view == view[:] and (2, 3, 4) == tuple(view)


def test_a_view_costs_the_same_whatever_it_holds() -> None:
    history: History[int] = History(10_000)
    small = sys.getsizeof(history.view())
    for point in range(9_999):
        history.append(point)
    assert sys.getsizeof(history.view()) == small
