"""The HTTP light, the progress light and the lane's state: every trap, the captured deaths, and the eight faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from engine_captures import CAPTURES, DECODE_TPS, KV_SHARE, POOL, answered, failed, sglang_text, vllm_text

from console.inspection.arguments import Argument
from console.inspection.probes import Probes, read_probes
from console.readings.answers import HttpAnswer, Transport
from console.readings.health import (
    HttpLight,
    HttpVerdict,
    LaneState,
    LaneVerdict,
    Lights,
    ProcessLight,
    Progress,
    ProgressLight,
    ScrapeLight,
    classify,
    http_light,
    judge,
    old_process,
    progress_light,
)
from console.readings.scrape import Scrape, ScrapeVerdict, read_scrape
from console.readings.series import EngineKind
from console.readings.throughput import throughput

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


# The HTTP light


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (probe(200), HttpVerdict.OK),
        (probe(503), HttpVerdict.UNAVAILABLE),
        (probe(503, body=HTML), HttpVerdict.UNAVAILABLE),
        (probe(500), HttpVerdict.SERVER_ERROR),
        (probe(504, body=HTML), HttpVerdict.SERVER_ERROR),
        (probe(404), HttpVerdict.OTHER_STATUS),
        (probe(401), HttpVerdict.OTHER_STATUS),
        (probe(307), HttpVerdict.OTHER_STATUS),
        (probe(200, body=HTML), HttpVerdict.OTHER_STATUS),
        (failed(Transport.REFUSED), HttpVerdict.REFUSED),
        (failed(Transport.CONNECT_TIMEOUT), HttpVerdict.TIMEOUT),
        (failed(Transport.READ_TIMEOUT), HttpVerdict.TIMEOUT),
        (failed(Transport.RESET), HttpVerdict.RESET),
        (failed(Transport.TRUNCATED), HttpVerdict.RESET),
        (failed(Transport.TOO_LARGE), HttpVerdict.OTHER_STATUS),
        (failed(Transport.NOT_HTTP), HttpVerdict.NOT_HTTP),
        (failed(Transport.UNREACHABLE), HttpVerdict.UNREACHABLE),
    ],
)
def test_each_probe_has_its_word(answer: HttpAnswer, verdict: HttpVerdict) -> None:
    found = classify(answer)
    assert found.verdict is verdict
    assert found.html is answer.is_html
    assert found.connected is (answer.transport is not Transport.CONNECT_TIMEOUT)
    assert bool(found.detail) is (verdict is not HttpVerdict.OK)


def test_misses_are_counted_from_the_last_200() -> None:
    probes = [probe(200, 0), probe(503, 2), failed(Transport.READ_TIMEOUT, 4), probe(503, 6)]
    assert http_light(probes[:1]).misses == 0
    assert http_light(probes).misses == 3
    assert http_light(probes[1:]).misses == 3
    assert not http_light(probes[1:]).ever_ok
    assert http_light([*probes, probe(200, 8)]).misses == 0


def test_a_dead_link_is_no_miss() -> None:
    probes = [probe(200, 0), probe(503, 2), failed(Transport.UNREACHABLE, 4)]
    found = http_light(probes)
    assert (found.verdict, found.misses) == (HttpVerdict.UNREACHABLE, 0)
    assert http_light([*probes, probe(503, 6)]).misses == 2
    assert http_light(probes[:1], down=True).verdict is HttpVerdict.UNREACHABLE


def test_a_200_is_remembered_until_the_container_starts_again() -> None:
    first = http_light([probe(200, 10)], started=5.0)
    assert first.ever_ok
    later = http_light([failed(Transport.REFUSED, 99)], started=5.2, previous=first)
    assert later.ever_ok
    again = http_light([probe(200, 10), failed(Transport.REFUSED, 99)], started=98.0, previous=later)
    assert (again.ever_ok, again.misses, again.verdict) == (False, 1, HttpVerdict.REFUSED)


def test_a_200_sent_before_the_container_started_does_not_count() -> None:
    found = http_light([probe(200, 10.0, took=1.0)], started=9.5)
    assert (found.verdict, found.ever_ok, found.just_started) == (HttpVerdict.UNKNOWN, False, True)
    assert http_light([], started=9.5).just_started is False
    assert http_light([probe(200, 10.0, took=0.1)], started=9.5).ever_ok


def test_the_old_engines_200_does_not_count() -> None:
    """A container starts while the engine before it still answers: its counters go on across the start."""
    scrapes = [read(sglang_text(at), at) for at in (1.0, 2.0, 3.0, 4.0)]
    assert old_process(scrapes, 2.5)
    found = http_light([probe(200, 3.5)], started=2.5, old_process=True)
    assert (found.verdict, found.ever_ok, found.old_process) == (HttpVerdict.UNKNOWN, False, True)
    verdict = state(http=found)
    assert verdict.state is LaneState.BOOTING
    assert "the engine before it" in verdict.why


def test_a_process_whose_counters_started_again_is_the_new_one() -> None:
    old = [read(sglang_text(at), at) for at in (1.0, 2.0)]
    assert not old_process([*old, read(sglang_text(0.0), 3.0), read(sglang_text(500.0), 4.0)], 2.5)
    assert not old_process(old, 2.5)
    assert not old_process(old, 0.5)
    assert not old_process(old, None)
    assert not old_process([*old, read_scrape(answered(b"", 3.0))], 2.5)
    started = vllm_text(9.0).replace(b"1760770000", b"1760779999")
    assert not old_process([read(vllm_text(1.0), 1.0), read(started, 9.0)], 2.5)


# Progress


def read(body: bytes, at: float) -> Scrape:
    found = read_scrape(answered(body, at))
    assert found.verdict is ScrapeVerdict.OK
    return found


def progress(scrapes: Sequence[Scrape], now: float | None = None, **more: object) -> ProgressLight:
    return progress_light(scrapes, scrapes[-1].at if now is None else now, STALL, **more)  # type: ignore[arg-type]


def hung(text: object, moving: int, frozen: int) -> list[Scrape]:
    """`moving` scrapes a second apart with movement, then `frozen` more without."""
    assert callable(text)
    return [read(text(float(min(at, moving))), float(at)) for at in range(moving + frozen + 1)]


@pytest.mark.parametrize("text", [sglang_text, vllm_text])
def test_work_without_a_step_is_frozen_after_the_stall_time(text: object) -> None:
    before = progress(hung(text, 20, 14))
    assert (before.progress, before.frozen_for) == (Progress.MOVING, 14)
    assert not before.prefill_only
    after = progress(hung(text, 20, 15))
    assert (after.progress, after.frozen_for, after.decode_tps) == (Progress.FROZEN, 15, 0.0)
    assert progress(hung(text, 20, 300)).frozen_for == 300


def test_moving() -> None:
    found = progress(hung(vllm_text, 20, 0))
    assert (found.progress, found.frozen_for, found.running) == (Progress.MOVING, 0, 3)
    assert found.decode_tps == pytest.approx(DECODE_TPS)


def test_one_scrape_proves_nothing() -> None:
    found = progress(hung(vllm_text, 0, 0))
    assert (found.progress, found.frozen_for) == (Progress.UNKNOWN, 0)


def test_standing_still_without_work_is_rest() -> None:
    scrapes = [read(sglang_text(50, running=0), float(at)) for at in range(40)]
    found = progress(scrapes)
    assert (found.progress, found.frozen_for) == (Progress.NO_WORK, None)
    assert state(progress=found).state is LaneState.IDLE


def test_the_stall_begins_with_the_work_not_with_the_rest_before_it() -> None:
    rest = [read(vllm_text(50, running=0), float(at)) for at in range(40)]
    hung_now = [read(vllm_text(50, running=0, waiting=2), 40.0 + at) for at in range(21)]
    found = progress([*rest, *hung_now])
    assert (found.progress, found.frozen_for) == (Progress.FROZEN, 20)


def test_waiting_with_nothing_running_is_stuck_even_if_empty_steps_are_counted() -> None:
    scrapes = [read(vllm_text(at, running=0, waiting=6 + at, decode=0), float(at)) for at in range(20)]
    found = progress(scrapes)
    assert (found.progress, found.frozen_for) == (Progress.FROZEN, 19)
    assert state(progress=found).state is LaneState.STALLED


def test_a_growing_pool_is_a_prefill_in_chunks() -> None:
    """vLLM counts a prompt when it is done; until then only the pool's use moves."""
    scrapes = [read(vllm_text(50).replace(b"0.4375", f"{0.1 + at / 1000}".encode()), float(at)) for at in range(31)]
    found = progress(scrapes)
    assert (found.progress, found.prefill_only, found.moving_for) == (Progress.MOVING, True, 30)
    assert state(progress=found).state is LaneState.BUSY


