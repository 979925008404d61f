"""What may befall an embedded fleet: the kinds of [[faults]], and how each is undone."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter

from console.fleet.inventory import Name
from console.fleet.tomlfile import Strict
from console.rehearsal.engine import FAULTS
from console.rehearsal.stage import Commit, Gib, HostPath, Seconds, Shard, WatchdogWord

UNDOING = {
    "exit": "start",
    "start": "exit",
    "stop": "start",
    "remove": "create",
    "create": "remove",
    "hang": "heed",
    "heed": "hang",
}


class _Timed(Strict):
    at: Seconds = 0.0
    until: Seconds | None = None
    after: str = Field(default="", max_length=100)
    """A step's name, `*` allowed: `at` and `until` count from when such a step begins for the first time."""

    def undone(self) -> Self:
        """What ends it; times are of no more use there."""
        return self._with(**self._ending())

    def _with(self, **fields: object) -> Self:
        return self.model_copy(update={"at": 0.0, "until": None, "after": "", **fields})

    def _ending(self) -> dict[str, object]:
        raise NotImplementedError


class HostFault(_Timed):
    """A host: `silent` swallows every packet (power, cable), `refused` resets and refuses, `open` is well again."""

    kind: Literal["host"]
    host: Name
    mode: Literal["silent", "refused", "open"] = "silent"

    def _ending(self) -> dict[str, object]:
        return {"mode": "open"}


class EngineFault(_Timed):
    """One of the engine's own faults, on the lane's head."""

    kind: Literal["engine"]
    lane: Name
    fault: Literal[FAULTS]  # type: ignore[valid-type]
    seconds: Seconds = 3.0

    def _ending(self) -> dict[str, object]:
        return {"fault": "none"}


class ContainerFault(_Timed):
    """A container dies (`exit`), is stopped through Docker by somebody (`stop`), is started again (`start`, boots
    anew), is removed or comes to be; from `hang` on it does not heed a request to end, from `heed` on it does."""

    kind: Literal["container"]
    host: Name
    name: str
    action: Literal["exit", "stop", "start", "remove", "create", "hang", "heed"] = "exit"
    code: int = Field(default=137, ge=0, le=255)
    oom: bool = False

    def _ending(self) -> dict[str, object]:
        return {"action": UNDOING[self.action]}


class MemoryFault(_Timed):
    """A host's free memory and page cache move to these figures in `over` seconds; without figures: back to normal."""

    kind: Literal["memory"]
    host: Name
    free_gib: Gib | None = None
    cached_gib: Gib | None = None
    over: Seconds = 20.0

    def _ending(self) -> dict[str, object]:
        return {"free_gib": None, "cached_gib": None}


class DownloadFault(_Timed):
    """What befalls a download."""

    kind: Literal["download"]
    name: str
    what: Literal["stall", "buffer", "oom", "kill", "resume", "go", "done", "second"] = "stall"

    def _ending(self) -> dict[str, object]:
        return {"what": "resume" if self.what in ("oom", "kill") else "go"}


class RowsFault(_Timed):
    """What befalls one host's row copy."""

    kind: Literal["rows"]
    name: str
    host: Name
    what: Literal["stop", "go", "holes", "done", "rebuild", "gone"] = "stop"

    def _ending(self) -> dict[str, object]:
        return {"what": "done" if self.what in ("holes", "gone") else "go"}


class WatchdogFault(_Timed):
    """A lane's watchdog comes to be in this state."""

    kind: Literal["watchdog"]
    lane: Name
    state: WatchdogWord
    attempt: int = Field(default=1, ge=1, le=3)

    def _ending(self) -> dict[str, object]:
        return {"state": "armed", "attempt": 1}


class SnapshotFault(_Timed):
    """A checkpoint as one host sees it: a shard's blob is gone, the mount is gone or hangs, or all is back."""

    kind: Literal["snapshot"]
    checkpoint: str
    host: Name
    what: Literal["dangle", "unmount", "hang", "back"] = "dangle"
    revision: Commit | None = None
    shard: Shard = 1

    def _ending(self) -> dict[str, object]:
        return {"what": "back"}


