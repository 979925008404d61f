"""What `cluster.sh` of tsw2k's fleets does, in its words and with its exit statuses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from console.rehearsal.acting import web
from console.rehearsal.acting.launch import CHECK_S, POLL_S, Launch, clock, model_of, start
from console.rehearsal.watching import UnitWatchdog

UP_S = 3600.0
"""Seconds after which it gives up."""
GRACE_S = 10.0
"""That it gives each rank on the way down."""


def _nodes(launch: Launch) -> Iterator[tuple[int, str]]:
    """Ranks in the order in which they are started."""
    return iter(list(enumerate(launch.ranks))[::-1])


async def checks(launch: Launch) -> int:
    """cluster.sh preflight: of every rank, ending with 5 at the first that fails."""
    job = launch.job
    for rank, host in enumerate(launch.ranks):
        await job.playing.sleep(CHECK_S)
        if words := job.playing.reaches(job.host, host):
            job.say(f"PREFLIGHT FAIL [rank {rank} {host}]: {words}")
            return 5
        model, _ = model_of(launch, host)
        if model.image in job.playing.boxes[host].unnamed:
            job.say(f"PREFLIGHT FAIL [rank {rank} {host}]: image {model.image} is not there")
            return 5
        job.say(f"  ok: image {model.image}")
        copy = job.playing.world.copy_at(host, launch.value("MODEL_DIR"))
        if copy is None or copy.there < copy.whole or copy.revision != launch.revision:
            job.say(f"PREFLIGHT FAIL [rank {rank} {host}]: engram-local.json is not of {launch.revision}")
            return 5
        job.say(f"  ok: Engram rows of {launch.revision} for rank {rank}")
        job.say(f"preflight passed: rank {rank}")
    return 0


async def down(launch: Launch) -> int:
    """cluster.sh down: the pause flag, then the head, then the others; containers are removed."""
    job = launch.job
    for dog in _unit_watchdogs(launch):
        words = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} paused by cluster.sh down (ops)"
        job.files.text(dog.model.pause_flag, f"{words}\n")
        dog.paused("by ops: cluster.sh down")
        job.say(f"watchdog paused ({dog.model.pause_flag} on {job.host}) until the next successful up")
    order = [(0, launch.ranks[0]), *((rank, host) for rank, host in _nodes(launch) if rank)]
    for _, host in order:
        box = launch.box(host) if not job.playing.reaches(job.host, host) else None
        if box is None:
            job.say(f"{host}: no container")
            continue
        boxes = job.playing.boxes[host]
        await boxes.stop(box, GRACE_S)
        await boxes.remove(box)
        job.say(f"{host}: stopped, log in /var/tmp/dsv41-logs/{clock('%Y%m%dT%H%M%SZ')}")
    return 0


async def up(launch: Launch) -> int:
    """cluster.sh up: refuses where a container is left, checks, starts, waits, watches every rank."""
    job = launch.job
    for _, host in _nodes(launch):
        if launch.box(host) is not None:
            job.say(f"{host} still has {launch.container}; run cluster.sh down first")
            return 3
    if await checks(launch) != 0:
        return 5
    for rank, host in _nodes(launch):
        if not await start(launch, host, rank, *model_of(launch, host)):
            job.say(f"rank {rank} did not start")
            return 1
        job.say(f"started {launch.container} rank={rank}")
    job.say(f"waiting for {launch.lane.url}/health (weights, draft, autotune and graph capture take many minutes)")
    began = asyncio.get_running_loop().time()
    while True:
        took = (asyncio.get_running_loop().time() - began) * job.playing.speed
        code, _ = await web.get(job, launch.lane.url + launch.lane.health_path, 5.0)
        if code == 200:
            break
        for rank, host in _nodes(launch):
            box = launch.box(host)
            if box is None or box.state != "running":
                job.say(f"rank {rank} on {host} is {box.state if box is not None else 'absent'}; its last lines:")
                for entry in list(box.log)[-60:] if box is not None else ():
                    job.say(entry.text.decode("utf-8", "replace").rstrip())
                return 1
        if took > UP_S:
            job.say("not healthy after 60 min")
            return 1
        await job.playing.sleep(POLL_S)
    job.say(f"serving after {int(took // 60)} min")
    for rank, host in enumerate(launch.ranks):
        job.say(f"{host} rank {rank}: 2 tables read node-local, 0 warnings")
    for dog in _unit_watchdogs(launch):
        job.files.remove(dog.model.pause_flag)
        dog.unpaused()
    return 0


def _unit_watchdogs(launch: Launch) -> list[UnitWatchdog]:
    found = launch.job.playing.world.watchdogs.get(launch.name)
    return [found] if isinstance(found, UnitWatchdog) else []
