"""What is looked at to know that a lane could go back, what is remembered of it, and what is told from it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from manual import beside

from console.feed.acting_story import acting_changes
from console.feed.host import HostFeed
from console.feed.readiness import MOST_SOURCES, READY_EVERY_S, Readiness, checkpoint_folder, deed_of, sources_of
from console.feed.records import LaneRecords, read_records
from console.fleet.inventory import Host, Lane, Rates
from console.reach.link import Frame, Link
from console.readings.acting_types import (
    Acting,
    Debt,
    Lease,
    Operation,
    OperationState,
    StepState,
    StepView,
    WindowState,
)
from console.readings.binds import BindState, Ready
from console.readings.containers import Container, Containers, ContainerState, Mount
from console.readings.exits import ContainerEvent
from console.readings.link import LinkState, LinkStatus
from console.readings.look import Look, LookKind
from console.readings.recorded import Recorded, decode, encode, merged
from console.snapshot import Severity

pictures = beside("widgets", "pictures")
WALL = pictures.WALL
OLD = "c0ffee1" + "0" * 33
HUB = f"/srv/hub/models--org--m/snapshots/{OLD}"
LANE = Lane(recipe="vllm-docker", url="http://127.0.0.1:30006", head="station", containers="dsv41-*")


def box(name: str, state: ContainerState = ContainerState.EXITED, **changes: Any) -> Container:
    made: Container = pictures.container(name, state)
    mounts = (Mount("/models/" + name, "/model", True), Mount("/cache", "/root/.cache", False))
    return replace(made, **{"ports": (30006,), "mounts": mounts, "image_id": "sha256:aa", **changes})


SERVING = box("dsv41-new", ContainerState.RUNNING, id="a" * 64, revision="9f2c1a7" + "0" * 33)
RETIRED = box("dsv41-old-RETIRED", id="b" * 64, revision=OLD, finished_at=WALL - 500)


@dataclass
class Wire:
    """A link that is up, and what it was told to look at."""

    name: str = "station"
    state: LinkState = field(default_factory=lambda: LinkState(LinkStatus.UP, time.monotonic()))
    asked: list[Sequence[Look]] = field(default_factory=list)

    def look(self, looks: Sequence[Look]) -> None:
        self.asked.append(looks)


def note(subject: str, text: str, severity: Severity, wall: float | None = None, deed: str = "") -> None:
    raise AssertionError(f"{subject}: {text}")


class Station:
    """One host with two containers, whose looks are answered by hand."""

    def __init__(self, *boxes: Container, recorded: Recorded | None = None) -> None:
        self.wire, self.said = Wire(), list[str]()
        self.feed = HostFeed("station", Host(ssh="station"), Rates(), cast(Link, self.wire), note)
        self.records = LaneRecords(lambda text, _: self.said.append(text), None, recorded or Recorded())
        self.way = Readiness("l", LANE, {"station": self.feed}, self.records, lambda text, _: self.said.append(text))
        self.hold(*boxes)

    def hold(self, *boxes: Container) -> None:
        self.feed._containers.put(Containers(boxes))

    def asked(self) -> dict[str, Look]:
        return {look.key.removeprefix("l:way."): look for look in self.wire.asked[-1]}

    def answer(self, **rows: str) -> None:
        """`PATH=row` with slashes as they are: the row behind the path."""
        now = time.monotonic()
        texts = {f"l:way.{path}": f"ok\n{path}\t{row}\n" for path, row in rows.items()}
        self.feed._take_look(Frame("look", 1, now, time.time(), now, texts))

    def states(self, looked: str = "") -> dict[tuple[str, str], BindState]:
        binds, _ = self.way.view(time.monotonic(), looked)
        return {(item.container[0], item.source): item.state for item in binds}


def there(inode: int = 41, sha: str = "a" * 64, entries: int = 12) -> str:
    return f"ok\t/real\td\t8\t{inode}\t-\t{entries}\tconfig.json\t{sha}\t1.000\t1000000000"


OLD_SOURCE = "/models/dsv41-old-RETIRED"


def test_every_source_of_both_containers_is_asked_for_by_itself() -> None:
    station = Station(SERVING, RETIRED)
    assert set(station.states().values()) == {BindState.UNKNOWN}
    asked = station.asked()
    assert set(asked) == {"/models/dsv41-new", OLD_SOURCE, "/cache"}
    assert {(look.kind, look.arguments, look.every) for look in asked.values()} == {
        (LookKind.PATHS, (source,), 15.0) for source in asked
    }
    station.states()
    assert len(station.wire.asked) == 1, "nothing has changed"
    station.hold(SERVING)
    station.states()
    assert OLD_SOURCE not in station.asked()


def test_a_source_is_remembered_and_a_replaced_one_noticed() -> None:
    station = Station(SERVING, RETIRED)
    station.states()
    station.answer(**{OLD_SOURCE: there()})
    assert station.states()["b", OLD_SOURCE] is BindState.NEW
    assert station.states()["b", OLD_SOURCE] is BindState.SAME
    station.answer(**{OLD_SOURCE: there(7, "b" * 64)})
    binds, _ = station.way.view(time.monotonic(), "")
    (other,) = (item for item in binds if item.source == OLD_SOURCE)
    assert other.state is BindState.REPLACED
    assert other.since is not None and abs(other.since - time.time()) < 60
    station.answer(**{OLD_SOURCE: there()})
    assert station.states()["b", OLD_SOURCE] is BindState.SAME, "and back again"
    kept = Station(SERVING, RETIRED, recorded=decode(encode(station.records._sum())))
    kept.states()
    kept.answer(**{OLD_SOURCE: there(7, "b" * 64)})
    assert kept.states()["b", OLD_SOURCE] is BindState.REPLACED, "another console knows it too"


def test_what_is_missing_or_empty_at_first_is_never_taken_for_right() -> None:
    station = Station(SERVING, RETIRED)
    station.states()
    station.answer(**{OLD_SOURCE: "missing", "/cache": there(entries=0)})
    found = station.states()
    assert (found["b", OLD_SOURCE], found["b", "/cache"]) == (BindState.MISSING, BindState.EMPTY)
    station.answer(**{OLD_SOURCE: there(), "/cache": there(42)})
    assert station.states()["b", OLD_SOURCE] is BindState.NEW


async def test_nothing_is_marked_before_the_records_were_read(tmp_path: Path) -> None:
    station = Station(SERVING, RETIRED)
    station.records = LaneRecords(lambda text, _: station.said.append(text), tmp_path / "l.json")
    station.way = Readiness("l", LANE, {"station": station.feed}, station.records, lambda text, _: None)
    station.states()
    station.answer(**{OLD_SOURCE: there()})
    station.states()
    assert station.records.mark("b" * 64, OLD_SOURCE) is None
    station.records._read(read_records(tmp_path / "l.json"))
    station.states()
    assert station.records.mark("b" * 64, OLD_SOURCE) is not None
    await station.records.save()
    kept = read_records(tmp_path / "l.json").recorded
    assert kept is not None and kept.marks[0].source == OLD_SOURCE


def test_names_that_did_not_come_through_are_not_asked_for() -> None:
    odd = replace(RETIRED, mounts=(Mount("/a\ufffdb", "/m", True), Mount("volume", "/v", True)))
    station = Station(odd)
    binds, _ = station.way.view(time.monotonic(), "")
    assert [item.words for item in binds] == ["its name cannot be asked for"] * 2
    assert [look for asked in station.wire.asked for look in asked] == []
    many = replace(RETIRED, mounts=tuple(Mount(f"/{number}", "/m", True) for number in range(99)))
    assert len(sources_of(many)) == MOST_SOURCES


def test_the_checkpoints_folder_of_the_kept_container() -> None:
    hub = replace(RETIRED, mounts=(Mount(HUB, "/model", True),))
    assert checkpoint_folder(hub) == "/srv/hub/models--org--m"
    named = replace(RETIRED, revision_source=f"mount {OLD_SOURCE} at /model")
    assert checkpoint_folder(named) == OLD_SOURCE
    assert checkpoint_folder(RETIRED) == "", "nothing says where its revision was read"
    assert checkpoint_folder(replace(hub, revision="")) == ""
    station = Station(SERVING, hub)
    station.states()
    assert station.asked()["repo"].arguments[0] == "/srv/hub/models--org--m"
    station.states("/srv/hub/models--org--m/")
    assert "repo" not in station.asked(), "the survey looks at it"


# Remembering


def whole(station: Station, **changes: Any) -> tuple[Any, Any]:
    base = pictures.station()
    written = base.lanes[0].lane.model_copy(update={"containers": "dsv41-*"})
    held = pictures.reading(station.feed.view_containers().value, 1.0, 5.0)
    host = replace(base.hosts[0], containers=held)
    lane = replace(base.lanes[0], lane=written, site=None, repos=(), boot=None, **changes)
    return lane, replace(base, hosts=(host,), lanes=(lane,))


def test_a_way_back_that_is_whole_is_remembered_and_does_not_shrink() -> None:
    station = Station(SERVING, RETIRED)
    lane, snapshot = whole(station)
    station.way.remember(lane, snapshot)
    ready = station.records.ready
    assert ready is not None
    assert (ready.by, ready.subject, ready.container, ready.revision) == ("container", RETIRED.name, RETIRED.id, OLD)
    assert {"container", "image", "port"} <= set(ready.items)
    station.way.remember(lane, replace(snapshot, wall=WALL + READY_EVERY_S - 1))
    assert station.records.ready is ready
    station.way.remember(lane, replace(snapshot, wall=WALL + READY_EVERY_S))
    assert station.records.ready.at == WALL + READY_EVERY_S
    always = replace(RETIRED, restart_policy="always")
    station.hold(SERVING, always)
    lane, snapshot = whole(station)
    station.way.remember(lane, snapshot)
    assert station.records.ready is not None and set(station.records.ready.items) == set(ready.items)


def test_a_way_back_that_is_lost_leaves_the_last_one_remembered_with_its_end() -> None:
    station = Station(SERVING, RETIRED)
    station.way.remember(*whole(station))
    assert station.feed.docker is not None
    assert station.way.removed_at is None
    gone = ContainerEvent(WALL - 30, "destroy", RETIRED.id, RETIRED.name)
    station.feed.docker._history.add(1, gone)
    station.hold(SERVING)
    station.way.remember(*whole(station))
    assert station.records.ready is not None and station.records.ready.container == RETIRED.id
    assert station.way.removed_at == WALL - 30
    older = box("dsv41-older-RETIRED", id="c" * 64, revision="abc" + "0" * 37, finished_at=WALL - 900)
    station.hold(SERVING, older)
    station.way.remember(*whole(station))
    assert station.said == [f"the way back by {RETIRED.name} is gone, it is by {older.name} now"]


STEPS = (StepView("stop-0", "stop", "stop rank 0", "station", StepState.DONE, WALL - 90, WALL - 70),)
DONE = Operation(
    "op", "rollback", "l", "ana", "7f3a", "roll back l", OperationState.DONE, WALL - 100, WALL - 10, STEPS, "new", OLD
)


def test_a_rollback_that_is_done_is_a_deed_once() -> None:
    deed = deed_of(DONE)
    assert deed is not None and (deed.operation, deed.took, deed.target, deed.operator) == ("op", 90.0, OLD, "ana")
    for other in (replace(DONE, verb="stop"), replace(DONE, state=OperationState.FAILED), replace(DONE, ended=None)):
        assert deed_of(other) is None
    station = Station(SERVING, RETIRED)
    acting = pictures.reading(Acting(WALL, operation=DONE), 0.5, 2.5)
    for _ in range(2):
        station.way.remember(*whole(station, acting=acting))
    assert station.way.deeds == (deed,)


def test_what_two_consoles_remember_adds_up() -> None:
    station = Station(SERVING, RETIRED)
    station.states()
    station.answer(**{OLD_SOURCE: there()})
    station.states()
    one = station.records._sum()
    later = replace(one.marks[0], inode=99, at=one.marks[0].at + 60)
    deed = deed_of(DONE)
    assert deed is not None
    ready = Ready(5.0, OLD, "container", "x", "y", ("port",))
    other = Recorded(marks=(later,), deeds=(deed,), ready=ready)
    both = merged(merged(one, other), Recorded(deeds=(deed,), ready=replace(ready, at=1.0)))
    assert [mark.inode for mark in both.marks] == [41], "what was seen first stays"
    assert (both.deeds, both.ready) == ((deed,), ready)
    assert decode(encode(both)) == both


# Told


def told(before: Acting | None, after: Acting, ahead: float = 2.0) -> list[tuple[float, str, str, Severity]]:
    return [
        (event.wall, event.subject, event.text, event.severity) for event in acting_changes("l", before, after, ahead)
    ]


def test_an_operation_is_told_with_its_operator_and_its_steps() -> None:
    runs = replace(DONE, state=OperationState.RUNNING, ended=None, steps=())
    assert told(None, Acting(WALL, operation=DONE)) == [], "what was there before is no news"
    begun = told(Acting(WALL), Acting(WALL, operation=runs))
    assert begun == [(WALL - 102, "ana", "ROLLBACK began: roll back l, plan 7f3a", Severity.INFO)]
    assert told(Acting(WALL, operation=runs), Acting(WALL, operation=DONE)) == [
        (WALL - 72, "station", "stop rank 0: done, 0m20s", Severity.NORMAL),
        (WALL - 12, "ana", "ROLLBACK done after 1m30s", Severity.INFO),
    ]
    assert told(Acting(WALL, operation=DONE), Acting(WALL + 5, operation=DONE)) == []


def test_a_step_of_the_rescue_is_told_once() -> None:
    """At every reading it would fill the list of events with itself."""
    rescued = replace(DONE, rescue=tuple(replace(step, id=f"rescue-{step.id}") for step in DONE.steps))
    first = told(Acting(WALL, operation=DONE), Acting(WALL + 1, operation=rescued))
    assert [text for _, _, text, _ in first] == ["stop rank 0: done, 0m20s"]
    assert told(Acting(WALL, operation=rescued), Acting(WALL + 5, operation=rescued)) == []


def test_what_nobody_carries_on_is_told_loudly() -> None:
    runs = replace(DONE, state=OperationState.RUNNING, ended=None)
    words = "HALF DONE after stop rank 0, next: start the lane"
    half = replace(runs, state=OperationState.HALF_DONE, words=words, spoke=WALL - 70)
    assert told(Acting(WALL, operation=runs), Acting(WALL, operation=half)) == [
        (WALL - 72, "ana", f"ROLLBACK half done: {words}", Severity.ACT)
    ]
    failed = replace(STEPS[0], state=StepState.FAILED, words="exit 5")
    assert told(
        Acting(WALL, operation=replace(runs, steps=())), Acting(WALL, operation=replace(runs, steps=(failed,)))
    ) == [(WALL - 72, "station", "stop rank 0: failed, 0m20s: exit 5", Severity.LOOK)]


def test_windows_debts_and_leases_are_told() -> None:
    window = WindowState("w", "ana", "switch", WALL - 50, WALL + 1450, OLD, "p")
    debt = Debt("watchdog", WALL - 40, WALL + 900, "ana")
    lease = Lease("ana", "c", "1", 7, WALL - 60, WALL, 60.0)
    opened = Acting(WALL, lease=lease, window=window, debts=(debt,))
    assert [text for _, _, text, _ in told(Acting(WALL), opened)] == [
        "window on l opened, 25m00s: switch; back to c0ffee1",
        "watchdog of l switched off, owed by 22:10:08Z",
    ]
    taken = replace(opened, lease=replace(lease, operator="ben", acquired=WALL - 1))
    assert told(opened, taken) == [(WALL - 3, "ben", "takes l over from ana", Severity.LOOK)]
    offered = replace(opened, lease=replace(lease, offered_to="ben"))
    assert told(offered, taken)[0][2] == "has l now, handed over by ana"
    longer = replace(opened, window=replace(window, deadline=WALL + 3000))
    assert told(opened, longer) == [(WALL - 2, "ana", "window on l now until 22:45:08Z", Severity.INFO)]
    assert [text for _, _, text, _ in told(opened, replace(opened, window=None, debts=()))] == [
        "window closed, opened by ana: switch",
        "watchdog: debt of ana settled",
    ]
