"""The head's ssh to other hosts: one connection a host for all commands of an operation, where ssh can share one.
Standard library only, nothing newer than Python 3.8: a part of the one file that runs on hosts.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time

PATIENCE = 3.0
"""Seconds that commands wait for the shared connection; without it ssh makes one of its own for each, by itself."""
AGAIN = 10.0
"""Seconds before a connection that was lost, or could not be made, is tried again."""
LONGEST = 80
"""Bytes of a socket's path, to which ssh adds some."""


class Shared:
    """Connections that are kept while the runner lives. They end with it, also where it is killed: what holds one open
    on its host reads a pipe of ours."""

    def __init__(self) -> None:
        """Makes nothing yet."""
        self._folder: str | None = None
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._masters: dict[str, subprocess.Popen[bytes]] = {}
        self._tried: dict[str, float] = {}

    def way(self, host: str, prefix: list[str]) -> list[str]:
        """What stands before a command for the host, over its shared connection, for which the first one waits."""
        if not prefix or prefix[0] != "ssh":
            return prefix
        with self._lock:
            if self._folder is None:
                self._folder = _private()
            number = list(self._locks).index(host) if host in self._locks else len(self._locks)
            lock = self._locks.setdefault(host, threading.Lock())
        if not self._folder:
            return prefix
        path = f"{self._folder}/{number}"
        with lock:
            self._keep(host, prefix, path)
        # where the socket is gone ssh connects by itself
        return [prefix[0], "-o", f"ControlPath={path}", *prefix[1:]]

    def close(self) -> None:
        """End them."""
        for master in self._masters.values():
            if master.stdin is not None:
                with contextlib.suppress(OSError):
                    master.stdin.close()
            with contextlib.suppress(OSError):
                master.terminate()
        for master in self._masters.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                master.wait(1.0)
        if self._folder:
            with contextlib.suppress(OSError):
                os.rmdir(self._folder)

    def _keep(self, host: str, prefix: list[str], path: str) -> None:
        master = self._masters.get(host)
        if master is not None and master.poll() is None:
            return
        if time.monotonic() - self._tried.get(host, float("-inf")) < AGAIN:
            return
        self._tried[host] = time.monotonic()
        argv = [
            prefix[0],
            "-o",
            "ControlMaster=yes",
            "-o",
            f"ControlPath={path}",
            "-o",
            "ControlPersist=no",
            *prefix[1:],
        ]
        null, pipe = subprocess.DEVNULL, subprocess.PIPE
        try:
            master = subprocess.Popen(  # noqa: S603
                [*argv, "exec cat"], stdin=pipe, stdout=null, stderr=null, start_new_session=True
            )
        except OSError:
            return
        self._masters[host] = master
        until = time.monotonic() + PATIENCE
        while not os.path.exists(path) and master.poll() is None and time.monotonic() < until:
            time.sleep(0.01)


def _private() -> str:
    """A folder that is this account's alone, '' where none can be made."""
    for place in (os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp"):  # noqa: S108 - a name that nobody knows, made as 0700
        folder = f"{place}/laneswap-{os.urandom(6).hex()}"
        if place and len(folder) < LONGEST:
            with contextlib.suppress(OSError):
                os.mkdir(folder, 0o700)
                return folder
    return ""
