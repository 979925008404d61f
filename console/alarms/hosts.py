"""Alarms of one host: link, memory, pressure, clock, stuck sources, unreadable Docker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from console import format as fmt
from console.alarms.alarm import Alarm
from console.readings.link import LinkStatus
from console.readings.memory import Memory
from console.readings.quality import Quality, Reading
from console.snapshot import HostView, Severity, Snapshot

FREE_ALARM_GIB = 4.0
"""MemFree below which a unified-memory node is critical: its GPU driver fails allocations instead of evicting cache."""
AVAILABLE_ALARM = 0.02
"""Share of MemTotal still available below which a node without unified memory is critical."""
DRIFT_ALARM_S = 2.0
FIRST_SECONDS = 15.0
"""Seconds in which a lane that was not read yet is no alarm: reaching a host may take as long."""
PRESSURE_ALARM = 10.0
"""Percent of the last 10 s in which every task waited for memory."""


def free_alarm_bytes(snapshot: Snapshot, host: str) -> float:
    """The MemFree threshold of a host in bytes: the highest that a lane on it asks for, else the default."""
    asked: dict[str, float] | None = snapshot.memo.get("free alarms")
    if asked is None:
        asked = snapshot.memo["free alarms"] = {}
        for lane in snapshot.lanes:
            wanted = lane.lane.free_alarm_gib
            for rank in lane.lane.rank_hosts if wanted is not None else ():
                asked[rank] = max(wanted or 0.0, asked.get(rank, 0.0))
    return asked.get(host, FREE_ALARM_GIB) * fmt.GIB


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
