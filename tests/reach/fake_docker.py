"""A small Docker Engine API on a Unix socket, for tests: what is asked, from data that the test changes as it runs."""

from __future__ import annotations

import json
import queue
import select
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

CLOCK = 1_792_314_611
"""Unix seconds that the daemon's clock always shows: 2026-10-18T09:10:11Z."""
ZERO_TIME = "0001-01-01T00:00:00Z"


def container(
    number: int, name: str, *, state: str = "running", code: int = 0, args: list[str] | None = None, **more: Any
) -> dict[str, Any]:
    """What inspect says of a made container."""
    up = state in ("running", "paused")
    return {
        "Id": f"{number:064x}",
        "Name": f"/{name}",
        "Created": f"2026-10-18T08:00:{number % 60:02d}Z",
        "Path": "vllm",
        "Args": args if args is not None else ["serve", "/model", "--port", "30006"],
        "RestartCount": 0,
        "Image": "sha256:" + "d" * 64,
        "State": {
            "Status": state,
            "Running": up,
            "Paused": state == "paused",
            "OOMKilled": False,
            "Dead": False,
            "Pid": 4242 if up else 0,
            "ExitCode": code,
            "Error": "",
            "StartedAt": "2026-10-18T09:00:00Z",
            "FinishedAt": ZERO_TIME if up else "2026-10-18T09:10:11Z",
        },
        "Mounts": [{"Type": "bind", "Source": f"/models/m-{'1bae0e10' * 5}", "Destination": "/model", "RW": False}],
        "Config": {"Image": "vllm/vllm-openai:x", "Labels": {}, "Tty": False},
        "HostConfig": {"RestartPolicy": {"Name": "no"}, "AutoRemove": False, "NetworkMode": "host"},
        **more,
    }


def row(raw: dict[str, Any]) -> dict[str, Any]:
    """The list row of a made container."""
    state = raw["State"]["Status"]
    status = "Up 5 minutes" if raw["State"]["Running"] else f"Exited ({raw['State']['ExitCode']}) 3 minutes ago"
    return {
        "Id": raw["Id"],
        "Names": [raw["Name"]],
        "Image": raw["Config"]["Image"],
        "ImageID": raw["Image"],
        "Created": 1_792_310_400 + int(raw["Id"], 16),
        "State": state,
        "Status": status,
        "Labels": raw["Config"]["Labels"],
        "Ports": [],
        "HostConfig": {"NetworkMode": "host"},
        "Mounts": raw["Mounts"],
    }


def frame(stream: int, payload: bytes) -> bytes:
    """One frame of a log stream."""
    return struct.pack(">BxxxL", stream, len(payload)) + payload


class FakeDocker:
    """The daemon's state. `asked` counts requests by path; streams are fed with `emit` and `log`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.containers: dict[str, dict[str, Any]] = {}
        self.version: Any = {"Version": "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12"}
        self.answers: dict[str, tuple[int, bytes]] = {}
        """Path (without version) -> status and body to answer instead."""
        self.hang: set[str] = set()
        """Paths that are never answered."""
        self.asked: list[str] = []
        self.queries: list[tuple[str, dict[str, list[str]]]] = []
        self.past: list[dict[str, Any]] = []
        self.log_pieces: dict[str, list[bytes]] = {}
        self.streams: list[queue.Queue[bytes | None]] = []
        self.released = threading.Event()
        self.open_connections = 0
        self.lock = threading.Lock()

    def add(self, raw: dict[str, Any]) -> dict[str, Any]:
        self.containers[raw["Id"]] = raw
        return raw

    def send(self, piece: bytes | None) -> None:
        """A piece to every open stream; None ends them."""
        for stream in list(self.streams):
            stream.put(piece)

    def emit(self, raw: dict[str, Any], action: str, nanos: int, **attributes: str) -> None:
        """An event, live and for later replays."""
        event = {
            "Type": "container",
            "Action": action,
            "Actor": {"ID": raw["Id"], "Attributes": {"name": raw["Name"].lstrip("/"), **attributes}},
            "time": nanos // 10**9,
            "timeNano": nanos,
        }
        self.past.append(event)
        self.send(json.dumps(event).encode() + b"\n")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    docker: FakeDocker

    def address_string(self) -> str:
        return "unix"

    def date_time_string(self, timestamp: int | None = None) -> str:
        return super().date_time_string(CLOCK)

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def setup(self) -> None:
        super().setup()
        with self.docker.lock:
            self.docker.open_connections += 1

    def finish(self) -> None:
        with self.docker.lock:
            self.docker.open_connections -= 1
        super().finish()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = parts.path
        if path.startswith("/v1."):
            path = path[path.index("/", 1) :]
        docker = self.docker
        docker.asked.append(parts.path)
        docker.queries.append((path, parse_qs(parts.query)))
        if path in docker.hang:
            docker.released.wait(30)
            self.close_connection = True
        elif path in docker.answers:
            self._answer(*docker.answers[path])
        elif path == "/version":
            self._answer(200, json.dumps(docker.version).encode())
        elif path == "/containers/json":
            self._answer(200, json.dumps([row(raw) for raw in list(docker.containers.values())]).encode())
        elif path == "/events":
            self._stream([json.dumps(event).encode() + b"\n" for event in docker.past], live=True)
        elif path.endswith("/logs") and unquote(path.split("/")[2]) in docker.containers:
            self._stream(docker.log_pieces.get(unquote(path.split("/")[2]), []), live="follow" in parts.query)
        else:
            self._inspect(unquote(path.split("/")[2]))

    def _inspect(self, container_id: str) -> None:
        raw = self.docker.containers.get(container_id)
        if raw is None:
            self._answer(404, json.dumps({"message": f"No such container: {container_id}"}).encode())
        else:
            self._answer(200, json.dumps(raw).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, pieces: list[bytes], *, live: bool) -> None:
        mine: queue.Queue[bytes | None] = queue.Queue()
        self.docker.streams.append(mine)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for piece in pieces:
                self._chunk(piece)
            while live and (piece_or_end := self._next(mine)) is not None:
                self._chunk(piece_or_end)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
        finally:
            self.docker.streams.remove(mine)

    def _next(self, mine: queue.Queue[bytes | None]) -> bytes | None:
        """The next piece; None at the end. Raises ConnectionError when the client has gone."""
        while True:
            try:
                return mine.get(timeout=0.02)
            except queue.Empty:
                if select.select([self.connection], [], [], 0)[0]:
                    raise ConnectionResetError from None

    def _chunk(self, piece: bytes) -> None:
        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.flush()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


@contextmanager
def fake_docker(path: Path) -> Iterator[FakeDocker]:
    """A daemon at `path`, until the block ends."""
    docker = FakeDocker(path)
    handler = type("Handler", (_Handler,), {"docker": docker})
    server = _Server(str(path), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="fake-docker")
    thread.start()
    try:
        yield docker
    finally:
        docker.released.set()
        docker.send(None)
        server.shutdown()
        server.server_close()
        thread.join(10)
        path.unlink(missing_ok=True)


def dead_socket(path: Path) -> None:
    """A socket file behind which nobody listens."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
