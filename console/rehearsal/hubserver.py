"""A stand-in for the Hub's API: what a revision consists of, and where the main branch stands, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from console.rehearsal.hub import Checkpoint, hub_answer

HEAD_LIMIT = 16384
_MODEL = re.compile(r"/api/models/(?P<model>[^/]+/[^/]+?)(?:/revision/(?P<revision>[^/]+))?")
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found"}


class HubServer:
    """`GET /api/models/ORG/NAME[/revision/REVISION]`; a branch stands for where it is now."""

    def __init__(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        self._checkpoints = checkpoints
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Listen; `url` is known afterwards."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_LIMIT)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """No longer listen."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            words = head.split("\r\n", 1)[0].split(" ")
            status, body = self._answer(words[1]) if len(words) == 3 else (400, b"{}")
            writer.write(
                f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked is gone, or speaks no HTTP
        finally:
            writer.close()

    def _answer(self, path: str) -> tuple[int, bytes]:
        match = _MODEL.fullmatch(urlsplit(path).path)
        checkpoint = next((item for item in self._checkpoints.values() if match and item.name == match["model"]), None)
        if match is None or checkpoint is None:
            return 404, b'{"error":"Repository not found"}'
        wanted = unquote(match["revision"] or "main")
        revision = checkpoint.upstream if wanted == "main" else wanted
        known = {item.revision for item in checkpoint.model.revisions} | {checkpoint.upstream}
        if revision not in known:
            return 404, json.dumps({"error": f"Invalid rev id: {wanted[:80]}"}).encode()
        return 200, hub_answer(checkpoint.name, revision)
