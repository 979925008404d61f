"""`laneswap plan`, `do` and `attach`: what an action would do, do it, and follow what is under way."""

from __future__ import annotations

import asyncio
import contextlib
import json as json_text
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from console.commands.parts import FleetFile, Json, UsageError, any_seconds, live_source, some_seconds
from console.headless import EXIT_GOOD, EXIT_NEEDS_OPERATOR, EXIT_UNKNOWN, lane_settled, running
from console.sanitize import line

if TYPE_CHECKING:
    from console.actions.plan import Plan
    from console.execution.hands import Hands, Wish
    from console.execution.policy import Confirmation, Decision, Refused
    from console.feed import Feed
    from console.readings.acting_types import Acting, Lease, Operation, StepView
    from console.snapshot import LaneView

EXIT_REFUSED = 4
POLL_S = 0.1
LOST_AFTER_S = 30.0
"""Seconds without news of an operation after which a follower says that it does not know."""

CLEARED_IN_S = 60.0
"""Seconds in which a start whose answer was lost is looked up."""

VerbName = Literal["disarm", "arm", "stop", "relaunch", "rollback"]
LaneName = Annotated[str, Parameter(help="The lane, as the fleet file names it.")]
YesLane = Annotated[str, Parameter(name="--yes-lane", help="The lane's name, instead of typing it.")]
Wait = Annotated[float, Parameter(validator=some_seconds, help="Seconds to wait until the lane has been read.")]
Drain = Annotated[
    float, Parameter(validator=any_seconds, help="Seconds that running requests are given before a stop.")
]
Forward = Annotated[bool, Parameter(negative="", help="With rollback: away from where one led that is not finished.")]


@dataclass(frozen=True, slots=True)
class Ready:
    """A lane that was read, and the hands for it."""

    feed: Feed
    hands: Hands
    lane: str
    asked: asyncio.Event
    """Set by SIGINT, SIGTERM or SIGHUP."""

    def view(self) -> LaneView:
        """The lane now."""
        return self.feed.snapshot().lane(self.lane)

    def problem(self) -> str:
        """Why what the head keeps of the lane is not known, or not all of it; '' if it is."""
        acting = self.view().acting
        if acting is None or acting.value is None:
            return (acting.error if acting is not None else "") or "the head did not say"
        return acting.value.problem

    def acting(self) -> Acting | None:
        """What the head keeps of the lane, as it was read last; None before that."""
        reading = self.view().acting
        return reading.value if reading is not None else None

    def operation(self) -> Operation | None:
        """The newest one on the lane."""
        acting = self.acting()
        return acting.operation if acting is not None else None

    def lease(self) -> Lease | None:
        """Who holds the lane."""
        acting = self.acting()
        return acting.lease if acting is not None else None


@asynccontextmanager
async def lane_ready(feed: Feed, lane: str, wait: float) -> AsyncIterator[Ready]:
    """The feed running, and the lane read or known not to be readable within `wait` seconds."""
    from console.execution.hands import Hands

    fleet = feed.snapshot().fleet
    async with running(feed) as asked:
        hands = Hands(feed, fleet.operator_name(), tell=lambda words: print(line(words, 400), file=sys.stderr))
        await hands.start()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await _until_settled(feed, lane, asked)
            yield Ready(feed, hands, lane, asked)
        finally:
            await hands.close()


async def _until_settled(feed: Feed, lane: str, asked: asyncio.Event) -> None:
    while not asked.is_set():
        snapshot = feed.snapshot()
        if lane_settled(snapshot, snapshot.lane(lane)):
            return
        await asyncio.sleep(POLL_S)


def feed_for(path: FleetFile, lane: str) -> Feed:
    """The feed of a fleet that has this lane. Raises UsageError, FleetError."""
    feed = live_source(path)
    lanes = feed.snapshot().fleet.lanes
    if lane not in lanes:
        raise UsageError(f"no lane {line(lane, 80)!r}; there are: {', '.join(lanes)}")
    return feed


def plan(
    lane: LaneName,
    action: VerbName,
    fleet: FleetFile = None,
    *,
    drain: Drain = 0.0,
    forward: Forward = False,
    wait: Wait = 15.0,
    json: Json = False,
) -> int:
    """What the action would do, host by host, and what it takes for it to go; changes nothing."""
    from console.execution.hands import Wish

    wish = Wish(drain_s=drain, forward=forward)
    return asyncio.run(_plan(feed_for(fleet, lane), lane, action, wish, wait, json=json))


async def _plan(feed: Feed, lane: str, action: str, wish: Wish, wait: float, *, json: bool) -> int:
    from console.actions.plan import Verb
    from console.actions.telling import as_json, as_text

    async with lane_ready(feed, lane, wait) as ready:
        made, decision = await ready.hands.deciding.plan(lane, Verb(action), wish)
        if json:
            print(json_text.dumps({**as_json(made), "policy": policy_json(decision)}, indent=2, allow_nan=False))
        else:
            print("\n".join((*as_text(made), *policy_text(decision))))
    return EXIT_REFUSED if made.refused else EXIT_GOOD


