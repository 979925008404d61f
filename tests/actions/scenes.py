"""Lanes of every shipped recipe as the console sees them, ready to be planned for. Every value is a mock value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from manual import beside

from console.actions.plan import Plan, Step, Verb
from console.actions.plans import plan_of
from console.fleet.inventory import Fleet, parse
from console.fleet.places import Places, places
from console.fleet.recipe import apply_recipes, lane_recipes
from console.fleet.recipe_model import Recipe
from console.fleet.sitefile import read_site
from console.readings.containers import Container, Containers, ContainerState, Mount
from console.readings.hubcache import HubRepo, SnapshotFiles
from console.readings.link import LinkState, LinkStatus
from console.readings.rows import RowCopies, RowCopy, RowManifest, RowRange, RowState, Tiling
from console.readings.watchdog import Watchdog, WatchdogState
from console.snapshot import LaneView, RankView, Snapshot

pictures = beside("widgets", "pictures")
DATA = Path(__file__).parents[1] / "data" / "fleet"
NOW, WALL = pictures.NOW, pictures.WALL
OLD, NEW = "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"
HOSTS = ("n1", "n2", "n3", "n4")
SHARE = (RowRange(1, 0, 96_001_542), RowRange(14, 0, 96_004_170))
WHOLE = RowManifest(SHARE, "local").bytes

SPARK = """
name = "spark4"
operator = "ana"
[hosts]
n1 = { ssh = "n1" }
n2 = { ssh = "n2" }
n3 = { ssh = "n3" }
n4 = { ssh = "n4" }
[lanes.dsv41]
recipe = "RECIPE"
engine = "sglang"
served = "deepseek-v4.1-flash"
url = "http://127.0.0.1:8210"
head = "n1"
ranks = ["n1", "n2", "n3", "n4"]
REST
[lanes.dsv41.vars]
root = "/home/alice/sglang"
"""
STATION = """
name = "station"
operator = "ana"
[hosts]
station = { ssh = "station" }
[lanes.station]
recipe = "RECIPE"
url = "http://127.0.0.1:30006"
served = "dsv41-flash-uva"
head = "station"
consumers = ["Milo custom[dsv41]"]
REST
"""


class Lane:
    """One lane, its snapshot and what its recipe makes of it."""

    def __init__(self, snapshot: Snapshot, recipe: Recipe, where: Places) -> None:
        self.snapshot, self.recipe, self.places = snapshot, recipe, where

    @property
    def view(self) -> LaneView:
        return self.snapshot.lanes[0]

    def but(self, **changes: Any) -> Lane:
        """The same lane with these fields of its view changed."""
        view = replace(self.view, **changes)
        return Lane(replace(self.snapshot, lanes=(view,)), self.recipe, self.places)

    def host_but(self, name: str, **changes: Any) -> Lane:
        """The same lane with these fields of a host's view changed."""
        hosts = tuple(replace(host, **changes) if host.name == name else host for host in self.snapshot.hosts)
        return Lane(replace(self.snapshot, hosts=hosts), self.recipe, self.places)

    def away(self, name: str) -> Lane:
        """The same lane with a host that cannot be reached."""
        return self.host_but(name, link=LinkState(LinkStatus.DOWN, NOW - 60, "timed out"))

    def recipe_but(self, **changes: Any) -> Lane:
        """The same lane with other `[acts]`."""
        acts = self.recipe.acts.model_copy(update=changes)
        return Lane(self.snapshot, self.recipe.model_copy(update={"acts": acts}), self.places)

    def plan(self, verb: Verb, **more: Any) -> Plan:
        """The plan of an action."""
        return plan_of(verb, self.snapshot, self.view, self.recipe, self.places, **more)


def box(name: str, letter: str, state: ContainerState = ContainerState.RUNNING, **extra: Any) -> Container:
    """A container whose ids are made of one hex letter."""
    values = {"id": letter * 64, "image_id": f"sha256:{letter * 64}", "ports": (30006,), **extra}
    made: Container = pictures.container(name, state, **values)
    return made


SERVING = box(
    "dsv41-1017-BOUND-REF", "a", revision=NEW, served_name="dsv41-flash-uva",
    mounts=(Mount("/models/new", "/model", True),),
)  # fmt: skip
RETIRED = box(
    "dsv41-v21-RETIRED-REF", "b", ContainerState.EXITED, revision=OLD, served_name="dsv41-flash-uva",
    restart_policy="no", mounts=(Mount("/models/old", "/model", True),),
)  # fmt: skip


def _filled(text: str, recipe: str, rest: str) -> tuple[Fleet, Recipe]:
    fleet = apply_recipes(parse(text.replace("RECIPE", recipe).replace("REST", rest)))
    return fleet, next(iter(lane_recipes(fleet).values()))


def docker(*boxes: Container, recipe: str = "vllm-docker", rest: str = 'containers = "dsv41-*"', **extra: Any) -> Lane:
    """A lane in containers on one host; the first of them is what serves (or served)."""
    held = boxes or (SERVING, RETIRED)
    fleet, model = _filled(STATION, recipe, rest)
    base: Snapshot = pictures.station()
    host = replace(base.hosts[0], containers=pictures.reading(Containers(held), 1.0, 5.0), **extra.pop("host", {}))
    ranks = (RankView(0, "station", held[0], "serving", held[0].revision),)
    view = replace(
        base.lanes[0], name="station", lane=fleet.lanes["station"], ranks=ranks, boots=(), boot=None, site=None,
        repos=(), boot_progress=None, **extra,
    )  # fmt: skip
    snapshot = replace(base, fleet=fleet, hosts=(host,), lanes=(view,))
    return Lane(snapshot, model, places("station", view.lane, model, None))


