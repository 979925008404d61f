"""The strip as a state machine: what lets it go, and that nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from console.actions.catalog import GUARDED_KEYS, Place, available
from console.actions.plan import Plan, Verb
from console.actions.strip import (
    CREDIT_S,
    GAP_S,
    HUSH_S,
    LETTERS,
    LONGEST,
    By,
    Hush,
    Kind,
    Phase,
    Question,
    Strip,
    seconds_of,
)
from console.execution import policy
from console.execution.policy import Holder, Situation, decide
from screens.errands import asked_for, confirmation_of

TICK = 0.1
SHOWS = (("dsv41", "serving"), ("the plan", "4c19e0b27d5a"))
NAME = Question("lane name", Kind.EXACT, "dsv41")
REASON = Question("reason", Kind.TEXT, least=3)


def opened(by: By = By.LETTER, *questions: Question, seconds: float = 3.0, key: str = "B") -> Strip:
    """A strip painted for the first time at 100.0."""
    strip = Strip(key, "k")
    strip.planned(by, SHOWS, seconds=seconds if by is By.COUNTDOWN else 0.0, questions=questions)
    strip.painted(100.0)
    return strip


def ticks(strip: Strip, start: float, seconds: float, every: float = TICK) -> float:
    """Paint it for so long; the time afterwards."""
    count = round(seconds / every)
    for at in range(1, count + 1):
        strip.tick_painted(start + at * every)
    return start + count * every


def armed(by: By = By.LETTER, *questions: Question, seconds: float = 3.0) -> tuple[Strip, float]:
    """A strip right after its dead time."""
    strip = opened(by, *questions, seconds=seconds)
    return strip, ticks(strip, 100.0, 0.7)


def type_in(strip: Strip, text: str, at: float) -> None:
    for char in text:
        strip.key(char, at)
    strip.key("enter", at)


# --- the letter -------------------------------------------------------------------------------------------------------


def test_the_letter_made_after_the_dead_time_goes() -> None:
    strip, now = armed()
    assert strip.phase is Phase.ARMED
    strip.key("k", now + 0.01)
    assert (strip.phase, strip.went) == (Phase.GO, By.LETTER)


def test_any_other_key_cancels_and_says_so() -> None:
    strip, now = armed()
    strip.key("j", now + 0.01)
    assert strip.phase is Phase.CANCELLED
    assert strip.why == "CANCELLED by j. Nothing was sent."


@pytest.mark.parametrize(
    ("name", "words"),
    [("escape", "Esc"), ("enter", "Enter"), (" ", "space"), ("ctrl+c", "ctrl+c"), ("B", "B"), ("K", "K")],
)
def test_no_special_key_is_the_letter(name: str, words: str) -> None:
    strip, now = armed()
    strip.key(name, now + 0.01)
    assert strip.why == f"CANCELLED by {words}. Nothing was sent."


@pytest.mark.parametrize("early", [0.0, 0.3, 0.6])
def test_in_the_dead_time_the_letter_itself_cancels(early: float) -> None:
    strip = opened()
    now = ticks(strip, 100.0, early) if early >= TICK else 100.0
    strip.key("k", now)
    assert strip.why == "CANCELLED by k. Nothing was sent."


def test_before_it_was_painted_every_key_but_its_own_cancels() -> None:
    strip = Strip("B", "k")
    strip.key("B", 99.0)
    assert strip.phase is Phase.PLANNING
    strip.planned(By.LETTER, SHOWS)
    strip.key("k", 99.5)
    assert strip.phase is Phase.CANCELLED


def test_repeats_of_the_same_key_restart_the_dead_time() -> None:
    strip = opened()
    now = ticks(strip, 100.0, 0.6)
    strip.key("B", now)
    now = ticks(strip, now, 0.6)
    assert strip.phase is Phase.DEAD_TIME
    strip.key("B", now)
    now = ticks(strip, now, 0.6)
    assert strip.phase is Phase.DEAD_TIME
    now = ticks(strip, now, 0.1)
    assert strip.phase is Phase.ARMED
    strip.key("B", now)
    assert strip.phase is Phase.CANCELLED, "after the dead time it is a key like any other"


def test_a_key_is_judged_by_when_it_was_made_not_by_when_it_is_brought() -> None:
    strip, now = armed()
    strip.key("k", 100.3)
    assert strip.why == "CANCELLED by k. Nothing was sent.", now
    late, now = armed()
    late.key("B", 100.5)
    assert late.phase is Phase.DEAD_TIME, "made in the dead time, so it begins again"


def test_ticks_that_stumble_make_the_dead_time_longer_never_shorter() -> None:
    strip = opened()
    strip.tick_painted(100.9)
    assert strip.phase is Phase.DEAD_TIME, "one tick counts for CREDIT_S at most"
    strip.key("k", 100.9)
    assert strip.phase is Phase.CANCELLED


# --- what only cancels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("paste", "CANCELLED by a paste. Nothing was sent."),
        ("click", "CANCELLED by a click. Nothing was sent."),
        ("resize", "CANCELLED: the terminal was resized. Nothing was sent."),
        ("suspended", "CANCELLED: the console was away from its terminal. Nothing was sent."),
    ],
)
@pytest.mark.parametrize("when", ["planning", "dead time", "armed", "counting", "typing"])
def test_pastes_clicks_and_resizes_only_cancel(what: str, words: str, when: str) -> None:
    made = {
        "planning": lambda: Strip("B", "k"),
        "dead time": opened,
        "armed": lambda: armed()[0],
        "counting": lambda: armed(By.COUNTDOWN)[0],
        "typing": lambda: armed(By.TYPED, NAME)[0],
    }
    strip = made[when]()
    getattr(strip, what)()
    assert (strip.phase, strip.why) == (Phase.CANCELLED, words)


def test_focus_and_mouse_moves_are_no_keys() -> None:
    strip, now = armed()
    strip.focus()
    strip.mouse()
    strip.key("k", now)
    assert strip.phase is Phase.GO


def test_a_flip_of_the_state_that_it_shows_cancels_and_says_what_flipped() -> None:
    strip, _ = armed()
    strip.state_changed((("dsv41", "serving"),))
    assert strip.open
    strip.state_changed((("dsv41", "down"),))
    assert strip.why == "CANCELLED: dsv41 was serving and is down. Nothing was sent."


@pytest.mark.parametrize("by", [By.LETTER, By.COUNTDOWN])
def test_a_gap_over_a_second_cancels_also_when_a_key_comes_first(by: By) -> None:
    strip, now = armed(by)
    strip.key("k", now + GAP_S + 0.1)
    assert strip.why == "CANCELLED: the screen stood still for 1.1 s. Nothing was sent."
    strip, now = armed(by)
    strip.tick_painted(now + GAP_S + 0.1)
    assert strip.phase is Phase.CANCELLED


# --- the countdown ----------------------------------------------------------------------------------------------------


def test_a_stall_cancels_also_where_the_key_was_made_as_it_began() -> None:
    strip, now = armed()
    strip.looked_at(now + GAP_S + 0.1)
    strip.key("k", now + 0.1)
    assert strip.phase is Phase.CANCELLED and "stood still" in strip.why


def test_a_countdown_that_is_watched_to_its_end_goes_by_itself() -> None:
    strip, now = armed(By.COUNTDOWN)
    now = ticks(strip, now, 3.0)
    assert strip.phase is Phase.ARMED and strip.left == 0.0, "zero is painted before it goes"
    ticks(strip, now, 0.1)
    assert (strip.phase, strip.went, strip.counted) == (Phase.GO, By.COUNTDOWN, 3.0)


def test_its_letter_goes_at_once() -> None:
    strip, now = armed(By.COUNTDOWN)
    strip.key("k", now)
    assert (strip.phase, strip.went) == (Phase.GO, By.LETTER)


def test_a_key_at_zero_still_cancels() -> None:
    strip, now = armed(By.COUNTDOWN)
    now = ticks(strip, now, 3.0)
    strip.key("j", now)
    assert strip.phase is Phase.CANCELLED


def test_slow_ticks_stretch_the_countdown() -> None:
    strip, now = armed(By.COUNTDOWN)
    now = ticks(strip, now, 3.0, every=0.75)
    assert strip.left == pytest.approx(3.0 - 4 * CREDIT_S)


def test_a_letter_strip_never_goes_by_itself() -> None:
    strip, now = armed(By.LETTER)
    ticks(strip, now, 600.0)
    assert strip.phase is Phase.ARMED


# --- what is typed ----------------------------------------------------------------------------------------------------


def test_the_lanes_name_and_enter_go() -> None:
    strip, now = armed(By.TYPED, NAME)
    assert strip.phase is Phase.TYPING
    type_in(strip, "dsv41", now)
    assert (strip.phase, strip.went, strip.answers) == (Phase.GO, By.TYPED, ("dsv41",))


@pytest.mark.parametrize("wrong", ["", "dsv4", "dsv411", "DSV41", " dsv41", "dsv41 ", "station"])
def test_anything_else_than_exactly_the_name_does_not_go(wrong: str) -> None:
    strip, now = armed(By.TYPED, NAME)
    type_in(strip, wrong, now)
    assert strip.phase is Phase.TYPING
    assert strip.note == "that is not dsv41"


def test_backspace_takes_back_a_letter() -> None:
    strip, now = armed(By.TYPED, NAME)
    for name in ("d", "s", "x", "backspace", "v", "4", "1", "enter"):
        strip.key(name, now)
    assert strip.phase is Phase.GO


@pytest.mark.parametrize("name", ["escape", "ctrl+c", "up", "tab", "f1", "ctrl+d"])
def test_keys_that_are_no_text_cancel_typing(name: str) -> None:
    strip, now = armed(By.TYPED, NAME)
    strip.key("d", now)
    strip.key(name, now)
    assert strip.phase is Phase.CANCELLED


def test_a_name_typed_ahead_cancels() -> None:
    strip = opened(By.TYPED, NAME)
    type_in(strip, "dsv41", 100.2)
    assert strip.why == "CANCELLED by d. Nothing was sent."


def test_break_glass_wants_a_reason_after_the_name() -> None:
    strip, now = armed(By.TYPED, NAME, REASON)
    type_in(strip, "dsv41", now)
    assert strip.phase is Phase.TYPING and strip.question == REASON
    type_in(strip, " x ", now)
    assert strip.note == "a reason of at least 3 characters is needed" and strip.phase is Phase.TYPING
    type_in(strip, "head burnt", now)
    assert strip.phase is Phase.GO and strip.answers[0] == "dsv41" and strip.answers[1].endswith("head burnt")


def test_a_typed_strip_without_a_question_never_goes() -> None:
    strip, now = armed(By.TYPED)
    strip.key("enter", now)
    assert strip.phase is Phase.CANCELLED


def test_an_answer_is_bounded() -> None:
    strip, now = armed(By.TYPED, REASON)
    for _ in range(LONGEST + 50):
        strip.key("x", now)
    assert len(strip.typed) == LONGEST


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("25", 1500.0), ("25m", 1500.0), ("1h30m", 5400.0), ("1h", 3600.0), ("24h", 86400.0), ("1h30", 5400.0),
     ("0", None), ("", None), ("h", None), ("m", None), ("25h", None), ("-5", None), ("2 5", None), ("1e3", None)],
)  # fmt: skip
def test_deadlines(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_enter_alone_takes_what_the_field_shows() -> None:
    deadline = Question("deadline", Kind.MINUTES, least=5, default="25m")
    strip, now = armed(By.TYPED, NAME, deadline)
    for name in (*"dsv41", "enter", "enter"):
        strip.key(name, now)
    assert strip.phase is Phase.GO and strip.answers == ("dsv41", "25m")
    strip, now = armed(By.TYPED, NAME, deadline)
    strip.key("enter", now)
    assert strip.phase is Phase.TYPING, "a question without a default has to be answered"


@pytest.mark.parametrize(
    ("text", "words"),
    [("4", "at least 5 minutes are needed"), ("5", ""), ("1h30m", ""), ("soon", "minutes, such as 25 or 1h30m")],
)
def test_a_deadline_that_would_be_refused_is_not_taken(text: str, words: str) -> None:
    assert Question("deadline", Kind.MINUTES, least=5).problem(text) == words


def test_after_a_strip_keys_are_dropped_until_none_came_for_a_second() -> None:
    hush = Hush()
    assert not hush.takes(99.0) and not hush.holds(99.0)
    hush.begin(100.0, "CANCELLED by j. Nothing was sent.")
    # Made before it ended, and read late: typed for the strip.
    assert hush.takes(97.0) and hush.holds(100.9)
    assert all(hush.takes(100.0 + 0.9 * n) for n in range(20)), "they count by when they were made"
    last = 100.0 + 0.9 * 19
    assert not hush.takes(last + HUSH_S) and not hush.takes(last + HUSH_S + 0.01)


def test_what_became_of_the_strip_is_said_while_keys_are_dropped() -> None:
    hush = Hush()
    hush.begin(100.0, "CANCELLED by j. Nothing was sent.")
    assert hush.says(100.1, "j") == "CANCELLED by j. Nothing was sent. Keys are dropped until none came for 1 s."
    assert hush.says(100.5, "j") == "" and hush.says(101.2, "j") != ""


def test_of_a_strip_that_went_others_say_what_became_of_it_and_the_dropped_key_is_named() -> None:
    hush = Hush()
    hush.begin(200.0, "")
    assert hush.takes(200.2)
    assert hush.says(200.2, "escape") == "Esc was dropped, as keys are until none came for 1 s."
    assert hush.takes(200.9) and hush.says(200.9, "j") == "", "at most once a second"
    assert hush.takes(201.3) and hush.says(201.3, "j") == "j was dropped, as keys are until none came for 1 s."


@given(st.lists(st.floats(0.0, 3.0), max_size=40))
def test_no_key_within_a_second_of_the_one_before_ever_acts(gaps: list[float]) -> None:
    hush, made = Hush(), 100.0
    hush.begin(made, "")
    over = False
    for gap in gaps:
        before, made = made, made + gap
        over = over or made - before >= HUSH_S
        assert hush.takes(made) is not over


def test_letters_are_none_of_the_guarded_keys() -> None:
    assert not set(LETTERS) & {key.lower() for key in GUARDED_KEYS}
    assert len(set(LETTERS)) == len(LETTERS) >= 8
    doing = {key: action.id for action in available(Place.DASHBOARD) for key in action.keys}
    assert {doing[key] for key in LETTERS if key in doing} == {"up", "down"}


# --- nothing else reaches GO ------------------------------------------------------------------------------------------

PLAN = Plan(Verb.ROLLBACK, "spark4", "dsv41", "n1", "roll back", (), facts=(("image", "1"),))
KEYS = ("k", "j", "B", "d", "s", "v", "4", "1", "enter", "backspace", "escape", "x")
Play = tuple[str, int | str, float]
CANCELS = ("paste", "click", "resize", "suspended", "flip")
LATE = st.sampled_from([0.0, 0.0, 0.05, 0.4, 0.9])
"""Seconds by which a key is brought after it was made: what was typed ahead is made long before."""
STEPS = st.one_of(
    st.tuples(st.just("ticks"), st.integers(1, 12), st.sampled_from([0.05, 0.1, 0.1, 0.1, 0.3, 0.6])),
    st.tuples(st.just("key"), st.sampled_from(KEYS), LATE),
    st.tuples(st.just("key"), st.sampled_from(["B", "k", "j"]), LATE),
    st.tuples(st.just("keys"), st.sampled_from(["dsv4", "dsv411", "DSV41", "dsv41", "lid"]), st.just(0.0)),
    st.tuples(st.just("rest"), st.just(0), st.sampled_from([0.2, 0.8, 1.05, 5.0])),
    st.tuples(st.sampled_from(("focus", "mouse", "same", *CANCELS)), st.just(0), st.just(0.0)),
)
GOES = st.sampled_from([("key", "k", 0.0), ("keys", "dsv41", 0.0), ("ticks", 34, 0.1), ("ticks", 110, 0.1)])
"""What lets a strip go; every play ends with it, so that what happened before is all that stands between."""
SITUATIONS = st.builds(
    Situation,
    lane=st.just("dsv41"),
    window_open=st.booleans(),
    holder=st.sampled_from(Holder),
    unknown=st.sampled_from([(), ("n3 is out of reach",)]),
    ledger_ok=st.booleans(),
    head_ok=st.booleans(),
    read_only=st.sampled_from([False, False, False, True]),
    serving=st.booleans(),
)


CALM = [
    Situation("dsv41", window_open=True, holder=Holder.ME, serving=False),
    Situation("dsv41", window_open=True, holder=Holder.ME),
    Situation("dsv41", window_open=False, holder=Holder.NOBODY),
]
"""Such as most strips are opened in."""
STARTS = [(), (("ticks", 5, 0.1),), (("ticks", 8, 0.1),), (("ticks", 8, 0.1), ("ticks", 25, 0.1))]
"""Before, in and after the dead time, and in the middle of a countdown."""


@dataclass
class Watcher:
    """Judges by what happened alone, without looking into the strip."""

    by: By
    seconds: float
    names: int
    first: float
    restarted: float = 0.0
    """When the dead time began, or began again."""
    last: float = 0.0
    """Of the last painted tick."""
    painted: float = 0.0
    """Seconds of painted ticks since `restarted`, each counted for a quarter at most."""
    spoiled: bool = False
    """Something that only cancels has happened."""
    armed_at: float = float("inf")
    """The tick that ended the dead time."""
    keys: list[tuple[str, float]] = field(default_factory=list)
    """Those made after the dead time, with their times."""

    def __post_init__(self) -> None:
        self.restarted = self.last = self.first

    def tick(self, now: float) -> None:
        self.spoiled |= now - self.last > 1.0
        self.painted += min(0.25, max(0.0, now - max(self.last, self.restarted)))
        self.last = now
        if self.painted >= 0.7 - 1e-6:
            self.armed_at = min(self.armed_at, now)

    def key(self, name: str, made: float) -> None:
        self.spoiled |= made - self.last > 1.0
        if made >= self.armed_at:
            self.keys.append((name, made))
        elif name == "B":
            self.restarted, self.painted, self.armed_at = max(self.restarted, made), 0.0, float("inf")
            self.keys.clear()
        else:
            self.spoiled = True

    def may_go(self) -> bool:
        """Whether what was done is what was asked for, and all of it after the dead time."""
        if self.spoiled:
            return False
        names = [name for name, _ in self.keys]
        early = any(made - self.restarted < 0.7 - 1e-6 for _, made in self.keys)
        if early:
            return False
        if self.by is By.TYPED:
            return typed(names, self.names)
        if names == ["k"]:
            return True
        return self.by is By.COUNTDOWN and not names and self.painted >= 0.7 + self.seconds - 1e-6


def typed(names: list[str], questions: int) -> bool:
    """Whether keys make up exactly the lane's name at some Enter, and a reason after it where one is asked for."""
    text, answers = "", 0
    for name in names:
        if name == "enter" and (text.strip() if answers else text == "dsv41") and len(text) >= 3:
            text, answers = "", answers + 1
        elif name == "backspace":
            text = text[:-1]
        elif len(name) == 1:
            text += name
    return answers >= questions > 0


