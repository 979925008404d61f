"""The verdict on one answer of /metrics."""

from __future__ import annotations

import pytest
from engine_captures import answered, body_of, capture, failed, sglang_text, vllm_text
from hypothesis import given
from hypothesis import strategies as st

from console.readings.answers import HttpAnswer, Transport
from console.readings.scrape import ScrapeVerdict, read_scrape
from console.readings.series import EngineKind
from console.readings.throughput import throughput

HTML = b"<!DOCTYPE html>\n<html><body>504 Gateway Time-out</body></html>\n"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (failed(Transport.REFUSED), ScrapeVerdict.REFUSED),
        (failed(Transport.CONNECT_TIMEOUT), ScrapeVerdict.TIMEOUT),
        (failed(Transport.READ_TIMEOUT), ScrapeVerdict.TIMEOUT),
        (failed(Transport.RESET), ScrapeVerdict.RESET),
        (failed(Transport.TRUNCATED), ScrapeVerdict.TRUNCATED),
        (failed(Transport.TOO_LARGE), ScrapeVerdict.TOO_LARGE),
        (failed(Transport.NOT_HTTP), ScrapeVerdict.NOT_METRICS),
        (failed(Transport.UNREACHABLE), ScrapeVerdict.UNREACHABLE),
        (answered(b'{"detail":"Not Found"}', status=404), ScrapeVerdict.OFF),
        (answered(b'{"error":{"code":501}}', status=501), ScrapeVerdict.OFF),
        (answered(b"", status=401), ScrapeVerdict.HTTP_ERROR),
        (answered(vllm_text(0), status=500), ScrapeVerdict.HTTP_ERROR),
        (answered(HTML, status=503), ScrapeVerdict.HTTP_ERROR),
        (answered(b""), ScrapeVerdict.EMPTY),
        (answered(b" \r\n\n"), ScrapeVerdict.EMPTY),
        (answered(HTML), ScrapeVerdict.HTML),
        (answered(b"\xef\xbb\xbf\n <HTML>"), ScrapeVerdict.HTML),
        (answered(b"Please log in\n", content_type="text/html; charset=utf-8"), ScrapeVerdict.HTML),
        (answered(b'{"server_load": 0}\n'), ScrapeVerdict.NOT_METRICS),
        (answered(b'[{"a": 1}]\n'), ScrapeVerdict.NOT_METRICS),
        (answered(b"ok\n"), ScrapeVerdict.NOT_METRICS),
        (answered(b"\x1f\x8b\x08\x00 still packed\n"), ScrapeVerdict.NOT_METRICS),
        (answered(b"python_info 1\nprocess_start_time_seconds 5\n"), ScrapeVerdict.NO_SERIES),
        (answered(vllm_text(0), content_length="100000"), ScrapeVerdict.TRUNCATED),
        (answered(vllm_text(0)[:-1]), ScrapeVerdict.TRUNCATED),
        (answered(vllm_text(0)), ScrapeVerdict.OK),
        (answered(b"vllm:healthy_requests 3\n"), ScrapeVerdict.OK),
    ],
)
def test_each_answer_has_its_word(answer: HttpAnswer, verdict: ScrapeVerdict) -> None:
    found = read_scrape(answer)
    assert found.verdict is verdict
    assert bool(found.detail) is (verdict is not ScrapeVerdict.OK)
    assert verdict is ScrapeVerdict.OK or found.samples == ()
    assert found.bytes == len(answer.body)


def test_a_compressed_answer_is_not_measured_by_its_length_header() -> None:
    assert read_scrape(answered(vllm_text(0), content_encoding="gzip", content_length="999999")).verdict == "ok"
    assert read_scrape(answered(vllm_text(0), content_length="10")).verdict == "ok"
    assert read_scrape(answered(vllm_text(0), content_length="nonsense")).verdict == "ok"


@pytest.mark.parametrize(
    ("body", "declared", "verdict", "engine"),
    [
        (vllm_text(0), EngineKind.UNKNOWN, ScrapeVerdict.OK, EngineKind.VLLM),
        (vllm_text(0), EngineKind.VLLM, ScrapeVerdict.OK, EngineKind.VLLM),
        (vllm_text(0), EngineKind.SGLANG, ScrapeVerdict.OTHER_ENGINE, EngineKind.UNKNOWN),
        (sglang_text(0), EngineKind.VLLM, ScrapeVerdict.OTHER_ENGINE, EngineKind.UNKNOWN),
        (b"llamacpp:requests_processing 0\n", EngineKind.UNKNOWN, ScrapeVerdict.OK, EngineKind.LLAMACPP),
        (vllm_text(0) + b"sglang:x 1\n", EngineKind.UNKNOWN, ScrapeVerdict.OK, EngineKind.VLLM),
        (vllm_text(0) + sglang_text(0), EngineKind.SGLANG, ScrapeVerdict.OK, EngineKind.SGLANG),
    ],
)
def test_the_engine_is_told_by_its_series(
    body: bytes, declared: EngineKind, verdict: ScrapeVerdict, engine: EngineKind
) -> None:
    found = read_scrape(answered(body), declared)
    assert (found.verdict, found.engine) == (verdict, engine)
    assert all(item.name.startswith((f"{engine}:", "process_")) for item in found.samples)


def test_openmetrics_without_its_end_mark_is_truncated() -> None:
    body = body_of("vllm_metrics_openmetrics.txt")
    kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert read_scrape(answered(body, content_type=kind)).verdict is ScrapeVerdict.OK
    assert body.rstrip().endswith(b"# EOF")
    cut = body[: body.rindex(b"\n", 0, len(body) // 2) + 1]
    assert read_scrape(answered(cut, content_type=kind)).verdict is ScrapeVerdict.TRUNCATED


@given(st.integers(0, len(vllm_text(100)) - 1), st.booleans())
def test_a_cut_inside_a_number_never_yields_a_wrong_value(size: int, told: bool) -> None:
    """Wherever a body ends, what is read of it is either what the whole body says, or nothing."""
    whole = vllm_text(100)
    headers = {"content_length": str(len(whole))} if told else {}
    found = read_scrape(answered(whole[:size], **headers))
    truth = read_scrape(answered(whole))
    assert set(found.samples) <= set(truth.samples)
    if told and size:
        assert found.verdict is ScrapeVerdict.TRUNCATED
    if not told and size and not whole[:size].endswith(b"\n"):
        assert found.verdict is ScrapeVerdict.TRUNCATED


def test_a_body_cut_with_a_fitting_length_header_is_not_believed() -> None:
    body = body_of("vllm_metrics_spec_after.prom")
    cut = body[: body.index(b"vllm:generation_tokens_total{") + 61]
    assert cut.endswith(b"59")
    found = read_scrape(answered(cut))
    assert (found.verdict, found.samples) == (ScrapeVerdict.TRUNCATED, ())
    assert throughput([capture("vllm_metrics_spec_idle.prom", 0.0), found]).restarted is False


def test_unreadable_lines_are_counted_in_the_detail() -> None:
    found = read_scrape(answered(vllm_text(0) + b"vllm:num_requests_running{engine=} 3\n"))
    assert (found.verdict, found.detail) == (ScrapeVerdict.OK, "1 unreadable lines")


@pytest.mark.parametrize("form", ["vllm_metrics_spec_after.prom", "vllm_metrics_openmetrics.txt"])
def test_captures_are_ok(form: str) -> None:
    found = capture(form, 0.0)
    assert (found.verdict, found.engine, found.detail) == (ScrapeVerdict.OK, EngineKind.VLLM, "")
    assert found.lines == body_of(form).count(b"\n")
