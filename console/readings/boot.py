"""What an engine's start is, as far as its log tells, and the newest shard bar of a log's tail. Pure.

`boot_reader` reads it line by line, `boot_progress` holds it against earlier ones.

Lines of vLLM ("Loading safetensors checkpoint shards:  65% Completed | 31/48 [") and SGLang ("Multi-thread loading
shards:  77% Completed | 37/48 [").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from console.readings.containers import Container, ContainerState
from console.readings.logtext import Progress, loading_progress
from console.sanitize import lines


class PhaseName(StrEnum):
    """Phases of an engine's start, in the order of a clock that runs."""

    START = "start"
    DISTRIBUTED = "distributed"
    WEIGHTS = "weights"
    POST_PROCESS = "post-process"
    DRAFT = "draft weights"
    KV_POOL = "KV pool"
    AUTOTUNE = "autotune"
    GRAPHS = "graphs"
    HTTP = "http up"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase as the log tells it. Times in Unix seconds by the log's own stamps; None where it has none."""

    name: PhaseName
    began: float | None
    ended: float | None
    """None while it runs."""
    detail: str = ""
    """`48 of 48`, `hit, 189 configs`, `2 999 808 tokens`; safe text."""
    seconds: float | None = None
    """How long it took, or has taken until the newest line; known also where a log names no year, and so no time."""


@dataclass(frozen=True, slots=True)
class BootFailure:
    """Why a boot will not come up."""

    cause: str
    """In the operator's words: `row ranges of layer 1 do not tile`."""
    line: str
    """The log line that says so, safe and cut."""
    heals: bool
    """False where waiting or another try changes nothing."""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Boot:
    """One start of an engine, as far as its log tells. Pure reading of one log."""

    engine: str
    """`sglang`, `vllm` or '' where the log does not say."""
    phases: tuple[Phase, ...]
    now: PhaseName | None
    """The phase it is in; None before the first line and once it is ready."""
    began: float | None = None
    """Unix seconds of the first stamped line."""
    ready: float | None = None
    shards: Progress | None = None
    """The shard bar: reading of files, never the progress of the boot."""
    kv_budget: int | None = None
    """Tokens that memory had room for (SGLang's full_token)."""
    kv_tokens: int | None = None
    """Tokens granted."""
    autotune: str = ""
    """`hit`: from the cache; `missed`: tuning anew, or did, for over a minute; `running`; `done`: over within a minute,
    and nothing says whether it came from the cache; '': the log shows none."""
    failure: BootFailure | None = None
    missing: tuple[str, ...] = ()
    """What this recipe's boots always show at this point, and this one did not."""
    newest: float | None = None
    """Unix seconds of the newest stamped line: silence since then."""
    lines: int = 0
    warnings: tuple[str, ...] = ()
    """What went wrong without ending it, in the operator's words."""
    seconds: float | None = None
    """From the first to the newest stamped line; known also where a log names no year."""
    ended: bool = False
    """The process is over."""


@dataclass(frozen=True, slots=True)
class BootRecord:
    """One earlier boot of this lane, as the console kept it."""

    started: float
    """Unix seconds by the host's clock."""
    total: float
    """Seconds from the container's start to the first healthy answer."""
    phases: tuple[tuple[str, float], ...] = ()
    """(phase, seconds), in order."""
    kv_tokens: int | None = None
    revision: str = ""
    free_at_start: int | None = None
    """Lowest MemFree of the ranks when it began, bytes."""
    autotune: str = ""
    """As in `Boot`: one that tuned anew says nothing about the others' time."""


@dataclass(frozen=True, slots=True)
class BootProgress:
    """A boot against the lane's own earlier ones."""

    elapsed: float
    usual: tuple[float, float] | None
    """Shortest and longest of the earlier boots, seconds; None without any."""
    median: float | None
    """Of the earlier boots, seconds; without any the recipe's usual."""
    phase: PhaseName | None
    phase_elapsed: float | None
    phase_usual: float | None
    left: float | None
    """Seconds to go by the earlier boots, else by the recipe's usual; None without either, when late or failed."""
    late: bool
    """Longer than one and a half times the longest earlier boot (or than the recipe's usual)."""
    earlier: Sequence[BootRecord] = ()


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
