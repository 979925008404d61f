"""Tries a mutant: a copy of the sources, the change in it, the named tests there, and whether each of them failed."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from guards.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = (".git", ".venv", "look", "dist", "build", "__pycache__", ".*_cache", ".hypothesis", "*.pyc", "node_modules")
LIMIT_S, BED_LIMIT_S = 300, 900
"""Seconds for the tests of one mutant, after which they are ended and count as not failed."""


class Unusable(Exception):
    """A row that cannot be tried; the text says why."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant."""

    mutant: Mutant
    survived: tuple[str, ...]
    """Named tests that did not fail; () for a mutant that all of them noticed."""
    trouble: str = ""
    """Why it could not be tried."""

    @property
    def killed(self) -> bool:
        """Every test that the row names has failed."""
        return not self.survived and not self.trouble

    @property
    def word(self) -> str:
        """In the report."""
        return "KILLED" if self.killed else "UNUSABLE" if self.trouble else "SURVIVED"


def mutated(mutant: Mutant, text: str) -> str:
    """The file's text without the guard. Raises Unusable."""
    count = text.count(mutant.old)
    if count != 1:
        raise Unusable(f"{mutant.file}: the text to be replaced stands there {count} times")
    found = text.replace(mutant.old, mutant.new)
    try:
        if mutant.file.endswith(".py"):
            ast.parse(found)
    except SyntaxError as error:
        raise Unusable(f"{mutant.file}: without the guard it is no python: {error}") from error
    if mutant.file.endswith(".sh"):
        seen = subprocess.run(["sh", "-n"], input=found, capture_output=True, text=True, check=False)
        if seen.returncode:
            raise Unusable(f"{mutant.file}: without the guard it is no shell: {seen.stderr.strip()}")
    return found


@contextmanager
def copied(root: Path = ROOT) -> Iterator[Path]:
    """A copy of the checkout, as it stands, in a folder of its own; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="laneswap-guards-") as folder:
        target = Path(folder) / "checkout"
        shutil.copytree(root, target, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        yield target


@contextmanager
def without(mutant: Mutant, copy: Path) -> Iterator[None]:
    """The copy without the guard for a while. Raises Unusable."""
    file = copy / mutant.file
    before = file.read_text()
    file.write_text(mutated(mutant, before))
    try:
        yield
    finally:
        file.write_text(before)


def failed(copy: Path, tests: Sequence[str], *, bed: bool, limit: float = 0.0, jobs: int = 1) -> set[str]:
    """Those of the named tests that fail in the copy; one that only its fixtures end counts as not failed.

    `limit` in seconds for all of them, that of one mutant if left out. Raises Unusable where they cannot be run.
    """
    report = copy.parent / "report.xml"
    report.unlink(missing_ok=True)
    # a mutant that hangs is noticed by the tests' own limits first
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
    argv += ["--soak", "--bed"] if bed else []
    argv += ["-n", str(jobs), "--dist", "loadfile"] if jobs > 1 else []
    status, said = _run(argv, copy, limit or (BED_LIMIT_S if bed else LIMIT_S))
    if status not in (0, 1):
        raise Unusable(f"pytest ended with {status}: {_last(said)}")
    return _failed(report, tests)


def _run(argv: Sequence[str], copy: Path, limit: float) -> tuple[int, str]:
    """Exit status and output of a command in the copy, which is ended at the limit. Raises Unusable."""
    # before the installed checkout, also for the programs that tests start
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "CI": ""}
    child = subprocess.Popen(
        argv,
        cwd=copy,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired as error:
        _end(child)
        raise Unusable(f"no end after {limit:.0f} s") from error
    except BaseException:
        _end(child)
        raise
    return child.returncode, said


def _end(child: subprocess.Popen[str]) -> None:
    """pytest first, so that its fixtures take down what they brought up; then whatever of it is left."""
    for number, patience in ((signal.SIGINT, 60), (signal.SIGKILL, 10)):
        try:
            os.killpg(child.pid, number)
            child.communicate(timeout=patience)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return


def _last(said: str) -> str:
    rows = [row for row in said.splitlines() if row.strip()]
    return " / ".join(rows[-3:])[:400]


def _failed(report: Path, tests: Iterable[str]) -> set[str]:
    cases = [(case.get("classname", ""), case.get("name", ""), case) for case in ET.parse(report).iter("testcase")]
    found = set()
    for test in tests:
        path, _, name = test.partition("::")
        module = path.removesuffix(".py").replace("/", ".")
        own = [case for where, what, case in cases if where == module and what.partition("[")[0] == name]
        if not own:
            raise Unusable(f"{test} was not run")
        if any(case.find("failure") is not None for case in own):
            found.add(test)
    return found


def tried(mutant: Mutant, copy: Path) -> Verdict:
    """What becomes of one mutant."""
    try:
        with without(mutant, copy):
            noticed = failed(copy, mutant.tests, bed=mutant.bed)
    except Unusable as error:
        return Verdict(mutant, (), str(error))
    return Verdict(mutant, tuple(test for test in mutant.tests if test not in noticed))
