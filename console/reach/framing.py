"""Frames out of a sampler's bytes: what does not carry the stream's mark is noise; what is lost is counted."""

from __future__ import annotations

import json
import math
from typing import Any

from console.reach.link import Frame
from console.reach.looking import Looking
from console.sanitize import line

MOST_LINE = 2 << 20
"""Bytes of one line; a longer one is dropped."""
MOST_TEXT = 1 << 20
"""Characters of one text of a frame."""
_KINDS = frozenset({"node", "gpu", "facts", "look", "error"})
_NOISE_KEPT, _NOISE_SEEN = 3, 20
"""Unmarked lines that are kept, and that are looked at in one piece of the stream."""


class FrameReader:
    """Feed it bytes, take frames. Nothing that a host sends makes it raise or grow without bound.

    On the wire a frame is `MARK {"k": kind, "n": number within its kind, "m": monotonic, "w": wall, "b": begun,
    "t": {name: text}, "e": error, "s": source}`; one without `n` is not looked for when it is lost.
    `Frame.sequence` counts the frames that were sent, lost ones too. Of looks those are taken that `looking` knows.
    """

    def __init__(self, mark: str, looking: Looking | None = None) -> None:
        self._looking = looking or Looking()
        self._mark = mark.encode() + b" "
        self._buffer = bytearray()
        self._skipping = False
        self._ready: list[Frame] = []
        self._next: dict[str, int] = {}
        self._sequence = 0
        self._noise: list[str] = []
        self.flavour = ""
        """`python` or `sh` once the loader has said so."""
        self.lost = 0
        """Frames that were sent but never arrived whole."""

    @property
    def noise(self) -> str:
        """The last lines that came without the mark, as safe text: what a refusing shell said."""
        return " ".join(self._noise)

    def feed(self, data: bytes, received: float) -> None:
        """Take in bytes that came at console monotonic time `received`."""
        self._buffer += data
        end = self._buffer.rfind(b"\n")
        if end >= 0:
            rows = bytes(self._buffer[:end]).split(b"\n")
            del self._buffer[: end + 1]
            self._lines(rows[1:] if self._skipping else rows, received)
            self._skipping = False
        if len(self._buffer) > MOST_LINE:
            self._buffer.clear()
            self._skipping = True

    def take(self) -> list[Frame]:
        """The frames that are complete by now."""
        ready, self._ready = self._ready, []
        return ready

    def _lines(self, rows: list[bytes], received: float) -> None:
        """Only marked rows cost anything: of the others, which a host may send by the thousand, the last ones count."""
        for row in rows:
            if self._mark in row:
                self._marked(row, received)
        noise = [row for row in rows[-_NOISE_SEEN:] if self._mark not in row and row.strip()]
        words = [safe for row in noise if (safe := line(row, 200).strip())]
        self._noise = [*self._noise, *words][-_NOISE_KEPT:]

    def _marked(self, row: bytes, received: float) -> None:
        rest = row[row.rfind(self._mark) + len(self._mark) :].strip()
        if rest in (b"python", b"sh"):
            self.flavour = rest.decode()
        elif (frame := self._parsed(rest, received)) is not None:
            self._ready.append(frame)

    def _parsed(self, rest: bytes, received: float) -> Frame | None:
        try:
            raw = json.loads(rest.decode("utf-8", "replace"), strict=False)  # the sh script leaves tabs as they are
        except (ValueError, RecursionError):
            return None
        kind = raw.get("k") if isinstance(raw, dict) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            return None
        mono, wall = _number(raw.get("m")), _number(raw.get("w"))
        number = raw.get("n")
        if mono is None or wall is None:
            return None
        missed = self._count(kind, number if isinstance(number, int) else None)
        if missed and kind == "look":
            self._looking.renew()
        return Frame(
            kind=kind,
            sequence=self._sequence,
            host_mono=mono,
            host_wall=wall,
            received=received,
            texts=self._texts(kind, raw.get("t")),
            error=line(str(raw.get("e") or ""), 300),
            started=_number(raw.get("b")),
            source=line(str(raw.get("s") or ""), 60),
        )

    def _texts(self, kind: str, raw: Any) -> dict[str, str]:
        if kind == "look":
            return self._looking.answers(raw)
        texts = _texts(raw)
        return self._looking.named(raw) if kind == "error" and "look" in texts else texts

    def _count(self, kind: str, number: int | None) -> int:
        """How many frames of the kind are missing before this one."""
        if number is None:
            self._sequence += 1
            return 0
        expected = self._next.get(kind, number)
        missing = max(0, min(number - expected, 1_000_000))
        self.lost += missing
        self._sequence += 1 + missing
        self._next[kind] = number + 1
        return missing


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {line(name, 60): text[:MOST_TEXT] for name, text in value.items() if isinstance(text, str)}
