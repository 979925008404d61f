"""A stand-in for the Docker Engine API: what a console reads, as real HTTP over whatever bytes come.

Answers GET of /_ping, /version, /containers/json, /containers/{id}/json, /containers/{id}/logs, /images/{name}/json and
/events, with or without a version in front, as Docker Engine 28.2 does; anything else is refused, so nothing can be
changed through it.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from email.utils import formatdate
from typing import NamedTuple, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from console.rehearsal.box import Box, LogEntry, image_id
from console.rehearsal.boxes import Boxes

API, OLDEST, ENGINE = "1.50", "1.24", "28.2.2"
NEVER = "0001-01-01T00:00:00Z"
HEAD_LIMIT = 16384


class Reader(Protocol):
    """Where requests come from."""

    async def readuntil(self, separator: bytes) -> bytes:
        """Bytes up to and with `separator`; asyncio.IncompleteReadError at the end."""
        ...

    async def read(self, n: int) -> bytes:
        """At most `n` bytes, none at the end."""
        ...


class Writer(Protocol):
    """Where answers go."""

    def write(self, data: bytes) -> None:
        """Queue bytes."""
        ...

    async def drain(self) -> None:
        """Wait while too many are queued."""
        ...

    def close(self) -> None:
        """End the stream."""
        ...


class Request(NamedTuple):
    """One request; `path` without the version in front."""

    method: str
    path: str
    query: dict[str, str]
    close: bool

    @property
    def streams(self) -> bool:
        """True for answers that go on; their connection carries nothing else."""
        return self.path == "/events" or self.path.endswith("/logs")


class DockerApi:
    """The Docker Engine of one host."""

    def __init__(self, boxes: Boxes) -> None:
        self.boxes = boxes

    async def serve(self, reader: Reader, writer: Writer) -> None:
        """Answer the requests of one connection until it ends."""
        try:
            while (request := await read_request(reader)) is not None:
                await self._answer(request, reader, writer)
                if request.close or request.streams:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the other side is gone or speaks no HTTP: there is nobody to tell
        finally:
            writer.close()

    async def _answer(self, request: Request, reader: Reader, writer: Writer) -> None:
        if request.method not in ("GET", "HEAD"):
            return await _send(writer, 403, {"message": "rehearsal: nothing is changed through this socket"})
        if request.path == "/_ping":
            return await _send(writer, 200, b"OK", {"Api-Version": API, "Docker-Experimental": "false"})
        if request.path == "/version":
            return await _send(writer, 200, version())
        if request.path == "/events":
            return await _stream(reader, writer, self._events(request.query), "application/json")
        if request.path == "/containers/json":
            everything = request.query.get("all") in ("1", "true", "True")
            shown = [box for box in self.boxes.items if everything or box.state == "running"]
            return await _send(writer, 200, [listed(box, self.boxes.moved) for box in shown])
        if image := re.fullmatch(r"/images/(.+)/json", request.path):
            return await self._image(writer, unquote(image[1]))
        match = re.fullmatch(r"/containers/([^/]+)/(json|logs)", request.path)
        if match is None:
            return await _send(writer, 404, {"message": "page not found"})
        box = self.boxes.find(unquote(match[1]))
        if box is None:
            return await _send(writer, 404, {"message": f"No such container: {unquote(match[1])}"})
        if match[2] == "json":
            return await _send(writer, 200, inspected(box))
        kind = "application/vnd.docker.multiplexed-stream"
        await _stream(reader, writer, self._logs(box, request.query), kind)

    async def _image(self, writer: Writer, name: str) -> None:
        if name not in {box.model.image for box in self.boxes.items} or name in self.boxes.unnamed:
            return await _send(writer, 404, {"message": f"No such image: {name}"})
        found = self.boxes.moved.get(name) or image_id(name)
        await _send(writer, 200, {"Id": found, "RepoTags": [name], "Os": "linux", "Architecture": "arm64"})

    async def _events(self, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        wanted = _filters(query.get("filters", ""))
        since, seen = _seconds(query.get("since", "")), 0
        until = _seconds(query["until"]) if "until" in query else None
        first = True
        while True:
            async with self.boxes.news:
                if not first:
                    await self.boxes.news.wait_for(lambda known=seen: self.boxes.happened > known)  # type: ignore[misc]
                fresh = self.boxes.happened - seen
                events = list(self.boxes.events)[-fresh:] if fresh else []
                seen = self.boxes.happened
            for event in events:
                old = first and (not since or _moment(event) < since)
                if not old and event["Type"] in wanted.get("type", [event["Type"]]) and _wants(wanted, event):
                    yield json.dumps(event).encode() + b"\n"
            if until is not None and time.time() >= until:
                return
            first = False

    async def _logs(self, box: Box, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        streams = [number for number, key in ((1, "stdout"), (2, "stderr")) if query.get(key) in ("1", "true", "True")]
        stamps = query.get("timestamps") in ("1", "true", "True")
        since = _seconds(query.get("since", "")) * 1e9
        tail = query.get("tail", "all")
        lines = list(box.log)
        if tail.isdigit():
            lines = lines[len(lines) - min(len(lines), int(tail)) :]
        seen = box.lines
        while True:
            for entry in lines:
                if entry.stream in streams and entry.time_ns >= since:
                    yield frame(entry, stamps)
            if query.get("follow") not in ("1", "true", "True") or box.state != "running":
                return
            async with self.boxes.news:
                await self.boxes.news.wait_for(lambda known=seen: box.lines > known or box.state != "running")  # type: ignore[misc]
            fresh = box.lines - seen
            lines, seen = list(box.log)[-fresh:] if fresh else [], box.lines


async def read_request(reader: Reader) -> Request | None:
    """The next request of a connection, None at its end. Bodies are not expected: nothing here takes one."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    if len(head) > HEAD_LIMIT:
        return None
    first, *rest = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        return None
    headers = {name.strip().lower(): value.strip() for name, _, value in (row.partition(":") for row in rest)}
    parts = urlsplit(words[1])
    path = re.sub(r"^/v1\.\d+(?=/)", "", parts.path)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    length = headers.get("content-length", "0")
    close = headers.get("connection", "").lower() == "close" or words[2] == "HTTP/1.0" or length != "0"
    return Request(words[0], path, query, close)


