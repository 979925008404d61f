"""One rank of a lane, in a container: what `python3 -m sglang.launch_server` and `vllm serve` stand for on the bed.

Rank 0 waits for the other ranks at the rendezvous, boots with the phases of the engine it plays and then serves HTTP
by the engine stand-in. The others join it, log their own boot and end with exit 0 when the head is gone, as headless
ranks do. A rank that is lost stops the head's tokens and nothing else: `/health` goes on to answer 200.

What a rank really has is told by `GET /__standing` on the head: the revision of the files that were mounted when it
started, and whose rows each rank read. Faults stand in the file FAULTS, a line each, read at the start and while it
runs:

    boot=SECONDS    how long a boot takes (4)
    dies=SECONDS    ends that long after its start, with exit 1
    deaf=1          ignores SIGTERM
    stuck=1         never gets healthy while this stands there
    once=1          the file is removed when `dies` strikes
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import engine

FAULTS = Path("/root/.cache/stand-in")
LAYERS = {"1": "model-00047-of-00048.safetensors", "14": "model-00048-of-00048.safetensors"}
JOIN_LIMIT = 60.0
"""Seconds that a rank asks for its head."""
CHAT = {"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "OK"}}]}

Ranges = dict[str, list[int]]


def faults() -> dict[str, str]:
    """What stands in the file; nothing where there is none."""
    try:
        lines = FAULTS.read_text().splitlines()
    except OSError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line)


def flag(words: list[str], *names: str, default: str = "") -> str:
    """The value of the last of `names` on a command line."""
    found = default
    for index, word in enumerate(words[:-1]):
        if word in names:
            found = words[index + 1]
    return found


def number(words: list[str], name: str, default: int) -> int:
    """The same as a number."""
    return int(flag(words, name) or default)


class Rank:
    """This rank: its place, its files, its faults."""

    def __init__(self, kind: str, words: list[str]) -> None:
        self.kind = kind
        self.model = flag(words, "--model-path", "--model", default=words[1] if words[:1] == ["serve"] else "/model")
        self.served = flag(words, "--served-model-name", default="deepseek-v4.1-flash")
        self.number, self.ranks = (
            int(flag(words, "--node-rank", default="0")),
            int(flag(words, "--nnodes", default="1")),
        )
        self.host, self.port = flag(words, "--host", default="0.0.0.0"), int(flag(words, "--port", default="8000"))
        address, _, port = flag(words, "--dist-init-addr").partition(":")
        self.meeting = (
            address or flag(words, "--master-addr", default="127.0.0.1"),
            int(port or flag(words, "--master-port", default="29541")),
        )
        self.rows = os.environ.get("SPARK_ENGRAM_DIR", "") or (self.model if kind == "vllm" and self.ranks > 1 else "")
        self.born = time.monotonic()
        self.boot = float(faults().get("boot", "4"))
        self.config = self._config()
        self.lost = threading.Event()
        """Another rank is gone."""

    def _config(self) -> dict[str, Any]:
        """The mounted model's config.json; a folder without one ends the engine, as it ends a real one."""
        try:
            read: dict[str, Any] = json.loads(Path(self.model, "config.json").read_text())
        except (OSError, ValueError) as error:
            self.end(1, f"OSError: {self.model} does not appear to have a file named config.json ({error})")
        return read

    def end(self, code: int, *lines: str) -> Any:
        """Write these lines and end the process."""
        for line in lines:
            engine.say(line)
        os._exit(code)

    def watch(self) -> None:
        """Faults that strike while it runs."""
        while True:
            now = faults()
            if "dies" in now and time.monotonic() - self.born >= float(now["dies"]):
                if "once" in now:
                    FAULTS.unlink(missing_ok=True)
                self.end(1, "Traceback (most recent call last):", "torch.AcceleratorError: CUDA error: unknown error")
            time.sleep(0.1)

    @property
    def stuck(self) -> bool:
        """Whether its boot stands still."""
        return "stuck" in faults() or self.lost.is_set()

    def standing(self) -> dict[str, Any]:
        """What this rank has: revision, row ranges and whose rows they are."""
        found = {"rank": self.number, "revision": self.config.get("revision", ""), "ranges": self.ranges()}
        return {**found, "rows": self.whose_rows(found["ranges"])}

    def ranges(self) -> Ranges:
        """The rows of each layer that it reads; {} for an engine that has none of its own."""
        if not self.rows:
            return {}
        if given := os.environ.get("SPARK_ENGRAM_ROWS", ""):
            parts = [part.split(":") for part in given.split(",")]
            return {layer: [int(start), int(end)] for layer, start, end in parts}
        manifest = Path(self.rows, "engram-local.json")
        if not manifest.exists():
            unset = f"{self.rows} has no engram-local.json (tools/engram_local.py) and SPARK_ENGRAM_ROWS is unset"
            self.end(1, "Traceback (most recent call last):", f"RuntimeError: {unset}")
        read: Ranges = json.loads(manifest.read_text())["layers"]
        return read

    def whose_rows(self, ranges: Ranges) -> str:
        """`own` where first, middle and last rows are those of the mounted revision, else `foreign`; '' without."""
        for layer, (start, end) in ranges.items():
            with Path(self.rows, LAYERS[layer]).open("rb") as shard:
                length = int.from_bytes(shard.read(8), "little")
                name = f"layers.{layer}.engram.embed.weight"
                first, _ = json.loads(shard.read(length))[name]["data_offsets"]
                for row in (start, (start + end) // 2, end - 1):
                    shard.seek(8 + length + first + row * 256)
                    if shard.read(256) != row_bytes(self.config.get("revision", ""), layer, row):
                        return "foreign"
        return "own" if ranges else ""

    def options(self) -> Any:
        """The engine stand-in's own options."""
        words = ["--kind", self.kind, "--host", self.host, "--port", str(self.port), "--model", self.served]
        words += ["--model-path", self.model, "--rank", str(self.number), "--ranks", str(self.ranks)]
        return engine.parse([*words, "--boot", str(self.boot), "--rows", self.rows, "--access-log"])

    def boot_log(self, options: Any) -> None:
        """The lines of its boot in their time; it stands still while it is stuck."""
        began, wall = time.monotonic(), time.time()
        for into, line in engine.boot_lines(options, wall, os.getpid()):
            time.sleep(max(0.0, began + into - time.monotonic()))
            while self.stuck:
                time.sleep(0.1)
            engine.say(line)


def row_bytes(revision: str, layer: str, row: int) -> bytes:
    """The weights of one row: every revision has its own."""
    return hashlib.sha256(f"{revision}/{layer}/{row}".encode()).digest() * 8


class Meeting:
    """The head's side of the rendezvous."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self.standings: dict[int, dict[str, Any]] = {0: rank.standing()}
        self._connections: list[socket.socket] = []

    def gather(self) -> None:
        """Wait until every other rank has joined. Ends the process where the port is taken or the rows do not tile."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("0.0.0.0", self.rank.meeting[1]))
        except OSError as error:
            self.rank.end(1, f"torch.distributed.DistNetworkError: port {self.rank.meeting[1]}: {error}")
        listener.listen()
        while len(self.standings) < self.rank.ranks:
            connection, _ = listener.accept()
            standing = json.loads(connection.makefile().readline() or "{}")
            if standing.get("rank") in self.standings or "rank" not in standing:
                connection.close()
                continue
            self.standings[standing["rank"]] = standing
            self._connections.append(connection)
            threading.Thread(target=self._hold, args=(connection,), daemon=True).start()
        self._judge()

    def _hold(self, connection: socket.socket) -> None:
        connection.recv(1)  # never a byte: it returns when the rank is gone
        self.rank.lost.set()

    def _judge(self) -> None:
        """Row ranges that do not tile end every rank."""
        for layer, rows in self.rank.config.get("engram_rows", {}).items():
            parts = sorted((one["ranges"][layer], rank) for rank, one in self.standings.items() if one["ranges"])
            if not parts:
                continue
            ends = [0, *(end for (_, end), _ in parts)]
            if [start for (start, _), _ in parts] != ends[:-1] or ends[-1] != rows:
                told = ", ".join(f"rank {rank}: [{start}, {end})" for (start, end), rank in parts)
                fault = f"RuntimeError: engram layer {layer}: the TP ranks' row ranges do not tile [0, {rows}) exactly "
                fault += f"(gap, overlap or missing rows): {told}"
                for connection in self._connections:
                    connection.sendall(f"{fault}\n".encode())
                time.sleep(0.3)
                self.rank.end(1, "Traceback (most recent call last):", fault)
        for connection in self._connections:
            connection.sendall(b"go\n")


def join(rank: Rank) -> socket.socket:
    """A worker's side: the connection to the head, once all ranks are there. Ends the process where none answers."""
    engine.say(f"[{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())}] rank {rank.number} joins {rank.meeting}")
    standing = json.dumps(rank.standing()) + "\n"
    while True:
        try:
            connection = socket.create_connection(rank.meeting, timeout=5)
            break
        except OSError as error:
            if time.monotonic() - rank.born > JOIN_LIMIT:
                rank.end(1, f"torch.distributed.DistNetworkError: the client socket has timed out ({error})")
            time.sleep(0.2)
    connection.settimeout(None)
    connection.sendall(standing.encode())
    word = connection.makefile().readline().strip()
    if word.startswith("RuntimeError"):
        rank.end(1, "Traceback (most recent call last):", word)
    if word != "go":
        rank.end(0, "the head is gone: rank ends")
    return connection


def work(rank: Rank) -> None:
    """A worker: it logs its boot and lives as long as its head."""
    connection = join(rank)
    threading.Thread(target=rank.boot_log, args=(rank.options(),), daemon=True).start()
    connection.recv(1)
    rank.end(0, "the head is gone: rank ends")


class Handler(engine.Handler):
    """The engine stand-in's own answers, chat completions and what the ranks have."""

    standing: Callable[[], object]

    def do_GET(self) -> None:
        """`/__standing` answers what stands behind the name, whatever fault the engine has."""
        if self.path != "/__standing":
            return super().do_GET()
        body = json.dumps(type(self).standing()).encode()
        return self.send(engine.Answer(200, "application/json", body))

    def do_POST(self) -> None:
        """A chat completion as long as tokens flow; else nothing is answered until they do."""
        if self.path != "/v1/chat/completions":
            return super().do_POST()
        self.rfile.read(int(self.headers.get("Content-Length") or "0"))
        while self.engine.fault["fault"] in engine.FROZEN:
            self.engine.pause(1.0)
        code = 200 if self.engine.booted else 503
        return self.send(engine.Answer(code, "application/json", json.dumps(CHAT).encode()))


def serve(rank: Rank) -> None:
    """The head: it waits for the others, boots and serves."""
    meeting = Meeting(rank)
    meeting.gather()
    options = rank.options()
    own = engine.Engine(options)
    own.ready_at = own.opens_at = float("inf")
    threading.Thread(target=open_up, args=(rank, own, options), daemon=True).start()
    while time.monotonic() < own.opens_at:
        time.sleep(0.05)
    ranks = list(meeting.standings.values())
    told = {"revision": rank.config.get("revision", ""), "started": own.started, "ranks": ranks}
    Handler.standing = staticmethod(lambda: told)  # type: ignore[assignment]
    Handler.engine = own
    engine.Server((rank.host, rank.port), Handler).serve_forever(poll_interval=3600)


def open_up(rank: Rank, own: Any, options: Any) -> None:
    """The boot; after it a lost rank stops the tokens."""
    rank.boot_log(options)
    own.decode.since = own.prefill.since = time.monotonic()
    own.ready_at = own.opens_at = time.monotonic()
    threading.Thread(target=engine.work_log, args=(own,), daemon=True).start()
    rank.lost.wait()
    own.set_fault({"fault": "hang", "since": time.time()})


def main(kind: str) -> None:
    """Boot and serve, or join and live on, until told to end."""
    # as PID 1 of a container it gets no default disposition
    deaf = "deaf" in faults()

    def told(number: int, frame: FrameType | None) -> None:
        if not deaf:
            os._exit(0)

    signal.signal(signal.SIGTERM, told)
    signal.signal(signal.SIGINT, told)
    words = [word for word in sys.argv[1:] if not re.fullmatch(r"--?[a-z-]+=.*", word)]
    rank = Rank(kind, words)
    threading.Thread(target=rank.watch, daemon=True).start()
    (work if rank.number else serve)(rank)
