"""What of a scenario lies on its hosts' disks and runs beside their engines: checkpoints, downloads, watchdogs...

Paths are those of the host; `~/` is the home folder of its one user, `/home/ops`. Sizes and shard names are those of
the published DeepSeek-V4.1-Flash checkpoint: nothing of it is stored, a host's own python3 only says that it is there.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from console.fleet.inventory import Name
from console.fleet.tomlfile import Strict

Seconds = Annotated[float, Field(ge=0)]
Gib = Annotated[float, Field(ge=0, le=16384)]
Share = Annotated[float, Field(ge=0, le=1)]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
HostPath = Annotated[str, Field(pattern=r"^(~?/[^/\x00-\x1f]+)+$", max_length=400)]
"""A plain absolute path, or one below `~/`; no trailing slash."""
Shard = Annotated[int, Field(ge=1, le=48)]
Manager = Literal["user", "system"]
WatchdogWord = Literal[
    "armed",
    "starting",
    "busy",
    "failing",
    "recovery",
    "gave-up",
    "standing-down",
    "stopped",
    "dead",
    "two",
    "reused",
    "paused",
    "off",
    "failed",
    "in-flight",
    "unknown",
]


class RevisionModel(Strict):
    """One snapshot of a checkpoint."""

    revision: Commit
    missing: tuple[Shard, ...] = ()
    """Shards that are not there (yet)."""
    refs: tuple[str, ...] = ()
    """Branches and tags that name it."""
    age_s: Seconds = 4_000_000.0


class CheckpointModel(Strict):
    """One repository folder on the host that holds it, and as other hosts see it through a mount."""

    host: Name
    folder: HostPath
    layout: Literal["hub", "folder"] = "hub"
    """`hub`: blobs, snapshots and refs; `folder`: plain files of the first revision."""
    store: str = ""
    """A blob store outside of `folder` to which the snapshots' links lead instead of `blobs/`."""
    mount: str = ""
    """Where `mounted_on` see the folder."""
    mounted_on: tuple[Name, ...] = ()
    revisions: tuple[RevisionModel, ...] = Field(min_length=1)
    upstream: str = ""
    """Where the repository's main branch stands; empty: at the last of `revisions`."""


class DownloadModel(Strict):
    """The fetching of a checkpoint's revision on the host that holds it."""

    checkpoint: str
    """Key of [checkpoints]."""
    revision: Commit
    """One of the checkpoint's; its `missing` shards are fetched, in their order."""
    partial: tuple[Share, ...] = (0.0,)
    """How much is there of the first missing shards, which are fetched side by side."""
    mb_s: float = Field(default=61.4, ge=0)
    """Megabytes a second, all partial files together."""
    jitter: Share = 0.06
    old_naming: bool = False
    """Partial files without a random part in their name, which an interrupted download goes on with."""
    unit: str = ""
    manager: Manager = "user"
    cap_gib: Gib = 0.0
    """MemoryMax of the unit; 0: none asked for."""
    in_force: bool = True
    """Whether the kernel enforces it."""
    memory_gib: Gib = 1.9
    memory_to_gib: Gib | None = None
    """Memory grows to this."""
    memory_mib_s: float = Field(default=200.0, ge=0)
    age_s: Seconds = 5_400.0
    pid: int = Field(default=61_204, gt=1)
    running: bool = True


class RowsOn(Strict):
    """What differs on one host."""

    share: Share | None = None
    gib_s: float | None = Field(default=None, ge=0)
    revision: Commit | None = None
    partition: Literal["sglang", "vllm"] | None = None
    slice_of: int | None = Field(default=None, ge=0, le=3)
    """The copy holds the rows of this rank."""
    manifest: bool | None = None
    starts_at: Seconds | None = None


