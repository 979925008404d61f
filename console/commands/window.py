"""`laneswap window open|show|close|offer|accept|take LANE`: the switch window and the lease behind it."""

from __future__ import annotations

import asyncio
import json as json_text
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from console.commands.acting import EXIT_REFUSED, LaneName, Ready, Wait, YesLane, feed_for, lane_ready
from console.commands.parts import FleetFile, Json, UsageError
from console.headless import EXIT_GOOD, EXIT_UNKNOWN
from console.sanitize import line

if TYPE_CHECKING:
    from console.readings.acting_types import Acting

app = App(name="window", help="The switch window of a lane, and who holds it.", result_action="return_value")
_REFUSED = ("no window was opened", "the window stays open", "not ")
_DURATION = re.compile(r"(?:(\d{1,2})h)?(?:(\d{1,4})m)?(?:(\d{1,5})s)?")


def seconds_of(text: str) -> float:
    """`25m`, `1h30m`, `90s`. Raises UsageError."""
    found = _DURATION.fullmatch(text)
    if not text or found is None or not any(found.groups()):
        raise UsageError(f"--deadline: {line(text, 40)!r} is no time; write 25m or 1h30m")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600.0 + minutes * 60.0 + seconds


def _say(words: str) -> int:
    refused = words.startswith(_REFUSED)
    print(line(words, 600), file=sys.stderr if refused else sys.stdout)
    return EXIT_REFUSED if refused else EXIT_GOOD


def _typed(lane: str, given: str) -> str:
    if given or not sys.stdin.isatty():
        return given
    return input(f"type the lane's name ({lane}): ").strip()


async def _as_long_as_it_lasts(ready: Ready, work: Awaitable[str]) -> str:
    """A lease without window or operation is given back as this process ends: `yours` must not be believed longer."""
    from console.actions.underway import runs

    words, found = await work, ready.view()
    acting = found.acting.value if found.acting is not None else None
    if words.startswith(_REFUSED) or acting is None or acting.window is not None or runs(found) is not None:
        return words
    return f"{words}; no window is open, so it is given back as this command ends"


def _run(fleet: FleetFile, lane: str, wait: float, work: Callable[[Ready], Awaitable[str]]) -> int:
    async def inside() -> int:
        async with lane_ready(feed_for(fleet, lane), lane, wait) as ready:
            return _say(await work(ready))

    return asyncio.run(inside())


@app.command(name="open")
def open_(
    lane: LaneName,
    fleet: FleetFile = None,
    *,
    reason: Annotated[str, Parameter(help="Why, for the ledger.")],
    deadline: Annotated[str, Parameter(help="How long it may take: 25m, 1h30m.")] = "25m",
    yes_lane: YesLane = "",
    without_way_back: Annotated[bool, Parameter(negative="", help="Open it though nothing leads back.")] = False,
    wait: Wait = 15.0,
) -> int:
    """Open a window: the lease is taken, the way back is frozen. A console keeps the lease; without one it runs out."""
    seconds, typed = seconds_of(deadline), _typed(lane, yes_lane)
    return _run(
        fleet,
        lane,
        wait,
        lambda ready: ready.hands.open_window(lane, reason, seconds, typed, without_way_back=without_way_back),
    )


@app.command
def close(lane: LaneName, fleet: FleetFile = None, *, yes_lane: YesLane = "", wait: Wait = 15.0) -> int:
    """Close the window and give the lease back; with a debt open the lane's name has to be typed."""
    return _run(fleet, lane, wait, lambda ready: ready.hands.close_window(lane, yes_lane))


@app.command
def offer(lane: LaneName, to: str, fleet: FleetFile = None, *, wait: Wait = 15.0) -> int:
    """Offer the lane to another operator, who accepts it."""
    return _run(fleet, lane, wait, lambda ready: ready.hands.offer(lane, to))


@app.command
def accept(lane: LaneName, fleet: FleetFile = None, *, wait: Wait = 15.0) -> int:
    """Take a lane that was offered to you, with its window."""
    return _run(fleet, lane, wait, lambda ready: _as_long_as_it_lasts(ready, ready.hands.accept(lane)))


@app.command
def take(lane: LaneName, fleet: FleetFile = None, *, yes_lane: YesLane = "", wait: Wait = 15.0) -> int:
    """Take the lane from whoever is shown to hold it: their next step is fenced off, both names go into the ledger."""

    async def work(ready: Ready) -> str:
        acting = ready.acting()
        if acting is not None:
            print(line(_lease_row(acting), 400), flush=True)  # whom it is taken from, before it is
        shown = acting.lease.id if acting is not None and acting.lease is not None else ""
        typed = await asyncio.to_thread(_typed, lane, yes_lane)
        return await _as_long_as_it_lasts(ready, ready.hands.take_over(lane, typed, shown))

    return _run(fleet, lane, wait, work)


@app.command
def show(lane: LaneName, fleet: FleetFile = None, *, json: Json = False, wait: Wait = 15.0) -> int:
    """Window, lease, debts and the newest operation, as the head has them."""

    async def inside() -> int:
        async with lane_ready(feed_for(fleet, lane), lane, wait) as ready:
            reading = ready.view().acting
            acting = reading.current(ready.feed.snapshot().now) if reading is not None else None
            if acting is None:
                why = reading.error if reading is not None else "not read"
                print(line(f"not known: {why or 'the head did not say'}", 300), file=sys.stderr)
                return EXIT_UNKNOWN
            if json:
                print(json_text.dumps(asdict(acting), indent=2, allow_nan=False))
            else:
                print("\n".join(_rows(acting)))
            return EXIT_UNKNOWN if acting.problem else EXIT_GOOD

    return asyncio.run(inside())


def _rows(acting: Acting) -> list[str]:
    from console import format as fmt

    rows = []
    window, operation = acting.window, acting.operation
    readable = ", as far as it can be read" if acting.problem else ""
    if acting.problem:
        rows.append(f"NOT WHOLE  {acting.folder}: {acting.problem}")
    if window is None:
        rows.append(f"window     none{readable}")
    else:
        late = acting.clock - window.deadline
        due = f"OVERDUE by {fmt.duration(late)}" if late > 0 else f"{fmt.duration(-late)} left"
        rows.append(f"window     {window.id} by {window.operator}, {due}: {window.reason}")
        rows.append(f"way back   {window.target or 'none'} (plan {window.plan_id})")
    rows.append(_lease_row(acting))
    for debt in acting.debts:
        late = acting.clock - debt.deadline
        due = f"overdue by {fmt.duration(late)}" if late > 0 else f"due in {fmt.duration(-late)}"
        rows.append(f"owed       {debt.what}: off since {fmt.clock(debt.since)} by {debt.operator}, {due}")
    if operation is not None:
        words = f": {operation.words}" if operation.words else ""
        rows.append(f"operation  {operation.id} {operation.state.value}{words}")
    return [line(row, 400) for row in rows]


def _lease_row(acting: Acting) -> str:
    from console import format as fmt

    lease, readable = acting.lease, ", as far as it can be read" if acting.problem else ""
    if acting.lease_unknown:
        return f"lease      not known: {acting.lease_unknown}"
    if lease is None:
        return f"lease      nobody{readable}"
    state = "ran out" if lease.expired(acting.clock) else "held"
    offered = f", offered to {lease.offered_to}" if lease.offered_to else ""
    return f"lease      {lease.operator} ({lease.console}) since {fmt.clock(lease.acquired)}, {state}{offered}"
