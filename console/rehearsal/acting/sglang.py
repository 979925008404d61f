"""What `relaunch.sh` and `production.sh` of aidendle94's fleets do, in their words and with their exit statuses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from console.rehearsal.acting import guards, web
from console.rehearsal.acting.launch import (
    CHECK_S,
    GPU_S,
    POLL_S,
    SGLANG,
    Launch,
    clock,
    launch_of,
    model_of,
    remove,
    start,
)
from console.rehearsal.acting.playing import Ended, Job
from console.rehearsal.files import host_path
from console.rehearsal.hub import Checkpoint
from console.rehearsal.scenario import ContainerModel

READY_S = 2400.0
"""Seconds after which it gives up."""
_ENGINE = re.compile(r"DSV4 memory calculation|The server is fired up")


async def relaunch(launch: Launch) -> int:
    """Watchdog off, production.sh, wait for health, watchdog on."""
    job = launch.job
    logs = f"~/{launch.value('LOG_DIR') or 'sgl-dsv41-logs'}"
    launch = replace(launch, log=f"{logs}/dsv41-sgl-relaunch-{clock('%H%M%S')}.log")
    job.files.text(launch.log, "")
    launch.note(f"relaunch start {clock('%H:%M:%S')}")
    dog = guards.log_watchdog(job, "-")
    if dog is not None and dog.pid and dog.asked_to_end(pid := dog.pid):
        launch.note(f"watchdog {pid} disarmed")
    if dog is not None:
        dog.unlock()
    if await production(launch) != 0:
        return _fails(launch, "launch failed", 1)
    began = asyncio.get_running_loop().time()
    while True:
        took = (asyncio.get_running_loop().time() - began) * job.playing.speed
        code, _ = await web.get(job, launch.lane.url + launch.lane.health_path, 5.0)
        if code == 200:
            break
        if took > READY_S:
            return _fails(launch, "not healthy after 40 min (docker logs sgldsv41 on each node)", 2)
        head = launch.box(job.host)
        if head is None or head.state != "running":
            words = f"head container exited {clock('%H:%M:%S')} (docker logs sgldsv41)"
            return _fails(launch, words, 3)
        await job.playing.sleep(POLL_S)
    launch.note(f"healthy {clock('%H:%M:%S')} after {took:.0f} s")
    head = launch.box(job.host)
    said = [entry.text.decode("utf-8", "replace").strip() for entry in head.log] if head is not None else []
    for row in [row for row in said if _ENGINE.search(row)][-4:]:
        launch.note(row[:200])
    if dog is not None:
        guards.begin(job, dog)
        launch.note(f"watchdog: {dog.newest}")
    return 0


def _fails(launch: Launch, words: str, status: int) -> int:
    """The last line of every failure, whether it is true or not."""
    launch.note(
        f"{words} — the fleet is DOWN and the watchdog is DISARMED; fix the cause, then run relaunch.sh again "
        f"(log: {host_path(launch.log)})"
    )
    return status


async def production(launch: Launch) -> int:
    """Checks on every rank, the old containers removed, new ones started, workers first."""
    job, shown = launch.job, not launch.log
    for rank, host in enumerate(launch.ranks):
        if words := job.playing.reaches(job.host, host):
            launch.note(f"ABORT: rank {rank}: cannot ssh to ops@{host}: {words}", shown=shown)
            return 1
    launch.note("== preflight", shown=shown)
    bad = False
    for rank, host in enumerate(launch.ranks):
        await job.playing.sleep(CHECK_S)
        found = _preflight(launch, host)
        if all(word.endswith("-ok") for word in found):
            launch.note(f"  rank {rank}: image + overlay + engram rows OK", shown=shown)
            continue
        bad = True
        rows = host_path(f"~/{launch.value('ENGRAM_LOCAL_DIR')}")
        launch.note(f"  rank {rank}: {' '.join(found)} — engram rows {rows}/engram-local.json", shown=shown)
    if bad:
        launch.note("ABORT preflight (nothing was stopped or started)", shown=shown)
        return 1
    models = {host: model_of(launch, host) for host in launch.ranks}
    await asyncio.gather(*(remove(launch, host) for host in launch.ranks))
    for rank, _ in enumerate(launch.ranks):
        await job.playing.sleep(GPU_S)
        launch.note(f"  rank {rank}: GPU free", shown=shown)
    for rank, host in reversed(list(enumerate(launch.ranks))):
        if not await start(launch, host, rank, *models[host]):
            launch.note(f"rank {rank} launch FAILED", shown=shown)
            return 1
        launch.note(f"  rank {rank} launched", shown=shown)
    nodes = launch.site.get("NODES")
    where = f"http://{nodes.values[0] if nodes is not None else '127.0.0.1'}:{launch.lane.port}"
    launch.note(f"== launched: head API {where} (health: /health); follow: docker logs -f sgldsv41", shown=shown)
    return 0


def _preflight(launch: Launch, host: str) -> list[str]:
    """`image-ok overlay-ok rows-ok` of a rank, or what is missing there."""
    playing = launch.job.playing
    image = model_of(launch, host)[0].image
    if host == launch.holder:
        rows = any(_sees(checkpoint, host, launch.revision) for checkpoint in playing.world.checkpoints.values())
    else:
        rows = playing.hosts[host].files.has(f"~/{launch.value('ENGRAM_LOCAL_DIR')}/engram-local.json")
    return [
        "image-MISSING" if image in playing.boxes[host].unnamed else "image-ok",
        "overlay-ok",
        "rows-ok" if rows else "rows-MISSING",
    ]


def _sees(checkpoint: Checkpoint, host: str, revision: str) -> bool:
    model = checkpoint.model
    return host in (model.host, *checkpoint.mounted) and revision in {item.revision for item in model.revisions}


async def dry(job: Job, command: Sequence[str], site: bytes | None = None) -> str:
    """What production.sh --dry-run prints, by the present site file or by another text for it."""
    try:
        launch = launch_of(job, SGLANG, "production.sh", command, site)
    except Ended:
        return "ABORT: not found\n"
    rows = []
    for rank, host in enumerate(launch.ranks):
        if words := job.playing.reaches(job.host, host):
            return f"ABORT: rank {rank}: cannot ssh to ops@{host}: {words}\n"
        await job.playing.sleep(0.5)
        rows += [f"== rank {rank}", _line(model_of(launch, host)[0], rank)]
    return "\n".join(rows) + "\n"


def _line(model: ContainerModel, rank: int) -> str:
    """The docker command of a rank, on one line."""
    env = [f"-e {key}={value}" for key, value in model.env.items()]
    mounts = [f"-v {mount}" for mount in model.mounts]
    words = [word.replace("{rank}", str(rank)) for word in model.args]
    return " ".join(["docker run -d --name", model.name, *mounts, *env, model.image, *words])
