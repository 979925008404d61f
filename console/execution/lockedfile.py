"""Files that several processes of one account append to: opened under a lock, lines whole or not there, on the disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LOCK_S = 5.0
"""Seconds to wait for another process that writes."""
LOCK_POLL_S = 0.01

Sync = Callable[[int], None]
"""Puts an open file onto the disk: `os.fsync`."""


@contextlib.contextmanager
def locked(file: Path, sync: Sync, *, write: bool) -> Iterator[int]:
    """The file, opened and locked; made where it is to be written. Raises OSError."""
    if write:
        make_folder(file.parent, sync)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT if write else os.O_RDONLY | os.O_NONBLOCK
    until = time.monotonic() + LOCK_S
    while True:
        descriptor = os.open(file, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _own(descriptor, file, write)
            _lock(descriptor, fcntl.LOCK_EX if write else fcntl.LOCK_SH, until, file)
            if _same(descriptor, file):
                yield descriptor
                return
        finally:
            os.close(descriptor)
        # it was moved aside between opening and locking: what has its name now is the file
        if time.monotonic() >= until:
            raise TimeoutError(errno.ETIMEDOUT, "it is moved aside again and again", str(file))


def append_whole(descriptor: int, raw: bytes, end: int, sync: Sync) -> None:
    """Append `raw`, onto the disk, to a file that ends at `end`; cut back to that if it fails. Raises OSError."""
    written = 0
    try:
        while written < len(raw):
            written += os.write(descriptor, raw[written:])
        sync(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, end)
            os.fsync(descriptor)
        raise


def replace_tail(file: Path, raw: bytes, end: int, sync: Sync) -> None:
    """Write `raw` over what stands behind `end`, and only then cut the rest: at no moment are both gone."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        written = 0
        while written < len(raw):
            written += os.pwrite(descriptor, raw[written:], end + written)
        os.ftruncate(descriptor, end + len(raw))
        sync(descriptor)
    finally:
        os.close(descriptor)


def keep(file: Path, data: bytes, sync: Sync) -> None:
    """Append bytes to a file of the owner's alone. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(file, flags, 0o600)
    try:
        append_whole(descriptor, data, os.fstat(descriptor).st_size, sync)
    finally:
        os.close(descriptor)
    sync_folder(file.parent, sync)


def make_folder(folder: Path, sync: Sync) -> None:
    """The folder and those above it, each on the disk, the owner's alone. Raises OSError."""
    if folder.is_dir():
        return
    make_folder(folder.parent, sync)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    sync_folder(folder.parent, sync)


def sync_folder(folder: Path, sync: Sync) -> None:
    """The names in a folder are on the disk when this returns. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def _own(descriptor: int, file: Path, write: bool) -> None:
    """A plain file, and where it is ours and written nobody else's. Raises OSError."""
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "not a file", str(file))
    if write and info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) & 0o077:
        os.fchmod(descriptor, 0o600)


def _lock(descriptor: int, kind: int, until: float, file: Path) -> None:
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise TimeoutError(errno.ETIMEDOUT, "another console holds its lock", str(file)) from None
            time.sleep(LOCK_POLL_S)


def _same(descriptor: int, file: Path) -> bool:
    ours = os.fstat(descriptor)
    try:
        named = os.stat(file, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino)


def rows(descriptor: int, most: int, start: int = 0) -> Iterator[tuple[bytes, int]]:
    """(line with its end, offset behind it) from `start` on; of one that is longer than `most` the begin."""
    with open(os.dup(descriptor), "rb") as file:
        file.seek(start)
        while raw := file.readline(most + 1):
            rest = raw
            while len(rest) > most and not rest.endswith(b"\n"):
                rest = file.readline(most + 1)
            yield raw, file.tell()
