"""Processes of a host, as rows of /proc: for watchdogs, downloads and what reconnects left behind. Pure.

One row a process: `PID PPID STATE STARTED UID READ WRITTEN COMMAND`, parted by tabs; STARTED in Unix seconds, READ and
WRITTEN in bytes (`rchar`, `wchar` of /proc/PID/io, `-` where that is not ours to read), COMMAND escaped as in `look`.
The status line says `hidden=1` where /proc shows this user only its own (hidepid), `truncated=1` where there are more.
The tables that `ps` prints are read by their headers: PID, PPID, STAT, ELAPSED, STARTED (of `lstart`) and COMMAND last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from console.readings.launch import without_secrets
from console.readings.look import Status, bare, number, parse_answer
from console.sanitize import line

MOST_PROCESSES = 10_000
"""Rows of one text that are read."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one time."""

    pid: int
    ppid: int
    state: str
    """One letter as in ps; Z is a zombie, which cannot be ended."""
    command: str
    """Its whole command line, safe text, secrets hidden."""
    started: float | None = None
    """Unix seconds by the host's clock."""
    uid: int | None = None
    read: int | None = None
    """Bytes read so far, from disk and network."""
    written: int | None = None
    elapsed: float | None = None
    """Seconds since it was started, where a text says that and not when."""

    @property
    def alive(self) -> bool:
        """False for a zombie."""
        return not self.state.startswith("Z")


class Processes(tuple[Process, ...]):
    """The processes of one answer, and why there may be others that it does not show."""

    unseen: str = ""
    """`others' processes are hidden from this user`; '' where what was asked for is all there."""


def unseen(processes: Sequence[Process] | None) -> str:
    """Why a process that is not among these may be there all the same; '' where it is not."""
    return processes.unseen if isinstance(processes, Processes) else ""


_STATUSES = {status.value for status in Status}
_TIME = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_ELAPSED = re.compile(r"(?:(?:([0-9]{1,6})-)?([0-9]{1,2}):)?([0-9]{1,2}):([0-9]{2})")
_LSTART = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SECRETS = (
    (re.compile(r"\b([A-Za-z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY))=\S+", re.IGNORECASE), r"\1=***"),
    (re.compile(r"\bhf_[A-Za-z0-9]{16,}"), "hf_***"),
    (re.compile(r"(://[^/\s:@]*):[^/\s@]+@"), r"\1:***@"),
    (re.compile(r"\b(bearer\s+)\S+", re.IGNORECASE), r"\1***"),
)


def parse_processes(text: str) -> Processes | None:
    """The processes of a host's answer, or of a table of `ps`. Never raises.

    None where it could not be asked, and where none was seen but others' are hidden from this user.
    """
    if text.partition("\n")[0].partition(" ")[0] not in _STATUSES:
        return Processes(_table(text))
    answer = parse_answer(text)
    if answer.status is not Status.OK:
        return None
    rows = answer.body.split("\n")
    found = Processes(item for row in rows[:MOST_PROCESSES] if (item := _own(row.split("\t"))) is not None)
    if answer.values.get("hidden") == "1":
        found.unseen = "others' processes are hidden from this user"
    elif answer.values.get("truncated") == "1" or len(rows) > MOST_PROCESSES:
        found.unseen = f"only {len(found)} of those that fit were told"
    return None if found.unseen and not found else found


def _own(fields: Sequence[str]) -> Process | None:
    if len(fields) != 8:
        return None
    pid, ppid = number(fields[0]), number(fields[1])
    if pid is None or ppid is None:
        return None
    return Process(
        pid=pid,
        ppid=ppid,
        state=line(fields[2], 4),
        command=safe_command(bare(fields[7])),
        started=float(fields[3]) if _TIME.fullmatch(fields[3]) else None,
        uid=number(fields[4]),
        read=number(fields[5]),
        written=number(fields[6]),
    )


def safe_command(text: str) -> str:
    """A command line as safe text of at most 2000 characters, the values of secrets hidden."""
    shown = " ".join(without_secrets(line(text).split(" ")))
    for pattern, instead in _SECRETS:
        shown = pattern.sub(instead, shown)
    return shown.strip()


def _table(text: str) -> tuple[Process, ...]:
    """What `ps` prints: a header, then a row a process, the command last."""
    columns: list[str] = []
    found = []
    for row in text.split("\n")[:MOST_PROCESSES]:
        words = row.split()
        if "PID" in words and words[-1] in ("COMMAND", "CMD", "ARGS"):
            columns = words
        elif columns and (process := _listed(columns, row)) is not None:
            found.append(process)
    return tuple(found)


def _listed(columns: Sequence[str], row: str) -> Process | None:
    values: dict[str, str] = {}
    rest = row.strip()
    for column in columns[:-1]:
        wide = _LSTART.match(" ".join(rest.split(None, 5)[:5])) if column == "STARTED" else None
        parts = rest.split(None, 5 if wide else 1)
        values[column] = " ".join(parts[:5]) if wide else "".join(parts[:1])
        rest = "".join(parts[5 if wide else 1 :])
    pid = number(values.get("PID", ""))
    if pid is None or not rest:
        return None
    return Process(
        pid=pid,
        ppid=number(values.get("PPID", "")) or 0,
        state=line(values.get("STAT", values.get("S", "")), 4),
        command=safe_command(rest),
        started=_started(values.get("STARTED", "")),
        uid=number(values.get("UID", "")),
        elapsed=_elapsed(values.get("ELAPSED", "")),
    )


def _started(text: str) -> float | None:
    """`Sun Oct 18 08:10:31 2026`, which names no time zone, as UTC."""
    parts = _LSTART.fullmatch(text)
    if parts is None or parts[1] not in _MONTHS:
        return None
    month = _MONTHS.index(parts[1]) + 1
    day, hour, minute, second, year = (int(parts[index]) for index in (2, 3, 4, 5, 6))
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _elapsed(text: str) -> float | None:
    """`[[DD-]HH:]MM:SS`."""
    parts = _ELAPSED.fullmatch(text)
    if parts is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
