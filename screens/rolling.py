"""A screen of lines that come: followed, searched, scrolled back, only those that match, long ones folded."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Generic, TypeVar

from console.sanitize import ELLIPSIS
from screens.reader import ReadingScreen, Text
from widgets import format as fmt
from widgets.ages import AgeMark
from widgets.cells import cut, measure
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, TEXT, Ink
from widgets.sheet import Title

T = TypeVar("T")

LONGEST_KEPT = 2000
"""Characters of a line that are kept when it is read; what is longer ends with an ellipsis."""
_FOLDED = 4096
"""Folded lines kept: all that are on a screen of 2000 lines."""


class RollingScreen(ReadingScreen, Generic[T], inherit_bindings=False):
    """Follows the newest line; scrolling back holds the lines that were there, and says how many are newer."""

    NAME: ClassVar[str] = ""
    NOUN: ClassVar[str] = "line"

    def __init__(self) -> None:
        super().__init__()
        self._held: tuple[T, ...] | None = None
        self._starts: list[int] = []
        """The first row of every line that is shown."""
        self.search = ""
        self.only = False
        """Lines without the text searched for are left out."""
        self.fold = False
        """Lines take as many rows as they need."""

    # --- what a screen of this kind says of its lines -----------------------------------------------------------------

    def entries(self, glance: Glance) -> tuple[T, ...]:
        """All lines that are kept, newest last."""
        raise NotImplementedError

    def text_of(self, entry: T) -> str:
        """The text that is searched."""
        raise NotImplementedError

    def head(self, entry: T, glance: Glance) -> tuple[Text, int]:
        """What stands before a line's text, and the column of the text."""
        raise NotImplementedError

    def empty(self, glance: Glance) -> str:
        """Why there is no line."""
        raise NotImplementedError

    def note(self, glance: Glance) -> tuple[str, ...]:
        """What the title says before how it is followed, and after what is searched for."""
        raise NotImplementedError

    # --- drawing -----------------------------------------------------------------------------------------------------

    @property
    def following(self) -> bool:
        """Whether the newest line is kept in view."""
        return self._held is None

    def body(self, glance: Glance, width: int) -> tuple[Title, list[Text]]:
        """The lines, newest last."""
        everything = self.entries(glance)
        shown = self._shown(everything)
        if self.following:  # all 2000 lines of a flood, four times a second, would hold up the keys
            shown = shown[-max(1, self.reader.size.height) :]
        rows: list[Text] = []
        self._starts = []
        for entry in shown:
            self._starts.append(len(rows))
            rows += self._rows(entry, glance, width - 4)
        if self.following:
            self.reader.first = len(rows)
        if not rows:
            rows = [((0, self._why_none(everything, glance), DIM),)]
        return Title(0, self.NAME, AgeMark("", DIM), self._note(glance, everything)), rows

    def _shown(self, everything: tuple[T, ...]) -> list[T]:
        held = everything if self._held is None else self._held
        return [entry for entry in held if self._holds(entry)] if self.only and self.search else list(held)

    def _rows(self, entry: T, glance: Glance, width: int) -> list[Text]:
        before, column = self.head(entry, glance)
        ink: Ink = TEXT
        if self.search:
            ink = BOLD if self._holds(entry) else DIM
        parts = folded(self.text_of(entry), max(8, width - column), fold=self.fold)
        return [(*before, (column, parts[0], ink)), *(((column, part, ink),) for part in parts[1:])]

    def _why_none(self, everything: tuple[T, ...], glance: Glance) -> str:
        if everything and self.only and self.search:
            return f"No {self.NOUN} of {fmt.count(len(everything))} holds {self.search!r}; m shows all."
        return self.empty(glance)

    def _note(self, glance: Glance, everything: tuple[T, ...]) -> str:
        before, *after = self.note(glance)
        parts = [before, "following" if self.following else self._behind(everything)]
        if self.search:
            count = sum(self._holds(entry) for entry in (everything if self._held is None else self._held))
            parts.append(f"/{self.search} {fmt.count(count)} {self.NOUN}s{' only' if self.only else ''}")
        parts += ["folded"] if self.fold else []
        return ", ".join(part for part in (*parts, *after) if part)

    def _behind(self, everything: tuple[T, ...]) -> str:
        newest = self._held[-1] if self._held else None
        for newer, entry in enumerate(reversed(everything)):
            if entry is newest:
                return f"held, {newer} newer"
        return f"held, over {len(everything)} newer"

    def _holds(self, entry: T) -> bool:
        return self.search.casefold() in self.text_of(entry).casefold()

    # --- keys --------------------------------------------------------------------------------------------------------

    def _hold(self) -> None:
        picture = self.console_app.picture()
        if self._held is None and picture is not None:
            self._held = self.entries(picture)
            _, rows = self.body(picture, self.reader.size.width)
            self.reader.length = self.reader.first = len(rows)
            self.reader.move(0)

    def _moved(self, rows: int) -> None:
        if rows < 0:
            self._hold()
        self.reader.move(rows)
        if rows > 0 and self.reader.at_end:
            self._held = None

    def do_scroll_up(self, _: str) -> None:
        """One row back; following ends."""
        self._moved(-1)

    def do_scroll_down(self, _: str) -> None:
        """One row on; at the last row following begins again."""
        self._moved(1)

    def do_page_up(self, _: str) -> None:
        """One page back."""
        self._moved(1 - self.reader.room)

    def do_page_down(self, _: str) -> None:
        """One page on."""
        self._moved(self.reader.room - 1)

    def do_top(self, _: str) -> None:
        """The oldest line kept."""
        self._hold()
        self._moved(-self.reader.length)

    def do_end(self, _: str) -> None:
        """The newest line."""
        self._held = None

    def do_follow(self, _: str) -> None:
        """Follow, or hold."""
        if self.following:
            self._hold()
        else:
            self._held = None

    def do_fold(self, _: str) -> None:
        """Long lines in several rows, or cut to one. What was the first line in view stays it."""
        at = max((n for n, start in enumerate(self._starts) if start <= self.reader.first), default=0)
        self.fold = not self.fold
        picture = self.console_app.picture()
        if picture is not None and not self.following:
            self.body(picture, self.reader.size.width)
            self.reader.first = self._starts[at] if at < len(self._starts) else 0

    def do_only_matches(self, _: str) -> None:
        """Only lines that hold the text searched for, or all again."""
        if not self.search:
            self.console_app.say("nothing searched for yet; / begins")
            return
        self.only = not self.only

    def do_filter(self, text: str) -> None:
        """Search for a text, or begin to type one."""
        if text:
            self.search = text
        else:
            self.prompt.open("/", self.search, lambda typed: ())

    def text_typed(self, text: str) -> None:
        """Lines that hold what is typed stand out."""
        self.search = text.strip()
        self.console_app.redraw()

    def text_closed(self, text: str, kept: bool) -> None:
        """Enter jumps to the newest line that holds it, Esc forgets it."""
        self.search = text.strip() if kept else ""
        if self.search:
            self.do_next_match("")
        else:
            self.only = False

    def do_next_match(self, _: str) -> None:
        """The next older line that holds the text; after the oldest, the newest."""
        if not self.search:
            self.console_app.say("nothing searched for yet; / begins")
            return
        newest_first = self.following
        self._hold()
        before = self.reader.length if newest_first else self.reader.first
        picture = self.console_app.picture()
        if picture is None:
            return
        self.body(picture, self.reader.size.width)
        shown = self._shown(self._held or ())
        found = [start for start, entry in zip(self._starts, shown, strict=True) if self._holds(entry)]
        if not found:
            self.console_app.say(f"no {self.NOUN} holds {self.search!r}")
            return
        older = [start for start in found if start < before]
        self.reader.first = max(0, (older or found)[-1])

    def close_one(self) -> None:
        """Esc: first the search, then the screen."""
        if self.search:
            self.search, self.only = "", False
        else:
            super().close_one()


def folded(text: str, width: int, *, fold: bool) -> tuple[str, ...]:
    """One row that says how much of the text is beyond it, or all of it in as many rows as it needs."""
    if len(text) <= width and text.isascii():
        return (text,)
    return _folded(text, width, fold)


@lru_cache(maxsize=_FOLDED)
def _folded(text: str, width: int, fold: bool) -> tuple[str, ...]:
    """At any character: a log's line breaks nowhere by itself."""
    if measure(text) <= width and len(text) <= width:
        return (text,)
    dropped = len(text) >= LONGEST_KEPT and text.endswith(ELLIPSIS)
    if not fold:
        for tail in (f" {ELLIPSIS} {fmt.count(len(text))} characters{' kept' if dropped else ''}, t folds", ELLIPSIS):
            room = width - measure(tail)
            if room >= width // 2:
                return (cut(text, room, "") + tail,)
        return (cut(text, width),)
    rows: list[str] = []
    rest = text
    while rest:
        part = cut(rest, width, "") or rest[:1]
        rows.append(part)
        rest = rest[len(part) :]
    return (*rows, "the rest was dropped when it was read") if dropped else tuple(rows)
