"""The embedded fleet in the process of the test: the same hosts, servers and engines, and no python to start for them.

Most tests look at what is played and not at the process that plays it. To start that one takes a second of computing,
most of what such a test needs. The process has tests of its own: test_embedded_fleet.py, test_nothing_left_behind.py,
those of the feed, and all that act.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import asyncssh

from console.reach.private import PrivateFolder
from console.rehearsal import Rehearsal, RehearsalError
from console.rehearsal.scenario import Scenario
from console.rehearsal.server import CLOSE_LIMIT, PREFIX, RehearsalFleet, answered


class Inside(Rehearsal):
    """A `Rehearsal` whose fleet is played by the event loop that watches it."""

    _played_by: RehearsalFleet | None = None
    _folder: PrivateFolder | None = None

    async def _start(self) -> None:
        key = asyncssh.generate_private_key("ssh-ed25519")
        self._folder = PrivateFolder(PREFIX)
        # What is played may change its scenario, and the process would have its own copy.
        scenario = Scenario.model_validate(self.scenario.model_dump(mode="json"))
        fleet = RehearsalFleet(scenario, self.speed, self._folder.path, key.convert_to_public(), self._hear)
        self._played_by = fleet
        await fleet.start()
        self._found(fleet.ready(), key)
        self._tasks += [asyncio.create_task(work) for work in (fleet.tick(), fleet.play())]

    async def _end(self) -> None:
        failed = [task.exception() for task in self._tasks if task.done() and not task.cancelled()]
        fleet, self._played_by = self._played_by, None
        if fleet is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_LIMIT):
                    await fleet.close()
        await super()._end()
        if self._folder is not None:
            await asyncio.to_thread(self._folder.remove)
        for error in failed:
            if error is not None:
                raise error

    async def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        if self._played_by is None:
            raise RehearsalError("the embedded fleet does not run")
        said = await answered(self._played_by, order)
        if "error" in said:
            raise RehearsalError(str(said["error"]))
        return said
