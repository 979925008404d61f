"""The log of the lane's container: followed, searched, scrolled back, on any of the lane's hosts."""

from __future__ import annotations

from collections.abc import Mapping

from console.actions.catalog import Place
from console.snapshot import LogLine
from screens.base import bindings_for
from screens.reader import Text
from screens.rolling import RollingScreen
from widgets import format as fmt
from widgets.glance import Glance
from widgets.ink import DIM

_TIME, _TEXT = 0, 9
"""Columns."""


class LogsScreen(RollingScreen[LogLine], inherit_bindings=False):
    """The log of one of the lane's hosts."""

    PLACE = Place.LOGS
    BINDINGS = bindings_for(Place.LOGS)
    NAME = "log"

    def __init__(self, host: str = "") -> None:
        super().__init__()
        self._host = host

    def on_mount(self) -> None:
        """Ask for the log of the host that was named."""
        if self._host:
            self.do_next_host(self._host)

    def entries(self, glance: Glance) -> tuple[LogLine, ...]:
        """The lines of the log that is followed."""
        log = glance.snapshot.log
        return log.lines if log is not None else ()

    def text_of(self, entry: LogLine) -> str:
        """The line itself."""
        return entry.text

    def head(self, entry: LogLine, glance: Glance) -> tuple[Text, int]:
        """The container's own time stamp."""
        stamp = fmt.time_of_day(entry.wall) if entry.wall is not None else ""
        return ((_TIME, stamp, DIM),), _TEXT

    def note(self, glance: Glance) -> tuple[str, ...]:
        """Whose log it is; what was skipped and what is wrong."""
        log = glance.snapshot.log
        if log is None:
            return ("no log is followed",)
        skipped = f"{fmt.count(log.skipped)} lines skipped" if log.skipped else ""
        return (", ".join(part for part in (log.host, log.container) if part), skipped, log.problem)

    def empty(self, glance: Glance) -> str:
        """Why there is no line, and what would bring one."""
        log = glance.snapshot.log
        if log is None:
            return "No log is followed yet; h follows the lane's next host."
        return log.problem or f"{log.host} has written nothing since the console began to follow."

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
        self.do_end("")
        self.console_app.source.follow(picture.lane.name, host)
        self.console_app.say(f"log of {host}")

    def words(self) -> Mapping[str, tuple[str, ...]]:
        """The lane's hosts."""
        picture = self.console_app.picture()
        return {"HOST": picture.lane.lane.rank_hosts} if picture is not None else {}
