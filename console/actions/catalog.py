"""THE table of actions: keys, palette, `:` commands, key line, help and CLI twins all come from it."""

from __future__ import annotations

from console.actions.catalog_guarded import GUARDED_ACTIONS, READ_ONLY
from console.actions.catalog_reading import READING_ACTIONS
from console.actions.catalog_types import ANYWHERE, DASHBOARD, READING, ROLLING, Action, Group, Place, Scope

__all__ = (
    "ACTIONS",
    "ANYWHERE",
    "BY_ID",
    "DASHBOARD",
    "GUARDED_KEYS",
    "READING",
    "READ_ONLY",
    "ROLLING",
    "Action",
    "Group",
    "Place",
    "Scope",
    "available",
    "describe_keys",
    "guarded",
    "key_line",
    "palette",
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
        "Leave the console; what runs on the hosts goes on. With a window of yours open, or something of yours running "
        "or owed, it says what is left behind, or cut where this console carries it out itself: that takes a second q.",
        Group.CONSOLE,
        places=ANYWHERE,
        commands=("quit", "q"),
        palette=True,
        key_line=True,
    ),
    *READING_ACTIONS,
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
    *GUARDED_ACTIONS,
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
