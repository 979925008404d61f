"""`inspect rows` and `inspect drift`, on published manifests and made folders."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from manual import beside

from console.inspection.arguments import InspectError, parse_argument
from console.inspection.kinds import inspect

FLEET = Path(__file__).parents[1] / "data" / "fleet"
CONTAINERS = Path(__file__).parents[1] / "data" / "containers"
NEW = "89abcdef0123456789abcdef0123456789abcdef"
OLD = "0123456789abcdef0123456789abcdef01234567"
RANGES = "1:96001542:192003084,14:96004170:192008341"
NAMES = ("model-00047-of-00048.safetensors", "model-00048-of-00048.safetensors")
KIB = 1024

rank_sets = beside("readings", "rank_sets")


def ask(kind: str, *words: str) -> dict[str, Any]:
    answer = inspect(kind, [parse_argument(word) for word in words])
    json.dumps(answer, allow_nan=False)
    return answer


def manifests(rank2: str = "rank2") -> list[str]:
    names = {0: "rank0", 2: rank2, 3: "rank3"}
    return [f"{rank}={FLEET}/engram-local.{name}.json" for rank, name in names.items()]


SITE, SITE_BEFORE = f"site={FLEET}/fleet.env.candidate.sample", f"site={FLEET}/fleet.env.sample"


def states(answer: dict[str, Any]) -> dict[str, str]:
    return {rank: copy["state"] for rank, copy in answer["ranks"].items()}


# --- rows ------------------------------------------------------------------------------------------------------------


def test_published_manifests_against_a_site_file() -> None:
    answer = ask("rows", *manifests(), SITE)
    assert (answer["revision"], answer["tp"]) == (NEW, 4)
    assert answer["tiling"] == {
        "ok": True,
        "words": "layers 1 and 14 tiled exactly, N*r//tp (SGLang)",
        "family": "N*r//tp (SGLang)",
        "families": dict.fromkeys("0123", "N*r//tp (SGLang)"),
        "layers": [{"layer": 1, "rows": 384006168, "faults": []}, {"layer": 14, "rows": 384016682, "faults": []}],
    }
    assert states(answer) == {"0": "unknown", "1": "reads the shards", "2": "unknown", "3": "unknown"}
    assert answer["ranks"]["2"]["words"] == "unknown: its shards were not looked at"
    assert answer["ranks"]["2"]["manifest"] == {
        "form": "local",
        "revision": NEW,
        "source": f"/mnt/dsv41/snapshots/{NEW}",
        "rank": None,
        "tp_size": None,
        "created": 1792314742.0,
        "digests": 0,
        "bytes": (96_001_542 + 96_004_170) * 264,
        "ranges": [
            {"layer": 1, "start": 192003084, "end": 288004626},
            {"layer": 14, "start": 192008341, "end": 288012511},
        ],
    }


def test_the_published_mistakes_are_named() -> None:
    wrong = ask("rows", *manifests("rank2.WRONG-PARTITION"), SITE)
    assert wrong["ranks"]["2"]["words"] == "other ranges: vLLM split in an SGLang lane, rebuild"
    assert wrong["tiling"]["ok"] is False
    assert wrong["tiling"]["layers"][0]["faults"] == [
        "overlap [192001740, 192003084) of rank 1 and rank 2",
        "gap [288003654, 288004626) between rank 2 and rank 3",
    ]
    stale = ask("rows", *manifests("rank2.STALE-REVISION"), SITE)
    assert stale["ranks"]["2"]["words"] == "old revision 01234567, rebuild"
    assert stale["tiling"]["ok"] is True
    before = ask("rows", *manifests("rank2.STALE-REVISION"), SITE_BEFORE)
    assert states(before) == {"0": "old revision", "1": "reads the shards", "2": "unknown", "3": "old revision"}


def test_what_the_site_file_says_may_be_said_otherwise(tmp_path: Path) -> None:
    answer = ask("rows", *manifests(), f"revision={OLD}", "tp=4", f"holder_rows={RANGES}")
    assert states(answer) == {"0": "old revision", "2": "old revision", "3": "old revision"}
    assert answer["tiling"]["ok"] is True
    bare = ask("rows", *manifests())
    assert (bare["tiling"]["ok"], bare["tiling"]["words"]) == (None, "ranges of rank 1 not known yet")
    named = tmp_path / "revision"
    named.write_text(OLD + "\n")
    assert ask("rows", *manifests(), SITE, f"revision={named}")["revision"] == OLD


def test_a_cluster_env_is_a_site_file_too(tmp_path: Path) -> None:
    path = tmp_path / "cluster.env"
    path.write_text(
        f"NODES=(a b c d)\nMODEL_DIR=/models/x\nMODEL_REVISION={'dba1be0a40aa45a94ad051997016db3960a90277'}\n"
    )
    answer = ask("rows", f"1={FLEET}/engram-local.tsw2k-rank1.json", f"site={path}")
    assert (answer["tp"], answer["ranks"]["1"]["words"]) == (4, "unknown: its shards were not looked at")
    assert answer["tiling"]["families"] == {"1": "whole hash heads (vLLM)"}
    assert answer["tiling"]["words"] == "ranges of rank 0, 2, 3 not known yet"


def folder(path: Path, text: str | None, present: int, *, suffix: str = "") -> Path:
    """A copy's folder with two sparse shards, `present` bytes written in all."""
    path.mkdir()
    for name in NAMES:
        with (path / (name + suffix)).open("wb") as file:
            file.truncate(10 * present)
            os.pwrite(file.fileno(), os.urandom(present // 2), present)
            os.fsync(file.fileno())
    if text is not None:
        (path / "engram-local.json").write_text(text)
    return path


def test_folders_of_this_machine(tmp_path: Path) -> None:
    whole = json.dumps({"source": f"/x/snapshots/{NEW}", "layers": {"1": [0, 1000]}})
    ready = folder(tmp_path / "a", whole, 512 * KIB)
    torn = folder(tmp_path / "b", whole.replace("[0, 1000]", "[1000, 10000]"), 512 * KIB)
    begun = folder(tmp_path / "c", None, 256 * KIB, suffix=".partial")
    (tmp_path / "d").mkdir()
    answer = ask("rows", f"0={ready}", f"1={torn}", f"2={begun}", f"3={tmp_path}/d", f"revision={NEW}")
    assert states(answer) == {"0": "ready", "1": "holes", "2": "copying", "3": "waits"}
    assert answer["ranks"]["0"]["present"] == 512 * KIB
    assert answer["ranks"]["0"]["apparent"] == 2 * 10 * 512 * KIB
    assert answer["ranks"]["0"]["free"] > 0
    assert answer["ranks"]["2"]["words"] == "copying, no manifest"
    assert answer["ranks"]["1"]["words"] == "holes: 1.8 MiB of 2.3 MiB missing, rebuild"
    assert answer["ranks"]["2"]["expected_by"] == "rank 1's copy"


def test_captured_listings_give_a_rate(tmp_path: Path) -> None:
    words = []
    for number in range(3):
        path = tmp_path / f"listing{number}.tsv"
        path.write_text(f"100000000\t{number * 40_960_000}\t{NAMES[0]}.partial\n")
        words.append(f"2={path}@{number * 10}")
    copy = ask("rows", *words)["ranks"]["2"]
    assert (copy["present"], copy["rate"], copy["words"]) == (81_920_000, 4_096_000.0, "copying, no manifest")
    with pytest.raises(InspectError, match="no time; say 2="):
        ask("rows", words[0], words[1].partition("@")[0])


def test_output_of_the_tool() -> None:
    answer = ask("rows", f"progress={FLEET}/engram_local.progress.rendered.txt")
    assert answer["progress"] == {
        "tool": "engram_local",
        "done": round(47.2 * 1024**3),
        "total": round(47.2 * 1024**3),
        "rate": None,
        "elapsed": 87.0,
        "checked": 8008,
        "mismatches": 0,
        "finished": True,
        "failure": "",
        "doing": "verify: 8008 rows checked, 0 mismatches; elapsed 87s",
    }
    assert answer["ranks"] == {}
    assert answer["tiling"]["ok"] is None


# --- drift -----------------------------------------------------------------------------------------------------------


def inspected(tmp_path: Path, swap: tuple[int, str, str] | None = None) -> list[str]:
    """Four ranks as a published launcher starts them, as `docker inspect` prints them."""
    words = []
    for rank, command in enumerate(rank_sets.launch_lines()):
        if swap is not None and swap[0] == rank:
            assert swap[1] in command
            command = command.replace(swap[1], swap[2])
        path = tmp_path / f"inspect{rank}.json"
        path.write_text(json.dumps([rank_sets.inspected(command)]))
        words.append(f"{rank}={path}")
    return words


def test_ranks_as_published(tmp_path: Path) -> None:
    answer = ask("drift", *inspected(tmp_path), SITE)
    assert [item["what"] for item in answer["differences"]] == [
        "environment B12X_ROCE_GID_INDEX",
        "environment NCCL_IB_GID_INDEX",
    ]
    assert (answer["same"], answer["worst"]) == (False, "info")
    assert answer["differences"][1]["values"] == {"rank 0": "3", "rank 1": "3", "rank 2": "4", "rank 3": "3"}
    assert answer["compared"] == ["container", "arguments and mounts", "environment"]
    assert {item["what"] for item in answer["unread"]} == {"driver", "kernel", "clock", "GPU"}


def test_without_the_site_file_the_holder_is_the_odd_one(tmp_path: Path) -> None:
    answer = ask("drift", *inspected(tmp_path))
    whats = {item["what"]: item["odd"] for item in answer["differences"]}
    assert whats["mount /engram-local"] == ["rank 1"]
    assert whats["environment SPARK_ENGRAM_ROWS"] == ["rank 1"]


def test_two_captured_containers() -> None:
    answer = ask("drift", *(f"{rank}={CONTAINERS}/spark_rank{rank}.json" for rank in (0, 1)))
    assert answer["worst"] == "act"
    assert answer["differences"][0]["what"] == "image id"
    assert answer["differences"][0]["odd"] == ["rank 0", "rank 1"]
    same = ask("drift", *(f"{rank}={CONTAINERS}/spark_rank0.json" for rank in (0, 1)))
    assert [item["what"] for item in same["differences"]] == ["argument --node-rank"]


def test_cards_clocks_kernels_and_snapshots(tmp_path: Path) -> None:
    words = inspected(tmp_path, (3, "--context-length 524288", "--context-length 262144"))
    head = "index, name, driver_version, utilization.gpu [%], power.draw [W], clocks.sm [MHz]\n"
    for rank, clock in enumerate((2411, 2405, 1500, 2411)):
        path = tmp_path / f"gpu{rank}.csv"
        path.write_text(f"{head}0, NVIDIA GB10, 580.95.05, 97 %, 58.0 W, {clock} MHz\n")
        words += [f"gpu{rank}={path}", f"clock{rank}={'-10800.5' if rank == 1 else '0.1'}", f"kernel{rank}=6.14.0"]
        repo = tmp_path / f"repo{rank}" / "models--org--name"
        (repo / "blobs").mkdir(parents=True)
        (repo / "snapshots" / OLD).mkdir(parents=True)
        (repo / "blobs" / "aa").write_text("{}")
        (repo / "snapshots" / OLD / "config.json").symlink_to("../../blobs/aa" if rank else "../../blobs/gone")
        words.append(f"snapshot{rank}={repo}")
    answer = ask("drift", *words, SITE)
    found = {item["what"]: (item["severity"], item["odd"]) for item in answer["differences"]}
    assert found == {
        "argument --context-length": ("act", ["rank 3"]),
        "clock": ("act", ["rank 1"]),
        "snapshot": ("act", ["rank 0"]),
        "GPU clock": ("look", ["rank 2"]),
        "environment B12X_ROCE_GID_INDEX": ("info", ["rank 2"]),
        "environment NCCL_IB_GID_INDEX": ("info", ["rank 2"]),
    }
    assert answer["unread"] == []


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("rows", [], "rows: no copy; say 0=FOLDER"),
        ("rows", ["{a}"], "of which rank? say 0="),
        ("rows", ["nosuch={a}"], "unknown role 'nosuch'"),
        ("rows", ["0={a}", "tp=many"], "tp: expected a number of ranks, found 'many'"),
        ("rows", ["0={a}", "holder_rows=1:2"], "holder_rows: '1:2': expected LAYER:START:END"),
        ("rows", ["0={a}", "site={a}"], "names no revision, as SNAP="),
        ("rows", ["0=/no/such"], "/no/such: No such file"),
        ("drift", [], "at least two ranks"),
        ("drift", ["0={a}"], "at least two ranks"),
        ("drift", ["0={a}", "0={a}", "1={a}"], "rank 0 is given 2 times"),
        ("drift", ["{a}", "1={a}"], "of which rank? say 0="),
        ("drift", ["0={a}", "1={a}", "cpu0={a}"], "unknown role 'cpu0'"),
        ("drift", ["0={a}", "1={a}"], "neither Id nor Name"),
        ("drift", ["0={b}", "1={b}"], "not JSON"),
        ("drift", ["0={c}", "1={c}"], "expected what `docker inspect NAME` prints"),
        ("drift", ["0={d}", "1={d}", "clock0=soon"], "clock0: expected seconds"),
        ("drift", ["0={d}", "1={d}", "gpu0={b}"], "nvidia-smi"),
    ],
)
def test_unusable_input_says_what_is_wrong(tmp_path: Path, kind: str, given: list[str], said: str) -> None:
    texts = {"a": "{}", "b": "{", "c": "[1]", "d": json.dumps([{"Id": "1"}])}
    files = {name: tmp_path / f"{name}.txt" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    with pytest.raises(InspectError) as caught:
        ask(kind, *(word.format(**files) for word in given))
    assert said in str(caught.value)
