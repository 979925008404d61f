"""A proxy in front of an engine: a real relay on loopback that can refuse, or say that the engine is gone."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from console.rehearsal.engine import HTML
from console.rehearsal.gate import CHUNK, Gate

_PAGE = HTML.replace("504 Gateway Time-out", "502 Bad Gateway").encode()
BAD_GATEWAY = (
    f"HTTP/1.1 502 Bad Gateway\r\nServer: nginx/1.24.0 (Ubuntu)\r\nContent-Type: text/html\r\n"
    f"Content-Length: {len(_PAGE)}\r\nConnection: close\r\n\r\n"
).encode() + _PAGE


class FrontProxy:
    """What it takes on its port goes to where the engine listens."""

    def __init__(self, port: int, engine: Callable[[], int | None]) -> None:
        """`port` is the host's own; `engine` tells where the engine listens on this machine, None while it does not."""
        self.port = port
        self._engine = engine
        self._lost = False
        self._gate = Gate(self._serve)

    @property
    def listens(self) -> int | None:
        """Where on this machine; None while it refuses."""
        return self._gate.port if self._gate.is_open else None

    async def start(self) -> None:
        """Listen."""
        await self._gate.start()

    async def set_mode(self, mode: str) -> None:
        """`refused`, `502` or `well`; connections made before are cut."""
        self._lost = mode == "502"
        await self._gate.set_mode("refused")
        if mode != "refused":
            await self._gate.set_mode("open")

    async def close(self) -> None:
        """End every connection."""
        await self._gate.close()

    async def _serve(self, wire: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=wire)
        behind: asyncio.StreamWriter | None = None
        try:
            port = None if self._lost else self._engine()
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                if port is None:
                    await reader.readuntil(b"\r\n\r\n")
                    writer.write(BAD_GATEWAY)
                    await writer.drain()
                    return
                answers, behind = await asyncio.open_connection("127.0.0.1", port)
                both = [asyncio.create_task(_pass(reader, behind)), asyncio.create_task(_pass(answers, writer))]
                try:
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for one in both:
                        one.cancel()
                    await asyncio.gather(*both, return_exceptions=True)
        finally:
            writer.close()
            if behind is not None:
                behind.close()


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(CHUNK):
            target.write(data)
            await target.drain()
