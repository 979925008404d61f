"""Whether the row ranges of all ranks cover each table exactly once, and which published partition they are. Pure.

The engine refuses to start on a gap or an overlap, also of a few hundred rows (`do not tile [0, N) exactly`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from console.readings.row_types import LayerTiling, RowCopy, RowRange, RowState, Tiling

SGLANG = "N*r//tp (SGLang)"
VLLM = "whole hash heads (vLLM)"
MIXED = "mixed"
_SHORT = {SGLANG: "SGLang", VLLM: "vLLM"}
_LANES = {SGLANG: "an SGLang lane", VLLM: "a vLLM lane"}

PUBLISHED_ROWS: Mapping[int, int] = {1: 384_006_168, 14: 384_016_682}
"""Rows of the two Engram tables of DeepSeek-V4.1-Flash, by layer."""
HEAD_BOUNDS: Mapping[int, tuple[int, ...]] = {
    1: (0, 96_000_564, 192_001_740, 288_003_654, 384_006_168),
    14: (0, 96_003_054, 192_007_016, 288_011_564, 384_016_682),
}
"""Bounds of four ranks that take whole hash heads, each of a prime number of rows (tsw2k, slice-check.log)."""


def share(rows: int, rank: int, tp: int) -> tuple[int, int]:
    """The rows of a rank by `engram_partition.py` (aidendle94/sparkrun-recipes): [N*r//tp, N*(r+1)//tp)."""
    return rows * rank // tp, rows * (rank + 1) // tp


def rank_share(rank: int, tp: int, table_rows: Mapping[int, int]) -> tuple[RowRange, ...]:
    """The share of one rank of every table; () where the tables or the rank are not known."""
    if not 0 <= rank < tp:
        return ()
    return tuple(RowRange(layer, *share(rows, rank, tp)) for layer, rows in sorted(table_rows.items()))


def partition_of(ranges: Sequence[RowRange], tp: int, table_rows: Mapping[int, int]) -> tuple[str, int] | None:
    """(family, rank) whose share these ranges are, in every layer; None where they are nobody's.

    Tables that nobody states are taken to be the published ones: a match to the row is no coincidence.
    """
    tables = {**PUBLISHED_ROWS, **table_rows}
    wanted = tuple(sorted(ranges))
    layers = {item.layer for item in wanted}
    if not wanted or tp < 1 or tp > 4096 or not layers <= set(tables):
        return None
    known = {layer: tables[layer] for layer in layers}
    first = wanted[0]
    guess = round(tp * first.start / known[first.layer])
    if rank_share(guess, tp, known) == wanted:
        return SGLANG, guess
    return _head_share(wanted, tp)


def _head_share(wanted: tuple[RowRange, ...], tp: int) -> tuple[str, int] | None:
    for rank in range(4 if tp == 4 else 0):
        shares = [RowRange(item.layer, *HEAD_BOUNDS.get(item.layer, (0,) * 5)[rank : rank + 2]) for item in wanted]
        if wanted == tuple(shares):
            return VLLM, rank
    return None


@dataclass(frozen=True, slots=True, order=True)
class _Piece:
    start: int
    end: int
    rank: int


def tile(
    copies: Sequence[RowCopy],
    holder_rows: Sequence[RowRange],
    table_rows: Mapping[int, int],
    *,
    tp: int | None = None,
) -> Tiling:
    """Whether the ranges of all ranks (`tp` of them, else up to the highest that is known) tile every table.

    `holder_rows` is what the rank that reads the shards serves (ENGRAM_ROWS_HOST); `table_rows` the rows of each
    layer's table, where they are known. A rank whose ranges are not known leaves `ok` at None unless an overlap of the
    others is proof already.
    """
    ranges = known_ranges(copies, holder_rows)
    count = tp or max(ranges, default=-1) + 1
    missing = [rank for rank in range(min(count, 4096)) if rank not in ranges] if len(ranges) < count else []
    unknown = (*(item.rank for item in copies if not ranges[item.rank]), *missing)
    parts = {rank: partition_of(items, count, table_rows) for rank, items in ranges.items()}
    families = {rank: part[0] for rank, part in parts.items() if part}
    layers = sorted({item.layer for items in ranges.values() for item in items} | set(table_rows))
    tilings = []
    for layer in layers:
        rows = table_rows.get(layer, PUBLISHED_ROWS.get(layer) if families else None)
        pieces = sorted(
            _Piece(item.start, item.end, rank)
            for rank, items in ranges.items()
            for item in items
            if item.layer == layer
        )
        tilings.append(_tile_layer(layer, rows, pieces, bool(unknown) or not ranges))
    all_named = all(rank in families for rank, items in ranges.items() if items)
    return _summed(tuple(tilings), unknown, families, copies, all_named=all_named)


def known_ranges(copies: Sequence[RowCopy], holder_rows: Sequence[RowRange]) -> dict[int, tuple[RowRange, ...]]:
    """Ranges by rank: those of its manifest, of the holder those that it serves from the shards; () if not known."""
    found = {}
    for copy in copies:
        holds = copy.state is RowState.SHARDS
        found[copy.rank] = tuple(holder_rows) if holds else copy.manifest.ranges if copy.manifest else ()
    if holder_rows and not any(copy.state is RowState.SHARDS for copy in copies):
        found[HOLDER] = tuple(holder_rows)
    return found


HOLDER = -1
"""Stands for the holder's rank where none of the copies says that it is the holder."""


def _tile_layer(layer: int, rows: int | None, pieces: Sequence[_Piece], partial: bool) -> LayerTiling:
    faults: list[tuple[str, tuple[int, ...]]] = []
    if not pieces and rows is not None and not partial:
        faults.append((f"gap [0, {rows}): no rank has rows of it", ()))
    reached, owner = 0, None
    for piece in pieces:
        if piece.start > reached and not partial:
            between = f"before {_rank(piece.rank)}" if owner is None else f"between {_both(owner, piece.rank)}"
            faults.append((f"gap [{reached}, {piece.start}) {between}", _pair(owner, piece.rank)))
        if piece.start < reached and owner is not None:
            end = min(reached, piece.end)
            words = f"overlap [{piece.start}, {end}) of {_both(owner, piece.rank)}"
            faults.append((words, _pair(owner, piece.rank)))
        if piece.end > reached:
            reached, owner = piece.end, piece.rank
    if owner is not None and rows is not None and reached != rows and (reached > rows or not partial):
        faults.append((f"{_rank(owner)} ends at {reached}, the table at {rows}", (owner,)))
    return LayerTiling(layer, rows, tuple(words for words, _ in faults), tuple(ranks for _, ranks in faults))


def _pair(one: int | None, other: int) -> tuple[int, ...]:
    return (other,) if one is None else (one, other)


def _rank(rank: int) -> str:
    return "the holder" if rank == HOLDER else f"rank {rank}"


def _both(one: int, other: int) -> str:
    return f"{_rank(one)} and {_rank(other)}"


def _summed(
    layers: tuple[LayerTiling, ...],
    unknown: Sequence[int],
    families: dict[int, str],
    copies: Sequence[RowCopy],
    *,
    all_named: bool,
) -> Tiling:
    kinds = set(families.values())
    family = MIXED if len(kinds) > 1 else next(iter(kinds)) if kinds and all_named else ""
    faults = [words for words, _ in _faults(layers)]
    if faults:
        more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""
        words, ok = "; ".join(faults[:3]) + more, False
    elif unknown or not layers or not copies:
        words, ok = _not_known(unknown, copies), None
    elif open_ends := [str(item.layer) for item in layers if item.rows is None]:
        words, ok = f"no gap and no overlap, but nobody says how long {_layers(open_ends)} should be", None
    else:
        words, ok = f"{_layers([str(item.layer) for item in layers])} tiled exactly", True
        words += f", {family}" if family else ""
    return Tiling(layers, family, ok, words, families)


def _layers(names: Sequence[str]) -> str:
    return f"layer{'s' if len(names) > 1 else ''} {' and '.join(names[:8])}"


def _not_known(unknown: Sequence[int], copies: Sequence[RowCopy]) -> str:
    if not copies:
        return "no rank known"
    holders = {copy.rank for copy in copies if copy.state is RowState.SHARDS}
    parts = []
    if waiting := [str(rank) for rank in sorted(unknown) if rank not in holders]:
        parts.append(f"ranges of rank {', '.join(waiting[:8])} not known yet")
    if silent := [str(rank) for rank in unknown if rank in holders]:
        parts.append(f"nobody says which rows rank {', '.join(silent)} reads from the shards")
    return "; ".join(parts)


def blamed(tiling: Tiling) -> dict[int, str]:
    """Ranks that do not fit to the others, with words: those of the minor partition, else those at most faults."""
    counts = Counter(tiling.families.values())
    if len(counts) > 1:
        (most, first), (_, second) = counts.most_common(2)
        if first > second:
            minor = {rank: family for rank, family in tiling.families.items() if family != most}
            return {rank: f"{_SHORT[kind]} split in {_LANES[most]}" for rank, kind in minor.items()}
    touched = Counter(rank for _, ranks in _faults(tiling.layers) for rank in ranks)
    top = max(touched.values(), default=0)
    return {
        rank: next(words for words, ranks in _faults(tiling.layers) if rank in ranks)
        for rank, count in touched.items()
        if count == top and rank != HOLDER
    }


def _faults(layers: Iterable[LayerTiling]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for layer in layers:
        for words, ranks in zip(layer.faults, layer.ranks, strict=True):
            yield f"layer {layer.layer}: {words}", ranks
