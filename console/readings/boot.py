"""How far an engine's start has come, from the tail of its log. Pure.

Lines of vLLM ("Loading safetensors checkpoint shards:  65% Completed | 31/48 [") and SGLang ("Multi-thread loading
shards:  77% Completed | 37/48 ["). Bars are drawn over themselves with carriage returns, so one line may hold many.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from console.readings.containers import Container, ContainerState

_SHARDS = re.compile(r"shards:\s{1,4}[0-9]{1,3}% Completed \| ([0-9]{1,6})/([0-9]{1,6})\b")
_READY = ("Application startup complete", "The server is fired up and ready to roll")


@dataclass(frozen=True, slots=True)
class Loading:
    """The newest loading bar of a log."""

    done: int
    total: int

    @property
    def words(self) -> str:
        """`31 of 48`."""
        return f"{self.done} of {self.total}"


def loading(log_tail: str) -> Loading | None:
    """The newest shard bar; None if there is none or the engine said afterwards that it is ready."""
    bars = list(_SHARDS.finditer(log_tail))
    if not bars or any(log_tail.rfind(mark) >= bars[-1].end() for mark in _READY):
        return None
    return Loading(int(bars[-1][1]), int(bars[-1][2]))


def container_word(container: Container, log_tail: str = "") -> str:
    """`booting` while a running container's log shows a load, whatever Docker's health check says; else its state."""
    running = container.state is ContainerState.RUNNING
    return "booting" if running and loading(log_tail) else container.state.value
