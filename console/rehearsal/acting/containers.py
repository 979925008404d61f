"""Twins of the scripts that ask and move containers. Words and exit statuses are those of the scripts."""

from __future__ import annotations

import asyncio
import json

from console.rehearsal.acting import web
from console.rehearsal.acting.playing import Job, Twin, number, short
from console.rehearsal.box import Box
from console.rehearsal.docker_api import inspected, stamp

ROOM_GIB = 0.1
"""Evidence is not kept where less is free."""


def state(box: Box) -> str:
    """`running 0`."""
    return f"{box.state} {0 if box.state == 'running' else box.exit_code}"


def needed(job: Job, name: str) -> Box:
    """The container. Raises Ended where it is gone."""
    box = job.box(name)
    if box is None:
        raise job.no("container removed")
    return box


async def container_gone(job: Job) -> int:
    """container_gone.sh."""
    if (box := job.box(job.args[1])) is not None:
        raise job.no(f"it is there, {box.state}")
    job.say("none is there")
    return 0


async def container_named(job: Job) -> int:
    """container_named.sh."""
    _, ident, name = job.args
    box = needed(job, ident)
    if box.model.name != name:
        raise job.no(f"it is called {box.model.name}")
    job.say(name)
    return 0


async def container_runs(job: Job) -> int:
    """container_runs.sh."""
    _, ident, evidence = job.args
    if job.read(f"{evidence}/started.{short(ident)}") is None:
        job.say("not started yet")
        return 0
    box = needed(job, ident)
    if box.state != "running":
        raise job.no(f"it is {box.state} with {box.exit_code}")
    job.say("running")
    return 0


async def container_startable(job: Job) -> int:
    """container_startable.sh."""
    _, ident, image = job.args
    box = needed(job, ident)
    if image not in ("-", box.image_id):
        raise job.no("its image is another one")
    job.say(box.state)
    return 0


async def container_stopped(job: Job) -> int:
    """container_stopped.sh."""
    box = job.box(job.args[1])
    if box is None:
        job.say("it is no longer there")
        return 0
    if box.state == "running":
        raise job.no("running")
    job.say(state(box))
    return 0


async def container_up(job: Job) -> int:
    """container_up.sh."""
    box = needed(job, job.args[1])
    if box.state != "running":
        raise job.no(f"it is {box.state} with {box.exit_code}")
    job.say("running")
    return 0


async def rank_alive(job: Job) -> int:
    """rank_alive.sh."""
    _, name, former = job.args
    box = job.box(name)
    if box is None:
        job.say("not made yet")
    elif box.id.startswith(former):
        job.say("not replaced yet")
    elif box.state in ("running", "created"):
        job.say(box.state)
    else:
        raise job.no(f"it is {box.state} with {box.exit_code}{', out of memory' if box.oom else ''}")
    return 0


async def evidence(job: Job) -> int:
    """evidence.sh: what is kept lies in the host's own folder."""
    folder, _, lines, _, *names = job.args
    if job.playing.world.free_gib(job.host) < ROOM_GIB:
        raise job.cannot(f"less than 100 MiB are free in {folder}")
    job.write(f"{folder}/meminfo", job.read("/proc/meminfo") or "")
    for name in names:
        box = job.box(name)
        if box is None:
            job.say(f"{short(name)}: not there, nothing to keep")
            continue
        entries = list(box.log)[-number(lines) :] if lines != "all" else list(box.log)
        text = b"".join(entry.text for entry in entries).decode("utf-8", "replace")
        job.write(f"{folder}/{box.model.name}.inspect.json", json.dumps([inspected(box)], indent=1) + "\n")
        job.write(f"{folder}/{box.model.name}.log", text)
    job.say(f"logs of {len(names)} of {len(names)} containers kept in {folder}")
    return 0


async def stop_container(job: Job) -> int:
    """stop_container.sh."""
    _, ident, grace, policy, _, folder, kept = job.args
    box = job.box(ident)
    if box is None:
        job.say(f"{short(ident)} is no longer there")
        return 0
    former = box.model.restart
    if policy not in ("-", former):
        file = f"{kept}/restart-policy.{short(ident)}"
        job.write(file, f"{former} {policy}\n")
        await job.boxes.update(box, policy)
        job.say(f"restart policy was {former}, is {policy}")
    if box.state != "running":
        job.say(f"it is {box.state}")
        return 0
    job.write(f"{folder}/pids.{short(ident)}", f"{box.pid} 1\n")
    job.write(f"{folder}/before.{short(ident)}", f"{stamp(box.started)}\n")
    began = asyncio.get_running_loop().time()
    await job.boxes.stop(box, number(grace))
    job.say(f"stopped in {asyncio.get_running_loop().time() - began:.0f} s")
    return 0


