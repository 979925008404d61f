"""The strip over the real console: real keys, real clock, hands that only note what they were asked to do."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pictures
import pytest
import strips
from fixed import FixedSource, console, resize, text_of, until
from strips import CLOCK, FakeHands, acting, under_way
from textual import events
from textual.pilot import Pilot

from console.actions.plan import Plan, Verb
from console.actions.strip import By, Phase
from console.app import LaneswapApp
from console.execution.policy import Confirmation, Decision, Holder, How, Refused, grant, spend
from console.readings.health import LaneState, LaneVerdict
from console.readings.ledger import Kind
from console.snapshot import Snapshot
from screens import acting as acting_screen
from screens import strip as strip_screen
from widgets.glance import StripGlance

SIZES = [(80, 24), (120, 40), (200, 60)]
Console = tuple[LaneswapApp, Pilot[None], FakeHands]


@asynccontextmanager
async def acts(
    hands: FakeHands | None = None, picture: Any = None, size: tuple[int, int] = (120, 40), **options: Any
) -> AsyncIterator[Console]:
    """A console that acts, once its hands are there."""
    made = hands or FakeHands()
    async with console(FixedSource(picture or under_way()), size=size, hands=made, **options) as (app, pilot):
        await until(pilot, lambda: app.hands is not None)
        yield app, pilot, made


def strip_of(app: LaneswapApp) -> StripGlance:
    found = app.desk.glance()
    assert found is not None, text_of(app)
    return found


async def live(app: LaneswapApp, pilot: Pilot[None]) -> StripGlance:
    """The strip after its dead time."""
    await until(pilot, lambda: app.desk.glance() is None or strip_of(app).phase in (Phase.ARMED, Phase.TYPING))
    return strip_of(app)


async def rested(app: LaneswapApp, pilot: Pilot[None]) -> None:
    """Press nothing until keys count again after a strip."""
    await until(pilot, lambda: not app.desk.hushed)


async def said(app: LaneswapApp, pilot: Pilot[None], words: str) -> None:
    await until(pilot, lambda: words in text_of(app))


# --- going and cancelling ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
async def test_the_letter_goes_once_and_the_policy_gives_leave_for_it(size: tuple[int, int]) -> None:
    async with acts(size=size) as (app, pilot, hands):
        await pilot.press("S")
        strip = await live(app, pilot)
        shown = text_of(app)
        for words in ("STOP", "dsv41", "stopped", "3 running requests", "0m23s", "any other key cancels", strip.letter):
            assert words in shown, words
        await pilot.press(strip.letter, strip.letter)
        await said(app, pilot, "done: act")
        assert len(hands.calls) == 1 and app.desk.glance() is None
        _, verb, confirmation = hands.calls[0]
        assert (verb, confirmation.how) == ("stop", How.LETTER)
        plan, decision = await hands.plan("dsv41", Verb.STOP)
        leave = grant(decision, confirmation, plan.id, confirmation.at)
        spend(leave, plan.id, Verb.STOP, "dsv41", confirmation.at, decision.epoch)


@pytest.mark.parametrize("size", SIZES)
async def test_another_key_cancels_and_the_next_row_says_so(size: tuple[int, int]) -> None:
    async with acts(size=size) as (app, pilot, hands):
        await pilot.press("S")
        await live(app, pilot)
        await pilot.press("j" if strip_of(app).letter != "j" else "k")
        await said(app, pilot, "Nothing was sent.")
        assert "CANCELLED by " in text_of(app)
        assert hands.calls == [] and app.view.scroll.get(1) is None, "the key was the strip's alone"


@pytest.mark.parametrize("size", SIZES)
async def test_a_countdown_that_nobody_touches_goes_by_itself(size: tuple[int, int]) -> None:
    async with acts(size=size) as (app, pilot, hands):
        await pilot.press("B")
        strip = await live(app, pilot)
        assert strip.by is By.COUNTDOWN and strip.seconds == 3.0
        shown = text_of(app)
        for words in ("ROLL BACK", "9f2c1a7", "nothing, down for", "in 17m34s", "goes by itself in", "cancels"):
            assert words in shown, words
        assert "if you do nothing: this way back goes in" in shown
        await said(app, pilot, "done: act")
        assert [(call[1], call[2].how, call[2].counted) for call in hands.calls] == [("rollback", How.COUNTDOWN, 3.0)]


@pytest.mark.parametrize("key", ["D", "S", "R"])
async def test_only_a_rollback_counts_down(key: str) -> None:
    async with acts() as (app, pilot, hands):
        await pilot.press(key)
        strip = await live(app, pilot)
        assert strip.by is By.LETTER and not strip.counts
        assert "never by itself" in text_of(app) and "nothing goes, it waits for its letter" in text_of(app)
        await pilot.pause(1.5)
        assert app.desk.open and hands.calls == []


async def test_a_serving_lane_counts_ten_seconds() -> None:
    hands = FakeHands(replace(strips.IN_WINDOW, serving=True))
    async with acts(hands, under_way(pictures.spark4())) as (app, pilot, _):
        await pilot.press("B")
        assert (await live(app, pilot)).seconds == 10.0


async def test_the_watchdog_key_arms_what_is_off_and_disarms_what_is_armed() -> None:
    async with acts(picture=under_way()) as (app, pilot, _):
        await pilot.press("D")
        assert (await live(app, pilot)).heading == "ARM THE WATCHDOG OF"
    async with acts(picture=under_way(pictures.spark4(), debts=())) as (app, pilot, _):
        await pilot.press("D")
        assert (await live(app, pilot)).heading == "DISARM THE WATCHDOG OF"


@pytest.mark.parametrize("size", SIZES)
async def test_outside_a_window_the_lanes_name_is_typed(size: tuple[int, int]) -> None:
    async with acts(FakeHands(strips.NO_WINDOW), size=size) as (app, pilot, hands):
        await pilot.press("B")
        await live(app, pilot)
        assert "type the lane name" in text_of(app) and "Esc cancels" in text_of(app)
        await pilot.press(*"dsv4", "enter")
        await said(app, pilot, "that is not dsv41")
        assert hands.calls == []
        await pilot.press("1", "enter")
        await said(app, pilot, "done: act")
        assert hands.calls[0][2].how is How.NAME and hands.calls[0][2].name == "dsv41"


async def test_break_glass_wants_name_and_reason_and_says_unledgered() -> None:
    async with acts(FakeHands(strips.GLASS)) as (app, pilot, hands):
        await pilot.press("B")
        await live(app, pilot)
        assert "BREAK-GLASS" in text_of(app) and "UNLEDGERED" in text_of(app)
        await pilot.press(*"dsv41", "enter")
        await said(app, pilot, "type the reason")
        await pilot.press(*"head", "space", *"is", "space", *"gone", "enter")
        await said(app, pilot, "done: act")
        assert hands.calls[0][2].reason == "head is gone"


async def test_what_the_policy_denies_opens_no_strip_and_says_why() -> None:
    situation = replace(strips.NO_WINDOW, holder=Holder.OTHER, holder_name="ben since 21:40")
    async with acts(FakeHands(situation)) as (app, pilot, hands):
        await pilot.press("S")
        await said(app, pilot, "DENIED: dsv41 is held by ben since 21:40")
        assert not app.desk.open and hands.calls == []


async def test_a_plan_that_is_impossible_says_why() -> None:
    hands = FakeHands()
    hands.plans[Verb.ROLLBACK] = lambda: replace(strips.way_back(), steps=(), refused="the old snapshot is gone")
    async with acts(hands) as (app, pilot, _):
        await pilot.press("B")
        await said(app, pilot, "DENIED: the old snapshot is gone. Nothing was sent.")


# --- what only cancels ------------------------------------------------------------------------------------------------


async def test_a_paste_a_click_and_a_resize_cancel() -> None:
    async with acts() as (app, pilot, hands):
        for what, words in (("paste", "CANCELLED by a paste"), ("click", "by a click"), ("resize", "was resized")):
            await pilot.press("B")
            strip = await live(app, pilot)
            if what == "paste":
                app.post_message(events.Paste(strip.letter))
            elif what == "click":
                # Pilot's own click goes past the app, to which a driver brings every event.
                app.post_message(events.MouseDown(None, 60, 12, 0, 0, 1, False, False, False))
                app.post_message(events.MouseUp(None, 60, 12, 0, 0, 1, False, False, False))
            else:
                await resize(app, pilot, (110, 38))
            await said(app, pilot, words)
            assert not app.desk.open, what
            await rested(app, pilot)
        assert hands.calls == [] and app.view.focus == 1, "the click focused nothing either"


async def test_focus_and_mouse_moves_are_no_keys() -> None:
    async with acts() as (app, pilot, _):
        await pilot.press("S")
        await live(app, pilot)
        app.post_message(events.AppBlur())
        app.post_message(events.AppFocus())
        await pilot.hover(offset=(40, 30))
        await pilot.pause(0.3)
        assert app.desk.open


async def test_keys_before_the_plan_is_there_cancel_but_its_own() -> None:
    hands, gate = FakeHands(), asyncio.Event()

    class Slow(FakeHands):
        async def plan(self, lane: str, verb: Verb) -> tuple[Plan, Decision]:
            await gate.wait()
            return await hands.plan(lane, verb)

    async with acts(Slow()) as (app, pilot, slow):
        await pilot.press("B")
        await said(app, pilot, "is being worked out")
        await pilot.press("B")
        assert app.desk.open
        await pilot.press("k")
        await said(app, pilot, "CANCELLED by k. Nothing was sent.")
        gate.set()
        await pilot.pause(0.2)
        assert not app.desk.open and slow.calls == []


async def test_a_plan_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strip_screen, "PLAN_LIMIT", 0.2)

    class Stuck(FakeHands):
        async def plan(self, lane: str, verb: Verb) -> tuple[Plan, Decision]:
            await asyncio.Event().wait()
            raise AssertionError

    async with acts(Stuck()) as (app, pilot, hands):
        await pilot.press("B")
        await said(app, pilot, "CANCELLED: no plan within")
        assert not app.desk.open and hands.calls == []


async def test_a_fault_while_planning_is_an_alarm_and_sends_nothing() -> None:
    class Broken(FakeHands):
        async def plan(self, lane: str, verb: Verb) -> tuple[Plan, Decision]:
            raise RuntimeError("no plan today")

    async with acts(Broken()) as (app, pilot, _):
        await pilot.press("B")
        await said(app, pilot, "the plan could not be made, see the alarm line. Nothing was sent.")
        assert "no plan today" in app.faults.newest and not app.desk.open


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Refused("the plan came out different"), "REFUSED: the plan came out different. Nothing was sent."),
        (
            Refused("it may still act", "relaunch by ana was ended; stop did not begin", half=True),
            "REFUSED: relaunch by ana was ended; stop did not begin: HALF DONE, it may still act",
        ),
        (RuntimeError("disk full"), "stop dsv41: outcome unknown, disk full; the ledger (e) says more"),
    ],
)
async def test_a_refusal_and_a_fault_while_acting_are_told_apart(error: Exception, words: str) -> None:
    class Broken(FakeHands):
        async def act(self, plan: Plan, decision: Decision, confirmation: Confirmation) -> str:
            raise error

    async with acts(Broken()) as (app, pilot, _):
        await pilot.press("S")
        await pilot.press((await live(app, pilot)).letter)
        await said(app, pilot, words)
        assert ("disk full" in app.faults.newest) is isinstance(error, RuntimeError)


@pytest.mark.parametrize("size", SIZES)
async def test_what_became_of_an_earlier_strip_never_stands_beside_one_that_goes(size: tuple[int, int]) -> None:
    answered = asyncio.Event()

    class Slow(FakeHands):
        async def act(self, plan: Plan, decision: Decision, confirmation: Confirmation) -> str:
            await answered.wait()
            return await super().act(plan, decision, confirmation)

    async with acts(Slow(), size=size) as (app, pilot, hands):
        await pilot.press("S", "escape")
        await said(app, pilot, "CANCELLED by ")
        await rested(app, pilot)
        await pilot.press("S")
        await pilot.press((await live(app, pilot)).letter)
        await until(pilot, lambda: not app.desk.open)
        assert "stop dsv41: confirmed, being sent" in text_of(app) and "CANCELLED" not in text_of(app)
        answered.set()
        await said(app, pilot, "done: act")
        assert "being sent" not in text_of(app) and len(hands.calls) == 1


@pytest.mark.parametrize("size", SIZES)
async def test_a_key_right_after_a_strip_that_went_is_said_to_be_dropped(size: tuple[int, int]) -> None:
    """Behind what became of the strip, not in its place; and gone again by itself."""
    async with acts(size=size) as (app, pilot, hands):
        await pilot.press("S")
        letter = (await live(app, pilot)).letter
        await pilot.press(letter, "z")
        await said(app, pilot, "z was dropped, as keys are until none came for 1 s.")
        await said(app, pilot, "done: act")
        assert not app.view.zoomed and len(hands.calls) == 1
        await until(pilot, lambda: "was dropped" not in text_of(app))
        await pilot.press("z")
        assert app.view.zoomed


def flips(after: int, flipped: Snapshot) -> Any:
    """A source whose picture is another one from some snapshot on."""
    before = under_way()
    state = {"flip": False}

    def taken(_: int) -> Snapshot:
        return flipped if state["flip"] else before

    return taken, state


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("state", "dsv41 was down and is serving"),
        ("lease", "the lease was ana on ana@desk 4711 and is ben on ben@lap 2"),
        ("operation", "the newest operation was"),
        ("gone", "dsv41 was down and is gone"),
    ],
)
async def test_a_flip_of_what_the_strip_shows_cancels(what: str, words: str) -> None:
    changed = under_way()
    if what == "state":
        lane = replace(changed.lanes[0], verdict=LaneVerdict(LaneState.SERVING, "it serves"))
        changed = replace(changed, lanes=(lane,))
    elif what == "lease":
        changed = under_way(lease=replace(strips.LEASE, operator="ben", console="ben@lap 2"))
    elif what == "operation":
        changed = under_way(operation=replace(strips.SWITCH, id="20261129T220000Z-stop-ffffff"))
    else:
        changed = replace(changed, lanes=(replace(changed.lanes[0], name="other"),))
    taken, state = flips(0, changed)
    async with acts(picture=taken) as (app, pilot, hands):
        await pilot.press("B")
        await live(app, pilot)
        state["flip"] = True
        await said(app, pilot, f"CANCELLED: {words}")
        assert hands.calls == []


async def test_serving_and_idle_are_one_state_to_the_strip() -> None:
    changed = under_way(pictures.spark4())
    idle = replace(changed.lanes[0], verdict=LaneVerdict(LaneState.IDLE, "no work"))
    state = {"flip": False}
    source = lambda _: replace(changed, lanes=(idle,)) if state["flip"] else changed  # noqa: E731
    async with acts(picture=source) as (app, pilot, _):
        await pilot.press("S")
        await live(app, pilot)
        state["flip"] = True
        await pilot.pause(0.6)
        assert app.desk.open


async def test_a_plan_that_comes_out_different_meanwhile_cancels() -> None:
    async with acts() as (app, pilot, hands):
        await pilot.press("S")
        await live(app, pilot)
        hands.plans[Verb.STOP] = lambda: strips.stopping(facts=(("image", "sha256:1"),))
        await said(app, pilot, "CANCELLED: the plan was")
        assert hands.calls == []


async def test_a_lease_lost_meanwhile_cancels_by_the_policys_words() -> None:
    async with acts() as (app, pilot, hands):
        await pilot.press("S")
        await live(app, pilot)
        hands.situation = replace(strips.IN_WINDOW, holder=Holder.OTHER, holder_name="ben")
        await said(app, pilot, "CANCELLED: dsv41 is held by ben")
        assert hands.calls == []


AWAY = {
    "caught up": "the screen stood still for",
    "away": "the console was away from its terminal",
    "slept": "the machine slept, or its clock was set",
    "lost": "the terminal is lost",
}


@pytest.mark.parametrize("what", AWAY)
async def test_a_terminal_or_machine_that_was_away_cancels(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with acts() as (app, pilot, hands):
        await pilot.press("B")
        await live(app, pilot)
        if what == "slept":
            parting = strip_screen._parting
            monkeypatch.setattr(strip_screen, "_parting", lambda: parting() + 3600)
        elif what == "caught up":
            monkeypatch.setattr("console.actions.strip.GAP_S", 1.0)
            monkeypatch.setattr(app._driver, "caught_up", False, raising=False)
            await pilot.pause(1.3)
            left = strip_of(app).left
            assert left > 0.0 and hands.calls == [], "what is not painted does not count"
            monkeypatch.setattr(app._driver, "caught_up", True, raising=False)
        else:
            monkeypatch.setattr(app._driver, what, 7 if what == "away" else True, raising=False)
        await until(pilot, lambda: not app.desk.open)
        await said(app, pilot, f"CANCELLED: {AWAY[what]}")
        assert hands.calls == []


async def test_a_letter_that_waited_in_a_stall_never_confirms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made as the loop began to stand still, brought before the next tick: nobody saw what the strip said meanwhile."""
    async with acts() as (app, pilot, hands):
        await pilot.press("S")
        strip = await live(app, pilot)
        monkeypatch.setattr("console.actions.strip.GAP_S", 1.0)
        key = events.Key(strip.letter, strip.letter)
        time.sleep(1.3)  # noqa: ASYNC251 - the loop is to stand still
        assert app.desk.take(key)
        await said(app, pilot, "CANCELLED: the screen stood still for")
        assert hands.calls == []


