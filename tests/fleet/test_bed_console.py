"""The command itself on real hosts: one reading as JSON, and the console in a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bed.client import Bed
from bed.engines import REVISION, BedEngine
from bed.system import wait_for
from bed_fleet import fleet_text

pytestmark = pytest.mark.bed

LIMIT = 60.0
"""Seconds after which a wait has failed."""
ROWS, COLUMNS = 40, 120
SEQUENCE = re.compile(r"\x1b\[(\d+;\d+)H|(\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b[^\[]|[\x00-\x1f])|(.)", re.DOTALL)
"""A cursor position, any other control sequence, or one character of text."""
ALTERNATE_SCREEN_OFF = b"\x1b[?1049l"


@pytest.fixture
def fleet_file(bed: Bed, vllm: BedEngine, sglang: BedEngine, tmp_path: Path) -> Path:
    """fleet.toml of the bed."""
    file = tmp_path / "fleet.toml"
    file.write_text(fleet_text(bed, vllm, sglang))
    return file


@pytest.fixture(autouse=True)
def _nothing_left(bed: Bed) -> Iterator[None]:
    yield
    for host in bed.hosts:
        wait_for(lambda host=host: not host.remote_processes(), f"nothing is left on {host.name}", limit=LIMIT)  # type: ignore[misc]


def laneswap(*arguments: str) -> list[str]:
    """The command line of this environment's laneswap."""
    return [sys.executable, "-m", "console", *arguments]


def status(fleet_file: Path) -> tuple[int, dict]:  # type: ignore[type-arg]
    """Exit code and document of `laneswap status --json`."""
    argv = laneswap("status", "--json", "-f", str(fleet_file))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_status_reads_everything_once(fleet_file: Path, bed: Bed, vllm: BedEngine) -> None:
    code, document = status(fleet_file)
    assert code == 0, document["alarms"]
    assert document["rehearsal"] is False
    assert {name: host["memory"]["quality"] for name, host in document["hosts"].items()} == {
        host.name: "LIVE" for host in bed.hosts
    }
    station = document["lanes"]["station"]
    (rank,) = station["ranks"]
    assert (rank["host"], rank["container"], rank["revision"]) == (vllm.host.name, vllm.name, REVISION)
    assert station["throughput"]["value"]["kv"]["tokens"] == 6198016


def test_status_of_a_dead_lane_needs_an_operator(fleet_file: Path, vllm: BedEngine) -> None:
    vllm.host.docker("kill", vllm.name)
    code, document = status(fleet_file)
    assert (code, document["lanes"]["station"]["state"]) == (1, "down")
    assert document["lanes"]["dsv41"]["state"] == "serving"


class Terminal:
    """The console in a terminal whose other end is ours; the console sends only cells that change, `screen` has all."""

    def __init__(self, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.output = b""
        self.process = subprocess.Popen(
            laneswap(*arguments),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(slave)

    def read(self) -> bool:
        """Take what has come; False at the end of the terminal."""
        if not select.select([self.master], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.output += data
        return bool(data)

    def screen(self) -> str:
        """What stands on the screen: text at the places that the cursor was sent to; colours and modes are left out."""
        cells = [[" "] * COLUMNS for _ in range(ROWS)]
        row = column = 0
        for position, other, text in SEQUENCE.findall(self.output.decode(errors="ignore")):
            if position:
                row, column = (int(word) - 1 for word in position.split(";"))
            elif not other and row < ROWS and column < COLUMNS:
                cells[row][column], column = text, column + 1
        return "\n".join("".join(line) for line in cells)

    def until(self, text: str) -> None:
        """Read on until the text stands on the screen."""
        end = time.monotonic() + LIMIT
        while text not in self.screen():
            assert time.monotonic() < end, f"never showed {text!r}:\n{self.screen()}"
            assert self.read(), f"ended before it showed {text!r}:\n{self.screen()}"

    def ended(self) -> int:
        """Read on until the console is gone; its exit code."""
        end = time.monotonic() + LIMIT
        while self.process.poll() is None:
            assert time.monotonic() < end, "the console does not end"
            self.read()
        while self.read() and select.select([self.master], [], [], 0)[0]:
            pass
        return self.process.returncode


@pytest.fixture
def terminal(fleet_file: Path) -> Iterator[Terminal]:
    """The console, watching the bed; gone after the test, whatever happened."""
    found = Terminal("watch", "-f", str(fleet_file))
    yield found
    if found.process.poll() is None:
        found.process.kill()
        found.process.wait(LIMIT)
    os.close(found.master)


def test_the_console_shows_real_hosts_and_a_fault_and_leaves_nothing(
    terminal: Terminal, bed: Bed, vllm: BedEngine
) -> None:
    for host in bed.hosts:
        terminal.until(host.name)
    terminal.until(REVISION[:7])
    terminal.until("66.3 tok/s")
    assert "REHEARSAL" not in terminal.screen()
    vllm.host.docker("kill", vllm.name)
    terminal.until("DOWN")
    terminal.process.send_signal(signal.SIGHUP)
    assert terminal.ended() == 128 + signal.SIGHUP
    assert ALTERNATE_SCREEN_OFF in terminal.output


def test_a_console_that_is_killed_leaves_no_sampler(terminal: Terminal, bed: Bed) -> None:
    terminal.until(REVISION[:7])
    wait_for(lambda: all(host.remote_processes() for host in bed.hosts), "a sampler runs on every host", limit=LIMIT)
    terminal.process.kill()
    terminal.process.wait(LIMIT)
