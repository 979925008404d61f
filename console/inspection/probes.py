"""Captured probe series and HTTP answers, back into the answers that the readings take."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.inspection.arguments import Argument, InspectError
from console.readings.answers import HttpAnswer, Transport

MAX_PROBES = 100_000
_HEAD = re.compile(rb"\AHTTP/1\.[01] ([0-9]{3})[^\r\n]*(?:\r?\n|\Z)")
_WORDS = (
    ("refused", Transport.REFUSED),
    ("reset", Transport.RESET),
    ("disconnected", Transport.RESET),
    ("connect timeout", Transport.CONNECT_TIMEOUT),
    ("timed out", Transport.READ_TIMEOUT),
    ("timeout", Transport.READ_TIMEOUT),
    ("truncated", Transport.TRUNCATED),
    ("unreachable", Transport.UNREACHABLE),
)


@dataclass(frozen=True, slots=True)
class Probes:
    """A captured probe series by endpoint, oldest first; `at` is the file's own clock, seconds."""

    health: tuple[HttpAnswer, ...]
    metrics: tuple[HttpAnswer, ...]
    exit_code: int | None = None


def file_answer(argument: Argument, at: float) -> HttpAnswer:
    """A file as the answer to a request: a bare body (200, complete), or a whole HTTP/1 response with its head."""
    data = argument.read()
    match = _HEAD.match(data)
    if match is None:
        return HttpAnswer(at, 0.0, Transport.ANSWERED, 200, body=data)
    rest = data[match.end() :]
    blank = re.search(rb"(?:\A|\r?\n)\r?\n", rest)
    head, body = (rest[: blank.start()], rest[blank.end() :]) if blank else (rest, b"")
    headers = {}
    for line in head.decode("latin-1").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    kind = headers.get("content-type", "")
    return HttpAnswer(at, 0.0, Transport.ANSWERED, int(match[1]), kind, headers, body)


def read_probes(argument: Argument) -> Probes:
    """A probe series: TSV with `t_s code seconds` columns, or one JSON object a line. Raises InspectError."""
    rows: list[Mapping[str, Any]] = []
    for number, line in enumerate(argument.text().splitlines(), 1):
        if not line.strip() or line.startswith(("#", "t_s\t")):
            continue
        if len(rows) >= MAX_PROBES:
            raise InspectError(f"{argument.path}: more than {MAX_PROBES} probes")
        rows.append(_row(argument, number, line))
    health = [_probe(row) for row in rows if "status" in row and row.get("path", "/health") == "/health"]
    metrics = [_metrics(row) for row in rows if "status" in row and row.get("path") == "/metrics"]
    codes = [row["exit_code"] for row in rows if isinstance(row.get("exit_code"), int)]
    return Probes(
        tuple(item for item in health if item is not None),
        tuple(item for item in metrics if item is not None),
        codes[-1] if codes else None,
    )


def _row(argument: Argument, number: int, line: str) -> Mapping[str, Any]:
    where = f"{argument.path}:{number}"
    if line.startswith("{"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InspectError(f"{where}: not JSON: {error}") from error
        return row if isinstance(row, dict) else {}
    fields = line.split("\t")
    if len(fields) < 2:
        raise InspectError(f"{where}: expected `t_s code [seconds]` separated by tabs, or JSON")
    seconds = _seconds(fields[2]) if len(fields) > 2 else 0.0
    at = _seconds(fields[0])
    if at is None or seconds is None:
        raise InspectError(f"{where}: {fields[0]!r} or {fields[-1]!r} is no number of seconds")
    code: int | str = int(fields[1]) if fields[1].isdecimal() and len(fields[1]) == 3 else fields[1]
    return {"t": at, "status": code, "ms": seconds * 1000}


def _seconds(word: object) -> float | None:
    if isinstance(word, bool) or not isinstance(word, int | float | str):
        return None
    try:
        value = float(word)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def _probe(row: Mapping[str, Any], body: bytes = b"") -> HttpAnswer | None:
    """One probe; None for a row about something else (an event with a status of its own)."""
    at = _seconds(row.get("t"))
    took = (_seconds(row.get("took_ms", row.get("ms", 0))) or 0.0) / 1000
    status = row["status"]
    if at is None or ("path" not in row and "event" in row):
        return None
    if isinstance(status, int) and not isinstance(status, bool):
        return HttpAnswer(at, took, Transport.ANSWERED, status, body=body)
    words = str(status).lower()
    transport = next((kind for word, kind in _WORDS if word in words), Transport.NOT_HTTP)
    return HttpAnswer(at, took, transport, detail=str(status)[:200])


def _metrics(row: Mapping[str, Any]) -> HttpAnswer | None:
    """A /metrics probe that recorded only some values: the text that holds them."""
    values = row.get("values")
    known = values.items() if isinstance(values, dict) else ()
    lines = [f"{name} {value}\n" for name, value in known if _seconds(value) is not None]
    return _probe(row, "".join(lines).encode("utf-8", "replace"))
