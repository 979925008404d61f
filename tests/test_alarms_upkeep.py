"""Alarms of what keeps a lane alive: every one with its exact words, and what must raise none."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "widgets"))

import pictures
import upkeep
from pictures import NOW, WALL, reading

from console.alarms import Alarm, alarms
from console.readings.answers import HttpAnswer, Transport
from console.readings.boot import PhaseName
from console.readings.containers import Mount
from console.readings.download import DownloadState
from console.readings.download_warnings import warnings
from console.readings.drift import Difference, Drift
from console.readings.health import LaneState, LaneVerdict
from console.readings.quality import Reading
from console.readings.rows import RowState
from console.readings.watchdog import WatchdogState
from console.snapshot import LaneView, Severity, Snapshot

ACT, LOOK, INFO = Severity.ACT, Severity.LOOK, Severity.INFO
Row = tuple[str, Severity, str, str, str]


def lane(**changes: Any) -> LaneView:
    view: LaneView = pictures.spark4().lanes[0]
    return replace(view, **changes)


def found(**changes: Any) -> list[Row]:
    """(key, severity, subject, text, advice) of every alarm of a lane that is well but for the changes."""
    picture: Snapshot = replace(pictures.spark4(), lanes=(lane(**changes),))
    return [(item.key, item.severity, item.subject, item.text, item.advice) for item in alarms(picture)]


def state(word: LaneState) -> LaneVerdict:
    return LaneVerdict(word, "so")


def own(rows: list[Row]) -> list[Row]:
    """Without the lane's own state."""
    return [row for row in rows if not row[0].startswith("state:")]


# --- watchdog --------------------------------------------------------------------------------------------------------

WATCHDOGS = {
    WatchdogState.GAVE_UP: (ACT, "nobody restarts the lane: find the cause, then clear it"),
    WatchdogState.FAILED: (ACT, "nobody restarts the lane: read the unit's journal"),
    WatchdogState.DEAD_LOCK: (ACT, "its process is gone: remove the lock, start it again"),
    WatchdogState.REUSED_PID: (ACT, "nothing watches; never signal that pid"),
    WatchdogState.TWO: (ACT, "two relaunch against each other: end one"),
    WatchdogState.RECOVERY: (LOOK, "it relaunches the lane: do not start or stop by hand"),
    WatchdogState.CHECKING: (LOOK, "it will relaunch soon"),
    WatchdogState.PAUSED: (LOOK, "nobody restarts the lane until it goes on"),
    WatchdogState.OFF: (LOOK, "nobody restarts the lane: arm it"),
    WatchdogState.STANDING_DOWN: (LOOK, "nobody restarts the lane: start it again"),
    WatchdogState.UNKNOWN: (LOOK, "do not take it for off"),
}
QUIET = (
    WatchdogState.ARMED, WatchdogState.STARTING, WatchdogState.BUSY, WatchdogState.IN_FLIGHT, WatchdogState.NONE
)  # fmt: skip


@pytest.mark.parametrize("word", WatchdogState)
def test_a_watchdog(word: WatchdogState) -> None:
    dog = reading(replace(upkeep.ARMED, state=word, words=f"words of {word}"), 3, 5.0)
    if word in QUIET:
        assert found(watchdog=dog) == []
        return
    severity, advice = WATCHDOGS[word]
    assert found(watchdog=dog) == [("watchdog:dsv41", severity, "dsv41", f"watchdog words of {word}", advice)]


def test_a_watchdog_that_is_not_there_or_not_current_is_no_alarm() -> None:
    assert found(watchdog=None) == []
    assert found(watchdog=reading(upkeep.GAVE_UP, 900, 5.0)) == []


# --- boot ------------------------------------------------------------------------------------------------------------


def test_a_boot_that_will_not_heal_is_critical_one_that_may_is_not() -> None:
    down = {"verdict": state(LaneState.BOOTING)}
    boot = replace(upkeep.FAILED_BOOT, missing=())
    cause, advice = upkeep.FAILURE.cause, upkeep.FAILURE.advice
    assert found(boot=reading(boot, 0.4), **down) == [
        ("boot:dsv41", ACT, "dsv41", f"boot: {cause}: will not heal by waiting", advice)
    ]
    heals = replace(boot, failure=replace(upkeep.FAILURE, heals=True))
    assert found(boot=reading(heals, 0.4), **down) == [("boot:dsv41", LOOK, "dsv41", f"boot: {cause}", advice)]
    for word in (LaneState.SERVING, LaneState.IDLE, LaneState.BUSY, LaneState.READY):
        assert own(found(boot=reading(boot, 0.4), verdict=state(word))) == [], "it came up"


