"""Snapshots like the pictures the screen is built towards. Every value is a mock value."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import upkeep

from console.alarms import Alarm
from console.fleet.inventory import Fleet, parse
from console.lamps import Lamp
from console.readings.boot import PhaseName
from console.readings.containers import Container, Containers, ContainerState
from console.readings.download import DownloadState
from console.readings.facts import HostFacts
from console.readings.gpu import Gpu
from console.readings.health import (
    HttpAnswer,
    HttpLight,
    HttpVerdict,
    LaneState,
    LaneVerdict,
    Lights,
    ProcessLight,
    Progress,
    ProgressLight,
    ScrapeLight,
    Transport,
)
from console.readings.link import LinkState, LinkStatus
from console.readings.memory import Memory, NumaNode, Pressure
from console.readings.quality import Basis, Reading
from console.readings.rows import RowCopies, RowState
from console.readings.throughput import EngineKind, KvPool, Percentiles, ScrapeVerdict, Speculation, Throughput
from console.readings.watchdog import WatchdogState
from console.snapshot import (
    Event,
    HostView,
    LaneView,
    LogLine,
    LogView,
    MemoryPoint,
    RankView,
    RatePoint,
    Severity,
    Snapshot,
)
from widgets.glance import Glance, KeyHint, layout_for
from widgets.ink import Ink, Row, text_of

GIB = 2**30
NOW = 500_000.0
WALL = 1_795_989_310.0
"""2026-11-29 21:55:10 UTC."""

SPARK4 = """
name = "spark4"
operator = "ana"
[hosts]
n1 = { ssh = "n1" }
n2 = { ssh = "n2" }
n3 = { ssh = "n3" }
n4 = { ssh = "n4" }
[lanes.dsv41]
recipe = "sglang-fleet-env"
engine = "sglang"
served = "deepseek-v4.1-flash"
url = "http://127.0.0.1:8210"
head = "n1"
ranks = ["n1", "n2", "n3", "n4"]
usual_boot_s = 575
"""

STATION = """
name = "station"
operator = "ana"
[hosts]
station = { ssh = "station" }
[lanes.station]
recipe = "vllm-docker"
engine = "vllm"
url = "http://127.0.0.1:30006"
served = "dsv41-flash-uva"
head = "station"
containers = "dsv41-vllm-*"
"""

KEYS = (
    KeyHint("?", "help"),
    KeyHint(":", "cmd"),
    KeyHint("/", "filter"),
    KeyHint("1-9", "focus", "-"),
    KeyHint("z", "zoom", "-"),
    KeyHint("l", "logs", "log"),
    KeyHint("p", "pause"),
    KeyHint("a", "ack"),
    KeyHint("x", "explain", "-"),
    KeyHint("q", "quit"),
    *(
        KeyHint(key, word, guarded=True, available=False, why="not available yet: this console only reads")
        for key, word in (("D", "watchdog"), ("S", "stop"), ("R", "relaunch"), ("B", "roll back"))
    ),
)

UP = LinkState(LinkStatus.UP, NOW - 3600)


def reading(value: Any, age: float = 0.4, interval: float = 1.0, source: str = "test", **extra: Any) -> Reading[Any]:
    """A reading taken `age` seconds ago."""
    return Reading(source, interval, value, NOW - age, WALL - age, **extra)


def unread(source: str = "test", interval: float = 1.0, **extra: Any) -> Reading[Any]:
    """A reading that was never taken."""
    return Reading(source, interval, **extra)


def memory(free: float, avail: float, cache: float, *, swap: float = 0.0, total: float = 119.7, **extra: Any) -> Memory:
    """Node memory, sizes in GiB."""
    values: dict[str, Any] = {
        "total": int(total * GIB),
        "free": int(free * GIB),
        "available": int(avail * GIB),
        "available_basis": Basis.MEASURED,
        "buffers": 0,
        "cached": int(cache * GIB),
        "shmem": int(0.6 * GIB),
        "dirty": int(0.1 * GIB),
        "writeback": 0,
        "mlocked": int(95.8 * GIB),
        "unevictable": int(95.8 * GIB),
        "reclaimable_slab": int(0.3 * GIB),
        "swap_total": 16 * GIB,
        "swap_free": int((16 - swap) * GIB),
        "hugepage_size": None,
        "hugetlb_total": 0,
        "hugetlb_free": 0,
        "hugetlb_reserved": 0,
        "pressure": Pressure(0.0, 0.0, 0.0, 0.0),
    }
    return Memory(**{**values, **extra})


def gpu(use: float, temperature: float, watt: float, ghz: float, **extra: Any) -> Gpu:
    """A GB10, which has no memory figures of its own."""
    values: dict[str, Any] = {"unified": True, "memory_total": None, "memory_used": None, "power_limit_w": None}
    return Gpu(
        0, "NVIDIA GB10", "GPU-0", utilisation=use, power_w=watt, temperature_c=temperature,
        clock_mhz=ghz * 1000, **{**values, **extra},
    )  # fmt: skip


def container(name: str, state: ContainerState = ContainerState.RUNNING, **extra: Any) -> Container:
    """One container; 3d04h up unless told otherwise."""
    runs = state is ContainerState.RUNNING
    values: dict[str, Any] = {
        "id": hashlib.sha256(name.encode(errors="replace")).hexdigest()[:12],
        "image": "engine:1",
        "image_id": "sha256:0",
        "started_at": WALL - 3 * 86400 - 4 * 3600 - 60,
        "finished_at": None if runs else WALL - 100,
        "exit_code": None if runs else 0,
        "oom_killed": False,
        "exit_meaning": "",
        "restart_policy": "unless-stopped",
        "restart_count": 0,
        "auto_remove": False,
        "health": "",
        "mounts": (),
        "args": (),
        "labels": (),
        "network_mode": "host",
        "ports": (8210,),
        "revision": "9f2c1a7" + "0" * 33,
        "revision_source": "mount /models",
        "served_name": "deepseek-v4.1-flash",
        "autoheal": False,
    }
    return Container(name=name, state=state, **{**values, **extra})


def history(free: float, gap: tuple[float, float] | None = None) -> tuple[MemoryPoint, ...]:
    """Ten minutes of node memory, one point a second."""
    points = []
    for back in range(600, -1, -1):
        if gap and gap[0] >= back >= gap[1]:
            continue
        wave = 0.3 * math.sin(back / 40)
        points.append(MemoryPoint(NOW - back, 0.0, 0.0, (free + wave) * GIB))
    return tuple(points)


def host(
    name: str, mem: Memory, card: Gpu, box: Container | None, drift: float | None = 0.1, age: float = 0.4, **extra: Any
) -> HostView:
    """One host that is up."""
    values: dict[str, Any] = {
        "name": name,
        "link": UP,
        "memory": reading(mem, age),
        "gpus": reading((card,), 2.0, 5.0),
        "facts": reading(HostFacts(name, "6.11.0-1016-nvidia", "b0", 20, "python3 3.12.3"), 60, 60),
        "containers": reading(Containers((box,) if box else ()), 0.4, 5.0),
        "drift": drift,
        "unified": True,
        "history": history(mem.free / GIB, (400, 310) if name == "n3" else None),
    }
    return HostView(**{**values, **extra})


def throughput(decode: float | None = 66.3, **extra: Any) -> Throughput:
    """An SGLang engine under three requests."""
    values: dict[str, Any] = {
        "engine": EngineKind.SGLANG,
        "window": 1.0,
        "decode_tps": decode,
        "prefill_tps": 2913.0,
        "running": 3,
        "waiting": 0,
        "preemptions": 0.0,
        "kv": KvPool(6_040_000, Basis.ENGINE_REPORTED, 0.3046, 1_840_000, None, "sglang:max_total_num_tokens"),
        "speculation": Speculation(Basis.MEASURED, 0.342, 1.71, 2.71, 5.0),
        "ttft": Percentiles(40, 0.81, 2.13, 3.0),
        "itl": Percentiles(400, 0.015, 0.02, 0.03),
        "itl_is_per_step": False,
        "prefix_hit_rate": 0.61,
        "steps": 184_302.0,
        "step_delta": 20.0,
        "restarted": False,
        "series": 412,
    }
    return Throughput(**{**values, **extra})


def rates(level: float = 66.3, drop_at: float | None = None) -> tuple[RatePoint, ...]:
    """Five minutes of decode rate, one point a second; from `drop_at` seconds ago on it is 0."""
    points = []
    for back in range(400, -1, -1):
        rate = level + 1.8 * math.sin(back / 5) if drop_at is None or back > drop_at else 0.0
        points.append(RatePoint(NOW - back - 0.3, rate, 0.3))
    return tuple(points)


LIGHTS = Lights(
    ProcessLight(4, 4, started_at=WALL - 3 * 86400 - 4 * 3600 - 60),
    HttpLight(HttpVerdict.OK, 200, 0.9, 0, True),
    ScrapeLight(ScrapeVerdict.OK, "", 412),
    ProgressLight(Progress.MOVING, 184_302.0, None, 66.3, 2913.0, 3, 0),
)


def lane(fleet: Fleet, name: str, hosts: tuple[HostView, ...], **extra: Any) -> LaneView:
    """A lane that serves."""
    ranks = tuple(
        RankView(i, h.name, h.containers.value.items[0] if h.containers.value and h.containers.value.items else None,
                 "up", "9f2c1a7" + "0" * 33)
        for i, h in enumerate(hosts)
    )  # fmt: skip
    values: dict[str, Any] = {
        "name": name,
        "lane": fleet.lanes[name],
        "health": reading(HttpAnswer(NOW - 6, 0.9, Transport.ANSWERED, 200), 6, 10.0),
        "throughput": reading(throughput(), 0.3),
        "served": reading(fleet.lanes[name].served, 6, 10.0),
        "lights": LIGHTS,
        "verdict": LaneVerdict(LaneState.SERVING, "decode moves and /health answers 200"),
        "state_since": NOW - 273_660,
        "ranks": ranks,
        "history": rates(),
        "pools": (5_160_000, 5_400_000, 5_880_000, 6_040_000),
        "usual_decode": (48.0, 69.0),
        "usual_by_running": ((1, 48.0, 52.0, 900), (3, 63.0, 69.0, 2400)),
        "last_decode": 66.3,
        **(kept() if len(hosts) > 1 else {}),
    }
    return LaneView(**{**values, **extra})


def kept() -> dict[str, Any]:
    """What keeps a lane of several ranks alive, all well: a checkpoint and its row copies are being prepared."""
    return {
        "download": reading(upkeep.download(), 0.6, 5.0),
        "rows": reading(upkeep.SERVING_ROWS, 0.7, 5.0),
        "next_rows": reading(upkeep.NEXT_ROWS, 0.7, 5.0),
        "watchdog": reading(upkeep.ARMED, 3, 5.0),
        "drift": upkeep.EQUAL,
        "site": reading(upkeep.site(), 3, 5.0),
        "repos": tuple((name, reading(upkeep.repo(), 4, 5.0)) for name in ("n1", "n2", "n3", "n4")),
        "boots": upkeep.BOOTS,
        "boot": reading(upkeep.boot(PhaseName.READY, WALL - 273_660, ready=WALL - 273_660 + 575, now=None), 0.4),
    }


def _spark_hosts() -> tuple[HostView, ...]:
    return (
        host("n1", memory(11.8, 17.9, 7.4), gpu(97, 71, 58, 2.41), container("sglang-head"), 0.1, 0.4),
        host("n2", memory(12.3, 18.2, 7.1), gpu(96, 70, 57, 2.41), container("sglang-1"), 0.0, 0.6),
        host("n3", memory(9.7, 15.1, 6.6), gpu(97, 71, 58, 2.40), container("sglang-2"), -0.2, 0.5),
        host("n4", memory(8.9, 16.6, 9.2), gpu(96, 72, 58, 2.41), container("sglang-3"), 0.1, 0.4),
    )


EVENTS = (
    Event(WALL - 7027, "ana", "prepare 1bae0e1, plan c02e5514a9f3"),
    Event(WALL - 4443, "n3", "memory: free below 4.0 GiB, acked by ana"),
    Event(WALL - 4310, "n3", "memory back: free over 6.0 GiB"),
    Event(WALL - 1438, "n4", "download 1bae0e1: 40 of 48 shards"),
    Event(WALL - 133, "ana", "rows n1 started, 48.1 GiB"),
    Event(WALL - 90, "ana", "rows n2 started, 48.1 GiB"),
)

LOG = LogView(
    "n1",
    "sglang-head",
    (
        LogLine(WALL - 5, "decode batch, 3 running, gen 66.72 tok/s"),
        LogLine(WALL - 4, "decode batch, 3 running, gen 66.40 tok/s"),
        LogLine(WALL - 4, "GET /health 200"),
        LogLine(WALL - 3, "decode batch, 3 running, gen 65.94 tok/s"),
        LogLine(WALL - 2, "decode batch, 3 running, gen 66.18 tok/s"),
        LogLine(WALL - 1, "decode batch, 3 running, gen 66.31 tok/s"),
    ),
    taken_mono=NOW - 0.5,
)

WELL = (
    Lamp("SERVING", "66.3 tok/s", "· 3 running", "up 3d04h", Severity.NORMAL),
    Lamp("REVISION", "9f2c1a7", "", "4 of 4 ranks", Severity.NORMAL),
    Lamp("WATCHDOG", "UNKNOWN", "not read yet", "", Severity.NORMAL),
    Lamp("ROLLBACK", "UNKNOWN", "not read yet", "", Severity.NORMAL),
)


def glance(snapshot: Snapshot, columns: int = 120, rows: int = 40, **extra: Any) -> Glance:
    """What a terminal of this size shows of it."""
    values: dict[str, Any] = {"lamps": WELL, "keys": KEYS, "focus": 1, "layout": layout_for(columns, rows)}
    return Glance(snapshot, snapshot.lanes[0], **{**values, **extra})


def spark4(*, rehearsal: bool = False) -> Snapshot:
    """Four hosts, all well."""
    fleet = parse(SPARK4)
    hosts = _spark_hosts()
    return Snapshot(1, NOW, WALL, fleet, rehearsal, hosts, (lane(fleet, "dsv41", hosts),), EVENTS, LOG)


def _minute_6() -> RowCopies:
    """Two copies whole, one without room, one on its way."""
    copying = upkeep.copy(3, RowState.COPYING, "copying, no manifest", 0.65, rate=0.53 * GIB, left=31.0)
    return replace(upkeep.NEXT_ROWS, copies=(upkeep.copy(0), upkeep.copy(1), upkeep.NEXT_ROWS.copies[2], copying))


CRIT = Alarm("memory:n3", Severity.ACT, "n3", "free 2.9 of 119.7 GiB, 61.0 cached", "stop the copy or drop cache")
STALE = Alarm("stale:n4", Severity.LOOK, "n4", "no memory reading for 14s", "")

DOWN_LAMPS = (
    Lamp("SERVING", "DOWN 0m41s", "", "was 66.3 tok/s", Severity.ACT),
    Lamp("REVISION", "9f2c1a7", "", "2 of 4 ranks down", Severity.NORMAL),
    Lamp("WATCHDOG", "UNKNOWN", "not read yet", "", Severity.NORMAL),
    Lamp("ROLLBACK", "UNKNOWN", "not read yet", "", Severity.NORMAL),
)


def trouble() -> Snapshot:
    """n3 CRITICAL, n4 STALE, the engine going down."""
    base = spark4()
    hosts = (
        host("n1", memory(41.2, 43.0, 8.1), gpu(97, 71, 58, 2.41), container("sglang-head"), 0.1, 0.4),
        host("n2", memory(43.0, 44.1, 7.7), gpu(96, 70, 57, 2.40), container("sglang-1"), 0.0, 0.6),
        host("n3", memory(2.9, 62.0, 61.0, swap=0.3), gpu(0, 55, 11, 0.31), None, -0.2, 0.5),
        host("n4", memory(66.1, 78.0, 12.4), gpu(0, 54, 10, 0.31), None, None, 14),
    )
    words = ("stopping", "stopping", "exited 0", "exited 0")
    before = base.lanes[0]
    ranks = tuple(replace(rank, word=word) for rank, word in zip(before.ranks, words, strict=True))
    lights = Lights(
        ProcessLight(4, 2, ("n3 exited 0", "n4 exited 0")),
        HttpLight(HttpVerdict.REFUSED, None, None, 41, True),
        ScrapeLight(ScrapeVerdict.REFUSED, "port closed"),
        ProgressLight(Progress.UNKNOWN),
    )
    down = replace(
        before,
        ranks=ranks,
        lights=lights,
        health=reading(HttpAnswer(NOW - 0.3, 0.01, Transport.REFUSED), 0.3, 10.0),
        throughput=unread(error="connection refused"),
        verdict=LaneVerdict(LaneState.DOWN, "2 of 4 ranks exited"),
        state_since=NOW - 41,
        history=rates(drop_at=41),
        download=reading(upkeep.download(DownloadState.COMPLETE), 0.6, 5.0),
        next_rows=reading(_minute_6(), 0.9, 5.0),
        watchdog=reading(replace(upkeep.ARMED, state=WatchdogState.OFF, words="off, stopped by hand", protecting=False,
                                 pid=None, since=WALL - 70), 2, 5.0),
    )  # fmt: skip
    events = (
        EVENTS[-2],
        Event(WALL - 118, "n3", "memory: free below 4.0 GiB", Severity.ACT),
        EVENTS[-1],
        Event(WALL - 21, "n4", "STOP exited 0, 20 s"),
        Event(WALL - 19, "n3", "STOP exited 0, 22 s"),
    )
    return replace(base, hosts=hosts, lanes=(down,), events=events)


def unreachable() -> Snapshot:
    """n2 refuses, n3's key changed, n4 is being connected."""
    base = spark4()
    n1, n2, n3, n4 = base.hosts
    lost = NOW - 130
    down2 = LinkState(LinkStatus.DOWN, lost, "connection refused", "is sshd running?", 7, NOW + 4)
    down3 = LinkState(LinkStatus.DOWN, lost, "host key changed", "ssh-keygen -R n3 if you trust it", 7, NOW + 4)
    link4 = LinkState(LinkStatus.CONNECTING, NOW - 3, "", "", 2)
    gone = {"down_since": lost, "error": "link lost"}
    hosts = (
        n1,
        replace(n2, link=down2, memory=replace(n2.memory, **gone), gpus=replace(n2.gpus, **gone),
                containers=replace(n2.containers, **gone)),
        replace(n3, link=down3, memory=replace(n3.memory, **gone), gpus=replace(n3.gpus, **gone),
                containers=replace(n3.containers, **gone)),
        replace(n4, link=link4, memory=unread(), gpus=unread(), containers=unread(), facts=unread(), drift=None,
                history=()),
    )  # fmt: skip
    view = base.lanes[0]
    lost_here = {name: replace(getattr(view, name), **gone) for name in ("download", "rows", "next_rows", "watchdog")}
    return replace(base, hosts=hosts, lanes=(replace(view, **lost_here),))


