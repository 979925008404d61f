"""Private folders with a lock that says one is in use: whoever is killed leaves one behind, and the next removes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

LOCK = ".lock"
SETTLED = 60.0
"""Seconds after which a folder without a holder counts as left behind: a new one is not locked in its first moment."""


_SWEPT: set[tuple[str, Path]] = set()


class PrivateFolder:
    """A new 0700 folder below `base`. The lock ends with this process however it ends. Blocking. Raises OSError."""

    def __init__(self, prefix: str, base: Path | None = None) -> None:
        base = base or Path(tempfile.gettempdir())
        if (prefix, base) not in _SWEPT:  # once: a fleet of hundreds makes hundreds of them
            _SWEPT.add((prefix, base))
            sweep(prefix, base)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        try:
            self._lock = locked(self.path)
        except OSError:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def remove(self) -> None:
        """Remove it with all that is in it; a second call does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep(prefix: str, base: Path) -> None:
    """Remove folders of ours whose process was killed before it could: nobody holds their lock."""
    for old in base.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # it is in use, or has just gone
            found = old.lstat()
            if found.st_uid == os.getuid() and not old.is_symlink() and time.time() - found.st_mtime > SETTLED:
                lock = locked(old)
                shutil.rmtree(old, ignore_errors=True)
                os.close(lock)


def locked(folder: Path) -> int:
    """The lock of a folder, as a descriptor that children do not inherit. Raises OSError where it is held."""
    handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle
