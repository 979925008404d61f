"""The strip at work: it takes every key while one is open, counts painted ticks, and has the action carried out.

What lets an action go is decided in `console/actions/strip.py` and `console/execution/policy.py`; here only the
terminal's events, the clock and the newest snapshot are brought to the one, and what came of it to `Hands`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Any, Protocol, cast

from textual import events
from textual.timer import Timer

from console.actions.strip import LETTERS, By, Fingerprint, Hush, Phase, Strip
from console.execution.policy import Refused
from console.readings.health import LaneState
from console.snapshot import LaneView, Snapshot
from screens.base import Console
from screens.errands import Errand, Ready
from widgets.glance import StripGlance

TICK = 0.1
"""Seconds between two ticks of an open strip."""
CHECK_EVERY = 1.0
"""Seconds between two looks whether the plan that is shown would still come out."""
PLAN_LIMIT = 15.0
"""Seconds in which a plan has to be there."""
DROPPED_S = 3.0
"""Seconds for which it is said that a key was dropped."""
SLEPT = 1.0
"""Seconds by which the machine's clocks may part before it was asleep, or its time was set."""

_WORKS = frozenset({LaneState.SERVING, LaneState.IDLE, LaneState.BUSY, LaneState.READY})


class StripApp(Console, Protocol):
    """What the strip needs of the app."""

    _driver: Any

    def set_interval(self, interval: float, callback: Callable[[], None]) -> Timer:
        """Textual's own."""
        ...

    def show_strip(self, strip: StripGlance | None) -> None:
        """Paint the strip, the NEXT row and the keys alone; None takes it away."""
        ...

    def unsay(self) -> None:
        """Take back what was said last."""
        ...

    def after_paint(self, callback: Callable[[], None]) -> None:
        """Call back once what was drawn until now was handed to the terminal."""
        ...


