"""What the console remembers of a lane: boots, KV pools, decode rates and its way back, as data, as JSON, and added up.
Pure.

Rates are kept as counts in steps of 2 %, apart for each number of running requests: two consoles' counts add up, and a
percentile is true within 1 %.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from console.readings.binds import BindMark, Deed, Ready
from console.readings.boot import BootRecord
from console.readings.boot_progress import SAME_START_S
from console.sanitize import line, word

SCHEMA = 1
MOST_BOOTS = 50
MOST_POOLS = 50
MOST_PHASES = 32
MOST_MARKS, MOST_DEEDS, MOST_ITEMS = 400, 50, 32
MOST_RUNNING = 64
"""Numbers of running requests that are told apart; more count as this many."""
MOST_POINTS = 20_000
"""Points for one number of running requests; beyond it all counts are halved, so that old ones fade."""
FEW = 60
"""Points before a band says anything."""
STEP = 1.02
SLOWEST, FASTEST = 0.01, 1e6
"""tok/s beyond which a rate is a mistake."""
_LAST_BUCKET = math.ceil(math.log(FASTEST / SLOWEST) / math.log(STEP))
LAST_TIME = 253_402_300_000.0
MOST_TOKENS = 10**15
MOST_BYTES = 10**18


class RecordsUnreadable(ValueError):
    """What should be kept records is none; the text says where."""


class RecordsNewer(RecordsUnreadable):
    """Written by a newer laneswap: to be left as it is."""


Rates = dict[int, dict[int, int]]
"""Counts by number of running requests and step of the rate."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A KV pool as the engine granted it."""

    at: float
    """Unix seconds of the start that it belongs to, by the host's clock."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is kept of one lane."""

    boots: tuple[BootRecord, ...] = ()
    """Oldest first."""
    pools: tuple[Pool, ...] = ()
    """Oldest first."""
    rates: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    marks: tuple[BindMark, ...] = ()
    """What was bound into containers when they were first seen, oldest first."""
    deeds: tuple[Deed, ...] = ()
    """Ways back that were gone, oldest first."""
    ready: Ready | None = None
    """The way back when it was last whole."""


NOTHING = Recorded()


def bucket(tps: float) -> int | None:
    """The step of a rate, tok/s; None for what is no rate."""
    if not math.isfinite(tps) or not SLOWEST <= tps <= FASTEST:
        return None
    return round(math.log(tps / SLOWEST) / math.log(STEP))


def rate(step: int) -> float:
    """The rate in the middle of a step, tok/s."""
    return SLOWEST * STEP**step


def add_rate(rates: Rates, running: int, tps: float) -> bool:
    """Count one point; False where it is none."""
    step = bucket(tps)
    if step is None or running < 1:
        return False
    counts = rates.setdefault(min(running, MOST_RUNNING), {})
    counts[step] = counts.get(step, 0) + 1
    return True