def nothing_read() -> Snapshot:
    """The first picture after the start: nothing is known."""
    fleet = parse(SPARK4)
    connecting = LinkState(LinkStatus.CONNECTING, NOW, "", "", 1)
    hosts = tuple(
        HostView(name, connecting, unread(), unread(interval=5.0), unread(), unread(interval=5.0), None, False)
        for name in fleet.hosts
    )
    ranks = tuple(RankView(i, name, None, "unknown", "") for i, name in enumerate(fleet.hosts))
    view = LaneView(
        "dsv41", fleet.lanes["dsv41"], unread(interval=10.0), unread(), unread(interval=10.0), Lights(),
        LaneVerdict(LaneState.UNKNOWN, "nothing was read yet"), NOW, ranks,
        download=unread("look", 5.0), rows=unread("look", 5.0), next_rows=unread("look", 5.0),
        watchdog=unread("look", 5.0),
    )  # fmt: skip
    return Snapshot(0, NOW, WALL, fleet, False, hosts, (view,))


def stalled() -> Snapshot:
    """/health answers 200, work is present, and nothing moves."""
    base = spark4()
    before = base.lanes[0]
    lights = replace(LIGHTS, progress=ProgressLight(Progress.FROZEN, 184_302.0, 41.0, 0.0, 0.0, 3, 2))
    hung = replace(
        before,
        lights=lights,
        throughput=reading(throughput(0.0, waiting=2, prefill_tps=0.0), 0.3),
        verdict=LaneVerdict(LaneState.STALLED, "3 running, 2 queued, no step for 41 s while /health answers 200"),
        state_since=NOW - 41,
        history=rates(drop_at=41),
        download=reading(upkeep.download(DownloadState.STALLED, warnings=upkeep.WARNINGS[:1]), 0.6, 5.0),
        watchdog=reading(upkeep.CHECKING, 3, 5.0),
        drift=upkeep.DIFFERENT,
    )
    return replace(base, lanes=(hung,))


