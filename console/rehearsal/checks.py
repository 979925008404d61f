"""What must fit together in a scenario: names that stand for hosts, lanes, containers, checkpoints, and times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from console.fleet.tomlfile import suggest
from console.rehearsal import faults
from console.rehearsal.faults import Fault
from console.rehearsal.rowcopies import ranges_of
from console.rehearsal.scenario import Scenario
from console.rehearsal.watching import LOG_STATES, UNIT_STATES


def cross_check(scenario: Scenario) -> list[str]:
    """Everything that does not fit: `key: words`."""
    problems = [*_machines(scenario), *_hosts_named(scenario), *_containers(scenario), *_stage(scenario)]
    for index, fault in enumerate(scenario.faults):
        problems += [f"faults.{index}.{problem}" for problem in check_fault(scenario, fault)]
    return problems


def _unknown(where: str, kind: str, name: str, known: Iterable[str]) -> Iterator[str]:
    names = list(known)
    if name not in names:
        yield f"{where}: no {kind} {name!r}{suggest(name, names)}"


def _machines(scenario: Scenario) -> Iterator[str]:
    hosts = scenario.fleet.hosts
    for host in hosts:
        if host not in scenario.machines:
            yield f"machines.{host}: missing; every host of the fleet needs one"
    for host in scenario.machines:
        if host not in hosts:
            yield f"machines.{host}: no such host{suggest(host, list(hosts))}"


def _hosts_named(scenario: Scenario) -> Iterator[str]:
    """Wherever hosts stand."""
    for table in ("containers", "rows", "files", "processes", "units", "checkpoints", "watchdogs", "fronts"):
        for key, entry in getattr(scenario, table).items():
            where = f"{table}.{key}"
            if hasattr(entry, "host"):
                yield from _unknown(f"{where}.host", "host", entry.host, scenario.fleet.hosts)
                continue
            for host in entry.hosts:
                yield from _unknown(f"{where}.hosts", "host", host, scenario.fleet.hosts)
            for host in getattr(entry, "on", {}):
                yield from _unknown(f"{where}.on", "host", host, entry.hosts)
    for key, checkpoint in scenario.checkpoints.items():
        for host in checkpoint.mounted_on:
            yield from _unknown(f"checkpoints.{key}.mounted_on", "host", host, scenario.fleet.hosts)


def _containers(scenario: Scenario) -> Iterator[str]:
    for key, container in scenario.containers.items():
        where = f"containers.{key}"
        if container.engine and container.engine not in scenario.engines:
            yield f"{where}.engine: no [engines.{container.engine}]{suggest(container.engine, scenario.engines)}"
        if container.engine and not container.port:
            yield f"{where}.port: missing; an engine needs the port it serves"
    for key, engine in scenario.engines.items():
        if engine.kind == "vllm" and engine.boot not in ("usual", "autotune-missed"):
            yield f"engines.{key}.boot: {engine.boot!r} is a story of sglang"


def _stage(scenario: Scenario) -> Iterator[str]:
    lanes = scenario.fleet.lanes
    for key, checkpoint in scenario.checkpoints.items():
        if checkpoint.mounted_on and not checkpoint.mount:
            yield f"checkpoints.{key}.mount: missing; `mounted_on` needs the path there"
        if checkpoint.host in checkpoint.mounted_on:
            yield f"checkpoints.{key}.mounted_on: {checkpoint.host!r} holds it"
    for key, download in scenario.downloads.items():
        where = f"downloads.{key}"
        yield from _unknown(f"{where}.checkpoint", "checkpoint", download.checkpoint, scenario.checkpoints)
        if download.checkpoint in scenario.checkpoints:
            revisions = scenario.checkpoints[download.checkpoint].revisions
            known = [item.revision for item in revisions]
            yield from _unknown(f"{where}.revision", "revision", download.revision, known)
    for key, rows in scenario.rows.items():
        yield from _unknown(f"rows.{key}.lane", "lane", rows.lane, lanes)
        if rows.lane in lanes:
            ranks = lanes[rows.lane].rank_hosts
            for host in rows.hosts:
                yield from _unknown(f"rows.{key}.hosts", f"rank of {rows.lane} on", host, ranks)
            partitions = {rows.partition, *(on.partition for on in rows.on.values() if on.partition)}
            for partition in sorted(partitions):
                try:
                    ranges_of(partition, 0, len(ranks))
                except ValueError as error:
                    yield f"rows.{key}.partition: {error}"
    for lane, watchdog in scenario.watchdogs.items():
        yield from _unknown(f"watchdogs.{lane}", "lane", lane, lanes)
        yield from _watchdog_state(f"watchdogs.{lane}.state", watchdog.kind, watchdog.state)
    for lane in scenario.boots:
        yield from _unknown(f"boots.{lane}", "lane", lane, lanes)
    for lane in scenario.leases:
        yield from _unknown(f"leases.{lane}", "lane", lane, lanes)
    for host, others in scenario.deaf.items():
        for name in (host, *others):
            yield from _unknown(f"deaf.{host}", "host", name, scenario.fleet.hosts)
    for key, front in scenario.fronts.items():
        yield from _unknown(f"fronts.{key}.lane", "lane", front.lane, lanes)


def _watchdog_state(where: str, kind: str, state: str) -> Iterator[str]:
    states = LOG_STATES if kind == "log" else UNIT_STATES
    if state not in states:
        yield f"{where}: a watchdog of kind {kind!r} is one of {', '.join(states)}"


def check_fault(scenario: Scenario, fault: Fault) -> list[str]:
    """What is wrong with a fault in this scenario: `key: words`."""
    problems: list[str] = []
    if fault.until is not None and fault.until <= fault.at:
        problems.append("until: must be later than `at`")
    if isinstance(fault, faults.RebootFault) and fault.until is not None:
        problems.append("until: a reboot ends by itself, after `seconds`")
    if isinstance(fault, faults.LaunchFault) and fault.until is not None:
        problems.append("until: a launch ends by itself")
    host = getattr(fault, "host", None)
    if host is not None and host not in scenario.fleet.hosts:
        return [*problems, *_unknown("host", "host", host, scenario.fleet.hosts)]
    return [*problems, *_subject(scenario, fault)]


def _subject(scenario: Scenario, fault: Fault) -> Iterator[str]:
    """Whether there is what a fault befalls."""
    if isinstance(fault, faults.EngineFault):
        yield from _unknown("lane", "lane", fault.lane, scenario.fleet.lanes)
    elif isinstance(fault, faults.ContainerFault):
        names = [item.name for item in scenario.containers.values() if fault.host in item.hosts]
        if fault.name not in names:
            yield f"name: no container {fault.name!r} on {fault.host}{suggest(fault.name, names)}"
    elif isinstance(fault, faults.DownloadFault):
        yield from _unknown("name", "download", fault.name, scenario.downloads)
    elif isinstance(fault, faults.RowsFault):
        yield from _unknown("name", "row copies", fault.name, scenario.rows)
        if fault.name in scenario.rows:
            yield from _unknown("host", f"copy of {fault.name!r} on", fault.host, scenario.rows[fault.name].hosts)
    elif isinstance(fault, faults.WatchdogFault):
        yield from _unknown("lane", "watchdog of lane", fault.lane, scenario.watchdogs)
        if fault.lane in scenario.watchdogs:
            yield from _watchdog_state("state", scenario.watchdogs[fault.lane].kind, fault.state)
    elif isinstance(fault, faults.SnapshotFault):
        yield from _snapshot(scenario, fault)
    elif isinstance(fault, faults.UpstreamFault):
        yield from _unknown("checkpoint", "checkpoint", fault.checkpoint, scenario.checkpoints)
    elif isinstance(fault, faults.FrontFault):
        yield from _unknown("name", "front", fault.name, scenario.fronts)
    elif isinstance(fault, faults.ImageFault):
        images = {item.image for item in scenario.containers.values() if fault.host in item.hosts}
        yield from _unknown("image", "image", fault.image, images)
    elif isinstance(fault, faults.LaunchFault):
        yield from _unknown("lane", "lane", fault.lane, scenario.fleet.lanes)
    elif isinstance(fault, faults.GpuFault) and fault.index >= len(scenario.machines[fault.host].gpus):
        yield f"index: no GPU {fault.index} on {fault.host}"


def _snapshot(scenario: Scenario, fault: faults.SnapshotFault) -> Iterator[str]:
    yield from _unknown("checkpoint", "checkpoint", fault.checkpoint, scenario.checkpoints)
    checkpoint = scenario.checkpoints.get(fault.checkpoint)
    if checkpoint is None:
        return
    seen_by = (checkpoint.host, *checkpoint.mounted_on)
    yield from _unknown("host", f"view of {fault.checkpoint!r} on", fault.host, seen_by)
    if fault.what in ("unmount", "hang") and fault.host == checkpoint.host:
        yield f"host: {fault.host} holds the checkpoint, nothing is mounted there"
    if fault.revision is not None:
        yield from _unknown("revision", "revision", fault.revision, [item.revision for item in checkpoint.revisions])
