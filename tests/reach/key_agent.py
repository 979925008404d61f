"""Agents that hold a key: one of our own, which needs no package, and OpenSSH's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
from asyncssh.packet import Byte, SSHPacket, String, UInt32
from ssh_host import eventually

FAILURE, REQUEST_IDENTITIES, IDENTITIES, SIGN_REQUEST, SIGNATURE = 5, 11, 12, 13, 14
"""Message numbers of draft-miller-ssh-agent, section 5.1."""


def _answer(key: asyncssh.SSHKey, request: bytes) -> bytes:
    packet = SSHPacket(request)
    kind = packet.get_byte()
    if kind == REQUEST_IDENTITIES:
        return Byte(IDENTITIES) + UInt32(1) + String(key.public_data) + String("the only key")
    if kind == SIGN_REQUEST and packet.get_string() == key.public_data:
        return Byte(SIGNATURE) + String(key.sign(packet.get_string(), key.sig_algorithms[0]))
    return Byte(FAILURE)


@asynccontextmanager
async def stand_in(path: Path, key: asyncssh.SSHKey) -> AsyncIterator[None]:
    """Lists and signs with the key on a socket at `path`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while size := await reader.readexactly(4):
                answer = _answer(key, await reader.readexactly(int.from_bytes(size)))
                writer.write(String(answer))
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_unix_server(serve, path)
    async with server:
        yield


@asynccontextmanager
async def openssh(path: Path, key: asyncssh.SSHKey) -> AsyncIterator[None]:
    """OpenSSH's own agent, with the key added by ssh-add; the key's file is gone before the agent is used."""
    quiet = asyncio.subprocess.DEVNULL
    agent = await asyncio.create_subprocess_exec("ssh-agent", "-D", "-a", path, stdout=quiet)
    try:
        await eventually(path.exists, "the agent listens")
        file = path.with_name("for-the-agent")
        file.touch(mode=0o600)
        file.write_bytes(key.export_private_key())
        adding = await asyncio.create_subprocess_exec("ssh-add", "-q", file, stderr=quiet)
        assert await adding.wait() == 0
        file.unlink()
        yield
    finally:
        agent.terminate()
        await agent.wait()
