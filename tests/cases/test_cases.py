"""Every value of every case, through the function behind `laneswap inspect`."""

from __future__ import annotations

from collections import Counter

import pytest
from case_table import INPUTS, Expected, case_file, check, expected_rows, inspect_case, pointer_rows, resolve
from case_table import test_exists as is_a_test

POINTERS = {pointer.key: pointer for pointer in pointer_rows()}


@pytest.mark.parametrize("row", expected_rows(), ids=str)
def test_value(row: Expected) -> None:
    pointer = POINTERS.get(row.key)
    assert pointer is not None, "no row in pointers.tsv says where the console shows this"
    if pointer.how == "test":
        assert is_a_test(pointer.arguments), f"{pointer.arguments} is not a test of this folder"
        return
    answer = inspect_case(row.case, pointer.how, pointer.arguments)
    check(row, pointer.comparison, resolve(answer, pointer.pointer))


def test_every_pointer_has_its_expected_row() -> None:
    wanted = {row.key for row in expected_rows()}
    assert [pointer.key for pointer in pointer_rows() if pointer.key not in wanted] == []


def test_no_row_twice() -> None:
    for rows in (expected_rows(), pointer_rows()):
        assert [key for key, count in Counter(row.key for row in rows).items() if count > 1] == []


def test_rows_that_ask_for_behaviour_name_a_test() -> None:
    asked = [row.key for row in expected_rows() if row.unit == "bool" and "must " in row.quantity]
    assert len(asked) == 21
    assert [key for key in asked if key in POINTERS and POINTERS[key].how != "test"] == []


def test_every_case_has_its_inputs() -> None:
    for row in expected_rows():
        assert (INPUTS / row.file).is_file(), row.file
    assert {row.case for row in expected_rows()} == {path.name for path in INPUTS.iterdir()}


@pytest.mark.parametrize(
    ("comparison", "expected", "unit", "good", "bad"),
    [
        ("number", "3.00", "GiB", 3 * 1024**3, 3 * 1024**3 + 2**24),
        ("number", "98.63", "GiB", 103415808 * 1024, 103404000 * 1024),
        ("number", "41.1", "percent", 41.07, 41.2),
        ("number", "12", "count", 12, 13),
        ("number", "0", "percent", 0.0, None),
        ("number", "1", "count", 1, True),
        ("text", "  rank 3", "text", "  rank 3", "rank 3"),
        ("state", "stalled", "state", "STALLED", "idle"),
        ("bool", "yes", "bool", True, "yes"),
        ("bool", "no", "bool", False, None),
        ("null", "n/a", "text", None, 0),
        ("repr", "'a\\nb'", "text", "a\nb", "a\\nb"),
    ],
)
def test_the_comparisons_can_fail(comparison: str, expected: str, unit: str, good: object, bad: object) -> None:
    row = Expected("C000", "C000/x", "q", expected, unit)
    check(row, comparison, good)
    with pytest.raises(AssertionError):
        check(row, comparison, bad)


def test_pointers_follow_the_standard() -> None:
    document = {"a/b": [{"~c": 1}], "": 2}
    assert resolve(document, "/a~1b/0/~0c") == 1
    assert resolve(document, "/") == 2
    assert resolve(document, "") == document
    with pytest.raises(LookupError):
        resolve(document, "/missing")


def test_made_inputs_are_found_by_name() -> None:
    path = case_file("C030", "scrape.txt")
    assert path.stat().st_size > 25_000_000
    with pytest.raises(FileNotFoundError):
        case_file("C001", "no such file")
