"""Helpers of the tests of the lights: lights as they are in one situation each, and the state they add up to."""

from __future__ import annotations

from dataclasses import replace

from engine_captures import answered

from console.readings.answers import HttpAnswer, Transport
from console.readings.health import (
    HttpLight,
    HttpVerdict,
    LaneVerdict,
    Lights,
    ProcessLight,
    Progress,
    ProgressLight,
    ScrapeLight,
    judge,
)
from console.readings.scrape import Scrape, ScrapeVerdict, read_scrape
from console.readings.series import EngineKind

STALL = 15.0
UP = ProcessLight(expected=1, running=1, started_at=1000.0, id="c1")
OK = HttpLight(HttpVerdict.OK, 200, 0.003, ever_ok=True)
GOOD = ScrapeLight(ScrapeVerdict.OK, "", 40)
FLOWS = ProgressLight(Progress.MOVING, 500, 0.0, 66.3, 0.0, 3, 0)
PREFILL = replace(FLOWS, decode_tps=0.1, prefill_tps=2050.0, prefill_only=True, moving_for=45.0)
FROZEN = ProgressLight(Progress.FROZEN, 500, 41.0, 0.0, 0.0, 3, 2)
REST = ProgressLight(Progress.NO_WORK, 500, None, 0.0, 0.0, 0, 0)
HTML = b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>\n"


def probe(status: int, at: float = 0.0, took: float = 0.003, body: bytes = b"") -> HttpAnswer:
    return HttpAnswer(at, took, Transport.ANSWERED, status, body=body)


def state(
    process: ProcessLight = UP,
    http: HttpLight = OK,
    scrape: ScrapeLight = GOOD,
    progress: ProgressLight = FLOWS,
    engine: EngineKind = EngineKind.UNKNOWN,
    wall: float | None = 1600.0,
    booting: str = "",
) -> LaneVerdict:
    lights = Lights(process, http, scrape, progress)
    return judge(lights, stall_after=STALL, engine=engine, wall=wall, booting=booting)


def light(
    verdict: HttpVerdict, misses: int = 1, *, ever_ok: bool = True, took: float = 0.01, **more: object
) -> HttpLight:
    status = {HttpVerdict.UNAVAILABLE: 503, HttpVerdict.SERVER_ERROR: 500, HttpVerdict.OTHER_STATUS: 404}.get(verdict)
    return replace(HttpLight(verdict, status, took, misses, ever_ok, str(verdict)), **more)  # type: ignore[arg-type]


def read(body: bytes, at: float) -> Scrape:
    found = read_scrape(answered(body, at))
    assert found.verdict is ScrapeVerdict.OK
    return found
