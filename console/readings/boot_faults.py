"""Why a start will not come up: told by lines that name it, else by the exception that ended the process. Pure."""

from __future__ import annotations

import re

from console.readings.boot import BootFailure
from console.readings.boot_lines import Head, filled
from console.readings.boot_words import Fails
from console.sanitize import line

MOST_WARNINGS = 20
TRACE_LINES = 500
"""Lines after which a traceback without an end is given up."""
LAST_WORDS = 50
"""Lines that may follow the exception that ended a process."""

_RAISED = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*\.)*([A-Za-z_][A-Za-z0-9_]*(?:Error|Exception|Failure|Timeout))(?::|$)")
_ASKED = frozenset({"CancelledError"})
"""Raised where somebody stopped the process."""
_CUT = 300


class Trace:
    """Finds the exception that a Python traceback ends with."""

    def __init__(self) -> None:
        self.open = False
        self._more = False
        self._lines = 0
        self._text = ""

    def take(self, head: Head) -> str:
        """The exception's words, once they are complete; ''."""
        message = head.message
        if self._more:
            self._more = False
            found = f"{self._text} {message.strip()}"
            self.open = False
            return found
        if "Traceback (most recent call last)" in message:
            self.open, self._lines = True, 0
            return ""
        if not self.open:
            return ""
        self._lines += 1
        self.open = self._lines < TRACE_LINES
        raised = _RAISED.match(message)
        if raised is None or raised[1] in _ASKED:
            return ""
        if "validation error" in message:  # pydantic says what is wrong on the next line
            self._more, self._text = True, message
            return ""
        self.open = False
        return message


class Faults:
    """What went wrong, as far as the lines so far tell."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.ending = False
        """The process is on its way out, or over."""
        self._named: BootFailure | None = None
        self._who = ""
        self._loose: BootFailure | None = None
        self._loose_at = 0
        self._passed: BootFailure | None = None
        self._summary: BootFailure | None = None

    def named(self, fails: Fails, stars: tuple[str, ...], head: Head, text: str) -> None:
        """A line that one of the patterns means."""
        if head.quiet and not fails.loud:
            return
        cause = line(filled(fails.cause, stars), _CUT)
        if not fails.stops:
            self.warn(cause)
            return
        found = BootFailure(cause, line(text, _CUT), fails.heals, line(fails.advice, _CUT))
        if fails.sums_up:
            self.ending = True
            self._summary = self._summary or found
        elif not fails.sure:
            self._loose = found
        elif self._named is None:
            self._named, self._who = found, head.who

    def raised(self, words: str, text: str, number: int) -> None:
        """An exception in line `number`, whose cause nobody has named; the first one is the root."""
        self._loose_at = number
        if self._loose is None:
            self._loose = BootFailure(line(words, _CUT), line(text, _CUT), False, "read the log (l)")

    def over(self, number: int) -> None:
        """The log ends with line `number`: an exception among its last words ended the process."""
        self.ending = self.ending or (self._loose_at > 0 and number - self._loose_at <= LAST_WORDS)

    def warn(self, cause: str) -> None:
        """Something that does not end it."""
        if cause not in self.warnings and len(self.warnings) < MOST_WARNINGS:
            self.warnings.append(cause)

    def went_on(self, who: str) -> None:
        """The process (or the part of it that had failed) took a step forward: it was no failure of the start."""
        self._loose = self._summary = None
        if self._named is not None and self._who == who:
            self.warn(self._named.cause)
            self._passed, self._named = self._named, None

    def came_up(self) -> None:
        """It is ready: what was said on the way counts no more."""
        if self._named is not None:
            self.warn(self._named.cause)
        self._named = self._loose = self._passed = self._summary = None
        self.ending = False

    def found(self, ready: bool) -> BootFailure | None:
        """Why it will not come up; once it was up, why the process ended."""
        if ready and not self.ending:
            return None
        return self._named or ((self._loose or self._passed or self._summary) if self.ending else None)
