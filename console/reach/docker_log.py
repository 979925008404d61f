"""Docker's log stream taken apart: frames, lines of bounded length, times; and a buffer that drops when flooded."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from console.readings.exits import rfc3339

HEADER = 8
"""Bytes of a frame's header: stream, three zeros, length as big-endian 32 bits (Docker Engine API, attach)."""
MAX_LINE = 16_384
"""Bytes of a line that are kept; Docker itself cuts at 16 KiB."""
MAX_FRAME = 1 << 24
"""A longer frame is not a frame: the stream is read as plain text from there on."""
MAX_PENDING = 1000
"""Lines that wait to be shown; older ones are dropped and counted."""


class Demultiplexer:
    """Frames to (stream, payload) pieces, as they come. A stream that is not framed (a TTY's) passes as stream 1."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0
        self._stream = 1
        self._plain = False

    def feed(self, piece: bytes) -> Iterator[tuple[int, bytes]]:
        """The payloads in `piece`; one that is cut goes on in the next."""
        at = 0
        while at < len(piece):
            if self._left:
                part = piece[at : at + self._left]
                at += len(part)
                self._left -= len(part)
                yield self._stream, part
                continue
            if not self._plain:
                need = HEADER - len(self._head)
                self._head, at = self._head + piece[at : at + need], at + need
                self._plain = not _may_be_header(self._head)
            if self._plain:
                rest, self._head = self._head + piece[at:], b""
                yield 1, rest
                return
            if len(self._head) == HEADER:
                self._stream, self._left = self._head[0], int.from_bytes(self._head[4:], "big")
                self._head = b""


def _may_be_header(head: bytes) -> bool:
    if head[0] > 2 or head[1:4].strip(b"\0"):
        return False
    return len(head) < HEADER or int.from_bytes(head[4:], "big") <= MAX_FRAME


class Lines:
    """Bytes to whole lines, each kept up to `most` bytes."""

    def __init__(self, most: int = MAX_LINE) -> None:
        self._rest = bytearray()
        self._most = most

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that `piece` completes."""
        *whole, last = piece.split(b"\n")
        for part in whole:
            self._keep(part)
            line = bytes(self._rest)
            self._rest.clear()
            yield line
        self._keep(last)

    def _keep(self, part: bytes) -> None:
        room = self._most - len(self._rest)
        if room > 0:
            self._rest += part[:room]

    def last(self) -> bytes:
        """What is left without an end of line."""
        return bytes(self._rest)


@dataclass(frozen=True, slots=True)
class StampedLine:
    """One line as the daemon sent it. `nanos` is its time in Unix nanoseconds, 0 if it has none."""

    nanos: int
    text: bytes

    @property
    def wall(self) -> float | None:
        """Unix seconds of the daemon's clock."""
        return self.nanos / 1e9 if self.nanos else None


_STAMP = re.compile(
    rb"(?P<whole>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8})(?:\.(?P<part>[0-9]{1,9}))?(?P<zone>Z|[+-][0-9]{2}:[0-9]{2}) ?"
)


def stamped(line: bytes) -> StampedLine:
    """A line parted from the time that `timestamps=1` puts in front."""
    match = _STAMP.match(line)
    seconds = _seconds(match["whole"] + match["zone"]) if match else None
    if match is None or seconds is None:
        return StampedLine(0, line)
    return StampedLine(round(seconds) * 10**9 + int((match["part"] or b"0").ljust(9, b"0")), line[match.end() :])


@lru_cache(maxsize=64)
def _seconds(stamp: bytes) -> float | None:
    """Unix seconds of a whole second: the lines of a flood share it."""
    return rfc3339(stamp.decode("ascii"))


def api_time(nanos: int) -> str:
    """Unix nanoseconds as the API's `since` wants them: `seconds.nanoseconds`."""
    return f"{nanos // 10**9}.{nanos % 10**9:09d}"


class Pending:
    """Lines between the thread that reads and the loop that shows: the newest ones, and how many had to go."""

    def __init__(self, most: int = MAX_PENDING) -> None:
        self._lock = threading.Lock()
        self._lines: deque[StampedLine] = deque()
        self._most = most
        self.skipped = 0
        """Lines dropped so far."""

    def put(self, line: StampedLine) -> None:
        """Add the newest line, drop the oldest one that has no room."""
        with self._lock:
            self._lines.append(line)
            if len(self._lines) > self._most:
                self._lines.popleft()
                self.skipped += 1

    def take(self) -> list[StampedLine]:
        """All that waits, oldest first."""
        with self._lock:
            lines = list(self._lines)
            self._lines.clear()
        return lines
