"""Engram row copies: each rank's node-local sparse shards, their manifest, and whether all ranges tile. Pure.

Manifest forms: `engram-local.json` of aidendle94/sparkrun-recipes (source, layers, quant, created, note) and the slice
form of tsw2k (layers, rank, tp_size, revision, source, sha256, created). A row takes 264 bytes (256 and 8 of scale).
Nothing that boots compares revisions: rows of the old one under a new checkpoint serve wrong text without an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from console.readings.row_looks import MANIFEST as MANIFEST
from console.readings.row_looks import QUIET_AFTER_S, Shards, being_written, grows, only, rate, shards_of, still_for
from console.readings.row_looks import RowSample as RowSample
from console.readings.row_manifest import ManifestUnreadable as ManifestUnreadable
from console.readings.row_manifest import parse_manifest as parse_manifest
from console.readings.row_manifest import parse_ranges as parse_ranges
from console.readings.row_types import ROW_BYTES as ROW_BYTES
from console.readings.row_types import LayerTiling as LayerTiling
from console.readings.row_types import RowCopies as RowCopies
from console.readings.row_types import RowCopy as RowCopy
from console.readings.row_types import RowManifest as RowManifest
from console.readings.row_types import RowRange as RowRange
from console.readings.row_types import RowState as RowState
from console.readings.row_types import Tiling as Tiling
from console.readings.row_types import range_bytes
from console.readings.tiling import blamed, partition_of
from console.readings.tiling import rank_share as rank_share
from console.readings.tiling import tile as tile

GIB = 1024**3
ROOM_BESIDE = GIB
"""Bytes that `engram_local.py` wants free beyond the copy itself, counted before it writes."""
MTIME_SLACK_S = 5.0
"""Seconds by which data may be newer than its manifest: the manifest is written last."""
CREATED_SLACK_S = 600.0
"""The same for the time that stands in the manifest, which a tool may take before it copies: none takes longer."""
_COMPRESSING = ("btrfs", "zfs", "bcachefs")


def read_copy(
    rank: int,
    host: str,
    path: str,
    samples: Sequence[RowSample],
    *,
    revision: str,
    tp: int | None,
    reads_shards: bool,
    want: Sequence[RowRange],
    now: float,
    room: int | None = None,
    old_copy: int | None = None,
    shards: Sequence[str] = (),
    table_rows: Mapping[int, int] | None = None,
) -> RowCopy:
    """One rank's copy out of its looks, oldest first. Never raises.

    `revision` is what it should be of ('' if nobody says), `want` the ranges it should get, for a copy without a
    manifest. Where its folder is not there yet, `room` is what is free on its file system and `old_copy` what
    deleting the copy in use would free, bytes. `shards` names the files that hold rows, where others lie beside them;
    `table_rows` are the rows of each layer's table, where they are not the published ones.
    The state is the first that holds, from top to bottom: reads the shards; not to be read; nothing there or still
    being written; a manifest that is not one; data newer than the manifest; another rank's; another revision's;
    holes; a revision that cannot be compared; ready.
    """
    blank = RowCopy(rank, host, path, RowState.UNKNOWN, "not read yet", free=room)
    if reads_shards:
        return replace(blank, state=RowState.SHARDS, words=RowState.SHARDS.value, free=None)
    if not samples:
        return blank
    samples = [only(sample, shards) for sample in samples]
    newest = samples[-1]
    wanted = range_bytes(tuple(want)) or None
    blank = replace(blank, expected=wanted, basis="its share of the tables" if wanted else "")
    listing = newest.listing
    if listing.problem == "missing":
        return _without_manifest(replace(blank, present=0, apparent=0), shards_of(listing), samples, now, old_copy)
    if listing.problem or listing.truncated:
        return replace(blank, words=f"unknown: {listing.problem or 'more files than a copy has'}")
    data, free = shards_of(listing), room if listing.free is None else listing.free
    found = replace(blank, present=data.present, apparent=data.apparent, newest=data.newest, free=free)
    found = replace(found, rate=rate(samples))
    entry = next((item for item in listing.entries if item.path == MANIFEST), None)
    if newest.manifest_text is None and entry is not None:
        return replace(found, words="unknown: its manifest could not be read")
    if newest.manifest_text is None:
        return _without_manifest(found, data, samples, now, old_copy)
    written = newest.manifest_mtime if newest.manifest_mtime is not None or entry is None else entry.mtime
    tables = table_rows or {}
    return _with_manifest(found, data, samples, newest.manifest_text, written, revision, tp, now, tables)


def _with_manifest(
    found: RowCopy,
    data: Shards,
    samples: Sequence[RowSample],
    text: str,
    written: float | None,
    revision: str,
    tp: int | None,
    now: float,
    tables: Mapping[int, int],
) -> RowCopy:
    """`written` is the manifest's own time."""
    try:
        manifest = parse_manifest(text)
    except ManifestUnreadable as error:
        return replace(found, state=RowState.UNREADABLE, words=f"manifest unreadable: {error}")
    found = replace(found, manifest=manifest, expected=manifest.bytes, basis="its manifest")
    if going := _rebuilt(found, manifest, data, samples, written, now):
        return going
    if behind := _behind(data, manifest, written):
        return replace(found, state=RowState.OLD_MANIFEST, words=f"{behind}, rebuild", note=_replacing(found))
    if wrong := _other_copy(found, manifest, revision, tp, tables):
        return wrong
    if data.present < manifest.bytes:
        return _with_holes(found, samples, manifest.bytes - data.present)
    return _named(found, manifest, revision)


