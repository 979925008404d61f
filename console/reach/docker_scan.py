"""Reading one start's log from its beginning: every line is handed on, none is dropped, and what is read is bounded.

`docker_follow` shows the newest lines and drops what nobody could read; here a single line in a flood may be the one
that counts, so that lines are taken in the reading thread itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from console import sanitize
from console.reach.docker_door import DockerDoor
from console.reach.docker_log import Demultiplexer, Lines, StampedLine, api_time, stamped
from console.reach.docker_reading import LogReading, spread, trouble
from console.reach.docker_threads import DockerUnreadable, NoSuchContainer, Threads

if TYPE_CHECKING:
    from console.reach.docker_sdk import Sdk

MOST_LINES = 20_000
"""Newest lines of the start that are asked for."""
MOST_BYTES = 8 << 20
"""Bytes read in one go; a log that brings more is paused, and what it writes meanwhile is left out."""
FLOOD_PAUSE = 30.0
FLOOD_LINES = 200
"""Seconds of that pause, and lines asked for after it."""
RETRY_FIRST, RETRY_MOST = 0.5, 10.0
"""Seconds before the log is asked for again."""
EARLY = 0.2
"""Seconds by which a process may speak before Docker writes down that it started."""
NO_READING = "does not support reading"
"""What Docker says of the log driver `none` and of others that only write."""

Take = Callable[[Sequence[tuple[float | None, str]], str], bool]
"""Gets lines (Unix seconds or None, safe text) and the line that has not ended yet, in the reading thread; True where
that was enough."""


class LogScan:
    """One start's log being read; `close` ends it, and after that `take` is not called any more."""

    def __init__(
        self, door: DockerDoor, threads: Threads, container_id: str, take: Take, *, since: float | None, follow: bool
    ) -> None:
        """`since` is the start in Unix seconds; without `follow` it ends with the newest line."""
        self._id, self._take, self.following = container_id, take, follow
        self._since = 0 if since is None else max(0, int((since - EARLY) * 1e9))
        self._newest = 0
        self._bytes = 0
        self._flooded = False
        self._reading = LogReading(door, threads)
        self.closed = False
        self.done = False
        """Nothing more will be read: enough came, the log ended, or it cannot be read at all."""
        self.skipped = False
        """A part of the log was left out."""
        self.read_once = False
        """It was opened at least once."""
        self.at_end = False
        """The log ended, as it does when its container stops, and has not gone on since."""
        self.problem = ""
        """Why no lines come at present, safe text; '' while all is well."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """End thread, connection and task."""
        self.closed = True
        self._task.cancel()
        self._reading.abort()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        wait = RETRY_FIRST
        while not self.done:
            before = self._newest
            try:
                await self._reading.once(self._read)
                self.problem, self.at_end = "", not self._flooded
                self.done = self.done or not self.following
            except NoSuchContainer:
                self.problem, self.done = "container is gone", True
            except Exception as error:
                self.problem = trouble(error)
                if isinstance(error, DockerUnreadable) and NO_READING in self.problem:
                    self.problem, self.done = "its log driver keeps nothing that could be read", True
            wait = RETRY_FIRST if self._newest != before else min(RETRY_MOST, wait * 2)
            await asyncio.sleep(0 if self.done else FLOOD_PAUSE if self._flooded else spread(wait))

    def _asked(self) -> dict[str, str]:
        most = FLOOD_LINES if self._flooded else MOST_LINES
        params = {"stdout": "1", "stderr": "1", "timestamps": "1", "tail": str(most)}
        if self.following:
            params["follow"] = "1"
        if since := self._newest or self._since:
            params["since"] = api_time(since)
        return params

    def _read(self, sdk: Sdk) -> None:
        """In the thread: the log until it ends, or until it was enough."""
        seen = self._newest
        stream = sdk.logs(self._id, self._asked())
        self.problem, self.read_once = "", True
        self._bytes, self._flooded = 0, False
        frames = Demultiplexer()
        rows = {number: Lines() for number in range(3)}
        for piece in stream.pieces():
            self._bytes += len(piece)
            came = [stamped(row) for number, part in frames.feed(piece) for row in rows[number].feed(part)]
            if self._hand(came, max((lines.last() for lines in rows.values()), key=len), seen):
                return
            if self._bytes > MOST_BYTES:
                self._flooded = self.skipped = self.following
                self.done = self.done or not self.following
                return
        self._hand([stamped(rest) for lines in rows.values() if (rest := lines.last())], b"", seen)

    def _hand(self, came: Sequence[StampedLine], growing: bytes, seen: int) -> bool:
        """Docker's `since` includes its own moment: what was taken before is left out."""
        fresh = [item for item in came if not (seen and item.nanos and item.nanos <= seen)]
        for item in fresh:
            self._newest = max(self._newest, item.nanos)
            self.at_end = False
        bar = sanitize.line(stamped(growing).text) if b"\r" in growing else ""
        if self.closed:
            return True
        enough = self._take([(item.wall, sanitize.line(item.text)) for item in fresh], bar)
        self.done = self.done or enough
        return enough
