"""A snapshot as JSON-ready data: stable, documented keys; every value with its age and quality."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from console import __version__
from console.alarms import alarms
from console.format import moment
from console.lamps import lamps
from console.readings.health import HttpAnswer, HttpLight
from console.readings.quality import Reading
from console.snapshot import HostView, LaneView, Snapshot
from console.wayback import way_back

CONSOLE_CLOCK = frozenset({"frozen_since", "prefill_since"})
"""Fields in the console's own monotonic time: they mean nothing outside this process."""
OF_HTTP = frozenset({"started"})
"""The same, of the HTTP light alone: elsewhere `started` is Unix time."""
LONG = frozenset({"sizes"})
"""Fields with a row for each of a checkpoint's files."""
SCHEMA = 1
"""Grows when a key changes its meaning or goes away; new keys do not change it."""


def document(snapshot: Snapshot, *, events: int = 50) -> dict[str, Any]:
    """The whole snapshot; `events` bounds how many of the newest events it carries."""
    return {
        "schema": SCHEMA,
        "laneswap": __version__,
        "rehearsal": snapshot.rehearsal,
        "sequence": snapshot.sequence,
        "taken_at": iso(snapshot.wall),
        "fleet": snapshot.fleet.name,
        "operator": snapshot.fleet.operator_name(),
        "lanes": {lane.name: lane_document(snapshot, lane) for lane in snapshot.lanes},
        "hosts": {host.name: host_document(snapshot, host) for host in snapshot.hosts},
        "alarms": [plain(alarm) for alarm in alarms(snapshot)],
        "events": [
            {
                "at": iso(event.wall),
                "subject": event.subject,
                "text": event.text,
                "severity": event.severity,
                "deed": event.deed or None,
                "foreign": event.foreign,
            }
            for event in snapshot.events[len(snapshot.events) - min(events, len(snapshot.events)) :]
        ],
    }


def lane_document(snapshot: Snapshot, lane: LaneView) -> dict[str, Any]:
    """One lane: state and why, lamps, lights, and its dated values."""
    return {
        "state": lane.verdict.state,
        "why": lane.verdict.why,
        "state_for_s": round(snapshot.now - lane.state_since, 1),
        "url": lane.lane.url,
        "head": lane.lane.head,
        "lamps": {
            lamp.title.lower(): {"word": lamp.word, "rest": lamp.rest, "note": lamp.note, "severity": lamp.severity}
            for lamp in lamps(snapshot, lane)
        },
        "lights": plain(lane.lights),
        "health": reading(lane.health, snapshot.now),
        "throughput": reading(lane.throughput, snapshot.now),
        "served": reading(lane.served, snapshot.now),
        "ranks": [_rank(rank) for rank in lane.ranks],
        "kv_pools_tokens": list(lane.pools),
        "usual_decode_tps": list(lane.usual_decode) if lane.usual_decode else None,
        "last_decode_tps": lane.last_decode,
        **_upkeep(snapshot, lane),
    }


def _upkeep(snapshot: Snapshot, lane: LaneView) -> dict[str, Any]:
    """What keeps the lane alive: null for what this lane does not have or nothing says where it is."""
    now = snapshot.now
    return {
        "site_file": _site(lane, now),
        "checkpoints": {host: reading(item, now) for host, item in lane.repos},
        "download": _maybe(lane.download, now),
        "row_copies": _maybe(lane.rows, now),
        "next_row_copies": _maybe(lane.next_rows, now),
        "previous_row_copies": _maybe(lane.previous_rows, now),
        "watchdog": _maybe(lane.watchdog, now),
        "boot": _maybe(lane.boot, now),
        "boot_progress": plain(lane.boot_progress),
        "boots": plain(lane.boots),
        "rank_drift": plain(lane.drift),
        "way_back": plain(way_back(snapshot, lane)),
        "front": _maybe(lane.front, now),
        "usual_decode_by_running": [
            {"running": running, "low_tps": low, "high_tps": high, "points": points}
            for running, low, high, points in lane.usual_by_running
        ],
        "unfilled": list(lane.unfilled),
        **_underway(lane, now),
    }


