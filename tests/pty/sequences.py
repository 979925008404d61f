"""What a terminal would make of the bytes written to it: a strict reader of ECMA-48, and the list of what may come.

States as in the diagram of Paul Williams' parser for DEC terminals; anything that is not whole is a fault here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple


class Token(NamedTuple):
    """One thing that the terminal was told."""

    kind: str
    """`text`, `control`, `csi`, `escape`, `osc`, `dcs`, `string`."""
    value: str


class Malformed(ValueError):
    """Bytes that no terminal reads in one way alone."""


_CSI = re.compile(r"\x1b\[([0-?]*)([ -/]*)([@-~])")
_ESCAPE = re.compile(r"\x1b([ -/]*)([0-OQ-WYZ\\`-~])")
_STRING = re.compile(r"\x1b([\]PX^_])([^\x00-\x06\x08-\x1f\x7f-\x9f]*?)(\x07|\x1b\\)", re.DOTALL)
_STRINGS = {"]": "osc", "P": "dcs", "X": "string", "^": "string", "_": "string"}
_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")


def tokens(data: bytes) -> Iterator[Token]:
    """All that was written, in order. Raises Malformed."""
    text, at = data.decode("utf-8"), 0
    while at < len(text):
        found, token = _next(text, at)
        yield token
        at = found


def _next(text: str, at: int) -> tuple[int, Token]:
    if match := _TEXT.match(text, at):
        return match.end(), Token("text", match[0])
    if text[at] != "\x1b":
        return at + 1, Token("control", text[at])
    if match := _CSI.match(text, at):
        return match.end(), Token("csi", match[1] + match[2] + match[3])
    if match := _STRING.match(text, at):
        return match.end(), Token(_STRINGS[match[1]], match[2])
    if match := _ESCAPE.match(text, at):
        return match.end(), Token("escape", match[1] + match[2])
    raise Malformed(repr(text[max(0, at - 60) : at + 40]))


MODES = "7|25|1000|1003|1004|1006|1015|1049|2004|2026"
"""Wrapping, cursor, mouse, focus, alternate screen, bracketed paste, synchronised output."""
ALLOWED: dict[str, re.Pattern[str]] = {
    "control": re.compile(r"[\r\n]"),
    "csi": re.compile(
        r"[0-9;]*m"  # colours and attributes
        r"|[0-9]+;[0-9]+H"  # the cursor's place
        rf"|\?(?:{MODES})[hl]"
        r"|\?(?:2026|2048)\$p"  # Textual asks whether the terminal has them
        r"|>[0-9]+u|<u"  # kitty's keyboard protocol, on and off
    ),
    "osc": re.compile(r"22;[a-z]*"),  # the shape of the mouse pointer
}
"""Textual's own, and nothing else."""


def odd(data: bytes, more: dict[str, re.Pattern[str]] | None = None) -> list[Token]:
    """What was written beside visible text and the sequences that are allowed."""
    return [token for token in tokens(data) if not _allowed(token, more or {})]


def _allowed(token: Token, more: dict[str, re.Pattern[str]]) -> bool:
    if token.kind == "text":
        return not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in token.value)
    allowed = (ALLOWED.get(token.kind), more.get(token.kind))
    return any(pattern is not None and pattern.fullmatch(token.value) for pattern in allowed)
