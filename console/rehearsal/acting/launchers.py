"""Played launchers: what `relaunch.sh` and `production.sh` of aidendle94's fleets and `cluster.sh` of tsw2k's do, in
their words and with their exit statuses. Ranks are reached as the head reaches them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from console.fleet.inventory import Lane
from console.fleet.sitefile import parse_site
from console.fleet.sitetypes import SiteFile, SiteKind
from console.rehearsal.acting import guards, web
from console.rehearsal.acting.playing import Ended, Job
from console.rehearsal.box import Box
from console.rehearsal.files import host_path
from console.rehearsal.hub import Checkpoint
from console.rehearsal.processes import Processes
from console.rehearsal.scenario import ContainerModel, EngineModel
from console.rehearsal.watching import UnitWatchdog

SGLANG, CLUSTER = "sglang-fleet-env", "vllm-cluster-env"
CHECK_S, GPU_S, RUN_S, POLL_S = 4.0, 2.0, 3.0, 20.0
"""Seconds for a rank's check, until its GPU is free, for its `docker run`; between two looks at health."""
READY_S, UP_S = 2400.0, 3600.0
"""Seconds after which the launchers give up."""
GRACE_S = 10.0
"""That `cluster.sh down` gives each rank."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ENGINE = re.compile(r"DSV4 memory calculation|The server is fired up")


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a launcher on the head of a lane."""

    job: Job
    name: str
    lane: Lane
    site: SiteFile
    log: str = ""
    """Its own log on the head, where it keeps one."""

    def value(self, key: str) -> str:
        """What the site file says; '' where it says nothing."""
        found = self.site.get(key)
        return found.value if found is not None else ""

    def note(self, words: str, *, shown: bool = True) -> None:
        """One line into its log, and to the terminal."""
        if self.log:
            self.job.files.append(self.log, f"{words}\n")
        if shown or not self.log:
            self.job.say(words)

    @property
    def revision(self) -> str:
        """The one that the site file names."""
        found = _COMMIT.search(self.value("SNAP") or self.value("MODEL_REVISION"))
        return found[0] if found is not None else ""

    @property
    def ranks(self) -> tuple[str, ...]:
        """Hosts in rank order."""
        return self.lane.rank_hosts

    @property
    def holder(self) -> str:
        """The host that reads its rows from the shards; '' for none."""
        number = self.value("MODEL_HOST_RANK")
        return self.ranks[int(number)] if number.isdigit() and int(number) < len(self.ranks) else ""

    def box(self, host: str) -> Box | None:
        """The rank's container."""
        return self.job.playing.boxes[host].find(self.container)

    @property
    def container(self) -> str:
        """Name of each rank's container."""
        return self.value("CONTAINER") or "sgldsv41"


def site_path(lane: Lane) -> str:
    """The lane's site file."""
    root = lane.vars.get("root", "~")
    return f"{root}/launch/fleet.env" if lane.recipe == SGLANG else f"{root}/cluster.env"


def launch_of(job: Job, recipe: str, script: str, command: Sequence[str], data: bytes | None = None) -> Launch:
    """The lane that this host is the head of, by its site file or by another text for it. Raises Ended."""
    found = job.playing.lane_on(job.host, recipe)
    if found is None or host_path(command[0]) != host_path(f"{found[1].vars.get('root', '~')}/launch/{script}"):
        raise job.ends(127, f"{command[0]}: not found")
    name, lane = found
    text = data if data is not None else (job.read(site_path(lane)) or "").encode()
    if not text:
        raise job.ends(1, f"ABORT: {site_path(lane)} not found")
    return Launch(job, name, lane, parse_site(text, SiteKind.BASH))


