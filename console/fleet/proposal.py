"""The smallest edit of a site file: of each key the effective assignment, its value and nothing else. Pure.

Nothing is written here. Quotes, comments, line ends, a missing last newline and every other byte stay. The result is
read again: exactly the wanted keys must have changed, or the edit is refused.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from console.fleet.sitefile import parse_site
from console.fleet.siteshell import read_shell
from console.fleet.sitetypes import Assignment, SiteKind, visible
from console.fleet.sitewords import Piece, Word

_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,=^-")
"""What needs no quotes in an assignment."""
_MOST_VALUE = 4096


@dataclass(frozen=True, slots=True)
class Change:
    """One value that becomes another."""

    key: str
    line: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an edit would make of a file."""

    data: bytes
    """The whole file afterwards; as before where nothing is changed or anything is refused."""
    changes: tuple[Change, ...] = ()
    refusals: tuple[str, ...] = ()
    """Why there is no edit, safe sentences; empty where there is one."""
    notes: tuple[str, ...] = ()
    """What to know about it: carriage returns that stay, keys that had the value already."""
    diff: str = ""
    """Unified, every character visible."""
    sha256: str = ""
    """Of `data`."""

    @property
    def lines(self) -> tuple[int, ...]:
        """Numbers of the lines that differ."""
        return tuple(dict.fromkeys(change.line for change in self.changes))


