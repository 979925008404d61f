"""The console as a user starts it: `laneswap watch` in a pseudo-terminal of its own, with every byte dated."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from bench.screen import Screen

ROOT = Path(__file__).resolve().parents[1]


class ConsoleProcess:
    """One running console. `began` is the time just before exec, monotonic."""

    def __init__(self, arguments: list[str], home: Path, *, columns: int = 120, rows: int = 40) -> None:
        self.screen = Screen(columns, rows)
        self.written = 0
        """Bytes that came to the terminal."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._master, slave = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "console", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(home),
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self.usage = psutil.Process(self.process.pid)

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def read(self, seconds: float) -> bool:
        """Take in what comes within `seconds`, at the first of it; False if nothing came or the terminal is closed."""
        if not select.select([self._master], [], [], max(0.0, seconds))[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.written += len(data)
        self.screen.feed(self._decoder.decode(data))
        return True

    def until(self, seen: Callable[[Screen], bool], limit: float) -> float:
        """Monotonic time at which `seen` became true of the screen. Raises TimeoutError with the screen."""
        end = time.monotonic() + limit
        while not seen(self.screen):
            if time.monotonic() > end or self.process.poll() is not None:
                raise TimeoutError(f"not seen within {limit:.0f} s on:\n{self.screen.text}")
            self.read(0.25)
        return time.monotonic()

    def rest(self, seconds: float) -> None:
        """Read on for `seconds`."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def cpu_seconds(self) -> float:
        """CPU time of the process so far; what it started is not in it."""
        times = self.usage.cpu_times()
        return float(times.user + times.system)

    def close(self) -> None:
        """Quit as an operator does; kill what does not go."""
        if self.process.poll() is None:
            self.type(b"q")
            end = time.monotonic() + 15
            while self.process.poll() is None and time.monotonic() < end:
                self.read(0.05)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)


def environment(home: Path) -> dict[str, str]:
    """What the console finds: a plain terminal and nobody's settings."""
    keep = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLORTERM", "LANESWAP_FLEET")}
    return keep | {
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
    }


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
