"""The words for watchdogs, and what a recipe tells of one: data of `console/readings/watchdog.py`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class WatchdogState(StrEnum):
    """The one word for a lane's watchdog."""

    ARMED = "armed"
    STARTING = "starting"
    """Runs, but no check has passed yet: it does not act before one did."""
    BUSY = "busy grace"
    """Armed; a probe timed out while health says 200, and its grace runs."""
    CHECKING = "check failed"
    """Armed; some checks in a row have failed and it will act soon."""
    RECOVERY = "in recovery"
    PAUSED = "paused"
    GAVE_UP = "gave up"
    STANDING_DOWN = "standing down"
    OFF = "off"
    """Known to be there and stopped: disarmed."""
    FAILED = "unit failed"
    IN_FLIGHT = "in flight"
    """Its unit is being started or stopped right now."""
    DEAD_LOCK = "dead lock"
    """A lock names a process that is gone: nothing watches, and a start may be refused."""
    TWO = "two of them"
    REUSED_PID = "pid reused"
    """The pid belongs to another program now: nothing watches, and that pid must never be signalled."""
    NONE = "none"
    """The recipe has none."""
    UNKNOWN = "unknown"


ENDED = (WatchdogState.OFF, WatchdogState.STANDING_DOWN)
"""What a watchdog says of itself before its process ends."""


@dataclass(frozen=True, slots=True)
class Says:
    """One kind of line. The pattern is matched behind the line's time stamp; its groups `pid`, `at` (the stamp of a
    line that has none in front), `attempt`, `of` and `every` (seconds between checks) are read where it has them."""

    pattern: re.Pattern[str]
    state: WatchdogState | None = None
    """None: the line does not change it."""
    act: bool = False
    """It is a recovery, or what became of one."""
    silent_after: float | None = None
    """Seconds after which a further line must have come while this state lasts; None: it is silent for as long as
    it likes."""


@dataclass(frozen=True, slots=True)
class Watchdog:
    """One lane's watchdog at one time."""

    state: WatchdogState
    words: str
    """One safe sentence: `gave up, not protecting`, `unknown: no user bus`, `check failed 2 of 3: ...`."""
    protecting: bool | None
    """Whether it would act if the engine died now; None if that is not known."""
    kind: str = ""
    """`log` (pid, lock and log) or `systemd` (unit and flags); '' for none."""
    host: str = ""
    pid: int | None = None
    may_signal: bool = False
    """The pid is a process whose command line is that of the watchdog."""
    since: float | None = None
    """Unix seconds by the host's clock: since when it is in this state, if the log or a flag says."""
    last_act: str = ""
    """Its newest recovery, in its own words; safe text."""
    last_act_at: float | None = None
    attempt: tuple[int, int] | None = None
    """Of a recovery or a failing check: (number, of)."""
    next_check: float | None = None
    """Seconds between two of its checks."""
    instances: int = 0
    competing: tuple[str, ...] = ()
    """Others that may start or end the engine: restart policies, autoheal, timers, a former model's watchdog."""
    short: str = ""
    """`words` without what explains them: `paused`, `gave up, not protecting`, `unknown: no user bus`."""


@dataclass(frozen=True, slots=True)
class WatchdogSpec:
    """What a recipe says about its watchdog, paths filled in; '' where it has no such thing."""

    kind: str
    """`log` or `systemd`."""
    host: str = ""
    log: str = ""
    lock: str = ""
    process: str = ""
    """Part of its command line."""
    process_also: tuple[str, ...] = ()
    """Other parts that count for the very process that log or lock name: started another way."""
    unit: str = ""
    pause_flag: str = ""
    gaveup_flag: str = ""
    interval: float | None = None
    """Seconds between its checks, where its log does not say."""
    says: tuple[Says, ...] = ()
    gave_up: str = ""
    """What having given up means, and the way out."""
    foreign: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    """Units of `foreign` that end an engine, but never start one."""


_PROTECTING = {
    WatchdogState.ARMED: True,
    WatchdogState.BUSY: True,
    WatchdogState.CHECKING: True,
    WatchdogState.RECOVERY: True,
    WatchdogState.UNKNOWN: None,
    WatchdogState.IN_FLIGHT: None,
    WatchdogState.TWO: None,
}
"""Of the states that are not here: False."""

_SHORT = {
    WatchdogState.STARTING: "starting, not armed yet",
    WatchdogState.GAVE_UP: "gave up, not protecting",
    WatchdogState.OFF: "disarmed",
    WatchdogState.FAILED: "not protecting: unit failed",
    WatchdogState.DEAD_LOCK: "dead lock, not protecting",
    WatchdogState.REUSED_PID: "pid reused, not protecting",
}


def protecting(state: WatchdogState) -> bool | None:
    """Whether a watchdog in this state would act if the engine died now; None where that cannot be told."""
    return _PROTECTING.get(state, False)


def short_of(state: WatchdogState, attempt: tuple[int, int] | None = None, why: str = "") -> str:
    """The few words for a state; `why` is the reason of an unknown one."""
    words = _SHORT.get(state, state.value)
    if state is WatchdogState.UNKNOWN:
        return f"{words}: {why}" if why else words
    if attempt is not None and state is WatchdogState.CHECKING:
        return f"{words} {attempt[0]} of {attempt[1]}"
    if attempt is not None and state is WatchdogState.RECOVERY:
        return f"{words}, attempt {attempt[0]} of {attempt[1]}"
    return words
