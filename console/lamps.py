"""The four lamps: Serving, Revision, Watchdog, Rollback. Pure functions of a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from console import format as fmt
from console.readings.containers import ContainerState, belongs
from console.readings.health import LaneState
from console.snapshot import LaneView, Severity, Snapshot

NO_STEP_SHOWN_S = 2.0
"""Seconds without a step, with work present, after which the rate is no longer shown as if it were current."""
BOOT_OVERDUE = 1.5
"""Times the usual boot after which a boot is no longer just `good to know`."""


@dataclass(frozen=True, slots=True)
class Lamp:
    """One of the four answers always on screen."""

    title: str
    """`SERVING`, `REVISION`, `WATCHDOG`, `ROLLBACK`."""
    word: str
    """The answer itself: `66.3 tok/s`, `STALLED 41s`, `9f2c1a7`, `UNKNOWN`."""
    rest: str
    """What follows in plain text on the same line: `· 3 running`."""
    note: str
    """Quiet words beside the title: `up 3d04h`, `4 of 4 ranks`."""
    severity: Severity


def lamps(snapshot: Snapshot, lane: LaneView) -> tuple[Lamp, Lamp, Lamp, Lamp]:
    """Serving, Revision, Watchdog, Rollback for one lane."""
    return serving(snapshot, lane), revision(lane), watchdog(lane), rollback(snapshot, lane)


def serving(snapshot: Snapshot, lane: LaneView) -> Lamp:
    """What the four lights of the lane add up to, as one word with its number."""
    word, rest, severity = _SERVING[lane.verdict.state](snapshot, lane)
    return Lamp("SERVING", word, rest, _uptime(snapshot, lane), severity)


_Words = tuple[str, str, Severity]


def _uptime(snapshot: Snapshot, lane: LaneView) -> str:
    started = lane.lights.process.started_at
    if started is None or lane.lights.process.running == 0:
        return ""
    return f"up {fmt.duration(_head_wall(snapshot, lane) - started)}"


def _head_wall(snapshot: Snapshot, lane: LaneView) -> float:
    """Unix time now by the head's clock: container times are by that one."""
    return snapshot.wall + (snapshot.host(lane.lane.head).drift or 0.0)


def _for(snapshot: Snapshot, lane: LaneView) -> str:
    return fmt.short_age(snapshot.now - lane.state_since)


def _serving(snapshot: Snapshot, lane: LaneView) -> _Words:
    progress = lane.lights.progress
    running = f"· {progress.running} running" if progress.running is not None else ""
    if progress.frozen_for is not None and progress.frozen_for >= NO_STEP_SHOWN_S:
        return f"NO STEP {fmt.short_age(progress.frozen_for)}", running, Severity.LOOK
    if progress.decode_tps is None:
        return "SERVING", running, Severity.NORMAL
    return f"{fmt.number(progress.decode_tps)} tok/s", running, Severity.NORMAL


def _busy(snapshot: Snapshot, lane: LaneView) -> _Words:
    progress = lane.lights.progress
    lasted = progress.moving_for if progress.moving_for is not None else snapshot.now - lane.state_since
    running = f"· {progress.running} running" if progress.running is not None else ""
    return f"PREFILL {fmt.short_age(lasted)}", running, Severity.INFO


def _booting(snapshot: Snapshot, lane: LaneView) -> _Words:
    started = lane.lights.process.started_at
    elapsed = snapshot.now - lane.state_since if started is None else _head_wall(snapshot, lane) - started
    usual = lane.lane.usual_boot_s
    of_usual = f" of {fmt.duration(usual)}" if usual else ""
    late = usual is not None and elapsed > BOOT_OVERDUE * usual
    return f"BOOT {fmt.duration(elapsed)}{of_usual}", "", Severity.LOOK if late else Severity.INFO


def _stalled(snapshot: Snapshot, lane: LaneView) -> _Words:
    frozen = lane.lights.progress.frozen_for
    lasted = fmt.short_age(frozen) if frozen is not None else _for(snapshot, lane)
    running = lane.lights.progress.running
    return f"STALLED {lasted}", f"· {running} running" if running else "", Severity.ACT


def _down(snapshot: Snapshot, lane: LaneView) -> _Words:
    was = f"was {fmt.number(lane.last_decode)} tok/s" if lane.last_decode is not None else ""
    return f"DOWN {_for(snapshot, lane)}", was, Severity.ACT


