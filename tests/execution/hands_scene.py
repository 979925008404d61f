"""The operator's hands on a lane of this machine: a scene in which real processes do what a test says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.actions.plan import Plan, Probe, Stage, Step, Verb
from console.execution import deciding as deciding_module
from console.execution.hands import Hands
from console.execution.policy import Confirmation, How, clock
from console.feed import Feed
from console.fleet.inventory import parse
from console.fleet.recipe import apply_recipes
from console.readings.acting_types import Acting, Operation, OperationState

FLEET = """
name = "here"
operator = "ana"
state = "{state}"
rates = {{ node = 0.5, scrape = 5, containers = 5 }}
[hosts]
me = {{ ssh = "local", docker = "" }}
[lanes.lane]
recipe = "docker-generic"
url = "http://127.0.0.1:9"
head = "me"
"""
PATIENCE = 60.0


def step(name: str, *argv: str, stage: Stage = Stage.STOP, after: tuple[Probe, ...] = (), limit: float = 8.0) -> Step:
    return Step(name, stage, f"do {name}", "me", argv, limit=limit, after=after, usual=0.5)


def plan(*steps: Step, verb: Verb = Verb.STOP, **more: Any) -> Plan:
    return Plan(verb, "here", "lane", "me", f"{verb.value} lane on here", steps, origin="serving", target="x", **more)


class Scene:
    """A feed over this machine, and hands whose plans the test says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LANESWAP_STATE", str(folder / "own"))
        self.folder = folder
        self.marks = folder / "marks"
        self.plan = plan(step("a", "sh", "-c", f"echo a >>{self.marks}"))
        fleet = parse(FLEET.format(state=folder / "state"))
        self.feed = Feed(apply_recipes(fleet))
        self.said: list[str] = []
        monkeypatch.setattr(deciding_module, "plan_of", lambda verb, *_, **__: replace(self.plan, verb=verb))

    @contextlib.asynccontextmanager
    async def hands(self, operator: str = "ana", **more: Any) -> AsyncIterator[Hands]:
        made = Hands(self.feed, operator, tell=self.said.append, **more)
        await made.start()
        try:
            yield made
        finally:
            await made.close()

    def acting(self) -> Acting | None:
        reading = self.feed.snapshot().lane("lane").acting
        return reading.value if reading is not None else None

    def shown(self) -> str:
        """Id of the lease that the picture shows; '' without one."""
        acting = self.acting()
        return acting.lease.id if acting is not None and acting.lease is not None else ""

    def operation(self) -> Operation | None:
        acting = self.acting()
        return acting.operation if acting is not None else None

    def lines(self) -> list[str]:
        return self.marks.read_text().split() if self.marks.exists() else []

    async def until(self, seen: Callable[[], object], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not seen():  # noqa: ASYNC110 - a snapshot is asked for
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"never: {what}; {self.acting()}; said {self.said}") from None

    async def ended(self, op: str) -> Operation:
        def over() -> bool:
            found = self.operation()
            return (
                found is not None
                and found.id == op
                and found.state not in (OperationState.RUNNING, OperationState.UNKNOWN)
            )

        await self.until(over, f"{op} ended")
        found = self.operation()
        assert found is not None
        return found


def typed(made: Plan, name: str = "lane", reason: str = "") -> Confirmation:
    return Confirmation(How.NAME, made.id, clock(), name=name, reason=reason)


async def go(hands: Hands, verb: Verb = Verb.STOP, **more: str) -> str:
    made, decision = await hands.plan("lane", verb)
    assert not decision.denied, decision
    return (await hands.begin(made, decision, typed(made, **more))).operation
