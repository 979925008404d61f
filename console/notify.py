"""Alarms reach people: the bell, a terminal notification, a webhook. Hysteresis, retries, bounds, nothing secret."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from console import __version__
from console.alarms.alarm import Alarm
from console.alarms.book import AlarmBook, Booked, Change, loud
from console.document import iso
from console.sanitize import line
from console.snapshot import SEVERITY_WORDS, Severity

MOST_WAITING = 100
"""Messages that wait for a webhook that does not answer; the oldest go first."""
ATTEMPTS = 6
FIRST_PAUSE_S, MOST_PAUSE_S = 1.0, 60.0
ANSWER_LIMIT_S = 10.0
OPENING_S = 20.0
"""Seconds after the start in which nobody is called: whoever opens the console sees what is wrong already."""
NOTIFICATION_CUT = 160
"""Characters of a terminal notification."""
_SECRET = re.compile(r"(?i)(\bbearer\s+|[a-z0-9_-]*(?:token|key|secret|password|passwd)\s*[=:]\s*)\S+")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class Message:
    """One thing to tell; all texts are safe and redacted."""

    fleet: str
    change: Change
    severity: str
    key: str
    subject: str
    text: str
    advice: str
    at: float
    """Unix seconds."""
    rehearsal: bool = False

    def payload(self) -> dict[str, Any]:
        """The JSON body; `text` is what Slack, Mattermost and their like show."""
        mark = "REHEARSAL " if self.rehearsal else ""
        word = "OK" if self.change is Change.ENDED else self.severity
        advice = f" ({self.advice})" if self.advice and self.change is not Change.ENDED else ""
        return {
            "text": f"{mark}[{self.fleet}] {word} {self.subject}: {self.text}{advice}",
            "fleet": self.fleet,
            "change": self.change,
            "severity": self.severity,
            "key": self.key,
            "subject": self.subject,
            "detail": self.text,
            "advice": self.advice,
            "at": iso(self.at),
            "rehearsal": self.rehearsal,
            "laneswap": __version__,
        }


def message(fleet: str, change: Change, booked: Booked, wall: float, *, rehearsal: bool) -> Message:
    """What to tell about one change of an alarm."""
    alarm = booked.alarm
    severity = SEVERITY_WORDS[alarm.severity] or "OK"
    return Message(
        fleet, change, severity, alarm.key, alarm.subject, redacted(alarm.text), redacted(alarm.advice), wall, rehearsal
    )


def redacted(text: str) -> str:
    """The text without what looks like a credential: it leaves this machine."""
    return _SECRET.sub(r"\1***", _CREDENTIALS.sub("***@", line(text, 500)))


class WebhookError(ValueError):
    """A webhook that cannot be used: says which variable and the way out."""


def webhook_url(variable: str) -> str:
    """The URL that an environment variable holds; '' where none is set. It is a secret: never in a file, never shown.

    Raises WebhookError for what is no http(s) URL.
    """
    url = os.environ.get(variable, "").strip() if variable else ""
    if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise WebhookError(f"{variable}: not an http:// or https:// URL; alarms go to the terminal alone")
    return url


class Webhook:
    """Posts messages one after the other; a failure is told once, and again when it is over."""

    def __init__(self, url: str, tell: Callable[[str], None]) -> None:
        """`tell` says one safe line to the operator."""
        self._url, self._tell = url, tell
        self._waiting: deque[Message] = deque(maxlen=MOST_WAITING)
        self._came = asyncio.Event()
        self._failing = False
        self.dropped = 0

    def post(self, item: Message) -> None:
        """Queue one message."""
        self.dropped += len(self._waiting) == MOST_WAITING
        self._waiting.append(item)
        self._came.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        import httpx  # 60 ms, after the first paint

        async with httpx.AsyncClient(timeout=ANSWER_LIMIT_S, follow_redirects=False) as client:
            while True:
                await self._came.wait()
                self._came.clear()
                while self._waiting:
                    await self._deliver(client, self._waiting.popleft())

    async def _deliver(self, client: Any, item: Message) -> None:
        import httpx

        pause, why = FIRST_PAUSE_S, ""
        for attempt in range(ATTEMPTS):
            try:
                answer = await client.post(self._url, json=item.payload())
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                why = type(error).__name__  # its text holds the URL, which is a secret
            else:
                if answer.status_code < 300:
                    self._well()
                    return
                why = f"HTTP {answer.status_code}"
                if 400 <= answer.status_code < 500 and answer.status_code not in (408, 425, 429):
                    break  # it will not take this message, however often it is asked
            if attempt == 0:
                self._ill(f"{why}, trying again")
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - jitter, not a secret
            pause = min(MOST_PAUSE_S, pause * 2)
        self.dropped += 1
        self._failing = False
        self._ill(f"{why}; {self.dropped} alarm{'s' if self.dropped != 1 else ''} not delivered")

    def _ill(self, why: str) -> None:
        if not self._failing:
            self._failing = True
            self._tell(f"webhook fails: {why}")

    def _well(self) -> None:
        if self._failing:
            self._failing = False
            self._tell(f"webhook works again ({time.strftime('%H:%M:%SZ', time.gmtime())})")


class Caller:
    """Keeps the alarm book and calls people about its changes: each alarm once when it is raised, once when it ends."""

    def __init__(
        self,
        fleet: str,
        *,
        least: Severity = Severity.ACT,
        rehearsal: bool = False,
        bell: Callable[[], None] | None = None,
        notification: Callable[[str], None] | None = None,
        webhook: Callable[[Message], None] | None = None,
    ) -> None:
        """`least` is the mildest severity that calls; a way that is None is not used."""
        self.book = AlarmBook()
        self._fleet, self._least, self._rehearsal = fleet, least, rehearsal
        self._bell, self._notification, self._webhook = bell, notification, webhook
        self._began: float | None = None
        self._called: set[str] = set()

    def take(
        self, found: Iterable[Alarm], now: float, wall: float, expected: Mapping[str, str] | None = None
    ) -> tuple[tuple[Change, Booked], ...]:
        """Book what is wrong at monotonic time `now` and call about what is new. Returns the changes."""
        self._began = now if self._began is None else self._began
        changes = self.book.update(found, now, wall, expected)
        rang = False
        for change, booked in changes:
            if not self._calls(change, booked, now):
                continue
            item = message(self._fleet, change, booked, wall, rehearsal=self._rehearsal)
            if self._webhook is not None:
                self._webhook(item)
            if change is Change.ENDED:
                continue
            if self._notification is not None:
                self._notification(notification_text(item))
            if self._bell is not None and not rang:
                self._bell()
                rang = True
        return changes

    def _calls(self, change: Change, booked: Booked, now: float) -> bool:
        """Whether people hear of it: loud enough, not planned, not there from the start; of an end, if of its start."""
        key = booked.alarm.key
        if change is Change.ENDED:
            known = key in self._called
            self._called.discard(key)
            return known
        opening = self._began is not None and now - self._began < OPENING_S
        if opening or booked.expected or not loud(booked.alarm.severity, self._least):
            return False
        self._called.add(key)
        return True


def notification_text(item: Message) -> str:
    """What a terminal notification says. It begins with a word: terminals take a leading digit for a command."""
    mark = "REHEARSAL " if item.rehearsal else ""
    return line(f"laneswap {mark}{item.fleet}: {item.severity} {item.subject} {item.text}", NOTIFICATION_CUT)


def notification_sequence(text: str, environment: Mapping[str, str]) -> str:
    """The escape sequence for a desktop notification in the terminal at hand; '' where none is known to work.

    OSC 9 is iTerm2's (also kitty, WezTerm, Ghostty, Windows Terminal), OSC 777 rxvt's (also foot and VTE). Inside tmux
    and screen neither comes through: the bell does.
    """
    if environment.get("TMUX") or environment.get("STY"):
        return ""
    safe = line(text, NOTIFICATION_CUT)
    term = environment.get("TERM", "")
    if "VTE_VERSION" in environment or term.startswith(("foot", "rxvt")):
        return f"\x1b]777;notify;laneswap;{safe.replace(';', ',')}\x1b\\"
    if term.startswith(("dumb", "linux")) or not term:
        return ""
    return f"\x1b]9;{safe}\x1b\\"
