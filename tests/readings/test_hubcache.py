"""A repository folder of the hub's cache, out of its listing."""

from __future__ import annotations

import pytest
from hub_listings import GIB, NEW, OLD, ROOT, blob, file, folder, link, listing, ref, repo, shard
from hypothesis import given
from hypothesis import strategies as st

from console.readings.hubcache import read_repo
from console.readings.listing import parse_listing
from console.readings.logtext import control_characters

MIB = 1024**2


def test_a_whole_snapshot_counts_each_blob_once() -> None:
    rows = [*shard(NEW, 1, 2, 50_000, 1), *shard(NEW, 2, 2, 60_000, 2), ref("main", NEW)]
    rows.append(link(f"snapshots/{NEW}/copy.safetensors", f"../../blobs/{blob(1)}", 50_000, 1))
    found = repo(rows)
    (snapshot,) = found.snapshots
    assert (snapshot.entries, snapshot.resolvable, snapshot.dangling, snapshot.outside) == (3, 3, (), ())
    assert snapshot.present == found.present == 110_000
    assert (snapshot.shards_done, snapshot.shards_total, snapshot.complete) == (2, 2, True)
    assert snapshot.refs == ("main",)
    assert found.prunable == ()
    assert (found.free, found.fstype, found.mount, found.taken) == (900 * GIB, "xfs", "/models", 1000.0)
    assert found.snapshot(NEW[:7]) is snapshot
    assert found.snapshot("") is None
    assert found.loose == 0


def test_hard_links_are_one_file() -> None:
    rows = [file(f"blobs/{blob(1)}", 5000, 9), file(f"blobs/{blob(2)}", 5000, 9), file(f"blobs/{blob(3)}", 5000, 10)]
    assert repo(rows).present == repo(rows).loose == 10_000


def test_two_revisions_side_by_side_share_a_blob() -> None:
    rows = [*shard(OLD, 1, 2, 1000, 1), *shard(OLD, 2, 2, 2000, 2), *shard(NEW, 1, 2, 1000, 1), ref("main", NEW)]
    rows.append(link(f"snapshots/{NEW}/model-00002-of-00002.safetensors", f"../../blobs/{blob(3)}", 0, 3, where="gone"))
    found = repo(rows)
    assert {item.revision: item.present for item in found.snapshots} == {NEW: 1000, OLD: 3000}
    assert found.present == 3000
    new = found.snapshot(NEW)
    assert new is not None
    assert new.dangling == ("model-00002-of-00002.safetensors",)
    assert (new.complete, new.shards_done, new.shards_total) == (False, 1, 2)
    assert found.prunable == (OLD,)


def test_a_partial_file_counts_what_is_allocated() -> None:
    found = repo([file(f"blobs/{blob(1)}.incomplete", 100 * MIB, 1, allocated=30 * MIB)])
    (partial,) = found.partials
    assert (partial.apparent, partial.present, partial.etag) == (100 * MIB, 30 * MIB, blob(1))
    assert (partial.resumable, partial.orphan) == (True, False)
    assert found.present == 30 * MIB


def test_a_block_more_than_the_size_is_not_counted() -> None:
    assert repo([file(f"blobs/{blob(1)}", 1000, 1)]).present == 1000


def test_of_several_attempts_the_newest_lives() -> None:
    rows = [
        file(f"blobs/{blob(1)}.0a1b2c3d.incomplete", 9000, 1, mtime=10),
        file(f"blobs/{blob(1)}.ffffffff.incomplete", 5000, 2, mtime=30),
        file(f"blobs/{blob(1)}.incomplete", 7000, 3, mtime=20),
        file(f"blobs/{blob(2)}.00000000.incomplete", 1000, 4, mtime=5),
    ]
    found = repo(rows)
    assert [(item.orphan, item.resumable) for item in found.partials] == [
        (True, False),
        (False, False),
        (True, True),
        (False, False),
    ]
    assert found.attempts(blob(1)) == 3


def test_a_partial_file_beside_its_whole_blob_is_an_orphan() -> None:
    rows = [file(f"blobs/{blob(1)}", 9000, 1), file(f"blobs/{blob(1)}.0a1b2c3d.incomplete", 4096, 2, mtime=99)]
    assert [item.orphan for item in repo(rows).partials] == [True]


def test_attempts_without_times_are_not_called_orphans() -> None:
    text = f"4096\t4096\tblobs/{blob(1)}.00000001.incomplete\n4096\t4096\tblobs/{blob(1)}.00000002.incomplete\n"
    assert [item.orphan for item in read_repo(parse_listing(text)).partials] == [False, False]


