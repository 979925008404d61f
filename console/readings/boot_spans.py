"""The phases of a start as spans of a log's time: entered in order, never left for an earlier one. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from console.readings.boot import PhaseName

ORDER = tuple(PhaseName)
_LOOSE = (PhaseName.KV_POOL, PhaseName.AUTOTUNE, PhaseName.GRAPHS)
"""Engines and versions put these three in different orders; vLLM records graphs once before it sizes its KV pool."""
MOST = 32
"""Spans that are kept of one start; a log that goes round in circles is no start."""


def level(phase: PhaseName) -> int:
    """Phases of one level may come in any order, those of a lower one are over."""
    return ORDER.index(PhaseName.KV_POOL if phase in _LOOSE else phase)


@dataclass(slots=True)
class Span:
    """One phase from its first line to the next phase's first line."""

    phase: PhaseName
    began: float | None = None
    ended: float | None = None
    detail: str = ""
    done: bool = False
    """Its own work is done: silence means nothing any more."""


class Spans:
    """The spans of one start, oldest first."""

    def __init__(self) -> None:
        self.all: list[Span] = []
        self._open_ends: list[tuple[Span, Span | None]] = []

    @property
    def last(self) -> Span | None:
        """The running one."""
        return self.all[-1] if self.all else None

    @property
    def phase(self) -> PhaseName | None:
        """The running phase."""
        return self.all[-1].phase if self.all else None

    def reached(self, phase: PhaseName) -> bool:
        """Whether the start has come as far as this phase."""
        return self.phase is not None and level(self.phase) >= level(phase)

    def of(self, phase: PhaseName) -> Span | None:
        """The newest span of a phase."""
        return next((span for span in reversed(self.all) if span.phase is phase), None)

    def enter(self, phase: PhaseName, at: float | None) -> bool:
        """Go on to a phase, at a time or (None) at that of the next stamped line; False if it is not a step forward."""
        if not self._forward(phase) or len(self.all) >= MOST:
            return False
        before, span = self.last, Span(phase, at)
        if at is None:
            self._open_ends.append((span, before))
        elif before is not None:
            before.ended = at
        self.all.append(span)
        return True

    def settle(self, at: float) -> None:
        """A stamped line came: what began since the one before began now at the latest."""
        if not self._open_ends:
            return
        for span, before in self._open_ends:
            span.began = at
            if before is not None:
                before.ended = at
        self._open_ends.clear()

    def _forward(self, phase: PhaseName) -> bool:
        if self.phase is None:
            return True
        if level(phase) != level(self.phase):
            return level(phase) > level(self.phase)
        if phase is self.phase:
            return False
        return self.of(phase) is None or ORDER.index(phase) > ORDER.index(self.phase)
