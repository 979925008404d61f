"""The console as a whole: faults, pause, alarms, lanes, sizes, hostile text, start and end."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pictures
import pytest
from fixed import FixedSource, at, console, fault_text, front, resize, text_of, two_lanes, until
from hostile import CLIPBOARD, hostile_snapshot
from textual import events
from textual.pilot import Pilot

from console import app as console_app
from console.alarms.book import CLEAR_AFTER_S
from console.readings.health import LaneState, LaneVerdict
from console.readings.throughput import EngineKind
from console.snapshot import LogLine, LogView, Snapshot
from screens.dashboard import DashboardScreen
from screens.explaining import explain
from screens.lanes import settled, worst_lane
from screens.logs import LogsScreen
from screens.timeline import KEPT_HOST_PICTURES, Timeline
from widgets.pane import Drawn

SIZES = [(200, 60), (120, 40), (80, 24), (79, 23), (40, 12), (20, 5), (10, 2), (3, 1), (200, 5), (20, 60)]


# --- faults --------------------------------------------------------------------------------------------------------


async def test_a_source_that_raises_is_a_fault_on_screen_not_an_exit(tmp_path: Path) -> None:
    def broken(count: int) -> Snapshot:
        if count > 1:
            raise RuntimeError("feed [/broken] \x1b]52;c;eA==\x07")
        return pictures.spark4()

    async with console(FixedSource(broken)) as (app, pilot):
        app.tick()
        app.redraw()
        await pilot.pause()
        assert app.is_running
        assert "console fault: snapshot: RuntimeError: feed [/broken]" in text_of(app)
        assert "Traceback" in fault_text(tmp_path)


async def test_a_source_that_cannot_start_is_a_fault(tmp_path: Path) -> None:
    class Broken(FixedSource):
        async def start(self) -> None:
            raise OSError("no room")

    async with console(Broken()) as (app, pilot):
        await pilot.pause()
        app.tick()
        await pilot.pause()
        assert app.is_running
        assert "start of the sources: OSError: no room" in text_of(app)


@pytest.mark.parametrize("where", ["console.lamps.serving", "screens.view.alarms", "widgets.nodes.rows"])
async def test_a_fault_in_lamps_alarms_or_a_pane_leaves_the_rest(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("by zero")

    async with console() as (app, pilot):
        monkeypatch.setattr(where, broken)
        app.tick()
        app.tick()
        await resize(app, pilot, (100, 30))
        assert app.is_running
        shown = text_of(app)
        assert "ZeroDivisionError" in shown and "KV pool" in shown and "spark4" in shown


async def test_a_background_exception_is_a_fault_not_an_exit() -> None:
    async with console() as (app, pilot):

        async def fails() -> None:
            raise ValueError("worker")

        app.background("a worker", fails())
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await pilot.pause()
        app.tick()
        await pilot.pause()
        assert app.is_running
        assert set(app.faults.counts) == {
            "a worker: ValueError: worker",
            "background: ZeroDivisionError: division by zero",
        }


async def test_an_action_that_fails_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("zoom")

    async with console() as (app, pilot):
        monkeypatch.setattr(DashboardScreen, "do_zoom", broken)
        await pilot.press("z")
        await pilot.pause()
        assert app.is_running and "action zoom: KeyError" in text_of(app)


# --- pause and time ------------------------------------------------------------------------------------------------


def moving(count: int) -> Snapshot:
    return at(pictures.spark4(), count * 1.0)


async def test_pause_holds_the_picture_while_sampling_goes_on() -> None:
    source = FixedSource(moving)
    async with console(source) as (app, pilot):
        await pilot.press("p")
        held, taken = app.picture(), source.taken
        assert held is not None and held.held is not None
        for _ in range(5):
            app.tick()
        await pilot.pause()
        now = app.picture()
        assert now is not None and now.snapshot is held.snapshot
        assert source.taken >= taken + 5
        assert "HELD" in text_of(app)
        await pilot.press("p")
        await pilot.pause()
        after = app.picture()
        assert after is not None and after.snapshot.now > held.snapshot.now
        assert "HELD" not in text_of(app)


async def test_stepping_through_kept_pictures() -> None:
    async with console(FixedSource(moving)) as (app, pilot):
        app._clock.stop()  # type: ignore[union-attr]
        for _ in range(6):
            app.tick()
        await pilot.press("p")
        held = app.picture()
        assert held is not None
        await pilot.press("[", "[")
        back = app.picture()
        assert back is not None and back.snapshot.now == held.snapshot.now - 2
        await pilot.press("]")
        forward = app.picture()
        assert forward is not None and forward.snapshot.now == held.snapshot.now - 1
        await pilot.press(*"]]")
        await pilot.pause()
        assert "this is the newest picture" in text_of(app)
        await pilot.press(*"[" * 50)
        await pilot.pause()
        assert "no earlier picture is kept" in text_of(app)


async def test_alarms_break_through_a_pause() -> None:
    picture = [pictures.spark4()]
    async with console(FixedSource(lambda _: picture[0])) as (app, pilot):
        assert "CRIT" not in text_of(app)
        await pilot.press("p")
        picture[0] = at(pictures.trouble(), 1)
        app.tick()
        await pilot.pause()
        shown = text_of(app)
        assert "HELD" in shown and "CRIT" in shown
        assert "SERVING" in shown and "66.3" in shown


def test_the_timeline_is_bounded_for_many_hosts() -> None:
    base = pictures.spark4()
    many = replace(base, hosts=base.hosts * 64)
    timeline = Timeline()
    for second in range(400):
        timeline.add(at(many, second))
    assert timeline.kept == 10
    timeline = Timeline()
    for quarter in range(4000):
        timeline.add(at(base, quarter / 4))
    assert timeline.kept == KEPT_HOST_PICTURES // 4


def test_a_timeline_without_pictures_cannot_pause_or_step() -> None:
    timeline = Timeline()
    assert not timeline.pause() and not timeline.step(-1)
    assert timeline.shown is None and timeline.behind() == 0.0


async def test_a_blurred_terminal_is_drawn_once_a_second() -> None:
    async with console() as (app, pilot):
        assert app._clock is not None and app._clock._interval == console_app.TICK
        app.post_message(events.AppBlur())
        await pilot.pause()
        assert app._clock._interval == console_app.BLURRED_TICK
        app.post_message(events.AppFocus())
        await pilot.pause()
        assert app._clock._interval == console_app.TICK


# --- alarms, lanes -------------------------------------------------------------------------------------------------


async def test_an_acknowledged_alarm_stays_until_its_cause_is_gone_and_comes_back_new() -> None:
    picture = [pictures.trouble()]
    async with console(FixedSource(lambda _: picture[0])) as (app, pilot):
        before = app.picture()
        assert before is not None
        first = before.alarms[0].key
        await pilot.press("a")
        after = app.picture()
        assert after is not None and first in after.acknowledged and after.alarms[0].key != first
        assert first in [alarm.key for alarm in after.alarms]
        well, start = pictures.spark4(), picture[0].now
        for seconds in (1.0, CLEAR_AFTER_S + 1.0):  # one that swings around its threshold is no new one
            picture[0] = replace(well, now=start + seconds)
            app.tick()
            assert bool(app.view.acknowledged) is (seconds < CLEAR_AFTER_S)
        picture[0] = replace(pictures.trouble(), now=start + 30)
        app.tick()
        again = app.picture()
        assert again is not None and again.alarms[0].key == first


async def test_acknowledging_nothing_says_so() -> None:
    async with console() as (app, pilot):
        await pilot.press("a")
        await pilot.pause()
        assert "no alarm to acknowledge" in text_of(app)


async def test_the_console_opens_on_the_worst_lane_and_follows_its_log() -> None:
    source = FixedSource(two_lanes())
    async with console(source) as (app, pilot):
        await pilot.pause()
        assert app.view.lane == "other"
        assert ("follow", "other", "n1") in source.calls
        await pilot.press("n")
        await pilot.pause()
        app.tick()
        assert app.view.lane == "dsv41"
        assert ("follow", "dsv41", "n1") in source.calls


async def test_the_lane_in_view_does_not_change_by_itself_later() -> None:
    base = two_lanes()
    well = replace(base, lanes=(base.lanes[0], replace(base.lanes[0], name="other", lane=base.lanes[1].lane)))
    picture = [well]
    async with console(FixedSource(lambda _: picture[0])) as (app, _):
        assert app.view.lane == "dsv41"
        picture[0] = base
        app.tick()
        assert app.view.lane == "dsv41"


@pytest.mark.parametrize("worse", list(LaneState))
def test_worst_lane_of_two(worse: LaneState) -> None:
    base = two_lanes()
    states = (LaneState.SERVING, worse)
    lanes = tuple(replace(lane, verdict=LaneVerdict(state, "")) for lane, state in zip(base.lanes, states, strict=True))
    snapshot = replace(base, lanes=lanes)
    assert worst_lane(snapshot) == "other"  # where both serve, the one with an orange lamp
    same = replace(snapshot, lanes=(lanes[0], replace(lanes[0], name="other")))
    assert worst_lane(same) == "dsv41"
    assert settled(snapshot) is (worse is not LaneState.UNKNOWN)


async def test_a_fleet_of_one_lane_says_so() -> None:
    async with console() as (app, pilot):
        await pilot.press("n")
        await pilot.pause()
        assert "this fleet has one lane" in text_of(app)


# --- sizes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("picture", sorted(pictures.PICTURES))
async def test_every_size_is_drawn_and_q_works_at_the_smallest(picture: str) -> None:
    async with console(FixedSource(pictures.PICTURES[picture]()), size=(200, 60)) as (app, pilot):
        for size in SIZES:
            await resize(app, pilot, size)
            rows = text_of(app).splitlines()
            assert len(rows) == size[1] and all(len(row) <= size[0] for row in rows)
            assert not app.faults.newest, (size, app.faults.newest)
        await resize(app, pilot, (200, 60))
        whole = text_of(app)
        assert "KV pool" in whole and "events" in whole and "q quit" in whole
        await resize(app, pilot, (20, 5))
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running


async def test_after_a_resize_back_the_screen_is_the_same() -> None:
    async with console(size=(200, 60)) as (app, pilot):
        before = text_of(app)
        await resize(app, pilot, (20, 5))
        small = text_of(app).splitlines()
        assert len(small) == 5
        await resize(app, pilot, (200, 60))
        assert text_of(app) == before


async def test_a_pane_without_room_comes_when_it_is_focused() -> None:
    async with console(size=(60, 12)) as (app, pilot):
        await pilot.press("8")
        await pilot.pause()
        assert "decode batch" in text_of(app)


# --- hostile text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24), (20, 5)])
async def test_hostile_texts_are_only_text(size: tuple[int, int]) -> None:
    async with console(FixedSource(hostile_snapshot()), size=size) as (app, pilot):
        for keys in (["a"], ["x"], ["escape"], ["l"], ["escape"], ["z"], ["z"], ["?"], ["escape"], ["n"]):
            await pilot.press(*keys)
            await pilot.pause()
            shown = text_of(app)
            assert "\x1b" not in shown and "\x07" not in shown and "\x9b" not in shown and "\u202e" not in shown
            widths = {strip.cell_length for strip in app.screen._compositor.render_strips()}
            assert widths == {size[0]}
        for widget in app.query(Drawn):
            if widget.display and widget.size:
                await pilot.click(widget, offset=(min(3, widget.size.width - 1), min(1, widget.size.height - 1)))
        assert app.is_running
        assert not app.faults.newest


async def test_hostile_messages_and_toasts_are_only_text() -> None:
    async with console() as (app, pilot):
        for text in ("[/v1/messages]", "[@click=app.quit]x[/]", "[bold", CLIPBOARD):
            app.say(text)
            app.toast(text)
            await pilot.pause()
            assert app.is_running
        await pilot.press("ctrl+p")
        await pilot.pause()
        app.say("[/v1/messages] under the palette")
        await pilot.pause()
        assert "\x1b" not in text_of(app)


async def test_a_hostile_link_in_content_reaches_no_action() -> None:
    async with console(FixedSource(hostile_snapshot())) as (app, _):
        meta = [
            segment.style.meta
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and segment.style.meta
        ]
        assert not any("@click" in entry for entry in meta)


async def test_a_paste_does_not_act() -> None:
    async with console() as (app, pilot):
        app.post_message(events.Paste("qRy\x1b]52;c;eA==\x07"))
        await pilot.pause()
        assert app.is_running
        await pilot.press("/")
        app.post_message(events.Paste("n\x1b]52;c;eA==\x07\x1b[2J3"))
        await pilot.pause()
        assert app.view.filter == "n3"


# --- log -----------------------------------------------------------------------------------------------------------


def log_of(count: int, skipped: int = 0) -> LogView:
    return LogView("n1", "head", tuple(LogLine(pictures.WALL, f"line {n}.") for n in range(count)), skipped)


async def test_scrolling_back_holds_the_log_and_the_end_follows_again() -> None:
    lines = log_of(100).lines
    log = [LogView("n1", "head", lines)]
    async with console(FixedSource(lambda _: replace(pictures.spark4(), log=log[0])), size=(80, 24)) as (app, pilot):
        await pilot.press("l")
        await pilot.pause()
        assert "line 99." in text_of(app) and "following" in text_of(app)
        await pilot.press("up")
        log[0] = LogView("n1", "head", (*lines, *log_of(3).lines), skipped=1200)
        app.tick()
        await pilot.pause()
        shown = text_of(app)
        assert (
            "line 98." in shown and "held, 3 newer" in shown and "1 200 lines skipped" in shown.replace("1200", "1 200")
        )
        await pilot.press("end")
        await pilot.pause()
        assert "following" in text_of(app) and "line 2." in text_of(app)


async def test_searching_a_log() -> None:
    source = FixedSource(replace(pictures.spark4(), log=log_of(200)))
    async with console(source, size=(80, 24)) as (app, pilot):
        await pilot.press("l", "/", *"line 5", "enter")
        await pilot.pause()
        screen = front(app)
        assert isinstance(screen, LogsScreen)
        assert screen.search == "line 5" and "line 59." in text_of(app)
        assert "/line 5 11 lines" in text_of(app)
        await pilot.press("n")
        await pilot.pause()
        assert screen.reader.first == 58
        await pilot.press("escape")
        assert screen.search == "" and front(app) is screen


async def test_a_log_that_is_not_there_says_why() -> None:
    log = LogView("n1", "", (), problem="no container serves dsv41 on n1")
    async with console(FixedSource(replace(pictures.spark4(), log=log))) as (app, pilot):
        await pilot.press("l")
        await pilot.pause()
        assert "no container serves dsv41 on n1" in text_of(app)


# --- explain -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("picture", sorted(pictures.PICTURES))
@pytest.mark.parametrize("pane", range(1, 9))
def test_every_pane_explains_its_values(picture: str, pane: int) -> None:
    parts = explain(pictures.glance(pictures.PICTURES[picture]()), pane)
    assert parts and all(part.subject and part.origin for part in parts)
    assert all(fact.how for part in parts for fact in part.facts)


def facts_of(snapshot: Snapshot, pane: int) -> dict[str, str]:
    return {fact.name: fact.how for part in explain(pictures.glance(snapshot), pane) for fact in part.facts}


def test_what_is_counted_and_what_is_a_product_is_told_apart() -> None:
    assert facts_of(pictures.spark4(), 6)["used"].startswith("counted by the engine")
    base = pictures.station()
    value = base.lanes[0].throughput.value
    assert value is not None
    vllm = replace(base.lanes[0].throughput, value=replace(value, engine=EngineKind.VLLM))
    assert facts_of(replace(base, lanes=(replace(base.lanes[0], throughput=vllm),)), 6)["used"] == "pool x use"
    assert "newest 30 frames" in facts_of(base, 1)["drift"]
    assert "last minute" in facts_of(base, 6)["prefix"]


def test_a_gpu_fault_is_explained_in_the_drivers_words() -> None:
    base = pictures.spark4()
    broken = pictures.gpu(0, 55, 11, 0.3, faults=("memory.used: GPU requires reset",))
    box = replace(base.hosts[0], gpus=pictures.reading((broken,)))
    facts = facts_of(replace(base, hosts=(box, *base.hosts[1:])), 1)
    assert facts["GPU 0 FAULT"] == "nvidia-smi says instead of a figure: memory.used: GPU requires reset"


async def test_explain_says_source_age_quality_and_formula() -> None:
    async with console(FixedSource(pictures.trouble())) as (app, pilot):
        await pilot.press("1", "x", "end")
        await pilot.pause()
        assert "STALE" in text_of(app)
        await pilot.press("home")
        await pilot.pause()
        shown = text_of(app)
        assert "every 1 s, LIVE" in shown and "MemFree" in shown and "Buffers + Cached - Shmem" in shown


# --- start ---------------------------------------------------------------------------------------------------------


async def test_the_source_is_started_after_the_first_paint_and_stopped_at_the_end() -> None:
    source = FixedSource()
    app = console_app.LaneswapApp(source)

    async def leave(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ("follow", "dsv41", "n1") in source.calls)
        app.leave(0)

    async with asyncio.timeout(30):
        await app.run_async(headless=True, size=(80, 24), auto_pilot=leave)
    assert source.calls[0] == "start" and source.calls[-1] == "stop"
    assert app.return_code == 0


async def test_a_start_that_is_left_takes_back_what_it_began_before_the_source_is_stopped() -> None:
    class Slow(FixedSource):
        async def start(self) -> None:
            self.calls.append("start")
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                self.calls.append("taken back")

    source = Slow()
    app = console_app.LaneswapApp(source)

    async def leave(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "start" in source.calls)
        app.leave(0)

    async with asyncio.timeout(30):
        await app.run_async(headless=True, size=(80, 24), auto_pilot=leave)
    assert source.calls == ["start", "taken back", "stop"]


def test_the_console_is_imported_without_what_only_the_feed_needs() -> None:
    code = (
        "import sys, console.app; "
        "print(sorted({'asyncssh', 'httpx', 'docker', 'psutil', 'cyclopts'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_the_stylesheet_is_found_beside_the_package_or_at_the_top() -> None:
    assert console_app.stylesheet().read_text()


async def test_ctrl_z_stops_the_whole_foreground_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below `make` a signal to the console alone would leave `make` waiting in front of a dead terminal."""
    sent: list[tuple[int, int]] = []
    async with console() as (app, pilot):
        assert app._driver is not None
        monkeypatch.setattr(type(app._driver), "can_suspend", True)
        monkeypatch.setattr("console.app.os.kill", lambda pid, number: sent.append((pid, number)))
        await pilot.press("ctrl+z")
        await pilot.pause()
    assert sent == [(0, signal.SIGSTOP)]


async def test_a_filter_that_hides_every_container_does_not_say_that_none_was_seen() -> None:
    async with console() as (app, pilot):
        await pilot.press("0", "slash", *"zzzz", "enter")
        await pilot.pause()
        shown = text_of(app)
        assert "No container was seen" not in shown
        assert "Nothing here holds /zzzz" in shown
