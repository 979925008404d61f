"""Pane 8: the log of the container that is followed, newest line last."""

from __future__ import annotations

import re

from console.snapshot import LogLine, LogView
from widgets import format as fmt
from widgets.ages import AGE_REPAINT, AgeMark, coarse
from widgets.cells import measure
from widgets.glance import Glance
from widgets.ink import DIM, LOOK, TEXT, Row
from widgets.pane import Pane
from widgets.sheet import Sheet, Title


class LogPane(Pane):
    """Pane 8."""

    NUMBER = 8
    NAME = "log"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        log = glance.snapshot.log
        if log is None:
            return ()
        seen = (log.host, log.container, log.problem, log.skipped, log.lines)
        return *seen, coarse(_age(log, glance).text), int(glance.now / AGE_REPAINT), glance.wall // 86400

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """The newest lines, or older ones while scrolled back."""
    log = glance.snapshot.log
    if log is None:
        sheet = Sheet(glance, Title(8, "log", AgeMark("", DIM)), width, height)
        sheet.say("No log is followed.", "l follows the container that serves the lane.")
        return sheet.done()
    lines = [line for line in log.lines if glance.matches(line.text)]
    back = min(glance.scrolled(8), max(0, len(lines) - 1))
    sheet = Sheet(glance, Title(8, f"log {log.host}", _age(log, glance), _note(log, glance, back)), width, height)
    if log.problem:
        sheet.say(log.problem, ink=LOOK)
    if not lines:
        sheet.say(_nothing(log, glance))
    end = len(lines) - back
    for line in lines[max(0, end - sheet.left_over) : end]:
        _line(sheet, line, glance)
    return sheet.done()


def _age(log: LogView, glance: Glance) -> AgeMark:
    return AgeMark(fmt.age(None if log.taken_mono is None else glance.now - log.taken_mono), DIM)


def _note(log: LogView, glance: Glance, back: int) -> str:
    notes = [log.container]
    if back:
        notes.append(f"{back} lines back")
    if log.skipped:
        notes.append(f"{fmt.count(log.skipped)} skipped")
    if glance.filter:
        notes.append(f"/{glance.filter}")
    return "  ".join(note for note in notes if note)


def _nothing(log: LogView, glance: Glance) -> str:
    if glance.filter and log.lines:
        return "No line matches the filter."
    if log.problem:
        return ""
    return "The container has written nothing yet." if log.asked else "Its newest lines are being asked for."


_OWN_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d)(?:[.,]\d+)? ?([^\]]{0,40})\] ?")
_ROOMY = 110
"""Cells from which a line keeps the engine's own time stamp beside the container's."""


_VLLM_STAMP = re.compile(r"(?:\((\w{1,40})[^)]{0,60}\) )?([A-Z]{4,8}) \d\d-\d\d (\d\d:\d\d:\d\d) \[[^\]]{1,80}\] ?")


def _without_stamp(text: str, stamp: str, width: int) -> str:
    """The line without the engine's own stamp where that only repeats the one at the left, or leaves no room."""
    if width >= _ROOMY:
        return text
    if long := _VLLM_STAMP.match(text):
        # Of another day the left column has no time.
        parts = "" if ":" in stamp else long[3], long[1], "" if long[2] == "INFO" else long[2], text[long.end() :]
        return " ".join(part for part in parts if part)
    found = _OWN_STAMP.match(text)
    if found is None or (":" in stamp and found[1] != stamp):
        return text
    own = ("" if ":" in stamp else found[1], found[2], text[found.end() :])
    return " ".join(part for part in own if part)


def _line(sheet: Sheet, line: LogLine, glance: Glance) -> None:
    drawn = sheet.line()
    stamp = fmt.time_of_day(line.wall, glance.wall) if line.wall is not None else ""
    text = _without_stamp(line.text, stamp, sheet.width)
    drawn.put(sheet.left, stamp, DIM)
    drawn.put(sheet.left + max(9, measure(stamp) + 1), text, TEXT, to=sheet.right)
