"""Alarms: what raises each one, and what must not."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "widgets"))

import pictures

from console.alarms import Alarm, alarms
from console.readings.containers import Containers
from console.readings.health import LaneState, LaneVerdict
from console.readings.link import LinkState, LinkStatus
from console.readings.memory import Pressure
from console.snapshot import HostView, LaneView, Severity, Snapshot


def with_host(snapshot: Snapshot, index: int, **changes: Any) -> Snapshot:
    hosts: list[HostView] = list(snapshot.hosts)
    hosts[index] = replace(hosts[index], **changes)
    return replace(snapshot, hosts=tuple(hosts))


def with_lane(snapshot: Snapshot, **changes: Any) -> Snapshot:
    lanes: list[LaneView] = list(snapshot.lanes)
    lanes[0] = replace(lanes[0], **changes)
    return replace(snapshot, lanes=tuple(lanes))


def by_key(snapshot: Snapshot) -> dict[str, Alarm]:
    return {alarm.key: alarm for alarm in alarms(snapshot)}


def test_all_well_is_quiet() -> None:
    assert alarms(pictures.spark4()) == ()


def test_little_free_memory_is_critical_on_unified_memory_however_much_is_available() -> None:
    memory = pictures.reading(pictures.memory(3.0, 95.0, 93.5))
    found = by_key(with_host(pictures.spark4(), 2, memory=memory))["memory:n3"]
    assert found.severity is Severity.ACT
    assert found.text == "free 3.0 of 119.7 GiB, 93.5 cached"
    assert found.advice


def test_the_same_free_memory_is_well_where_the_gpu_has_its_own() -> None:
    memory = pictures.reading(pictures.memory(3.0, 95.0, 93.5))
    assert by_key(with_host(pictures.spark4(), 2, memory=memory, unified=False)) == {}
    tight = pictures.reading(pictures.memory(0.5, 1.0, 0.5))
    assert by_key(with_host(pictures.spark4(), 2, memory=tight, unified=False))["memory:n3"].severity is Severity.ACT


def test_with_a_huge_page_pool_the_pool_decides() -> None:
    gib = 1024**3
    pool = {"hugepage_size": gib // 2, "hugetlb_total": 32 * gib, "hugetlb_free": 24 * gib}
    memory = pictures.reading(pictures.memory(3.0, 95.0, 93.5, **pool))
    assert by_key(with_host(pictures.spark4(), 2, memory=memory)) == {}


def test_a_stale_reading_raises_no_memory_alarm_but_says_that_it_is_stale() -> None:
    memory = pictures.reading(pictures.memory(3.0, 95.0, 93.5), age=14)
    found = by_key(with_host(pictures.spark4(), 2, memory=memory))
    assert "memory:n3" not in found
    assert found["stale:n3"].text == "memory no reading for 14s"


def test_an_unreachable_host_says_why_and_what_to_do_and_nothing_else() -> None:
    snapshot = pictures.spark4()
    down = LinkState(LinkStatus.DOWN, snapshot.now - 75, "host key changed", "ssh-keygen -R n3")
    memory = replace(snapshot.hosts[2].memory, down_since=snapshot.now - 75)
    found = by_key(with_host(snapshot, 2, link=down, memory=memory))
    assert list(found) == ["link:n3"]
    assert found["link:n3"].text == "unreachable 1m15s: host key changed"
    assert found["link:n3"].advice == "ssh-keygen -R n3"


def test_a_lost_link_that_hides_a_lane_comes_before_the_lane_it_makes_unknown() -> None:
    snapshot = pictures.spark4()
    gone = snapshot.now - 75
    down = LinkState(LinkStatus.DOWN, gone, "host key changed", "ssh-keygen -R n1")
    unknown = LaneVerdict(LaneState.UNKNOWN, "the link to the head is down")
    health = replace(snapshot.lanes[0].health, down_since=gone)
    hidden = with_lane(with_host(snapshot, 2, link=down), health=health, verdict=unknown)
    assert [alarm.key for alarm in alarms(hidden)] == ["state:dsv41", "link:n3"], "the head is n1"
    hidden = with_lane(with_host(snapshot, 0, link=down), health=health, verdict=unknown)
    assert [alarm.key for alarm in alarms(hidden)] == ["link:n1", "state:dsv41"]


def test_the_first_attempt_to_connect_is_no_alarm() -> None:
    snapshot = pictures.spark4()
    young = LinkState(LinkStatus.CONNECTING, snapshot.now - 1)
    assert by_key(with_host(snapshot, 2, link=young, memory=pictures.unread(), containers=pictures.unread())) == {}


def test_unreadable_docker_is_an_alarm_never_no_containers() -> None:
    docker = pictures.reading(Containers((), "permission: docker group not active in this session", "reconnect"))
    found = by_key(with_host(pictures.spark4(), 1, containers=docker))["docker:n2"]
    assert (found.severity, found.advice) == (Severity.LOOK, "reconnect")


@pytest.mark.parametrize(("drift", "raised"), [(1.9, False), (2.1, True), (-10.0, True), (None, False)])
def test_clock_drift(drift: float | None, raised: bool) -> None:
    assert ("drift:n1" in by_key(with_host(pictures.spark4(), 0, drift=drift))) is raised


def test_memory_pressure() -> None:
    memory = pictures.reading(pictures.memory(30.0, 40.0, 7.0, pressure=Pressure(20, 10, 12.0, 3.0)))
    found = by_key(with_host(pictures.spark4(), 0, memory=memory))["pressure:n1"]
    assert found.severity is Severity.LOOK and "12 %" in found.text


@pytest.mark.parametrize(
    ("state", "severity"),
    [
        (LaneState.DOWN, Severity.ACT),
        (LaneState.STALLED, Severity.ACT),
        (LaneState.DEGRADED, Severity.ACT),
        (LaneState.PAUSED, Severity.ACT),
        (LaneState.BLIND, Severity.LOOK),
        (LaneState.DRAINING, Severity.LOOK),
        (LaneState.UNKNOWN, Severity.LOOK),
    ],
)
def test_a_lane_that_does_not_serve_is_an_alarm_with_its_reason(state: LaneState, severity: Severity) -> None:
    found = by_key(with_lane(pictures.spark4(), verdict=LaneVerdict(state, "because of it")))["state:dsv41"]
    assert found.severity is severity
    assert found.text == f"{state.upper()}: because of it"


@pytest.mark.parametrize(
    "state", [LaneState.SERVING, LaneState.IDLE, LaneState.BUSY, LaneState.BOOTING, LaneState.READY]
)
def test_a_lane_that_is_well_or_on_its_way_is_none(state: LaneState) -> None:
    assert by_key(with_lane(pictures.spark4(), verdict=LaneVerdict(state, "fine"))) == {}


def test_a_lane_not_read_yet_is_no_alarm_in_its_first_seconds() -> None:
    snapshot = pictures.spark4()
    changes: dict[str, Any] = {
        "verdict": LaneVerdict(LaneState.UNKNOWN, "not asked yet"),
        "health": pictures.unread(),
        "throughput": pictures.unread(),
    }
    assert by_key(with_lane(snapshot, state_since=snapshot.now - 2, **changes)) == {}
    assert "state:dsv41" in by_key(with_lane(snapshot, state_since=snapshot.now - 200, **changes))


def test_mixed_revisions_name_every_rank() -> None:
    snapshot = pictures.spark4()
    ranks = snapshot.lanes[0].ranks
    mixed = (*ranks[:3], replace(ranks[3], revision="df42c10" + "1" * 33))
    found = by_key(with_lane(snapshot, ranks=mixed))["revision:dsv41"]
    assert found.severity is Severity.ACT
    assert "n1 9f2c1a7" in found.text and "n4 df42c10" in found.text


def test_preemptions_mean_a_full_pool() -> None:
    throughput = pictures.reading(pictures.throughput(preemptions=7.0, window=60.0), 0.3)
    found = by_key(with_lane(pictures.spark4(), throughput=throughput))["preempt:dsv41"]
    assert found.text == "KV pool full: 7 preemptions in 60 s"


def test_little_free_memory_is_said_where_nobody_knows_whether_it_is_unified() -> None:
    memory = pictures.reading(pictures.memory(3.0, 95.0, 93.5))
    never = replace(pictures.unread(), error="nvidia-smi has not answered for 40 s")
    found = by_key(with_host(pictures.spark4(), 2, memory=memory, unified=False, gpus=never))
    assert list(found) == ["memory:n3", "gpu:n3"]
    assert found["memory:n3"].severity is Severity.LOOK
    assert found["memory:n3"].text == "free 3.0 of 119.7 GiB, 93.5 cached: critical if CPU and GPU share it"
    well = pictures.reading(pictures.memory(30.0, 95.0, 60.0))
    assert list(by_key(with_host(pictures.spark4(), 2, memory=well, unified=False, gpus=never))) == ["gpu:n3"]


def with_rank(snapshot: Snapshot, state: LaneState = LaneState.SERVING, **changes: Any) -> Snapshot:
    """The third rank's container changed."""
    ranks = list(snapshot.lanes[0].ranks)
    held = ranks[2].container
    assert held is not None
    ranks[2] = replace(ranks[2], container=replace(held, **changes))
    return with_lane(snapshot, ranks=tuple(ranks), verdict=LaneVerdict(state, "so"))