# --- what was typed for it and comes late -----------------------------------------------------------------------------


async def test_what_is_still_typed_when_a_strip_cancels_by_itself_acts_on_nothing() -> None:
    changed = under_way()
    lane = replace(changed.lanes[0], verdict=LaneVerdict(LaneState.SERVING, "it serves"))
    taken, state = flips(0, replace(changed, lanes=(lane,)))
    async with acts(FakeHands(strips.NO_WINDOW), taken) as (app, pilot, hands):
        await pilot.press("B")
        await live(app, pilot)
        await pilot.press(*"ds")
        state["flip"] = True
        await said(app, pilot, "CANCELLED: dsv41 was down and is serving")
        for key in (*"v41", "enter", "q", "d", "S", "w", "ctrl+p", "z"):
            await pilot.press(key)
            assert app.is_running and not app.desk.open and front_is_dashboard(app), key
        await said(app, pilot, "CANCELLED: dsv41 was down and is serving. Nothing was sent. Keys are dropped")
        assert hands.calls == [] and not app.view.zoomed
        await rested(app, pilot)
        await pilot.press("z")
        assert app.view.zoomed, "after a second without a key they count again"


async def test_what_is_still_typed_when_it_is_denied_acts_on_nothing() -> None:
    async with acts(FakeHands(replace(strips.NO_WINDOW, holder=Holder.OTHER, holder_name="ben"))) as (app, pilot, _):
        await pilot.press("S")
        await said(app, pilot, "DENIED: dsv41 is held by ben")
        await pilot.press(*"d", "q", "B")
        assert app.is_running and not app.desk.open and front_is_dashboard(app)


