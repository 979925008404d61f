"""What is pasted stays text: an escape sequence inside a bracketed paste must not come out as pressed keys.

Textual's parser hands sequences that it does not know on as keys, also in the middle of a paste (8.2.8), so that a
clipboard with ESC in it could press any key of the console.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.message import Message

START, END = "\x1b[200~", "\x1b[201~"
"""What a terminal sends around a paste (xterm's ctlseqs, bracketed paste mode)."""


class PasteFilter:
    """Takes terminal input piece by piece and gives it back without escape characters inside pastes."""

    def __init__(self) -> None:
        self._inside = False
        self._held = ""
        """Inside: what may be the beginning of END. Outside: the last characters, given back already."""

    def clean(self, data: str) -> str:
        """The input to parse; what may belong to the end of a paste is held back until the next piece."""
        kept: list[str] = []
        while data:
            data = self._paste(data, kept) if self._inside else self._keys(data, kept)
        return "".join(kept)

    def _keys(self, data: str, kept: list[str]) -> str:
        seen = self._held + data
        at = seen.find(START)
        if at < 0:
            kept.append(data)
            self._held = seen[1 - len(START) :]
            return ""
        end = at + len(START) - len(self._held)
        kept.append(data[:end])
        self._inside, self._held = True, ""
        return data[end:]

    def _paste(self, data: str, kept: list[str]) -> str:
        seen = self._held + data
        at = seen.find(END)
        if at < 0:
            held = next((size for size in range(len(END) - 1, 0, -1) if seen.endswith(END[:size])), 0)
            self._held = seen[len(seen) - held :]
            kept.append(_text(seen[: len(seen) - held]))
            return ""
        kept.append(_text(seen[:at]) + END)
        self._inside, self._held = False, ""
        return seen[at + len(END) :]


def _text(pasted: str) -> str:
    return pasted.replace("\x1b", "\u241b")


class PasteSafeParser(XTermParser):
    """Textual's parser behind a PasteFilter."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pastes = PasteFilter()

    def feed(self, data: str) -> Iterable[Message]:
        """Messages of the input; '' says that there is no more."""
        cleaned = self._pastes.clean(data)
        return super().feed(cleaned) if cleaned or not data else ()
