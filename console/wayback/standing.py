"""What a lane should be, by what was done to it last: which container is meant, what served last, what is unfinished.

Pure. What a host shows is not enough: of two stopped containers the one that ended last may be the one that never came
up, and what runs may be what a rollback that is half done led to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from console import format as fmt
from console.readings.acting_types import Operation, OperationState, StepState
from console.readings.containers import RETIRED_MARK, Container, belongs, serving_container
from console.readings.lights import LaneState
from console.sanitize import word
from console.snapshot import LaneView

_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]*) (?P<short>[0-9a-f]{7})")
"""A container and its revision, as plans write where they come from and lead to."""
_SHORT = re.compile(r"[0-9a-f]{7}")
_OVER = (OperationState.FAILED, OperationState.HALF_DONE, OperationState.STOPPED, OperationState.LOST)
_SO_FAR = {
    OperationState.HALF_DONE: "is half done",
    OperationState.LOST: "was lost",
    OperationState.FAILED: "failed",
    OperationState.STOPPED: "was stopped",
    OperationState.UNKNOWN: "may still run",
}
_BROKEN = (LaneState.DOWN, LaneState.STALLED, LaneState.DEGRADED)
"""A lane in such a state is not where its rollback led, though the engine runs."""


@dataclass(frozen=True, slots=True)
class Meant:
    """What should serve, by the newest operation, which did not come up."""

    name: str
    """Of the container on the head."""
    short: str
    """First seven digits of its revision."""
    words: str
    """`the rollback by ana at 02:15:00Z did not come up`."""
    tried: str = ""
    """Name of the container that a rollback led to; '' for a relaunch."""


def meant(lane: LaneView) -> Meant | None:
    """What the newest operation says of a lane whose head runs nothing; None where it says nothing of that."""
    acting = lane.acting.value if lane.acting is not None else None
    found = acting.operation if acting is not None else None
    if found is None or found.state not in _OVER or found.verb not in ("rollback", "relaunch") or _head_up(lane):
        return None
    named = _NAMED.fullmatch(found.origin if found.verb == "rollback" else found.target)
    if named is None:
        return None
    tried = _NAMED.fullmatch(found.target) if found.verb == "rollback" else None
    return Meant(named["name"], named["short"], _words(found), tried["name"] if tried is not None else "")


def _words(found: Operation) -> str:
    return f"the {found.verb} by {found.operator} at {fmt.clock(found.began)} did not come up"


def _head_up(lane: LaneView) -> bool:
    return on_head(lane) is not None


def on_head(lane: LaneView) -> Container | None:
    """The container that runs for the lane on its head; None where none does."""
    boxes = (rank.container for rank in lane.ranks if rank.host == lane.lane.head)
    return next((box for box in boxes if box is not None and box.up), None)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A rollback that did not end well, though what it led to runs on the head now, and serves or boots."""

    words: str
    """`the rollback by ana at 02:15:00Z is half done after stop one, and its target two 0123456 serves`."""
    target: str
    carried_on: bool
    """`laneswap attach LANE --carry-on` goes on with it; one that has ended is not begun again."""
    owed: bool
    """The watchdog is still owed."""


def unfinished(lane: LaneView) -> Unfinished | None:
    """The newest operation, where it is a rollback that is not over and its target is what the head runs now: another
    rollback would lead away from it, to what the operator wanted to leave. None where nothing of that is known, and
    where an open window leads to another one: to go there is its promise."""
    acting = lane.acting.value if lane.acting is not None else None
    found, box = (acting.operation, on_head(lane)) if acting is not None else (None, None)
    if acting is None or found is None or box is None or lane.verdict.state in _BROKEN:
        return None
    if found.unread or found.verb != "rollback" or found.state not in _SO_FAR:
        return None
    frozen = acting.window.target if acting.window is not None else ""
    if not all(_is_target(one, found.origin, box) for one in (found.target, frozen or found.target)):
        return None
    target = word(found.target, 60)  # all of it has to stand in one row of words, with the way out behind it
    runs = "boots" if lane.verdict.state is LaneState.BOOTING else "serves"
    who = f"the rollback by {word(found.operator, 24) or 'somebody'} at {fmt.clock(found.began)}"
    done = [step.title for step in found.steps if step.state in (StepState.DONE, StepState.SATISFIED)]
    after = f" after {word(done[-1], 48)}" if done else ""
    words = f"{who} {_SO_FAR[found.state]}{after}, and its target {target} {runs}"
    owed = any(debt.what == "watchdog" for debt in acting.debts)
    return Unfinished(words, target, found.ended is None and bool(found.plan_id), owed)


def _is_target(target: str, origin: str, box: Container) -> bool:
    """Whether a container is what a rollback led to. Of one revision on both sides the names tell, which it may have
    changed by then."""
    (name, short), (left, left_short) = told(target), told(origin)
    if short and (box.revision or not name):
        if not box.revision.startswith(short):
            return False
        if short != left_short:
            return True
    renamed = bool(left) and box.name != left and RETIRED_MARK not in box.name.lower()
    return bool(name) and (box.name == name or renamed)


def told(text: str) -> tuple[str, str]:
    """Name and revision as plans write where they come from and lead to; '' for one that is not there. Lanes with a
    site file name the revision alone."""
    first, _, last = text.rpartition(" ")
    if _SHORT.fullmatch(last):
        return first, last
    return (first, "") if last == fmt.UNKNOWN else ("" if first else last, "")


def stands_for(lane: LaneView, host: str, boxes: Sequence[Container]) -> Container | None:
    """The container that speaks for the lane on a host: the one that is up, else by the newest operation, else the one
    that ended last."""
    port, glob = lane.lane.port, lane.lane.containers
    seen = serving_container(boxes, port, glob)
    if seen is not None and seen.up:
        return seen
    found = meant(lane)
    return seen if found is None else former(lane, found, host, boxes) or seen


def former(lane: LaneView, found: Meant, host: str, boxes: Sequence[Container]) -> Container | None:
    """What the lane was on a host before: on the head the container that is named, elsewhere one of its revision."""
    if host == lane.lane.head:
        named = (item for item in boxes if item.name == found.name and item.revision.startswith(found.short))
        return next(named, None)
    port, glob = lane.lane.port, lane.lane.containers
    seen = serving_container(boxes, port, glob)
    own = [item for item in boxes if belongs(item, port, glob)] or ([seen] if seen is not None else [])
    same = [item for item in own if item.revision.startswith(found.short)]
    return max(same, key=lambda item: (RETIRED_MARK not in item.name.lower(), item.finished_at or 0.0), default=None)


def served(lane: LaneView) -> list[str]:
    """Revisions that really served, the last one first: starts that this machine saw come up, and those that the lane's
    own ledger tells of. Of the latter seven digits, where no whole revision with them is known."""
    repos = [reading.value for _, reading in lane.repos if reading.value is not None]
    whole = {files.revision for repo in repos for files in repo.snapshots}
    whole |= {record.revision for record in lane.boots}
    times = [(record.started + record.total, record.revision) for record in lane.boots if record.revision]
    for at, short in lane.came_up:
        times.append((at, next((one for one in sorted(whole) if one.startswith(short)), short)))
    return list(dict.fromkeys(revision for _, revision in sorted(times, key=lambda one: one[0], reverse=True)))
