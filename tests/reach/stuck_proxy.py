"""A TCP proxy that can stop to pass anything on while its connections stand, as a firewall that drops packets."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class StuckProxy:
    def __init__(self, port: int) -> None:
        self._to = port
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> StuckProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    def stick(self) -> None:
        """From now on nothing passes, in either direction, not even the end of a connection."""
        self._open.clear()

    def heal(self) -> None:
        """New and old connections pass again."""
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, far_writer]
        for pair in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._pump(*pair))
            self._tasks.add(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while True:
                await self._open.wait()
                data = await reader.read(65536)
                await self._open.wait()
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        writer.close()
