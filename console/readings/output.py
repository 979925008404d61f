"""What a remote command returned, and what that means: lost is unknown, never success."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """How a remote command ended."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The connection died or time ran out: it may or may not have run."""
    REJECTED_BY_SHELL = "remote shell rejected the command"
    HOST_KEY_CHANGED = "host key changed"
    HOST_KEY_UNKNOWN = "host key unknown"
    PERMISSION = "permission"
    UNREACHABLE = "unreachable"
    OUR_LIMIT = "our session limit"


@dataclass(frozen=True, slots=True)
class Output:
    """One command's own output, with shell noise cut off."""

    host: str
    command: tuple[str, ...]
    outcome: Outcome
    exit_status: int | None
    signal: str
    stdout: str
    stderr: str
    took: float
    """Seconds."""
    hint: str = ""

    @property
    def ok(self) -> bool:
        """True only for an exit status 0 that was really received."""
        return self.outcome is Outcome.DONE and self.exit_status == 0