class RowsModel(Strict):
    """Engram row copies of one revision, one on each of `hosts`."""

    lane: Name
    hosts: tuple[Name, ...] = Field(min_length=1)
    folder: HostPath
    revision: Commit
    source: str
    """The checkpoint's folder as the copying tool was told; `/snapshots/REVISION` is added."""
    partition: Literal["sglang", "vllm"] = "sglang"
    """Whose split of the tables: `N*r//4`, or whole hash heads."""
    form: Literal["local", "slice"] = "local"
    """Which of the two published forms the manifest has."""
    share: Share = 1.0
    """Of its bytes; below 1 and with `gib_s` it is being copied, 0 without: nothing is there."""
    gib_s: float = Field(default=0.0, ge=0)
    manifest: bool | None = None
    """Whether there is one; none: once all is there."""
    starts_at: Seconds | None = None
    """When copying begins; none: it already has."""
    age_s: Seconds = 3_000_000.0
    on: dict[Name, RowsOn] = Field(default_factory=dict)


class WatchdogModel(Strict):
    """What a lane's watchdog leaves on its host."""

    kind: Literal["log", "systemd"] = "log"
    host: Name
    state: WatchdogWord = "armed"
    every: Seconds = 60.0
    """Seconds between its checks, as its log says."""
    age_s: Seconds = 273_200.0
    """Since it was started, or since its flag was set."""
    acted_s: Seconds | None = None
    """A recovery so long ago stands in its log; none: no recovery."""
    attempt: int = Field(default=1, ge=1, le=3)
    """Of the failing checks, or of the recoveries."""
    pid: int = Field(default=48_211, gt=1)
    command: str = "bash launch/watchdog.sh"
    log: HostPath = "~/sgl-watchdog.log"
    lock: HostPath = "~/.sgl-watchdog.lock"
    logs: HostPath = "~/sgl-dsv41-logs"
    """Where it keeps evidence."""
    site: str = "fleet.env"
    """The site file that its log names."""
    port: int = Field(default=8210, gt=0, le=65535)
    unit: str = "dsv41-fleet.service"
    manager: Manager = "system"
    pause_flag: HostPath = "/var/tmp/dsv41-watchdog.pause"  # noqa: S108
    gaveup_flag: HostPath = "/var/tmp/dsv41-watchdog.gaveup"  # noqa: S108


class BootModel(Strict):
    """An earlier boot of a lane, as the console would have kept it."""

    age_s: Seconds
    """Since its start."""
    total_s: Seconds
    kv_tokens: int | None = None
    revision: str = ""
    free_gib: Gib | None = None
    """Lowest free memory of the ranks when it began."""
    phases: dict[str, Seconds] = Field(default_factory=dict)
    """Seconds by phase, in order."""


class FileModel(Strict):
    """A text file on each of `hosts`."""

    hosts: tuple[Name, ...] = Field(min_length=1)
    path: HostPath
    text: str = ""
    age_s: Seconds = 3_000_000.0


class ProcessModel(Strict):
    """A process on each of `hosts`, as /proc shows it."""

    hosts: tuple[Name, ...] = Field(min_length=1)
    pid: int = Field(gt=1)
    command: tuple[str, ...] = Field(min_length=1)
    age_s: Seconds = 1_000_000.0


class UnitModel(Strict):
    """A systemd unit on each of `hosts`, as `systemctl show` prints it."""

    hosts: tuple[Name, ...] = Field(min_length=1)
    name: str
    manager: Manager = "system"
    active: str = "active"
    sub: str = "running"
    result: str = "success"
    description: str = ""
    main_pid: int = 0
    age_s: Seconds = 1_000_000.0
    properties: dict[str, str] = Field(default_factory=dict)
    """Further ones, by their own names."""


class FrontModel(Strict):
    """A proxy in front of a lane's engine: what it does not answer itself, the engine answers."""

    lane: Name
    host: Name
    port: int = Field(gt=0, le=65535)


class LeaseModel(Strict):
    """Another operator holds a lane, and keeps it until it is taken over."""

    operator: str
    console: str = "ben@station 4711"
    purpose: str = "stop"
    age_s: Seconds = 240.0
    """Since it was taken."""
    renewed_s: Seconds = 4.0
    """Since it was renewed."""
    ttl: Seconds = 60.0
    keeps: bool = True
    """Whether it is renewed every 10 s; else it runs out."""
    epoch: int = Field(default=7, ge=1)
