"""A stand-in for the Hub's API, and for a proxy that has lost its engine: small real HTTP servers on loopback."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import unquote, urlsplit

from console.rehearsal.engine import HTML
from console.rehearsal.hub import Checkpoint, hub_answer

HEAD_LIMIT = 16384
_MODEL = re.compile(r"/api/models/(?P<model>[^/]+/[^/]+?)(?:/revision/(?P<revision>[^/]+))?")
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 502: "Bad Gateway"}


class HubServer:
    """`GET /api/models/ORG/NAME[/revision/REVISION]`; a branch stands for where it is now."""

    def __init__(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        self._checkpoints = checkpoints
        self._servers: list[asyncio.Server] = []
        self._ports = (0, 0)

    @property
    def url(self) -> str:
        """Base URL of the Hub."""
        return f"http://127.0.0.1:{self._ports[0]}"

    @property
    def bad_gateway(self) -> int:
        """A port on which every path answers 502."""
        return self._ports[1]

    async def start(self) -> None:
        """Listen; ports are known afterwards."""
        for answer in (self._hub, self._lost):
            self._servers.append(await asyncio.start_server(_serving(answer), "127.0.0.1", 0, limit=HEAD_LIMIT))
        first, second = (server.sockets[0].getsockname()[1] for server in self._servers)
        self._ports = (first, second)

    async def close(self) -> None:
        """No longer listen."""
        for server in self._servers:
            server.close()

    def _hub(self, path: str) -> tuple[int, str, bytes]:
        match = _MODEL.fullmatch(urlsplit(path).path)
        checkpoint = next((item for item in self._checkpoints.values() if match and item.name == match["model"]), None)
        if match is None or checkpoint is None:
            return 404, "application/json", b'{"error":"Repository not found"}'
        wanted = unquote(match["revision"] or "main")
        revision = checkpoint.upstream if wanted == "main" else wanted
        known = {item.revision for item in checkpoint.model.revisions} | {checkpoint.upstream}
        if revision not in known:
            return 404, "application/json", json.dumps({"error": f"Invalid rev id: {wanted[:80]}"}).encode()
        return 200, "application/json", hub_answer(checkpoint.name, revision)

    def _lost(self, path: str) -> tuple[int, str, bytes]:
        return 502, "text/html", HTML.replace("504 Gateway Time-out", "502 Bad Gateway").encode()


def _serving(
    answer: Callable[[str], tuple[int, str, bytes]],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            words = head.split("\r\n", 1)[0].split(" ")
            status, kind, body = answer(words[1]) if len(words) == 3 else (400, "text/plain", b"")
            writer.write(
                f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                "Connection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked is gone, or speaks no HTTP
        finally:
            writer.close()

    return serve
