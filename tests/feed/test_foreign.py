"""Whose hands they were: steps of operations by kind, host and time; all else is foreign."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "widgets"))

import pictures

from console.feed.foreign import GIVEN_UP_S, HEARD_S, KEPT_S, MOST_ACTS, Deed, Hands, deeds_of
from console.readings.acting_types import Acting, Operation, OperationState, StepState, StepView
from console.readings.quality import Reading
from console.readings.watchdog import Watchdog, WatchdogState
from console.snapshot import Event, Severity, Snapshot

AT = pictures.spark4().wall
LANE, HEAD = pictures.spark4().lanes[0].name, pictures.spark4().lanes[0].lane.head
HOSTS = pictures.spark4().lanes[0].lane.rank_hosts
STOP = StepView("stop-0", "stop", "stop rank 0", HOSTS[1], StepState.DONE, AT - 10, AT - 5, limit=30.0)
RUNS = Operation("op1", "rollback", LANE, "ana", "p", "roll back", OperationState.RUNNING, AT - 20, None, (STOP,))


def picture(
    operation: Operation | None = RUNS, *, read: float = HEARD_S + 1, error: str = "", later: float = 0.0, **acting: Any
) -> Snapshot:
    """The lane, its head read `read` seconds after AT, `later` seconds after the picture was taken."""
    snapshot = pictures.spark4()
    found = Reading("folder", 2.5, Acting(AT, operation=operation, **acting), snapshot.now, AT + read, error)
    lanes = tuple(replace(lane, acting=found) if lane.name == LANE else lane for lane in snapshot.lanes)
    hosts = tuple(replace(host, drift=0.0) for host in snapshot.hosts)
    return replace(snapshot, lanes=lanes, hosts=hosts, now=snapshot.now + later, wall=snapshot.wall + later)


NAME = "sgldsv41"


def deed(at: float = AT - 7, kind: str = "container", host: str = HOSTS[1], lane: str = "") -> Deed:
    text = f"container {NAME} was sent SIGTERM through Docker, not by this console"
    return Deed(Event(at, host, text, Severity.LOOK, kind), host, pictures.spark4().now, lane=lane)


def told(one: Deed, *snapshots: Snapshot) -> list[Event]:
    hands = Hands()
    hands.add(one)
    return [after for snapshot in snapshots for before, after in hands.settle(snapshot) if before is one.event]


def test_a_step_of_ours_is_named_as_soon_as_it_is_known() -> None:
    (after,) = told(deed(), picture(read=-6.0))
    assert after.text == f"container {NAME} was sent SIGTERM through Docker (ana: stop rank 0)"
    assert not after.foreign


@pytest.mark.parametrize(
    "one",
    [
        deed(at=AT - 14),
        deed(at=AT + 3),
        deed(host=HOSTS[2]),
        deed(kind="site"),
        deed(kind="image"),
    ],
)
def test_another_time_host_or_kind_is_a_foreign_hand(one: Deed) -> None:
    (after,) = told(one, picture(read=60.0))
    assert after.foreign and after.text == f"foreign: container {NAME} was sent SIGTERM through Docker"
    assert (after.wall, after.subject, after.severity) == (one.event.wall, one.event.subject, one.event.severity)


def test_a_watchdog_that_recovers_the_lane_is_named() -> None:
    snapshot = picture()
    dog = pictures.reading(Watchdog(WatchdogState.RECOVERY, "in recovery", True))
    lanes = tuple(replace(lane, watchdog=dog) for lane in snapshot.lanes)
    (after,) = told(deed(host=HOSTS[2]), replace(snapshot, lanes=lanes))
    assert after.foreign and after.text.endswith("through Docker (its watchdog recovers the lane)")


def test_launchers_on_the_head_reach_every_rank() -> None:
    boot = replace(STOP, stage="boot", title="start the lane", host=HEAD, ended=None, state=StepState.RUNNING)
    (after,) = told(deed(at=AT + 500, host=HOSTS[3]), picture(replace(RUNS, steps=(boot,))))
    assert after.text.endswith("(ana: start the lane)")


def test_a_step_that_nobody_saw_end_explains_no_more_than_its_limit() -> None:
    open_end = replace(STOP, ended=None, state=StepState.UNKNOWN)
    lost = replace(RUNS, state=OperationState.LOST, steps=(open_end,))
    assert told(deed(at=AT + 15), picture(lost, read=60.0))[0].foreign is False
    assert told(deed(at=AT + 40), picture(lost, read=60.0))[0].foreign is True


def test_nothing_is_foreign_before_the_head_was_read_late_enough() -> None:
    one = deed(at=AT + 1)
    assert told(one, picture(None, read=HEARD_S)) == []
    assert len(told(one, picture(None, read=HEARD_S), picture(None, read=HEARD_S + 2))) == 1


def test_where_the_head_cannot_be_read_it_stays_untold() -> None:
    hands = Hands()
    hands.add(deed())
    for later in (0.0, GIVEN_UP_S + 1):
        assert hands.settle(picture(None, error="no permission", later=later)) == ()
    assert hands.settle(picture(None)) == (), "it was given up"


def test_of_what_is_no_lanes_nobody_says_whose_it_was() -> None:
    other = replace(deed(), container="postgres")
    assert told(other, picture(None)) == []
    assert told(replace(deed(), host="nowhere"), picture(None)) == []


def test_operations_that_were_replaced_meanwhile_still_count() -> None:
    hands = Hands()
    hands.settle(picture(replace(RUNS, state=OperationState.DONE, ended=AT - 4)))
    hands.add(deed())
    newer = replace(RUNS, id="op2", verb="disarm", steps=())
    ((_, after),) = hands.settle(picture(newer))
    assert after.text.endswith("(ana: stop rank 0)")


def test_foreign_acts_stay_with_the_lane_for_a_while() -> None:
    hands = Hands()
    hands.add(deed(at=AT - 3, kind="site", host=HEAD, lane=LANE))
    hands.settle(picture())
    (act,) = hands.acts(LANE)
    assert (act.at, act.host, act.kind, act.during) == (AT - 3, HEAD, "site", "op1")
    hands.settle(picture(later=KEPT_S + 1))
    assert hands.acts(LANE) == ()
    for number in range(2 * MOST_ACTS):
        hands.add(deed(at=AT - number, kind="site", host=HEAD, lane=LANE))
    hands.settle(picture(None))
    assert len(hands.acts(LANE)) == MOST_ACTS
    assert hands.acts(LANE)[0].during == ""


def test_deeds_are_told_from_what_happens_by_itself() -> None:
    site, gone = Event(1.0, LANE, "x", deed="site"), Event(1.0, "n2", "x", deed="container")
    found = list(deeds_of([Event(1.0, LANE, "boot"), site, gone], {LANE: HEAD}, 5.0))
    assert found == [Deed(site, HEAD, 5.0, lane=LANE), Deed(gone, "n2", 5.0)]


def test_a_step_that_only_waits_or_keeps_books_did_nothing() -> None:
    quiet = replace(STOP, acts=False)
    (after,) = told(deed(), picture(replace(RUNS, steps=(quiet,))))
    assert after.foreign and after.text.startswith("foreign: ")


def test_the_nearest_step_is_the_one() -> None:
    before = replace(STOP, id="start-0", stage="boot", title="start rank 0", began=AT - 40, ended=AT - 12)
    (after,) = told(deed(), picture(replace(RUNS, steps=(before, STOP))))
    assert "(ana: stop rank 0)" in after.text
