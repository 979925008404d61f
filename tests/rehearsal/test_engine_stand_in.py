"""The stand-in engine: its series say exactly what its options say, and each fault is the fault it claims to be."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from console.rehearsal import engine as engine_module

ENGINE = Path(engine_module.__file__)
LIMIT = 90.0
TOKEN = secrets.token_hex(16)


@dataclass
class Running:
    """An engine process and how to ask it."""

    process: subprocess.Popen[bytes]
    port: int

    def get(
        self, path: str, method: str = "GET", body: object = None, *, token: str = TOKEN
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        headers = {engine_module.TOKEN_HEADER: token} if token else {}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def fault(self, **order: object) -> int:
        return self.get("/__fault", "POST", order)[0]

    def truth(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.get("/__truth")[1])
        return answer

    def series(self) -> dict[str, float]:
        return flat(self.get("/metrics")[1].decode())


def flat(text: str) -> dict[str, float]:
    """Sums over labels, and each series on its own under `name{key=value}` for one label."""
    out: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            out[sample.name] = out.get(sample.name, 0.0) + sample.value
            for key, value in sample.labels.items():
                out[f"{sample.name}{{{key}={value}}}"] = sample.value
    return out


@contextmanager
def running(*options: str, token: str = TOKEN) -> Iterator[Running]:
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(ENGINE), "--control", f"--announce-fd={write}", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(write,),
        env={**os.environ, engine_module.TOKEN_VARIABLE: token},
    )
    os.close(write)
    try:
        with os.fdopen(read) as announced:
            yield Running(process, int(announced.readline()))
    finally:
        process.kill()
        process.wait(LIMIT)
        for pipe in (process.stdin, process.stderr):
            if pipe is not None:
                pipe.close()


def wait_for(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}"
        time.sleep(0.05)


@pytest.fixture(params=["sglang", "vllm"])
def engine(request: pytest.FixtureRequest) -> Iterator[Running]:
    with running(f"--kind={request.param}", "--prefill-tps=210") as one:
        yield one


DECODE = {"sglang": "sglang:realtime_tokens_total{mode=decode}", "vllm": "vllm:generation_tokens_total"}
RUNNING = {"sglang": "sglang:num_running_reqs", "vllm": "vllm:num_requests_running"}


def kind_of(series: dict[str, float]) -> str:
    return next(iter(name.split(":")[0] for name in series if ":" in name))


def test_decode_counter_is_rate_times_elapsed_exactly(engine: Running) -> None:
    def read() -> tuple[float, float, float]:
        before = time.monotonic()
        series = engine.series()
        return before, series[DECODE[kind_of(series)]], time.monotonic()

    first, (last_before, last, last_after) = read(), (0.0, 0.0, 0.0)
    wait_for(lambda: time.monotonic() - first[2] > 0.5, "half a second between scrapes")
    last_before, last, last_after = read()
    # the value was taken somewhere inside each exchange, so the truth bounds it from both sides
    assert 66.3 * (last_before - first[2]) <= last - first[1] + 1e-6
    assert last - first[1] <= 66.3 * (last_after - first[0]) + 1e-6


def test_truth_and_series_agree(engine: Running) -> None:
    assert engine.fault(fault="hang") == 200  # standing still, both answers are of one moment
    truth, series = engine.truth(), engine.series()
    assert series[DECODE[kind_of(series)]] == pytest.approx(truth["decode"], abs=1e-6)
    assert series[RUNNING[kind_of(series)]] == truth["running"] == 3


def test_sglang_pool_and_speculation() -> None:
    with running("--kind=sglang") as engine:
        series = engine.series()
    assert series["sglang:max_total_num_tokens"] == 6198016
    assert series["sglang:kv_used_tokens"] == 6198016 * 0.4375 == 2711632
    assert series["sglang:token_usage"] == 0.4375
    assert series["sglang:spec_accept_length"] == 2.75
    assert series["sglang:spec_accept_rate"] == pytest.approx(0.35)
    assert (
        series["sglang:kv_used_tokens"] + series["sglang:kv_evictable_tokens"] + series["sglang:kv_available_tokens"]
        == 6198016
    )


def test_vllm_pool_and_speculation() -> None:
    with running("--kind=vllm", "--age=1000", "--accepted=1.26", "--drafts=5") as engine:
        assert engine.fault(fault="hang") == 200
        text = engine.get("/metrics")[1].decode()
    series = flat(text)
    info = next(line for line in text.splitlines() if line.startswith("vllm:cache_config_info{"))
    assert 'kv_cache_size_tokens="6198016"' in info
    drafts = series["vllm:spec_decode_num_drafts_total"]
    assert drafts > 0
    assert series["vllm:spec_decode_num_accepted_tokens_total"] / drafts == pytest.approx(1.26)
    assert series["vllm:spec_decode_num_draft_tokens_total"] / drafts == pytest.approx(5)
    assert series["vllm:spec_decode_num_accepted_tokens_per_pos_total"] / drafts == pytest.approx(1.26)
    assert series["vllm:generation_tokens_total"] / drafts == pytest.approx(2.26)


@pytest.mark.parametrize("kind", ["sglang", "vllm"])
def test_without_speculation_its_series_are_absent(kind: str) -> None:
    with running(f"--kind={kind}", "--drafts=0", "--accepted=0") as engine:
        assert not [name for name in engine.series() if ":spec_" in name]


def test_histograms_are_cumulative_and_count_finished_requests() -> None:
    with running("--kind=sglang", "--age=4000") as engine:
        text = engine.get("/metrics")[1].decode()
    (family,) = (f for f in text_string_to_metric_families(text) if f.name == "sglang:time_to_first_token_seconds")
    buckets = [s.value for s in family.samples if s.name.endswith("_bucket")]
    count = next(s.value for s in family.samples if s.name.endswith("_count"))
    assert buckets == sorted(buckets) and buckets[-1] == count > 200
    at_median = next(s.value for s in family.samples if s.labels.get("le") == "1.0")
    assert 0.3 < at_median / count < 0.4  # median 1.2 s: a log-logistic of shape 3 has 36.7 % below 1 s


def test_hang_freezes_counters_behind_200(engine: Running) -> None:
    assert engine.fault(fault="hang") == 200
    first = engine.series()
    status, body, _ = engine.get("/health")
    again = engine.series()
    name = DECODE[kind_of(first)]
    assert (status, body) == (200, b"")
    assert first[name] == again[name] and again[RUNNING[kind_of(again)]] == 3
    assert engine.fault(fault="none") == 200
    wait_for(lambda: engine.series()[name] > first[name], "tokens again")


def test_reset_starts_the_counters_again(engine: Running) -> None:
    name = DECODE[kind_of(engine.series())]
    wait_for(lambda: engine.series()[name] > 20, "some tokens")
    before = engine.series()[name]
    assert engine.fault(fault="reset") == 200
    assert engine.truth()["fault"] == "none"
    after = engine.series()[name]
    assert after < before
    wait_for(lambda: engine.series()[name] > after, "tokens after the reset")


def test_503(engine: Running) -> None:
    assert engine.fault(fault="503") == 200
    assert engine.get("/health")[0] == 503
    assert engine.get("/v1/models")[0] == 503
    assert engine.get("/metrics")[0] == 200


def test_html_everywhere(engine: Running) -> None:
    assert engine.fault(fault="html") == 200
    for path in ("/health", "/metrics", "/v1/models"):
        status, body, headers = engine.get(path)
        assert status == 200 and headers["Content-Type"].startswith("text/html") and body.startswith(b"<!DOCTYPE")


def test_truncated_inside_a_number(engine: Running) -> None:
    assert engine.fault(fault="truncated") == 200
    connection = http.client.HTTPConnection("127.0.0.1", engine.port, timeout=LIMIT)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    with pytest.raises(http.client.IncompleteRead) as cut:
        answer.read()
    connection.close()
    assert int(answer.getheader("Content-Length") or 0) > len(cut.value.partial)
    assert cut.value.partial.decode().splitlines()[-1].rpartition(" ")[2].strip() != ""
    assert not cut.value.partial.endswith(b"\n")


def test_empty_body(engine: Running) -> None:
    assert engine.fault(fault="empty") == 200
    status, body, headers = engine.get("/metrics")
    assert (status, body, headers["Content-Length"]) == (200, b"", "0")


def test_other_engines_series(engine: Running) -> None:
    own = kind_of(engine.series())
    assert engine.fault(fault="other-engine") == 200
    assert kind_of(engine.series()) == {"sglang": "vllm", "vllm": "sglang"}[own]


def test_metrics_off(engine: Running) -> None:
    assert engine.fault(fault="metrics-off") == 200
    assert engine.get("/metrics")[0] == 404
    assert engine.get("/v1/models")[0] == 200


def test_idle_has_no_requests_and_no_tokens(engine: Running) -> None:
    assert engine.fault(fault="idle") == 200
    first, again = engine.series(), engine.series()
    name = DECODE[kind_of(first)]
    assert first[RUNNING[kind_of(first)]] == 0 and first[name] == again[name]


def test_prefill_only_moves_prompts_alone(engine: Running) -> None:
    assert engine.fault(fault="prefill-only") == 200
    first = engine.truth()
    wait_for(lambda: engine.truth()["prefill"] > first["prefill"], "prompt tokens")
    assert engine.truth()["decode"] == first["decode"] and engine.truth()["running"] == 3


def test_slow_answers_late(engine: Running) -> None:
    assert engine.fault(fault="slow", seconds=0.4) == 200
    before = time.monotonic()
    assert engine.get("/v1/models")[0] == 200
    assert time.monotonic() - before >= 0.4


def test_silent_accepts_and_says_nothing(engine: Running) -> None:
    assert engine.fault(fault="silent") == 200
    connection = http.client.HTTPConnection("127.0.0.1", engine.port, timeout=0.5)
    connection.request("GET", "/health")
    with pytest.raises(TimeoutError):
        connection.getresponse()
    connection.close()


def test_exit_code() -> None:
    with running("--kind=vllm") as engine:
        assert engine.process.stdin is not None
        engine.process.stdin.write(b'{"fault": "exit", "code": 3}\n')
        engine.process.stdin.flush()
        assert engine.process.wait(LIMIT) == 3


def test_unknown_fault_is_refused_with_the_known_ones(engine: Running) -> None:
    status, body, _ = engine.get("/__fault", "POST", {"fault": "flood"})
    assert status == 400 and b"known: none, hang" in body
    assert engine.get("/__fault", "POST", ["hang"])[0] == 400
    assert engine.truth()["fault"] == "none"


def test_faults_over_http_want_the_token(engine: Running) -> None:
    for token in ("", "wrong"):
        assert engine.get("/__fault", "POST", {"fault": "hang"}, token=token)[0] == 403
    assert engine.truth()["fault"] == "none"
    assert engine.fault(fault="hang") == 200
    with running("--kind=vllm", token="") as alone:
        for token in ("", TOKEN):
            assert alone.get("/__fault", "POST", {"fault": "exit"}, token=token)[0] == 404
        assert alone.truth()["fault"] == "none"


@pytest.mark.parametrize("length", ["-1", "many", str(engine_module.MOST_ORDER + 1)])
def test_an_order_of_odd_length_is_refused_unread(length: str) -> None:
    with running() as one, socket.create_connection(("127.0.0.1", one.port), timeout=LIMIT) as wire:
        wire.sendall(f"POST /__fault HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
        assert wire.recv(100).startswith(b"HTTP/1.1 413 ")


def test_the_end_of_stdin_is_the_end() -> None:
    with running("--kind=sglang") as engine:
        assert engine.process.stdin is not None
        engine.process.stdin.close()
        assert engine.process.wait(LIMIT) == 0


def test_sglang_boot_is_refused_then_503_then_200() -> None:
    with running("--kind=sglang", "--boot=1.0", "--boot-shown=575") as engine:  # the port opens at 98.5 %
        seen = [engine.get("/health")[0]]
        wait_for(lambda: seen.append(engine.get("/health")[0]) is None and seen[-1] == 200, "ready")
        engine.process.terminate()
        assert engine.process.stderr is not None
        log = engine.process.stderr.read().decode()
    assert log.index("Load weight begin") < log.index("100% Completed | 48/48") < log.index("Load weight end")
    assert log.index("autotune completed") < log.index("CUDA graph end") < log.index("fired up and ready to roll")


def test_vllm_port_opens_only_when_ready() -> None:
    with running("--kind=vllm", "--boot=0.5") as engine:  # `running` returns when the port is announced
        assert engine.get("/health")[0] == 200
        assert engine.truth()["running"] == 3


def test_worker_rank_is_a_dummy() -> None:
    with running("--kind=sglang", "--rank=2") as engine:
        assert engine.get("/health")[0] == 200
        assert engine.get("/v1/models")[0] == 404 and engine.get("/ready")[0] == 404
        series = engine.series()
    assert series["sglang:max_total_num_tokens"] == 6198016
    assert "sglang:num_running_reqs" not in series


def test_sglang_health_is_a_generation_that_takes_a_second() -> None:
    with running("--kind=sglang") as head:
        before = time.monotonic()
        assert head.get("/health")[0] == 200
        assert time.monotonic() - before >= 1.0
        assert head.truth()["running"] == 3


def test_answers_of_identity(engine: Running) -> None:
    assert json.loads(engine.get("/v1/models")[1])["data"][0]["id"] == "deepseek-v4.1-flash"
    if kind_of(engine.series()) == "vllm":
        assert json.loads(engine.get("/version")[1])["version"] == "0.32.0"
    else:
        loads = json.loads(engine.get("/v1/loads")[1])["loads"][0]
        assert loads["num_running_reqs"] == 3 and loads["max_total_num_tokens"] == 6198016
        assert json.loads(engine.get("/server_info")[1])["max_total_num_tokens"] == 6198016


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0"), (66.3, "66.3"), (999999.0, "999999.0"), (6198016.0, "6.198016e+06"), (float("nan"), "NaN")],
)
def test_numbers_as_prometheus_writes_them(value: float, text: str) -> None:
    assert engine_module.number(value) == text
