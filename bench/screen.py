"""A terminal screen in memory: as much of xterm as the console writes, so that a test can ask what is to be seen."""

from __future__ import annotations

import re
import unicodedata

_SEQUENCE = re.compile(
    r"\x1b\[(?P<csi>[0-9;:?<>=!]*)(?P<final>[@-~])"
    r"|\x1b[\]PX^_](?:[^\x07\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\)"
    r"|\x1b[()*+][0-9A-Za-z]|\x1b[ -/]*[0-~]"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;:?<>=!]*|[\]PX^_][^\x07]*|[()*+ -/]*)?$")


class Screen:
    """Feed it what the program wrote; `text` is what stands there."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._cells = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0
        self._held = ""

    @property
    def lines(self) -> list[str]:
        """The rows, without trailing blanks."""
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(self.lines)

    def feed(self, text: str) -> None:
        """Take in decoded output; a sequence cut at its end waits for the rest."""
        text = self._held + text
        self._held = ""
        if unfinished := _UNFINISHED.search(text):
            text, self._held = text[: unfinished.start()], text[unfinished.start() :]
        at = 0
        for match in _SEQUENCE.finditer(text):
            self._print(text[at : match.start()])
            at = match.end()
            if match["final"] is not None and not match["csi"].startswith(("?", "<", ">", "=")):
                self._control(match["final"], match["csi"])
        self._print(text[at:])

    def _control(self, final: str, arguments: str) -> None:
        numbers = [int(part) if part.isdecimal() else 0 for part in arguments.split(";")]
        first = numbers[0]
        if final in "Hf":
            self._row = max(1, first) - 1
            self._column = max(1, numbers[1] if len(numbers) > 1 else 1) - 1
        elif final in "ABCD":
            step = max(1, first)
            self._row += {"A": -step, "B": step}.get(final, 0)
            self._column += {"D": -step, "C": step}.get(final, 0)
        elif final == "J" and first == 2:
            self._cells = [[" "] * self.columns for _ in range(self.rows)]
        elif final == "K" and 0 <= self._row < self.rows:
            row = self._cells[self._row]
            start, end = {0: (self._column, None), 1: (0, self._column + 1)}.get(first, (0, None))
            row[start:end] = [" "] * len(row[start:end])

    def _print(self, text: str) -> None:
        for character in text:
            if character == "\n":
                self._row += 1
            elif character == "\r":
                self._column = 0
            elif character >= " " and not unicodedata.combining(character):
                self._put(character)

    def _put(self, character: str) -> None:
        if 0 <= self._row < self.rows and 0 <= self._column < self.columns:
            self._cells[self._row][self._column] = character
        wide = unicodedata.east_asian_width(character) in "WF"
        self._column += 2 if wide else 1
