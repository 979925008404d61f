"""What keeps a lane alive, as the pictures show it: downloads, row copies, watchdogs, boots, drift. Mock values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from console.fleet.sitefile import Assignment, Site, SiteFile, SiteKind
from console.readings.boot import Boot, BootFailure, BootProgress, BootRecord, Phase, PhaseName
from console.readings.download import Clocks, Download, DownloadState
from console.readings.drift import Difference, Drift
from console.readings.hubcache import HubRepo, Partial, SnapshotFiles
from console.readings.rows import LayerTiling, RowCopies, RowCopy, RowManifest, RowRange, RowState, Tiling
from console.readings.units import UnitMemory
from console.readings.watchdog import Watchdog, WatchdogState

GIB = 2**30
WALL = 1_795_989_310.0
"""2026-11-29 21:55:10 UTC."""
SERVING = "9f2c1a7" + "0" * 33
NEXT = "1bae0e1" + "0" * 33
REPO = "/srv/hub/models--deepseek-ai--DeepSeek-V4.1"
TOTAL = 510_313_353_565

CAP = UnitMemory(int(1.9 * GIB), int(3.1 * GIB), 4 * GIB, 4 * GIB, True, "", 0)
NO_CAP = UnitMemory(int(11.4 * GIB), None, 4 * GIB, None, False, "the memory controller is not delegated", None)


def partial(number: int = 45, present: float = 7.2e9, **extra: Any) -> Partial:
    """A shard that is half there."""
    etag = f"{number:02x}" * 20
    values: dict[str, Any] = {"mtime": WALL - 1, "resumable": False, "orphan": False}
    return Partial(f"blobs/{etag}.1a2b3c4d.incomplete", etag, 10_631_528_199, int(present), **{**values, **extra})


def download(state: DownloadState = DownloadState.RUNNING, **extra: Any) -> Download:
    """44 of 48 shards, 61.4 MB/s; what a state takes away is taken away."""
    values: dict[str, Any] = {
        "why": "",
        "revision": NEXT,
        "host": "n4",
        "repo": REPO,
        "done": 467_300_000_000,
        "expected": TOTAL,
        "shards_done": 44,
        "shards_total": 48,
        "files_done": 63,
        "files_total": 67,
        "rate": 61.4e6,
        "window": 60.0,
        "stalled_for": 0.4,
        "eta": 695.0,
        "clocks": Clocks(61.4e6, 62.0e6, 0.1e6),
        "current": partial(),
        "partials": 2,
        "memory": CAP,
        "processes": 1,
    }
    return Download(state, **{**values, **_OF_STATE.get(state, {}), **extra})


_STILL = {"rate": 0.0, "eta": None, "clocks": Clocks(0.0, 0.0, 0.0)}
_OF_STATE: dict[DownloadState, dict[str, Any]] = {
    DownloadState.NONE: {"revision": "", "done": None, "rate": None, "eta": None, "clocks": None, "current": None,
                         "partials": 0, "memory": None, "processes": 0, "shards_done": None},
    DownloadState.WAITING: {**_STILL, "stalled_for": 21.0, "clocks": Clocks(0.0, 58.2e6, 31.0e6)},
    DownloadState.STALLED: {**_STILL, "stalled_for": 250.0},
    DownloadState.COMPLETE: {**_STILL, "done": TOTAL, "shards_done": 48, "files_done": 67, "current": None,
                             "partials": 0, "memory": None, "processes": 0},
    DownloadState.INCOMPLETE: {**_STILL, "why": "4 shards are missing and nobody fetches them", "memory": None,
                               "processes": 0, "current": None},
    DownloadState.FAILED_CAP: {**_STILL, "why": "the kernel ended it at 4.0 GiB, 3 times", "processes": 0,
                               "memory": UnitMemory(None, 4 * GIB, 4 * GIB, 4 * GIB, True, "", 3)},
    DownloadState.FAILED: {**_STILL, "why": "its unit ended with exit-code 1", "memory": None, "processes": 0},
    DownloadState.UNKNOWN: {"why": "the folder could not be listed: no permission", "done": None, "shards_done": None,
                            "rate": None, "eta": None, "clocks": None, "current": None, "memory": None,
                            "processes": None},
}  # fmt: skip

WARNINGS = (
    "hf cache prune would delete the snapshot that serves: no ref names 9f2c1a7",
    "two downloaders work on this repository",
    "main stands at 77aa001, what is fetched is 1bae0e1",
)
WARNED = download(
    warnings=WARNINGS, processes=2, memory=NO_CAP, upstream="77aa001" + "0" * 33,
    orphans=(partial(46, 4.3e9, orphan=True), partial(47, 1.4e9, orphan=True)),
)  # fmt: skip
NO_LIST = download(expected=None, eta=None, shards_total=None, files_total=None)


OLD = "c0ffee1" + "0" * 33


def repo() -> HubRepo:
    """The serving revision, an older one that is whole, and the one that is being fetched."""
    whole = tuple(
        SnapshotFiles(revision, 67, 67, (), (), TOTAL, 48, 48, {}, refs)
        for revision, refs in ((SERVING, ()), (OLD, ("main",)))
    )
    coming = SnapshotFiles(NEXT, 63, 63, (), (), 467_300_000_000, 44, 48)
    return HubRepo(REPO, (*whole, coming), (partial(),), {"main": OLD}, 2 * TOTAL, (SERVING, NEXT), 800 * 10**9, "ext4")


def site() -> Site:
    """A site file that names the serving revision."""
    text = f"SNAP={SERVING}\nENGRAM_LOCAL_DIR=/srv/engram\n"
    lines = tuple(
        Assignment(key, (value,), False, at) for at, (key, _, value) in
        enumerate((line.partition("=") for line in text.splitlines()), 1)
    )  # fmt: skip
    return Site(
        "/srv/sglang/fleet.env", SiteFile(SiteKind.BASH, lines), SERVING, {"rows": ("/srv/engram",)}, WALL - 9e5
    )


def manifest(rank: int, revision: str = NEXT, **extra: Any) -> RowManifest:
    """A quarter of two tables."""
    each = 96_001_542
    ranges = tuple(RowRange(layer, rank * each, (rank + 1) * each) for layer in (1, 14))
    return RowManifest(ranges, "local", f"/srv/hub/snapshots/{revision}", revision, **extra)


SIZE = manifest(0).bytes


def copy(rank: int, state: RowState = RowState.READY, words: str = "", share: float = 1.0, **extra: Any) -> RowCopy:
    """One rank's copy, `share` of it there."""
    whole = state is not RowState.COPYING and state is not RowState.WAITS
    values: dict[str, Any] = {
        "path": "/srv/engram-next",
        "manifest": manifest(rank) if whole else None,
        "present": int(SIZE * share),
        "expected": SIZE,
        "free": int(60 * GIB),
    }
    return RowCopy(rank, f"n{rank + 1}", state=state, words=words or state.value, **{**values, **extra})


