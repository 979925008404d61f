"""Asks machine, hosts and lanes, side by side and each within its time, and puts the checks in order."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from console.doctor.acting import HostActing, LaneActing, acting_host_checks, acting_lane_checks
from console.doctor.check import Check, Subject
from console.doctor.hosts import Heard, host_checks
from console.doctor.lanes import LaneHeard, SiteRead, lane_checks
from console.doctor.machine import (
    agent_check,
    library_checks,
    ssh_file_checks,
    terminal_checks,
    this_terminal,
    webhook_check,
)
from console.execution import aftercare, detached, sequence_head
from console.execution.sequence_reach import reach_by_login, ways_to_try
from console.fleet.filling import Filling
from console.fleet.inventory import Fleet, FleetError, Host, load
from console.fleet.places import places
from console.fleet.recipe import apply_recipes, lane_recipes
from console.fleet.recipe_model import Recipe
from console.fleet.sitefile import Site, read_site
from console.reach.engine_http import EngineHttp
from console.reach.files_host import MOST_ANSWER
from console.reach.link import Link
from console.reach.links import HandshakeLimits, make_link
from console.reach.onefile import FileUnread, read_file
from console.reach.sampler import IMPORTS, LABEL
from console.readings.docker_errors import PROBE
from console.readings.doctor import parse_instant, parse_setup, script
from console.readings.doctor_acting import SCRIPT, parse_acting
from console.readings.output import Output
from console.sanitize import line

MOST_AT_ONCE = 16
"""Hosts; each costs one connection and one ssh session at a time."""
CONNECT_LIMIT, SCRIPT_LIMIT, ACTING_LIMIT, PROBE_LIMIT, HTTP_LIMIT = 25.0, 60.0, 45.0, 10.0, 25.0
"""Seconds. The first bounds login and first command; a health check of SGLang takes seconds."""
MOST_SITE_BYTES = MOST_ANSWER - 256
"""Bytes that a look takes with what stands before them: the console does not read a longer site file either."""

MakeLink = Callable[[str, Host], Link]


def diagnose(file: Path | None) -> list[Check]:
    """All checks, for the fleet file `file`; None where there is none. Never raises for what it finds."""
    about = Subject("fleet file")
    if file is None:
        advice = "write a fleet.toml, or `laneswap init --from-site FILE`"
        none = about.look("fleet file", "none is there: hosts and lanes were not looked at", advice)
        return [*asyncio.run(examine(None, {})), none]
    try:
        written = load(file)
        recipes = lane_recipes(written, file.parent)
        fleet = apply_recipes(written, file.parent)
    except FleetError as error:
        found = [
            about.fail("fleet file", f"{line(error.file, 200)}: {line(problem, 300)}") for problem in error.problems
        ]
        return [*asyncio.run(examine(None, {})), *found]
    good = about.ok("fleet file", f"{file}: {_many(len(fleet.hosts), 'host')}, {_many(len(fleet.lanes), 'lane')}")
    return asyncio.run(examine(fleet, recipes, also=(good,)))


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


async def examine(
    fleet: Fleet | None,
    recipes: Mapping[str, Recipe],
    *,
    also: tuple[Check, ...] = (),
    make: MakeLink | None = None,
) -> list[Check]:
    """This machine, then `also`, then hosts and lanes in the fleet's order. `recipes` by lane."""
    remote = fleet is None or any(not host.is_local for host in fleet.hosts.values())
    checks = [
        *terminal_checks(this_terminal()),
        *library_checks(),
        *await asyncio.to_thread(ssh_file_checks, fleet),
        await agent_check(os.environ, needed=remote),
        *also,
    ]
    if fleet is None:
        return checks
    checks.append(webhook_check(fleet, os.environ))
    async with AsyncExitStack() as stack:
        links = await _links(fleet, make or _maker(fleet), stack)
        gate = asyncio.Semaphore(MOST_AT_ONCE)
        hosts = await asyncio.gather(*(_host(name, fleet, links[name], gate) for name in fleet.hosts))
        lanes = await asyncio.gather(*(_lane(name, fleet, recipes[name], links) for name in fleet.lanes))
    return [*checks, *(check for group in (*hosts, *lanes) for check in group)]


def _maker(fleet: Fleet) -> MakeLink:
    limits = HandshakeLimits()
    return lambda name, host: make_link(name, host, fleet.rates, limits=limits)


async def _links(fleet: Fleet, make: MakeLink, stack: AsyncExitStack) -> dict[str, Link]:
    links = {}
    for name, host in fleet.hosts.items():
        links[name] = make(name, host)
        stack.push_async_callback(links[name].close)
        await links[name].start()
    return links


