"""What a lane that is down should be, by what was done to it last: which container is meant, what served last. Pure.

What a host shows is not enough: of two stopped containers the one that ended last may be the one that never came up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from console import format as fmt
from console.readings.acting_types import Operation, OperationState
from console.readings.containers import RETIRED_MARK, Container, belongs, serving_container
from console.snapshot import LaneView

_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]*) (?P<short>[0-9a-f]{7})")
"""A container and its revision, as plans write where they come from and lead to."""
_OVER = (OperationState.FAILED, OperationState.HALF_DONE, OperationState.STOPPED, OperationState.LOST)


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
    return any(rank.host == lane.lane.head and rank.container is not None and rank.container.up for rank in lane.ranks)


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