def test_prefill_only() -> None:
    decoding = [read(sglang_text(at, prefill=0), float(at)) for at in range(10)]
    still = 10 * DECODE_TPS - DECODE_TPS
    reading = [
        read(sglang_text(9, decode=still / 9).replace(b"5000.0", f"{5000 + 2050 * at}".encode()), 9.0 + at)
        for at in range(1, 46)
    ]
    found = progress([*decoding, *reading])
    assert (found.progress, found.prefill_only, found.moving_for) == (Progress.MOVING, True, 45)
    assert found.prefill_tps == pytest.approx(2050)


def test_no_step_yet_with_and_without_work() -> None:
    text = "vllm:iteration_tokens_total_count 0\nvllm:generation_tokens_total 0\nvllm:num_requests_running {0}\n"
    idle = [read(text.format(0).encode(), float(at)) for at in range(30)]
    work = [read(text.format(8).encode(), float(at)) for at in range(30)]
    assert (progress(idle).progress, progress(idle).frozen_for) == (Progress.NO_STEP_YET, None)
    assert (progress(work).progress, progress(work).frozen_for) == (Progress.NO_STEP_YET, 29)
    assert state(progress=progress(idle)).state is LaneState.READY
    assert state(progress=progress(work)).state is LaneState.READY
    assert state(progress=replace(progress(work), frozen_for=601.0)).state is LaneState.STALLED


