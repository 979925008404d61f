"""A switch window: what opens and closes it, what is frozen, and that a file of somebody else's is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.actions.plan import Plan, Probe, Stage, Step, Verb
from console.execution.policy import Refused
from console.execution.window import (
    LONGEST_S,
    MOST_BYTES,
    SHORTEST_S,
    Closing,
    Due,
    Opening,
    Window,
    WindowUnreadable,
    close_window,
    from_json,
    handed_over,
    open_window,
    target_facts,
    target_hash,
    target_moved,
    to_json,
)
from console.readings.acting import Texts as ActingTexts
from console.readings.acting import answered, read_acting
from console.readings.acting_types import Debt

NOW = 1_790_000_000.0
PROBE = Probe("spark-0", "container sgldsv41 has exited", ("docker", "inspect"), "#!/bin/sh\nexit 0\n")
STEP = Step(
    "stop-spark-0", Stage.STOP, "stop rank 0", "spark-0", ("docker", "stop", "sgldsv41"), 90.0,
    stdin="line one\nline two\n", before=(PROBE,), after=(PROBE,), usual=12.5, basis="median of 3", detached=True,
)  # fmt: skip
FACTS = (
    ("serving container spark-0", "c1"),
    ("back container spark-0", "c0ffee1"),
    ("back image spark-0", "sha256:aa"),
    ("back mount spark-0 /model", "/data/snapshots/c0ffee1"),
)
PLAN = Plan(
    Verb.ROLLBACK, "spark4", "dsv41", "spark-0", "roll back dsv41 on spark4", (STEP,), origin="1bae0e1",
    target="dsv41-RETIRED-REF c0ffee1", facts=FACTS, rescue=(replace(STEP, id="rescue-spark-0", usual=None),),
    warnings=("names stay as they are",),
)  # fmt: skip
NO_WAY = replace(PLAN, steps=(), rescue=(), refused="container removed: c0ffee1")
ASKED = Opening("dsv41", "switch to 1017", 1800.0)
DEBT = Debt("watchdog", NOW + 60, NOW + 1260, "ana", "op")


def opened(asked: Opening = ASKED, plan: Plan = PLAN) -> Window:
    return open_window(asked, plan, operator="ana", epoch=4, now=NOW)


WINDOW = opened()


# Opening


def test_a_window_freezes_the_way_back() -> None:
    assert (WINDOW.lane, WINDOW.operator, WINDOW.reason, WINDOW.epoch) == ("dsv41", "ana", "switch to 1017", 4)
    assert (WINDOW.opened, WINDOW.deadline, WINDOW.target) == (NOW, NOW + 1800, PLAN.target)
    assert (WINDOW.plan, WINDOW.plan_id) == (PLAN, PLAN.id)
    assert WINDOW.id.startswith("20260921T141320Z-window-")
    assert WINDOW.target_facts == tuple(sorted(FACTS[1:])) and len(WINDOW.target_hash) == 12


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"typed": ""}, "nothing was typed, the lane is dsv41"),
        ({"typed": "dsv4"}, "dsv4 was typed"),
        ({"typed": "dsv41 "}, "the lane is dsv41"),
        ({"reason": ""}, "reason"),
        ({"reason": " \u200b\t "}, "reason"),
        ({"seconds": SHORTEST_S - 1}, "5 minutes to 24 hours"),
        ({"seconds": LONGEST_S + 1}, "5 minutes to 24 hours"),
        ({"seconds": float("nan")}, "5 minutes to 24 hours"),
        ({"seconds": float("inf")}, "5 minutes to 24 hours"),
        ({"seconds": -1800.0}, "5 minutes to 24 hours"),
    ],
)
def test_what_is_missing_is_told(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        opened(replace(ASKED, **changes))


@pytest.mark.parametrize("seconds", [SHORTEST_S, LONGEST_S])
def test_the_bounds_of_the_deadline_are_inside(seconds: float) -> None:
    assert opened(replace(ASKED, seconds=seconds)).deadline == NOW + seconds


@pytest.mark.parametrize("verb", [verb for verb in Verb if verb is not Verb.ROLLBACK])
def test_only_a_way_back_is_frozen(verb: Verb) -> None:
    with pytest.raises(Refused, match=f"not a plan to {verb}"):
        opened(plan=replace(PLAN, verb=verb))


def test_without_a_way_back_it_opens_only_for_one_who_was_told() -> None:
    with pytest.raises(Refused, match="there is no way back: container removed"):
        opened(plan=NO_WAY)
    window = opened(replace(ASKED, without_way_back=True), NO_WAY)
    assert (window.target, window.target_facts, window.target_hash) == ("", (), "")
    assert from_json(to_json(window)) == window


def test_a_window_that_could_not_be_read_again_is_not_opened() -> None:
    for odd in (
        replace(PLAN, title="a\x1b[2Jb"),
        replace(PLAN, steps=(STEP, STEP)),
        replace(PLAN, steps=(replace(STEP, id="Stop 0"),)),
        replace(PLAN, steps=(replace(STEP, limit=float("nan")),)),
    ):
        with pytest.raises(Refused, match="cannot be written down"):
            opened(plan=odd)


# The target


def test_the_target_is_apart_from_the_live_engine_and_from_the_steps() -> None:
    live = replace(PLAN, facts=(("serving container spark-0", "c2"), *FACTS[1:]))
    fewer = replace(PLAN, steps=())
    for plan in (live, fewer):
        assert plan.id != PLAN.id
        assert target_hash(target_facts(plan)) == WINDOW.target_hash
        assert target_moved(WINDOW, plan) == ()


def test_what_of_the_target_moved_is_named() -> None:
    other = replace(PLAN, facts=(FACTS[0], FACTS[1], ("back image spark-0", "sha256:bb")))
    assert target_hash(target_facts(other)) != WINDOW.target_hash
    assert target_moved(WINDOW, other) == (
        "image spark-0: sha256:bb; frozen was sha256:aa",
        "mount spark-0 /model: gone; it was /data/snapshots/c0ffee1",
    )
    assert target_moved(WINDOW, NO_WAY) == ("container removed: c0ffee1",)


def test_the_order_of_facts_is_nothing() -> None:
    assert target_hash(target_facts(replace(PLAN, facts=FACTS[::-1]))) == WINDOW.target_hash


# Time


@pytest.mark.parametrize(
    ("now", "due", "late"),
    [
        (NOW, Due.OPEN, 0.0),
        (NOW + 1800, Due.OPEN, 0.0),
        (NOW + 1801, Due.OVERDUE, 1.0),
        (NOW + 1e6, Due.OVERDUE, 998200.0),
    ],
)
def test_past_its_deadline_it_is_overdue_and_nothing_else(now: float, due: Due, late: float) -> None:
    assert (WINDOW.due(now), WINDOW.overdue(now)) == (due, late)
    assert str(Due.OVERDUE) == "OVERDUE"


# Closing, handing over

CLOSING = Closing("ana", holds=True)


def test_it_closes_with_a_sentence_that_says_how() -> None:
    words = close_window(WINDOW, CLOSING, NOW + 720)
    assert words == f"window {WINDOW.id} closed by ana after 12m00s; within its deadline; nothing owed"
    late = close_window(WINDOW, CLOSING, NOW + 2000)
    assert "3m20s past its deadline" in late


@pytest.mark.parametrize("typed", ["", "dsv4", "station"])
def test_what_is_owed_is_named_and_costs_the_lane_s_name(typed: str) -> None:
    closing = replace(CLOSING, debts=(DEBT,), typed=typed)
    with pytest.raises(
        Refused, match=r"still owed: watchdog off for 11m00s \(ana\), due in 9m00s.*type the lane's name"
    ):
        close_window(WINDOW, closing, NOW + 720)
    words = close_window(WINDOW, replace(closing, typed="dsv41"), NOW + 1320)
    assert "still owed: watchdog off for 21m00s (ana), overdue by 1m00s" in words


def test_it_does_not_close_over_what_runs_or_for_one_who_does_not_hold_it() -> None:
    with pytest.raises(Refused, match="relaunch op-1 runs"):
        close_window(WINDOW, replace(CLOSING, running="relaunch op-1", typed="dsv41"), NOW)
    with pytest.raises(Refused, match="not held by this console"):
        close_window(WINDOW, replace(CLOSING, holds=False, typed="dsv41"), NOW)


def test_handing_over_changes_the_operator_and_nothing_that_is_frozen() -> None:
    given = handed_over(WINDOW, "ben", 5)
    assert given == replace(WINDOW, operator="ben", epoch=5)
    assert from_json(to_json(given)) == given
    for epoch in (3, 4):
        with pytest.raises(Refused, match="an older lease"):
            handed_over(WINDOW, "ben", epoch)


# As JSON


def test_what_is_written_is_what_is_read() -> None:
    again = from_json(to_json(WINDOW))
    assert again == WINDOW and again.plan.id == PLAN.id
    assert isinstance(again.plan.steps[0].stage, Stage) and isinstance(again.plan.steps[0].argv, tuple)
    assert from_json(to_json(WINDOW).encode()) == WINDOW


def test_the_console_s_other_reader_reads_it_too_also_where_it_is_cut_short() -> None:
    text = to_json(WINDOW)
    assert list(json.loads(text))[-1] == "plan"
    for shown in (text, text[: text.index('"plan": ') + 40]):
        state = read_acting(ActingTexts(window=answered(shown)), NOW).window
        assert state is not None
        assert (state.id, state.operator, state.reason, state.target) == (WINDOW.id, "ana", WINDOW.reason, PLAN.target)
        assert (state.opened, state.deadline, state.plan_id) == (NOW, NOW + 1800, PLAN.id)


def changed(**changes: Any) -> str:
    return json.dumps({**json.loads(to_json(WINDOW)), **changes})


def changed_plan(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(to_json(WINDOW))
    change(document["plan"])
    return json.dumps(document)


def without(key: str) -> str:
    document = json.loads(to_json(WINDOW))
    del document[key]
    return json.dumps(document)


HOSTILE: list[tuple[str | bytes, str]] = [
    ("", "no JSON object"),
    ("[]", "no JSON object"),
    (b"\xff\xfe", "no JSON object"),
    ("[" * 100_000, "no JSON object"),
    ('{"v": 1, "v": 1}', "no JSON object"),
    ("x" * (MOST_BYTES + 1), "larger than"),
    ("{}", "version"),
    (changed(v=2), "another laneswap"),
    (changed(extra=1), "extra: unknown key"),
    (changed(**{"a\x1b]0;t\x07": 1}), "unknown key"),
    (without("reason"), "reason"),
    (changed(id="../../x"), "id"),
    (changed(lane="a/b"), "lane"),
    (changed(lane="station"), "not a way back of this lane"),
    (changed(operator=7), "operator"),
    (changed(reason="a\u202eb"), "control or invisible"),
    (changed(operator="a\x1b[2J"), "control or invisible"),
    (changed(opened="now"), "opened"),
    (changed(opened=True), "opened"),
    (changed(opened=float("nan")), "no times"),
    (changed(deadline=float("inf")), "no times"),
    (changed(deadline=NOW), "deadline"),
    (changed(deadline=NOW + 1e7), "deadline"),
    (changed(epoch=-1), "epoch"),
    (changed(epoch=1.5), "epoch"),
    (changed(plan_id="0123456789ab"), "the file was changed"),
    (changed(target_hash="0123456789ab"), "target_facts"),
    (changed(target_facts=[]), "target_facts"),
    (changed(plan=None), "plan"),
    (changed(plan=[]), "plan"),
    (changed_plan(lambda plan: plan.update(verb="rm")), "plan.verb"),
    (changed_plan(lambda plan: plan.update(verb="stop")), "not a way back"),
    (changed_plan(lambda plan: plan["steps"][0].update(argv=["rm", "-rf", "/"])), "the file was changed"),
    (changed_plan(lambda plan: plan["steps"][0].update(argv="rm -rf /")), "plan.steps.0.argv"),
    (changed_plan(lambda plan: plan["steps"][0].update(limit="long")), "plan.steps.0.limit"),
    (changed_plan(lambda plan: plan["steps"][0].update(limit=-5)), "seconds"),
    (changed_plan(lambda plan: plan["steps"][0].update(title="\x1b[2J")), "control or invisible"),
    (changed_plan(lambda plan: plan.update(warnings=["\u202e"])), "control or invisible"),
    (changed_plan(lambda plan: plan.update(facts=[["back image spark-0", "sha256:bb"]])), "the file was changed"),
    (changed_plan(lambda plan: plan["steps"].clear()), "the file was changed"),
]


@pytest.mark.parametrize(("text", "words"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_file_that_laneswap_did_not_write_is_refused_in_safe_words(text: str | bytes, words: str) -> None:
    with pytest.raises(WindowUnreadable) as error:
        from_json(text)
    assert words in str(error.value) and str(error.value).isprintable()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(Window.__slots__), anything)
def test_any_value_of_any_key_is_read_or_refused(key: str, value: Any) -> None:
    text = changed(**{key: value})
    try:
        window = from_json(text)
    except WindowUnreadable as error:
        assert str(error).isprintable()
    else:
        assert from_json(to_json(window)) == window


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(WindowUnreadable):
        from_json(data)
