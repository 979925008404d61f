"""The console calls people: which ways the fleet file wants, and what is new among the alarms since the last look."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from console.alarms import Alarm, alarms, expected
from console.alarms.book import Booked
from console.notify import Caller, Webhook, WebhookError, notification_sequence, webhook_url
from console.snapshot import Severity, Snapshot

LOOK_EVERY = 1.0
"""Seconds between two looks at what is new among the alarms."""


@dataclass(frozen=True, slots=True)
class Ways:
    """What the console lends: its words, its bell, its terminal, its background."""

    say: Callable[[str], None]
    """One line for the operator."""
    bell: Callable[[], None]
    write: Callable[[str], None]
    """A whole escape sequence to the terminal."""
    background: Callable[[str, Coroutine[Any, Any, None]], None]


class Calling:
    """The alarm book of one console and its calls; set up with the first picture, which names the fleet."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._caller: Caller | None = None
        self._looked = float("-inf")

    def look(self, newest: Snapshot, own: Sequence[Alarm] = ()) -> None:
        """Book what is wrong in the newest picture and call about what is new; once a second is enough."""
        if newest.now - self._looked < LOOK_EVERY:
            return
        self._looked = newest.now
        self._caller = self._caller or self._set_up(newest)
        self._caller.take((*own, *alarms(newest)), newest.now, newest.wall, expected(newest))

    def acknowledge(self, key: str, newest: Snapshot, own: Sequence[Alarm] = ()) -> None:
        """Somebody has seen this alarm."""
        self._looked = float("-inf")
        self.look(newest, own)
        if self._caller is not None:
            self._caller.book.acknowledge(key)

    @property
    def acknowledged(self) -> frozenset[str]:
        """Keys of the active alarms that somebody has seen."""
        return frozenset() if self._caller is None else self._caller.book.acknowledged()

    @property
    def returned(self) -> tuple[Booked, ...]:
        """What came and went unseen, oldest first."""
        return () if self._caller is None else self._caller.book.returned()

    def _set_up(self, first: Snapshot) -> Caller:
        wish = first.fleet.notify
        hook = None if first.rehearsal else self._webhook(wish.webhook_env)
        return Caller(
            first.fleet.name,
            least=Severity(wish.min_severity),
            rehearsal=first.rehearsal,
            bell=self._ways.bell if wish.bell else None,
            notification=self._notification if wish.terminal else None,
            webhook=hook.post if hook is not None else None,
        )

    def _webhook(self, variable: str) -> Webhook | None:
        try:
            url = webhook_url(variable)
        except WebhookError as error:
            self._ways.say(str(error))
            return None
        if not url:
            return None
        hook = Webhook(url, self._ways.say)
        self._ways.background("webhook", hook.run())
        return hook

    def _notification(self, text: str) -> None:
        if sequence := notification_sequence(text, os.environ):
            self._ways.write(sequence)
