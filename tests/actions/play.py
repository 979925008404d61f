"""Runs the commands of plans on this machine: a fake `docker` in front of PATH, real processes, folders of a test."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.actions.plan import Plan, Probe, Step
from console.actions.probes import scripted

HERE = Path(__file__).parent
ENGINE = """
import http.server, json, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"ok" if self.path != "/v1/models" else json.dumps({"data": [{"id": sys.argv[2]}]}).encode()
        if self.path == "/metrics":
            body = open(sys.argv[3], "rb").read()
        self.send_response(int(sys.argv[4]) if self.path == "/health" and len(sys.argv) > 4 else 200)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


@dataclass(frozen=True)
class Done:
    """What became of a command."""

    code: int
    words: str

    @property
    def last(self) -> str:
        return self.words.strip().rpartition("\n")[2]


class World:
    """One host: HOME, state and evidence in a folder, containers beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.boxes, self.home = folder / "boxes", folder / "home"
        self.state, self.evidence = folder / "state", folder / "state" / "ops" / "op" / "evidence"
        for path in (self.boxes, self.home, self.state, folder / "bin"):
            path.mkdir(parents=True)
        self.plain_docker()
        self.children: list[subprocess.Popen[bytes]] = []

    def plain_docker(self) -> None:
        """The docker of these tests, as it is."""
        self.command("docker", f'exec {sys.executable} -S {HERE / "fake_docker.py"} "$@"')

    def command(self, name: str, text: str) -> Path:
        """A command in front of PATH."""
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.home),
            "FAKE_DOCKER": str(self.boxes),
        }

    def words(self, argv: tuple[str, ...]) -> list[str]:
        """A command with the two words that are put in when an operation is made."""
        places = {"{evidence}": str(self.evidence), "{state}": str(self.state), "{states}": str(self.state)}
        return [places.get(word, word) for word in argv]

    def run(self, argv: tuple[str, ...], stdin: str = "", limit: float = 60.0) -> Done:
        made = subprocess.run(
            self.words(argv), input=stdin, env=self.env(), capture_output=True, text=True, timeout=limit, check=False
        )
        return Done(made.returncode, made.stdout + made.stderr)

    def script(self, name: str, *words: str, limit: float = 60.0) -> Done:
        """Runs one of the scripts."""
        return self.run(*scripted(name, *words), limit=limit)

    def ask(self, probe: Probe) -> Done:
        return self.run(probe.argv, probe.stdin)

    def step(self, step: Step) -> Done:
        """One step as the runner does it: what must hold before, the command, what must be observed after."""
        for probe in step.before:
            said = self.ask(probe)
            if said.code != 0:
                return Done(100 + said.code, f"before: {probe.words}: {said.words}")
        if step.already and all(self.ask(probe).code == 0 for probe in step.already):
            return Done(0, "satisfied")
        done = self.run(step.argv, step.stdin, min(step.limit, 60.0)) if step.argv else Done(0, "")
        if done.code != 0:
            return done
        for probe in step.after:
            said = self.ask(probe)
            if said.code != 0:
                return Done(200 + said.code, f"after: {probe.words}: {said.words}")
        return done

    def carry_out(self, plan: Plan) -> list[tuple[str, int, str]]:
        """All steps in order until one fails that is not optional: (id, exit status, words)."""
        found = []
        for step in plan.steps:
            done = self.step(step)
            found.append((step.id, done.code, done.words))
            if done.code != 0 and not step.optional:
                break
        return found

    # --- containers ---------------------------------------------------------------------------------------------------

    def box(self, letter: str, name: str, cmd: list[str], **more: Any) -> dict[str, Any]:
        """A container whose id is made of one letter; it is created, not started."""
        data = {"id": letter * 64, "name": name, "cmd": cmd, "image": f"sha256:{letter * 64}", **more}
        (self.boxes / f"{letter}.json").write_text(json.dumps(data))
        return data

    def docker(self, *words: str) -> Done:
        return self.run(("docker", *words))

    def seen(self, letter: str) -> dict[str, Any]:
        """A container as inspect tells it."""
        found: dict[str, Any] = json.loads(self.docker("inspect", letter * 64).words)[0]
        return found

    def calls(self) -> list[list[str]]:
        path = self.boxes / "calls"
        return [json.loads(row) for row in path.read_text().splitlines()] if path.exists() else []

    # --- processes ----------------------------------------------------------------------------------------------------

    def engine(self, port: int, name: str = "dsv41-flash-uva", health: int = 200) -> list[str]:
        """The command of an engine that answers on that port."""
        path = self.folder / "engine.py"
        path.write_text(ENGINE)
        metrics = self.folder / "metrics"
        metrics.touch()
        return [sys.executable, "-S", str(path), str(port), name, str(metrics), str(health)]

    def spawn(self, argv: list[str], **more: Any) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(argv, env=self.env(), start_new_session=True, **more)
        self.children.append(child)
        return child

    def close(self) -> None:
        """Ends whatever this world started: all that has its home folder in the environment."""
        mark = f"HOME={self.home}".encode()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    os.kill(int(path.name), signal.SIGKILL)
            except OSError:
                continue
        for child in self.children:
            child.wait()


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def until(holds: Any, seconds: float = 20.0) -> None:
    """Waits until it holds. Raises AssertionError."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0] not in "ZX"
    except OSError:
        return False