class StripDesk:
    """At most one strip, over whichever screen is in front."""

    def __init__(self, app: Any) -> None:
        self._app = cast("StripApp", app)
        self._strip: Strip | None = None
        self._errand: Errand | None = None
        self._ready: Ready | None = None
        self._timer: Timer | None = None
        self._handed = self._drawn_ready = False
        self._slept = self._checked = 0.0
        self._away = 0
        self._checking = False
        self._hush = Hush()
        self._sending: list[str] = []
        self._dropped, self._dropped_at = "", 0.0

    @property
    def open(self) -> bool:
        """Whether every key belongs to a strip."""
        return self._strip is not None

    @property
    def hushed(self) -> bool:
        """Whether a key made now would be dropped, because a strip has just ended."""
        return self._hush.holds(time.monotonic())

    @property
    def sending(self) -> str:
        """What went and is not answered for yet: stands on the NEXT row until it is; '' for nothing."""
        return self._sending[-1] if self._sending else ""

    @property
    def dropped(self) -> str:
        """What is said of a key that came right after a strip that went, behind what stands on the NEXT row; '' for
        nothing."""
        stands = not self.open and time.monotonic() - self._dropped_at < DROPPED_S
        return self._dropped if stands else ""

    def begin(self, errand: Errand) -> None:
        """Open a strip at once, so that whatever is typed from now on is its own; what it shows is worked out next."""
        self._errand, self._ready = errand, None
        self._strip = Strip(errand.key, secrets.choice(LETTERS))
        self._handed = self._drawn_ready = False
        self._slept, self._away = _parting(), self._taken_again()
        self._timer = self._app.set_interval(TICK, self.tick)
        self._app.background(f"plan of {errand.heading.lower()}", self._prepare(self._strip, errand))
        self._draw()

    def cancel(self, why: str) -> None:
        """Close what is open; `why` is a clause."""
        if self._strip is not None:
            self._strip.cancel(why)
            self._settle()

    def glance(self) -> StripGlance | None:
        """What is shown of it; None while none is open."""
        strip, errand = self._strip, self._errand
        return None if strip is None or errand is None else shown(strip, errand, self._ready)

    # --- what happens to it ----------------------------------------------------------------------------------------

    def take(self, event: events.Event) -> bool:
        """Bring an event to the open strip. True for what nobody else may have: keys, pastes and clicks."""
        strip = self._strip
        if strip is None:
            return isinstance(event, events.Key) and self._left_over(event)
        self._look_around()
        taken = True
        if isinstance(event, events.Key):
            strip.looked_at(time.monotonic())
            strip.key(name_of(event), event.time)
        elif isinstance(event, events.Paste):
            strip.paste()
        elif isinstance(event, events.MouseDown):
            strip.click()
        elif isinstance(event, (events.MouseUp, events.Click)):
            pass
        else:
            taken = False
            self._pass_by(strip, event)
        self._settle()
        return taken

    def _left_over(self, event: events.Key) -> bool:
        """The rest of a name, a letter held down a little long: made for the strip, and no key to anybody else."""
        if not self._hush.takes(event.time):
            return False
        now = time.monotonic()
        words = self._hush.says(now, name_of(event))
        if words and self._hush.words:
            self._app.say(words)
        elif words:
            self._dropped, self._dropped_at = words, now
            self._app.show_strip(None)
        return True

    def _pass_by(self, strip: Strip, event: events.Event) -> None:
        if isinstance(event, events.Resize):
            strip.resize()
        elif isinstance(event, events.MouseEvent):
            strip.mouse()
        elif isinstance(event, (events.AppFocus, events.AppBlur)):
            strip.focus()

    def tick(self) -> None:
        """Ten times a second while it is open: what was drawn at the last tick is on the terminal, or is not."""
        strip = self._strip
        if strip is None:
            return
        self._look_around()
        if self._handed and self._caught_up():
            now = time.monotonic()
            if strip.phase is Phase.PLANNING and self._drawn_ready:
                strip.painted(now)
            else:
                strip.tick_painted(now)
        self._settle()
        if self._strip is strip:
            self._check_again(strip)
            self._draw()

    def _look_around(self) -> None:
        """The terminal, the machine and the newest snapshot: what of them flipped since the strip was shown?"""
        strip, errand = self._strip, self._errand
        if strip is None or errand is None:
            return
        if getattr(self._app._driver, "lost", False):
            strip.suspended("the terminal is lost")
        if self._taken_again() != self._away:
            strip.suspended()
        if abs(_parting() - self._slept) > SLEPT:
            strip.suspended("the machine slept, or its clock was set")
        newest = self._app.timeline.newest
        if newest is not None and self._ready is not None:
            strip.state_changed(state_of(newest, errand.lane))

    def _settle(self) -> None:
        strip = self._strip
        if strip is None or strip.open:
            return
        errand, ready = self._errand, self._ready
        if strip.phase is Phase.GO and errand is not None and ready is not None:
            self._sending.append(sending := f"{errand.heading.lower()} {errand.lane}: confirmed, being sent")
            self._app.unsay()  # what became of a strip before is not true of this one
            self._close("")
            self._app.background(errand.heading.lower(), self._carry_out(errand, ready, strip, sending))
        else:
            self._close(strip.why)
            self._app.say(strip.why)

    def _close(self, why: str) -> None:
        self._strip = self._errand = self._ready = None
        self._hush.begin(time.monotonic(), why)
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._app.show_strip(None)

    # --- plan and action -------------------------------------------------------------------------------------------

    async def _prepare(self, strip: Strip, errand: Errand) -> None:
        try:
            async with asyncio.timeout(PLAN_LIMIT):
                ready = await errand.prepare()
        except TimeoutError:
            strip.cancel(f"no plan within {PLAN_LIMIT:.0f} s")
        except Exception:
            strip.cancel("the plan could not be made, see the alarm line")
            self._end(strip)
            raise
        else:
            self._show(strip, errand, ready)
        self._end(strip)

    def _show(self, strip: Strip, errand: Errand, ready: Ready) -> None:
        newest = self._app.timeline.newest
        if self._strip is not strip or newest is None:
            return
        if ready.denied:
            why = f"DENIED: {ready.denied}. Nothing was sent."
            self._close(why)
            self._app.say(why)
            return
        self._ready, self._checked = ready, time.monotonic()
        shows = (*state_of(newest, errand.lane), *ready.shows)
        strip.planned(ready.by, shows, seconds=ready.seconds, questions=ready.questions)
        if ready.by is By.COUNTDOWN:
            self._app.bell()
        self._draw()

    def _end(self, strip: Strip) -> None:
        if self._strip is strip:
            self._settle()

    def _check_again(self, strip: Strip) -> None:
        """Whether the plan would still come out the same, asked once a second."""
        if self._ready is None or self._checking or time.monotonic() - self._checked < CHECK_EVERY:
            return
        if self._errand is not None:
            self._checking = True
            self._app.background("look at the plan again", self._compare(strip, self._errand))

    async def _compare(self, strip: Strip, errand: Errand) -> None:
        try:
            async with asyncio.timeout(PLAN_LIMIT):
                ready = await errand.prepare()
            if self._strip is strip:
                if ready.denied:
                    strip.cancel(ready.denied)
                strip.state_changed(ready.shows)
                if self._ready is not None:
                    self._ready = self._ready.aged(ready)
        except TimeoutError:
            strip.cancel(f"the plan could not be looked at again within {PLAN_LIMIT:.0f} s")
        finally:
            self._checking, self._checked = False, time.monotonic()
            self._end(strip)

    async def _carry_out(self, errand: Errand, ready: Ready, strip: Strip, sending: str) -> None:
        begun = ""
        try:
            words = await errand.carry_out(ready, strip)
            begun = errand.lane if errand.begins else ""
        except Refused as error:
            words = f"REFUSED: {error.whole}"
        except Exception as error:
            self._app.say(f"{errand.heading.lower()} {errand.lane}: outcome unknown, {error}; the ledger (e) says more")
            raise
        finally:
            self._sending.remove(sending)
        self._app.say(words, begun=begun)

    # --- paint -----------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        strip = self._strip
        if strip is None:
            return
        self._handed = False
        self._drawn_ready = self._ready is not None
        self._app.show_strip(self.glance())
        self._app.after_paint(lambda: self._was_handed(strip))

    def _was_handed(self, strip: Strip) -> None:
        if self._strip is strip:
            self._handed = True

    def _caught_up(self) -> bool:
        return bool(getattr(self._app._driver, "caught_up", True))

    def _taken_again(self) -> int:
        return int(getattr(self._app._driver, "away", 0))


