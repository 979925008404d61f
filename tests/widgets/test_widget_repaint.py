"""Only what changed is painted again; styles follow theme and NO_COLOR."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import glance, memory, nothing_read, reading, spark4, stalled, trouble, unreachable
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Region

from widgets.ages import AGE_REPAINT, young
from widgets.bars import AlarmBar, HeaderBar, KeyBar, LampsBar, NextBar, RailBar
from widgets.cells import Line
from widgets.containers import ContainersPane
from widgets.decode import DecodePane
from widgets.download import DownloadPane
from widgets.events import EventsPane
from widgets.glance import Glance
from widgets.ink import ACT, BRIGHT, CHIP_ACT, CHIP_KEY, DIM, INFO, LOOK, TEXT, Ink, Span, text_of
from widgets.kv import KvPane
from widgets.lane import LanePane
from widgets.log import LogPane
from widgets.nodes import NodesPane
from widgets.pane import Drawn
from widgets.repaint import Painted, changed
from widgets.rowcopies import RowsPane
from widgets.theme import COLOURS, DEFAULT_THEME, PLAIN_THEME, THEMES, AttributesOnly, palette_for, register_themes

AGES = ("0.0s", "0.4s", "0.9s", "1s", "2s", "9s", "14s", "LATE 3s", "STALE 14s")
TEXTS = ("", "a", "word", "a longer text")
WIDGETS: tuple[type[Drawn], ...] = (
    HeaderBar, LampsBar, RailBar, AlarmBar, NodesPane, DownloadPane, RowsPane, ContainersPane, LanePane, DecodePane,
    KvPane, EventsPane, LogPane, NextBar, KeyBar,
)  # fmt: skip


class Stage(App[None]):
    """Every bar and pane, one under the other."""

    CSS = """
    Screen { background: $ls-background; overflow: hidden; }
    HeaderBar, RailBar, AlarmBar, NextBar { height: 1; } LampsBar, KeyBar { height: 2; }
    NodesPane, DownloadPane, RowsPane, ContainersPane, LanePane, DecodePane, KvPane, EventsPane, LogPane { height: 7; }
    LanePane, DecodePane, KvPane { height: 8; width: 40; }
    """

    def __init__(self) -> None:
        super().__init__()
        register_themes(self)
        self.theme = DEFAULT_THEME

    def compose(self) -> ComposeResult:
        yield from (kind() for kind in WIDGETS)

    def show(self, shown: Glance) -> dict[str, int]:
        """Rows that each widget repaints."""
        return {type(widget).__name__: widget.show(shown) for widget in self.query(Drawn)}


def later(shown: Glance, seconds: float, **hosts: Any) -> Glance:
    """The same picture some time later, every reading taken as much later."""
    snapshot = shown.snapshot
    moved = replace(
        snapshot,
        now=snapshot.now + seconds,
        wall=snapshot.wall + seconds,
        hosts=tuple(
            replace(view, memory=_moved(view.memory, seconds), containers=_moved(view.containers, seconds))
            for view in snapshot.hosts
        ),
        lanes=tuple(
            replace(view, health=_moved(view.health, seconds), throughput=_moved(view.throughput, seconds))
            for view in snapshot.lanes
        ),
    )
    return replace(shown, snapshot=moved, lane=moved.lanes[0])


def _moved(value: Any, seconds: float) -> Any:
    return replace(value, taken_mono=value.taken_mono + seconds)


def with_free(shown: Glance, name: str, free: float) -> Glance:
    """The same picture with another MemFree on one host."""
    hosts = tuple(
        replace(view, memory=reading(memory(free, 17.9, 7.4), 0.4)) if view.name == name else view
        for view in shown.snapshot.hosts
    )
    return replace(shown, snapshot=replace(shown.snapshot, hosts=hosts))


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Region | None]]:
    """Every repaint that a drawn widget asks for: its name and the region, None for all of it."""
    asked: list[tuple[str, Region | None]] = []
    original = Drawn.refresh

    def refresh(self: Drawn, *areas: Region, **how: Any) -> Drawn:
        asked.extend((type(self).__name__, area) for area in areas or (None,))
        return original(self, *areas, **how)

    monkeypatch.setattr(Drawn, "refresh", refresh)
    return asked


async def test_the_same_picture_twice_repaints_nothing(regions: list[tuple[str, Region | None]]) -> None:
    app = Stage()
    async with app.run_test(size=(120, 80)) as pilot:
        app.show(glance(spark4()))
        await pilot.pause()
        regions.clear()
        assert set(app.show(glance(spark4())).values()) == {0}
        assert regions == []


async def test_one_changed_number_repaints_its_own_cells(regions: list[tuple[str, Region | None]]) -> None:
    app = Stage()
    async with app.run_test(size=(120, 80)) as pilot:
        app.show(glance(spark4()))
        await pilot.pause()
        regions.clear()
        counts = app.show(with_free(glance(spark4()), "n1", 11.9))
        assert counts.pop("NodesPane") == 1
        assert set(counts.values()) == {0}
        assert all(area is not None and (area.y, area.height) == (2, 1) for _, area in regions)
        assert sum(area.width for _, area in regions if area) <= 12
        await pilot.pause()
        assert "11.9" in app.export_screenshot()


async def test_the_next_second_repaints_the_clock_and_no_pane(regions: list[tuple[str, Region | None]]) -> None:
    app = Stage()
    shown = glance(spark4())
    async with app.run_test(size=(120, 80)) as pilot:
        app.show(shown)
        await pilot.pause()
        regions.clear()
        counts = app.show(later(shown, 1.0))
        assert counts["HeaderBar"] == 1
        assert counts["NodesPane"] == counts["LanePane"] == 0


async def test_a_young_age_waits_for_a_value_or_its_time(regions: list[tuple[str, Region | None]]) -> None:
    app = Stage()
    shown = glance(spark4())
    nodes = shown.snapshot

    def aged(seconds: float) -> Glance:
        return replace(shown, snapshot=replace(nodes, now=nodes.now + seconds))

    async with app.run_test(size=(120, 80)) as pilot:
        app.show(shown)
        await pilot.pause()
        pane = app.query_one(NodesPane)
        assert pane.show(aged(0.5)) == 0
        assert "0.9s" in text_of(pane.rows_now[2]), "the row itself is true; only its paint waits"
        assert pane.show(aged(1.5)) == 3, "the title, n2 and n3 are LATE; n1 and n4 wait"
        assert pane.show(aged(1.5 + AGE_REPAINT)) == 5


async def test_what_a_pane_does_not_look_at_does_not_draw_it() -> None:
    app = Stage()
    shown = glance(spark4())
    async with app.run_test(size=(120, 80)) as pilot:
        app.show(shown)
        await pilot.pause()
        drawn = {type(widget).__name__: widget.rows_now for widget in app.query(Drawn)}
        app.show(replace(shown, notice="hello"))
        redrawn = [w for w in app.query(Drawn) if w.rows_now is not drawn[type(w).__name__]]
        assert [type(widget) for widget in redrawn] == [NextBar]


async def test_every_change_that_a_pane_shows_is_in_its_slice() -> None:
    """From one picture to each other and back: after `show` a widget holds what `draw` gives for the newer one."""
    pictures = [glance(make()) for make in (spark4, trouble, unreachable, stalled, nothing_read)]
    pictures += [glance(spark4(), focus=4), glance(spark4(), ascii=True), glance(spark4(), filter="n1")]
    pictures += [glance(spark4(rehearsal=True)), glance(spark4(), held=1.0)]
    pictures += [later(pictures[0], seconds) for seconds in (AGE_REPAINT, 3.0, 60.0)]
    app = Stage()
    async with app.run_test(size=(120, 80)):
        for newer in [step for picture in pictures[1:] for step in (picture, pictures[0])]:
            app.show(newer)
            for widget in app.query(Drawn):
                assert widget.rows_now == widget.draw(newer, *widget.size), type(widget).__name__


async def test_another_theme_is_another_colour_and_no_new_layout(regions: list[tuple[str, Region | None]]) -> None:
    app = Stage()
    async with app.run_test(size=(120, 80)) as pilot:
        app.show(glance(trouble()))
        await pilot.pause()
        dark = app.query_one(NodesPane).render_line(4)
        app.theme = "laneswap-safe"
        await pilot.pause()
        safe = app.query_one(NodesPane).render_line(4)
        assert _colours(dark) != _colours(safe)
        assert COLOURS["laneswap-safe"]["act"] in _colours(safe)


async def test_resize_draws_anew() -> None:
    app = Stage()
    async with app.run_test(size=(120, 80)) as pilot:
        app.show(glance(spark4()))
        await pilot.resize_terminal(140, 80)
        await pilot.pause()
        pane = app.query_one(NodesPane)
        assert {len(text_of(row)) for row in pane.rows_now} == {pane.size.width} == {140}


def _colours(strip: Any) -> set[str]:
    styles = [segment.style for segment in strip if segment.style]
    found = [colour for style in styles for colour in (style.color, style.bgcolor) if colour is not None]
    return {colour.get_truecolor().hex for colour in found}


async def test_no_colour_sends_attributes_alone() -> None:
    app = Stage()
    app._filters.append(AttributesOnly())
    async with app.run_test(size=(120, 80)) as pilot:
        app.show(glance(trouble(), no_colour=True))
        await pilot.pause()
        strips = [app.query_one(NodesPane).render_line(y) for y in range(7)]
        assert set().union(*(_colours(strip) for strip in strips)) == set()
        assert not any(segment.style.dim for strip in strips for segment in strip if segment.style)
        row = next(segment for segment in strips[4] if "2.9" in segment.text)
        assert row.style is not None and row.style.reverse


def test_attributes_stand_for_colours() -> None:
    plain = palette_for(DEFAULT_THEME, True)
    assert plain.style(LOOK) == Style(bold=True, underline=True)
    assert plain.style(ACT) == plain.style(CHIP_ACT) == plain.style(CHIP_KEY) == Style(bold=True, reverse=True)
    assert plain.style(INFO).bold
    assert plain.style(BRIGHT).bold
    assert not plain.style(DIM).bold
    assert not plain.style(DIM).dim
    assert palette_for(PLAIN_THEME, False).plain


STOCK = {
    "foreground": "text",
    "background": "background",
    "surface": "surface",
    "panel": "panel",
    "accent": "accent",
    "primary": "info",
    "secondary": "dim",
    "warning": "look",
    "error": "act",
    "success": "text",
}


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_stock_variables_carry_the_same_values(theme: Any) -> None:
    variables = theme.to_color_system().generate()
    colours = COLOURS[theme.name]
    for stock, own in STOCK.items():
        assert theme.variables[f"ls-{own}"] == colours[own]
        off = [abs(a - b) for a, b in zip(_channels(variables[stock]), _channels(colours[own]), strict=True)]
        assert max(off) <= 1, f"{stock}: Textual rounds a channel by one at most"


def _channels(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def _luminance(colour: str) -> float:
    parts = [channel / 255 for channel in _channels(colour)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", COLOURS)
def test_words_can_be_read(name: str) -> None:
    colours = COLOURS[name]
    for ink in ("dim", "text", "bright", "accent", "info", "look", "act"):
        assert _contrast(colours[ink], colours["background"]) >= 4.5, ink
        assert _contrast(colours[ink], colours["surface"]) >= 4.5, ink
    for ink in ("text", "bright"):
        assert _contrast(colours[ink], colours["panel"]) >= 4.5, ink


def _row(text: str, ink: Ink = TEXT, *, age: bool = False) -> tuple[Span, ...]:
    return (Span(text, ink, age),)


def test_changed_cells() -> None:
    assert changed(_row("abc"), _row("abc")) == ([], [])
    assert changed(_row("abc"), _row("abd")) == ([(2, 3)], [])
    assert changed(_row("abc"), _row("abc", DIM)) == ([(0, 3)], [])
    assert changed(_row("a" + " " * 30 + "b"), _row("x" + " " * 30 + "y")) == ([(0, 1), (31, 32)], [])
    assert changed(_row("a" + " " * 5 + "b"), _row("x" + " " * 5 + "y")) == ([(0, 7)], [])
    assert changed(_row("abc"), _row("abcd")) == ([(0, 4)], [])
    between = (*_row("same "), *_row("a", DIM), *_row(" same"))
    assert changed(between, (*_row("same "), *_row("b", DIM), *_row(" same"))) == ([(5, 6)], [])


def test_a_range_never_cuts_a_wide_character() -> None:
    assert changed(_row("a東b"), _row("a京b")) == ([(1, 3)], [])
    assert changed(_row("a東b"), _row("axxb")) == ([(1, 3)], [])


def test_young_ages_can_wait_and_others_cannot() -> None:
    def aged(before: str, age: str, ink: Ink = DIM) -> tuple[Span, ...]:
        return Span(before, TEXT), Span(age, ink, True)

    assert changed(aged("7 ", "0.4s"), aged("7 ", "0.6s")) == ([], [(4, 5)])
    assert changed(aged("7 ", "0.4s"), aged("8 ", "0.6s")) == ([(0, 1)], [(4, 5)])
    assert changed(aged("7 ", "0.9s"), aged("7   ", "1s")) == ([], [(2, 5)]), "a reading a second goes through 1s too"
    assert changed(aged("7   ", "1s"), aged("7   ", "2s")) == ([(4, 5)], [])
    assert changed(aged("7   ", "1s"), aged("7   ", "3s", LOOK)) == ([(4, 6)], [])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(AGES), st.sampled_from(TEXTS), st.booleans()), min_size=1, max_size=12))
def test_the_terminal_never_shows_half_an_age(steps: list[tuple[str, str, bool]]) -> None:
    """Whatever ages and texts follow each other: all but a young age is as drawn, and that is one it was."""
    painted = Painted()
    first = _line("0.4s", "")
    painted.whole((first,))
    terminal = text_of(first)
    seen = {"0.4s"}
    for age, text, due in steps:
        row = _line(age, text)
        for _, start, end in painted.update((row,), due=due):
            terminal = terminal[:start] + text_of(row)[start:end] + terminal[end:]
        seen = {*seen, age} if young(age) and not due else {age}
        assert terminal in {text_of(_line(shown, text)) for shown in seen}, (age, text, due)


def _line(age: str, text: str) -> tuple[Span, ...]:
    line = Line(20)
    line.put(0, text)
    line.right(18, age, DIM if len(age) < 5 else LOOK, age=True)
    return line.build()


async def test_what_waited_is_painted_when_it_is_due(regions: list[tuple[str, Region | None]]) -> None:
    """Also where another cell of the row was painted meanwhile, and where the age is by then what it was at first."""
    app = Stage()
    shown = glance(spark4())
    async with app.run_test(size=(120, 80)) as pilot:
        app.show(shown)
        await pilot.pause()
        pane = app.query_one(NodesPane)
        first = _columns_of_age(pane.rows_now[2])
        pane.show(_older(with_free(shown, "n1", 11.9), 0.2))
        regions.clear()
        pane.show(_older(with_free(shown, "n1", 11.9), AGE_REPAINT - 0.001))
        pane.show(_older(with_free(shown, "n1", 11.9), AGE_REPAINT))
        painted = {x for _, area in regions if area and area.y == 2 for x in range(area.x, area.right)}
        assert painted >= first


def _older(shown: Glance, seconds: float) -> Glance:
    """The same readings looked at later; n1's taken anew, so that its age is the same again."""
    snapshot = shown.snapshot
    first = replace(snapshot.hosts[0], memory=_moved(snapshot.hosts[0].memory, seconds if seconds >= 1 else 0.0))
    moved = replace(snapshot, now=snapshot.now + seconds, hosts=(first, *snapshot.hosts[1:]))
    return replace(shown, snapshot=moved)


def _columns_of_age(row: tuple[Span, ...]) -> set[int]:
    column, found = 0, set()
    for span in row:
        if span.age:
            found |= {column + i for i, char in enumerate(span.text) if char.isdigit()} - {column}
        column += len(span.text)
    return found
