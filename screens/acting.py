"""The keys that act, for the app: each opens a strip, and while one is open every key is the strip's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import events

from console import format as fmt
from console.actions.catalog import BY_ID, READ_ONLY
from console.actions.plan import Plan, Verb
from console.actions.prices import verb_of
from console.actions.underway import acting_of
from console.snapshot import LaneView, Snapshot
from screens.dryrun import DryRunScreen
from screens.errands import Errand, guarded_errand
from screens.lanes import lane_or_worst
from screens.leaving import left_behind
from screens.ledger import LedgerScreen
from screens.strip import StripDesk
from screens.window import hand_over_errand, window_errand
from widgets.glance import StripGlance

if TYPE_CHECKING:
    from textual.app import App

    from screens.base import Hands, MakeHands
    from screens.framed import FramedScreen

    _Base = App[Any]
else:
    _Base = object


AGAIN_S = 10.0
"""Seconds in which the second `q` has to come."""


LEDGER_EVERY_S = 2.0
"""Seconds between two readings of the record, while it is looked at."""


class ActingKeys(_Base):
    """Mixed into the app, before Textual's own."""

    desk: StripDesk
    hands: Hands | None
    _make_hands: MakeHands | None
    _chosen: bool
    timeline: Any
    view: Any
    say: Callable[..., None]
    background: Callable[[str, Any], None]
    front: Callable[[], Any]
    redraw: Callable[[], None]
    leave: Callable[..., None]
    read_only: bool
    _leave_until = 0.0
    """Until when a second `q` leaves, monotonic seconds."""

    async def on_event(self, event: events.Event) -> None:
        """The strip gets every event first; nobody else gets what is a key, a paste or a click to it."""
        if not getattr(event, "is_forwarded", False) and self.desk.take(event):
            return
        await super().on_event(event)

    # --- the strip's paint -----------------------------------------------------------------------------------------

    def show_strip(self, strip: StripGlance | None) -> None:
        """Paint the strip, NEXT and the keys alone."""
        screen: FramedScreen | None = self.front()
        if screen is None:
            return
        if strip is None:
            self.redraw()
        else:
            screen.show_strip(strip)

    def after_paint(self, callback: Callable[[], None]) -> None:
        """Once what was drawn until now was handed to the terminal."""
        self.screen.call_after_refresh(callback)

    # --- keys ------------------------------------------------------------------------------------------------------

    @property
    def acts(self) -> bool:
        """Whether this console can act at all."""
        return self._make_hands is not None and not self.read_only

    @property
    def holds(self) -> bool:
        """Whether the lease of the lane in view is ours."""
        newest: Snapshot | None = self.timeline.newest
        return (
            self.hands is not None
            and newest is not None
            and self.hands.mine(lane_or_worst(newest, self.view.lane).name)
        )

    def _ready_hands(self, ident: str) -> Hands | None:
        """What acts; without it the reason is said."""
        action = BY_ID[ident]
        if self.hands is None:
            why = READ_ONLY if self._make_hands is None else "the console is still starting. Nothing was sent."
            self.say(f"{action.shown} {action.title}: {why}")
        return self.hands

    def _target(self) -> tuple[Snapshot, LaneView] | None:
        """The newest picture and the lane that is shown: it is the target, and what is held still goes on first."""
        self.timeline.resume()
        newest: Snapshot | None = self.timeline.newest
        return None if newest is None else (newest, lane_or_worst(newest, self.view.lane))

    def _newest(self) -> Snapshot | None:
        newest: Snapshot | None = self.timeline.newest
        return newest

    def _open_strip(self, ident: str, make: Callable[[str, LaneView, Snapshot, Hands], Errand]) -> None:
        action = BY_ID[ident]
        if self.read_only:
            self.say(f"{action.shown} {action.title}: {READ_ONLY}")
            return
        hands, target = self._ready_hands(ident), self._target()
        if hands is not None and target is not None:
            snapshot, lane = target
            # From here on the operator has chosen the lane: it is not moved to a worse one under a strip.
            self._chosen = True
            self.view = replace(self.view, lane=lane.name)
            self.desk.begin(make(action.keys[0], lane, snapshot, hands))

    def _guarded(self, ident: str) -> None:
        def make(key: str, lane: LaneView, snapshot: Snapshot, hands: Hands) -> Errand:
            return guarded_errand(key, verb_of(ident, snapshot, lane), lane.name, hands, _frozen(lane))

        self._open_strip(ident, make)

    def do_disarm(self, _: str) -> None:
        """Switch the watchdog off, or on again."""
        self._guarded("disarm")

    def do_stop(self, _: str) -> None:
        """Stop the lane."""
        self._guarded("stop")

    def do_relaunch(self, _: str) -> None:
        """Start the lane again."""
        self._guarded("relaunch")

    def do_rollback(self, _: str) -> None:
        """Go back."""
        self._guarded("rollback")

    def do_window(self, _: str) -> None:
        """Open a switch window, or close it."""
        self._open_strip("window", partial(window_errand, newest=self._newest))

    def do_hand_over(self, _: str) -> None:
        """Offer the lane, or accept it."""
        self._open_strip("hand-over", partial(hand_over_errand, newest=self._newest))

    # --- leaving ---------------------------------------------------------------------------------------------------

    def do_quit(self, _: str) -> None:
        """Leave the console; where that leaves something behind, by a second key, once it was said what."""
        newest: Snapshot | None = self.timeline.newest
        words, now = "", time.monotonic()
        if self.hands is not None and newest is not None:
            words = left_behind(newest, self.hands.carries(), self.hands.mine)
        if words and now > self._leave_until:
            self.say(words)
            self._leave_until = now + AGAIN_S
            return
        self.leave(0)

    # --- what is read ----------------------------------------------------------------------------------------------

    def do_ledger(self, _: str) -> None:
        """The record."""
        if (hands := self._ready_hands("ledger")) is None:
            return
        screen = LedgerScreen()
        self.push_screen(screen)
        self.background("reading the ledger", self._follow_ledger(screen, hands))

    async def _follow_ledger(self, screen: LedgerScreen, hands: Hands) -> None:
        """Read it again for as long as the screen is there: other consoles of this account write it too."""
        while screen in self.screen_stack:
            if screen.take(await hands.ledger()):
                self.redraw()
            await asyncio.sleep(LEDGER_EVERY_S)

    def do_dry_run(self, argument: str) -> None:
        """What an action would do, host by host; nothing is sent."""
        if (hands := self._ready_hands("dry-run")) is None or (target := self._target()) is None:
            return
        snapshot, lane = target
        idents = [argument] if argument in _ACTS else list(_ACTS)
        if argument and argument not in _ACTS:
            self.say(f"no action {argument!r}; there are: {', '.join(_ACTS)}")
            return
        screen = DryRunScreen(lane.name)
        self.push_screen(screen)
        verbs = [verb_of(ident, snapshot, lane) for ident in idents]
        self.background("plans for the dry run", self._read_plans(screen, verbs, hands))

    async def _read_plans(self, screen: DryRunScreen, verbs: list[Verb], hands: Hands) -> None:
        for verb in verbs:
            plan, decision = await hands.plan(screen.lane, verb)
            screen.take(plan, decision)
            self.redraw()


_ACTS = ("rollback", "relaunch", "stop", "disarm")
"""In the order of the dry-run view."""


def _frozen(lane: LaneView) -> Callable[[Plan], str]:
    """Whether a plan is the one that was frozen at the opening of the window."""
    acting = acting_of(lane)
    window = acting.window if acting is not None else None

    def words(plan: Plan) -> str:
        if window is None or plan.verb is not Verb.ROLLBACK:
            return ""
        since = fmt.clock(window.opened)
        return f"frozen {since}, still holds" if plan.id == window.plan_id else f"not as frozen {since}"

    return words
