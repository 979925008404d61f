"""What a lane's view says besides its readings: what is under way on it, by whom, and whether it could go back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from console.feed.acting import ActingFeed
from console.feed.host import HostFeed
from console.feed.readiness import Readiness
from console.feed.records import LaneRecords, Tell
from console.fleet.inventory import Lane
from console.fleet.places import Places
from console.readings.acting_types import ForeignAct
from console.snapshot import LaneView, Snapshot


class Underway:
    """One lane's."""

    def __init__(
        self, name: str, lane: Lane, hosts: Mapping[str, HostFeed], records: LaneRecords, folder: str, tell: Tell
    ) -> None:
        """`folder`: where its head keeps what is under way."""
        self._lane = lane
        self._acting = ActingFeed(name, folder, hosts[lane.head])
        self._readiness = Readiness(name, lane, hosts, records, tell)
        self.foreign: tuple[ForeignAct, ...] = ()
        """What foreign hands did to it of late."""
        self.unsynced = 0
        """Lines of this machine's ledger that the head does not have yet."""

    def added(self, view: LaneView, now: float, places: Places) -> LaneView:
        """The view at monotonic time `now`, with all of this."""
        if self._lane.runs_in != "host" and not places.site_file:  # a site file names all that a launch binds
            looked = next((rank.repo for rank in places.ranks if rank.host == self._lane.head), "")
            binds, repo = self._readiness.view(now, looked)
            view = replace(view, binds=binds, kept_repo=repo) if binds or repo is not None else view
        says = self._acting.ledger()
        return replace(
            view,
            came_up=says.came_up if says is not None else (),
            acting=self._acting.view(now),
            unsynced=self.unsynced,
            foreign=self.foreign,
            deeds=self._readiness.deeds,
            ready=self._readiness.ready,
            removed_at=self._readiness.removed_at,
        )

    def told(self, file: str, text: str | None) -> None:
        """See `ActingFeed.told`."""
        self._acting.told(file, text)

    def remember(self, view: LaneView, picture: Snapshot) -> None:
        """Keep what a later console needs to know of this picture, in which the lane is `view`."""
        says = self._acting.ledger()
        self._readiness.remember(view, picture, says.deeds if says is not None else ())
