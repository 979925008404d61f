"""Types of a launcher's site file: what its own consumer makes of it, and what laneswap takes from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from console.sanitize import line as safe


class SiteKind(StrEnum):
    """Who reads the file."""

    BASH = "bash"
    """Sourced: quotes, comments, `export`, arrays and `;` as bash has them."""
    DOCKER = "docker"
    """`docker --env-file`: everything behind `=` is the value, quotes and `#` included."""
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One key as the file sets it."""

    key: str
    values: tuple[str, ...]
    """One for a scalar, any number for an array; raw text as the consumer gets it, expansions kept literal."""
    array: bool
    line: int
    """1 for the first; 0 where the file has no lines to speak of (JSON)."""
    exported: bool = False
    literal: bool = True
    """False where the consumer would expand `$` or backquotes: the text here is what stands in the file."""
    error: str = ""
    """What the consumer would do instead of setting it: `runs 'words'`."""

    @property
    def value(self) -> str:
        """The scalar value; of an array its first element, as bash has it."""
        return self.values[0] if self.values else ""


@dataclass(frozen=True, slots=True)
class SiteFile:
    """One file, parsed."""

    kind: SiteKind
    assignments: tuple[Assignment, ...]
    """Every assignment in the file's order; the last one of a key is effective."""
    crlf_lines: int = 0
    bom: bool = False
    final_newline: bool = True
    warnings: tuple[str, ...] = ()
    """Safe sentences: CRLF line ends, BOM, a key set twice, commands that would run."""

    def get(self, key: str) -> Assignment | None:
        """The effective assignment of a key; None if it is not set."""
        return next((item for item in reversed(self.assignments) if item.key == key), None)


def visible(text: str, limit: int = 200) -> str:
    """A value as it can be shown: safe, with a carriage return made visible wherever it stands."""
    return safe(text.replace("\r", "\u240d"), limit)


def unusable(found: Assignment) -> str:
    """Why a value cannot be taken as it stands; '' if it can."""
    if found.error:
        return found.error
    if any(item.endswith("\r") for item in found.values):
        return "ends in a carriage return (CRLF line ends)"
    if any(visible(item, len(item) + 1) != item for item in found.values):
        return "holds control or invisible characters"
    if not found.literal:
        shown = visible(" ".join(found.values), 60)
        return f"depends on the shell that reads it: {shown}" if shown else "comes from the environment"
    return ""


@dataclass(frozen=True, slots=True)
class Site:
    """What a lane's site file says, under laneswap's own names."""

    path: str
    file: SiteFile
    revision: str = ""
    """40 hex of the checkpoint that the next launch would mount; '' if it names none."""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By laneswap's name (`repo`, `rows`, `hosts`...), safe text."""
    """Without what cannot be taken as it stands."""
    unread: tuple[str, ...] = ()
    """What could not be taken and why, safe sentences: `revision (SNAP): ends in a carriage return`."""
    mtime: float | None = None
    """Unix seconds by the host's clock."""
    data: bytes = field(default=b"", repr=False)
    """The file as it was read: what an edit is proposed on, and compared with when it is made."""
