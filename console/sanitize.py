"""The one place where remote text becomes safe text.

What comes out holds no control character, escape sequence, bidi control or invisible character: it can be drawn, logged
and put into JSON as it stands. It is still only text: markup brackets are kept, so it is never to be read as markup.
Sequences are those of ECMA-48 and xterm's ctlseqs; the time taken is bounded whatever the input's length.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

ELLIPSIS = "…"
REPLACEMENT = "\ufffd"

LOOKED_AT = 65_536
"""Characters of one line that are looked at; what is beyond is cut."""
_MARKS = 3
"""Combining marks kept on one base character."""

_STRING_BODY = r"[^\x07\x18\x1a\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
_SEQUENCE = re.compile(
    rf"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]){_STRING_BODY}"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
"""OSC, DCS, SOS, PM, APC with their strings (ended by BEL, ST, CAN, SUB or the line), CSI, and two-byte escapes."""
_ERASE = re.compile(r"(?:\x1b\[|\x9b)([0-2]?)K")
_BREAKS = re.compile(r"[\n\x0b\x0c\x85\u2028\u2029]+")
_ODD = re.compile(r"[^\x20-\x7e]+")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u00a0\u3000")


def line(text: str | bytes, limit: int = 2000) -> str:
    """One safe visible line of at most `limit` (>= 1) characters, cut with an ellipsis. Carriage returns overwrite."""
    if isinstance(text, bytes):
        text = _decoded(text)
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    text, cut = _bounded(text.rstrip("\r\n"))
    rows = [_overwritten(row) for row in _BREAKS.split(text)]
    visible = _plain(" ".join(rows))
    if cut or len(visible) > limit:
        return visible[: max(0, limit - 1)] + ELLIPSIS
    return visible


def word(text: str | bytes, limit: int = 120) -> str:
    """A safe name on one line: blanks at the ends go, runs of blanks become one."""
    bare = " ".join(line(text, 4 * limit + 64).split())
    while bare and (bare[0] == " " or _is_mark(bare[0])):
        bare = bare[1:]
    return _cut(bare, limit)


def lines(data: bytes | str, limit: int = 2000, most: int = 100_000) -> list[str]:
    r"""Safe visible lines. Only `\n` ends a line; a last line without it counts. More than `most`: the last ones."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    rows = text.split("\n")
    if rows and not rows[-1]:
        rows.pop()
    return [line(row, limit) for row in rows[-most:]]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + ELLIPSIS


def _decoded(data: bytes) -> str:
    """Enough of one line to judge it: a few megabytes of one line are not decoded only to be thrown away."""
    if len(data) > 4 * LOOKED_AT:
        newest = data.rstrip(b"\r\n").rfind(b"\r") + 1
        # a byte is at most one character, so the cut is still noticed
        data = data[newest : newest + 4 * (LOOKED_AT + 1)]
    return data.decode("utf-8", "replace")


def _bounded(text: str) -> tuple[str, bool]:
    """At most LOOKED_AT characters, and whether something visible may have been dropped."""
    if len(text) <= LOOKED_AT:
        return text, False
    newest = text[text.rstrip("\r").rfind("\r") + 1 :]
    return newest[:LOOKED_AT], len(newest) > LOOKED_AT


def _overwritten(row: str) -> str:
    """What is seen after the carriage returns of one row, escape sequences taken out. Linear in the row's length."""
    if "\r" not in row:
        return _SEQUENCE.sub("", row)
    seen = ""
    for segment in reversed(row.split("\r")):
        kept = segment
        erases = list(_ERASE.finditer(segment))
        if erases:
            last_whole = [mark for mark in erases if mark[1] in ("1", "2")]
            kept = segment[last_whole[-1].end() :] if last_whole else segment
        kept = _SEQUENCE.sub("", kept)
        if len(kept) > len(seen):
            seen += kept[len(seen) :]
        if any(mark[1] != "1" for mark in erases):
            break
    return seen


def _plain(text: str) -> str:
    if "\t" in text:
        text = text.expandtabs(8)
    if text.isascii() and text.isprintable():
        return text
    return _limit_marks(_ODD.sub(lambda run: "".join(map(_visible, run[0])), text))


@lru_cache(maxsize=4096)
def _visible(character: str) -> str:
    """What stands for one character outside printable ASCII."""
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if character in _FILLERS:
        return " "
    kind = unicodedata.category(character)
    if kind in ("Zs", "Zl", "Zp"):
        return " "
    if kind in ("Cf", "Me") or 0xFE00 <= code <= 0xFE0F or 0xE0000 <= code <= 0xE0FFF or code == 0x034F:
        return ""
    # nobody can say how wide what is unassigned or private will be drawn
    return character if character.isprintable() else REPLACEMENT


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    """Drawn on top of the character before it: combining marks, and the jamo that join a syllable."""
    jamo = "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7fb"
    return jamo or unicodedata.category(character) == "Mn"


def _limit_marks(text: str) -> str:
    """No more than a few combining marks on one character, and none at the start."""
    if text.isascii():
        return text
    kept: list[str] = []
    marks = _MARKS
    for character in text:
        if character > "\u02ff" and _is_mark(character):
            marks += 1
            if marks > _MARKS:
                continue
        else:
            marks = 0
        kept.append(character)
    return "".join(kept)
