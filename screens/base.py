"""What all screens of the console share: their place in the action table, their keys, and who answers an action."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Protocol, cast

from textual.binding import Binding, BindingType
from textual.screen import Screen

from console.actions.catalog import BY_ID, Action, Place, available
from console.actions.plan import Plan, Verb
from console.execution.policy import Confirmation, Decision
from console.readings.ledger import Record
from console.snapshot import Source
from screens.painting import CellCompositor
from screens.timeline import Timeline
from screens.view import View
from widgets.glance import Glance


class Hands(Protocol):
    """What carries out what the operator confirmed: the console's own, or one of a test. Answers are safe words."""

    async def plan(self, lane: str, verb: Verb) -> tuple[Plan, Decision]:
        """What the action would do now, and what it takes for it to go."""
        ...

    async def act(self, plan: Plan, decision: Decision, confirmation: Confirmation) -> str:
        """Carry it out, if the policy gives leave; says what became of the attempt."""
        ...

    async def open_window(
        self, lane: str, reason: str, deadline_s: float, typed: str, *, without_way_back: bool = False
    ) -> str:
        """Open a switch window for so many seconds; `typed` is what was typed as the lane's name.

        `without_way_back`: the operator was told that there is none, and opens it all the same.
        """
        ...

    async def close_window(self, lane: str, typed: str) -> str:
        """Close it."""
        ...

    async def offer(self, lane: str, to: str) -> str:
        """Offer the lease to another operator."""
        ...

    async def accept(self, lane: str) -> str:
        """Take a lease that was offered to us."""
        ...

    async def take_over(self, lane: str, typed: str, shown: str) -> str:
        """Take the lane from whoever it was shown with, by the id of that lease; '' where nobody could be named.

        `typed` is what was typed as the lane's name.
        """
        ...

    def mine(self, lane: str) -> bool:
        """Whether the lane's lease is this operator's on this machine, as far as its head was read."""
        ...

    def carries(self) -> tuple[str, ...]:
        """Lanes whose operation is carried out by this console itself, so that it ends with it."""
        ...

    async def ledger(self) -> tuple[Record, ...]:
        """The record, oldest first."""
        ...

    async def start(self) -> None:
        """Look after what is under way, until `close`."""
        ...

    async def close(self) -> None:
        """Let go; what runs on the hosts goes on."""
        ...


MakeHands = Callable[[Callable[[str], None]], Hands]
"""Makes what acts, given a way to tell the operator something later."""


class Console(Protocol):
    """What the screens need of the app."""

    source: Source
    view: View
    timeline: Timeline
    hands: Hands | None
    """None where this console only reads."""

    def background(self, what: str, work: Awaitable[None]) -> None:
        """Run it; what goes wrong in it is a fault on screen."""
        ...

    def bell(self) -> None:
        """Ring the terminal's bell."""
        ...

    def perform(self, ident: str, argument: str = "") -> None:
        """Carry out an action of the table, or say why not."""
        ...

    def say(self, text: str, *, begun: str = "") -> None:
        """One line for the operator; `begun` names the lane on which something has begun that soon says more itself."""
        ...

    def acknowledge(self, key: str) -> None:
        """Somebody has seen this alarm."""
        ...

    def redraw(self) -> None:
        """Draw the screen again because the view changed."""
        ...

    def choose_lane(self, name: str) -> None:
        """Show a lane."""
        ...

    def picture(self) -> Glance | None:
        """What the front screen shows; None before the first snapshot."""
        ...

    def command(self, line: str) -> None:
        """Carry out a `:` line."""
        ...

    def fault(self, where: str, error: BaseException) -> None:
        """Show and keep a fault of the console itself."""
        ...


def bindings_for(place: Place) -> list[BindingType]:
    """The key bindings of one screen, out of the action table."""
    return [_binding(action, key) for action in available(place) for key in action.keys]


def _binding(action: Action, key: str) -> Binding:
    argument = key if action.id == "focus" else ""
    return Binding(
        key,
        f"app.perform({action.id!r}, {argument!r})",
        action.title,
        show=False,
        tooltip=action.help,
        # Keymaps go by id and replace all keys of it; the digits keep theirs.
        id=None if action.fixed else action.id,
        # Priority bindings run in the order the keys were typed; others wait in the queue of whatever had the focus
        # when the key came, so that the letters of a `:` line typed fast would act before the line is open.
        priority=True,
    )


class ConsoleScreen(Screen[None], inherit_bindings=False):
    """A screen that is driven by the action table. `do_NAME` answers the action NAME with its argument."""

    PLACE: ClassVar[Place]
    AUTO_FOCUS = ""
    ALLOW_SELECT = False
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._compositor = CellCompositor()

    @property
    def console_app(self) -> Console:
        """The app, as far as screens know it."""
        return cast("Console", self.app)

    @property
    def typing(self) -> bool:
        """Whether a line is being typed, so that keys are text."""
        return False

    def show(self, glance: Glance) -> None:
        """Take the newest picture; repaint only what changed."""
        raise NotImplementedError

    def answer(self, ident: str) -> Callable[[str], None] | None:
        """The method that answers an action on this screen, None if it leaves that to the app."""
        return cast("Callable[[str], None] | None", getattr(self, method_name(ident), None))

    def words(self) -> Mapping[str, tuple[str, ...]]:
        """Words that complete the arguments of `:` commands, by the argument's name."""
        return {}


def method_name(ident: str) -> str:
    """`do_next_lane` for the action `next-lane`."""
    return "do_" + BY_ID[ident].id.replace("-", "_")