def test_own_health_probes_are_no_work() -> None:
    """SGLang's /health is a generation: it shows as one running request and a token or two."""
    scrapes = [read(sglang_text(at / 500, running=int(at % 10 == 0)), float(at)) for at in range(31)]
    probes = [probe(200, at + 0.5, took=1.0) for at in range(0, 31, 10)]
    assert scrapes[-1].at == 30.0
    assert progress(scrapes, probes=probes).progress is Progress.NO_WORK
    assert progress(scrapes, probes=probes[:-1], probing_since=29.5).progress is Progress.NO_WORK
    assert progress(scrapes, probes=probes[:-1]).progress is Progress.MOVING


def test_own_probes_of_vllm_make_no_request() -> None:
    scrapes = hung(vllm_text, 20, 20)
    assert progress(scrapes, probes=[probe(200, 40.5, took=1.0)]).progress is Progress.FROZEN


def test_a_counter_that_moves_at_request_end_needs_longer() -> None:
    text = b"sglang:generation_tokens_total 500\nsglang:prompt_tokens_total 5\nsglang:num_running_reqs 2\n"
    short = progress([read(text, float(at)) for at in range(0, 60, 5)])
    assert (short.progress, short.live_steps) == (Progress.UNKNOWN, False)
    assert state(progress=short).state is LaneState.BLIND
    assert progress([read(text, float(at)) for at in range(0, 65, 5)]).progress is Progress.FROZEN


def test_one_data_parallel_engine_that_stands_still_is_named() -> None:
    def both(at: float) -> bytes:
        rows = []
        for engine, moved in ((0, at), (1, min(at, 5.0))):
            rows += [
                f'vllm:num_requests_running{{engine="{engine}"}} 3\n',
                f'vllm:generation_tokens_total{{engine="{engine}"}} {100 + 30 * moved}\n',
                f'vllm:iteration_tokens_total_count{{engine="{engine}"}} {10 + moved}\n',
            ]
        return "".join(rows).encode()

    scrapes = [read(both(float(at)), float(at)) for at in range(31)]
    found = progress(scrapes)
    assert (found.progress, found.frozen_ranks) == (Progress.MOVING, ("engine 1 (3 running, 25 s)",))
    assert state(progress=found).state is LaneState.DEGRADED
    assert progress(scrapes[:15]).frozen_ranks == ()


def test_a_newest_scrape_that_failed_or_is_old_proves_nothing() -> None:
    scrapes = hung(vllm_text, 20, 0)
    assert progress([*scrapes, read_scrape(answered(b"", 21.0))]).progress is Progress.UNKNOWN
    assert progress(scrapes, now=scrapes[-1].at + STALL + 0.1).progress is Progress.UNKNOWN
    assert progress_light([], 0.0, STALL).progress is Progress.UNKNOWN


