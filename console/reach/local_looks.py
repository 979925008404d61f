"""Looks at this machine: the functions that hosts run, in one daemon thread at a time."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from console.reach import survey_host
from console.reach.limits import Timings
from console.readings.look import Look
from console.sanitize import line

Said = tuple[str, dict[str, str], float, str]
"""Kind (`look` or `error`), texts by key, the monotonic time at which it was begun and, of an error, its words."""
_IDLE = 3600.0


@dataclass(frozen=True, slots=True)
class _Running:
    look: Look
    begun: float
    answer: asyncio.Future[str]

    def words(self) -> str:
        """That it does not answer."""
        about = f"{self.look.key} ({self.look.kind.value} {' '.join(self.look.arguments)[:120]})"
        return line(
            f"{about} has not answered for {time.monotonic() - self.begun:.0f} s; a thread cannot be ended", 300
        )


class LocalLooks:
    """The set of this machine. A thread that hangs is never joined, and never followed by another."""

    def __init__(self, timings: Timings) -> None:
        self._timings = timings
        self._due: dict[Look, float] = {}
        self._texts: dict[Look, str] = {}
        self._changed = asyncio.Event()
        self._running: _Running | None = None

    def ask(self, looks: Sequence[Look]) -> None:
        """Replace the set; what was in the old one keeps its clock and its answer."""
        self._due = {look: self._due.get(look, 0.0) for look in looks}
        self._texts = {look: text for look, text in self._texts.items() if look in self._due}
        self._changed.set()

    async def answers(self) -> AsyncIterator[Said]:
        """Look at what is due, again and again."""
        while True:
            due = [look for look, at in self._due.items() if at <= time.monotonic()]
            for look in due:
                async for said in self._answer(look):
                    yield said
            self._changed.clear()
            soonest = min(self._due.values(), default=time.monotonic() + _IDLE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, soonest - time.monotonic())):
                    await self._changed.wait()

    async def _answer(self, look: Look) -> AsyncIterator[Said]:
        """One look: its answer, and words for as long as there is none. One that still hangs is waited for first."""
        if self._running is None or self._running.answer.done():
            self._running = _Running(look, time.monotonic(), asyncio.get_running_loop().create_future())
            arguments = (look, self._running.answer)
            threading.Thread(target=_work, args=arguments, name=f"look {look.key}", daemon=True).start()
        running = self._running
        while not (await asyncio.wait([running.answer], timeout=self._timings.slow_after))[0]:
            yield "error", {"key": running.look.key}, running.begun, running.words()
        if running.look in self._due:
            self._due[running.look] = max(running.begun + running.look.every, time.monotonic())
            text = running.answer.result()
            if text != self._texts.get(running.look):
                self._texts[running.look] = text
            yield "look", {running.look.key: self._texts[running.look]}, running.begun, ""


def _work(look: Look, answer: asyncio.Future[str]) -> None:
    try:
        text = survey_host.answer(look.kind.value, list(look.arguments))
    except Exception as error:  # the thread's end would be silent otherwise
        text = f"error {type(error).__name__}: {error}"

    def deliver() -> None:
        if not answer.done():
            answer.set_result(text)

    with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
        answer.get_loop().call_soon_threadsafe(deliver)
