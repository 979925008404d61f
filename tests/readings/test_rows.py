"""Row copies: manifests of both published forms, and the one word for each rank's copy."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_folders import (
    BUILT,
    FLEET,
    GIB,
    NAMES,
    NEW,
    OLD,
    made,
    manifest,
    sample,
    shards,
    share_bytes,
)

from console.readings.listing import Entry, Leads, Listing, parse_listing
from console.readings.row_build import parse_build
from console.readings.row_types import RowManifest, RowRange
from console.readings.rows import (
    ManifestUnreadable,
    RowCopy,
    RowSample,
    RowState,
    judge_manifest,
    parse_manifest,
    parse_ranges,
    read_copy,
    read_rows,
)
from console.readings.tiling import PUBLISHED_ROWS, rank_share

WHOLE = share_bytes(2)


def read(samples: list[RowSample], rank: int = 2, **changes: Any) -> RowCopy:
    given_: dict[str, Any] = {"revision": NEW, "tp": 4, "reads_shards": False, "want": (), "now": 1000.0, **changes}
    return read_copy(rank, f"spark-{rank}", "/home/bob/rows", samples, **given_)


# --- manifests -------------------------------------------------------------------------------------------------------


def test_the_published_form_with_the_revision_in_the_source() -> None:
    assert parse_manifest(manifest()) == RowManifest(
        ranges=(RowRange(1, 192_003_084, 288_004_626), RowRange(14, 192_008_341, 288_012_511)),
        form="local",
        source=f"/mnt/dsv41/snapshots/{NEW}",
        revision=NEW,
        quant="fp8",
        created=BUILT,
    )
    assert parse_manifest(manifest()).bytes == (96_001_542 + 96_004_170) * 264


def test_the_published_slice_form() -> None:
    found = parse_manifest(manifest("tsw2k-rank1"))
    assert (found.form, found.rank, found.tp_size, found.digests) == ("slice", 1, 4, 4)
    assert (found.source, found.revision) == ("pack:rank-1.pack", "dba1be0a40aa45a94ad051997016db3960a90277")
    assert found.ranges == parse_ranges("1:96000564:192001740 14:96003054:192007016")


def test_a_cut_names_its_checkpoint_in_the_source() -> None:
    found = parse_manifest(json.dumps({"layers": {"1": [0, 5]}, "source": f"cut:/models/name-{OLD}"}))
    assert (found.form, found.revision) == ("slice", OLD)


@pytest.mark.parametrize("named", ["main", "", 7, None, ["x"], "0123456\n89", "g" * 40])
def test_what_is_no_commit_is_no_revision(named: object) -> None:
    assert parse_manifest(json.dumps({"layers": {"1": [0, 5]}, "revision": named})).revision == ""


def test_least_that_is_a_manifest() -> None:
    assert parse_manifest('{"layers": {"1": [0, 5]}}') == RowManifest((RowRange(1, 0, 5),), "local")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        (manifest()[:120], "not JSON: "),
        ("[1]", "expected an object, found list"),
        ("{}", "no `layers`"),
        ('{"layers": {}}', "no `layers`"),
        ('{"layers": [1]}', "no `layers`"),
        ('{"layers": {"one": [0, 1]}}', "'one', no layer's number"),
        ('{"layers": {"01": [0, 1]}}', "'01', no layer's number"),
        ('{"layers": {"1": [0]}}', "layer 1: expected [first row"),
        ('{"layers": {"1": "0:5"}}', "layer 1: expected [first row"),
        ('{"layers": {"1": [0, 5.0]}}', "layer 1: expected [first row"),
        ('{"layers": {"1": [false, true]}}', "layer 1: expected [first row"),
        ('{"layers": {"1": [5, 5]}}', "layer 1: [5, 5) is no range"),
        ('{"layers": {"1": [-1, 5]}}', "layer 1: [-1, 5) is no range"),
        ('{"layers": {"1": [0, 1%s]}}' % ("0" * 60), "a huge number"),
        ('{"layers": {"1": [0, 1%s]}}' % ("0" * 5000), "not JSON"),
        ("[" * 100_000, "not JSON"),
        (json.dumps({"layers": {str(n): [0, 1] for n in range(300)}}), "more than 256 layers"),
        (" " * (1 << 20) + "{}", "longer than"),
    ],
)
def test_what_is_no_manifest_says_why(text: str, said: str) -> None:
    with pytest.raises(ManifestUnreadable) as caught:
        parse_manifest(text)
    assert said in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
KEYS = ("source", "layers", "rank", "tp_size", "revision", "sha256", "quant", "created", "note")


def safe(value: object) -> bool:
    """Whether no text in a value holds a control character."""
    if isinstance(value, str):
        return not any(unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") for character in value)
    if is_dataclass(value):
        return all(safe(getattr(value, item.name)) for item in fields(value))
    return all(safe(item) for item in value) if isinstance(value, tuple) else True


@given(st.dictionaries(st.sampled_from(KEYS), JSON) | JSON)
def test_hostile_manifests_are_read_or_refused(raw: object) -> None:
    try:
        found = parse_manifest(json.dumps(raw))
    except ManifestUnreadable as error:
        assert safe(str(error))
        return
    assert safe(found)
    assert all(0 <= item.start < item.end for item in found.ranges)


@given(st.text(max_size=300))
def test_hostile_text_is_refused_in_safe_words(text: str) -> None:
    with pytest.raises(ManifestUnreadable) as caught:
        parse_manifest("\x1b[31m" + text)
    assert safe(str(caught.value))


def test_ranges_as_launchers_write_them() -> None:
    assert parse_ranges("1:96001542:192003084,14:96004170:192008341") == rank_share(1, 4, PUBLISHED_ROWS)
    assert parse_ranges("") == ()
    for text in ("1:5", "1:5:5", "a:1:2", "1:-1:5", "1:1:2;3:4:5"):
        with pytest.raises(ManifestUnreadable):
            parse_ranges(text)


# --- one copy --------------------------------------------------------------------------------------------------------


def test_a_whole_copy_of_the_right_revision_is_ready() -> None:
    found = read([sample(shards(WHOLE + 8192), manifest())])
    assert (found.state, found.words) == (RowState.READY, "ready")
    assert (found.present, found.expected, found.basis) == (WHOLE + 8192, WHOLE, "its manifest")
    assert found.apparent == 101_535_150_936 + 101_537_926_640
    assert found.share == 1.0
    assert found.newest == BUILT
    assert (found.rate, found.left, found.note) == (None, None, "")


def test_the_slice_form_is_judged_by_rank_and_revision() -> None:
    text = manifest("tsw2k-rank1")
    of = parse_manifest(text)
    here = [sample(shards(of.bytes, mtime=BUILT - 10_000_000), text)]
    assert read(here, rank=1, revision=of.revision).state is RowState.READY
    assert read(here, rank=2, revision=of.revision).words == "another rank's slice (rank 1), rebuild"
    assert read(here, rank=1, revision=of.revision, tp=2).words == "a slice for 4 ranks, not 2, rebuild"
    assert read(here, rank=1, revision=OLD).words == "old revision dba1be0a, rebuild"


def test_rows_of_the_old_revision_pass_the_boot_and_are_named_here() -> None:
    found = read([sample(shards(WHOLE, mtime=BUILT - 40 * 86400), manifest("rank2.STALE-REVISION"))])
    assert (found.state, found.words) == (RowState.OLD_REVISION, "old revision 01234567, rebuild")
    assert read([sample(shards(WHOLE), made(rank_share(2, 4, PUBLISHED_ROWS)))], revision=OLD).state is (
        RowState.OLD_REVISION
    )


def test_a_revision_may_be_cut_short_on_either_side() -> None:
    here = [sample(shards(WHOLE), made(rank_share(2, 4, PUBLISHED_ROWS), revision=NEW[:12]))]
    assert read(here).state is RowState.READY
    assert read(here, revision=NEW[:7]).state is RowState.READY
    assert read(here, revision=NEW[:7] + "0").state is RowState.OLD_REVISION


def test_a_copy_that_cannot_be_compared_is_not_ready() -> None:
    unnamed = json.dumps({"layers": {"1": [0, 1000]}})
    assert read([sample(shards(WHOLE), unnamed)], tp=None).words == "unknown: its manifest names no revision"
    found = read([sample(shards(WHOLE), manifest())], revision="")
    assert (found.state, found.words) == (
        RowState.UNKNOWN,
        "unknown: of 89abcdef, nobody says of which it should be",
    )


def test_rows_of_another_rank_are_told_by_their_ranges() -> None:
    found = read([sample(shards(WHOLE), manifest("rank0"))], rank=3)
    assert (found.state, found.words) == (
        RowState.WRONG_RANK,
        "another rank's slice (the rows of rank 0), rebuild",
    )
    by_heads = [sample(shards(WHOLE + GIB), manifest("rank2.WRONG-PARTITION"))]
    assert read(by_heads).state is RowState.READY
    assert read(by_heads, rank=1).state is RowState.WRONG_RANK


def test_another_ranks_rows_are_known_by_the_tables_of_ones_own_recipe() -> None:
    tables = {1: 90_000, 14: 90_300}
    here = [sample(shards(WHOLE), made((RowRange(1, 30_000, 60_000), RowRange(14, 30_100, 60_200))))]
    found = read(here, rank=2, tp=3, table_rows=tables)
    assert (found.state, found.words) == (RowState.WRONG_RANK, "another rank's slice (the rows of rank 1), rebuild")
    assert read(here, rank=1, tp=3, table_rows=tables).state is not RowState.WRONG_RANK
    assert read(here, rank=2, tp=3).state is not RowState.WRONG_RANK


def test_fewer_bytes_than_the_ranges_take_are_holes() -> None:
    found = read([sample(shards(WHOLE - 4 * GIB), manifest())])
    assert (found.state, found.words) == (RowState.HOLES, "holes: 4.0 GiB of 47.2 GiB missing, rebuild")
    assert read([sample(shards(WHOLE - 1), manifest())]).words == "holes: 1 bytes of 47.2 GiB missing, rebuild"
    assert read([sample(shards(WHOLE - 200_000), manifest())]).words.startswith("holes: 0.2 MiB of")


@pytest.mark.parametrize("fstype", ["zfs", "btrfs"])
def test_where_the_file_system_compresses_fewer_bytes_prove_nothing(fstype: str) -> None:
    look = sample(shards(WHOLE - GIB), manifest())
    found = read([replace(look, listing=replace(look.listing, fstype=fstype))])
    assert found.state is RowState.UNKNOWN
    assert found.words == f"unknown: 1.0 GiB fewer allocated than its ranges take, which on {fstype} may be compression"


def test_preallocated_bytes_count_no_further_than_the_file() -> None:
    entry = Entry(NAMES[0], "f", 1000, 10**12, BUILT, (1, 1))
    assert read([sample([entry], manifest())]).present == 1000


def test_hard_links_and_links_count_once() -> None:
    one = Entry(NAMES[0], "f", 10**12, 5000, BUILT, (1, 7), 2)
    other = Entry(NAMES[1], "f", 10**12, 5000, BUILT, (1, 7), 2)
    led = Entry(NAMES[1], "l", 10**12, 6000, BUILT, (1, 8), 1, "../x", Leads.OUTSIDE)
    lost = Entry(NAMES[1], "l", 0, 0, BUILT, None, 1, "../x", Leads.NOWHERE)
    assert read([sample([one, other])]).present == 5000
    assert read([sample([one, led])]).present == 11_000
    assert read([sample([one, lost])]).present == 5000


def test_other_shards_may_lie_beside_those_with_rows() -> None:
    """A folder that is the whole checkpoint: 46 shards that every rank has besides the two sparse ones."""
    others = tuple(f"model-{number:05}-of-00048.safetensors" for number in range(1, 3))
    beside = shards(30 * GIB, mtime=BUILT + 9000, inode=500, names=others)
    look = sample([*shards(WHOLE), *beside], manifest())
    assert read([look], shards=NAMES).state is RowState.READY
    assert read([look], shards=NAMES).present == WHOLE
    assert read([look]).present == WHOLE + 30 * GIB


# --- while it is built -----------------------------------------------------------------------------------------------


def test_a_copy_without_a_manifest_is_being_made() -> None:
    found = read([sample(shards(WHOLE // 2, suffix=".partial"))])
    assert (found.state, found.words, found.expected) == (RowState.COPYING, "copying, no manifest", None)
    assert found.share is None
    found = read([sample(shards(WHOLE // 2))], want=rank_share(2, 4, PUBLISHED_ROWS))
    assert (found.share, found.basis) == (0.5, "its share of the tables")


def test_rate_and_time_to_go_come_from_two_looks() -> None:
    step = 600_000_000
    looks = [sample(shards(n * step, mtime=BUILT + n), at=1000.0 + n) for n in range(41)]
    found = read(looks, want=rank_share(2, 4, PUBLISHED_ROWS), now=1040.0)
    assert found.rate == pytest.approx(step)
    assert found.left == pytest.approx((WHOLE - 40 * step) / step)
    assert read(looks[:1], want=rank_share(2, 4, PUBLISHED_ROWS)).rate is None


def test_a_copy_begun_anew_is_not_counted_backwards() -> None:
    looks = [sample(shards(40 * GIB), at=1000.0), sample(shards(0), at=1005.0), sample(shards(5 * GIB), at=1010.0)]
    assert read(looks, now=1010.0).rate == pytest.approx(GIB)
    assert read(looks[:2], now=1005.0).rate is None


def test_a_copy_that_stands_still_says_so_and_promises_nothing() -> None:
    looks = [sample(shards(GIB), at=1000.0 + n * 5) for n in range(20)]
    found = read(looks, want=rank_share(2, 4, PUBLISHED_ROWS), now=1095.0)
    assert (found.state, found.words) == (RowState.COPYING, "copying, no manifest; no new byte for 95s")
    assert (found.rate, found.left) == (0.0, None)


def test_an_old_manifest_over_data_that_moves_is_a_copy_in_the_making() -> None:
    old = manifest("rank2.STALE-REVISION")
    looks = [sample(shards(WHOLE, mtime=BUILT + n), old, at=1000.0 + n, written=BUILT - 86400) for n in (0, 5)]
    found = read(looks, now=1005.0)
    assert found.state is RowState.COPYING
    assert found.words == "copying over the old copy, its manifest of 01234567 is still there"
    assert (found.expected, found.share, found.left) == (None, None, None)
    partial = [sample([*shards(WHOLE), *shards(GIB, suffix=".partial", inode=300)], old)]
    found = read(partial)
    assert (found.state, found.present, found.expected) == (RowState.COPYING, GIB, WHOLE)


def test_a_manifest_older_than_its_data_proves_nothing() -> None:
    found = read([sample(shards(WHOLE, mtime=BUILT + 6), manifest(), written=BUILT)])
    assert (found.state, found.words) == (RowState.OLD_MANIFEST, "manifest older than its data, rebuild")
    assert read([sample(shards(WHOLE, mtime=BUILT + 5), manifest(), written=BUILT)]).state is RowState.READY


def test_a_manifest_that_was_put_there_later_is_betrayed_by_its_own_time() -> None:
    found = read([sample(shards(WHOLE, mtime=BUILT + 601), manifest(), written=BUILT + 9000)])
    assert found.words == "manifest older than its data: created before it, rebuild"
    assert read([sample(shards(WHOLE, mtime=BUILT + 600), manifest(), written=BUILT + 9000)]).state is RowState.READY


def test_a_manifest_that_came_before_the_last_bytes() -> None:
    looks = [sample(shards(n * GIB), manifest(), at=1000.0 + n) for n in (3, 4)]
    assert read(looks, now=1004.0).words == "copying, its manifest is there already"


def test_a_file_that_was_left_behind_says_that_it_stands_still() -> None:
    looks = [sample(shards(GIB, suffix=".partial"), manifest(), at=1000.0 + n * 40) for n in (0, 1)]
    found = read(looks, now=1040.0)
    assert found.words == "copying over the old copy, its manifest of 89abcdef is still there; no new byte for 40s"


# --- room ------------------------------------------------------------------------------------------------------------


def test_nothing_there_yet_waits() -> None:
    assert read([sample([])]).state is RowState.WAITS
    found = read([sample([], problem="missing")], room=500 * GIB, want=rank_share(2, 4, PUBLISHED_ROWS))
    assert (found.state, found.words, found.present, found.free) == (RowState.WAITS, "waits", 0, 500 * GIB)


def test_no_room_for_two_copies() -> None:
    want = rank_share(2, 4, PUBLISHED_ROWS)
    found = read([sample([], problem="missing")], room=30 * GIB, old_copy=WHOLE, want=want)
    assert (found.state, found.words) == (RowState.NO_ROOM, "no room: 48.2 GiB needed, 30.0 free")
    assert found.note == "no room for two: delete the old copy (47.2 GiB) at the stop, then build"
    assert read([sample([], problem="missing")], room=WHOLE + GIB, want=want).state is RowState.WAITS
    assert read([sample([], problem="missing")], room=WHOLE + GIB - 1, want=want).state is RowState.NO_ROOM
    hopeless = read([sample([], problem="missing")], room=0, old_copy=GIB, want=want)
    assert hopeless.note == "also not after deleting the old copy (1.0 GiB)"


def test_a_copy_that_will_run_out_of_room() -> None:
    want = rank_share(2, 4, PUBLISHED_ROWS)
    found = read([sample(shards(WHOLE - 10 * GIB), free=9 * GIB)], want=want)
    assert (found.state, found.words) == (RowState.NO_ROOM, "no room: 10.0 GiB needed, 9.0 free")
    assert read([sample(shards(WHOLE - 10 * GIB), free=10 * GIB)], want=want).state is RowState.COPYING


def test_replacing_in_place_wants_the_old_copy_deleted_first() -> None:
    old = manifest("rank2.STALE-REVISION")
    found = read([sample(shards(WHOLE, mtime=BUILT - 40 * 86400), old, free=48 * GIB)])
    assert (found.words, found.note) == (
        "old revision 01234567, rebuild",
        "no room for two: delete the old copy first",
    )
    assert read([sample(shards(WHOLE, mtime=BUILT - 40 * 86400), old, free=49 * GIB)]).note == ""


# --- what cannot be read ---------------------------------------------------------------------------------------------


def test_the_holder_reads_the_shards() -> None:
    found = read([sample([], problem="missing")], reads_shards=True, room=0)
    assert (found.state, found.words, found.expected) == (RowState.SHARDS, "reads the shards", None)


def test_what_was_not_read_is_unknown_not_empty() -> None:
    assert (read([]).state, read([]).words, read([]).present) == (RowState.UNKNOWN, "not read yet", None)
    denied = read([sample([], problem="no permission")])
    assert (denied.state, denied.words, denied.present) == (RowState.UNKNOWN, "unknown: no permission", None)
    look = sample(shards(WHOLE), manifest())
    cut = replace(look, listing=replace(look.listing, truncated=True))
    assert read([cut]).words == "unknown: more files than a copy has"
    hidden = replace(look, manifest_text=None)
    assert read([hidden]).words == "unknown: its manifest could not be read"
    assert read([hidden]).present == WHOLE


def test_a_broken_manifest_says_what_is_wrong() -> None:
    found = read([sample(shards(WHOLE), manifest()[:50])])
    assert found.state is RowState.UNREADABLE
    assert found.words.startswith("manifest unreadable: not JSON: ")


def test_a_manifest_alone_never_makes_a_copy_ready() -> None:
    def judged(name: str, rank: int = 2) -> tuple[str, str]:
        found = judge_manifest(rank, "n", "/rows", manifest(name), revision=NEW, tp=4)
        return found.state.value, found.words

    assert judged("rank2") == ("unknown", "unknown: its shards were not looked at")
    assert judged("rank2", 3)[0] == "another rank's slice"
    assert judged("rank2.STALE-REVISION") == ("old revision", "old revision 01234567, rebuild")
    assert judge_manifest(2, "n", "/rows", "{", revision=NEW, tp=4).state is RowState.UNREADABLE


def test_order_of_the_states() -> None:
    """What makes the rest of a manifest worthless comes first."""
    torn = shards(WHOLE - GIB, mtime=BUILT + 100)
    assert read([sample(torn, manifest("rank2.STALE-REVISION"))]).state is RowState.OLD_MANIFEST
    holey = shards(WHOLE - GIB, mtime=BUILT - 40 * 86400)
    assert read([sample(holey, manifest("rank2.STALE-REVISION"))]).state is RowState.OLD_REVISION
    assert read([sample(holey, manifest("rank2.STALE-REVISION"))], rank=1).state is RowState.WRONG_RANK


def test_the_short_form_of_a_listing_does() -> None:
    listing = parse_listing("1000000\t4096\tmodel-00047-of-00048.safetensors.partial\n")
    found = read([RowSample(0.0, listing, None)])
    assert (found.present, found.apparent, found.state) == (4096, 1_000_000, RowState.COPYING)


ENTRIES = st.builds(
    Entry,
    st.sampled_from([*NAMES, NAMES[0] + ".partial", NAMES[0] + ".0123abcd.incomplete", "engram-local.json", "x"]),
    st.sampled_from("fdlo"),
    st.integers(0, 2**50),
    st.integers(0, 2**50),
    st.none() | st.floats(-1e10, 1e10),
    st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
SAMPLES = st.lists(
    st.builds(
        RowSample,
        st.floats(0, 1e6),
        st.builds(Listing, st.just("/x"), st.lists(ENTRIES, max_size=5).map(tuple), free=st.none() | st.integers(0)),
        st.none() | st.sampled_from([manifest(), manifest("rank0"), "{", '{"layers":{"1":[0,5]}}']),
        st.none() | st.floats(0, 1e10),
    ),
    max_size=4,
)


@given(SAMPLES, st.sampled_from(["", NEW, OLD]), st.sampled_from([None, 1, 4]), st.floats(0, 1e6))
def test_any_looks_give_one_word(samples: list[RowSample], revision: str, tp: int | None, now: float) -> None:
    found = read(samples, revision=revision, tp=tp, now=now, want=rank_share(2, 4, PUBLISHED_ROWS))
    assert found.words
    assert found.share is None or 0 <= found.share <= 1
    assert found.left is None or found.left > 0
    if found.state is RowState.READY:
        assert found.present is not None and found.expected is not None and found.present >= found.expected
        assert found.manifest is not None and found.manifest.revision == revision


# --- all copies ------------------------------------------------------------------------------------------------------


def test_a_copy_that_nobody_measures_is_about_as_big_as_another() -> None:
    other = read([sample(shards(WHOLE + 4096), manifest())])
    begun = read([sample(shards(WHOLE // 4)), sample(shards(WHOLE // 2), at=1010.0)], rank=3, now=1010.0)
    found = read_rows([other, begun], revision=NEW, tp=4).copies[1]
    assert (found.expected, found.basis) == (WHOLE + 4096, "rank 2's copy")
    assert found.rate == pytest.approx((WHOLE // 2 - WHOLE // 4) / 10)
    assert found.left == pytest.approx(20, rel=0.01)


def test_an_estimate_never_replaces_what_is_known() -> None:
    other = read([sample(shards(WHOLE + 4096), manifest())])
    known = read([sample(shards(GIB))], rank=3, want=rank_share(3, 4, PUBLISHED_ROWS))
    assert read_rows([other, known], revision=NEW).copies[1] == known
    lost = read([], rank=3)
    assert read_rows([other, lost], revision=NEW).copies[1].expected is None


# --- the tools' own output -------------------------------------------------------------------------------------------


def test_output_of_a_copy_that_ended() -> None:
    found = parse_build((FLEET / "engram_local.progress.rendered.txt").read_text())
    assert (found.tool, found.finished, found.failure) == ("engram_local", True, "")
    assert (found.checked, found.mismatches, found.elapsed) == (8008, 0, 87.0)
    assert found.done == found.total == round(47.2 * GIB)
    assert found.doing == "verify: 8008 rows checked, 0 mismatches; elapsed 87s"


def test_output_of_a_copy_under_way() -> None:
    text = (FLEET / "engram_local.progress.rendered.txt").read_text()
    found = parse_build("".join(text.splitlines(keepends=True)[:6]))
    assert (found.done, found.total, found.rate, found.elapsed) == (10 * GIB, round(47.2 * GIB), 600e6, 18.0)
    assert (found.finished, found.mismatches, found.checked) == (False, None, None)
    assert parse_build(text.splitlines()[0]).done == 0


def test_output_with_mismatches_is_finished_and_bad() -> None:
    found = parse_build("verify: 8008 rows checked, 3 mismatches; elapsed 87s\n")
    assert (found.finished, found.mismatches) == (True, 3)


@pytest.mark.parametrize(
    "row",
    [
        "not enough free space at /home/bob/rows: need about 48 GiB, have 12 GiB",
        "OSError: short read at 12345",
        "RuntimeError: no such layer",
    ],
)
def test_output_that_gave_up(row: str) -> None:
    found = parse_build(f"copying 47.2 GiB in 4 ranges, limit 600 MB/s\n{row}\n")
    assert (found.finished, found.failure, found.doing) == (False, row, row)


def test_output_of_the_slice_tool() -> None:
    rows = (FLEET / "slice-check.log").read_text().splitlines()
    cut = parse_build("\n".join(rows[:4]))
    assert (cut.tool, cut.done, cut.elapsed, cut.finished) == ("engram-slice", round(47.5 * GIB), 325.0, True)
    assert parse_build("\n".join(rows[:3])).finished is False
    packed = parse_build("\n".join(rows[6:9]))
    assert (packed.elapsed, packed.finished) == (296.0, False)
    unpacking = parse_build("\n".join(rows[6:10]))
    assert (unpacking.done, unpacking.total, unpacking.finished) == (None, round(47.5 * GIB), False)
    whole = parse_build("\n".join(rows))
    assert (whole.checked, whole.mismatches, whole.elapsed, whole.finished) == (12, 0, 230.0, True)


@given(st.text(max_size=400))
def test_any_output_is_read(text: str) -> None:
    assert safe(parse_build(text))


@given(st.text(alphabet="0123456789./ GiBMs:copyingverfrwskd,\n", max_size=200))
def test_output_that_looks_like_figures(text: str) -> None:
    assert safe(parse_build("copying " + text))
