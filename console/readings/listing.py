"""A folder's listing as the host wrote it: apparent and allocated sizes, inodes, and where links lead. Pure.

One entry a line, fields parted by tabs, `-` where there is nothing:

    KIND APPARENT ALLOCATED MTIME DEVICE INODE LINKS PATH [TARGET WHERE APPARENT ALLOCATED DEVICE INODE]

KIND is `f`, `d`, `l` or `o` (anything else). PATH is relative to the root. Of a link follow its text, WHERE it leads
(`in` a file below the root, `out` a file outside of it, `dir` a folder, `gone` nothing) and that file's figures. Lines
with `#` are comments; of these `# root PATH`, `# epoch UNIX` and `# unread PATH WHY` are read. The short form `APPARENT
ALLOCATED PATH` is read too. A file's own content may stand as its TARGET, without WHERE (that of a small ref).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from console.readings.look import Status, bare, number, parse_answer, safe_name
from console.sanitize import line

MOST_ENTRIES = 100_000
"""Rows of one listing that are read; what is beyond is said as truncated."""


class Leads(StrEnum):
    """Where a symbolic link leads."""

    INSIDE = "in"
    OUTSIDE = "out"
    FOLDER = "dir"
    NOWHERE = "gone"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder or link. Sizes in bytes."""

    path: str
    """Relative to the root; safe text."""
    kind: str
    """`f`, `d`, `l` or `o`."""
    apparent: int
    allocated: int
    """st_blocks * 512: what is really there."""
    mtime: float | None = None
    inode: tuple[int, int] | None = None
    """(device, inode) of the file itself; of a link: of the file it leads to."""
    links: int = 1
    target: str = ""
    """Of a link: its text, safe."""
    leads: Leads | None = None
    """Of a link. Its `apparent` and `allocated` are those of the file it leads to, 0 where it leads nowhere."""

    @property
    def present(self) -> int:
        """Bytes really there: a preallocated or sparse file has less than its apparent size, a block has more."""
        return min(self.apparent, self.allocated)


@dataclass(frozen=True, slots=True)
class Listing:
    """One folder at one time."""

    root: str
    entries: tuple[Entry, ...]
    taken: float | None = None
    """Unix seconds, by the host's clock."""
    free: int | None = None
    """Bytes an ordinary user can still write there."""
    total: int | None = None
    fstype: str = ""
    mount: str = ""
    """Where the file system that holds the root is mounted."""
    truncated: bool = False
    problem: str = ""
    """Why there is no listing: `missing`, `no permission`...; '' where there is one."""
    device: str = ""
    """What is mounted there: `/dev/nvme0n1p2`, `spark-1:/models`."""
    unread: tuple[str, ...] = ()
    """What is there and could not be read, each with why: `snapshots: no permission`."""
    faulty: int = 0
    """Rows that are none."""


_LEADS = {leads.value: leads for leads in Leads}
_PROBLEMS = {Status.MISSING: "missing", Status.DENIED: "no permission"}
_OCTAL = re.compile(r"\\([0-7]{3})")
_TIME = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{1,9})?")


def parse_listing(text: str) -> Listing:
    """A listing from a host's answer, from the listing alone, or from its short form. Never raises."""
    first = text.partition("\n")[0].partition(" ")[0]
    if first not in {status.value for status in Status}:
        return _listing({}, text)
    answer = parse_answer(text)
    if answer.status is not Status.OK:
        return Listing("", (), problem=_PROBLEMS.get(answer.status, answer.words or "the host said no more"))
    return _listing(answer.values, answer.body)


def _listing(values: Mapping[str, str], body: str) -> Listing:
    rows = body.split("\n")
    comments = [row for row in rows if row.startswith("#")]
    rows = [row for row in rows if row and row[0] not in "#\r"]
    entries = [_entry(row) for row in rows[:MOST_ENTRIES]]
    read = tuple(entry for entry in entries if entry is not None)
    return Listing(
        root=next((safe_name(bare(rest)) for rest in _after("# root\t", comments)), ""),
        entries=read,
        taken=next((_time(rest) for rest in _after("# epoch ", comments)), None),
        free=number(values.get("free", "")),
        total=number(values.get("total", "")),
        fstype=line(_unescaped(values.get("fstype", "")), 60),
        mount=safe_name(_unescaped(values.get("mount", ""))),
        truncated=values.get("truncated") == "1" or len(rows) > MOST_ENTRIES,
        device=safe_name(_unescaped(values.get("device", ""))),
        unread=tuple(_unread(rest) for rest in _after("# unread\t", comments)),
        faulty=len(entries) - len(read),
    )


def _after(start: str, comments: list[str]) -> list[str]:
    return [row[len(start) :].rstrip("\r") for row in comments if row.startswith(start)]


def _unread(rest: str) -> str:
    path, _, why = rest.partition("\t")
    return f"{safe_name(bare(path))}: {line(why, 100)}"


def _entry(row: str) -> Entry | None:
    """One row; None if it is none."""
    fields = row.rstrip("\r").split("\t")
    if len(fields) == 3:
        apparent, allocated = number(fields[0]), number(fields[1])
        if apparent is None or allocated is None or not fields[2]:
            return None
        return Entry(safe_name(bare(fields[2])), "f", apparent, allocated)
    if len(fields) not in (8, 14) or fields[0] not in ("f", "d", "l", "o") or not fields[7]:
        return None
    apparent, allocated = number(fields[1]), number(fields[2])
    if apparent is None or allocated is None:
        return None
    inode = _inode(fields[4], fields[5])
    target, leads = "", None
    if len(fields) == 14:
        target = safe_name(bare(fields[8]).removesuffix("\\n")) if fields[8] != "-" else ""
    if fields[0] == "l":
        led = fields[9:] if len(fields) == 14 else ["-"] * 5
        leads = _LEADS.get(led[0])
        apparent, allocated = number(led[1]) or 0, number(led[2]) or 0
        inode = _inode(led[3], led[4])
    return Entry(
        safe_name(bare(fields[7])), fields[0], apparent, allocated, _time(fields[3]), inode, number(fields[6]) or 1,
        target, leads,
    )  # fmt: skip


def _inode(device: str, inode: str) -> tuple[int, int] | None:
    first, second = number(device), number(inode)
    return None if first is None or second is None else (first, second)


def _time(text: str) -> float | None:
    return float(text) if _TIME.fullmatch(text) else None


def _unescaped(text: str) -> str:
    """mountinfo's own escapes: a blank is `\\040`."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8) & 0xFF), text)