async def processes_gone(job: Job) -> int:
    """processes_gone.sh: the engine of a played container ends with it."""
    folder, ident = job.args
    text = job.read(f"{folder}/pids.{short(ident)}")
    if text is None:
        job.say("none was noted")
        return 0
    pids = {row.split(" ")[0] for row in text.splitlines()}
    for box in job.boxes.items:
        if box.pid and str(box.pid) in pids:
            raise job.no(f"STUCK: pid {box.pid} (python3) in state S does not die")
    job.say("all gone")
    return 0


async def start_container(job: Job) -> int:
    """start_container.sh."""
    _, ident, policy, instead, folder, kept, *serves = job.args
    box = needed(job, ident)
    began = asyncio.get_running_loop().time()
    if box.state == "running":
        job.say("it runs already")
    else:
        port = serves[0].rpartition(":")[2].rstrip("/") if serves else ""
        if port.isdecimal() and job.boxes.listens(int(port)):
            raise job.no(f"somebody else listens on {port}: it could not serve there")
        before = stamp(box.started)
        try:
            await job.boxes.start(box)
        except ValueError as error:
            raise job.no(f"docker start: {error}") from error
        job.write(f"{folder}/started.{short(ident)}", f"{before}\n")
    await _policy_back(job, box, policy, instead, kept)
    if not serves:
        job.say("started")
        return 0
    base, health, name, most = serves
    while True:
        code, words = await web.serves(job, base, health, name)
        took = asyncio.get_running_loop().time() - began
        if code == 0:
            job.say(f"{words} after {took:.0f} s")
            return 0
        if box not in job.boxes.items:
            raise job.no("container removed while it started")
        if box.state != "running":
            oom = ", out of memory" if box.oom else ""
            raise job.no(f"it is {box.state} with {box.exit_code}{oom} after {took:.0f} s")
        if took >= number(most):
            raise job.no(f"does not serve after {most} s: {words}")
        await asyncio.sleep(0.2)


async def _policy_back(job: Job, box: Box, policy: str, instead: str, kept: str) -> None:
    """The restart policy that a stop set aside, of this one or of the one that it replaces, or the one asked for."""
    kept = kept.partition(":")[0]
    own, others = (f"{kept}/restart-policy.{short(name)}" for name in (box.id, instead))
    other = job.read(others) if instead != "-" else None
    wanted = other if other is not None else (job.read(own) if policy == "-" else policy)
    if wanted is None:
        return
    wanted = wanted.split(" ")[0].strip()
    former = box.model.restart
    if wanted.partition(":")[0] not in ("no", "always", "unless-stopped", "on-failure"):
        return
    if wanted != former:
        await job.boxes.update(box, wanted)
        job.say(f"restart policy was {former}, is {wanted}")
    for file in (own, others) if instead != "-" else (own,):
        job.files.remove(file)


async def rename_containers(job: Job) -> int:
    """rename_containers.sh: removes nothing, ever."""
    _, first, first_name, first_wanted, second, second_name, second_wanted, between = job.args
    pairs = [(needed(job, first), first_name, first_wanted), (needed(job, second), second_name, second_wanted)]
    for box, name, wanted in pairs:
        if box.model.name not in (name, wanted) and (box is pairs[0][0] or box.model.name != between):
            raise job.no(f"it is called {box.model.name} by now, not {name}")
    ours = [box for box, _, _ in pairs]
    for _, _, wanted in pairs:
        holder = job.box(wanted)
        if holder is not None and holder not in ours:
            raise job.no(
                f"refused: name in use: {wanted} is held by {short(holder.id)} ({holder.state}); rename that one first"
            )
    if first_wanted == ours[1].model.name:
        await job.boxes.rename(ours[1], between)
    for box, _, wanted in pairs:
        if box.model.name != wanted:
            await job.boxes.rename(box, wanted)
    job.say(f"{first_wanted}, {second_wanted}")
    return 0


async def survivors_stop(job: Job) -> int:
    """survivors_stop.sh."""
    _, name, former, grace = job.args
    box = job.box(name)
    if box is None:
        job.say("no container is there")
    elif box.id.startswith(former):
        job.say("it is the one from before: left alone")
    elif box.state != "running":
        job.say("it has ended")
    else:
        await job.boxes.stop(box, number(grace))
        job.say("stopped")
    return 0


TWINS: dict[str, Twin] = {
    "container_gone.sh": container_gone,
    "container_named.sh": container_named,
    "container_runs.sh": container_runs,
    "container_startable.sh": container_startable,
    "container_stopped.sh": container_stopped,
    "container_up.sh": container_up,
    "evidence.sh": evidence,
    "processes_gone.sh": processes_gone,
    "rank_alive.sh": rank_alive,
    "rename_containers.sh": rename_containers,
    "start_container.sh": start_container,
    "stop_container.sh": stop_container,
    "survivors_stop.sh": survivors_stop,
}
