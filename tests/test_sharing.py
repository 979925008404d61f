"""How several processes share the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from sharing import EARLY, SINGLY, WHOLE, turn_of, unit_of

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("place", [*SINGLY, *WHOLE, *EARLY])
def test_what_it_names_is_there(place: str) -> None:
    assert (ROOT / place).exists()


def test_tests_that_share_what_was_started_for_them_stay_together() -> None:
    files = [file for folder in SINGLY for file in (ROOT / folder).glob("test_*.py")]
    sharing = {str(file.relative_to(ROOT)) for file in files if 'scope="module"' in file.read_text()}
    assert sharing == set(WHOLE)


def test_slow_ones_come_first_and_one_at_a_time() -> None:
    slow, other = "tests/pty/test_pty_strip.py::test_a[1]", "tests/pty/test_pty_strip.py::test_b"
    assert (unit_of(slow), unit_of(other)) == (slow, other)
    whole = f"{WHOLE[0]}::test_a[x]"
    assert unit_of(whole) == WHOLE[0]
    quick = "tests/readings/test_memory.py::test_a"
    assert unit_of(quick) == "tests/readings/test_memory.py"
    units = {
        "tests/test_format.py": 90,
        "tests/feed/test_feed.py": 2,
        slow: 1,
        "tests/reach/test_local.py": 9,
        WHOLE[0]: 7,
    }
    ordered = sorted(units, key=lambda unit: turn_of(unit, units[unit]))
    assert ordered == [WHOLE[0], slow, "tests/reach/test_local.py", "tests/feed/test_feed.py", "tests/test_format.py"]
