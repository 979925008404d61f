"""Patterns of a recipe of one's own: none is taken that a line of a hostile log can keep busy."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from console.fleet.inventory import FleetError
from console.fleet.patterns import TooSlow, check_quick
from console.fleet.recipe import load_recipe
from console.readings.watchdog_log import MOST_CHARACTERS

SLOW = [
    "(a+)+$",
    "(a|a)*b",
    r"(\w+\s?)*x",
    "(a{1,5}){1,5}",
    "(?:a?){60}b",
    "a?" * 30 + "a" * 30,
    "(?:a|a)" * 20 + "b",
    ".*.*.*x",
    "a*a*a*a*b",
    "(?i)a*A*a*A*b",
    r"(a+)\1+b",
    r"(?=(a+)+b)",
    "(?>(a+)+)b",
    r"\d+\w+[0-9]+x",
    ".*.*[0-9]+x",
]
QUICK = [
    "watching",
    r"up as (?P<pid>\d+)",
    r"failed \(.*\) (?P<attempt>\d+) of (?P<of>\d+)s",
    "[^,]*,[^,]*,[^,]*,[^,]*,x",
    "(?:[A-Z]{1,6} ){3}x",
    "(?:ab)+c",
    "a.*b.*c",
    ".*a+b",
    r"busy for \d+s, past \d+s|healthy (?:again|at last)",
]


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_can_take_forever_is_refused(pattern: str) -> None:
    re.compile(pattern)
    with pytest.raises(TooSlow):
        check_quick(pattern)


@pytest.mark.parametrize("pattern", QUICK)
@pytest.mark.parametrize("line", ["a" * 400, "1" * 400, "a," * 200, "ab" * 200, "AB " * 133, "busy for " * 44])
def test_what_is_taken_is_quick_on_any_line(pattern: str, line: str) -> None:
    check_quick(pattern)
    began = time.process_time()
    re.compile(pattern).match(line[:MOST_CHARACTERS])
    assert time.process_time() - began < 0.1


def test_a_recipe_with_such_a_pattern_names_it_and_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'name = "own"\ntitle = "t"\n[watchdog]\nkind = "log"\nlog = "/l"\nprocess = "p"\n'
        "[[watchdog.says]]\npattern = '(a+)+$'\n"
    )
    with pytest.raises(FleetError, match=r"watchdog\.says\.0\.pattern: .*repeat within a repeat"):
        load_recipe("own.toml", beside=tmp_path)
