"""Which operations a living console of this machine is just beginning: between their intent and their first command.

A lock that the console's own death lets go tells it, so that an intent without an operation is written off only once
nobody can still make one of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

FOLDER = "beginning"
"""Beside the ledger; one empty file an operation that is being begun, and one a lane, `@NAME`."""
WAIT_S = 2.0
"""Seconds that one beginning waits for another one of the same lane to be over."""
_POLL_S = 0.05


@contextlib.contextmanager
def beginning(ledger: Path, op: str) -> Iterator[None]:
    """Held while an operation is begun. Where no file can be made nobody is told: the ledger says why."""
    file = ledger.parent / FOLDER / op
    descriptor = -1
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
        if descriptor >= 0:
            os.close(descriptor)


@contextlib.asynccontextmanager
async def alone(ledger: Path, lane: str, *, wait: float | None = None) -> AsyncIterator[bool]:
    """One beginning at a time on a lane: consoles of one operator here share its lease, so that no fence parts them.
    False where another one is at it still after `wait` seconds, WAIT_S if left out; True also where no file can be
    made."""
    descriptor = -1
    with contextlib.suppress(OSError):
        folder = ledger.parent / FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(folder / f"@{lane}", flags, 0o600)
    try:
        yield descriptor < 0 or await _locked(descriptor, WAIT_S if wait is None else wait)
    finally:
        if descriptor >= 0:
            os.close(descriptor)


async def _locked(descriptor: int, wait: float) -> bool:
    for _ in range(max(1, round(wait / _POLL_S))):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(_POLL_S)
        except OSError:  # a file system without locks
            return True
        else:
            return True
    return False


def is_beginning(ledger: Path, op: str) -> bool:
    """Whether a console that lives is beginning it. True also where that cannot be told."""
    try:
        descriptor = os.open(ledger.parent / FOLDER / op, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