def test_a_missed_scrape_does_not_end_a_stall() -> None:
    scrapes = hung(vllm_text, 20, 20)
    scrapes[-3] = read_scrape(failed(Transport.READ_TIMEOUT, scrapes[-3].at))
    assert progress(scrapes).frozen_for == 20


def test_start_up_constants_alone_are_not_live() -> None:
    found = progress([read(b"sglang:max_total_num_tokens 6198016\n", float(at)) for at in range(5)])
    assert (found.progress, found.live_gauges) == (Progress.UNKNOWN, False)
    verdict = state(progress=found)
    assert verdict.state is LaneState.BLIND
    assert "rank above 0" in verdict.why


# The state table


@pytest.mark.parametrize(
    ("verdict", "expected", "word"),
    [
        (state(), LaneState.SERVING, "tokens flow"),
        (state(progress=replace(FLOWS, frozen_for=12.0)), LaneState.SERVING, "12 s ago"),
        (state(progress=REST), LaneState.IDLE, "no requests"),
        (state(progress=PREFILL), LaneState.BUSY, "prefill moves for 45 s"),
        (state(progress=FROZEN), LaneState.STALLED, "no step for 41 s with 3 running, 2 waiting, health says 200"),
        (state(progress=replace(FLOWS, restarted=True)), LaneState.SERVING, "the engine was restarted"),
        (state(progress=ProgressLight()), LaneState.UNKNOWN, "no current reading"),
        (
            state(progress=replace(FROZEN, progress=Progress.UNKNOWN, frozen_for=3.0)),
            LaneState.UNKNOWN,
            "3 s of watching",
        ),
        # A worker rank dead behind a 200, whatever flows
        (state(ProcessLight(4, 3, ("spark-2 exited 137 (OOM-killed)",))), LaneState.DEGRADED, "spark-2 exited 137"),
        (state(ProcessLight(4, 3, ("spark-2 exited 137",)), progress=FROZEN), LaneState.DEGRADED, "spark-2"),
        (state(ProcessLight(4, 3, ("spark-2 exited 1",)), light(HttpVerdict.REFUSED)), LaneState.DOWN, "refused"),
        (
            state(ProcessLight(4, 3, ("spark-2 no container",)), light(HttpVerdict.TIMEOUT)),
            LaneState.DOWN,
            "no container",
        ),
        # Exited (0) is a crash
        (state(ProcessLight(1, 0, ("spark-0 exited 0",)), light(HttpVerdict.REFUSED)), LaneState.DOWN, "exited 0"),
        (state(ProcessLight(1, 0, ("spark-0 exited 0",))), LaneState.DOWN, "something else answers"),
        (state(ProcessLight(2, 0, ("b exited 1",), ("a: host unreachable",))), LaneState.DEGRADED, "b exited 1"),
        (state(replace(UP, paused=("spark-0",), running=0), light(HttpVerdict.TIMEOUT)), LaneState.PAUSED, "spark-0"),
        # The link to the head is down: unknown, never down
        (state(http=light(HttpVerdict.UNREACHABLE)), LaneState.UNKNOWN, "link to the head"),
        (
            state(ProcessLight(2, 0, ("spark-1 exited 1",), ("spark-0: x",)), light(HttpVerdict.UNREACHABLE)),
            LaneState.UNKNOWN,
            "spark-1 exited 1",
        ),
        (state(http=HttpLight()), LaneState.UNKNOWN, "not asked yet"),
        # Refused
        (state(http=light(HttpVerdict.REFUSED, ever_ok=False)), LaneState.BOOTING, "not answered since its start"),
        (state(http=light(HttpVerdict.REFUSED)), LaneState.DOWN, "has served"),
        (state(http=light(HttpVerdict.REFUSED, ever_ok=False), wall=9000.0), LaneState.DOWN, "longer than any boot"),
        (state(http=light(HttpVerdict.REFUSED, ever_ok=False), wall=None), LaneState.BOOTING, "loading"),
        (state(ProcessLight(), light(HttpVerdict.REFUSED, ever_ok=False)), LaneState.DOWN, "refused"),
        (
            state(ProcessLight(1, 0, (), ("a: no socket",)), light(HttpVerdict.REFUSED, ever_ok=False)),
            LaneState.DOWN,
            "containers unread (a: no socket)",
        ),
        (
            state(ProcessLight(), light(HttpVerdict.REFUSED), booting="loading weights"),
            LaneState.BOOTING,
            "loading weights",
        ),
        (state(http=HttpLight(just_started=True)), LaneState.BOOTING, "just started"),
        # Reset
        (state(http=light(HttpVerdict.RESET)), LaneState.DEGRADED, "reset one"),
        (state(http=light(HttpVerdict.RESET, 2)), LaneState.DOWN, "reset"),
        (state(http=light(HttpVerdict.RESET, ever_ok=False)), LaneState.BOOTING, "loading"),
        # 503: SGLang starting, draining, late behind a prefill, hung; vLLM dead
        (state(http=light(HttpVerdict.UNAVAILABLE, ever_ok=False), progress=REST), LaneState.BOOTING, "503"),
        (state(http=light(HttpVerdict.UNAVAILABLE)), LaneState.DRAINING, "3 running go on"),
        (
            state(http=light(HttpVerdict.UNAVAILABLE), engine=EngineKind.VLLM),
            LaneState.DEGRADED,
            "although tokens flow",
        ),
        (state(http=light(HttpVerdict.UNAVAILABLE, took=20.0)), LaneState.DEGRADED, "although tokens flow"),
        (state(http=light(HttpVerdict.UNAVAILABLE, 5, took=20.0), progress=PREFILL), LaneState.BUSY, "late behind it"),
        (state(http=light(HttpVerdict.UNAVAILABLE, took=20.0), progress=FROZEN), LaneState.STALLED, "health says 503"),
        (state(http=light(HttpVerdict.UNAVAILABLE, took=20.0), progress=REST), LaneState.DEGRADED, "miss 1 of 3"),
        (
            state(http=light(HttpVerdict.UNAVAILABLE, 3, took=20.0), progress=REST),
            LaneState.STALLED,
            "not even a test token",
        ),
        (state(http=light(HttpVerdict.UNAVAILABLE, 3), progress=REST), LaneState.DOWN, "3 times"),
        (
            state(http=light(HttpVerdict.UNAVAILABLE), progress=ProgressLight(), engine=EngineKind.VLLM),
            LaneState.DOWN,
            "vLLM's engine process is dead",
        ),
        # Any 5xx is unhealthy
        (state(http=light(HttpVerdict.SERVER_ERROR)), LaneState.DEGRADED, "although tokens flow"),
        (state(http=light(HttpVerdict.SERVER_ERROR), progress=REST), LaneState.DEGRADED, "once"),
        (state(http=light(HttpVerdict.SERVER_ERROR, 2), progress=REST), LaneState.DOWN, "2 times"),
        (state(http=light(HttpVerdict.SERVER_ERROR, 2), progress=FROZEN), LaneState.STALLED, "41 s"),
        # Time-outs: a busy engine is late
        (state(http=light(HttpVerdict.TIMEOUT, 2)), LaneState.SERVING, "2 health probes late"),
        (state(http=light(HttpVerdict.TIMEOUT, 3)), LaneState.DEGRADED, "although tokens flow"),
        (state(http=light(HttpVerdict.TIMEOUT, 9), progress=PREFILL), LaneState.BUSY, "prefill"),
        (state(http=light(HttpVerdict.TIMEOUT), progress=FROZEN), LaneState.STALLED, "41 s"),
        (state(http=light(HttpVerdict.TIMEOUT), progress=REST), LaneState.DEGRADED, "1 health probes timed out"),
        (state(http=light(HttpVerdict.TIMEOUT, 3), progress=ProgressLight()), LaneState.STALLED, "nothing is answered"),
        (state(http=light(HttpVerdict.TIMEOUT, 3, connected=False), progress=REST), LaneState.DOWN, "no connection"),
        (
            state(http=light(HttpVerdict.TIMEOUT, 3, ever_ok=False), progress=ProgressLight()),
            LaneState.BOOTING,
            "no answer",
        ),
        # Something else answers
        (state(http=light(HttpVerdict.NOT_HTTP)), LaneState.DOWN, "does not speak HTTP"),
        (state(http=light(HttpVerdict.OTHER_STATUS)), LaneState.DEGRADED, "metrics say moving"),
        (state(http=light(HttpVerdict.OTHER_STATUS), progress=FROZEN), LaneState.STALLED, "41 s"),
        (
            state(http=light(HttpVerdict.OTHER_STATUS, html=True), scrape=ScrapeLight(ScrapeVerdict.HTML, "x")),
            LaneState.DOWN,
            "in place of the engine",
        ),
        (
            state(http=light(HttpVerdict.OTHER_STATUS), scrape=ScrapeLight(ScrapeVerdict.OFF, "x")),
            LaneState.UNKNOWN,
            "no metrics (off)",
        ),
        # 200, and metrics that say nothing
        (state(scrape=ScrapeLight(ScrapeVerdict.OFF, "404: metrics are off")), LaneState.BLIND, "metrics are off"),
        (
            state(scrape=ScrapeLight(ScrapeVerdict.OFF, "404"), engine=EngineKind.SGLANG),
            LaneState.BLIND,
            "a rank above 0, which always says 200",
        ),
        (state(scrape=ScrapeLight(ScrapeVerdict.HTTP_ERROR, "status 500")), LaneState.BLIND, "status 500"),
        (state(scrape=ScrapeLight(ScrapeVerdict.NO_SERIES, "none")), LaneState.BLIND, "none"),
        (state(scrape=ScrapeLight(ScrapeVerdict.TIMEOUT, "late")), LaneState.DEGRADED, "metrics fail: late"),
        (state(scrape=ScrapeLight(ScrapeVerdict.REFUSED, "no")), LaneState.DEGRADED, "metrics fail"),
        (state(scrape=ScrapeLight()), LaneState.UNKNOWN, "not read yet"),
        (
            state(scrape=ScrapeLight(ScrapeVerdict.OTHER_ENGINE, "series of sglang")),
            LaneState.DEGRADED,
            "another engine",
        ),
        (state(ProcessLight(4, 1, (), ("b: x", "c: y", "d: z"))), LaneState.SERVING, "unread on 3 hosts"),
    ],
    ids=lambda value: value.why if isinstance(value, LaneVerdict) else "",
)
def test_state(verdict: LaneVerdict, expected: LaneState, word: str) -> None:
    assert verdict.state is expected
    assert word in verdict.why


