"""The `:` line: which action its words ask for, and what they can become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from console.actions.catalog import available
from console.actions.catalog_types import Action, Place


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
