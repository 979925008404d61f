"""Pane 2: the room of the checkpoint download. This version reads none, and says so."""

from __future__ import annotations

from widgets.ages import AgeMark
from widgets.containers import in_containers
from widgets.glance import Glance
from widgets.ink import DIM, Row
from widgets.pane import Pane
from widgets.sheet import Sheet, Title, section


class DownloadPane(Pane):
    """Pane 2."""

    NUMBER = 2
    NAME = "download"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return (in_containers(glance),)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """Says that nothing is read here, and what will be."""
    return unread_rows(
        glance,
        unread_title(glance, 2, "download"),
        "This version reads no downloads.",
        "Here will stand: shards, rate, checksums and memory of a checkpoint download.",
        width,
        height,
    )


def unread_title(glance: Glance, number: int, name: str) -> Title:
    """Beside the containers it goes without a number: there is nothing to focus, and 2 is theirs."""
    return Title(0 if in_containers(glance) else number, name, AgeMark("not read", DIM))


def unread_rows(glance: Glance, title: Title, nothing: str, later: str, width: int, height: int) -> tuple[Row, ...]:
    """A pane whose subject is not read by this version."""
    if not glance.boxed and height == 1:
        line = section(glance, title, width)
        line.put(11, nothing, DIM, to=width - 1 - len(title.age.text) - 1)
        return (line.build(),)
    sheet = Sheet(glance, title, width, height)
    sheet.say(nothing, later)
    return sheet.done()
