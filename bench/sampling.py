"""What the sampler costs on a host: the script for python3, with looks and without, and the one for a plain sh."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.figures import Figure
from console.fleet.inventory import Rates
from console.reach.limits import Timings
from console.reach.looking import Looking
from console.reach.sampler import LABEL, loader, script
from console.readings.look import Look, LookKind

EVERY_BEAT = 5.0
SSHD_PATH = "/usr/local/bin:/usr/bin:/bin"
"""PATH of a command that comes over ssh: a host runs the system's python3, not that of this environment."""
ENTRIES = 300
TREE_EVERY, SCAN_EVERY = 5.0, 15.0
LOOKING, PLAIN, SH = "python, looks", "python", "sh"
"""What runs: the script for python3 that is also asked to look at things, without looks, and the one for sh."""


@dataclass(slots=True)
class Cost:
    """Of one sampler: CPU as a share of a core, memory in MiB."""

    cpu: float = 0.0
    rss: float = 0.0
    pss: float = 0.0
    frames: int = 0
    look_bytes: tuple[int, ...] = ()
    """Of each frame with answers to looks."""


def sampling(seconds: float) -> list[Figure]:
    """All at once, over `seconds`, with heartbeats as over ssh."""
    with tempfile.TemporaryDirectory(prefix="laneswap-bench-tree-") as folder:
        make_tree(Path(folder))
        costs = _measure([LOOKING, PLAIN, SH], seconds, Path(folder))
    looking, python, sh = costs[LOOKING], costs[PLAIN], costs[SH]
    smi = "with" if shutil.which("nvidia-smi") else "no nvidia-smi on this machine,"
    over = (
        f"the script that travels on stdin, run for {seconds:.0f} s at 1 Hz ({python.frames} frames), {smi} GPU apart"
    )
    looks = f"a tree of {ENTRIES} entries looked at each {TREE_EVERY:.0f} s and all processes each {SCAN_EVERY:.0f} s"
    how = f"{over}; {looks}"
    return [
        Figure(
            "sampling on a host: memory",
            looking.rss,
            "MB",
            12.0,
            f"{how}; RSS and what the child has of its own, PSS {looking.pss:.1f} MB",
            1,
        ),
        Figure("sampling on a host: CPU", looking.cpu, "% of a core", 0.1, f"{how}, each in a child that is in it", 2),
        Figure("same without looks: memory", python.rss, "MB", None, f"{over}; RSS, PSS {python.pss:.1f} MB", 1),
        Figure("same without looks: CPU", python.cpu, "% of a core", None, over, 2),
        Figure(
            f"a look at {ENTRIES} entries that did not change",
            min(looking.look_bytes),
            "bytes",
            None,
            f"on the wire, before ssh; {max(looking.look_bytes) / 1024:.0f} KiB when it is new",
            0,
        ),
        Figure("same without python3: memory", sh.pss, "MB", None, "sh, 3 processes: PSS", 1),
        Figure("same without python3: CPU", sh.cpu, "% of a core", None, f"sh and its sleeps, {sh.frames} frames", 2),
    ]


def make_tree(folder: Path) -> None:
    """A repository as the Hub's cache keeps it: blobs, and as many links to them in a snapshot."""
    snapshot = folder / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir()
    (folder / "refs").mkdir()
    for number in range((ENTRIES - 4) // 2):
        blob = folder / "blobs" / f"{number:064x}"
        blob.write_bytes(b"x" * 100)
        (snapshot / f"model-{number:05}-of-00148.safetensors").symlink_to(f"../../blobs/{blob.name}")


def order(folder: Path) -> bytes:
    """What the console would ask this host to look at."""
    looking = Looking()
    looking.ask(
        [
            Look("repo", LookKind.TREE, (str(folder), "4", "2000"), TREE_EVERY),
            Look("processes", LookKind.PROCESSES, ("hf download", "huggingface-cli"), SCAN_EVERY),
        ]
    )
    return looking.order()


def _measure(flavours: list[str], seconds: float, tree: Path) -> dict[str, Cost]:
    running = {flavour: _start(flavour) for flavour in flavours}
    try:
        _rest(running, 2.0)  # what follows the script at once may be read along with it
        asked = running[LOOKING].stdin
        assert asked is not None
        asked.write(order(tree))
        asked.flush()
        first = _rest(running, 2 * TREE_EVERY)
        before = {flavour: _cpu(process) for flavour, process in running.items()}
        began = time.monotonic()
        said = _rest(running, seconds)
        span = time.monotonic() - began
        costs = {}
        for flavour, process in running.items():
            family = _family(process)
            costs[flavour] = Cost(
                cpu=100 * (_cpu(process) - before[flavour]) / span,
                rss=_resident(family),
                pss=sum(one.memory_full_info().pss for one in family) / 2**20,
                frames=said[flavour].count(b'"k":"node"'),
                look_bytes=tuple(
                    len(row) for row in (first[flavour] + said[flavour]).split(b"\n") if b'"k":"look"' in row
                ),
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
    kind = flavour.partition(",")[0]
    if kind == "sh":
        text = text.replace("if python3 ", "if python-that-is-not-there ")
    process = subprocess.Popen(
        ["/bin/sh"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PATH": SSHD_PATH if shutil.which("python3", path=SSHD_PATH) else os.environ["PATH"]},
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(text.encode())
    process.stdin.flush()
    while kind.encode() not in process.stdout.readline().split()[1:2]:
        if process.poll() is not None:
            raise RuntimeError(f"the {LABEL} for {flavour} did not start")
    process.stdin.write(script(kind).encode())
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


def _resident(family: list[psutil.Process]) -> float:
    """RSS of the first, and of its children what they do not share with it, MiB."""
    first, *children = family
    return float(first.memory_info().rss + sum(child.memory_full_info().uss for child in children)) / 2**20


def _cpu(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of all its processes, also of those that ended meanwhile."""
    total = 0.0
    for one in _family(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
