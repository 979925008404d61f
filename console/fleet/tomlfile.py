"""Reads a TOML file that may be anything: too large, too deep, endless, not text. One kind of error for all of it."""

from __future__ import annotations

import difflib
import io
import tomllib
from collections.abc import Iterable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from console.plainfile import read_plain

MOST_BYTES = 4 << 20
"""A fleet of hundreds of hosts takes 50 KB; a device file never ends."""


class FileError(Exception):
    """A file of the operator's that cannot be used: names the file, and for each problem the key and the fix."""

    def __init__(self, file: Path | str, problems: list[str]) -> None:
        super().__init__("\n".join(f"{file}: {problem}" for problem in problems))
        self.file = str(file)
        self.problems = tuple(problems)


class Strict(BaseModel):
    """A table in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def suggest(word: str, known: Iterable[str]) -> str:
    """The tail of an error about an unknown name: the one probably meant, else all that are known."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(names)}"


class TomlUnreadable(Exception):
    """Why a file cannot be used, in words; the caller names the file."""


def _bytes(source: Path | Traversable) -> bytes:
    if isinstance(source, Path):
        return read_plain(source, MOST_BYTES + 1)[1]
    with source.open("rb") as file:  # inside the package
        return file.read(MOST_BYTES + 1)


def read_toml(source: Path | Traversable) -> dict[str, Any]:
    """The tables of a file. Raises FileNotFoundError, or TomlUnreadable for all else that can be wrong with it."""
    try:
        data = _bytes(source)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        raise TomlUnreadable(f"cannot be read: {words or error}") from error
    if len(data) > MOST_BYTES:
        raise TomlUnreadable(f"cannot be read: larger than {MOST_BYTES >> 20} MiB")
    try:
        text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        raise TomlUnreadable(f"cannot be read: {error}") from error
    return parse_toml(text)


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises TomlUnreadable."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise TomlUnreadable("not valid TOML: nested too deeply") from error
    except ValueError as error:  # tomllib's own, and those of int() and datetime inside it
        raise TomlUnreadable(f"not valid TOML: {error}") from error