ROWS = 384_006_168
TILES = Tiling((LayerTiling(1, ROWS), LayerTiling(14, ROWS)), "N*r//tp (SGLang)", True, "all ranges tile")
GAP = Tiling(
    (LayerTiling(1, ROWS, ("gap [96000564, 96001542) between rank 0 and rank 1",)), LayerTiling(14, ROWS)),
    "mixed", False, "layer 1 has a gap between rank 0 and rank 1",
    {0: "whole hash heads (vLLM)", 1: "N*r//tp (SGLang)", 2: "N*r//tp (SGLang)", 3: "N*r//tp (SGLang)"},
)  # fmt: skip

SERVING_ROWS = RowCopies(SERVING, tuple(copy(rank, manifest=manifest(rank, SERVING)) for rank in range(4)), TILES)
NEXT_ROWS = RowCopies(
    NEXT,
    (
        copy(0, RowState.COPYING, "copying, no manifest", 0.65, rate=0.53 * GIB, left=31.0),
        copy(1, RowState.COPYING, "copying, no manifest", 0.27, rate=0.55 * GIB, left=64.0),
        copy(2, RowState.NO_ROOM, "no room: 47.2 GiB wanted, 12.4 free", 0.0, manifest=None, free=int(12.4 * GIB)),
        copy(3, RowState.WAITS, "waits", 0.0),
    ),
    Tiling((), "", None, "ranges of 4 ranks are not known"),
    True,
)
BAD_ROWS = RowCopies(
    SERVING,
    (
        copy(0, RowState.OLD_REVISION, "old revision df42c10, rebuild"),
        copy(1, RowState.HOLES, "holes: 31.0 of 47.2 GiB there", 0.65),
        copy(2, RowState.WRONG_RANK, "another rank's slice: its manifest says rank 1"),
        copy(3, RowState.UNKNOWN, "the folder could not be listed: no permission", manifest=None, present=None),
    ),
    GAP,
)

