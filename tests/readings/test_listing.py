"""Folder listings of hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings import listing as module
from console.readings.listing import Entry, Leads, parse_listing

SHORT = "".join(
    f"{size}\t{size}\tblobs/{name}\n"
    for size, name in (
        (10_737_418_240, "a" * 32),
        (10_737_418_240, "b" * 32),
        (4_294_967_296, "c" * 64 + ".incomplete"),
    )
)
ANSWER = (
    "ok free=1048576 total=4000000000 device=spark-1:/ex\\040port fstype=nfs4 mount=/models/a\\040b truncated=1\n"
    "# root\t/models/hub\n"
    "d\t4096\t4096\t1761000000.250\t66\t12\t3\trefs\n"
    "f\t40\t4096\t1761000001.000\t66\t13\t1\trefs/main\t1bae0e1088993b9b82de08f59de5be5a34e42170\\n\t-\t-\t-\t-\t-\n"
    "l\t76\t0\t1761000002.000\t66\t14\t1\ts/a\t../blobs/aa\tin\t100\t512\t66\t15\n"
    "l\t76\t0\t1761000002.000\t66\t16\t1\ts/b\t/elsewhere\tout\t200\t0\t67\t15\n"
    "l\t76\t0\t1761000002.000\t66\t17\t1\ts/c\t../x\tgone\t-\t-\t-\t-\n"
    "l\t76\t0\t-\t66\t18\t1\ts/d\t/models\tdir\t-\t-\t66\t2\n"
    "l\t76\t0\t-\t66\t18\t1\ts/e\t/secret\t-\t-\t-\t-\t-\n"
    "# unread\tsnapshots\tno permission\n"
    "o\t0\t0\t0.000\t66\t19\t1\tpipe\n"
    "no row\nf\tx\t1\t1\t1\t1\t1\tbad\nf\t1\n"
)


def test_an_answer_in_full() -> None:
    listing = parse_listing(ANSWER)
    assert listing.entries == (
        Entry("refs", "d", 4096, 4096, 1761000000.25, (66, 12), 3),
        Entry("refs/main", "f", 40, 4096, 1761000001.0, (66, 13), 1, "1bae0e1088993b9b82de08f59de5be5a34e42170"),
        Entry("s/a", "l", 100, 512, 1761000002.0, (66, 15), 1, "../blobs/aa", Leads.INSIDE),
        Entry("s/b", "l", 200, 0, 1761000002.0, (67, 15), 1, "/elsewhere", Leads.OUTSIDE),
        Entry("s/c", "l", 0, 0, 1761000002.0, None, 1, "../x", Leads.NOWHERE),
        Entry("s/d", "l", 0, 0, None, (66, 2), 1, "/models", Leads.FOLDER),
        Entry("s/e", "l", 0, 0, None, None, 1, "/secret", None),
        Entry("pipe", "o", 0, 0, 0.0, (66, 19), 1),
    )
    assert (listing.root, listing.free, listing.total) == ("/models/hub", 1048576, 4_000_000_000)
    assert (listing.device, listing.fstype, listing.mount) == ("spark-1:/ex port", "nfs4", "/models/a b")
    assert (listing.truncated, listing.unread, listing.faulty) == (True, ("snapshots: no permission",), 3)
    assert (listing.problem, listing.taken) == ("", None)


def test_the_listing_alone_is_read_too() -> None:
    alone = parse_listing(ANSWER.partition("\n")[2])
    assert alone.entries == parse_listing(ANSWER).entries
    assert (alone.free, alone.mount, alone.truncated) == (None, "", False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("missing", "missing"), ("denied\n", "no permission"), ("error Stale file handle", "Stale file handle"),
     ("error", "the host said no more")],
)  # fmt: skip
def test_no_listing_is_never_an_empty_one(text: str, problem: str) -> None:
    listing = parse_listing(text)
    assert (listing.entries, listing.problem) == ((), problem)


def test_the_short_form() -> None:
    listing = parse_listing("# epoch 1761001484\n# bytes_apparent\tbytes_allocated\tpath\n" + SHORT)
    assert (listing.taken, listing.faulty) == (1761001484.0, 0)
    assert listing.entries == (
        Entry("blobs/" + "a" * 32, "f", 10_737_418_240, 10_737_418_240),
        Entry("blobs/" + "b" * 32, "f", 10_737_418_240, 10_737_418_240),
        Entry("blobs/" + "c" * 64 + ".incomplete", "f", 4_294_967_296, 4_294_967_296),
    )
    assert parse_listing("1\t2\ta\r\n").entries == (Entry("a", "f", 1, 2),)


def test_more_rows_than_are_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    listing = parse_listing("1\t1\ta\n" * 4)
    assert (len(listing.entries), listing.truncated) == (3, True)


fields = st.one_of(
    st.sampled_from(["f", "d", "l", "-", "in", "gone", "1", "4096", "1e9", "9" * 30, "a\\tb"]), st.text()
)


@given(st.lists(st.lists(fields, max_size=15).map("\t".join), max_size=8).map("\n".join), st.booleans())
def test_hostile_listings(text: str, answered: bool) -> None:
    listing = parse_listing(f"ok free=1 mount={text}\n{text}" if answered else text)
    for entry in listing.entries:
        assert entry.path.isprintable() and entry.target.isprintable()
        assert entry.apparent >= 0 and entry.allocated >= 0 and entry.links >= 0
    for word in (listing.root, listing.mount, listing.fstype, listing.device, listing.problem, *listing.unread):
        assert word.isprintable()
