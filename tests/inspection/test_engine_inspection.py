"""`inspect scrape` and `inspect health` on captures, on whole HTTP responses and on input that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.inspection.arguments import Argument, InspectError
from console.inspection.engine import health, scrape
from console.inspection.probes import file_answer, read_probes
from console.readings.answers import Transport

CAPTURES = Path(__file__).parent.parent / "data" / "engines"


def write(folder: Path, text: str | bytes, name: str = "input") -> Argument:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Argument("", path)


def test_captured_scrapes() -> None:
    names = [f"vllm_metrics_spec_load_{number}.prom" for number in (4, 5)]
    found = scrape(
        [Argument(str(n), CAPTURES / name, at) for n, (name, at) in enumerate(zip(names, (0, 2.15), strict=True))]
    )
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["metrics"], found["engine"], found["model_name"], found["state"]) == ("ok", "vllm", "tiny", "serving")
    assert found["decode_tps"] == pytest.approx(742 / 2.15)
    assert found["speculation"]["basis"] == "measured"
    assert found["kv"]["pool_tokens"] == 3072
    assert found["histograms"]["vllm:time_to_first_token_seconds"]["count"] == 8
    assert found["series"]["vllm:num_requests_running"][0]["value"] == found["running"]


def test_no_rate_is_made_up_for_texts_without_times() -> None:
    files = [Argument("", CAPTURES / f"vllm_metrics_load_{number}.prom") for number in (1, 2)]
    with pytest.raises(InspectError, match=r"vllm_metrics_load_1.prom: when was it captured\? .*0=FILE@0 1=FILE@30"):
        scrape(files)
    assert scrape(files[:1])["decode_tps"] is None


def test_what_stands_for_the_health_endpoint_is_said(tmp_path: Path) -> None:
    text = Argument("", CAPTURES / "vllm_metrics_load_1.prom")
    assert any("no health probes" in note for note in scrape([text])["notes"])
    probes = Argument("health", write(tmp_path, b"t_s\tcode\tseconds\n0\t200\t0.1\n").path)
    assert not any("no health probes" in note for note in scrape([text, probes])["notes"])


def test_a_whole_http_response_is_read_with_its_head(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 400\r\n\r\n"
    answer = file_answer(write(tmp_path, head + b"vllm:num_requests_running 3\n"), 7.0)
    assert (answer.at, answer.status, answer.header("CONTENT-LENGTH"), answer.media_type) == (
        7,
        200,
        "400",
        "text/plain",
    )
    assert scrape([Argument("", tmp_path / "input")])["metrics"] == "truncated"
    bare = file_answer(write(tmp_path, "HTTP/1.1 503 Service Unavailable"), 0.0)
    assert (bare.status, bare.body) == (503, b"")


def test_server_info_shows_no_argument_and_no_environment(tmp_path: Path) -> None:
    info = {
        "version": "0.5.23",
        "api_key": "secret",
        "internal_states": [{"last_gen_throughput": 5}],
        "max_total_num_tokens": 9,
    }
    found = scrape([Argument("server_info", write(tmp_path, json.dumps(info)).path)])
    assert "secret" not in json.dumps(found, allow_nan=False)
    assert (found["server_info"]["version"], found["server_info"]["pool_tokens"]) == ("0.5.23", 9)
    made = scrape([Argument("server_info", CAPTURES / "sglang_server_info.handmade.json")])["server_info"]
    assert (made["pool_tokens"], made["lifetime_accept_length"], made["metrics_enabled"]) == (6_198_016, 2.71, True)


@pytest.mark.parametrize(
    ("name", "state", "code", "verdicts"),
    [
        ("vllm_sigterm_health.jsonl", "down", None, ["ok", "503", "reset", "refused"]),
        ("vllm_enginecore_sigkill.jsonl", "down", 0, ["ok", "refused"]),
        ("vllm_apiserver1_sigkill.jsonl", "down", 1, ["ok", "timeout", "reset", "refused"]),
        ("vllm_hang_sigstop.jsonl", "serving", None, ["ok"]),
    ],
)
def test_captured_probe_series(name: str, state: str, code: int | None, verdicts: list[str]) -> None:
    found = health([Argument("", CAPTURES / name)])
    assert (found["state"], found["exit_code"]) == (state, code)
    assert [change["verdict"] for change in found["changes"]] == verdicts
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("word", "transport"),
    [
        ("refused", Transport.REFUSED),
        ("timeout", Transport.READ_TIMEOUT),
        ("connect timeout", Transport.CONNECT_TIMEOUT),
        ("reset", Transport.RESET),
        ("something else", Transport.NOT_HTTP),
    ],
)
def test_words_of_probes_that_got_no_answer(tmp_path: Path, word: str, transport: Transport) -> None:
    told = read_probes(write(tmp_path, f"t_s\tcode\tseconds\n5\t{word}\t2.5\n"))
    assert [(item.at, item.took, item.transport) for item in told.health] == [(5.0, 2.5, transport)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no probe in it"),
        ("0 200 0.1\n", "separated by tabs"),
        ("now\t200\t0.1\n", "no number of seconds"),
        ("nan\t200\t0.1\n", "no number of seconds"),
        ('{"t": 0, "status": 200\n', "not JSON"),
        ('{"t": "soon", "status": 200}\n', "no probe in it"),
        ("[1]\t2\n", "no number of seconds"),
        ('{"t":' + "[" * 200_000 + "\n", "not JSON"),
        ('{"t": 1' + "0" * 400 + ', "status": 200}\n', "no probe in it"),
    ],
)
def test_probe_series_that_cannot_be_read(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InspectError, match=problem):
        health([write(tmp_path, text)])


def test_arguments_that_make_no_sense(tmp_path: Path) -> None:
    file = write(tmp_path, "vllm:num_requests_running 1\n").path
    for arguments, problem in (
        ([], "at least one metrics text"),
        ([Argument("first", file)], "unknown role 'first'"),
        ([Argument("0", file, 5.0), Argument("1", file, 5.0)], "times must grow"),
        ([Argument("meta_info", file)], "not JSON"),
        ([Argument("meta_info", write(tmp_path, "[" * 200_000, "deep").path)], "not JSON"),
        ([Argument("server_info", write(tmp_path, "[]", "list").path)], "expected a JSON object"),
    ):
        with pytest.raises(InspectError, match=problem):
            scrape(arguments)
    with pytest.raises(InspectError, match="give a probe series"):
        health([])


def test_numbers_larger_than_any_count_are_unknown(tmp_path: Path) -> None:
    huge = int("9" * 400)
    meta = write(tmp_path, json.dumps({"spec_verify_ct": huge, "spec_num_correct_drafts": 3}), "meta")
    info = write(tmp_path, json.dumps({"internal_states": [{"last_gen_throughput": huge}]}), "info")
    found = scrape([Argument("meta_info", meta.path), Argument("server_info", info.path)])
    assert found["speculation"] is None
    assert found["server_info"]["last_gen_throughput"]["value"] is None
