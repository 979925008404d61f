"""The embedded fleet as a source of snapshots: the same feed as in production, on servers of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from console.feed import Feed
from console.fleet.places import Places
from console.fleet.recipe import Recipe
from console.reach.link import Link
from console.rehearsal.play import Rehearsal, RehearsalError
from console.rehearsal.scenario import Scenario
from console.snapshot import Severity, Snapshot

if TYPE_CHECKING:
    from console.execution.hands import Hands
    from console.execution.ledger import Ledger

CONSOLE = ".console"
"""Folder of the console within the rehearsal's own; no host is called that."""


class RehearsalSource:
    """Starts the embedded fleet, then reads it like any other; every snapshot is marked as a rehearsal."""

    def __init__(self, scenario: Scenario | str, speed: float = 1.0) -> None:
        """Raises ScenarioError, RehearsalError."""
        self.rehearsal = Rehearsal(scenario, speed)
        self._stack = AsyncExitStack()
        self._told = 0
        # Until the servers have said their ports, a feed that is not started answers: all absent, nothing invented.
        self._feed = Feed(self.rehearsal.fleet, remembered=self.rehearsal.remembered)

    async def start(self) -> None:
        """Start servers and feed. Raises RehearsalError."""
        await self._stack.enter_async_context(self.rehearsal)
        self._feed = Feed(self.rehearsal.fleet, self.rehearsal.overrides, remembered=self.rehearsal.remembered)
        await self._feed.start()

    async def stop(self) -> None:
        """End the feed, then the servers; leaves no process and no file behind."""
        await self._feed.stop()
        await self._stack.aclose()

    def snapshot(self) -> Snapshot:
        """The newest picture; what the embedded fleet could not play is among its events."""
        failed = self.rehearsal.failed
        while self._told < len(failed):
            self._feed.note("rehearsal", f"could not be played: {failed[self._told]}", Severity.LOOK)
            self._told += 1
        return self._feed.snapshot()

    def follow(self, lane: str, host: str) -> None:
        """Follow the log of the container that serves `lane` on `host`."""
        self._feed.follow(lane, host)

    @property
    def links(self) -> Mapping[str, Link]:
        """The way to each host, for what acts there."""
        return self._feed.links

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """By lane."""
        return self._feed.recipes

    @property
    def kept(self) -> Path:
        """Where this console keeps its record meanwhile: it goes with the rehearsal. Raises RehearsalError."""
        if self.rehearsal.root is None:
            raise RehearsalError("the embedded fleet does not run")
        folder = self.rehearsal.root / CONSOLE
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def hands(self, *, read_only: bool = False, tell: Callable[[str], None] = lambda words: None) -> Hands:
        """What acts on the embedded fleet; ledger and all lie in the rehearsal's own folder, never the user's."""
        from console.execution.hands import Hands

        operator = self.snapshot().fleet.operator_name()
        return Hands(self, operator, read_only=read_only, ledger=self.ledger(), keep=self.kept / "sequences", tell=tell)

    def ledger(self) -> Ledger:
        """The record of this rehearsal."""
        from console.execution.ledger import Ledger

        fleet = self.snapshot().fleet
        return Ledger(self.kept / "ledger.jsonl", fleet.name, fleet.operator_name())

    def places(self, lane: str) -> Places:
        """Where the things of a lane lie, as far as known. Raises KeyError."""
        return self._feed.places(lane)

    def told(self, lane: str, file: str, text: str | None) -> None:
        """What the head has just said of a file in the folder of `lane`. Raises KeyError."""
        self._feed.told(lane, file, text)

    def unsynced(self, lane: str, lines: int) -> None:
        """How many lines of the ledger the head of `lane` does not have yet. Raises KeyError."""
        self._feed.unsynced(lane, lines)