@pytest.mark.parametrize("http", list(HttpVerdict))
@pytest.mark.parametrize("scrape", list(ScrapeVerdict))
@pytest.mark.parametrize("moves", [FLOWS, FROZEN, REST, PREFILL, ProgressLight()])
def test_a_dead_rank_is_never_serving_and_a_dead_link_never_down(
    http: HttpVerdict, scrape: ScrapeVerdict, moves: ProgressLight
) -> None:
    """Over the whole table: one sentence each, no serving over a dead rank or a freeze, no DOWN over a dead link."""
    good = (LaneState.SERVING, LaneState.IDLE, LaneState.BUSY, LaneState.READY)
    for misses in (0, 1, 5):
        alive = state(UP, light(http, misses), ScrapeLight(scrape, "d"), moves)
        dead = state(ProcessLight(4, 3, ("spark-2 exited 1",)), light(http, misses), ScrapeLight(scrape, "d"), moves)
        assert alive.why
        assert "\n" not in alive.why
        assert dead.state not in good
        assert "spark-2 exited 1" in dead.why
        if moves is FROZEN:
            assert alive.state not in good
        if http is HttpVerdict.UNREACHABLE:
            assert (alive.state, dead.state) == (LaneState.UNKNOWN, LaneState.UNKNOWN)
        if alive.state is LaneState.SERVING:
            assert moves is FLOWS


