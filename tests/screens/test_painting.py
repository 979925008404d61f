"""Partial updates: the changed cells alone, and after them the terminal shows what a whole paint would show."""

from __future__ import annotations

from typing import Any

import pictures
import pytest
from fixed import FixedSource, at, console, resize
from textual.geometry import Region
from textual.strip import Strip

from console.snapshot import Snapshot
from screens.painting import CellCompositor, CellUpdate, Run, share_out
from widgets.containers import ContainersPane
from widgets.pane import Drawn


def cells_of(strips: list[Strip]) -> list[list[Any]]:
    """Character and look of every cell; of a blank one only its ground can be seen."""
    return [[_look(char, segment.style) for segment in strip for char in segment.text] for strip in strips]


def _look(char: str, style: Any) -> Any:
    return (char, style.bgcolor) if char == " " and not (style.underline or style.reverse) else (char, style)


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[CellUpdate]:
    """Every partial update that is made."""
    made: list[CellUpdate] = []
    original = CellCompositor.render_partial_update

    def keep(self: CellCompositor) -> CellUpdate | None:
        update = original(self)
        made.extend([update] if update is not None else [])
        return update

    monkeypatch.setattr(CellCompositor, "render_partial_update", keep)
    return made


async def test_partial_updates_lead_to_what_a_whole_paint_shows(updates: list[CellUpdate]) -> None:
    made = [pictures.spark4(), pictures.trouble(), pictures.stalled(), pictures.unreachable(), pictures.spark4()]

    def picture(count: int) -> Snapshot:
        # Two seconds apart every age is due, so that nothing waits.
        return at(made[count % len(made)], 2.0 * count)

    async with console(FixedSource(picture)) as (app, pilot):
        app._clock.pause()  # type: ignore[union-attr]
        app.screen.refresh()
        await pilot.pause()
        compositor = app.screen._compositor
        terminal = cells_of(compositor.render_strips())
        updates.clear()
        for _ in range(2 * len(made)):
            app.tick()
            await pilot.pause()
        assert len(updates) >= 2 * len(made)
        for update in updates:
            for run, strip in update.pieces:
                assert strip.cell_length == run.end - run.start
                (terminal[run.y][run.start : run.end],) = cells_of([strip])
        assert terminal == cells_of(compositor.render_strips())


async def test_what_lies_above_is_sent_and_nothing_below_it(updates: list[CellUpdate]) -> None:
    async with console() as (app, pilot):
        await pilot.press(":", "z")
        await pilot.pause()
        updates.clear()
        row = app.screen.prompt.region  # type: ignore[attr-defined]
        app.screen._compositor._dirty_regions.add(Region(0, row.y - 1, 120, 3))
        update = app.screen._compositor.render_partial_update()
        assert isinstance(update, CellUpdate)
        sent = {run.y: "" for run, _ in update.pieces}
        for run, strip in sorted(update.pieces, key=lambda piece: piece[0]):
            sent[run.y] += strip.text
        assert sent[row.y].startswith(" :z") and "NEXT" not in sent[row.y]
        assert "zoom" in sent[row.y - 1]
        assert {y: len(text) for y, text in sent.items()} == {y: 120 for y in range(row.y - 1, row.y + 2)}


async def test_no_frame_shows_rows_of_another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zoom, focus and resize: the first paint of a new arrangement is drawn for it."""
    wrong: list[tuple[str, int, int]] = []
    original = Drawn.render_line

    def render_line(self: Drawn, y: int) -> Strip:
        strip = original(self, y)
        drawn = sum(len(span.text) for span in self.rows_now[y]) if y < len(self.rows_now) else 0
        if self.glance_now is not None and drawn != self.size.width:
            wrong.append((type(self).__name__, drawn, self.size.width))
        return strip

    monkeypatch.setattr(Drawn, "render_line", render_line)
    async with console(FixedSource(pictures.trouble())) as (app, pilot):
        for keys in (["z"], ["z"], ["6", "z"], ["0"], ["z"]):
            await pilot.press(*keys)
            await pilot.pause()
        for size in ((80, 24), (200, 60), (120, 40)):
            await resize(app, pilot, size)
        await pilot.press("z")
        await pilot.pause()
        assert app.query_one(ContainersPane).size.width == 120
    assert wrong == []


def test_runs_are_shared_out_without_loss() -> None:
    inside, outside = share_out([Run(0, 0, 10), Run(1, 2, 8), Run(5, 0, 3)], Region(4, 1, 2, 4))
    assert inside == [Run(1, 4, 6)]
    assert outside == [Run(0, 0, 10), Run(1, 2, 4), Run(1, 6, 8), Run(5, 0, 3)]
