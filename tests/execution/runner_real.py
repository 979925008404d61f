"""Three hosts on this machine for the real runner: real scripts, a stand-in for ssh, containers that are files."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner_world import HOSTS

from console.actions.plan import Plan, Probe, Stage, Step, Verb
from console.execution.sequence import compile_operation, runner_text

PATIENCE = 60.0
FAKE_SSH = """#!/bin/sh
# fakessh HOST COMMAND: a host is the same machine; the file `cut-HOST` cuts its connections
WORLD={world}
host=$1
[ ! -e "$WORLD/cut-$host" ] || { echo "connect to $host: timed out" >&2; exit 255; }
echo "banner of $host"
shift
exec sh -c "$*"
"""
ACT = """
set -e
echo "$2 $3" >>"$1/ran"
case $2 in
stop) rm -f "$1/up/$3" ;;
start) : >"$1/up/$3" ;;
slow) sleep "$3" ;;
fail) exit "$3" ;;
kill) kill -9 "$(cat "$1/runner")" ;;
read) cat >"$1/up/$3" ;;
esac
"""
"""WORLD VERB NAME: says that it ran, then does it."""
IS = 'if [ -e "$1/up/$2" ]; then echo "$2 is up"; [ "$3" = up ]; else echo "$2 is down"; [ "$3" = down ]; fi'


class RealWorld:
    """A folder with an operation in it and what its commands change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.world, self.folder = root / "world", root / "state" / "spark4.dsv41"
        self.id = (
            f"20261201T021500Z-rollback-{secrets.token_hex(3)}"  # units of other tests on this machine have other names
        )
        self.op = self.folder / "ops" / self.id
        for folder in (self.world / "up", self.op):
            folder.mkdir(parents=True)
        self.ssh = root / "fakessh"
        self.ssh.write_text(FAKE_SSH.replace("{world}", str(self.world)))
        self.ssh.chmod(0o755)
        for host in HOSTS:
            self.container(f"new-{host}").touch()
        self.runner = self.op / "runner.py"
        self.runner.write_text(runner_text())
        (self.folder / "epoch").write_text("1\n")

    def container(self, name: str) -> Path:
        """There while it is up."""
        return self.world / "up" / name

    @property
    def up(self) -> set[str]:
        return {path.name for path in (self.world / "up").iterdir()}

    def step(self, id: str, host: str, *words: str, limit: float = 9.0, **more: Any) -> Step:
        """A step that leaves a trace."""
        argv = ("sh", "-c", ACT, "act", str(self.world), *words) if words else ()
        given = {"stage": Stage.STOP, "title": id, **more}
        return Step(id=id, host=host, argv=argv, limit=limit, **given)

    def probe(self, host: str, name: str, state: str) -> Probe:
        """Whether a container is up or down."""
        return Probe(host, f"{name} is {state}", ("sh", "-c", IS, "is", str(self.world), name, state))

    def swap(self) -> Plan:
        """Stop three ranks together, start the retired container as a unit, wait for it, note it."""
        stops = [
            self.step(
                f"stop-{host}",
                host,
                "stop",
                f"new-{host}",
                already=(self.probe(host, f"new-{host}", "down"),),
                after=(self.probe(host, f"new-{host}", "down"),),
                together="stop",
            )
            for host in HOSTS
        ]
        up = (self.probe("spark-0", "old", "up"),)
        return self.plan(
            *stops,
            self.step("start", "spark-1", "start", "old", limit=40.0, stage=Stage.BOOT, after=up),
            self.step("note", "spark-2", "read", "noted", stdin="it's noted\n", stage=Stage.BOOT),
            self.step("serves", "spark-0", limit=20.0, stage=Stage.BOOT, after=up),
        )

    def plan(self, *steps: Step) -> Plan:
        return Plan(Verb.ROLLBACK, "spark4", "dsv41", "spark-0", "roll back dsv41", steps)

    def write(self, plan: Plan, **changes: Any) -> dict[str, Any]:
        """Put the operation in its folder."""
        reach = {host: [str(self.ssh), host] if host != HOSTS[0] else [] for host in HOSTS}
        given = {"op": self.id, "operator": "ana", "epoch": 1, "created": 1.0, "reach": reach, **changes}
        found = compile_operation(plan, console="ana@desk 1", folder=str(self.folder), **given)
        (self.op / "plan.json").write_text(json.dumps(found))
        return found

    def start(self, *python: str) -> subprocess.Popen[bytes]:
        """The runner, as the head starts it; `python` in place of the plain file."""
        argv = [sys.executable, "-I", "-S", *(python or (str(self.runner), "run", str(self.op)))]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root)}
        with (self.op / "log").open("ab") as log:
            running = subprocess.Popen(argv, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        (self.world / "runner").write_text(str(running.pid))
        return running

    def run(self, *python: str) -> int:
        """Its exit status."""
        running = self.start(*python)
        try:
            return running.wait(PATIENCE)
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGKILL)
                running.wait()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The journal; every line has to be whole but the last one."""
        path = self.op / "journal.jsonl"
        rows = path.read_text().split("\n") if path.exists() else [""]
        return [json.loads(row) for row in rows[:-1]]

    @property
    def states(self) -> dict[str, str]:
        return {line["id"]: line["state"] for line in self.lines if line["kind"] == "step"}

    @property
    def end(self) -> tuple[str, str]:
        assert self.lines[-1]["kind"] == "end", self.log
        return self.lines[-1]["state"], self.lines[-1]["words"]

    @property
    def log(self) -> str:
        return (self.op / "log").read_text()

    def ran(self) -> Counter[str]:
        """How often each command ran."""
        path = self.world / "ran"
        return Counter(path.read_text().splitlines() if path.exists() else [])


def until(ready: Callable[[], object], what: str) -> None:
    """Wait until it is so. Fails after PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end, f"{what}: not so after {PATIENCE:.0f} s"
        time.sleep(0.02)
