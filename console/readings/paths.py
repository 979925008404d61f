"""What stands at paths of a host, so that another thing in its place is noticed. Pure.

A row a path: `PATH STATUS REAL TYPE DEVICE INODE SIZE ENTRIES SENTINEL SHA256 MTIME FREE`, parted by tabs; PATH and
REAL escaped as in `look`. STATUS is `ok`, or the row ends with `missing`, `denied` or `error WORDS`. TYPE is `f`, `d`
or `o`; SIZE bytes of a file, ENTRIES names in a folder (1000 at most are counted); SENTINEL the file by whose beginning
the content is told: `config.json`, `model.safetensors.index.json`, `.` for the first KiB of the file itself; SHA256 `?`
where it could not be read; FREE bytes on that disk, rounded down. `-` stands for what there is none of, or is not seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from console.readings.look import Status, bare, number, parse_answer, safe_name
from console.sanitize import line

MOST_PATHS = 200
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class PathSeen:
    """One path of a host."""

    path: str
    status: Status
    words: str = ""
    """Of an error: why, safe text."""
    real: str = ""
    """Without links."""
    kind: str = ""
    """`f` a file, `d` a folder, `o` anything else (a socket, a device)."""
    device: int = 0
    inode: int = 0
    size: int | None = None
    """Bytes of a file."""
    entries: int | None = None
    """Names in a folder."""
    sentinel: str = ""
    """The file by whose beginning its content is told; `.` is itself, '' where there is none."""
    sha256: str = ""
    """Of the sentinel's beginning; '' where there is none, or it could not be read."""
    mtime: float | None = None
    """Unix seconds by the host's clock."""
    free: int | None = None
    """Bytes on its disk."""


def parse_paths(text: str) -> tuple[PathSeen, ...] | None:
    """The paths of a host's answer; None where it could not be asked. Never raises."""
    answer = parse_answer(text)
    if answer.status is not Status.OK:
        return None
    rows = answer.body.split("\n")[:MOST_PATHS]
    return tuple(seen for row in rows if (seen := _seen(row.split("\t"))) is not None)


def _seen(fields: list[str]) -> PathSeen | None:
    if len(fields) < 2 or not fields[0]:
        return None
    path = safe_name(bare(fields[0]))
    word, _, rest = fields[1].partition(" ")
    if word != Status.OK.value:
        status = next((item for item in (Status.MISSING, Status.DENIED) if item.value == word), Status.ERROR)
        return PathSeen(path, status, line(rest, 200))
    if len(fields) != 12:
        return PathSeen(path, Status.ERROR, "its row is cut")
    _, _, real, kind, device, inode, size, entries, sentinel, sha256, mtime, free = fields
    return PathSeen(
        path=path,
        status=Status.OK,
        real=safe_name(bare(real)),
        kind=kind if kind in ("f", "d") else "o",
        device=number(device) or 0,
        inode=number(inode) or 0,
        size=number(size),
        entries=number(entries),
        sentinel="" if sentinel == "-" else line(sentinel, 80),
        sha256=sha256 if _SHA256.fullmatch(sha256) else "",
        mtime=float(mtime) if _TIME.fullmatch(mtime) else None,
        free=number(free),
    )