def _parting() -> float:
    """How far a clock that also runs while the machine sleeps is from one that does not."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    other = time.time() if boottime is None else time.clock_gettime(boottime)
    return other - time.monotonic()


def name_of(event: events.Key) -> str:
    """A key as the strip knows it: the character that it gives, else the terminal's name of it."""
    plain = not any(event.key.startswith(f"{held}+") for held in ("ctrl", "alt", "super", "hyper", "meta"))
    return event.character if plain and event.character and event.is_printable else event.key


def state_of(snapshot: Snapshot, lane: str) -> Fingerprint:
    """The state of a lane that a strip over it shows. Serving and idle are one: requests come and go."""
    view = next((view for view in snapshot.lanes if view.name == lane), None)
    if view is None:
        return ((lane, "gone"),)
    state = view.verdict.state
    return (
        (lane, "serving" if state in _WORKS else state.value),
        ("the lease", _holder(view)),
        ("the newest operation", _operation(view)),
    )


def _holder(view: LaneView) -> str:
    acting = view.acting.value if view.acting is not None else None
    if acting is not None and acting.lease_unknown:
        return f"not known: {acting.lease_unknown}"
    lease = acting.lease if acting is not None else None
    return f"{lease.operator} on {lease.console}" if lease is not None else "with nobody"


def _operation(view: LaneView) -> str:
    acting = view.acting.value if view.acting is not None else None
    operation = acting.operation if acting is not None else None
    return f"{operation.id} {operation.state.value}" if operation is not None else "none"


def shown(strip: Strip, errand: Errand, ready: Ready | None) -> StripGlance:
    """What a strip looks like now. Pure."""
    ready = ready or Ready()
    question = strip.question
    return StripGlance(
        heading=errand.heading,
        lane=errand.lane,
        phase=strip.phase,
        by=strip.by,
        letter=strip.letter,
        left=strip.left,
        seconds=strip.seconds,
        plan=ready.plan,
        decision=ready.decision,
        frozen=ready.frozen,
        told=ready.told,
        warnings=ready.warnings,
        asked=question.label if question is not None else "",
        hint=question.hint if question is not None else "",
        typed=strip.typed,
        note=strip.note,
        default=question.default if question is not None else "",
        number=len(strip.answers) + 1,
        count=len(strip.questions),
    )
