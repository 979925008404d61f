"""The wire of a played host: what it refuses it does not serve, whenever it was taken."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from console.rehearsal.gate import Gate

LIMIT = 30.0


@pytest.mark.parametrize("turns", range(8))
async def test_a_connection_that_is_taken_in_the_moment_of_refusing_is_reset(turns: int) -> None:
    """Between the kernel's accept and the first line of ours lie some turns of the loop."""

    async def serve(wire: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=wire)
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(100):
                writer.write(data)
        writer.close()

    gate = Gate(serve)
    await gate.start()
    with socket.create_connection(("127.0.0.1", gate.port), LIMIT) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        await gate.set_mode("refused")
        client.setblocking(False)
        with contextlib.suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(client, b"x")
            assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 100), LIMIT) == b""
    await gate.close()
