"""Acting on the embedded fleet as the console acts: plan, policy, confirmation, lease, ledger, sequence, outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from console.actions.plan import Plan, Verb
from console.execution.hands import NO_WISH, Begun, Hands, Wish
from console.execution.ledger import Verified
from console.execution.policy import Confirmation, Decision, How, Refused, clock
from console.headless import lane_settled
from console.readings.acting_types import Operation, OperationState
from console.readings.ledger import Kind
from console.rehearsal.scenario import Scenario, load_scenario
from console.rehearsal.source import RehearsalSource
from console.snapshot import LaneView, Snapshot

LIMIT = 120.0
"""Bound of every wait, seconds; long, because machines that run tests are busy."""
SPEED = 60.0
NOT_NOW = ("look again", "Denied until it is read, or by break-glass")
"""How a refusal ends that only asks for newer readings."""
OVER = (OperationState.DONE, OperationState.FAILED, OperationState.HALF_DONE, OperationState.STOPPED)
BACK = "df42c109a4c0d8e1f75b3629d40e8c17ab96f25d"
NOW = "1bae0e1088993b9b82de08f59de5be5a34e42170"


@dataclass
class Drill:
    """One scenario with hands on one of its lanes."""

    source: RehearsalSource
    hands: Hands
    lane: str
    said: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """Where the hosts' files lie."""
        assert self.source.rehearsal.root is not None
        return self.source.rehearsal.root

    def snapshot(self) -> Snapshot:
        return self.source.snapshot()

    def view(self) -> LaneView:
        return self.snapshot().lane(self.lane)

    def operation(self) -> Operation | None:
        acting = self.view().acting
        return acting.value.operation if acting is not None and acting.value is not None else None

    async def until(self, shows: Callable[[], object], what: str) -> None:
        """Until it is so. Fails after LIMIT with the lane as it is then."""
        try:
            async with asyncio.timeout(LIMIT):
                while not shows():  # noqa: ASYNC110 - what is waited for is a picture
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(
                f"not within {LIMIT:.0f} s: {what}; now {self.view().verdict}; {self.operation()}; {self.said}"
            ) from None

    async def settled(self) -> None:
        """Until all that an action rests on was read."""
        await self.until(lambda: lane_settled(self.snapshot(), self.view()), f"{self.lane} was read")

    async def asked(self, verb: Verb, wish: Wish = NO_WISH) -> tuple[Plan, Decision]:
        """What it takes now."""
        await self.settled()
        return await self.hands.plan(self.lane, verb, wish)

    async def begin(self, verb: Verb, wish: Wish = NO_WISH) -> Begun:
        """The lane's name typed. Raises Refused; where it is told to look again, the operator does."""
        end = asyncio.get_running_loop().time() + LIMIT
        while True:
            plan, decision = await self.asked(verb, wish)
            typed = Confirmation(How.NAME, plan.id, clock(), name=self.lane, reason="a drill")
            try:
                return await self.hands.begin(plan, decision, typed, wish)
            except Refused as refused:  # on a busy machine a reading may grow too old between the two
                if not str(refused).endswith(NOT_NOW) or asyncio.get_running_loop().time() > end:
                    raise

    async def ended(self, begun: Begun) -> Operation:
        """Until the operation is over, however."""

        def over() -> bool:
            found = self.operation()
            return found is not None and found.id == begun.operation and found.state in OVER

        await self.until(over, f"{begun.operation} is over")
        found = self.operation()
        assert found is not None
        return found

    async def do(self, verb: Verb, wish: Wish = NO_WISH) -> Operation:
        """The whole action."""
        return await self.ended(await self.begin(verb, wish))

    async def recorded(self, operation: Operation) -> Verified:
        """The ledger, once the outcome stands in it; it holds together, here and in the head's copy."""

        def written() -> bool:
            records = self.source.ledger().verify().text.records
            return any(record.op == operation.id and record.kind is Kind.OUTCOME for record in records)

        await self.until(written, f"the outcome of {operation.id} is recorded")
        found = self.source.ledger().verify()
        assert found.problem == "" and not found.text.torn
        return found

    def running(self) -> dict[str, list[str]]:
        """Names of the running containers of the lane's ranks, by host."""
        found: dict[str, list[str]] = {}
        for host in self.view().lane.rank_hosts:
            held = self.snapshot().host(host).containers.value
            found[host] = sorted(item.name for item in held.items if item.up) if held is not None else []
        return found

    def revisions(self) -> set[str]:
        """What the ranks have mounted."""
        return {rank.revision for rank in self.view().ranks}


@asynccontextmanager
async def drill_once_read(scenario: str, lane: str, speed: float = SPEED) -> AsyncIterator[Drill]:
    """The scenario with its faults held back until the console has read everything, however long that takes."""
    played = load_scenario(scenario)
    async with drill(played.model_copy(update={"faults": ()}), lane, speed) as made:
        for fault in played.faults:
            await made.source.rehearsal.inject(**fault.model_dump())
        yield made


@asynccontextmanager
async def drill(scenario: str | Scenario, lane: str, speed: float = SPEED) -> AsyncIterator[Drill]:
    """The scenario, watched by a console that can act, from its first reading on."""
    played = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    rates = played.fleet.rates.model_copy(update={"containers": 1.0})
    fleet = played.fleet.model_copy(update={"rates": rates})
    source = RehearsalSource(played.model_copy(update={"fleet": fleet}), speed)
    await source.start()
    said: list[str] = []
    hands = source.hands(tell=said.append)
    try:
        await hands.start()
        made = Drill(source, hands, lane, said)
        await made.settled()
        yield made
        assert source.rehearsal.failed == [] and "oddly" not in source.rehearsal.said
    finally:
        await hands.close()
        await source.stop()
