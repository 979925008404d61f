"""Whether the ranges of all ranks tile each table once, and which rank does not fit to the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_folders import FLEET, GIB, NEW, made, manifest, sample, shards, share_bytes

from console.readings.row_types import RowCopies, RowCopy, RowManifest, RowRange, RowState
from console.readings.rows import parse_manifest, parse_ranges, read_copy, read_rows
from console.readings.tiling import HEAD_BOUNDS, MIXED, PUBLISHED_ROWS, SGLANG, VLLM, partition_of, rank_share, tile

N1, N14 = 384_006_168, 384_016_682


def published(name: str) -> list[tuple[RowRange, ...]]:
    """The ranges of four ranks as the published tools print them."""
    text = (FLEET / f"engram-partition.{name}.txt").read_text()
    return [parse_ranges(row) for row in re.findall(r"^rank \d: (.+)$", text, re.MULTILINE)]


BY_ROWS, BY_HEADS = published("sglang-tp4"), published("vllm-heads-tp4")


def copy(rank: int, ranges: Sequence[RowRange] = (), state: RowState = RowState.READY) -> RowCopy:
    found = RowManifest(tuple(ranges), "local", revision=NEW) if ranges else None
    return RowCopy(rank, f"spark-{rank}", "/rows", state, state.value, manifest=found)


def copies(ranges: Sequence[Sequence[RowRange]]) -> list[RowCopy]:
    return [copy(rank, items) for rank, items in enumerate(ranges)]


HOLDER = copy(1, state=RowState.SHARDS)


def test_the_published_partitions_are_those_of_the_formulas() -> None:
    assert [rank_share(rank, 4, PUBLISHED_ROWS) for rank in range(4)] == BY_ROWS
    for rank, ranges in enumerate(BY_HEADS):
        assert ranges == tuple(RowRange(layer, *bounds[rank : rank + 2]) for layer, bounds in HEAD_BOUNDS.items())
    assert [parse_manifest(manifest(f"rank{rank}")).ranges for rank in (0, 2, 3)] == [BY_ROWS[n] for n in (0, 2, 3)]


def test_a_few_hundred_rows_tell_the_two_apart() -> None:
    """972 to 1,344 rows of layer 1 and 947 to 1,325 of layer 14."""
    pairs = list(zip(BY_ROWS, BY_HEADS, strict=True))
    off = [[abs(one.start - other.start) for one, other in zip(*pair, strict=True)] for pair in pairs]
    assert [row[0] for row in off] == [0, 978, 1344, 972]
    assert [row[1] for row in off] == [0, 1116, 1325, 947]
    assert [partition_of(ranges, 4, {}) for ranges in BY_ROWS] == [(SGLANG, rank) for rank in range(4)]
    assert [partition_of(ranges, 4, {}) for ranges in BY_HEADS] == [(VLLM, rank) for rank in range(4)]
    assert partition_of(BY_HEADS[1], 8, {}) is None
    assert partition_of((RowRange(1, 5, 9),), 4, {}) is None
    assert partition_of((RowRange(2, 0, 9),), 4, {}) is None


@pytest.mark.parametrize(("ranges", "family"), [(BY_ROWS, SGLANG), (BY_HEADS, VLLM)])
def test_whole_partitions_tile(ranges: list[tuple[RowRange, ...]], family: str) -> None:
    found = tile(copies(ranges), (), PUBLISHED_ROWS)
    assert (found.ok, found.family) == (True, family)
    assert found.words == f"layers 1 and 14 tiled exactly, {family}"
    assert [(item.layer, item.rows, item.faults) for item in found.layers] == [(1, N1, ()), (14, N14, ())]
    assert found.families == dict.fromkeys(range(4), family)


def test_the_holders_rows_are_the_missing_piece() -> None:
    holder_rows = parse_ranges("1:96001542:192003084,14:96004170:192008341")
    ranks = [copy(0, BY_ROWS[0]), HOLDER, copy(2, BY_ROWS[2]), copy(3, BY_ROWS[3])]
    assert tile(ranks, holder_rows, PUBLISHED_ROWS).ok is True
    silent = tile(ranks, (), PUBLISHED_ROWS)
    assert (silent.ok, silent.words) == (None, "nobody says which rows rank 1 reads from the shards")
    assert tile([ranks[0], *ranks[2:]], holder_rows, PUBLISHED_ROWS).ok is True


def test_a_gap_and_an_overlap_are_named_with_numbers_and_ranks() -> None:
    found = tile(copies([BY_ROWS[0], BY_ROWS[1], BY_HEADS[2], BY_ROWS[3]]), (), PUBLISHED_ROWS)
    assert found.ok is False
    assert found.family == MIXED
    assert found.layers[0].faults == (
        "overlap [192001740, 192003084) of rank 1 and rank 2",
        "gap [288003654, 288004626) between rank 2 and rank 3",
    )
    assert found.layers[1].faults == (
        "overlap [192007016, 192008341) of rank 1 and rank 2",
        "gap [288011564, 288012511) between rank 2 and rank 3",
    )
    assert found.words.startswith("layer 1: overlap [192001740, 192003084) of rank 1 and rank 2; layer 1: gap ")
    assert found.words.endswith(" (and 1 more)")


def test_ends_that_do_not_fit() -> None:
    short = [*BY_ROWS[:3], (RowRange(1, 288_004_626, N1 - 5), BY_ROWS[3][1])]
    assert tile(copies(short), (), PUBLISHED_ROWS).layers[0].faults == (f"rank 3 ends at {N1 - 5}, the table at {N1}",)
    late = [(RowRange(1, 10, 96_001_542), BY_ROWS[0][1]), *BY_ROWS[1:]]
    assert tile(copies(late), (), PUBLISHED_ROWS).layers[0].faults == ("gap [0, 10) before rank 0",)
    bare = [items[:1] for items in BY_ROWS]
    assert tile(copies(bare), (), PUBLISHED_ROWS).layers[1].faults == (f"gap [0, {N14}): no rank has rows of it",)


def test_three_ranks_with_the_rows_of_the_first() -> None:
    found = tile(copies([BY_ROWS[0]] * 4), (), PUBLISHED_ROWS)
    assert found.layers[0].faults[0] == "overlap [0, 96001542) of rank 0 and rank 1"
    assert found.layers[0].faults[-1] == f"rank 0 ends at 96001542, the table at {N1}"


def test_while_a_rank_is_not_known_only_an_overlap_is_proof() -> None:
    ranks = copies([BY_ROWS[0], (), BY_ROWS[2], BY_ROWS[3]])
    found = tile(ranks, (), PUBLISHED_ROWS)
    assert (found.ok, found.words) == (None, "ranges of rank 1 not known yet")
    assert found.family == SGLANG
    ranks[2] = copy(2, BY_HEADS[2])
    assert tile(ranks, (), PUBLISHED_ROWS).ok is None
    ranks[3] = copy(3, BY_HEADS[2])
    assert tile(ranks, (), PUBLISHED_ROWS).ok is False
    assert tile(copies(BY_ROWS[:3]), (), PUBLISHED_ROWS, tp=4).words == "ranges of rank 3 not known yet"
    assert tile([], (), PUBLISHED_ROWS).ok is None


def test_tables_whose_length_nobody_states() -> None:
    """Ranges of a published partition tell the length; others leave the end open."""
    assert tile(copies(BY_ROWS), (), {}).ok is True
    odd = [(RowRange(1, 0, 100),), (RowRange(1, 100, 200),)]
    found = tile(copies(odd), (), {})
    assert (found.ok, found.words) == (None, "no gap and no overlap, but nobody says how long layer 1 should be")
    assert tile(copies(odd), (), {1: 200}).words == "layer 1 tiled exactly, N*r//tp (SGLang)"
    assert tile(copies([odd[1], odd[0]]), (), {1: 200}).family == SGLANG
    uneven = [(RowRange(1, 0, 50),), (RowRange(1, 50, 200),)]
    assert tile(copies(uneven), (), {1: 200}).words == "layer 1 tiled exactly"
    assert tile(copies(odd), (), {1: 201}).ok is False


# --- who does not fit ------------------------------------------------------------------------------------------------


def four(texts: Sequence[str | None], **changes: object) -> RowCopies:
    """Four ranks with these manifests; None for the holder."""
    found = [
        read_copy(
            rank,
            f"spark-{rank}",
            "/rows",
            [sample(shards(share_bytes(rank) + GIB), text)] if text else [],
            revision=NEW,
            tp=4,
            reads_shards=text is None,
            want=(),
            now=1000.0,
        )
        for rank, text in enumerate(texts)
    ]
    return read_rows(found, revision=NEW, **changes)  # type: ignore[arg-type]


SITE_ROWS = BY_ROWS[1]


def test_a_fleet_as_it_should_be() -> None:
    found = four([manifest("rank0"), None, manifest("rank2"), manifest("rank3")], holder_rows=SITE_ROWS)
    assert [item.state for item in found.copies] == [RowState.READY, RowState.SHARDS, RowState.READY, RowState.READY]
    assert found.tiling.ok is True


def test_the_wrong_partition_file_is_named() -> None:
    found = four([manifest("rank0"), None, manifest("rank2.WRONG-PARTITION"), manifest("rank3")], holder_rows=SITE_ROWS)
    assert [item.state for item in found.copies] == [
        RowState.READY,
        RowState.SHARDS,
        RowState.WRONG_RANGES,
        RowState.READY,
    ]
    assert found.copies[2].words == "other ranges: vLLM split in an SGLang lane, rebuild"
    assert found.tiling.families == {0: SGLANG, 1: SGLANG, 2: VLLM, 3: SGLANG}


def test_the_wrong_partition_is_seen_before_the_others_are_known() -> None:
    """One rank not read: no gap can be proved, yet two families never tile."""
    found = four([manifest("rank0"), None, manifest("rank2.WRONG-PARTITION"), manifest("rank3")])
    assert found.tiling.ok is None
    assert found.copies[2].state is RowState.WRONG_RANGES


def test_an_sglang_copy_in_a_vllm_lane() -> None:
    texts = [made(ranges) for ranges in BY_HEADS]
    texts[3] = made(BY_ROWS[3])
    assert four(texts).copies[3].words == "other ranges: SGLang split in a vLLM lane, rebuild"


def test_ranges_of_no_family_are_blamed_by_their_faults() -> None:
    texts: list[str | None] = [made(ranges) for ranges in BY_ROWS]
    texts[2] = made((RowRange(1, 192_003_000, 288_004_000), RowRange(14, 192_008_341, 288_012_511)))
    found = four(texts)
    assert [item.state for item in found.copies] == [
        RowState.READY,
        RowState.READY,
        RowState.WRONG_RANGES,
        RowState.READY,
    ]
    assert found.copies[2].words == (
        "other ranges: layer 1: overlap [192003000, 192003084) of rank 1 and rank 2, rebuild"
    )


def test_where_nobody_can_be_singled_out_both_are_named() -> None:
    texts: list[str | None] = [made(ranges) for ranges in (BY_ROWS[0], BY_ROWS[1], BY_HEADS[2], BY_HEADS[3])]
    found = four(texts)
    assert [item.state for item in found.copies] == [
        RowState.READY,
        RowState.WRONG_RANGES,
        RowState.WRONG_RANGES,
        RowState.READY,
    ]


def test_a_copy_of_the_old_revision_stays_that_and_tells_the_rest() -> None:
    texts: list[str | None] = [manifest("rank0"), None, manifest("rank2.WRONG-PARTITION"), manifest("rank3")]
    ready = four(texts, holder_rows=SITE_ROWS)
    old = replace(ready.copies[2], state=RowState.OLD_REVISION, words="old revision 01234567, rebuild")
    found = read_rows([*ready.copies[:2], old, ready.copies[3]], revision=NEW, holder_rows=SITE_ROWS)
    assert (found.copies[2].state, found.copies[2].note) == (RowState.OLD_REVISION, "vLLM split in an SGLang lane")


@st.composite
def tilings(draw: st.DrawFn) -> tuple[int, list[tuple[RowRange, ...]]]:
    """A table and a partition of it among some ranks, in any order."""
    cuts = sorted(draw(st.sets(st.integers(1, 999), min_size=1, max_size=6)))
    pieces = [(RowRange(1, start, end),) for start, end in pairwise([0, *cuts, 1000])]
    return 1000, draw(st.permutations(pieces))


@given(tilings(), st.data())
def test_every_partition_tiles_and_no_other_does(
    made_of: tuple[int, list[tuple[RowRange, ...]]], data: st.DataObject
) -> None:
    rows, pieces = made_of
    assert tile(copies(pieces), (), {1: rows}).ok is True
    index = data.draw(st.integers(0, len(pieces) - 1))
    (old,) = pieces[index]
    start = data.draw(st.integers(0, 1100))
    other = RowRange(1, start, start + data.draw(st.integers(1, 1100)))
    found = tile(copies([*pieces[:index], (other,), *pieces[index + 1 :]]), (), {1: rows})
    assert found.ok is (other == old)
    assert bool(found.layers[0].faults) is (other != old)


RANGES = st.lists(st.builds(RowRange, st.integers(0, 3), st.integers(0, 50), st.integers(51, 99)), max_size=4)


@given(st.lists(RANGES, max_size=5), RANGES, st.dictionaries(st.integers(0, 3), st.integers(1, 120)))
def test_any_ranges_are_judged(pieces: list[list[RowRange]], holder: list[RowRange], tables: dict[int, int]) -> None:
    found = read_rows(copies(pieces), revision=NEW, holder_rows=holder, table_rows=tables)
    assert found.tiling.words
    assert (found.tiling.ok is False) is any(item.faults for item in found.tiling.layers)
