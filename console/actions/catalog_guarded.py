"""The part of the table of actions that acts: every key here opens a strip, or hands the lane over."""

from __future__ import annotations

from console.actions.catalog_types import ANYWHERE, Action, Group, Scope

READ_ONLY = "this console is read-only. Nothing was sent."
"""What a key says that would act where nothing can."""


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


GUARDED_ACTIONS: tuple[Action, ...] = (
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
"""In the order of help and key line."""
