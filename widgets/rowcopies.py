"""Pane 3: the room of the node-local row copies. This version reads none, and says so."""

from __future__ import annotations

from widgets.containers import in_containers
from widgets.download import unread_rows, unread_title
from widgets.glance import Glance
from widgets.ink import Row
from widgets.pane import Pane


class RowsPane(Pane):
    """Pane 3."""

    NUMBER = 3
    NAME = "row copies"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return (in_containers(glance),)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """Says that nothing is read here, and what will be."""
    name = "rows" if not glance.boxed and height == 1 else "row copies"
    return unread_rows(
        glance,
        unread_title(glance, 3, name),
        "This version reads no row copies.",
        "Here will stand: each rank's local Engram rows, what is copied and what is left.",
        width,
        height,
    )
