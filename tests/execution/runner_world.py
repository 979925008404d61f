"""A world without hosts for the runner: containers that are up or down, fences, claims, units, and faults on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from console.actions.plan import Plan, Probe, Stage, Step, Verb
from console.execution.runner_base import ASIDE, LOOK, ONCE, WAIT, Clock, Done
from console.execution.sequence import compile_operation

OP = "20261201T021500Z-rollback-3f9ac1"
FOLDER = "/state/spark4.dsv41"
HOSTS = ("spark-0", "spark-1", "spark-2")


def is_up(host: str, name: str, words: str = "") -> Probe:
    """Whether a container runs."""
    return Probe(host, words or f"{name} runs", ("is", name, "up"))


def is_down(host: str, name: str) -> Probe:
    """Whether a container has exited."""
    return Probe(host, f"{name} has exited", ("is", name, "down"))


def step(id: str, host: str, *argv: str, limit: float = 8.0, stage: Stage = Stage.STOP, **more: Any) -> Step:
    """One step; a limit over ten seconds makes it a unit."""
    return Step(id=id, stage=stage, title=more.pop("title", id), host=host, argv=argv, limit=limit, **more)


def plan(*steps: Step, rescue: Sequence[Step] = ()) -> Plan:
    """A plan of these steps."""
    return Plan(Verb.ROLLBACK, "spark4", "dsv41", HOSTS[0], "roll back dsv41", steps, rescue=tuple(rescue))


def swap() -> Plan:
    """Stop a lane on three hosts, start the retired container, wait until it serves."""
    stops = [
        step(
            f"stop-{host}",
            host,
            "stop",
            f"{host}/new",
            title=f"stop rank {rank}",
            limit=30.0 if rank else 8.0,
            already=(is_down(host, f"{host}/new"),),
            after=(is_down(host, f"{host}/new"),),
            together="stop",
            again=True,
        )
        for rank, host in enumerate(HOSTS)
    ]
    old = "spark-0/old"
    return plan(
        step("save", "spark-0", "save", stage=Stage.EVIDENCE, optional=True, title="save evidence"),
        *stops,
        step(
            "start", "spark-0", "start", old, limit=60.0, stage=Stage.BOOT, after=(is_up("spark-0", old),), again=True
        ),
        step("name", "spark-1", "name", stage=Stage.BOOT, title="note the roles"),
        step("serves", "spark-0", limit=30.0, stage=Stage.BOOT, after=(is_up("spark-0", old, "the lane serves"),)),
    )


def operation(made: Plan | None = None, **changes: Any) -> dict[str, Any]:
    """The operation file of a plan in this world."""
    given = {"op": OP, "operator": "ana", "epoch": 1, "folder": FOLDER, "created": 1_796_000_000.0, **changes}
    found = compile_operation(made or swap(), console="ana@desk 4711", reach={host: [] for host in HOSTS}, **given)
    return {**found, "fence": "FENCE", "starter": "STARTER"}


@dataclass(frozen=True)
class Ran:
    """One command that really ran."""

    host: str
    op: str
    step: str
    epoch: int
    argv: tuple[str, ...]
    boot: int = 0
    """In which start of its host."""


@dataclass
class World:
    """All hosts. `meddle` is asked before each call, and says what happens to it: '' (nothing), `before` (lost on the
    way there), `after` (its answer is lost)."""

    up: set[str] = field(default_factory=lambda: {f"{host}/new" for host in HOSTS})
    epochs: dict[str, int] = field(default_factory=dict)
    claims: dict[tuple[str, str, str], int | None] = field(default_factory=dict)
    """Exit status of each step that was begun, by host, operation and step; None while it runs."""
    ran: list[Ran] = field(default_factory=list)
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    fails: dict[str, int] = field(default_factory=dict)
    """Exit status of commands by their first word or by `WORD NAME`."""
    unsure: dict[str, int] = field(default_factory=dict)
    """How often a question about a container is answered with `not known` first."""
    hangs: set[str] = field(default_factory=set)
    """First words of commands that never end."""
    holder: str = "ben"
    uptime: float = 1e6
    started: dict[str, float] = field(default_factory=dict)
    """When a host came up, where it was restarted: by `now`."""
    now: Callable[[], float] = lambda: 0.0
    boots: dict[str, int] = field(default_factory=dict)
    """How often each host was restarted."""
    begun_in: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """The start of its host in which each step was begun."""
    out_of_reach: set[str] = field(default_factory=set)
    meddle: Callable[[str, str], str] = lambda host, what: ""

    def run(self, host: str, argv: Sequence[str], stdin: str, limit: float, question: bool = False) -> Done:
        """As a Transport."""
        words = tuple(argv)
        fate = self.meddle(host, " ".join(word for word in words if "\n" not in word))
        self.calls.append((host, words))
        if fate == "before" or host in self.out_of_reach:
            return Done(None, "", "connection lost")
        done = self._answer(host, words)
        return Done(None, "", "connection lost") if fate == "after" else done

    def interrupt(self) -> None:
        """Nothing runs here."""

    def restart(self, host: str) -> None:
        """The host goes down and comes up: what ran on it has ended, without a word of how."""
        self.boots[host] = self.boots.get(host, 0) + 1
        self.started[host] = self.now()
        self.up -= {name for name in self.up if name.startswith(f"{host}/")}

    def _up(self, host: str) -> float:
        return self.now() - self.started[host] if host in self.started else self.uptime

    def _before_restart(self, key: tuple[str, str, str]) -> bool:
        return self.begun_in.get(key, 0) != self.boots.get(key[0], 0)

    def _answer(self, host: str, words: tuple[str, ...]) -> Done:
        if words[:3] == ("sh", "-c", "FENCE"):
            return self._fence(host, words[5], words[7:])
        if words[:5] == ("sh", "-c", "STARTER", "laneswap", "start"):  # which asks the fence by itself
            return self._fence(host, words[8], words)
        if words[:3] == ("sh", "-c", LOOK):
            key = (host, words[5], words[6])
            state = "absent" if key not in self.claims else "running" if self.claims[key] is None else "ended"
            return Done(0, f"state={state}\ncode={self.claims.get(key)}\nup={self._up(host)}\n")
        if words[:3] == ("sh", "-c", WAIT):
            return self._state((host, words[6], words[7]))
        if words[0] == "is" and self.unsure.get(words[1], 0) > 0:
            self.unsure[words[1]] -= 1
            return Done(2, "docker did not answer\n")
        if words[0] == "is":
            state = "up" if words[1] in self.up else "down"
            return Done(0 if state == words[2] else 1, f"{words[1]} is {state}\n")
        raise AssertionError(words)

    def _fence(self, host: str, told: str, inner: tuple[str, ...]) -> Done:
        if told == "-":  # break-glass: nothing is asked, nothing is remembered
            return self._act(host, 0, inner)
        epoch = int(told)
        if self.epochs.get(host, 0) > epoch:
            return Done(4, f"epoch={self.epochs[host]}\noperator={self.holder}\nsince=1796000700\n", "fenced off")
        self.epochs[host] = epoch
        return self._act(host, epoch, inner)

    def _state(self, key: tuple[str, str, str]) -> Done:
        code = self.claims.get(key, -1)
        state = {-1: "absent", None: "running", 0: "done", 143: "stopped", -9: "lost"}.get(code, "failed")
        before = key in self.claims and self._before_restart(key)
        state = "lost" if before and state == "running" else state
        boot = "changed" if before else "same"
        return Done(0, f"state={state}\nwords=it says {state}\nboot={boot}\nup={self._up(key[0])}\n")

    def _act(self, host: str, epoch: int, inner: tuple[str, ...]) -> Done:
        if inner == ("true",) or inner[:5] == ("sh", "-c", "STARTER", "laneswap", "modes"):
            return Done(0)
        if inner[:3] == ("sh", "-c", ONCE):
            return self._begin(host, inner[5], inner[6], epoch, inner[7:], unit=False)
        if inner[:3] == ("sh", "-c", ASIDE):
            return self._aside((host, inner[5], inner[6]))
        assert inner[:3] == ("sh", "-c", "STARTER"), inner
        if inner[4] == "start":
            assert inner[8:11] == (str(epoch), "auto", inner[10]) and inner[13] == "--"
            return self._begin(host, inner[6], inner[7], epoch, inner[14:], unit=True)
        assert inner[4] == "stop"
        key = (host, inner[6], inner[7])
        if self.claims.get(key, 0) is None:
            self.claims[key] = 143
        return self._state(key)

    def _aside(self, key: tuple[str, str, str]) -> Done:
        if key in self.claims and not self._before_restart(key):
            return Done(1, "", "the host was not restarted since it was begun")
        self.claims.pop(key, None)
        return Done(0)

    def _begin(self, host: str, op: str, name: str, epoch: int, argv: tuple[str, ...], *, unit: bool) -> Done:
        key = (host, op, name)
        if key in self.claims:
            return Done(3, "", "begun before")
        self.claims[key] = None
        self.begun_in[key] = self.boots.get(host, 0)
        self.ran.append(Ran(host, op, name, epoch, argv, self.boots.get(host, 0)))
        if argv[0] in self.hangs:
            return Done(0 if unit else None)
        code = self.fails.get(argv[0], self.fails.get(" ".join(argv), 0))
        if code == 0 and argv[0] == "stop":
            self.up.discard(argv[1])
        if code == 0 and argv[0] == "start":
            self.up.add(argv[1])
        self.claims[key] = code
        return Done(0 if unit else code, "", "it went wrong" if code else "")


class FakeClock(Clock):
    """Time that passes by waiting alone."""

    def __init__(self) -> None:
        self.now = 1_796_000_000.0
        self.waited: Callable[[], object] = lambda: None

    def wall(self) -> float:
        return self.now

    def mono(self) -> float:
        return self.now

    def pause(self, halt: threading.Event, seconds: float) -> None:
        self.now += seconds
        self.waited()


class MemoryJournal:
    """A journal that is kept nowhere."""

    def __init__(self, lines: Sequence[dict[str, Any]] = ()) -> None:
        self.lines = list(lines)

    def write(self, line: dict[str, Any]) -> None:
        self.lines.append(line)


def states(journal: Any) -> dict[str, str]:
    """The newest state of each step in a journal."""
    return {line["id"]: line["state"] for line in journal.lines if line["kind"] in ("step", "rescue")}


def end_of(journal: Any) -> tuple[str, str]:
    """State and words of the last line, which has to be the end."""
    assert journal.lines[-1]["kind"] == "end", journal.lines[-1]
    return journal.lines[-1]["state"], journal.lines[-1]["words"]
