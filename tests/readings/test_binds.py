"""Paths as hosts describe them, and bind sources held against what they were."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.binds import BAD, GOOD, BindMark, BindState, is_volume, judge, mark_of
from console.readings.look import Status
from console.readings.paths import PathSeen, parse_paths

SHA, OTHER = "a" * 64, "b" * 64
MODEL = PathSeen("/m", Status.OK, "", "/data/m", "d", 8, 41, None, 12, "config.json", SHA, 1.0, 10**12)
CACHE = PathSeen("/c", Status.OK, "", "/c", "d", 8, 42, None, 3)
FILE = PathSeen("/f", Status.OK, "", "/f", "f", 8, 43, 100, None, ".", SHA)
VOLUME = "/var/lib/docker/volumes/cache/_data"


def mark(seen: PathSeen) -> BindMark:
    return mark_of("c1", seen.path, seen, 5.0)


def test_a_row_is_read() -> None:
    text = f"ok\n/m\tok\t/data/m\td\t8\t41\t-\t12\tconfig.json\t{SHA}\t1.000\t1000000000000\n"
    assert parse_paths(text) == (MODEL,)
    assert parse_paths("ok\n/f\tok\t/f\tf\t8\t43\t100\t-\t.\t?\t1.5\t-\n") == (replace(FILE, sha256="", mtime=1.5),)


def test_what_is_not_there_or_not_to_be_seen() -> None:
    found = parse_paths("ok\n/a\tmissing\n/b\tdenied\n/c\terror Stale file handle\n")
    assert found is not None
    assert [(item.path, item.status, item.words) for item in found] == [
        ("/a", Status.MISSING, ""),
        ("/b", Status.DENIED, ""),
        ("/c", Status.ERROR, "Stale file handle"),
    ]
    assert parse_paths("error cannot look at paths of /m") is None


@given(st.text(max_size=300))
def test_no_answer_raises(text: str) -> None:
    for item in parse_paths("ok\n" + text) or ():
        assert item.path.isprintable() and item.words.isprintable() and item.real.isprintable()


@pytest.mark.parametrize("seen", [MODEL, CACHE, FILE])
def test_the_same_is_the_same(seen: PathSeen) -> None:
    assert judge(seen.path, seen, None) == (BindState.NEW, "")
    assert judge(seen.path, seen, mark(seen)) == (BindState.SAME, "")
    assert judge(seen.path, replace(seen, device=99), mark(seen))[0] is BindState.SAME, "remounted"
    assert judge(seen.path, replace(seen, mtime=99.0), mark(seen))[0] is BindState.SAME


@pytest.mark.parametrize(
    ("seen", "was", "state", "words"),
    [
        (
            replace(MODEL, inode=7, sha256=OTHER), MODEL, BindState.REPLACED,
            "the folder is another one and its config.json differs",
        ),
        (replace(MODEL, inode=7), MODEL, BindState.NEW, "the folder is another one with the same config.json"),
        (
            replace(MODEL, inode=7, real="/data/n", sha256=OTHER), MODEL, BindState.REPLACED,
            "leads to /data/n now, not to /data/m",
        ),
        (
            replace(MODEL, sha256=""), MODEL, BindState.CHANGED,
            "its config.json leads nowhere or cannot be read",
        ),
        (replace(MODEL, sha256=OTHER), MODEL, BindState.CHANGED, "its config.json has changed"),
        (replace(MODEL, sentinel="", sha256=""), MODEL, BindState.CHANGED, "its config.json is gone"),
        (replace(MODEL, entries=0), MODEL, BindState.EMPTY, "is empty"),
        (replace(CACHE, inode=7), CACHE, BindState.REPLACED, "the folder is another one at the same path"),
        (replace(FILE, sha256=OTHER), FILE, BindState.CHANGED, "its beginning has changed"),
        (replace(FILE, inode=7, sha256=""), FILE, BindState.CHANGED, "was written anew"),
        (PathSeen("/m", Status.MISSING), MODEL, BindState.MISSING, "is gone"),
    ],
)  # fmt: skip
def test_another_thing_in_its_place_is_noticed(seen: PathSeen, was: PathSeen, state: BindState, words: str) -> None:
    assert judge(was.path, seen, mark(was)) == (state, words)
    assert (state in BAD) is not (state in GOOD)


def test_what_may_not_be_looked_at_says_why() -> None:
    denied = PathSeen("/x", Status.DENIED)
    assert judge("/x", denied, None) == (BindState.UNKNOWN, "may not be looked at by this user")
    assert judge(VOLUME, replace(denied, path=VOLUME), None) == (BindState.VOLUME, "")
    assert judge("/x", PathSeen("/x", Status.ERROR, "Stale file handle"), None)[1] == "Stale file handle"
    assert judge("/x", None, None) == (BindState.UNKNOWN, "not read yet")
    assert is_volume(VOLUME) and not is_volume("/srv/volumes/data")
