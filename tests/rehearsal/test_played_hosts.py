"""What lies on a rehearsal host's disks and runs there, as the host's own python3 and systemctl tell it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

from console.readings.hubcache import HubRepo, read_repo
from console.readings.listing import parse_listing
from console.readings.processes import Process, parse_processes
from console.readings.rows import parse_manifest
from console.readings.units import Units, parse_units
from console.rehearsal.fetching import GIB, MB, PlayedDownload
from console.rehearsal.files import HostFiles
from console.rehearsal.hosts import PlayedHost, played_host
from console.rehearsal.hub import SHARDS, TOTAL, Checkpoint, files_of, shard_name
from console.rehearsal.machine import SimulatedMachine
from console.rehearsal.rowcopies import HEADS, ROW_BYTES, TABLES, PlayedCopy, ranges_of
from console.rehearsal.scenario import load_scenario
from console.rehearsal.stage import CheckpointModel, DownloadModel, RevisionModel, RowsModel, WatchdogModel
from console.rehearsal.watching import LOG_STATES, UNIT_STATES, played_watchdog

ROOT = Path(__file__).parents[2]
OLD, NEW = "1" * 40, "2" * 40
HELD, MOUNT = "~/.cache/huggingface/hub/models--org--name", "/mnt/models--org--name"
MACHINE = load_scenario("spark4").machines["spark-0"]
SURVEY = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from console.reach.survey_host import answer
print(answer(sys.argv[1], sys.argv[2:]), end="")
"""


def host(root: Path, name: str) -> PlayedHost:
    machine = SimulatedMachine(root / name, name, MACHINE)
    machine.install()
    played = played_host(name, machine)
    played.units.install()
    played.processes.boot(machine.booted)
    return played


