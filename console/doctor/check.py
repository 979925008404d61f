"""One check: what was looked at, what was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from console.sanitize import line

EXIT_GOOD, EXIT_FAILS, EXIT_UNKNOWN = 0, 1, 3


class Verdict(StrEnum):
    """What a check came to, worst last."""

    OK = "OK"
    LOOK = "LOOK"
    """It works, but not all of it, or not for long."""
    UNKNOWN = "UNKNOWN"
    """It could not be told."""
    FAIL = "FAIL"
    """The console cannot work so."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check's result; all texts are safe."""

    about: str
    """`this machine`, `host spark-0`, `lane dsv41`."""
    name: str
    """Stable: `docker`, `linger`..."""
    verdict: Verdict
    found: str
    advice: str = ""
    """What to do, with the exact command where there is one; the operator runs it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Makes the checks of one machine, host or lane."""

    about: str

    def ok(self, name: str, found: str) -> Check:
        """Nothing to do."""
        return self._check(name, Verdict.OK, found, "")

    def look(self, name: str, found: str, advice: str = "") -> Check:
        """Worth a look."""
        return self._check(name, Verdict.LOOK, found, advice)

    def fail(self, name: str, found: str, advice: str = "") -> Check:
        """Has to be put right."""
        return self._check(name, Verdict.FAIL, found, advice)

    def unknown(self, name: str, found: str, advice: str = "") -> Check:
        """Could not be told."""
        return self._check(name, Verdict.UNKNOWN, found, advice)

    def _check(self, name: str, verdict: Verdict, found: str, advice: str) -> Check:
        return Check(self.about, name, verdict, line(found, 400), line(advice, 600))


def exit_code(checks: Sequence[Check]) -> int:
    """1 if something fails, 3 if something could not be told, else 0."""
    verdicts = {check.verdict for check in checks}
    if Verdict.FAIL in verdicts:
        return EXIT_FAILS
    return EXIT_UNKNOWN if Verdict.UNKNOWN in verdicts else EXIT_GOOD


def as_text(checks: Sequence[Check]) -> list[str]:
    """Plain lines: a heading for each subject, a row a check, what to do below it."""
    width = max((len(check.name) for check in checks), default=0)
    rows: list[str] = []
    about = ""
    subjects = list(dict.fromkeys(check.about for check in checks))
    for check in sorted(checks, key=lambda check: subjects.index(check.about)):  # each subject once, in its order
        if check.about != about:
            rows += ([""] if rows else []) + [check.about]
            about = check.about
        rows.append(f"  {check.verdict:<7} {check.name:<{width}}  {check.found}")
        if check.advice:
            rows.append(f"  {'':<7} {'':<{width}}  -> {check.advice}")
    return [*rows, "", _summary(checks)]


def _summary(checks: Sequence[Check]) -> str:
    counts = _counts(checks)
    return ", ".join(f"{counts[verdict.value]} {verdict}" for verdict in Verdict if counts[verdict.value])


def _counts(checks: Sequence[Check]) -> dict[str, int]:
    return {verdict.value: sum(check.verdict is verdict for check in checks) for verdict in Verdict}


def as_json(checks: Sequence[Check]) -> dict[str, Any]:
    """The same as JSON-ready data."""
    rows = [
        {
            "about": check.about,
            "name": check.name,
            "verdict": check.verdict.value,
            "found": check.found,
            "advice": check.advice or None,
        }
        for check in checks
    ]
    return {"schema": 1, "counts": _counts(checks), "checks": rows}
