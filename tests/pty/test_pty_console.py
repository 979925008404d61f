"""What only a real terminal shows: signals, a closed terminal, type-ahead, escape sequences, bytes at rest."""

from __future__ import annotations

import os
import re
import signal
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pty_console import (
    ALT_SCREEN_OFF,
    ALT_SCREEN_ON,
    CURSOR_OFF,
    CURSOR_ON,
    FOCUS_OFF,
    MOUSE_OFF,
    MOUSE_ON,
    PASTE_OFF,
    PtyConsole,
)

pytestmark = pytest.mark.pty
Start = Callable[..., PtyConsole]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts consoles that are gone after the test, whatever happened."""
    started: list[PtyConsole] = []

    def begin(*arguments: str, **options: object) -> PtyConsole:
        home = {
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            **dict(options.pop("environment", {})),  # type: ignore[call-overload]
        }
        console = PtyConsole("--notes", str(tmp_path / "notes"), *arguments, environment=home, **options)  # type: ignore[arg-type]
        started.append(console)
        return console

    yield begin
    for console in started:
        console.finish()


def notes(tmp_path: Path) -> list[str]:
    file = tmp_path / "notes"
    return file.read_text().splitlines() if file.exists() else []


def ready(console: PtyConsole, tmp_path: Path) -> None:
    """The first picture is painted and the source is started."""
    console.until(lambda: "follow dsv41 n1" in notes(tmp_path), "the start of the source")
    console.until_output(b"n4")
    assert ALT_SCREEN_ON in console.output
    assert CURSOR_OFF in console.output
    assert all(mode in console.output for mode in MOUSE_ON)


def restored(output: bytes) -> bool:
    """The last word on each mode is `off`, and the cursor is shown."""
    pairs = [(ALT_SCREEN_ON, ALT_SCREEN_OFF), (CURSOR_OFF, CURSOR_ON)]
    pairs += [(mode.replace(b"l", b"h"), mode) for mode in (*MOUSE_OFF, PASTE_OFF, FOCUS_OFF)]
    return all(output.rfind(off) > output.rfind(on) for on, off in pairs)


@pytest.mark.parametrize(
    ("how", "code"),
    [(signal.SIGHUP, 129), (signal.SIGTERM, 143), (b"q", 0)],
    ids=["SIGHUP", "SIGTERM", "q"],
)
def test_every_end_restores_the_terminal_and_stops_the_source(
    start: Start, tmp_path: Path, how: signal.Signals | bytes, code: int
) -> None:
    console = start()
    ready(console, tmp_path)
    if isinstance(how, bytes):
        console.type(how)
    else:
        console.process.send_signal(how)
    assert console.ended() == code
    assert restored(bytes(console.output))
    assert notes(tmp_path)[-1] == "stop ends"


def test_the_terminals_own_modes_are_put_back(start: Start, tmp_path: Path) -> None:
    console = start()
    slave = os.open(console.slave_name, os.O_RDWR | os.O_NOCTTY)
    try:
        ready(console, tmp_path)
        assert not termios.tcgetattr(slave)[3] & termios.ECHO
        console.type(b"q")
        assert console.ended() == 0
        assert termios.tcgetattr(slave)[3] & termios.ECHO
    finally:
        os.close(slave)


def test_a_closed_terminal_ends_the_console(start: Start, tmp_path: Path) -> None:
    console = start()
    ready(console, tmp_path)
    console.close_terminal()
    assert console.gone() == 129
    assert notes(tmp_path)[-1] == "stop ends"


def test_a_closed_terminal_ends_the_console_even_where_sighup_is_ignored(start: Start, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        console = start()
    finally:
        signal.signal(signal.SIGHUP, before)
    ready(console, tmp_path)
    console.close_terminal()
    assert console.gone() == 129
    assert notes(tmp_path)[-1] == "stop ends"


def test_a_source_that_does_not_stop_cannot_hold_the_process(start: Start, tmp_path: Path) -> None:
    console = start("--hang", "--stop-limit", "0.2")
    ready(console, tmp_path)
    console.process.send_signal(signal.SIGTERM)
    assert console.ended() == 143
    assert notes(tmp_path)[-1] == "stop begins"


def test_a_thread_that_does_not_end_cannot_hold_the_process(start: Start, tmp_path: Path) -> None:
    console = start("--linger")
    ready(console, tmp_path)
    console.process.send_signal(signal.SIGTERM)
    assert console.ended() == 143
    assert restored(bytes(console.output))
    assert notes(tmp_path)[-1] == "stop ends"


def test_a_signal_during_the_start_gives_the_terminal_back(start: Start, tmp_path: Path) -> None:
    console = start()
    console.until_output(ALT_SCREEN_ON)
    console.process.send_signal(signal.SIGTERM)
    assert console.ended() == 143
    assert restored(bytes(console.output))


def test_sigterm_works_while_the_terminal_takes_nothing(start: Start, tmp_path: Path) -> None:
    console = start("--step", "0.25", "--ticks", "100000", "--tick", "0.01", columns=200, rows=60)
    ready(console, tmp_path)
    # A laptop asleep: nobody reads, until the terminal's buffer is full and long after.
    for size in (120, 200) * 20:
        console.resize(size, 60)
    slow = len(notes(tmp_path))
    console.process.send_signal(signal.SIGTERM)
    assert console.gone() == 143
    assert len(notes(tmp_path)) >= slow
    assert notes(tmp_path)[-1] == "stop ends"


def test_stop_and_continue(start: Start, tmp_path: Path) -> None:
    console = start()
    ready(console, tmp_path)
    console.process.send_signal(signal.SIGTSTP)
    console.until(console.stopped, "the stop")
    console.settle()
    assert restored(bytes(console.output))
    mark = len(console.output)
    console.process.send_signal(signal.SIGCONT)
    console.until_output(ALT_SCREEN_ON, mark)
    console.until_output(b"n4", mark)
    console.type(b"q")
    assert console.ended() == 0
    assert restored(bytes(console.output))


def test_sigstop_and_continue_reads_every_key_once(start: Start, tmp_path: Path) -> None:
    console = start()
    ready(console, tmp_path)
    console.process.send_signal(signal.SIGSTOP)
    console.until(console.stopped, "the stop")
    mark = len(console.output)
    console.process.send_signal(signal.SIGCONT)
    # Keys typed before the terminal is taken again are thrown away with the rest of its old input.
    console.until_output(b"\x1b[?1049h", mark)
    console.until_output(b"n4", console.output.find(b"\x1b[?1049h", mark))
    console.type(b"zzz")
    console.until(lambda: b"row copies" not in bytes(console.output[mark:])[-2000:], "the zoom")
    console.type(b"q")
    assert console.ended() == 0
    assert restored(bytes(console.output))


def test_type_ahead_of_a_guarded_key_and_yes_does_nothing(start: Start, tmp_path: Path) -> None:
    console = start(columns=120, rows=40)
    ready(console, tmp_path)
    before = notes(tmp_path)
    mark = len(console.output)
    for data in (b"Ry", b"R\r", b"B\r\r", b"Dyyy", b"S \n", b"\x1b[200~Ry\r\x1b[201~"):
        console.type(data)
    console.until_output(b"read-only", mark)
    assert notes(tmp_path) == before
    console.type(b"q")
    assert console.ended() == 0
    assert notes(tmp_path)[len(before) :] == ["stop begins", "stop ends"]


def test_a_line_typed_fast_is_text_from_its_first_letter(start: Start, tmp_path: Path) -> None:
    console = start(columns=120, rows=40)
    ready(console, tmp_path)
    mark = len(console.output)
    console.type(b":qzpq")
    console.until_output(b"qzpq", mark)
    console.type(b"\x1b")
    console.settle()
    assert console.process.poll() is None
    mark = len(console.output)
    console.type(b":xyzzy\r")
    console.until_output(b"no command 'xyzzy'", mark)
    assert console.quit() == 0


def test_ctrl_c_does_not_end_the_console(start: Start, tmp_path: Path) -> None:
    console = start(columns=120, rows=40)
    ready(console, tmp_path)
    mark = len(console.output)
    console.type(b"\x03")
    console.until_output(b"q quits", mark)
    for key in (b"\x03", b"\x1b", b"\x03", b"\x1b"):
        console.type(key)
        console.settle()
        assert console.process.poll() is None
    assert console.quit() == 0


def test_hostile_texts_never_reach_the_terminal_as_sequences(start: Start, tmp_path: Path) -> None:
    console = start("--picture", "hostile", columns=200, rows=60)
    console.until(lambda: "follow dsv41 n1" in notes(tmp_path), "the start of the source")
    esc = b"\x1b"
    pasted = b"\x1b[200~\x1b]52;c;eA==\x07\x1b[2Jq\x1b[201~"
    for keys in (b"?", esc, b"x", esc, b"l", esc, b"z", esc, b"/n3\r", b"a", b":lane ", pasted, b"\r", esc):
        console.type(keys)
        console.settle()
    assert console.quit() == 0
    # Textual's own: the shape of the mouse pointer.
    output = re.sub(rb"\x1b\]22;[a-z]*\x07", b"", bytes(console.output))
    for sequence in (b"\x1b]52", b"\x1b]0;", b"\x1b[2J", b"\xc2\x9b", b"\xc2\x90", b"\x07"):
        at = output.find(sequence)
        assert at < 0, output[max(0, at - 200) : at + 40]
    assert "\u202e".encode() not in output


def test_nothing_is_written_while_nothing_changes(start: Start, tmp_path: Path) -> None:
    console = start("--ticks", "60", "--tick", "0.05", columns=120, rows=40)
    ready(console, tmp_path)
    console.until(lambda: "tick 5" in notes(tmp_path), "five ticks")
    while console.read(0.2):
        if "tick 60" in notes(tmp_path):
            break
    mark = len(console.output)
    console.until(lambda: "tick 60" in notes(tmp_path), "sixty ticks")
    assert len(console.output) == mark


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40), (200, 60)])
def test_bytes_at_rest(start: Start, tmp_path: Path, columns: int, rows: int) -> None:
    """A fleet at rest, 20 s of its time: only clock and ages change."""
    console = start("--step", "0.25", "--ticks", "85", "--tick", "0.05", columns=columns, rows=rows)
    ready(console, tmp_path)
    console.until(lambda: "tick 5" in notes(tmp_path), "five ticks")
    mark = len(console.output)
    console.until(lambda: "tick 85" in notes(tmp_path), "85 ticks")
    console.read(0.3)
    assert len(console.output) - mark < 20 * 1536


def test_first_paint_comes_before_the_heavy_libraries(start: Start, tmp_path: Path) -> None:
    console = start()
    ready(console, tmp_path)
    assert "heavy " in notes(tmp_path)


def test_no_colour_sends_no_colour(start: Start, tmp_path: Path) -> None:
    console = start("--picture", "trouble", "--ascii", environment={"NO_COLOR": "1"})
    ready(console, tmp_path)
    console.type(b"q")
    assert console.ended() == 0
    output = bytes(console.output)
    attributes = {code for codes in re.findall(rb"\x1b\[([\d;]*)m", output) for code in codes.split(b";")}
    assert attributes and attributes <= {b"", b"0", b"1", b"2", b"3", b"4", b"7"}, "no colour code among them"
    assert b"CRIT" in output
    assert output.decode().isascii()
