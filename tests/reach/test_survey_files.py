"""What a host says about folders and files, read back by the parsers: real files, nothing in between."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.reach import files_host
from console.readings.listing import Entry, Leads, Listing, parse_listing
from console.readings.look import Status, parse_answer
from console.readings.paths import PathSeen, parse_paths

COMMIT = "1bae0e1088993b9b82de08f59de5be5a34e42170"


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that stands for the root of a host."""
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.setattr(files_host, "ROOT", str(root))
    yield root


def listed(root: str, depth: int = 6, most: int = 1000) -> Listing:
    return parse_listing(files_host.tree(root, depth, most))


def entries(listing: Listing) -> dict[str, Entry]:
    return {entry.path: entry for entry in listing.entries}


def hub(folder: Path) -> Path:
    repo = folder / "models--org--m"
    for name in ("blobs", "refs", f"snapshots/{COMMIT}"):
        (repo / name).mkdir(parents=True)
    (repo / "refs/main").write_text(COMMIT)
    (repo / "blobs/aa").write_bytes(b"x" * 70_000)
    with open(repo / "blobs/bb.incomplete", "wb") as partial:
        partial.truncate(10 << 20)
        partial.write(b"x" * 4096)
    snapshot = repo / "snapshots" / COMMIT
    (snapshot / "model-00001-of-00002.safetensors").symlink_to("../../blobs/aa")
    (snapshot / "model-00002-of-00002.safetensors").symlink_to("../../blobs/bb")
    return repo


def test_a_repository_is_listed_with_what_is_really_there(tmp_path: Path) -> None:
    repo = hub(tmp_path)
    listing = listed(str(repo))
    found = entries(listing)
    assert listing.root == str(repo)
    assert (listing.problem, listing.truncated, listing.faulty, listing.unread) == ("", False, 0, ())
    assert list(found)[:3] == ["blobs", "refs", "snapshots"], "nearest folders first"
    blob, partial = found["blobs/aa"], found["blobs/bb.incomplete"]
    info = (repo / "blobs/aa").stat()
    assert (blob.apparent, blob.allocated, blob.inode) == (70_000, info.st_blocks * 512, (info.st_dev, info.st_ino))
    assert blob.mtime == pytest.approx(info.st_mtime, abs=0.001)
    assert blob.present == 70_000
    assert (partial.apparent, partial.present) == (10 << 20, partial.allocated)
    assert partial.allocated < 1 << 20
    whole = found[f"snapshots/{COMMIT}/model-00001-of-00002.safetensors"]
    assert (whole.kind, whole.leads, whole.target) == ("l", Leads.INSIDE, "../../blobs/aa")
    assert (whole.apparent, whole.inode) == (70_000, blob.inode)
    gone = found[f"snapshots/{COMMIT}/model-00002-of-00002.safetensors"]
    assert (gone.leads, gone.apparent, gone.allocated, gone.inode) == (Leads.NOWHERE, 0, 0, None)
    assert found["refs/main"].target == COMMIT
    assert found["refs/main"].leads is None


def test_free_and_mount_come_from_the_system(tmp_path: Path) -> None:
    listing = listed(str(tmp_path))
    room = os.statvfs(tmp_path)
    assert listing.free is not None
    assert abs(listing.free - room.f_bavail * room.f_frsize) < 1 << 30
    assert listing.free % (1 << 20) == 0
    assert listing.total == room.f_blocks * room.f_frsize
    assert listing.fstype and listing.device
    assert os.path.ismount(listing.mount)


def test_mounts_are_read_below_the_root(below: Path) -> None:
    (below / "models/a b/c").mkdir(parents=True)
    (below / "proc/self").mkdir(parents=True)
    (below / "proc/self/mountinfo").write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "23 22 0:50 / /models/a\\040b rw shared:1 - autofs systemd-1 rw\n"
        "24 23 0:51 / /models/a\\040b rw shared:2 - nfs4 spark-1:/export\\040it rw\n"
        "25 22 0:52 / /models/a rw - tmpfs tmpfs rw\ngarbage\n"
    )
    listing = listed("/models/a b/c")
    assert (listing.mount, listing.fstype, listing.device) == ("/models/a b", "nfs4", "spark-1:/export it")
    assert listed("/models").mount == "/"


