"""What an action of the console is: where it is available, and whether it can change anything on a host."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Whether an action can change anything on a host."""

    SAFE = "safe"
    GUARDED = "guarded"


class Group(StrEnum):
    """Headings of the help screen, in its order."""

    LOOK = "look"
    MOVE = "move"
    TIME = "time"
    ALARMS = "alarms"
    CONSOLE = "console"
    WINDOW = "window"
    GUARDED = "guarded"


class Place(StrEnum):
    """The screens an action is available on."""

    DASHBOARD = "dashboard"
    LOGS = "logs"
    EVENTS = "events"
    HELP = "help"
    EXPLAIN = "explain"
    LEDGER = "ledger"
    DRY_RUN = "dry-run"


ANYWHERE = frozenset(Place)
DASHBOARD = frozenset({Place.DASHBOARD})
ROLLING = frozenset({Place.LOGS, Place.EVENTS, Place.LEDGER})
READING = frozenset({*ROLLING, Place.HELP, Place.EXPLAIN, Place.DRY_RUN})


@dataclass(frozen=True, slots=True)
class Action:
    """One thing the operator can ask for."""

    id: str
    keys: tuple[str, ...]
    """Key names as the terminal reports them: a character, or `tab`, `escape`, `f1`..."""
    shown: str
    """The key as help and key line write it: `?`, `1-9`."""
    word: str
    """One word for the key line."""
    title: str
    help: str
    group: Group
    scope: Scope = Scope.SAFE
    places: frozenset[Place] = DASHBOARD
    commands: tuple[str, ...] = ()
    """Names for the `:` line, the first one is shown; '' cannot be typed."""
    argument: str = ""
    """What a command takes after its name: `PANE`, `LANE`, `TEXT`; '' for nothing."""
    cli: str = ""
    """The headless command that does the same; '' where there is none."""
    palette: bool = False
    key_line: bool = False
    short: str = ""
    """The word on an 80-column key line: '' for the same, `-` for the key alone."""
    fixed: bool = False
    """The keys cannot be changed by a user keymap."""
    quiet: bool = False
    """A guarded action whose key is no chip: it hands the lane over, but changes nothing on a host."""
