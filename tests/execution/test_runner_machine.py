"""Whatever is lost, killed, torn or taken over, in any order: no step runs twice, the journal is true to the world."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from runner_world import HOSTS, FakeClock, MemoryJournal, World, operation, swap

from console.execution import runner, runner_hosts
from console.execution.runner import Runner
from console.execution.runner_base import FINE
from console.execution.runner_head import FileJournal

FATES = st.sampled_from(["", "", "", "", "before", "after"])
PEOPLE = ("ana", "ben")
EFFECTS = {f"stop-{host}": (f"{host}/new", False) for host in HOSTS} | {"start": ("spark-0/old", True)}


class Serial:
    """One after the other: what hypothesis finds has to happen again."""

    def __enter__(self) -> Serial:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, act: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [act(item) for item in items]


@pytest.fixture(autouse=True)
def _serial(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (runner, runner_hosts):
        monkeypatch.setattr(module, "pool", lambda workers: Serial())


class Killed(BaseException):
    """kill -9."""


class DyingJournal(FileJournal):
    """Dies before or behind its n-th write, or in the middle of it."""

    def __init__(self, path: str, at: int, how: str) -> None:
        super().__init__(path)
        self.left, self.how, self.dead = at, how, False

    def write(self, line: dict[str, Any]) -> None:
        self.left -= 1
        if self.dead or (self.left == 0 and self.how != "behind"):
            if self.how == "torn" and not self.dead:
                with open(self.path, "ab") as file:
                    file.write(b'{"t": 1796000000, "seq": 3, "ki')
            self.dead = True
            raise Killed
        super().write(line)
        if self.left == 0:
            self.dead = True
            raise Killed


class Sequences(RuleBasedStateMachine):
    """One operation, carried out by one runner after the other."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self.folder.name, "journal.jsonl"))
        self.world, self.clock = World(), FakeClock()
        self.world.now = self.clock.wall
        self.operation = operation(swap())
        self.epoch, self.ended, self.faults, self.foreign = 1, "", False, set[str]()
        self.others: set[str] = set()
        """Containers that something else than a step started or stopped."""

    def teardown(self) -> None:
        self.folder.cleanup()

    def carry_out(self, journal: FileJournal) -> None:
        runner = Runner(self.operation, self.world, journal, clock=self.clock)
        try:
            self.ended = runner.run()
        except Killed:
            pass
        finally:
            self.world.meddle = lambda host, what: ""

    @precondition(lambda self: not self.ended)
    @rule(at=st.integers(1, 25), how=st.sampled_from(["before", "torn", "behind"]))
    def killed(self, at: int, how: str) -> None:
        """A runner that is killed on the way, if it does not end before."""
        self.carry_out(DyingJournal(self.path, at, how))

    @precondition(lambda self: not self.ended)
    @rule(at=st.integers(1, 25), fates=st.lists(FATES, min_size=5, max_size=60))
    def killed_on_bad_lines(self, at: int, fates: list[str]) -> None:
        """The same, and answers are lost on top."""
        self.faults = True
        queue = iter(fates)
        self.world.meddle = lambda host, what: next(queue, "")
        self.carry_out(DyingJournal(self.path, at, "before"))

    @precondition(lambda self: not self.ended)
    @rule(host=st.sampled_from(HOSTS), at=st.integers(1, 20))
    def a_host_goes_and_stays_away(self, host: str, at: int) -> None:
        self.faults = True
        self.world.out_of_reach.add(host)
        self.carry_out(DyingJournal(self.path, at, "before"))
        self.world.out_of_reach.clear()

    @precondition(lambda self: not self.ended)
    @rule()
    def a_unit_is_lost(self) -> None:
        """A host forgets how the steps ended that run there."""
        self.faults = True
        for key, code in self.world.claims.items():
            self.world.claims[key] = -9 if code is None else code

    @precondition(lambda self: not self.ended)
    @rule(host=st.sampled_from(HOSTS), at=st.integers(1, 60), before=st.integers(1, 25))
    def a_host_is_restarted_under_it(self, host: str, at: int, before: int) -> None:
        """In its n-th call; with the head the runner itself goes. Whatever was under way there has ended."""
        calls = 0

        def meddle(there: str, what: str) -> str:
            nonlocal calls
            calls += 1
            if calls == at:
                self.restart(host)
                if host == self.operation["head"]:
                    raise Killed
            return ""

        self.world.meddle = meddle
        self.faults = self.faults or host != self.operation["head"]
        self.carry_out(DyingJournal(self.path, before, "before"))

    @precondition(lambda self: not self.ended)
    @rule(name=st.sampled_from(["start", *EFFECTS, "name"]), undone=st.booleans())
    def the_host_of_a_step_is_restarted_under_it(self, name: str, undone: bool) -> None:
        """And the runner goes too. `undone`: by then the command had not got far enough to change anything."""

        def meddle(there: str, what: str) -> str:
            last = self.world.ran[-1] if self.world.ran else None
            if last is None or last.step != name or self.told(name):
                return ""
            self.world.claims[last.host, last.op, last.step] = None
            self.faults = self.faults or not self.again(name)
            container, up = EFFECTS.get(name, ("", False))
            if undone and container:
                (self.world.up.discard if up else self.world.up.add)(container)
            self.restart(last.host, but=container if undone and not up else "")
            raise Killed

        self.world.meddle = meddle
        self.carry_out(FileJournal(self.path))

    @precondition(lambda self: not self.ended)
    @rule(host=st.sampled_from(HOSTS))
    def a_host_is_restarted_while_nobody_carries_on(self, host: str) -> None:
        self.restart(host)

    def restart(self, host: str, but: str = "") -> None:
        """What runs on it ends, all `but` a container that its restart policy brings up again."""
        self.clock.now += 100
        self.others |= {name for name in self.world.up if name.startswith(f"{host}/")} - {but, "spark-0/old"}
        served = self.told("start") and "spark-0/old" in self.world.up
        self.world.restart(host)
        if host == HOSTS[0] and served:
            self.others.add("spark-0/old")  # it served, and nobody is asked to start it once more
        if but:
            self.world.up.add(but)
        self.clock.now += 5

    def again(self, step: str) -> bool:
        """Whether a step may be begun once more."""
        return any(one["again"] for one in self.operation["steps"] if one["id"] == step)

    def told(self, step: str) -> bool:
        """Whether the journal says how a step ended."""
        return any(line["id"] == step and line["state"] != "running" for line in self.lines() if line["kind"] == "step")

    @precondition(lambda self: not self.ended)
    @rule(name=st.sampled_from(["spark-0/old", *(f"{host}/new" for host in HOSTS)]), up=st.booleans())
    def somebody_starts_or_stops_a_container(self, name: str, up: bool) -> None:
        """By hand, or a watchdog, underneath."""
        self.faults = True
        self.others.add(name)
        (self.world.up.add if up else self.world.up.discard)(name)

    @precondition(lambda self: not self.ended)
    @rule(person=st.sampled_from(PEOPLE))
    def taken_over(self, person: str) -> None:
        """Another console carries it on under a newer epoch."""
        self.epoch += 1
        self.world.epochs[HOSTS[0]] = self.epoch
        self.operation = {**self.operation, "epoch": self.epoch, "operator": person}

    @precondition(lambda self: not self.ended)
    @rule(fails=st.sampled_from(["save", "stop spark-1/new", "start", "name"]))
    def something_fails(self, fails: str) -> None:
        self.faults = True
        self.world.fails[fails] = 3

    @precondition(lambda self: not self.ended)
    @rule()
    def carried_on_in_peace(self) -> None:
        """Nothing happens to it from here on: without earlier faults it comes to its end."""
        self.carry_out(FileJournal(self.path))
        assert self.ended

    @precondition(lambda self: bool(self.ended))
    @rule()
    def carried_out_again(self) -> None:
        """What has ended stays as it is."""
        calls = len(self.world.calls)
        assert Runner(self.operation, self.world, FileJournal(self.path), clock=self.clock).run() == self.ended
        assert len(self.world.calls) == calls

    @invariant()
    def no_step_runs_twice_in_one_start_of_its_host(self) -> None:
        ran = Counter((one.step, one.boot) for one in self.world.ran)
        assert not [step for step, times in ran.items() if times > 1]
        twice = [step for step, times in Counter(one.step for one in self.world.ran).items() if times > 1]
        assert all(self.again(step) for step in twice), twice

    @invariant()
    def no_older_epoch_acts_after_a_newer_one(self) -> None:
        epochs = [ran.epoch for ran in self.world.ran]
        assert epochs == sorted(epochs)

    @invariant()
    def every_command_was_in_the_journal_before(self) -> None:
        begun = {line["id"] for line in self.lines() if line["kind"] == "step" and line["state"] == "running"}
        assert {ran.step for ran in self.world.ran} <= begun

    @invariant()
    def what_the_journal_says_is_true(self) -> None:
        lines = self.lines()
        assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
        states = {line["id"]: line["state"] for line in lines if line["kind"] == "step"}
        for name, (container, up) in EFFECTS.items():
            if states.get(name) in FINE and container not in self.others:
                assert (container in self.world.up) == up, name
        if self.ended == "done":
            assert self.world.up ^ {"spark-0/old"} <= self.others
        if self.ended == "failed":
            assert not [ran for ran in self.world.ran if states[ran.step] in FINE and ran.step != "save"]

    @invariant()
    def kills_takeovers_and_restarts_of_the_head_alone_keep_it_from_nothing(self) -> None:
        if self.ended and not self.faults:
            assert self.ended == "done", self.lines()

    def lines(self) -> list[dict[str, Any]]:
        return FileJournal(self.path).lines


