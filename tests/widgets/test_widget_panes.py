"""What each pane says of each state: words, inks and what it must never say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import upkeep
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import (
    KEYS,
    NOW,
    STALE,
    WALL,
    container,
    glance,
    gpu,
    host,
    ink_at,
    memory,
    nothing_read,
    reading,
    spark4,
    stalled,
    station,
    texts,
    throughput,
    trouble,
    unreachable,
    unread,
)
from rich.cells import cell_len

from console.alarms import Alarm
from console.lamps import Lamp
from console.readings.containers import Containers
from console.readings.drift import Difference, Drift
from console.readings.health import (
    HttpLight,
    HttpVerdict,
    LaneState,
    LaneVerdict,
    ScrapeLight,
)
from console.readings.quality import Basis
from console.readings.throughput import KvPool, ScrapeVerdict
from console.snapshot import Event, HostView, LogLine, LogView, Severity, Snapshot
from widgets import (
    bars,
    containers,
    decode,
    download,
    drift,
    events,
    kv,
    lane,
    log,
    nodes,
    rowcopies,
    watchdog,
    wayback,
)
from widgets.cells import names_shortened
from widgets.glance import Glance, KeyHint, LaneGlance
from widgets.ink import ACCENT, BRIGHT, CHIP_ACT, DIM, LOOK, Ink, Row, text_of

HOSTILE = "[@click=app.quit]東京[/v1/messages]" + "x" * 300


# --- nodes -----------------------------------------------------------------------------------------------------------


def test_a_critical_node_has_one_red_cell() -> None:
    rows = nodes.rows(glance(trouble()), 120, 7)
    assert ink_at(rows[4], "2.9") == CHIP_ACT
    assert sum(span.ink.bg == "act" for row in rows for span in row) == 2  # the number, and the bar's passed mark
    assert "│" in next(span.text for span in rows[4] if span.ink == Ink("background", "act"))


def test_memory_is_critical_on_free_not_on_available() -> None:
    base = trouble()
    freed = replace(base.hosts[2], memory=reading(memory(61.0, 62.0, 3.0)))
    rows = nodes.rows(glance(replace(base, hosts=(*base.hosts[:2], freed, base.hosts[3]))), 120, 7)
    assert not any(span.ink.bg == "act" for row in rows for span in row)


def test_a_host_with_memory_apart_is_not_critical_on_free() -> None:
    base = spark4()
    full = replace(base.hosts[0], memory=reading(memory(1.0, 50.0, 60.0)), unified=False)
    rows = nodes.rows(glance(replace(base, hosts=(full, *base.hosts[1:]))), 120, 7)
    assert ink_at(rows[2], "1.0") == BRIGHT


def test_a_stale_row_falls_to_dim_and_says_so() -> None:
    row = nodes.rows(glance(trouble()), 120, 7)[5]
    assert ink_at(row, "STALE 14s") == LOOK
    assert ink_at(row, "n4") == ink_at(row, "66.1") == DIM
    assert {span.ink.bg for span in row} <= {"background", "fill2", "track"}


def test_an_unreachable_row_has_no_values_and_says_since_when() -> None:
    rows = nodes.rows(glance(unreachable()), 120, 7)
    text = text_of(rows[3])
    assert "UNREACHABLE connection refused" in text
    assert "since 2m10s" in text
    assert "12.3" not in text
    assert "UNREACHABLE host key changed" in text_of(rows[4])
    assert "connecting attempt 2" in text_of(rows[5])


def test_a_late_age_is_orange() -> None:
    base = spark4()
    late = replace(base.hosts[0], memory=reading(memory(11.8, 17.9, 7.4), 3.0))
    row = nodes.rows(glance(replace(base, hosts=(late, *base.hosts[1:]))), 120, 7)[2]
    assert ink_at(row, "3s") == Ink("look")
    assert "LATE 3s" in text_of(nodes.rows(glance(replace(base, hosts=(late, *base.hosts[1:]))), 120, 7)[0])


def test_a_failed_reading_is_never_shown_as_current() -> None:
    base = spark4()
    failed = replace(base.hosts[0], memory=replace(base.hosts[0].memory, error="meminfo has no MemTotal"))
    text = text_of(nodes.rows(glance(replace(base, hosts=(failed, *base.hosts[1:]))), 120, 7)[2])
    assert "11.8" not in text
    assert "meminfo has no MemTotal" in text
    assert "FAILED 0.4s" in text


def test_a_broken_gpu_stands_in_the_place_of_its_figures() -> None:
    base = spark4()
    broken = replace(base.hosts[1], gpus=reading((gpu(0, 55, 11, 0.3, faults=("memory.used: GPU requires reset",)),)))
    for columns, rows in ((80, 24), (120, 40)):
        shown = glance(replace(base, hosts=(base.hosts[0], broken, *base.hosts[2:])), columns, rows)
        row = nodes.rows(shown, columns, 7)[2 if columns == 80 else 3]
        assert ink_at(row, "GPU 0 FAULT") == CHIP_ACT
        assert "0.30" not in text_of(row)


def test_a_broken_gpu_of_a_station() -> None:
    base = station()
    card = gpu(96, 64, 892, 1.92, unified=False, memory_total=1, memory_used=1, faults=("power.draw: ERR",))
    box = replace(base.hosts[0], gpus=reading((card, replace(card, index=3))))
    row = nodes.rows(glance(replace(base, hosts=(box,))), 120, 5)[2]
    assert ink_at(row, "2 GPU FAULTS") == CHIP_ACT


def _many(count: int) -> Snapshot:
    base = spark4()
    hosts = tuple(host(f"gpu-{i:03}", memory(50, 60, 10), gpu(50, 60, 50, 2.0), None) for i in range(count))
    bad = replace(hosts[-1], memory=reading(memory(2.0, 60, 58)))
    return replace(base, hosts=(*hosts[:-1], bad))


def test_worst_first_where_not_all_fit() -> None:
    rows = nodes.rows(glance(_many(40)), 120, 7)
    assert "gpu-039" in text_of(rows[2])
    assert "gpu-000" in text_of(rows[3])
    assert "37 more, worst first: all of them in order" in text_of(rows[5])


def test_the_table_scrolls_to_its_end_and_no_further() -> None:
    rows = nodes.rows(glance(_many(40), scroll=((1, 1000),)), 120, 7)
    assert "gpu-038" in text_of(rows[4])
    assert "37 more, worst first: 1 not in order" in text_of(rows[5])


def test_a_filter_that_matches_nothing_says_so() -> None:
    assert "No host matches the filter." in text_of(nodes.rows(glance(spark4(), filter="zzz"), 120, 7)[1])
    assert "n2" in text_of(nodes.rows(glance(spark4(), filter="N2"), 120, 7)[2])


def test_the_station_shows_both_memories() -> None:
    rows = texts(nodes.rows(glance(station()), 120, 5))
    assert rows[2].split()[1:5] == ["HBM", "249.8", "▍", "7.4"]
    assert "60.0 GiB" in rows[3]
    assert rows[3].split()[1:3] == ["Grace", "480.0"]


@pytest.mark.parametrize("width", range(40, 81, 4))
def test_a_narrow_terminal_leaves_columns_out_but_cuts_none(width: int) -> None:
    rows = texts(nodes.rows(glance(station(), width, 24), width, 3))
    heads = rows[0].split()
    assert set(heads) <= {
        "nodes",
        "GiB",
        "▌used",
        "▌cache",
        "free",
        "used",
        "cache",
        "gpu%",
        "°C",
        "W",
        "pinned",
        "age",
    }
    for row in rows[1:]:
        assert row.endswith("0.5s ")
    assert len(rows[1][28:].split()) == len(heads) - len(("nodes", "GiB", "used", "cache"))


def test_a_server_with_cards_of_its_own_shows_them_as_one_memory() -> None:
    base = station()
    cards = tuple(
        gpu(90, 60, 700, 1.9, unified=False, memory_total=141 * 2**30, memory_used=100 * 2**30) for _ in range(8)
    )
    plain = replace(base.hosts[0], memory=reading(memory(1000, 1200, 300, total=2015.0)), gpus=reading(cards, 2, 5.0))
    rows = texts(nodes.rows(glance(replace(base, hosts=(plain,))), 120, 5))
    assert rows[2].split()[1:3] == ["8", "GPU"]
    assert "1128.0" in rows[2]
    assert "800.0" in rows[2]
    assert "5600" in rows[2]


def test_the_station_among_other_hosts_keeps_their_alarms() -> None:
    base = station()
    low = trouble().hosts[2]
    rows = nodes.rows(glance(replace(base, hosts=(*base.hosts, low))), 120, 7)
    assert text_of(rows[2])[2:13] == "station HBM"
    assert text_of(rows[3])[2:15] == "        Grace"
    assert text_of(rows[4]).split()[1:3] == ["n3", "119.7"]
    assert ink_at(rows[4], "2.9") == CHIP_ACT


def test_a_host_without_available_memory_is_red_on_that_cell() -> None:
    base = spark4()
    full = replace(base.hosts[0], memory=reading(memory(1.0, 1.5, 1.0)), unified=False)
    row = nodes.rows(glance(replace(base, hosts=(full, *base.hosts[1:]))), 120, 7)[2]
    assert ink_at(row, "1.5") == CHIP_ACT


def test_a_clock_that_is_off_is_orange() -> None:
    base = spark4()
    off = replace(base.hosts[0], drift=-41.0)
    row = nodes.rows(glance(replace(base, hosts=(off, *base.hosts[1:]))), 120, 7)[2]
    assert ink_at(row, "−41.0s") == Ink("look")


# --- the lane --------------------------------------------------------------------------------------------------------


def test_a_frozen_counter_behind_a_200_stands_out() -> None:
    rows = lane.rows(glance(stalled()), 40, 8)
    assert ink_at(rows[2], "200") == BRIGHT
    assert ink_at(rows[4], "frozen 0m41s") == LOOK


def test_a_lane_that_has_not_stepped_for_seconds_is_not_said_to_move() -> None:
    base = spark4()
    view = base.lanes[0]
    held = replace(view.lights, progress=replace(view.lights.progress, frozen_for=9.0))
    rows = lane.rows(glance(replace(base, lanes=(replace(view, lights=held),))), 40, 8)
    assert ink_at(rows[4], "no step 0m09s") == LOOK


def test_nothing_read_is_unknown_everywhere() -> None:
    shown = glance(nothing_read())
    words = " ".join(texts(lane.rows(shown, 40, 8)))
    assert words.count("unknown") == 5 and "start unknown" in words
    for rows in (lane.rows(shown, 40, 8), decode.rows(shown, 40, 8), kv.rows(shown, 40, 8)):
        inside = "".join(c for text in texts(rows[1:-1]) for c in text[1:-1])
        assert not any(c in "123456789" for c in inside.replace("9m35s", "").replace("64", ""))


@pytest.mark.parametrize(("state", "calm"), [(LaneState.BOOTING, True), (LaneState.DOWN, False)])
def test_what_a_boot_does_not_answer_yet_is_quiet(state: LaneState, calm: bool) -> None:
    base = trouble()
    view = replace(base.lanes[0], verdict=LaneVerdict(state, "loading"))
    shown = glance(replace(base, lanes=(view,)))
    rows = lane.rows(shown, 40, 8)
    assert ink_at(rows[2], "refused") == ink_at(rows[3], "refused") == (Ink() if calm else LOOK)
    for drawn in (rows, decode.rows(shown, 40, 8), kv.rows(shown, 40, 8)):
        if calm:
            assert "FAILED" not in text_of(drawn[0]) and text_of(drawn[0]).endswith("─ - ─╮")
        else:
            assert ink_at(drawn[0], "FAILED") == LOOK


def test_a_light_says_a_thing_once() -> None:
    base = trouble()
    lights = replace(
        base.lanes[0].lights,
        http=HttpLight(HttpVerdict.REFUSED, None, None, 1, detail="connection refused"),
        scrape=ScrapeLight(ScrapeVerdict.REFUSED, "connection refused"),
    )
    rows = texts(lane.rows(glance(replace(base, lanes=(replace(base.lanes[0], lights=lights),))), 60, 8))
    assert rows[2].count("refused") == rows[3].count("refused") == 1
    lights = replace(lights, http=HttpLight(HttpVerdict.OTHER_STATUS, 200, 0.1, 2, detail="200 with an HTML page"))
    rows = texts(lane.rows(glance(replace(base, lanes=(replace(base.lanes[0], lights=lights),))), 60, 8))
    assert "http      200  with an HTML page 2 in a row" in rows[2]


def test_unknown_is_never_zero_and_zero_is_zero() -> None:
    base = spark4()
    for value, wanted in ((None, "- tok/s"), (0.0, " 0.0 tok/s")):
        view = replace(base.lanes[0], throughput=reading(throughput(value, running=None, waiting=None)))
        shown = glance(replace(base, lanes=(view,)))
        assert wanted in text_of(decode.rows(shown, 40, 8)[1])
        assert "- running   - queued" in text_of(lane.rows(shown, 40, 8)[5])


def test_a_band_of_one_number_is_written_once() -> None:
    base = spark4()
    shown = glance(replace(base, lanes=(replace(base.lanes[0], usual_by_running=((3, 66.2, 66.4, 60),)),)))
    assert "usual 66 at 3 running" in text_of(decode.rows(shown, 40, 8)[1])


def test_the_usual_band_is_that_of_the_present_concurrency() -> None:
    base = spark4()
    for running, said in ((3, "usual 63–69 at 3 running"), (1, "usual 48–52 at 1 running"), (7, "usual 48–69 ")):
        view = replace(base.lanes[0], throughput=reading(throughput(running=running), 0.3))
        text = text_of(decode.rows(glance(replace(base, lanes=(view,))), 60, 8)[1])
        assert said in text, running
    few = replace(base.lanes[0], usual_by_running=((3, 63.0, 69.0, 5),))
    assert "usual 48–69 " in text_of(decode.rows(glance(replace(base, lanes=(few,))), 60, 8)[1])


def test_an_estimated_pool_carries_its_mark() -> None:
    base = spark4()
    pool = KvPool(6_040_000, Basis.ESTIMATE, 0.3, 1_840_000, None, "num_gpu_blocks x block_size")
    view = replace(base.lanes[0], throughput=reading(throughput(kv=pool)))
    assert "1.84 of ≈6.04 M tok" in text_of(kv.rows(glance(replace(base, lanes=(view,))), 40, 8)[1])


def test_acceptance_names_the_bonus_token() -> None:
    rows = texts(kv.rows(glance(spark4()), 40, 8))
    assert "1.71 +1 bonus of 5.0 drafted" in rows[4]
    assert "TTFT 0.8 p95 2.1 s" in rows[5]


def test_an_empty_pool_says_why_and_what_fills_it() -> None:
    rows = " ".join(texts(kv.rows(glance(trouble()), 40, 8)))
    assert "Empty: connection refused." in rows
    assert "Fills with the next good scrape." in rows


# --- events, log -----------------------------------------------------------------------------------------


def test_events_are_newest_first_and_loud_ones_carry_shape_and_word() -> None:
    rows = events.rows(glance(trouble()), 60, 8)
    assert "STOP exited 0, 22 s" in text_of(rows[1])
    loud = next(row for row in rows if "CRIT" in text_of(row))
    assert ink_at(loud, "■ CRIT").fg == "act"


def test_a_long_event_goes_on_below_where_rows_are_free() -> None:
    long = Event(WALL - 5, "dsv41", "DEGRADED: not serving: n3 exited 137 (SIGKILL, cause not recorded)", Severity.ACT)
    base = replace(spark4(), events=(Event(WALL - 9, "n1", "link back"), long))
    rows = texts(events.rows(glance(base), 60, 8))
    assert "dsv41  ■ CRIT DEGRADED: not serving: n3 exited" in rows[1]
    assert rows[2].split("│")[1].strip() == "137 (SIGKILL, cause not recorded)"
    assert "link back" in rows[3]
    assert "link back" in texts(events.rows(glance(base), 60, 4))[2], "no room: cut, and nothing is pushed out"
    small = texts(events.rows(glance(base, 80, 24), 80, 3))
    assert "recorded)" in small[1] and "link back" in small[2]


def test_a_loud_event_takes_what_rows_there_are() -> None:
    long = Event(WALL - 5, "dsv41", "DEGRADED: " + "a reason of many words, " * 9, Severity.ACT)
    rows = texts(events.rows(glance(replace(spark4(), events=(Event(WALL - 9, "n1", "link back"), long))), 60, 6))
    assert "DEGRADED: a reason" in rows[1] and rows[3].rstrip("│ ").endswith("…") and "link back" in rows[4]


def test_the_log_scrolls_back_and_says_so() -> None:
    rows = texts(log.rows(glance(spark4(), scroll=((8, 2),)), 60, 8))
    assert "2 lines back" in rows[0]
    assert "65.94" in rows[4]
    assert "66.31" not in " ".join(rows)


def test_a_time_is_written_once() -> None:
    twice = LogLine(WALL, "[2026-11-29 21:55:10 TP0 EP0] Decode batch, #running-req: 3")
    other = LogLine(WALL, "[2026-11-29 21:40:00 TP0] written long before")
    shown = glance(replace(spark4(), log=LogView("n1", "c", (twice, other))))
    rows = texts(log.rows(shown, 60, 8))
    assert "21:55:10 TP0 EP0 Decode batch, #running-req: 3" in rows[1]
    assert "21:55:10 [2026-11-29 21:40:00 TP0] written long before" in rows[2]
    assert "[2026-11-29 21:55:10 TP0 EP0] Decode" in texts(log.rows(shown, 120, 8))[1]


def test_the_stamp_of_vllm_leaves_room_for_what_it_says() -> None:
    worker = LogLine(WALL, "(Worker_TP0 pid=24131) INFO 11-29 21:55:10 [core.py:402] Autotuning process ends")
    wrong = LogLine(WALL - 86400, "ERROR 11-28 21:55:10 [core.py:402] out of memory")
    shown = glance(replace(spark4(), log=LogView("n1", "c", (worker, wrong))))
    rows = texts(log.rows(shown, 60, 8))
    assert "21:55:10 Worker_TP0 Autotuning process ends" in rows[1]
    assert "28 Nov   21:55:10 ERROR out of memory" in rows[2]
    assert "[core.py:402]" in texts(log.rows(shown, 120, 8))[1]


def test_a_host_of_another_kind_shows_its_own_memory_beside_the_lane() -> None:
    base = spark4()
    mixed = replace(base, hosts=(*base.hosts, station().hosts[0]))
    rows = texts(nodes.rows(glance(mixed), 120, 8))
    assert "▌used ▌cache" in rows[1]
    assert "GiB" not in rows[1]
    assert rows[6].split()[1:2] == ["station"]
    assert " 38.2 " in rows[6]


# --- focus -----------------------------------------------------------------------------------------------------------


def test_focus_is_frame_and_title() -> None:
    focused, other = (nodes.rows(glance(spark4(), focus=number), 120, 7) for number in (1, 4))
    assert focused[0][0].ink == focused[-1][0].ink == ACCENT
    assert ink_at(focused[0], "nodes").fg == "accent"
    assert other[0][0].ink.fg == "line"


# --- hostile texts ---------------------------------------------------------------------------------------------------

NASTY = [
    "",
    "\x1b[31mred\x1b[0m",
    "\u202eabc",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "e\u0301" * 90,
    "\U0001f1e9\U0001f1ea\u2764\ufe0f",
    "a\u0300\u0301\u0302\u0303b",
]
TEXT = st.one_of(st.text(max_size=40), st.just(HOSTILE), st.sampled_from(NASTY))


def spoiled_upkeep(text: str, other: str, hosts: tuple[HostView, ...]) -> dict[str, Any]:
    """What keeps a lane alive, every word of it from a hostile host."""
    fetched = replace(
        upkeep.WARNED, why=other, host=text, repo=other, revision=text, warnings=(text, other), upstream=other,
        current=replace(upkeep.partial(), etag=text, path=other), orphans=(replace(upkeep.partial(), path=text),),
        memory=replace(upkeep.NO_CAP, why=text),
    )  # fmt: skip
    copies = tuple(
        replace(copy, host=text, path=other, words=f"{copy.state.value} {other}") for copy in upkeep.BAD_ROWS.copies
    )
    tiling = replace(upkeep.GAP, words=text, family=other, families={0: text, 1: other})
    rows = replace(upkeep.BAD_ROWS, revision=other, copies=copies, tiling=tiling)
    differences = (Difference(text, ((text, other), (other, text)), (text, other), text, other),)
    failed = replace(upkeep.FAILURE, cause=text, line=other, advice=text)
    return {
        "download": reading(fetched, 0.6, 5.0, text),
        "rows": reading(replace(rows, for_next=False), 0.7, 5.0),
        "next_rows": reading(replace(rows, for_next=True), 0.7, 5.0),
        "watchdog": reading(replace(upkeep.GAVE_UP, words=text, host=hosts[0].name, last_act=other,
                                    competing=(text, other)), 3, 5.0),
        "drift": Drift(differences, (text, other), ((text, other),)),
        "boot": reading(replace(upkeep.FAILED_BOOT, failure=failed, missing=(text,)), 0.4),
        "unfilled": (f"rows: {text}", f"watchdog: {other}"),
    }  # fmt: skip


def _spoiled(text: str, other: str) -> Snapshot:
    base = station() if len(text) % 2 else spark4()
    box = container("c", revision=text, restart_policy=other, id=text)
    box = replace(box, name=text + other)
    hosts = tuple(
        replace(
            view,
            name=f"{text}{i}",
            containers=reading(Containers((box,), other if i else "", text), 1, 5.0),
            memory=view.memory if i % 2 == 0 else unread(error=other, down_since=NOW - 5),
            link=replace(view.link, error=text, hint=other),
        )
        for i, view in enumerate(base.hosts)
    )
    ranks = tuple(
        replace(rank, host=view.name, word=text, revision=other)
        for rank, view in zip(base.lanes[0].ranks, hosts, strict=True)
    )
    view = base.lanes[0]
    lights = replace(
        view.lights,
        process=replace(view.lights.process, dead=(text, other)),
        http=replace(view.lights.http, detail=text),
        scrape=replace(view.lights.scrape, detail=other),
    )
    view = replace(
        view, ranks=ranks, lights=lights, served=reading(text), verdict=replace(view.verdict, why=other),
        throughput=reading(throughput(notes=(text, other))), **spoiled_upkeep(text, other, hosts),
    )  # fmt: skip
    log_view = LogView(text, other, (LogLine(WALL, text), LogLine(None, other)), problem=text)
    return replace(base, hosts=hosts, lanes=(view,), events=(Event(WALL, text, other, Severity.ACT),), log=log_view)


@settings(max_examples=60, deadline=None)
@given(TEXT, TEXT, st.sampled_from([(80, 24), (100, 30), (120, 40), (150, 45), (200, 60)]), st.booleans())
def test_hostile_texts_never_break_the_grid(text: str, other: str, size: tuple[int, int], plain: bool) -> None:
    columns, height = size
    lamp = Lamp(text, other, text, other, Severity.ACT)
    shown = glance(
        _spoiled(text, other), columns, height, ascii=plain, no_colour=plain, lamps=(lamp,) * 4, notice=other,
        alarms=(Alarm(text, Severity.ACT, text, other, text), STALE), filter="",
        lanes=(LaneGlance(text, Severity.ACT, other),),
        keys=(*KEYS, KeyHint(text, other)),
    )  # fmt: skip
    for rows in _everything(shown, columns):
        for row in rows:
            assert cell_len(text_of(row)) == columns
            assert sum(cell_len(span.text) for span in row) == columns
            assert all(char.isprintable() for char in text_of(row))
            if plain:
                assert text_of(row).isascii()


@settings(max_examples=30, deadline=None)
@given(TEXT, TEXT, st.sampled_from([(80, 24), (120, 40), (200, 60)]), st.booleans())
def test_hostile_names_never_break_the_way_back(text: str, other: str, size: tuple[int, int], plain: bool) -> None:
    base = station()
    held = base.hosts[0].containers.value
    assert held is not None
    boxes = tuple(replace(box, name=text + box.name, image=other, restart_policy=text) for box in held.items)
    box = replace(base.hosts[0], containers=reading(Containers(boxes), 4, 5.0))
    shown = glance(replace(base, hosts=(box,)), *size, ascii=plain, no_colour=plain)
    for height in (1, 8, 14):
        for row in wayback.rows(shown, size[0], height):
            assert sum(cell_len(span.text) for span in row) == size[0]
            assert all(char.isprintable() for char in text_of(row))
            assert not plain or text_of(row).isascii()


def _everything(shown: Glance, columns: int) -> list[tuple[Row, ...]]:
    drawn = [(bars.header(shown, columns), bars.rail(shown, columns), bars.alarm_line(shown, columns))]
    drawn += [bars.lamp_rows(shown, columns), bars.key_rows(shown, columns), (bars.next_line(shown, columns),)]
    panes = (nodes, lane, decode, kv, containers, events, log, download, rowcopies, watchdog, drift)
    for pane in panes:
        drawn += [pane.rows(shown, columns, height) for height in (1, 8, 14)]
    return drawn


@pytest.mark.parametrize("columns", [80, 120])
def test_what_became_of_a_container_is_read_however_long_its_name_is(columns: int) -> None:
    name = "dsv41-vllm-1017-v21cfg-fused-split-with-a-very-long-tail-BOUND-REF"
    told = f"container {name} exited 137"
    snapshot = replace(spark4(), events=(Event(WALL, "spark-0", told, Severity.NORMAL),) * 9)
    width = columns if columns == 80 else 60
    drawn = [text_of(row) for row in events.rows(glance(snapshot, columns, 40 if columns == 120 else 24), width, 8)]
    rows = [row for row in drawn if "spark-0" in row]
    assert rows and all("exited 137" in row for row in rows), drawn
    assert all(("dsv41" in row and "BOUND-REF" in row) or "D-REF" in row for row in rows), drawn


@pytest.mark.parametrize("width", range(0, 70))
def test_a_shortened_text_fits_or_is_as_short_as_its_names_allow(width: int) -> None:
    text = "container dsv41-vllm-1017-v21cfg-BOUND-REF of lmsysorg/sglang-nightly-dev stopped"
    found = names_shortened(text, width, "…")
    assert len(found) <= max(width, 53) and found.startswith("container dsv41") and found.endswith("stopped")