def _plain(word: str, severity: Severity, *, timed: bool = False, why: bool = False) -> Callable[..., _Words]:
    def words(snapshot: Snapshot, lane: LaneView) -> _Words:
        lasted = f" {_for(snapshot, lane)}" if timed else ""
        return word + lasted, lane.verdict.why if why else "", severity

    return words


_SERVING: dict[LaneState, Callable[[Snapshot, LaneView], _Words]] = {
    LaneState.SERVING: _serving,
    LaneState.IDLE: _plain("IDLE", Severity.NORMAL),
    LaneState.BUSY: _busy,
    LaneState.BOOTING: _booting,
    LaneState.READY: _plain("READY", Severity.INFO, why=True),
    LaneState.STALLED: _stalled,
    LaneState.DRAINING: _plain("DRAINING", Severity.LOOK, timed=True),
    LaneState.DEGRADED: _plain("DEGRADED", Severity.ACT, timed=True, why=True),
    LaneState.BLIND: _plain("UP, BLIND", Severity.LOOK, why=True),
    LaneState.PAUSED: _plain("PAUSED", Severity.ACT, timed=True),
    LaneState.DOWN: _down,
    LaneState.UNKNOWN: _plain("UNKNOWN", Severity.LOOK, why=True),
}


def revision(lane: LaneView) -> Lamp:
    """The checkpoint really mounted, by rank; never the served name."""
    known = [rank for rank in lane.ranks if rank.revision]
    distinct = sorted({rank.revision for rank in known})
    note = f"{len(known)} of {len(lane.ranks)} ranks" if len(lane.ranks) > 1 else ""
    if not distinct:
        why = (
            "no container read yet" if not any(rank.container for rank in lane.ranks) else "not in mounts or arguments"
        )
        return Lamp("REVISION", "UNKNOWN", why, note, Severity.LOOK)
    if len(distinct) > 1:
        return Lamp("REVISION", "MIXED", " ".join(fmt.revision(item) for item in distinct), note, Severity.ACT)
    running = any(rank.container and rank.container.state is ContainerState.RUNNING for rank in known)
    rest = "" if running else "not running"
    if len(known) < len(lane.ranks):
        return Lamp("REVISION", fmt.revision(distinct[0]), rest or "not all ranks read", note, Severity.LOOK)
    source = known[0].container.revision_source.split(" ", 1)[0] if known[0].container else ""
    return Lamp("REVISION", fmt.revision(distinct[0]), rest, note or f"read from {source}", Severity.NORMAL)


def watchdog(lane: LaneView) -> Lamp:
    """Watchdogs are not read yet: says so, with the restart policies that are known to act by themselves."""
    policies = sorted({rank.container.restart_policy for rank in lane.ranks if rank.container})
    known = f"({_policy_words(policies)})" if policies and all(policies) else ""
    return Lamp("WATCHDOG", "UNKNOWN", known, "not read yet", Severity.INFO)


def _policy_words(policies: list[str]) -> str:
    return "restart=no" if policies == ["no"] else ",".join(policies)


def rollback(snapshot: Snapshot, lane: LaneView) -> Lamp:
    """The way back is not judged yet: says so, with the stopped containers of the lane that were seen."""
    retired = retired_containers(snapshot, lane)
    seen = f"{len(retired)} stopped container{'s' if len(retired) != 1 else ''}" if retired else ""
    return Lamp("ROLLBACK", "UNKNOWN", seen, "not judged yet", Severity.INFO)


def retired_containers(snapshot: Snapshot, lane: LaneView) -> tuple[str, ...]:
    """Names of the lane's stopped containers on its head that hold a model revision, other than the serving one."""
    serving = next((rank.container for rank in lane.ranks if rank.host == lane.lane.head), None)
    containers = snapshot.host(lane.lane.head).containers.current(snapshot.now)
    if containers is None:
        return ()
    stopped = (ContainerState.EXITED, ContainerState.CREATED)
    return tuple(
        item.name
        for item in containers.items
        if item.state in stopped
        and item.revision
        and (serving is None or item.id != serving.id)
        and belongs(item, lane.lane.port, lane.lane.containers)
    )
