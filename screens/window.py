"""What `w` and `H` ask: opening and closing a switch window, offering the lane and taking it over when offered."""

from __future__ import annotations

from collections.abc import Callable

from console import format as fmt
from console.actions.plan import Verb
from console.actions.strip import Kind, Question, Strip, seconds_of
from console.actions.underway import Transfer, acting_of, head_now, transfer
from console.execution.policy import SHORTEST_REASON
from console.readings.acting_types import Lease, WindowState
from console.snapshot import LaneView, Snapshot
from screens.base import Hands
from screens.errands import Errand, Ready

DEADLINE = "25m"
"""What Enter alone answers."""
LEAST_MINUTES = 5
Newest = Callable[[], Snapshot | None]
"""The newest picture, as it is when it is asked for."""


def _name(lane: str) -> Question:
    return Question("lane name", Kind.EXACT, lane, f"exactly: {lane}")


def window_errand(key: str, lane: LaneView, snapshot: Snapshot, hands: Hands, newest: Newest) -> Errand:
    """Open a window, or close the one that is open."""
    acting = acting_of(lane)
    if acting is not None and acting.window is not None:
        return _closing(key, lane, acting.window, snapshot, hands, newest)
    return _opening(key, lane.name, hands)


def _opening(key: str, lane: str, hands: Hands) -> Errand:
    async def prepare() -> Ready:
        plan, decision = await hands.plan(lane, Verb.ROLLBACK)
        if decision.denied and not plan.refused:
            return Ready(denied=decision.denied)
        if plan.refused:
            told = (("window", "it opens without a way back; the lane is yours"),)
            words = (f"no way back: {plan.refused}; the window opens without one",)
            return Ready(questions=_asked(lane), told=told, warnings=words)
        told = (("window", "the lane is yours; B has this way back, frozen"),)
        return Ready(questions=_asked(lane), plan=plan, told=told)

    async def carry_out(ready: Ready, strip: Strip) -> str:
        typed, reason, deadline = strip.answers
        seconds = seconds_of(deadline)
        if seconds is None:
            return "no deadline. Nothing was sent."
        # What was shown had no way back, and said so; one that came up meanwhile has cancelled the strip.
        return await hands.open_window(lane, reason.strip(), seconds, typed, without_way_back=ready.plan is None)

    return Errand(key, "OPEN A WINDOW FOR", lane, prepare, carry_out)


def _asked(lane: str) -> tuple[Question, ...]:
    hint = f"from now, such as 25 or 1h30m; Enter alone takes {DEADLINE}"
    return (
        _name(lane),
        Question("reason", Kind.TEXT, hint="everybody sees it, and the ledger keeps it", least=SHORTEST_REASON),
        Question("deadline", Kind.MINUTES, hint=hint, least=LEAST_MINUTES, default=DEADLINE),
    )


def _closing(key: str, lane: LaneView, window: WindowState, snapshot: Snapshot, hands: Hands, newest: Newest) -> Errand:
    async def prepare() -> Ready:
        now, view = _as_it_is(lane, snapshot, newest)
        acting = acting_of(view)
        there = acting is not None and acting.window is not None and acting.window.id == window.id
        late = now - window.deadline
        stands = ("overdue" if late > 0 else "within its deadline") if there else "gone"
        return Ready(
            questions=(_name(lane.name),),
            told=_window_told(window, now),
            warnings=_debts(view, now),
            rests_on=(("the window", stands),),
        )

    async def carry_out(ready: Ready, strip: Strip) -> str:
        return await hands.close_window(lane.name, strip.answers[0])

    return Errand(key, "CLOSE THE WINDOW OF", lane.name, prepare, carry_out)


def _window_told(window: WindowState, now: float) -> tuple[tuple[str, str], ...]:
    late = now - window.deadline
    ends = f"{fmt.duration(late)} OVERDUE" if late > 0 else f"in {fmt.duration(-late)}"
    return (
        ("window", f"of {window.operator}, open for {fmt.duration(now - window.opened)}, deadline {ends}"),
        ("reason", window.reason),
        ("frozen", f"way back to {fmt.revision(window.target)}, plan {window.plan_id}"),
    )


def _as_it_is(lane: LaneView, snapshot: Snapshot, newest: Newest) -> tuple[float, LaneView]:
    """The head's clock and the lane now: ages that are told go on. As they were at the key where nothing is newer."""
    found = newest()
    views = found.lanes if found is not None else ()
    view = next((one for one in views if one.name == lane.name), None)
    return (head_now(snapshot, lane), lane) if found is None or view is None else (head_now(found, view), view)


def _debts(lane: LaneView, now: float) -> tuple[str, ...]:
    acting = acting_of(lane)
    if acting is None:
        return ()
    return tuple(f"{debt.what} is still off, for {fmt.duration(now - debt.since)}: D first" for debt in acting.debts)


