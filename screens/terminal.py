"""The terminal as the console needs it: writing never holds the console up, and a lost terminal is noticed."""

from __future__ import annotations

import codecs
import contextlib
import functools
import os
import select
import sys
import termios
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from screens.paste import PasteSafeParser

if TYPE_CHECKING:
    from textual.app import App

PATIENCE = 1.0
"""Seconds without room in the terminal's buffer after which output is dropped until there is room again."""
AFTER_A_CUT = b"\x18\x1b\\\x1b[?2026l\x1b[0m"
"""CAN ends a sequence cut in its middle; then the end of a string, of a synchronised update, of all attributes."""


class TerminalFile:
    """What the writer thread writes to. Never raises and never blocks for longer than PATIENCE.

    A stalled terminal (a laptop asleep behind ssh, a frozen multiplexer) would otherwise fill the writer's queue and
    stop the event loop: no sampling, no heartbeat, no signal handling.
    """

    def __init__(self, fileno: int, on_recovered: Callable[[], None], patience: float = PATIENCE) -> None:
        self._fileno = fileno
        self._own = _own_description(fileno)
        self._on_recovered = on_recovered
        self._patience = patience
        self.stalled = False
        self.lost = False
        self.written = 0
        """How many pieces were written or dropped."""

    def write(self, text: str) -> int:
        """Write text, or drop it while the terminal takes nothing."""
        try:
            return self._write(text)
        finally:
            self.written += 1

    def _write(self, text: str) -> int:
        data = text.encode("utf-8", "replace")
        if self.lost or (self.stalled and not self._room(0.0)):
            return len(text)
        if self.stalled:
            self.stalled = False
            data = AFTER_A_CUT + data
            self._on_recovered()
        self._send(memoryview(data))
        return len(text)

    def flush(self) -> None:
        """Nothing is buffered here."""

    def fileno(self) -> int:
        """The terminal's file descriptor."""
        return self._fileno

    def isatty(self) -> bool:
        """Whether this is a terminal at all."""
        return os.isatty(self._fileno)

    def _send(self, data: memoryview) -> None:
        while data:
            try:
                data = data[os.write(self._own, data[:4096]) :]
            except BlockingIOError:
                if not self._room(self._patience):
                    self.stalled = True
                    return
            except OSError:
                self.lost = True
                return

    def _room(self, wait: float) -> bool:
        poller = select.poll()
        poller.register(self._own, select.POLLOUT)
        end = time.monotonic() + wait
        while True:
            ready = poller.poll(max(0.0, end - time.monotonic()) * 1000)
            if ready:
                return bool(ready[0][1] & (select.POLLOUT | select.POLLERR | select.POLLHUP))
            if time.monotonic() >= end:
                return False


def _output() -> int:
    """The descriptor to draw on: stderr as Textual does, stdout where stderr goes to a file."""
    streams = [stream for stream in (sys.__stderr__, sys.__stdout__) if stream is not None]
    return next((s.fileno() for s in streams if s.isatty()), streams[0].fileno())


def _own_description(fileno: int) -> int:
    """A descriptor of our own on the same terminal: O_NONBLOCK on the inherited one would hit the shell too."""
    try:
        return os.open(os.ttyname(fileno), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return os.dup(fileno)


def _forgiving_decoder(encoding: str) -> Callable[[], codecs.IncrementalDecoder]:
    """A decoder that puts U+FFFD in the place of bytes that are no text."""
    return functools.partial(codecs.getincrementaldecoder(encoding), "replace")


class ConsoleDriver(LinuxDriver):
    """Textual's driver with an output that cannot block and with notice of a lost terminal."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        self.away = 0
        """How often the terminal was taken again: after SIGSTOP, ctrl+z, or a while in which it took nothing."""
        super().__init__(app, **options)
        # The driver takes both by these names. Its own decoder ends the input, and with it the console, at the first
        # byte that is no UTF-8: noise on a line, or a terminal of another encoding.
        vars(linux_driver)["XTermParser"] = PasteSafeParser
        vars(linux_driver)["getincrementaldecoder"] = _forgiving_decoder
        self._terminal = TerminalFile(_output(), self._recovered)
        self._file = cast(Any, self._terminal)
        self._handed = 0

    @property
    def lost(self) -> bool:
        """The terminal is gone: hung up, or its other end closed."""
        if not self.input_tty:
            return self._terminal.lost
        try:
            termios.tcgetattr(self.fileno)
        except (termios.error, OSError):
            return True
        return self._terminal.lost

    @property
    def stalled(self) -> bool:
        """The terminal takes nothing at the moment, so that drawing would be for nobody."""
        return self._terminal.stalled

    @property
    def caught_up(self) -> bool:
        """All that was drawn has gone out to the terminal."""
        return not self._terminal.stalled and not self._terminal.lost and self._terminal.written >= self._handed

    def write(self, data: str) -> None:
        """Hand text to the writer's thread."""
        super().write(data)
        self._handed += 1

    def run_input_thread(self) -> None:
        """Read keys until the end; a terminal that went away ends the reading, not the console."""
        try:
            super().run_input_thread()
        except OSError:
            self._terminal.lost = True

    def _get_terminal_size(self) -> tuple[int, int]:
        """The terminal's own word; LINES and COLUMNS, which wrappers export and nobody updates, only without one."""
        try:
            size = os.get_terminal_size(self._terminal.fileno())
        except OSError:
            return super()._get_terminal_size()
        return (size.columns, size.lines) if size.columns and size.lines else super()._get_terminal_size()

    # A signal may come in the middle of a write, and giving or taking the terminal writes, too: a handler that did it
    # at once would wait without end for a lock that the interrupted write holds. Only the loop does it.

    def _sigtstp_application(self, *_: Any) -> None:
        self._soon(super()._sigtstp_application)

    def _sigcont_application(self, *_: Any) -> None:
        self.away += 1  # at once: keys that are read before the loop gets round to it were made on an old screen
        self._soon(super()._sigcont_application)

    def _soon(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # a loop that has ended needs the terminal no more
            self._loop.call_soon_threadsafe(work)

    def resume_application_mode(self) -> None:
        """Take the terminal again and paint it. After SIGSTOP, which nobody can catch, it was never given back."""
        if self._key_thread is not None and self._key_thread.is_alive():
            self.suspend_application_mode()
        super().resume_application_mode()
        self._recovered()

    def _recovered(self) -> None:
        self.away += 1
        self._loop.call_soon_threadsafe(self._app.refresh)