def test_absolute_links_stay_below_the_root(below: Path) -> None:
    (below / "store").mkdir()
    (below / "store/x").write_bytes(b"x" * 100)
    (below / "repo/in").mkdir(parents=True)
    (below / "repo/in/y").write_bytes(b"y")
    (below / "repo/out").symlink_to("/store/x")
    (below / "repo/inside").symlink_to("/repo/in/y")
    (below / "repo/folder").symlink_to("/store")
    (below / "repo/passwd").symlink_to("/etc/passwd")
    (below / "repo/up").symlink_to("../../../../store/x")
    (below / "alias").symlink_to("/repo")
    listing = listed("/alias/../alias/.")
    found = entries(listing)
    assert listing.root == "/repo"
    assert found["out"].leads is Leads.OUTSIDE
    assert found["out"].apparent == 100
    assert found["inside"].leads is Leads.INSIDE
    assert (found["folder"].leads, found["folder"].apparent) == (Leads.FOLDER, 0)
    assert found["passwd"].leads is Leads.NOWHERE, "the real one is not there"
    assert found["up"].leads is Leads.OUTSIDE, "nothing is above the root"
    assert "folder/x" not in found, "links are not descended"


def test_circles_of_links_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "self").symlink_to("self/self")
    (tmp_path / "deep").symlink_to("/".join(["a"] * 500))
    assert {entry.leads for entry in listed(str(tmp_path)).entries} == {Leads.NOWHERE}
    assert files_host.tree(str(tmp_path / "a"), 1, 10) == "missing"


def test_bounds_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / f"d{number:02}/e").mkdir(parents=True)
    assert not listed(str(tmp_path)).truncated
    short = listed(str(tmp_path), most=25)
    assert (len(short.entries), short.truncated) == (25, True)
    flat = listed(str(tmp_path), depth=1)
    assert (len(flat.entries), flat.truncated) == (20, False)
    monkeypatch.setattr(files_host, "MOST_ANSWER", 8192 + 1000)
    cut = files_host.tree(str(tmp_path), 6, 1000)
    assert len(cut) < 1500
    assert parse_listing(cut).truncated


def test_what_cannot_be_listed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_text("x")
    assert listed(str(tmp_path / "none")).problem == "missing"
    assert listed(str(tmp_path / "f/g")).problem == "missing"
    assert listed(str(tmp_path / "f")).problem == "not a folder"
    assert listed("relative/path").problem == "not an absolute path: relative/path"
    monkeypatch.delenv("HOME")
    assert listed("~/x").problem == "HOME is not set there"


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything: the kernel's refusal is played."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "link").symlink_to("snapshots/x")
    real_list, real_lstat = os.listdir, os.lstat

    def listdir(path: str) -> list[str]:
        if path.endswith("/snapshots"):
            raise PermissionError(13, "Permission denied", path)
        return real_list(path)

    def lstat(path: str) -> os.stat_result:
        if path.endswith("/snapshots/x"):
            raise PermissionError(13, "Permission denied", path)
        return real_lstat(path)

    monkeypatch.setattr(os, "listdir", listdir)
    monkeypatch.setattr(os, "lstat", lstat)
    listing = listed(str(tmp_path))
    assert listing.unread == ("snapshots: no permission",)
    assert (entries(listing)["link"].leads, entries(listing)["link"].inode) == (None, None), "not said to be gone"
    assert listed(str(tmp_path / "snapshots")).problem == "no permission"


