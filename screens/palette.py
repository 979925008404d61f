"""The command palette: commands of the action table, found by any part of their name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from console.actions.catalog import Action, Place, palette
from screens.base import ConsoleScreen

if TYPE_CHECKING:
    from screens.base import Console


class Commands(Provider):
    """What the palette lists on the screen it was opened over; a guarded action opens its strip, as its key does."""

    def _actions(self) -> tuple[Action, ...]:
        place = self.screen.PLACE if isinstance(self.screen, ConsoleScreen) else Place.DASHBOARD
        return tuple(action for action in palette() if place in action.places)

    def _run(self, action: Action) -> None:
        cast("Console", self.app).perform(action.id)

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for action in self._actions():
            yield DiscoveryHit(action.title, partial(self._run, action), help=action.help)

    async def search(self, query: str) -> Hits:
        """Those whose title or command matches."""
        matcher = self.matcher(query)
        for action in self._actions():
            score = max(matcher.match(text) for text in (action.title, *action.commands))
            if score > 0:
                yield Hit(score, matcher.highlight(action.title), partial(self._run, action), help=action.help)
