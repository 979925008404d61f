"""One HTTP exchange with an engine: what came back, or how it failed below HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Transport(StrEnum):
    """How an HTTP exchange ended below HTTP."""

    ANSWERED = "answered"
    REFUSED = "refused"
    CONNECT_TIMEOUT = "connect timeout"
    READ_TIMEOUT = "read timeout"
    RESET = "reset"
    TRUNCATED = "truncated"
    TOO_LARGE = "too large"
    NOT_HTTP = "not http"
    UNREACHABLE = "unreachable"
    """The link to the host that asks is down: nothing is known about the engine."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One answer of the engine's HTTP server, or how it failed. Filled by `reach.engine_http`."""

    at: float
    """Console's monotonic time at the end of the exchange."""
    took: float
    """Seconds."""
    transport: Transport
    status: int | None = None
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    detail: str = ""

    def header(self, name: str) -> str:
        """The value of header `name`, whatever its case; empty where it is absent."""
        wanted = name.lower()
        return next((value for key, value in self.headers.items() if key.lower() == wanted), "")

    @property
    def media_type(self) -> str:
        """`text/plain` of `text/plain; version=0.0.4`, in lower case; empty where none was sent."""
        return (self.content_type or self.header("content-type")).partition(";")[0].strip().lower()

    @property
    def is_html(self) -> bool:
        """An HTML page: a proxy, a login or another program answers in place of the engine."""
        start = self.body[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        return start.startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml")) or (
            self.media_type in ("text/html", "application/xhtml+xml") and bool(start)
        )