async def test_what_follows_the_name_and_enter_acts_on_nothing() -> None:
    async with acts(FakeHands(strips.NO_WINDOW)) as (app, pilot, hands):
        await pilot.press("S")
        await live(app, pilot)
        await pilot.press(*"dsv41", "enter", "enter", "q", "d")
        await said(app, pilot, "done: act")
        assert app.is_running and front_is_dashboard(app) and len(hands.calls) == 1


def front_is_dashboard(app: LaneswapApp) -> bool:
    return len(app.screen_stack) == 1


# --- what it is part of -----------------------------------------------------------------------------------------------


async def test_while_it_is_open_no_other_key_does_anything() -> None:
    async with acts() as (app, pilot, _):
        for key in ("q", "ctrl+c", "ctrl+z", "ctrl+p", ":", "/", "?", "tab", "D"):
            await pilot.press("B")
            await until(pilot, lambda: app.desk.glance() is not None)
            await pilot.press(key)
            await said(app, pilot, "CANCELLED by")
            assert app.is_running and not app.desk.open
            await rested(app, pilot)
            app._notice_until = 0.0
            app.redraw()
            await pilot.pause()


async def test_it_opens_from_every_screen_and_by_its_command() -> None:
    async with acts() as (app, pilot, hands):
        for keys in (("?",), ("l",), ("e",), ("d",), (":", *"rollback", "enter")):
            await pilot.press(*keys)
            if keys[0] != ":":
                await pilot.press("B")
            strip = await live(app, pilot)
            assert strip.heading == "ROLL BACK" and "ROLL BACK" in text_of(app)
            await pilot.press("escape")
            await until(pilot, lambda: not app.desk.open)
            await rested(app, pilot)
            await pilot.press("escape")
            await pilot.pause()
        assert hands.calls == []


