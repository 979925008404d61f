"""When a timer that stands still was due, by its calendar expression and its last run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.timers import calendar_of, first_missed
from console.readings.units import parse_units
from console.readings.watchdog_log import parse_stamp


def at(text: str) -> float:
    stamp = parse_stamp(text)
    assert stamp is not None
    return stamp.seconds


@pytest.mark.parametrize(
    ("calendar", "last", "missed"),
    [
        ("*:0/5", "2026-10-18 09:40:00", "2026-10-18 09:45:00"),
        ("*:0/5", "2026-10-18 09:41:30", "2026-10-18 09:45:00"),
        ("hourly", "2026-10-18 09:40:00", "2026-10-18 10:00:00"),
        ("minutely", "2026-10-18 23:59:59", "2026-10-19 00:00:00"),
        ("*-*-* *:15,45:30", "2026-10-18 09:15:30", "2026-10-18 09:45:30"),
        ("*:20..22", "2026-10-18 09:22:10", "2026-10-18 10:20:00"),
        ("*:*:0/20", "2026-10-18 09:22:10", "2026-10-18 09:22:20"),
        ("06:30 UTC", "2026-10-18 06:30:00", "2026-10-19 06:30:00"),
        ("*-*-* 06,18:00:00 UTC", "2026-10-18 07:00:00", "2026-10-18 18:00:00"),
    ],
)
def test_the_next_run_after_the_last(calendar: str, last: str, missed: str) -> None:
    assert first_missed(calendar, at(last)) == at(missed)


@pytest.mark.parametrize(
    "calendar", ["", "06:30", "Mon *:00", "daily", "*:0/0", "*:61", "*:5..1", "2026-*-* *:00", "*", "x:y", "*:1:2:3"]
)
def test_what_is_not_read_is_not_known(calendar: str) -> None:
    """A time of day means the host's zone, which nobody told."""
    assert first_missed(calendar, 1_790_000_000.0) is None


@given(calendar=st.text(alphabet="*:/0123456789., -UTC", max_size=20), last=st.floats(0, 4e9))
def test_it_never_raises_and_is_always_later(calendar: str, last: float) -> None:
    missed = first_missed(calendar, last)
    assert missed is None or missed > last


def test_systemds_form_is_taken_apart() -> None:
    shown = "{ OnCalendar=*:0/5 ; next_elapse=(null) }"
    assert calendar_of(shown) == calendar_of("*:0/5") == "*:0/5"
    text = (
        "Id=a.timer\nLoadState=loaded\nActiveState={}\nLastTriggerUSec=Sun 2026-10-18 09:40:00 UTC\nTimersCalendar={}\n"
    )
    (late,) = parse_units(text.format("inactive", shown)).items
    assert late.due == at("2026-10-18 09:45:00")
    (runs,) = parse_units(text.format("active", shown)).items
    assert runs.due is None
    (never,) = parse_units(text.format("inactive", shown).replace("Sun 2026-10-18 09:40:00 UTC", "n/a")).items
    assert never.due is None