ARMED = Watchdog(
    WatchdogState.ARMED, "armed", True, "log", "n1", 4711, True, WALL - 3 * 86400, "relaunched after 3 failed checks",
    WALL - 9 * 86400, None, 10.0, 1, ("docker restart=unless-stopped on 4 ranks",),
)  # fmt: skip
GAVE_UP = replace(
    ARMED, state=WatchdogState.GAVE_UP, words="gave up, not protecting: 3 relaunches in 1 h did not help",
    protecting=False, since=WALL - 372, last_act="relaunched, lane was not healthy after 25 min",
    last_act_at=WALL - 372, attempt=(3, 3), pid=None,
    competing=("docker restart=always on n2", "autoheal container on n1", "timer glm-watchdog.timer fires in 41 s"),
)  # fmt: skip
CHECKING = replace(
    ARMED, state=WatchdogState.CHECKING, words="check failed 2 of 3: no answer in 10 s", attempt=(2, 3), since=WALL - 20
)
BLIND = Watchdog(WatchdogState.UNKNOWN, "unknown: no user bus", None, "systemd", "n1", competing=())

EQUAL = Drift(
    (), ("image id", "arguments", "environment", "mounts", "driver", "clock", "snapshot", "row copy", "GPU clock")
)
DIFFERENT = Drift(
    (
        Difference("snapshot", (("n1", "48 of 48"), ("n2", "48 of 48"), ("n3", "not mounted"), ("n4", "48 of 48")),
                   ("n3",), "act", "the next boot there fails after minutes"),
        Difference("driver", (("n1", "580.95"), ("n2", "580.95"), ("n3", "580.95"), ("n4", "580.82")), ("n4",), "look",
                   "kernels are built for another driver: it may pace the others"),
        Difference("environment NCCL_IB_HCA", (("n1", "mlx5_0"), ("n2", "mlx5_0"), ("n3", "mlx5_1"), ("n4", "mlx5_1")),
                   ("n1", "n2", "n3", "n4"), "look", "collectives hang at the first step"),
        Difference("kernel", (("n1", "6.11"), ("n2", "6.11"), ("n3", "6.11"), ("n4", "6.14")), ("n4",), "info",
                   "nothing by itself"),
    ),
    ("image id", "arguments", "mounts"),
    (("n2", "GPU clock"),),
)  # fmt: skip

_PHASES = (("start", 11.0), ("weights", 60.0), ("post-process", 330.0), ("draft weights", 60.0), ("KV pool", 12.0),
           ("autotune", 24.0), ("graphs", 41.0), ("http up", 12.0), ("ready", 25.0))  # fmt: skip


def boot_record(days: float, total: float, kv: int) -> BootRecord:
    """One earlier boot, its phases stretched to its total."""
    known = sum(took for _, took in _PHASES)
    phases = tuple((name, took * total / known) for name, took in _PHASES)
    return BootRecord(WALL - days * 86400, total, phases, kv, SERVING)


BOOTS = (
    boot_record(11.2, 603.0, 5_160_000),
    boot_record(11.0, 577.0, 5_400_000),
    boot_record(2.3, 585.0, 5_880_000),
    BootRecord(WALL - 3 * 86400 - 4 * 3600 - 60, 575.0, _PHASES, 6_040_000, SERVING),
)


def boot(upto: PhaseName, began: float, **extra: Any) -> Boot:
    """A start that is in the phase `upto`; its other phases took what they take."""
    phases, at = [], began
    for name, took in _PHASES:
        running = name == upto.value
        phases.append(Phase(PhaseName(name), at, None if running else at + took))
        at += took
        if running:
            break
    values: dict[str, Any] = {"engine": "sglang", "now": upto, "began": began, "lines": 400, "newest": WALL - 1}
    return Boot(phases=tuple(phases), **{**values, **extra})


BOOTING = boot(PhaseName.POST_PROCESS, WALL - 250)
PROGRESS = BootProgress(250.0, (575.0, 603.0), 581.0, PhaseName.POST_PROCESS, 179.0, 330.0, 331.0, False, BOOTS)
FAILURE = BootFailure(
    "row ranges of layer 1 do not tile",
    "engram layer 1: the TP ranks' row ranges do not tile [0, 384006168) exactly",
    False,
    "rebuild the odd copy before the next launch",
)
FAILED_BOOT = boot(PhaseName.POST_PROCESS, WALL - 250, failure=FAILURE, missing=("overlay hooks",))
