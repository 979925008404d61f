"""Help: every key, out of the table that also drives them."""

from __future__ import annotations

from console.actions.catalog import ACTIONS, Action, Group, Place, Scope
from screens.base import bindings_for
from screens.reader import ReadingScreen, Text, table_rows
from widgets.ages import AgeMark
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, LABEL, STRONG, TEXT
from widgets.sheet import Title

_HEADINGS = {
    Group.LOOK: "Look at things",
    Group.MOVE: "Move about",
    Group.TIME: "Hold time still",
    Group.ALARMS: "Alarms",
    Group.CONSOLE: "The console",
    Group.WINDOW: "The switch window",
    Group.GUARDED: "Guarded: capital letters, which nothing else may use",
}
_TITLE, _HELP = 13, 37
"""Columns; the title stands alone only where there is room for three."""
_ROOMY = 100


class HelpScreen(ReadingScreen, inherit_bindings=False):
    """All actions, grouped."""

    PLACE = Place.HELP
    BINDINGS = bindings_for(Place.HELP)

    def body(self, glance: Glance, width: int) -> tuple[Title, list[Text]]:
        """The table in the words of the table."""
        return Title(0, "help", AgeMark("", DIM), "Esc goes back"), help_rows(width - 4)


def help_rows(width: int) -> list[Text]:
    """Every action under its heading, with what it works on and its command."""
    rows: list[Text] = [((0, "Lower case is safe and always works. Esc never quits, ctrl+c never acts.", DIM),)]
    for group, heading in _HEADINGS.items():
        rows += [(), ((0, heading, LABEL),)]
        for action in ACTIONS:
            if action.group is group:
                rows += _action_rows(action, width)
    return rows


def _action_rows(action: Action, width: int) -> list[Text]:
    keys = " ".join(_key(key) for key in action.keys) if action.id != "focus" else "1-9"
    key = (0, keys, BOLD if action.scope is Scope.SAFE else STRONG)
    if width < _ROOMY:
        return table_rows((key,), _TITLE, f"{action.title}: {_words(action)}", width)
    return table_rows((key, (_TITLE, action.title, TEXT)), _HELP, _words(action), width)


def _words(action: Action) -> str:
    words = action.help
    if action.commands:
        words += f" :{action.commands[0]}{' ' + action.argument if action.argument else ''}"
    if action.cli:
        words += f" (shell: {action.cli})"
    if Place.DASHBOARD not in action.places:
        words += f" In: {', '.join(sorted(action.places))}."
    return words


def _key(key: str) -> str:
    return {"escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn", "shift+tab": "sh+tab", "f1": "F1"}.get(key, key)