@dataclass(slots=True)
class _Edits:
    """Replacements in a text, by place."""

    text: str
    found: list[tuple[int, int, str, Change]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def applied(self) -> str:
        """The text with all of them."""
        text = self.text
        for start, end, new, _ in sorted(self.found, key=lambda item: item[0], reverse=True):
            text = text[:start] + new + text[end:]
        return text


class _Refused(Exception):
    """A key that cannot be edited, with the reason in words."""


def propose(
    data: bytes, changes: Mapping[str, str], kind: SiteKind = SiteKind.BASH, path: str = "site file"
) -> Proposal:
    """What setting these keys would make of the file. Never raises; nothing is written."""
    edits = _Edits(data.decode("utf-8", "surrogateescape"))
    for key, value in changes.items():
        try:
            _key(edits, key, value, SiteKind(kind))
        except _Refused as refused:
            edits.refusals.append(f"{visible(key, 80)}: {refused}")
    made = edits.applied().encode("utf-8", "surrogateescape")
    if not edits.refusals:
        edits.refusals += _wrong(data, made, changes, SiteKind(kind))
    if edits.refusals:
        return Proposal(data, (), tuple(edits.refusals), tuple(edits.notes), "", hashlib.sha256(data).hexdigest())
    edits.notes += _follow(data, [change.key for *_, change in edits.found], SiteKind(kind))
    done = tuple(change for *_, change in sorted(edits.found, key=lambda item: item[0]))
    return Proposal(made, done, (), tuple(edits.notes), _diff(data, made, path), hashlib.sha256(made).hexdigest())


def _key(edits: _Edits, key: str, value: str, kind: SiteKind) -> None:
    if kind is SiteKind.JSON:
        raise _Refused("JSON site files are not edited")
    if len(value) > _MOST_VALUE or visible(value, len(value) + 1) != value:
        raise _Refused("the new value holds control or invisible characters, or is too long")
    start, end, new, before = _docker(edits, key, value) if kind is SiteKind.DOCKER else _bash(edits, key, value)
    if before.value == value:
        edits.notes.append(f"{key} has this value already (line {before.line})")
    else:
        edits.found.append((start, end, new, Change(key, before.line, visible(before.value), visible(value))))


def _bash(edits: _Edits, key: str, value: str) -> tuple[int, int, str, Assignment]:
    read = read_shell(edits.text)
    if read.stopped:
        raise _Refused(f"bash stops at line {read.stopped} of this file; repair that first")
    placed = next((item for item in reversed(read.found) if item.assignment.key == key), None)
    if placed is None or placed.assignment.error == "unset":
        raise _Refused("is not set in this file; add a line by hand")
    found = placed.assignment
    where = f"line {found.line}"
    if found.error:
        raise _Refused(f"{where} {found.error}")
    if placed.appends or found.array or placed.word is None:
        raise _Refused(f"{where} is no plain KEY=value")
    if not found.literal:
        raise _Refused(f"{where} holds an expansion ({visible(found.value, 60)}): what it comes to is not known here")
    start, end, new = _replacement(edits, key, placed.word, value, where)
    return start, end, new, Assignment(key, (found.value.removesuffix("\r"),), False, found.line)


def _replacement(edits: _Edits, key: str, word: Word, value: str, where: str) -> tuple[int, int, str]:
    """Place and text of the new value, in the quotes that the old one has."""
    if "\n" in edits.text[word.start : word.end]:
        raise _Refused(f"{where}: the value goes on over several lines")
    pieces = list(word.pieces)
    end = word.end
    if pieces and pieces[-1].kind == "bare" and pieces[-1].text.endswith("\r"):
        edits.notes.append(f"{key}: {where} ends in a carriage return, which stays and is part of the value for bash")
        end -= 1
        last = pieces.pop()
        if last.text != "\r":
            pieces.append(Piece("bare", last.text[:-1], last.start, last.end - 1))
    kinds = [piece.kind for piece in pieces]
    if kinds in ([], ["bare"]) or set(kinds) <= {"bare", "escape"}:
        quoted = value if set(value) <= _SAFE else f"'{value}'"
        if quoted != value and "'" in value:
            raise _Refused(f"{where}: the new value needs quotes of two kinds; write it by hand")
    elif kinds == ["single"]:
        if "'" in value:
            raise _Refused(f"{where}: the new value holds the quote ' in which it would stand")
        quoted = f"'{value}'"
    elif kinds == ["double"]:
        quoted = '"' + "".join(f"\\{mark}" if mark in '\\"$`' else mark for mark in value) + '"'
    else:
        raise _Refused(f"{where}: the value is put together from several quoted parts")
    return word.start, end, quoted


def _docker(edits: _Edits, key: str, value: str) -> tuple[int, int, str, Assignment]:
    found = None
    at = 0
    for number, row in enumerate(edits.text.split("\n"), 1):
        name, equals, old = row.removesuffix("\r").partition("=")
        if equals and name.lstrip().removeprefix("\ufeff") == key:
            begin = at + len(name) + 1
            found = (begin, begin + len(old), value, Assignment(key, (old,), False, number))
        at += len(row) + 1
    if found is None:
        raise _Refused("is not set in this file; add a line by hand")
    return found


def _wrong(before: bytes, after: bytes, changes: Mapping[str, str], kind: SiteKind) -> Iterator[str]:
    """Keys that would come out otherwise than wanted: never, by construction; the last line of defence."""
    old, new = parse_site(before, kind), parse_site(after, kind)
    keys = dict.fromkeys(item.key for item in (*old.assignments, *new.assignments))
    for key in keys:
        was, now = old.get(key), new.get(key)
        if key in changes:
            if now is None or now.error or now.value.removesuffix("\r") != changes[key]:
                yield f"{visible(key, 80)}: would not come out as wanted"
        elif was is None or now is None or (was.values, was.error, was.literal) != (now.values, now.error, now.literal):
            yield f"{visible(key, 80)}: would change as well"


def _follow(data: bytes, changed: Sequence[str], kind: SiteKind) -> Iterator[str]:
    """Other keys that are made of a changed one."""
    for item in parse_site(data, kind).assignments:
        for key in changed:
            used = re.compile(rf"\$\{{?{re.escape(key)}(?![A-Za-z0-9_])")
            if item.key != key and not item.literal and any(used.search(value) for value in item.values):
                yield f"{visible(item.key, 80)} (line {item.line}) is made of {key} and changes with it"


def _diff(before: bytes, after: bytes, path: str) -> str:
    """A unified diff for people: carriage returns and other controls made visible."""
    old, new = ([visible(row, 2000) for row in data.decode("utf-8", "replace").split("\n")] for data in (before, after))
    name = visible(path)
    return "\n".join(difflib.unified_diff(old, new, name, f"{name} (proposed)", lineterm="", n=1))
