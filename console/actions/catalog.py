"""THE table of actions: keys, palette, `:` commands, key line, help and CLI twins all come from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
READ_ONLY = "this console is read-only. Nothing was sent."
"""What a key says that would act where nothing can."""


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


def _guarded(letter: str, ident: str, word: str, title: str, help_: str, cli: str = "", quiet: bool = False) -> Action:
    return Action(
        id=ident,
        keys=(letter,),
        shown=letter,
        word=word,
        title=title,
        help=help_,
        group=Group.GUARDED,
        scope=Scope.GUARDED,
        places=ANYWHERE,
        commands=(ident,),
        cli=cli,
        palette=True,
        key_line=True,
        fixed=True,
        quiet=quiet,
    )


ACTIONS: tuple[Action, ...] = (
    Action(
        "logs",
        ("l",),
        "l",
        "logs",
        "follow a log",
        "The serving container's log: choose the host, search, scroll back.",
        Group.LOOK,
        commands=("logs", "log"),
        argument="HOST",
        palette=True,
        key_line=True,
        short="log",
    ),
    Action(
        "events",
        ("v",),
        "v",
        "events",
        "read the events",
        "What happened, from the oldest event kept: search, scroll back.",
        Group.LOOK,
        commands=("events",),
        palette=True,
        key_line=True,
        short="-",
    ),
    Action(
        "explain",
        ("x",),
        "x",
        "explain",
        "explain the pane",
        "Every value of the pane in focus: source, when it was read, basis and formula.",
        Group.LOOK,
        commands=("explain",),
        argument="PANE",
        cli="laneswap status --json",
        palette=True,
        key_line=True,
        short="-",
    ),
    Action(
        "filter",
        ("/",),
        "/",
        "filter",
        "filter",
        "Only rows that hold the text, in every pane that has rows; an empty text or Esc shows all.",
        Group.LOOK,
        places=frozenset({Place.DASHBOARD, *ROLLING}),
        commands=("filter",),
        argument="TEXT",
        palette=True,
        key_line=True,
    ),
    Action(
        "zoom",
        ("z",),
        "z",
        "zoom",
        "zoom the pane",
        "The pane in focus takes the room of all panes; again, or Esc, gives it back.",
        Group.LOOK,
        commands=("zoom",),
        argument="PANE",
        palette=True,
        key_line=True,
        short="-",
    ),
    Action(
        "ledger",
        ("e",),
        "e",
        "ledger",
        "ledger",
        "The record of what operators did to the lane: search, scroll back.",
        Group.LOOK,
        commands=("ledger",),
        cli="laneswap ledger",
        palette=True,
        key_line=True,
        short="-",
    ),
    Action(
        "dry-run",
        ("d",),
        "d",
        "dry-run",
        "dry run",
        "What each guarded action would do now, host by host, with its commands; nothing is sent.",
        Group.LOOK,
        commands=("plan", "dry-run"),
        argument="ACTION",
        cli="laneswap plan",
        palette=True,
        key_line=True,
        short="-",
    ),
    Action(
        "focus",
        tuple("123456789"),
        "1-9",
        "focus",
        "focus a pane",
        "Put the focus on the pane with that number; one that has no room of its own opens, Esc closes it.",
        Group.MOVE,
        commands=("focus",),
        argument="PANE",
        key_line=True,
        short="-",
        fixed=True,
    ),
    Action(
        "more-panes",
        ("0",),
        "0",
        "more",
        "panes without a number",
        "Put the focus on the next pane that has no number: containers, watchdog, drift.",
        Group.MOVE,
        commands=("more",),
        palette=True,
        key_line=True,
        short="-",
        fixed=True,
    ),
    Action(
        "next-pane",
        ("tab", "right"),
        "tab",
        "next pane",
        "next pane",
        "Put the focus on the next pane; the right arrow does the same.",
        Group.MOVE,
    ),
    Action(
        "previous-pane",
        ("shift+tab", "left"),
        "shift+tab",
        "previous pane",
        "previous pane",
        "Put the focus on the pane before; the left arrow does the same.",
        Group.MOVE,
    ),
    Action("up", ("up", "k"), "up", "up", "scroll up", "One row up in the pane in focus; `k` too.", Group.MOVE),
    Action(
        "down", ("down", "j"), "down", "down", "scroll down", "One row down in the pane in focus; `j` too.", Group.MOVE
    ),
    Action(
        "next-lane",
        ("n", ">"),
        "n",
        "lane",
        "next lane",
        "Show the next lane of the fleet, in the order of the fleet file; `>` does the same.",
        Group.MOVE,
        commands=("next",),
        palette=True,
        key_line=True,
    ),
    Action(
        "previous-lane",
        ("<",),
        "<",
        "lane before",
        "previous lane",
        "Show the lane before in the order of the fleet file.",
        Group.MOVE,
        commands=("previous",),
        palette=True,
    ),
    Action(
        "lane",
        (),
        "",
        "lane",
        "show a lane",
        "Show the named lane.",
        Group.MOVE,
        commands=("lane",),
        argument="LANE",
    ),
    Action(
        "pause",
        ("p",),
        "p",
        "pause",
        "pause or resume",
        "Hold one picture still. Sampling goes on, and alarms still break through.",
        Group.TIME,
        commands=("pause", "resume"),
        palette=True,
        key_line=True,
    ),
    Action(
        "step-back",
        ("[",),
        "[",
        "earlier",
        "one picture earlier",
        "While paused: the picture before.",
        Group.TIME,
        commands=("back",),
    ),
    Action(
        "step-forward",
        ("]",),
        "]",
        "later",
        "one picture later",
        "While paused: the picture after.",
        Group.TIME,
        commands=("forward",),
    ),
    Action(
        "acknowledge",
        ("a",),
        "a",
        "ack",
        "acknowledge",
        "Mark the first alarm not yet acknowledged as seen; it stays on screen until its cause is gone.",
        Group.ALARMS,
        commands=("ack", "acknowledge"),
        palette=True,
        key_line=True,
    ),
    Action(
        "help",
        ("?", "f1"),
        "?",
        "help",
        "help",
        "All keys, from the table that also drives them.",
        Group.CONSOLE,
        places=ANYWHERE,
        commands=("help",),
        cli="laneswap keys",
        palette=True,
        key_line=True,
    ),
    Action(
        "command",
        (":",),
        ":",
        "cmd",
        "command line",
        "Type a command by name; tab completes it.",
        Group.CONSOLE,
        places=ANYWHERE,
        key_line=True,
    ),
    Action(
        "palette",
        ("ctrl+p",),
        "ctrl+p",
        "palette",
        "command palette",
        "Find a command by any part of its name; a guarded one opens its strip, as its key does.",
        Group.CONSOLE,
        places=ANYWHERE,
        commands=("palette",),
    ),
    Action(
        "back",
        ("escape",),
        "Esc",
        "back",
        "back",
        "Close what is open: a line being typed, a screen, the zoom, the filter. It never quits.",
        Group.CONSOLE,
        places=ANYWHERE,
        fixed=True,
    ),
    Action(
        "hint-quit",
        ("ctrl+c",),
        "ctrl+c",
        "hint",
        "how to quit",
        "Says how to quit. It never acts and never quits.",
        Group.CONSOLE,
        places=ANYWHERE,
        fixed=True,
    ),
    Action(
        "quit",
        ("q",),
        "q",
        "quit",
        "quit",
        "Leave the console; what runs on the hosts goes on. An operation that this console carries out itself would be "
        "cut: that takes a second q.",
        Group.CONSOLE,
        places=ANYWHERE,
        commands=("quit", "q"),
        palette=True,
        key_line=True,
    ),
    Action(
        "follow",
        ("f",),
        "f",
        "follow",
        "follow the newest line",
        "Stay at the newest line, or stop there.",
        Group.LOOK,
        places=ROLLING,
        commands=("follow",),
        key_line=True,
    ),
    Action(
        "only-matches",
        ("m",),
        "m",
        "only matches",
        "only what matches",
        "Show only the lines that hold the text searched for, or all again.",
        Group.LOOK,
        places=ROLLING,
        commands=("only",),
        key_line=True,
        short="only",
    ),
    Action(
        "fold",
        ("t",),
        "t",
        "fold",
        "fold long lines",
        "Lines longer than the screen in as many rows as they need, or cut to one row again.",
        Group.LOOK,
        places=ROLLING,
        commands=("fold",),
        key_line=True,
    ),
    Action(
        "next-host",
        ("h",),
        "h",
        "host",
        "log of the next host",
        "Follow the log on the lane's next host.",
        Group.LOOK,
        places=frozenset({Place.LOGS}),
        commands=("host",),
        argument="HOST",
        key_line=True,
    ),
    Action(
        "next-match",
        ("n",),
        "n",
        "next match",
        "next match",
        "Jump to the next older line that holds the text searched for.",
        Group.MOVE,
        places=ROLLING,
        key_line=True,
        short="next",
    ),
    Action("scroll-up", ("up", "k"), "up", "up", "one line up", "One line up.", Group.MOVE, places=READING),
    Action("scroll-down", ("down", "j"), "down", "down", "one line down", "One line down.", Group.MOVE, places=READING),
    Action("page-up", ("pageup",), "PgUp", "page up", "one page up", "One page up.", Group.MOVE, places=READING),
    Action(
        "page-down",
        ("pagedown", "space"),
        "PgDn",
        "page down",
        "one page down",
        "One page down; space too.",
        Group.MOVE,
        places=READING,
    ),
    Action("top", ("home", "g"), "Home", "top", "to the top", "The first line; `g` too.", Group.MOVE, places=READING),
    Action("end", ("end",), "End", "end", "to the end", "The last line.", Group.MOVE, places=READING),
    Action(
        "window",
        ("w",),
        "w",
        "window",
        "open or close a window",
        "The lane's name, a reason and a deadline are typed; then the lane is yours and B has its way back ready. "
        "Where there is no way back it is opened without one, and says so. With a window open it closes it.",
        Group.WINDOW,
        commands=("window",),
        cli="laneswap window",
        palette=True,
        key_line=True,
        short="-",
    ),
    _guarded(
        "D",
        "disarm",
        "watchdog",
        "disarm or arm the watchdog",
        "Switch the lane's watchdog off, or on again; off, it is a debt on every screen until it is armed.",
        "laneswap do LANE disarm",
    ),
    _guarded(
        "S",
        "stop",
        "stop",
        "stop the lane",
        "Stop the lane's containers on every rank: watchdog first, logs kept, then looked at whether all of it ended.",
        "laneswap do LANE stop",
    ),
    _guarded(
        "R",
        "relaunch",
        "relaunch",
        "relaunch the lane",
        "Start the lane again as its site file says.",
        "laneswap do LANE relaunch",
    ),
    _guarded(
        "B",
        "rollback",
        "roll back",
        "roll the lane back",
        "Go back to what served before; after it the same key rolls forward. In a window it goes by itself.",
        "laneswap do LANE rollback",
    ),
    _guarded(
        "H",
        "hand-over",
        "hand over",
        "hand the lane over",
        "Offer the lane to another operator, who accepts it with the same key. One that another operator or machine "
        "holds, or whose lease ran out, is taken over.",
        quiet=True,
    ),
)
"""Every action, in the order of help."""

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}
GUARDED_KEYS: frozenset[str] = frozenset(key for a in ACTIONS if a.scope is Scope.GUARDED for key in a.keys)


def available(place: Place) -> tuple[Action, ...]:
    """The actions of one screen."""
    return tuple(action for action in ACTIONS if place in action.places)


def key_line(place: Place) -> tuple[Action, ...]:
    """The safe actions that a screen's key line names, most used first."""
    rank = {ident: n for n, ident in enumerate(_KEY_LINE_ORDER)}
    chosen = [a for a in available(place) if a.key_line and a.scope is Scope.SAFE]
    if place is not Place.DASHBOARD:
        chosen += [BY_ID["back"], BY_ID["page-down"]]
    return tuple(sorted(chosen, key=lambda a: rank.get(a.id, len(rank))))


