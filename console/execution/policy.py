"""Who may do what, now: allow, needs confirmation, or denied with the reason; and the Grant that effects demand.

This module alone decides. Screens and commands bring a `Situation` and, after the operator has confirmed, a
`Confirmation`; only `grant` makes a Grant, and only from a Decision of `decide` and a Confirmation that satisfies it.
Effects call `spend` themselves, which takes each Grant once. All of it is pure but for the list of grants that were
not spent yet.

Where several columns of the table apply at once the stricter one wins, in this order (docs/ledger.md has the table):

1. `--read-only` denies everything; then a plan that is proved impossible, whatever else holds.
2. A lease held by another denies all but a rollback, break-glass asked for or not: the other one can be asked.
   A rollback takes the lease over.
3. What runs already is never started a second time: only a stop or a rollback may end another operation of ours.
4. Ledger, head or lease out of reach: break-glass, also inside a window and with stale facts. A state folder on the
   head that cannot be used, and a lease that is damaged, are out of reach too.
5. Stale facts or hosts out of reach: the lane's name even inside a window; a relaunch is denied until they are read,
   or goes by break-glass where the operator asks for it. A rollback inside a window keeps its letter and countdown
   while the lane is down or stalled, and is told what is not known.
6. A lease that ran out is taken over by typing the lane's name; a window under it counts no more.
7. A window of ours on this very lane: the letter, for a rollback also the countdown. Without one: the lane's name.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, replace
from typing import NoReturn, final

from console.actions.plan import Verb
from console.execution.policy_types import Confirmation, Decision, Holder, How, Need, Refused, Situation
from console.sanitize import word

__all__ = [
    "COUNTDOWN_DOWN_S",
    "COUNTDOWN_SERVING_S",
    "GRANT_LIVES_S",
    "SHORTEST_REASON",
    "TAKEN_LIVES_S",
    "Confirmation",
    "Decision",
    "Grant",
    "Holder",
    "How",
    "Need",
    "Refused",
    "Situation",
    "adopt",
    "clock",
    "decide",
    "ensure",
    "grant",
    "spend",
    "take_up",
]

COUNTDOWN_DOWN_S, COUNTDOWN_SERVING_S = 3.0, 10.0
"""Seconds of the countdown while the lane does not serve, and while it does."""
GRANT_LIVES_S = 10.0
"""Seconds from the confirmation in which a Grant can be made and spent."""
TAKEN_LIVES_S = 120.0
"""Seconds in which an operation has to begin once its Grant was taken up: lease, record and what it ends come first."""
COUNTED_SLACK_S = 0.05
"""What a countdown of painted ticks may fall short by."""
SHORTEST_REASON = 3
"""Characters."""


def clock() -> float:
    """Seconds that also pass while the machine sleeps, where it can tell; for confirmations and grants."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


# Decisions


def decide(verb: Verb, situation: Situation) -> Decision:
    """What it takes for `verb` to go now. Pure; decide again before `grant`: the world may have moved meanwhile."""
    denied, or_glass = _denied(verb, situation)
    if denied:
        return _sealed(Decision(verb, situation.lane, denied, or_break_glass=or_glass, epoch=situation.epoch))
    glass = _out_of_reach(situation) or _asked_past_stale(verb, situation)
    need = Need.NAME_AND_REASON if glass else _need(verb, situation)
    seconds = COUNTDOWN_SERVING_S if situation.serving else COUNTDOWN_DOWN_S
    return _sealed(
        Decision(
            verb,
            situation.lane,
            need=need,
            seconds=seconds if need is Need.COUNTDOWN else 0.0,
            warnings=_warnings(verb, situation),
            takes_over=situation.holder in (Holder.OTHER, Holder.EXPIRED),
            break_glass=glass,
            ends=situation.running,
            epoch=situation.epoch,
        )
    )


def _sealed(decision: Decision) -> Decision:
    object.__setattr__(decision, "_made", True)
    return decision


def _denied(verb: Verb, situation: Situation) -> tuple[str, bool]:
    """Why it does not go, '' if it may; and whether break-glass would open it."""
    if situation.read_only:
        return "this console is read-only (--read-only)", False
    if situation.refused:
        return situation.refused, False
    if situation.holder is Holder.OTHER and verb is not Verb.ROLLBACK:
        who = situation.holder_name or "another operator"
        return f"{situation.lane} is held by {who}: ask them to hand it over (H), or take it over", False
    if situation.running and (words := _runs(verb, situation)):
        return words, False
    if verb is Verb.RELAUNCH and situation.unknown and not (_out_of_reach(situation) or situation.break_glass):
        return f"not known: {'; '.join(situation.unknown)}. Denied until it is read, or by break-glass", True
    return "", False