def python(played: PlayedHost, code: str, *arguments: str, timeout: float = 20.0) -> str:
    """Runs it as the sampler's loader would, under the host's own python3."""
    root = played.files.root
    environment = {"LANESWAP_SAMPLER_ROOT": root, "HOME": "/home/ops", "PATH": f"{root}/bin:/usr/bin:/bin"}
    done = subprocess.run(
        [f"{root}/bin/python3", "-ISBc", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def look(played: PlayedHost, *arguments: str) -> str:
    played.files.write()
    return python(played, SURVEY, *arguments)


def repo(played: PlayedHost, path: str) -> HubRepo:
    return read_repo(parse_listing(look(played, "tree", path, "4", "6000")))


def units(played: PlayedHost, manager: str, *names: str) -> Units:
    return parse_units(look(played, "units", manager, *names))


def processes(played: PlayedHost, *parts: str) -> tuple[Process, ...]:
    return parse_processes(look(played, "processes", *parts))


# the host's python3


def test_a_root_with_odd_letters_in_its_name_is_no_hindrance(tmp_path: Path) -> None:
    played = host(tmp_path / 'it\'s a "root" $HOME', "node")
    played.files.sized("/srv/a file", 10**12, 4096, 1_700_000_000.0)
    played.files.write()
    code = "import os, sys; s = os.stat(os.environ['LANESWAP_SAMPLER_ROOT'] + '/srv/a file')\n"
    said = python(played, code + "print(s.st_size, s.st_blocks * 512, s.st_mtime, sys.argv[1:])", "a b", "c")
    assert said == "1000000000000 4096 1700000000.0 ['a b', 'c']\n"


def test_other_command_lines_get_the_plain_interpreter(tmp_path: Path) -> None:
    played = host(tmp_path, "node")
    done = subprocess.run([f"{played.files.root}/bin/python3", "-c", "print(1 + 1)"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2\n")


def test_sizes_follow_the_table_and_survive_a_replaced_one(tmp_path: Path) -> None:
    files = host(tmp_path, "node").files
    files.sized("~/x", 100, 0, 5.0)
    files.sized("~/x", 100, 40_960, 9.0)
    real = files.real("~/x")
    assert os.stat(real).st_size == 0 and os.stat(real).st_mtime == 9.0
    files.write()
    assert (Path(files.root) / "bin/sizes.tsv").read_text() == f"size\t{os.stat(real).st_ino}\t100\t40960\n"
    files.remove("~/x")
    files.write()
    assert (Path(files.root) / "bin/sizes.tsv").read_text() == "\n" and not files.has("~/x")


def test_a_disk_has_the_room_that_it_is_given(tmp_path: Path) -> None:
    played = host(tmp_path, "node")
    played.files.system("/", 4000 << 30, 21 << 30)
    listing = parse_listing(look(played, "tree", "~", "1", "10"))
    assert (listing.total, listing.free) == (4000 << 30, 21 << 30)


def test_a_clock_may_be_ahead(tmp_path: Path) -> None:
    played = host(tmp_path, "node")
    played.files.set_clock(95.0)
    played.files.write()
    assert float(python(played, "import time; print(time.time())")) - time.time() == pytest.approx(95, abs=5)
    assert played.wall - time.time() == pytest.approx(95, abs=1)


# checkpoints


def test_a_revision_has_the_published_size() -> None:
    files = files_of(NEW)
    assert sum(file.size for file in files) == TOTAL == 510_313_353_565
    assert sorted(file.shard for file in files if file.shard) == list(range(1, SHARDS + 1))
    sizes = {file.name: file.size for file in files}
    assert sizes[shard_name(47)] == 101_535_150_936 and sizes[shard_name(48)] == 101_537_926_640
    assert {file.etag for file in files if not file.shard} == {file.etag for file in files_of(OLD) if not file.shard}
    assert not {file.etag for file in files if file.shard} & {file.etag for file in files_of(OLD) if file.shard}


def checkpoint(root: Path, **more: object) -> tuple[Checkpoint, PlayedHost, PlayedHost]:
    holder, rank = host(root, "holder"), host(root, "rank")
    model = CheckpointModel(
        host="holder",
        folder=HELD,
        mount=MOUNT,
        mounted_on=("rank",),
        revisions=(RevisionModel(revision=OLD, refs=("main",)), RevisionModel(revision=NEW, missing=(3, 45))),
        **more,  # type: ignore[arg-type]
    )
    found = Checkpoint(model, {"holder": holder.files, "rank": rank.files}, time.time())
    found.install()
    return found, holder, rank


def test_holder_and_mount_show_the_same_repository(tmp_path: Path) -> None:
    found, holder, rank = checkpoint(tmp_path)
    holder.files.write()
    for played, path in ((holder, HELD), (rank, MOUNT)):
        seen = repo(played, path)
        whole, begun = seen.snapshot(OLD), seen.snapshot(NEW)
        assert whole is not None and begun is not None
        assert (whole.shards_done, whole.shards_total, whole.present) == (48, 48, TOTAL)
        assert (whole.dangling, whole.outside, whole.refs) == ((), (), ("main",))
        assert (begun.shards_done, begun.shards_total) == (46, 48)
        assert seen.prunable == (NEW,)
    assert found.name == "org/name"


def test_what_one_rank_no_longer_sees_the_others_do(tmp_path: Path) -> None:
    found, holder, rank = checkpoint(tmp_path)
    holder.files.write()
    found.dangle("rank", OLD, 12)
    there = repo(rank, MOUNT).snapshot(OLD)
    here = repo(holder, HELD).snapshot(OLD)
    assert there is not None and here is not None
    assert (there.dangling, here.dangling) == ((shard_name(12),), ())
    found.unmount("rank")
    assert repo(rank, MOUNT).snapshots == () and found.mounted == set()
    found.put_back("rank")
    back = repo(rank, MOUNT).snapshot(OLD)
    assert back is not None and back.dangling == () and found.mounted == {"rank"}


def test_a_blob_store_outside_of_the_folder_is_not_exported(tmp_path: Path) -> None:
    _, holder, rank = checkpoint(tmp_path, store="/srv/store")
    holder.files.write()
    here, there = repo(holder, HELD).snapshot(OLD), repo(rank, MOUNT).snapshot(OLD)
    assert here is not None and there is not None
    assert len(here.outside) == len(files_of(OLD)) == len(there.dangling)


def test_a_mount_that_hangs_keeps_whoever_looks_waiting(tmp_path: Path) -> None:
    found, holder, rank = checkpoint(tmp_path)
    holder.files.write()
    found.hang("rank")
    with pytest.raises(subprocess.TimeoutExpired):
        rank.files.write()
        python(rank, SURVEY, "tree", MOUNT, "1", "10", timeout=1.5)
    assert "ok" in look(rank, "tree", "~", "1", "10").splitlines()[0]
    found.put_back("rank")
    assert repo(rank, MOUNT).snapshot(OLD) is not None


# downloads


def fetching(root: Path, **more: object) -> tuple[PlayedDownload, PlayedHost]:
    found, holder, _ = checkpoint(root)
    model = DownloadModel(checkpoint="c", revision=NEW, partial=(0.5,), unit="hf.service", cap_gib=4.0, **more)  # type: ignore[arg-type]
    played = PlayedDownload(model, found, holder)
    played.install()
    return played, holder


def test_a_download_grows_at_its_rate_and_ends(tmp_path: Path) -> None:
    played, holder = fetching(tmp_path, jitter=0.0)
    size = {file.shard: file.size for file in files_of(NEW)}
    for _ in range(10):
        played.step(1.0)
    assert played.written == pytest.approx(614 * MB) and played.received == pytest.approx(614 * MB, abs=10)
    (partial,) = repo(holder, HELD).partials
    assert partial.apparent == size[3] and partial.present == pytest.approx(0.5 * size[3] + 614 * MB, abs=8192)
    assert not partial.resumable and not partial.orphan
    (one,) = processes(holder, "hf download")
    assert one.pid == 61_204 and one.read == pytest.approx(614 * MB, abs=10) and NEW in one.command
    played.befall("done")
    seen = repo(holder, HELD).snapshot(NEW)
    assert seen is not None and seen.complete and repo(holder, HELD).partials == ()
    assert played.written == pytest.approx(0.5 * size[3] + size[45], abs=10)
    assert processes(holder, "hf download") == ()
    unit = units(holder, "user", "hf.service").unit("hf.service")
    assert unit is not None and unit.load == "not-found"


def test_a_cap_that_is_enforced_kills_and_one_that_is_not_lets_grow(tmp_path: Path) -> None:
    played, holder = fetching(tmp_path / "enforced", memory_to_gib=6.0, memory_mib_s=1024.0)
    ((_, memory),) = units(holder, "user", "hf.service").memory
    assert memory.in_force and memory.cap == 4 * GIB == memory.cap_asked and memory.oom_kills == 0
    for _ in range(5):
        played.step(1.0)
    unit = units(holder, "user", "hf.service").unit("hf.service")
    assert not played.running and played.memory == 0
    assert unit is not None and (unit.active, unit.result, unit.main_pid) == ("failed", "oom-kill", None)
    played, holder = fetching(tmp_path / "not", memory_to_gib=6.0, memory_mib_s=1024.0, in_force=False)
    for _ in range(5):
        played.step(1.0)
    ((_, memory),) = units(holder, "user", "hf.service").memory
    assert played.running and played.memory == pytest.approx(6 * GIB, rel=0.03)
    assert memory.in_force is False and memory.why == "the memory controller is not delegated"


def test_an_interrupted_download_begins_anew_or_goes_on(tmp_path: Path) -> None:
    for name, old_naming, partials in (("new", False, 2), ("old", True, 1)):
        played, holder = fetching(tmp_path / name, old_naming=old_naming)
        played.befall("kill")
        assert not played.running and len(repo(holder, HELD).partials) == 1
        played.befall("resume")
        played.step(1.0)
        found = repo(holder, HELD).partials
        assert len(found) == partials and sum(item.orphan for item in found) == partials - 1
        assert {item.resumable for item in found} == {old_naming}


def test_a_stall_stops_every_clock_and_a_buffer_only_the_disk(tmp_path: Path) -> None:
    played, _ = fetching(tmp_path)
    played.step(1.0)
    before = (played.written, played.received, played.memory)
    played.befall("stall")
    played.step(5.0)
    assert (played.written, played.received, played.memory) == before
    played.befall("buffer")
    played.step(5.0)
    assert played.written == before[0] and played.received > before[1]
    played.befall("second")
    played.befall("go")
    played.step(1.0)
    assert played.written > before[0]


# row copies


@pytest.mark.parametrize("partition", ["sglang", "vllm"])
def test_ranges_tile_every_table(partition: str) -> None:
    for layer, rows in TABLES.items():
        bounds = [ranges_of(partition, rank, 4)[layer] for rank in range(4)]
        assert bounds[0][0] == 0 and bounds[-1][1] == rows == HEADS[layer][-1]
        assert all(left[1] == right[0] for left, right in pairwise(bounds))
    with pytest.raises(ValueError, match="4 ranks, not for 3"):
        ranges_of("vllm", 0, 3)


def rows_model(**more: object) -> RowsModel:
    return RowsModel(lane="l", hosts=("rank",), folder="~/rows", revision=NEW, source=MOUNT, **more)  # type: ignore[arg-type]


def test_a_copy_fills_and_gets_its_manifest_last(tmp_path: Path) -> None:
    played = host(tmp_path, "rank")
    copy = PlayedCopy(rows_model(share=0.9, gib_s=1.0), played, 1, 4)
    copy.install()
    assert copy.whole == sum(end - start for start, end in ranges_of("sglang", 1, 4).values()) * ROW_BYTES
    (tool,) = processes(played, "tools/engram_local.py")
    assert "1:96001542:192003084 14:96004170:192008341" in tool.command
    assert not played.files.has("~/rows/engram-local.json")
    for _ in range(5):
        copy.step(1.0, 0.0)
    manifest = parse_manifest(Path(played.files.real("~/rows/engram-local.json")).read_text())
    assert (manifest.revision, manifest.form, manifest.bytes) == (NEW, "local", copy.whole)
    listing = parse_listing(look(played, "tree", "~/rows", "1", "10"))
    shards = [entry for entry in listing.entries if entry.path.startswith("model-")]
    present = sum(entry.present for entry in shards if entry.path.endswith("-of-00048.safetensors"))
    assert copy.whole <= present <= copy.whole + 16384 and processes(played, "tools/engram_local.py") == ()


def test_what_befalls_a_copy_can_be_seen(tmp_path: Path) -> None:
    played = host(tmp_path, "rank")
    copy = PlayedCopy(rows_model(form="slice", partition="vllm"), played, 1, 4)
    copy.install()
    said = parse_manifest(Path(played.files.real("~/rows/engram-local.json")).read_text())
    assert (said.form, said.rank, said.tp_size, said.revision) == ("slice", 1, 4, NEW)
    copy.befall("holes")
    assert copy.there == 0.83 * copy.whole
    copy.befall("done")
    copy.befall("rebuild")
    assert copy.running and played.files.has("~/rows/engram-local.json")
    copy.stop()
    there = copy.there
    copy.step(5.0, 0.0)
    assert not copy.running and copy.there == there
    copy.befall("gone")
    assert not played.files.has("~/rows")


def test_a_copy_may_begin_later(tmp_path: Path) -> None:
    played = host(tmp_path, "rank")
    copy = PlayedCopy(rows_model(share=0.0, gib_s=1.0, starts_at=30.0), played, 0, 4)
    copy.install()
    copy.step(1.0, 29.0)
    assert copy.there == 0 and not played.files.has("~/rows")
    copy.step(1.0, 31.0)
    assert copy.there == 1 << 30 and copy.running


# watchdogs, processes, units


@pytest.mark.parametrize("state", LOG_STATES)
def test_a_log_watchdog_leaves_what_its_state_leaves(tmp_path: Path, state: str) -> None:
    played = host(tmp_path, "head")
    dog = played_watchdog(WatchdogModel(host="head", acted_s=500_000.0), played)
    dog.install()
    dog.become(state, 2)
    log = Path(played.files.real("~/sgl-watchdog.log")).read_text()
    assert log.count("watchdog started (pid ") == 2 + (state == "starting")
    running = processes(played, "launch/watchdog.sh")
    gone = ("dead", "reused", "stopped", "standing-down")
    assert len(running) == (0 if state in gone else 2 if state == "two" else 1)
    assert played.files.has("~/.sgl-watchdog.lock") == (state != "stopped")
    stamps = [line[:19] for line in log.splitlines() if line[:2] == "20"]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize("state", UNIT_STATES)
def test_a_unit_watchdog_leaves_what_its_state_leaves(tmp_path: Path, state: str) -> None:
    played = host(tmp_path, "head")
    dog = played_watchdog(WatchdogModel(kind="systemd", host="head"), played)
    dog.install()
    dog.become(state)
    assert played.files.has("/var/tmp/dsv41-watchdog.pause") == (state == "paused")
    assert played.files.has("/var/tmp/dsv41-watchdog.gaveup") == (state == "gave-up")
    found = units(played, "system", "dsv41-fleet.service")
    if state == "unknown":
        assert found.problem and not found.items
        return
    active = {"off": "inactive", "failed": "failed", "in-flight": "deactivating"}.get(state, "active")
    assert [item.active for item in found.items] == [active]


@pytest.mark.parametrize(("kind", "state"), [("log", "paused"), ("systemd", "two")])
def test_a_state_of_the_other_kind_is_refused(tmp_path: Path, kind: str, state: str) -> None:
    dog = played_watchdog(WatchdogModel(kind=kind, host="head"), host(tmp_path, "head"))  # type: ignore[arg-type]
    dog.install()
    with pytest.raises(ValueError, match=f"kind '{kind}' is never '{state}'"):
        dog.become(state)


def test_a_process_reads_as_one_of_proc(tmp_path: Path) -> None:
    played = host(tmp_path, "node")
    started = time.time() - 3600
    played.processes.start(4711, ["/usr/bin/rsync", "-a", "a b"], started, state="Z")
    (one,) = processes(played, "pid:4711")
    assert (one.pid, one.ppid, one.command, one.alive) == (4711, 1, "/usr/bin/rsync -a a b", False)
    assert one.started == pytest.approx(started, abs=2)
    played.processes.boot(time.time())
    assert processes(played, "pid:4711") == ()


def systemctl(played: PlayedHost, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [f"{played.files.root}/bin/systemctl", *arguments], capture_output=True, text=True, timeout=20
    )


def test_systemctl_answers_from_files_and_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    played = host(tmp_path, "node")
    played.units.put("system", "a.timer", {"ActiveState": "active"}, {"StateChangeTimestamp": 1_700_000_000.0})
    assert systemctl(played, "show", "-p", "Id,StateChangeTimestamp", "a.timer", "b.service").stdout == (
        "Id=a.timer\nStateChangeTimestamp=Tue 2023-11-14 22:13:20 UTC\n\nId=b.service\n"
    )
    assert systemctl(played, "--timestamp=unix", "show", "--property=StateChangeTimestamp", "a.timer").stdout == (
        "StateChangeTimestamp=@1700000000\n"
    )
    active, other = systemctl(played, "is-active", "a.timer"), systemctl(played, "is-active", "b.service")
    assert (active.stdout, active.returncode, other.stdout, other.returncode) == ("active\n", 0, "inactive\n", 3)
    assert systemctl(played, "show", "--value", "a.timer").returncode == 2
    assert systemctl(played, "restart", "a.timer").stderr == "rehearsal: systemctl restart is not played here\n"
    played.units.set_bus("user", False)
    lost = systemctl(played, "--user", "show", "a.timer")
    assert (lost.returncode, lost.stderr) == (1, "Failed to connect to bus: No medium found\n")


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    files = HostFiles(tmp_path)
    files.text("/etc/x", "one\r\ntwo", 5.0)
    assert (tmp_path / "etc/x").read_bytes() == b"one\r\ntwo" and (tmp_path / "etc/x").stat().st_mtime == 5.0
    assert json.dumps(sorted(os.listdir(tmp_path / "etc"))) == '["x"]'
