"""How long an event loop was held up: what a key would have waited."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Self

EVERY = 0.005


class Stall:
    """`async with Stall() as stall`: wakes every 5 ms; `longest` is how much later than that it once did, in ms."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._task: asyncio.Task[None] | None = None

    async def _watch(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(EVERY)
            self.longest = max(self.longest, 1000 * (time.perf_counter() - before - EVERY))

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