def guarded() -> tuple[Action, ...]:
    """The guarded actions, in the order of the key line."""
    return tuple(action for action in ACTIONS if action.scope is Scope.GUARDED)


_KEY_LINE_ORDER = (
    *("back", "help", "command", "filter", "focus", "more-panes", "zoom", "logs", "events"),
    *("follow", "next-host", "next-match", "only-matches", "fold", "page-down"),
    *("ledger", "dry-run", "pause", "acknowledge", "explain", "window", "next-lane", "quit"),
)


def palette() -> tuple[Action, ...]:
    """What the command palette lists: commands that work without an argument. Guarded ones open their strip."""
    return tuple(a for a in ACTIONS if a.palette)


def describe_keys() -> list[dict[str, str]]:
    """One row an action for `laneswap keys`: id, keys, commands, title, help, scope, screens."""
    return [
        {
            "id": action.id,
            "keys": " ".join(action.keys),
            "command": f":{action.commands[0]} {action.argument}".rstrip() if action.commands else "",
            "title": action.title,
            "help": action.help,
            "scope": action.scope.value,
            "screens": " ".join(sorted(action.places)),
            "cli": action.cli,
        }
        for action in ACTIONS
    ]


class CommandError(ValueError):
    """A `:` line that names no action of this screen; the message says what does exist."""


