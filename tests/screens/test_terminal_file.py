"""Output to a terminal that takes nothing, that takes it later, or that is gone."""

from __future__ import annotations

import os
import pty
import threading
import tty

import pytest

from screens.terminal import AFTER_A_CUT, TerminalFile


class Terminal:
    """Both ends of a pseudo-terminal."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.recovered = threading.Event()
        self.file = TerminalFile(self.slave, self.recovered.set, patience=0.05)

    def drain(self) -> bytes:
        """Everything that is there to read."""
        os.set_blocking(self.master, False)
        taken = bytearray()
        try:
            while data := os.read(self.master, 65536):
                taken += data
        except BlockingIOError:
            pass
        return bytes(taken)


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_what_is_written_arrives(terminal: Terminal) -> None:
    terminal.file.write("h\u00e9llo")
    assert terminal.drain() == "h\u00e9llo".encode()
    assert not terminal.file.stalled


def test_a_stalled_terminal_drops_output_and_recovers_with_a_clean_start(terminal: Terminal) -> None:
    terminal.file.write("x" * 500_000)
    assert terminal.file.stalled
    terminal.file.write("dropped")
    assert not terminal.recovered.is_set()
    taken = terminal.drain()
    assert b"dropped" not in taken and len(taken) < 500_000
    terminal.file.write("back")
    assert terminal.recovered.is_set()
    assert not terminal.file.stalled
    assert terminal.drain() == AFTER_A_CUT + b"back"


def test_a_closed_terminal_is_lost_and_never_raises(terminal: Terminal) -> None:
    os.close(terminal.master)
    terminal.file.write("anyone?")
    assert terminal.file.lost
    terminal.file.write("still nobody")


def test_the_inherited_descriptor_keeps_blocking(terminal: Terminal) -> None:
    assert os.get_blocking(terminal.slave)


def test_output_that_is_no_terminal_is_written_as_it_is() -> None:
    reader, writer = os.pipe()
    file = TerminalFile(writer, lambda: None)
    file.write("plain")
    assert os.read(reader, 100) == b"plain"
    assert not file.isatty()


def test_what_was_written_and_what_was_dropped_is_counted() -> None:
    master, slave = pty.openpty()
    file = TerminalFile(slave, lambda: None, patience=0.05)
    file.write("x")
    assert file.written == 1
    while not file.stalled:
        file.write("y" * 4096)
    count = file.written
    file.write("dropped")
    assert file.written == count + 1
    os.close(master)
    os.close(slave)
