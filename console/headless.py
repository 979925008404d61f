"""The console without a screen: one reading of everything, or one JSON line a second. Needs no Textual."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from console import format as fmt
from console.actions.underway import acting_of, head_now
from console.alarms import alarms
from console.document import document
from console.lamps import lamps
from console.readings.acting_types import Operation, OperationState
from console.readings.health import LaneState
from console.readings.link import LinkStatus
from console.readings.quality import Quality, Reading
from console.snapshot import SEVERITY_WORDS, HostView, LaneView, Severity, Snapshot, Source

EXIT_GOOD = 0
EXIT_NEEDS_OPERATOR = 1
EXIT_USAGE = 2
EXIT_UNKNOWN = 3
UNREAD = ("link:", "stale:", "docker:", "gpu:")
"""Alarms that say that something could not be read: then nobody can call the fleet good."""

_POLL_S = 0.1
STOP_LIMIT_S = 10.0
"""Seconds that the sources have to stop in: an answer must not wait for a state folder that hangs."""
LONGEST_S = 365 * 86400.0
"""A year: what is asked for beyond it means `until a signal`."""


@asynccontextmanager
async def running(source: Source) -> AsyncIterator[asyncio.Event]:
    """The source started, and stopped whatever happens; the event is set by SIGINT, SIGTERM or SIGHUP."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    caught = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in caught:
        loop.add_signal_handler(number, asked.set)
    try:
        await source.start()
        yield asked
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_LIMIT_S):
                await source.stop()
        for number in caught:
            loop.remove_signal_handler(number)


async def stream(source: Source, seconds: float, emit: Callable[[Snapshot], None], interval: float = 1.0) -> None:
    """Hand a snapshot to `emit` every `interval` seconds, for `seconds`, or until a signal asks to stop."""
    async with running(source) as asked:
        for _ in range(_times(seconds, interval)):
            if await _wait(asked, interval):
                return
            emit(source.snapshot())


async def once(source: Source, patience: float) -> Snapshot:
    """One snapshot, as soon as every source has answered or failed, at the latest after `patience` seconds."""
    async with running(source) as asked:
        for _ in range(_times(patience, _POLL_S)):
            if await _wait(asked, _POLL_S) or settled(source.snapshot()):
                break
        return source.snapshot()


def _times(seconds: float, interval: float) -> int:
    return max(1, round(min(seconds, LONGEST_S) / interval))