TestSequences = Sequences.TestCase
TestSequences.settings = settings(
    max_examples=60, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)


class Zombies(RuleBasedStateMachine):
    """A console that slept in the middle of its sequence, while another one took the lease over and acted."""

    @initialize(at=st.integers(1, 60), again=st.booleans(), adopts=st.booleans())
    def sleep_and_wake(self, at: int, again: bool, adopts: bool) -> None:
        """In the older one's n-th call the newer one takes over and acts: goes on with it, or does something else."""
        self.world, clock, calls = World(), FakeClock(), 0
        older, journal = operation(swap()), MemoryJournal()
        newer = {**older, "epoch": 2, "operator": "ben"} | ({} if again else {"id": "20261201T021600Z-stop-000001"})
        fresh = newer if again and adopts else older
        self.second = ""

        def meddle(host: str, what: str) -> str:
            nonlocal calls
            calls += 1
            if calls == at:
                self.world.epochs[HOSTS[0]] = 2
                lines = journal.lines if again else []
                self.second = Runner(newer, self.world, MemoryJournal(lines), clock=FakeClock()).run()
            return ""

        self.world.meddle = meddle
        self.first = Runner(older, self.world, journal, clock=clock, reload=lambda: fresh).run()

    @rule()
    def awake(self) -> None:
        """Everything happens at the beginning."""

    @invariant()
    def the_older_one_never_acts_after_the_newer_one(self) -> None:
        epochs = [ran.epoch for ran in getattr(self, "world", World()).ran]
        assert epochs == sorted(epochs)

    @invariant()
    def nothing_ran_twice(self) -> None:
        ran = Counter((ran.op, ran.step) for ran in getattr(self, "world", World()).ran)
        assert not [step for step, times in ran.items() if times > 1]

    @invariant()
    def whoever_came_last_has_its_way(self) -> None:
        if getattr(self, "second", "") == "done":
            assert self.world.up == {"spark-0/old"}


TestZombies = Zombies.TestCase
TestZombies.settings = settings(
    max_examples=120, stateful_step_count=2, deadline=None, suppress_health_check=list(HealthCheck)
)
