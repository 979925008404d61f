"""The tables of the cases and how their inputs are found; see README.md."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

from console.inspection.arguments import Argument, parse_argument
from console.inspection.kinds import inspect

HERE = Path(__file__).parent
INPUTS = HERE / "inputs"
UNIT_SCALE = {"GiB": 1024**3, "MiB": 1024**2, "kB": 1024}
NULL_WORDS = ("none", "n/a", "absent", "unknown")


@dataclass(frozen=True)
class Expected:
    """One value that must be read from a case's files."""

    case: str
    file: str
    quantity: str
    value: str
    unit: str

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.case, self.file, self.quantity)

    def __str__(self) -> str:
        return f"{self.file} {self.quantity}"


@dataclass(frozen=True)
class Pointer:
    """Where the console shows one expected value."""

    case: str
    file: str
    quantity: str
    how: str
    arguments: str
    pointer: str
    comparison: str

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.case, self.file, self.quantity)


def _rows(name: str, columns: int) -> list[list[str]]:
    rows = []
    for number, text in enumerate((HERE / name).read_text(encoding="utf-8").split("\n"), 1):
        if not text or text.startswith("#") or text.startswith("case\t"):
            continue
        fields = text.split("\t")
        assert len(fields) == columns, f"{name}:{number}: {len(fields)} columns, not {columns}"
        rows.append(fields)
    return rows


@cache
def expected_rows() -> tuple[Expected, ...]:
    return tuple(Expected(*fields) for fields in _rows("expected.tsv", 5))


@cache
def pointer_rows() -> tuple[Pointer, ...]:
    return tuple(Pointer(*fields) for fields in _rows("pointers.tsv", 7))


@cache
def _made() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="laneswap-cases-")


MADE = {"C030": "scrape.txt", "C074": "log.txt"}
"""The file that what a case's gen.sh prints is kept in."""


@cache
def _generated(case: str) -> Path:
    """The folder with what the case's gen.sh makes."""
    folder = Path(_made().name) / case
    folder.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    with (folder / MADE[case]).open("wb") as out:
        subprocess.run(
            ["bash", str(INPUTS / case / "gen.sh")],
            stdout=out,
            check=True,
            timeout=120,
            env={**os.environ, "PATH": path},
        )
    return folder


@cache
def _built(case: str) -> Path:
    """The folder that the case's build.sh fills."""
    folder = Path(_made().name) / case
    folder.mkdir()
    subprocess.run(
        ["sh", str(INPUTS / case / "build.sh"), str(folder)], stdout=subprocess.DEVNULL, check=True, timeout=120
    )
    return folder


def case_file(case: str, name: str) -> Path:
    """A file or folder of a case, made by its script if it is not kept. Raises FileNotFoundError."""
    kept = INPUTS / case / name
    if kept.exists():
        return kept
    for script, make in (("gen.sh", _generated), ("build.sh", _built)):
        if (INPUTS / case / script).exists() and (make(case) / name).exists():
            return make(case) / name
    raise FileNotFoundError(kept)


def case_argument(case: str, word: str) -> Argument:
    """An `inspect` argument whose path is relative to the case's folder."""
    argument = parse_argument(word)
    return Argument(argument.role, case_file(case, str(argument.path)), argument.seconds)


@cache
def inspect_case(case: str, kind: str, arguments: str) -> Any:
    """What `laneswap inspect KIND ARGUMENTS --json` answers for a case, as JSON gives it back."""
    answer = inspect(kind, [case_argument(case, word) for word in arguments.split()])
    return json.loads(json.dumps(answer, allow_nan=False))


def resolve(document: Any, pointer: str) -> Any:
    """The value at an RFC 6901 pointer. Raises LookupError."""
    value = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def _rounded(value: float, scale: int, like: str) -> Decimal:
    """`value / scale` with as many decimals as `like` has, halves away from zero as people round."""
    step = Decimal(1).scaleb(-len(like.partition(".")[2]))
    return (Decimal(value) / scale).quantize(step, ROUND_HALF_UP)


def check(row: Expected, comparison: str, value: Any) -> None:
    """Assert that `value` is what the row expects."""
    if comparison == "number":
        assert isinstance(value, int | float) and not isinstance(value, bool), f"{value!r} is no number"
        assert str(_rounded(value, UNIT_SCALE.get(row.unit, 1), row.value)) == row.value
    elif comparison == "text":
        assert value == row.value
    elif comparison == "state":
        assert isinstance(value, str)
        assert value.lower() == row.value.lower()
    elif comparison == "bool":
        assert value is {"yes": True, "no": False}[row.value]
    elif comparison == "null":
        assert row.value in NULL_WORDS
        assert value is None
    elif comparison == "repr":
        assert repr(value) == row.value
    else:
        raise AssertionError(f"unknown comparison {comparison!r}")


def test_exists(reference: str) -> bool:
    """Whether `file.py::name` is a test function (or `file.py::Class::name`) in this folder."""
    file, _, name = reference.partition("::")
    path = HERE / file
    if not path.is_file() or not path.name.startswith("test_"):
        return False
    names = {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return name.startswith("test_") and name in names


test_exists.__test__ = False  # type: ignore[attr-defined]