def _underway(lane: LaneView, now: float) -> dict[str, Any]:
    """What is done to the lane, by whom, and what its way back rests on."""
    return {
        "acting": _maybe(lane.acting, now),
        "ledger_unsynced": lane.unsynced,
        "foreign": [{**plain(act), "at": iso(act.at)} for act in lane.foreign],
        "bind_sources": [
            {
                "host": item.host,
                "container": item.container,
                "source": item.source,
                "state": item.state,
                "words": item.words or None,
                "since": iso(item.since),
                "seen": reading(item.now, now),
                "first": plain(item.mark),
            }
            for item in lane.binds
        ],
        "kept_checkpoint": _maybe(lane.kept_repo, now),
        "ways_back_gone": [{**plain(deed), "began": iso(deed.began)} for deed in lane.deeds],
        "way_back_whole": None if lane.ready is None else {**plain(lane.ready), "at": iso(lane.ready.at)},
    }


def _maybe(item: Reading[Any] | None, now: float) -> dict[str, Any] | None:
    return None if item is None else reading(item, now)


def _site(lane: LaneView, now: float) -> dict[str, Any] | None:
    """Without the file's own assignments: among them may be secrets."""
    if lane.site is None:
        return None
    answer = reading(lane.site, now)
    for key in ("value", "last"):
        said = answer[key]
        if said is not None:
            file = said.pop("file")
            said.pop("data", None)
            answer[key] = {**said, "warnings": file["warnings"], "crlf_lines": file["crlf_lines"]}
    return answer


def _rank(rank: Any) -> dict[str, Any]:
    container = rank.container
    return {
        "rank": rank.rank,
        "host": rank.host,
        "word": rank.word,
        "revision": rank.revision or None,
        "container": container.name if container else None,
    }


def host_document(snapshot: Snapshot, host: HostView) -> dict[str, Any]:
    """One host: its link and its dated values."""
    link = host.link
    return {
        "link": {
            "status": link.status,
            "for_s": round(snapshot.now - link.since, 1),
            "error": link.error or None,
            "hint": link.hint or None,
        },
        "unified_memory": host.unified,
        "clock_drift_s": None if host.drift is None else round(host.drift, 3),
        "memory": reading(host.memory, snapshot.now),
        "gpus": reading(host.gpus, snapshot.now),
        "facts": reading(host.facts, snapshot.now),
        "containers": reading(host.containers, snapshot.now),
    }


def reading(item: Reading[Any], now: float) -> dict[str, Any]:
    """`value` only while it may be read as current; otherwise null, with the last good one under `last`."""
    current = item.current(now)
    age = item.age(now)
    return {
        "value": plain(current),
        "last": plain(item.value) if current is None and item.value is not None else None,
        "quality": item.quality(now),
        "age_s": None if age is None else round(age, 2),
        "taken_at": iso(item.taken_wall),
        "source": item.source,
        "interval_s": item.interval,
        "error": item.error or None,
    }


def iso(wall: float | None) -> str | None:
    """Unix seconds as `2026-11-30T21:55:10.123Z`; None for what is no time."""
    time = moment(wall)
    return None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(value: Any) -> Any:
    """Dataclasses, tuples and mappings as JSON-ready data; NaN and infinity become null."""
    kind: type = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, HttpAnswer):
        return {
            "transport": value.transport,
            "status": value.status,
            "took_s": round(value.took, 3),
            "detail": value.detail or None,
        }
    names = _shown(kind)
    if names is not None:
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


@lru_cache(maxsize=512)
def _shown(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass that are shown; None for what is none. Kept: a thousand hosts have a million fields."""
    if not is_dataclass(kind):
        return None
    hidden = CONSOLE_CLOCK | LONG | (OF_HTTP if issubclass(kind, HttpLight) else frozenset())
    return tuple(field.name for field in fields(kind) if field.name not in hidden)
