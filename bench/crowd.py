"""256 hosts at 1 Hz: what the console costs, and how soon a key shows."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from functools import partial

from bench.console_process import ConsoleProcess
from bench.figures import Figure, quantile
from bench.screen import Screen
from bench.stage import Stage
from bench.starting import LIMIT

HOSTS = 256
SETTLE = 8.0
WORD = "crowd-1"
LETTERS, ZOOMS = 7 * 2 * 14, 104
MANY_ROWS = 15
"""Rows of the crowd on screen while the pane of the nodes is zoomed; it is a few otherwise."""
_FRESH = re.compile(r"(\d+) of (\d+) fresh")


def all_fresh(text: str) -> bool:
    """Every source of every host is read."""
    found = _FRESH.search(text)
    return found is not None and found[1] == found[2]


def many_hosts(stage: Stage, seconds: float) -> list[Figure]:
    """CPU, memory, time to all, and keys."""
    console = ConsoleProcess(["watch", "-f", str(stage.fleet)], stage.home)
    try:
        everything = console.until(lambda screen: all_fresh(screen.text), 2 * LIMIT) - console.began
        console.rest(SETTLE)
        began, cpu, written = time.monotonic(), console.cpu_seconds(), console.written
        console.rest(seconds)
        span = time.monotonic() - began
        cpu, written = console.cpu_seconds() - cpu, console.written - written
        rss = console.usage.memory_info().rss / 2**20
        spans, late = press_keys(console)
    finally:
        console.close()
    played = (
        f"4 embedded hosts with Docker and engine, {HOSTS - 4} more ssh servers in one process that makes the "
        "sampler's frames itself (256 samplers do not fit here), no Docker there"
    )
    return [
        Figure(
            "key press to repaint, p99, 256 hosts at 1 Hz",
            1000 * quantile(spans, 0.99),
            "ms",
            60.0,
            f"{LETTERS} letters typed into the filter and {ZOOMS} times z, at random times, each until it shows "
            f"(p50 {1000 * quantile(spans, 0.5):.0f} ms, slowest {1000 * max(spans):.0f} ms); meanwhile "
            f"this machine woke the bench itself {1000 * quantile(late, 0.99):.0f} ms late (p99)",
            0,
        ),
        Figure("CPU, 256 hosts at 1 Hz", 100 * cpu / span, "% of a core", 25.0, f"over {span:.0f} s; {played}", 1),
        Figure("RSS, 256 hosts", rss, "MB", None, f"after {span + SETTLE:.0f} s", 1),
        Figure("bytes to the terminal, 256 hosts", written / span / 1000, "KB/s", None, f"over {span:.0f} s", 2),
        Figure("start to all of 256 hosts + 1 engine", everything, "s", None, "handshakes bounded: 32 at once", 2),
    ]


def press_keys(console: ConsoleProcess) -> tuple[list[float], list[float]]:
    """Seconds from each key to its repaint: letters of a filter, then a pane zoomed and put back. Second, how late
    the bench woke up from its own pauses: what the machine adds to every wait."""
    chance = random.Random(1)
    late: list[float] = []
    console.type(b"/")
    console.until(lambda screen: _typed(screen) == "", LIMIT)
    typed, spans = "", []
    for press in range(LETTERS):
        back = press % (2 * len(WORD)) >= len(WORD)
        typed = typed[:-1] if back else WORD[: len(typed) + 1]
        late.append(_pause(console, chance))
        spans.append(_press(console, b"\x7f" if back else typed[-1:].encode(), partial(_stands, typed)))
    console.type(b"\x1b")
    console.until(lambda screen: _typed(screen) is None, LIMIT)
    console.type(b"1")
    for press in range(ZOOMS):
        late.append(_pause(console, chance))
        spans.append(_press(console, b"z", partial(_is_zoomed, press % 2 == 0)))
    return spans, late


def _pause(console: ConsoleProcess, chance: random.Random) -> float:
    console.rest(chance.uniform(0.03, 0.25))
    end = time.monotonic() + 0.02
    time.sleep(0.02)
    return time.monotonic() - end


def _press(console: ConsoleProcess, key: bytes, seen: Callable[[Screen], bool]) -> float:
    began = time.monotonic()
    console.type(key)
    return console.until(seen, LIMIT) - began


def _stands(typed: str, screen: Screen) -> bool:
    return _typed(screen) == typed


def _is_zoomed(zoomed: bool, screen: Screen) -> bool:
    return (screen.text.count(" crowd-") > MANY_ROWS) == zoomed


def _typed(screen: Screen) -> str | None:
    """What stands in the typed line; None if there is none."""
    row = next((line for line in screen.lines[-4:] if line.startswith(" /")), None)
    return None if row is None else row[2:].split(" ")[0]