async def _wait(asked: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await asked.wait()
    except TimeoutError:
        return False
    return True


def settled(snapshot: Snapshot) -> bool:
    """True once every host and lane has been read, or is known not to be readable."""
    return all(_host_settled(host) for host in snapshot.hosts) and all(
        _lane_settled(snapshot, lane) for lane in snapshot.lanes
    )


def _tried(item: Reading[Any]) -> bool:
    return item.taken_mono is not None or bool(item.error)


def _host_settled(host: HostView) -> bool:
    if host.link.status is not LinkStatus.UP:
        return bool(host.link.error)
    containers = _tried(host.containers) or host.containers.source.endswith("no docker")
    return _tried(host.memory) and containers and _gpus_settled(host)


def _gpus_settled(host: HostView) -> bool:
    """They tell whether memory is unified, and so which alarm it is judged by: worth the second that they take."""
    facts = host.facts.value
    return _tried(host.gpus) or (facts is not None and not facts.nvidia_smi)


def _lane_settled(snapshot: Snapshot, lane: LaneView, *, rates: bool = True) -> bool:
    """`rates`: also what takes a second scrape to be told."""
    head = snapshot.host(lane.lane.head)
    if lane.lane.via == "ssh" and head.link.status is not LinkStatus.UP:
        return bool(head.link.error)
    throughput = lane.throughput.value
    rated = throughput is not None and (throughput.window > 0 or not rates)
    scraped = bool(lane.throughput.error) or rated
    # a way back is not called ready before what it binds was looked at
    down = head.link.status is not LinkStatus.UP
    bound = down or all(_tried(one.now) for one in lane.binds)
    return _tried(lane.health) and scraped and bound and _acting_settled(lane)


def _acting_settled(lane: LaneView) -> bool:
    """Lease, window and the newest operation: whether that one still runs decides what is told and what may be done."""
    acting = lane.acting
    if acting is None or acting.down_since is not None:
        return True
    operation = acting.value.operation if acting.value is not None else None
    return _tried(acting) and (operation is None or not (operation.unread or _may_run(operation)))


def lane_settled(snapshot: Snapshot, lane: LaneView) -> bool:
    """True once all that an action on this lane rests on has been read, or is known not to be readable. What it cuts
    off is told by one scrape; nobody waits for the next one at three in the morning."""
    if not _lane_settled(snapshot, lane, rates=False):
        return False
    way_back = (lane.kept_repo, *(one.now for one in lane.binds))
    wanted = (lane.acting, lane.site, lane.watchdog, *(reading for _, reading in lane.repos), *way_back)
    known = [item for item in wanted if item is not None]
    down = snapshot.host(lane.lane.head).link.status is not LinkStatus.UP
    return all(_host_settled(snapshot.host(host)) for host in lane.lane.rank_hosts) and (
        down or all(_tried(item) for item in known)
    )


def _may_run(operation: Operation) -> bool:
    """Nobody has said that it ended, and whether somebody carries it on was not seen yet."""
    return operation.ended is None and operation.state is OperationState.UNKNOWN


def exit_code(snapshot: Snapshot) -> int:
    """1 when an operator must act, 3 when a lane or host cannot be judged, else 0."""
    found = alarms(snapshot)
    if any(alarm.severity is Severity.ACT for alarm in found):
        return EXIT_NEEDS_OPERATOR
    unjudged = any(lane.verdict.state in (LaneState.UNKNOWN, LaneState.BLIND) for lane in snapshot.lanes)
    lost_host = any(host.link.status is not LinkStatus.UP for host in snapshot.hosts)
    unread = any(alarm.key.startswith(UNREAD) for alarm in found)
    return EXIT_UNKNOWN if unjudged or lost_host or unread else EXIT_GOOD


def print_json(snapshot: Snapshot, *, pretty: bool = False) -> None:
    """One JSON document on stdout: a single line, or indented."""
    text = json.dumps(document(snapshot), indent=2 if pretty else None, allow_nan=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_text(snapshot: Snapshot) -> None:
    """The same for people and screen readers: plain lines, no colour, no drawing."""
    sys.stdout.write("\n".join(text_lines(snapshot)) + "\n")
    sys.stdout.flush()


def text_lines(snapshot: Snapshot) -> list[str]:
    """Plain lines: lanes with their lamps, hosts, alarms and below each alarm what to do about it."""
    mark = "REHEARSAL " if snapshot.rehearsal else ""
    lines = [f"{mark}{snapshot.fleet.name}  {fmt.clock(snapshot.wall)}"]
    for lane in snapshot.lanes:
        lines.append(f"lane {lane.name}: {lane.verdict.word} ({lane.verdict.why})")
        for lamp in lamps(snapshot, lane):
            words = "  ".join(part for part in (lamp.word, lamp.rest, lamp.note) if part)
            lines.append(f"  {lamp.title:<9} {words}")
        lines += [f"  {title:<9} {words}" for title, words in under_way(snapshot, lane)]
    lines += [_host_line(snapshot, host) for host in snapshot.hosts]
    found = alarms(snapshot)
    for alarm in found:
        lines.append(f"{SEVERITY_WORDS[alarm.severity]:<5} {alarm.subject}: {alarm.text}")
        lines += [f"      {alarm.advice}"] if alarm.advice else []
    return lines if found else [*lines, "no alarms"]


def under_way(snapshot: Snapshot, lane: LaneView) -> Iterator[tuple[str, str]]:
    """`WINDOW of ana, ...`, `LEASE`, `OWED`, `OPERATION`: what is done to the lane, and by whom."""
    acting = acting_of(lane)
    if acting is None:
        return
    now, lease, window, newest = head_now(snapshot, lane), acting.lease, acting.window, acting.operation
    if window is not None:
        left = window.deadline - now
        due = f"{fmt.duration(left)} left" if left >= 0 else f"OVERDUE {fmt.duration(-left)}"
        yield "WINDOW", f"of {window.operator} for {fmt.duration(now - window.opened)}, {due}: {window.reason}"
    if lease is not None:
        ran_out = ", ran out" if lease.expired(now) else f", offered to {lease.offered_to}" if lease.offered_to else ""
        yield "LEASE", f"of {lease.operator} ({lease.console}) since {fmt.clock(lease.acquired)}{ran_out}"
    if acting.lease_unknown:
        yield "LEASE", f"UNKNOWN: {acting.lease_unknown}"
    for debt in acting.debts:
        left = debt.deadline - now
        due = f"owed in {fmt.duration(left)}" if left >= 0 else f"OVERDUE {fmt.duration(-left)}"
        yield "OWED", f"{debt.what} off for {fmt.duration(now - debt.since)} by {debt.operator or 'somebody'}, {due}"
    if newest is not None and newest.state is not OperationState.DONE:
        step = f": {newest.step.title}" if newest.step is not None and newest.state is OperationState.RUNNING else ""
        said = f", {newest.words}" if newest.words else ""
        where = newest.head or lane.lane.head if newest.runs_on == "head" else "the console of its operator"
        since = f"for {fmt.duration(now - newest.began)}" if newest.ended is None else fmt.clock(newest.ended)
        state = newest.state.value.upper()
        yield "OPERATION", f"{newest.verb} by {newest.operator} {state} {since} on {where}{step}{said} ({newest.id})"


def _host_line(snapshot: Snapshot, host: HostView) -> str:
    memory = host.memory.current(snapshot.now)
    age = fmt.age(host.memory.age(snapshot.now))
    quality = host.memory.quality(snapshot.now)
    if memory is None:
        word = "UNREADABLE" if host.memory.error and quality in (Quality.LIVE, Quality.LATE) else str(quality)
        why = host.link.error or host.memory.error or "no reading in time"
        last = "never read" if host.memory.taken_mono is None else f"last reading {age} ago"
        return f"host {host.name}: {word} {why} ({last})"
    if memory.device_memory:
        named = ((f"node {node.node}" if node.cpus else "HBM", node) for node in memory.numa)
        pools = ", ".join(f"{name} free {fmt.gib(node.free)} of {fmt.gib(node.total)}" for name, node in named)
        return f"host {host.name}: {pools} GiB, {quality} {age}"
    return (
        f"host {host.name}: free {fmt.gib(memory.free)} of {fmt.gib(memory.total)} GiB, "
        f"available {fmt.gib(memory.available)}, cache {fmt.gib(memory.cached)}, {quality} {age}"
    )
