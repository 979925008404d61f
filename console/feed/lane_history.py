"""What a lane did: its plotted points, its usual band, the KV pools of its boots, the rate it last served at."""

from __future__ import annotations

import math
from collections.abc import Sequence

from console.feed.history import History
from console.feed.records import LaneRecords
from console.readings.throughput import Throughput
from console.snapshot import RatePoint

HISTORY_POINTS = 1800
POOLS_KEPT = 8
USUAL_EVERY = 10
"""Points between two looks at the usual band: it moves slowly and costs a sort."""
USUAL_AFTER = 60
"""Serving points before the lane has a usual band of its own."""


class LaneHistory:
    """Keeps one lane's history of this sitting, and hands to its records what is worth more than a sitting."""

    def __init__(self, records: LaneRecords) -> None:
        self.records = records
        self.last_decode: float | None = None
        """tok/s when the lane last served."""
        self._points: History[RatePoint] = History(HISTORY_POINTS)
        self._usual: tuple[float, float] | None = None
        self._count = 0
        self._before: Throughput | None = None
        self._restarted = False
        """The newest reading's window holds a start of the counters."""
        self._unstarted: list[int] = []
        """Pools of boots whose start nobody knows: of this sitting alone."""
        self._of_now = False
        """The newest of these is that of the engine that runs."""

    def missed(self, at: float) -> None:
        """At monotonic time `at` nothing could be read: a gap, not a zero."""
        self._points.append(RatePoint(at, math.nan, math.nan))
        self._before = None

    def take(self, at: float, found: Throughput, started: float | None) -> None:
        """Keep a reading; `started` is when the engine was started, Unix seconds by the host's clock."""
        decode = math.nan if found.decode_tps is None else found.decode_tps
        kv = math.nan if found.kv.used_fraction is None else found.kv.used_fraction
        self._points.append(RatePoint(at, decode, kv))
        self._keep_pool(found, started)
        self._count += 1
        if self._count % USUAL_EVERY == 0:
            self._usual = usual_band([point.decode_tps for point in self._points.view() if point.decode_tps > 0])
        self._keep_rate(found)
        self._before, self._restarted = found, found.restarted

    def _keep_pool(self, found: Throughput, started: float | None) -> None:
        pool = found.kv.tokens
        if pool is None:
            return
        again = found.restarted and not self._restarted
        if started is not None:
            if self._of_now and not again:  # seen before its start was known: one boot, one pool
                self._unstarted.pop()
            self._of_now = False
            self.records.add_pool(started, pool)
        elif again or self.pools[-1:] != (pool,):
            self._unstarted = [*self._unstarted, pool][-POOLS_KEPT:]
            self._of_now = True

    @property
    def pools(self) -> tuple[int, ...]:
        """KV pools of the newest boots, tokens, oldest first."""
        known = self.records.pools
        at = len(known) if self._of_now else max(0, len(known) - 1)  # the newest one came after those without a start
        return (*known[:at], *self._unstarted, *known[at:])[-POOLS_KEPT:]

    def _keep_rate(self, found: Throughput) -> None:
        """A rate is one of the lane's own where tokens came and as many requests ran as before."""
        before, running = self._before, found.running
        if not running or not found.decode_tps or not _tokens_came(before, found):
            return
        self.last_decode = found.decode_tps
        if before is not None and before.running == running and not found.restarted:
            self.records.add_rate(running, found.decode_tps)

    @property
    def points(self) -> Sequence[RatePoint]:
        """The points, oldest first; the same costs however many there are."""
        return self._points.view()

    @property
    def usual(self) -> tuple[float, float] | None:
        """10th and 90th percentile of this sitting's decode rates, tok/s."""
        return self._usual


def usual_band(rates: list[float]) -> tuple[float, float] | None:
    """10th and 90th percentile of the lane's own decode rates, tok/s; None before there are enough."""
    if len(rates) < USUAL_AFTER:
        return None
    ordered = sorted(rates)
    return ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]


def _tokens_came(before: Throughput | None, found: Throughput) -> bool:
    """False where the newest scrape brought no token: over the window the rate then falls with every scrape."""
    if before is None or before.generation_total is None or found.generation_total is None:
        return True
    return found.generation_total != before.generation_total
