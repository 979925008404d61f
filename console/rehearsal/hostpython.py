"""Runs inside a rehearsal host's python3, before what that was asked to run: mounts, sizes, room and clock by a table.

A checkpoint takes 510 GB and a rehearsal none: its files are there, empty, and the table says what `os.stat` and
`os.statvfs` answer. Rows, parted by tabs: `size INODE APPARENT ALLOCATED`, `fs PATH TOTAL FREE`,
`mount PATH REAL TABLE` (a folder of this machine that the host has mounted there, and the table of the host that
exports it), `gone PATH` (a file that is not to be seen), `hang PATH` (whoever looks below it waits), `clock SECONDS`
(ahead of the true one). Standard library only; executed in a namespace of its own, in which ROOT and TABLE are set.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
"""As in typing, which would take longer to import than all else here."""
if TYPE_CHECKING:
    from typing import Any

ROOT = str(globals()["ROOT"])
TABLE = str(globals()["TABLE"])
BLOCK = 4096
REREAD = 0.2
"""Seconds between two looks at a table."""

real_stat: Any = os.stat
real_lstat: Any = os.lstat
real_open: Any = os.open
real_statvfs: Any = os.statvfs
real_listdir: Any = os.listdir
real_readlink: Any = os.readlink
real_fstat, real_time = os.fstat, time.time
FIELDS = [name for name in dir(os.stat_result) if name.startswith("st_")]


class Table:
    """A table, read again when it was replaced."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.looked = -1.0
        self.version = (0, 0)
        self.take("")

    def read(self) -> Table:
        """Itself, not older than REREAD."""
        now = time.monotonic()
        if now - self.looked < REREAD:
            return self
        self.looked = now
        try:
            found = real_stat(self.path)
            version = (found.st_ino, found.st_mtime_ns)
            if version != self.version:
                with open(self.path, encoding="utf-8") as file:
                    self.take(file.read())
                self.version = version
        except OSError:
            return self  # replaced this very moment, or the rehearsal ends
        return self

    def take(self, text: str) -> None:
        """Every row of it."""
        self.sizes = {}  # type: dict[int, tuple[int, int]]
        self.systems = []  # type: list[tuple[str, int, int]]
        self.mounts = []  # type: list[tuple[str, str, Table]]
        self.gone, self.hanging, self.ahead = set(), [], 0.0  # type: set[str], list[str], float
        for row in text.splitlines():
            kind, *words = row.split("\t")
            if kind == "size":
                self.sizes[int(words[0])] = (int(words[1]), int(words[2]))
            elif kind == "fs":
                self.systems.append((words[0], int(words[1]), int(words[2])))
            elif kind == "mount":
                self.mounts.append((words[0], words[1], Table(words[2])))
            elif kind == "gone":
                self.gone.add(words[0])
            elif kind == "hang":
                self.hanging.append(words[0])
            elif kind == "clock":
                self.ahead = float(words[0])

    def size(self, inode: int) -> tuple[int, int] | None:
        """Apparent and allocated bytes of a file, here or in what is mounted."""
        known = self.read().sizes.get(inode)
        for _, _, table in self.mounts if known is None else ():
            known = known or table.size(inode)
        return known


table = Table(TABLE)


def inside(path: object) -> str:
    """A path as the host sees it; '' for what is not below its root."""
    if isinstance(path, int):
        return ""
    text = os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]
    return text[len(ROOT) :] or "/" if text == ROOT or text.startswith(ROOT + "/") else ""


def below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    return folder == "/" or path == folder or path.startswith(folder + "/")


def real(path: object) -> object:
    """Where a path lies on this machine; waits while its mount hangs. Raises FileNotFoundError for what is gone."""
    known = table.read()
    if not (known.mounts or known.gone or known.hanging):
        return path
    where = inside(path)
    if not where:
        return path
    while any(below(where, folder) for folder in table.read().hanging):
        time.sleep(REREAD)
    if where in table.gone:
        raise FileNotFoundError(2, "No such file or directory", path)
    for folder, target, _ in table.mounts:
        if below(where, folder):
            return target + where[len(folder) :]
    return path


def sized(found: os.stat_result) -> os.stat_result:
    """What the table says about its size; itself where that says nothing."""
    known = table.size(found.st_ino)
    if known is None:
        return found
    fields = {name: getattr(found, name) for name in FIELDS}
    fields["st_blocks"] = known[1] // 512
    plain = list(found)
    plain[6] = known[0]
    return os.stat_result(plain, fields)


def stat(path: object, *arguments: Any, **named: Any) -> os.stat_result:
    """os.stat."""
    return sized(real_stat(real(path), *arguments, **named))


def lstat(path: object, *arguments: Any, **named: Any) -> os.stat_result:
    """os.lstat."""
    return sized(real_lstat(real(path), *arguments, **named))


def fstat(fd: int) -> os.stat_result:
    """os.fstat."""
    return sized(real_fstat(fd))


def open_(path: object, *arguments: Any, **named: Any) -> Any:
    """os.open."""
    return real_open(real(path), *arguments, **named)


def readlink(path: object, *arguments: Any, **named: Any) -> Any:
    """os.readlink."""
    return real_readlink(real(path), *arguments, **named)


def listdir(path: object = ".") -> list[str]:
    """os.listdir."""
    names = real_listdir(real(path))
    where = inside(path) if table.gone else ""
    return [name for name in names if f"{where}/{name}" not in table.gone] if where else names


def statvfs(path: object) -> Any:
    """os.statvfs of the played disk that holds the path."""
    found, where = real_statvfs(real(path)), inside(path)
    fitting = [system for system in table.systems if where and below(where, system[0])]
    if not fitting:
        return found
    _, total, free = max(fitting, key=lambda system: len(system[0]))
    plain = list(found)
    plain[0] = plain[1] = BLOCK
    plain[2], plain[3], plain[4] = total // BLOCK, free // BLOCK, free // BLOCK
    return os.statvfs_result(plain)


def now() -> float:
    """time.time by the host's clock."""
    return real_time() + table.read().ahead


for name, played in {
    "stat": stat,
    "lstat": lstat,
    "fstat": fstat,
    "open": open_,
    "statvfs": statvfs,
    "listdir": listdir,
    "readlink": readlink,
}.items():
    setattr(os, name, played)
time.time = now
