"""The user's keymap file: which keys ask for which action. Guarded keys cannot be taken, moved or dropped."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import platformdirs

from console.actions.catalog import ACTIONS, BY_ID, GUARDED_KEYS, Action, Scope
from console.fleet.tomlfile import FileError, TomlUnreadable, read_toml

_NAMED_KEY = re.compile(
    r"(f([1-9]|1[0-9]|2[0-4])|tab|shift\+tab|enter|space|backspace|delete|insert|home|end|pageup|pagedown|up|down|left"
    r"|right|ctrl\+[a-z])"
)
_KEPT = {
    "escape": "Esc always goes back",
    "ctrl+c": "ctrl+c never acts",
    "ctrl+z": "ctrl+z suspends the console",
    "ctrl+s": "terminals take ctrl+s for themselves",
    "ctrl+q": "terminals take ctrl+q for themselves",
    **{f"ctrl+{letter}": f"terminals send ctrl+{letter} for another key" for letter in "hijm"},
}


class KeymapError(FileError):
    """A keymap that cannot be used: names the file, and for each problem the action and the reason."""


def default_keymap_path() -> Path:
    """Where the user's keymap is looked for."""
    return Path(platformdirs.user_config_dir("laneswap")) / "keys.toml"


def load_keymap(path: Path) -> dict[str, tuple[str, ...]]:
    """Read and check a keymap file; a file that is not there changes nothing. Raises KeymapError."""
    try:
        raw = read_toml(path)
    except FileNotFoundError:
        return {}
    except TomlUnreadable as error:
        raise KeymapError(path, [str(error)]) from error
    return validate_keymap(raw, path)


def validate_keymap(raw: Mapping[str, object], file: Path | str = "keys.toml") -> dict[str, tuple[str, ...]]:
    """Check `action = "key"` or `action = ["key", ...]` against the table. Raises KeymapError with every problem."""
    problems: list[str] = []
    keymap: dict[str, tuple[str, ...]] = {}
    for ident, value in raw.items():
        keys = _keys_of(value)
        found = _problems_of(ident, keys)
        problems += [f"{ident}: {problem}" for problem in found]
        if not found and keys is not None:
            keymap[ident] = keys
    problems += _clashes(keymap)
    if problems:
        raise KeymapError(file, problems)
    return keymap


def keys_of(action: Action, keymap: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The keys that ask for an action under a checked keymap."""
    return keymap.get(action.id, action.keys)


def _keys_of(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(key, str) for key in value):
        return tuple(value)
    return None


def _problems_of(ident: str, keys: tuple[str, ...] | None) -> list[str]:
    action = BY_ID.get(ident)
    if action is None:
        close = difflib.get_close_matches(ident, BY_ID, n=1)
        return ["no such action" + (f"; did you mean {close[0]!r}?" if close else "; `laneswap keys` lists them")]
    if action.scope is Scope.GUARDED:
        return [f"is guarded and keeps its key {action.shown}"]
    if action.fixed:
        return [f"keeps its key {action.shown}"]
    if keys is None:
        return ['a key such as "f2", or a list of keys']
    if not keys:
        return ["needs at least one key"]
    return [problem for key in keys if (problem := _problem_of_key(key))]


def _problem_of_key(key: str) -> str:
    if key in GUARDED_KEYS:
        return f"{key!r} is the guarded key of {_owner(key).title!r} and cannot be taken"
    if key in _KEPT:
        return f"{key!r} cannot be taken: {_KEPT[key]}"
    if len(key) == 1:
        if key.isalpha() and (key != key.lower() or not key.isascii()):
            return f"{key!r} cannot be taken: capital letters are kept for guarded actions"
        return "" if key.isascii() and key.isprintable() and key != " " else f"{key!r} is not a key name"
    return "" if _NAMED_KEY.fullmatch(key) else f"{key!r} is not a key name; a character, or one such as f2 or pageup"


def _owner(key: str) -> Action:
    return next(action for action in ACTIONS if key in action.keys)


def _clashes(keymap: Mapping[str, tuple[str, ...]]) -> list[str]:
    problems = []
    for one, other in combinations(ACTIONS, 2):
        if not one.places & other.places or not (one.id in keymap or other.id in keymap):
            continue
        for key in sorted(set(keys_of(one, keymap)) & set(keys_of(other, keymap))):
            problems.append(f"{one.id} and {other.id} both want {key!r}; give one of them another key")
    return problems
