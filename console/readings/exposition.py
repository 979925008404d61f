"""Prometheus text exposition: the wanted series only, in bounded time and memory."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

MAX_SAMPLES = 20_000
"""Wanted series kept from one body; a body with more is reported as overflowing, never read in part."""
MAX_LABEL = 256
"""Characters kept of a label value; a longer one ends in a checksum so that two of them stay apart."""
MAX_NAME = 256
"""Bytes within which a sample name must end."""
MAX_VALUE = 96
"""Bytes read of what follows the labels: value and timestamp."""

_CACHED_HEAD = 1024
_CUT_BYTES = 4 * MAX_LABEL
# Possessive repeats: one pass, no backtracking stack, also over a label of megabytes full of escaped quotes.
_LABEL = re.compile(
    rb'[ \t]*+(?:([a-zA-Z_][a-zA-Z0-9_]*+)|"([^"\\]*+(?:\\.[^"\\]*+)*+)")[ \t]*+'
    rb'=[ \t]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t]*+(,?)',
    re.DOTALL,
)
_QUOTED_NAME = re.compile(rb'[ \t]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t]*+(,?)', re.DOTALL)
_CLOSE = re.compile(rb"[ \t]*+\}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = {"n": "\n", '"': '"', "\\": "\\"}

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of one scrape. `value` may be NaN (\"not measured\"): never treat it as 0."""

    name: str
    """Sample name with its prefix colon restored: `vllm:generation_tokens_total`."""
    labels: Labels
    """Sorted label pairs, values unescaped and cut at a fixed length; raw remote text, sanitise before showing."""
    value: float

    def label(self, name: str) -> str | None:
        """The value of label `name`, or None."""
        for key, value in self.labels:
            if key == name:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Exposition:
    """The wanted samples of one body and what was seen on the way."""

    samples: tuple[Sample, ...]
    lines: int
    """Lines in the body, also the unwanted and a last one without line feed."""
    bytes: int
    malformed: int
    """Lines of wanted series that could not be read."""
    overflow: bool
    """More than MAX_SAMPLES wanted series: `samples` is then empty."""
    terminated: bool
    """The body ends in a line feed, as the format demands (or is empty)."""


def parse(body: bytes, wanted: frozenset[str]) -> Exposition:
    """Read the samples whose name is in `wanted`. Never raises.

    `vllm:x`, `vllm_x` and every other first colon of a wanted name are treated as equal (OpenMetrics renames
    samples that way). The body is neither decoded nor copied; unwanted lines cost one search and one lookup.
    """
    table = _spellings(wanted)
    samples: list[Sample] = []
    lines = malformed = position = 0
    size = len(body)
    find = body.find
    while position < size:
        end = find(b"\n", position)
        if end < 0:
            end = size
        lines += 1
        start, position = position, end + 1
        if body[start : start + 1] == b"#":
            continue
        brace = find(b"{", start, min(end, start + MAX_NAME))
        name = table.get(body[start:brace]) if brace > start else None
        if name is None:
            found = _unusual(body, start, end, brace, table)
            if found is None:
                continue
            name, brace = found
        sample = _sample(name, body, brace, end)
        if sample is None:
            malformed += 1
        elif len(samples) >= MAX_SAMPLES:
            return Exposition((), body.count(b"\n") + (not body.endswith(b"\n")), size, malformed, True, True)
        else:
            samples.append(sample)
    return Exposition(tuple(samples), lines, size, malformed, False, not body or body.endswith(b"\n"))


@lru_cache(maxsize=8)
def _spellings(wanted: frozenset[str]) -> Mapping[bytes, str]:
    table = {name.encode(): name for name in wanted}
    table.update({name.replace(":", "_", 1).encode(): name for name in wanted})
    return MappingProxyType(table)


def _unusual(body: bytes, start: int, end: int, brace: int, table: Mapping[bytes, str]) -> tuple[str, int] | None:
    """Name and label position of a wanted line with blanks around its name, a quoted name or no labels."""
    head = body[start : brace if brace >= 0 else min(end, start + MAX_NAME)]
    words = head.split(None, 1)
    if not words:
        quoted = _QUOTED_NAME.match(body, brace + 1, min(end, brace + MAX_NAME)) if brace >= 0 else None
        name = table.get(quoted[1]) if quoted else None
        return None if name is None else (name, brace)
    name = table.get(words[0])
    if name is None:
        return None
    if brace >= 0 and len(words) == 1:
        return name, brace
    # No labels: the value begins after the name; a brace further on belongs to an exemplar.
    return name, -(body.index(words[0], start) + len(words[0])) - 1


def _sample(name: str, body: bytes, brace: int, end: int) -> Sample | None:
    if brace < 0:
        value = _value(body, -brace - 1, end)
        return None if value is None else Sample(name, (), value)
    close = body.rfind(b"}", brace, end)
    labels: Labels | None = None
    if 0 <= close < brace + _CACHED_HEAD:
        labels = _cached_labels(body[brace : close + 1])
    if labels is None:
        walked = _labels(body, brace, end)
        if walked is None:
            return None
        labels, close = walked
    value = _value(body, close + 1, end)
    return None if value is None else Sample(name, labels, value)


def _value(body: bytes, start: int, end: int) -> float | None:
    """The number after the labels; a timestamp may follow it, and an exemplar after `#`."""
    words = body[start : min(end, start + MAX_VALUE)].partition(b"#")[0].split()
    if not 1 <= len(words) <= 2 or b"_" in words[0]:
        return None
    try:
        if len(words) == 2:
            float(words[1])
        return float(words[0])
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _cached_labels(head: bytes) -> Labels | None:
    """Label sections repeat from scrape to scrape. None where `head` holds more than one section (an exemplar)."""
    walked = _labels(head, 0, len(head))
    return walked[0] if walked and walked[1] == len(head) - 1 else None


def _labels(body: bytes, brace: int, end: int) -> tuple[Labels, int] | None:
    """Labels between `brace` and their closing brace, and the position of that brace. None if it is not legal."""
    position = brace + 1
    pairs: list[tuple[str, str]] = []
    quoted = _QUOTED_NAME.match(body, position, end)
    more = True
    if quoted and not _LABEL.match(body, position, end):
        position, more = quoted.end(), bool(quoted[2])
    while more:
        match = _LABEL.match(body, position, end)
        if match is None:
            break
        name = match[1] if match[1] is not None else match[2][:MAX_NAME]
        pairs.append((name.decode("utf-8", "replace"), _text(body, match.start(3), match.end(3))))
        position, more = match.end(), bool(match[4])
    close = _CLOSE.match(body, position, end)
    return (tuple(sorted(pairs)), close.end() - 1) if close else None


def _text(body: bytes, start: int, end: int) -> str:
    """The unescaped label value, cut at MAX_LABEL characters."""
    raw = body[start : min(end, start + _CUT_BYTES)]
    cut = end - start > len(raw)
    if cut:
        raw = raw[: len(raw) - _trailing_backslashes(raw) % 2]
    text = raw.decode("utf-8", "replace")
    if "\\" in text:
        text = _ESCAPE.sub(lambda found: _PLAIN.get(found[1], found[0]), text)
    if cut or len(text) > MAX_LABEL:
        return f"{text[: MAX_LABEL - 9]}…{zlib.crc32(memoryview(body)[start:end]):08x}"
    return text


def _trailing_backslashes(raw: bytes) -> int:
    return len(raw) - len(raw.rstrip(b"\\"))
