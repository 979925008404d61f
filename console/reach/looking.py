"""What one host is to look at, as it is told, and its answers, as they come back: kept across reconnects."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from console.readings.look import Look
from console.sanitize import line

MOST_LOOKS = 500
"""Looks of one host; more is a fault of the caller."""
MOST_ANSWER = 262_144
"""Characters of one answer; hosts refuse longer ones themselves."""
_ESCAPES = {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\"}


def check(looks: Sequence[Look]) -> None:
    """Raises ValueError for a set that no host can be asked for."""
    if len(looks) > MOST_LOOKS or len({look.key for look in looks}) < len(looks):
        raise ValueError(f"{len(looks)} looks: at most {MOST_LOOKS}, each with a key of its own")


class Looking:
    """One host's set of looks. Each has a number of its own: an answer to an old one is never taken for a new one's.

    `send` is set while there is a stream; it gets the bytes of a changed set.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._looks: dict[str, Look] = {}
        self._texts: dict[str, str] = {}
        self.send: Callable[[bytes], None] | None = None

    @property
    def looks(self) -> Mapping[str, Look]:
        """The set by number."""
        return self._looks

    def ask(self, looks: Sequence[Look]) -> bool:
        """Replace the set and tell the host, if one listens. False if nothing has changed. Raises ValueError."""
        check(looks)
        known = {look: number for number, look in self._looks.items()}
        if tuple(looks) == tuple(self._looks.values()):
            return False
        self._looks = {known.get(look) or str(next(self._numbers)): look for look in looks}
        self._texts = {number: text for number, text in self._texts.items() if number in self._looks}
        self.tell()
        return True

    def renew(self) -> None:
        """An answer was lost on the way: ask for all of them in full."""
        new = {number: str(next(self._numbers)) for number in self._looks}
        self._looks = {new[number]: look for number, look in self._looks.items()}
        self._texts = {new[number]: text for number, text in self._texts.items()}
        self.tell()

    def tell(self) -> None:
        """Send the set to whoever listens."""
        if self.send is not None:
            self.send(self.order())

    def order(self) -> bytes:
        """The set as the host reads it."""
        rows = [f"look {len(self._looks)}"]
        for number, look in self._looks.items():
            fields = (number, look.key, look.kind.value, f"{look.every:.10g}", *look.arguments)
            rows.append("\t".join(field.translate(_ESCAPES) for field in fields))
        return ("\n".join(rows) + "\n").encode("utf-8", "surrogateescape")

    def answers(self, raw: Any) -> dict[str, str]:
        """Texts by key from what came by number. What did not change is the same object as before; never raises."""
        found: dict[str, str] = {}
        for number, text in raw.items() if isinstance(raw, dict) else ():
            look = self._looks.get(number)
            if look is None or not (text is None or (isinstance(text, str) and len(text) <= MOST_ANSWER)):
                continue
            before = self._texts.get(number)
            if text is not None and text != before:
                before = self._texts[number] = text
            if before is not None:
                found[look.key] = before
        return found

    def named(self, raw: Any) -> dict[str, str]:
        """Of an error: which look it is about, as `{"key": KEY}`; empty if that is not known."""
        number = raw.get("look") if isinstance(raw, dict) else None
        look = self._looks.get(number) if isinstance(number, str) else None
        return {} if look is None else {"key": line(look.key, 200)}