async def test_a_held_picture_goes_on_first() -> None:
    async with acts() as (app, pilot, _):
        await pilot.press("p")
        assert app.timeline.paused
        await pilot.press("S")
        await live(app, pilot)
        assert not app.timeline.paused


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (60, 16), (79, 23), (300, 100)])
async def test_on_any_terminal_it_says_what_and_how_to_cancel(size: tuple[int, int]) -> None:
    async with acts(size=size) as (app, pilot, hands):
        await pilot.press("S")
        strip = await live(app, pilot)
        await pilot.pause()
        shown = text_of(app)
        assert "STOP" in shown and strip.letter in shown and not app.faults.newest
        await pilot.press(strip.letter)
        await until(pilot, lambda: bool(hands.calls))


async def test_the_strip_alone_is_in_the_accent_and_the_keys_are_dim() -> None:
    async with acts() as (app, pilot, _):
        await pilot.press("B")
        await live(app, pilot)
        app.tick()
        await pilot.pause()
        accent = app.get_css_variables()["accent"].lower()
        rows = [
            y
            for y, strip in enumerate(app.screen._compositor.render_strips())
            for segment in strip
            if segment.style and segment.style.color and segment.style.color.get_truecolor().hex == accent
        ]
        assert rows and all(21 <= y <= 36 for y in rows)
        assert f"every key but {strip_of(app).letter} cancels" in text_of(app)


