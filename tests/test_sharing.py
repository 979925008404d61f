"""How several processes share the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from sharing import EARLY, SINGLY, SLOW, WHOLE, turn_of, unit_of

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("place", [*SLOW, *EARLY, *WHOLE])
def test_what_it_names_is_there(place: str) -> None:
    assert (ROOT / place).exists()


def test_tests_that_share_what_was_started_for_them_stay_together() -> None:
    files = [file for place in SINGLY for file in ROOT.glob(f"{place}test_*.py" if place.endswith("/") else place)]
    sharing = {str(file.relative_to(ROOT)) for file in files if 'scope="module"' in file.read_text()}
    assert sharing == set(WHOLE)


def test_slow_ones_come_first_and_one_at_a_time() -> None:
    slow, other = "tests/pty/test_pty_strip.py::test_a[1]", "tests/pty/test_pty_strip.py::test_b"
    assert (unit_of(slow), unit_of(other)) == (slow, other)
    early = "tests/reach/test_local.py::test_a"
    assert unit_of(early) == early
    whole = "tests/rehearsal/test_acting_hostile.py"
    assert whole in WHOLE and unit_of(f"{whole}::test_a[x]") == whole
    quick = "tests/readings/test_memory.py"
    assert unit_of(f"{quick}::test_a") == quick
    units = {"tests/test_format.py": 90, early: 1, slow: 1, "tests/feed/test_feed.py": 9, whole: 7, quick: 95}
    ordered = sorted(units, key=lambda unit: turn_of(unit, units[unit]))
    assert ordered == [whole, slow, "tests/feed/test_feed.py", early, quick, "tests/test_format.py"]