def hand_over_errand(key: str, lane: LaneView, snapshot: Snapshot, hands: Hands, newest: Newest) -> Errand:
    """Offer the lane to another operator; accept it where it was offered; else take it over from whoever holds it.

    The same operator at another machine is somebody else: that one may be typing there.
    """
    acting = acting_of(lane)
    lease = acting.lease if acting is not None else None
    me = snapshot.fleet.operator_name()
    if acting is not None and acting.lease_unknown:
        return _taking_unknown(key, lane.name, acting.lease_unknown, hands)
    if lease is None:
        return _nothing(key, lane.name, known=acting is not None)
    now = head_now(snapshot, lane)
    match transfer(lease, me, now, mine=hands.mine(lane.name)):
        case Transfer.OFFER:
            return _offering(key, lane.name, lease, me, hands)
        case Transfer.ACCEPT:
            return _accepting(key, lane.name, lease, hands)
        case Transfer.TAKE:
            return _taking(key, lane, lease, me, snapshot, hands, newest)


def _nothing(key: str, lane: str, *, known: bool) -> Errand:
    why = f"nobody holds {lane}, so there is nothing to hand over: w opens a window"

    async def prepare() -> Ready:
        return Ready(denied=why if known else f"who holds {lane} was not read yet")

    async def carry_out(ready: Ready, strip: Strip) -> str:
        return "nothing was planned. Nothing was sent."

    return Errand(key, "HAND OVER", lane, prepare, carry_out)


def _taking(
    key: str, lane: LaneView, lease: Lease, me: str, snapshot: Snapshot, hands: Hands, newest: Newest
) -> Errand:
    """It was not offered: the ledger will name both people."""

    async def prepare() -> Ready:
        now, view = _as_it_is(lane, snapshot, newest)
        acting = acting_of(view)
        held = acting.lease if acting is not None else None
        seen = held if held is not None and held.id == lease.id else lease
        return Ready(
            questions=(_name(lane.name),),
            told=_lease_told(seen, me, now),
            warnings=_alive(seen, me, now),
            rests_on=((f"the lease of {lease.operator}", "run out" if seen.expired(now) else "alive"),),
        )

    async def carry_out(ready: Ready, strip: Strip) -> str:
        return await hands.take_over(lane.name, strip.answers[0], lease.id)

    return Errand(key, "TAKE OVER", lane.name, prepare, carry_out)


def _lease_told(lease: Lease, me: str, now: float) -> tuple[tuple[str, str], ...]:
    gone, since = lease.expired(now), fmt.duration(now - lease.renewed)
    same = lease.operator == me
    return (
        ("from", f"{lease.operator} on {lease.console}, for {fmt.duration(now - lease.acquired)}"),
        ("to", f"you ({me}) at this console" if same else f"you ({me}): the ledger names both of you"),
        ("lease", f"ran out, last renewed {since} ago" if gone else f"alive, renewed {since} ago"),
    )


def _alive(lease: Lease, me: str, now: float) -> tuple[str, ...]:
    if lease.expired(now):
        return ()
    there = "that console of yours may still act: its"
    if lease.operator != me:
        there = f"{lease.operator} still works on it: ask first. Their"
    return (f"{there} next step is refused by every host",)


def _taking_unknown(key: str, lane: str, why: str, hands: Hands) -> Errand:
    """Nobody can tell whose it is: taking it over writes the lease anew."""
    told = (("from", f"nobody can tell: {why}"), ("lease", "written anew; whoever held it is fenced off"))
    alive = ("somebody may still work on it: ask first. Their next step is refused by every host",)

    async def prepare() -> Ready:
        return Ready(questions=(_name(lane),), told=told, warnings=alive)

    async def carry_out(ready: Ready, strip: Strip) -> str:
        return await hands.take_over(lane, strip.answers[0], "")

    return Errand(key, "TAKE OVER", lane, prepare, carry_out)


def _accepting(key: str, lane: str, lease: Lease, hands: Hands) -> Errand:
    told = (("from", f"{lease.operator} on {lease.console}"), ("to", "you"), ("purpose", lease.purpose or "-"))

    async def prepare() -> Ready:
        return Ready(questions=(_name(lane),), told=told)

    async def carry_out(ready: Ready, strip: Strip) -> str:
        return await hands.accept(lane)

    return Errand(key, "TAKE OVER, AS OFFERED,", lane, prepare, carry_out)


def _offering(key: str, lane: str, lease: Lease, me: str, hands: Hands) -> Errand:
    told = (
        ("from", f"you ({me})"),
        ("then", "it stays yours until they accept with H on their own console"),
        *((("offered", f"to {lease.offered_to} already"),) if lease.offered_to else ()),
    )
    ask = Question("name of the operator who takes it", Kind.TEXT, hint="as in their fleet file or LANESWAP_OPERATOR")

    async def prepare() -> Ready:
        return Ready(questions=(ask,), told=told)

    async def carry_out(ready: Ready, strip: Strip) -> str:
        return await hands.offer(lane, strip.answers[0].strip())

    return Errand(key, "HAND OVER", lane, prepare, carry_out)
