"""Following one container's log: its last lines, then new ones as they come, across restarts and lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from console import sanitize
from console.reach.docker_door import DockerDoor
from console.reach.docker_log import Demultiplexer, Lines, Pending, StampedLine, api_time, stamped
from console.reach.docker_reading import LogReading, spread, trouble
from console.reach.docker_threads import NoSuchContainer, Threads

if TYPE_CHECKING:
    from console.reach.docker_sdk import Sdk

TAIL = 200
"""Lines shown at first."""
CATCH_UP = 1000
"""Lines asked for at most after a lost connection."""
FEED_EVERY = 0.1
"""Seconds between batches, at least; a quiet log wakes nobody."""
BATCH = 100
"""Lines handed on before others get their turn on the loop: a flood must not hold up keys."""
RETRY_FIRST, RETRY_MOST = 0.5, 5.0
"""Seconds before the log is asked for again."""

OnLine = Callable[[float | None, str], None]


class LogFollower:
    """A log being followed; `close` ends it. Lines come on the event loop, in batches, newest last."""

    def __init__(self, door: DockerDoor, threads: Threads, container_id: str, on_line: OnLine) -> None:
        self._id, self._on_line = container_id, on_line
        self._pending = Pending()
        self._loop, self._came = asyncio.get_running_loop(), asyncio.Event()
        self._newest = 0
        self._reading = LogReading(door, threads)
        self._tasks = (asyncio.create_task(self._follow()), asyncio.create_task(self._feed()))
        self.closed = False
        self.problem = ""
        """Why no lines come at present, safe text; '' while all is well."""

    @property
    def skipped(self) -> int:
        """Lines dropped to keep up."""
        return self._pending.skipped

    async def close(self) -> None:
        """End thread, connection and tasks."""
        self.closed = True
        for task in self._tasks:
            task.cancel()
        self._reading.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self) -> None:
        wait = RETRY_FIRST
        while True:
            before = self._newest
            try:
                await self._reading.once(self._read)
                self.problem = ""
            except NoSuchContainer:
                self.problem = "container is gone"
                return
            except Exception as error:
                self.problem = trouble(error)
            wait = RETRY_FIRST if self._newest != before else min(RETRY_MOST, wait * 2)
            await asyncio.sleep(spread(wait))

    def _read(self, sdk: Sdk) -> None:
        """In the thread: the log until it ends."""
        params = {"stdout": "1", "stderr": "1", "timestamps": "1", "follow": "1", "tail": str(TAIL)}
        if since := self._newest:
            params |= {"tail": str(CATCH_UP), "since": api_time(since)}
        stream = sdk.logs(self._id, params)
        self.problem = ""
        frames = Demultiplexer()
        rows = {stream_number: Lines() for stream_number in range(3)}
        for piece in stream.pieces():
            for number, payload in frames.feed(piece):
                for row in rows[number].feed(payload):
                    self._put(stamped(row), since)
            self._loop.call_soon_threadsafe(self._came.set)
        for lines in rows.values():
            if rest := lines.last():
                self._put(stamped(rest), since)
        self._loop.call_soon_threadsafe(self._came.set)

    def _put(self, line: StampedLine, since: int) -> None:
        """Docker's `since` includes its own moment: what was shown before is left out."""
        if since and line.nanos and line.nanos <= since:
            return
        self._newest = max(self._newest, line.nanos)
        self._pending.put(line)

    async def _feed(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            for number, line in enumerate(self._pending.take(), 1):
                self._on_line(line.wall, sanitize.line(line.text))
                if number % BATCH == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(FEED_EVERY)
