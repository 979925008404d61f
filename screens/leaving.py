"""What `q` leaves behind: said once, before the console goes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from console import format as fmt
from console.actions.underway import acting_of, runs
from console.snapshot import LaneView, Snapshot


def left_behind(snapshot: Snapshot, carries: Collection[str], mine: Callable[[str], bool]) -> str:
    """`q again leaves: rollback of dsv41 is cut ...; the window of dsv41 stays open, ...`; '' where nothing is left.

    `carries` are the lanes whose operation this console carries out itself; `mine` says of a lane whether its lease is
    this operator's on this machine: what others do goes on as before.
    """
    cut = sorted(carries)
    told = [f"cuts {', '.join(cut)} after the step under way (HALF DONE): this console carries it out"] if cut else []
    for lane in snapshot.lanes:
        if mine(lane.name):
            told += _of_lane(lane, cut)
    if not told:
        return ""
    return f"q again {'; '.join(told)}" if cut else f"q again leaves: {'; '.join(told)}"


def _of_lane(lane: LaneView, cut: Collection[str]) -> Iterator[str]:
    running, acting = runs(lane), acting_of(lane)
    if running is not None and lane.name not in cut:
        yield f"{running.verb} of {lane.name} goes on on {running.head or lane.lane.head}"
    if acting is None:
        return
    if acting.window is not None:
        until = fmt.clock(acting.window.deadline)
        yield f"the window of {lane.name} stays open until {until}, its lease runs out in 60 s"
    if acting.debts:
        yield f"the {acting.debts[0].what} of {lane.name} stays off"
