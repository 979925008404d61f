"""The ledger: what operators did, who and under which plan; newest last."""

from __future__ import annotations

from console.actions.catalog import Place
from console.readings.ledger import Kind, Record
from screens.base import bindings_for
from screens.reader import Text
from screens.rolling import RollingScreen
from widgets import format as fmt
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, INFO, LOOK, TEXT, Ink

_TIME, _WHO, _KIND, _TEXT = 0, 9, 18, 30
"""Columns."""
_INKS: dict[Kind, Ink] = {
    Kind.INTENT: BOLD,
    Kind.TAKEOVER: LOOK,
    Kind.WAIVER: LOOK,
    Kind.BREAK_GLASS: LOOK,
    Kind.NOTE: DIM,
    Kind.OUTCOME: TEXT,
    Kind.START: INFO,
}


class LedgerScreen(RollingScreen[Record], inherit_bindings=False):
    """Records of the lane in view, and those of no lane."""

    PLACE = Place.LEDGER
    BINDINGS = bindings_for(Place.LEDGER)
    NAME = "ledger"
    NOUN = "record"

    def __init__(self) -> None:
        super().__init__()
        self._records: tuple[Record, ...] | None = None

    def take(self, records: tuple[Record, ...]) -> bool:
        """The record as it was read, oldest first. Whether it says something new; the same objects stay, so that what
        is held is found again."""
        known = {record.chain + str(record.seq): record for record in self._records or ()}
        newest = tuple(known.get(record.chain + str(record.seq), record) for record in records)
        new = newest != self._records
        self._records = newest if new else self._records
        return new

    def entries(self, glance: Glance) -> tuple[Record, ...]:
        """Those of the lane in view."""
        return tuple(record for record in self._records or () if record.lane in ("", glance.lane.name))

    def text_of(self, entry: Record) -> str:
        """What was meant or what became of it: each word can be searched for."""
        said = [entry.host, entry.result, entry.text, f"plan {entry.plan}" if entry.plan else "", entry.op]
        return "  ".join([entry.operator.ljust(8), str(entry.kind).ljust(11), *(part for part in said if part)])

    def head(self, entry: Record, glance: Glance) -> tuple[Text, int]:
        """Its time by the writer's clock."""
        return ((_TIME, fmt.time_of_day(entry.ts, glance.wall), DIM),), _WHO

    def note(self, glance: Glance) -> tuple[str, ...]:
        """How many there are."""
        return (
            f"{fmt.count(len(self.entries(glance)))} of lane {glance.lane.name}",
            "laneswap ledger --verify checks it",
        )

    def empty(self, glance: Glance) -> str:
        """Why there is none."""
        if self._records is None:
            return "The ledger is being read."
        return f"Nothing was done to lane {glance.lane.name} yet. Fills with the first window or guarded action."
