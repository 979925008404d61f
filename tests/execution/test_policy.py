"""Who may do what: every cell of the table, columns that apply at once, and that nothing goes without a Grant."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule
from manual import rows, section

from console.actions.plan import Verb
from console.execution import policy
from console.execution.policy import (
    COUNTDOWN_DOWN_S,
    COUNTDOWN_SERVING_S,
    GRANT_LIVES_S,
    Confirmation,
    Decision,
    Grant,
    Holder,
    How,
    Need,
    Refused,
    Situation,
    clock,
    decide,
    grant,
    spend,
)

LANE, PLAN = "dsv41", "0123456789ab"
ROWS = {"D": (Verb.DISARM, Verb.ARM), "S": (Verb.STOP,), "R": (Verb.RELAUNCH,), "B": (Verb.ROLLBACK,)}
STALE = ("spark-2: unreachable since 03:11", "watchdog: read 4m ago")

QUIET = Situation(LANE, window_open=False, holder=Holder.NOBODY)
OPEN = Situation(LANE, window_open=True, holder=Holder.ME, epoch=4)
COLUMNS: dict[str, Situation] = {
    "window open": OPEN,
    "no window": QUIET,
    "facts stale or host unreachable": replace(QUIET, unknown=STALE),
    "lease held by another": replace(QUIET, holder=Holder.OTHER, holder_name="ben since 02:50"),
    "ledger out of reach": replace(QUIET, ledger_ok=False),
    "head out of reach": replace(QUIET, head_ok=False, holder=Holder.UNKNOWN),
    "--read-only": replace(OPEN, read_only=True),
}


def cell(decision: Decision) -> str:
    """A decision as the table writes it."""
    if decision.or_break_glass:
        return "denied until read, or break-glass"
    if decision.denied:
        return "denied"
    if decision.break_glass:
        assert decision.need is Need.NAME_AND_REASON
        return "break-glass"
    words = "countdown or letter" if decision.need is Need.COUNTDOWN else decision.need.value
    return f"{words}, takes over" if decision.takes_over else words


TABLE = {
    "D": ("letter", "lane name", "lane name", "denied", "break-glass", "break-glass", "denied"),
    "S": ("letter", "lane name", "lane name", "denied", "break-glass", "break-glass", "denied"),
    "R": ("letter", "lane name", "denied until read, or break-glass", "denied", "break-glass", "break-glass", "denied"),
    "B": (
        *("countdown or letter", "lane name", "lane name", "lane name, takes over"),
        *("break-glass", "break-glass", "denied"),
    ),
}
CELLS = [
    pytest.param(verb, column, expected, id=f"{verb}-{column}")
    for key, cells in TABLE.items()
    for verb in ROWS[key]
    for column, expected in zip(COLUMNS, cells, strict=True)
]


@pytest.mark.parametrize(("verb", "column", "expected"), CELLS)
def test_every_cell_of_the_table(verb: Verb, column: str, expected: str) -> None:
    decision = decide(verb, COLUMNS[column])
    assert cell(decision) == expected
    assert (decision.verb, decision.lane) == (verb, LANE)


def test_the_manual_has_the_same_table() -> None:
    found = [row for row in rows(section("ledger.md", "Who may do what")) if row[0] != "key"]
    assert {row[0].strip("`"): tuple(row[1:]) for row in found} == TABLE


@pytest.mark.parametrize("verb", Verb)
def test_read_only_denies_everything_whatever_else_holds(verb: Verb) -> None:
    for situation in everything():
        assert "--read-only" in decide(verb, replace(situation, read_only=True, break_glass=True)).denied


@pytest.mark.parametrize("verb", Verb)
def test_a_plan_that_is_proved_impossible_is_denied_with_its_reason(verb: Verb) -> None:
    for situation in everything():
        decision = decide(verb, replace(situation, refused="container removed at 02:13"))
        assert decision.denied == "container removed at 02:13"
        assert not decision.or_break_glass


@pytest.mark.parametrize(("serving", "seconds"), [(True, COUNTDOWN_SERVING_S), (False, COUNTDOWN_DOWN_S)])
def test_only_a_rollback_counts_down(serving: bool, seconds: float) -> None:
    assert (COUNTDOWN_DOWN_S, COUNTDOWN_SERVING_S) == (3.0, 10.0)
    for verb, situation in itertools.product(Verb, everything()):
        decision = decide(verb, replace(situation, serving=serving))
        counts = decision.need is Need.COUNTDOWN
        assert decision.seconds == (seconds if counts else 0.0)
        if counts:
            assert verb is Verb.ROLLBACK and situation.window_open and situation.holder is Holder.ME


def everything() -> list[Situation]:
    """Every combination of columns."""
    return [
        Situation(
            LANE, window, holder, "ben", unknown, ledger_ok=ledger, head_ok=head, serving=serving, running=running,
            running_verb=Verb.RELAUNCH if running else None,
        )
        for window, holder, unknown, ledger, head, serving, running in itertools.product(
            (True, False), Holder, ((), STALE), (True, False), (True, False), (True, False), ("", "relaunch op-1")
        )
    ]  # fmt: skip


STRICTNESS = (Need.COUNTDOWN, Need.LETTER, Need.NAME, Need.NAME_AND_REASON)


def strictness(decision: Decision) -> int:
    return len(STRICTNESS) if decision.denied else STRICTNESS.index(decision.need)


WORSE: dict[str, Callable[[Situation], Situation]] = {
    "stale": lambda situation: replace(situation, unknown=STALE),
    "no ledger": lambda situation: replace(situation, ledger_ok=False),
    "no head": lambda situation: replace(situation, head_ok=False),
    "nobody knows the holder": lambda situation: replace(situation, holder=Holder.UNKNOWN),
    "window gone": lambda situation: replace(situation, window_open=False),
    "refused": lambda situation: replace(situation, refused="gone"),
    "read-only": lambda situation: replace(situation, read_only=True),
}


@pytest.mark.parametrize("worse", WORSE)
@pytest.mark.parametrize("verb", Verb)
def test_what_makes_it_worse_never_makes_it_easier(verb: Verb, worse: str) -> None:
    for situation in everything():
        if worse == "nobody knows the holder" and situation.holder is Holder.OTHER:
            continue  # then it is not known any more that somebody else holds it
        before, after = decide(verb, situation), decide(verb, WORSE[worse](situation))
        if before.or_break_glass and after.break_glass:
            continue  # denied until read, or break-glass: it is break-glass now
        assert strictness(after) >= strictness(before), situation


def test_a_rollback_is_always_possible_unless_proved_impossible_or_read_only_or_under_way() -> None:
    for situation in everything():
        assert not decide(Verb.ROLLBACK, situation).denied


def test_a_rollback_in_a_window_with_stale_facts_goes_by_countdown_only_where_nothing_serves() -> None:
    down = decide(Verb.ROLLBACK, replace(OPEN, unknown=STALE, serving=False))
    assert (down.need, down.seconds) == (Need.COUNTDOWN, COUNTDOWN_DOWN_S)
    assert [text for text in down.warnings if STALE[0] in text and "readiness" in text]
    assert decide(Verb.ROLLBACK, replace(OPEN, unknown=STALE, serving=True)).need is Need.NAME


@pytest.mark.parametrize("serving", [True, False])
def test_a_rollback_outside_a_window_with_stale_facts_warns_and_goes_by_name(serving: bool) -> None:
    decision = decide(Verb.ROLLBACK, replace(QUIET, unknown=STALE, serving=serving))
    assert decision.need is Need.NAME
    assert all(any(item in text for text in decision.warnings) for item in STALE)


@pytest.mark.parametrize("verb", [Verb.DISARM, Verb.ARM, Verb.STOP])
def test_stale_facts_are_named_and_cost_the_letter(verb: Verb) -> None:
    decision = decide(verb, replace(OPEN, unknown=STALE))
    assert decision.need is Need.NAME
    assert all(any(item in text for text in decision.warnings) for item in STALE)


def test_a_relaunch_with_stale_facts_goes_by_break_glass_only_where_that_is_asked_for() -> None:
    stale = replace(OPEN, unknown=STALE)
    denied = decide(Verb.RELAUNCH, stale)
    assert denied.or_break_glass and STALE[0] in denied.denied and STALE[1] in denied.denied
    asked = decide(Verb.RELAUNCH, replace(stale, break_glass=True))
    assert (asked.denied, asked.need, asked.break_glass) == ("", Need.NAME_AND_REASON, True)
    held = decide(Verb.RELAUNCH, replace(stale, break_glass=True, holder=Holder.OTHER, holder_name="ben"))
    assert "ben" in held.denied


@pytest.mark.parametrize("verb", Verb)
def test_asking_for_break_glass_opens_nothing_else(verb: Verb) -> None:
    for situation in everything():
        plain, asked = decide(verb, situation), decide(verb, replace(situation, break_glass=True))
        if not plain.or_break_glass:
            assert asked == plain


@pytest.mark.parametrize("verb", Verb)
def test_a_lease_of_another_names_the_holder(verb: Verb) -> None:
    decision = decide(verb, COLUMNS["lease held by another"])
    said = decision.denied if decision.denied else " ".join(decision.warnings)
    assert "ben since 02:50" in said
    assert decision.takes_over is (verb is Verb.ROLLBACK)


@pytest.mark.parametrize("verb", Verb)
def test_a_lease_that_ran_out_is_taken_over_by_name_and_its_window_counts_no_more(verb: Verb) -> None:
    decision = decide(verb, replace(OPEN, holder=Holder.EXPIRED, holder_name="ben, ran out 2m ago"))
    assert (decision.denied, decision.need, decision.takes_over) == ("", Need.NAME, True)
    assert any("ben, ran out 2m ago" in text for text in decision.warnings)


@pytest.mark.parametrize("holder", [Holder.NOBODY, Holder.EXPIRED])
def test_a_window_counts_only_under_a_lease_of_ours(holder: Holder) -> None:
    assert decide(Verb.STOP, replace(OPEN, holder=holder)).need is Need.NAME


def test_a_rollback_takes_over_without_a_record_by_break_glass() -> None:
    decision = decide(Verb.ROLLBACK, replace(COLUMNS["lease held by another"], ledger_ok=False))
    assert (decision.need, decision.break_glass, decision.takes_over) == (Need.NAME_AND_REASON, True, True)
    assert any("UNLEDGERED" in text for text in decision.warnings)


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("running", [*Verb, None])
def test_what_runs_is_ended_by_stop_and_rollback_alone_and_never_begun_twice(verb: Verb, running: Verb | None) -> None:
    decision = decide(verb, replace(OPEN, running="op 20261130T-x", running_verb=running))
    if verb in (Verb.STOP, Verb.ROLLBACK) and verb is not running:
        assert (decision.denied, decision.ends) == ("", "op 20261130T-x")
        assert "ends op 20261130T-x" in decision.warnings
    else:
        assert "op 20261130T-x" in decision.denied
        assert not decision.or_break_glass


# Grants

LETTER = Confirmation(How.LETTER, PLAN, 100.0)
COUNTED = Confirmation(How.COUNTDOWN, PLAN, 100.0, counted=10.0)
NAMED = Confirmation(How.NAME, PLAN, 100.0, name=LANE)
REASONED = Confirmation(How.NAME, PLAN, 100.0, name=LANE, reason="head lost power")
PLANNED = Confirmation(How.PLAN, PLAN, 100.0)
ANSWERS = {"letter": LETTER, "countdown": COUNTED, "name": NAMED, "name and reason": REASONED, "plan id": PLANNED}
SATISFIES = {
    Need.LETTER: {"letter", "name", "name and reason", "plan id"},
    Need.COUNTDOWN: {"letter", "countdown", "name", "name and reason", "plan id"},
    Need.NAME: {"name", "name and reason", "plan id"},
    Need.NAME_AND_REASON: {"name and reason"},
}
NEEDING = {
    Need.LETTER: decide(Verb.STOP, OPEN),
    Need.COUNTDOWN: decide(Verb.ROLLBACK, OPEN),
    Need.NAME: decide(Verb.STOP, QUIET),
    Need.NAME_AND_REASON: decide(Verb.STOP, COLUMNS["ledger out of reach"]),
}


def goes(decision: Decision, confirmation: Confirmation, plan: str = PLAN, now: float = 100.0) -> bool:
    try:
        grant(decision, confirmation, plan, now)
    except Refused as error:
        assert str(error)
        return False
    return True


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("need", Need)
def test_only_what_satisfies_the_need_makes_a_grant(need: Need, answer: str) -> None:
    assert NEEDING[need].need is need
    assert goes(NEEDING[need], ANSWERS[answer]) is (answer in SATISFIES[need])


@pytest.mark.parametrize("name", ["", "dsv4", "dsv41 ", "DSV41", "dsv42", "dsv41\n"])
@pytest.mark.parametrize("need", Need)
def test_a_wrong_name_makes_none(need: Need, name: str) -> None:
    with pytest.raises(Refused, match="dsv41"):
        grant(NEEDING[need], replace(REASONED, name=name), PLAN, 100.0)


@pytest.mark.parametrize("reason", ["", "  ", "x", " a\t", "\u200b\u200b\u200b\u200b"])
def test_a_reason_that_says_nothing_makes_none(reason: str) -> None:
    with pytest.raises(Refused, match="reason"):
        grant(NEEDING[Need.NAME_AND_REASON], replace(REASONED, reason=reason), PLAN, 100.0)


@pytest.mark.parametrize("verb", [verb for verb in Verb if verb is not Verb.ROLLBACK])
def test_no_countdown_but_a_rollbacks(verb: Verb) -> None:
    with pytest.raises(Refused, match="never goes by itself"):
        grant(decide(verb, OPEN), COUNTED, PLAN, 100.0)


@pytest.mark.parametrize("counted", [0.0, 3.0, 9.9, float("nan"), float("-inf"), float("inf")])
def test_a_countdown_that_did_not_run_out_makes_none(counted: float) -> None:
    with pytest.raises(Refused, match="has not run out"):
        grant(NEEDING[Need.COUNTDOWN], replace(COUNTED, counted=counted), PLAN, 100.0)


@pytest.mark.parametrize("now", [99.9, 110.1, float("nan"), float("inf")])
def test_a_confirmation_that_is_old_or_of_the_future_makes_none(now: float) -> None:
    with pytest.raises(Refused, match="confirm again"):
        grant(NEEDING[Need.LETTER], LETTER, PLAN, now)


@pytest.mark.parametrize(("seen", "now"), [("other", PLAN), (PLAN, "other"), ("", ""), (PLAN, "")])
def test_a_plan_that_was_not_seen_makes_none(seen: str, now: str) -> None:
    with pytest.raises(Refused, match="the plan changed"):
        grant(NEEDING[Need.NAME], replace(NAMED, plan_id=seen), now, 100.0)


def test_a_denial_makes_none() -> None:
    with pytest.raises(Refused, match="read-only"):
        grant(decide(Verb.STOP, COLUMNS["--read-only"]), REASONED, PLAN, 100.0)


@pytest.mark.parametrize(
    "forged",
    [
        Decision(Verb.STOP, LANE, need=Need.LETTER),
        replace(decide(Verb.STOP, COLUMNS["--read-only"]), denied=""),
        replace(decide(Verb.STOP, QUIET), need=Need.LETTER),
    ],
)
def test_a_decision_that_the_policy_did_not_make_makes_none(forged: Decision) -> None:
    with pytest.raises(Refused, match="not decided"):
        grant(forged, REASONED, PLAN, 100.0)


def stopping(**changes: Any) -> Grant:
    return grant(decide(Verb.STOP, replace(OPEN, **changes)), LETTER, PLAN, 100.0)


def test_a_grant_is_spent_once() -> None:
    given = stopping()
    spend(given, PLAN, Verb.STOP, LANE, 101.0, epoch=4)
    with pytest.raises(Refused, match="spent already"):
        spend(given, PLAN, Verb.STOP, LANE, 101.0, epoch=4)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"plan_id": "ba9876543210"}, "came out different"),
    ({"verb": Verb.ROLLBACK}, "is for stop of dsv41"),
    ({"lane": "station"}, "is for stop of dsv41"),
    ({"now": 100.0 + GRANT_LIVES_S + 0.1}, "confirm again"),
    ({"now": 99.0}, "confirm again"),
    ({"now": float("nan")}, "confirm again"),
    ({"epoch": 5}, "changed hands"),
    ({"epoch": 0}, "changed hands"),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG)
def test_a_grant_for_something_else_is_refused_and_used_up(wrong: dict[str, Any], words: str) -> None:
    given = stopping()
    right = {"plan_id": PLAN, "verb": Verb.STOP, "lane": LANE, "now": 101.0, "epoch": 4}
    with pytest.raises(Refused, match=words):
        spend(given, **{**right, **wrong})
    with pytest.raises(Refused, match="spent already"):
        spend(given, **right)  # type: ignore[arg-type]


def test_a_grant_cannot_be_made_copied_or_changed() -> None:
    given = stopping()
    makers: list[Callable[[], object]] = [
        lambda: Grant(object(), decide(Verb.STOP, OPEN), LETTER),
        lambda: copy.copy(given),
        lambda: copy.deepcopy(given),
        lambda: pickle.dumps(given),
    ]
    for make in makers:
        with pytest.raises(TypeError, match=r"policy\.grant alone"):
            make()
    with pytest.raises(AttributeError):
        given.lane = "station"
    bare = object.__new__(Grant)
    with pytest.raises(Refused, match="never given"):
        spend(bare, PLAN, Verb.STOP, LANE, 100.0, epoch=4)
    object.__setattr__(given, "lane", "station")  # what it allows is not kept in the object
    with pytest.raises(Refused, match="is for stop of dsv41"):
        spend(given, PLAN, Verb.STOP, "station", 100.0, epoch=4)


def test_what_was_never_spent_is_forgotten() -> None:
    kept = stopping()
    grant(decide(Verb.STOP, OPEN), replace(LETTER, at=500.0), PLAN, 500.0)
    with pytest.raises(Refused, match="has run out"):
        spend(kept, PLAN, Verb.STOP, LANE, 101.0, epoch=4)
    assert all(leave.grant is not kept for leave in policy._leaves.values())


def test_the_clock_goes_on() -> None:
    first = clock()
    assert 0.0 <= clock() - first < 60.0


# Any sequence of calls

verbs = st.sampled_from(Verb)
lanes = st.sampled_from((LANE, "station"))
plans = st.sampled_from((PLAN, "ba9876543210"))
times = st.floats(0.0, 30.0)
situations = st.builds(
    Situation,
    lane=lanes,
    window_open=st.booleans(),
    holder=st.sampled_from(Holder),
    unknown=st.sampled_from(((), STALE)),
    ledger_ok=st.booleans(),
    head_ok=st.booleans(),
    read_only=st.booleans(),
    serving=st.booleans(),
    refused=st.sampled_from(("", "gone")),
    running=st.sampled_from(("", "op")),
    running_verb=st.none() | verbs,
    break_glass=st.booleans(),
    epoch=st.sampled_from((0, 4, 5)),
)
confirmations = st.builds(
    Confirmation,
    how=st.sampled_from(How),
    plan_id=plans,
    at=times,
    name=st.sampled_from((LANE, "station", "")),
    reason=st.sampled_from(("", "x", "power lost")),
    counted=st.sampled_from((0.0, 3.0, 10.0)),
)


def matches(decision: Decision, given: Confirmation) -> bool:
    """Written apart from the code: what the design asks for."""
    if decision.denied:
        return False
    if given.how is How.NAME:
        named = given.name == decision.lane
        return named and (decision.need is not Need.NAME_AND_REASON or len(given.reason) >= 3)
    if given.how is How.PLAN:
        return decision.need is not Need.NAME_AND_REASON
    if given.how is How.LETTER:
        return decision.need in (Need.LETTER, Need.COUNTDOWN)
    return decision.need is Need.COUNTDOWN and decision.verb is Verb.ROLLBACK and given.counted >= decision.seconds


class Sequences(RuleBasedStateMachine):
    """Decisions, confirmations, grants and spends in any order, right and wrong ones."""

    decisions = Bundle("decisions")
    answers = Bundle("answers")
    grants = Bundle("grants")

    def __init__(self) -> None:
        super().__init__()
        self.behind: dict[int, tuple[Grant, Decision, Confirmation]] = {}
        self.spent: list[Grant] = []

    @rule(target=decisions, verb=verbs, situation=situations)
    def decided(self, verb: Verb, situation: Situation) -> Decision:
        return decide(verb, situation)

    @rule(target=decisions, verb=verbs, lane=lanes, need=st.sampled_from(Need))
    def forged(self, verb: Verb, lane: str, need: Need) -> Decision:
        return Decision(verb, lane, need=need, seconds=0.0)

    @rule(target=answers, confirmation=confirmations)
    def confirmed(self, confirmation: Confirmation) -> Confirmation:
        return confirmation

    @rule(target=answers, decision=decisions, at=times, plan=plans)
    def answered_well(self, decision: Decision, at: float, plan: str) -> Confirmation:
        return Confirmation(How.NAME, plan, at, name=decision.lane, reason="power lost")

    @rule(target=grants, decision=decisions, answer=answers, plan=plans, later=times)
    def granted(self, decision: Decision, answer: Confirmation, plan: str, later: float) -> Any:
        try:
            given = grant(decision, answer, plan, answer.at + later)
        except Refused:
            return multiple()
        assert matches(decision, answer) and decision == decide_again(decision)
        assert answer.plan_id == plan and later <= GRANT_LIVES_S + 1e-9
        self.behind[id(given)] = (given, decision, answer)
        return given

    @precondition(lambda self: self.behind)
    @rule(given=grants, plan=plans, verb=verbs, lane=lanes, now=times, epoch=st.sampled_from((0, 4, 5)))
    def spent_somehow(self, given: Grant, plan: str, verb: Verb, lane: str, now: float, epoch: int) -> None:
        self.tried(given, plan, verb, lane, now, epoch)

    @precondition(lambda self: self.behind)
    @rule(given=grants, later=times)
    def spent_well(self, given: Grant, later: float) -> None:
        _, decision, answer = self.behind[id(given)]
        self.tried(given, answer.plan_id, decision.verb, decision.lane, answer.at + later, decision.epoch)

    def tried(self, given: Grant, plan: str, verb: Verb, lane: str, now: float, epoch: int) -> None:
        try:
            spend(given, plan, verb, lane, now, epoch)
        except Refused:
            return
        _, decision, answer = self.behind[id(given)]
        assert matches(decision, answer)
        assert (decision.verb, decision.lane, decision.epoch, answer.plan_id) == (verb, lane, epoch, plan)
        assert 0 <= now - answer.at <= GRANT_LIVES_S + 1e-9
        self.spent.append(given)

    @invariant()
    def none_was_spent_twice(self) -> None:
        assert len({id(given) for given in self.spent}) == len(self.spent)


def decide_again(decision: Decision) -> Decision:
    """The same where the policy made it: a Decision of somebody else never got this far."""
    assert decision._made
    return decision


Sequences.TestCase.settings = settings(
    max_examples=150, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSequences = Sequences.TestCase


@settings(deadline=None)
@given(verbs, situations, confirmations, times)
def test_a_grant_means_that_the_need_was_met(
    verb: Verb, situation: Situation, confirmation: Confirmation, later: float
) -> None:
    decision = decide(verb, situation)
    now = confirmation.at + later
    expected = matches(decision, confirmation) and confirmation.plan_id == PLAN and now - confirmation.at <= 10.0
    assert goes(decision, confirmation, PLAN, now) is expected
