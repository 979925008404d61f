"""Processes of a host, as rows of /proc: for watchdogs, downloads and what reconnects left behind. Pure.

One row a process: `PID PPID STATE STARTED UID READ WRITTEN COMMAND`, parted by tabs; STARTED in Unix seconds, READ and
WRITTEN in bytes (`rchar`, `wchar` of /proc/PID/io, `-` where that is not ours to read), COMMAND escaped as in `look`.
"""

from __future__ import annotations

from dataclasses import dataclass


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

    @property
    def alive(self) -> bool:
        """False for a zombie."""
        return not self.state.startswith("Z")
