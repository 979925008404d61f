"""What the readings mean for the operator: alarms, worst first. Pure functions of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from console import format as fmt
from console.readings.containers import Container, ContainerState
from console.readings.health import LaneState
from console.readings.link import LinkStatus
from console.readings.memory import Memory
from console.readings.quality import Quality, Reading
from console.snapshot import HostView, LaneView, RankView, Severity, Snapshot

FREE_ALARM_GIB = 4.0
"""MemFree below which a unified-memory node is critical: its GPU driver fails allocations instead of evicting cache."""
AVAILABLE_ALARM = 0.02
"""Share of MemTotal still available below which a node without unified memory is critical."""
DRIFT_ALARM_S = 2.0
FIRST_SECONDS = 15.0
"""Seconds in which a lane that was not read yet is no alarm: reaching a host may take as long."""
RESTARTS_ALARM = 3
"""Restarts by the daemon itself since somebody last started a container, from which on it goes in circles."""
SETTLED_S = 600.0
"""Seconds of running after which a container that was restarted before goes in circles no more."""
PRESSURE_ALARM = 10.0
"""Percent of the last 10 s in which every task waited for memory."""

_RANK = {Severity.ACT: 0, Severity.LOOK: 1, Severity.INFO: 2, Severity.NORMAL: 3}


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that is not as it should be."""

    key: str
    """Stable identity for acknowledging: `memory:spark-2`."""
    severity: Severity
    subject: str
    """Host or lane."""
    text: str
    """`free 2.9 of 119.7 GiB, 61.0 cached`."""
    advice: str
    """`stop copy or drop cache`; '' when there is none."""


def alarms(snapshot: Snapshot) -> tuple[Alarm, ...]:
    """All alarms of the fleet, worst first; then lost links that hide a lane, then lanes, then hosts."""
    hiding = {f"link:{lane.lane.head}" for lane in snapshot.lanes if lane.health.down_since is not None}
    found = [alarm for lane in snapshot.lanes for alarm in lane_alarms(snapshot, lane)]
    found += [alarm for host in snapshot.hosts for alarm in host_alarms(snapshot, host)]
    return tuple(sorted(found, key=lambda alarm: (_RANK[alarm.severity], alarm.key not in hiding)))


def free_alarm_bytes(snapshot: Snapshot, host: str) -> float:
    """The MemFree threshold of a host in bytes: the highest that a lane on it asks for, else the default."""
    asked = [
        lane.lane.free_alarm_gib
        for lane in snapshot.lanes
        if host in lane.lane.rank_hosts and lane.lane.free_alarm_gib is not None
    ]
    return (max(asked) if asked else FREE_ALARM_GIB) * fmt.GIB


def host_alarms(snapshot: Snapshot, host: HostView) -> Iterator[Alarm]:
    """Link, memory, pressure, clock, stuck sources and unreadable Docker of one host."""
    link = host.link
    waited = snapshot.now - link.since
    if link.status is not LinkStatus.UP:
        since = fmt.short_age(waited)
        if link.error:
            yield Alarm(f"link:{host.name}", Severity.LOOK, host.name, f"unreachable {since}: {link.error}", link.hint)
        elif waited >= FIRST_SECONDS:  # its turn may come late where many hosts are silent
            yield Alarm(f"link:{host.name}", Severity.LOOK, host.name, f"not reached yet: connecting for {since}", "")
        return
    memory = host.memory.current(snapshot.now)
    if memory is not None:
        yield from _memory_alarms(snapshot, host, memory)
    elif why := host.memory.error or _silent(host.memory, snapshot.now, waited):
        yield Alarm(f"stale:{host.name}", Severity.LOOK, host.name, f"memory {why}", "")
    for gpu in host.gpus.current(snapshot.now) or ():
        if gpu.faults:
            text = f"GPU {gpu.index}: {', '.join(gpu.faults)}"
            yield Alarm(f"gpufault:{host.name}:{gpu.index}", Severity.ACT, host.name, text, "")
    if host.gpus.error:
        yield Alarm(f"gpu:{host.name}", Severity.LOOK, host.name, host.gpus.error, "")
    elif host.gpus.value and (why := _silent(host.gpus, snapshot.now, waited)):
        yield Alarm(f"gpu:{host.name}", Severity.LOOK, host.name, f"GPU {why}", "")
    if host.drift is not None and abs(host.drift) > DRIFT_ALARM_S:
        yield Alarm(f"drift:{host.name}", Severity.LOOK, host.name, f"clock {fmt.signed_seconds(host.drift)} off", "")
    docker = host.containers.value
    if host.containers.error:
        yield Alarm(f"docker:{host.name}", Severity.LOOK, host.name, host.containers.error, "")
    elif docker is not None and docker.problem:
        yield Alarm(f"docker:{host.name}", Severity.LOOK, host.name, docker.problem, docker.hint)
    elif not host.containers.source.endswith("no docker") and (why := _silent(host.containers, snapshot.now, waited)):
        yield Alarm(f"docker:{host.name}", Severity.LOOK, host.name, f"containers {why}", "")


