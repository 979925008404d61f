"""The strip in a real terminal: what is typed ahead, pasted, clicked, stopped, resized or stalled sends nothing."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pty_console import PtyConsole
from screen import screen

pytestmark = pytest.mark.pty
Start = Callable[..., PtyConsole]
LETTERS = "cfgjkmtu"
EVERY_BYTE = bytes(byte for byte in range(256) if byte not in b"\x11\x13\x1a")
"""All but ctrl+z, ctrl+q and ctrl+s, which stop a terminal."""


@pytest.fixture
def acted(tmp_path: Path) -> Path:
    """Written by the console's hands as soon as anything is done; must never be there where nothing may be sent."""
    return tmp_path / "acted"


@pytest.fixture
def start(tmp_path: Path, acted: Path) -> Iterator[Start]:
    """Starts consoles that can act, each gone after the test."""
    started: list[PtyConsole] = []

    def begin(*arguments: str, patient: bool = True, **options: object) -> PtyConsole:
        """Patient, unless it is the test that has the screen stand still: a busy machine does that to any screen."""
        home = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}
        given = ("--notes", str(tmp_path / "notes"), "--acts", str(acted), "--picture", "under-way", *arguments)
        given = (*given, "--patient") if patient else given
        sized = {"columns": 120, "rows": 40, **options}
        console = PtyConsole(*given, environment=home, **sized)  # type: ignore[arg-type]
        started.append(console)
        console.until(lambda: "hands" in notes(tmp_path), "the start of the hands")
        return console

    yield begin
    for console in started:
        console.finish()


def notes(tmp_path: Path) -> list[str]:
    file = tmp_path / "notes"
    return file.read_text().splitlines() if file.exists() else []


def shown(console: PtyConsole) -> str:
    """What the terminal shows now; all tests but one are at this size."""
    return "\n".join(screen(bytes(console.output), 120, 40))


def says(console: PtyConsole, words: str) -> None:
    """Wait until the terminal shows these words."""
    console.until(lambda: words in shown(console), words)


def letter(console: PtyConsole) -> str:
    """The letter of the strip that is armed, once it is shown."""
    pattern = re.compile(r"every key but ([a-z]) cancels")
    console.until(lambda: pattern.search(shown(console)) is not None, "the letter")
    found = pattern.search(shown(console))
    assert found is not None and found[1] in LETTERS
    return found[1]


def opened(console: PtyConsole, key: bytes = b"B") -> str:
    """Press a guarded key and wait for its letter."""
    console.type(key)
    return letter(console)


def cancelled(console: PtyConsole, words: str = "CANCELLED") -> None:
    """Wait until it is said that the strip was cancelled."""
    says(console, words)
    says(console, "Nothing was sent.")


def test_the_letter_goes(start: Start, acted: Path) -> None:
    console = start()
    key = opened(console, b"S")
    assert not acted.exists()
    console.type(key.encode() * 3)
    says(console, "done: act")
    assert [line.split()[:2] for line in acted.read_text().splitlines()] == [["act", "stop"]]
    assert console.quit() == 0


def test_a_countdown_that_nobody_touches_goes_and_rings(start: Start, acted: Path) -> None:
    console = start()
    mark = len(console.output)
    console.type(b"B")
    says(console, "done: act")
    assert b"\x07" in console.output[mark:]
    assert [line.split()[:2] for line in acted.read_text().splitlines()] == [["act", "rollback"]]
    assert console.quit() == 0


@pytest.mark.parametrize("key", [b"B", b"S", b"D", b"R"])
def test_type_ahead_of_every_byte_never_confirms(start: Start, acted: Path, key: bytes) -> None:
    console = start()
    console.type(key + EVERY_BYTE)
    cancelled(console)
    console.rest()
    # What came after the cancelled strip was dropped: q did not quit, no screen, line or other strip was opened.
    says(console, "in the window: one letter")
    assert "1 nodes" in shown(console) and not acted.exists()
    assert opened(console, key), "it still works"
    assert console.quit() == 0
    assert not acted.exists()


def test_type_ahead_of_each_letter_cancels(start: Start, acted: Path) -> None:
    console = start()
    for key in (*LETTERS, "\r", " ", "y"):
        console.type(b"B" + key.encode())
        cancelled(console)
        console.rest()
    assert not acted.exists()
    assert console.quit() == 0


def test_the_lanes_name_typed_ahead_cancels(start: Start, acted: Path) -> None:
    console = start("--situation", "no-window")
    console.type(b"Bdsv41\r")
    cancelled(console)
    console.rest()
    assert "1 nodes" in shown(console) and not acted.exists(), "d did not open the dry run"
    console.type(b"B")
    says(console, "type the lane name")
    console.type(b"dsv41\r")
    says(console, "done: act")
    assert len(acted.read_text().splitlines()) == 1


@pytest.mark.parametrize("rest", [b"41\rqq", b"41\rdSBw:q\r"])
def test_the_rest_of_a_name_acts_on_nothing_once_the_strip_has_cancelled_by_itself(
    start: Start, acted: Path, rest: bytes
) -> None:
    console = start("--situation", "no-window")
    console.type(b"B")
    says(console, "type the lane name")
    console.type(b"dsv")
    console.resize(120, 41)
    console.until_output(b"the terminal was resized. Nothing was sent.")
    for byte in rest:
        console.type(bytes([byte]))
        console.read(0.2)
    console.until_output(b"Keys are dropped until none came for 1 s.")
    assert console.process.poll() is None, "q did not quit"
    console.resize(120, 40)
    says(console, "1 nodes")
    assert "dry run" not in shown(console) and not acted.exists()
    assert console.quit() == 0, "after a second without a key it does"