def rank_boxes(letter: str = "c", name: str = "sgldsv41", **extra: Any) -> tuple[Container, ...]:
    """One container on each of four ranks."""
    values = {"restart_policy": "no", "ports": (8210,), "revision": NEW, **extra}
    return tuple(box(name, "0123456789abcdef"[(int(letter, 16) + at) % 16], **values) for at in range(4))


def files(revision: str, done: int = 48) -> SnapshotFiles:
    return SnapshotFiles(revision, 88, 88, (), (), 510 * 10**9, done, 48, newest=100.0)


def copy(rank: int, path: str, revision: str, state: RowState = RowState.READY, **extra: Any) -> RowCopy:
    values = {
        "manifest": RowManifest(SHARE, "local", revision=revision) if revision else None,
        "present": WHOLE if revision else 0,
        "free": 200 * 2**30,
        **extra,
    }
    return RowCopy(rank, HOSTS[rank], path, state, state.value, **values)


def home(rank: int) -> str:
    return "/home/alice" if rank < 2 else "/home/bob"


def watchdog(state: WatchdogState = WatchdogState.ARMED, **extra: Any) -> Any:
    words = {"short": state.value, "words": state.value}
    values: dict[str, Any] = {"kind": "log", "host": "n1", "pid": 4711, "may_signal": True, **words, **extra}
    return pictures.reading(Watchdog(state, protecting=None, **values), 1.0, 5.0)


def site_bytes(name: str = "fleet.env.sample", **changes: str) -> bytes:
    """A site file of the samples, some keys with other values."""
    rows = []
    for row in (DATA / name).read_text().splitlines():
        key = row.partition("=")[0]
        rows.append(f"{key}={changes[key]}" if key in changes else row)
    return ("\n".join(rows) + "\n").encode()


def spark(
    recipe: str = "sglang-fleet-env",
    *,
    data: bytes | None = None,
    boxes: tuple[Container, ...] | None = None,
    old_rows: Mapping[int, RowCopy] | None = None,
    rest: str = "",
    **extra: Any,
) -> Lane:
    """Four ranks that serve NEW by the site file; the snapshot of OLD lies beside it, and so do its rows."""
    fleet, model = _filled(SPARK, recipe, rest)
    lane = fleet.lanes["dsv41"]
    name = {"sglang-fleet-env": "fleet.env", "vllm-cluster-env": "cluster.env"}[recipe]
    if data is None:
        data = (
            site_bytes(SNAP=f"snapshots/{NEW}", ENGRAM_LOCAL_DIR="dsv41-engram-new")
            if name == "fleet.env"
            else site_bytes("cluster.env.sample", MODEL_REVISION=NEW)
        )
    site = read_site(data, f"/home/alice/sglang/launch/{name}", model)
    held = boxes if boxes is not None else rank_boxes()
    base: Snapshot = pictures.spark4()
    hosts = tuple(
        replace(host, containers=pictures.reading(Containers(held[at : at + 1]), 1.0, 5.0))
        for at, host in enumerate(base.hosts)
    )
    where = places("dsv41", lane, model, site)
    ranks = tuple(RankView(at, host, held[at] if at < len(held) else None, "up", NEW) for at, host in enumerate(HOSTS))
    repo = HubRepo("/mnt/dsv41", (files(NEW), files(OLD)), (), {}, 0, ())
    copies = [copy(rank.rank, rank.rows, NEW) for rank in where.ranks if rank.rows]
    former = dict(old_rows) if old_rows is not None else {
        rank.rank: copy(rank.rank, f"{home(rank.rank)}/dsv41-engram-local", OLD, RowState.READY)
        for rank in where.ranks if rank.rows
    }  # fmt: skip
    values: dict[str, Any] = {
        "site": pictures.reading(site, 1.0, 5.0),
        "repos": tuple((host, pictures.reading(repo, 2, 5.0)) for host in HOSTS),
        "rows": pictures.reading(RowCopies(NEW, tuple(copies), Tiling(())), 1.0, 5.0),
        "previous_rows": pictures.reading(RowCopies(OLD, tuple(former.values()), Tiling(())), 1.0, 5.0),
        "next_rows": None,
        "download": None,
        "boots": (),
        "boot": None,
        "watchdog": watchdog(),
        **extra,
    }
    view = replace(base.lanes[0], name="dsv41", lane=lane, ranks=ranks, **values)
    return Lane(replace(base, fleet=fleet, hosts=hosts, lanes=(view,)), model, where)


def unit(rest: str = '[lanes.station.vars]\nunit = "engine.service"', **extra: Any) -> Lane:
    """An engine that systemd runs on the host itself."""
    made = docker(recipe="systemd-generic", rest=rest, **extra)
    ranks = (RankView(0, "station", None, "unit", ""),)
    return made.but(ranks=ranks)


def step(plan: Plan, name: str) -> Step:
    """A step by its id."""
    return next(one for one in (*plan.steps, *plan.rescue) if one.id == name)


def ids(plan: Plan) -> list[str]:
    """Ids of the steps, in order."""
    return [one.id for one in plan.steps]
