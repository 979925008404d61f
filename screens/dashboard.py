"""The dashboard: every pane of the lane in view, from 20x5 to 200x60 and beyond."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from textual import events, on

from console.actions.catalog import Place as Where
from console.actions.catalog import guarded
from console.alarms.book import worst_returned
from screens.base import bindings_for
from screens.framed import FramedScreen
from screens.grid import ONE_ROW, Place, Wish, grid
from screens.lanes import neighbour
from widgets.containers import ContainersPane, entries_of
from widgets.decode import DecodePane
from widgets.download import DownloadPane
from widgets.drift import DriftPane
from widgets.events import EventsPane
from widgets.glance import Glance, Layout
from widgets.kv import KvPane
from widgets.lane import LanePane
from widgets.log import LogPane
from widgets.nodes import NodesPane
from widgets.pane import Drawn, Pane
from widgets.rowcopies import RowsPane
from widgets.slots import LAST_DIGIT, NUMBERS, digit, panes_of
from widgets.station import is_station
from widgets.watchdog import WatchdogPane
from widgets.wayback import WayBackPane

SMALLEST_WHOLE = 24
"""Rows from which all panes have room; below it a pane that got none takes the middle when it is in focus."""


class DashboardScreen(FramedScreen, inherit_bindings=False):
    """Panes of one lane; focus, zoom and filter are the operator's."""

    PLACE = Where.DASHBOARD
    BINDINGS = bindings_for(Where.DASHBOARD)

    def middle(self) -> Iterator[tuple[str, Drawn]]:
        """All panes; those that the lane has no use for are not shown."""
        yield "nodes", NodesPane()
        yield "download", DownloadPane()
        yield "containers", ContainersPane()
        yield "rows", RowsPane()
        yield "wayback", WayBackPane()
        yield "lane", LanePane()
        yield "decode", DecodePane()
        yield "kv", KvPane()
        yield "events", EventsPane()
        yield "log", LogPane()
        yield "watchdog", WatchdogPane()
        yield "drift", DriftPane()

    def wish(self, glance: Glance) -> Wish:
        """See `wish_of`."""
        return wish_of(glance)

    def arranged(self, glance: Glance) -> dict[str, Place]:
        """The whole grid; one pane alone when it is zoomed; one without a place of its own opens between the others."""
        wish = self.wish(glance)
        focused = _named(wish.panes).get(glance.focus, "")
        if self.console_app.view.zoomed and focused:
            return grid(*self.size, wish, focused)
        return grid(*self.size, wish, opened=focused)

    def glance_for(self, name: str, glance: Glance) -> Glance:
        """A pane of one row that has more room is drawn as in the larger layout."""
        place = self.places[name]
        if name in ONE_ROW and place.height > 2 and glance.layout is Layout.SMALL:
            return replace(glance, layout=Layout.BOXED)
        return glance

    # --- focus, zoom, filter ---------------------------------------------------------------------------------------

    def _names(self) -> dict[int, str]:
        picture = self.console_app.picture()
        return _named(self.wish(picture).panes) if picture else {}

    def _number(self, argument: str) -> int | None:
        picture = self.console_app.picture()
        for number, name in self._names().items():
            if picture is not None and argument and argument in (name, digit(picture, number)):
                return number
        return None

    def do_focus(self, argument: str) -> None:
        """Focus the pane with that digit or name."""
        number = self._number(argument)
        picture = self.console_app.picture()
        if number is None and picture is not None:
            known = ", ".join(f"{digit(picture, at)} {name}".strip() for at, name in sorted(self._names().items()))
            self.console_app.say(f"no pane {argument!r} here; there are: {known}")
        if number is not None:
            self._focus(number)

    def _focus(self, number: int) -> None:
        view = self.console_app.view
        self.console_app.view = replace(view, focus=number, before=view.before if self._opened() else view.focus)

    def _opened(self) -> bool:
        """Whether the pane in focus has no place of its own, so that the others made room for it."""
        picture = self.console_app.picture()
        name = self._names().get(self.console_app.view.focus, "")
        return picture is not None and bool(name) and name not in grid(*self.size, self.wish(picture))

    def do_more_panes(self, _: str) -> None:
        """The next of the panes that have no digit."""
        picture = self.console_app.picture()
        more = [number for number in self._names() if picture is not None and not digit(picture, number)]
        if more:
            at = more.index(self.console_app.view.focus) + 1 if self.console_app.view.focus in more else 0
            self._focus(more[at % len(more)])

    def _focus_by(self, step: int) -> None:
        picture = self.console_app.picture()
        if picture is None:
            return
        places = grid(*self.size, self.wish(picture))
        least = self.size.height < SMALLEST_WHOLE
        numbers = sorted(n for n, name in self._names().items() if name in places or (least and n <= LAST_DIGIT))
        if numbers:
            at = numbers.index(self.console_app.view.focus) if self.console_app.view.focus in numbers else -1
            self._focus(numbers[(at + step) % len(numbers)])

    def do_next_pane(self, _: str) -> None:
        """Focus the next pane."""
        self._focus_by(1)

    def do_previous_pane(self, _: str) -> None:
        """Focus the pane before."""
        self._focus_by(-1)

    def do_zoom(self, argument: str) -> None:
        """The pane in focus, or the named one, takes the whole middle; again gives it back."""
        if argument:
            self.do_focus(argument)
            self.console_app.view = replace(self.console_app.view, zoomed=True)
            return
        self.console_app.view = replace(self.console_app.view, zoomed=not self.console_app.view.zoomed)

    def do_up(self, _: str) -> None:
        """One row up in the pane in focus."""
        self._scroll(-1)

    def do_down(self, _: str) -> None:
        """One row down in the pane in focus."""
        self._scroll(1)

    def _scroll(self, rows: int) -> None:
        view = self.console_app.view
        # The log is scrolled back from its newest line, tables down from their first row.
        direction = -rows if view.focus in (NUMBERS["log"], NUMBERS["events"]) else rows
        self.console_app.view = view.scrolled(view.focus, direction)

    def do_filter(self, text: str) -> None:
        """Filter by a text, or begin to type one."""
        if text:
            self._filter(text)
        else:
            self.prompt.open("/", self.console_app.view.filter, lambda typed: ())

    def text_typed(self, text: str) -> None:
        """The filter follows what is typed."""
        self._filter(text)
        self.console_app.redraw()

    def text_closed(self, text: str, kept: bool) -> None:
        """Enter keeps the filter, Esc takes it away."""
        self._filter(text if kept else "")

    def _filter(self, text: str) -> None:
        self.console_app.view = replace(self.console_app.view, filter=text.strip())

    def close_one(self) -> None:
        """Esc: first the zoom, then a pane that was opened, then the filter; with none of them it does nothing."""
        view = self.console_app.view
        if view.zoomed:
            self.console_app.view = replace(view, zoomed=False)
        elif self._opened():
            self.console_app.view = replace(view, focus=view.before)
        elif view.filter:
            self._filter("")

    # --- time, alarms, lanes ---------------------------------------------------------------------------------------

    def do_pause(self, _: str) -> None:
        """Hold the picture still, or let it go on."""
        timeline = self.console_app.timeline
        if timeline.paused:
            timeline.resume()
        else:
            timeline.pause()

    def do_step_back(self, _: str) -> None:
        """One picture earlier."""
        self._step(-1)

    def do_step_forward(self, _: str) -> None:
        """One picture later."""
        self._step(1)

    def _step(self, direction: int) -> None:
        timeline = self.console_app.timeline
        if not timeline.paused:
            self.console_app.say("[ and ] step while paused; p pauses")
        elif not timeline.step(direction):
            end = "no earlier picture is kept" if direction < 0 else "this is the newest picture; p goes on"
            self.console_app.say(end)

    def do_acknowledge(self, _: str) -> None:
        """Mark the first unseen alarm as seen."""
        picture = self.console_app.picture()
        unseen = [a for a in picture.alarms if a.key not in picture.acknowledged] if picture else []
        gone = worst_returned(picture.returned) if picture and not unseen else None
        if gone is not None:
            self.console_app.acknowledge(gone.alarm.key)
            self.console_app.say(f"seen: {gone.alarm.subject} {gone.alarm.text}; its cause was gone already")
            return
        if not unseen:
            self.console_app.say("no alarm to acknowledge")
            return
        alarm = unseen[0]
        self.console_app.acknowledge(alarm.key)
        self.console_app.say(f"acknowledged: {alarm.subject} {alarm.text}; it stays until its cause is gone")

    def do_next_lane(self, _: str) -> None:
        """The next lane of the fleet file."""
        self._switch(1)

    def do_previous_lane(self, _: str) -> None:
        """The lane before."""
        self._switch(-1)

    def _switch(self, step: int) -> None:
        snapshot = self.console_app.timeline.newest
        if snapshot is not None and len(snapshot.lanes) > 1:
            self.console_app.choose_lane(neighbour(snapshot, self.console_app.view.lane, step))
        else:
            self.console_app.say("this fleet has one lane")

    def do_lane(self, name: str) -> None:
        """The named lane."""
        snapshot = self.console_app.timeline.newest
        names = [lane.name for lane in snapshot.lanes] if snapshot is not None else []
        if name in names:
            self.console_app.choose_lane(name)
        else:
            self.console_app.say(f"no lane {name!r}; there are: {', '.join(names)}")

    def words(self) -> Mapping[str, tuple[str, ...]]:
        """Lanes, hosts and panes by name."""
        picture = self.console_app.picture()
        if picture is None:
            return {}
        return {
            "LANE": tuple(lane.name for lane in picture.snapshot.lanes),
            "HOST": picture.lane.lane.rank_hosts,
            "PANE": tuple(self.wish(picture).panes),
            "ACTION": tuple(action.id for action in guarded() if not action.quiet),
        }

    @on(events.Click)
    def _clicked(self, event: events.Click) -> None:
        widget, _ = self.get_widget_at(event.screen_x, event.screen_y)
        if isinstance(widget, Pane):
            self.console_app.perform("focus", next(name for name, at in NUMBERS.items() if at == widget.NUMBER))


def wish_of(glance: Glance) -> Wish:
    """The panes of the lane in view, and how many rows its tables would fill. Pure."""
    nodes, by_memory = _node_rows(glance)
    return Wish(panes_of(glance), nodes=nodes, containers=_container_rows(glance), by_memory=by_memory)


def _node_rows(glance: Glance) -> tuple[int, bool]:
    """One row a host; a lane on a host with memory of two kinds shows hosts by memory (True)."""
    hosts = glance.snapshot.hosts
    apart = {host.name for host in hosts if is_station(host)}
    by_memory = bool(apart & set(glance.lane.lane.rank_hosts))
    return max(1, len(hosts) + (len(apart) if by_memory else 0)), by_memory


def _named(panes: tuple[str, ...]) -> dict[int, str]:
    """The panes of a lane by their numbers."""
    return {NUMBERS[name]: name for name in panes}


def _container_rows(glance: Glance) -> int:
    """The lane's own containers: at least one a rank, and on one host room for a retired one."""
    own = sum(1 for entry in entries_of(glance) if entry.own)
    return max(2, len(glance.lane.ranks), own)
