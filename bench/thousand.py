"""1,024 hosts without a screen: CPU, memory, handshakes, the loop's longest stall."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from bench.console_process import ROOT, environment
from bench.figures import Figure
from bench.stage import Stage

HOSTS = 1024
LIMIT = 300.0


def thousand(stage: Stage, seconds: float) -> list[Figure]:
    """A feed that is read once a second, then one `status --json`."""
    said = json.loads(_run(stage, ["-m", "bench.headless_feed", str(stage.fleet), str(seconds)]))
    began = time.monotonic()
    hosts = json.loads(_run(stage, ["-m", "console", "status", "--json", "--wait", "120", "-f", str(stage.fleet)]))[
        "hosts"
    ]
    took = time.monotonic() - began
    if unread := [name for name, host in hosts.items() if host["memory"]["value"] is None]:
        raise RuntimeError(f"`status --json` ended without {len(unread)} of {len(hosts)} hosts: {unread[:3]}")
    over = (
        f"{HOSTS - 4} played hosts in one process and 4 embedded ones, one feed without a screen, over {seconds:.0f} s"
    )
    return [
        Figure(
            "CPU, 1,024 hosts at 1 Hz, headless", said["cpu"], "% of a core", None, f"{over}; a document a second", 1
        ),
        Figure("RSS, 1,024 hosts, headless", said["rss"], "MB", None, over, 0),
        Figure(
            "start to all of 1,024 hosts, headless",
            said["all"],
            "s",
            None,
            f"at most {said['handshakes']} handshakes at once; the hosts' side of them costs this machine as much",
            1,
        ),
        Figure("longest stall of the loop, 1,024 hosts", said["stall"], "ms", None, f"{over}; the document in it", 0),
        Figure("one document of 1,024 hosts as JSON", said["document"], "ms", None, "median", 0),
        Figure("`status --json` of 1,024 hosts", took, "s", None, "exec to its end, every host's memory in it", 1),
    ]


def _run(stage: Stage, arguments: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(stage.home),
        cwd=ROOT,
        check=False,
        timeout=LIMIT,
    )
    if not done.stdout:
        raise RuntimeError(f"{arguments[1]} ended with {done.returncode} and said nothing")
    return done.stdout
