"""A download's state, pace and warnings, out of readings of its folder, its processes and its unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hub_listings import GIB, NEW, OLD, ROOT, blob, file, link, listing, ref, repo, shard
from hypothesis import given
from hypothesis import strategies as st

from console.readings.download import Download, DownloadSample, DownloadState, Expected, read_download
from console.readings.download_pace import Point, clocks, parse_received, rate, still_for, usual
from console.readings.hubcache import HubRepo, read_repo
from console.readings.processes import Process, Processes
from console.readings.units import Unit, UnitMemory, Units

MIB = 1024**2
S = DownloadState
UNIT = "hf-download.service"
SHARD_2 = "model-00002-of-00002.safetensors"
HF = Process(4100, 1, "S", f"/usr/bin/python3 /usr/bin/hf download org/m --revision {NEW}")

FILES = Expected(
    (
        ("config.json", 1000, "git:" + "c" * 40),
        ("model-00001-of-00002.safetensors", 40 * GIB, blob(1)),
        ("model-00002-of-00002.safetensors", 60 * GIB, blob(2)),
    ),
    "manifest.tsv",
)
CONFIG = (
    file(f"blobs/{'c' * 40}", 1000, 3),
    link(f"snapshots/{NEW}/config.json", f"../../blobs/{'c' * 40}", 1000, 3),
)
FIRST = shard(NEW, 1, 2, 40 * GIB, 1)
SECOND = shard(NEW, 2, 2, 60 * GIB, 2)


def partial(size: int, *, name: str = "0a1b2c3d", mtime: float = 900.0, inode: int = 20) -> str:
    return file(f"blobs/{blob(2)}.{name}.incomplete", 60 * GIB, inode, allocated=size, mtime=mtime)


def growing(*sizes: int, every: float = 5.0, **more: object) -> list[DownloadSample]:
    """Readings of shard 2 as it comes, `every` seconds; `more` stands in each of them."""
    rows = [*CONFIG, *FIRST, ref("main", NEW)]
    return [DownloadSample(at * every, repo([*rows, partial(size)]), **more) for at, size in enumerate(sizes)]  # type: ignore[arg-type]


def read(samples: Sequence[DownloadSample], **more: object) -> Download:
    given: dict[str, object] = {"revision": NEW, "expected": FILES, **more}
    return read_download(samples, **given)  # type: ignore[arg-type]


def unit(active: str = "active", result: str = "success", **memory: object) -> Units:
    kept = UnitMemory(**{"current": None, "peak": None, "cap_asked": None, "cap": None, "in_force": None, **memory})  # type: ignore[arg-type]
    return Units((Unit(UNIT, "loaded", active, result=result),), ((UNIT, kept),))


# --- how far


def test_a_running_download_is_counted_file_by_file() -> None:
    found = read(growing(*(at * 500 * MIB for at in range(13)), processes=[HF]), host="spark-0")
    assert (found.state, found.why) == (S.RUNNING, "")
    assert found.done == 1000 + 40 * GIB + 6000 * MIB
    assert found.expected == 1000 + 100 * GIB
    assert found.share == pytest.approx(found.done / found.expected)
    assert (found.files_done, found.files_total, found.shards_done, found.shards_total) == (2, 3, 1, 2)
    assert found.rate == 100 * MIB
    assert found.window == 60.0
    assert found.eta == (found.expected - found.done) / (100 * MIB)
    assert found.stalled_for == 0.0
    assert (found.host, found.repo, found.processes, found.pids) == ("spark-0", ROOT, 1, (4100,))
    assert found.current is not None
    assert found.current_file == "model-00002-of-00002.safetensors"
    assert (found.current_size, found.attempt, found.partials, found.orphans) == (60 * GIB, 1, 1, ())


def test_without_a_list_there_is_no_share_and_no_time_to_go() -> None:
    found = read(growing(0, GIB, 2 * GIB, processes=[HF]), expected=None)
    assert (found.state, found.rate) == (S.RUNNING, 2 * GIB / 10)
    assert found.done == 1000 + 42 * GIB
    assert found.expected is found.share is found.eta is found.files_total is None


def test_bytes_of_another_revision_are_not_progress() -> None:
    rows = [*shard(OLD, 1, 1, 900 * MIB, 50), *CONFIG, partial(GIB)]
    samples = [DownloadSample(0, repo(rows))]
    assert read(samples).done == 1000 + GIB
    assert read(samples, expected=None).done == 1000 + GIB
    loose = [DownloadSample(0, repo([*rows, file(f"blobs/{blob(9)}", 700 * MIB, 51)]))]
    assert read(loose, expected=None).done == 1000 + GIB + 700 * MIB
    assert read(loose).done == 1000 + GIB


def test_a_whole_blob_without_its_link_counts_but_is_no_file_yet() -> None:
    samples = [DownloadSample(0, repo([*CONFIG, FIRST[0], partial(0)]))]
    found = read(samples)
    assert (found.done, found.files_done) == (1000 + 40 * GIB, 1)


def test_an_orphan_is_no_progress() -> None:
    rows = [*CONFIG, partial(50 * GIB, name="00000001", mtime=10, inode=21), partial(GIB, mtime=20)]
    found = read([DownloadSample(0, repo(rows), processes=[HF])])
    assert found.done == 1000 + GIB
    assert [item.path for item in found.orphans] == [f"blobs/{blob(2)}.00000001.incomplete"]
    assert found.attempt == 2
    assert "attempt 2 of model-00002-of-00002.safetensors: each one begins at zero" in found.warnings
    assert found.notes[-1].startswith("left-over partial files: 1, 50.0 GiB")


def test_attempts_that_were_seen_count_though_they_are_gone() -> None:
    rows = [*CONFIG, *FIRST]
    samples = [
        DownloadSample(at * 5.0, repo([*rows, partial(GIB, name=f"{at:08x}")]), processes=[HF]) for at in range(3)
    ]
    assert read(samples).attempt == 3


@pytest.mark.parametrize(
    ("rows", "state", "words"),
    [
        ([*CONFIG, *FIRST, *SECOND], S.COMPLETE, "all 3 files in their size; contents not compared"),
        ([*CONFIG, *FIRST], S.INCOMPLETE, "2 of 3 files are whole, shards 1 of 2; nobody downloads"),
        (
            [*CONFIG, *FIRST, *shard(NEW, 2, 2, 60 * GIB - 1, 2)],
            S.INCOMPLETE,
            "2 of 3 files are whole; nobody downloads",
        ),
        ([file(f"blobs/{blob(77)}", 5, 77)], S.NONE, ""),
    ],
)
def test_complete_needs_every_file_in_its_size(rows: list[str], state: DownloadState, words: str) -> None:
    found = read([DownloadSample(0, repo(rows), processes=[])])
    assert (found.state, found.why) == (state, words)


def test_a_file_of_another_size_is_named() -> None:
    found = read([DownloadSample(0, repo([*CONFIG, *shard(NEW, 1, 2, 5, 1)]))])
    assert "files of another size than expected: model-00001-of-00002.safetensors" in found.warnings


def test_without_a_list_only_shard_numbers_make_it_complete() -> None:
    whole = [*CONFIG, *FIRST, *SECOND]
    found = read([DownloadSample(0, repo(whole), processes=[])], expected=None)
    assert found.state is S.COMPLETE
    assert found.why == "by shard numbers: 2 of 2, no partial file; sizes not known"
    left = [DownloadSample(0, repo([*whole, file(f"blobs/{blob(8)}.incomplete", 10, 80)]), processes=[])]
    assert read(left, expected=None).state is S.INCOMPLETE
    plain = [DownloadSample(0, repo([*CONFIG]), processes=[])]
    assert (read(plain, expected=None).state, read(plain, expected=None).why) == (S.NONE, "")


def test_links_that_leave_the_folder_are_not_complete() -> None:
    rows = [*CONFIG, *FIRST, link(f"snapshots/{NEW}/model-00002-of-00002.safetensors", f"../../blobs/{blob(2)}",
                                  60 * GIB, 2, where="out")]  # fmt: skip
    found = read([DownloadSample(0, repo(rows), processes=[])])
    assert found.state is S.INCOMPLETE
    assert "links that leave the folder: 1 (model-00002-of-00002.safetensors)" in found.why
    assert any("shared blob store" in text for text in found.warnings)


def test_holes_in_whole_files_are_named() -> None:
    rows = [*CONFIG, file(f"blobs/{blob(1)}", 40 * GIB, 1), *SECOND]
    hole = f"l\t78\t0\t0.0\t7\t99\t1\tsnapshots/{NEW}/model-00001-of-00002.safetensors\t../../blobs/{blob(1)}\tin"
    found = read([DownloadSample(0, repo([*rows, f"{hole}\t{40 * GIB}\t{10 * GIB}\t7\t1"]))])
    assert (found.state, found.done) == (S.COMPLETE, 1000 + 70 * GIB)
    assert "whole files that are smaller on disk than their size: model-00001-of-00002.safetensors" in found.warnings


def test_a_cut_listing_is_never_complete() -> None:
    whole = replace(listing([*CONFIG, *FIRST, *SECOND]), truncated=True)
    found = read([DownloadSample(0, read_repo(whole), processes=[])])
    assert found.state is not S.COMPLETE
    assert any("the listing was cut after" in text for text in found.warnings)


def test_which_revision_is_fetched_where_nobody_says() -> None:
    rows = [
        *shard(OLD, 1, 1, 10, 50),
        link(f"snapshots/{NEW}/config.json", f"../../blobs/{'c' * 40}", 1000, 3, mtime=500),
        link(f"snapshots/{'e' * 40}/config.json", f"../../blobs/{'c' * 40}", 1000, 3, mtime=400),
        CONFIG[0],
    ]
    sample = [DownloadSample(0, repo(rows))]
    assert read_download(sample, serving=OLD).revision == NEW
    assert read_download(sample, serving=(OLD, NEW)).revision == "e" * 40
    assert read_download(sample, revision=OLD, expected=replace(FILES, revision=OLD)).revision == OLD
    assert read_download(sample, expected=replace(FILES, revision=OLD)).expected is None, "a list of another revision"
    assert read_download(sample, revision=NEW[:8]).revision == NEW[:8]
    assert read_download([DownloadSample(0, repo([CONFIG[0]]))]).revision == ""


def test_a_plain_folder_is_compared_by_path() -> None:
    rows = [file("config.json", 1000, 1), file("model-00001-of-00002.safetensors", 40 * GIB, 2)]
    rows.append(file(f".cache/huggingface/download/x=.{blob(2)}.01234567.incomplete", 60 * GIB, 3, allocated=GIB))
    fetches = Process(9, 1, "S", "hf download org/m --local-dir /models/plain")
    samples = [DownloadSample(0, repo(rows, root="/models/plain"), processes=[fetches])]
    found = read(samples)
    assert (found.done, found.files_done, found.processes) == (1000 + 41 * GIB, 2, 1)
    assert found.current_file == "model-00002-of-00002.safetensors"


# --- the clocks


def still(seconds: float, *, every: float = 5.0, **more: object) -> list[DownloadSample]:
    """A reading that grew, and then readings that did not, for `seconds`."""
    return growing(0, *[GIB] * (int(seconds / every) + 1), every=every, **more)


def test_nothing_moves_is_stalled_without_a_time_to_go() -> None:
    samples = still(40, processes=[HF], units=unit(current=GIB))
    samples = [replace(item, received=10**9 + at, memo=[]) for at, item in enumerate(samples)]
    found = read(samples, unit=UNIT)
    assert (found.state, found.stalled_for, found.eta) == (S.STALLED, 40.0, None)
    assert found.why == "no new byte on disk for 40 s; network and memory stand still too"
    assert found.rate is not None
    assert read(samples[:-3], unit=UNIT).why == "no new byte on disk for 25 s; too early to say"


def test_a_moving_network_is_no_stall() -> None:
    samples = [
        replace(item, received=at * 5 * 20_000_000, memo=[])
        for at, item in enumerate(still(300, processes=[HF], units=unit(current=GIB)))
    ]
    found = read(samples, unit=UNIT)
    assert (found.state, found.stalled_for, found.eta) == (S.WAITING, 300.0, None)
    assert found.why == "no new byte on disk for 300 s; the host receives 20.0 MB/s"
    assert found.clocks is not None
    assert (found.clocks.network, found.clocks.network_of, found.clocks.disk) == (20_000_000.0, "host", 0.0)


def test_memory_that_grows_is_no_stall() -> None:
    samples = [
        replace(item, units=unit(current=GIB + at * 10 * MIB), memo=[])
        for at, item in enumerate(still(120, processes=[HF]))
    ]
    found = read(samples, unit=UNIT)
    assert (found.state, found.why) == (S.WAITING, "no new byte on disk for 120 s; its memory grows")
    assert found.clocks is not None
    assert found.clocks.memory == 2 * MIB


def test_what_a_downloader_reads_and_writes_proves_movement_only() -> None:
    moving = [
        replace(item, processes=[replace(HF, read=at * 10**8, written=at * 10**7)], memo=[])
        for at, item in enumerate(still(120))
    ]
    found = read(moving)
    assert found.state is S.WAITING
    assert "the downloader reads 20.0 MB/s, it writes 2.0 MB/s" in found.why
    quiet = [replace(item, processes=[replace(HF, read=7, written=7)], memo=[]) for item in still(120)]
    found = read(quiet)
    assert found.clocks is not None
    assert (found.clocks.network, found.clocks.written) == (None, 0.0)
    assert (found.state, found.why) == (S.STALLED, "no new byte on disk for 120 s; network and memory not read")


def test_the_disk_alone_must_stand_still_for_a_minute() -> None:
    assert read(still(55, processes=[HF])).state is S.WAITING
    found = read(still(60, processes=[HF]))
    assert (found.state, found.why) == (S.STALLED, "no new byte on disk for 60 s; network and memory not read")


def test_two_readings_far_apart_are_enough() -> None:
    samples = growing(GIB, GIB, every=1484)
    found = read(samples)
    assert (found.state, found.stalled_for, found.rate, found.eta) == (S.STALLED, 1484.0, 0.0, None)


def test_one_reading_goes_by_the_time_the_file_was_written() -> None:
    (sample,) = growing(GIB, processes=[HF])
    assert sample.repo.taken == 1000.0
    found = read([sample])
    assert (found.state, found.stalled_for, found.rate) == (S.STALLED, 100.0, None)
    later = read([replace(sample, wall=905.0, memo=[])])
    assert (later.state, later.stalled_for, later.rate) == (S.RUNNING, 5.0, None)
    assert later.why == "one reading so far: no rate yet"
    bare = read_repo(listing([*CONFIG, *FIRST, file(f"blobs/{blob(2)}.incomplete", 9, 9)]))
    unknown = read([DownloadSample(0, replace(bare, taken=None), processes=[HF])])
    assert (unknown.state, unknown.why) == (S.WAITING, "one reading so far")


def test_a_byte_ends_the_stall() -> None:
    samples = [*still(100, processes=[HF]), *growing(2 * GIB, processes=[HF])]
    samples[-1] = replace(samples[-1], at=samples[-2].at + 5, memo=[])
    assert read(samples).state is S.RUNNING


def test_a_restarted_file_begins_the_rate_anew() -> None:
    found = read(growing(0, 5 * GIB, 10 * GIB, 0, GIB, 2 * GIB, processes=[HF]))
    assert (found.state, found.rate, found.window) == (S.RUNNING, 2 * GIB / 10, 10.0)


def test_a_state_between_readings_ages_by_now() -> None:
    samples = growing(0, GIB, processes=[HF])
    assert read(samples, now=15.0).state is S.RUNNING
    assert read(samples, now=40.0).state is S.WAITING
    assert read(samples, now=40.0).stalled_for == 35.0


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], (None, 0.0)),
        ([(0, 5)], (None, 0.0)),
        ([(0, 0), (5, 50)], (None, 5.0)),
        ([(0, 0), (5, 50), (10, 100)], (10.0, 10.0)),
        ([(0, 0), (100, 100), (130, 700), (160, 1300)], (20.0, 60.0)),
        ([(0, 0), (500, 1000)], (2.0, 500.0)),
        ([(0, 900), (10, 0), (20, 50)], (5.0, 10.0)),
    ],
)
def test_the_rate(points: list[tuple[float, int]], expected: tuple[float | None, float]) -> None:
    assert rate([Point(at, done) for at, done in points]) == expected


def test_the_usual_band_needs_enough_rates() -> None:
    points = [Point(at * 10.0, at * 100) for at in range(12)]
    assert usual(points) is None
    assert usual([*points, Point(120.0, 1200)]) == (10.0, 10.0)
    assert usual([Point(at * 10.0, 7) for at in range(50)]) is None


@given(st.lists(st.tuples(st.floats(0.0, 100.0), st.none() | st.integers(0, 10**12)), max_size=30))
def test_any_series_has_a_pace(steps: list[tuple[float, int | None]]) -> None:
    at = 0.0
    points = []
    for step, done in steps:
        at += step
        points.append(Point(at, done, done, done, ((1, done, done),) if done is not None else None))
    speed, window = rate(points)
    assert window >= 0
    assert speed is None or speed >= 0
    seconds = still_for(points, at)
    assert seconds is None or seconds >= 0
    band = usual(points)
    assert band is None or 0 < band[0] <= band[1]
    assert clocks(points).disk == speed
    assert all(before.at <= after.at for before, after in pairwise(points))


def test_received_leaves_loopback_and_bridges_out() -> None:
    text = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n"
        "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
        "enP2p1s0f0np0: 5000 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
        "wlP9s9:70 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
        "docker0: 300 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
    )
    assert parse_received(text) == 5070
    assert parse_received("") is None
    assert parse_received("eth0: x 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n") is None


# --- who fetches, and how it ended


def test_a_partial_file_that_nobody_fetches_is_incomplete() -> None:
    found = read(still(300, processes=[]))
    assert found.state is S.INCOMPLETE
    assert found.why == "2 of 3 files are whole, shards 1 of 2, partial files: 1; nobody downloads"
    assert [item.etag for item in found.orphans] == [blob(2)]
    assert found.processes == 0


def test_a_resumable_partial_file_is_no_orphan_while_nobody_fetches() -> None:
    rows = [*CONFIG, *FIRST, file(f"blobs/{blob(2)}.incomplete", 60 * GIB, 20, allocated=GIB)]
    found = read([DownloadSample(0, repo(rows), processes=[])])
    assert (found.state, found.orphans) == (S.INCOMPLETE, ())


def test_a_unit_counts_as_somebody_who_fetches() -> None:
    assert read(still(300, processes=[], units=unit("active")), unit=UNIT).state is S.STALLED
    assert read(still(300, processes=[], units=unit("active")), unit="hf-download").state is S.STALLED
    assert read(still(300, processes=[], units=unit("inactive")), unit=UNIT).state is S.INCOMPLETE
    assert read(still(300, units=unit("inactive")), unit=UNIT).state is S.INCOMPLETE
    gone = Units((Unit(UNIT, "not-found", "inactive", result="success"),))
    assert read(still(300, processes=[], units=gone), unit=UNIT).state is S.INCOMPLETE


def test_killed_at_its_cap() -> None:
    samples = still(20, processes=[], units=unit("failed", "oom-kill", cap_asked=4 * GIB, peak=4 * GIB))
    found = read(samples, unit=UNIT)
    assert found.state is S.FAILED_CAP
    assert found.why == "hf-download.service was killed by the kernel at its memory cap of 4.00 GiB"
    assert found.done == 1000 + 41 * GIB
    assert found.eta is None


def test_kills_that_the_group_counted_fail_it_too() -> None:
    samples = still(20, processes=[])
    samples = [
        replace(item, units=unit("failed", "exit-code", oom_kills=at, cap=4 * GIB), memo=[])
        for at, item in enumerate(samples)
    ]
    assert read(samples, unit=UNIT).state is S.FAILED_CAP
    assert read([samples[-1]], unit=UNIT).state is S.FAILED


def test_a_new_download_beside_a_failed_unit_is_what_counts() -> None:
    samples = growing(0, GIB, 2 * GIB, processes=[HF], units=unit("failed", "oom-kill"))
    assert read(samples, unit=UNIT).state is S.RUNNING


def test_a_complete_revision_stays_complete_whatever_became_of_the_unit() -> None:
    samples = [DownloadSample(0, repo([*CONFIG, *FIRST, *SECOND]), units=unit("failed", "oom-kill"))]
    assert read(samples, unit=UNIT).state is S.COMPLETE


def empty(problem: str) -> HubRepo:
    return HubRepo(ROOT, (), (), {}, 0, (), problem=problem)


@pytest.mark.parametrize(
    ("problem", "processes", "state", "words"),
    [
        ("missing", [], S.NONE, "the folder is not there"),
        ("missing", [HF], S.WAITING, "the folder is not there yet"),
        ("no permission", [HF], S.UNKNOWN, "the folder could not be read: no permission"),
        ("no permission", None, S.UNKNOWN, "the folder could not be read: no permission"),
    ],
)
def test_a_folder_that_cannot_be_read(
    problem: str, processes: list[Process] | None, state: DownloadState, words: str
) -> None:
    found = read([DownloadSample(0, empty(problem), processes=processes)])
    assert (found.state, found.why, found.done, found.share) == (state, words, None, None)


def test_no_reading_is_unknown() -> None:
    assert read([]).state is S.UNKNOWN


# --- warnings


def test_prune_names_what_serves_and_what_is_wanted() -> None:
    rows = [*shard(OLD, 1, 1, 10, 50), *CONFIG, *FIRST]
    found = read([DownloadSample(0, repo(rows))], serving=OLD)
    assert "`hf cache prune` would delete 1bae0e1 (wanted) and df42c10 (serving): no ref names them" in found.warnings
    named = read([DownloadSample(0, repo([*rows, ref("main", NEW), ref("old", OLD)]))], serving=OLD)
    assert [text for text in named.warnings if "prune`" in text] == []
    unsure = read([DownloadSample(0, repo([*rows, ref("main", NEW), ref("x", "?")]))], serving=OLD)
    assert "would delete df42c10 (serving): no ref names it; not every ref could be read" in " ".join(unsure.warnings)


def test_two_downloads_warn() -> None:
    found = read(still(5, processes=[HF, replace(HF, pid=4200)]))
    assert found.processes == 2
    assert found.warnings[0] == "2 downloads run for org/m (pid 4100, 4200): each fetches the same files; keep one"


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        (
            {"cap_asked": 4 * GIB, "in_force": False, "why": "the memory controller is not delegated"},
            "the memory cap of 4.00 GiB of hf-download.service is not in force: the memory controller is not delegated",
        ),
        ({}, "hf-download.service has no memory cap; hf_xet may take 8 GB and more"),
        (
            {"cap_asked": 4 * GIB, "cap": 4 * GIB, "in_force": True, "oom_kills": 2},
            "the kernel has killed 2 of hf-download.service at its memory cap",
        ),
    ],
)
def test_a_cap_that_does_not_hold_warns(memory: dict[str, object], words: str) -> None:
    found = read(growing(0, GIB, processes=[HF], units=unit(**memory)), unit=UNIT)
    assert words in found.warnings


def test_a_cap_in_force_does_not_warn() -> None:
    found = read(growing(0, GIB, units=unit(cap_asked=4 * GIB, cap=4 * GIB, in_force=True, oom_kills=0)), unit=UNIT)
    assert [text for text in found.warnings if "cap" in text] == []
    assert found.memory is not None


def test_too_little_room_warns() -> None:
    rows = [*CONFIG, *FIRST]
    found = read([DownloadSample(0, repo(rows, free=50 * GIB))])
    assert "disk: 50.0 GiB free, 60.0 GiB to come, 10.0 too few" in found.warnings
    enough = read([DownloadSample(0, repo(rows, free=60 * GIB))])
    assert [text for text in enough.warnings if "too few" in text] == []


def test_upstream_that_moved_warns() -> None:
    sample = [DownloadSample(0, repo([*CONFIG]))]
    assert "main has moved on to df42c10; this is 1bae0e1" in read(sample, upstream=OLD).notes
    assert [text for text in read(sample, upstream=NEW).notes if "moved" in text] == []
    assert read(sample, upstream=OLD).upstream == OLD


def test_files_over_50_gb_need_xet() -> None:
    sample = growing(0)
    assert f"plain HTTP refuses files over 50 GB, they need hf_xet: {SHARD_2}" in read(sample).notes
    off = read(sample, environment={"HF_HUB_DISABLE_XET": "1"})
    assert f"HF_HUB_DISABLE_XET is set, and files over 50 GB need hf_xet: {SHARD_2}" in off.warnings
    assert [text for text in read(sample, environment={}).notes if "50 GB" in text] == []
    done = read([DownloadSample(0, repo([*CONFIG, *FIRST, *SECOND]))])
    assert [text for text in done.notes if "50 GB" in text] == []


def test_a_list_that_cannot_be_read_is_none_and_says_so() -> None:
    found = read(growing(0), expected=Expected((), "hub", problem="no `siblings`"))
    assert (found.expected, found.share) == (None, None)
    assert "no list of files: hub: no `siblings`" in found.warnings


def test_dangling_and_absolute_links_warn() -> None:
    rows = [
        CONFIG[0],
        link(f"snapshots/{NEW}/config.json", f"{ROOT}/blobs/{'c' * 40}", 1000, 3),
        link(f"snapshots/{NEW}/gone.json", "../../blobs/x", 0, 4, where="gone"),
    ]
    found = read([DownloadSample(0, repo(rows))])
    assert "links that lead nowhere: gone.json" in found.warnings
    assert "absolute links, which dangle behind another mount: config.json" in found.warnings


def test_the_same_sample_read_again_gives_the_same() -> None:
    samples = growing(0, GIB, 2 * GIB, processes=[HF])
    first = read(samples)
    assert read(samples) == first
    assert read(samples, expected=None).done == 1000 + 42 * GIB
    assert read(samples, revision=OLD).done == first.done
    assert read(samples) == first


def test_a_downloader_that_may_run_unseen_is_not_taken_for_none() -> None:
    rows = [*CONFIG, *FIRST, ref("main", NEW), partial(GIB)]
    other = Processes([replace(HF, command="sleep 60")])
    other.unseen = "others' processes are hidden from this user"
    for processes, state, orphans in ((other, S.STALLED, 0), (Processes(other), S.INCOMPLETE, 1)):
        found = read([DownloadSample(0, repo(rows), processes), DownloadSample(5, repo(rows), processes)])
        assert (found.state, len(found.orphans)) == (state, orphans)
    assert found.processes == 0


def test_what_a_cut_listing_does_not_show_is_not_said_to_be_missing() -> None:
    cut = replace(repo([*CONFIG, *FIRST, ref("main", NEW)]), problem="the listing was cut after 6000 entries")
    for expected in (FILES, None):
        found = read([DownloadSample(0, cut, ()), DownloadSample(5, cut, ())], expected=expected)
        assert (found.state, found.why) == (S.UNKNOWN, "the listing was cut after 6000 entries")
    assert read([DownloadSample(0, replace(cut, problem=""), ())]).state is S.INCOMPLETE


def test_a_kept_whole_revision_that_is_older_than_the_serving_one_is_no_download() -> None:
    rows = [*shard(OLD, 1, 1, 10, 50), *shard(NEW, 1, 1, 10, 51), CONFIG[0]]
    aged = [row.replace("\t0.000\t", "\t900.000\t") if NEW in row else row for row in rows]
    sample = [DownloadSample(0, repo(aged))]
    assert read_download(sample, serving=NEW).revision == ""
    assert read_download(sample, serving=NEW).state is S.NONE
    assert read_download(sample, serving=OLD).revision == NEW, "a newer one that does not serve yet is the next"


def test_a_list_of_the_kept_revision_does_not_hide_a_download_that_starts_later() -> None:
    coming = "c" * 40
    rows = [*shard(OLD, 1, 1, 10, 50), *shard(NEW, 1, 1, 10, 51), *shard(coming, 1, 2, 10, 52), CONFIG[0]]
    aged = [row.replace("\t0.000\t", "\t950.000\t") if coming in row else row for row in rows]
    kept = Expected((("model-00001-of-00001.safetensors", 10, "x"),), "hub", revision=OLD)
    found = read_download([DownloadSample(0, repo(aged))], expected=kept, serving=NEW)
    assert (found.revision, found.expected) == (coming, None)


def test_the_revision_that_a_running_downloader_names_is_what_is_fetched() -> None:
    coming = "d" * 40
    process = replace(HF, command=f"python3 hf download deepseek-ai/DeepSeek-V4.1-Flash --revision {coming}")
    sample = DownloadSample(0, repo([*shard(OLD, 1, 1, 10, 50)]), processes=[process])
    assert read_download([sample], serving=OLD, model="deepseek-ai/DeepSeek-V4.1-Flash").revision == coming
