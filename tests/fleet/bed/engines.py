"""Stand-in engines in real containers on the bed's hosts: known rate, faults on demand."""

from __future__ import annotations

import json
import secrets
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.client import BedHost
from bed.system import BedError, wait_for
from console.rehearsal.engine import TOKEN_HEADER, TOKEN_VARIABLE

PROGRAM = Path(__file__).parents[3] / "console" / "rehearsal" / "engine.py"
INSIDE = "/srv/laneswap"
REVISION = "4f3a1c0d9b8e7f6a5d4c3b2a19080716253443ab"
SNAPSHOT = f"{INSIDE}/hub/models--deepseek-ai--DeepSeek-V4.1-Flash/snapshots/{REVISION}"


@dataclass(frozen=True, slots=True)
class BedEngine:
    """One engine: a container `name` on a host, listening on `port` there."""

    host: BedHost
    name: str
    kind: str
    port: int
    token: str
    """What its faults are switched with; only this run knows it."""

    @property
    def url(self) -> str:
        """How the tests reach it past ssh; `http://127.0.0.1:PORT` is how the host itself does."""
        return f"http://{self.host.address}:{self.port}"

    def get(self, path: str, *, limit: float = 5.0) -> tuple[int, str]:
        """Status and body. Raises OSError when nothing answers."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=limit) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def fault(self, name: str, **more: Any) -> None:
        """Switch a fault of the engine; `none` heals it."""
        body = json.dumps({"fault": name, **more}).encode()
        request = urllib.request.Request(f"{self.url}/__fault", body, {TOKEN_HEADER: self.token})
        with urllib.request.urlopen(request, timeout=5.0):
            pass

    def signal(self, word: str) -> None:
        """Send STOP, CONT, KILL... to the engine's process, past Docker: Docker still calls it running."""
        pid = self.host.docker("inspect", "--format", "{{.State.Pid}}", self.name)
        self.host.root("kill", f"-{word}", pid)

    def heal(self) -> None:
        """Running, answering and without a fault, whatever was done to it."""
        self.host.docker("start", self.name)
        self.signal("CONT")
        self.wait_ready()
        self.fault("none")

    def wait_ready(self) -> None:
        """Wait until it answers. Raises BedError with the container's log."""
        try:
            wait_for(self.answers, f"{self.name}: an answer", limit=30)
        except BedError as error:
            raise BedError(str(error), self.host.root("docker", "logs", self.name, check=False)) from error

    def answers(self) -> bool:
        """Whether it does, now."""
        try:
            return bool(self.get("/__truth", limit=1.0)[1])
        except OSError:
            return False

    def remove(self) -> None:
        """Remove the container, running or not."""
        self.host.docker("rm", "--force", self.name)


def run_engine(host: BedHost, name: str, kind: str, port: int, *options: str, network: str = "bridge") -> BedEngine:
    """Start an engine in a container and wait until it answers. Raises BedError."""
    token = secrets.token_hex(16)
    host.write(f"{INSIDE}/engine.py", PROGRAM.read_text())
    host.write(f"{SNAPSHOT}/config.json", "{}")
    host.docker(
        "run",
        "--detach",
        f"--name={name}",
        f"--network={network}",
        *((f"--publish={port}:{port}",) if network == "bridge" else ()),
        "--restart=no",
        f"--env={TOKEN_VARIABLE}={token}",
        f"--volume={INSIDE}/engine.py:/engine.py:ro",
        f"--volume={SNAPSHOT}:/model:ro",
        str(host.description["images"]["engine"]),
        *("python3", "/engine.py", "--kind", kind, "--host", "0.0.0.0", "--port", str(port), "--model-path", "/model"),
        *options,
    )
    engine = BedEngine(host, name, kind, port, token)
    engine.wait_ready()
    return engine


def counter(text: str, name: str) -> float:
    """The sum of all series of one name in an exposition text; a test's own reading, apart from the console's."""
    lines = [line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def measured_rate(engine: BedEngine, name: str, seconds: float = 2.0) -> float:
    """Growth of a counter per second over about `seconds`, by this machine's clock."""
    first, start = counter(engine.get("/metrics")[1], name), time.monotonic()
    time.sleep(seconds)
    last, end = counter(engine.get("/metrics")[1], name), time.monotonic()
    return (last - first) / (end - start)
