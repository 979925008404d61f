"""A command as the console frames it, taken apart. That it was understood is proved by framing it anew: what comes out
must be the same, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from console.reach.shell import GRACE, guarded

MOST_BYTES = 4 << 20
"""Of one framed command; an operation file holds every script of its steps."""
_SAFE = r"[\w@%+=:,./-]"
_TOKEN = re.compile(rf"(?:{_SAFE}|'[^']*'|\"'\")+|\||</dev/null", re.ASCII)
_PIECE = re.compile(rf"'([^']*)'|\"(')\"|({_SAFE}+)", re.ASCII)
_MARK = "laneswap-mark"
_SAMPLE = guarded((_MARK,))
_BEFORE = _SAMPLE.script.partition("/bin/sh -c ")[0]
_AFTER = _SAMPLE.script.partition(f"{_MARK} </dev/null")[2]
"""What a framed command begins and ends with, but for its nonce: as `guarded` writes it, whatever that is."""
_NONCE = re.compile(r"LANESWAP-BEGIN-([0-9a-zA-Z]{8,64})\b")
BEGINNING = _BEFORE.partition("LANESWAP-")[0].encode()
ENDING = _AFTER.rpartition(_SAMPLE.nonce)[2].encode()
MOST_NONCE = 64
_PIPE, _NOTHING = "|", "</dev/null"
_GUARD = 5
"""Words that stand before the command itself: /bin/sh -c GUARD laneswap SECONDS."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One command. `limit` is the seconds after which the host ends it by itself."""

    argv: tuple[str, ...]
    stdin: str
    limit: float
    nonce: str

    def framed(self, out: str, err: str, status: int) -> tuple[bytes, bytes]:
        """What the console reads on both streams where the command said this and ended so."""
        begin, end = f"LANESWAP-BEGIN-{self.nonce}", f"LANESWAP-END-{self.nonce}"
        first, second = (f"\n{begin}\n{text}\n{end} {status}\n".encode() for text in (out, err))
        return first, second


def whole(data: bytes) -> bool:
    """Whether this may be all of a framed command."""
    return data.startswith(BEGINNING) and data.endswith(ENDING)


def taken_apart(data: bytes) -> Asked | None:
    """The command in a framed script; None for anything that is not exactly what the console would have sent."""
    text = data.decode("utf-8", "replace")
    nonce = _NONCE.search(text, 0, len(_BEFORE) + MOST_NONCE)
    if nonce is None:
        return None
    before, after = (part.replace(_SAMPLE.nonce, nonce[1]) for part in (_BEFORE, _AFTER))
    if not (text.startswith(before) and text.endswith(after) and len(text) > len(before) + len(after)):
        return None
    words = _words(text[len(before) : -len(after)])
    if words is None:
        return None
    argv, stdin = words
    if len(argv) <= _GUARD or not argv[_GUARD - 1].isdecimal() or len(argv[_GUARD - 1]) > 5:
        return None
    limit = int(argv[_GUARD - 1]) - GRACE
    asked = Asked(tuple(argv[_GUARD:]), stdin, limit, nonce[1])
    return asked if _again(asked) == text else None


def _again(asked: Asked) -> str:
    try:
        framed = guarded(asked.argv, stdin=asked.stdin, limit=asked.limit)
    except ValueError:
        return ""
    return framed.script.replace(framed.nonce, asked.nonce)


def _words(feed: str) -> tuple[list[str], str] | None:
    """(command, standard input) of `printf %s INPUT | COMMAND` or `COMMAND </dev/null`."""
    found = list(_tokens(feed))
    if found[-1:] == [_NOTHING]:
        return [unquoted(token) for token in found[:-1]], ""
    if found[:2] == ["printf", "%s"] and len(found) > 4 and found[3] == _PIPE:
        return [unquoted(token) for token in found[4:]], unquoted(found[2])
    return None


def _tokens(text: str) -> Iterator[str]:
    """Words as they are quoted; nothing more once something else comes."""
    at = 0
    while match := _TOKEN.match(text, at):
        yield match[0]
        at = match.end()
        if text[at : at + 1] != " ":
            return
        at += 1


def unquoted(token: str) -> str:
    """A word that `shlex.quote` quoted."""
    return "".join(match[1] or match[2] or match[3] or "" for match in _PIECE.finditer(token))


def split(text: str) -> list[str]:
    """The words that `shlex.join` joined, as far as they go."""
    return [unquoted(token) for token in _tokens(text)]