def test_the_home_folder_is_below_the_root(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (below / "home/ops").mkdir(parents=True)
    (below / "home/ops/x").write_text("x")
    for home in ("/home/ops", f"{below}/home/ops"):
        monkeypatch.setenv("HOME", home)
        assert [entry.path for entry in listed("~/").entries] == ["x"]
        assert listed("~").root == "/home/ops"
        assert files_host.file("~/x", "first", 10).endswith("\nx")
    monkeypatch.setenv("HOME", f"{below}-2/home")
    assert listed("~").problem == "missing", "another folder with the same beginning is none of it"


def test_odd_names_are_one_row_each_and_no_other_files_name(tmp_path: Path) -> None:
    names = [
        b"a\tb",
        b"a\nb",
        b"x\rmodel-00001-of-00002",
        b"back\\slash",
        b"\xff\xfe",
        "é".encode(),
        b"#c",
        b"e\x1b[31mf",
    ]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_text("x")
    listing = listed(str(tmp_path))
    assert listing.faulty == 0
    assert sorted(entries(listing)) == sorted(
        ["a\\tb", "a\\nb", "x\\rmodel-00001-of-00002", "back\\slash", "\ufffd\ufffd", "é", "#c", "e\ufffd[31mf"]
    )


def test_ends_of_a_file(tmp_path: Path) -> None:
    log = tmp_path / "watchdog.log"
    log.write_bytes(b"one\ntwo\n\xff\x00three\n")
    first, last = files_host.file(str(log), "first", 5), parse_answer(files_host.file(str(log), "last", 8))
    assert parse_answer(first).body == "one\nt"
    assert last.body == "\ufffd\x00three\n"[-8:]
    assert last.status is Status.OK
    info = log.stat()
    assert last.values == {"size": "16", "mtime": f"{info.st_mtime:.3f}", "inode": str(info.st_ino)}
    assert parse_answer(files_host.file(str(log), "last", 1 << 30)).body == "one\ntwo\n\ufffd\x00three\n"
    log.write_bytes(b"z" * (1 << 20))
    assert len(parse_answer(files_host.file(str(log), "last", 1 << 30)).body) == 256 << 10, "bounded"


def test_files_without_a_size_are_read() -> None:
    assert parse_answer(files_host.file("/proc/uptime", "first", 100)).body.count(".") == 2


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert files_host.file(str(tmp_path / "pipe"), "first", 10) == "error not a file"
    assert files_host.file(str(tmp_path), "first", 10) == "error not a file"
    assert files_host.file(str(tmp_path / "none"), "first", 10) == "missing"
    assert files_host.file("none", "first", 10) == "error not an absolute path: none"


def test_a_shard_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = hub(tmp_path)
    opened: list[str] = []
    real_open = os.open
    monkeypatch.setattr(os, "open", lambda path, *more: opened.append(path) or real_open(path, *more))
    listed(str(repo))
    assert opened == [f"{repo}/refs/main", "/proc/self/mountinfo"]


# Paths that containers bind


def seen_paths(*paths: str) -> tuple[PathSeen, ...]:
    found = parse_paths(files_host.paths(list(paths)))
    assert found is not None
    return found


def test_a_folder_is_told_by_what_it_is_and_by_its_config(below: Path) -> None:
    repo = hub(below)
    snapshot = repo / "snapshots" / COMMIT
    (repo / "blobs/cc").write_text('{"model_type": "x"}')
    (snapshot / "config.json").symlink_to("../../blobs/cc")
    (below / "model").symlink_to(f"/models--org--m/snapshots/{COMMIT}")
    (found,) = seen_paths("/model")
    info = snapshot.stat()
    assert (found.status, found.kind, found.real) == (Status.OK, "d", f"/models--org--m/snapshots/{COMMIT}")
    assert (found.device, found.inode, found.entries) == (info.st_dev, info.st_ino, 3)
    assert (found.sentinel, found.sha256) == ("config.json", hashlib.sha256(b'{"model_type": "x"}').hexdigest())
    assert found.mtime == pytest.approx(info.st_mtime, abs=0.001)
    assert found.free is not None and found.free > 0
    (repo / "blobs/cc").write_text('{"model_type": "y"}')
    assert seen_paths("/model")[0].sha256 != found.sha256
    snapshot.rename(repo / "other")
    assert seen_paths("/model")[0].status is Status.MISSING


def test_each_path_has_its_own_row_whatever_becomes_of_the_others(below: Path) -> None:
    (below / "big").write_bytes(b"x" * 5000)
    (below / "empty").mkdir()
    (below / "with\ttab").mkdir()
    os.mkfifo(below / "pipe")
    found = seen_paths("/big", "/empty", "/with\ttab", "/gone", "relative", "/pipe")
    assert [item.status for item in found] == [Status.OK] * 3 + [Status.MISSING, Status.ERROR, Status.OK]
    assert (found[0].kind, found[0].size, found[0].sentinel) == ("f", 5000, ".")
    assert found[0].sha256 == hashlib.sha256(b"x" * 1024).hexdigest()
    assert (found[1].kind, found[1].entries, found[1].sha256) == ("d", 0, "")
    assert found[2].path == "/with\\ttab"
    assert found[4].words == "not an absolute path: relative"
    assert (found[5].kind, found[5].sha256) == ("o", "")


def test_a_sentinel_that_cannot_be_read_is_no_trouble(below: Path) -> None:
    (below / "m").mkdir()
    (below / "m/config.json").symlink_to("nowhere")
    (found,) = seen_paths("/m")
    assert (found.status, found.entries, found.sentinel, found.sha256) == (Status.OK, 1, "config.json", "")
    os.unlink(below / "m/config.json")
    (below / "m/config.json").mkdir()
    (found,) = seen_paths("/m")
    assert (found.status, found.sentinel, found.sha256) == (Status.OK, "config.json", "")


def test_digits_are_the_same_without_openssl(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = hashlib.sha256(b"abc").hexdigest()
    assert files_host.sha256(b"abc") == expected
    for module in ("_sha256", "_sha2"):
        monkeypatch.setitem(sys.modules, module, None)
    assert files_host.sha256(b"abc") == expected
    monkeypatch.setitem(sys.modules, "hashlib", None)
    assert files_host.sha256(b"abc") == "?"


@pytest.mark.parametrize("part", ["", "lane", "lane/ops", "lane/ops/op", "lane/ops/op/journal.jsonl"])
def test_below_a_folder_that_others_may_write_to_no_link_is_followed(below: Path, part: str) -> None:
    """A colleague could let this account read for them what only it may read."""
    real = below / "var" / "state"
    file = real / "lane" / "ops" / "op" / "journal.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("secret")
    path, state = "/var/state/lane/ops/op/journal.jsonl", "/var/state"
    assert parse_answer(files_host.file(path, "first", 10, state)).body == "secret"
    linked = real / part if part else real
    linked.rename(below / "aside")
    linked.symlink_to(os.path.relpath(below / "aside", linked.parent))
    found = parse_answer(files_host.file(path, "first", 10, state))
    name = f"/var/state/{part}".rstrip("/")
    assert (found.status, found.words) == (Status.ERROR, f"{name} is a symbolic link, which is refused")
    assert parse_answer(files_host.file(path, "first", 10)).body == "secret", "elsewhere links lead on"


def test_above_that_folder_links_lead_on_and_what_is_not_below_it_is_refused(below: Path) -> None:
    (below / "disk" / "state").mkdir(parents=True)
    (below / "disk" / "state" / "lease").write_text("id=f00d")
    (below / "var").symlink_to("/disk")
    assert parse_answer(files_host.file("/var/state/lease", "first", 10, "/var/state")).body == "id=f00d"
    for path in ("/etc/passwd", "/var/state/../x", "/var/stateful", "/var/state"):
        assert parse_answer(files_host.file(path, "first", 10, "/var/state")).words == "not below /var/state"
    assert files_host.file("/var/state/none", "first", 10, "/var/state") == "missing"
    assert files_host.file("/var/state/none/x", "first", 10, "/var/state") == "missing"
    assert files_host.file("/var/state/lease/x", "first", 10, "/var/state") == "missing"