def policy_json(decision: Decision) -> dict[str, object]:
    """What it takes for the action to go."""
    return {
        "denied": decision.denied,
        "needs": "" if decision.denied else decision.need.value,
        "takes_over": decision.takes_over,
        "break_glass": decision.break_glass,
        "warnings": list(decision.warnings),
    }


def policy_text(decision: Decision) -> list[str]:
    """The same for people."""
    if decision.denied:
        more = "; --break-glass opens it" if decision.or_break_glass else ""
        return [line(f"  DENIED   {decision.denied}{more}", 400)]
    rows = [f"  needs    {decision.need.value}{' (BREAK-GLASS: UNLEDGERED)' if decision.break_glass else ''}"]
    return [*rows, *(line(f"  warning  {words}", 400) for words in decision.warnings)]


def do(
    lane: LaneName,
    action: VerbName,
    fleet: FleetFile = None,
    *,
    plan: Annotated[str, Parameter(help="Id of the plan that was looked at; refused if it comes out different.")] = "",
    yes_lane: YesLane = "",
    reason: Annotated[str, Parameter(help="Why; break-glass needs it.")] = "",
    break_glass: Annotated[
        bool, Parameter(name="--break-glass", negative="", help="Go without what is missing.")
    ] = False,
    take_over: Annotated[
        bool, Parameter(name="--take-over", negative="", help="Take the lane from its holder.")
    ] = False,
    drain: Drain = 0.0,
    forward: Forward = False,
    wait: Wait = 15.0,
    detach: Annotated[bool, Parameter(negative="", help="Do not follow it once it has begun.")] = False,
) -> int:
    """Build the plan anew and carry it out: the lane's name typed, or --yes-lane NAME, or --plan ID."""
    from console.execution.hands import Wish

    wish = Wish(drain, break_glass, take_over, forward)
    return asyncio.run(_do(feed_for(fleet, lane), lane, action, wish, plan, yes_lane, reason, wait, detach=detach))


async def _do(
    feed: Feed,
    lane: str,
    action: str,
    wish: Wish,
    plan_id: str,
    typed: str,
    reason: str,
    wait: float,
    *,
    detach: bool,
) -> int:
    from console.actions.plan import Verb
    from console.actions.telling import as_text
    from console.execution.hands import Unclear
    from console.execution.policy import Refused

    async with lane_ready(feed, lane, wait) as ready:
        # on a busy host one value may have grown old while the others came in
        await ready.hands.deciding.until_read(lane, of_all=False)
        made, decision = await ready.hands.plan(lane, Verb(action), wish)
        print("\n".join((*as_text(made), *policy_text(decision))), flush=True)
        if decision.denied:
            return EXIT_REFUSED
        if plan_id and plan_id != made.id:
            return _refuse(Refused(f"the plan is {made.id} now, not {line(plan_id, 40)}: look at it above"))
        confirmation = await _confirmed(made, decision, plan_id, typed, reason)
        try:
            begun = await ready.hands.begin(made, decision, confirmation, wish)
        except Refused as refused:
            return _refuse(refused)
        except Unclear as unclear:
            print(line(f"outcome unknown: {unclear}", 600), file=sys.stderr)
            return await _looked_up(ready, unclear.operation)
        print(line(begun.words, 400), flush=True)
        if detach and begun.runs_on == "head":
            return EXIT_GOOD
        return await follow(ready, begun.operation)


async def _looked_up(ready: Ready, op: str) -> int:
    """A start whose answer was lost: followed once it is known to have begun."""
    from console.execution.clearing import Cleared

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLEARED_IN_S):
            while ready.hands.cleared(op) is Cleared.UNKNOWN and not ready.asked.is_set():  # noqa: ASYNC110 - it is asked
                await asyncio.sleep(POLL_S)
    found = ready.hands.cleared(op)
    if found is Cleared.NEVER:
        return EXIT_NEEDS_OPERATOR  # what was found is told by the hands
    if found is not Cleared.UNKNOWN:
        return await follow(ready, op)
    print(f"whether {op} began is still not known: `laneswap attach {ready.lane}`", file=sys.stderr)
    return EXIT_UNKNOWN


def _refuse(refused: Refused) -> int:
    print(line(f"refused: {refused.whole}", 600), file=sys.stderr)
    return EXIT_NEEDS_OPERATOR if refused.half else EXIT_REFUSED


async def _confirmed(plan: Plan, decision: Decision, plan_id: str, typed: str, reason: str) -> Confirmation:
    """What the operator gave on the command line, or types now. Raises UsageError where nobody can type."""
    from console.execution.policy import Confirmation, How, Need, clock

    if plan_id and not typed and decision.need is not Need.NAME_AND_REASON:
        return Confirmation(How.PLAN, plan.id, clock())
    if not typed:
        typed = await _ask(f"type the lane's name to {plan.verb.value} it: ", "--yes-lane NAME")
    if decision.need is Need.NAME_AND_REASON and not reason:
        reason = await _ask("why, in one line: ", "--reason TEXT")
    return Confirmation(How.NAME, plan.id, clock(), name=typed, reason=reason)


