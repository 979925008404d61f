"""What a way back by a kept container rests on, proved on the host: binds, checkpoint, memory, cache, GPU, deeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from test_wayback import GIB, NEW, OLD, RETIRED, SERVING, WALL, box, items, pictures, station

from console.alarms import readiness_alarms
from console.readings.acting_types import Acting, Operation, OperationState, WindowState
from console.readings.binds import BindSource, BindState, Deed, Ready, judge, mark_of
from console.readings.boot import BootRecord
from console.readings.containers import Containers
from console.readings.hubcache import HubRepo, SnapshotFiles
from console.readings.look import Status
from console.readings.paths import PathSeen
from console.snapshot import LaneView, Severity, Snapshot
from console.wayback import WayBack, Word, way_back

MODEL, CACHE = RETIRED.mounts[0].source, RETIRED.mounts[1].source
SEEN = {
    MODEL: PathSeen(MODEL, Status.OK, "", MODEL, "d", 8, 41, None, 12, "config.json", "a" * 64, 1.0, 900 * GIB),
    CACHE: PathSeen(CACHE, Status.OK, "", CACHE, "d", 8, 42, None, 3, "", "", 1.0, 79 * GIB),
}


def bind(source: str, age: float = 2.0, *, marked: bool = True, error: str = "", **changes: Any) -> BindSource:
    seen = replace(SEEN[source], **changes)
    mark = mark_of(RETIRED.id, source, SEEN[source], WALL - 86400 * 12) if marked else None
    state, words = judge(source, seen, mark)
    since = WALL - 600 if state in (BindState.REPLACED, BindState.CHANGED, BindState.MISSING, BindState.EMPTY) else None
    reading = pictures.reading(seen, age, 15.0, error=error)
    return BindSource("station", RETIRED.id, source, reading, mark, state, words, since)


WHOLE = (bind(MODEL), bind(CACHE))


def bound(*binds: BindSource, **changes: Any) -> tuple[Snapshot, LaneView]:
    return station(SERVING, RETIRED, binds=binds, **changes)


def back(*binds: BindSource, **changes: Any) -> WayBack:
    return way_back(*bound(*binds, **changes))


def test_sources_that_are_what_they_were() -> None:
    item = items(back(*WHOLE))["bind sources"]
    assert (item.word, item.text) == (Word.OK, "2 of 2 there, the same as on 17 Nov")
    assert item.age == pytest.approx(2.0)


def test_sources_seen_for_the_first_time_have_nothing_to_be_held_against() -> None:
    item = items(back(bind(MODEL, marked=False), bind(CACHE, marked=False)))["bind sources"]
    assert (item.word, item.text) == (Word.OK, "2 of 2 there")


@pytest.mark.parametrize("changes", [{"status": Status.MISSING}, {"entries": 0}])
def test_a_checkpoint_that_is_gone_or_empty_shuts_the_way(changes: dict[str, Any]) -> None:
    way = back(bind(MODEL, **changes), bind(CACHE))
    item = items(way)["bind sources"]
    assert (way.possible, item.word, item.shuts) == (False, Word.FAIL, True)
    assert item.text.startswith(f"{MODEL} is {'empty' if 'entries' in changes else 'gone'} since 21:45:1")


def test_a_cache_that_is_gone_is_only_slow() -> None:
    way = back(bind(MODEL), bind(CACHE, status=Status.MISSING))
    found = items(way)
    assert (way.possible, found["bind sources"].word, found["autotune"].word) == (True, Word.FAIL, Word.FAIL)
    assert "the first start tunes for over an hour" in found["autotune"].text


def test_a_replaced_folder_is_named_with_its_time() -> None:
    item = items(back(bind(MODEL, inode=7, sha256="b" * 64), bind(CACHE)))["bind sources"]
    assert (item.word, item.shuts) == (Word.FAIL, False)
    assert item.text == f"{MODEL} the folder is another one and its config.json differs since 21:45:10Z"


def test_what_cannot_be_seen_says_why_and_what_hangs_too() -> None:
    item = items(back(bind(MODEL), bind(CACHE, status=Status.DENIED)))["bind sources"]
    assert item.word is Word.UNKNOWN
    assert item.text == f"1 of 2 seen; {CACHE}: may not be looked at by this user"
    hung = replace(
        bind(CACHE), now=pictures.unread(error="way (paths /x) has not answered for 14 s"), words="not read yet"
    )
    unknown = items(back(bind(MODEL), replace(hung, state=BindState.UNKNOWN)))["bind sources"]
    assert (unknown.word, unknown.text) == (Word.UNKNOWN, f"1 of 2 seen; {CACHE}: no answer for 14 s")


def test_old_sightings_are_stale_and_failures_of_old_prove_nothing() -> None:
    assert items(back(bind(MODEL), bind(CACHE, age=500.0)))["bind sources"].word is Word.STALE
    way = back(bind(MODEL, age=500.0, status=Status.MISSING), bind(CACHE))
    assert (way.possible, items(way)["bind sources"].word) == (True, Word.UNKNOWN)


def test_a_full_disk_is_noticed() -> None:
    item = items(back(bind(MODEL), bind(CACHE, free=GIB // 2)))["bind sources"]
    assert (item.word, item.text) == (Word.FAIL, "0.5 GiB are left on a disk that it writes to")


# The checkpoint


def repo(*, total: int | None = 48, dangling: tuple[str, ...] = (), problem: str = "", plain: bool = False) -> HubRepo:
    files = SnapshotFiles("" if plain else OLD, 50, 50, dangling, (), 1, 48, total)
    return HubRepo("/models/r", () if problem else (files,), (), {}, None, (), problem=problem)


@pytest.mark.parametrize("plain", [True, False])
def test_the_folder_that_it_mounts_is_looked_at(plain: bool) -> None:
    item = items(back(*WHOLE, kept_repo=pictures.reading(repo(plain=plain), 3.0, 15.0)))["old snapshot"]
    assert (item.word, item.text, item.age) == (Word.OK, "c0ffee1, 48 of 48 shards there", pytest.approx(3.0))


def test_a_checkpoint_with_holes_shuts_the_way() -> None:
    way = back(*WHOLE, kept_repo=pictures.reading(repo(dangling=("a", "b")), 3.0, 15.0))
    assert (way.possible, way.why) == (False, "c0ffee1: 2 files lead nowhere that is mounted")
    way = back(*WHOLE, kept_repo=pictures.reading(repo(problem="missing"), 3.0, 15.0))
    assert (way.possible, way.why) == (False, "c0ffee1: missing")


def test_a_checkpoint_that_nobody_sees_says_why() -> None:
    assert items(back(*WHOLE))["old snapshot"].text == "c0ffee1: its folder on the host is not known"
    unread = items(back(*WHOLE, kept_repo=pictures.unread()))["old snapshot"]
    assert (unread.word, unread.text) == (Word.UNKNOWN, "c0ffee1: its folder was not read yet")
    uncounted = items(back(*WHOLE, kept_repo=pictures.reading(repo(total=None), 3.0, 15.0)))["old snapshot"]
    assert uncounted.word is Word.UNKNOWN and "does not say how many" in uncounted.text


# Memory, cache, GPU, deeds


def boots(*records: tuple[str, float | None, str]) -> tuple[BootRecord, ...]:
    return tuple(
        BootRecord(1000.0 + at, 480.0, revision=revision, free_at_start=None if free is None else int(free * GIB),
                   autotune=tune)
        for at, (revision, free, tune) in enumerate(records)
    )  # fmt: skip


def other_share(**changes: Any) -> WayBack:
    args = ("vllm", "serve", "/model", "--cpu-offload-gb", "80")
    return way_back(*station(SERVING, replace(RETIRED, args=args), binds=WHOLE, **changes))


def test_memory_by_what_earlier_starts_found() -> None:
    snapshot, lane = bound(*WHOLE)
    assert items(way_back(snapshot, lane))["memory"].word is Word.OK
    assert items(other_share())["memory"].text == (
        "it asks for another share than the serving one, and what its own start found free is not on record"
    )
    base, view = station(SERVING, replace(RETIRED, args=("vllm", "serve", "/model")), binds=WHOLE)
    for floor, word in ((340.0, Word.OK), (330.0, Word.OK), (300.0, Word.FAIL)):
        known = replace(view, boots=boots((OLD, 338.0, "hit"), (NEW, floor, "hit")))
        item = items(way_back(replace(base), known))["memory"]
        assert item.word is word, floor
        assert (
            item.text
            == f"{floor:.1f} GiB free before the serving one began; an earlier start needed no more than 338.0"
        )


def test_a_cache_that_its_own_last_start_hit() -> None:
    snapshot, lane = bound(*WHOLE)
    for tune, word in (("hit", Word.OK), ("missed", Word.OK), ("", Word.UNKNOWN)):
        item = items(way_back(snapshot, replace(lane, boots=boots((OLD, None, tune)))))["autotune"]
        assert item.word is word, tune
    lonely = items(way_back(snapshot, replace(lane, boots=boots((NEW, None, "hit")))))["autotune"]
    assert (lonely.word, lonely.text) == (
        Word.UNKNOWN,
        "no start of c0ffee1 on record tells whether it hit its cache",
    )


def test_gpus_that_have_a_fault_or_do_not_answer() -> None:
    snapshot, lane = bound(*WHOLE)
    host = snapshot.hosts[0]
    assert items(way_back(snapshot, lane))["gpu"].text == "1 GPU answer, without a fault"
    sick = replace(host.gpus.value[0], faults=("GPU requires reset",))
    broken = replace(snapshot, hosts=(replace(host, gpus=replace(host.gpus, value=(sick,))),))
    item = items(way_back(broken, lane))["gpu"]
    assert (item.word, item.text) == (Word.FAIL, "station GPU 0: GPU requires reset")
    silent = replace(snapshot, hosts=(replace(host, gpus=replace(host.gpus, error="nvidia-smi hangs")),))
    assert items(way_back(silent, lane))["gpu"].word is Word.UNKNOWN
    none = replace(snapshot, hosts=(replace(host, gpus=pictures.unread()),))
    assert "gpu" not in items(way_back(none, lane))


def test_the_last_deed_is_the_newest() -> None:
    deeds = (Deed("a", 100.0, 478.0, OLD, "ana"), Deed("b", 900.0, 500.0, NEW, "ben"))
    assert back(*WHOLE, deeds=deeds).last_deed == (1400.0, 500.0)


def window(target: str) -> Any:
    state = WindowState("w", "ana", "r", WALL - 100, WALL + 900, target, "p")
    return pictures.reading(Acting(WALL, window=state), 1.0, 2.5)


OLDER = box("dsv41-v20-RETIRED-REF", revision="abcdef1" + "0" * 33, id="9" * 64, finished_at=WALL - 2_000_000)


@pytest.mark.parametrize(
    "target", [f"{OLDER.name} abcdef1", "was-called-otherwise abcdef1", OLDER.name, OLDER.id, OLDER.id[:12], "abcdef1"]
)
def test_an_open_window_says_where_it_leads(target: str) -> None:
    snapshot, lane = station(SERVING, RETIRED, OLDER, binds=WHOLE)
    assert way_back(snapshot, lane).subject == RETIRED.name
    assert way_back(replace(snapshot), replace(lane, acting=window(target))).subject == OLDER.name
    gone = replace(lane, acting=window(f"{RETIRED.name} 7777777"))
    assert way_back(replace(snapshot), gone).why == f"{RETIRED.name}, the one that ended last of 2 kept"
    gone = replace(lane, acting=window("f" * 64))
    assert way_back(replace(snapshot), gone).subject == RETIRED.name


# What was lost


READY = Ready(
    WALL - 1800, OLD, "container", RETIRED.name, RETIRED.id, ("autotune", "bind sources", "container", "port")
)


def alarms_of(snapshot: Snapshot, lane: LaneView) -> list[tuple[str, Severity, str]]:
    return [(alarm.key, alarm.severity, alarm.text) for alarm in readiness_alarms(snapshot, lane)]


def test_a_removed_container_is_an_alarm_with_the_time_that_docker_told() -> None:
    snapshot, lane = station(SERVING, ready=READY, removed_at=WALL - 908)
    assert alarms_of(snapshot, lane) == [
        (
            f"wayback:{lane.name}",
            Severity.LOOK,
            f"way back lost: {RETIRED.name}: no stopped container is kept, removed at 21:40:02Z",
        )
    ]
    inside = replace(lane, acting=window(OLD))
    assert alarms_of(replace(snapshot), inside)[0][1] is Severity.ACT


def test_without_an_event_it_says_when_it_was_last_whole() -> None:
    snapshot, lane = station(SERVING, ready=READY)
    assert alarms_of(snapshot, lane)[0][2].endswith("no stopped container is kept; last whole 21:25:10Z")
    assert alarms_of(*station(SERVING, ready=replace(READY, at=WALL - 90_000))) == [], "tidied up"
    assert alarms_of(*station(SERVING)) == [], "there never was one"


def test_an_item_that_held_and_fails_is_an_alarm() -> None:
    snapshot, lane = bound(bind(MODEL, inode=7, sha256="b" * 64), bind(CACHE), ready=READY)
    ((key, severity, text),) = alarms_of(snapshot, lane)
    assert (key, severity) == (f"wayback:{lane.name}:bind sources", Severity.LOOK)
    assert text.startswith(f"way back no longer sure: bind sources: {MODEL} the folder is another one")
    assert alarms_of(snapshot, replace(lane, ready=replace(READY, items=("container",)))) == [], "it never held"
    assert alarms_of(snapshot, replace(lane, ready=replace(READY, subject="other"))) == [], "another way back"
    assert alarms_of(*bound(*WHOLE, ready=READY)) == []


def test_what_is_only_out_of_sight_is_no_loss() -> None:
    snapshot, lane = station(SERVING, ready=READY)
    away = replace(snapshot.hosts[0], containers=pictures.reading(Containers(()), 500.0, 5.0))
    assert alarms_of(replace(snapshot, hosts=(away,)), lane) == []


def test_while_it_is_being_gone_nothing_is_lost() -> None:
    runs = Operation("op", "rollback", "l", "ana", "p", "t", OperationState.RUNNING, WALL - 5, None, ())
    acting = pictures.reading(Acting(WALL, operation=runs), 1.0, 2.5)
    snapshot, lane = station(SERVING, ready=READY, acting=acting)
    assert alarms_of(snapshot, lane) == []
