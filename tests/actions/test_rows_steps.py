"""Row copies that are built anew by a copier, and what counts as a good one."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import pytest
from row_snapshot import COPIER, RANGES, REVISION, SHARDS, make_snapshot
from site_hosts import answers, carry_out

from console.actions.plan import Stage, Step
from console.actions.site_steps import rows_step
from console.readings.row_types import RowRange


class Place:
    """A host's disk with a snapshot and the copier."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = make_snapshot(folder / "repo", REVISION, 1)
        self.dest = folder / "home" / "dsv41-engram-local"
        self.dest.parent.mkdir()
        self.copier = folder / "copier.py"
        self.copier.write_text(COPIER)

    def step(self, fault: str = "none", *, remove: tuple[str, ...] = (), dest: Path | None = None) -> Step:
        words = (sys.executable, str(self.copier), fault, "{source}", "{dest}", "{ranges}")
        return rows_step(
            "spark-2",
            str(self.source),
            str(dest or self.dest),
            RANGES,
            REVISION,
            words,
            shards=tuple(SHARDS.values()),
            remove=remove,
        )

    @property
    def beside(self) -> list[str]:
        """Names of folders beside the copy."""
        return sorted(entry.name for entry in self.dest.parent.iterdir() if entry.is_dir() and entry != self.dest)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_step_says_what_it_is(place: Place) -> None:
    step = place.step()
    assert (step.id, step.stage, step.host, step.detached, step.memory_max) == (
        "rows-spark-2",
        Stage.ROWS,
        "spark-2",
        True,
        "4G",
    )
    assert step.title == "build the rows of 89abcdef0123 on spark-2"
    assert step.argv[-6:] == (str(place.copier), "none", str(place.source), "@SIDE@", "1:300:620", "14:310:640")
    assert "deleting a copy first" in place.step(remove=("/x",)).title
    plain = rows_step("h", "/s", "/d", RANGES, REVISION, ("python3", "copy.py"), shards=("a",))
    assert plain.argv[-6:] == ("python3", "copy.py", "/s", "@SIDE@", "1:300:620", "14:310:640")


def test_a_copy_is_built_beside_and_put_in_its_place(place: Place) -> None:
    step = place.step()
    assert (answers(step.before), answers(step.already), answers(step.after)) == ([0], [1, 1, 1], [1, 1, 1, 1])
    done = carry_out(step)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verify: 8008 rows checked, 0 mismatches" in done.stdout
    assert (answers(step.already), answers(step.after)) == ([0, 0, 0], [0, 0, 0, 0])
    assert place.beside == []
    sizes = [os.stat(place.dest / name) for name in SHARDS.values()]
    assert [one.st_size for one in sizes] == [os.stat(place.source / name).st_size for name in SHARDS.values()]
    words = [carry_out(probe).stdout.strip() for probe in step.after]
    assert words[0] == "verify: 8008 rows checked, 0 mismatches; elapsed 1s"
    assert words[1] == "its manifest is of 89abcdef0123 and newer than the data"
    present = sum(one.st_blocks for one in sizes) * 512
    assert words[2] == f"{present} bytes allocated for {(320 + 330) * 264}"
    assert words[3].endswith(" rows compared, all the snapshot's")
    assert 4 * 3 <= int(words[3].split()[0]) <= 4 * 6


def test_a_former_copy_gives_way_only_to_a_good_one(place: Place) -> None:
    assert carry_out(place.step()).returncode == 0
    old = place.dest / SHARDS[1]
    with open(old, "r+b") as file:
        file.seek(4096)
        file.write(b"spoiled" * 30_000)
    spoiled = old.read_bytes()
    step = place.step("rows")
    assert answers(step.already)[2] == 1
    done = carry_out(step)
    assert done.returncode == 1 and "the new copy is not good: it stays in" in done.stderr
    assert old.read_bytes() == spoiled, "the copy in use is as it was"
    assert place.beside == ["dsv41-engram-local.laneswap-new"]
    step = place.step()
    assert carry_out(step).returncode == 0
    assert answers(step.after) == [0, 0, 0, 0]
    assert place.beside == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("exit 3", "the copier ended with exit 3"),
        ("exit 1", "the copier ended with exit 1"),
        ("mismatch", "the copier did not write ' 0 mismatches'"),
        ("revision", "its manifest is of 99abcdef0123456789abcdef0123456789abcdef, not of 89abcdef"),
        ("ranges", "its manifest has other ranges: 1:300:619, 14:310:639"),
        ("early", "its manifest is older than model-00047-of-00048.safetensors"),
        ("rows", "in model-00047-of-00048.safetensors is not the snapshot's"),
        ("header", "model-00047-of-00048.safetensors has another header than the snapshot's"),
        ("holes", "bytes allocated of 171600"),
    ],
)
def test_a_bad_copy_is_never_put_in_place(place: Place, fault: str, words: str) -> None:
    step = place.step(fault)
    done = carry_out(step)
    assert done.returncode == 1
    assert words in done.stdout + done.stderr
    assert not place.dest.exists()
    assert 1 in answers(step.after)


