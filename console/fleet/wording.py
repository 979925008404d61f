"""What is wrong with a file of the operator's, in the words of that file: the key, and the way out."""

from __future__ import annotations

import types
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from console.fleet.tomlfile import suggest

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
OPTIONAL_NAME = r"^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,62})?$"
OPTIONAL_COMMIT = r"^(?:[0-9a-f]{40})?$"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
UNIT_PATTERN = r"^[A-Za-z0-9:_.@\\-]{0,255}$"

_NAME_WORDS = "a name is up to 63 letters, digits, '.', '-' or '_', and begins with a letter or digit"
_PATTERN_WORDS = {
    NAME_PATTERN: _NAME_WORDS,
    OPTIONAL_NAME: _NAME_WORDS,
    OPTIONAL_COMMIT: "a commit is 40 hex digits in lower case",
    VARIABLE_PATTERN: "the name of an environment variable: letters, digits and '_'; never the value itself",
    UNIT_PATTERN: "the name of a systemd unit, for example hf-download.service",
}


def explain(item: Any, model: type[BaseModel]) -> str:
    """One of pydantic's error details about a file that `model` describes."""
    where = ".".join(str(part) for part in item["loc"]) or "(top level)"
    if item["type"] == "extra_forbidden":
        return f"{where}: unknown key{suggest(str(item['loc'][-1]), known_keys(model, item['loc'][:-1]))}"
    if item["type"] == "missing":
        return f"{where}: missing; add it"
    got = "" if isinstance(item["input"], dict | list) else f" (got {str(item['input'])[:80]!r})"
    return f"{where.removesuffix('.[key]')}: {plain(item)}{got}"


def plain(item: Any) -> str:
    """What is wrong with a value, without its place."""
    if item["type"] == "string_pattern_mismatch" and item["ctx"]["pattern"] in _PATTERN_WORDS:
        return _PATTERN_WORDS[item["ctx"]["pattern"]]
    if item["type"] in ("model_type", "dict_type"):
        return "must be a table of keys"
    return str(item["msg"]).removeprefix("Value error, ").replace("Input should be", "must be", 1)


def known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Keys of the table at a place of a file; none where the place is no table with keys of its own."""
    kind: Any = model
    for part in location:
        kind = _below(kind, part)
    if not isinstance(kind, type) or not issubclass(kind, BaseModel):
        return []
    return [name for name, item in kind.model_fields.items() if not item.exclude]


def _below(kind: Any, part: int | str) -> Any:
    """The type one step further down."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        item = kind.model_fields.get(str(part))
        return _bare(item.annotation) if item else None
    return _bare(get_args(kind)[-1 if get_origin(kind) is dict else 0]) if get_args(kind) else None


def _bare(kind: Any) -> Any:
    """Without `| None`."""
    if get_origin(kind) in (Union, types.UnionType):
        return next((part for part in get_args(kind) if part is not type(None)), None)
    return kind