# Captured boots and deaths


def captured(name: str) -> Probes:
    return read_probes(Argument("", CAPTURES / name))


def until(told: Probes, at: float, process: ProcessLight = UP, stall: float = STALL) -> LaneVerdict:
    """The state at second `at` of a captured series."""
    probes = [item for item in told.health if item.at <= at]
    scrapes = [read_scrape(item) for item in told.metrics if item.at <= at]
    lit = ScrapeLight(scrapes[-1].verdict, scrapes[-1].detail) if scrapes else ScrapeLight()
    moved = progress_light(scrapes, scrapes[-1].at, stall) if scrapes else ProgressLight()
    lights = Lights(process, http_light(probes), lit, moved)
    return judge(lights, stall_after=stall, engine=EngineKind.VLLM, wall=1100.0)


@pytest.mark.parametrize(
    ("name", "ready"),
    [
        ("vllm_health_boot.jsonl", 119.94),
        ("vllm_health_boot_spec.jsonl", 70.46),
        ("vllm_health_boot_2api.jsonl", 83.06),
        ("vllm_health_boot_dp2.jsonl", 132.18),
    ],
)
def test_a_vllm_boot_is_refused_and_then_200(name: str, ready: float) -> None:
    told = captured(name)
    assert [classify(item).verdict for item in told.health] == [HttpVerdict.REFUSED, HttpVerdict.OK]
    assert until(told, ready - 0.01).state is LaneState.BOOTING
    assert until(told, ready).why == "health is 200, metrics are not read yet"