# --- window, hand-over, ledger, dry run -------------------------------------------------------------------------------


async def typed(pilot: Pilot[None], *answers: str) -> None:
    for answer in answers:
        await pilot.press(*("space" if char == " " else char for char in answer), "enter")
        await pilot.pause()


async def test_a_window_is_opened_by_name_reason_and_deadline() -> None:
    async with acts(FakeHands(strips.NO_WINDOW), pictures.spark4()) as (app, pilot, hands):
        await pilot.press("w")
        await live(app, pilot)
        for words in ("OPEN A WINDOW FOR", "9f2c1a7", "B has this way back, frozen", strips.way_back().id):
            assert words in text_of(app), words
        await typed(pilot, "dsv41", "switch to 1bae0e1")
        await said(app, pilot, "type the deadline")
        await typed(pilot, "soon")
        await said(app, pilot, "minutes, such as 25 or 1h30m")
        await pilot.press(*["backspace"] * 4)
        await typed(pilot, "3")
        await said(app, pilot, "at least 5 minutes are needed")
        await pilot.press("backspace")
        await typed(pilot, "45")
        await said(app, pilot, "done: open")
        assert hands.calls == [("open", "dsv41", "switch to 1bae0e1", 2700.0, "dsv41")]


@pytest.mark.parametrize("size", SIZES)
async def test_enter_alone_takes_the_deadline_that_the_field_shows(size: tuple[int, int]) -> None:
    async with acts(FakeHands(strips.NO_WINDOW), pictures.spark4(), size=size) as (app, pilot, hands):
        await pilot.press("w")
        await live(app, pilot)
        await typed(pilot, "dsv41", "switch")
        await said(app, pilot, "type the deadline (3 of 3)  25m")
        assert "Enter alone takes 25m" in text_of(app)
        await typed(pilot, "")
        await said(app, pilot, "done: open")
        assert hands.calls == [("open", "dsv41", "switch", 1500.0, "dsv41")]


