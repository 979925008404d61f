"""A container that writes 100,000 lines at once: how long the console's loop is held up."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.console_process import ROOT, environment
from bench.figures import Figure

LINES = 100_000
LIMIT = 120.0
BUDGET_MS = 100.0
FLEET = """\
name = "flood"
production = false
[hosts]
here = {{ ssh = "local", docker = "{socket}" }}
[lanes.lane]
recipe = "docker-generic"
url = "http://127.0.0.1:8210"
engine = "sglang"
head = "here"
via = "direct"
"""


def flood() -> list[Figure]:
    """On the log screen as it opens, and with long lines folded."""
    plain, folded = _run([]), _run(["fold"])
    how = (
        f"the console without a terminal, log screen open, a Docker socket on this machine that writes {LINES} lines "
        f"as fast as they are taken, in {plain['took']:.1f} s; {plain['kept']:.0f} kept, {plain['skipped']:.0f} left "
        f"out and counted; at rest {plain['rest']:.0f} ms"
    )
    return [
        Figure("longest stall in a flood of 100,000 log lines", plain["flood"], "ms", BUDGET_MS, how, 0),
        Figure("same with long lines folded", folded["flood"], "ms", BUDGET_MS, f"in {folded['took']:.1f} s", 0),
    ]


def _run(keys: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="laneswap-bench-flood-") as folder:
        home = Path(folder)
        socket, fleet = home / "docker.sock", home / "fleet.toml"
        fleet.write_text(FLEET.format(socket=socket))
        daemon = _start(home, ["bench.flood_daemon", str(socket)])
        console = None
        try:
            assert daemon.stdin is not None and daemon.stdout is not None
            daemon.stdout.readline()
            console = _start(home, ["bench.flood_console", str(fleet), str(LINES), *keys])
            assert console.stdout is not None
            daemon.stdin.write(console.stdout.readline())
            daemon.stdin.flush()
            said: dict[str, float] = json.loads(console.communicate(timeout=LIMIT)[0])
        finally:
            for process in (console, daemon):
                if process is not None:
                    process.kill()
                    process.communicate()
        if said["faults"]:
            raise RuntimeError("the console had a fault of its own in the flood")
        return said


def _start(home: Path, arguments: list[str]) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=environment(home), cwd=ROOT)
