"""How fast a download goes and since when it stands still, from a series of readings. Pure.

Disk bytes of an xet download may stand still for over a minute while the network flows, and a file may be 0 bytes long
with its data in memory: so three clocks. The kernel does not count what a process receives from sockets in the `rchar`
of /proc/PID/io (only read(2) and its kin), so the network clock is the host's interfaces, never that figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RATE_WINDOW_S = 60.0
"""Longest window of the rate, seconds; longer only where two readings lie further apart."""
RATE_LEAST_S = 10.0
"""Shortest window that gives a rate."""
CLOCK_WINDOW_S = 20.0
"""Window in which network and memory must have moved to count as moving."""

NETWORK_MOVES = 100_000.0
"""Bytes a second that the host must receive: below it is what ssh, probes and chat clients make."""
CALLS_MOVE = 100_000.0
"""Bytes a second that the downloader must read or write by system calls."""
MEMORY_MOVES = 1 << 20
"""Bytes by which the unit's memory must have changed within the window."""

USUAL_LEAST = 12
"""Rates that make a usual band."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """What of a download moved in the window; None where it cannot be read."""

    disk: float | None
    """Bytes a second that came to be allocated."""
    network: float | None
    """Bytes a second that the host's interfaces received, for whatever purpose."""
    memory: float | None
    """Bytes a second by which its memory grew or shrank (sign kept)."""
    calls: float | None = None
    """Bytes a second that the downloader read and wrote by system calls; sockets are not among them."""

    @property
    def moving(self) -> tuple[str, ...]:
        """Names of the clocks other than the disk's that move."""
        network = self.network is not None and self.network >= NETWORK_MOVES
        memory = self.memory is not None and abs(self.memory) * CLOCK_WINDOW_S >= MEMORY_MOVES
        calls = self.calls is not None and self.calls >= CALLS_MOVE
        return tuple(name for name, moves in (("network", network), ("memory", memory), ("writes", calls)) if moves)

    @property
    def unread(self) -> tuple[str, ...]:
        """Names of the clocks other than the disk's that nobody read."""
        values = (("network", self.network), ("memory", self.memory), ("process I/O", self.calls))
        return tuple(name for name, value in values if value is None)


@dataclass(frozen=True, slots=True)
class Point:
    """One reading of the figures that clocks are made of; bytes, None where unknown."""

    at: float
    """Monotonic seconds."""
    done: int | None
    received: int | None = None
    memory: int | None = None
    calls: tuple[tuple[int, int], ...] | None = None
    """(pid, bytes read and written so far) of each downloader."""


def rate(points: Sequence[Point]) -> tuple[float | None, float]:
    """Bytes a second that came to disk, and the window in seconds; None before RATE_LEAST_S of readings.

    A fall (a partial file that was dropped) begins the window anew.
    """
    known = [(item.at, item.done) for item in points if item.done is not None]
    window = _newest(known, RATE_WINDOW_S)
    for at in range(len(window) - 1, 0, -1):
        if window[at][1] < window[at - 1][1]:
            window = window[at:]
            break
    span = window[-1][0] - window[0][0] if window else 0.0
    if span < RATE_LEAST_S:
        return None, span
    return (window[-1][1] - window[0][1]) / span, span


def _newest(known: Sequence[tuple[float, int]], longest: float) -> Sequence[tuple[float, int]]:
    """The readings of the last `longest` seconds; at least the last two."""
    first = len(known) - 1
    while first > 0 and known[-1][0] - known[first - 1][0] <= longest:
        first -= 1
    return known[max(0, min(first, len(known) - 2)) :]


def usual(points: Sequence[Point]) -> tuple[float, float] | None:
    """10th and 90th percentile of the rates seen while bytes came, bytes a second; None before there are enough."""
    known = [(item.at, item.done) for item in points if item.done is not None]
    rates = []
    first = 0
    for at in range(1, len(known)):
        while known[at][0] - known[first + 1][0] >= RATE_LEAST_S:
            first += 1
        span = known[at][0] - known[first][0]
        moved = known[at][1] - known[first][1]
        if moved > 0 and span >= RATE_LEAST_S:
            rates.append(moved / span)
    if len(rates) < USUAL_LEAST:
        return None
    rates.sort()
    return rates[len(rates) // 10], rates[(9 * len(rates)) // 10]


def still_for(points: Sequence[Point], now: float, written: float | None = None) -> float | None:
    """Seconds since the last new byte on disk; None with one reading and nothing to say when it was written.

    `written`: seconds that had passed at the newest reading since the partial file was last written to.
    """
    known = [(item.at, item.done) for item in points if item.done is not None]
    if not known:
        return None
    for at in range(len(known) - 1, 0, -1):
        if known[at][1] > known[at - 1][1]:
            return max(0.0, now - known[at][0])
    seen = now - known[0][0] if len(known) > 1 else None
    told = now - known[-1][0] + written if written is not None else None
    values = [max(0.0, item) for item in (seen, told) if item is not None]
    return max(values) if values else None


def clocks(points: Sequence[Point]) -> Clocks:
    """The clocks of the newest readings: disk over the rate's window, the others over CLOCK_WINDOW_S."""
    return Clocks(rate(points)[0], _slope(points, "received"), _slope(points, "memory"), _calls(points))


def _slope(points: Sequence[Point], name: str) -> float | None:
    known = [(item.at, value) for item in points if (value := getattr(item, name)) is not None]
    window = _newest(known, CLOCK_WINDOW_S)
    if len(window) < 2 or window[-1][0] <= window[0][0]:
        return None
    moved = window[-1][1] - window[0][1]
    # a counter that fell began anew: what it counted since is all that is known
    if name == "received" and moved < 0:
        moved = window[-1][1]
    return moved / (window[-1][0] - window[0][0])


def _calls(points: Sequence[Point]) -> float | None:
    """Of the processes that were there at both ends of the window; None if there was none."""
    known = [(item.at, dict(item.calls)) for item in points if item.calls]
    while len(known) > 2 and known[-1][0] - known[0][0] > CLOCK_WINDOW_S:
        known.pop(0)
    if len(known) < 2 or known[-1][0] <= known[0][0]:
        return None
    before, after = known[0][1], known[-1][1]
    moved = [max(0, after[pid] - before[pid]) for pid in after.keys() & before.keys()]
    return sum(moved) / (known[-1][0] - known[0][0]) if moved else None


def parse_received(text: str) -> int | None:
    """Bytes that a host's interfaces received, from /proc/net/dev; loopback and bridges apart. None if it says none."""
    total = None
    for row in text.split("\n"):
        name, colon, figures = row.partition(":")
        fields = figures.split()
        name = name.strip()
        virtual = name == "lo" or name.startswith(("docker", "veth", "br-", "virbr", "cni", "flannel", "dummy", "ifb"))
        if colon and len(fields) >= 16 and not virtual and fields[0].isascii() and fields[0].isdecimal():
            total = (total or 0) + int(fields[0][:20])
    return total
