"""The file tree of one rehearsal host: real folders, links and texts; empty files whose sizes a table states."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

HOME = "/home/ops"
"""Home folder of the one user of every host."""
TABLE = "bin/sizes.tsv"
PLAYED = Path(__file__).with_name("hostpython.py")
# The sampler wants a python3: the one that runs this, told first what files of terabytes look like.
PYTHON = """#!/bin/sh
case $1 in
  -ISBc|-ISBuc) flags=$1 code=$2
    shift 2
    exec {python} "$flags" {first}"
$code" "$@" ;;
esac
exec {python} "$@"
"""
FIRST = "exec(open({played!r}).read(), {{'__name__': 'played', 'ROOT': {root!r}, 'TABLE': {table!r}}})"


@dataclass(frozen=True, slots=True)
class Sized:
    """What the table says of one file. Bytes."""

    inode: int
    apparent: int
    allocated: int


class HostFiles:
    """Files below `root`; every path given is the host's own, `~/` its user's home."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.ahead = 0.0
        """Seconds that the host's clock is ahead."""
        self._sizes: dict[str, Sized] = {}
        self._systems: dict[str, tuple[int, int]] = {}
        self._mounts: dict[str, tuple[str, str]] = {}
        self._gone: set[str] = set()
        self._hanging: set[str] = set()
        self._folders: set[str] = set()
        self._changed = True

    def install(self) -> None:
        """The host's python3, and a table of nothing."""
        python = f"{self.root}/bin/python3"
        os.makedirs(os.path.dirname(python), exist_ok=True)
        first = FIRST.format(played=str(PLAYED), root=self.root, table=f"{self.root}/{TABLE}")
        with open(python, "w") as file:
            file.write(PYTHON.format(python=shlex.quote(os.path.realpath(sys.executable)), first=shlex.quote(first)))
        os.chmod(python, stat.S_IRWXU)
        self.folder(HOME)
        self.write()

    def real(self, path: str) -> str:
        """Where a path of the host's lies on this machine."""
        return self.root + host_path(path)

    def folder(self, path: str) -> None:
        """A folder and those above it."""
        real = self.real(path)
        if real not in self._folders:
            os.makedirs(real, exist_ok=True)
            self._folders.add(real)

    def text(self, path: str, text: str, mtime: float | None = None) -> None:
        """A text file, replaced at once; `mtime` in Unix seconds by the host's clock."""
        self.folder(os.path.dirname(host_path(path)))
        real = self.real(path)
        with open(real + ".new", "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if mtime is not None:
            os.utime(real + ".new", (mtime, mtime))
        os.replace(real + ".new", real)

    def append(self, path: str, text: str) -> None:
        """Text at the end of a file."""
        self.folder(os.path.dirname(host_path(path)))
        with open(self.real(path), "a", encoding="utf-8", newline="") as file:
            file.write(text)

    def sized(self, path: str, apparent: int, allocated: int, mtime: float) -> None:
        """A file of these sizes in bytes; made where it is not there."""
        path = host_path(path)
        real, known = self.real(path), self._sizes.get(path)
        if known is None:
            self.folder(os.path.dirname(path))
            os.close(os.open(real, os.O_WRONLY | os.O_CREAT, 0o644))
            inode = os.stat(real).st_ino
        else:
            inode = known.inode
            if (known.apparent, known.allocated) == (apparent, allocated):
                return
        os.utime(real, (mtime, mtime))
        self._sizes[path] = Sized(inode, apparent, allocated)
        self._changed = True

    def link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self.folder(os.path.dirname(host_path(path)))
        os.symlink(target, self.real(path))

    def befall_folder(self, path: str, what: str) -> None:
        """Another folder stands in its place (`other`), with empty files of the same names, or it is back. Raises
        ValueError for what is no folder."""
        real = self.real(path)
        away = f"{real}.put-away"
        if what == "other" and os.path.isdir(real) and not os.path.exists(away):
            os.rename(real, away)
            os.mkdir(real)
            for name in os.listdir(away):
                if os.path.isfile(os.path.join(away, name)):
                    os.close(os.open(os.path.join(real, name), os.O_WRONLY | os.O_CREAT, 0o644))
        elif what == "back" and os.path.isdir(away):
            shutil.rmtree(real)
            os.rename(away, real)
        else:
            raise ValueError(f"path: no folder {path!r} to put away or back")
        self._folders.clear()

    def remove(self, path: str) -> None:
        """A file or a whole folder is gone; nothing if it was not there."""
        path = host_path(path)
        real = self.real(path)
        if os.path.isdir(real) and not os.path.islink(real):
            shutil.rmtree(real)
            self._folders.clear()
        elif os.path.lexists(real):
            os.unlink(real)
        for known in [name for name in self._sizes if name == path or name.startswith(path + "/")]:
            del self._sizes[known]
            self._changed = True

    def names(self, folder: str) -> list[str]:
        """What lies in a folder, in order; nothing where there is none."""
        try:
            return sorted(os.listdir(self.real(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def has(self, path: str) -> bool:
        """Whether something is there, a dangling link too."""
        return os.path.lexists(self.real(path))

    def system(self, mount: str, total: int, free: int) -> None:
        """The size of the disk mounted there, and what of it is free. Bytes."""
        mount = host_path(mount)
        if self._systems.get(mount) != (total, free):
            self._systems[mount] = (total, free)
            self._changed = True

    def mount(self, place: str, exporter: HostFiles, folder: str) -> None:
        """Another host's folder is seen at `place`, as it stands there."""
        self.folder(place)
        self._mounts[host_path(place)] = (exporter.real(folder), f"{exporter.root}/{TABLE}")
        self._changed = True

    def unmount(self, place: str) -> None:
        """Nothing is mounted there any more: an empty folder."""
        self._mounts.pop(host_path(place), None)
        self._systems.pop(host_path(place), None)
        self._changed = True

    def hide(self, path: str, hidden: bool) -> None:
        """A file is not to be seen on this host, or is again."""
        (self._gone.add if hidden else self._gone.discard)(host_path(path))
        self._changed = True

    def hang(self, path: str, hanging: bool) -> None:
        """Whoever looks below `path` waits, or no longer."""
        (self._hanging.add if hanging else self._hanging.discard)(host_path(path))
        self._changed = True

    def set_clock(self, ahead: float) -> None:
        """The host's clock, in seconds ahead of the true one."""
        self.ahead, self._changed = ahead, True

    def write(self) -> None:
        """Replace the table, if it changed."""
        if not self._changed:
            return
        rows = [f"clock\t{self.ahead:.3f}"] if self.ahead else []
        rows += [f"hang\t{path}" for path in sorted(self._hanging)]
        rows += [f"gone\t{path}" for path in sorted(self._gone)]
        rows += [f"mount\t{place}\t{real}\t{table}" for place, (real, table) in self._mounts.items()]
        rows += [f"fs\t{mount}\t{total}\t{free}" for mount, (total, free) in self._systems.items()]
        rows += [f"size\t{item.inode}\t{item.apparent}\t{item.allocated}" for item in self._sizes.values()]
        fresh = f"{self.root}/{TABLE}.new"
        with open(fresh, "w") as file:
            file.write("\n".join(rows) + "\n")
        os.replace(fresh, f"{self.root}/{TABLE}")
        self._changed = False


def host_path(path: str) -> str:
    """A path of the host's with its home folder written out."""
    return HOME + path[1:] if path == "~" or path.startswith("~/") else path
