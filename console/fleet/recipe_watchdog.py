"""The `[watchdog]` table of a recipe: where it leaves its traces, and which words of its log mean which state."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from pydantic import Field, field_validator, model_validator

from console.fleet.patterns import check_quick
from console.fleet.places import WatchdogPlace
from console.fleet.tomlfile import Strict
from console.readings.watchdog import Says, WatchdogSpec, WatchdogState

GROUPS = ("pid", "at", "attempt", "of", "every")
"""Named groups that a pattern may have."""

_MOST = 1000


class SaysRecipe(Strict):
    """One kind of line in the watchdog's log."""

    pattern: str = Field(min_length=1, max_length=_MOST)
    """A Python regular expression, matched behind the line's time stamp."""
    state: WatchdogState | None = None
    """Left out: the line does not change the state."""
    act: bool = False
    """The line is about a recovery."""
    silent_after: float | None = Field(default=None, gt=0)
    """Seconds after which another line must have come while this state lasts."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            known = re.compile(value).groupindex
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"no regular expression: {error}") from error
        if odd := [name for name in known if name not in GROUPS]:
            raise ValueError(f"unknown group {odd[0]!r}; known: {', '.join(GROUPS)}")
        check_quick(value)
        return value


class WatchdogRecipe(Strict):
    """A watchdog that runs on the head."""

    kind: Literal["log", "systemd"]
    """`log`: a process with a lock and a log; `systemd`: a unit with flag files."""
    log: str = ""
    """Its log; may hold `{names}`."""
    lock: str = ""
    """A file with its process number; may hold `{names}`."""
    process: str = ""
    """Part of its command line."""
    process_also: tuple[str, ...] = ()
    """Other parts that count for the very process that log or lock name."""
    unit: str = ""
    """Its systemd unit; may hold `{names}`."""
    manager: Literal["system", "user"] = "system"
    """Who manages `unit`, `foreign` and `guards`."""
    pause_flag: str = ""
    """A file that is there while it is paused; may hold `{names}`."""
    gaveup_flag: str = ""
    """A file that is there once it gave up; may hold `{names}`."""
    interval: float | None = Field(default=None, gt=0, le=86_400)
    """Seconds between two checks, where the log does not say."""
    gave_up: str = ""
    """What having given up means, and the way out; a sentence for the operator."""
    foreign: tuple[str, ...] = ()
    """Units and timers that start engines on the same GPUs."""
    guards: tuple[str, ...] = ()
    """Units that end an engine when memory runs low."""
    says: tuple[SaysRecipe, ...] = ()
    """Kinds of lines in its log, the first that matches counts."""

    @model_validator(mode="after")
    def _complete(self) -> WatchdogRecipe:
        wanted = ("unit",) if self.kind == "systemd" else ("log", "process")
        if missing := [key for key in wanted if not getattr(self, key)]:
            raise ValueError(f"kind {self.kind!r} needs {' and '.join(missing)}")
        return self

    def place(self, host: str, fill: Callable[[str], str] = str) -> WatchdogPlace:
        """Its paths on `host`; `fill` puts values into a path's `{names}`."""
        return WatchdogPlace(
            kind=self.kind,
            host=host,
            log=fill(self.log),
            lock=fill(self.lock),
            process=fill(self.process),
            process_also=tuple(map(fill, self.process_also)),
            unit=fill(self.unit),
            manager=self.manager,
            pause_flag=fill(self.pause_flag),
            gaveup_flag=fill(self.gaveup_flag),
            interval=self.interval,
            foreign=(*self.foreign, *self.guards),
        )

    def spec(self, place: WatchdogPlace) -> WatchdogSpec:
        """What `console/readings/watchdog.py:read_watchdog` takes, for the paths of `place`."""
        return WatchdogSpec(
            kind=self.kind,
            host=place.host,
            log=place.log,
            lock=place.lock,
            process=place.process,
            process_also=place.process_also,
            unit=place.unit,
            pause_flag=place.pause_flag,
            gaveup_flag=place.gaveup_flag,
            interval=place.interval,
            says=tuple(Says(re.compile(item.pattern), item.state, item.act, item.silent_after) for item in self.says),
            gave_up=self.gave_up,
            foreign=place.foreign,
            guards=self.guards,
        )