def test_an_sglang_boot_is_refused_503_and_then_200() -> None:
    probes = [failed(Transport.REFUSED, 1), probe(503, 2), probe(503, 3), probe(200, 5, took=1.0)]
    progress_of = {1: ProgressLight(), 4: replace(REST, progress=Progress.NO_STEP_YET, steps=None)}
    states = [
        state(http=http_light(probes[:count]), progress=progress_of.get(count, REST), engine=EngineKind.SGLANG).state
        for count in range(1, 5)
    ]
    assert states == [LaneState.BOOTING, LaneState.BOOTING, LaneState.BOOTING, LaneState.READY]


def test_a_captured_hang_is_200_throughout() -> None:
    told = captured("vllm_hang_sigstop.jsonl")
    assert {classify(item).verdict for item in told.health} == {HttpVerdict.OK}
    assert until(told, 3.06, stall=5.0).state is LaneState.SERVING
    assert until(told, 9.13, stall=5.0).state is LaneState.SERVING
    stalled = until(told, 11.15, stall=5.0)
    assert stalled == LaneVerdict(LaneState.STALLED, "no step for 6 s with 1 running, health says 200")
    assert until(told, 17.72, stall=5.0).state is LaneState.SERVING
    assert (
        until(told, 27.0, stall=5.0).state is LaneState.IDLE or until(told, 27.0, stall=5.0).state is LaneState.SERVING
    )


def test_a_captured_sigterm_under_load() -> None:
    told = captured("vllm_sigterm_health.jsonl")
    assert [classify(item).verdict for item in told.health] == ["ok", "503", "reset", "refused"]
    assert until(told, 3.93).state is LaneState.DOWN
    assert until(told, 7.0) == LaneVerdict(
        LaneState.DOWN, "connection refused though the container runs and has served: the engine is gone"
    )
    gone = until(told, 7.0, ProcessLight(1, 0, ("station exited 0",)))
    assert (gone.state, "exited 0" in gone.why) == (LaneState.DOWN, True)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("vllm_enginecore_sigkill.jsonl", 0, ["ok", "refused"]),
        ("vllm_apiserver1_sigkill.jsonl", 1, ["ok", "timeout", "reset", "refused"]),
        ("vllm_dp1_core_sigkill.jsonl", 1, ["ok", "reset", "refused"]),
    ],
)
def test_captured_kills_end_down(name: str, code: int, words: list[str]) -> None:
    told = captured(name)
    assert told.exit_code == code
    assert [classify(item).verdict for item in told.health] == words
    assert until(told, 60.0).state is LaneState.DOWN
    dead = until(told, 60.0, ProcessLight(1, 0, (f"station exited {code}",)))
    assert (dead.state, f"exited {code}" in dead.why) == (LaneState.DOWN, True)


def test_one_late_probe_of_a_dying_server_is_not_yet_down() -> None:
    verdict = until(captured("vllm_apiserver1_sigkill.jsonl"), 5.2)
    assert (verdict.state, verdict.why) == (LaneState.DEGRADED, "1 health probes timed out")


# The eight faults, on an endpoint whose truth is known


