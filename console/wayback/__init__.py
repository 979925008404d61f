"""The way back of a lane: where to, by what, item by item, and how long it takes. Pure functions of a snapshot.

Nothing here proves a way back: it tells what is known of it, and what only a later action can prove.
"""

from __future__ import annotations

from console.snapshot import LaneView, Snapshot
from console.wayback.by_container import by_container
from console.wayback.by_site import by_site
from console.wayback.items import Item as Item
from console.wayback.items import WayBack as WayBack
from console.wayback.items import Word as Word
from console.wayback.items import lamp_words as lamp_words


def way_back(snapshot: Snapshot, lane: LaneView) -> WayBack:
    """How this lane goes back: by its site file where it has one, else by a container that was kept stopped."""
    key = f"way back {lane.name}"
    kept: tuple[LaneView, WayBack] | None = snapshot.memo.get(key)
    if kept is None or kept[0] is not lane:
        kept = snapshot.memo[key] = (lane, _found(snapshot, lane))
    return kept[1]


def _found(snapshot: Snapshot, lane: LaneView) -> WayBack:
    if lane.site is not None:
        return by_site(snapshot, lane)
    if nowhere := next((words for words in lane.unfilled if words.startswith("site file:")), ""):
        return WayBack(None, "", "site", (), (), None, why=nowhere)
    if lane.lane.runs_in == "host":
        return WayBack(None, "", "", (), (), None, why="the engine runs outside containers, and no site file is known")
    return by_container(snapshot, lane)