def _memory_alarms(snapshot: Snapshot, host: HostView, memory: Memory) -> Iterator[Alarm]:
    """Where nvidia-smi never answered nobody knows whether memory is unified: little that is free may be critical."""
    threshold = free_alarm_bytes(snapshot, host.name)
    found = tuple(memory_alarms(host.name, memory, host.unified, threshold))
    yield from found
    if host.unified or host.gpus.value is not None or not host.gpus.error or memory.device_memory:
        return
    for alarm in memory_alarms(host.name, memory, True, threshold):
        if alarm.key not in {known.key for known in found}:
            yield replace(alarm, severity=Severity.LOOK, text=f"{alarm.text}: critical if CPU and GPU share it")


def _silent(reading: Reading[Any], now: float, waited: float) -> str:
    """In words that a source says nothing, not even why; `waited` is how long its host has been reachable, seconds."""
    quality = reading.quality(now)
    if quality is Quality.STALE:
        return f"no reading for {fmt.age(reading.age(now))}"
    if quality is Quality.ABSENT and waited >= FIRST_SECONDS:
        return f"not read yet, {fmt.age(waited)} after the host was reached"
    return ""


def memory_alarms(host: str, memory: Memory, unified: bool, free_threshold: float) -> Iterator[Alarm]:
    """On unified memory MemFree decides; elsewhere MemAvailable does."""
    if unified and memory.allocatable < free_threshold:
        what = "free huge pages" if memory.hugetlb_total else "free"
        text = f"{what} {fmt.gib(memory.allocatable)} of {fmt.gib(memory.total)} GiB, {fmt.gib(memory.cached)} cached"
        yield Alarm(f"memory:{host}", Severity.ACT, host, text, "stop copy or drop cache")
    elif memory.available is not None and memory.available < AVAILABLE_ALARM * memory.total:
        text = f"available {fmt.gib(memory.available)} of {fmt.gib(memory.total)} GiB"
        yield Alarm(f"memory:{host}", Severity.ACT, host, text, "the kernel is about to kill a process")
    pressure = memory.pressure
    if pressure is not None and pressure.full_avg10 >= PRESSURE_ALARM:
        text = f"memory pressure: all tasks stalled {fmt.number(pressure.full_avg10, 0)} % of 10 s"
        yield Alarm(f"pressure:{host}", Severity.LOOK, host, text, "")


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
    if severity is not None and not _first_seconds(snapshot, lane):
        text = f"{lane.verdict.state.upper()}: {lane.verdict.why}"
        yield Alarm(f"state:{lane.name}", severity, lane.name, text, _LANE_ADVICE.get(lane.verdict.state, ""))
    revisions = {rank.revision for rank in lane.ranks if rank.revision}
    if len(revisions) > 1:
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
    if container.health == "unhealthy" and container.up and lane.verdict.state is not LaneState.BOOTING:
        text = f"{rank.host} {container.name}: Docker's own health check says unhealthy"
        yield Alarm(f"unhealthy:{lane.name}:{rank.host}", Severity.LOOK, lane.name, text, "")


def _goes_in_circles(container: Container, wall: float) -> bool:
    """`wall` is Unix time by the host's clock."""
    age = container.age(wall)
    return container.state is ContainerState.RESTARTING or (age is not None and age < SETTLED_S)


def _first_seconds(snapshot: Snapshot, lane: LaneView) -> bool:
    """True while health was never answered yet: unknown because young, not because something is wrong."""
    never = lane.health.taken_mono is None and not lane.health.error and lane.health.down_since is None
    young = snapshot.now - lane.state_since < FIRST_SECONDS
    return lane.verdict.state is LaneState.UNKNOWN and never and young