def test_what_every_boot_shows_and_this_one_did_not() -> None:
    boot = upkeep.boot(PhaseName.POST_PROCESS, WALL - 250, missing=("overlay hooks", "Engram rows"))
    assert found(boot=reading(boot, 0.4), verdict=state(LaneState.BOOTING)) == [
        ("boot-missing:dsv41", LOOK, "dsv41", "boot without overlay hooks, Engram rows", "is this the right image?")
    ]


def test_a_late_boot() -> None:
    late = replace(upkeep.PROGRESS, elapsed=931.0, late=True)
    words = "boot takes 15m31s, longest before 10m03s in post-process"
    booting = {"verdict": state(LaneState.BOOTING)}
    row = ("boot-late:dsv41", LOOK, "dsv41", words, "read the log (l)")
    assert found(boot_progress=late, **booting) == [row]
    first = replace(late, usual=None, phase=None)
    assert found(boot_progress=first, **booting)[0][3] == "boot takes 15m31s"
    assert found(boot_progress=late) == [], "it serves"
    assert found(boot_progress=upkeep.PROGRESS, **booting) == []


# --- site file -------------------------------------------------------------------------------------------------------


def test_a_site_file_that_cannot_be_read() -> None:
    unread = pictures.unread(error="/srv/fleet.env may not be read")
    assert found(site=unread) == [
        ("site:dsv41", LOOK, "dsv41", "site file cannot be read: /srv/fleet.env may not be read", "")
    ]
    assert found(site=pictures.unread()) == []


def test_a_site_file_that_names_another_checkpoint() -> None:
    other = replace(upkeep.site(), revision=upkeep.NEXT)
    words = "site file says 1bae0e1, 9f2c1a7 is mounted"
    assert found(site=reading(other, 1, 5.0)) == [
        ("site-revision:dsv41", LOOK, "dsv41", words, "the next launch changes the checkpoint")
    ]
    assert found(site=reading(replace(other, revision=""), 1, 5.0)) == []


def test_a_site_file_that_does_not_say_what_it_seems_to() -> None:
    base = upkeep.site()
    odd = replace(base, file=replace(base.file, warnings=("CRLF line ends in 3 lines", "SNAP is set 2 times")))
    assert found(site=reading(odd, 1, 5.0)) == [
        ("site-text:dsv41", LOOK, "dsv41", "site file: CRLF line ends in 3 lines", "")
    ]


# --- row copies ------------------------------------------------------------------------------------------------------

ROWS = {
    RowState.OLD_REVISION: ACT,
    RowState.WRONG_RANK: ACT,
    RowState.WRONG_RANGES: ACT,
    RowState.HOLES: ACT,
    RowState.OLD_MANIFEST: LOOK,
    RowState.UNREADABLE: LOOK,
}
WRONG = (RowState.OLD_REVISION, RowState.WRONG_RANK, RowState.HOLES)


@pytest.mark.parametrize("word", RowState)
def test_a_row_copy(word: RowState) -> None:
    copies = tuple(upkeep.copy(rank, word if rank == 1 else RowState.READY, f"words {word}") for rank in range(4))
    rows = found(rows=reading(replace(upkeep.SERVING_ROWS, copies=copies), 0.7, 5.0))
    if word not in ROWS:
        assert rows == []
        return
    wrong = "it serves wrong rows without an error: rebuild it"
    advice = wrong if word in WRONG else "rebuild the copy before the next launch"
    assert rows == [("rows:dsv41:n2", ROWS[word], "dsv41", f"n2 row copy: words {word}", advice)]


def test_a_wrong_copy_that_nothing_reads_now_is_for_the_next_launch() -> None:
    copies = (upkeep.copy(0, RowState.HOLES, "holes"), *upkeep.SERVING_ROWS.copies[1:])
    ranks = lane().ranks
    stopped = (replace(ranks[0], container=None), *ranks[1:])
    (row,) = found(rows=reading(replace(upkeep.SERVING_ROWS, copies=copies), 0.7, 5.0), ranks=stopped)
    assert row[4] == "the next launch would serve wrong rows without an error: rebuild it first"


def test_ranges_that_do_not_tile() -> None:
    gap = replace(upkeep.SERVING_ROWS, tiling=upkeep.GAP)
    words = "row ranges do not tile: layer 1 has a gap between rank 0 and rank 1"
    assert found(rows=reading(gap, 0.7, 5.0)) == [
        ("tiling:dsv41", ACT, "dsv41", words, "the next boot fails; rebuild the odd copy")
    ]
    unknown = replace(gap, tiling=replace(upkeep.GAP, ok=None))
    assert found(rows=reading(unknown, 0.7, 5.0)) == []


def test_copies_for_the_next_revision_are_no_alarm() -> None:
    bad = replace(upkeep.BAD_ROWS, for_next=True)
    assert found(next_rows=reading(bad, 0.7, 5.0)) == []