def neglected() -> Snapshot:
    """The lane serves, and everything that keeps it alive is in a bad way."""
    base = spark4()
    view = replace(
        base.lanes[0],
        download=reading(upkeep.WARNED, 0.6, 5.0),
        rows=reading(upkeep.BAD_ROWS, 0.7, 5.0),
        next_rows=None,
        watchdog=reading(upkeep.GAVE_UP, 3, 5.0),
        drift=upkeep.DIFFERENT,
    )
    return replace(base, lanes=(view,))


def booting() -> Snapshot:
    """The lane loads: in its fifth minute, and the log says in which phase."""
    base = spark4()
    lights = Lights(
        ProcessLight(4, 4, started_at=WALL - 250),
        HttpLight(HttpVerdict.REFUSED, None, None, 41, True),
        ScrapeLight(ScrapeVerdict.REFUSED, "port closed"),
        ProgressLight(Progress.UNKNOWN),
    )
    view = replace(
        base.lanes[0],
        lights=lights,
        health=reading(HttpAnswer(NOW - 0.3, 0.01, Transport.REFUSED), 0.3, 10.0),
        throughput=unread(error="connection refused"),
        verdict=LaneVerdict(LaneState.BOOTING, "the container runs and has not answered since its start"),
        state_since=NOW - 250,
        history=rates(drop_at=250),
        download=reading(upkeep.download(DownloadState.NONE), 0.6, 5.0),
        next_rows=None,
        boot=reading(upkeep.BOOTING, 0.4),
        boot_progress=upkeep.PROGRESS,
    )
    return replace(base, lanes=(view,))


