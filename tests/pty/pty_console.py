"""Runs the console in a real pseudo-terminal and remembers every byte it wrote there."""

from __future__ import annotations

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

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("console_child.py")
WAIT = 90.0
"""Bound of every wait, seconds; long, because machines that run tests are busy."""
SETTLE = 5.0
"""Seconds after which the picture of a live fleet is taken as it is."""

ALT_SCREEN_ON, ALT_SCREEN_OFF = b"\x1b[?1049h", b"\x1b[?1049l"
CURSOR_OFF, CURSOR_ON = b"\x1b[?25l", b"\x1b[?25h"
MOUSE_ON = tuple(f"\x1b[?{mode}h".encode() for mode in (1000, 1003, 1015, 1006))
MOUSE_OFF = tuple(f"\x1b[?{mode}l".encode() for mode in (1000, 1003, 1015, 1006))
PASTE_OFF, FOCUS_OFF = b"\x1b[?2004l", b"\x1b[?1004l"
NOT_INHERITED = ("NO_COLOR", "COLORTERM", "TMUX", "STY", "VTE_VERSION", "TEXTUAL", "TEXTUAL_THEME", "LINES", "COLUMNS")
"""Of the test's own terminal. Under a terminal readline exports its size, which would go before that of the pty."""


class PtyConsole:
    """One console process with the other end of its terminal in our hands."""

    def __init__(
        self,
        *arguments: str,
        columns: int = 80,
        rows: int = 24,
        environment: dict[str, str] | None = None,
        program: tuple[str, ...] = (str(CHILD),),
    ) -> None:
        self.master, slave = pty.openpty()
        self.output = bytearray()
        self.resize(columns, rows)
        self.modes_before = termios.tcgetattr(slave)
        env = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        env |= {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        env |= environment or {}
        self.slave_name = os.ttyname(slave)
        self.process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            cwd="/",
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size; a running console gets SIGWINCH from the kernel."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, data: bytes) -> None:
        """Write keys in one piece, as type-ahead does."""
        os.write(self.master, data)

    def read(self, seconds: float = 0.05) -> bytes:
        """What arrives within a moment; '' at the end of the terminal."""
        if not select.select([self.master], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return b""
        self.output += data
        return data

    def until(self, done: Callable[[], bool], what: str) -> None:
        """Read on until `done`. Fails after WAIT seconds."""
        end = time.monotonic() + WAIT
        while not done():
            if time.monotonic() > end:
                raise AssertionError(f"waited {WAIT} s for {what}; output ends {bytes(self.output[-600:])!r}")
            self.read()

    def until_output(self, text: bytes, start: int = 0) -> None:
        """Read on until the output from `start` holds the text."""
        self.until(lambda: self.output.find(text, start) >= 0, repr(text))

    def ended(self) -> int:
        """Read on until the process is gone; its exit code, negative for a signal that killed it."""
        self.until(lambda: self.process.poll() is not None, "the end of the process")
        while self.read(0.05):
            pass
        return self.process.returncode

    def stopped(self) -> bool:
        """Whether the process is stopped, as a shell sees it before it goes on."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def settle(self) -> None:
        """Read until nothing more comes for a while; a live fleet may never rest, so for SETTLE seconds at most."""
        end = time.monotonic() + SETTLE
        while self.read(0.3) and time.monotonic() < end:
            pass

    def rest(self, seconds: float = 1.2) -> None:
        """Press nothing for so long that keys count again after a strip; less if the process ends."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)

    def quit(self) -> int:
        """Press q, again if an Esc before it made it alt+q or it was dropped after a strip; the exit code."""
        end = time.monotonic() + WAIT
        while self.process.poll() is None and time.monotonic() < end:
            self.type(b"q")
            self.rest()
        return self.ended()

    def close_terminal(self) -> None:
        """Close our end, as a lost ssh connection does."""
        os.close(self.master)
        self.master = -1

    def gone(self) -> int:
        """Wait for the process without a terminal to read from."""
        return self.process.wait(timeout=WAIT)

    def finish(self) -> None:
        """End what is still there."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(timeout=WAIT)
        if self.master >= 0:
            os.close(self.master)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
