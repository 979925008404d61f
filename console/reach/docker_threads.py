"""Blocking calls in daemon threads that are waited for, ended by their sockets, and all gone after `close`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from console.readings.docker_errors import DockerProblem

T = TypeVar("T")

END_POLL = 0.01
"""Seconds between looks at whether a thread has ended."""


class DockerUnreadable(Exception):
    """Docker answered, or something did, and it cannot be read: `problem` says why."""

    def __init__(self, problem: DockerProblem) -> None:
        super().__init__(problem.problem)
        self.problem = problem


class NoSuchContainer(DockerUnreadable):
    """Status 404."""


class DockerSilent(Exception):
    """The connection to Docker could not be made or broke; why is for the probe to find out."""


class Threads:
    """One thread a call, named after its host. Daemon threads: one that hangs in the kernel never holds up an exit."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._alive: set[threading.Thread] = set()

    async def call(self, function: Callable[[], T], *, limit: float | None, abort: Callable[[], None]) -> T:
        """The result of a blocking function. `abort` must make it return; it is called after `limit` seconds (then
        TimeoutError) and when the caller is cancelled."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def deliver(result: T | None, error: BaseException | None) -> None:
            if not answer.done():
                if error is not None:
                    answer.set_exception(error)
                else:
                    answer.set_result(result)  # type: ignore[arg-type]

        def work() -> None:
            result: T | None = None
            failure: BaseException | None = None
            try:
                result = function()
            except BaseException as error:  # handed to whoever waits
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
                loop.call_soon_threadsafe(deliver, result, failure)

        thread = threading.Thread(target=work, name=self._name, daemon=True)
        self._alive = {known for known in self._alive if known.is_alive()} | {thread}
        thread.start()
        try:
            async with asyncio.timeout(limit):
                return await answer
        except (TimeoutError, asyncio.CancelledError):
            abort()
            raise

    async def ended(self, limit: float = 5.0) -> bool:
        """Wait until every thread has ended; False if one has not after `limit` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while any(thread.is_alive() for thread in self._alive):  # noqa: ASYNC110 - nothing is later than its end
                    await asyncio.sleep(END_POLL)
        return not any(thread.is_alive() for thread in self._alive)
