"""A folder's listing as the host wrote it: apparent and allocated sizes, inodes, and where links lead. Pure.

One entry a line, fields parted by tabs, `-` where there is nothing:

    KIND APPARENT ALLOCATED MTIME DEVICE INODE LINKS PATH [TARGET WHERE APPARENT ALLOCATED DEVICE INODE]

KIND is `f`, `d`, `l` or `o` (anything else). PATH is relative to the root. Of a link follow its text, WHERE it leads
(`in` a file below the root, `out` a file outside of it, `dir` a folder, `gone` nothing) and that file's figures. Lines
with `#` are comments. The short form `APPARENT ALLOCATED PATH`, with an optional `# epoch UNIX` line, is read too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