def judge_manifest(rank: int, host: str, path: str, text: str, *, revision: str, tp: int | None) -> RowCopy:
    """What a manifest alone tells of a rank's copy: never that it is ready. Never raises."""
    found = RowCopy(rank, host, path, RowState.UNKNOWN, "unknown: its shards were not looked at")
    try:
        manifest = parse_manifest(text)
    except ManifestUnreadable as error:
        return replace(found, state=RowState.UNREADABLE, words=f"manifest unreadable: {error}")
    found = replace(found, manifest=manifest, expected=manifest.bytes, basis="its manifest")
    return _other_copy(found, manifest, revision, tp, {}) or found


def _without_manifest(
    found: RowCopy, data: Shards, samples: Sequence[RowSample], now: float, old_copy: int | None
) -> RowCopy:
    missing = None if found.expected is None else max(0, found.expected - data.present)
    beside = 0 if data.files else ROOM_BESIDE
    if missing and found.free is not None and missing + beside > found.free:
        words = f"no room: {_gib(missing + beside)} GiB needed, {_gib(found.free)} free"
        return replace(
            found, state=RowState.NO_ROOM, words=words, note=_first_delete(missing + beside, found, old_copy)
        )
    if not data.files:
        return replace(found, state=RowState.WAITS, words=RowState.WAITS.value)
    words = f"copying, no manifest{_quiet(samples, now)}"
    left = missing / found.rate if missing and found.rate and found.rate > 0 else None
    return replace(found, state=RowState.COPYING, words=words, left=left)


def _quiet(samples: Sequence[RowSample], now: float) -> str:
    still = still_for(samples, now)
    return f"; no new byte for {int(still)}s" if still >= QUIET_AFTER_S else ""


def _first_delete(needed: int, found: RowCopy, old_copy: int | None) -> str:
    if old_copy is None:
        return ""
    if found.free is None or found.free + old_copy < needed:
        return f"also not after deleting the old copy ({_gib(old_copy)} GiB)"
    return f"no room for two: delete the old copy ({_gib(old_copy)} GiB) at the stop, then build"


def _rebuilt(
    found: RowCopy,
    manifest: RowManifest,
    data: Shards,
    samples: Sequence[RowSample],
    written: float | None,
    now: float,
) -> RowCopy | None:
    """A copy that is being written over while the manifest of the former one is still there."""
    if not data.partial and not (_behind(data, manifest, written) and being_written(samples)):
        return None
    of = f" of {manifest.revision[:8]}" if manifest.revision else ""
    whole = data.present >= manifest.bytes
    return replace(
        found,
        state=RowState.COPYING,
        words=f"copying over the old copy, its manifest{of} is still there{_quiet(samples, now)}",
        # blocks that are overwritten are allocated already: how far it is cannot be seen
        expected=None if whole else found.expected,
        basis="" if whole else found.basis,
    )


def _other_copy(
    found: RowCopy, manifest: RowManifest, revision: str, tp: int | None, tables: Mapping[int, int]
) -> RowCopy | None:
    """A copy of another rank or another revision, by its manifest; None where it says nothing against it."""
    if words := _other_rank(found.rank, manifest, tp, tables):
        return replace(found, state=RowState.WRONG_RANK, words=f"{words}, rebuild", note=_replacing(found))
    if revision and manifest.revision and not _same(revision, manifest.revision):
        words = f"old revision {manifest.revision[:8]}, rebuild"
        return replace(found, state=RowState.OLD_REVISION, words=words, note=_replacing(found))
    return None


