"""A plan: the ordered steps that an action would take, as data. Nothing here touches a host.

A command is an argument list and perhaps a script on its standard input; both are constants of ours filled with checked
words, never a shell line put together from what a host said. A probe is a command that answers a question by its exit
status. The same plan is carried out by `console/execution/runner.py`, shown by `laneswap plan`, and written out as the
sheet from which an operator can finish it by hand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum

YES, NO = 0, 1
"""Exit statuses of a probe; any other one means that it is not known."""


class Verb(StrEnum):
    """What is done to a lane."""

    DISARM = "disarm"
    ARM = "arm"
    STOP = "stop"
    RELAUNCH = "relaunch"
    ROLLBACK = "rollback"


class Stage(StrEnum):
    """The places on the procedure rail, in their order."""

    EVIDENCE = "evidence"
    WATCHDOG = "watchdog"
    STOP = "stop"
    ROWS = "rows"
    SITE = "site"
    BOOT = "boot"
    ARM = "arm"


@dataclass(frozen=True, slots=True)
class Probe:
    """A question to one host: exit 0 is yes, 1 is no, anything else is not known. Its first line says what it saw."""

    host: str
    words: str
    """What holds if it says yes: `container sgldsv41 has exited`."""
    argv: tuple[str, ...]
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One command on one host, with what must hold before and what must be observed after."""

    id: str
    """Unique in the plan, `[a-z0-9][a-z0-9.-]*`: `stop-spark-0`. Part of file and unit names."""
    stage: Stage
    title: str
    """`stop rank 0`."""
    host: str
    argv: tuple[str, ...]
    """Empty: nothing is run, only `after` is waited for."""
    limit: float
    """Seconds for the command and for what must be observed after it, together."""
    stdin: str = ""
    before: tuple[Probe, ...] = ()
    """Must all say yes when the step begins; a no or an unknown stops the plan there."""
    already: tuple[Probe, ...] = ()
    """If all say yes the step is satisfied and its command is not run."""
    after: tuple[Probe, ...] = ()
    """Asked every second once the command has ended well, until all say yes."""
    watch: tuple[Probe, ...] = ()
    """Asked every two seconds from the start of the command until `after` holds; a no ends the command and fails."""
    usual: float | None = None
    """Seconds that it usually takes; None if nothing tells."""
    basis: str = ""
    """Where `usual` comes from: `median of 3 boots`, `estimate`."""
    undo: str = ""
    """What undoes it, in words: `docker start sgldsv41`, `arm the watchdog (D)`."""
    together: str = ""
    """Neighbours with the same word here run at the same time."""
    detached: bool = False
    """It runs as a unit of its own on its host, which outlives every connection."""
    keeps: bool = False
    """It leaves daemons behind that must live on (a launcher that starts the watchdog)."""
    optional: bool = False
    """Its failure is recorded and the plan goes on: evidence never holds up the way back."""
    again: bool = False
    """Where its host was restarted under it, whoever carries the plan on may begin it once more: it looks first, and
    does nothing that it has done already. Without it such a step is left to a person."""
    memory_max: str = ""
    """Cap of a copier, as systemd writes it: `4G`; '' for none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one action would do to one lane, and what that rests on."""

    verb: Verb
    fleet: str
    lane: str
    head: str
    title: str
    """`roll back dsv41 on spark4`."""
    steps: tuple[Step, ...]
    origin: str = ""
    """Where the lane stands, in words: a revision, `serving`."""
    target: str = ""
    """Where it leads to: a revision, `stopped`, `watchdog off`."""
    facts: tuple[tuple[str, str], ...] = ()
    """(name, value) of what the plan rests on: container and image ids, revisions, hashes of files. Part of its id."""
    rescue: tuple[Step, ...] = ()
    """What is done after a failed step, each one optional: logs saved, survivors stopped."""
    cuts: str = ""
    """What it cuts off: `7 running requests, 2 waiting`; '' if nothing."""
    ends: tuple[str, ...] = ()
    """What it ends that is under way: `stop (operation ...), step 2`."""
    warnings: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """What it would need to know and does not: each names the host or the reading."""
    left_out: tuple[str, ...] = ()
    """Hosts that cannot be reached and are left out."""
    refused: str = ""
    """Why it is proved impossible; '' if it is not. Such a plan has no steps."""
    owes: str = ""
    """The debt that it makes: `watchdog`; '' for none."""
    pays: str = ""
    """The debt that it settles."""
    notes: tuple[str, ...] = field(default=())
    """What the operator should know: a dry run's differences, restart policies that are set aside."""

    @property
    def id(self) -> str:
        """First 12 hex digits of a hash over steps and facts; predictions and ages do not count."""
        kept = [[_core(step) for step in steps] for steps in (self.steps, self.rescue)]
        text = json.dumps([self.verb, self.fleet, self.lane, kept, sorted(self.facts)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def total(self) -> float | None:
        """Seconds that it usually takes, neighbours that run together counted once; None where a part is not known."""
        sums = 0.0
        for group in groups(self.steps):
            known = [step.usual for step in group if not step.optional]
            if any(usual is None for usual in known):
                return None
            sums += max((usual for usual in known if usual is not None), default=0.0)
        return sums


def groups(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The steps in order, neighbours that run at the same time as one group."""
    group: list[Step] = []
    for step in steps:
        if group and not (step.together and step.together == group[-1].together):
            yield tuple(group)
            group = []
        group.append(step)
    if group:
        yield tuple(group)


_PREDICTED = ("usual", "basis", "limit", "title", "undo")


def _core(step: Step) -> dict[str, object]:
    """What of a step counts for the plan's id."""
    return {key: value for key, value in asdict(step).items() if key not in _PREDICTED}
