"""Log text as an operator sees it: safe lines, and how far a loading bar has come."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from console.sanitize import REPLACEMENT, lines


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a bar of the form `31/48` has come."""

    label: str
    done: int
    total: int

    @property
    def text(self) -> str:
        """`31 of 48`."""
        return f"{self.done} of {self.total}"


@dataclass(frozen=True, slots=True)
class LogText:
    """A piece of a log. `lines` are safe; the counts are of what came."""

    lines: tuple[str, ...]
    complete: bool
    """False when the last line has not ended yet."""
    segments: int
    """Carriage-return steps that held something: a bar that moved 49 times is one line and 49 segments."""
    replacements: int
    """Characters that were not UTF-8."""
    controls: int
    """Control characters that came and were taken out or made visible, tabs and line ends apart."""
    verbatim: int
    """Lines shown exactly as they came."""
    cut: tuple[tuple[int, int], ...] = ()
    """(line number from 1, characters that came) of lines too long to be shown whole: they end with an ellipsis."""


_PERCENT = re.compile(r"\s[0-9]{1,3}%")
_COUNTS = re.compile(r"\|\s*([0-9]{1,9})/([0-9]{1,9})\b")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_TAIL = 400
SHOWN = 2000
"""Characters of a line that are shown."""
MOST_CUT = 1000
"""Cut lines that are listed."""
_LOOKED_AT = 2000


def read_log(data: bytes) -> LogText:
    """A log's bytes as safe lines with what had to be done to them; never raises."""
    text = data.decode("utf-8", "replace")
    rows = text.split("\n")
    complete = not rows[-1]
    if complete:
        rows.pop()
    shown = lines(text, SHOWN)
    first = len(rows) - len(shown) + 1
    long = [(number, len(row)) for number, row in enumerate(rows[first - 1 :], first) if _cut(row)]
    return LogText(
        lines=tuple(shown),
        complete=complete,
        segments=sum(
            1 for row in rows if "\r" in row.strip("\r") or row.startswith("\r") for part in row.split("\r") if part
        ),
        replacements=text.count(REPLACEMENT),
        controls=len(_CONTROL.findall(text)),
        verbatim=sum(1 for row, seen in zip(rows, shown, strict=False) if row == seen),
        cut=tuple(long[:MOST_CUT]),
    )


def _cut(row: str) -> bool:
    """Whether what is seen of a line (after its last carriage return) is longer than what is shown."""
    return len(row) > SHOWN and len(row.rstrip("\r").rpartition("\r")[2]) > SHOWN


def loading_progress(texts: Sequence[str], label: str = "shard") -> Progress | None:
    """The newest bar with `label` in its name; None without one in the last lines.

    tqdm's form: `Loading safetensors checkpoint shards:  65% Completed | 31/48 [04:18<02:21,  8.33s/it]`.
    """
    for text in reversed(texts[-_LOOKED_AT:]):
        text = text[:_TAIL]
        percent = _PERCENT.search(text)
        counts = _COUNTS.search(text, percent.end()) if percent else None
        if not percent or not counts or label not in text[: percent.start()].lower():
            continue
        done, total = int(counts[1]), int(counts[2])
        if 0 < total >= done:
            return Progress(text[: percent.start()].strip(" :"), done, total)
    return None


def control_characters(text: str) -> int:
    """Control characters in a text: 0 for anything that went through `sanitize`."""
    return len(_CONTROL.findall(text)) + text.count("\r") + text.count("\n")
