"""`inspect` of repository folders, downloads and processes: on folders as they lie here, and on what was captured."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from console.inspection.arguments import InspectError, parse_argument
from console.inspection.kinds import inspect

DATA = Path(__file__).parents[1] / "data"
CASES = Path(__file__).parents[1] / "cases/inputs"
NEW = "1bae0e1088993b9b82de08f59de5be5a34e42170"
OLD = "df42c109" + "0" * 32


def ask(kind: str, *words: str) -> dict[str, Any]:
    answer = inspect(kind, [parse_argument(word) for word in words])
    json.dumps(answer, allow_nan=False)
    return answer


class Cache:
    """A repository folder in a temporary place, made as the hub's client makes it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "models--org--m"
        (self.root / "blobs").mkdir(parents=True)

    def add(self, revision: str, name: str, size: int, blob: str) -> None:
        path = self.root / "blobs" / blob
        if not path.exists():
            path.write_bytes(os.urandom(size))
        link = self.root / "snapshots" / revision / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(path, link.parent))

    def ref(self, name: str, revision: str) -> None:
        path = self.root / "refs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(revision)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(tmp_path)
    made.add(OLD, "config.json", 5000, "a" * 40)
    made.add(OLD, "model-00001-of-00001.safetensors", 90_000, "1" * 64)
    made.add(NEW, "config.json", 5000, "a" * 40)
    made.add(NEW, "encoding/encoding.py", 700, "b" * 40)
    made.add(NEW, "model-00001-of-00002.safetensors", 70_000, "2" * 64)
    made.ref("main", NEW)
    return made


def manifest(path: Path, *rows: str) -> str:
    path.write_text("".join(f"{row}\n" for row in rows))
    return str(path)


def test_two_revisions_in_a_folder_of_this_machine(cache: Cache) -> None:
    answer = ask("snapshot", str(cache.root), f"serving={OLD}", f"pin={NEW}")
    assert (answer["model"], answer["problem"], answer["root"]) == ("org/m", None, str(cache.root))
    new, old = sorted(answer["revisions"], key=lambda item: item["revision"] != NEW)
    assert (new["entries"], new["resolvable"], new["shards_done"], new["shards_total"]) == (3, 3, 1, 2)
    assert (new["present"], new["status"], new["refs"]) == (75_700, "incomplete", ["main"])
    assert (old["present"], old["status"], old["refs"]) == (95_000, "complete", [])
    assert answer["present"] == 165_700
    assert answer["refs"] == [{"name": "main", "revision": NEW}]
    assert answer["prunable"] == [OLD]
    assert answer["warnings"] == ["`hf cache prune` would delete df42c10 (serving): no ref names it"]
    assert answer["free"] > 0
    assert answer["file_system"]


def test_a_whole_cache_with_one_repository_is_read_with_several_it_asks(cache: Cache) -> None:
    assert ask("snapshot", str(cache.root.parent))["model"] == "org/m"
    (cache.root.parent / "models--org--n/blobs").mkdir(parents=True)
    with pytest.raises(InspectError, match="2 repositories in it: name one"):
        ask("snapshot", str(cache.root.parent))


def test_a_list_says_what_is_missing(cache: Cache, tmp_path: Path) -> None:
    listed = manifest(
        tmp_path / "manifest.tsv",
        f"config.json\t5000\tgit:{'a' * 40}",
        f"model-00001-of-00002.safetensors\t71000\t{'2' * 64}",
        f"model-00002-of-00002.safetensors\t9000\t{'3' * 64}",
    )
    (cache.root / "blobs" / f"{'3' * 64}.0a1b2c3d.incomplete").write_bytes(os.urandom(4096))
    answer = ask("snapshot", str(cache.root), f"expected={listed}", f"pin={NEW}")
    found = answer["expected"]
    assert (found["files"], found["bytes"], found["whole_files"]) == (3, 85_000, 1)
    assert found["missing"] == ["model-00002-of-00002.safetensors"]
    assert found["other_size"] == ["model-00001-of-00002.safetensors"]
    assert found["done"] == 5000 + 70_000 + 4096
    assert found["done_percent"] == pytest.approx(100 * 79_096 / 85_000)
    with pytest.raises(InspectError, match="say pin=REVISION"):
        ask("snapshot", str(cache.root), f"expected={listed}")


def test_a_list_without_shards_decides_alone(cache: Cache, tmp_path: Path) -> None:
    cache.add("c" * 40, "config.json", 5000, "a" * 40)
    listed = manifest(tmp_path / "m.tsv", "config.json\t5000")
    answer = ask("snapshot", str(cache.root), f"expected={listed}", f"pin={'c' * 40}")
    states = {item["revision"]: item["status"] for item in answer["revisions"]}
    assert states == {OLD: "complete", NEW: "incomplete", "c" * 40: "complete"}
    alone = ask("snapshot", str(cache.root))
    assert {item["revision"]: item["status"] for item in alone["revisions"]}["c" * 40] == "unknown"