@pytest.mark.parametrize("size", SIZES)
async def test_a_window_without_a_way_back_says_so_and_is_asked_for_as_such(size: tuple[int, int]) -> None:
    hands = FakeHands(strips.NO_WINDOW)
    hands.plans[Verb.ROLLBACK] = lambda: replace(strips.way_back(), steps=(), refused="the container was removed")
    async with acts(hands, pictures.spark4(), size=size) as (app, pilot, _):
        await pilot.press("w")
        await live(app, pilot)
        shown = " ".join(re.sub(r"\s+", " ", text_of(app)).split())
        for words in ("OPEN A WINDOW FOR", "no way back: the container was removed;", "it opens without a way back"):
            assert words in shown, words
        await typed(pilot, "dsv41", "switch", "")
        await said(app, pilot, "done: open")
        assert hands.calls == [("open", "dsv41", "switch", 1500.0, "dsv41", "no way back")]


async def test_a_way_back_that_comes_up_while_a_window_without_one_is_asked_for_cancels() -> None:
    hands = FakeHands(strips.NO_WINDOW)
    hands.plans[Verb.ROLLBACK] = lambda: replace(strips.way_back(), steps=(), refused="the container was removed")
    async with acts(hands, pictures.spark4()) as (app, pilot, _):
        await pilot.press("w")
        await live(app, pilot)
        hands.plans[Verb.ROLLBACK] = strips.way_back
        await said(app, pilot, "CANCELLED: the plan was")
        assert hands.calls == []


