"""The HTTP light and the progress light: every trap by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from engine_captures import DECODE_TPS, answered, failed, sglang_text, vllm_text
from engine_lights import HTML, STALL, probe, read, state

from console.readings.answers import HttpAnswer, Transport
from console.readings.health import (
    HttpVerdict,
    LaneState,
    Progress,
    ProgressLight,
    classify,
    http_light,
    old_process,
    progress_light,
)
from console.readings.scrape import Scrape, read_scrape

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


def progress(scrapes: Sequence[Scrape], now: float | None = None, **more: object) -> ProgressLight:
    return progress_light(scrapes, scrapes[-1].at if now is None else now, STALL, **more)  # type: ignore[arg-type]


def hung(text: Callable[[float], bytes], moving: int, frozen: int) -> list[Scrape]:
    """`moving` scrapes a second apart with movement, then `frozen` more without."""
    return [read(text(float(min(at, moving))), float(at)) for at in range(moving + frozen + 1)]


@pytest.mark.parametrize("text", [sglang_text, vllm_text])
def test_work_without_a_step_is_frozen_after_the_stall_time(text: Callable[[float], bytes]) -> None:
    before = progress(hung(text, 20, 14))
    assert (before.progress, before.frozen_for) == (Progress.MOVING, 14)
    assert not before.prefill_only
    after = progress(hung(text, 20, 15))
    assert (after.progress, after.frozen_for, after.decode_tps) == (Progress.FROZEN, 15, 0.0)
    assert progress(hung(text, 20, 300)).frozen_for == 300


@pytest.mark.parametrize("text", [sglang_text, vllm_text])
@pytest.mark.parametrize("instant", [20.0, 20.01, 20.2, 20.7])
def test_a_hang_never_reads_as_a_prefill(text: Callable[[float], bytes], instant: float) -> None:
    """Between the last token and the stall time the lane is quiet, not busy."""
    scrapes = [read(text(min(float(at), instant)), float(at)) for at in range(36)]
    for second in range(20, 35):
        found = progress(scrapes[: second + 1])
        assert (found.progress, found.prefill_only) == (Progress.MOVING, False), second
        assert state(progress=found).state is LaneState.SERVING
    stood = 14 if instant == 20.0 else 13
    assert state(progress=progress(scrapes[:35])).why == f"the last step was {stood} s ago"
    assert progress(scrapes).progress is (Progress.FROZEN if instant == 20.0 else Progress.MOVING)


def test_rest_shows_three_seconds_after_the_last_token() -> None:
    scrapes = [read(vllm_text(min(at, 20), running=3 if at < 20 else 0), float(at)) for at in range(24)]
    assert [progress(scrapes[: at + 1]).progress for at in (20, 22, 23)] == ["moving", "moving", "no work"]


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


def test_a_stall_longer_than_the_scrapes_kept_goes_on_counting() -> None:
    scrapes = hung(vllm_text, 20, 300)
    light = ProgressLight()
    for end in range(60, len(scrapes) + 1):
        light = progress(scrapes[end - 60 : end], previous=light)
    assert (light.frozen_for, light.frozen_since) == (300, 20.0)
    moved = [*scrapes[-59:], read(vllm_text(21), 321.0)]
    assert progress(moved, previous=light).frozen_for == 0


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
