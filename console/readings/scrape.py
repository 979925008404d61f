"""One answer of /metrics: the verdict on it, and the wanted series if it holds any that may be believed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from console.readings.answers import HttpAnswer, Transport
from console.readings.exposition import Sample, parse
from console.readings.series import KINDS, WANTED, EngineKind, Index, indexed

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a metrics body that are looked at."""


class ScrapeVerdict(StrEnum):
    """What came back from /metrics, in one word for the scrape light."""

    OK = "ok"
    OFF = "off"
    """404: the engine runs without --enable-metrics."""
    EMPTY = "empty"
    HTML = "html"
    NOT_METRICS = "not metrics"
    TRUNCATED = "truncated"
    TOO_LARGE = "too large"
    OTHER_ENGINE = "other engine"
    """Series of an engine kind other than the lane's."""
    NO_SERIES = "no engine series"
    HTTP_ERROR = "http error"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    RESET = "reset"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Scrape:
    """The wanted series of one answer, dated by the console's monotonic clock at the end of the answer."""

    at: float
    verdict: ScrapeVerdict
    detail: str
    engine: EngineKind
    samples: tuple[Sample, ...]
    """Empty unless the verdict is OK: nothing of a broken body is believed."""
    lines: int
    """Lines in the body."""
    bytes: int
    index: Index = field(init=False, repr=False, compare=False)
    """The samples by name."""
    memo: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)
    """What was worked out of this scrape before: the screen asks four times a second."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", indexed(self.samples))


_TRANSPORTS = {
    Transport.REFUSED: (ScrapeVerdict.REFUSED, "connection refused"),
    Transport.CONNECT_TIMEOUT: (ScrapeVerdict.TIMEOUT, "no connection in time"),
    Transport.READ_TIMEOUT: (ScrapeVerdict.TIMEOUT, "connected, no answer in time"),
    Transport.RESET: (ScrapeVerdict.RESET, "connection reset"),
    Transport.TRUNCATED: (ScrapeVerdict.TRUNCATED, "the connection ended inside the body"),
    Transport.TOO_LARGE: (ScrapeVerdict.TOO_LARGE, "the body is over the size limit"),
    Transport.NOT_HTTP: (ScrapeVerdict.NOT_METRICS, "the answer is not HTTP"),
    Transport.UNREACHABLE: (ScrapeVerdict.UNREACHABLE, "the link to the head is down"),
}
_STATUSES = {
    404: (ScrapeVerdict.OFF, "404: metrics are off (SGLang needs --enable-metrics)"),
    501: (ScrapeVerdict.OFF, "501: metrics are off (llama.cpp needs --metrics)"),
    401: (ScrapeVerdict.HTTP_ERROR, "401: /metrics wants an API key"),
    403: (ScrapeVerdict.HTTP_ERROR, "403: /metrics is forbidden"),
}
_LOOKS_LIKE_METRICS = re.compile(
    rb'^(?:\{"|# (?:HELP|TYPE) |[a-zA-Z_:][a-zA-Z0-9_:]*+(?:\{|[ \t]++[-+]?(?:[0-9]|\.[0-9]|[NnIi])))', re.MULTILINE
)
_LOOKED_AT = 64 * 1024


def read_scrape(answer: HttpAnswer, expected: EngineKind = EngineKind.UNKNOWN, *, whole: bool = False) -> Scrape:
    """Judge one answer of /metrics and read its series. Pure, never raises; may run in a thread.

    `expected` is the engine that the lane declares (UNKNOWN: told by the series). `whole` says that the body is known
    to be complete, as in a file: then a last line without line feed is read, otherwise the body counts as truncated,
    because a number cut short would look like a counter that fell.
    """
    refused = _refusal(answer, whole)
    if refused is not None:
        verdict, detail = refused
        return _bad(answer, verdict, detail)
    read = parse(answer.body, WANTED)
    if read.overflow:
        return _bad(answer, ScrapeVerdict.TOO_LARGE, "more wanted series than a lane can have", read.lines)
    kinds = _kinds(answer.body, read.samples)
    if not kinds:
        if _LOOKS_LIKE_METRICS.search(answer.body, 0, _LOOKED_AT):
            return _bad(answer, ScrapeVerdict.NO_SERIES, "metrics, but none of an engine", read.lines)
        return _bad(answer, ScrapeVerdict.NOT_METRICS, "the body is not metrics text", read.lines)
    if expected is not EngineKind.UNKNOWN and expected not in kinds:
        found = ", ".join(kinds)
        return _bad(answer, ScrapeVerdict.OTHER_ENGINE, f"series of {found}, the lane declares {expected}", read.lines)
    engine = expected if expected is not EngineKind.UNKNOWN else kinds[0]
    samples = tuple(item for item in read.samples if item.name.startswith((f"{engine}:", "process_")))
    detail = f"{read.malformed} unreadable lines" if read.malformed else ""
    return Scrape(answer.at, ScrapeVerdict.OK, detail, engine, samples, read.lines, read.bytes)


def _bad(answer: HttpAnswer, verdict: ScrapeVerdict, detail: str, lines: int | None = None) -> Scrape:
    body = answer.body
    counted = lines if lines is not None else body.count(b"\n") + (bool(body) and not body.endswith(b"\n"))
    return Scrape(answer.at, verdict, detail, EngineKind.UNKNOWN, (), counted, len(body))


def _refusal(answer: HttpAnswer, whole: bool) -> tuple[ScrapeVerdict, str] | None:
    """Why nothing of this answer may be believed, or None."""
    if answer.transport is not Transport.ANSWERED:
        verdict, detail = _TRANSPORTS[answer.transport]
        return verdict, answer.detail if verdict is ScrapeVerdict.UNREACHABLE and answer.detail else detail
    if answer.status != 200:
        return _STATUSES.get(answer.status or 0, (ScrapeVerdict.HTTP_ERROR, f"status {answer.status}"))
    body = answer.body
    told = answer.header("content-length").strip()
    plain = answer.header("content-encoding").strip().lower() in ("", "identity")
    if plain and told.isdecimal() and len(told) < 16 and int(told) > len(body):
        return ScrapeVerdict.TRUNCATED, f"{len(body)} of {int(told)} bytes came"
    if len(body) > MAX_BODY:
        return ScrapeVerdict.TOO_LARGE, f"{len(body)} bytes"
    if not body or body.isspace():
        return ScrapeVerdict.EMPTY, "200 with an empty body"
    if answer.is_html:
        return ScrapeVerdict.HTML, "an HTML page in place of metrics"
    return _unfinished(answer, whole)


def _unfinished(answer: HttpAnswer, whole: bool) -> tuple[ScrapeVerdict, str] | None:
    body = answer.body
    start = body[:64].lstrip()
    if (start.startswith((b"{", b"[")) and not start.startswith(b'{"')) or answer.media_type == "application/json":
        return ScrapeVerdict.NOT_METRICS, "JSON in place of metrics"
    if start.startswith(b'{"') and not _LOOKS_LIKE_METRICS.search(body, body.find(b"\n") + 1, _LOOKED_AT):
        return ScrapeVerdict.NOT_METRICS, "JSON in place of metrics"
    if answer.media_type == "application/openmetrics-text" and not body.rstrip().endswith(b"# EOF"):
        return ScrapeVerdict.TRUNCATED, "OpenMetrics text without its end mark"
    if not whole and not body.endswith(b"\n"):
        return ScrapeVerdict.TRUNCATED, "the body ends inside a line: its last number may be cut"
    return None


def _kinds(body: bytes, samples: Sequence[Sample]) -> tuple[EngineKind, ...]:
    """The engines whose series the body holds, the one with most wanted series first."""
    counts = {kind: sum(item.name.startswith(f"{kind}:") for item in samples) for kind in KINDS}
    found = [kind for kind in KINDS if counts[kind] or _has_prefix(body, kind)]
    return tuple(sorted(found, key=lambda kind: -counts[kind]))


def _has_prefix(body: bytes, kind: EngineKind) -> bool:
    forms = tuple(f"{kind}{mark}".encode() for mark in ":_")
    return body.startswith(forms) or any(body.find(b"\n" + form) >= 0 for form in forms)
