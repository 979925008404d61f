"""Manifests of row copies, and ranges as launchers write them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from console.readings.exits import rfc3339
from console.readings.revision import commit_in
from console.readings.row_types import RowManifest, RowRange
from console.sanitize import line, word

MAX_MANIFEST = 1 << 20
"""Characters of a manifest that are looked at: the published ones have under 4,000."""
MAX_LAYERS = 256
MAX_ROWS = 1 << 48
"""More rows than any table has, yet far from overflowing anything that counts their bytes."""


class ManifestUnreadable(ValueError):
    """A manifest or list of ranges that is none; the message says in safe words what is wrong with it."""


def parse_manifest(text: str) -> RowManifest:
    """One `engram-local.json`, in either published form. Raises ManifestUnreadable."""
    raw = _object(text)
    source, rank, tp_size = _text(raw.get("source"), 500), _small(raw.get("rank")), _small(raw.get("tp_size"))
    sha256 = raw.get("sha256")
    sliced = rank is not None or tp_size is not None or isinstance(sha256, Mapping)
    created = raw.get("created")
    return RowManifest(
        ranges=_layers(raw.get("layers")),
        form="slice" if sliced or source.startswith(("cut:", "pack:")) else "local",
        source=source,
        revision=_revision(raw.get("revision")) or commit_in(source.partition(":")[2]) or commit_in(source),
        rank=rank,
        tp_size=tp_size,
        quant=word(raw["quant"], 40) if isinstance(raw.get("quant"), str) else "",
        created=rfc3339(created) if isinstance(created, str) else None,
        digests=len(sha256) if isinstance(sha256, Mapping) else 0,
    )


def _object(text: str) -> Mapping[str, Any]:
    if len(text) > MAX_MANIFEST:
        raise ManifestUnreadable(f"longer than {MAX_MANIFEST} characters")
    if not text.strip():
        raise ManifestUnreadable("empty")
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestUnreadable(f"not JSON: {line(str(error), 120)}") from error
    if not isinstance(raw, Mapping):
        raise ManifestUnreadable(f"expected an object, found {type(raw).__name__}")
    return raw


def _layers(raw: object) -> tuple[RowRange, ...]:
    if not isinstance(raw, Mapping) or not raw:
        raise ManifestUnreadable("no `layers`")
    if len(raw) > MAX_LAYERS:
        raise ManifestUnreadable(f"more than {MAX_LAYERS} layers")
    found = []
    for name, value in raw.items():
        if not re.fullmatch(r"0|[1-9][0-9]{0,5}", str(name)):
            raise ManifestUnreadable(f"`layers` has the key {word(str(name), 40)!r}, no layer's number")
        pair = value if isinstance(value, list) and len(value) == 2 else [None, None]
        found.append(_range(int(name), pair[0], pair[1]))
    return tuple(sorted(found))


def _range(layer: int, start: object, end: object) -> RowRange:
    if not _whole(start) or not _whole(end):
        raise ManifestUnreadable(f"layer {layer}: expected [first row, row behind the last]")
    if not 0 <= start < end <= MAX_ROWS:
        raise ManifestUnreadable(f"layer {layer}: [{_number(start)}, {_number(end)}) is no range of rows")
    return RowRange(layer, start, end)


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: int) -> str:
    return str(value) if abs(value) < 10**18 else "a huge number"


def _small(value: object) -> int | None:
    return value if _whole(value) and 0 <= value < 1 << 20 else None


def _text(value: object, limit: int) -> str:
    return line(value, limit) if isinstance(value, str) else ""


def _revision(value: object) -> str:
    """A commit, whole or cut short; '' for a branch's name or anything else."""
    text = value.strip().lower() if isinstance(value, str) else ""
    return text if re.fullmatch(r"[0-9a-f]{7,40}", text) else ""


def parse_ranges(text: str) -> tuple[RowRange, ...]:
    """`1:a:b,14:c:d` (or with blanks), as launchers and tools take it. '' is (). Raises ManifestUnreadable."""
    found = []
    for part in re.split(r"[,\s]+", text[:65_536].strip())[:MAX_LAYERS]:
        if not part:
            continue
        match = re.fullmatch(r"([0-9]{1,6}):([0-9]{1,18}):([0-9]{1,18})", part)
        if not match:
            raise ManifestUnreadable(f"{word(part, 60)!r}: expected LAYER:START:END")
        found.append(_range(int(match[1]), int(match[2]), int(match[3])))
    return tuple(sorted(found))
