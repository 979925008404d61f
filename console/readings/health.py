"""The HTTP light out of the health probes; the other lights and their sum can be imported from here too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from console.readings.answers import HttpAnswer as HttpAnswer
from console.readings.answers import Transport as Transport
from console.readings.lane_state import SLOW_503_S
from console.readings.lane_state import judge as judge
from console.readings.lights import HttpLight as HttpLight
from console.readings.lights import HttpVerdict as HttpVerdict
from console.readings.lights import LaneState as LaneState
from console.readings.lights import LaneVerdict as LaneVerdict
from console.readings.lights import Lights as Lights
from console.readings.lights import ProcessLight as ProcessLight
from console.readings.lights import Progress as Progress
from console.readings.lights import ProgressLight as ProgressLight
from console.readings.lights import ScrapeLight as ScrapeLight
from console.readings.progress import old_process as old_process
from console.readings.progress import progress_light as progress_light

_BELOW_HTTP = {
    Transport.REFUSED: (HttpVerdict.REFUSED, "connection refused"),
    Transport.CONNECT_TIMEOUT: (HttpVerdict.TIMEOUT, "no connection in time"),
    Transport.READ_TIMEOUT: (HttpVerdict.TIMEOUT, "connected, no answer in time"),
    Transport.RESET: (HttpVerdict.RESET, "connection reset"),
    Transport.TRUNCATED: (HttpVerdict.RESET, "the connection ended inside the answer"),
    Transport.TOO_LARGE: (HttpVerdict.OTHER_STATUS, "an answer far too large for a health check"),
    Transport.NOT_HTTP: (HttpVerdict.NOT_HTTP, "the answer is not HTTP"),
    Transport.UNREACHABLE: (HttpVerdict.UNREACHABLE, "the link to the head is down"),
}
_LLAMACPP_LOADS = b"Loading model"
"""In the body of llama.cpp's 503 until the model is loaded (its server's middleware)."""


def classify(answer: HttpAnswer) -> HttpLight:
    """One health probe by itself."""
    connected = answer.transport is not Transport.CONNECT_TIMEOUT
    if answer.transport is not Transport.ANSWERED:
        verdict, detail = _BELOW_HTTP[answer.transport]
        if answer.transport is Transport.UNREACHABLE and answer.detail:
            detail = answer.detail
        return HttpLight(verdict, None, answer.took, detail=detail, connected=connected)
    status = answer.status or 0
    if answer.is_html:
        verdict = HttpVerdict.UNAVAILABLE if status == 503 else HttpVerdict.SERVER_ERROR
        verdict = verdict if status >= 500 else HttpVerdict.OTHER_STATUS
        return HttpLight(verdict, status, answer.took, detail=f"{status} with an HTML page", html=True)
    if 200 <= status < 300:
        return HttpLight(HttpVerdict.OK, status, answer.took)
    if status == 503:
        loading = _LLAMACPP_LOADS in answer.body[:4096]
        detail = "503, loading its model" if loading else "503"
        return HttpLight(HttpVerdict.UNAVAILABLE, status, answer.took, detail=detail, loading=loading)
    verdict = HttpVerdict.SERVER_ERROR if 500 <= status < 600 else HttpVerdict.OTHER_STATUS
    return HttpLight(verdict, status, answer.took, detail=f"status {status}")


def http_light(
    probes: Sequence[HttpAnswer],
    *,
    started: float | None = None,
    previous: HttpLight | None = None,
    old_process: bool = False,
    down: bool = False,
) -> HttpLight:
    """The HTTP light over the recent probes, oldest first.

    `started` is the console-monotonic time of the head container's present start: probes sent before it are of
    another process and do not count. `old_process` says that the counters show the old process to answer still (see
    `progress.old_process`). `previous` is the last light: `ever_ok` is kept from it while `started` stays the same.
    `down` says that the link to the asking host is down: the probes are then of the past.
    """
    ever_ok = previous is not None and previous.ever_ok and _same(previous.started, started)
    if down or (probes and probes[-1].transport is Transport.UNREACHABLE):
        verdict, words = _BELOW_HTTP[Transport.UNREACHABLE]
        detail = words if down else classify(probes[-1]).detail
        return HttpLight(verdict, ever_ok=ever_ok, detail=detail, started=started)
    counted = [classify(item) for item in probes if started is None or item.at - item.took >= started]
    if not counted:
        detail = "no probe since the container started" if probes else "not asked yet"
        return HttpLight(ever_ok=ever_ok, detail=detail, started=started, just_started=bool(probes))
    newest = counted[-1]
    if newest.verdict is HttpVerdict.OK and old_process:
        detail = "200 from a process older than the container"
        return replace(newest, verdict=HttpVerdict.UNKNOWN, detail=detail, started=started, old_process=True)
    asked = [light.verdict is HttpVerdict.OK for light in counted if light.verdict is not HttpVerdict.UNREACHABLE]
    misses = asked[::-1].index(True) if any(asked) else len(asked)
    ever_ok = ever_ok or (any(asked) and not old_process)
    return replace(newest, misses=misses, ever_ok=ever_ok, started=started)


def refuses_at_once(answer: HttpAnswer) -> bool:
    """Whether it is a 503 that no generation was tried for: SGLang's while it starts or drains, llama.cpp's."""
    return answer.transport is Transport.ANSWERED and answer.status == 503 and answer.took < SLOW_503_S


def _same(one: float | None, other: float | None) -> bool:
    """Start times are set against a drifting clock: within a second they are the same start."""
    if one is None or other is None:
        return one is other
    return abs(one - other) < 1.0
