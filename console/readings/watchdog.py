"""Watchdogs: the pid/lock/log kind and the systemd-with-flags kind, and who else may start or end an engine. Pure."""

from __future__ import annotations

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
