"""What a decision rests on, told from a snapshot, a plan and this console's own hold on the lane. Pure."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass

from console import format as fmt
from console.actions.plan import Plan, Verb
from console.actions.underway import head_now
from console.execution.policy import Holder, Situation
from console.readings.acting_types import Acting, Lease, Operation, OperationState
from console.readings.lights import LaneState
from console.readings.link import LinkStatus
from console.sanitize import line, word
from console.snapshot import LaneView, Snapshot

NOT_SERVING = (LaneState.DOWN, LaneState.STALLED, LaneState.BOOTING)
"""What counts as down for the countdown and for a way back whose readiness is not known."""


_MAY_RUN = (OperationState.RUNNING, OperationState.UNKNOWN)
"""One that was just begun is not read yet."""


@dataclass(frozen=True, slots=True)
class Me:
    """The operator at this console."""

    operator: str
    console: str
    """`user@machine pid`."""

    @property
    def seat(self) -> str:
        """`user@machine`: another console of the same operator there is the same person."""
        return self.console.rpartition(" ")[0]


def me(operator: str) -> Me:
    """This console's own name; the operator is who the ledger names."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        user = str(os.getuid())
    return Me(word(operator, 80) or "-", line(f"{word(user, 40)}@{word(socket.gethostname(), 60)} {os.getpid()}", 120))


def is_mine(lease: Lease, own: Me) -> bool:
    """Held by this operator from this machine, by this or another console."""
    return lease.operator == own.operator and lease.console.rpartition(" ")[0] == own.seat


def holder_of(acting: Acting | None, own: Me, now: float, held_id: str = "") -> tuple[Holder, str]:
    """Who holds the lane at the head's time `now`, and that one in words; or why nobody can tell."""
    if acting is None:
        return Holder.UNKNOWN, ""
    if acting.lease_unknown:
        return Holder.UNKNOWN, acting.lease_unknown
    lease = acting.lease
    if lease is None:
        return Holder.NOBODY, ""
    if (held_id and lease.id == held_id) or is_mine(lease, own):
        return Holder.ME, ""
    words = f"{lease.operator} since {fmt.clock(lease.acquired)} ({lease.console})"
    return (Holder.EXPIRED if lease.expired(now) else Holder.OTHER), words


def situation(
    snapshot: Snapshot,
    lane: LaneView,
    plan: Plan,
    own: Me,
    *,
    held: Lease | None = None,
    ledger_ok: bool = True,
    read_only: bool = False,
    break_glass: bool = False,
    broken: str = "",
    here: tuple[str, Verb] | None = None,
) -> Situation:
    """Everything that `policy.decide` wants to know. `held` is the lease that this console keeps renewed, if any.

    `broken`: why the head's state folder cannot be used. `here`: the operation that this console itself carries out,
    which a head that is out of reach does not tell of.
    """
    reading = lane.acting
    now = head_now(snapshot, lane)
    acting = reading.current(snapshot.now) if reading is not None else None
    holder, name = holder_of(acting, own, now, held.id if held else "")
    head_up = snapshot.host(lane.lane.head).link.status is LinkStatus.UP
    window = acting.window if acting is not None else None
    running = acting.operation if acting is not None else None
    if running is not None and running.state not in _MAY_RUN:
        running = None
    under_way, known = _under_way(running, here)
    return Situation(
        lane=lane.name,
        window_open=window is not None and holder is Holder.ME and window.operator == own.operator,
        holder=holder,
        holder_name=name,
        unknown=tuple(dict.fromkeys((*plan.unknown, *(f"{host}: out of reach" for host in plan.left_out)))),
        ledger_ok=ledger_ok,
        head_ok=head_up and not broken,
        head_words=broken if head_up else "",
        read_only=read_only,
        serving=lane.verdict.state not in NOT_SERVING,
        refused=plan.refused,
        running=f"{under_way[1]} (operation {under_way[0]})" if under_way is not None else "",
        running_verb=_verb(under_way[1]) if under_way is not None else None,
        running_known=known,
        break_glass=break_glass,
        epoch=acting.lease.epoch if acting is not None and acting.lease is not None and holder is Holder.ME else 0,
    )


def _under_way(running: Operation | None, here: tuple[str, Verb] | None) -> tuple[tuple[str, str] | None, bool]:
    """Id and verb of the operation that runs, and whether it does so for sure."""
    if running is None or (here is not None and here[0] == running.id):
        return here, True
    return (running.id, running.verb), running.unread or _runs_for_sure(running)


def _runs_for_sure(operation: Operation) -> bool:
    """Its runner has said a word; one that has a name alone may have lost its console right after that."""
    return operation.state is OperationState.RUNNING and operation.spoke is not None


def _verb(text: str) -> Verb | None:
    return Verb(text) if text in tuple(Verb) else None
