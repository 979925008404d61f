"""What the sampler costs on a host: the script for python3, and the one for a plain sh."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import time
from dataclasses import dataclass

import psutil

from bench.figures import Figure
from console.fleet.inventory import Rates
from console.reach.limits import Timings
from console.reach.sampler import LABEL, loader, script

EVERY_BEAT = 5.0


@dataclass(slots=True)
class Cost:
    """Of one sampler: CPU as a share of a core, memory in MiB."""

    cpu: float = 0.0
    rss: float = 0.0
    pss: float = 0.0
    frames: int = 0


def sampling(seconds: float) -> list[Figure]:
    """Both flavours at once, over `seconds`, with heartbeats as over ssh."""
    costs = _measure(["python", "sh"], seconds)
    python, sh = costs["python"], costs["sh"]
    smi = "with" if shutil.which("nvidia-smi") else "no nvidia-smi on this machine,"
    over = (
        f"the script that travels on stdin, run for {seconds:.0f} s at 1 Hz ({python.frames} frames), {smi} GPU apart"
    )
    return [
        Figure("sampling on a host: memory", python.rss, "MB", 12.0, f"{over}; RSS, PSS {python.pss:.1f} MB", 1),
        Figure("sampling on a host: CPU", python.cpu, "% of a core", 0.1, over, 2),
        Figure("same without python3: memory", sh.pss, "MB", None, f"sh, 3 processes: PSS, RSS {sh.rss:.1f} MB", 1),
        Figure("same without python3: CPU", sh.cpu, "% of a core", None, f"sh and its sleeps, {sh.frames} frames", 2),
    ]


def _measure(flavours: list[str], seconds: float) -> dict[str, Cost]:
    running = {flavour: _start(flavour) for flavour in flavours}
    try:
        _rest(running, 2.0)
        before = {flavour: _cpu(process) for flavour, process in running.items()}
        began = time.monotonic()
        said = _rest(running, seconds)
        span = time.monotonic() - began
        costs = {}
        for flavour, process in running.items():
            family = _family(process)
            costs[flavour] = Cost(
                cpu=100 * (_cpu(process) - before[flavour]) / span,
                rss=sum(one.memory_info().rss for one in family) / 2**20,
                pss=sum(one.memory_full_info().pss for one in family) / 2**20,
                frames=said[flavour].count(b'"k":"node"'),
            )
        return costs
    finally:
        for process in running.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=10)


def _start(flavour: str) -> subprocess.Popen[bytes]:
    """As behind sshd: /bin/sh with the loader on stdin, then the script; a session of its own."""
    mark = secrets.token_hex(8)
    text = loader(mark, Rates(), Timings())
    if flavour == "sh":
        text = text.replace("if python3 ", "if python-that-is-not-there ")
    process = subprocess.Popen(
        ["/bin/sh"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(text.encode())
    process.stdin.flush()
    while flavour.encode() not in process.stdout.readline().split()[1:2]:
        if process.poll() is not None:
            raise RuntimeError(f"the {LABEL} for {flavour} did not start")
    process.stdin.write(script(flavour).encode())
    process.stdin.flush()
    return process


def _rest(running: dict[str, subprocess.Popen[bytes]], seconds: float) -> dict[str, bytearray]:
    """Take what they say and send heartbeats."""
    said = {flavour: bytearray() for flavour in running}
    end, beat = time.monotonic() + seconds, 0.0
    for process in running.values():
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
    while time.monotonic() < end:
        for flavour, process in running.items():
            assert process.stdin is not None and process.stdout is not None
            if time.monotonic() >= beat:
                process.stdin.write(b"beat\n")
                process.stdin.flush()
            said[flavour] += process.stdout.read() or b""
        if time.monotonic() >= beat:
            beat = time.monotonic() + EVERY_BEAT
        time.sleep(0.2)
    return said


def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    first = psutil.Process(process.pid)
    return [first, *first.children(recursive=True)]


def _cpu(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of all its processes, also of those that ended meanwhile."""
    total = 0.0
    for one in _family(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