def faded(counts: Mapping[int, int]) -> dict[int, int]:
    """Counts with their sum within MOST_POINTS; halving keeps the shape."""
    kept = {step: count for step, count in counts.items() if count > 0}
    while sum(kept.values()) > MOST_POINTS:
        kept = {step: count // 2 for step, count in kept.items() if count > 1}
    return kept


def bands(rates: Mapping[int, Mapping[int, int]]) -> tuple[tuple[int, float, float, int], ...]:
    """(running requests, 10th percentile, 90th percentile, points), where there are enough points to say anything."""
    return tuple(
        (running, _percentile(counts, 0.1), _percentile(counts, 0.9), points)
        for running, counts in sorted(rates.items())
        if (points := sum(counts.values())) >= FEW
    )


def _percentile(counts: Mapping[int, int], share: float) -> float:
    wanted, seen = share * sum(counts.values()), 0
    for step in sorted(counts):
        seen += counts[step]
        if seen >= wanted:
            return rate(step)
    return rate(max(counts))


def merged(kept: Recorded, new: Recorded) -> Recorded:
    """What is in the file and what one console has on top; counts add up, a start stands there once."""
    rates: Rates = {running: dict(counts) for running, counts in kept.rates.items()}
    for running, counts in new.rates.items():
        into = rates.setdefault(running, {})
        for step, count in counts.items():
            into[step] = into.get(step, 0) + count
    return Recorded(
        boots=_boots((*kept.boots, *new.boots)),
        pools=_pools((*kept.pools, *new.pools)),
        rates={running: faded(counts) for running, counts in rates.items()},
        marks=_marks((*kept.marks, *new.marks)),
        deeds=_deeds((*kept.deeds, *new.deeds)),
        ready=max((item for item in (kept.ready, new.ready) if item is not None), key=lambda it: it.at, default=None),
    )


def _marks(marks: Iterable[BindMark]) -> tuple[BindMark, ...]:
    """The first one of each source of each container."""
    found: dict[tuple[str, str], BindMark] = {}
    for item in sorted(marks, key=lambda mark: mark.at):
        found.setdefault((item.container, item.source), item)
    return tuple(list(found.values())[-MOST_MARKS:])


def _deeds(deeds: Iterable[Deed]) -> tuple[Deed, ...]:
    found = {item.operation: item for item in sorted(deeds, key=lambda deed: deed.began)}
    return tuple(list(found.values())[-MOST_DEEDS:])


def _boots(boots: Iterable[BootRecord]) -> tuple[BootRecord, ...]:
    """One record a start; of two the one that tells more."""
    found: list[BootRecord] = []
    for item in sorted(boots, key=lambda boot: boot.started):
        if found and abs(found[-1].started - item.started) <= SAME_START_S:
            if _tells(item) > _tells(found[-1]):
                found[-1] = item
            continue
        found.append(item)
    return tuple(found[-MOST_BOOTS:])


def _tells(item: BootRecord) -> tuple[int, bool, bool]:
    return len(item.phases), item.kv_tokens is not None, item.free_at_start is not None


def _pools(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    found: list[Pool] = []
    for item in sorted(pools, key=lambda pool: pool.at):
        if found and abs(found[-1].at - item.at) <= SAME_START_S:
            found[-1] = item
            continue
        found.append(item)
    return tuple(found[-MOST_POOLS:])


# As JSON


def encode(recorded: Recorded) -> bytes:
    """The file's content."""
    document = {
        "schema": SCHEMA,
        "boots": [
            {
                "started": item.started,
                "total_s": item.total,
                "phases": [[name, seconds] for name, seconds in item.phases],
                "kv_tokens": item.kv_tokens,
                "revision": item.revision,
                "free_at_start": item.free_at_start,
                "autotune": item.autotune,
            }
            for item in recorded.boots
        ],
        "pools": [{"at": item.at, "tokens": item.tokens} for item in recorded.pools],
        "decode_rates": {
            str(running): {str(step): count for step, count in sorted(counts.items())}
            for running, counts in sorted(recorded.rates.items())
        },
        "bind_sources": [{name: getattr(item, name) for name in _MARK} for item in recorded.marks],
        "ways_back_gone": [{name: getattr(item, name) for name in _DEED} for item in recorded.deeds],
        "way_back_whole": None if recorded.ready is None else _ready_document(recorded.ready),
    }
    return json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"


_MARK = ("container", "source", "real", "device", "inode", "sentinel", "sha256", "at")
_DEED = ("operation", "began", "took", "target", "operator")


def _ready_document(ready: Ready) -> dict[str, Any]:
    words = {name: getattr(ready, name) for name in ("revision", "by", "subject", "container")}
    return {"at": ready.at, **words, "items": list(ready.items)}


def decode(data: bytes) -> Recorded:
    """What a file holds. Raises RecordsUnreadable, and RecordsNewer for one of a later schema."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RecordsUnreadable(f"no JSON: {error}") from error
    if not isinstance(document, dict):
        raise RecordsUnreadable("no JSON object")
    schema = _whole(document.get("schema"), "schema", 1, 10**6)
    if schema > SCHEMA:
        raise RecordsNewer(f"schema {schema}, this laneswap knows up to {SCHEMA}")
    boots = [_boot(item, f"boots[{at}]") for at, item in enumerate(_list(document, "boots"))]
    pools = [_pool(item, f"pools[{at}]") for at, item in enumerate(_list(document, "pools"))]
    rates = document.get("decode_rates", {})
    if not isinstance(rates, dict):
        raise RecordsUnreadable("decode_rates: no object")
    marks = [_mark(item, f"bind_sources[{at}]") for at, item in enumerate(_list(document, "bind_sources"))]
    deeds = [_deed(item, f"ways_back_gone[{at}]") for at, item in enumerate(_list(document, "ways_back_gone"))]
    ready = _ready(document.get("way_back_whole"))
    kept = Recorded(tuple(boots), tuple(pools), dict(_rates(rates)), tuple(marks), tuple(deeds), ready)
    return merged(NOTHING, kept)


def _mark(item: Any, where: str) -> BindMark:
    if not isinstance(item, dict):
        raise RecordsUnreadable(f"{where}: no object")
    words = {name: _path(item.get(name), f"{where}.{name}") for name in ("container", "source", "real")}
    return BindMark(
        **words,
        device=_whole(item.get("device"), f"{where}.device", 0, 2**64),
        inode=_whole(item.get("inode"), f"{where}.inode", 0, 2**64),
        sentinel=_word(item.get("sentinel"), f"{where}.sentinel"),
        sha256=_word(item.get("sha256"), f"{where}.sha256"),
        at=_number(item.get("at"), f"{where}.at", LAST_TIME),
    )


def _deed(item: Any, where: str) -> Deed:
    if not isinstance(item, dict):
        raise RecordsUnreadable(f"{where}: no object")
    return Deed(
        operation=_word(item.get("operation"), f"{where}.operation"),
        began=_number(item.get("began"), f"{where}.began", LAST_TIME),
        took=_number(item.get("took"), f"{where}.took", LAST_TIME),
        target=_word(item.get("target"), f"{where}.target"),
        operator=_word(item.get("operator"), f"{where}.operator"),
    )


def _ready(item: Any) -> Ready | None:
    if item is None:
        return None
    where = "way_back_whole"
    if not isinstance(item, dict):
        raise RecordsUnreadable(f"{where}: no object")
    words = {name: _path(item.get(name), f"{where}.{name}") for name in ("revision", "by", "subject", "container")}
    items = tuple(_word(name, f"{where}.items") for name in _list(item, "items")[:MOST_ITEMS])
    return Ready(at=_number(item.get("at"), f"{where}.at", LAST_TIME), **words, items=items)


def _path(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise RecordsUnreadable(f"{where}: no text")
    return line(value, 4096)


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    value = document.get(key, [])
    if not isinstance(value, list):
        raise RecordsUnreadable(f"{key}: no list")
    return value


def _boot(item: Any, where: str) -> BootRecord:
    if not isinstance(item, dict):
        raise RecordsUnreadable(f"{where}: no object")
    phases = _list(item, "phases")[:MOST_PHASES]
    tokens, free = item.get("kv_tokens"), item.get("free_at_start")
    return BootRecord(
        started=_number(item.get("started"), f"{where}.started", LAST_TIME),
        total=_number(item.get("total_s"), f"{where}.total_s", LAST_TIME),
        phases=tuple(_phase(phase, f"{where}.phases[{at}]") for at, phase in enumerate(phases)),
        kv_tokens=None if tokens is None else _whole(tokens, f"{where}.kv_tokens", 1, MOST_TOKENS),
        revision=_word(item.get("revision", ""), f"{where}.revision"),
        free_at_start=None if free is None else _whole(free, f"{where}.free_at_start", 0, MOST_BYTES),
        autotune=_word(item.get("autotune", ""), f"{where}.autotune"),
    )


def _phase(item: Any, where: str) -> tuple[str, float]:
    if not isinstance(item, list) or len(item) != 2:
        raise RecordsUnreadable(f"{where}: not [name, seconds]")
    return _word(item[0], where), _number(item[1], where, LAST_TIME)


def _pool(item: Any, where: str) -> Pool:
    if not isinstance(item, dict):
        raise RecordsUnreadable(f"{where}: no object")
    at = _number(item.get("at"), f"{where}.at", LAST_TIME)
    return Pool(at, _whole(item.get("tokens"), f"{where}.tokens", 1, MOST_TOKENS))


def _rates(document: Mapping[str, Any]) -> Iterator[tuple[int, dict[int, int]]]:
    for running, counts in document.items():
        where = f"decode_rates.{word(str(running), 20)}"
        number = _key(running, where, 1, MOST_RUNNING)
        if not isinstance(counts, dict):
            raise RecordsUnreadable(f"{where}: no object")
        yield (
            number,
            {_key(step, where, 0, _LAST_BUCKET): _whole(count, where, 0, 10**9) for step, count in counts.items()},
        )


def _key(text: str, where: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise RecordsUnreadable(f"{where}: no number")
    return _whole(int(text), where, least, most)


def _whole(value: Any, where: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise RecordsUnreadable(f"{where}: no whole number from {least} to {most}")
    return value


def _number(value: Any, where: str, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise RecordsUnreadable(f"{where}: no number from 0 to {most:g}")
    return float(value)


def _word(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise RecordsUnreadable(f"{where}: no text")
    return word(value, 80)
