"""Explain: every value of a pane with its source, when it was read, and how it came to be."""

from __future__ import annotations

from console.actions.catalog import Place
from screens.base import bindings_for
from screens.explaining import PANES, explain
from screens.reader import ReadingScreen, Text, table_rows, wrapped
from widgets.ages import AgeMark
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, LABEL
from widgets.sheet import Title
from widgets.slots import NUMBERS, digit, panes_of

_NAME, _VALUE, _HOW = 2, 18, 42
"""Columns."""


class ExplainScreen(ReadingScreen, inherit_bindings=False):
    """The pane in focus, or the one named."""

    PLACE = Place.EXPLAIN
    BINDINGS = bindings_for(Place.EXPLAIN)

    def __init__(self, pane: str = "") -> None:
        super().__init__()
        self._pane = pane

    def body(self, glance: Glance, width: int) -> tuple[Title, list[Text]]:
        """Origin lines, and under each the values that come from it."""
        number = self._number(glance)
        rows: list[Text] = []
        for item in explain(glance, number):
            rows += [((0, part, LABEL),) for part in wrapped(f"{item.subject}: {item.origin}", width - 5)]
            for fact in item.facts:
                cells = ((_NAME, fact.name, DIM), (_VALUE, fact.value, BOLD))
                rows += table_rows(cells, _HOW, fact.how, width - 4)
            rows.append(())
        name = f"{digit(glance, number)} {PANES.get(number, self._pane)}".strip()
        return Title(0, "explain", AgeMark("", DIM), f"{name}, Esc goes back"), rows

    def _number(self, glance: Glance) -> int:
        if not self._pane:
            return glance.focus
        names = panes_of(glance)
        found = (NUMBERS[name] for name in names if self._pane in (name, digit(glance, NUMBERS[name])))
        return next(found, NUMBERS.get(self._pane, 0))
