"""What a host is asked to look at, again and again, and the texts in which it answers. Pure.

An answer is text: a status line, then what was asked for. The status line is `ok`, `missing` (nothing there), `denied`
(no permission) or `error WORDS`; after `ok` a blank and `name=value` pairs may follow, as the kind says. Within a
line, tab, newline, carriage return and backslash of a name are written `\\t`, `\\n`, `\\r`, `\\\\`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from console.sanitize import REPLACEMENT, line


class LookKind(StrEnum):
    """What can be looked at; nothing else runs on a host."""

    FILE = "file"
    """`PATH first|last BYTES [FOLDER]`: status line `ok size=S mtime=UNIX inode=I`, then the first or last BYTES of the
    file. With FOLDER a link on the way, from that folder on, is an error: others may write there."""
    TREE = "tree"
    """`ROOT DEPTH MOST`: status line `ok free=BYTES total=BYTES device=D fstype=T mount=PATH`, then a listing
    (`console/readings/listing.py`) of at most MOST entries, DEPTH levels deep; `truncated=1` where there are more. Free
    bytes are rounded down to MiB, or by up to a sixty-fourth; names of the status line are escaped as in mountinfo (a
    blank is `\\040`)."""
    PROCESSES = "processes"
    """`PART...`: status line `ok clock=TICKS boot=UNIX`, then a row for each process whose command line holds one of
    the parts, or whose number is N where a part is `pid:N` (`console/readings/processes.py`)."""
    UNITS = "units"
    """`system|user UNIT...`: status line `ok code=EXIT`, what `systemctl show` printed, then what it said on stderr;
    for a unit with a cgroup also rows `@UNIT/FILE=VALUE` of its memory controller (`console/readings/units.py`)."""
    PATHS = "paths"
    """`PATH...`: status line `ok`, then a row for each path: what it really is, so that another one in its place is
    noticed (`console/readings/paths.py`)."""


@dataclass(frozen=True, slots=True)
class Look:
    """One thing to look at. `~/` at the start of a path is the home folder of the user there."""

    key: str
    """Names the answer: `site`, `repo`, `rows`, `watchdog.log`...; one lane's are prefixed `LANE:`."""
    kind: LookKind
    arguments: tuple[str, ...]
    every: float = 5.0
    """Seconds between two looks."""


class Status(StrEnum):
    """First word of an answer."""

    OK = "ok"
    MISSING = "missing"
    DENIED = "denied"
    ERROR = "error"


_STATUS = {status.value: status for status in Status}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, taken apart."""

    status: Status
    words: str = ""
    """Of an error: why, safe text."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The `name=value` pairs of the status line."""
    body: str = ""
    """Raw text below the status line."""


def parse_answer(text: str) -> Answer:
    """Takes an answer apart; what is no answer is an ERROR that says so. Never raises."""
    first, _, body = text.partition("\n")
    word, _, rest = first.partition(" ")
    status = _STATUS.get(word)
    if status is None:
        return Answer(Status.ERROR, f"no answer of ours: {line(first, 80)!r}")
    if status is not Status.OK:
        return Answer(status, line(rest, 200))
    pairs = (part.partition("=") for part in rest.split(" ") if "=" in part)
    return Answer(status, "", {name: value for name, _, value in pairs}, body)


_NO_BYTES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of characters that stand for no byte of a file: only a made-up answer holds them."""


def raw_bytes(body: str) -> bytes:
    """The bytes that a body was read from. Never raises."""
    return _NO_BYTES.sub(REPLACEMENT, body).encode("utf-8", "surrogateescape")


_NUMBER = re.compile(r"[0-9]{1,19}")


def number(text: str) -> int | None:
    """A whole number >= 0 as hosts write it; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None


def bare(text: str) -> str:
    r"""A name without its doubled backslashes. `\t`, `\n`, `\r` stay as they are written: safe to show, and no name."""
    return text.replace("\\\\", "\\")


@lru_cache(maxsize=8192)
def safe_name(text: str, limit: int = 1000) -> str:
    """A name as safe text. What cannot be seen is marked, not dropped: no other file's name comes of it."""
    if line(text, limit) == text:
        return text
    first, rest = text[:1], text[1 : limit + 1]
    seen = [line(first) or REPLACEMENT, *(line(f"x{character}")[1:] or REPLACEMENT for character in rest)]
    return line("".join(seen), limit)
