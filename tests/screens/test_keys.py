"""Every key of the action table does what the table says, on every screen that has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pictures
import pytest
import strips
from fixed import FixedSource, console, front, text_of, two_lanes, until
from textual.command import CommandPalette
from textual.pilot import Pilot

from console.actions.catalog import ACTIONS, BY_ID, Action, Place, available, guarded
from console.actions.strip import Phase
from console.app import LaneswapApp
from console.snapshot import Event, LogLine, LogView
from screens.dashboard import DashboardScreen
from screens.dryrun import DryRunScreen
from screens.events import EventsScreen
from screens.explain import ExplainScreen
from screens.framed import FramedScreen
from screens.help import HelpScreen
from screens.ledger import LedgerScreen
from screens.logs import LogsScreen
from screens.reader import ReadingScreen
from screens.rolling import RollingScreen
from screens.view import View
from widgets.slots import NUMBERS

Console = LaneswapApp
OPEN = {
    **{Place.DASHBOARD: (), Place.HELP: ("?",), Place.LOGS: ("l",), Place.EVENTS: ("v",), Place.EXPLAIN: ("x",)},
    **{Place.LEDGER: ("e",), Place.DRY_RUN: ("d",)},
}


def long_log() -> LogView:
    return LogView("n1", "sglang-head", tuple(LogLine(pictures.WALL - 300 + n, f"line {n}") for n in range(300)))


def source() -> FixedSource:
    from dataclasses import replace

    return FixedSource(replace(two_lanes(), log=long_log(), events=many_events()))


def many_events() -> tuple[Event, ...]:
    return tuple(Event(pictures.WALL - 300 + n, "n1", f"event {n}") for n in range(300))


def reader_first(app: Console) -> int:
    screen = front(app)
    assert isinstance(screen, ReadingScreen)
    return screen.reader.first


def hands() -> strips.FakeHands:
    """Hands with a long record."""
    made = strips.FakeHands(strips.NO_WINDOW)
    made.records = tuple(
        strips.record(strips.Kind.NOTE, f"record {n}", strips.CLOCK - 300 + n, lane="other") for n in range(300)
    )
    return made


async def arrived(app: Console, pilot: Pilot[None], place: Place) -> None:
    for key in OPEN[place]:
        await pilot.press(key)
    await pilot.pause()
    assert front(app).PLACE is place


Effect = Callable[[Console], bool]
EFFECTS: dict[str, Effect] = {
    "logs": lambda app: isinstance(front(app), LogsScreen),
    "events": lambda app: isinstance(front(app), EventsScreen),
    "explain": lambda app: isinstance(front(app), ExplainScreen),
    "filter": lambda app: front(app).prompt.kind == "/",  # type: ignore[attr-defined]
    "zoom": lambda app: app.view.zoomed,
    "ledger": lambda app: isinstance(front(app), LedgerScreen) and "record 299" in text_of(app),
    "dry-run": lambda app: isinstance(front(app), DryRunScreen) and "goes by" in text_of(app),
    "window": lambda app: app.desk.open and "OPEN A WINDOW FOR" in text_of(app),
    "more-panes": lambda app: app.view.focus == 10 and "containers" in text_of(app),
    "next-pane": lambda app: app.view.focus == 2,
    "previous-pane": lambda app: app.view.focus == 7,
    "up": lambda app: app.view.scroll.get(1) == 0,
    "down": lambda app: app.view.scroll.get(1) == 1,
    "next-lane": lambda app: app.view.lane == "dsv41",
    "previous-lane": lambda app: app.view.lane == "dsv41",
    "pause": lambda app: app.timeline.paused and "HELD" in text_of(app),
    "step-back": lambda app: "step while paused" in text_of(app),
    "step-forward": lambda app: "step while paused" in text_of(app),
    "acknowledge": lambda app: len(app.view.acknowledged) == 1,
    "help": lambda app: isinstance(front(app), HelpScreen),
    "command": lambda app: front(app).prompt.kind == ":",  # type: ignore[attr-defined]
    "palette": lambda app: CommandPalette.is_open(app),
    "hint-quit": lambda app: app.is_running and "q quits" in text_of(app),
    "follow": lambda app: isinstance(screen := front(app), RollingScreen) and not screen.following,
    "only-matches": lambda app: "nothing searched for yet" in text_of(app),
    "fold": lambda app: isinstance(screen := front(app), RollingScreen) and screen.fold,
    "next-host": lambda app: ("follow", "other", "n2") in app.source.calls,  # type: ignore[attr-defined]
    "next-match": lambda app: "nothing searched for yet" in text_of(app),
    "scroll-down": lambda app: isinstance(front(app), RollingScreen) or reader_first(app) == 1,
    "page-down": lambda app: isinstance(front(app), RollingScreen) or reader_first(app) > 1,
    "scroll-up": lambda app: not isinstance(screen := front(app), RollingScreen) or not screen.following,
    "page-up": lambda app: not isinstance(screen := front(app), RollingScreen) or not screen.following,
    "top": lambda app: reader_first(app) == 0,
    "end": lambda app: reader_first(app) > 0,
}
TRUE_BEFORE = {"scroll-down", "page-down", "scroll-up", "page-up", "top", "up", "help", "end"}
"""On some screens there is nothing to see of these: what they bring about is so already."""
SPECIAL = {"focus", "back", "quit"}
CASES = [
    (place, action.id, key)
    for place in Place
    for action in available(place)
    for key in action.keys
    if action.id not in SPECIAL and action not in guarded()
]


def test_every_action_has_a_test() -> None:
    assert {a.id for a in ACTIONS if a.keys} == set(EFFECTS) | SPECIAL | {a.id for a in guarded()}


async def begin_again(app: Console, pilot: Pilot[None]) -> None:
    """As after the start: the dashboard alone, nothing set, nothing typed, nothing said."""
    app.desk.cancel("the test begins again")
    await until(pilot, lambda: not app.desk.hushed)
    screen = front(app)
    if isinstance(screen, FramedScreen):
        screen.prompt.close(kept=False)
    while len(app.screen_stack) > 1:
        await app.pop_screen()
    dashboard = front(app)
    assert isinstance(dashboard, DashboardScreen)
    dashboard.prompt.close(kept=False)
    app.view = View(lane="other")
    app.timeline.resume()
    app._notice_until = 0.0
    app.source.calls.clear()  # type: ignore[attr-defined]
    app.redraw()
    await pilot.pause()


@pytest.mark.parametrize("place", list(Place))
async def test_each_key_does_what_the_table_says(place: Place) -> None:
    # Few rows, so that every reading screen has something to scroll.
    async with console(source(), size=(80, 24), hands=hands()) as (app, pilot):
        for where, ident, key in CASES:
            if where is place:
                await begin_again(app, pilot)
                await arrived(app, pilot, place)
                assert ident in TRUE_BEFORE or not EFFECTS[ident](app), (ident, key)
                await pilot.press(key)
                await pilot.pause()
                assert EFFECTS[ident](app), (ident, key, text_of(app))
                assert not app.faults.newest, (ident, key)


@pytest.mark.parametrize("place", list(Place))
async def test_q_quits_from_everywhere(place: Place) -> None:
    async with console(source(), hands=hands()) as (app, pilot):
        await arrived(app, pilot, place)
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running
        assert app.return_code == 0


@pytest.mark.parametrize("place", list(Place))
async def test_escape_never_quits_and_goes_back(place: Place) -> None:
    async with console(source(), hands=hands()) as (app, pilot):
        await arrived(app, pilot, place)
        await pilot.press(*["escape"] * 5)
        await pilot.pause()
        assert app.is_running
        assert isinstance(front(app), DashboardScreen)


def beyond(fixed: FixedSource) -> list[object]:
    """What the source was asked besides its start and the log of the lane in view."""
    return [call for call in fixed.calls if call not in ("start", ("follow", "other", "n1"))]


@pytest.mark.parametrize("place", list(Place))
async def test_guarded_keys_say_that_nothing_was_sent(place: Place) -> None:
    fixed, acting = source(), hands()
    async with console(fixed, hands=acting, read_only=True) as (app, pilot):
        for letter in [action.shown for action in guarded()]:
            await begin_again(app, pilot)
            await arrived(app, pilot, place)
            before = beyond(fixed)
            assert "Nothing was sent." not in text_of(app)
            await pilot.press(letter)
            await pilot.pause()
            assert "this console is read-only. Nothing was sent." in text_of(app), letter
            await pilot.press("y", "enter")
            await pilot.pause()
            assert beyond(fixed) == before, letter
            assert acting.calls == [], letter
            assert front(app).PLACE is place


async def test_digits_focus_the_pane_of_that_number() -> None:
    async with console() as (app, pilot):
        for number in range(1, 10):
            await pilot.press(str(number))
            await pilot.pause()
            assert app.view.focus == number
    async with console(FixedSource(pictures.station())) as (app, pilot):
        await pilot.press("2")
        await pilot.pause()
        assert app.view.focus == NUMBERS["containers"]
        await pilot.press("3")
        await pilot.pause()
        assert app.view.focus == NUMBERS["containers"]
        assert "no pane '3' here; there are: 1 nodes, 4 lane" in text_of(app)
        assert "2 containers, watchdog" in text_of(app)


async def test_panes_without_a_number_open_one_after_the_other_and_escape_closes_them() -> None:
    async with console() as (app, pilot):
        await pilot.press("5")
        screen = front(app)
        assert isinstance(screen, DashboardScreen)
        for name in ("containers", "watchdog", "drift", "containers"):
            await pilot.press("0")
            await pilot.pause()
            assert app.view.focus == NUMBERS[name]
            assert screen.places[name].width == 120 and "log" not in screen.places
        await pilot.press("escape")
        await pilot.pause()
        assert app.view.focus == 5 and "log" in screen.places and "containers" not in screen.places


async def test_a_pane_is_focused_by_its_name_and_explained_by_it() -> None:
    async with console() as (app, pilot):
        await pilot.press(":", *"focus wat", "tab", "enter")
        await pilot.pause()
        assert app.view.focus == NUMBERS["watchdog"]
        assert "would act if the engine died now" in text_of(app)
        await pilot.press(":", *"explain drift", "enter")
        await pilot.pause()
        assert "compared between the ranks" in text_of(app)


async def test_what_has_a_place_on_a_large_screen_is_not_opened_there() -> None:
    async with console(size=(200, 60)) as (app, pilot):
        screen = front(app)
        assert isinstance(screen, DashboardScreen)
        whole = dict(screen.places)
        for keys in ("9", "0", "0", "0"):
            await pilot.press(keys)
            await pilot.pause()
            name = {9: "wayback", 10: "containers", 11: "watchdog", 12: "drift"}[app.view.focus]
            assert (screen.places == whole) is (name != "containers")


async def test_focus_is_drawn_in_one_pane_only() -> None:
    async with console() as (app, pilot):
        await pilot.press("5")
        await pilot.pause()
        accent = app.get_css_variables()["accent"].lower()
        inks = {
            segment.text.strip()
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style and segment.style.color and segment.style.color.get_truecolor().hex == accent
        }
        assert any("decode" in text for text in inks)
        assert not any("nodes" in text or "KV pool" in text for text in inks)


async def test_zoom_gives_the_middle_and_gives_it_back() -> None:
    async with console() as (app, pilot):
        screen = front(app)
        assert isinstance(screen, DashboardScreen)
        whole = dict(screen.places)
        await pilot.press("6", "z")
        await pilot.pause()
        assert set(screen.places) == {"header", "lamps", "rail", "alarm", "next", "keys", "kv"}
        assert screen.drawn["kv"].size.width == 120
        await pilot.press("escape")
        await pilot.pause()
        assert screen.places == whole


async def test_letters_go_into_the_typed_line_not_to_the_actions() -> None:
    async with console() as (app, pilot):
        await pilot.press(":", *"qz")
        await pilot.pause()
        assert app.is_running and not app.view.zoomed
        await pilot.press("escape")
        await pilot.pause()
        assert front(app).prompt.kind == ""  # type: ignore[attr-defined]
        await pilot.press(":", *"quit", "enter")
        await pilot.pause()
        assert not app.is_running


async def test_a_command_with_an_argument_and_completion() -> None:
    async with console(FixedSource(two_lanes())) as (app, pilot):
        await pilot.press(":", *"zo", "tab", *"k", "tab", "enter")
        await pilot.pause()
        assert app.view.zoomed and app.view.focus == 6
        await pilot.press(":", *"lane d", "tab", "enter")
        await pilot.pause()
        assert app.view.lane == "dsv41"


async def test_a_wrong_command_says_the_way_out() -> None:
    async with console() as (app, pilot):
        await pilot.press(":", *"zom", "enter")
        await pilot.pause()
        assert "did you mean 'zoom'?" in text_of(app)
        await pilot.press(":", *"rollback", "enter")
        await pilot.pause()
        assert "this console is read-only. Nothing was sent." in text_of(app)


async def test_candidates_stand_above_the_typed_line() -> None:
    async with console() as (app, pilot):
        await pilot.press(":", "p")
        await pilot.pause()
        rows = text_of(app).splitlines()
        line = next(at for at, row in enumerate(rows) if row.strip() == ":p")
        assert "pause" in rows[line - 1] and "palette" in rows[line - 1]


async def test_the_filter_follows_typing_and_escape_clears_it() -> None:
    async with console() as (app, pilot):
        await pilot.press("/", *"n3")
        await pilot.pause()
        assert app.view.filter == "n3"
        await pilot.press("enter")
        await pilot.pause()
        nodes = "\n".join(text_of(app).splitlines()[6:13])
        assert "n3" in nodes and "n1" not in nodes
        await pilot.press("escape")
        await pilot.pause()
        assert app.view.filter == ""
        await pilot.press("/", *"n3", "escape")
        await pilot.pause()
        assert app.view.filter == ""


async def test_the_palette_lists_the_table_and_runs_what_is_chosen() -> None:
    async with console() as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "follow a log" in text_of(app))
        shown = text_of(app)
        await pilot.press(*"zoom")
        await until(pilot, lambda: "zoom the pane" in text_of(app) and "follow a log" not in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.view.zoomed)
        assert "Theme" not in shown and "Screenshot" not in shown


@pytest.mark.parametrize("action", [*guarded(), BY_ID["window"]], ids=lambda action: action.id)
async def test_a_guarded_action_of_the_palette_opens_its_strip_and_nothing_more(action: Action) -> None:
    made = hands()
    async with console(FixedSource(strips.under_way()), hands=made) as (app, pilot):
        await until(pilot, lambda: app.hands is not None)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: CommandPalette.is_open(app))
        await pilot.press(*("space" if char == " " else char for char in action.title))
        await until(pilot, lambda: action.title in text_of(app) and "follow a log" not in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.desk.open and app.desk.glance() is not None)
        await until(pilot, lambda: app.desk.glance().phase is Phase.TYPING)  # type: ignore[union-attr]
        assert "Esc cancels" in text_of(app) and made.calls == []
        await pilot.press("escape")
        await until(pilot, lambda: "CANCELLED by Esc. Nothing was sent." in text_of(app))
        assert made.calls == []


@pytest.mark.parametrize("line", ["stop", "rollback", "relaunch", "disarm", "window", "hand-over"])
async def test_a_command_opens_the_strip_of_its_key_and_nothing_more(line: str) -> None:
    made = hands()
    async with console(FixedSource(strips.under_way()), hands=made) as (app, pilot):
        await until(pilot, lambda: app.hands is not None)
        await pilot.press(":", *line, "enter")
        await until(pilot, lambda: app.desk.open)
        await until(pilot, lambda: app.desk.glance().phase is Phase.TYPING)  # type: ignore[union-attr]
        assert made.calls == []


async def test_the_dry_run_of_one_action_is_completed_and_shown() -> None:
    made = hands()
    async with console(FixedSource(strips.under_way()), hands=made) as (app, pilot):
        await until(pilot, lambda: app.hands is not None)
        await pilot.press(":", *"plan roll", "tab", "enter")
        await until(pilot, lambda: "roll back dsv41 on spark4" in text_of(app))
        assert isinstance(front(app), DryRunScreen) and made.calls == [] and not app.desk.open


async def test_a_user_keymap_moves_safe_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('zoom = "p"\npause = "z"\nhelp = ["f2", ","]\n')
    async with console(keymap=file) as (app, pilot):
        await pilot.press("p")
        assert app.view.zoomed and not app.timeline.paused
        await pilot.press("z")
        assert app.timeline.paused
        await pilot.press("comma")
        await pilot.pause()
        assert isinstance(front(app), HelpScreen)


async def test_a_wrong_user_keymap_is_said_and_not_used(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('zoom = "R"\n')
    async with console(keymap=file) as (app, pilot):
        assert "keymap not used: zoom: 'R' is the guarded key" in text_of(app)
        await pilot.press("z")
        assert app.view.zoomed


async def test_help_names_every_action_with_its_keys() -> None:
    from screens.help import help_rows

    for width in (36, 76, 116, 196):
        rows = help_rows(width)
        text = " ".join(" ".join(piece for _, piece, _ in row) for row in rows)
        for action in ACTIONS:
            assert " ".join(action.help.split()[:2]) in text, action.id


async def test_a_click_focuses_the_pane() -> None:
    async with console() as (app, pilot):
        await pilot.click(offset=(60, 24))
        await pilot.pause()
        assert app.view.focus == 5