@pytest.mark.parametrize(
    ("damage", "which"),
    [("rows", 3), ("manifest gone", 1), ("older", 1), ("log", 0), ("exit", 0), ("holes", 2)],
)
def test_each_thing_that_is_wrong_afterwards_is_seen(place: Place, damage: str, which: int) -> None:
    step = place.step()
    assert carry_out(step).returncode == 0
    manifest, shard = place.dest / "engram-local.json", place.dest / SHARDS[1]
    if damage == "rows":
        kept = os.stat(shard)
        header = struct.unpack("<Q", shard.read_bytes()[:8])[0] + 8
        with open(shard, "r+b") as file:
            file.seek(header + 512 + RANGES[0].start * 256)
            file.write(b"\xff" * 256)
        os.utime(shard, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    elif damage == "manifest gone":
        manifest.unlink()
    elif damage == "older":
        os.utime(shard, (manifest.stat().st_mtime + 1,) * 2)
    elif damage == "log":
        Path(f"{place.dest}.laneswap-log").write_text("verify: 8008 rows checked, 10 mismatches; elapsed 1s\n")
    elif damage == "exit":
        Path(f"{place.dest}.laneswap-exit").write_text("1\n")
    else:
        whole = [os.stat(place.dest / name) for name in SHARDS.values()]
        for name, one in zip(SHARDS.values(), whole, strict=True):
            os.truncate(place.dest / name, 0)
            os.truncate(place.dest / name, one.st_size)
            os.utime(place.dest / name, ns=(one.st_atime_ns, one.st_mtime_ns))
    found = answers(step.after)
    assert found[which] == 1
    if damage != "holes":
        assert found == [int(number == which) for number in range(4)]


def test_a_snapshot_that_is_not_there_or_has_fewer_rows_stops_the_step_before_it_begins(place: Place) -> None:
    step = place.step()
    (place.source / SHARDS[14]).unlink()
    done = carry_out(step.before[0])
    assert (done.returncode, done.stdout) == (1, f"{place.source / SHARDS[14]} is not there\n")
    wider = rows_step(
        "h", str(place.source), "/d", (RowRange(1, 0, 901),), REVISION, ("x",), shards=tuple(SHARDS.values())
    )
    done = carry_out(wider.before[0])
    assert (done.returncode, done.stdout) == (1, "layer 1 has 900 rows, not 0 to 901\n")


def test_what_cannot_be_read_is_neither_good_nor_bad(place: Place) -> None:
    """A snapshot that is no longer what it was says nothing of the copy: not known, which is never taken for a no."""
    step = place.step()
    assert carry_out(step).returncode == 0
    index = place.source / "model.safetensors.index.json"
    index.unlink()
    index.mkdir()
    done = carry_out(step.after[3])
    assert (done.returncode, done.stdout[:15]) == (2, "cannot be told:"), done


def test_without_room_for_two_the_named_copy_is_deleted_first(place: Place) -> None:
    other = place.dest.parent / "dsv41-engram-local-1017"
    assert carry_out(place.step(dest=other)).returncode == 0
    step = place.step(remove=(str(other),))
    done = carry_out(step)
    assert done.returncode == 0 and f"removed: {other}\n" in done.stdout
    assert not other.exists()
    assert answers(step.after) == [0, 0, 0, 0]


def test_a_folder_with_anything_else_in_it_is_never_deleted(place: Place) -> None:
    for odd in ("notes.txt", ".hidden", "checkpoints/"):
        other = place.dest.parent / "precious"
        other.mkdir()
        (other / "engram-local.json").write_text("{}")
        if odd.endswith("/"):
            (other / odd).mkdir()
        else:
            (other / odd).write_text("mine")
        done = carry_out(place.step(remove=(str(other),)))
        assert done.returncode == 1
        assert f"{other} holds {odd.rstrip('/')}, which is no part of a row copy: not removed" in done.stderr
        assert (other / "engram-local.json").exists() and (other / odd).exists()
        assert not place.dest.exists()
        os.rename(other, place.dest.parent / f"kept{odd.strip('./')}")


def test_a_copy_behind_a_link_keeps_its_link(place: Place) -> None:
    real = place.folder / "nvme" / "rows"
    real.parent.mkdir()
    place.dest.symlink_to(real)
    step = place.step()
    assert carry_out(step).returncode == 0
    assert place.dest.is_symlink() and (real / "engram-local.json").is_file()
    assert answers(step.after) == [0, 0, 0, 0]


def test_what_a_killed_build_left_is_built_over(place: Place) -> None:
    side = Path(f"{place.dest}.laneswap-new")
    side.mkdir()
    (side / "engram-local.json").write_text("{}")
    (side / SHARDS[1]).write_bytes(b"half")
    (side / "config.json").write_text("of the copy that was not finished")
    step = place.step()
    assert carry_out(step).returncode == 0
    assert not (place.dest / "config.json").exists()
    assert answers(step.after) == [0, 0, 0, 0] and place.beside == []
