"""A head that says nothing: what its engine does not answer meanwhile says nothing of the engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from console.feed.host import HostFeed
from console.reach.limits import Timings
from console.readings.answers import HttpAnswer, Transport
from console.readings.health import HttpLight, HttpVerdict, LaneState, LaneVerdict, Lights, ProcessLight
from console.readings.quality import LATE_AFTER, STALE_AFTER
from console.readings.throughput import Scrape, ScrapeVerdict

WORDS = "nothing is heard from the head"
_LIMITS = Timings()
PROVEN_S = _LIMITS.keepalive_interval * (_LIMITS.keepalive_count + 2)
"""Seconds of silence after which a link that still stands has answered its keepalives: only the sampler is silent."""
_NO_ANSWER = (ScrapeVerdict.TIMEOUT, ScrapeVerdict.UNREACHABLE)
_NONE_CAME = (Transport.CONNECT_TIMEOUT, Transport.READ_TIMEOUT, Transport.UNREACHABLE)


class Silence:
    """How long nothing came over the link to the head of one lane, and what may be said of the lane meanwhile.

    For the first seconds what was known counts on, as a number that is LATE does; then the lane is LATE, until
    something comes or the link is given up.
    """

    def __init__(self, head: HostFeed, every: float, *, direct: bool) -> None:
        """`every`: seconds between two frames of the head; `direct`: the engine is asked from this machine."""
        self._head = head
        self._every = every
        self._direct = direct
        self._answered: float | None = None
        self._known: Lights | None = None

    def seconds(self) -> float:
        """For how long nothing came; 0 while that is no reason to doubt the link."""
        if self._direct or self._head.down_since() is not None:
            return 0.0
        heard = [at for at in (self._head.heard, self._answered) if at is not None]
        lasted = time.monotonic() - max(heard) if heard else 0.0
        return lasted if LATE_AFTER * self._every < lasted < PROVEN_S else 0.0

    def swallows(self, answer: HttpAnswer | Scrape) -> bool:
        """Whether an answer that did not come in time is one of the link and none of the engine."""
        none = answer.verdict in _NO_ANSWER if isinstance(answer, Scrape) else answer.transport in _NONE_CAME
        if not none:
            self._answered = answer.at
        return none and self.seconds() > 0

    def lights(self, process: ProcessLight, http: HttpLight, look: Callable[[], Lights]) -> Lights:
        """The lights as they are, or as they may be shown in a silence."""
        silent = self.seconds()
        if not silent or self._known is None:
            self._known = look()
            return self._known
        if silent < STALE_AFTER * self._every:
            return replace(self._known, process=process)
        return Lights(process=process, http=replace(http, verdict=HttpVerdict.UNREACHABLE, status=None, detail=WORDS))

    def verdict(self, before: LaneVerdict, now: float, judge: Callable[[], LaneVerdict]) -> LaneVerdict:
        """What the lights add up to, or what is said in a silence: since when, and what was known last."""
        silent = self.seconds()
        if not silent:
            return judge()
        if silent < STALE_AFTER * self._every:
            return before
        last = before.state if before.state is not LaneState.UNKNOWN else before.last
        known = f", last known {last.upper()}" if last is not None else ""
        why = f"nothing heard from {self._head.name} for {silent:.0f} s{known}"
        return LaneVerdict(LaneState.UNKNOWN, why, late_since=now - silent, last=last)
