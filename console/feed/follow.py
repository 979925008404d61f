"""The one log on screen: which container it belongs to, its newest lines, and why there are none."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from console.snapshot import LogLine, LogView

if TYPE_CHECKING:
    from console.reach.docker_engine import DockerEngine
    from console.reach.docker_follow import LogFollower

LINES_KEPT = 2000
ASKING_S = 3.0
"""Seconds in which the first lines of a log may still be on their way."""
CHECK_EVERY_S = 0.5
"""How often the choice is compared with the container that serves now."""

Choice = Callable[[], tuple[str, str] | None]
"""Answers (id, name) of the container to follow now, None if there is none."""


class LogFeed:
    """Follows the log of the container chosen last, also when a relaunch replaces it."""

    def __init__(self) -> None:
        self._host = ""
        self._docker: DockerEngine | None = None
        self._choice: Choice = lambda: None
        self._moved = False
        """Another host was chosen, and what is followed still is a container of the one before."""
        self._following: tuple[str, str] | None = None
        self._follower: LogFollower | None = None
        self._lines: deque[LogLine] = deque(maxlen=LINES_KEPT)
        self._tuple: tuple[LogLine, ...] | None = ()
        self._view: LogView | None = None
        self._taken: float | None = None
        self._fault = ""
        self._since = time.monotonic()

    def choose(self, host: str, docker: DockerEngine | None, choice: Choice) -> None:
        """Follow what `choice` names on `host` from now on."""
        if host != self._host:
            self._forget()
            self._moved = self._follower is not None
        self._host, self._docker, self._choice = host, docker, choice

    def fail(self, why: str) -> None:
        """Note why following failed."""
        self._fault = why

    def view(self) -> LogView | None:
        """The log at this moment; None before anything was chosen."""
        if not self._host:
            return None
        if self._tuple is None:
            self._tuple = tuple(self._lines)
        view = LogView(
            host=self._host,
            container=self._following[1] if self._following and not self._moved else "",
            lines=self._tuple,
            skipped=self._follower.skipped if self._follower and not self._moved else 0,
            problem=self._problem(),
            taken_mono=self._taken,
            asked=not self._moved and time.monotonic() - self._since >= ASKING_S,
        )
        if view != self._view:
            self._view = view
        return self._view

    def _problem(self) -> str:
        if self._docker is None:
            return "no Docker on this host: no container log"
        if self._moved:
            return ""
        if self._follower is None:
            return self._fault or "no container of this lane to follow"
        return self._follower.problem

    def _forget(self) -> None:
        self._lines.clear()
        self._tuple, self._taken, self._fault = (), None, ""

    def _take(self, wall: float | None, text: str) -> None:
        if self._moved:
            return
        self._lines.append(LogLine(wall, text))
        self._tuple, self._taken = None, time.monotonic()

    async def run(self) -> None:
        """Keep following the right container until cancelled."""
        while True:
            wanted = self._choice()
            if wanted != self._following or self._moved:
                await self.close()
                self._moved = False
                self._forget()
                wanted = self._choice()  # another one may have been chosen meanwhile
                if wanted is not None and self._docker is not None:
                    self._follower = self._docker.follow_log(wanted[0], self._take)
                    self._following = wanted
                    self._since = time.monotonic()
            await asyncio.sleep(CHECK_EVERY_S)

    async def close(self) -> None:
        """End the present following."""
        follower, self._follower, self._following = self._follower, None, None
        if follower is not None:
            await follower.close()
