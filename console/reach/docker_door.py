"""The way to one host's Docker: its socket brought here, the API version agreed on, and why it refuses."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from console.reach.docker_threads import DockerUnreadable, Threads
from console.reach.link import Link, ReachError, Reason
from console.readings.docker_errors import OLDEST_API, PROBE, DockerProblem, explain_probe, negotiate

if TYPE_CHECKING:
    from console.reach.docker_sdk import Sdk

PROBED_BY_SOCKET = (Reason.REFUSED, Reason.FORBIDDEN, Reason.NOT_FOUND)
"""Reasons for which a look at the socket on the host says more than the refused channel does."""


def _make(path: str, version: str, limit: float) -> Sdk:
    from console.reach.docker_sdk import Sdk  # docker and requests cost 0.3 s: not before a host's Docker is asked

    return Sdk(path, version, limit)


class DockerDoor:
    """Opens on the first `client` and again after `drop`; several tasks take turns."""

    def __init__(self, link: Link, socket_path: str, threads: Threads, limit: float) -> None:
        self._link = link
        self._socket_path = socket_path
        self._threads = threads
        self._limit = limit
        self._stack: AsyncExitStack | None = None
        self._local = ""
        self._closed = False
        self._turn = asyncio.Lock()
        self.api = ""
        """The version agreed on; '' while the door is shut."""

    async def client(self) -> Sdk:
        """A new client. Raises ReachError, DockerUnreadable, DockerSilent and TimeoutError."""
        async with self._turn:
            if self._stack is None:
                await self._open()
            return await self._threads.call(
                partial(_make, self._local, self.api, self._limit), limit=self._limit, abort=_nothing
            )

    async def _open(self) -> None:
        if self._closed:
            raise ReachError(self._link.name, f"docker {self._socket_path}", "closed")
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._limit):
                path = await stack.enter_async_context(self._link.forward_unix(self._socket_path))
            self.api = await self._agree(str(path))
            self._local = str(path)
            self._stack = stack.pop_all()

    async def _agree(self, path: str) -> str:
        first = await self._threads.call(partial(_make, path, OLDEST_API, self._limit), limit=None, abort=_nothing)
        try:
            answer = await self._threads.call(first.version, limit=self._limit, abort=first.abort)
        finally:
            first.close()
        choice = negotiate(answer)
        if choice.problem is not None:
            raise DockerUnreadable(choice.problem)
        return choice.version

    async def drop(self) -> None:
        """Shut the door: the next client comes through a new one."""
        async with self._turn:
            stack, self._stack, self.api = self._stack, None, ""
            if stack is not None:
                await stack.aclose()

    async def close(self) -> None:
        """Shut the door for good."""
        self._closed = True
        await self.drop()

    async def explain(self) -> DockerProblem:
        """Why the socket gives no answer: looked up on the host."""
        output = await self._link.run(["sh", "-c", PROBE, "sh", self._socket_path], limit=self._limit)
        return explain_probe(output.stdout, self._socket_path)


def _nothing() -> None:
    """Making a client waits for nobody."""
