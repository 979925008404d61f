"""Writes a file of laneswap's own: all of it or nothing, also when the machine dies meanwhile."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_whole(
    path: Path, data: bytes, *, mode: int = 0o600, over: bool = True, sync: Callable[[int], None] = os.fsync
) -> None:
    """The file with its permissions `mode`, and its name in the folder, are on the disk when this returns.

    Raises OSError; FileExistsError without `over` where anything has that name. What was there is then as it was.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, mode)
            sync(descriptor)
        if over:
            os.replace(name, path)
        else:
            os.link(name, path)  # never over a file that somebody else has made since
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync(folder)
    finally:
        os.close(folder)
