"""How fast a download goes and since when it stands still, from a series of readings. Pure.

Disk bytes of an xet download may stand still for over a minute while the network flows, and a file may be 0 bytes long
with its data in memory: so three clocks. Reads that /proc/PID/io counts (`rchar`) prove only movement: what hf_xet and
other Rust programs receive by recv(2) is not among them, what OpenSSL reads from its sockets by read(2) is.
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

BYTES_MOVE = 100_000.0
"""Bytes a second from which on a clock moves: ssh, probes and chat clients make less."""
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
    """Bytes a second that came from the network, see `network_of`."""
    memory: float | None
    """Bytes a second by which its memory grew or shrank (sign kept)."""
    written: float | None = None
    """Bytes a second that the downloader wrote by system calls, allocated or not."""
    network_of: str = ""
    """`host`: all that its interfaces received; `downloader`: what it reads, told only while that moves."""

    @property
    def moving(self) -> tuple[str, ...]:
        """What moves beside the disk, in words."""
        words = []
        if self.network is not None and self.network >= BYTES_MOVE:
            verb = "receives" if self.network_of == "host" else "reads"
            words.append(f"the {self.network_of} {verb} {self.network / 1e6:.1f} MB/s")
        if self.memory is not None and abs(self.memory) * CLOCK_WINDOW_S >= MEMORY_MOVES:
            words.append(f"its memory {'grows' if self.memory > 0 else 'shrinks'}")
        if self.written is not None and self.written >= BYTES_MOVE:
            words.append(f"it writes {self.written / 1e6:.1f} MB/s")
        return tuple(words)

    @property
    def unread(self) -> tuple[str, ...]:
        """Names of the clocks beside the disk's that nobody read."""
        values = (("network", self.network), ("memory", self.memory))
        return tuple(name for name, value in values if value is None)


@dataclass(frozen=True, slots=True)
class Point:
    """One reading of the figures that clocks are made of; bytes, None where unknown."""

    at: float
    """Monotonic seconds."""
    done: int | None
    received: int | None = None
    memory: int | None = None
    calls: tuple[tuple[int, int, int], ...] | None = None
    """(pid, bytes read, bytes written so far) of each downloader."""


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
    received = _slope([(item.at, item.received) for item in points if item.received is not None])
    memory = _slope([(item.at, item.memory) for item in points if item.memory is not None])
    read, written = _calls(points)
    basis = "host" if received is not None else ""
    if received is not None and received < 0:
        received, basis = None, ""  # an interface went
    if received is None and read is not None and read >= BYTES_MOVE:
        received, basis = read, "downloader"
    return Clocks(rate(points)[0], received, memory, written, basis)


def _slope(known: Sequence[tuple[float, int]]) -> float | None:
    window = _newest(known, CLOCK_WINDOW_S)
    if len(window) < 2 or window[-1][0] <= window[0][0]:
        return None
    return (window[-1][1] - window[0][1]) / (window[-1][0] - window[0][0])


def _calls(points: Sequence[Point]) -> tuple[float | None, float | None]:
    """Bytes a second read and written by the processes that were there at both ends of the window."""
    known = [(item.at, {pid: (read, written) for pid, read, written in item.calls}) for item in points if item.calls]
    first = len(known) - 1
    while first > 0 and known[-1][0] - known[first - 1][0] <= CLOCK_WINDOW_S:
        first -= 1
    window = known[max(0, min(first, len(known) - 2)) :]
    if len(window) < 2 or window[-1][0] <= window[0][0]:
        return None, None
    before, after = window[0][1], window[-1][1]
    both = before.keys() & after.keys()
    span = window[-1][0] - window[0][0]
    if not both:
        return None, None
    read = sum(max(0, after[pid][0] - before[pid][0]) for pid in both)
    written = sum(max(0, after[pid][1] - before[pid][1]) for pid in both)
    return read / span, written / span


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
