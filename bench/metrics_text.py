"""A metrics body of 287 KiB: from bytes to readings, beside the full parser."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from bench.figures import Figure
from console.readings.answers import HttpAnswer, Transport
from console.readings.throughput import EngineKind, read_scrape, throughput

CAPTURE = Path(__file__).resolve().parents[1] / "tests/data/engines/vllm_metrics_spec_after.prom"
SIZE = 287 * 1024
REPEATS = 9


def body() -> bytes:
    """A vLLM capture with as many data-parallel engines as make up 287 KiB."""
    lines = CAPTURE.read_bytes().splitlines(keepends=True)
    out, size, engines = list(lines), sum(map(len, lines)), 1
    while size < SIZE:
        more = [
            line.replace(b'engine="0"', b'engine="%d"' % engines)
            for line in lines
            if b'engine="0"' in line and line[:1] != b"#"
        ]
        out += more
        size += sum(map(len, more))
        engines += 1
    return b"".join(_grouped(out))


def _grouped(lines: list[bytes]) -> list[bytes]:
    """The samples of one family together, as the exposition format wants them."""
    families: dict[bytes, list[bytes]] = {}
    name = b""
    for line in lines:
        if line.startswith(b"# HELP "):
            name = line.split(b" ", 3)[2]
            families.setdefault(name, []).append(line)
        elif line.startswith(b"#"):
            families.setdefault(name, []).append(line)
        else:
            own = line.partition(b"{")[0].partition(b" ")[0]
            known = (own, *(own.removesuffix(end) for end in (b"_bucket", b"_count", b"_sum", b"_total", b"_created")))
            families[next((key for key in known if key in families), name)].append(line)
    return [line for rows in families.values() for line in rows]


def best(work: Callable[[], object]) -> float:
    """Fastest of some runs, in ms: what the work itself needs."""
    spans = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        spans.append(time.perf_counter() - began)
    return 1000 * min(spans)


def metrics_text() -> list[Figure]:
    """From a body to `Throughput`, as at each scrape: the newest of ten is read, the rates go over all."""
    text = body()
    at = [0.0]

    def answer() -> HttpAnswer:
        at[0] += 1.0
        return HttpAnswer(
            at[0], 0.01, Transport.ANSWERED, 200, "text/plain", {"content-length": str(len(text))}, text, ""
        )

    kept = [read_scrape(answer(), EngineKind.VLLM) for _ in range(9)]
    throughput(kept)

    def ours() -> None:
        kept.append(read_scrape(answer(), EngineKind.VLLM))
        del kept[0]
        if throughput(kept).decode_tps is None:
            raise RuntimeError("the body gave no rate")

    full = best(lambda: list(text_string_to_metric_families(text.decode())))
    return [
        Figure(
            "metrics text of 287 KiB to readings",
            best(ours),
            "ms",
            12.0,
            f"a vLLM capture made {len(text) / 1024:.0f} KiB by more data-parallel engines; bytes to tok/s, KV pool, "
            f"latencies and speculation over a window of 9 scrapes; fastest of {REPEATS}",
            1,
            f"prometheus_client's parser {full:.0f} ms for the text alone",
        )
    ]
