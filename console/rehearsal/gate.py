"""The wire of one rehearsal host: every ssh byte passes here, so that a host can fall silent, refuse or be well."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Literal

Mode = Literal["open", "silent", "refused"]
CHUNK = 65536
TAKING = 5
"""Turns of the loop from the kernel's accept to the first line of `_accept`, and some to spare."""


class Gate:
    """Listens on a loopback port and relays to ssh connections made by `serve`; `silent` passes nothing either way."""

    def __init__(self, serve: Callable[[socket.socket], Awaitable[None]]) -> None:
        self._serve = serve
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server | None = None
        self._wires: set[asyncio.Task[None]] = set()
        self._held: socket.socket | None = None
        self._shut = False
        self.port = 0

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._server is not None

    @property
    def silent(self) -> bool:
        """Whether it swallows what comes."""
        return not self._open.is_set()

    async def start(self) -> None:
        """Listen; `port` is known afterwards and stays the same."""
        self._shut = False
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self._let_go()

    async def set_mode(self, mode: Mode) -> None:
        """`refused` also resets what is connected. Raises OSError where the port was taken meanwhile."""
        if mode == "silent":
            self._open.clear()
        else:
            self._open.set()
        if mode == "refused" and self._server is not None:
            await self._stop()
            self._hold()
        elif mode != "refused" and self._server is None:
            await self.start()

    async def close(self) -> None:
        """End every connection; returns when they are gone."""
        await self._stop()
        self._let_go()

    def _hold(self) -> None:
        """Keep the port without listening: it refuses, and is not given to another program meanwhile."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind(("127.0.0.1", self.port))
        except OSError:
            held.close()  # somebody has it already: opening the gate says so
            return
        self._held = held

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None

    async def _stop(self) -> None:
        self._shut = True
        server, self._server = self._server, None
        if server is not None:
            loop = asyncio.get_running_loop()
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
            for _ in range(TAKING):  # closed before, a server leaves what it has just taken open and unserved
                await asyncio.sleep(0)
            server.close()
        wires = list(self._wires)
        for wire in wires:
            wire.cancel()
        await asyncio.gather(*wires, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._shut:  # taken in the moment of closing: no wire yet when the others were cut
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._wires.add(task)
        inner: asyncio.StreamWriter | None = None
        serving: asyncio.Future[None] | None = None
        try:
            await self._open.wait()
            ours, theirs = socket.socketpair()
            serving = asyncio.ensure_future(self._serve(theirs))
            inner_reader, inner = await asyncio.open_connection(sock=ours)
            relays = [
                asyncio.create_task(self._relay(reader, inner)),
                asyncio.create_task(self._relay(inner_reader, writer)),
            ]
            try:
                await asyncio.wait(relays, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for relay in relays:
                    relay.cancel()
                await asyncio.gather(*relays, return_exceptions=True)
        except asyncio.CancelledError:
            pass  # the gate closes: the connection is aborted below
        finally:
            writer.transport.abort()
            if inner is not None:
                inner.transport.abort()
            if serving is not None:
                serving.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.gather(serving, return_exceptions=True)
                if serving.done() and not serving.cancelled() and (fault := serving.exception()) is not None:
                    print(f"rehearsal: a connection ended oddly: {fault!r}", file=sys.stderr, flush=True)
            self._wires.discard(task)

    async def _relay(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(CHUNK):
                await self._open.wait()
                target.write(data)
                await target.drain()
