"""Faults of the console itself: one line on screen, the whole story in a private file, never an exit."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

import platformdirs

from console import sanitize
from console.alarms import Alarm
from console.snapshot import Severity

LIMIT = 1 << 20
"""Bytes after which the fault file is put aside as FILE.1 and begun anew."""
DISTINCT = 100
"""Faults told apart; further ones are counted only, so that a fault of each tick cannot fill a disk."""


def default_fault_file() -> Path:
    """The private file that faults go to."""
    return Path(platformdirs.user_state_dir("laneswap")) / "faults.log"


class FaultLog:
    """Counts faults, writes each distinct one once, and says the newest as an alarm."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.counts: dict[str, int] = {}
        self.newest = ""
        self.unwritten = ""
        """Why the file could not be written; '' if it could."""

    def record(self, where: str, error: BaseException) -> str:
        """Take one fault; returns its one safe line. Never raises."""
        line = sanitize.line(f"{where}: {type(error).__name__}: {error}", 160)
        self.newest = line
        if line not in self.counts and len(self.counts) >= DISTINCT:
            return line
        self.counts[line] = self.counts.get(line, 0) + 1
        if self.counts[line] == 1:
            self._write(line, error)
        return line

    def alarm(self) -> Alarm | None:
        """The newest fault as an alarm, None while there was none."""
        if not self.newest:
            return None
        where = f"not written: {self.unwritten}" if self.unwritten else f"see {self.file}"
        times = self.counts.get(self.newest, 1)
        return Alarm(
            key=f"fault:{self.newest}",
            severity=Severity.LOOK,
            subject="console fault:",
            text=self.newest + (f", {times} times" if times > 1 else ""),
            advice=f"the console goes on; {where}",
        )

    def _write(self, line: str, error: BaseException) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        story = "".join(traceback.format_exception(error))
        text = f"{stamp} {line}\n" + "\n".join(sanitize.lines(story, 500, 200)) + "\n"
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.file.exists() and self.file.stat().st_size > LIMIT:
                self.file.replace(self.file.with_suffix(".log.1"))
            handle = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(text)
            self.unwritten = ""
        except OSError as problem:
            self.unwritten = sanitize.line(str(problem), 80)
