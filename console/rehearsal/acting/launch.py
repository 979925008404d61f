"""One run of a played launcher: its lane, its site file, its log, and what it does to a rank."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from console.fleet.inventory import Lane
from console.fleet.sitefile import parse_site
from console.fleet.sitetypes import SiteFile, SiteKind
from console.rehearsal.acting.playing import Job
from console.rehearsal.box import Box
from console.rehearsal.files import host_path
from console.rehearsal.scenario import ContainerModel, EngineModel

SGLANG, CLUSTER = "sglang-fleet-env", "vllm-cluster-env"
CHECK_S, GPU_S, RUN_S, POLL_S = 4.0, 2.0, 3.0, 20.0
"""Seconds for a rank's check, until its GPU is free, for its `docker run`; between two looks at health."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


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


def bare(command: Sequence[str]) -> tuple[str, ...]:
    """A launcher's command without the shell that runs it."""
    words = tuple(command)
    return words[1:] if words[:1] == ("bash",) and len(words) > 1 else words


def launch_of(job: Job, recipe: str, script: str, command: Sequence[str], data: bytes | None = None) -> Launch:
    """The lane that this host is the head of, by its site file or by another text for it. Raises Ended."""
    found = job.playing.lane_on(job.host, recipe)
    if found is None or host_path(bare(command)[0]) != host_path(f"{found[1].vars.get('root', '~')}/launch/{script}"):
        raise job.ends(127, f"{bare(command)[0]}: not found")
    name, lane = found
    text = data if data is not None else (job.read(site_path(lane)) or "").encode()
    if not text:
        raise job.ends(1, f"ABORT: {site_path(lane)} not found")
    return Launch(job, name, lane, parse_site(text, SiteKind.BASH))


def model_of(launch: Launch, host: str) -> tuple[ContainerModel, EngineModel | None]:
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


async def remove(launch: Launch, host: str) -> None:
    box = launch.box(host)
    if box is not None:
        await launch.job.playing.boxes[host].remove(box)


async def start(launch: Launch, host: str, rank: int, model: ContainerModel, engine: EngineModel | None) -> bool:
    playing = launch.job.playing
    await playing.sleep(RUN_S)
    if playing.reaches(launch.job.host, host):
        return False
    try:
        await playing.boxes[host].run(model, rank, engine)
    except ValueError:
        return False
    return True


def clock(form: str) -> str:
    return time.strftime(form, time.gmtime())
