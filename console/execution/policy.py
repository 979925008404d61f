"""Who may do what, now: allow, needs confirmation, or denied with the reason; and the Grant that effects demand.

This module alone decides. Screens and commands bring a `Situation` and, after the operator has confirmed, a
`Confirmation`; only `grant` makes a Grant, and only from a Decision of `decide` and a Confirmation that satisfies it.
Effects call `spend`, which takes each Grant once. All of it is pure but for the list of grants that were not spent yet.

Where several columns of the table apply at once the stricter one wins, in this order (docs/ledger.md has the table):

1. `--read-only` denies everything; then a plan that is proved impossible, whatever else holds.
2. A lease held by another denies all but a rollback, break-glass asked for or not: the other one can be asked.
   A rollback takes the lease over.
3. What runs already is never started a second time: only a stop or a rollback may end another operation of ours.
4. Ledger, head or lease out of reach: break-glass, also inside a window and with stale facts.
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
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn, final

from console.actions.plan import Verb
from console.sanitize import word

COUNTDOWN_DOWN_S, COUNTDOWN_SERVING_S = 3.0, 10.0
"""Seconds of the countdown while the lane does not serve, and while it does."""
GRANT_LIVES_S = 10.0
"""Seconds from the confirmation in which a Grant can be made and spent."""
COUNTED_SLACK_S = 0.05
"""What a countdown of painted ticks may fall short by."""
SHORTEST_REASON = 3
"""Characters."""


class Need(StrEnum):
    """What the operator has to do before an action goes."""

    LETTER = "letter"
    COUNTDOWN = "countdown"
    """The letter goes at once; at zero it goes by itself. Only a rollback."""
    NAME = "lane name"
    NAME_AND_REASON = "lane name and reason"
    """Break-glass: nothing can be recorded, or nobody can be asked who holds the lane."""


class How(StrEnum):
    """What the operator did."""

    LETTER = "letter"
    """Pressed the shown letter."""
    COUNTDOWN = "countdown"
    """Let the countdown run out in front of them."""
    NAME = "lane name"
    """Typed the lane's name (`--yes-lane NAME`)."""
    PLAN = "plan id"
    """Named lane and plan id on the command line (`--plan ID`); as good as the lane's name, but not for break-glass."""


class Holder(StrEnum):
    """Who holds the lane's lease."""

    NOBODY = "nobody"
    ME = "me"
    OTHER = "other"
    EXPIRED = "expired"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Situation:
    """What a decision rests on."""

    lane: str
    window_open: bool
    """A window on this very lane, opened under a lease that is ours; counts only while `holder` is ME."""
    holder: Holder
    holder_name: str = ""
    """The other operator and since when, in words; also whose lease ran out, and why it is not known who holds it."""
    unknown: tuple[str, ...] = ()
    """Stale facts and hosts out of reach, each in words."""
    ledger_ok: bool = True
    head_ok: bool = True
    read_only: bool = False
    serving: bool = True
    """False while the lane is down or stalled."""
    refused: str = ""
    """Why the plan is proved impossible."""
    running: str = ""
    """The operation of ours that runs now, in words."""
    running_verb: Verb | None = None
    """What that operation does; None where it is not known."""
    running_known: bool = True
    """False: nobody can tell whether it still runs (its files are gone, its runner cannot be seen)."""
    break_glass: bool = False
    """The operator asks for break-glass (`--break-glass`); opens nothing but a relaunch with stale facts."""
    epoch: int = 0
    """Of our lease; 0 without one. A Grant holds only under the epoch that it was decided under."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer: denied with the reason, or what has to be confirmed and what the operator has to be told."""

    verb: Verb
    lane: str
    denied: str = ""
    need: Need = Need.NAME
    seconds: float = 0.0
    """Of the countdown."""
    warnings: tuple[str, ...] = ()
    takes_over: bool = False
    break_glass: bool = False
    or_break_glass: bool = False
    """Denied, but it would go by break-glass if the operator asked for that."""
    ends: str = ""
    """The operation of ours that has to be ended first, in words; '' for none."""
    epoch: int = 0
    _made: bool = field(default=False, init=False, repr=False, compare=False)
    """Set by `decide` alone: a Decision put together elsewhere makes no Grant."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the operator did in answer to a Decision."""

    how: How
    plan_id: str
    """Of the plan that was in front of them."""
    at: float
    """Seconds of `clock`."""
    name: str = ""
    """What was typed as the lane's name."""
    reason: str = ""
    counted: float = 0.0
    """Seconds of the countdown that were painted."""


class Refused(Exception):
    """An action that does not go; the text says why and the way out. Nothing was sent."""


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
    if not situation.head_ok:
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
        _leaves[id(made)] = _Leave(made, decision.verb, decision.lane, plan_id, decision.epoch, until, now)
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


def spend(given: Grant, plan_id: str, verb: Verb, lane: str, now: float, epoch: int = 0) -> None:
    """Use up a Grant, right before its operation begins; `epoch` is that of our lease now, 0 without one.

    Raises Refused on reuse, expiry and mismatch; a Grant that was refused is used up too.
    """
    with _lock:
        leave = _leaves.pop(id(given), None)
    if leave is None:
        raise Refused("this leave was spent already, has run out, or was never given")
    if not leave.made <= now <= leave.until:
        raise Refused(f"the confirmation is older than {GRANT_LIVES_S:g} s; confirm again")
    if (leave.verb, leave.lane) != (verb, lane):
        raise Refused(f"this leave is for {leave.verb} of {leave.lane}, not for {verb} of {lane}")
    if leave.plan_id != plan_id:
        raise Refused(f"the plan came out different: {plan_id}, {leave.plan_id} was confirmed")
    if leave.epoch != epoch:
        raise Refused("the lease changed hands since this was confirmed; look again")