def test_upstream_against_the_pin(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "main.json").write_text(json.dumps({"sha": OLD}))
    (tmp_path / "pin").write_text(f"{NEW}\n")
    answer = ask("snapshot", str(cache.root), f"upstream={tmp_path}/main.json", f"pin={tmp_path}/pin")
    assert (answer["pin"], answer["upstream"], answer["upstream_moved"]) == (NEW, OLD, True)
    same = ask("snapshot", str(cache.root), f"upstream={tmp_path}/main.json", f"pin={OLD}")
    assert same["upstream_moved"] is False
    assert ask("snapshot", str(cache.root))["upstream_moved"] is None
    (tmp_path / "main.json").write_text("{}")
    with pytest.raises(InspectError, match="no commit in it"):
        ask("snapshot", str(cache.root), f"upstream={tmp_path}/main.json")


def test_a_shared_blob_store_beside_the_repository(cache: Cache) -> None:
    store = cache.root.parent / "blobs/ab" / ("ab" * 32)
    store.parent.mkdir(parents=True)
    store.write_bytes(os.urandom(8192))
    (cache.root / "blobs" / ("4" * 64)).symlink_to(f"../../blobs/ab/{'ab' * 32}")
    (cache.root / "snapshots" / NEW / "model-00002-of-00002.safetensors").symlink_to(f"../../blobs/{'4' * 64}")
    apart = ask("snapshot", str(cache.root))["revisions"]
    assert [item["outside"] for item in apart if item["revision"] == NEW] == [["model-00002-of-00002.safetensors"]]
    whole = ask("snapshot", str(cache.root.parent))["revisions"]
    assert [(item["outside"], item["status"]) for item in whole if item["revision"] == NEW] == [([], "complete")]


def test_a_copy_without_its_store_dangles_through_the_mount(cache: Cache, tmp_path: Path) -> None:
    mount = tmp_path / "mnt/models--org--m"
    mount.parent.mkdir()
    cache.root.rename(mount)
    copied = Cache(tmp_path / "again")
    copied.add(NEW, "config.json", 5000, "a" * 40)
    answer = ask("snapshot", f"holder={mount}", f"mount={copied.root}")
    assert answer["same"] is False
    assert answer["holder"]["path"] is None
    missing = {(item["file"], item["through_mount"]) for item in answer["differ"] if item["revision"] == NEW}
    assert missing == {("encoding/encoding.py", "not there"), ("model-00001-of-00002.safetensors", "not there")}
    assert ask("snapshot", f"holder={copied.root}", f"mount={mount}")["same"] is True


def test_a_plain_folder(tmp_path: Path) -> None:
    (tmp_path / "plain/.cache/huggingface/download").mkdir(parents=True)
    (tmp_path / "plain/config.json").write_bytes(os.urandom(5000))
    part = f"plain/.cache/huggingface/download/x=.{'5' * 64}.01234567.incomplete"
    with (tmp_path / part).open("wb") as file:
        file.write(os.urandom(8192))
        file.truncate(1 << 20)
    answer = ask("snapshot", str(tmp_path / "plain"))
    (revision,) = answer["revisions"]
    assert (revision["revision"], revision["entries"], revision["present"]) == (None, 1, 5000)
    (partial,) = answer["partials"]
    assert (partial["apparent"], partial["present"], partial["resumable"]) == (1 << 20, 8192, False)


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("denied\n")
    assert ask("snapshot", str(tmp_path / "answer"))["problem"] == "no permission"


@pytest.mark.parametrize(
    ("kind", "words", "message"),
    [
        ("snapshot", (), "no folder"),
        ("snapshot", ("holder=x",), "two views of one folder"),
        ("snapshot", ("nowhere",), "No such file"),
        ("snapshot", (f"{CASES}/C017/stdout.bin",), "no listing of a folder"),
        ("snapshot", (f"{CASES}/C009/listing_t0.tsv", f"expected={CASES}/C017/stdout.bin"), "line 1: expected path"),
        ("snapshot", ("odd=x",), "unknown role 'odd'"),
        ("download", (), "nothing to look at"),
        ("download", ("odd=x",), "unknown role 'odd'"),
        ("download", (f"unit={CASES}/C017/stdout.bin",), "no unit in it"),
        ("download", (f"cgroup={CASES}/C009",), "none of cgroup.controllers, memory.max"),
        ("download", (f"processes={CASES}/C017/stdout.bin",), "no process in it"),
        ("processes", (), "take it with `ps"),
        ("processes", (f"{CASES}/C017/stdout.bin",), "no process in it"),
    ],
)
def test_unusable_input_says_what_is_wanted(kind: str, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InspectError, match=message):
        ask(kind, *words)


def test_listings_without_times_are_refused_where_there_are_two(cache: Cache) -> None:
    with pytest.raises(InspectError, match="no time; say"):
        ask("download", f"0={cache.root}", f"1={cache.root}@60")
    assert ask("download", str(cache.root))["state"] == "incomplete"


