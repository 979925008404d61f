"""A lane, two operators, and all that may happen to them: kills, restarts, take-overs, foreign hands, a watchdog.

Real are the runner, the operation files, the journal, the ledgers and the reading of all of them; hosts are those of
`runner_world`, whose commands take no time.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from runner_world import FOLDER, HOSTS, FakeClock, World, is_down, is_up, step

from console.actions.plan import Plan, Stage, Step, Verb
from console.execution import runner, runner_hosts
from console.execution.ledger import CARRIED_ON, Clock, Entry, Ledger
from console.execution.recording import NOT_BEGUN, unfinished
from console.execution.runner import Runner
from console.execution.runner_base import JournalLost
from console.execution.runner_head import FileJournal
from console.execution.sequence import compile_operation, read_operation, taken_over
from console.readings.acting import Pulse, Texts, answered, read_acting
from console.readings.acting_operation import read_operation as read_files
from console.readings.acting_types import Acting, Operation, OperationState
from console.readings.ledger import Kind

HEAD = HOSTS[0]
OLD = f"{HEAD}/old"
TTL = 60.0
PEOPLE = ("ana", "ben")
BAD = (OperationState.HALF_DONE, OperationState.LOST, OperationState.FAILED, OperationState.STOPPED)
GOES_ON = (OperationState.RUNNING, OperationState.UNKNOWN)


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
    """kill -9 of a console or a runner."""


class Dying(FileJournal):
    """Its runner dies before, in the middle of, or behind its n-th write; 0: never."""

    def __init__(self, path: str, at: int, how: str) -> None:
        super().__init__(path)
        self.left, self.how = at, how

    def write(self, line: dict[str, Any]) -> None:
        self.left -= 1
        if self.left == 0 and self.how != "behind":
            if self.how == "torn":
                Path(self.path).open("ab").write(b'{"t": 1796000000, "seq": 3, "ki')
            raise Killed
        super().write(line)
        if self.left == 0:
            raise Killed


# --- plans -----------------------------------------------------------------------------------------------------------


def stop(host: str, name: str) -> Step:
    """Stops a container of a host; it knows when that is so already."""
    gone = (is_down(host, name),)
    return step(
        f"stop-{host}", host, "stop", name, title=f"stop {name}",
        limit=30.0, already=gone, after=gone, together="stop", again=True,
    )  # fmt: skip


def start(host: str, name: str, together: str = "") -> Step:
    return step(
        f"start-{host}", host, "start", name, title=f"start {name}",
        limit=60.0, stage=Stage.BOOT, after=(is_up(host, name),), together=together, again=True,
    )  # fmt: skip


def plan_of(verb: Verb) -> Plan:
    """What each key does here: NEW runs on three hosts, OLD is kept on the head."""
    if verb is Verb.STOP:
        steps = [*(stop(host, f"{host}/new") for host in HOSTS)]
    elif verb is Verb.ROLLBACK:
        steps = [*(stop(host, f"{host}/new") for host in HOSTS), start(HEAD, OLD)]
    else:
        workers = (start(host, f"{host}/new", "workers") for host in HOSTS[1:])
        steps = [stop(HEAD, OLD), *workers, start(HEAD, f"{HEAD}/new")]
    save = step("save", HEAD, "save", stage=Stage.EVIDENCE, optional=True, title="save evidence")
    return Plan(verb, "spark4", "dsv41", HEAD, f"{verb} dsv41", (save, *steps), origin="here", target="there")


def wanted(verb: str, up: set[str]) -> bool:
    """Whether what is up is what an operation was to come to."""
    new = {f"{host}/new" for host in HOSTS}
    if verb == "stop":
        return not up & new
    return OLD in up and not up & new if verb == "rollback" else new <= up and OLD not in up


def serves(up: set[str]) -> bool:
    return OLD in up or {f"{host}/new" for host in HOSTS} <= up


class Watched(World):
    """The same, where nothing may begin on the head that is older than the newest lease there."""

    granted = 0

    def _begin(self, host: str, op: str, name: str, epoch: int, argv: tuple[str, ...], *, unit: bool) -> Any:
        assert host != HEAD or epoch >= self.granted, "fenced off, and acts"
        return super()._begin(host, op, name, epoch, argv, unit=unit)


# --- the machine -----------------------------------------------------------------------------------------------------

HAPPENS = st.sampled_from(
    [
        *(f"{host} restarts" for host in HOSTS),
        *(f"foreign {verb} {name}" for verb in ("start", "stop") for name in (OLD, f"{HEAD}/new")),
        *("taken over", "a lease runs out", "watchdog armed", "watchdog off"),
    ]
)
EVENTS = st.lists(st.tuples(st.integers(1, 60), HAPPENS), max_size=2)
DEATH = st.tuples(st.sampled_from([0, 0, 0, 0, *range(2, 17)]), st.sampled_from(["before", "torn", "behind"]))


class Lanes(RuleBasedStateMachine):
    """One lane, from operation to operation."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.world, self.clock = Watched(), FakeClock()
        self.world.now = self.clock.wall
        times = Clock(wall=self.clock.wall, mono=self.clock.mono, boot=lambda: "b")
        self.ledgers = {who: Ledger(self.root / f"{who}.jsonl", "spark4", who, times=times) for who in PEOPLE}
        self.epoch, self.holder, self.renewed, self.count = 0, "", 0.0, 0
        self.newest, self.verb, self.booted = "", "", 0.0
        self.alive = False
        """A runner is at work on the head."""
        self.moved = False
        """Something else than the newest operation started or stopped a container since it was begun."""
        self.armed = False
        """A watchdog starts the lane where nothing serves."""

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.settle()
            self.folder.cleanup()

    # what the head keeps, and how everybody sees it

    def op(self, name: str) -> Path:
        return self.root / "ops" / name

    def text(self, path: Path) -> str | None:
        return path.read_text() if path.exists() else None

    def picture(self) -> Acting:
        """What any console makes of the head's files now."""
        lease = None
        if self.holder:
            rows = {"id": "ab", "epoch": self.epoch, "operator": self.holder, "console": "c", "purpose": "p"}
            rows |= {"acquired": int(self.renewed), "renewed": int(self.renewed), "ttl": int(TTL)}
            lease = "".join(f"{key}={value}\n" for key, value in rows.items())
        folder = self.op(self.newest)
        texts = Texts(
            lease=answered(lease), window=answered(None), debts=answered(None),
            current=answered(f"{self.newest}\n" if self.newest else None),
            plan=answered(self.text(folder / "plan.json") if self.newest else None),
            journal=answered(self.text(folder / "journal.jsonl") if self.newest else None),
        )  # fmt: skip
        pulse = Pulse(self.alive, self.booted or None)
        return read_acting(texts, self.clock.wall(), lane="dsv41", folder=FOLDER, pulse=pulse)

    def seen(self) -> Operation | None:
        return self.picture().operation

    # operators

    def may(self, who: str, verb: Verb) -> bool:
        """As the policy has it: another's lease that lives is in the way of all but the way back."""
        held = bool(self.holder) and self.holder != who and self.clock.wall() - self.renewed < TTL
        return not held or verb is Verb.ROLLBACK

    def lease(self, who: str) -> None:
        self.epoch, self.holder, self.renewed = self.epoch + 1, who, self.clock.wall()
        self.world.epochs[HEAD] = self.world.granted = self.epoch
        self.world.holder = who

    @rule(
        who=st.sampled_from(PEOPLE),
        verb=st.sampled_from([Verb.STOP, Verb.RELAUNCH, Verb.ROLLBACK]),
        dies=st.sampled_from(["", "", "", "", "", "", "lease", "torn intent", "intent", "plan"]),
        events=EVENTS,
        death=DEATH,
        later=st.lists(st.tuples(st.sampled_from(PEOPLE), EVENTS, DEATH), max_size=2),
    )
    def act(
        self,
        who: str,
        verb: Verb,
        dies: str,
        events: list[tuple[int, str]],
        death: tuple[int, str],
        later: list[tuple[str, list[tuple[int, str]], tuple[int, str]]],
    ) -> None:
        """A key is confirmed. The console `dies` behind one of its writes, the runner at one of its own. `later`, when
        the lease has run out, others carry it on, where nobody does."""
        if not self.may(who, verb):
            return
        self.count += 1
        self.lease(who)
        if dies == "lease":
            return
        name = f"20261201T02{self.count // 60:02d}{self.count % 60:02d}Z-{verb}-{self.count:06x}"
        made = plan_of(verb)
        ledger = self.ledgers[who]
        if dies == "torn intent":
            with ledger.file.open("ab") as file:
                file.write(b'{"v":1,"chain":"torn')
            return
        ledger.intent(Entry("dsv41", made.title, host=HEAD, op=name, epoch=self.epoch, plan=made.id))
        if dies == "intent":
            return
        operation = compile_operation(
            made, op=name, operator=who, console=f"{who}@desk 1", epoch=self.epoch, folder=FOLDER,
            reach={host: [] for host in HOSTS}, created=self.clock.wall(),
        )  # fmt: skip
        self.op(name).mkdir(parents=True)
        (self.op(name) / "plan.json").write_text(json.dumps({**operation, "fence": "FENCE", "starter": "STARTER"}))
        self.newest, self.verb, self.moved = name, str(verb), False
        if dies != "plan":
            self.carry_out(events, death)
        for other, more, end in later:
            self.a_lease_runs_out()
            self.carry_on(other, more, end)

    @rule(who=st.sampled_from(PEOPLE), events=EVENTS, death=DEATH)
    def carry_on(self, who: str, events: list[tuple[int, str]], death: tuple[int, str]) -> None:
        """`attach --carry-on`, of what nobody carries on."""
        if not self.newest:
            return
        self.clock.now += 20
        found = self.seen()
        told = self.op(self.newest) / "journal.jsonl"
        if found is None or found.state not in BAD or not told.exists() or found.ended is not None:
            return
        if not self.may(who, Verb.STOP):
            return
        self.lease(who)
        if found.operator != who:
            entry = Entry("dsv41", "carried on", host=HEAD, op=self.newest, epoch=self.epoch, result=CARRIED_ON)
            self.ledgers[who].note(entry)
        path = self.op(self.newest) / "plan.json"
        stored = read_operation(path.read_text())
        path.write_text(json.dumps(taken_over(stored, operator=who, console=f"{who}@desk 2", epoch=self.epoch)))
        self.carry_out(events, death)

    def carry_out(self, events: list[tuple[int, str]], death: tuple[int, str]) -> None:
        """A runner on the head, until it ends or is killed. What happens meanwhile happens in its n-th call."""
        folder = self.op(self.newest)
        operation = json.loads((folder / "plan.json").read_text())
        due, calls = dict(events), 0

        def meddle(host: str, what: str) -> str:
            nonlocal calls
            calls += 1
            if calls in due:
                note(f"in call {calls}: {due[calls]}")
                self.happens(due[calls])
                if due[calls] == f"{HEAD} restarts":
                    raise Killed
            return ""

        self.world.meddle, self.alive = meddle, True
        try:
            journal = Dying(str(folder / "journal.jsonl"), *death)
            state = Runner(operation, self.world, journal, clock=self.clock).run()
        except (Killed, JournalLost):
            pass
        else:
            assert state != "done" or self.moved or wanted(self.verb, self.world.up), (self.verb, self.world.up)
            self.holder = ""  # nothing is under way any more, so the lease is given back
        finally:
            self.world.meddle, self.alive = (lambda host, what: ""), False
        self.dog_fires()
        self.clock.now += 20  # what was last written is not fresh any more

    # what happens to them

    @rule(what=HAPPENS)
    def something_happens(self, what: str) -> None:
        """While nobody carries anything on."""
        self.happens(what)

    def happens(self, what: str) -> None:
        if what.endswith(" restarts"):
            self.restart(what.partition(" ")[0])
        elif what == "taken over":
            self.lease("ben" if self.holder == "ana" else "ana")
        elif what == "a lease runs out":
            self.a_lease_runs_out()
        elif what.startswith("watchdog "):
            self.armed = what == "watchdog armed"
            self.dog_fires()
        else:
            self.foreign(what.split(" ")[-1], up=what.startswith("foreign start"))

    def restart(self, host: str) -> None:
        """Its containers stay down: their restart policies are `no`."""
        self.clock.now += 100
        self.moved = self.moved or any(name.startswith(f"{host}/") for name in self.world.up)
        self.world.restart(host)
        if host == HEAD:
            self.booted = self.clock.wall()
        self.clock.now += 30

    def foreign(self, name: str, up: bool) -> None:
        self.moved = True
        (self.world.up.add if up else self.world.up.discard)(name)

    def dog_fires(self) -> None:
        if self.armed and not serves(self.world.up):
            self.moved = True
            self.world.up |= {f"{host}/new" for host in HOSTS}

    def a_lease_runs_out(self) -> None:
        self.clock.now += 2 * TTL

    @rule(who=st.sampled_from(PEOPLE))
    def look(self, who: str) -> None:
        """A console of this operator is there for a while: it writes outcomes, as `Recording` does."""
        self.clock.now += 20
        ledger, newest = self.ledgers[who], self.seen()
        for op, kept in unfinished(ledger.verify().text.records).items():
            folder = self.op(op)
            plan, journal = self.text(folder / "plan.json"), self.text(folder / "journal.jsonl")
            if newest is not None and newest.id == op:
                found = newest
                if found.state in GOES_ON or kept.epoch == 0:
                    continue
            elif plan is not None and journal is not None:
                found = read_files(op, "dsv41", plan, journal, True, [])
            else:
                ledger.once(Kind.OUTCOME, Entry("dsv41", "nothing was sent", op=op, result=NOT_BEGUN))
                continue
            result = OperationState.LOST.value if found.state in GOES_ON else found.state.value
            ledger.once(Kind.OUTCOME, Entry("dsv41", found.words, op=op, result=result))

    def settle(self) -> None:
        """Everybody looks once more: no intent is left without an outcome."""
        for who in PEOPLE:
            self.look(who)
            records = self.ledgers[who].verify().text.records
            ends = {one.op for one in records if one.kind is Kind.OUTCOME}
            assert {one.op for one in records if one.kind is Kind.INTENT} <= ends

    # what must hold whatever happens

    @invariant()
    def no_step_runs_twice_in_one_start_of_its_host(self) -> None:
        ran = Counter((one.op, one.step, one.boot) for one in self.world.ran)
        assert not [step for step, times in ran.items() if times > 1]

    @invariant()
    def who_is_fenced_off_never_acts(self) -> None:
        by_host: dict[str, list[int]] = {}
        for one in self.world.ran:
            by_host.setdefault(one.host, []).append(one.epoch)
        assert all(epochs == sorted(epochs) for epochs in by_host.values())
        epochs = [one.epoch for one in self.world.ran]
        assert epochs == sorted(epochs), "an older lease never acts behind a newer one, on whatever host"

    @invariant()
    def every_ledger_holds(self) -> None:
        for ledger in self.ledgers.values():
            found = ledger.verify()
            assert not found.problem and not found.text.broken, found.problem
            intents = [one.op for one in found.text.records if one.kind is Kind.INTENT]
            assert len(set(intents)) == len(intents)

    @invariant()
    def every_command_had_its_intent_first(self) -> None:
        meant = {one.op for ledger in self.ledgers.values() for one in ledger.verify().text.records}
        assert {one.op for one in self.world.ran} <= meant

    @invariant()
    def it_serves_or_every_picture_says_what_is_next(self) -> None:
        found = self.seen()
        if found is None or serves(self.world.up) or self.moved:
            return
        if found.state is OperationState.DONE:
            assert self.verb == "stop", "what was to serve is said to be done, and nothing serves"
            return
        assert found.state in (*BAD, *GOES_ON), found
        changed = [one for one in self.world.ran if one.op == found.id and one.step != "save"]
        if changed and found.state not in GOES_ON:
            assert "next: " in found.words or found.state is OperationState.FAILED, found.words


TestLanes = Lanes.TestCase
TestLanes.settings = settings(
    max_examples=50, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
