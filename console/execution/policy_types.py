"""What a decision rests on, and the answers: plain data of `policy`, which alone decides and gives leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from console.actions.plan import Verb


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
    head_words: str = ""
    """What is broken on a head that can be reached: its state folder cannot be used."""
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
    """An action that does not go; the text says why and the way out."""

    def __init__(self, words: str, did: str = "", *, half: bool = False) -> None:
        """`did`: what was done all the same before it was refused, in safe words; '': nothing was sent. `half`: with
        that something was ended that does not go on."""
        super().__init__(words)
        self.did, self.half = did, half

    @property
    def whole(self) -> str:
        """Why, and what was done or that nothing was."""
        return f"{self.did}: {'HALF DONE, ' if self.half else ''}{self}" if self.did else f"{self}. Nothing was sent."