def watched(faulty: list[tuple[HttpAnswer, HttpAnswer]], kind: EngineKind) -> tuple[LaneVerdict, Lights, list[Scrape]]:
    """30 good seconds of the endpoint, then the given pairs of health and metrics answers, one second apart."""
    text = sglang_text if kind is EngineKind.SGLANG else vllm_text
    scrapes = [read_scrape(answered(text(float(at)), float(at)), kind) for at in range(31)]
    found = throughput(scrapes)
    assert found.decode_tps == pytest.approx(DECODE_TPS)
    assert (found.kv.tokens, found.kv.used_fraction, found.kv.used_tokens) == (POOL, KV_SHARE, POOL * KV_SHARE)
    probes = [probe(200, float(at)) for at in range(0, 31, 2)]
    for second, (health, metrics) in enumerate(faulty, 31):
        probes.append(replace(health, at=float(second)))
        scrapes.append(read_scrape(replace(metrics, at=float(second)), kind))
    lit = ScrapeLight(scrapes[-1].verdict, scrapes[-1].detail, len(scrapes[-1].samples))
    moved = progress_light(scrapes, scrapes[-1].at, STALL)
    lights = Lights(UP, http_light(probes), lit, moved)
    return judge(lights, stall_after=STALL, engine=kind), lights, scrapes


def faults(kind: EngineKind) -> dict[str, list[tuple[HttpAnswer, HttpAnswer]]]:
    text, other = (sglang_text, vllm_text) if kind is EngineKind.SGLANG else (vllm_text, sglang_text)
    fine = probe(200)
    cut = text(31.0)[:-60]
    page = answered(HTML, content_type="text/html")
    return {
        "none": [(fine, answered(text(31.0)))],
        "dead": [(failed(Transport.REFUSED), failed(Transport.REFUSED))] * 3,
        "hung": [(fine, answered(text(30.0)))] * 16,
        "503": [(probe(503), answered(b"", status=503))] * 3,
        "html": [(probe(200, body=HTML), page)] * 3,
        "reset": [(fine, answered(text(0.0))), (fine, answered(text(1.0)))],
        "other engine": [(fine, answered(other(31.0)))],
        "truncated": [(fine, answered(cut, content_length=str(len(text(31.0)))))],
        "empty": [(fine, answered(b""))],
    }


@pytest.mark.parametrize("kind", [EngineKind.SGLANG, EngineKind.VLLM])
def test_the_eight_faults_come_out_apart(kind: EngineKind) -> None:
    verdicts = {name: watched(pairs, kind)[0] for name, pairs in faults(kind).items()}
    assert {name: verdict.state for name, verdict in verdicts.items()} == {
        "none": LaneState.SERVING,
        "dead": LaneState.DOWN,
        "hung": LaneState.STALLED,
        "503": LaneState.DOWN,
        "html": LaneState.DOWN,
        "reset": LaneState.SERVING,
        "other engine": LaneState.DEGRADED,
        "truncated": LaneState.BLIND,
        "empty": LaneState.BLIND,
    }
    assert len({verdict.why for verdict in verdicts.values()}) == 9
    words = ("refused", "no step for 16 s", "503", "HTML", "restarted", "another engine", "truncated", "empty body")
    for (name, verdict), word in zip(list(verdicts.items())[1:], words, strict=True):
        assert word in verdict.why or (name == "truncated" and "bytes came" in verdict.why), name


@pytest.mark.parametrize("kind", [EngineKind.SGLANG, EngineKind.VLLM])
@pytest.mark.parametrize("name", ["dead", "503", "html", "other engine", "truncated", "empty"])
def test_a_fault_leaves_no_value_standing(kind: EngineKind, name: str) -> None:
    _, lights, scrapes = watched(faults(kind)[name], kind)
    found = throughput(scrapes)
    assert (found.decode_tps, found.running, found.kv.tokens, found.kv.used_fraction) == (None, None, None, None)
    assert lights.progress == ProgressLight()


@pytest.mark.parametrize("kind", [EngineKind.SGLANG, EngineKind.VLLM])
def test_values_through_a_counter_reset_and_a_hang(kind: EngineKind) -> None:
    _, _, scrapes = watched(faults(kind)["reset"], kind)
    found = throughput(scrapes)
    assert found.restarted
    assert found.decode_tps is not None
    assert 0 <= found.decode_tps <= (1000 + 9 * DECODE_TPS) / 9
    _, _, scrapes = watched(faults(kind)["hung"], kind)
    found = throughput(scrapes)
    assert (found.decode_tps, found.running, found.kv.used_fraction) == (0.0, 3, KV_SHARE)
