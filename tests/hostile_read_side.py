"""A whole picture made through the real parsers out of raw texts of hosts in which every free text is hostile."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parent / "widgets"))

import pictures

from console.feed.host import HostFeed
from console.feed.kept import Kept
from console.feed.rankfacts import RankDrift
from console.feed.survey import LaneSurvey
from console.fleet.inventory import Fleet, build
from console.fleet.recipe import apply_recipes, lane_recipes
from console.readings.answers import HttpAnswer, Transport
from console.readings.boot_reader import read_boot
from console.readings.containers import Container, Containers, parse_inspect
from console.readings.facts import parse_facts
from console.readings.gpu import Gpu, GpuUnreadable, parse_gpus
from console.readings.look import Look
from console.readings.quality import Reading
from console.readings.scrape import read_scrape
from console.readings.served import UnreadableModels, parse_models
from console.sanitize import line, lines
from console.snapshot import Event, HostView, LaneView, LogLine, LogView, RankView, Snapshot

Dirt = Callable[[], str]
"""Gives another hostile text each time."""
TESTS = Path(__file__).parent
DATA = TESTS / "data" / "fleet"
BOOT = (TESTS / "data" / "boots" / "sglang-boot-gb10.log").read_text(encoding="utf-8")
HOSTS = ("n1", "n2", "n3", "n4")
SERVING = "0123456789abcdef0123456789abcdef01234567"
WANTED = "1bae0e1" + "0" * 33
NOW, WALL = pictures.NOW, pictures.WALL
RECIPES: dict[str, dict[str, Any]] = {
    "sglang-fleet-env": {"vars": {"root": "/home/alice/sglang"}, "url": "http://127.0.0.1:8210"},
    "vllm-cluster-env": {"vars": {"root": "/home/operator/dsv41"}, "url": "http://127.0.0.1:8000"},
}
SAMPLES = {"sglang-fleet-env": "fleet.env.sample", "vllm-cluster-env": "cluster.env.sample"}


@dataclass
class Host:
    """What a lane's survey knows of a host: its looks and the answers to them."""

    name: str
    looks: dict[str, Look] = field(default_factory=dict)
    kept: dict[str, Kept[str]] = field(default_factory=dict)
    booted: float | None = WALL - 86_400 * 9
    looks_heard: int = 0

    def look(self, owner: str, looks: Sequence[Look]) -> None:
        self.looks = {look.key: look for look in looks}

    def looked(self, key: str) -> Reading[str] | None:
        if key not in self.looks:
            return None
        return self.kept.setdefault(key, Kept(f"{self.name}:{key}", self.looks[key].every)).reading(None)

    def host_wall(self, now: float) -> float:
        return WALL + (now - NOW)

    def answers(self, key: str, text: str, at: float) -> None:
        self.looks_heard += 1
        self.kept.setdefault(key, Kept(f"{self.name}:{key}", 5.0)).put(text, at)


def tree(dirt: Dirt, at: float) -> str:
    """A repository in which names, targets, refs, mount and file system are hostile, and much is as it should be."""
    head = f"ok free={900 << 30} total={1 << 40} device=7:0 fstype={dirt()} mount={dirt()}\n# root\t{dirt()}\n"
    rows = [f"# epoch {WALL:.0f}", f"# unread {dirt()} {dirt()}"]
    for number, revision in enumerate((SERVING, WANTED), 1):
        name = f"snapshots/{revision}/model-{number:05}-of-00048.safetensors"
        rows.append(f"l\t78\t0\t{WALL:.0f}\t7\t{number}\t1\t{name}\t../../blobs/{number:064x}\tin\t90\t90\t7\t{number}")
        rows.append(f"l\t78\t0\t{WALL:.0f}\t7\t{number}\t1\tsnapshots/{revision}/{dirt()}\t{dirt()}\tgone\t-\t-\t-\t-")
        rows.append(f"l\t78\t0\t{WALL:.0f}\t7\t{number}\t1\tsnapshots/{revision}/{dirt()}\t/{dirt()}\tout\t9\t9\t7\t9")
        rows.append(f"f\t90\t4096\t{WALL:.0f}\t7\t{number}\t1\tblobs/{number:064x}")
    size = int(at) * 1000
    rows.append(f"f\t9000000000\t{size}\t{WALL:.0f}\t7\t77\t1\tblobs/{'a' * 64}.{'b' * 8}.incomplete")
    rows.append(f"f\t9000\t{size}\t{WALL:.0f}\t7\t78\t1\tblobs/{dirt()}.incomplete")
    rows += [f"f\t40\t4096\t{WALL:.0f}\t7\t79\t1\trefs/{dirt()}\t{dirt()}\t-\t-\t-\t-\t-", f"f\t1\t1\t{dirt()}", dirt()]
    return head + "\n".join(rows) + "\n"


