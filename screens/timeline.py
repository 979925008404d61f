"""The pictures the screen can show: the newest, or, while paused, one of the last ones."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from console.snapshot import Snapshot

KEEP_EVERY = 1.0
"""Seconds between two pictures kept for stepping."""
KEPT_HOST_PICTURES = 480
"""Pictures kept, times hosts: two minutes of four hosts, fewer of a large fleet, so that memory stays bounded."""
KEPT_LINES = 60
"""Log lines of a kept picture: as many as a pane shows. All lines, of a log that floods, would be half a gigabyte."""


class Timeline:
    """Pause holds one picture still; new ones are kept meanwhile, so that stepping can go both ways."""

    def __init__(self) -> None:
        self._kept: deque[Snapshot] = deque()
        self._newest: Snapshot | None = None
        self._held: Snapshot | None = None

    @property
    def paused(self) -> bool:
        """Whether one picture is held."""
        return self._held is not None

    @property
    def newest(self) -> Snapshot | None:
        """The newest picture, paused or not."""
        return self._newest

    @property
    def shown(self) -> Snapshot | None:
        """The picture for the screen."""
        return self._held or self._newest

    @property
    def kept(self) -> int:
        """How many pictures can be stepped through."""
        return len(self._kept)

    def add(self, snapshot: Snapshot) -> None:
        """Take the newest picture."""
        if self._newest is not None:
            self._newest.memo.clear()  # kept by the hundred, stepped to now and then
        self._newest = snapshot
        if not self._kept or snapshot.now - self._kept[-1].now >= KEEP_EVERY:
            self._kept.append(_with_few_lines(snapshot))
        limit = max(10, KEPT_HOST_PICTURES // max(1, len(snapshot.hosts)))
        while len(self._kept) > limit:
            self._kept.popleft()

    def pause(self) -> bool:
        """Hold the newest picture. False if there is none yet."""
        if self._newest is None:
            return False
        self._held = self._newest
        return True

    def resume(self) -> None:
        """Show the newest picture again."""
        self._held = None

    def step(self, direction: int) -> bool:
        """Hold the kept picture before (-1) or after (+1) the held one. False at either end, or when not paused."""
        if self._held is None:
            return False
        others = [s for s in self._kept if (s.now - self._held.now) * direction > 0]
        if not others:
            return False
        self._held = others[0] if direction > 0 else others[-1]
        return True

    def behind(self) -> float:
        """Seconds the shown picture is older than the newest."""
        if self._held is None or self._newest is None:
            return 0.0
        return max(0.0, self._newest.now - self._held.now)


def _with_few_lines(snapshot: Snapshot) -> Snapshot:
    log = snapshot.log
    if log is None or len(log.lines) <= KEPT_LINES:
        return snapshot
    return replace(snapshot, log=replace(log, lines=log.lines[-KEPT_LINES:]))
