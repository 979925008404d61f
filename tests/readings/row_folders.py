"""Made listings of row copies, for the tests of readings and of what is made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from console.readings.listing import Entry, Listing
from console.readings.row_types import ROW_BYTES, RowRange
from console.readings.rows import RowSample
from console.readings.tiling import PUBLISHED_ROWS, rank_share

FLEET = Path(__file__).parents[1] / "data" / "fleet"
OLD = "0123456789abcdef0123456789abcdef01234567"
NEW = "89abcdef0123456789abcdef0123456789abcdef"
GIB = 1024**3
BUILT = 1_792_314_742.0
"""2026-10-18T09:12:22Z, the `created` of the captured manifest of rank 2."""
APPARENT = (101_535_150_936, 101_537_926_640)
NAMES = ("model-00047-of-00048.safetensors", "model-00048-of-00048.safetensors")


def manifest(name: str = "rank2") -> str:
    """The text of a captured manifest."""
    return (FLEET / f"engram-local.{name}.json").read_text()


def share_bytes(rank: int, tp: int = 4) -> int:
    """What the share of a rank takes."""
    return sum(item.end - item.start for item in rank_share(rank, tp, PUBLISHED_ROWS)) * ROW_BYTES


def shards(
    present: int, mtime: float = BUILT, suffix: str = "", inode: int = 100, names: tuple[str, ...] = NAMES
) -> list[Entry]:
    """The sparse shards of one copy, `present` bytes allocated in all."""
    parts = [present // len(names)] * len(names)
    parts[-1] += present - sum(parts)
    return [
        Entry(name + suffix, "f", apparent, part, mtime, (1, inode + number))
        for number, (name, apparent, part) in enumerate(zip(names, APPARENT, parts, strict=False))
    ]


def sample(
    entries: list[Entry],
    text: str | None = None,
    *,
    at: float = 1000.0,
    written: float = BUILT + 1,
    free: int | None = 200 * GIB,
    problem: str = "",
) -> RowSample:
    """One look at a folder with these shards, with a manifest where a text is given."""
    index = Entry("model.safetensors.index.json", "f", 4_000_000, 4_001_792, BUILT - 90, (1, 99))
    there = [Entry("engram-local.json", "f", len(text), 4096, written, (1, 98))] if text is not None else []
    listing = Listing("/home/bob/rows", (*([] if problem else [*there, index]), *entries), free=free, problem=problem)
    return RowSample(at, listing, text)


def made(ranges: tuple[RowRange, ...], **more: Any) -> str:
    """A manifest with these ranges, of the new revision."""
    layers: Mapping[str, list[int]] = {str(item.layer): [item.start, item.end] for item in ranges}
    return json.dumps({"source": f"/mnt/dsv41/snapshots/{NEW}", "layers": layers, **more})
