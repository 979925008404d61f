"""What all panes are drawn from: one snapshot, the lane in view, and what the operator has set. Immutable."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from console.actions.plan import Plan
from console.actions.strip import By, Phase
from console.alarms import Alarm
from console.alarms.book import Booked
from console.execution.policy import Decision
from console.lamps import Lamp
from console.snapshot import HostView, LaneView, Severity, Snapshot
from widgets.glyphs import Glyphs, glyphs_for


class Layout(StrEnum):
    """How much room there is."""

    SMALL = "small"
    """From 80x24: unboxed sections."""
    BOXED = "boxed"
    """From 120x40: panes in frames."""
    WIDE = "wide"
    """From 200x60: panes carry history."""


def layout_for(columns: int, rows: int) -> Layout:
    """The layout of a terminal of this size, in cells."""
    if columns >= 200 and rows >= 60:
        return Layout.WIDE
    return Layout.BOXED if columns >= 120 and rows >= 40 else Layout.SMALL


@dataclass(frozen=True, slots=True)
class KeyHint:
    """One key on the key line."""

    key: str
    word: str
    short: str = ""
    """The word at 80 columns; empty means the same word, `-` means the key stands alone."""
    guarded: bool = False
    available: bool = True
    why: str = ""
    """Why a key that is not available is not: `this console only reads`."""
    plain: bool = False
    """A guarded key without a chip: it opens a strip, but changes nothing on a host."""
    grave: bool = False
    """That it is not available is bad news: `NO WAY BACK`."""


@dataclass(frozen=True, slots=True)
class StripGlance:
    """The strip that is open: what it says and how far it is."""

    heading: str
    """`ROLL BACK`."""
    lane: str
    phase: Phase
    by: By = By.TYPED
    letter: str = ""
    left: float = 0.0
    """Seconds of the countdown."""
    seconds: float = 0.0
    plan: Plan | None = None
    decision: Decision | None = None
    frozen: str = ""
    """`frozen 21:48:31, still holds`; '' for a plan made just now."""
    told: tuple[tuple[str, str], ...] = ()
    """(label, text) of what is told besides the plan."""
    warnings: tuple[str, ...] = ()
    """Of a strip without a plan."""
    asked: str = ""
    """What is to be typed: `lane name`."""
    hint: str = ""
    typed: str = ""
    note: str = ""
    """What is wrong with the answer just given."""
    default: str = ""
    """What Enter alone answers."""
    number: int = 1
    count: int = 1
    """Which of how many questions this is."""

    @property
    def last(self) -> bool:
        """Whether Enter lets it go, with no question left."""
        return self.number >= self.count

    @property
    def counts(self) -> bool:
        """Whether it would go by itself."""
        return self.by is By.COUNTDOWN and self.phase is Phase.ARMED


class LaneGlance(NamedTuple):
    """One lane as the header of another one's screen shows it."""

    name: str
    severity: Severity
    """Of its worst lamp."""
    word: str = ""
    """That lamp's word: `DOWN`, `GAVE UP`."""


@dataclass(frozen=True, slots=True)
class Glance:
    """Everything a pane may show. `layout` says whether panes are boxed."""

    snapshot: Snapshot
    lane: LaneView
    lamps: tuple[Lamp, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    """Unacknowledged first, then worst first."""
    acknowledged: frozenset[str] = frozenset()
    """Keys of alarms that the operator has seen."""
    returned: tuple[Booked, ...] = ()
    """Alarms that came and went before anybody saw them."""
    lanes: tuple[LaneGlance, ...] = ()
    """All lanes with their worst lamp, for the header."""
    layout: Layout = Layout.BOXED
    focus: int = 0
    """Number of the focused pane (`widgets/slots.py`); 0 for none."""
    held: float | None = None
    """Seconds that a held picture is behind the newest; None while the screen shows the newest."""
    filter: str = ""
    """Only hosts, containers, events and log lines that hold this text."""
    keys: tuple[KeyHint, ...] = ()
    scroll: tuple[tuple[int, int], ...] = ()
    """Pane number and rows scrolled: down from the top for tables, back from the newest line for the log."""
    ascii: bool = False
    no_colour: bool = False
    notice: str = ""
    """A short word from the console itself, shown on the NEXT line: `REFUSED: this console only reads`."""
    strip: StripGlance | None = None
    """The strip of a guarded key, while one is open."""
    acts: bool = False
    """This console can act; otherwise it only reads."""
    asks: str = ""
    """What the guarded keys ask for now: `in the window: one letter`."""
    _hosts: dict[str, HostView] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def now(self) -> float:
        """Monotonic time of the snapshot, seconds."""
        return self.snapshot.now

    @property
    def wall(self) -> float:
        """Unix time of the snapshot, seconds."""
        return self.snapshot.wall

    @property
    def signs(self) -> Glyphs:
        """The glyphs to draw with."""
        return glyphs_for(self.ascii)

    @property
    def boxed(self) -> bool:
        """True when panes have frames."""
        return self.layout is not Layout.SMALL

    @property
    def wide(self) -> bool:
        """True when panes carry history."""
        return self.layout is Layout.WIDE

    def host(self, name: str) -> HostView | None:
        """The view of a host, None if the fleet has no such host."""
        if not self._hosts:
            self._hosts.update((view.name, view) for view in self.snapshot.hosts)
        return self._hosts.get(name)

    def host_wall(self, name: str) -> float:
        """Unix time of the snapshot by the clock of a host: times of its containers are by that one."""
        view = self.host(name)
        return self.wall + ((view.drift if view is not None else None) or 0.0)

    def scrolled(self, pane: int) -> int:
        """Rows that a pane is scrolled by."""
        return dict(self.scroll).get(pane, 0)

    def matches(self, *texts: str) -> bool:
        """Whether any of these texts holds the filter; True without a filter."""
        wanted = self.filter.casefold()
        return not wanted or any(wanted in text.casefold() for text in texts)
