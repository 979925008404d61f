"""Reads a file that the operator names and that may be anything: no pipe that nobody writes to keeps us for good."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_plain(path: Path, most: int) -> tuple[os.stat_result, bytes]:
    """What is known of the file, and its first `most` bytes.

    Raises OSError, also for pipes and sockets, and ValueError for a path that cannot be one.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(descriptor)
        if stat.S_ISFIFO(info.st_mode):
            raise OSError(errno.EINVAL, "a pipe, not a file", str(path))
        if stat.S_ISDIR(info.st_mode):
            raise IsADirectoryError(errno.EISDIR, "a folder, not a file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return info, file.read(most) or b""
    finally:
        os.close(descriptor)