class FileFault(_Timed):
    """A text file changes: `old` in it becomes `new`, or it is removed; `back` is as it was."""

    kind: Literal["file"]
    host: Name
    path: HostPath
    what: Literal["replace", "remove", "back"] = "replace"
    old: str = ""
    new: str = ""

    def _ending(self) -> dict[str, object]:
        return {"what": "back"}


class ImageFault(_Timed):
    """An image's tag comes to mean another image: running containers keep theirs, without a name. Or it is removed:
    then nothing can be started from it."""

    kind: Literal["image"]
    host: Name
    image: str
    what: Literal["move", "remove", "back"] = "move"

    def _ending(self) -> dict[str, object]:
        return {"what": "back"}


class ClockFault(_Timed):
    """A host's wall clock is so many seconds ahead."""

    kind: Literal["clock"]
    host: Name
    seconds: float = Field(default=0.0, ge=-1e7, le=1e7)

    def _ending(self) -> dict[str, object]:
        return {"seconds": 0.0}


class GpuFault(_Timed):
    """A GPU whose clock is stuck low while it works; without `mhz`: well again."""

    kind: Literal["gpu"]
    host: Name
    index: int = Field(default=0, ge=0)
    mhz: float | None = Field(default=None, gt=0)
    watts: float = Field(default=20.0, ge=0)

    def _ending(self) -> dict[str, object]:
        return {"mhz": None}


class DiskFault(_Timed):
    """A host's disk has so much room; without `free_gib`: as before."""

    kind: Literal["disk"]
    host: Name
    free_gib: Gib | None = None

    def _ending(self) -> dict[str, object]:
        return {"free_gib": None}


class RebootFault(_Timed):
    """A host restarts: connections are reset, everything on it ends, and after `seconds` it answers again."""

    kind: Literal["reboot"]
    host: Name
    seconds: Seconds = 60.0
    mounts: bool = True
    """Whether its mounts come back by themselves."""

    def _ending(self) -> dict[str, object]:
        return {"seconds": 0.0}


class UpstreamFault(_Timed):
    """The main branch of a checkpoint's repository moves; without `revision`: back."""

    kind: Literal["upstream"]
    checkpoint: str
    revision: Commit | None = None

    def _ending(self) -> dict[str, object]:
        return {"revision": None}


class FrontFault(_Timed):
    """The proxy in front of a lane: `refused` does not listen, `502` answers that the engine is gone."""

    kind: Literal["front"]
    name: str
    what: Literal["refused", "502", "well"] = "refused"

    def _ending(self) -> dict[str, object]:
        return {"what": "well"}


class PortFault(_Timed):
    """A foreign program listens on a port of a host, or no longer."""

    kind: Literal["port"]
    host: Name
    port: int = Field(gt=0, le=65535)
    taken: bool = True

    def _ending(self) -> dict[str, object]:
        return {"taken": False}


class FolderFault(_Timed):
    """A folder of a host is put away, another one with files of the same names stands in its place; or it is back."""

    kind: Literal["folder"]
    host: Name
    path: HostPath
    what: Literal["other", "back"] = "other"

    def _ending(self) -> dict[str, object]:
        return {"what": "back"}


class LaunchFault(_Timed):
    """A lane's own launcher is run by somebody else: by an operator at the head, or by the watchdog in recovery."""

    kind: Literal["launch"]
    lane: Name
    by: Literal["operator", "watchdog"] = "operator"

    def _ending(self) -> dict[str, object]:
        return {}


Fault = Annotated[
    HostFault
    | EngineFault
    | ContainerFault
    | MemoryFault
    | DownloadFault
    | RowsFault
    | WatchdogFault
    | SnapshotFault
    | FileFault
    | ImageFault
    | ClockFault
    | GpuFault
    | DiskFault
    | RebootFault
    | UpstreamFault
    | FrontFault
    | PortFault
    | FolderFault
    | LaunchFault,
    Field(discriminator="kind"),
]
FAULT: TypeAdapter[Fault] = TypeAdapter(Fault)


def undone(fault: Fault) -> Fault:
    """What ends `fault`."""
    return fault.undone()
