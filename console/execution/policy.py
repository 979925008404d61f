"""Who may do what, now: allow, needs confirmation, or denied with the reason; and the Grant that effects demand.

This module alone decides. Screens and commands bring a `Situation` and, after the operator has confirmed, a
`Confirmation`; only `grant` makes a Grant, and only from both. Effects call `spend`, which takes each Grant once.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """A window on this very lane, opened under a lease that is ours."""
    holder: Holder
    holder_name: str = ""
    """The other operator and since when, in words."""
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
