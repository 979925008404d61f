"""Alarms of one lane: its state, mixed revisions, what its containers are up to, a full pool."""

from __future__ import annotations

from collections.abc import Iterator

from console import format as fmt
from console.alarms.alarm import Alarm
from console.alarms.hosts import FIRST_SECONDS
from console.readings import underway
from console.readings.acting_types import Acting
from console.readings.containers import Container, ContainerState
from console.readings.health import HttpVerdict, LaneState
from console.snapshot import LaneView, RankView, Severity, Snapshot

RESTARTS_ALARM = 3
"""Restarts by the daemon itself since somebody last started a container, from which on it goes in circles."""
SETTLED_S = 600.0
"""Seconds of running after which a container that was restarted before goes in circles no more."""


_LANE_SEVERITY = {
    LaneState.DOWN: Severity.ACT,
    LaneState.STALLED: Severity.ACT,
    LaneState.DEGRADED: Severity.ACT,
    LaneState.PAUSED: Severity.ACT,
    LaneState.BLIND: Severity.LOOK,
    LaneState.DRAINING: Severity.LOOK,
    LaneState.UNKNOWN: Severity.LOOK,
}


_LANE_ADVICE = {
    LaneState.DOWN: "read the head's last words (l)",
    LaneState.STALLED: "read the log (l) and the GPUs of every rank",
    LaneState.DEGRADED: "read the reason, then the log (l)",
    LaneState.PAUSED: "docker unpause, or ask who paused it",
    LaneState.DRAINING: "find out who stops it",
}


def lane_alarms(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    """The lane's state, mixed revisions, what its containers are up to, and a full pool."""
    severity = _LANE_SEVERITY.get(lane.verdict.state)
    acting = None if lane.acting is None else lane.acting.current(snapshot.now)
    if severity is not None and not _first_seconds(snapshot, lane) and not _loads(lane, acting):
        since = 0.0 if acting is None else acting.clock - (snapshot.now - lane.state_since)
        age = lane.health.age(snapshot.now)
        heard = None if acting is None or age is None else acting.clock - age
        operation = underway.planned_down(acting, since, heard)
        text, advice = f"{lane.verdict.word}: {lane.verdict.why}", _LANE_ADVICE.get(lane.verdict.state, "")
        if operation is not None:
            severity, advice = Severity.LOOK, f"planned: {operation.verb} by {operation.operator or 'somebody'}"
        yield Alarm(f"state:{lane.name}", severity, lane.name, text, advice)
    revisions = {rank.revision for rank in lane.ranks if rank.revision}
    if len(revisions) > 1 and not underway.leads_between(acting, revisions):
        by_rank = ", ".join(f"{rank.host} {fmt.revision(rank.revision)}" for rank in lane.ranks)
        yield Alarm(f"revision:{lane.name}", Severity.ACT, lane.name, f"MIXED revisions: {by_rank}", "")
    if any(rank.container is not None and rank.container.autoheal for rank in lane.ranks):
        text = "autoheal label: a third party may restart it"
        yield Alarm(f"autoheal:{lane.name}", Severity.INFO, lane.name, text, "")
    for rank in lane.ranks:
        yield from _rank_alarms(snapshot, lane, rank)
    throughput = lane.throughput.current(snapshot.now)
    if throughput is not None and throughput.preemptions and throughput.window > 0:
        count = fmt.number(throughput.preemptions, 0)
        text = f"KV pool full: {count} preemptions in {fmt.number(throughput.window, 0)} s"
        yield Alarm(f"preempt:{lane.name}", Severity.LOOK, lane.name, text, "")


_GOOD = (LaneState.SERVING, LaneState.IDLE, LaneState.BUSY)


def _rank_alarms(snapshot: Snapshot, lane: LaneView, rank: RankView) -> Iterator[Alarm]:
    """Containers of one rank: several on the lane's port, one that restarts again and again, one called unhealthy."""
    host = snapshot.host(rank.host)
    docker = host.containers.current(snapshot.now)
    claims = [item.name for item in docker.items if item.up and lane.lane.port in item.ports] if docker else []
    if rank.container is not None and len(claims) > 1:
        text = f"{len(claims)} containers up on port {lane.lane.port} of {rank.host}: {', '.join(claims)}"
        yield Alarm(f"port:{lane.name}:{rank.host}", Severity.LOOK, lane.name, text, "only one of them can serve")
    if rank.container is None:
        return
    container, wall = rank.container, snapshot.wall + (host.drift or 0.0)
    if container.restart_count >= RESTARTS_ALARM and _goes_in_circles(container, wall):
        severity = Severity.LOOK if lane.verdict.state in _GOOD else Severity.ACT
        text = f"{rank.host} {container.name} was restarted {container.restart_count} times by Docker"
        yield Alarm(f"restarts:{lane.name}:{rank.host}", severity, lane.name, text, "read its log")
    if container.tag_moved and container.up:
        text = f"{rank.host} {container.name}: the tag {container.image} names another image now, or none"
        yield Alarm(
            f"image:{lane.name}:{rank.host}", Severity.LOOK, lane.name, text, "its next start takes another image"
        )
    if container.health == "unhealthy" and container.up and lane.verdict.state is not LaneState.BOOTING:
        text = f"{rank.host} {container.name}: Docker's own health check says unhealthy"
        yield Alarm(f"unhealthy:{lane.name}:{rank.host}", Severity.LOOK, lane.name, text, "")


def _goes_in_circles(container: Container, wall: float) -> bool:
    """`wall` is Unix time by the host's clock."""
    age = container.age(wall)
    return container.state is ContainerState.RESTARTING or (age is not None and age < SETTLED_S)


def _loads(lane: LaneView, acting: Acting | None) -> bool:
    """503 while an operation of ours waits for the engine to come up: what it says of itself while it loads."""
    return lane.lights.http.verdict is HttpVerdict.UNAVAILABLE and underway.booting(acting) is not None


def _first_seconds(snapshot: Snapshot, lane: LaneView) -> bool:
    """True while health or steps were never seen yet: unknown because young, not because something is wrong."""
    answers = lane.health.current(snapshot.now) is not None
    never = lane.health.taken_mono is None or (answers and lane.last_decode is None)
    reached = not lane.health.error and lane.health.down_since is None
    young = snapshot.now - lane.state_since < FIRST_SECONDS
    return lane.verdict.state is LaneState.UNKNOWN and never and reached and young