# --- checkpoint ------------------------------------------------------------------------------------------------------


def seen(**changes: Any) -> tuple[tuple[str, Reading[Any]], ...]:
    """The repository through n3's own mount, changed; as it should be through the others'."""
    well = upkeep.repo()
    return tuple((name, reading(replace(well, **changes) if name == "n3" else well, 4, 5.0)) for name in ("n1", "n3"))


def test_a_checkpoint_that_a_rank_cannot_read() -> None:
    assert found(repos=seen(problem="missing")) == [
        ("snapshot:dsv41:n3", ACT, "dsv41", "n3 cannot read the checkpoint's folder: missing", "is it mounted?")
    ]


def mounting(folder: str) -> LaneView:
    """The lane with containers that mount this folder of the host."""
    view = lane()
    ranks = []
    for rank in view.ranks:
        assert rank.container is not None
        container = replace(rank.container, mounts=(Mount(folder, "/models/repo", True),))
        ranks.append(replace(rank, container=container))
    return replace(view, ranks=tuple(ranks))


@pytest.mark.parametrize("below", ["", "/snapshots/9f2c1a7"])
def test_a_mount_that_is_gone_leaves_an_empty_folder(below: str) -> None:
    root = upkeep.repo().root
    ranks = mounting(f"{root}{below}").ranks
    empty: dict[str, Any] = {"snapshots": (), "blobs": {}, "present": 0, "refs": {}}
    words = "n3: 9f2c1a7 is not in the checkpoint's folder, which has none"
    assert found(ranks=ranks, repos=seen(**empty)) == [("snapshot:dsv41:n3", ACT, "dsv41", words, "is it mounted?")]
    other = {"snapshots": upkeep.repo().snapshots[2:]}
    words = f"n3: 9f2c1a7 is not in the checkpoint's folder, which has {upkeep.repo().snapshots[2].revision[:7]}"
    assert found(ranks=ranks, repos=seen(**other)) == [("snapshot:dsv41:n3", ACT, "dsv41", words, "is it mounted?")]
    elsewhere = mounting("/srv/other").ranks
    assert found(ranks=elsewhere, repos=seen(**empty)) == [], "what the rank reads is another folder"


def test_files_that_lead_nowhere_through_a_ranks_own_mount() -> None:
    well = upkeep.repo()
    first = replace(well.snapshots[0], dangling=("config.json",), outside=("model-00001-of-00048.safetensors",))
    assert found(repos=seen(snapshots=(first, *well.snapshots[1:]))) == [
        ("snapshot:dsv41:n3", ACT, "dsv41", "n3: 9f2c1a7: 2 files lead nowhere: config.json",
         "the next boot there fails")
    ]  # fmt: skip
    other = replace(well.snapshots[2], dangling=("config.json",))
    assert found(repos=seen(snapshots=(*well.snapshots[:2], other))) == [], "that one does not serve"


# --- download --------------------------------------------------------------------------------------------------------

DOWNLOADS = {
    DownloadState.STALLED: ("download stalled", "end it and start it again"),
    DownloadState.FAILED_CAP: (
        "download failed: memory cap: the kernel ended it at 4.0 GiB, 3 times",
        "start it again with a higher cap, or fewer workers",
    ),
    DownloadState.FAILED: ("download failed: its unit ended with exit-code 1", "read its output"),
}


@pytest.mark.parametrize("word", DownloadState)
def test_a_download(word: DownloadState) -> None:
    rows = found(download=reading(upkeep.download(word), 0.6, 5.0))
    if word not in DOWNLOADS:
        assert rows == []
        return
    text, advice = DOWNLOADS[word]
    assert rows == [("download:dsv41", LOOK, "n4", text, advice)]


def warned(kind: str, text: str, word: DownloadState = DownloadState.RUNNING, **changes: Any) -> list[Row]:
    fetch = upkeep.download(word, warnings=(text,), warning_kinds=(kind,), why="")
    return [row for row in found(download=reading(fetch, 0.6, 5.0), **changes) if row[0] != "download:dsv41"]


def test_a_warning_keeps_its_key_while_its_figures_change() -> None:
    before, after = warned("room", "9.0 GiB too few"), warned("room", "8.1 GiB too few")
    assert before == [("download-warning:dsv41:room", LOOK, "n4", "9.0 GiB too few", "")]
    assert [row[0] for row in after] == ["download-warning:dsv41:room"]


def test_several_warnings_of_a_kind_are_one_alarm_and_each_kind_has_its_own() -> None:
    fetch = upkeep.download(warnings=("a", "b", "c"), warning_kinds=("settings", "two", "settings"))
    rows = found(download=reading(fetch, 0.6, 5.0))
    assert [(row[0], row[3]) for row in rows] == [
        ("download-warning:dsv41:settings", "a (and 1 more like it)"),
        ("download-warning:dsv41:two", "b"),
    ]


