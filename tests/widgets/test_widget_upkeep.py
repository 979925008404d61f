"""Download, row copies, watchdog, drift, boots, way back: every state has its word and colour, every gap its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import upkeep
from pictures import NOW, PICTURES, WALL, booting, glance, ink_at, reading, spark4, station, texts, throughput, unread
from rich.cells import cell_len

from console.alarms import upkeep_alarms
from console.lamps import rollback
from console.lamps import watchdog as watchdog_lamp
from console.readings.answers import HttpAnswer, Transport
from console.readings.boot import BootFailure
from console.readings.download import DownloadState
from console.readings.drift import Drift
from console.readings.health import LaneState, LaneVerdict
from console.readings.rows import RowCopies, RowState
from console.readings.watchdog import WatchdogState
from console.snapshot import LaneView, Severity
from console.wayback import way_back
from widgets import boots, download, drift, kv, lane, rowcopies, watchdog, wayback
from widgets.glance import Glance
from widgets.ink import ACT, INFO, LOOK, Ink, Row, text_of

INKS = {Severity.INFO: INFO, Severity.LOOK: LOOK, Severity.ACT: ACT}
Draw = Callable[[Glance, int, int], tuple[Row, ...]]


SMALL, BOXED, WIDE = (80, 24), (120, 40), (200, 60)


def with_lane(size: tuple[int, int] = BOXED, **changes: Any) -> Glance:
    base = spark4()
    return glance(replace(base, lanes=(replace(base.lanes[0], **changes),)), *size)


def look(value: Any, age: float = 0.6) -> Any:
    return reading(value, age, 5.0)


def words_of(rows: tuple[Row, ...]) -> str:
    return " ".join(" ".join(texts(rows)).replace("│", " ").split())


# --- severities are those of the alarms ------------------------------------------------------------------------------


def alarm_severity(view: LaneView, key: str) -> Severity | None:
    snapshot = replace(spark4(), lanes=(view,))
    found = [alarm.severity for alarm in upkeep_alarms(snapshot, view) if alarm.key.startswith(key)]
    return found[0] if found else None


@pytest.mark.parametrize("state", WatchdogState)
def test_a_watchdog_s_colour_is_that_of_its_alarm(state: WatchdogState) -> None:
    value = replace(upkeep.ARMED, state=state, words=state.value)
    alarm = alarm_severity(replace(spark4().lanes[0], watchdog=look(value)), "watchdog:")
    drawn = watchdog.severity_of(value)
    assert drawn is alarm if alarm is not None else drawn in (Severity.NORMAL, Severity.INFO)


@pytest.mark.parametrize("state", RowState)
def test_a_serving_copy_s_colour_is_that_of_its_alarm(state: RowState) -> None:
    copies = RowCopies(upkeep.SERVING, (upkeep.copy(0, state),), upkeep.TILES)
    alarm = alarm_severity(replace(spark4().lanes[0], rows=look(copies)), "rows:")
    drawn = rowcopies.severity_of(copies.copies[0], for_next=False)
    if alarm is not None or state not in (RowState.UNKNOWN, RowState.NO_ROOM):
        assert drawn is (alarm or Severity.NORMAL)
    assert rowcopies.severity_of(copies.copies[0], for_next=True) is not Severity.ACT


@pytest.mark.parametrize("state", DownloadState)
def test_a_download_s_colour_is_that_of_its_alarm(state: DownloadState) -> None:
    value = upkeep.download(state)
    alarm = alarm_severity(replace(spark4().lanes[0], download=look(value)), "download:")
    drawn = download.SEVERITY.get(state, Severity.NORMAL)
    assert drawn is alarm or (alarm is None and drawn is not Severity.ACT)


# --- the download ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", DownloadState)
@pytest.mark.parametrize(("columns", "rows", "width", "height"), [(80, 24, 80, 1), (120, 40, 60, 8), (200, 60, 66, 13)])
def test_every_state_of_a_download_has_its_word(
    state: DownloadState, columns: int, rows: int, width: int, height: int
) -> None:
    shown = with_lane((columns, rows), download=look(upkeep.download(state)))
    drawn = download.rows(shown, width, height)
    said = {
        DownloadState.NONE: "nothing is fetched" if height == 1 else "Nothing is being fetched",
        DownloadState.RUNNING: "61.4 MB/s",
        DownloadState.COMPLETE: "DONE",
    }.get(state, state.value.upper())
    assert said in words_of(drawn)
    severity = download.SEVERITY.get(state)
    if severity is not None:
        assert ink_at(next(row for row in drawn if said in text_of(row)), said) == INKS[severity]
    assert {cell_len(text_of(row)) for row in drawn} == {width}


@pytest.mark.parametrize("state", [DownloadState.STALLED, DownloadState.WAITING])
def test_what_stands_still_has_a_time_of_standing_and_none_to_go(state: DownloadState) -> None:
    said = words_of(download.rows(with_lane(download=look(upkeep.download(state))), 60, 8))
    assert ("4m10s" if state is DownloadState.STALLED else "0m21s") in said
    assert "no time to go" in said
    assert "≈22:06" not in said and "11m35s" not in said


def test_without_a_list_of_files_there_is_neither_a_percentage_nor_a_time_to_go() -> None:
    said = words_of(download.rows(with_lane(download=look(upkeep.NO_LIST)), 60, 8))
    assert "467.3 GB of -" in said and "- %" in said and "no expected list: no time to go" in said
    assert "44 of - shards" in said


def test_a_cap_that_is_not_in_force_stands_in_the_place_of_the_cap() -> None:
    rows = download.rows(with_lane(download=look(upkeep.WARNED)), 60, 8)
    memory = next(row for row in rows if "memory  " in text_of(row) and "GiB" in text_of(row))
    assert ink_at(memory, "CAP NOT IN FORCE") == LOOK
    assert "11.4 GiB" in text_of(memory) and "of 4.0" not in text_of(memory)


def test_a_download_killed_at_its_cap_says_so_and_counts_the_kills() -> None:
    said = words_of(download.rows(with_lane(download=look(upkeep.download(DownloadState.FAILED_CAP))), 60, 8))
    assert "FAILED: MEMORY CAP the kernel ended it at 4.0 GiB, 3 times" in said and "OOM 3" in said


def test_the_first_warning_is_visible_the_others_are_counted_and_zoom_shows_all() -> None:
    shown = with_lane(download=look(upkeep.WARNED))
    narrow = words_of(download.rows(shown, 60, 8))
    assert "hf cache prune would delete the snapshot" in narrow and "+2 more" in narrow
    whole = words_of(download.rows(shown, 120, 31))
    assert all(warning in whole for warning in upkeep.WARNINGS)
    assert "main at 77aa001" in whole and whole.count("orphan ") == 2
    assert "+3" in words_of(download.rows(with_lane(SMALL, download=look(upkeep.WARNED)), 80, 1))


def test_small_files_have_small_units() -> None:
    small = upkeep.download(done=31_000_000, expected=48_000_000, current=None)
    assert "31.0 of 48.0 MB" in words_of(download.rows(with_lane(download=look(small)), 60, 8))


# --- row copies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", RowState)
@pytest.mark.parametrize(("columns", "rows", "width", "height"), [(80, 24, 80, 1), (120, 40, 60, 8), (200, 60, 66, 13)])
def test_every_state_of_a_copy_has_its_word(state: RowState, columns: int, rows: int, width: int, height: int) -> None:
    share = 0.4 if state is RowState.COPYING else 1.0
    copies = RowCopies(upkeep.SERVING, (upkeep.copy(0, state, share=share, left=31.0),), upkeep.TILES)
    shown = with_lane((columns, rows), rows=look(copies), next_rows=None)
    drawn = rowcopies.rows(shown, width, height)
    said = {RowState.COPYING: "0m31s", RowState.SHARDS: "shards"}.get(state, state.value)
    severity = rowcopies.SERVING.get(state)
    row = next(row for row in drawn if "n1" in text_of(row))
    if severity is not None:
        assert ink_at(row, said.upper()) == INKS[severity]
    assert said in text_of(row).lower()


def test_ranges_that_do_not_tile_are_red_and_named() -> None:
    rows = rowcopies.rows(with_lane(rows=look(upkeep.BAD_ROWS), next_rows=None), 60, 8)
    assert ink_at(rows[-2], "NO TILING") == ACT
    assert "layer 1 has a gap between rank 0 and rank 1" in text_of(rows[-2])
    whole = words_of(rowcopies.rows(with_lane(rows=look(upkeep.BAD_ROWS), next_rows=None), 120, 31))
    assert "gap [96000564, 96001542) between rank 0 and rank 1" in whole
    assert "rank 0 whole hash heads (vLLM)" in whole
    assert "NO TILING" in words_of(rowcopies.rows(with_lane(SMALL, rows=look(upkeep.BAD_ROWS), next_rows=None), 80, 1))


def test_copies_being_prepared_come_first_and_those_that_serve_are_not_forgotten() -> None:
    rows = rowcopies.rows(with_lane(), 60, 8)
    assert "row copies  next 1bae0e1" in text_of(rows[0])
    assert "serving 9f2c1a7: 4 of 4 in place" in text_of(rows[-2])
    bad = rowcopies.rows(with_lane(rows=look(upkeep.BAD_ROWS)), 60, 8)
    assert ink_at(bad[-2], "serving 9f2c1a7: 0 of 4 in place").fg == "act"


def test_many_ranks_show_the_worst_first_and_count_the_rest() -> None:
    copies = tuple(replace(upkeep.copy(rank), host=f"gpu-{rank:02}") for rank in range(16))
    bad = replace(copies[11], state=RowState.HOLES, words="holes")
    value = RowCopies(upkeep.SERVING, (*copies[:11], bad, *copies[12:]), upkeep.TILES)
    rows = texts(rowcopies.rows(with_lane(rows=look(value), next_rows=None), 60, 8))
    assert "gpu-11" in rows[2] and "HOLES" in rows[2]
    assert any("13 more ranks, worst first" in row for row in rows)
    assert "gpu-11 HOLES" in words_of(rowcopies.rows(with_lane(SMALL, rows=look(value), next_rows=None), 80, 1))


def test_the_filter_hides_ranks_and_says_so() -> None:
    base = with_lane()
    assert "n3" in words_of(rowcopies.rows(replace(base, filter="n3"), 60, 8))
    assert "n1 " not in words_of(rowcopies.rows(replace(base, filter="n3"), 60, 8))
    assert "No rank here holds /zzz: 4 hidden" in words_of(rowcopies.rows(replace(base, filter="zzz"), 60, 8))


# --- the watchdog ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", WatchdogState)
@pytest.mark.parametrize(("columns", "rows", "width", "height"), [(80, 24, 80, 1), (200, 60, 66, 6), (120, 40, 120, 9)])
def test_every_state_of_a_watchdog_has_its_word(
    state: WatchdogState, columns: int, rows: int, width: int, height: int
) -> None:
    value = replace(upkeep.ARMED, state=state, words=state.value)
    drawn = watchdog.rows(with_lane((columns, rows), watchdog=look(value)), width, height)
    row = next(row for row in drawn if state.value.upper() in text_of(row))
    severity = watchdog.SEVERITY.get(state)
    assert severity is None or ink_at(row, state.value.upper()) == INKS[severity]
    assert "9 d ago" in words_of(drawn)


def test_a_watchdog_tells_since_when_what_it_did_its_rhythm_and_who_else_acts() -> None:
    said = words_of(watchdog.rows(with_lane(watchdog=look(upkeep.GAVE_UP)), 120, 9))
    assert "GAVE UP 3 of 3 not protecting: 3 relaunches in 1 h did not help" in said
    assert "for 6m12s" in said and "would not act if the engine died now" in said
    assert "every 10 s" in said and "on n1" in said
    assert all(other in said for other in upkeep.GAVE_UP.competing)


def test_a_pid_that_is_not_the_watchdog_s_is_said() -> None:
    value = replace(upkeep.ARMED, state=WatchdogState.REUSED_PID, words="pid reused", may_signal=False)
    rows = watchdog.rows(with_lane(watchdog=look(value)), 120, 9)
    assert "pid 4711 not its own" in words_of(rows)


def test_without_a_watchdog_docker_s_own_policy_is_said() -> None:
    said = words_of(watchdog.rows(glance(station()), 120, 9))
    assert "The recipe names no watchdog" in said and "Docker alone acts: restart=unless-stopped." in said


def test_others_that_act_are_counted_where_there_is_no_room() -> None:
    rows = watchdog.rows(with_lane(WIDE, watchdog=look(upkeep.GAVE_UP)), 66, 6)
    assert "docker restart=always on n2" in text_of(rows[-2]) and "+2" in text_of(rows[-2])


# --- drift -----------------------------------------------------------------------------------------------------------


def test_every_difference_has_its_word_the_odd_hosts_and_why() -> None:
    rows = drift.rows(with_lane(drift=upkeep.DIFFERENT), 120, 14)
    said = words_of(rows)
    assert ink_at(next(r for r in rows if "snapshot" in text_of(r)), "CRIT") == ACT
    assert ink_at(next(r for r in rows if "driver" in text_of(r)), "LOOK") == LOOK
    assert ink_at(next(r for r in rows if "kernel  " in text_of(r)), "INFO") == INFO
    assert "n3 not mounted, others 48 of 48" in said and "the next boot there fails after minutes" in said
    assert "n1 580.95 n2 580.95 n3 580.95 n4 580.82" in said
    assert "not read n2 GPU clock" in said and "4 differences" in said


def test_where_there_is_no_room_differences_are_counted() -> None:
    rows = texts(drift.rows(with_lane(WIDE, drift=upkeep.DIFFERENT), 66, 6))
    assert "snapshot" in rows[1] and "+1" in rows[3] and "not read" in rows[4]


def test_equal_ranks_say_what_was_compared() -> None:
    said = words_of(drift.rows(with_lane(), 66, 6))
    assert "no difference in: image id, arguments, environment" in said
    half = Drift((), ("image id",), (("n3", "environment"),))
    assert "not read n3 environment" in words_of(drift.rows(with_lane(drift=half), 66, 6))
    assert "Not compared yet" in words_of(drift.rows(with_lane(drift=None), 66, 6))
    assert "Nothing could be compared yet" in words_of(drift.rows(with_lane(drift=Drift(())), 66, 6))


# --- boots -----------------------------------------------------------------------------------------------------------


def test_a_boot_shows_its_phase_and_its_time_against_earlier_ones() -> None:
    said = words_of(lane.rows(glance(booting()), 40, 8))
    assert "phase post-process 2m59s" in said and "boot 4m10s of 9m35s–10m03s" in said
    assert "post-process boot 4m10s of 9m35s" in words_of(lane.rows(glance(booting(), 80, 24), 80, 1))
    wide = words_of(lane.rows(glance(booting(), 200, 60), 66, 14))
    assert "≈5m31s to ≈22:00" in wide and "of 5m30s" in wide


def test_the_shard_bar_is_never_the_boot_s_progress() -> None:
    from console.readings.logtext import Progress

    base = booting()
    with_bar = replace(upkeep.BOOTING, shards=Progress("shards", 48, 48))
    view = replace(base.lanes[0], boot=reading(with_bar, 0.4))
    for columns, rows, width, height in ((80, 24, 80, 1), (120, 40, 40, 8), (200, 60, 66, 14)):
        shown = glance(replace(base, lanes=(view,)), columns, rows)
        plain = glance(base, columns, rows)
        assert lane.rows(shown, width, height) == lane.rows(plain, width, height)


def test_a_late_boot_is_orange() -> None:
    base = booting()
    late = replace(upkeep.PROGRESS, elapsed=1000.0, left=None, late=True)
    rows = lane.rows(glance(replace(base, lanes=(replace(base.lanes[0], boot_progress=late),))), 40, 8)
    assert ink_at(rows[-2], "16m40s") == LOOK


@pytest.mark.parametrize("heals", [False, True])
def test_a_boot_that_will_not_heal_says_why_and_what_to_do(heals: bool) -> None:
    base = booting()
    failure = BootFailure("row ranges of layer 1 do not tile", "engram layer 1: ...", heals, "rebuild the odd copy")
    boot = replace(upkeep.FAILED_BOOT, failure=failure)
    view = replace(base.lanes[0], boot=reading(boot, 0.4), verdict=LaneVerdict(LaneState.DOWN, "the head exited"))
    rows = lane.rows(glance(replace(base, lanes=(view,))), 40, 8)
    word, ink = ("FAILS", LOOK) if heals else ("FAILED", ACT)
    assert ink_at(next(r for r in rows[1:] if f"{word} row" in text_of(r)), word) == ink
    assert "FAILED row ranges of layer 1 do not tile" in words_of(rows).replace("FAILS", "FAILED")
    whole = words_of(lane.rows(glance(replace(base, lanes=(view,))), 120, 31))
    assert "rebuild the odd copy" in whole and "missing overlay hooks" in whole
    assert word in words_of(lane.rows(glance(replace(base, lanes=(view,)), 80, 24), 80, 1))


def test_bars_of_boots_are_on_one_scale_and_older_ones_are_fainter() -> None:
    rows = lane.rows(with_lane(WIDE), 66, 14)
    heads = next(at for at, row in enumerate(rows) if "weights" in text_of(row))
    now, before = rows[heads + 1], rows[heads + 2]
    assert "last" in text_of(now) and "9m35s" in text_of(now)
    assert "27 Nov" in text_of(before) and "9m45s" in text_of(before)
    assert {"fill"} <= {span.ink.bg for span in now}
    assert "fill" not in {span.ink.bg for span in before} | {span.ink.fg for span in before}
    longest = next(row for row in rows if "10m03s" in text_of(row) and "18 Nov" in text_of(row))
    assert "track" not in {span.ink.bg for span in longest}
    assert "usual 9m35s–10m03s over the last 4 boots" in words_of(rows)


def test_phases_that_the_log_says_nothing_of_belong_to_the_start() -> None:
    assert boots._whole([10.0, 0.0, 5.0, 0.0], 100.0) == [95.0, 0.0, 5.0, 0.0]
    assert boots._whole([0.0] * 4, 100.0) == [100.0, 0.0, 0.0, 0.0]
    assert sum(boots._whole([80.0, 0.0, 40.0, 0.0], 100.0)) == pytest.approx(100.0)


def test_the_pool_of_the_present_boot_stands_once() -> None:
    view = spark4().lanes[0]
    assert boots.pool_sizes(view) == (5_160_000, 5_400_000, 5_880_000, 6_040_000)
    anew = replace(view, lights=replace(view.lights, process=replace(view.lights.process, started_at=WALL - 600)),
                   boot=None)  # fmt: skip
    assert boots.pool_sizes(anew) == (5_160_000, 5_400_000, 5_880_000, 6_040_000, 6_040_000)
    unknown = replace(anew, throughput=unread(error="refused"))
    assert boots.pool_sizes(unknown)[-1] == 6_040_000 and len(boots.pool_sizes(unknown)) == 4
    assert boots.pool_sizes(replace(view, boots=())) == view.pools
    assert "varies 5.2–6.0" in words_of(kv.rows(with_lane(WIDE), 68, 14))


# --- the proxy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "word", "ink"),
    [
        (HttpAnswer(NOW, 0.003, Transport.ANSWERED, 200), "200", Ink("bright")),
        (HttpAnswer(NOW, 0.003, Transport.ANSWERED, 502), "502", ACT),
        (HttpAnswer(NOW, 0.003, Transport.REFUSED), "refused", ACT),
    ],
)
def test_the_front_stands_beside_the_engine_s_own_answer(answer: HttpAnswer, word: str, ink: Ink) -> None:
    front = reading(answer, 2.0, 5.0)
    wide = lane.rows(with_lane(WIDE, front=front), 66, 14)
    assert ink_at(next(r for r in wide if "front" in text_of(r)), word) == ink
    narrow = lane.rows(with_lane(front=front), 40, 8)
    row = next(r for r in narrow if "http" in text_of(r))
    if ink == ACT:
        assert f"200  front {word}" in text_of(row) and ink_at(row, word) == ACT
    else:
        assert "200  in 0.9 s" in text_of(row) and "front" not in text_of(row)


# --- the way back ----------------------------------------------------------------------------------------------------


def test_the_way_back_says_where_to_how_long_and_what_it_rests_on() -> None:
    rows = wayback.rows(with_lane(), 120, 13)
    said = words_of(rows)
    assert "BACK ≈11m" in said and "to c0ffee1" in said and "stop 0m20s + rows" in said
    assert "the way back is open" in said
    assert ink_at(next(r for r in rows if "dry run" in text_of(r)), "UNKNOWN") == Ink()
    assert ink_at(next(r for r in rows if "old snapshot" in text_of(r)), "OK").fg == "dim"


def test_a_stale_item_is_orange_and_so_is_the_title() -> None:
    base = spark4()
    old = tuple((host, replace(repo, taken_mono=NOW - 41 * 86400)) for host, repo in base.lanes[0].repos)
    rows = wayback.rows(with_lane(repos=old), 120, 13)
    item = next(r for r in rows if "old snapshot" in text_of(r))
    assert ink_at(item, "STALE") == LOOK and ink_at(item, "41 d") == LOOK
    assert ink_at(rows[0], "STALE 41 d") == LOOK


def test_no_way_back_is_orange_like_its_lamp_with_its_reason() -> None:
    base = spark4()
    gone = replace(upkeep.repo(), snapshots=upkeep.repo().snapshots[:1])
    repos = tuple((host, look(gone)) for host, _ in base.lanes[0].repos)
    for columns, rows, width, height in ((80, 24, 80, 1), (120, 40, 120, 9), (200, 60, 68, 13)):
        drawn = wayback.rows(with_lane((columns, rows), repos=repos), width, height)
        row = next(r for r in drawn if "NO WAY BACK" in text_of(r))
        assert ink_at(row, "NO WAY BACK") == LOOK and "no other revision is kept" in text_of(row)


@pytest.mark.parametrize("picture", PICTURES)
def test_the_colour_of_the_way_back_is_that_of_its_lamp(picture: str) -> None:
    snapshot = PICTURES[picture]()
    view = snapshot.lanes[0]
    assert wayback.severity_of(way_back(snapshot, view)) is rollback(snapshot, view).severity


@pytest.mark.parametrize("state", WatchdogState)
def test_the_colour_of_a_watchdog_is_that_of_its_lamp(state: WatchdogState) -> None:
    value = replace(upkeep.ARMED, state=state, words=state.value)
    snapshot = spark4()
    view = replace(snapshot.lanes[0], watchdog=look(value))
    assert watchdog.severity_of(value) is watchdog_lamp(snapshot, view).severity


def test_items_that_are_not_ok_come_first_where_not_all_fit() -> None:
    rows = texts(wayback.rows(with_lane(), 120, 7))
    assert "UNKNOWN" in rows[3] and any("more, all OK" in row for row in rows)


# --- gaps ------------------------------------------------------------------------------------------------------------

PANES: dict[str, tuple[Draw, str]] = {
    "download": (download.rows, "download"),
    "rows": (rowcopies.rows, "rows"),
    "watchdog": (watchdog.rows, "watchdog"),
}


@pytest.mark.parametrize("name", PANES)
def test_a_pane_without_configuration_says_what_would_fill_it(name: str) -> None:
    draw, subject = PANES[name]
    changes = {"download": None, "rows": None, "next_rows": None, "watchdog": None}
    shown = with_lane(**changes, unfilled=(f"{subject}: vars.root is not set", "other: left out"))
    said = words_of(draw(shown, 120, 9))
    assert f"{subject}: vars.root is not set" in said and "other: left out" not in said
    assert "Fills " in said
    small = with_lane(SMALL, **changes, unfilled=(f"{subject}: vars.root is not set",))
    assert "vars.root is not set" in words_of(draw(small, 80, 1)) or name == "watchdog"


@pytest.mark.parametrize("name", PANES)
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({}, "Not read yet."),
        ({"error": "no permission"}, "Not read: no permission."),
        ({"down_since": NOW - 130, "error": "link lost"}, "Unreachable for 2m10s: link lost."),
    ],
)
def test_a_pane_that_was_not_read_says_why_and_shows_no_number(name: str, broken: dict[str, Any], said: str) -> None:
    draw, _ = PANES[name]
    gone = unread("look", 5.0, **broken)
    shown = with_lane(download=gone, rows=gone, next_rows=None, watchdog=gone)
    rows = draw(shown, 60, 8)
    assert said in words_of(rows)
    assert "Fills with the next look, every 5 s." in words_of(rows)
    inside = "".join(words_of(rows[1:-1])).replace(said, "").replace("every 5 s", "")
    assert not any(char.isdigit() for char in inside)


@pytest.mark.parametrize("name", PANES)
def test_a_stale_pane_is_dim_and_says_so(name: str) -> None:
    draw, _ = PANES[name]
    base = spark4().lanes[0]
    old = {
        key: replace(getattr(base, key), taken_mono=NOW - 40) for key in ("download", "rows", "next_rows", "watchdog")
    }
    rows = draw(with_lane(**old), 60, 8)
    assert ink_at(rows[0], "STALE 40s") == LOOK
    assert not any(span.ink.fg == "bright" for row in rows[1:] for span in row)


def test_what_did_not_change_is_not_drawn_again() -> None:
    """A quarter of a second later with the same readings every slice is the same."""
    base = spark4()
    view = replace(base.lanes[0], throughput=reading(throughput(), 0.3))
    one = glance(replace(base, lanes=(view,)))
    two = replace(one, snapshot=replace(one.snapshot, now=NOW + 0.25, wall=WALL + 0.25))
    for pane in (
        download.DownloadPane,
        rowcopies.RowsPane,
        watchdog.WatchdogPane,
        drift.DriftPane,
        wayback.WayBackPane,
    ):
        assert pane.slice(None, one) == pane.slice(None, two), pane.__name__  # type: ignore[arg-type]
