"""The page of watchdogs, against states, recipe keys and what its example comes to."""

from __future__ import annotations

import tomllib

from manual import code, fenced, rows, section

from console.fleet.recipe_watchdog import GROUPS, SaysRecipe, WatchdogRecipe
from console.readings.look import Answer, Status
from console.readings.processes import Process
from console.readings.watchdog import WatchdogState, read_watchdog
from console.readings.watchdog_types import protecting


def test_every_state_has_its_row_and_says_whether_it_protects() -> None:
    table = {code(row[0])[0]: row[1] for row in rows(section("watchdog.md", "States"))}
    words = {True: ("yes",), False: ("no",), None: ("not known", "as its log says")}
    assert set(table) == {state.value for state in WatchdogState}
    assert [state for state in WatchdogState if table[state.value] not in words[protecting(state)]] == []


def test_every_key_of_the_recipe_has_its_row() -> None:
    text = section("watchdog.md", "[watchdog] of a recipe")
    keys = {word for row in rows(text) for word in code(row[0])}
    assert set(WatchdogRecipe.model_fields) - {"says"} <= keys
    assert set(SaysRecipe.model_fields) <= keys
    assert keys <= {*WatchdogRecipe.model_fields, *SaysRecipe.model_fields, "says", "[[watchdog.says]]"}
    assert all(f"`{group}`" in text for group in GROUPS)


def test_the_example_of_a_recipe_is_one() -> None:
    (example,) = fenced(section("watchdog.md", "[watchdog] of a recipe"), "toml")
    found = WatchdogRecipe.model_validate(tomllib.loads(example)["watchdog"])
    spec = found.spec(found.place("n1"))
    answer = read_watchdog(
        spec,
        log=Answer(Status.OK, body="2026-10-18 05:42:09 up as 77\n2026-10-18 05:42:39 failed 1 of 2\n"),
        lock=Answer(Status.OK, body="77\n"),
        processes=(Process(77, 1, "S", "python3 /opt/ops/guardian.py"),),
        now=0.0,
    )
    assert answer.short == "check failed 1 of 2"