def file(text: str) -> str:
    """A file's answer."""
    return f"ok size={len(text)} mtime={WALL:.0f} inode=7\n{text}"


def manifest(dirt: Dirt, rank: int) -> str:
    """A rank's manifest, its free texts hostile."""
    raw = json.loads((DATA / "engram-local.rank2.json").read_text(encoding="utf-8"))
    raw |= {
        "source": f"{dirt()}/snapshots/{WANTED}",
        "quant": dirt(),
        "note": dirt(),
        "created": dirt(),
        dirt(): dirt(),
    }
    return json.dumps(raw) if rank else f"{dirt()}{json.dumps(raw)}"


def process_rows(dirt: Dirt, command: str) -> str:
    """Rows of /proc with hostile command lines."""
    rows = [f"{pid}\t1\tS\t{WALL - 90:.0f}\t1000\t5\t5\t{command} {dirt()} {dirt()}" for pid in (48211, 48212)]
    return f"ok clock=100 boot={WALL - 90_000:.0f}\n" + "\n".join([*rows, dirt(), f"7\t{dirt()}"]) + "\n"


def units(dirt: Dirt, name: str) -> str:
    """What systemctl said, every value hostile that is free text."""
    shown = (
        f"Id={name}\nLoadState=loaded\nActiveState=failed\nSubState={dirt()}\nResult={dirt()}\nDescription={dirt()}\n"
    )
    other = f"Id={dirt()}\nLoadState={dirt()}\nActiveState={dirt()}\n"
    return f"ok code=1\n{shown}MainPID={dirt()}\n\n{other}\n@{name}/memory.max={dirt()}\n! {dirt()}\n"


def answer(look: Look, dirt: Dirt, recipe: str, rank: int, at: float) -> str:
    """What a hostile host says to one look."""
    what = look.key.partition(":")[2]
    if what == "site":
        sample = (DATA / SAMPLES[recipe]).read_text(encoding="utf-8")
        return file(f"{sample}\n# {dirt()}\nPORT={dirt()}\nIMAGE='{dirt()}'\nX{dirt()}={dirt()}\n{dirt()}\n")
    if what == "site.beside":
        return tree(dirt, at)
    if what == "site.former":
        return file((DATA / SAMPLES[recipe]).read_text(encoding="utf-8").replace(SERVING, WANTED) + dirt())
    if what in ("repo", "download.repo", "rows", "next"):
        return tree(dirt, at)
    if what.endswith(".manifest"):
        return file(manifest(dirt, rank))
    if what.endswith(".processes"):
        return process_rows(dirt, "launch/watchdog.sh" if "watchdog" in what else "hf download org/model")
    if what.endswith(".units"):
        return units(dirt, look.arguments[1])
    if what == "watchdog.log":
        log = (DATA / "sgl-watchdog.rendered.log").read_text(encoding="utf-8")
        act = f"2026-11-29 21:50:00 RECOVERY attempt 1/3 {dirt()}\n2026-11-29 21:51:00 GIVING UP after {dirt()}"
        return file(f"{log}\n{dirt()}\n{act}\n")
    return file(f"48211 {dirt()}\n{dirt()}\n")


def container(dirt: Dirt, rank: int, port: int) -> Container:
    """A container whose inspect is hostile in every free text."""
    command = ["-m", "sglang.launch_server", "--port", str(port), "--model-path", dirt(), dirt(), f"--x={dirt()}"]
    health = {"Status": dirt() if rank % 2 else "unhealthy"}
    return parse_inspect(
        {
            "Id": f"{rank:064x}",
            "Name": f"/{dirt()}",
            "Image": f"sha256:{rank % 2:064x}",
            "RestartCount": 4,
            "Path": "python3",
            "Args": command,
            "State": {"Status": "running", "StartedAt": "2026-11-29T21:50:00Z", "Error": dirt(), "Health": health},
            "Config": {
                "Image": dirt(),
                "Labels": {dirt(): dirt(), "autoheal": "true"},
                "Env": [f"NCCL_{dirt()}={dirt()}"],
            },
            "HostConfig": {"NetworkMode": "host", "RestartPolicy": {"Name": dirt()}},
            "Mounts": [{"Source": f"/{dirt()}/snapshots/{SERVING}", "Destination": f"/{dirt()}", "RW": False}],
        }
    )


def gpus(dirt: Dirt) -> Reading[tuple[Gpu, ...]]:
    """GPUs named by hostile text, or the hostile text in which nvidia-smi refuses."""
    try:
        found = parse_gpus(f"0, {dirt()}, GPU-0, {dirt()}, 12, 45, 2411, [N/A], [N/A], 580\n")
    except GpuUnreadable as error:
        return pictures.unread(error=line(str(error)))
    return cast("Reading[tuple[Gpu, ...]]", pictures.reading(found, 2.0, 5.0))