def play(strip: Strip, watcher: Watcher, steps: Sequence[Play]) -> None:
    now = watcher.first
    for what, number, size in steps:
        if not strip.open:
            return
        if what == "ticks":
            for _ in range(int(number)):
                now += size
                watcher.tick(now)
                strip.tick_painted(now)
        elif what == "rest":
            now += size
        elif what == "same":
            strip.state_changed(SHOWS)
        elif what == "flip":
            watcher.spoiled = True
            strip.state_changed((("dsv41", "down"),))
        elif what in CANCELS:
            watcher.spoiled = True
            getattr(strip, what)()
        elif what in ("focus", "mouse"):
            getattr(strip, what)()
        else:
            for name in (str(number),) if what == "key" else (*str(number), "enter"):
                if strip.open:
                    watcher.key(name, now - size)
                    strip.key(name, now - size)


@settings(max_examples=2500, deadline=None)
@given(
    verb=st.sampled_from([*Verb, Verb.ROLLBACK]),
    situation=st.one_of(SITUATIONS, st.sampled_from(CALM)),
    start=st.sampled_from(STARTS),
    steps=st.lists(STEPS, max_size=4),
    end=GOES,
)
def test_no_sequence_reaches_a_grant_but_the_ones_asked_for(
    verb: Verb, situation: Situation, start: tuple[Play, ...], steps: list[Play], end: Play
) -> None:
    decision = decide(verb, situation)
    by, questions = asked_for(decision)
    assert by is not By.COUNTDOWN or verb is Verb.ROLLBACK
    strip = Strip("B", "k")
    strip.planned(by, SHOWS, seconds=decision.seconds, questions=questions)
    strip.painted(50.0)
    watcher = Watcher(by, decision.seconds, len(questions), 50.0)
    play(strip, watcher, [*start, *steps, end])
    event(f"{strip.phase.value} by {by.value}")
    if strip.phase is not Phase.GO:
        with pytest.raises(ValueError, match="does not go"):
            confirmation_of(strip, PLAN)
        return
    assert watcher.may_go(), (by, steps)
    confirmation = confirmation_of(strip, PLAN)
    if decision.denied:
        with pytest.raises(policy.Refused):
            policy.grant(decision, confirmation, PLAN.id, confirmation.at)
        return
    given_leave = policy.grant(decision, confirmation, PLAN.id, confirmation.at)
    policy.spend(given_leave, PLAN.id, verb, "dsv41", confirmation.at, decision.epoch)


@given(name=st.text(max_size=12), letter=st.sampled_from(LETTERS))
def test_whatever_a_terminal_calls_a_key_only_the_letter_goes(name: str, letter: str) -> None:
    strip = Strip("B", letter)
    strip.planned(By.LETTER, SHOWS)
    strip.painted(100.0)
    now = ticks(strip, 100.0, 0.7)
    strip.key(name, now)
    assert (strip.phase is Phase.GO) is (name == letter)
