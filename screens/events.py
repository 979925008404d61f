"""All events that are kept: followed, searched, scrolled back."""

from __future__ import annotations

from console.actions.catalog import Place
from console.snapshot import Event, Severity
from screens.base import bindings_for
from screens.reader import Piece, Text
from screens.rolling import RollingScreen
from widgets import format as fmt
from widgets.glance import Glance
from widgets.ink import DIM, WORDS, ink_of

_TIME, _SHAPE, _TEXT = 0, 9, 11
"""Columns."""
_SUBJECT = 8
"""Cells of a subject before the text; a longer one pushes it on."""
_LOUD = (Severity.LOOK, Severity.ACT)


class EventsScreen(RollingScreen[Event], inherit_bindings=False):
    """What this console saw, newest last."""

    PLACE = Place.EVENTS
    BINDINGS = bindings_for(Place.EVENTS)
    NAME = "events"
    NOUN = "event"

    def entries(self, glance: Glance) -> tuple[Event, ...]:
        """All that are kept."""
        return glance.snapshot.events

    def text_of(self, entry: Event) -> str:
        """The row's words: a loud one's own word, the subject, the text; each can be searched for."""
        word = WORDS[entry.severity] if entry.severity in _LOUD else ""
        return "  ".join(part for part in (entry.subject.ljust(_SUBJECT), word, entry.text) if part)

    def head(self, entry: Event, glance: Glance) -> tuple[Text, int]:
        """Time, and the shape of a loud one in its colour."""
        sign = glance.signs.of(entry.severity) if entry.severity in _LOUD else ""
        shape: tuple[Piece, ...] = ((_SHAPE, sign, ink_of(entry.severity)),) if sign else ()
        return ((_TIME, fmt.time_of_day(entry.wall, glance.wall), DIM), *shape), _TEXT

    def note(self, glance: Glance) -> tuple[str, ...]:
        """How many there are, and that older ones are not kept."""
        count = len(glance.snapshot.events)
        return (f"{fmt.count(count)} since the console began", "the newest 1000 are kept" if count >= 1000 else "")

    def empty(self, glance: Glance) -> str:
        """Why there is none."""
        return "Nothing happened since the console was started. Fills with links, containers, lane states and alarms."
