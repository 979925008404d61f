"""A launcher's site file as its own consumer reads it: shell, docker --env-file or JSON. Pure: it reads, never runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from console.fleet.recipe_model import Recipe
from console.fleet.siteshell import read_shell
from console.fleet.sitetypes import Assignment, Site, SiteFile, SiteKind, unusable
from console.readings.revision import commit_in
from console.sanitize import line as safe

__all__ = ["MOST_BYTES", "Assignment", "Site", "SiteFile", "SiteKind", "home_value", "parse_site", "read_site"]

MOST_BYTES = 1 << 20
"""Largest site file that is read; real ones have one or two KB."""
_HOME = re.compile(r"(?:\$HOME|\$\{HOME\}|~)(?=/|$)")
_BOM = b"\xef\xbb\xbf"
_MOST_LINE = 64 * 1024
"""docker reads lines with bufio.Scanner, which refuses longer ones."""
_MOST_KEYS = 10_000
"""Of a JSON file, once its lists of objects are turned into columns."""


def parse_site(data: bytes, kind: SiteKind) -> SiteFile:
    """What a file sets for its consumer. Never raises: what cannot be read is told in `warnings`."""
    data, kind = bytes(data), SiteKind(kind)
    marks = (data.count(b"\r\n"), data.startswith(_BOM), not data or data.endswith(b"\n"))
    if len(data) > MOST_BYTES:
        return SiteFile(kind, (), *marks, (f"larger than {MOST_BYTES >> 20} MiB: not read",))
    reader = {SiteKind.BASH: _bash, SiteKind.DOCKER: _docker, SiteKind.JSON: _json}[kind]
    found, warnings = reader(data)
    return SiteFile(kind, tuple(found), *marks, (*_general(data, kind), *warnings))


def read_site(data: bytes, path: str, recipe: Recipe, *, mtime: float | None = None) -> Site:
    """What a lane's site file says, under laneswap's own names. Never raises."""
    kind = recipe.site.kind if recipe.site else SiteKind.BASH
    keys = recipe.site.keys if recipe.site else {}
    file = parse_site(data, kind)
    values: dict[str, tuple[str, ...]] = {}
    unread: list[str] = []
    for name, key in keys.items():
        found = file.get(key)
        if found is None:
            continue
        reason = unusable(found)
        if not reason:
            values[name] = found.values
        elif (below := home_value(found)) is not None:
            values[name] = (below,)
        else:
            unread.append(f"{name} ({key}): {reason}")
    revision = commit_in(values["revision"][0]) if values.get("revision") else ""
    return Site(path, file, revision, values, tuple(unread), mtime, bytes(data))


def home_value(found: Assignment) -> str | None:
    """`~/x` for a value `$HOME/x` with nothing else to expand; None for any other."""
    if found.error or found.array or len(found.values) != 1 or not (match := _HOME.match(found.value)):
        return None
    rest = found.value[match.end() :]
    plain = replace(found, values=(rest,), literal=True)
    return None if unusable(plain) or any(mark in rest for mark in "$`") else f"~{rest}"


def _general(data: bytes, kind: SiteKind) -> Iterator[str]:
    """What is odd about the bytes themselves."""
    if crlf := data.count(b"\r\n"):
        what = "every value of such a line ends in a carriage return" if kind is SiteKind.BASH else "taken off here"
        yield f"CRLF line ends in {crlf} lines: {what}"
    if data.startswith(_BOM):
        what = "bash takes it for part of the first word" if kind is SiteKind.BASH else "passed over"
        yield f"byte order mark at the beginning: {what}"
    if b"\0" in data:
        yield "NUL bytes: bash leaves them out or refuses the file" if kind is SiteKind.BASH else "NUL bytes"


def _twice(found: list[Assignment]) -> Iterator[str]:
    lines: dict[str, list[int]] = {}
    for item in found:
        lines.setdefault(item.key, []).append(item.line)
    for key, at in list(lines.items())[:_MOST_KEYS]:
        if len(at) > 1:
            shown = ", ".join(map(str, at[:6])) + (", ..." if len(at) > 6 else "")
            where = f" (lines {shown})" if all(at) else ""
            yield f"{safe(key, 80)} is set {len(at)} times{where}; the last one counts"


def _bash(data: bytes) -> tuple[list[Assignment], list[str]]:
    read = read_shell(data.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
    once = [item.assignment for item in read.found if not item.appends and item.assignment.error != "unset"]
    return [item.assignment for item in read.found], [*read.warnings, *_twice(once)]


def _docker(data: bytes) -> tuple[list[Assignment], list[str]]:
    """As docker/cli (pkg/kvfile) reads an --env-file: no quotes, no comments behind a value, `KEY` is inherited."""
    found: list[Assignment] = []
    warnings: list[str] = []
    for number, raw in enumerate(data.removeprefix(_BOM).split(b"\n"), 1):
        row = raw.removesuffix(b"\r")
        try:
            text = row.decode("utf-8").lstrip()
        except UnicodeDecodeError:
            warnings.append(f"line {number}: not UTF-8: docker refuses the whole file")
            continue
        if len(row) >= _MOST_LINE:
            warnings.append(f"line {number}: longer than {_MOST_LINE >> 10} KiB: docker refuses the whole file")
            continue
        if not text or text.startswith("#"):
            continue
        key, equals, value = text.partition("=")
        if not key or any(blank in key for blank in " \t"):
            what = "no variable's name" if not key else "a blank in the variable's name"
            warnings.append(f"line {number}: {what}: docker refuses the whole file")
        elif equals:
            found.append(Assignment(key, (value,), False, number, exported=True))
        else:
            found.append(Assignment(key, (), False, number, exported=True, literal=False))
    return found, [*warnings, *_twice(found)]


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object in their order, duplicates kept."""


def _json(data: bytes) -> tuple[list[Assignment], list[str]]:
    """Members as keys with dots; a list of objects as one array a member; numbers as they are written."""
    try:
        text = data.decode("utf-8-sig")
        document = json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        return [], [f"not valid JSON: {_where(error)}"]
    if not isinstance(document, _Pairs):
        return [], ["not a JSON object"]
    found: list[Assignment] = []
    for key, values, array in _members(document, ""):
        if len(found) >= _MOST_KEYS:
            return found, [f"more than {_MOST_KEYS} keys: the rest is not read"]
        found.append(Assignment(key, values, array, 0))
    return found, list(_twice(found))


def _where(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: {error.msg}"
    return "nested too deeply" if isinstance(error, RecursionError) else "not UTF-8"


def _members(members: _Pairs, prefix: str) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    for name, value in members:
        key = f"{prefix}{name}"
        if isinstance(value, _Pairs):
            yield from _members(value, f"{key}.")
        elif isinstance(value, list):
            yield from _column(key, value)
        else:
            yield key, (_scalar(value),), False


def _column(key: str, items: list[Any]) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """A list: of objects, one array for each of their members, '' where one has none."""
    objects = [dict(item) for item in items if isinstance(item, _Pairs)]
    if not objects or len(objects) != len(items):
        yield key, tuple(_scalar(item) for item in items), True
        return
    for name in dict.fromkeys(name for item in objects for name in item):
        yield f"{key}.{name}", tuple(_scalar(item.get(name, "")) for item in objects), True


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, separators=(",", ":"))
