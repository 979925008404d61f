"""Watchdogs: the pid/lock/log kind and the systemd-with-flags kind, and what can be said of them. Pure.

The first is that of aidendle94/sparkrun-recipes (`launch/watchdog.sh`), the second that of
tsw2k/Deepseek-4.1-Flash-Quad-DGX-Sparks (`ops/fleet-watchdog.sh` as a unit); file names and words are the recipe's.
Who else may start or end an engine stands in `console/readings/competing.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from console.readings import watchdog_process, watchdog_unit
from console.readings.look import Answer
from console.readings.processes import Process
from console.readings.units import Units
from console.readings.watchdog_types import Says as Says
from console.readings.watchdog_types import Watchdog as Watchdog
from console.readings.watchdog_types import WatchdogSpec as WatchdogSpec
from console.readings.watchdog_types import WatchdogState as WatchdogState


def read_watchdog(
    spec: WatchdogSpec,
    *,
    log: Answer | None = None,
    lock: Answer | None = None,
    pause: Answer | None = None,
    gaveup: Answer | None = None,
    processes: Sequence[Process] | None = None,
    units: Units | None = None,
    now: float,
    booted: float | None = None,
    offset: float | None = None,
) -> Watchdog:
    """The watchdog at `now`. What was not looked at (yet) is None; what is not there is an answer that says so.

    `now` and `booted` are Unix seconds by the host's clock; `offset` is how far its wall clock is ahead of UTC, where
    that is known (else it is told from the log, if it can be). Never raises.
    """
    if spec.kind == "systemd":
        return watchdog_unit.read(spec, units=units, pause=pause, gaveup=gaveup, log=log, now=now, offset=offset)
    return watchdog_process.read(spec, log=log, lock=lock, processes=processes, now=now, booted=booted, offset=offset)