async def _ask(prompt: str, instead: str) -> str:
    if not sys.stdin.isatty():
        raise UsageError(f"nobody can type here; give {instead}")
    return (await asyncio.to_thread(input, prompt)).strip()


def attach(
    lane: LaneName,
    operation: Annotated[str, Parameter(help="Its id; default: the newest on the lane.")] = "",
    fleet: FleetFile = None,
    *,
    carry_on: Annotated[
        bool, Parameter(name="--carry-on", negative="", help="Go on with what nobody carries out.")
    ] = False,
    yes_lane: YesLane = "",
    wait: Wait = 15.0,
) -> int:
    """Follow the operation that is under way on a lane, whoever began it."""
    typed = yes_lane if carry_on else None
    return asyncio.run(_attach(feed_for(fleet, lane), lane, operation, wait, typed))


async def _attach(feed: Feed, lane: str, operation: str, wait: float, typed: str | None) -> int:
    """`typed`: as the lane's name, to carry it on; None only follows."""
    from console.execution.policy import Refused

    async with lane_ready(feed, lane, wait) as ready:
        found = ready.operation()
        if found is None or operation not in ("", found.id):
            known = f"the newest is {found.id}" if found is not None else "none is known on this lane"
            unsure = ready.problem() if found is None else ""
            words = f"no operation {operation or 'to follow'}: {known}{f'; {unsure}' if unsure else ''}"
            print(line(words, 400), file=sys.stderr)
            return EXIT_UNKNOWN if unsure else EXIT_NEEDS_OPERATOR
        print(line(_about(found), 400), flush=True)  # the newest need not be the one that the operator thinks of
        if typed is not None:
            lease = ready.lease()
            if lease is not None and not ready.hands.mine(lane):
                print(line(f"it takes the lane over from {lease.operator} ({lease.console})", 400), flush=True)
            typed = typed or await _ask(f"type the lane's name to carry {found.id} on: ", "--yes-lane NAME")
            try:
                begun = await ready.hands.carry_on(lane, typed, lease.id if lease is not None else "")
                print(line(begun.words, 400), flush=True)
            except Refused as refused:
                return _refuse(refused)
            await _until_runs(ready, found.id)
        return await follow(ready, found.id)


async def _until_runs(ready: Ready, op: str) -> None:
    """What was read of an operation before it is carried on says that it has ended."""
    from console.readings.acting_types import OperationState

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LOST_AFTER_S):
            while (found := ready.operation()) is None or found.id != op or found.state is not OperationState.RUNNING:
                if found is not None and found.state is OperationState.DONE:
                    return
                await asyncio.sleep(POLL_S)


async def follow(ready: Ready, op: str) -> int:
    """Print what becomes of each step until it ends; the exit code says how."""
    from console.readings.acting_types import OperationState, StepState

    told: dict[str, StepState] = {}
    loop = asyncio.get_running_loop()
    heard = loop.time()
    while True:
        found = ready.operation()
        if found is None or found.id != op:
            found = ready.hands.seen_here(ready.lane)  # a head that is broken does not tell of it
        if found is not None and found.id == op:
            for step in found.steps:
                if told.get(step.id, StepState.WAITING) is not step.state:
                    told[step.id] = step.state
                    print(_step_words(step), flush=True)
            if found.state not in (OperationState.RUNNING, OperationState.UNKNOWN):
                return _ended(found)
            heard = loop.time() if found.state is OperationState.RUNNING else heard
        if loop.time() - heard > LOST_AFTER_S:
            print(f"no news of {op} for {LOST_AFTER_S:.0f} s: whether it goes on is not known", file=sys.stderr)
            return EXIT_UNKNOWN
        if ready.asked.is_set():
            if ready.lane in ready.hands.carries():
                print("cut: this process carried it out; the command under way is given its time", file=sys.stderr)
                return EXIT_NEEDS_OPERATOR
            print(f"detached: it goes on; `laneswap attach {ready.lane}` follows it again", file=sys.stderr)
            return EXIT_UNKNOWN
        await asyncio.sleep(POLL_S)


def _about(operation: Operation) -> str:
    from console import format as fmt

    ended = f", ended {fmt.clock(operation.ended)}" if operation.ended is not None else ""
    return f"{operation.id} by {operation.operator or 'somebody'}, begun {fmt.clock(operation.began)}{ended}"


def _step_words(step: StepView) -> str:
    from console import format as fmt

    time = ""
    if step.began is not None and step.ended is not None:
        time = f" {fmt.duration(max(0.0, step.ended - step.began))}"
    return line(
        f"  {step.state.value:<9} {step.host:<14} {step.title}{time}{f': {step.words}' if step.words else ''}", 400
    )


def _ended(operation: Operation) -> int:
    from console.readings.acting_types import OperationState

    words = operation.words or operation.title
    print(line(f"{operation.verb} {operation.state.value.upper()}: {words}", 400), flush=True)
    if operation.state is OperationState.DONE:
        return EXIT_GOOD
    return EXIT_UNKNOWN if operation.state is OperationState.LOST else EXIT_NEEDS_OPERATOR
