"""Words of a bash file: quotes, escapes, expansions and arrays as bash reads them, nothing carried out. Pure.

Rules as in "Quoting", "Shell Parameters" and "Shell Grammar" of bash(1), version 5.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_BARE = re.compile(r"[^ \t\n;&|<>()'\"\\$`]+")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_QUOTED = re.compile(r"[^\"\\$`]+")
_NAMED = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_ASSIGNS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^]=]*\])?(\+?)=")
_CLOSERS = {"$(": ")", "${": "}", "$[": "]", "<(": ")", ">(": ")", "`": "`", "(": ")", '"': '"'}
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "E": "\x1b", "\\": "\\", "'": "'", '"': '"', "?": "?"}
_OPERATORS = ("&&", "||", ";;", "|&", "&>", ";&", ";", "&", "|", "(", ")", "<<<", "<<-", "<<", "<&", "<>", "<",
              ">>", ">&", ">|", ">")  # fmt: skip

MOST_WORDS = 10_000
"""Real site files have a hundred."""


class Unfinished(Exception):
    """A quote, expansion or array that the file never ends. `begin` is where it was opened."""

    def __init__(self, what: str, begin: int, word: int) -> None:
        super().__init__(what)
        self.what = what
        self.begin = begin
        self.word = word
        """Where the word that holds it begins."""


class TooMuch(Exception):
    """More words than any real file has."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of one word that is quoted in one way: `bare`, `single`, `double`, `escape`, `ansi` or `expansion`."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """One word with its place in the text."""

    pieces: tuple[Piece, ...]
    start: int
    end: int
    elements: tuple[Word, ...] | None = None
    """Of `NAME=(...)`: what stands between the parentheses."""

    @property
    def text(self) -> str:
        """The word with quotes and escapes taken off and expansions as they stand."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def plain(self) -> bool:
        """Nothing in it is quoted, escaped or expanded."""
        return all(piece.kind == "bare" for piece in self.pieces)

    def assigns(self) -> tuple[str, str, bool] | None:
        """(name, subscript or '', appends) of an assignment; None for any other word."""
        if not self.pieces or self.pieces[0].kind != "bare" or not (match := _ASSIGNS.match(self.pieces[0].text)):
            return None
        return match[1], match[2] or "", bool(match[3])

    def value(self) -> Word:
        """What stands behind `=` of an assignment, as a word of its own."""
        first = self.pieces[0]
        match = _ASSIGNS.match(first.text)
        assert match is not None
        rest = first.text[match.end() :]
        start = first.start + match.end()
        pieces = ((Piece("bare", rest, start, first.end),) if rest else ()) + self.pieces[1:]
        return Word(pieces, start, self.end, self.elements)

    def literal(self, *, element: bool = False) -> bool:
        """Whether bash takes the text as it stands: no expansion, no `~`; of an array's element also no pattern."""
        if any(piece.kind == "expansion" for piece in self.pieces):
            return False
        bare = [piece for piece in self.pieces if piece.kind == "bare"]
        if any(piece.text.startswith("~") for piece in bare[:1] if piece is self.pieces[0]):
            return False
        if element:
            return not any(mark in piece.text for piece in bare for mark in "*?[{")
        return not any(":~" in piece.text for piece in bare) and not _tilde_behind_quote(self.pieces)


def _tilde_behind_quote(pieces: Sequence[Piece]) -> bool:
    """`"a:"~`: bash looks at the colon only where it is bare, but a false alarm here costs nothing."""
    return any(
        late.kind == "bare" and late.text.startswith("~") and early.text.endswith(":")
        for early, late in pairwise(pieces)
    )