def test_what_follows_the_name_acts_on_nothing_once_it_went(start: Start, acted: Path) -> None:
    console = start("--situation", "no-window")
    console.type(b"B")
    says(console, "type the lane name")
    console.type(b"dsv41\r\rqdw")
    says(console, "done: act")
    console.rest()
    assert console.process.poll() is None and "1 nodes" in shown(console)
    assert len(acted.read_text().splitlines()) == 1
    assert console.quit() == 0


def test_a_countdown_cancelled_at_its_end_by_q_does_not_quit(start: Start, acted: Path) -> None:
    console = start()
    opened(console)
    console.type(b"qqqq")
    cancelled(console, "CANCELLED by q")
    console.rest()
    assert console.process.poll() is None and not acted.exists()


def test_q_is_asked_for_twice_where_it_would_cut_what_runs_here(start: Start, acted: Path) -> None:
    console = start("--carries", "dsv41")
    console.type(b"q")
    says(console, "q again cuts dsv41 after the step under way (HALF DONE)")
    assert console.process.poll() is None
    console.type(b"q")
    assert console.ended() == 0


def test_a_held_key_never_confirms(start: Start, acted: Path) -> None:
    console = start()
    for _ in range(30):
        console.type(b"B")
        console.read(0.05)
    assert not acted.exists()
    assert "CANCELLED" not in shown(console), "repeats only restart the dead time"
    letter(console)
    console.type(b"B")
    cancelled(console)
    assert not acted.exists()


def test_a_stalled_loop_cancels(start: Start, acted: Path) -> None:
    console = start("--stall", patient=False)
    key = opened(console)
    console.process.send_signal(signal.SIGUSR1)
    console.type(key.encode())
    cancelled(console)
    assert not acted.exists()
    assert console.quit() == 0


def test_a_loop_that_stalls_in_the_dead_time_takes_no_key_made_in_it(start: Start, acted: Path) -> None:
    console = start("--stall", patient=False)
    console.type(b"B")
    says(console, "no key counts yet")
    console.process.send_signal(signal.SIGUSR1)
    console.type(LETTERS.encode())
    cancelled(console)
    console.settle()
    assert not acted.exists()


def test_stopped_and_continued_it_cancels(start: Start, acted: Path) -> None:
    console = start(patient=False)
    key = opened(console)
    console.process.send_signal(signal.SIGSTOP)
    console.until(console.stopped, "the stop")
    console.type(key.encode())
    resume = time.monotonic() + 1.2
    while time.monotonic() < resume:
        console.read(0.1)
    console.process.send_signal(signal.SIGCONT)
    cancelled(console)
    console.settle()
    assert not acted.exists()
    assert console.quit() == 0


def test_stopped_for_a_moment_and_continued_it_cancels_too(start: Start, acted: Path) -> None:
    console = start()
    key = opened(console)
    console.process.send_signal(signal.SIGSTOP)
    console.until(console.stopped, "the stop")
    console.process.send_signal(signal.SIGCONT)
    console.type(key.encode())
    cancelled(console)
    assert not acted.exists()


def test_continued_in_the_middle_of_a_write_it_cancels_and_goes_on(start: Start, acted: Path) -> None:
    """The terminal is taken again with writes of its own, which must not wait for the one that was interrupted."""
    console = start("--continued")
    opened(console)
    console.process.send_signal(signal.SIGUSR1)
    cancelled(console, "CANCELLED: the console was away")
    assert not acted.exists()
    assert console.quit() == 0


def test_a_resize_cancels(start: Start, acted: Path) -> None:
    console = start()
    opened(console)
    mark = len(console.output)
    console.resize(118, 40)
    console.until_output(b"the terminal was resized. Nothing was sent.", mark)
    assert not acted.exists()


def test_a_paste_cancels(start: Start, acted: Path) -> None:
    console = start()
    key = opened(console)
    console.type(b"\x1b[200~" + key.encode() + b"\r\x1b[201~")
    cancelled(console, "CANCELLED by a paste")
    assert not acted.exists()


def test_a_click_cancels_and_a_moving_mouse_does_not(start: Start, acted: Path) -> None:
    console = start()
    opened(console, b"S")
    for column in range(20, 60, 5):
        console.type(f"\x1b[<35;{column};30M".encode())
    console.type(b"\x1b[I\x1b[O\x1b[I")
    console.settle()
    assert "every key but" in shown(console)
    console.type(b"\x1b[<0;10;32M\x1b[<0;10;32m")
    cancelled(console, "CANCELLED by a click")
    assert not acted.exists()


def test_a_closed_terminal_sends_nothing(start: Start, acted: Path) -> None:
    console = start()
    opened(console)
    console.close_terminal()
    assert console.gone() == 129
    assert not acted.exists()


def test_a_terminal_that_takes_nothing_stops_the_countdown(start: Start, acted: Path) -> None:
    console = start("--tick", "0.02", "--step", "0.5", "--ticks", "100000", patient=False, columns=200, rows=60)
    console.type(b"B")
    # Nobody reads any more: the terminal's buffer fills, and what the strip says is seen by nobody.
    for size in (198, 200) * 40:
        console.resize(size, 60)
    end = time.monotonic() + 6.0
    while time.monotonic() < end and not acted.exists():
        time.sleep(0.1)
    assert not acted.exists()
    os.kill(console.process.pid, signal.SIGTERM)
    assert console.gone() == 143
