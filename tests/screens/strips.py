"""Plans, what is under way, and hands that only note what they were asked to do: for strips and acting screens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pictures

from console.actions.plan import Plan, Stage, Step, Verb
from console.execution.policy import Confirmation, Decision, Holder, Situation, decide
from console.readings.acting_types import (
    Acting,
    Debt,
    Lease,
    Operation,
    OperationState,
    StepState,
    StepView,
    WindowState,
)
from console.readings.ledger import Kind, Record
from console.snapshot import Snapshot

HOSTS = ("n1", "n2", "n3", "n4")
OLD, NEW = "9f2c1a7" + "0" * 33, "1bae0e1" + "0" * 33


def step(ident: str, stage: Stage, host: str, usual: float | None = 0.2, title: str = "", **extra: Any) -> Step:
    """One step that runs `true`."""
    words = title or f"{ident.rpartition('-')[0]} on {host}"
    return Step(ident, stage, words, host, ("true",), 60.0, usual=usual, **extra)


def way_back(**extra: Any) -> Plan:
    """The plan of picture 03: stop, rows of n3, site file, boot, watchdog."""
    steps = (
        *(step(f"stop-{h}", Stage.STOP, h, 11.0 if h in ("n1", "n2") else 0.2, together="stop") for h in HOSTS),
        step("rows-n3", Stage.ROWS, "n3", 480.0, "rebuild rows on n3", detached=True),
        *(step(f"site-{h}", Stage.SITE, h, 0.2, f"2 lines back on {h}", together="site") for h in HOSTS),
        step("boot-n1", Stage.BOOT, "n1", 563.0, detached=True, undo="S stops it"),
        step("arm-n1", Stage.ARM, "n1", 0.5, "arm"),
    )
    values: dict[str, Any] = {
        "origin": "9f2c1a7 → 1bae0e1, in between",
        "target": "9f2c1a7",
        "facts": (("image", "sha256:0"),),
        "notes": ("rows dsv41-engram-local",),
        "ends": ("stop (20261129T215429Z-stop-1a2b3c), step 3: goes on as step 1",),
        "pays": "watchdog",
    }
    return Plan(Verb.ROLLBACK, "spark4", "dsv41", "n1", "roll back dsv41 on spark4", steps, **{**values, **extra})


def stopping(**extra: Any) -> Plan:
    """A stop that cuts requests."""
    steps = (
        step("logs-n1", Stage.EVIDENCE, "n1", 2.0, "save the log on n1", optional=True),
        step("disarm-n1", Stage.WATCHDOG, "n1", 0.4, "disarm"),
        *(step(f"stop-{h}", Stage.STOP, h, 20.0 + at, together="stop") for at, h in enumerate(HOSTS)),
    )
    values: dict[str, Any] = {"origin": "serving 9f2c1a7", "target": "stopped", "cuts": "3 running requests"}
    return Plan(Verb.STOP, "spark4", "dsv41", "n1", "stop dsv41 on spark4", steps, **{**values, **extra})


PLANS: dict[Verb, Callable[[], Plan]] = {
    Verb.ROLLBACK: way_back,
    Verb.STOP: stopping,
    Verb.RELAUNCH: lambda: replace(way_back(), verb=Verb.RELAUNCH, title="relaunch dsv41 on spark4", ends=()),
    Verb.DISARM: lambda: replace(stopping(), verb=Verb.DISARM, title="disarm the watchdog", cuts="", owes="watchdog"),
    Verb.ARM: lambda: replace(stopping(), verb=Verb.ARM, title="arm the watchdog", cuts="", pays="watchdog"),
}

IN_WINDOW = Situation("dsv41", window_open=True, holder=Holder.ME, serving=False, epoch=3)
NO_WINDOW = Situation("dsv41", window_open=False, holder=Holder.NOBODY)
GLASS = replace(NO_WINDOW, head_ok=False)


class FakeHands:
    """Notes every effect, in `calls` and as a line of a file; plans are those of PLANS."""

    def __init__(self, situation: Situation = IN_WINDOW, file: Path | None = None) -> None:
        self.situation = situation
        self.file = file
        self.calls: list[tuple[Any, ...]] = []
        self.planned = 0
        self.plans = dict(PLANS)
        self.records: tuple[Record, ...] = ()
        self.carried: tuple[str, ...] = ()
        self.started: Callable[[], object] = lambda: None

    def _effect(self, *what: Any) -> str:
        self.calls.append(what)
        if self.file is not None:
            with self.file.open("a") as out:
                out.write(" ".join(str(part) for part in what) + "\n")
        return f"done: {what[0]}"

    def __call__(self, say: Callable[[str], None]) -> FakeHands:
        """The console makes its hands by calling what it was given."""
        return self

    async def start(self) -> None:
        """Nothing to look after; tells whoever waits for it."""
        self.started()

    async def close(self) -> None:
        """Nothing to let go."""

    async def plan(self, lane: str, verb: Verb) -> tuple[Plan, Decision]:
        self.planned += 1
        return self.plans[verb](), decide(verb, self.situation)

    async def act(self, plan: Plan, decision: Decision, confirmation: Confirmation) -> str:
        return self._effect("act", plan.verb.value, confirmation)

    async def open_window(
        self, lane: str, reason: str, deadline_s: float, typed: str, *, without_way_back: bool = False
    ) -> str:
        return self._effect("open", lane, reason, deadline_s, typed, *(("no way back",) if without_way_back else ()))

    async def close_window(self, lane: str, typed: str) -> str:
        return self._effect("close", lane, typed)

    async def offer(self, lane: str, to: str) -> str:
        return self._effect("offer", lane, to)

    async def accept(self, lane: str) -> str:
        return self._effect("accept", lane)

    async def take_over(self, lane: str, typed: str, shown: str) -> str:
        return self._effect("take over", lane, typed, shown)

    def mine(self, lane: str) -> bool:
        return self.situation.holder is Holder.ME

    def carries(self) -> tuple[str, ...]:
        return self.carried

    async def ledger(self) -> tuple[Record, ...]:
        return self.records


# --- what is under way ------------------------------------------------------------------------------------------------

CLOCK = pictures.WALL
LEASE = Lease("ana", "ana@desk 4711", "l1", 3, CLOCK - 372, CLOCK - 4, 60.0, "switch to 1bae0e1")
WINDOW = WindowState("w1", "ana", "switch to 1bae0e1", CLOCK - 372, CLOCK - 372 + 1500, OLD[:7], way_back().id)
DEBT = Debt("watchdog", CLOCK - 70, CLOCK + 1068, "ana")


def views(*states: tuple[str, str, str, StepState, float | None, float | None, float | None]) -> tuple[StepView, ...]:
    """(stage, title, host, state, began, ended, usual) as steps."""
    return tuple(
        StepView(f"{stage}-{host}-{at}", stage, title, host, state, began, ended, usual, together=stage)
        for at, (stage, title, host, state, began, ended, usual) in enumerate(states)
    )


D, R, W = StepState.DONE, StepState.RUNNING, StepState.WAITING
SWITCH = Operation(
    "20261129T215400Z-rollback-1a2b3c", "rollback", "dsv41", "ana", way_back().id, "roll back dsv41",
    OperationState.RUNNING, CLOCK - 75, None,
    views(
        ("evidence", "save logs", "n1", D, CLOCK - 75, CLOCK - 71, 4.0),
        ("watchdog", "disarm", "n1", D, CLOCK - 71, CLOCK - 70, 1.0),
        ("stop", "stop", "n1", R, CLOCK - 41, None, 52.0),
        ("stop", "stop", "n2", R, CLOCK - 41, None, 52.0),
        ("stop", "stop", "n3", D, CLOCK - 41, CLOCK - 19, 52.0),
        ("stop", "stop", "n4", D, CLOCK - 41, CLOCK - 21, 52.0),
        ("rows", "rebuild rows", "n3", W, None, None, 480.0),
        ("site", "2 lines back", "n1", W, None, None, 0.3),
        ("boot", "boot", "n1", W, None, None, 575.0),
        ("arm", "arm", "n1", W, None, None, 0.5),
    ),
    target="9f2c1a7",
)  # fmt: skip


BROKEN = tuple(
    replace(step, state=StepState.FAILED, words="exited 1")
    if step.stage == "boot"
    else replace(step, state=D if step.stage != "arm" else StepState.SKIPPED)
    for step in SWITCH.steps
)
"""The steps of one whose boot failed."""


def acting(**extra: Any) -> Acting:
    """A window in its seventh minute, a way back under way."""
    values: dict[str, Any] = {"lease": LEASE, "window": WINDOW, "debts": (DEBT,), "operation": SWITCH}
    return Acting(**{"clock": CLOCK, **values, **extra})


def under_way(base: Snapshot | None = None, **extra: Any) -> Snapshot:
    """A picture with that on its first lane."""
    base = base or pictures.trouble()
    ranks = tuple(
        replace(rank, revision=NEW, container=rank.container and replace(rank.container, revision=NEW))
        for rank in base.lanes[0].ranks
    )
    lane = replace(base.lanes[0], ranks=ranks, acting=pictures.reading(acting(**extra), 0.0))
    return replace(base, lanes=(lane, *base.lanes[1:]))


def record(kind: Kind, text: str, at: float = CLOCK - 60, **extra: Any) -> Record:
    """One line of a ledger."""
    values: dict[str, Any] = {
        "chain": "0" * 16, "seq": 1, "ts": at, "mono": 1.0, "boot": "b0", "epoch": 3, "operator": "ana",
        "fleet": "spark4", "lane": "dsv41", "host": "", "op": "", "kind": kind, "argv": (), "plan": "", "result": "",
        "text": text, "prev": "0" * 64,
    }  # fmt: skip
    return Record(**{**values, **extra})