PRUNE = "`hf cache prune` would delete 9f2c1a7 (serving): no ref names it"


def test_what_a_prune_would_take_is_good_to_know_until_something_may_prune() -> None:
    advice = "let nothing prune that cache; remove left-overs by name"
    key = "download-warning:dsv41:prune"
    for word in (DownloadState.RUNNING, DownloadState.COMPLETE, DownloadState.NONE, DownloadState.STALLED):
        assert warned("prune", PRUNE, word) == [(key, INFO, "n4", PRUNE, advice)]
    for word in (DownloadState.INCOMPLETE, DownloadState.FAILED, DownloadState.FAILED_CAP):
        assert warned("prune", PRUNE, word) == [(key, LOOK, "n4", PRUNE, advice)]
    timer = replace(upkeep.ARMED, competing=("timer hf-cache-prune.timer fires in 41 s",))
    assert warned("prune", PRUNE, watchdog=reading(timer, 3, 5.0)) == [(key, LOOK, "n4", PRUNE, advice)]


def test_every_kind_of_warning_is_in_the_manual() -> None:
    source = Path(warnings.__code__.co_filename).read_text(encoding="utf-8")
    kinds = {part.partition('"')[0] for part in source.split('yield "')[1:]} | {"prune"}
    row = next(
        line
        for line in (Path(__file__).parents[1] / "docs" / "screen.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `download-warning:LANE:KIND`")
    )
    assert len(kinds) == 15 and [kind for kind in kinds if f"`{kind}`" not in row] == []


# --- ranks and front -------------------------------------------------------------------------------------------------


def test_what_ranks_must_share() -> None:
    rows = found(drift=upkeep.DIFFERENT)
    assert rows == [
        ("rank:dsv41:snapshot", ACT, "dsv41", "ranks differ in snapshot: n3 not mounted",
         "the next boot there fails after minutes"),
        ("rank:dsv41:driver", LOOK, "dsv41", "ranks differ in driver: n4 580.82",
         "kernels are built for another driver: it may pace the others"),
        ("rank:dsv41:environment NCCL_IB_HCA", LOOK, "dsv41",
         "ranks differ in environment NCCL_IB_HCA: n1 mlx5_0, n2 mlx5_0 and 2 more",
         "collectives hang at the first step"),
    ]  # fmt: skip
    unread = Difference("driver", (("n1", "580"),), ("n2",), "look", "why")
    assert found(drift=Drift((unread,)))[0][3] == "ranks differ in driver: n2 ?"


def test_an_image_that_moved_under_its_tag() -> None:
    ranks = lane().ranks
    held = ranks[1].container
    assert held is not None
    moved = (ranks[0], replace(ranks[1], container=replace(held, tag_moved=True)), *ranks[2:])
    words = "n2 sglang-1: the tag engine:1 names another image now, or none"
    assert found(ranks=moved) == [("image:dsv41:n2", LOOK, "dsv41", words, "its next start takes another image")]


def fronted(answer: HttpAnswer | None, error: str = "", word: LaneState = LaneState.SERVING) -> list[Row]:
    front = pictures.unread(error=error) if answer is None else reading(answer, 1, 10.0)
    own_lane = lane().lane.model_copy(update={"front": "http://proxy:80"})
    return own(found(front=front, lane=own_lane, verdict=state(word)))


def test_a_front_that_does_not_answer_while_the_engine_is_well() -> None:
    advice = "clients do not get through"
    row = ("front:dsv41", ACT, "dsv41", "front http://proxy:80 answers 502, the engine is well", advice)
    assert fronted(HttpAnswer(NOW, 0.1, Transport.ANSWERED, 502)) == [row]
    refused = fronted(HttpAnswer(NOW, 0.1, Transport.REFUSED))
    assert refused[0][3] == f"front http://proxy:80 is {Transport.REFUSED}, the engine is well"
    assert fronted(None, "no answer in 10 s") == [
        ("front:dsv41", ACT, "dsv41", "front http://proxy:80: no answer in 10 s", advice)
    ]
    for status in (200, 401, 404):
        assert fronted(HttpAnswer(NOW, 0.1, Transport.ANSWERED, status)) == []
    assert fronted(HttpAnswer(NOW, 0.1, Transport.ANSWERED, 502), word=LaneState.DOWN) == []
    assert fronted(None) == []


def test_keys_name_one_alarm_each() -> None:
    for picture in pictures.PICTURES.values():
        keys = [alarm.key for alarm in alarms(picture())]
        assert len(keys) == len(set(keys))
    assert Alarm("a", LOOK, "b", "c", "d") == Alarm("a", LOOK, "b", "c", "d")
