"""`inspect scrape` and `inspect health`: metrics texts and probe series through the live readings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from console import sanitize
from console.inspection.arguments import Argument, InspectError, one
from console.inspection.probes import Probes, file_answer, read_probes
from console.readings.answers import HttpAnswer
from console.readings.exposition import Sample, parse
from console.readings.health import (
    HttpLight,
    HttpVerdict,
    Lights,
    ProgressLight,
    ScrapeLight,
    http_light,
    judge,
    progress_light,
)
from console.readings.histogram import Percentiles
from console.readings.scrape import Scrape, ScrapeVerdict, read_scrape
from console.readings.series import KINDS, WANTED, EngineKind, indexed, values
from console.readings.speculation import Speculation, from_meta_info
from console.readings.throughput import Throughput, throughput

STALL_AFTER_S = 15.0
"""As the console's default: seconds without a step, with work present, before a lane is stalled."""
_LATENCIES = tuple(f"{kind}:e2e_request_latency_seconds" for kind in KINDS)
_SHOWN = WANTED | {name + part for name in _LATENCIES for part in ("_bucket", "_count", "_sum")}
_NAMED = ("meta_info", "server_info", "health")


def scrape(arguments: Sequence[Argument]) -> dict[str, Any]:
    """Two or more metrics texts with their times, and what the console makes of them. Raises InspectError."""
    answers = _answers(arguments)
    meta, info, probes = (one(arguments, role) for role in _NAMED)
    if not answers and meta is None and info is None:
        raise InspectError("scrape: give at least one metrics text, as 0=FILE@0 1=FILE@30")
    told = read_probes(probes) if probes else None
    scrapes = [read_scrape(item, whole="content-length" not in item.headers) for item in answers]
    document: dict[str, Any] = {}
    if scrapes:
        found = throughput(scrapes)
        document |= _scrape_document(scrapes[-1], found) | _state(scrapes, answers, told)
        if told is None:
            document["notes"].append("no health probes: that /metrics answered stands for the health endpoint")
        document |= _text_document(answers[-1].body) if scrapes[-1].verdict is ScrapeVerdict.OK else {}
    if meta is not None:
        document["speculation"] = _speculation(from_meta_info(_object(meta)))
    if info is not None:
        document["server_info"] = _server_info(_object(info))
    return document


def health(arguments: Sequence[Argument]) -> dict[str, Any]:
    """A probe series of the health endpoint, with metrics texts beside it if there are any. Raises InspectError."""
    source = one(arguments, "health") or one(arguments, "probes") or _plain(arguments)
    told = read_probes(source)
    if not told.health and not told.metrics:
        raise InspectError(f"{source.path}: no probe in it")
    answers = _answers([item for item in arguments if item is not source])
    answers = answers or list(told.metrics)
    scrapes = [read_scrape(item, whole=True) for item in answers]
    light = http_light(told.health)
    return {
        "probes": len(told.health),
        "verdict": light.verdict,
        "status": light.status,
        "took_s": light.took,
        "misses": light.misses,
        "ever_ok": light.ever_ok,
        "detail": sanitize.line(light.detail),
        "changes": _changes(told.health),
        "exit_code": told.exit_code,
        **_state(scrapes, answers, told),
    }


def _plain(arguments: Sequence[Argument]) -> Argument:
    found = one(arguments, "", default=True)
    if found is None:
        raise InspectError("health: give a probe series: TSV `t_s code seconds`, or one JSON object a line")
    return found


def _answers(arguments: Sequence[Argument]) -> list[HttpAnswer]:
    """The metrics texts among the arguments, oldest first. Of several the times must be told: rates come from them."""
    texts = [item for item in arguments if item.role not in (*_NAMED, "probes")]
    unknown = [item.role for item in texts if item.role and not item.role.isdecimal()]
    if unknown:
        raise InspectError(f"unknown role {unknown[0]!r}; this kind knows: 0, 1, 2..., {', '.join(_NAMED)}")
    order = sorted(enumerate(texts), key=lambda pair: (int(pair[1].role or pair[0]), pair[0]))
    untold = [item for _, item in order if item.seconds is None]
    if untold and len(order) > 1:
        raise InspectError(f"{untold[0].path}: when was it captured? Say it in seconds: 0=FILE@0 1=FILE@30")
    times = [item.seconds or 0.0 for _, item in order]
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise InspectError("scrape: times must grow: 0=FILE@0 1=FILE@30")
    return [file_answer(item, at) for (_, item), at in zip(order, times, strict=True)]


