"""How far an engine's start has come, from the tail of its log. Pure.

Lines of vLLM ("Loading safetensors checkpoint shards:  65% Completed | 31/48 [") and SGLang ("Multi-thread loading
shards:  77% Completed | 37/48 [").
"""

from __future__ import annotations

from console.readings.containers import Container, ContainerState
from console.readings.logtext import Progress, loading_progress
from console.sanitize import lines

_READY = ("Application startup complete", "The server is fired up and ready to roll")


def loading(log_tail: str) -> Progress | None:
    """The newest shard bar; None if there is none or the engine said afterwards that it is ready."""
    for row in reversed(lines(log_tail)):
        if any(mark in row for mark in _READY):
            return None
        if bar := loading_progress([row]):
            return bar
    return None


def container_word(container: Container, log_tail: str = "") -> str:
    """`booting` while a running container's log shows a load, whatever Docker's health check says; else its state."""
    running = container.state is ContainerState.RUNNING
    return "booting" if running and loading(log_tail) else container.state.value