class Scanner:
    """Cuts a text into words and operators."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._words = 0

    def blanks(self) -> None:
        """Go past blanks, continued lines and a comment; stop at whatever else comes."""
        while match := _BLANKS.match(self.text, self.at):
            self.at = match.end()
        if self.text.startswith("#", self.at):
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end

    def operator(self) -> str:
        """The operator or newline that stands here, gone past; '' where a word or the end does."""
        if self.text.startswith("\n", self.at):
            self.at += 1
            return "\n"
        if self.text.startswith(("<(", ">("), self.at):
            return ""
        found = next((mark for mark in _OPERATORS if self.text.startswith(mark, self.at)), "")
        self.at += len(found)
        return found

    def word(self, *, arrays: bool) -> Word:
        """The word that stands here. Raises Unfinished, and TooMuch where there were too many before."""
        start = self.at
        self._words += 1
        if self._words > MOST_WORDS:
            raise TooMuch
        pieces: list[Piece] = []
        try:
            while self.at < len(self.text) and (piece := self._piece()):
                pieces.append(piece)
                if arrays and len(pieces) == 1 and piece.kind == "bare" and self.text.startswith("(", self.at):
                    match = _ASSIGNS.match(piece.text)
                    if match and match.end() == len(piece.text):
                        elements = self._elements()
                        return Word((piece,), start, self.at, elements)
        except Unfinished as error:
            error.word = start
            raise
        return Word(tuple(piece for piece in pieces if piece.kind != "nothing"), start, self.at)

    def _elements(self) -> tuple[Word, ...]:
        begin = self.at
        self.at += 1
        found: list[Word] = []
        while True:
            self.blanks()
            if self.at >= len(self.text):
                raise Unfinished("parenthesis", begin, begin)
            if self.text[self.at] == "\n":
                self.at += 1
            elif self.text[self.at] == ")":
                self.at += 1
                return tuple(found)
            elif self.text[self.at] in ";&|<>(":
                raise Unfinished("array", begin, begin)
            else:
                found.append(self.word(arrays=False))

    def _piece(self) -> Piece | None:
        """The next run of the word; None where the word ends."""
        start, text = self.at, self.text
        if match := _BARE.match(text, start):
            self.at = match.end()
            return Piece("bare", match[0], start, self.at)
        mark = text[start]
        if mark == "\\":
            return self._escape()
        if mark == "'":
            return self._single(start + 1)
        if mark == '"':
            return self._double(start + 1)
        if mark in "$`" or text.startswith(("<(", ">("), start):
            return self._dollar()
        return None

    def _escape(self) -> Piece:
        start = self.at
        if self.text.startswith("\\\n", start):
            self.at += 2
            return Piece("nothing", "", start, self.at)
        self.at = min(start + 2, len(self.text))
        return Piece("escape", self.text[start + 1 : self.at] or "\\", start, self.at)

    def _single(self, body: int) -> Piece:
        start, end = self.at, self.text.find("'", body)
        if end < 0:
            raise Unfinished("quote '", start, start)
        self.at = end + 1
        return Piece("single", self.text[body:end], start, self.at)

    def _double(self, body: int) -> Piece:
        start, at, text = self.at, body, self.text
        found: list[str] = []
        kind = "double"
        while at < len(text) and text[at] != '"':
            if match := _QUOTED.match(text, at):
                found.append(match[0])
                at = match.end()
            elif text[at] == "\\":
                after = text[at + 1 : at + 2]
                found.append("" if after == "\n" else after if after and after in '$`"\\' else "\\" + after)
                at += 2
            elif (end := expansion_end(text, at, quoted=True)) is None:
                found.append("$")
                at += 1
            else:
                kind = "expansion"
                found.append(text[at:end])
                at = end
        if at >= len(text):
            raise Unfinished('quote "', start, start)
        self.at = at + 1
        return Piece(kind, "".join(found), start, self.at)

    def _dollar(self) -> Piece:
        start, text = self.at, self.text
        if text.startswith("$'", start):
            return self._ansi()
        if text.startswith('$"', start):
            return self._double(start + 2)
        end = expansion_end(text, start, quoted=False)
        if end is None:
            self.at = start + 1
            return Piece("bare", "$", start, self.at)
        self.at = end
        return Piece("expansion", text[start:end], start, end)

    def _ansi(self) -> Piece:
        """`$'...'`: the common escapes; with any other it counts as an expansion, its text as it stands."""
        start, at, text = self.at, self.at + 2, self.text
        found: list[str] = []
        kind = "ansi"
        while at < len(text) and text[at] != "'":
            if text[at] == "\\" and at + 1 < len(text):
                plain = _ANSI.get(text[at + 1])
                kind = kind if plain is not None else "expansion"
                found.append(text[at : at + 2] if plain is None else plain)
                at += 2
            else:
                found.append(text[at])
                at += 1
        if at >= len(text):
            raise Unfinished("quote $'", start, start)
        self.at = at + 1
        return Piece(kind, "".join(found), start, self.at)


def expansion_end(text: str, start: int, *, quoted: bool) -> int | None:
    """Where the expansion that begins at `start` ends; None where `$` stands for itself. Raises Unfinished."""
    opener = text[start] if text[start] == "`" else text[start : start + 2]
    if opener not in _CLOSERS:
        match = _NAMED.match(text, start)
        return match.end() if match else None
    # what closes each thing that is open, and whether double quotes are around it
    stack = [(_CLOSERS[opener], quoted)]
    at = start + len(opener)
    while at < len(text):
        closer, inside = stack[-1]
        mark = text[at]
        pair = text[at : at + 2]
        if mark == "\\":
            at += 2
            continue
        if mark == closer:
            stack.pop()
            at += 1
            if not stack:
                return at
        elif closer == "`":
            at += 1
        elif mark == "'" and closer != '"' and not (inside and closer in "}]"):
            end = text.find("'", at + 1)
            if end < 0:
                break
            at = end + 1
        elif mark == '"':
            stack.append(('"', True))
            at += 1
        elif pair in ("$(", "${", "$["):
            stack.append((_CLOSERS[pair], inside and pair != "$("))
            at += 2
        elif mark == "`" or (mark == "(" and closer == ")"):
            stack.append((_CLOSERS[mark], False))
            at += 1
        else:
            at += 1
    raise Unfinished(f"expansion {opener}", start, start)
