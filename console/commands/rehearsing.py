"""`laneswap rehearse ... --headless --do VERB`: one action on the embedded fleet, confirmed by itself, to its end."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from console.actions.plan import Verb
from console.commands.acting import EXIT_REFUSED
from console.headless import EXIT_GOOD, EXIT_NEEDS_OPERATOR, EXIT_UNKNOWN, lane_settled, running
from console.sanitize import line

if TYPE_CHECKING:
    from console.execution.hands import Hands
    from console.readings.acting_types import Operation
    from console.rehearsal.source import RehearsalSource
    from console.snapshot import Snapshot

REASON = "a rehearsal"
FIRST_LOOK_S = 30.0
POLL_S = 0.2
EVERY = 5
"""Looks between two pictures that are told."""


async def act(
    source: RehearsalSource, verb: str, lane: str, seconds: float, emit: Callable[[Snapshot], None], *, take_over: bool
) -> int:
    """Carry `verb` out on the lane, tell a picture a second meanwhile; the exit code is that of `laneswap do`.

    What is done and how it ends is said on standard error. `seconds` bound the whole.
    """
    from console.execution.hands import Unclear
    from console.execution.policy import Refused

    async with running(source) as asked:
        hands = source.hands(tell=_say)
        await hands.start()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await _until_settled(source, lane, asked)
                    op = await _begin(hands, lane, Verb(verb), take_over=take_over)
                    return await _until_ended(source, lane, op, asked, emit)
            _say(f"no end within {seconds:g} s")
            return EXIT_UNKNOWN
        except Unclear as unclear:
            emit(source.snapshot())
            _say(f"not known: {unclear}")
            return EXIT_UNKNOWN
        except Refused as refused:
            emit(source.snapshot())
            _say(f"refused: {refused.whole}")
            return EXIT_NEEDS_OPERATOR if refused.half else EXIT_REFUSED
        finally:
            await hands.close()
            await _verified(source)


async def _until_settled(source: RehearsalSource, lane: str, asked: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + FIRST_LOOK_S
    while not asked.is_set() and loop.time() < until:
        snapshot = source.snapshot()
        if lane_settled(snapshot, snapshot.lane(lane)):
            return
        await asyncio.sleep(POLL_S)


async def _begin(hands: Hands, lane: str, verb: Verb, *, take_over: bool) -> str:
    """The operation's name. Raises Refused."""
    from console.execution.hands import Wish
    from console.execution.policy import Confirmation, How, clock

    wish = Wish(take_over=take_over)
    plan, decision = await hands.plan(lane, verb, wish)
    confirmation = Confirmation(How.NAME, plan.id, clock(), name=lane, reason=REASON)
    begun = await hands.begin(plan, decision, confirmation, wish)
    _say(begun.words)
    return begun.operation


async def _until_ended(
    source: RehearsalSource, lane: str, op: str, asked: asyncio.Event, emit: Callable[[Snapshot], None]
) -> int:
    from console.readings.acting_types import OperationState

    looks = 0
    told: set[str] = set()
    while not asked.is_set():
        snapshot = source.snapshot()
        acting = snapshot.lane(lane).acting
        found = acting.value.operation if acting is not None and acting.value is not None else None
        ended = (
            found is not None and found.id == op and found.state not in (OperationState.RUNNING, OperationState.UNKNOWN)
        )
        if found is not None and found.id == op:
            _tell_steps(found, told)
        if ended or looks % EVERY == 0:
            emit(snapshot)
        if found is not None and ended:
            _say(f"{found.verb} {found.state.value.upper()}: {found.words or found.title}")
            done, lost = found.state is OperationState.DONE, found.state is OperationState.LOST
            return EXIT_GOOD if done else EXIT_UNKNOWN if lost else EXIT_NEEDS_OPERATOR
        looks += 1
        await asyncio.sleep(POLL_S)
    return EXIT_UNKNOWN


def _tell_steps(operation: Operation, told: set[str]) -> None:
    for step in (*operation.steps, *operation.rescue):
        words = f"  {step.state.value:<9} {step.host:<12} {step.title}{f': {step.words}' if step.words else ''}"
        if step.began is not None and words not in told:
            told.add(words)
            _say(words)


async def _verified(source: RehearsalSource) -> None:
    """Say what the record came to: a rehearsal ends with it."""
    found = await asyncio.to_thread(source.ledger().verify)
    _say(f"ledger of this rehearsal: {len(found.text.records)} records, {found.problem or 'its chain is whole'}")


def _say(words: str) -> None:
    print(line(words, 500), file=sys.stderr, flush=True)
