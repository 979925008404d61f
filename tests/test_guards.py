"""The table of guards does not rot: its texts stand in the sources once, its tests are there, and its runner sees."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from guards import trial
from guards.mutant import Mutant, row
from guards.table import ROWS

ROOT = Path(__file__).resolve().parents[1]
SMALL = "def guarded(pid):\n    if pid < 2:\n        return 'refused'\n    return 'signalled'\n"
CHECKS = """
import pytest
from small import guarded
@pytest.mark.parametrize("pid", [0, 5])
def test_low_numbers_are_refused(pid):
    assert (guarded(pid) == "refused") is (pid < 2)
def test_that_looks_elsewhere():
    assert guarded(5) == "signalled"
"""
OLD, NEW = "    if pid < 2:\n", "    if False:\n"


@cache
def functions(file: str) -> frozenset[str]:
    """Names of the test functions of a file, also of those in classes."""
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("mutant", ROWS, ids=lambda mutant: mutant.guard)
def test_a_row_can_be_tried(mutant: Mutant) -> None:
    assert trial.mutated(mutant, (ROOT / mutant.file).read_text())
    assert mutant.guard and mutant.new != mutant.old and mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name in functions(file), f"{test} is not there"
        assert file.startswith("tests/fleet/") is mutant.bed, f"{test}: real hosts are for rows of the bed alone"


def test_every_guard_is_named_once() -> None:
    names = [mutant.guard for mutant in ROWS]
    assert sorted(set(names)) == sorted(names)


def test_the_faults_of_the_field_are_all_there() -> None:
    told = "\n".join(mutant.guard for mutant in ROWS)
    faults = """
        console killed -9|no step twice|torn last line|hash chain|intent is recorded before|fence:|a lease that ran out|
        SIGSTOP|ssh killed|DROP|host reboot|disk full|two consoles|foreign hands|watchdog firing in the middle|
        kept alive after its launcher|pid verified|retired container removed|image removed|bind source replaced|
        port taken|exits at once|hangs at stop|site file: compared|only the wanted keys|rows proof|type-ahead|a paste|
        a click|a stalled loop|a Grant is spent once|a Grant lives ten seconds|plan hash|read-only|environment clean|
        killed by TERM|links:"""
    assert [fault for fault in map(str.strip, faults.split("|")) if fault not in told] == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Sources and tests of a very small program."""
    made = tmp_path / "checkout"
    made.mkdir()
    (made / "small.py").write_text(SMALL)
    (made / "test_small.py").write_text(CHECKS)
    return made


@pytest.mark.parametrize(
    ("test", "word"), [("test_low_numbers_are_refused", "KILLED"), ("test_that_looks_elsewhere", "SURVIVED")]
)
def test_a_mutant_that_nobody_notices_survives(checkout: Path, test: str, word: str) -> None:
    verdict = trial.tried(row("low numbers", "small.py", OLD, NEW, f"test_small.py::{test}"), checkout)
    assert verdict.word == word, verdict
    assert (checkout / "small.py").read_text() == SMALL, "the guard is back"


@pytest.mark.parametrize(
    ("old", "new", "test", "words"),
    [
        ("    if pid > 2:\n", NEW, "test_that_looks_elsewhere", "stands there 0 times"),
        ("return", NEW, "test_that_looks_elsewhere", "stands there 2 times"),
        (OLD, "    if False\n", "test_that_looks_elsewhere", "it is no python"),
        (OLD, NEW, "test_that_is_gone", "pytest ended with 4"),
    ],
)
def test_a_row_that_cannot_be_tried_is_no_killed_mutant(
    checkout: Path, old: str, new: str, test: str, words: str
) -> None:
    verdict = trial.tried(row("low numbers", "small.py", old, new, f"test_small.py::{test}"), checkout)
    assert verdict.word == "UNUSABLE" and words in verdict.trouble, verdict


def test_the_copy_has_the_sources_and_nothing_heavy() -> None:
    with trial.copied() as copy:
        assert (copy / "console/actions/strip.py").exists() and (copy / "tests/guards/table.py").exists()
        assert not (copy / ".venv").exists() and not (copy / ".git").exists()
    assert not copy.exists()
