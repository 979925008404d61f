"""What the console must do, not merely say, when it reads an engine's metrics and health."""

from __future__ import annotations

import asyncio
import tracemalloc

from case_table import case_file

from console.inspection.arguments import Argument
from console.inspection.engine import scrape
from console.readings import exposition
from console.readings.answers import HttpAnswer, Transport
from console.readings.scrape import Scrape, ScrapeVerdict, read_scrape
from console.readings.throughput import throughput


def answer(case: str, name: str, at: float) -> HttpAnswer:
    body = case_file(case, name).read_bytes()
    return HttpAnswer(at, 0.01, Transport.ANSWERED, 200, headers={"content-length": str(len(body))}, body=body)


def read(case: str, name: str, at: float) -> Scrape:
    return read_scrape(answer(case, name, at), whole=True)


def test_rate_is_never_negative_across_a_relaunch() -> None:
    """C025: counters that fall are a restart: marked, and no rate below 0 or above the increase since."""
    found = throughput([read("C025", "scrape_t0.txt", 0), read("C025", "scrape_t30.txt", 30)])
    assert found.restarted
    assert found.decode_tps == 30.0
    assert found.prefill_tps is not None
    assert found.prefill_tps >= 0
    assert found.step_delta == 310.0
    later = throughput([read("C025", "scrape_t30.txt", 30), read("C025", "scrape_t30.txt", 60)])
    assert (later.restarted, later.decode_tps) == (False, 0.0)


async def test_a_huge_body_leaves_the_screen_responsive() -> None:
    """C030: parsed beside a running loop, in bounded memory, without walking a single unwanted label."""
    big = answer("C030", "scrape.txt", 0.0)
    exposition._cached_labels.cache_clear()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work = asyncio.create_task(asyncio.to_thread(read_scrape, big))
        ticks = 0
        while not work.done():
            ticks += 1
            await asyncio.sleep(0.001)
        found = await work
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert ticks > 1
    assert len(big.body) > 25_000_000
    assert peak < 2_000_000
    assert (found.verdict, found.lines, len(found.samples)) == (ScrapeVerdict.OK, 90_004, 1)
    assert throughput([found]).generation_total == 42_424_242
    assert exposition._cached_labels.cache_info().misses == 1


def test_a_huge_label_never_reaches_a_cell() -> None:
    """C030: also where the series with the giant label is a wanted one, its value is read and its label is cut."""
    config = case_file("C030", "scrape.txt").read_bytes().partition(b"\n")[0].partition(b"hf_config=")[2]
    label = config.removesuffix(b"} 1.0")
    text = b'vllm:generation_tokens_total{engine="0",model_name=%b,zone="z"} 42424242.0\n' % label
    found = read_scrape(HttpAnswer(0, 0.01, Transport.ANSWERED, 200, body=text))
    assert len(text) > 7_000_000
    assert found.samples[0].value == 42_424_242
    assert found.samples[0].label("zone") == "z"
    assert max(len(value) for _, value in found.samples[0].labels) <= exposition.MAX_LABEL
    assert len(throughput([found]).model_name) <= exposition.MAX_LABEL


def test_a_cut_body_shows_no_part_of_itself() -> None:
    """C030: a body of which a part is missing yields neither 0 nor the numbers before the cut."""
    whole = answer("C020", "scrape_t0.txt", 0.0)
    for size in range(1, len(whole.body)):
        cut = HttpAnswer(5.0, 0.01, Transport.ANSWERED, 200, headers=whole.headers, body=whole.body[:size])
        found = throughput([read_scrape(whole), read_scrape(cut)])
        assert read_scrape(cut).verdict is ScrapeVerdict.TRUNCATED
        assert (found.decode_tps, found.running, found.kv.used_fraction, found.generation_total) == (None,) * 4
        assert found.notes[0].startswith("truncated: ")


def test_metrics_off_is_neither_zero_nor_an_error() -> None:
    """C026: 404 means that metrics are off; the gauge of /server_info is shown as the engine's word only."""
    where = case_file("C026", "metrics_404.txt")
    found = scrape(
        [Argument("0", where, 0.0), Argument("server_info", case_file("C026", "server_info_no_metrics.json"))]
    )
    assert (found["metrics"], found["decode_tps"], found["running"], found["state"]) == ("off", None, None, "blind")
    assert found["server_info"]["last_gen_throughput"] == {"value": 36.2, "basis": "engine-reported"}
    assert found["server_info"]["metrics_enabled"] is False
