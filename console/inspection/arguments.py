"""`ROLE=PATH@SECONDS` arguments of `laneswap inspect`, and reading the files they name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from console.readings.exits import rfc3339

_ARGUMENT = re.compile(r"^(?:(?P<role>[A-Za-z0-9_.-]+)=)?(?P<path>.+?)(?:@(?P<seconds>[0-9]+(?:\.[0-9]+)?))?$")

MAX_BYTES = 256 * 1024 * 1024
"""Largest file that `inspect` reads."""


class InspectError(Exception):
    """Input that cannot be inspected: names the file or argument and the way out."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One input file. `role` is '' where none was given, `seconds` None where no time was."""

    role: str
    path: Path
    seconds: float | None = None

    def read(self) -> bytes:
        """The file's bytes. Raises InspectError."""
        try:
            with self.path.open("rb") as file:
                # a device or a growing file has no size to ask for
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise InspectError(f"{self.path}: {error.strerror or error}") from error
        if len(data) > MAX_BYTES:
            raise InspectError(f"{self.path}: larger than {MAX_BYTES} bytes; cut it first")
        return data

    def text(self) -> str:
        """The file as text; bytes that are not UTF-8 become U+FFFD."""
        return self.read().decode("utf-8", "replace")


def parse_argument(word: str) -> Argument:
    """`ROLE=PATH@SECONDS`, where role and seconds may be left out. A path that exists as it stands is taken whole."""
    if os.path.exists(word):
        return Argument("", Path(word))
    match = None if "\0" in word else _ARGUMENT.match(word)
    if not match:
        raise InspectError(f"{word!r}: expected [ROLE=]PATH[@SECONDS]")
    seconds = match["seconds"]
    return Argument(match["role"] or "", Path(match["path"]), float(seconds) if seconds else None)


def one(arguments: Sequence[Argument], role: str, *, default: bool = False) -> Argument | None:
    """The argument with `role`; with `default` also the only one without any role. None if there is none."""
    named = [item for item in arguments if item.role == role]
    if not named and default:
        named = [item for item in arguments if not item.role]
    if len(named) > 1:
        raise InspectError(f"role {role!r} is given {len(named)} times")
    return named[0] if named else None


def reject_unknown(arguments: Sequence[Argument], allowed: Sequence[str]) -> None:
    """Raise InspectError for a role that the kind does not know."""
    for item in arguments:
        if item.role and item.role not in allowed:
            raise InspectError(f"unknown role {item.role!r}; this kind knows: {', '.join(allowed)}")


def moment(arguments: Sequence[Argument], role: str) -> float | None:
    """Unix seconds from a file that holds them or an RFC 3339 time; None without the role."""
    source = one(arguments, role)
    if source is None:
        return None
    word = source.text().strip()
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", word):
        return float(word)
    if (found := rfc3339(word)) is None:
        raise InspectError(f"{source.path}: expected Unix seconds or a time such as 2026-10-18T09:04:20Z")
    return found
