"""What each guarded key would do to a lane now and what it costs, for the key line. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from console import format as fmt
from console.actions.plan import Verb
from console.readings.throughput import Throughput
from console.readings.watchdog import WatchdogState
from console.snapshot import LaneView, Snapshot
from console.wayback import way_back
from console.wayback.items import STOP_S, boot_time

_OFF = frozenset({WatchdogState.OFF, WatchdogState.PAUSED, WatchdogState.STANDING_DOWN, WatchdogState.GAVE_UP})
"""States in which `D` switches it on again."""


def verb_of(ident: str, snapshot: Snapshot, lane: LaneView) -> Verb:
    """What a guarded action of the catalog does to this lane now: `disarm` is also the way to arm it again."""
    if ident == "disarm":
        return Verb.ARM if _disarmed(snapshot, lane) else Verb.DISARM
    return Verb(ident)


def prices(snapshot: Snapshot, lane: LaneView) -> Mapping[str, tuple[str, str]]:
    """Action id -> (words on the key line, words at 80 columns); what is not known costs `≈-`, never nothing."""
    return {
        "disarm": _watchdog(snapshot, lane),
        "stop": _stop(snapshot, lane),
        "relaunch": _relaunch(snapshot, lane),
        "rollback": _rollback(snapshot, lane),
    }


def _disarmed(snapshot: Snapshot, lane: LaneView) -> bool:
    """A debt says so, or the watchdog itself; one that was not read is taken for armed."""
    acting = lane.acting.value if lane.acting is not None else None
    if acting is not None and any(debt.what == "watchdog" for debt in acting.debts):
        return True
    found = lane.watchdog.current(snapshot.now) if lane.watchdog is not None else None
    return found is not None and found.state in _OFF


def _watchdog(snapshot: Snapshot, lane: LaneView) -> tuple[str, str]:
    word = "arm" if _disarmed(snapshot, lane) else "disarm"
    return word, word


def _stop(snapshot: Snapshot, lane: LaneView) -> tuple[str, str]:
    found = lane.throughput.current(snapshot.now)
    count = _requests(found) if found is not None else None
    if count is None:
        # A closed port answers no question: then nothing runs that could be cut.
        count = 0 if lane.verdict.state.value == "down" else None
    if count is None:
        return "stop", "stop"
    return f"cuts {count} request{'' if count == 1 else 's'}", f"cuts {count}"


def _requests(found: Throughput) -> int | None:
    """Running and waiting ones; None where the engine does not say."""
    if found.running is None:
        return None
    return round(found.running + (found.waiting or 0))


def _relaunch(snapshot: Snapshot, lane: LaneView) -> tuple[str, str]:
    """Stop and boot: the whole time until it serves again."""
    boot, _ = boot_time(lane, "")
    if boot is None:
        return "relaunch", "relaunch"
    up = any(rank.container is not None and rank.container.up for rank in lane.ranks)
    text = f"≈{fmt.duration(boot + (STOP_S if up else 0.0))}"
    return text, text


def _rollback(snapshot: Snapshot, lane: LaneView) -> tuple[str, str]:
    back = way_back(snapshot, lane)
    if back.possible is False:
        return "no way back", "no way"
    if back.total is None:
        return "roll back", "back"
    time = f"≈{fmt.duration(back.total)}"
    where = f" to {fmt.revision(back.revision)}" if back.revision else ""
    return time + where, time + where