async def test_an_open_window_is_closed_by_name_and_says_what_is_owed() -> None:
    async with acts() as (app, pilot, hands):
        await pilot.press("w")
        await live(app, pilot)
        for words in ("CLOSE THE WINDOW OF", "switch to 1bae0e1", "watchdog is still off, for 1m"):
            assert words in text_of(app), words
        await typed(pilot, "dsv41")
        await said(app, pilot, "done: close")
        assert hands.calls == [("close", "dsv41", "dsv41")]


TAKEN = ("take over", "dsv41", "dsv41", "l1")


@pytest.mark.parametrize(
    ("holder", "extra", "heading", "words", "answer", "call"),
    [
        (Holder.ME, {}, "HAND OVER", "it stays yours until they accept", "ben", ("offer", "dsv41", "ben")),
        (Holder.OTHER, {"operator": "ben", "offered_to": "ana"}, "TAKE OVER, AS OFFERED,", "ben on ana@desk 4711",
         "dsv41", ("accept", "dsv41")),
        (Holder.OTHER, {"operator": "ben"}, "TAKE OVER", "ben still works on it: ask first", "dsv41", TAKEN),
        (Holder.OTHER, {"console": "ana@lap 2"}, "TAKE OVER", "that console of yours may still act", "dsv41", TAKEN),
        (Holder.EXPIRED, {"operator": "ben", "renewed": CLOCK - 900}, "TAKE OVER", "ran out", "dsv41", TAKEN),
        (Holder.ME, {"renewed": CLOCK - 900}, "TAKE OVER", "ran out", "dsv41", TAKEN),
    ],
)  # fmt: skip
async def test_handing_over(
    holder: Holder, extra: dict[str, Any], heading: str, words: str, answer: str, call: tuple[str, ...]
) -> None:
    hands = FakeHands(replace(strips.IN_WINDOW, holder=holder))
    async with acts(hands, under_way(lease=replace(strips.LEASE, **extra))) as (app, pilot, _):
        await pilot.press("H")
        assert (await live(app, pilot)).heading == heading
        assert words in text_of(app)
        await typed(pilot, answer)
        await said(app, pilot, f"done: {call[0]}")
        assert hands.calls == [call]


async def test_nothing_is_handed_over_where_nobody_holds_the_lane() -> None:
    async with acts(picture=under_way(lease=None, window=None)) as (app, pilot, hands):
        await pilot.press("H")
        await said(app, pilot, "DENIED: nobody holds dsv41")
        assert hands.calls == []


async def test_the_ledger_shows_the_lanes_records_and_finds_words_in_them() -> None:
    hands = FakeHands()
    hands.records = (
        strips.record(Kind.INTENT, "stop dsv41", plan="7f3a01c2be94"),
        strips.record(Kind.TAKEOVER, "ben takes over from ana", operator="ben"),
        strips.record(Kind.NOTE, "of another lane", lane="station"),
    )
    async with acts(hands) as (app, pilot, _):
        await pilot.press("e")
        await said(app, pilot, "ben takes over from ana")
        assert "plan 7f3a01c2be94" in text_of(app) and "of another lane" not in text_of(app)
        await pilot.press("/", *"takeover", "enter", "m")
        await said(app, pilot, "1 records only")


async def test_the_dry_run_shows_every_plan_and_sends_nothing() -> None:
    async with acts(size=(200, 60)) as (app, pilot, hands):
        await pilot.press("d")
        await said(app, pilot, "relaunch dsv41 on spark4")
        for words in ("roll back dsv41 on spark4", "goes by", "undo", "S stops it", "rebuild rows on n3, ≈8m00s"):
            assert words in text_of(app), words
        await pilot.press("escape", ":", *"plan stop", "enter")
        await said(app, pilot, "stop dsv41 on spark4")
        assert "roll back dsv41" not in text_of(app)
        assert hands.calls == []


async def test_a_reading_console_has_no_strip() -> None:
    async with acts(read_only=True) as (app, pilot, hands):
        for key in ("D", "S", "R", "B", "H", "w"):
            await pilot.press(key)
            await said(app, pilot, "this console is read-only. Nothing was sent.")
            assert not app.desk.open
        assert hands.calls == [] and hands.planned == 0


