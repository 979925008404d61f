"""Lines that come, on the screens of log and events: long ones folded, only those that match, events of their own."""

from __future__ import annotations

from dataclasses import replace

import pictures
import pytest
from fixed import FixedSource, console, front, text_of
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from console import sanitize
from console.app import LaneswapApp
from console.snapshot import Event, LogLine, LogView, Severity
from screens.events import EventsScreen
from screens.logs import LogsScreen
from screens.rolling import LONGEST_KEPT, RollingScreen, folded

LONG = "server_args=" + "".join(f"[{n:05}]" for n in range(200))


def log_of(*texts: str) -> FixedSource:
    lines = tuple(LogLine(pictures.WALL + at, text) for at, text in enumerate(texts))
    return FixedSource(replace(pictures.spark4(), log=LogView("n1", "sglang-head", lines)))


def rolling(app: LaneswapApp) -> RollingScreen[object]:
    screen = front(app)
    assert isinstance(screen, RollingScreen)
    return screen


async def test_a_long_line_is_cut_with_its_length_and_folds_out_whole() -> None:
    async with console(log_of("before", LONG, "after")) as (app, pilot):
        await pilot.press("l")
        await pilot.pause()
        shown = text_of(app)
        assert f"… {len(LONG)} characters, t folds" in shown
        assert "before" in shown and "after" in shown and "[00199]" not in shown
        await pilot.press("t")
        await pilot.pause()
        shown = text_of(app)
        assert "[00199]" in shown and "characters, t folds" not in shown and "folded" in shown
        assert "before" in shown and "after" in shown
        await pilot.press("t")
        await pilot.pause()
        assert "[00199]" not in text_of(app)


async def test_a_line_of_a_million_characters_says_that_its_rest_was_dropped() -> None:
    line = sanitize.line("x" * 1_000_005)
    assert len(line) == LONGEST_KEPT and line.endswith("…")
    async with console(log_of("before", line, "after")) as (app, pilot):
        await pilot.press("l")
        await pilot.pause()
        shown = text_of(app)
        assert "2000 characters kept, t folds" in shown and "before" in shown and "after" in shown
        await pilot.press("t")
        await pilot.pause()
        assert "the rest was dropped when it was read" in text_of(app)


@given(st.text(max_size=400), st.integers(8, 120), st.booleans())
def test_folding_loses_nothing_and_never_is_too_wide(text: str, width: int, fold: bool) -> None:
    text = sanitize.line(text)
    rows = folded(text, width, fold=fold)
    assert all(cell_len(row) <= width for row in rows)
    if fold:
        assert "".join(rows) == text
    else:
        assert len(rows) == 1


@pytest.mark.parametrize("key", ["l", "v"])
async def test_only_what_matches(key: str) -> None:
    events = tuple(Event(pictures.WALL - 300 + n, "n1", f"number {n}") for n in range(100))
    lines = tuple(LogLine(pictures.WALL - 300 + n, f"number {n}") for n in range(100))
    source = FixedSource(replace(pictures.spark4(), log=LogView("n1", "head", lines), events=events))
    async with console(source) as (app, pilot):
        await pilot.press(key)
        await pilot.press("m")
        await pilot.pause()
        assert "nothing searched for yet" in text_of(app) and not rolling(app).only
        await pilot.press("/", *"ber 7", "enter", "m")
        await pilot.pause()
        shown = text_of(app)
        assert "number 7 " in shown and "number 79" in shown and "number 80" not in shown
        assert "/ber 7 11 " in shown and "only" in shown
        await pilot.press("escape")
        await pilot.pause()
        assert not rolling(app).only and rolling(app).search == ""
        await pilot.press("/", *"zzz", "enter", "m")
        await pilot.pause()
        assert "of 100 holds 'zzz'; m shows all." in text_of(app)


async def test_events_are_newest_last_with_shape_word_and_day() -> None:
    events = (
        Event(pictures.WALL - 3 * 86400, "n1", "link lost"),
        Event(pictures.WALL - 60, "n3", "memory: free below 4.0 GiB", Severity.ACT),
    )
    async with console(FixedSource(replace(pictures.spark4(), events=events))) as (app, pilot):
        await pilot.press("v")
        await pilot.pause()
        rows = text_of(app).splitlines()
        old = next(at for at, row in enumerate(rows) if "link lost" in row)
        assert "26 Nov" in rows[old]
        assert "■" in rows[old + 1] and "CRIT" in rows[old + 1] and "n3" in rows[old + 1]
        assert "2 since the console began, following" in "\n".join(rows)
        await pilot.press("/", *"crit", "enter", "m")
        await pilot.pause()
        assert "link lost" not in text_of(app)


async def test_no_event_says_what_would_fill_the_screen() -> None:
    async with console(FixedSource(replace(pictures.spark4(), events=()))) as (app, pilot):
        await pilot.press("v")
        await pilot.pause()
        assert "Nothing happened since the console was started. Fills with links" in text_of(app)


async def test_events_that_come_while_scrolled_back_are_counted() -> None:
    def picture(taken: int) -> object:
        base = pictures.spark4()
        events = tuple(Event(pictures.WALL - 200 + n, "n1", f"event {n}") for n in range(60 + grown[0]))
        kept.setdefault(grown[0], events)
        return replace(base, events=(*kept[0], *kept[grown[0]][60:]))

    grown, kept = [0], {}  # type: ignore[var-annotated]
    async with console(FixedSource(picture)) as (app, pilot):  # type: ignore[arg-type]
        await pilot.press("v", "pageup")
        await pilot.pause()
        assert not rolling(app).following
        grown[0] = 3
        app.tick()
        await pilot.pause()
        assert "held, 3 newer" in text_of(app) and "event 62" not in text_of(app)
        await pilot.press("f")
        await pilot.pause()
        assert rolling(app).following and "event 62" in text_of(app)


async def test_folding_keeps_the_line_that_was_first_in_view() -> None:
    texts = [f"line {n} " + ("y" * 300 if n % 2 else "") for n in range(100)]
    async with console(log_of(*texts)) as (app, pilot):
        await pilot.press("l", "home", *["down"] * 40)
        await pilot.pause()
        assert "line 40 " in text_of(app).splitlines()[7]
        await pilot.press("t")
        await pilot.pause()
        assert "line 40 " in text_of(app).splitlines()[7]


async def test_both_screens_open_once_each_and_go_back() -> None:
    async with console() as (app, pilot):
        await pilot.press("v")
        await pilot.pause()
        assert isinstance(front(app), EventsScreen)
        await pilot.press("escape", "l")
        await pilot.pause()
        assert isinstance(front(app), LogsScreen)
