"""What every reader of a container's log does: a connection of its own in a thread, and words for what goes wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from console import sanitize
from console.reach.docker_door import DockerDoor
from console.reach.docker_threads import DockerSilent, DockerUnreadable, Threads
from console.reach.link import ReachError

if TYPE_CHECKING:
    from console.reach.docker_sdk import Sdk


class LogReading:
    """Reads a log once after the other; `abort` ends the present reading."""

    def __init__(self, door: DockerDoor, threads: Threads) -> None:
        self._door, self._threads = door, threads
        self._sdk: Sdk | None = None

    async def once(self, read: Callable[[Sdk], None]) -> None:
        """Call `read` in a thread, until it returns. Raises what it raises, and what opening the connection does."""
        sdk = self._sdk = await self._door.client()
        try:
            await self._threads.call(lambda: read(sdk), limit=None, abort=sdk.abort)
        finally:
            sdk.close()
            self._sdk = None

    def abort(self) -> None:
        """End thread and connection of the present reading."""
        if self._sdk is not None:
            self._sdk.abort()


def trouble(error: Exception) -> str:
    """Why no lines come, safe text: an end without words would look like a quiet log."""
    if isinstance(error, DockerUnreadable):
        return error.problem.problem
    words = sanitize.line(str(error), 200)
    if isinstance(error, (DockerSilent, ReachError, TimeoutError)):
        return f"log lost, asking again: {words or 'no answer in time'}"
    return f"log cannot be read: {type(error).__name__}: {words}"


def spread(wait: float) -> float:
    """Seconds near `wait`, so that many readers do not ask at once."""
    return wait * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, hides nothing