async def test_q_that_would_cut_what_runs_in_this_console_wants_a_second_q() -> None:
    hands = FakeHands()
    hands.carried = ("dsv41",)
    async with acts(hands) as (app, pilot, _):
        await pilot.press("q")
        await said(app, pilot, "q again cuts dsv41 after the step under way (HALF DONE): this console carries it out")
        assert app._exit is False
        app._leave_until = time.monotonic() - 0.1
        await pilot.press("q")
        await pilot.pause()
        assert app._exit is False, "a second one that comes late is a first one"
        await pilot.press("q")
        await until(pilot, lambda: app._exit is True)


async def test_q_leaves_at_once_where_nothing_is_left() -> None:
    async with acts(picture=pictures.spark4()) as (app, pilot, _):
        await pilot.press("q")
        await until(pilot, lambda: app._exit is True)


async def test_what_began_makes_room_for_the_forecast_as_soon_as_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    async with acts() as (app, pilot, _):
        app.say("rollback began: operation x", begun="dsv41")
        await said(app, pilot, "rollback began: operation x")
        app._said_at = time.monotonic() - 2.1
        await said(app, pilot, "if you do nothing: stop done 21:55:21")
        app.say("stop began: operation y", begun="other")
        app._said_at = time.monotonic() - 2.1
        await pilot.pause(0.6)
        assert "stop began: operation y" in text_of(app), "not seen yet: the notice is all there is"


def test_acting_of_a_test_is_what_the_pictures_say() -> None:
    assert acting().window is strips.WINDOW


async def test_q_asks_once_where_a_window_stays_open() -> None:
    async with acts() as (app, pilot, _):
        await pilot.press("q")
        await said(app, pilot, "q again leaves: ")
        assert app.return_code is None and app.is_running
        await pilot.press("q")
        await until(pilot, lambda: app.return_code == 0)


async def test_the_ledger_is_read_again_while_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting_screen, "LEDGER_EVERY_S", 0.05)
    hands = FakeHands()
    hands.records = (strips.record(Kind.NOTE, "the first"),)
    async with acts(hands) as (app, pilot, _):
        await pilot.press("e")
        await said(app, pilot, "the first")
        hands.records = (*hands.records, strips.record(Kind.NOTE, "written by another console", seq=2))
        await said(app, pilot, "written by another console")
        assert "following" in text_of(app)


def later(seconds: float, **extra: Any) -> Snapshot:
    """The picture so many seconds on, by the head's clock."""
    return under_way(clock=CLOCK + seconds, **extra)


@pytest.mark.parametrize(
    ("key", "before", "told", "aged"),
    [
        ("w", {}, "deadline in 18m48s", "deadline in 18m28s"),
        ("H", {"operator": "ben", "console": "ben@lap 2"}, "alive, renewed 0m04s ago", "alive, renewed 0m24s ago"),
    ],
)
async def test_ages_that_a_strip_tells_go_on(key: str, before: dict[str, Any], told: str, aged: str) -> None:
    held = replace(strips.LEASE, **before)
    now = {"picture": under_way(lease=held)}
    hands = FakeHands(replace(strips.IN_WINDOW, holder=Holder.OTHER))
    async with acts(hands, lambda _: now["picture"]) as (app, pilot, _):
        await pilot.press(key)
        await live(app, pilot)
        assert told in text_of(app), text_of(app)
        now["picture"] = later(20, lease=held)
        await said(app, pilot, aged)
        assert app.desk.open


@pytest.mark.parametrize(
    ("key", "seconds", "words"),
    [
        ("w", 1200, "the window was within its deadline and is overdue"),
        ("H", 70, "the lease of ben was alive and is run out"),
    ],
)
async def test_a_strip_over_a_lease_or_a_window_cancels_when_it_runs_out(key: str, seconds: float, words: str) -> None:
    held = replace(strips.LEASE, operator="ben", console="ben@lap 2")
    now = {"picture": under_way(lease=held)}
    hands = FakeHands(replace(strips.IN_WINDOW, holder=Holder.OTHER))
    async with acts(hands, lambda _: now["picture"]) as (app, pilot, _):
        await pilot.press(key)
        await live(app, pilot)
        now["picture"] = later(seconds, lease=held)
        await said(app, pilot, f"CANCELLED: {words}")
        assert hands.calls == []


async def test_what_was_decided_is_not_replaced_under_a_strip() -> None:
    """What is carried out is what was in front of the operator."""
    async with acts() as (app, pilot, hands):
        await pilot.press("S")
        await live(app, pilot)
        shown = app.desk._ready
        planned = hands.planned
        await until(pilot, lambda: hands.planned > planned + 1)
        assert app.desk._ready is shown