def _named(found: RowCopy, manifest: RowManifest, revision: str) -> RowCopy:
    if not manifest.revision:
        return replace(found, words="unknown: its manifest names no revision")
    if not revision:
        return replace(found, words=f"unknown: of {manifest.revision[:8]}, nobody says of which it should be")
    return replace(found, state=RowState.READY, words=RowState.READY.value)


def _with_holes(found: RowCopy, samples: Sequence[RowSample], missing: int) -> RowCopy:
    if grows(samples):
        return replace(found, state=RowState.COPYING, words="copying, its manifest is there already")
    fstype = samples[-1].listing.fstype
    if fstype in _COMPRESSING:
        words = (
            f"unknown: {_amount(missing)} fewer allocated than its ranges take, which on {fstype} may be compression"
        )
        return replace(found, words=words)
    words = f"holes: {_amount(missing)} of {_amount(found.expected or 0)} missing, rebuild"
    return replace(found, state=RowState.HOLES, words=words, note=_replacing(found))


def _behind(data: Shards, manifest: RowManifest, written: float | None) -> str:
    """Words where the data is newer than its manifest; '' where it is not, or where nothing tells."""
    if data.newest is None:
        return ""
    if written is not None and data.newest > written + MTIME_SLACK_S:
        return RowState.OLD_MANIFEST.value
    if manifest.created is not None and data.newest > manifest.created + CREATED_SLACK_S:
        return f"{RowState.OLD_MANIFEST.value}: created before it"
    return ""


def _other_rank(rank: int, manifest: RowManifest, tp: int | None, tables: Mapping[int, int]) -> str:
    named = manifest.rank
    if tp is not None and manifest.tp_size is not None and manifest.tp_size != tp:
        return f"a slice for {manifest.tp_size} ranks, not {tp}"
    if named is not None and named != rank:
        return f"another rank's slice (rank {named})"
    part = partition_of(manifest.ranges, tp, tables) if tp is not None else None
    if part is not None and part[1] != rank:
        return f"another rank's slice (the rows of rank {part[1]})"
    return ""


def _same(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _replacing(found: RowCopy) -> str:
    """What stands in the way of building it anew in its folder: the tool counts free bytes before it overwrites."""
    if found.expected is None or found.free is None or found.free >= found.expected + ROOM_BESIDE:
        return ""
    return "no room for two: delete the old copy first"


def _amount(size: int) -> str:
    """`4.0 GiB`; what would round to nothing in smaller units."""
    for unit, name in ((GIB, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if size >= unit / 10:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"


def read_rows(
    copies: Sequence[RowCopy],
    *,
    revision: str,
    holder_rows: Sequence[RowRange] = (),
    table_rows: Mapping[int, int] | None = None,
    tp: int | None = None,
    for_next: bool = False,
) -> RowCopies:
    """All ranks of a lane: the tiling of their ranges, and who does not fit to the others. Never raises."""
    tiling = tile(copies, holder_rows, table_rows or {}, tp=tp)
    wrong = blamed(tiling) if tiling.ok is False or len(set(tiling.families.values())) > 1 else {}
    judged = [_judged(copy, wrong.get(copy.rank, "")) for copy in copies]
    return RowCopies(revision, tuple(_estimated(copy, judged) for copy in judged), tiling, for_next)


_MAY_BE_BLAMED = (RowState.READY, RowState.HOLES, RowState.UNKNOWN, RowState.OLD_REVISION)


def _judged(copy: RowCopy, words: str) -> RowCopy:
    if not words or copy.manifest is None or copy.state not in _MAY_BE_BLAMED:
        return copy
    if copy.state is RowState.OLD_REVISION:
        note = f"{words}; {copy.note}" if copy.note else words
        return replace(copy, note=note)
    return replace(copy, state=RowState.WRONG_RANGES, words=f"other ranges: {words}, rebuild", note=_replacing(copy))


def _estimated(copy: RowCopy, others: Sequence[RowCopy]) -> RowCopy:
    """A copy of which nobody says how big it gets is about as big as the largest that has a manifest."""
    begun = copy.state in (RowState.COPYING, RowState.WAITS) and copy.manifest is None
    peers = [other for other in others if other.rank != copy.rank and other.manifest is not None]
    if copy.expected is not None or not begun or not peers:
        return copy
    peer = max(peers, key=_size)
    missing = max(0, _size(peer) - (copy.present or 0))
    left = missing / copy.rate if missing and copy.rate and copy.rate > 0 else None
    return replace(copy, expected=_size(peer), basis=f"rank {peer.rank}'s copy", left=left)


def _size(copy: RowCopy) -> int:
    return max(copy.present or 0, copy.manifest.bytes if copy.manifest else 0)
