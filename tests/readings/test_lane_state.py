"""The lane's state: the whole table, the captured boots and deaths, and the eight faults."""

from __future__ import annotations

from dataclasses import replace

import pytest
from engine_captures import CAPTURES, DECODE_TPS, KV_SHARE, POOL, answered, failed, sglang_text, vllm_text
from engine_lights import FLOWS, FROZEN, HTML, PREFILL, REST, STALL, UP, light, probe, state

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
    progress_light,
)
from console.readings.scrape import Scrape, ScrapeVerdict, read_scrape
from console.readings.series import EngineKind
from console.readings.throughput import throughput

YOUNG, OLD = UP, replace(UP, started_at=1600.0 - 7200.0)
"""Started ten minutes ago, and two hours ago."""
ABSENT = ProcessLight(1, 0, ("a no container on port 1",), absent=("a no container on port 1",))
UNASKED = ProcessLight(1, 0, (), ("a: containers not read yet",), unasked=True)
UNSEEN = ScrapeLight(ScrapeVerdict.HTTP_ERROR, "status 503")
SGLANG = EngineKind.SGLANG
LOADS = b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'

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
        # No container recognised: what answers may be one that is not known for the lane's
        (state(ABSENT), LaneState.DEGRADED, "a no container on port 1, though the port answers 200"),
        (state(ABSENT, light(HttpVerdict.REFUSED)), LaneState.DOWN, "no rank runs: a no container"),
        (state(replace(UP, paused=("spark-0",), running=0), light(HttpVerdict.TIMEOUT)), LaneState.PAUSED, "spark-0"),
        # The link to the head is down: unknown, never down
        (state(http=http_light([], down=True)), LaneState.UNKNOWN, "link to the head"),
        (
            state(http=http_light([replace(failed(Transport.UNREACHABLE, 1), detail="name does not resolve")])),
            LaneState.UNKNOWN,
            "name does not resolve, the engine is not seen",
        ),
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
        (state(UNASKED, light(HttpVerdict.REFUSED, ever_ok=False)), LaneState.UNKNOWN, "container will tell"),
        (state(replace(UNASKED, running=1), light(HttpVerdict.REFUSED)), LaneState.DOWN, "has served"),
        # Reset
        (state(http=light(HttpVerdict.RESET)), LaneState.DEGRADED, "reset one"),
        (state(http=light(HttpVerdict.RESET, 2)), LaneState.DOWN, "reset"),
        (state(http=light(HttpVerdict.RESET, ever_ok=False)), LaneState.BOOTING, "loading"),
        # 503: SGLang starting, draining, late behind a prefill, hung; vLLM dead
        (state(http=light(HttpVerdict.UNAVAILABLE, ever_ok=False), progress=REST), LaneState.BOOTING, "503"),
        (state(YOUNG, light(HttpVerdict.UNAVAILABLE, ever_ok=False)), LaneState.BOOTING, "it warms up"),
        (state(OLD, light(HttpVerdict.UNAVAILABLE, ever_ok=False)), LaneState.DEGRADED, "although tokens flow"),
        (
            state(YOUNG, light(HttpVerdict.UNAVAILABLE, ever_ok=False), engine=EngineKind.VLLM),
            LaneState.DEGRADED,
            "although tokens flow",
        ),
        (state(YOUNG, light(HttpVerdict.UNAVAILABLE, ever_ok=False, took=20.0)), LaneState.DEGRADED, "tokens flow"),
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
        (state(http=light(HttpVerdict.UNAVAILABLE, 3), progress=FROZEN), LaneState.DOWN, "no token moves"),
        (
            state(http=light(HttpVerdict.UNAVAILABLE, 3), progress=FROZEN, engine=EngineKind.VLLM),
            LaneState.DOWN,
            "dead",
        ),
        (
            state(http=light(HttpVerdict.UNAVAILABLE), progress=replace(FLOWS, frozen_for=4.0)),
            LaneState.DEGRADED,
            "miss 1 of 3",
        ),
        # 503 where no container tells an age: the server's own word
        (
            state(ProcessLight(), http_light([probe(503, 1, body=LOADS)]), UNSEEN, ProgressLight()),
            LaneState.BOOTING,
            "loads its model",
        ),
        (
            state(ProcessLight(), light(HttpVerdict.UNAVAILABLE, 9, ever_ok=False), UNSEEN, ProgressLight(), SGLANG),
            LaneState.BOOTING,
            "it starts",
        ),
        (
            state(
                ProcessLight(),
                light(HttpVerdict.UNAVAILABLE, 9, ever_ok=False, took=20.0),
                UNSEEN,
                ProgressLight(),
                SGLANG,
            ),
            LaneState.STALLED,
            "not even a test token",
        ),
        (
            state(ProcessLight(), light(HttpVerdict.UNAVAILABLE, 9, ever_ok=False), UNSEEN, ProgressLight()),
            LaneState.DOWN,
            "9 times",
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
        (state(http=light(HttpVerdict.TIMEOUT), progress=REST), LaneState.DEGRADED, "1 health probe timed out"),
        (state(http=light(HttpVerdict.TIMEOUT, 3), progress=ProgressLight()), LaneState.STALLED, "metrics answer"),
        (
            state(http=light(HttpVerdict.TIMEOUT, 3), scrape=UNSEEN, progress=ProgressLight()),
            LaneState.STALLED,
            "nothing is answered",
        ),
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
        (
            state(ProcessLight(2, 1, (), ("b: x",)), progress=REST),
            LaneState.IDLE,
            "no requests; containers unread on 1",
        ),
        (state(ProcessLight(2, 1, (), ("b: x",)), progress=PREFILL), LaneState.BUSY, "containers unread on 1 host"),
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
    assert until(told, 27.0, stall=5.0).state is LaneState.SERVING


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
    assert (verdict.state, verdict.why) == (LaneState.DEGRADED, "1 health probe timed out")


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