async def _host(name: str, fleet: Fleet, link: Link, gate: asyncio.Semaphore) -> list[Check]:
    host = fleet.hosts[name]
    async with gate:
        clock, skew = await _clock(link)
        setup = docker = told = None
        if clock.ok:
            told = await link.run(["sh", "-s"], stdin=script(IMPORTS, LABEL), limit=SCRIPT_LIMIT)
            setup = parse_setup(told.stdout) if told.stdout else None
        if clock.ok and host.docker:
            docker = await link.run(["sh", "-c", PROBE, "sh", host.docker], limit=PROBE_LIMIT)
        needs = any(lane.runs_in == "docker" and name in lane.rank_hosts for lane in fleet.lanes.values())
        checks = host_checks(Heard(name, host, link.state, clock, skew, setup, told, docker, needs))
        lanes = [lane for lane, found in fleet.lanes.items() if name in (found.head, *found.rank_hosts)]
        if clock.ok and lanes:
            checks += await _acting(name, fleet, link, lanes, host.docker if needs else "")
    return checks


async def _acting(name: str, fleet: Fleet, link: Link, lanes: list[str], socket: str) -> list[Check]:
    """What a host of lanes has for acting on them; nothing is made there."""
    folders = tuple(fleet.lane_folder(lane) for lane in lanes)
    argv = ["sh", "-s", "--", socket, fleet.state, *folders]
    told = await link.run(argv, stdin=SCRIPT, limit=ACTING_LIMIT)
    setup = parse_acting(told.stdout, fleet.state) if told.stdout else None
    modes = await detached.modes(link, folders[0])
    return acting_host_checks(HostActing(name, fleet.state, setup, modes, folders, told.hint))


async def _clock(link: Link) -> tuple[Output, tuple[float, float] | None]:
    """The first command of a host, and its clock against ours. Connecting takes time, so the clock is asked twice."""
    first = await link.run(["date", "+%s.%N"], limit=CONNECT_LIMIT)
    if not first.ok:
        return first, None
    before = time.time()
    out = await link.run(["date", "+%s.%N"], limit=PROBE_LIMIT)
    after = time.time()
    instant = parse_instant(out.stdout) if out.ok else None
    if instant is None:
        return first, None
    there, error = instant
    return first, (there - (before + after) / 2, (after - before) / 2 + error)


async def _lane(name: str, fleet: Fleet, recipe: Recipe, links: Mapping[str, Link]) -> list[Check]:
    lane = fleet.lanes[name]
    link = links[lane.head]
    client = EngineHttp(lane.url, link if lane.via == "ssh" else None)
    try:
        health = await client.get(lane.health_path, limit=HTTP_LIMIT)
        metrics = await client.get(lane.metrics_path, limit=HTTP_LIMIT)
    finally:
        await client.close()
    where = places(name, lane, recipe, None)
    read = await _site(link, recipe, where.site_file) if where.site_file else None
    if read is not None and read.site is not None:
        where = places(name, lane, recipe, read.site)
    checks = lane_checks(LaneHeard(name, lane, recipe, health, metrics, read, where))
    return checks + acting_lane_checks(await _head(name, fleet, recipe, link, read.site if read is not None else None))


async def _head(name: str, fleet: Fleet, recipe: Recipe, link: Link, site: Site | None) -> LaneActing:
    """What a lane's head can do; all that is run by its ssh on the other ranks is `true`."""
    lane = fleet.lanes[name]
    if not (await link.run(["true"], limit=PROBE_LIMIT)).ok:
        return LaneActing(name, lane, recipe, reached=False)
    ways = ways_to_try(lane, fleet.hosts, site.values if site is not None else {})
    fill = Filling(recipe, lane.vars, site, name)
    box = fill.path("box ledger", recipe.acts.box_ledger)
    python, reach = await asyncio.gather(sequence_head.can_run(link), reach_by_login(link, ways))
    boxed = await aftercare.look_at_box(link, fleet.lane_folder(name), box) if box else None
    return LaneActing(name, lane, recipe, True, python, reach if ways else None, fill.unfilled, box, boxed)


async def _site(link: Link, recipe: Recipe, path: str) -> SiteRead:
    try:
        data = await read_file(link, path, most=MOST_SITE_BYTES + 1, limit=PROBE_LIMIT)
    except FileUnread as error:
        return SiteRead(None, str(error), unknown=error.unknown)
    if len(data) > MOST_SITE_BYTES:
        return SiteRead(None, f"larger than {MOST_SITE_BYTES} bytes: it is not read")
    return SiteRead(read_site(data, path, recipe))