def test_a_shared_store_outside_of_the_folder_is_outside() -> None:
    rows = [
        link(f"blobs/{blob(1)}", "../../blobs/ab/" + "a" * 64, 7000, 50, where="out"),
        link(f"snapshots/{NEW}/model-00001-of-00001.safetensors", f"../../blobs/{blob(1)}", 7000, 50, where="out"),
    ]
    found = repo(rows)
    (snapshot,) = found.snapshots
    assert snapshot.outside == ("model-00001-of-00001.safetensors",)
    assert (snapshot.resolvable, snapshot.complete, snapshot.present) == (1, False, 7000)
    assert found.present == 7000
    assert found.blobs == {blob(1): (7000, 7000)}


def test_a_link_to_a_link_that_leaves_is_outside_whatever_the_first_says() -> None:
    rows = [
        link(f"blobs/{blob(1)}", "/store/x", 7000, 50, where="out"),
        link(f"snapshots/{NEW}/config.json", f"../../blobs/{blob(1)}", 7000, 50),
    ]
    assert repo(rows).snapshots[0].outside == ("config.json",)


def test_a_shared_store_below_the_listed_root_is_inside() -> None:
    rows = [
        file("blobs/ab/" + "a" * 64, 7000, 50),
        link(f"models--org--m/blobs/{blob(1)}", "../../blobs/ab/" + "a" * 64, 7000, 50),
        link(f"models--org--m/snapshots/{NEW}/config.json", f"../../blobs/{blob(1)}", 7000, 50),
    ]
    found = repo(rows, root="/cache")
    assert found.root == "/cache/models--org--m"
    assert (found.snapshots[0].outside, found.snapshots[0].resolvable, found.present) == ((), 1, 7000)


def test_absolute_links_are_named() -> None:
    rows = [
        file(f"blobs/{blob(1)}", 7000, 1),
        link(f"snapshots/{NEW}/config.json", f"{ROOT}/blobs/{blob(1)}", 7000, 1),
    ]
    (snapshot,) = repo(rows).snapshots
    assert snapshot.absolute == ("config.json",)
    assert snapshot.resolvable == 1


def test_a_link_that_nobody_may_look_behind_is_neither_there_nor_gone() -> None:
    rows = [*shard(NEW, 1, 1, 1000, 1), link(f"snapshots/{NEW}/x.json", "/root/x", 0, 2, where="-")]
    (snapshot,) = repo(rows).snapshots
    assert (snapshot.unreadable, snapshot.dangling, snapshot.resolvable) == (("x.json",), (), 1)
    assert snapshot.complete is None


def test_a_whole_cache_asks_which_repository() -> None:
    rows = [file("models--org--m/blobs/a", 10, 1), file("models--org--n/blobs/b", 20, 2), file("version.txt", 1, 3)]
    found = repo(rows, root="/cache")
    assert found.problem == "a whole cache, 2 repositories in it: name one (models--org--m, models--org--n)"
    assert (found.snapshots, found.present) == ((), 0)
    named = read_repo(listing(rows, root="/cache"), "models--org--n")
    assert (named.problem, named.present, named.root) == ("", 20, "/cache/models--org--n")
    assert "no models--x--y in it" in read_repo(listing(rows), "models--x--y").problem


def test_a_plain_folder_is_one_snapshot() -> None:
    etag = "ab" * 32
    rows = [
        file("config.json", 1000, 1),
        file("model-00001-of-00002.safetensors", 50_000, 2),
        file(".cache/huggingface/download/config.json.metadata", 120, 3),
        file(f".cache/huggingface/download/Zx-1_A=.{etag}.incomplete", 9 * MIB, 4, allocated=MIB, mtime=5),
        file(f".cache/huggingface/download/Zx-1_A=.{etag}.01234567.incomplete", 9 * MIB, 5, allocated=2 * MIB, mtime=9),
    ]
    found = repo(rows, root="/models/plain")
    (snapshot,) = found.snapshots
    assert (snapshot.revision, snapshot.entries, snapshot.resolvable) == ("", 2, 2)
    assert (snapshot.shards_done, snapshot.shards_total) == (1, 2)
    assert [(item.etag, item.orphan, item.resumable) for item in found.partials] == [
        (etag, True, True),
        (etag, False, False),
    ]
    assert found.present == 51_000 + 3 * MIB


def test_a_snapshot_folder_listed_by_itself_leads_outside() -> None:
    found = repo([link("config.json", f"../../blobs/{blob(1)}", 10, 1, where="out")], root=f"{ROOT}/snapshots/{NEW}")
    assert found.snapshots[0].revision == NEW
    assert found.snapshots[0].outside == ("config.json",)