def script_of(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """(file name, arguments) of a launcher's command."""
    return command[0].rpartition("/")[2], tuple(command[1:])


async def run(job: Job, command: Sequence[str]) -> int:
    """One of the launchers; anything else is not found. It shows as a process of the host meanwhile."""
    script, words = script_of(command)
    pid = job.playing.next_pid()
    processes = job.there.processes
    processes.start(pid, ["bash", *(host_path(word) for word in command)], job.there.wall)
    try:
        if script == "relaunch.sh":
            return await relaunch(launch_of(job, SGLANG, script, command))
        if script == "production.sh" and "--dry-run" in words:
            job.out += (await dry(job, command)).splitlines()
            return 0
        if script == "production.sh" and not words:
            return await production(launch_of(job, SGLANG, script, command))
        if script == "cluster.sh" and words in (("up",), ("down",), ("preflight",)):
            found = launch_of(job, CLUSTER, script, command)
            return await {"up": up, "down": down, "preflight": checks}[words[0]](found)
        raise job.ends(127, f"{command[0]}: not found")
    except Ended as ended:
        return ended.status
    finally:
        _end(processes, pid)


def _end(processes: Processes, pid: int) -> None:
    processes.end(pid)


# --- relaunch.sh and production.sh


async def relaunch(launch: Launch) -> int:
    """Watchdog off, production.sh, wait for health, watchdog on."""
    job = launch.job
    logs = f"~/{launch.value('LOG_DIR') or 'sgl-dsv41-logs'}"
    launch = Launch(job, launch.name, launch.lane, launch.site, f"{logs}/dsv41-sgl-relaunch-{_clock('%H%M%S')}.log")
    job.files.text(launch.log, "")
    launch.note(f"relaunch start {_clock('%H:%M:%S')}")
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
            words = f"head container exited {_clock('%H:%M:%S')} (docker logs sgldsv41)"
            return _fails(launch, words, 3)
        await job.playing.sleep(POLL_S)
    launch.note(f"healthy {_clock('%H:%M:%S')} after {took:.0f} s")
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
    models = {host: _model(launch, host) for host in launch.ranks}
    await asyncio.gather(*(_remove(launch, host) for host in launch.ranks))
    for rank, _ in enumerate(launch.ranks):
        await job.playing.sleep(GPU_S)
        launch.note(f"  rank {rank}: GPU free", shown=shown)
    for rank, host in reversed(list(enumerate(launch.ranks))):
        if not await _run(launch, host, rank, *models[host]):
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
    image = _model(launch, host)[0].image
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
        rows += [f"== rank {rank}", _line(*_model(launch, host), rank)]
    return "\n".join(rows) + "\n"


def _line(model: ContainerModel, engine: EngineModel | None, rank: int) -> str:
    """The docker command of a rank, on one line."""
    env = [f"-e {key}={value}" for key, value in model.env.items()]
    mounts = [f"-v {mount}" for mount in model.mounts]
    words = [word.replace("{rank}", str(rank)) for word in model.args]
    del engine
    return " ".join(["docker run -d --name", model.name, *mounts, *env, model.image, *words])


# --- a rank


def _model(launch: Launch, host: str) -> tuple[ContainerModel, EngineModel | None]:
    """What the launcher would run on a rank: what ran there before, by the revision and rows of the site file."""
    playing = launch.job.playing
    scenario = playing.scenario
    model = next(item for item in scenario.containers.values() if _serves(item, launch, host))
    own = model.on.get(host)
    mounts = own.mounts if own is not None and own.mounts is not None else model.mounts
    args = (*(own.args if own is not None and own.args is not None else model.args), *(own.more_args if own else ()))
    env = {**model.env, **(own.env if own is not None else {})}
    former = next(iter(_COMMIT.findall(" ".join((*args, *mounts, *env.values())))), "")
    new = launch.revision or former

    def put(text: str) -> str:
        return text.replace(former, new) if former else text

    rows = launch.value("ENGRAM_LOCAL_DIR")
    placed = tuple(
        f"{host_path(f'~/{rows}')}:/engram-local:ro" if mount.endswith(":/engram-local:ro") and rows else put(mount)
        for mount in mounts
    )
    fresh = {
        "mounts": placed,
        "args": tuple(put(word) for word in args),
        "env": {key: put(value) for key, value in env.items()},
        "on": {},
        "name": launch.container,
        "image": launch.value("IMAGE") or model.image,
        "state": "running",
        "age_s": 0.0,
    }
    engine = scenario.engines.get(model.engine)
    if engine is not None:
        engine = engine.model_copy(update={"model_path": put(engine.model_path)})
    return model.model_copy(update=fresh), engine


def _serves(model: ContainerModel, launch: Launch, host: str) -> bool:
    return bool(model.engine) and model.port == launch.lane.port and host in model.hosts


async def _remove(launch: Launch, host: str) -> None:
    box = launch.box(host)
    if box is not None:
        await launch.job.playing.boxes[host].remove(box)


async def _run(launch: Launch, host: str, rank: int, model: ContainerModel, engine: EngineModel | None) -> bool:
    playing = launch.job.playing
    await playing.sleep(RUN_S)
    if playing.reaches(launch.job.host, host):
        return False
    try:
        await playing.boxes[host].run(model, rank, engine)
    except ValueError:
        return False
    return True


def _clock(form: str) -> str:
    return time.strftime(form, time.gmtime())


# --- cluster.sh


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
        model, _ = _model(launch, host)
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
        job.say(f"{host}: stopped, log in /var/tmp/dsv41-logs/{_clock('%Y%m%dT%H%M%SZ')}")
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
        if not await _run(launch, host, rank, *_model(launch, host)):
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
