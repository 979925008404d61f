"""What the console costs while nothing happens: CPU, memory, bytes to the terminal."""

from __future__ import annotations

import time

from bench.console_process import ConsoleProcess
from bench.figures import Figure
from bench.stage import Stage
from bench.starting import LIMIT, all_read

SETTLE = 10.0
"""Seconds after the first whole picture before measuring begins."""


def rest(stage: Stage, seconds: float) -> list[Figure]:
    """CPU and bytes over `seconds` of rest, RSS at their end."""
    console = ConsoleProcess(["watch", "-f", str(stage.fleet)], stage.home)
    try:
        console.until(all_read, LIMIT)
        console.rest(SETTLE)
        began, cpu, written = time.monotonic(), console.cpu_seconds(), console.written
        console.rest(seconds)
        span = time.monotonic() - began
        cpu, written = console.cpu_seconds() - cpu, console.written - written
        rss = console.usage.memory_info().rss / 2**20
    finally:
        console.close()
    over = f"`laneswap watch` at rest at 120x40, default rates, Docker on all 4 hosts; over {span:.0f} s"
    return [
        Figure("CPU, 4 hosts, 120x40", 100 * cpu / span, "% of a core", 3.0, f"{over}; user + system time", 1),
        Figure(
            f"RSS after {(span + SETTLE) / 60:.1f} min",
            rss,
            "MB",
            95.0,
            "the console's process alone; the budget is for 10 min (`--long`)",
            1,
        ),
        Figure("bytes to the terminal at rest", written / span / 1000, "KB/s", 1.5, over, 2),
    ]
