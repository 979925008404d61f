"""What the health endpoint said a while ago, or has not said yet, is not what it says now. Pure."""

from __future__ import annotations

from dataclasses import replace

from console.readings.health import HttpLight, HttpVerdict

PROBE_LATE_S = 5.0
"""A health probe that waits for longer is shown as late: a healthy SGLang takes a little over one second."""


def not_too_old(http: HttpLight, age: float, most: float) -> HttpLight:
    """What health said `age` seconds ago; after more than `most` (the link was away) it says nothing any more."""
    if age <= most or http.verdict in (HttpVerdict.UNKNOWN, HttpVerdict.UNREACHABLE):
        return http
    return replace(http, verdict=HttpVerdict.UNKNOWN, status=None, detail=f"last answer {age:.0f} s ago")


def while_waiting(http: HttpLight, waited: float, *, first: bool) -> HttpLight:
    """A probe that is not answered after `waited` seconds says more than the 200 before it; `first`: there is none."""
    if waited >= PROBE_LATE_S and first:
        return replace(http, detail=f"asked, no answer for {waited:.0f} s")
    if waited < PROBE_LATE_S or http.verdict is not HttpVerdict.OK:
        return http
    late = f"no answer for {waited:.0f} s"
    return replace(http, verdict=HttpVerdict.TIMEOUT, status=None, misses=http.misses + 1, detail=late)
