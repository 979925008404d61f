"""A lease is given back once nothing is under way: by the newest picture and the head's own word, and never while
something of its lane is being begun, here or in another console of the operator, which shares the lease.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from console.actions.underway import runs
from console.execution import files
from console.execution.inflight import alone
from console.execution.ledger import Ledger
from console.execution.policy import Refused
from console.execution.tenure import Ground, Tenure
from console.readings.acting import CURRENT, OPERATION


class Settling:
    """Gives the leases of one console back."""

    def __init__(self, ground: Ground, ledger: Ledger, tenure: Tenure) -> None:
        self._ground, self._ledger, self._tenure = ground, ledger, tenure

    @contextlib.asynccontextmanager
    async def by_itself(self, lane: str) -> AsyncIterator[None]:
        """What changes lease or window of a lane, and no beginning beside it. Raises Refused."""
        async with self._tenure.turn(lane), alone(self._ledger.file, lane) as first:
            if not first:
                raise Refused(f"another console of yours is just beginning something on {lane}; look again")
            yield

    async def settled(self, lane: str) -> bool:
        """Give the lease back if nothing is under way. False: ask again later."""
        if self._tenure.held(lane) is None:
            return True
        if self._tenure.turn(lane).locked() or not self.idle(lane):
            return False
        async with self._tenure.turn(lane), alone(self._ledger.file, lane, wait=0.0) as first:
            if not first:
                return False
            link, folder = self._tenure.way(lane)
            found = await files.read(link, folder, CURRENT)
            newest = found.text.strip()
            # what another console of ours has just begun goes under this very lease, and is not read here yet
            unread = OPERATION.fullmatch(newest) is not None and newest != self._shown(lane)
            if found.unknown or unread or not self.idle(lane):
                return False
            await self._tenure.release(lane)
            return True

    def idle(self, lane: str) -> bool:
        """Whether the newest picture shows neither a window nor an operation that goes on."""
        view = self._ground.snapshot().lane(lane)
        acting = view.acting.value if view.acting is not None else None
        return acting is not None and acting.window is None and runs(view) is None

    def _shown(self, lane: str) -> str:
        view = self._ground.snapshot().lane(lane)
        acting = view.acting.value if view.acting is not None else None
        return acting.operation.id if acting is not None and acting.operation is not None else ""
