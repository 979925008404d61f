"""The laptop's lid: the console is killed with -9 at every step, and the lane serves again without it.

What a killed console left is finished or told by the next one: the ledger has an outcome for every intent, and no step
ran twice, by the journals and by Docker's own events.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from acting_console import GOOD, NEEDS_OPERATOR
from acting_docker import ActingDocker
from acting_operator import DockerEvents, Head, Operator
from acting_parts import NEW, OLD

pytestmark = [pytest.mark.bed, pytest.mark.timeout(300)]

Moment = Callable[[Operator, Head], bool]


def line(step: str, state: str) -> Moment:
    """Once the journal has this line."""
    return lambda _, head: head.told(step, state)


MOMENTS: dict[str, Moment] = {
    "lease": lambda _, head: bool(head.lease()),
    "intent": lambda ana, _: bool(ana.intents()),
    "published": lambda _, head: bool(head.current()),
    "begun": lambda _, head: bool(head.journal()),
    "saving": line("save", "running"),
    "stopping": line("stop", "running"),
    "stopped": line("stop", "done"),
    "starting": line("start", "running"),
    "serving": line("start", "done"),
    "renaming": line("rename", "running"),
    "renamed": line("rename", "done"),
    "ended": lambda _, head: bool(head.ended()),
}
"""Every write of a rollback, in their order."""
IN_CI = ("stopping", "starting")


def moments(*kept: str, only: tuple[str, ...] = tuple(MOMENTS)) -> list[object]:
    """All of `only`; those that are not `kept` are for the long run."""
    return [pytest.param(name, marks=() if name in kept else pytest.mark.soak) for name in only]


def finished(ana: Operator, head: Head) -> None:
    """A fresh console goes on with what a killed one left, as far as anything is left; it knows how it ended."""
    followed = ana.run("attach", "station")
    if not head.operations():
        assert followed.code == NEEDS_OPERATOR and "no operation to follow" in followed.err, followed.text
        return
    if followed.code != GOOD:  # killed between the operation's file and its runner
        assert "LOST" in followed.out and "before anything was done" in followed.out, followed.text
        followed = ana.run("attach", "station", "--carry-on", "--yes-lane", "station")
    assert followed.code == GOOD and "DONE" in followed.out, followed.text


def told(ana: Operator) -> None:
    """The ledger is whole, and has one outcome for each intent."""
    ana.status()
    ana.ledger_good()
    intents = ana.intents()
    assert sorted({op for op, _ in ana.outcomes()}) == sorted(set(intents)), (intents, ana.outcomes())
    done = [op for op, result in ana.outcomes() if result == "done"]
    assert len(done) == len(set(done)), ana.outcomes()


def serves_old(lane: ActingDocker, events: DockerEvents, old: str, new: str) -> None:
    """The lane serves OLD, and Docker stopped and started each once."""
    lane.until_healthy()
    found = lane.standing()
    assert found is not None and found.revision == OLD
    counts = events.counts()
    once = (counts[f"die {new[:12]}"], counts[f"start {old[:12]}"], counts[f"start {new[:12]}"])
    assert once == (1, 1, 0), counts


@pytest.mark.parametrize("moment", moments(*IN_CI))
def test_a_rollback_whose_console_is_killed(lane: ActingDocker, ana: Operator, moment: str) -> None:
    head, events = Head(lane.host, "station"), DockerEvents(lane.host)
    old, new = lane.id_of(OLD), lane.id_of(NEW)
    assert ana.killed_when(lambda: MOMENTS[moment](ana, head), "rollback"), "killed while it ran"
    begun = bool(head.journal())
    if begun:
        assert head.until_ended() == "done", "without any console"
        serves_old(lane, events, old, new)
    finished(ana, head)
    if not head.operations():
        found = lane.standing()
        assert found is not None and found.revision == NEW, "nothing was sent"
        assert ana.do("rollback").code == GOOD, "the lease that was left is ours"
    serves_old(lane, events, old, new)
    assert not head.begun_twice()
    told(ana)


@pytest.mark.parametrize("moment", moments("stopping", only=("begun", "stopping", "stopped", "ended")))
def test_a_stop_whose_console_is_killed_and_then_the_way_back(lane: ActingDocker, ana: Operator, moment: str) -> None:
    head, events = Head(lane.host, "station"), DockerEvents(lane.host)
    old, new = lane.id_of(OLD), lane.id_of(NEW)
    assert ana.killed_when(lambda: MOMENTS[moment](ana, head), "stop"), "killed while it ran"
    assert head.until_ended() == "done" and lane.running() == []
    back = ana.do("rollback")
    assert back.code == GOOD, back.text
    serves_old(lane, events, old, new)
    assert not head.begun_twice()
    told(ana)
