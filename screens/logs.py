"""The log of the lane's container: followed, searched, scrolled back, on any of the lane's hosts."""

from __future__ import annotations

from collections.abc import Mapping

from console.actions.catalog import Place
from console.snapshot import LogLine, LogView
from screens.base import bindings_for
from screens.reader import ReadingScreen, Text
from widgets import format as fmt
from widgets.ages import AgeMark
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, TEXT, Ink
from widgets.sheet import Title

_TIME, _TEXT = 0, 9
"""Columns."""


class LogsScreen(ReadingScreen, inherit_bindings=False):
    """Follows the newest line; scrolling back holds the lines that were there, and says how many are newer."""

    PLACE = Place.LOGS
    BINDINGS = bindings_for(Place.LOGS)

    def __init__(self, host: str = "") -> None:
        super().__init__()
        self._host = host
        self._held: tuple[LogLine, ...] | None = None
        self.search = ""

    @property
    def following(self) -> bool:
        """Whether the newest line is kept in view."""
        return self._held is None

    def on_mount(self) -> None:
        """Ask for the log of the host that was named."""
        if self._host:
            self.do_next_host(self._host)

    def body(self, glance: Glance, width: int) -> tuple[Title, list[Text]]:
        """The lines, newest last."""
        log = glance.snapshot.log
        lines = self._lines(log)
        rows = [_row(line, self.search) for line in lines]
        if self.following:
            self.reader.first = len(rows)
        if not rows:
            rows = [((0, _why_empty(log), DIM),)]
        return Title(0, "log", AgeMark("", DIM), self._note(log)), rows

    def _lines(self, log: LogView | None) -> tuple[LogLine, ...]:
        if self._held is not None:
            return self._held
        return log.lines if log is not None else ()

    def _note(self, log: LogView | None) -> str:
        if log is None:
            return "no log is followed"
        parts = [log.host, log.container, "following" if self.following else self._behind(log)]
        if log.skipped:
            parts.append(f"{fmt.count(log.skipped)} lines skipped")
        if self.search:
            parts.append(f"/{self.search} {self._matches(log)} lines")
        if log.problem:
            parts.append(log.problem)
        return ", ".join(part for part in parts if part)

    def _behind(self, log: LogView) -> str:
        held = self._held or ()
        newest = held[-1] if held else None
        for newer, line in enumerate(reversed(log.lines)):
            if line is newest:
                return f"held, {newer} newer"
        return f"held, over {len(log.lines)} newer"

    def _matches(self, log: LogView) -> int:
        return sum(_holds(line, self.search) for line in self._lines(log))

    # --- keys ------------------------------------------------------------------------------------------------------

    def _hold(self) -> None:
        picture = self.console_app.picture()
        if self._held is None and picture is not None and picture.snapshot.log is not None:
            self._held = picture.snapshot.log.lines

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

    def do_next_host(self, host: str) -> None:
        """Another host of the lane."""
        picture = self.console_app.picture()
        if picture is None:
            return
        hosts = picture.lane.lane.rank_hosts
        log = picture.snapshot.log
        if not host:
            at = hosts.index(log.host) if log is not None and log.host in hosts else -1
            host = hosts[(at + 1) % len(hosts)]
        if host not in hosts:
            self.console_app.say(f"no host {host!r} in lane {picture.lane.name}; there are: {', '.join(hosts)}")
            return
        self._held = None
        self.console_app.source.follow(picture.lane.name, host)
        self.console_app.say(f"log of {host}")

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

    def do_next_match(self, _: str) -> None:
        """The next older line that holds the text; after the oldest, the newest."""
        if not self.search:
            self.console_app.say("nothing searched for yet; / begins")
            return
        before = self.reader.first if self._held is not None else self.reader.length
        self._hold()
        lines = self._held or ()
        found = [at for at, line in enumerate(lines) if _holds(line, self.search)]
        if not found:
            self.console_app.say(f"no line holds {self.search!r}")
            return
        older = [at for at in found if at < before]
        self.reader.first = max(0, (older or found)[-1])

    def close_one(self) -> None:
        """Esc: first the search, then the screen."""
        if self.search:
            self.search = ""
        else:
            super().close_one()

    def words(self) -> Mapping[str, tuple[str, ...]]:
        """The lane's hosts."""
        picture = self.console_app.picture()
        return {"HOST": picture.lane.lane.rank_hosts} if picture is not None else {}


def _holds(line: LogLine, text: str) -> bool:
    return text.casefold() in line.text.casefold()


def _row(line: LogLine, search: str) -> Text:
    stamp = fmt.time_of_day(line.wall) if line.wall is not None else ""
    ink: Ink = TEXT
    if search:
        ink = BOLD if _holds(line, search) else DIM
    return ((_TIME, stamp, DIM), (_TEXT, line.text, ink))


def _why_empty(log: LogView | None) -> str:
    if log is None:
        return "No log is followed yet; h follows the lane's next host."
    return log.problem or f"{log.host} has written nothing since the console began to follow."