def test_a_revision_that_is_itself_a_link_was_not_listed() -> None:
    rows = [file("blobs/a", 1, 1), f"l\t9\t0\t0.000\t7\t8\t1\tsnapshots/{NEW}\t/other/disk\tdir\t-\t-\t7\t9"]
    (snapshot,) = repo(rows).snapshots
    assert snapshot.elsewhere == "/other/disk"
    assert (snapshot.entries, snapshot.complete) == (0, None)


def test_a_ref_without_a_commit_names_nothing() -> None:
    rows = [*shard(NEW, 1, 1, 10, 1), ref("main", NEW), ref("refs/pr/1", "not a commit")]
    found = repo(rows)
    assert found.refs == {"main": NEW, "refs/pr/1": ""}
    assert found.snapshots[0].refs == ("main",)


def test_every_numbered_set_counts() -> None:
    rows = [*shard(NEW, 1, 1, 10, 1)]
    rows.append(link(f"snapshots/{NEW}/draft/model-00001-of-00002.safetensors", "../../../blobs/b", 10, 2))
    (snapshot,) = repo(rows).snapshots
    assert (snapshot.shards_done, snapshot.shards_total, snapshot.complete) == (2, 3, False)


def test_a_number_beyond_the_total_is_no_shard() -> None:
    rows = [link(f"snapshots/{NEW}/m-00003-of-00002.safetensors", "../../blobs/b", 10, 2)]
    assert repo(rows).snapshots[0].shards_done == 0


def test_newest_is_when_something_was_last_put_in() -> None:
    rows = [folder(f"snapshots/{NEW}", mtime=70), link(f"snapshots/{NEW}/a", "../../blobs/a", 1, 1, mtime=60)]
    assert repo(rows).snapshots[0].newest == 70


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("missing\n", "missing"),
        ("denied\n", "no permission"),
        ("error the host hung\n", "the host hung"),
    ],
)
def test_what_could_not_be_listed_says_why(text: str, problem: str) -> None:
    found = read_repo(parse_listing(text))
    assert (found.problem, found.snapshots, found.free) == (problem, (), None)


def test_a_listing_with_less_than_there_is_says_so() -> None:
    cut = "ok free=1 total=2 truncated=1\nf\t1\t1\t0\t1\t1\t1\tblobs/a\n"
    assert read_repo(parse_listing(cut)).problem == "the listing was cut after 1 entries"
    hidden = "ok free=1 total=2\n# unread\tsnapshots\tno permission\nf\t1\t1\t0\t1\t1\t1\tblobs/a\n"
    assert read_repo(parse_listing(hidden)).problem == "not all could be read: snapshots: no permission"
    damaged = "ok free=1 total=2\nf\tx\n"
    assert read_repo(parse_listing(damaged + "f\t1\t1\t0\t1\t1\t1\tblobs/a\n")).problem == (
        "1 rows of the listing are damaged"
    )


NAMES = st.one_of(
    st.sampled_from(["blobs", "snapshots", "refs", "..", ".", "", NEW, "a.incomplete", "a.01234567.incomplete"]),
    st.text(max_size=12),
)
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)
FIELDS = st.one_of(st.integers(-5, 2**70).map(str), st.sampled_from(["-", "", "nan", "1e9"]), st.text(max_size=6))
ROWS = st.builds(
    lambda kind, figures, path, tail: "\t".join([kind, *figures, path, *tail]),
    st.sampled_from(["f", "d", "l", "o", "x", ""]),
    st.lists(FIELDS, min_size=6, max_size=6),
    PATHS,
    st.one_of(
        st.just([]),
        st.tuples(PATHS, st.sampled_from(["in", "out", "dir", "gone", "-", "?"]), FIELDS, FIELDS, FIELDS, FIELDS).map(
            list
        ),
    ),
)


@given(st.lists(st.one_of(ROWS, st.text(max_size=60)), max_size=20))
def test_a_hostile_listing_neither_raises_nor_gets_through(rows: list[str]) -> None:
    found = repo(rows)
    assert found.present >= 0
    for item in found.snapshots:
        assert item.resolvable <= item.entries
        for text in (item.revision, item.elsewhere, *item.dangling, *item.outside, *item.absolute, *item.sizes):
            assert control_characters(text) == 0
    for partial in found.partials:
        assert 0 <= partial.present <= partial.apparent
        assert control_characters(partial.path + partial.etag) == 0
