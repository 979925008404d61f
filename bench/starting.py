"""From exec to the first values on screen, and how soon tok/s is true."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

from bench.console_process import ROOT, ConsoleProcess, environment
from bench.figures import Figure
from bench.screen import Screen
from bench.stage import Stage

RUNS = 5
LIMIT = 30.0
TRUE_TPS = 66.3
_NODE = re.compile(r"spark-(\d) .*│ +\d+\.\d+ +\d+\.\d+ ")
_POOL = re.compile(r"2\.71 of 6\.20 M tok")
_RATE = re.compile(r"(\d+\.\d) tok/s")


def nodes_read(screen: Screen) -> int:
    """How many of the hosts show their memory."""
    return len(set(_NODE.findall(screen.text)))


def engine_read(screen: Screen) -> bool:
    """Whether a scrape of the engine stands on screen: KV pool in use and its size."""
    return bool(_POOL.search(screen.text))


def all_read(screen: Screen) -> bool:
    """Four hosts and the engine."""
    return nodes_read(screen) == 4 and engine_read(screen)


def rate_true(screen: Screen) -> bool:
    """tok/s within 1 % of what the engine really makes."""
    return any(abs(float(found) - TRUE_TPS) <= 0.01 * TRUE_TPS for found in _RATE.findall(screen.text))


def starts(stage: Stage) -> list[Figure]:
    """Start to first paint, to the first value, to all values, to a true rate."""
    first, whole, rate, paint = [], [], [], []
    for _ in range(RUNS):
        console = ConsoleProcess(["watch", "-f", str(stage.fleet)], stage.home)
        try:

            def passed(seen: Callable[[Screen], bool], console: ConsoleProcess = console) -> float:
                return console.until(seen, LIMIT) - console.began

            paint.append(passed(lambda screen: "spark-3" in screen.text))
            first.append(passed(lambda screen: nodes_read(screen) > 0 or engine_read(screen)))
            whole.append(passed(all_read))
            rate.append(passed(rate_true) - whole[-1])
        finally:
            console.close()
    runs = f"median of {RUNS} starts of `laneswap watch` in a pty, 120x40, bytecode cached"
    return [
        Figure("start to first paint", median(paint), "s", None, f"{runs}; no value yet", 2),
        Figure("start to the first live value", median(first), "s", 1.0, f"{runs}; exec to memory of any host", 2),
        Figure(
            "start to all of 4 hosts + 1 engine",
            median(whole),
            "s",
            1.5,
            f"{runs}; exec to memory of all hosts and the KV pool; slowest {max(whole):.2f} s",
            2,
        ),
        Figure(
            "tok/s within 1 % of the truth",
            median(rate),
            "s",
            1.5,
            "after the first scrape on screen; scrapes come each second, so the second sample is 1 to 1.5 s later "
            f"(slowest {max(rate):.2f} s); truth 66.3 tok/s",
            2,
        ),
    ]


def headless(stage: Stage) -> list[Figure]:
    """The same without a screen."""
    took = [_headless(stage) for _ in range(3)]
    return [
        Figure(
            "headless: start to the end of `status --json`",
            median(took),
            "s",
            None,
            "3 runs; it waits for the second scrape, so that tok/s is in it",
            2,
        ),
    ]


def _headless(stage: Stage) -> float:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "console", "status", "--json", "-f", str(stage.fleet)],
        capture_output=True,
        env=environment(stage.home),
        cwd=ROOT,
        check=False,
        timeout=LIMIT,
    )
    took = time.monotonic() - began
    said = json.loads(done.stdout)
    readings = {name: host["memory"] for name, host in said["hosts"].items()}
    readings["dsv41"] = said["lanes"]["dsv41"]["throughput"]
    if missing := {name: reading["error"] for name, reading in readings.items() if reading["value"] is None}:
        raise RuntimeError(f"`status --json` ended without {missing}")
    return took
