"""Whether a host can be asked: what a link says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LinkStatus(StrEnum):
    """Whether a host can be asked right now."""

    CONNECTING = "connecting"
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class LinkState:
    """The state of one link. `since` is monotonic; `error` and `hint` are safe text."""

    status: LinkStatus
    since: float
    error: str = ""
    hint: str = ""
    attempts: int = 0
    retry_at: float | None = None
    """Monotonic time of the next connection attempt."""