def _runs(verb: Verb, situation: Situation) -> str:
    """Why it cannot go beside or in place of what runs; '' where it ends that."""
    if verb is situation.running_verb and (situation.running_known or verb is not Verb.ROLLBACK):
        return f"{situation.running} runs already: attach to it, or end it first"
    if verb in (Verb.STOP, Verb.ROLLBACK):
        return ""
    return f"{situation.running} runs: wait for it or end it first; S and B end it by themselves"


def _out_of_reach(situation: Situation) -> bool:
    """Nothing can be recorded, or nobody can be asked who holds the lane."""
    return not situation.ledger_ok or not situation.head_ok or situation.holder is Holder.UNKNOWN


def _asked_past_stale(verb: Verb, situation: Situation) -> bool:
    return verb is Verb.RELAUNCH and bool(situation.unknown) and situation.break_glass


def _need(verb: Verb, situation: Situation) -> Need:
    """What has to be confirmed where ledger, head and lease are there and nothing denies it."""
    if not situation.window_open or situation.holder is not Holder.ME:
        return Need.NAME
    if verb is not Verb.ROLLBACK:
        return Need.NAME if situation.unknown else Need.LETTER
    return Need.NAME if situation.unknown and situation.serving else Need.COUNTDOWN


_UNKNOWN_WORDS = {Verb.STOP: "left out or not known", Verb.ROLLBACK: "readiness not known"}


def _warnings(verb: Verb, situation: Situation) -> tuple[str, ...]:
    """What the operator has to be told before confirming, the weightiest first."""
    found = []
    if not situation.ledger_ok:
        found.append("the ledger cannot be written: UNLEDGERED until it is written up")
    if not situation.head_ok and situation.head_words:
        found.append(f"the head's state folder is broken: no lease, no record there: {situation.head_words}")
    elif not situation.head_ok:
        found.append("the head is out of reach: nobody can be asked who holds the lane, no record is kept there")
    elif situation.holder is Holder.UNKNOWN:
        why = f": {situation.holder_name}" if situation.holder_name else ""
        found.append(f"nobody can tell who holds the lane{why}")
    if situation.holder is Holder.OTHER:
        found.append(f"takes the lane over from {situation.holder_name or 'another operator'}")
    if situation.holder is Holder.EXPIRED:
        found.append(f"takes over the lease that ran out: {situation.holder_name or 'holder not known'}")
    if situation.running:
        found.append(f"ends {situation.running}")
    words = _UNKNOWN_WORDS.get(verb, "not known")
    found += [f"{words}: {item}" for item in situation.unknown]
    return tuple(found)


# Grants

_TOKEN = object()
_DENIED_USE = "a Grant is made by console.execution.policy.grant alone"


@final
class Grant:
    """Leave for one operation, for ten seconds, once. What it allows is kept by this module, not in the object."""

    __slots__ = ("break_glass", "ends", "lane", "plan_id", "reason", "takes_over", "verb")
    verb: Verb
    lane: str
    plan_id: str
    takes_over: bool
    break_glass: bool
    ends: str
    reason: str

    def __init__(self, token: object, decision: Decision, confirmation: Confirmation) -> None:
        if token is not _TOKEN:
            raise TypeError(_DENIED_USE)
        for name in ("verb", "lane", "takes_over", "break_glass", "ends"):
            object.__setattr__(self, name, getattr(decision, name))
        object.__setattr__(self, "plan_id", confirmation.plan_id)
        object.__setattr__(self, "reason", word(confirmation.reason, 400))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name}: {_DENIED_USE}")

    def __reduce__(self) -> NoReturn:
        """No copy, no pickle: a second object would be a second leave."""
        raise TypeError(_DENIED_USE)


@dataclass(frozen=True, slots=True)
class _Leave:
    """What one Grant allows."""

    grant: Grant
    verb: Verb
    lane: str
    plan_id: str
    epoch: int
    until: float
    made: float
    break_glass: bool
    taken: bool = False
    """Held against the lease already: what is left is to begin."""


_leaves: dict[int, _Leave] = {}
"""By identity of the Grant, which is kept alive here until it is spent or has run out."""
_lock = threading.Lock()


def grant(decision: Decision, confirmation: Confirmation, plan_id: str, now: float) -> Grant:
    """A Grant for the plan `plan_id`, at `now` seconds of `clock`. Raises Refused with the reason in words."""
    if not decision._made:
        raise Refused("this was not decided by the policy")
    if decision.denied:
        raise Refused(decision.denied)
    if not plan_id or confirmation.plan_id != plan_id:
        raise Refused(f"the plan changed from {confirmation.plan_id or '-'} to {plan_id or '-'} since it was shown")
    if not 0 <= now - confirmation.at <= GRANT_LIVES_S:  # also refuses NaN
        raise Refused("the confirmation is too old: the console slept or the clock moved; confirm again")
    _satisfies(decision, confirmation)
    made = Grant(_TOKEN, decision, confirmation)
    until = confirmation.at + GRANT_LIVES_S
    with _lock:
        for key in [key for key, leave in _leaves.items() if now > leave.until]:
            del _leaves[key]
        _leaves[id(made)] = _Leave(
            made, decision.verb, decision.lane, plan_id, decision.epoch, until, now, decision.break_glass
        )
    return made