def host_view(dirt: Dirt, rank: int, port: int) -> HostView:
    """A host with a hostile container, GPU and facts."""
    base: HostView = pictures.spark4().hosts[rank]
    facts = {name: dirt() for name in ("hostname", "kernel", "boot_id", "cpus", "page_size", "python", "gpu")}
    item = container(dirt, rank, port)
    return replace(
        base,
        gpus=gpus(dirt),
        facts=pictures.reading(parse_facts(facts), 60, 60),
        containers=pictures.reading(Containers((replace(item, tag_moved=True),)), 0.4, 5.0),
    )


def engine(dirt: Dirt) -> dict[str, Any]:
    """What a hostile engine and a hostile proxy answer."""
    body = json.dumps({"data": [{"id": dirt()}]}).encode()
    try:
        served = pictures.reading(parse_models(HttpAnswer(NOW, 0.1, Transport.ANSWERED, 200, body)), 6, 10.0)
    except UnreadableModels as error:
        served = pictures.unread(error=str(error))
    text = f'# HELP {dirt()}\nvllm:num_requests_running{{model="{dirt()}"}} {dirt()}\n{dirt()} 1\n'
    metrics = read_scrape(HttpAnswer(NOW, 0.1, Transport.ANSWERED, 200, text.encode("utf-8", "replace")))
    why = f"{metrics.verdict}: {metrics.detail}"
    front = pictures.reading(HttpAnswer(NOW, 0.1, Transport.ANSWERED, 502, dirt().encode("utf-8", "replace")), 1, 10.0)
    return {"served": served, "throughput": pictures.unread(error=why), "front": front}


def survey(dirt: Dirt, recipe: str) -> tuple[Fleet, LaneSurvey, dict[str, Host]]:
    """The lane's survey with every look answered, twice."""
    lane = RECIPES[recipe] | {
        "recipe": recipe,
        "head": "n1",
        "ranks": list(HOSTS),
        "front": "http://127.0.0.1:9",
        "next": {"revision": WANTED, "rows": "next-engram"},
        "download": {"host": "n2", "repo": "hub/models--org--model", "revision": WANTED, "unit": "fetch"},
    }
    fleet = apply_recipes(
        build({"name": "four", "operator": "ana", "hosts": {n: {"ssh": n} for n in HOSTS}, "lanes": {"dsv41": lane}})
    )
    hosts = {name: Host(name) for name in HOSTS}
    found = LaneSurvey("dsv41", fleet.lanes["dsv41"], lane_recipes(fleet)["dsv41"], cast("dict[str, HostFeed]", hosts))
    for at in (NOW - 8.0, NOW - 3.0, NOW - 1.0):
        for rank, host in enumerate(hosts.values()):
            for key, look in list(host.looks.items()):
                host.answers(key, answer(look, dirt, recipe, rank, at), at)
        found.view(at, dict.fromkeys(HOSTS, SERVING), {})
    return fleet, found, hosts


def hostile_picture(dirt: Dirt, recipe: str = "sglang-fleet-env") -> Snapshot:
    """Four hosts and their lane, all of it read from hostile texts."""
    fleet, found, _ = survey(dirt, recipe)
    lane = fleet.lanes["dsv41"]
    hosts = tuple(host_view(dirt, rank, lane.port) for rank in range(4))
    items = {host.name: host.containers.value.items for host in hosts if host.containers.value}
    seen = found.view(NOW, dict.fromkeys(HOSTS, SERVING), items)
    ranks = tuple(RankView(rank, name, items[name][0], "up", SERVING) for rank, name in enumerate(HOSTS))
    boot = read_boot(
        f"{BOOT}\n{dirt()}\n[2026-11-29 21:54:00 TP0] RuntimeError: {dirt()}\ntorch.OutOfMemoryError: {dirt()}"
    )
    base: LaneView = pictures.spark4().lanes[0]
    view = replace(
        base,
        lane=lane,
        ranks=ranks,
        boot=pictures.reading(boot, 0.4),
        drift=RankDrift().of(ranks, {host.name: host for host in hosts}, seen, NOW),
        site=seen.site,
        repos=seen.repos,
        download=seen.download,
        rows=seen.rows,
        next_rows=seen.next_rows,
        watchdog=seen.watchdog,
        unfilled=seen.unfilled,
        **engine(dirt),
    )
    log = LogView("n1", line(dirt()), tuple(LogLine(WALL, text) for text in lines("\n".join(dirt() for _ in range(9)))))
    events = tuple(Event(WALL - at, "n1", line(dirt())) for at in range(5))
    return Snapshot(1, NOW, WALL, fleet, False, hosts, (view,), events, log)