def _object(argument: Argument) -> Mapping[str, Any]:
    try:
        found = json.loads(argument.text())
    except (ValueError, RecursionError) as error:
        raise InspectError(f"{argument.path}: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InspectError(f"{argument.path}: expected a JSON object")
    return found


def _state(scrapes: Sequence[Scrape], answers: Sequence[HttpAnswer], told: Probes | None) -> dict[str, Any]:
    """State and reason; without health probes the answers of /metrics stand for the HTTP light."""
    probes = told.health if told else ()
    light = http_light(probes) if probes else _http_of(answers)
    progress = progress_light(scrapes, scrapes[-1].at, STALL_AFTER_S, probes=probes) if scrapes else ProgressLight()
    lit = ScrapeLight(scrapes[-1].verdict, scrapes[-1].detail, len(scrapes[-1].samples)) if scrapes else ScrapeLight()
    engine = scrapes[-1].engine if scrapes else EngineKind.UNKNOWN
    lights = Lights(http=light, scrape=lit, progress=progress)
    verdict = judge(lights, stall_after=STALL_AFTER_S, engine=engine)
    return {
        "state": verdict.state,
        "why": verdict.why,
        "progress": progress.progress,
        "frozen_for_s": progress.frozen_for,
        "prefill_for_s": progress.moving_for,
    }


def _http_of(answers: Sequence[HttpAnswer]) -> HttpLight:
    if answers and answers[-1].status in (200, 404):
        return HttpLight(HttpVerdict.OK, 200, None, ever_ok=True, detail="taken from /metrics: the server answers")
    return http_light(answers)


def _changes(probes: Sequence[HttpAnswer]) -> list[dict[str, Any]]:
    """The first probe of every run of equal outcomes, the last 200 of them."""
    found: list[dict[str, Any]] = []
    for item in probes:
        light = http_light([item])
        if not found or (found[-1]["verdict"], found[-1]["status"]) != (light.verdict, light.status):
            found.append({"at_s": item.at, "verdict": light.verdict, "status": light.status, "took_s": item.took})
    return found[-200:]


def _scrape_document(newest: Scrape, found: Throughput) -> dict[str, Any]:
    kv = found.kv
    return {
        "metrics": newest.verdict,
        "detail": sanitize.line(newest.detail),
        "engine": found.engine,
        "model_name": found.model_name,
        "lines": newest.lines,
        "bytes": newest.bytes,
        "wanted_series": found.series,
        "window_s": found.window,
        "decode_tps": found.decode_tps,
        "decode_basis": found.decode_basis if found.decode_tps is not None else None,
        "prefill_tps": found.prefill_tps,
        "running": found.running,
        "waiting": found.waiting,
        "preemptions": found.preemptions,
        "restarted": found.restarted,
        "steps": found.steps,
        "step_delta": found.step_delta,
        "generation_tokens": found.generation_total,
        "prefix_hit_percent": _percent(found.prefix_hit_rate),
        "kv": {
            "pool_tokens": kv.tokens,
            "pool_basis": kv.tokens_basis if kv.tokens is not None else None,
            "evidence": kv.evidence,
            "used_percent": _percent(kv.used_fraction),
            "used_tokens": kv.used_tokens,
            "evictable_tokens": kv.evictable_tokens,
            "binding_pool": kv.binding,
        },
        "speculation": _speculation(found.speculation),
        "ttft_s": _percentiles(found.ttft),
        "itl_s": _percentiles(found.itl),
        "itl_is_per_step": found.itl_is_per_step,
        "notes": [sanitize.line(note) for note in found.notes],
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


def _speculation(found: Speculation | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "basis": found.basis,
        "acceptance_percent": _percent(found.acceptance),
        "accepted_per_step": found.accepted_per_step,
        "length_with_bonus": found.length_with_bonus,
        "drafted_per_step": found.drafted_per_step,
        "by_position_percent": [_percent(share) for share in found.by_position],
        "lifetime_acceptance_percent": _percent(found.lifetime_acceptance),
        "steps": found.steps,
    }


def _percentiles(found: Percentiles | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "observations": found.observations,
        "p50": found.p50,
        "p95": found.p95,
        "p99": found.p99,
        "beyond": found.beyond,
    }


def _text_document(body: bytes) -> dict[str, Any]:
    """The wanted series as they stand in the newest text: JSON null where a value is not a finite number."""
    index = indexed(parse(body, _SHOWN).samples)
    series: dict[str, Any] = {}
    histograms: dict[str, Any] = {}
    for name, samples in index.items():
        if name.endswith("_bucket"):
            histograms[name.removesuffix("_bucket")] = _histogram(index, name)
        else:
            series[name] = [{"labels": dict(item.labels), "value": _finite(item.value)} for item in samples[:1000]]
    return {"series": series, "histograms": histograms}


def _histogram(index: Mapping[str, tuple[Sample, ...]], bucket: str) -> dict[str, Any]:
    """Counts since the engine started, summed over ranks."""
    buckets: dict[str, float] = {}
    for labels, value in values(index, bucket).items():
        bound = dict(labels).get("le", "")
        buckets[bound] = buckets.get(bound, 0.0) + value
    counts = values(index, bucket.removesuffix("_bucket") + "_count")
    return {
        "count": _finite(sum(counts.values())) if counts else None,
        "buckets": {bound: _finite(count) for bound, count in buckets.items()},
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _server_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """What is read of SGLang's /server_info: it also holds every argument and the environment, which stay out."""
    states = info.get("internal_states")
    first = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
    version, pool = info.get("version"), info.get("max_total_num_tokens")
    return {
        "version": sanitize.word(version) if isinstance(version, str) else None,
        "metrics_enabled": info.get("enable_metrics") if isinstance(info.get("enable_metrics"), bool) else None,
        "pool_tokens": pool if isinstance(pool, int) and not isinstance(pool, bool) and pool > 0 else None,
        "lifetime_accept_length": _number(first.get("avg_spec_accept_length")),
        "last_gen_throughput": {"value": _number(first.get("last_gen_throughput")), "basis": "engine-reported"},
    }


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        return None
    return float(value)