def _satisfies(decision: Decision, confirmation: Confirmation) -> None:
    """Raises Refused where what the operator did is not what is needed."""
    how, need = confirmation.how, decision.need
    if how is How.NAME:
        if confirmation.name != decision.lane:
            raise Refused(f"{word(confirmation.name, 80) or 'nothing'} was typed, the lane is {decision.lane}")
    elif how is How.PLAN:
        if need is Need.NAME_AND_REASON:
            raise Refused("break-glass needs the lane's name typed, and a reason; a plan id is not enough")
    elif need not in (Need.LETTER, Need.COUNTDOWN):
        raise Refused(f"{decision.verb} needs the lane's name typed, not a {how}")
    elif how is How.COUNTDOWN:
        _counted(decision, confirmation)
    if need is Need.NAME_AND_REASON and len(word(confirmation.reason, 400)) < SHORTEST_REASON:
        raise Refused(f"break-glass needs a reason of at least {SHORTEST_REASON} characters")


def _counted(decision: Decision, confirmation: Confirmation) -> None:
    if decision.need is not Need.COUNTDOWN or decision.verb is not Verb.ROLLBACK:
        raise Refused(f"{decision.verb} never goes by itself; press the letter")
    if not (math.isfinite(confirmation.counted) and confirmation.counted + COUNTED_SLACK_S >= decision.seconds):
        raise Refused(f"the countdown of {decision.seconds:g} s has not run out")


def take_up(given: Grant, plan_id: str, verb: Verb, lane: str, now: float, epoch: int = 0) -> None:
    """Hold a Grant against the lease under which it was confirmed, before a new one is asked for: a slow head must not
    let a leave run out half used. What is left of it is one `spend`, in TAKEN_LIVES_S seconds.

    Raises Refused as `spend` does, and where it was taken up before; then it is used up.
    """
    with _lock:
        leave = _checked(_leaves.pop(id(given), None), plan_id, verb, lane, now, epoch)
        if leave.taken:
            raise Refused("this leave was taken up already")
        _leaves[id(given)] = replace(leave, until=now + TAKEN_LIVES_S, taken=True)


def ensure(given: Grant, verb: Verb, lane: str, now: float) -> None:
    """Raises Refused unless this Grant was taken up for that and not spent yet: for what has to be ended before the
    operation itself begins."""
    with _lock:
        leave = _leaves.get(id(given))
        _checked(leave, leave.plan_id if leave is not None else "", verb, lane, now, 0)
        if leave is None or not leave.taken:
            raise Refused("this leave was not taken up")


def spend(given: Grant, plan_id: str, verb: Verb, lane: str, now: float, epoch: int = 0) -> bool:
    """Use up a Grant, by whoever begins its operation; `epoch` is that of our lease now, 0 without one. Whether it is
    break-glass.

    Raises Refused on reuse, expiry and mismatch; a Grant that was refused is used up too.
    """
    with _lock:
        return _checked(_leaves.pop(id(given), None), plan_id, verb, lane, now, epoch).break_glass


def _checked(leave: _Leave | None, plan_id: str, verb: Verb, lane: str, now: float, epoch: int) -> _Leave:
    if leave is None:
        raise Refused("this leave was spent already, has run out, or was never given")
    if not leave.made <= now <= leave.until:
        raise Refused(f"the confirmation is older than {leave.until - leave.made:g} s; confirm again")
    if (leave.verb, leave.lane) != (verb, lane):
        raise Refused(f"this leave is for {leave.verb} of {leave.lane}, not for {verb} of {lane}")
    if leave.plan_id != plan_id:
        raise Refused(f"the plan came out different: {plan_id}, {leave.plan_id} was confirmed")
    if leave.epoch != epoch and not leave.taken:  # one that was taken up goes under the lease that came of it
        raise Refused("the lease changed hands since this was confirmed; look again")
    return leave


def adopt(verb: Verb, lane: str, plan_id: str, epoch: int, now: float, *, read_only: bool) -> Grant:
    """Leave to go on with what runs on a lane that was handed or taken over just now; `epoch` of our lease.

    Nothing is confirmed anew: `H` and the lane's name were, whoever began the operation has confirmed its plan, and to
    cut it between two steps would be the greater change. It is good for that plan alone. Raises Refused.
    """
    if read_only:
        raise Refused("this console is read-only (--read-only)")
    if epoch < 1 or not plan_id:
        raise Refused("only what runs under a lease that is ours can be gone on with")
    decision = _sealed(Decision(verb, lane, epoch=epoch))
    return grant(decision, Confirmation(How.PLAN, plan_id, now), plan_id, now)
