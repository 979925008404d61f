"""How much at once and how long: handshakes, sessions of one connection, time limits."""

from __future__ import annotations

import asyncio
import random
import resource
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

MOST_SESSIONS = 8
"""Sessions at once on one connection; a stock sshd allows 10 (MaxSessions)."""
FEWEST_SESSIONS = 3
"""Below it refusals teach nothing: a program that was ended keeps its session at the server until it has gone."""
REGROWTH = 60.0
"""Seconds without a refusal after which one more session is tried again."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Every time limit of the links, in seconds; tests shorten them."""

    keepalive_interval: float = 5.0
    keepalive_count: int = 3
    connect_limit: float = 10.0
    """TCP connection; ConnectTimeout of ssh_config goes before it."""
    login_limit: float = 15.0
    first_retry: float = 0.5
    longest_retry: float = 30.0
    stubborn_retry: float = 15.0
    """First retry where trying again rarely helps: refused key, changed host key. Spares fail2ban and logs."""
    beat: float = 5.0
    """Between the console's heartbeats to a sampler."""
    beat_limit: float = 27.0
    """The sampler ends itself this long after the last heartbeat; it and its children are gone within 30 s."""
    hello_limit: float = 15.0
    """For the sampler to start and say so."""
    slow_after: float = 10.0
    """A slow source that has not answered for so long is reported."""
    slow_limit: float = 60.0
    """A slow source's child is killed after so long."""
    close_limit: float = 3.0

    def retry_delay(self, attempt: int, *, stubborn: bool = False) -> float:
        """Seconds to wait after failed attempt 1, 2, 3...: doubled, capped, with a jitter of a half downwards."""
        first = self.stubborn_retry if stubborn else self.first_retry
        longest = max(self.longest_retry, 4 * self.stubborn_retry) if stubborn else self.longest_retry
        delay = min(longest, first * 2.0 ** min(attempt - 1, 16))
        return delay * random.uniform(0.5, 1.0)  # noqa: S311 (jitter, not a secret)


class HandshakeLimits:
    """At most `per_host` handshakes with one host or jump host at once, `total` in all. One for the whole fleet."""

    def __init__(self, per_host: int = 6, total: int = 32) -> None:
        self._per_host = per_host
        self._total = asyncio.Semaphore(total)
        self._hosts: dict[str, asyncio.Semaphore] = {}
        self.in_flight = 0
        self.highest = 0
        """The most handshakes that were in flight at once."""
        self.shared: dict[object, object] = {}
        """Connections to jump hosts, one each: see `jump`."""

    @asynccontextmanager
    async def handshake(self, key: str) -> AsyncIterator[None]:
        """Waits for a free place; `key` is the host or, behind a jump host, the jump host."""
        host = self._hosts.setdefault(key, asyncio.Semaphore(self._per_host))
        async with host, self._total:
            self.in_flight += 1
            self.highest = max(self.highest, self.in_flight)
            try:
                yield
            finally:
                self.in_flight -= 1


def allow_open_files(wanted: int) -> int:
    """Raise this process's own limit of open files to `wanted`, as far as the system lets it; how many it may have now.

    Most systems begin with 1024, which a hundred hosts with their Docker sockets use up.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError):  # macOS has a limit of its own below the hard one
            return soft
        return most
    return wanted if soft == resource.RLIM_INFINITY else soft


class SessionSlots:
    """The sessions of one connection: a queue before them, the last slot kept for operator commands.

    How many the server allows is learned: a refused opening lowers the number (it is our limit, never `host down`).
    """

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self.allowed = most
        self.in_use = 0
        self._operators: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()
        self._refused_at = float("-inf")

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return sum(not f.done() for f in (*self._operators, *self._others))

    async def acquire(self, operator: bool = False) -> None:
        """Wait for a slot; the caller bounds the wait and calls `release` exactly once afterwards."""
        queue = self._operators if operator else self._others
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the slot back."""
        self.in_use -= 1
        now = asyncio.get_running_loop().time()
        if self.allowed < self._most and now - self._refused_at > REGROWTH:
            self.allowed += 1
            self._refused_at = now
        self._hand_out()

    def refused(self) -> None:
        """The server refused one more session while this caller held a slot: allow no more than were open."""
        self._refused_at = asyncio.get_running_loop().time()
        self.allowed = max(FEWEST_SESSIONS, min(self.allowed, self.in_use - 1))

    def _hand_out(self) -> None:
        for queue, most in ((self._operators, self.allowed), (self._others, self.allowed - 1)):
            while queue and self.in_use < most:
                turn = queue.popleft()
                if not turn.done():
                    self.in_use += 1
                    turn.set_result(None)