async def _send(writer: Writer, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "text/plain; charset=utf-8" if isinstance(body, bytes) else "application/json"
    extra = "".join(f"{key}: {value}\r\n" for key, value in (headers or {}).items())
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nApi-Version: {API}\r\nServer: Docker/{ENGINE} (linux)\r\n"
        f"Content-Type: {kind}\r\nDate: {formatdate(usegmt=True)}\r\nContent-Length: {len(data)}\r\n{extra}\r\n"
    )
    writer.write(head.replace(f"Api-Version: {API}\r\n", "", 1 if extra else 0).encode() + data)
    await writer.drain()


async def _stream(reader: Reader, writer: Writer, parts: AsyncIterator[bytes], kind: str) -> None:
    """Send parts until there are no more or the other side hangs up: seen at once, not with the next part."""
    sending = asyncio.create_task(_chunks(writer, parts, kind))
    hanging_up = asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait((sending, hanging_up), return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        for task in (sending, hanging_up):
            task.cancel()
        await asyncio.gather(sending, hanging_up, return_exceptions=True)


async def _chunks(writer: Writer, parts: AsyncIterator[bytes], kind: str) -> None:
    head = (
        f"HTTP/1.1 200 OK\r\nApi-Version: {API}\r\nServer: Docker/{ENGINE} (linux)\r\nContent-Type: {kind}\r\n"
        f"Date: {formatdate(usegmt=True)}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    writer.write(head.encode())
    await writer.drain()
    async for part in parts:
        writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


_REASONS = {200: "OK", 403: "Forbidden", 404: "Not Found"}


def frame(entry: LogEntry, stamps: bool) -> bytes:
    """One log line as Docker multiplexes it: stream, three zeros, length, then the bytes."""
    line = (stamp(entry.time_ns / 1e9).encode() + b" " if stamps else b"") + entry.text
    return bytes((entry.stream, 0, 0, 0)) + len(line).to_bytes(4, "big") + line


def stamp(unix: float | None) -> str:
    """RFC 3339 with nanoseconds, as Docker writes times."""
    if unix is None:
        return NEVER
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(unix)) + f".{int(unix % 1 * 1e9):09d}Z"


def version() -> dict[str, object]:
    """/version."""
    engine = {"Name": "Engine", "Version": ENGINE, "Details": {"ApiVersion": API, "MinAPIVersion": OLDEST}}
    return {
        "Platform": {"Name": "Docker Engine - Community (rehearsal)"},
        "Components": [engine],
        "Version": ENGINE,
        "ApiVersion": API,
        "MinAPIVersion": OLDEST,
        "Os": "linux",
        "Arch": "arm64",
        "KernelVersion": "6.17.0-1031-nvidia",
    }


def mounts(box: Box) -> list[dict[str, object]]:
    """The bind mounts of a container."""
    rows: list[dict[str, object]] = []
    for text in box.mounts:
        source, target, *mode = text.split(":")
        writable = mode != ["ro"]
        row = {"Type": "bind", "Source": source, "Destination": target, "Mode": ":".join(mode), "RW": writable}
        rows.append({**row, "Propagation": "rprivate"})
    return rows


def listed(box: Box, moved: Mapping[str, str]) -> dict[str, object]:
    """One row of /containers/json. Docker names an image by its digest once the name means another one."""
    named = moved.get(box.model.image, box.image_id) == box.image_id
    return {
        "Id": box.id,
        "Names": [f"/{box.model.name}"],
        "Image": box.model.image if named else box.image_id,
        "ImageID": box.image_id,
        "Command": " ".join(box.args)[:200],
        "Created": int(box.created),
        "Ports": [],
        "Labels": dict(box.model.labels),
        "State": box.state,
        "Status": status_text(box),
        "HostConfig": {"NetworkMode": "host"},
        "NetworkSettings": {"Networks": {}},
        "Mounts": mounts(box),
    }


def inspected(box: Box) -> dict[str, object]:
    """/containers/{id}/json."""
    running = box.state == "running"
    state = {
        "Status": box.state,
        "Running": running,
        "Paused": False,
        "Restarting": False,
        "OOMKilled": box.oom,
        "Dead": False,
        "Pid": box.pid,
        "ExitCode": 0 if running else box.exit_code,
        "Error": "",
        "StartedAt": stamp(box.started),
        "FinishedAt": stamp(box.finished),
    }
    policy = {"Name": box.model.restart, "MaximumRetryCount": 0}
    host = {"NetworkMode": "host", "AutoRemove": False, "RestartPolicy": policy, "Binds": list(box.mounts)}
    path, *args = box.args or ["true"]
    config = {"Image": box.model.image, "Entrypoint": None, "Cmd": box.args, "Labels": dict(box.model.labels)}
    config |= {"Env": box.env}
    return {
        "Id": box.id,
        "Name": f"/{box.model.name}",
        "Created": stamp(box.created),
        "Image": box.image_id,
        "Path": path,
        "Args": args,
        "State": state,
        "RestartCount": box.restarts,
        "Driver": "overlay2",
        "Platform": "linux",
        "HostConfig": {**host, "PortBindings": {}},
        "Mounts": mounts(box),
        "Config": {**config, "Tty": False},
        "NetworkSettings": {"Ports": {}, "Networks": {"host": {}}},
    }


def status_text(box: Box) -> str:
    """The Status column of `docker ps`."""
    since = box.started if box.state == "running" else box.finished
    if since is None:
        return "Created"
    seconds = max(0.0, time.time() - since)
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1)):
        if seconds >= 2 * size or size == 1:
            ago = f"{int(seconds // size)} {unit}"
            break
    return f"Up {ago}" if box.state == "running" else f"Exited ({box.exit_code}) {ago} ago"


def _filters(text: str) -> dict[str, list[str]]:
    try:
        raw = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(raw, dict):
        return {}
    return {str(key): [str(item) for item in values] for key, values in raw.items()}


def _wants(wanted: Mapping[str, list[str]], event: Mapping[str, object]) -> bool:
    return str(event["Action"]) in wanted.get("event", [str(event["Action"])])


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _moment(event: Mapping[str, object]) -> float:
    nano = event["timeNano"]
    return nano / 1e9 if isinstance(nano, int) else 0.0