def bare() -> Snapshot:
    """Nothing was configured but hosts and a URL."""
    base = spark4()
    nothing = {name: None for name in kept()} | {"boots": (), "usual_by_running": (), "repos": ()}
    left = ("rows: vars.root is not set", "download: no table `download` in the lane", "watchdog: the recipe has none")
    view = replace(base.lanes[0], **nothing, unfilled=left, pools=())
    return replace(base, lanes=(view,))


def station() -> Snapshot:
    """One Grace host with HBM apart, a serving and a retired container."""
    fleet = parse(STATION)
    year = 12 * 86400 + 300
    serving = container("dsv41-vllm-1017-v21cfg-BOUND-REF", started_at=WALL - year, ports=(30006,),
                        revision="1bae0e1" + "0" * 33)  # fmt: skip
    retired = container("dsv41-vllm-v21-fused-split-RETIRED-REF", ContainerState.EXITED, finished_at=WALL - year,
                        ports=(30006,), revision="df42c10" + "0" * 33)  # fmt: skip
    numa = (
        NumaNode(0, 144, int(480.0 * GIB), int(38.2 * GIB), int(441.8 * GIB), int(301.6 * GIB)),
        NumaNode(1, 0, int(249.8 * GIB), int(7.4 * GIB), int(242.4 * GIB), 0),
    )
    mem = memory(45.6, 340.0, 301.6, total=729.8, numa=numa, mlocked=int(60.0 * GIB), unevictable=int(60.0 * GIB))
    card = gpu(96, 64, 892, 1.92, unified=False, memory_total=int(249.8 * GIB), memory_used=int(242.4 * GIB))
    box = host("station", mem, card, serving, 0.0, 0.5, unified=False)
    box = replace(box, containers=reading(Containers((serving, retired)), 4, 5.0))
    spec = Speculation(Basis.MEASURED, 0.05, 0.26, 1.26, 5.0)
    kv = KvPool(2_180_000, Basis.MEASURED, 0.188, 410_000, None, "kv_cache_size_tokens")
    values = throughput(261.8, running=2, prefix_hit_rate=0.54, kv=kv, speculation=spec, steps=991_240.0, series=388)
    lights = Lights(
        ProcessLight(1, 1, started_at=WALL - year),
        HttpLight(HttpVerdict.OK, 200, 0.002, 0, True),
        ScrapeLight(ScrapeVerdict.OK, "", 388),
        ProgressLight(Progress.MOVING, 991_240.0, None, 261.8, 0.0, 2, 0),
    )
    view = lane(fleet, "station", (box,), throughput=reading(values, 0.3), lights=lights, usual_decode=(240.0, 290.0),
                usual_by_running=((2, 240.0, 290.0, 600),),
                pools=(2_160_000, 2_180_000, 2_170_000, 2_180_000), history=rates(261.8), last_decode=261.8,
                health=reading(HttpAnswer(NOW - 2, 0.002, Transport.ANSWERED, 200), 2, 2.0))  # fmt: skip
    return Snapshot(1, NOW, WALL, fleet, False, (box,), (view,), EVENTS, replace(LOG, host="station"))


PICTURES = {
    "spark4": spark4,
    "station": station,
    "trouble": trouble,
    "unreachable": unreachable,
    "nothing": nothing_read,
    "stalled": stalled,
    "neglected": neglected,
    "booting": booting,
    "bare": bare,
}


def texts(rows: tuple[Row, ...]) -> list[str]:
    """The rows' characters."""
    return [text_of(row) for row in rows]


def ink_at(row: Row, word: str) -> Ink:
    """The ink of the first span that holds the word."""
    return next(span.ink for span in row if word in span.text)
