"""What the operator has set on the screen, and how that and a picture become a glance. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from console.actions.catalog import Place, guarded, key_line
from console.actions.prices import Price, asks, prices
from console.alarms import Alarm, alarms
from console.alarms.book import Booked
from console.lamps import Lamp, lamps
from console.snapshot import LaneView, Severity, Snapshot
from screens.lanes import lane_or_worst
from widgets.glance import Glance, KeyHint, LaneGlance, StripGlance, layout_for
from widgets.ink import loudness

Faulty = Callable[[str, Exception], object]
"""Told of an exception in lamps or alarms, with where it happened."""

READ_ONLY = "this console only reads"


@dataclass(frozen=True, slots=True)
class View:
    """What the operator has set."""

    lane: str = ""
    """'' until something is known: then the worst."""
    focus: int = 1
    before: int = 1
    """What was in focus before a pane without a place of its own was opened: Esc goes back there."""
    zoomed: bool = False
    filter: str = ""
    acknowledged: frozenset[str] = frozenset()
    returned: tuple[Booked, ...] = ()
    """Alarms that came and went unseen."""
    scroll: Mapping[int, int] = field(default_factory=dict)
    ascii: bool = False
    no_colour: bool = False

    def scrolled(self, pane: int, rows: int) -> View:
        """The view with a pane scrolled by that many more rows."""
        return replace(self, scroll={**self.scroll, pane: max(0, self.scroll.get(pane, 0) + rows)})


@dataclass(frozen=True, slots=True)
class Moment:
    """What the screen shows right now: the picture, and what is said beside it."""

    shown: Snapshot
    newest: Snapshot
    held: float | None = None
    """Seconds that the shown picture is behind the newest, while one is held."""
    notice: str = ""
    own_alarms: tuple[Alarm, ...] = ()
    """Alarms of the console itself."""
    strip: StripGlance | None = None
    acts: bool = False
    """This console can act."""
    mine: bool = False
    """The lease of the lane in view is this operator's on this machine."""


def glance(moment: Moment, view: View, place: Place, columns: int, rows: int, faulty: Faulty) -> Glance:
    """The glance for one screen of a terminal of this size. Alarms are always those of the newest picture."""
    lane = lane_or_worst(moment.shown, view.lane)
    of_lanes = {item.name: _lamps(moment.shown, item, faulty) for item in moment.shown.lanes}
    return Glance(
        snapshot=moment.shown,
        lane=lane,
        lamps=of_lanes[lane.name],
        alarms=_unseen_first((*moment.own_alarms, *_alarms(moment.newest, faulty)), view.acknowledged),
        acknowledged=view.acknowledged,
        returned=view.returned,
        lanes=tuple(_of_lane(name, four) for name, four in of_lanes.items()),
        layout=layout_for(columns, rows),
        focus=view.focus,
        held=moment.held,
        filter=view.filter,
        keys=hints(place, _costs(moment, lane, faulty) if moment.acts else None),
        scroll=tuple(sorted((pane, rows) for pane, rows in view.scroll.items() if rows)),
        ascii=view.ascii,
        no_colour=view.no_colour,
        notice=moment.notice,
        strip=moment.strip,
        acts=moment.acts,
        asks=_asks(moment, lane, faulty) if moment.acts else "",
    )


def hints(place: Place, costs: Mapping[str, Price] | None = None) -> tuple[KeyHint, ...]:
    """The key line of a screen, out of the action table; with `costs` guarded keys act and say their price."""
    safe = [KeyHint(action.shown, action.word, action.short) for action in key_line(place)]
    acts = costs is not None
    why = "" if acts else READ_ONLY
    letters = []
    for action in guarded():
        price = (costs or {}).get(action.id, Price(action.word, action.short))
        letters.append(
            KeyHint(
                action.shown,
                price.words,
                price.short,
                guarded=True,
                available=acts and price.goes,
                why=why,
                plain=action.quiet,
                grave=price.grave,
            )
        )
    return (*safe, *letters)


def _costs(moment: Moment, lane: LaneView, faulty: Faulty) -> Mapping[str, Price]:
    try:
        return prices(moment.shown, lane, mine=moment.mine)
    except Exception as error:
        faulty("prices", error)
        return {}


def _asks(moment: Moment, lane: LaneView, faulty: Faulty) -> str:
    try:
        return asks(moment.shown, lane, mine=moment.mine)
    except Exception as error:
        faulty("prices", error)
        return ""


def _lamps(snapshot: Snapshot, lane: LaneView, faulty: Faulty) -> tuple[Lamp, ...]:
    try:
        return lamps(snapshot, lane)
    except Exception as error:
        faulty("lamps", error)
        titles = ("SERVING", "REVISION", "WATCHDOG", "ROLLBACK")
        return tuple(Lamp(title, "UNKNOWN", "console fault", "", Severity.LOOK) for title in titles)


def _alarms(snapshot: Snapshot, faulty: Faulty) -> tuple[Alarm, ...]:
    try:
        return alarms(snapshot)
    except Exception as error:
        faulty("alarms", error)
        text = f"alarms cannot be judged: {type(error).__name__}"
        return (Alarm("fault:alarms", Severity.ACT, "console", text, "do not trust a quiet line"),)


def _unseen_first(found: tuple[Alarm, ...], seen: frozenset[str]) -> tuple[Alarm, ...]:
    return tuple(sorted(found, key=lambda alarm: (alarm.key in seen, -loudness(alarm.severity))))


def _of_lane(name: str, four: tuple[Lamp, ...]) -> LaneGlance:
    worst = max(four, key=lambda lamp: loudness(lamp.severity))
    word = re.match(r"[A-Z][A-Z, ]*", worst.word)
    return LaneGlance(name, worst.severity, word[0].strip(" ,") if word else "")
