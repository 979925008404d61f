"""The console's command line as a process of its own: what an operator types, and what becomes of it when killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acting_parts import STATE
from bed.client import BedHost
from bed.system import wait_for

from console.execution.ledger import Ledger

LIMIT = 240.0
"""Seconds after which a command has failed; nothing is asserted about how long it took."""
GOOD, NEEDS_OPERATOR, USAGE, UNKNOWN, REFUSED = 0, 1, 2, 3, 4
"""Exit codes."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both outputs."""
        return f"{self.out}\n{self.err}"


@dataclass(slots=True)
class Console:
    """One operator at one machine: a fleet file, and a folder with what this machine remembers."""

    file: Path
    state: Path
    lane: str
    operator: str = "ana"
    more: Mapping[str, str] = field(default_factory=dict)
    """Environment variables besides."""

    def run(self, *words: str, limit: float = LIMIT) -> Done:
        """`laneswap WORDS -f FILE`."""
        argv = [sys.executable, "-m", "console", *words, "-f", str(self.file)]
        given: dict[str, Any] = {"env": self.environment(), "stdin": subprocess.DEVNULL, "timeout": limit}
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", **given)
        return Done(done.returncode, done.stdout, done.stderr)

    def environment(self) -> dict[str, str]:
        """Of its processes."""
        fixed = {"LANESWAP_STATE": str(self.state), "PYTHONDONTWRITEBYTECODE": "1", "LANESWAP_OPERATOR": self.operator}
        return {**os.environ, **fixed, **self.more}

    def do(self, verb: str, *words: str, limit: float = LIMIT) -> Done:
        """`laneswap do LANE VERB --yes-lane LANE`, to its end."""
        return self.run("do", self.lane, verb, "--yes-lane", self.lane, *words, limit=limit)

    @contextmanager
    def doing(self, verb: str, *words: str) -> Iterator[subprocess.Popen[str]]:
        """The same while it runs; killed on the way out if it still does."""
        argv = [sys.executable, "-m", "console", "do", self.lane, verb, "--yes-lane", self.lane, *words]
        log = self.state.parent / f"{verb}-{time.monotonic_ns()}.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                [*argv, "-f", str(self.file)],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait(30)

    def plan(self, verb: str) -> dict[str, Any]:
        """`laneswap plan LANE VERB --json`."""
        done = self.run("plan", self.lane, verb, "--json")
        assert done.out.startswith("{"), done.text
        found: dict[str, Any] = json.loads(done.out)
        return found

    def status(self) -> dict[str, Any]:
        """The lane in `laneswap status --json`."""
        done = self.run("status", "--json")
        assert done.out.startswith("{"), done.text
        found: dict[str, Any] = json.loads(done.out)["lanes"][self.lane]
        return found

    def ledger_good(self) -> None:
        """Every line is good, as `laneswap ledger --verify` reads them."""
        for file in self.state.glob("ledger/*/ledger.jsonl"):
            found = Ledger(file, file.parent.name, known={}).verify()
            assert not found.problem, found

    def records(self) -> list[dict[str, Any]]:
        """The ledger's lines on this machine, oldest first."""
        files = sorted(self.state.glob("ledger/*/ledger.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines() if line]

    def outcome(self, operation: str) -> str:
        """`done`, `failed`...: what the ledger has as outcome of an operation; '' where it has none."""
        found = [one for one in self.records() if one["op"] == operation and one["kind"] == "outcome"]
        return str(found[-1]["result"]) if found else ""


def kept(host: BedHost, lane: str, name: str) -> str:
    """A file of the lane's state folder on a host; '' where there is none."""
    try:  # past every connection and without a process: it is looked at again and again
        return Path(f"/proc/{host.init}/root{STATE}/bed.{lane}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def newest(head: BedHost, lane: str) -> str:
    """The newest operation on a lane; '' if there is none."""
    return kept(head, lane, "current").strip()


def journal(head: BedHost, lane: str, operation: str = "") -> list[dict[str, Any]]:
    """The journal of an operation, the newest one if none is named."""
    text = kept(head, lane, f"ops/{operation or newest(head, lane)}/journal.jsonl")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]


def ended(head: BedHost, lane: str, operation: str = "") -> str:
    """How an operation ended by its journal; '' while it has not."""
    lines = journal(head, lane, operation)
    return str(lines[-1]["state"]) if lines and lines[-1]["kind"] == "end" else ""


def until_ended(head: BedHost, lane: str, operation: str = "", *, limit: float = LIMIT) -> str:
    """Wait until an operation has ended; how. Raises BedError."""
    wait_for(lambda: bool(ended(head, lane, operation)), f"{lane}: the operation ends", limit=limit, pause=0.3)
    return ended(head, lane, operation)


def until_step(head: BedHost, lane: str, step: str, state: str, *, limit: float = LIMIT) -> None:
    """Wait until a step of the newest operation is in this state. Raises BedError."""

    def so() -> bool:
        lines = [one for one in journal(head, lane) if one["kind"] == "step" and str(one["id"]).startswith(step)]
        return any(one["state"] == state for one in lines)

    wait_for(so, f"{lane}: step {step} {state}", limit=limit, pause=0.1)


def steps_of(head: BedHost, lane: str, operation: str = "") -> dict[str, str]:
    """Each step's newest state, by id."""
    return {one["id"]: one["state"] for one in journal(head, lane, operation) if one["kind"] == "step"}