def parse_command(line: str, place: Place) -> tuple[Action, str]:
    """The action and argument that a `:` line asks for. Raises CommandError."""
    name, _, argument = line.strip().removeprefix(":").strip().partition(" ")
    argument = argument.strip()
    found = next((a for a in available(place) if name and name in a.commands), None)
    if found is None:
        raise CommandError(_unknown(name, place))
    if argument and not found.argument:
        raise CommandError(f"{name} takes nothing after its name")
    return found, argument


def complete(prefix: str, place: Place, arguments: Mapping[str, Iterable[str]] | None = None) -> tuple[str, ...]:
    """What a `:` line can become: command names, then the words known for the command's argument."""
    name, space, rest = prefix.lstrip().removeprefix(":").lstrip().partition(" ")
    if not space:
        names = [command for action in available(place) for command in action.commands]
        return tuple(sorted(n for n in names if n.startswith(name)))
    action = next((a for a in available(place) if name in a.commands), None)
    words = (arguments or {}).get(action.argument, ()) if action else ()
    return tuple(f"{name} {word}" for word in words if word.startswith(rest.strip()))


def _unknown(name: str, place: Place) -> str:
    import difflib

    names = [command for action in available(place) for command in action.commands]
    close = difflib.get_close_matches(name, names, n=1)
    return f"no command {name!r}" + (f"; did you mean {close[0]!r}?" if close else "; ? lists the keys, tab completes")
