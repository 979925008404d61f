"""What is under way on a lane, as its head keeps it: lease, window, debts, the newest operation. Pure types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StepState(StrEnum):
    """What became of one step."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    SATISFIED = "satisfied"
    """What it should bring about held already; its command was not run."""
    FAILED = "failed"
    STOPPED = "stopped"
    """Ended on purpose by an operator: neither failed nor done."""
    FENCED = "fenced"
    """Refused by its host: another operator holds a newer lease."""
    UNKNOWN = "unknown"
    """Its outcome was not seen: a connection was lost or nothing says."""
    SKIPPED = "skipped"
    """Not begun, because the plan stopped before it."""


class OperationState(StrEnum):
    """What became of a whole plan."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """A step failed and nothing is left half done: what it had changed was never begun, or was taken back."""
    HALF_DONE = "half done"
    """It ended, or nothing carries it on, after some steps and before the last."""
    STOPPED = "stopped"
    """An operator ended it."""
    LOST = "lost"
    """Its runner is gone and left no result: the host restarted, or it was killed."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may act on the lane. Times are Unix seconds by the head's clock."""

    operator: str
    console: str
    """`user@machine pid` of the console that holds it."""
    id: str
    epoch: int
    acquired: float
    renewed: float
    ttl: float
    purpose: str = ""
    offered_to: str = ""
    """Handing over: whom it was offered to, until that one accepts."""

    def expired(self, now: float) -> bool:
        """Whether it ran out, by the head's clock."""
        return now > self.renewed + self.ttl


@dataclass(frozen=True, slots=True)
class WindowState:
    """An open switch window. Times are Unix seconds by the head's clock."""

    id: str
    operator: str
    reason: str
    opened: float
    deadline: float
    target: str
    """Revision (or container) that `B` leads back to, frozen at the opening."""
    plan_id: str
    """Of the frozen way back."""
    fleet_wide: bool = False


@dataclass(frozen=True, slots=True)
class Debt:
    """Something switched off that has to be switched on again."""

    what: str
    """`watchdog`."""
    since: float
    deadline: float
    operator: str
    operation: str = ""


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of an operation; all texts are safe."""

    id: str
    stage: str
    title: str
    host: str
    state: StepState
    began: float | None = None
    """Unix seconds by the head's clock."""
    ended: float | None = None
    usual: float | None = None
    limit: float = 0.0
    words: str = ""
    """What was seen, or why it failed."""
    waits_for: str = ""
    """While it runs: the observation still missing."""
    together: str = ""
    detached: bool = False
    """It runs as a unit of its own on its host."""
    optional: bool = False
    """Its failure holds nothing up."""
    acts: bool = True
    """It does something to the lane: it neither waits nor keeps books alone."""


@dataclass(frozen=True, slots=True)
class Operation:
    """The newest operation on a lane; all texts are safe."""

    id: str
    verb: str
    lane: str
    operator: str
    plan_id: str
    title: str
    state: OperationState
    began: float
    ended: float | None
    steps: tuple[StepView, ...]
    origin: str = ""
    target: str = ""
    words: str = ""
    """`HALF DONE after stop-spark-1, next: start rank 0`; '' while nothing is to be said."""
    runs_on: str = "head"
    """`head`: detached there; `console`: in the console that started it, which must stay."""
    epoch: int = 0
    ledgered: bool = True
    """False for break-glass: UNLEDGERED until it is written up."""
    head: str = ""
    rescue: tuple[StepView, ...] = ()
    """Those of its rescue steps that were begun: what was done after a failed step."""
    took_over: str = ""
    """`ben from ana` where another operator carries it on; '' otherwise."""
    unread: bool = False
    """Only its name is known yet: its plan or journal was not read."""
    whole: bool = True
    """False where plan or journal is damaged, cut or gone: what the steps say is not all that was done."""
    spoke: float | None = None
    """Unix seconds by the head's clock of the newest line of its journal."""

    @property
    def step(self) -> StepView | None:
        """The step that runs, else the first that is not done; None when all are."""
        fine = (StepState.DONE, StepState.SATISFIED)
        running = next((one for one in self.steps if one.state is StepState.RUNNING), None)
        return running or next((one for one in self.steps if one.state not in fine), None)


@dataclass(frozen=True, slots=True)
class Acting:
    """All of it for one lane, read from its head."""

    clock: float
    """Unix seconds by the head's clock when it was read."""
    lease: Lease | None = None
    """None: nobody's, unless `lease_unknown` says why nobody can tell."""
    lease_unknown: str = ""
    """Why it cannot be told who holds the lane, in safe words: its file is damaged, or cannot be read."""
    window: WindowState | None = None
    debts: tuple[Debt, ...] = ()
    operation: Operation | None = None
    problem: str = ""
    """A file there that is damaged or cannot be read; safe words."""
    folder: str = ""
    """The lane's state folder on its head."""


@dataclass(frozen=True, slots=True)
class ForeignAct:
    """Something that was done on a host of a lane and is no step of an operation; texts are safe."""

    at: float
    """Unix seconds by the console's clock."""
    host: str
    kind: str
    """`container`, `watchdog`, `site`, `image`."""
    text: str
    during: str = ""
    """The operation that ran meanwhile; '' for none."""