def test_listings_are_put_in_the_order_of_time() -> None:
    answer = ask(
        "download",
        f"0={CASES}/C009/listing_t0.tsv@500",
        f"1={CASES}/C009/listing_t1.tsv@20",
        f"expected_bytes={CASES}/C009/expected_total_bytes.txt",
    )
    assert (answer["state"], answer["stalled_for_s"], answer["window_s"]) == ("stalled", 480.0, 480.0)
    assert answer["why"] == "no new byte on disk for 480 s; network and memory not read"


def test_a_growing_download_with_its_unit_and_its_environment(cache: Cache, tmp_path: Path) -> None:
    listed = manifest(
        tmp_path / "m.tsv",
        f"config.json\t5000\tgit:{'a' * 40}",
        f"model-00002-of-00002.safetensors\t100000\t{'3' * 64}",
    )
    row = f"f\t100000\t%d\t900\t7\t%d\t1\tblobs/{'3' * 64}.0a1b2c3d.incomplete\n"
    for at, size in enumerate((8192, 32768, 57344)):
        (tmp_path / f"t{at}").write_text("ok free=9999 total=99999\n# root\t/models/models--org--m\n" + row % (size, 5))
    show = "Id=hf.service\nLoadState=loaded\nActiveState=active\nResult=success\nMemoryMax=4294967296\n"
    (tmp_path / "show").write_text(show)
    (tmp_path / "group").mkdir()
    (tmp_path / "group/cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "group/memory.max").write_text("4294967296\n")
    (tmp_path / "group/memory.current").write_text("1000000\n")
    (tmp_path / "group/memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    (tmp_path / "ps").write_text("PID PPID STAT ELAPSED COMMAND\n 41 1 S 10:00 hf download org/m\n")
    answer = ask(
        "download",
        *(f"{at}={tmp_path}/t{at}@{at * 10}" for at in range(3)),
        f"expected={listed}",
        f"unit={tmp_path}/show",
        f"cgroup={tmp_path}/group",
        f"processes={tmp_path}/ps",
        f"pin={NEW}",
        f"serving={OLD}",
    )
    assert (answer["state"], answer["done"], answer["expected"]) == ("running", 57_344, 105_000)
    assert (answer["rate"], answer["window_s"]) == (49_152 / 20, 20.0)
    assert answer["eta_s"] == pytest.approx((105_000 - 57_344) / (49_152 / 20))
    assert answer["cap"] == {"asked": 4 << 30, "bytes": 4 << 30, "state": "in force", "why": None}
    assert (answer["memory"]["current"], answer["memory"]["oom_kills"]) == (1_000_000, 1)
    assert (answer["downloaders"], answer["pids"]) == (1, [41])
    assert answer["current_file"] == "model-00002-of-00002.safetensors"
    assert "the kernel has killed 1 of hf.service at its memory cap" in answer["warnings"]
    assert any("GiB to come" in text for text in answer["warnings"])


@pytest.mark.parametrize(
    ("files", "cap"),
    [
        ({"memory.max": "max\n"}, {"asked": None, "bytes": None, "state": "none", "why": None}),
        ({"cgroup.controllers": "memory\n"}, {"asked": None, "bytes": None, "state": "unknown", "why": None}),
    ],
)
def test_a_group_alone(tmp_path: Path, files: dict[str, str], cap: dict[str, Any]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert ask("download", f"cgroup={tmp_path}")["cap"] == cap


def test_a_group_that_the_kernel_did_not_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("lots\n")
    with pytest.raises(InspectError, match=r"memory\.max: expected a number of bytes or max"):
        ask("download", f"cgroup={tmp_path}")


def test_the_published_manifest_against_a_captured_listing(tmp_path: Path) -> None:
    sizes = {"47": 101_535_150_936, "48": 101_537_926_640}
    names = {"47": "824db4881320407ac340736d14dcee5ecd748c27d0f5836b8127ecc2e3781b0f"}
    rows = [f"f\t{sizes['47']}\t{20 << 30}\t5\t7\t1\t1\tblobs/{names['47']}.0a1b2c3d.incomplete"]
    (tmp_path / "t").write_text("ok free=1 total=2\n# root\t/m/models--org--m\n" + "\n".join(rows) + "\n")
    answer = ask("download", f"0={tmp_path}/t@0", f"expected={DATA}/fleet/manifest-subset.tsv")
    assert (answer["done"], answer["expected"]) == (20 << 30, 215_471_105_005)
    assert answer["current_file"] == "model-00047-of-00048.safetensors"
    assert answer["notes"] == [
        "plain HTTP refuses files over 50 GB, they need hf_xet:"
        " model-00047-of-00048.safetensors, model-00048-of-00048.safetensors"
    ]


def test_processes_of_one_repository() -> None:
    answer = ask("processes", f"{CASES}/C094/ps.txt", "repo=org/other")
    assert answer["downloads"] == [{"repo": "org/other", "running": 0, "pids": [], "revisions": []}]
    assert answer["warnings"] == ["poll loops left behind by dropped connections: 1 (pid 7450)"]
    every = ask("processes", f"{CASES}/C094/ps.txt")
    assert every["downloads"][0] == {"repo": "org/m", "running": 2, "pids": [7001, 7444], "revisions": ["abc"]}
    assert every["zombie_pids"] == [7502]
