"""The runner's decisions, step by step, in a world without hosts."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from runner_world import (
    HOSTS,
    OP,
    FakeClock,
    MemoryJournal,
    World,
    end_of,
    is_down,
    is_up,
    operation,
    plan,
    states,
    step,
    swap,
)

from console.actions.plan import Plan, Probe, Stage
from console.execution.runner import UNSURE, Runner
from console.execution.runner_base import WAIT, Done, JournalLost
from console.readings.acting_operation import half_done_words
from console.readings.acting_types import StepState, StepView

OLD = "spark-0/old"


class Run:
    """One runner in a world of its own."""

    def __init__(self, made: Plan | None = None, world: World | None = None, lines: Any = (), **changes: Any) -> None:
        self.world, self.clock, self.journal = world or World(), FakeClock(), MemoryJournal(lines)
        self.operation = operation(made, **changes)
        self.runner = Runner(self.operation, self.world, self.journal, clock=self.clock)

    def __call__(self) -> str:
        return self.runner.run()

    @property
    def ran(self) -> list[str]:
        return [ran.step for ran in self.world.ran]

    @property
    def states(self) -> dict[str, str]:
        return states(self.journal)

    def words(self, name: str) -> str:
        return next(str(line["words"]) for line in reversed(self.journal.lines) if line.get("id") == name)


def test_a_plan_over_three_hosts_is_carried_out_in_its_order() -> None:
    run = Run()
    assert run() == "done"
    assert run.ran[0] == "save" and run.ran[-2:] == ["start", "name"]
    assert sorted(run.ran[1:4]) == [f"stop-{host}" for host in HOSTS]
    assert run.world.up == {OLD}
    assert set(run.states.values()) == {"done"}
    assert [line["seq"] for line in run.journal.lines] == list(range(1, len(run.journal.lines) + 1))


def test_a_line_is_written_before_a_command_leaves_and_another_one_after() -> None:
    run = Run(plan(step("a", "spark-0", "save")))
    seen: list[list[str]] = []

    def look(host: str, what: str) -> str:
        if what.endswith("a save"):
            seen.append([line["kind"] + line.get("state", "") for line in run.journal.lines])
        return ""

    run.world.meddle = look
    run()
    assert seen == [["begin", "steprunning"]]
    assert [line["kind"] + line.get("state", "") for line in run.journal.lines[1:]] == [
        "steprunning",
        "stepdone",
        "enddone",
    ]


def test_a_journal_that_cannot_be_written_keeps_the_command_from_leaving() -> None:
    run = Run(plan(step("a", "spark-0", "save")))

    def full(line: dict[str, Any]) -> None:
        if line["kind"] == "step":
            raise JournalLost("no space")
        run.journal.lines.append(line)

    run.journal.write = full  # type: ignore[method-assign]
    with pytest.raises(JournalLost):
        run()
    assert run.ran == []


def test_what_holds_already_is_satisfied_and_not_run() -> None:
    world = World(up={"spark-1/new"})
    run = Run(world=world)
    assert run() == "done"
    assert run.states["stop-spark-0"] == "satisfied" and run.states["stop-spark-1"] == "done"
    assert "stop-spark-0" not in run.ran


@pytest.mark.parametrize(
    ("answer", "words"), [(("is", OLD, "up"), "no, spark-0/old is down"), (("is", "x", "up"), "no")]
)
def test_a_precondition_that_does_not_hold_ends_the_plan_before_its_command(answer: Any, words: str) -> None:
    first = step("first", "spark-1", "stop", "spark-1/new")
    probe = Probe("spark-0", "the old one runs", answer)
    run = Run(plan(first, step("second", "spark-0", "name", before=(probe,)), step("third", "spark-0", "name")))
    assert run() == "half done"
    assert run.ran == ["first"]
    assert run.states == {"first": "done", "second": "failed", "third": "skipped"}
    assert f"not begun: the old one runs: {words}" in run.words("second")
    assert end_of(run.journal)[1].startswith("HALF DONE after first, next: second on spark-0 (failed): not begun")


def test_a_host_that_does_not_know_yet_whether_a_step_may_begin_is_asked_again() -> None:
    """One question that a busy docker did not answer in its time must not end a plan half way."""
    probe = is_up("spark-0", OLD)
    world = World(unsure={OLD: 5})
    world.up.add(OLD)
    run = Run(
        plan(step("first", "spark-1", "stop", "spark-1/new"), step("second", "spark-0", "name", before=(probe,))), world
    )
    assert run() == "done"
    assert run.ran == ["first", "second"]


def test_the_time_of_a_step_is_its_own_whatever_its_host_took_to_know() -> None:
    probe = is_up("spark-0", OLD)
    world = World(unsure={OLD: 15}, hangs={"name"})
    world.up.add(OLD)
    run = Run(plan(step("second", "spark-1", "name", before=(probe,), limit=8.0)), world)
    began = run.clock.mono()
    assert run() == "half done"
    assert run.ran == ["second"]
    assert run.clock.mono() - began >= 15 + 8, "it had all of its seconds"


def test_a_host_that_never_knows_ends_it_in_a_bounded_time_and_says_so() -> None:
    world = World(unsure={OLD: 10_000})
    run = Run(plan(step("second", "spark-0", "name", before=(is_up("spark-0", OLD),), limit=600.0)), world)
    began = run.clock.mono()
    assert run() == "failed"
    assert run.ran == []
    assert UNSURE <= run.clock.mono() - began <= UNSURE + 5
    said = "not begun: spark-0/old runs: not known, docker did not answer, asked again for 20 s"
    assert run.words("second") == said


def test_a_no_beside_one_that_does_not_know_is_final() -> None:
    world = World(unsure={OLD: 10_000})
    before = (is_up("spark-0", OLD), is_up("spark-0", "gone"))
    run = Run(plan(step("second", "spark-0", "name", before=before)), world)
    began = run.clock.mono()
    assert run() == "failed" and run.clock.mono() == began


def test_where_nothing_was_done_yet_it_has_failed() -> None:
    run = Run(world=World(fails={"stop spark-0/new": 1, "stop spark-1/new": 1, "stop spark-2/new": 1}))
    assert run() == "failed"
    assert run.words("stop-spark-1") == "it says failed"
    assert run.words("stop-spark-0") == "exit 1: it went wrong"
    assert not end_of(run.journal)[1].startswith("HALF DONE")


def test_an_optional_step_that_fails_holds_nothing_up() -> None:
    run = Run(world=World(fails={"save": 1}))
    assert run() == "done"
    assert run.states["save"] == "failed"


def test_rescue_is_done_after_a_failure_and_only_where_the_lane_was_touched() -> None:
    rescue = [step("logs", "spark-1", "save", optional=True)]
    boot = step("boot", "spark-0", "start", OLD, limit=60, stage=Stage.BOOT)
    failing = Run(plan(boot, rescue=rescue), World(fails={"start": 9}))
    assert failing() == "failed"
    assert failing.ran == ["boot", "logs"] and failing.states["logs"] == "done"
    assert [line["kind"] for line in failing.journal.lines if line.get("id") == "logs"] == ["rescue", "rescue"]
    gentle = Run(plan(replace(boot, stage=Stage.WATCHDOG), rescue=rescue), World(fails={"start": 9}))
    assert gentle() == "failed"
    assert gentle.ran == ["boot"]


def test_what_is_waited_for_is_told_and_past_the_limit_it_has_failed() -> None:
    run = Run(plan(step("a", "spark-0", "save", after=(is_up("spark-0", OLD),)), step("b", "spark-0", "name")))
    assert run() == "failed"
    assert [line["words"] for line in run.journal.lines if line["kind"] == "seen"] == [
        "spark-0/old runs: no, spark-0/old is down"
    ]
    assert run.words("a") == "not seen in 8 s: spark-0/old runs: no, spark-0/old is down"
    assert run.clock.now < 1_796_000_000 + 10


def test_a_watched_worker_that_dies_ends_the_command_at_once() -> None:
    watch = (is_up("spark-1", "spark-1/new", "rank 1 lives"),)
    world = World(hangs={"start"})
    run = Run(plan(step("boot", "spark-0", "start", OLD, limit=600, stage=Stage.BOOT, watch=watch)), world)

    def dies(host: str, what: str) -> str:
        run.clock.now += 2.0
        world.up.discard("spark-1/new")
        return ""

    world.meddle = dies
    assert run() == "failed"
    assert world.claims["spark-0", OP, "boot"] == 143
    assert run.words("boot") == "rank 1 lives: no, spark-1/new is down; it was ended"


def test_a_unit_that_takes_too_long_is_ended() -> None:
    run = Run(plan(step("boot", "spark-1", "start", OLD, limit=60)), World(hangs={"start"}))

    def takes_time(host: str, what: str) -> str:
        run.clock.now += 2.0
        return ""

    run.world.meddle = takes_time
    assert run() == "failed"
    assert run.words("boot") == "no end after 60 s; it was ended"


@pytest.mark.parametrize(("code", "state", "end"), [(143, "stopped", "stopped"), (-9, "unknown", "half done")])
def test_a_unit_that_was_stopped_or_lost_is_neither_done_nor_failed(code: int, state: str, end: str) -> None:
    run = Run(plan(step("a", "spark-1", "stop", "x"), step("b", "spark-1", "start", OLD, limit=60)))
    run.world.fails = {"start": code}
    assert run() == end
    assert run.states["b"] == state


def test_a_lost_unit_whose_work_is_seen_is_done() -> None:
    seen = is_up("spark-0", "spark-0/new")
    run = Run(plan(step("b", "spark-1", "start", OLD, limit=60, after=(seen,))), World(fails={"start": -9}))
    assert run() == "done"


@pytest.mark.parametrize("limit", [8.0, 60.0])
@pytest.mark.parametrize("fate", ["before", "after"])
def test_a_lost_answer_is_looked_up_and_the_command_runs_once(limit: float, fate: str) -> None:
    run = Run(plan(step("a", "spark-1", "stop", "spark-1/new", limit=limit)))
    lost: list[str] = []

    def once(host: str, what: str) -> str:
        if what.endswith("stop spark-1/new") and not lost:
            lost.append(what)
            return fate
        return ""

    run.world.meddle = once
    assert run() == "done"
    assert lost and run.ran == ["a"]


def test_a_host_that_is_away_for_a_while_is_asked_again_until_the_limit() -> None:
    run = Run(plan(step("a", "spark-1", "stop", "spark-1/new", limit=60, after=(is_down("spark-1", "spark-1/new"),))))
    began = run.clock.now

    def back() -> None:
        if run.clock.now > began + 20:
            run.world.out_of_reach.clear()

    def away(host: str, what: str) -> str:
        if what.endswith("stop spark-1/new") and run.clock.now == began:
            run.world.out_of_reach.add("spark-1")
        return ""

    run.world.meddle, run.clock.waited = away, back
    assert run() == "done"
    assert run.ran == ["a"]
    assert "no answer from spark-1, asked again" in [line.get("words") for line in run.journal.lines]


def test_a_host_that_stays_away_leaves_the_outcome_unknown() -> None:
    run = Run(plan(step("a", "spark-1", "stop", "spark-1/new", limit=60), step("b", "spark-0", "name")))
    run.world.out_of_reach.add("spark-1")
    assert run() == "half done"
    assert run.states == {"a": "unknown", "b": "skipped"}
    assert end_of(run.journal)[1] == (
        "HALF DONE, next: a on spark-1 (unknown): no end after 60 s; it could not be ended: connection lost"
    )


def test_what_nobody_could_observe_is_unknown_not_failed() -> None:
    """The command has ended well; the host on which its work would be seen falls silent."""
    run = Run(plan(step("a", "spark-1", "stop", "spark-2/new", after=(is_down("spark-2", "spark-2/new"),))))
    run.world.meddle = lambda _, what: run.world.out_of_reach.add("spark-2") or "" if "stop" in what else ""  # type: ignore[func-returns-value]
    assert run() == "half done"
    assert run.states == {"a": "unknown"} and "no answer from spark-2" in run.words("a")


def test_a_newer_lease_fences_the_sequence_and_the_words_name_its_holder() -> None:
    run = Run(plan(step("a", "spark-1", "stop", "spark-1/new"), step("b", "spark-0", "name")))

    def taken(host: str, what: str) -> str:
        if what.endswith("stop spark-1/new"):
            run.world.epochs["spark-0"] = 7
        return ""

    run.world.meddle = taken
    assert run() == "half done"
    assert run.states == {"a": "done", "b": "fenced"}
    assert end_of(run.journal)[1] == (
        "HALF DONE after a, next: b on spark-0 (fenced): ben holds the lease since 01:05:00Z (epoch 7)"
    )


def test_fenced_before_its_first_step_it_has_done_nothing() -> None:
    run = Run(world=World(epochs={"spark-2": 9}))
    assert run() == "failed"
    assert run.ran == []
    assert end_of(run.journal) == ("failed", "ben holds the lease since 01:05:00Z (epoch 9)")
    assert set(run.states.values()) == {"skipped"}


def test_an_optional_step_that_is_fenced_ends_it_too() -> None:
    run = Run(plan(step("a", "spark-1", "save", optional=True), step("b", "spark-0", "name")))
    run.world.meddle = lambda host, what: run.world.epochs.update({"spark-1": 5}) or "" if what.endswith("save") else ""
    assert run() == "failed"
    assert run.ran == []


def test_whoever_took_over_may_have_it_go_on_under_the_new_epoch() -> None:
    run = Run()
    run.runner.hosts.reload = lambda: {**run.operation, "operator": "ben", "epoch": 7}
    run.world.meddle = lambda host, what: run.world.epochs.update({"spark-0": 7}) or "" if what.endswith("save") else ""
    assert run() == "done"
    assert run.world.up == {OLD}
    takeovers = [line for line in run.journal.lines if line["kind"] == "takeover"]
    assert [(line["operator"], line["from"]) for line in takeovers] == [("ben", "ana")]
    assert {ran.epoch for ran in run.world.ran} == {7}


def test_without_the_head_only_break_glass_goes_on() -> None:
    away = World(out_of_reach={"spark-0"})
    made = plan(step("a", "spark-1", "stop", "spark-1/new"))
    careful = Run(made, away)
    assert careful() == "failed"
    assert careful.ran == [] and "who holds the lease" in careful.words("a")
    glass = Run(made, World(out_of_reach={"spark-0"}), ledgered=False)
    assert glass() == "done"
    assert glass.ran == ["a"]


def test_break_glass_that_is_recorded_here_goes_on_without_the_head_too() -> None:
    made = plan(step("a", "spark-1", "stop", "spark-1/new"))
    glass = Run(made, World(out_of_reach={"spark-0"}), epoch="-")
    assert glass() == "done"
    assert glass.ran == ["a"]


@pytest.mark.parametrize(
    ("more", "unit"),
    [({}, False), ({"detached": True}, True), ({"keeps": True}, True), ({"memory_max": "4G"}, True)],
)
def test_on_the_head_the_sequence_is_the_unit_of_its_steps(more: Any, unit: bool) -> None:
    run = Run(plan(step("boot", "spark-0", "start", OLD, limit=600, **more)))
    assert run() == "done"
    starts = [argv for _, argv in run.world.calls if "STARTER" in argv and "start" in argv]
    assert bool(starts) == unit
    in_console = Run(plan(step("boot", "spark-0", "start", OLD, limit=600, **more)))
    in_console.runner.runs_on = "console"
    assert in_console() == "done"
    assert [argv for _, argv in in_console.world.calls if "STARTER" in argv and "start" in argv]


def test_a_command_of_the_head_that_takes_too_long_is_ended_and_has_failed() -> None:
    run = Run(plan(step("boot", "spark-0", "start", OLD, limit=60)), World(hangs={"start"}))
    assert run() == "failed"
    assert run.words("boot").endswith("it was ended")


def test_told_to_stop_it_begins_no_further_step() -> None:
    run = Run()

    def told(host: str, what: str) -> str:
        if what.endswith("spark-0/new"):
            run.runner.stop("stopped by ben")
        return ""

    run.world.meddle = told
    assert run() == "stopped"
    assert "start" not in run.ran
    assert end_of(run.journal)[1].endswith("stopped by ben")
    assert run.states["start"] == "skipped"


@pytest.mark.parametrize(("steps", "state", "code"), [(False, "unknown", None), (True, "stopped", 143)])
def test_told_to_stop_a_unit_lives_on_unless_it_is_meant_too(steps: bool, state: str, code: int | None) -> None:
    run = Run(plan(step("boot", "spark-1", "start", OLD, limit=600)), World(hangs={"start"}))

    def look(host: str, what: str) -> str:
        if " 0.02 " in what:
            run.runner.stop("stopped by ben", steps=steps)
            return "before"
        return ""

    run.world.meddle = look
    assert run() == "stopped"
    assert run.states["boot"] == state
    assert run.world.claims["spark-1", OP, "boot"] == code


@pytest.mark.parametrize("limit", [8.0, 60.0])
@pytest.mark.parametrize(
    ("claim", "up", "state", "ran"),
    [
        ("never", 1e6, "done", ["a"]),  # it never left: it does now
        ("never", 10.0, "unknown", []),  # the host was restarted since and may have forgotten
        (0, 1e6, "done", []),
        (7, 1e6, "failed", []),
    ],
)
def test_a_step_that_a_killed_runner_left_is_looked_up_first(
    limit: float, claim: Any, up: float, state: str, ran: list[str]
) -> None:
    world = World(uptime=up)
    if claim != "never":
        world.claims["spark-1", OP, "a"] = claim
    lines = [
        {"t": 1_795_999_900.0, "seq": 1, "kind": "begin", "operator": "ana", "epoch": 1},
        {"t": 1_795_999_901.0, "seq": 2, "kind": "step", "id": "a", "state": "running", "words": ""},
    ]
    run = Run(plan(step("a", "spark-1", "stop", "spark-1/new", limit=limit)), world, lines)
    run()
    assert run.states["a"] == state and run.ran == ran
    assert [line["seq"] for line in run.journal.lines] == list(range(1, len(run.journal.lines) + 1))


@pytest.mark.parametrize(
    ("words", "state"), [("ended by signal TERM", "unknown"), ("stopped by an operator", "stopped")]
)
def test_a_unit_that_went_down_with_its_host_was_not_stopped_by_anybody(words: str, state: str) -> None:
    told = f"state=stopped\nsignal=TERM\nboot=changed\nwords={words}\nup=3000.0\n"
    run = Run(plan(step("a", "spark-1", "start", "x", limit=60)))
    answer = run.world.run

    def restarted(host: str, argv: Any, stdin: str, limit: float, question: bool = False) -> Done:
        done = answer(host, argv, stdin, limit, question)
        return Done(0, told) if argv[:3] == ["sh", "-c", WAIT] else done

    run.world.run = restarted  # type: ignore[method-assign]
    run()
    assert run.states["a"] == state


def test_a_command_that_never_says_how_it_ended_is_judged_by_what_is_seen() -> None:
    lines = [{"t": 1_795_999_901.0, "seq": 1, "kind": "step", "id": "a", "state": "running", "words": ""}]
    for down, state in ((True, "done"), (False, "unknown")):
        world = World(up=set() if down else {"spark-1/new"})
        world.claims["spark-1", OP, "a"] = None
        seen = (is_down("spark-1", "spark-1/new"),)
        run = Run(plan(step("a", "spark-1", "stop", "spark-1/new", after=seen)), world, lines)
        run()
        assert run.states["a"] == state and run.ran == []


def test_an_operation_that_has_ended_is_not_carried_out_again() -> None:
    run = Run(plan(step("a", "spark-1", "save")))
    assert run() == "done"
    calls = len(run.world.calls)
    again = Run(plan(step("a", "spark-1", "save")), run.world, run.journal.lines)
    assert again() == "done"
    assert len(run.world.calls) == calls and again.journal.lines == run.journal.lines


def test_steps_that_go_together_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=20)
    run = Run()

    def meet(host: str, what: str) -> str:
        if what.endswith("/new") and " stop " in what:
            meeting.wait()
        return ""

    run.world.meddle = meet
    assert run() == "done"


def beside(fails: int = 0) -> Run:
    """Evidence beside a stop, then a start."""
    save = step("save", "spark-1", "save", limit=9, stage=Stage.EVIDENCE, optional=True, together="stop")
    stop = step("stop", "spark-1", "stop", "spark-1/new", together="stop")
    made = plan(save, stop, step("start", "spark-0", "start", OLD, stage=Stage.BOOT))
    return Run(made, World(fails={"start": fails}))


@pytest.mark.parametrize(("fails", "state"), [(0, "done"), (3, "half done")])
def test_evidence_beside_a_stop_holds_up_nothing_but_the_end(fails: int, state: str) -> None:
    run, started = beside(fails), threading.Event()

    def late(host: str, what: str) -> str:
        if what.endswith(" save"):
            assert started.wait(60), "the start waits for the evidence"
        if f"start {OLD}" in what:
            started.set()
        return ""

    run.world.meddle = late
    assert run() == state
    assert run.states["save"] == "done" and run.journal.lines[-1]["kind"] == "end"


def test_evidence_beside_a_stop_begins_once_the_stop_has_left() -> None:
    save = step("save", "spark-1", "save", limit=60, stage=Stage.EVIDENCE, optional=True, together="stop")
    stops = [step(f"stop-{n}", f"spark-{n}", "stop", f"spark-{n}/new", limit=60, together="stop") for n in range(3)]
    run = Run(plan(save, *stops))

    def patient(all_left: threading.Event, seconds: float) -> None:
        assert all_left is run.runner.hosts.halt or all_left.wait(60), "the evidence was never let go"

    run.runner.clock.pause = patient  # type: ignore[method-assign]
    assert run() == "done"
    assert run.ran[-1] == "save", run.ran


def test_evidence_beside_a_stop_that_never_leaves_is_kept_all_the_same() -> None:
    save = step("save", "spark-1", "save", limit=60, stage=Stage.EVIDENCE, optional=True, together="stop")
    stop = step("stop", "spark-2", "stop", "spark-2/new", limit=60, together="stop")
    run = Run(plan(save, stop), World(out_of_reach={"spark-2"}))
    run()
    assert "save" in run.ran


@pytest.mark.parametrize("told", ["asked.0=0 it has exited\n", "asked.0=1 it runs\n", ""])
def test_what_is_seen_with_the_end_of_a_unit_is_not_asked_again(told: str) -> None:
    down = is_down("spark-1", "spark-1/new")
    run = Run(plan(step("a", "spark-1", "stop", "spark-1/new", limit=60, after=(down,))))
    answer, given = run.world.run, []

    def with_it(host: str, argv: Any, stdin: str, limit: float, question: bool = False) -> Done:
        done = answer(host, argv, stdin, limit, question)
        if argv[:3] != ["sh", "-c", WAIT]:
            return done
        given.append(stdin)
        return Done(0, done.out + told)

    run.world.run = with_it  # type: ignore[method-assign]
    assert run() == "done"
    asked = [words for _, words in run.world.calls if words[0] == "is"]
    assert len(asked) == (0 if "=0 " in told else 1), "a no, or no answer, is no yes"
    assert "is spark-1/new down" in given[0]


def test_evidence_alone_is_waited_for() -> None:
    save = step("save", "spark-1", "save", stage=Stage.EVIDENCE, optional=True)
    run = Run(plan(save, step("remove", "spark-1", "remove")))
    assert run() == "done"
    assert run.ran == ["save", "remove"]


def test_evidence_that_is_fenced_beside_a_stop_ends_it() -> None:
    run = beside()
    answer = run.world.run

    def fenced(host: str, argv: Any, stdin: str, limit: float, question: bool = False) -> Done:
        if argv[-1] == "save":
            return Done(4, "epoch=9\noperator=ben\nsince=1796000700\n", "fenced off")
        return answer(host, argv, stdin, limit, question)

    run.world.run = fenced  # type: ignore[method-assign]
    assert run() == "half done"
    assert run.states["save"] == "fenced"


def test_half_done_is_worded_as_every_console_words_it() -> None:
    run = Run(world=World(fails={"start": 3}))
    run()
    views = [StepView(one.id, one.stage, one.title, one.host, StepState(run.states[one.id])) for one in swap().steps]
    assert end_of(run.journal)[1].startswith(half_done_words(views))
    assert half_done_words(views) == "HALF DONE after stop rank 2, next: start on spark-0 (failed)"


# --- a host that was restarted under a step


def cut_short(limit: float, again: bool, **more: Any) -> Run:
    """A start that was under way when its host went down, and a runner that carries the operation on afterwards."""
    given = {"after": (is_up("spark-1", "spark-1/old"),), "again": again, **more}
    made = plan(step("a", "spark-1", "start", "spark-1/old", limit=limit, **given), step("b", "spark-0", "note"))
    world = World(hangs={"start"})
    first = Run(made, world)

    def goes_down(host: str, what: str) -> str:
        if world.ran:
            raise SystemExit  # the console that carried it out goes too
        return ""

    world.meddle = goes_down
    with pytest.raises(SystemExit):
        first()
    world.meddle = lambda host, what: ""
    world.hangs.clear()
    run = Run(made, world, first.journal.lines)
    world.now = run.clock.wall
    run.clock.now += 30
    world.restart("spark-1")
    run.clock.now += 5
    return run


@pytest.mark.parametrize("limit", [8.0, 60.0])
def test_a_start_that_its_hosts_restart_cut_short_is_begun_once_more_and_the_plan_goes_on(limit: float) -> None:
    run = cut_short(limit, True)
    assert run() == "done", run.journal.lines
    assert run.ran == ["a", "a", "b"] and run.world.up >= {"spark-1/old"}
    assert [ran.boot for ran in run.world.ran[:2]] == [0, 1], "never twice in one start of its host"
    assert any("spark-1 was restarted under it" in str(line.get("words")) for line in run.journal.lines)


def test_a_step_that_nobody_may_repeat_is_left_to_a_person() -> None:
    run = cut_short(60.0, False)
    assert run() == "half done"
    assert run.ran == ["a"] and run.states["a"] == "unknown"
    assert "its outcome is not known" in run.words("a")


def test_what_holds_after_the_restart_is_not_done_again() -> None:
    run = cut_short(60.0, True)
    run.world.up.add("spark-1/old")  # by its restart policy
    assert run() == "done" and run.ran == ["a", "b"]


def test_a_host_that_still_comes_up_is_given_time_to_answer() -> None:
    run = cut_short(60.0, True, before=(is_down("spark-1", "spark-1/old"),))
    answer, asked = run.world.run, 0

    def starting(host: str, argv: Any, stdin: str, limit: float, question: bool = False) -> Done:
        nonlocal asked
        if tuple(argv) == ("is", "spark-1/old", "down") and run.clock.now < 1_796_000_060.0:
            asked += 1
            return Done(2, "Cannot connect to the Docker daemon")
        return answer(host, argv, stdin, limit, question)

    run.world.run = starting  # type: ignore[method-assign]
    assert run() == "done" and asked > 3


def test_what_the_host_says_it_still_runs_is_not_begun_beside_it() -> None:
    """Its clock was set back: it looks restarted, and is not."""
    run = cut_short(8.0, True)
    run.world.boots.clear()
    assert run() == "half done"
    assert run.ran == ["a"] and "was not restarted" in run.words("a")


def test_an_operators_own_stop_is_not_undone_by_a_restart() -> None:
    run = cut_short(60.0, True)
    run.world.claims["spark-1", OP, "a"] = 143
    answer = run.world.run

    def stopped(host: str, argv: Any, stdin: str, limit: float, question: bool = False) -> Done:
        done = answer(host, argv, stdin, limit, question)
        return (
            Done(0, done.out.replace("it says", "stopped by an operator,")) if argv[:3] == ["sh", "-c", WAIT] else done
        )

    run.world.run = stopped  # type: ignore[method-assign]
    assert run() != "done" and run.ran == ["a"] and run.states["a"] == "stopped"


def test_all_hosts_are_fenced_before_the_first_step() -> None:
    """Also those whose turn comes late: an older sequence must not act there while this one runs."""
    run = Run(plan(step("a", "spark-1", "save"), step("b", "spark-2", "name")))
    seen: list[dict[str, int]] = []

    def look(host: str, what: str) -> str:
        if what.endswith(" save"):
            seen.append(dict(run.world.epochs))
        return ""

    run.world.meddle = look
    assert run() == "done"
    assert seen == [dict.fromkeys(HOSTS, 1)]


def test_the_head_is_asked_before_each_step_whose_lease_it_is() -> None:
    """The lane was taken over on the head; the rank has not heard of it yet."""
    run = Run(plan(step("a", "spark-1", "stop", "spark-1/new"), step("b", "spark-1", "name")))
    run.world.meddle = lambda _, what: run.world.epochs.update({"spark-0": 7}) or "" if "stop" in what else ""
    assert run() == "half done"
    assert (run.states, run.ran) == ({"a": "done", "b": "fenced"}, ["a"])


def test_a_precondition_whose_answer_was_lost_is_asked_for_again() -> None:
    up = is_up("spark-1", "spark-1/new")
    run = Run(plan(step("a", "spark-1", "stop", "spark-1/new", limit=60, before=(up,))))
    lost: list[str] = []

    def once(host: str, what: str) -> str:
        if what.startswith("is ") and len(lost) < 3:
            lost.append(what)
            return "after"
        return ""

    run.world.meddle = once
    assert run() == "done"
    assert len(lost) == 3 and run.ran == ["a"]


@pytest.mark.parametrize("limit", [8.0, 60.0])
def test_a_host_that_was_restarted_is_not_sent_the_command_again(limit: float) -> None:
    """It has forgotten that the step was begun: that is no proof that nothing of it was done."""
    run, waits = Run(plan(step("a", "spark-1", "start", OLD, limit=limit)), World(hangs={"start"})), count()

    def restarts() -> None:
        assert next(waits) < 10_000, "waited for without end"
        if run.world.ran and run.world.uptime > 1:
            run.world.claims.clear()
            run.world.uptime = 0.1
            run.clock.now += 5.0

    run.clock.waited = restarts
    assert run() == "half done"
    assert run.ran == ["a"] and run.words("a") == "spark-1 was restarted; its outcome is not known"
