"""What is under way on a lane, out of files that may be whole, torn, damaged or hostile."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from acting_files import (
    BEGAN,
    LEASE,
    NEW,
    OLD,
    OP,
    STEPS,
    begin,
    debts,
    done,
    lease,
    line,
    operation,
    plan,
    read,
    step,
    texts,
    window,
)
from hypothesis import given
from hypothesis import strategies as st

from console.execution.policy import Holder
from console.execution.situation import holder_of, me
from console.readings.acting import (
    JOURNAL_TAIL,
    MOST_PROBLEM,
    Pulse,
    Texts,
    answered,
    current_operation,
    prefix_object,
    read_acting,
)
from console.readings.acting_operation import FRESH_S, MOST_STEPS, STARTING_S, begun_at, half_done_words
from console.readings.acting_types import Acting, OperationState
from console.readings.look import Answer, Status

GONE, ALIVE = Pulse(alive=False), Pulse(alive=True)
HALF = begin() + done("evidence-0", "disarm", "stop-0", "stop-1")


def states(found: Any) -> dict[str, str]:
    return {item.id: str(item.state) for item in found.steps}


# Lease, window, debts


def test_a_lane_at_rest_has_nothing() -> None:
    found = read_acting(texts(None, name=None), 5.0, folder="/f")
    assert found == Acting(5.0, folder="/f")


def test_a_lease_and_its_end() -> None:
    found = read(name=None, lease=lease(offered_to="ben")).lease
    assert found is not None
    assert (found.operator, found.console, found.id, found.epoch) == ("ana", "ana@laptop 4711", "f00d", 7)
    assert (found.acquired, found.renewed, found.ttl, found.offered_to) == (BEGAN - 60, BEGAN, 60.0, "ben")
    assert not found.expired(BEGAN + 60)
    assert found.expired(BEGAN + 61)


@pytest.mark.parametrize("key", ["id", "operator", "epoch", "acquired", "renewed", "ttl"])
def test_a_damaged_lease_may_be_somebodys(key: str) -> None:
    found = read(name=None, lease="".join(f"{name}={LEASE[name]}\n" for name in LEASE if name != key))
    assert found.lease is None
    assert found.problem == "lease is damaged: somebody may hold the lane"
    assert found.lease_unknown == "its file is damaged"


@pytest.mark.parametrize(
    "text",
    ["", "garbage\n", "{}", "null", '{"epoch": 7}', "id=f00d\nepoch=7", lease(epoch="7.0"), lease(epoch="-7"),
     lease(ttl="1e3"), lease(epoch="007"), lease(renewed="soon"), lease(acquired="1.5"), lease(id="../x"),
     lease(id="\x1b[2J"), lease(epoch="7\r"), lease(renewed="9" * 40)],
)  # fmt: skip
def test_nobody_can_tell_whose_a_damaged_lease_is_before_anything_is_confirmed(text: str) -> None:
    """The scripts on the head refuse each of these: here it must not read as if nobody held the lane."""
    found = read(name=None, lease=text)
    assert found.lease is None and found.lease_unknown
    holder, words = holder_of(found, me("ana"), BEGAN)
    assert (holder, words) == (Holder.UNKNOWN, "its file is damaged")


def test_a_lease_that_may_not_be_read_may_be_somebodys() -> None:
    for answer, words in (
        (Answer(Status.DENIED), "lease may not be read"),
        (Answer(Status.ERROR, "not a file"), "lease: not a file"),
    ):
        assert holder_of(read(name=None, lease=answer), me("ana"), BEGAN) == (Holder.UNKNOWN, words)
    assert holder_of(read(name=None, lease=Answer(Status.MISSING)), me("ana"), BEGAN) == (Holder.NOBODY, "")


def test_while_nobody_can_tell_who_holds_the_lane_an_operation_in_a_console_is_not_given_up() -> None:
    journal = begin(runs_on="console") + step(2, "stop-0", "running")
    found = read(journal=journal, at=999.0, lease="garbage")
    assert found.operation is not None and found.operation.state is OperationState.UNKNOWN


def test_a_window_whose_plan_is_cut_is_read_all_the_same() -> None:
    whole = window(plan={"steps": ["x" * 50] * 100})
    for text in (whole, whole[:-400]):
        found = read(name=None, window=text).window
        assert found is not None
        assert (found.id, found.operator, found.target, found.plan_id) == ("w1", "ana", OLD, "7f3a01c2be94")
        assert (found.opened, found.deadline) == (BEGAN - 100, BEGAN + 1400)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"id": "w1"}', window(deadline="soon"), window(opened=1e400)])
def test_a_damaged_window_may_be_open(text: str) -> None:
    found = read(name=None, window=text)
    assert (found.window, found.problem) == (None, "window.json is damaged: a window may be open")


def test_debts_and_damaged_ones() -> None:
    (found,) = read(name=None, debts=debts()).debts
    assert (found.what, found.since, found.deadline, found.operator) == ("watchdog", BEGAN - 70, BEGAN + 1000, "ana")
    partly = read(name=None, debts=debts({}, {"since": None}))
    assert (len(partly.debts), partly.problem) == (1, "debts.json is damaged in part")
    assert read(name=None, debts='{"a": 1}').problem == "debts.json is damaged: something may be owed"


def test_what_may_not_be_read_is_said() -> None:
    found = read(name=None, lease=Answer(Status.DENIED), window=Answer(Status.ERROR, "Input/output error"))
    assert found.problem == "lease may not be read; window.json: Input/output error"


# The newest operation


@pytest.mark.parametrize("name", ["../../etc", "", "20261130T215510Z-rollback", "x" * 5000, f"{OP}\n{OP}", "\x1b[2J"])
def test_what_is_no_name_leads_nowhere(name: str) -> None:
    said: list[str] = []
    assert current_operation(answered(name), said) == ""
    assert len(said) == 1
    assert all(words.isprintable() for words in said)


def test_a_name_alone_is_an_operation_that_is_not_read_yet() -> None:
    found = read_acting(Texts(current=answered(OP + "\n")), BEGAN).operation
    assert found is not None
    assert (found.id, found.verb, found.state, found.unread) == (OP, "rollback", OperationState.UNKNOWN, True)
    assert found.began == begun_at(OP) == 1796075710.0


def test_an_operation_whose_plan_is_gone_says_so() -> None:
    found = read_acting(Texts(current=answered(OP), plan=answered(None), journal=answered(None)), BEGAN)
    assert found.operation is not None
    assert (found.operation.state, found.operation.unread) == (OperationState.UNKNOWN, False)
    assert found.problem == f"{OP}: plan.json is not there"


@pytest.mark.parametrize(
    "lost", [answered(None), answered(""), answered("\0" * 900), Answer(Status.ERROR, "not a file")]
)
def test_an_operation_without_its_plan_does_not_hold_the_lane_for_ever(lost: Answer) -> None:
    """A folder that was cleared by age must not leave D, S and R denied by what nobody can attach to or end."""
    given = Texts(current=answered(OP), plan=lost, journal=answered(None))
    found = read_acting(given, begun_at(OP) + 60, pulse=GONE).operation
    assert found is not None
    assert found.state is OperationState.LOST
    assert found.words == "LOST: its runner is gone, and its files do not tell what was done"
    assert (found.verb, found.began) == ("rollback", begun_at(OP))
    alive = read_acting(given, begun_at(OP) + 60, pulse=ALIVE).operation
    assert alive is not None and alive.state is OperationState.RUNNING
    held = replace(given, lease=answered(lease(renewed=str(int(begun_at(OP)) + 50))))
    kept = read_acting(held, begun_at(OP) + 60, pulse=GONE).operation
    assert kept is not None and kept.state is OperationState.UNKNOWN, "it may run in the holder's console"


def test_what_cannot_be_read_is_not_said_to_have_done_nothing() -> None:
    words = "LOST: its runner is gone, and its files do not tell what was done"
    assert operation(begin() + "not json\n", 5000.0, GONE).words == words
    given = Texts(current=answered(OP), plan=answered(plan()), journal=Answer(Status.ERROR, "not a file"))
    found = read_acting(given, BEGAN + 80_000, pulse=GONE).operation
    assert found is not None and found.words == words
    cut = plan()[: plan().index('"stop-1"')]
    given = Texts(
        current=answered(OP), plan=answered(cut), journal=answered(begin() + done("evidence-0", "disarm", "stop-0"))
    )
    found = read_acting(given, BEGAN + 80_000, pulse=GONE).operation
    assert found is not None and found.state is OperationState.HALF_DONE, (
        "of a plan that is cut not every step is known"
    )


def test_what_stands_in_place_of_a_name_is_not_quoted() -> None:
    """A link there would show what this account may read and others may not."""
    assert "s3cret" not in read_acting(Texts(current=answered("root:s3cret:1\n")), BEGAN).problem


def test_an_operation_that_runs() -> None:
    journal = (
        begin()
        + done("evidence-0")
        + step(3, "disarm", "satisfied", "it was off")
        + step(4, "stop-0", "running")
        + line(5, "seen", id="stop-0", words="engine processes: 3")
    )
    found = operation(journal, 6.0)
    assert (found.state, found.operator, found.epoch, found.runs_on) == (OperationState.RUNNING, "ana", 7, "head")
    assert (found.origin, found.target, found.plan_id, found.head) == (NEW, OLD, "7f3a01c2be94", "spark-0")
    assert list(states(found).values()) == ["done", "satisfied", "running", "waiting", "waiting", "waiting"]
    assert found.step is not None
    assert (found.step.id, found.step.began, found.step.ended) == ("stop-0", BEGAN + 4, None)
    assert found.step.waits_for == "engine processes: 3"
    assert found.steps[0].ended == BEGAN + 2
    assert (found.steps[4].detached, found.steps[4].limit, found.steps[4].usual) == (True, 900.0, 460.0)
    assert found.words == ""


def test_the_end_is_as_it_was_written() -> None:
    words = "HALF DONE after stop rank 1, next: start the lane on spark-0 (failed): exit 1"
    journal = HALF + step(20, "start", "failed", "exit 1") + step(21, "rescue-logs", "done", kind="rescue")
    found = operation(journal + line(22, "end", state="half done", words=words), 9999.0, GONE)
    assert (found.state, found.words, found.ended) == (OperationState.HALF_DONE, words, BEGAN + 22)
    assert states(found)["arm"] == "skipped"
    assert [(item.id, str(item.state)) for item in found.rescue] == [("rescue-logs", "done")]


def test_one_that_is_carried_on_again_runs_again() -> None:
    journal = (
        HALF + line(22, "end", state="stopped", words="") + line(30, "takeover", operator="ben", **{"from": "ana"})
    )
    journal += line(31, "begin", op=OP, operator="ben", epoch=8, runs_on="head")
    found = operation(journal, 32.0)
    assert (found.state, found.operator, found.epoch, found.took_over) == (
        OperationState.RUNNING, "ben", 8, "ben from ana",
    )  # fmt: skip
    assert found.began == BEGAN


# Whether somebody carries it on


def test_a_journal_that_was_just_written_is_being_written() -> None:
    assert operation(HALF, 2.0 + FRESH_S, GONE).state is OperationState.RUNNING
    assert operation(HALF, 2.1 + FRESH_S, GONE).state is OperationState.HALF_DONE


def test_a_runner_that_was_seen_runs_however_long_it_says_nothing() -> None:
    assert operation(HALF, 5000.0, ALIVE).state is OperationState.RUNNING


def test_a_runner_that_cannot_be_seen_is_not_said_to_be_dead() -> None:
    found = operation(HALF, 5000.0, Pulse(None))
    assert found.state is OperationState.UNKNOWN
    assert found.words == "whether its runner still carries it on cannot be seen"


def test_half_done_says_after_what_and_what_is_next() -> None:
    found = operation(HALF, 5000.0, GONE)
    assert found.state is OperationState.HALF_DONE
    assert found.words == "HALF DONE after stop rank 1, next: start the lane on spark-0 (its runner is gone)"
    assert states(found)["start"] == "waiting"


def test_a_step_that_nobody_followed_to_its_end_is_unknown() -> None:
    found = operation(HALF + step(5, "start", "running"), 5000.0, GONE)
    assert states(found)["start"] == "unknown"
    assert "next: start the lane on spark-0 (unknown)" in found.words
    assert found.steps[4].words == "its outcome was not seen"


def test_a_restarted_head_loses_it_whatever_was_written_a_moment_ago() -> None:
    found = operation(HALF, 8.0, Pulse(True, booted=BEGAN + 60))
    assert found.state is OperationState.LOST
    assert found.words == ("LOST: HALF DONE after stop rank 1, next: start the lane on spark-0 (spark-0 was restarted)")
    assert operation(HALF, 8.0, Pulse(True, booted=BEGAN - 9000)).state is OperationState.RUNNING


def test_one_that_is_just_beginning_on_a_busy_head_is_not_lost() -> None:
    """Its runner may take longer to be seen than a journal may be silent."""
    assert operation("", FRESH_S, GONE).state is OperationState.RUNNING
    assert operation("", STARTING_S - 2.0, GONE).state is OperationState.UNKNOWN
    assert operation("", STARTING_S - 2.0, ALIVE).state is OperationState.RUNNING
    assert operation("", STARTING_S + 2.0, GONE).state is OperationState.LOST
    assert operation("", STARTING_S - 2.0, Pulse(False, booted=BEGAN + 15)).state is OperationState.LOST


def test_one_that_never_began_is_lost_and_did_nothing() -> None:
    found = operation("", 5000.0, GONE)
    assert found.state is OperationState.LOST
    assert found.words == "LOST: its runner is gone before anything was done"
    saved = operation(begin() + done("evidence-0"), 5000.0, GONE)
    assert (saved.state, saved.words) == (found.state, found.words), "what was saved changed nothing"


def test_every_step_done_is_done_though_nobody_said_so() -> None:
    found = operation(begin() + done(*(item[0] for item in STEPS)), 5000.0, GONE)
    assert found.state is OperationState.DONE
    failed = begin() + step(1, "evidence-0", "failed") + done(*(item[0] for item in STEPS[1:]))
    assert operation(failed, 5000.0, GONE).state is OperationState.DONE, "evidence never holds up the way back"


def test_in_a_console_the_lease_is_the_pulse() -> None:
    journal = HALF.replace('"head"', '"console"', 1)
    assert operation(journal, 59.0, lease=lease()).state is OperationState.RUNNING
    gone = operation(journal, 61.0, lease=lease())
    assert gone.state is OperationState.HALF_DONE
    assert "(its console is gone)" in gone.words
    assert operation(journal, 59.0, lease=lease(epoch="9")).state is OperationState.HALF_DONE, "somebody else's lease"


def test_the_words_are_those_of_the_runner() -> None:
    from console.execution.runner_base import half_done

    for names in (("evidence-0",), ("evidence-0", "disarm", "stop-0"), ("disarm", "stop-0", "stop-1", "start")):
        found = operation(begin() + done(*names), 5000.0, GONE)
        raw = json.loads(plan())["steps"]
        told = half_done(
            [item | {"optional": item.get("optional", False)} for item in raw], dict.fromkeys(names, "done")
        )
        assert half_done_words(found.steps) == told


# Damage


def test_a_torn_last_line_is_no_damage() -> None:
    whole = HALF + step(5, "start", "running")
    for cut in range(1, 20):
        found = read(whole[:-cut], 6.0)
        assert found.problem == ""
        assert found.operation is not None and found.operation.state is OperationState.RUNNING


def test_damaged_lines_are_counted_and_the_others_read() -> None:
    found = read(begin() + "\x00\x00garbage\n[1]\n" + done("disarm"), 5.0)
    assert found.problem == f"journal.jsonl of {OP}: 2 damaged lines"
    assert found.operation is not None and states(found.operation)["disarm"] == "done"


def test_unknown_kinds_and_states_are_no_damage() -> None:
    found = read(begin() + line(1, "fanfare", id=3) + step(2, "disarm", "half-hearted"), 5.0)
    assert found.problem == ""
    assert found.operation is not None and states(found.operation)["disarm"] == "unknown"


def test_of_a_long_journal_what_came_before_went_well() -> None:
    tail = '_id": "cut"}\n' + step(5, "start", "running")
    journal = Answer(Status.OK, "", {"size": str(JOURNAL_TAIL * 3)}, tail)
    found = read_acting(Texts(current=answered(OP), plan=answered(plan()), journal=journal), BEGAN + 6)
    assert found.problem == ""
    assert found.operation is not None
    assert list(states(found.operation).values()) == ["done"] * 4 + ["running", "waiting"]


def test_a_plan_that_is_cut_short_shows_the_steps_that_are_there() -> None:
    text = plan()
    cut = text[: text.index('"stop-1"')]
    found = read(begin() + done("disarm"), 5.0, planned=cut)
    assert found.operation is not None
    assert list(states(found.operation)) == ["evidence-0", "disarm", "stop-0"]
    assert found.problem == f"plan.json of {OP} is damaged or too long: 3 steps of it were read"


def test_a_plan_whose_outline_was_read_shows_every_step_though_its_commands_are_cut_off() -> None:
    whole = json.loads(plan())
    outline = {"steps": whole["steps"], "rescue": []}
    text = json.dumps({"outline": outline, **whole})
    head = json.dumps({"outline": outline})[:-1] + json.dumps({key: whole[key] for key in ("verb", "title")})[1:]
    for cut in (text[: text.rindex('"stop-1"')], head[:-1]):
        found = read(begin() + done("disarm"), 5.0, planned=cut)
        assert found.operation is not None
        assert [one.id for one in found.operation.steps] == [one["id"] for one in whole["steps"]]
        assert found.problem == ""


def test_prefixes_of_an_object_never_say_what_is_not_there() -> None:
    text = json.dumps({"a": 1, "b": [1, {"c": "]"}, 3], "d": "x"})
    whole = json.loads(text)
    for cut in range(len(text)):
        found, entire = prefix_object(text[:cut])
        assert not entire
        for key, value in found.items():
            assert value == whole[key] or (key == "b" and value == whole["b"][: len(value)])
    assert prefix_object(text) == (whole, True)


def test_hostile_steps_are_left_out_or_made_safe() -> None:
    steps = [
        {"id": "../x", "title": "t"},
        {"id": "ok", "title": "\x1b[2J\u202eevil", "host": 7, "limit": "long", "usual": float("nan")},
        {"id": "ok", "title": "again"},
        "no step",
        *({"id": f"s{number}"} for number in range(2 * MOST_STEPS)),
    ]
    found = operation(begin(), 5.0, planned=plan(steps=steps, title="\x1b]0;x\x07t" * 500))
    assert found.steps[0].id == "ok"
    assert found.steps[0].title.isprintable() and (found.steps[0].host, found.steps[0].usual) == ("", None)
    assert len(found.steps) <= MOST_STEPS
    assert found.title.isprintable() and len(found.title) <= 200


LINES = st.dictionaries(
    st.sampled_from(["t", "kind", "id", "state", "words", "operator", "from", "epoch", "runs_on"]),
    st.one_of(
        st.sampled_from(["begin", "step", "end", "seen", "rescue", "takeover", "stop-0", "done", "running", "console"]),
        st.text(max_size=10),
        st.floats(),
        st.integers(),
        st.none(),
        st.lists(st.none(), max_size=2),
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
RAW = st.one_of(st.text(max_size=200), JSON.map(json.dumps), JSON.map(lambda value: json.dumps(value)[:-1]))


@given(
    journal=st.lists(LINES, max_size=8),
    end=st.text(max_size=20),
    raw=RAW,
    other=RAW,
    alive=st.sampled_from([True, False, None]),
)
def test_nothing_that_lies_there_raises(
    journal: list[dict[str, Any]], end: str, raw: str, other: str, alive: bool | None
) -> None:
    text = "".join(json.dumps(item) + "\n" for item in journal) + end
    for planned in (plan(), raw):
        found = read(text, 100.0, Pulse(alive, BEGAN), planned=planned, lease=raw, window=raw, debts=other)
        assert len(found.problem) <= MOST_PROBLEM and (found.problem == "" or found.problem.isprintable())
        assert found.operation is not None
        words = [found.operation.words, found.operation.title, *(item.words for item in found.operation.steps)]
        assert all(item == "" or item.isprintable() for item in words)