@pytest.mark.parametrize(
    ("count", "age", "state", "severity"),
    [
        (7, 12.0, LaneState.BOOTING, Severity.ACT),
        (7, 12.0, LaneState.SERVING, Severity.LOOK),
        (7, 3600.0, LaneState.SERVING, None),
        (2, 12.0, LaneState.BOOTING, None),
    ],
)
def test_a_container_that_goes_in_circles(count: int, age: float, state: LaneState, severity: Severity | None) -> None:
    snapshot = with_host(pictures.spark4(), 2, drift=-1.0)
    changed = with_rank(snapshot, state, restart_count=count, started_at=snapshot.wall - 1.0 - age)
    found = by_key(changed).get("restarts:dsv41:n3")
    assert (found.severity if found else None) is severity
    if found:
        assert found.text.startswith("n3 ") and found.text.endswith("was restarted 7 times by Docker")


def test_an_unhealthy_container_is_said_unless_it_boots() -> None:
    snapshot = pictures.spark4()
    assert "unhealthy:dsv41:n3" in by_key(with_rank(snapshot, health="unhealthy"))
    assert by_key(with_rank(snapshot, LaneState.BOOTING, health="unhealthy")) == {}
    assert by_key(with_rank(snapshot, health="starting")) == {}


def test_two_containers_on_the_port_are_said() -> None:
    snapshot = pictures.station()
    docker = snapshot.hosts[0].containers.value
    assert docker is not None
    serving, retired = docker.items
    assert "port:station:station" not in by_key(snapshot)
    up = replace(retired, state=serving.state)
    both = pictures.reading(replace(docker, items=(serving, up)), 1.0)
    found = by_key(with_host(snapshot, 0, containers=both))["port:station:station"]
    assert found.severity is Severity.LOOK
    assert found.text == f"2 containers up on port 30006 of station: {serving.name}, {up.name}"
    stale = replace(both, taken_mono=snapshot.now - 100)
    assert "port:station:station" not in by_key(with_host(snapshot, 0, containers=stale))


def test_worst_comes_first() -> None:
    snapshot = with_host(pictures.spark4(), 0, drift=9.0)
    snapshot = with_lane(snapshot, verdict=LaneVerdict(LaneState.DOWN, "gone"))
    assert [alarm.severity for alarm in alarms(snapshot)] == [Severity.ACT, Severity.LOOK]


def test_every_picture_can_be_judged() -> None:
    for picture in (pictures.trouble, pictures.unreachable, pictures.nothing_read, pictures.stalled, pictures.station):
        for alarm in alarms(picture()):
            assert alarm.text and alarm.key and alarm.severity is not Severity.NORMAL
