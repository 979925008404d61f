"""A played download: partial files that grow, links that appear, a downloader with memory, a unit and a cap."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass

from console.rehearsal.hosts import PlayedHost
from console.rehearsal.hub import Checkpoint, HubFile, files_of
from console.rehearsal.processes import cgroup_of
from console.rehearsal.stage import DownloadModel

GIB, MIB, MB = 1 << 30, 1 << 20, 1_000_000
BUFFERED_MB_S = 22.0
"""Megabytes a second that come in while none is written."""


@dataclass(slots=True)
class _Part:
    """One shard that is being fetched. Bytes."""

    file: HubFile
    there: float
    name: str


class PlayedDownload:
    """Steps in real seconds: what the console measures is what the scenario says."""

    def __init__(self, model: DownloadModel, checkpoint: Checkpoint, host: PlayedHost) -> None:
        self.model, self.checkpoint, self.host = model, checkpoint, host
        self.revision = checkpoint.revision(model.revision)
        shards = {file.shard: file for file in files_of(model.revision)}
        self._waiting = [shards[number] for number in self.revision.missing]
        self._parts: list[_Part] = []
        self._workers = max(1, len(model.partial))
        self._pid, self._runs = model.pid, 0
        self._mode = "go"
        self._killed = 0
        self._read = 0.0
        self._age = 0.0
        self._peak = 0.0
        self._since = 0.0
        self.running = False
        self.memory = 0.0
        """Bytes that the downloader holds."""
        self.written = 0.0
        """Bytes that it has written since the rehearsal began."""

    def install(self) -> None:
        """What is there at the start."""
        for share in self.model.partial:
            if self._waiting:
                self._begin(share)
        self._show(self.host.wall)
        if self.model.running:
            self._run(self.host.wall - self.model.age_s)

    def step(self, seconds: float) -> None:
        """`seconds` later."""
        if not self.running:
            return
        self._age += seconds
        self._grow_memory(seconds)
        if not self.running:
            return
        sway = 1 + self.model.jitter * math.sin(self._age / 5.3) * math.cos(self._age / 1.9)
        if self._mode == "go":
            self._fetch(self.model.mb_s * MB * sway * seconds)
        elif self._mode == "buffer":
            self._read += BUFFERED_MB_S * MB * seconds
        self.host.processes.transferred(self._pid, int(self._read), int(self.written))
        self._put_unit()

    @property
    def received(self) -> int:
        """Bytes that came in by the network since the rehearsal began."""
        return int(self._read)

    def befall(self, what: str) -> None:
        """One of `DownloadFault.what`."""
        if what in ("stall", "buffer", "go"):
            self._mode = what
            self.host.processes.end(self._second)
        elif what == "oom":
            self._oom()
        elif what == "kill":
            self._end()
        elif what == "second":
            self.host.processes.start(self._second, self._command(), self.host.wall)
        elif what == "resume" and not self.running:
            self._resume()
        elif what == "done":
            self._fetch(float(sum(part.file.size for part in self._parts) + sum(f.size for f in self._waiting)))

    @property
    def _second(self) -> int:
        return self.model.pid + 7

    def _begin(self, share: float) -> None:
        file = self._waiting.pop(0)
        suffix = "" if self.model.old_naming else f".{secrets.token_hex(4)}"
        self._parts.append(_Part(file, share * file.size, f"{file.etag}{suffix}.incomplete"))

    def _fetch(self, amount: float) -> None:
        """So many more bytes, shared by the parts; a shard that is whole gets its link."""
        self.written += amount
        self._read += amount
        while amount > 0 and self._parts:
            each = amount / len(self._parts)
            amount = 0.0
            for part in tuple(self._parts):
                part.there += each
                if part.there >= part.file.size:
                    amount += part.there - part.file.size
                    self._parts.remove(part)
                    self.checkpoint.drop(part.name)
                    self.checkpoint.add(self.revision, part.file, self.host.wall)
                    if self._waiting:
                        self._begin(0.0)
        self.written -= amount
        self._show(self.host.wall)
        if not self._parts:
            self._end()

    def _show(self, wall: float) -> None:
        """Partial files have their whole size at once and fill by and by, as xet writes them."""
        for part in self._parts:
            self.checkpoint.partial(part.name, part.file.size, int(part.there) // 4096 * 4096, wall)

    def _grow_memory(self, seconds: float) -> None:
        wanted = self.model.memory_to_gib if self.model.memory_to_gib is not None else self.model.memory_gib
        target = wanted * GIB * (1 + 0.02 * math.sin(self._age / 3.1))
        if self._mode == "stall":
            return
        step = self.model.memory_mib_s * MIB * seconds
        self.memory += max(-step, min(step, target - self.memory))
        if self.model.cap_gib and self.model.in_force and self.memory >= self.model.cap_gib * GIB:
            self._oom()

    def _oom(self) -> None:
        if self.running:
            self._killed += 1
            self.memory = self.model.cap_gib * GIB
            self._end(failed=True)

    def _run(self, started: float) -> None:
        self.running, self._runs = True, self._runs + 1
        self._pid = self.model.pid + 100 * (self._runs - 1)
        self.memory = self.model.memory_gib * GIB
        self._mode = "go"
        self.host.processes.start(self._pid, self._command(), started)
        self._put_unit(started)

    def _resume(self) -> None:
        """A new downloader: under old names it goes on, else it begins each shard anew and the old parts are left."""
        if not self.model.old_naming:
            parts, self._parts = self._parts, []
            self._waiting = [part.file for part in parts] + self._waiting
            for _ in range(min(self._workers, len(self._waiting))):
                self._begin(0.0)
        self._run(self.host.wall)

    def _end(self, *, failed: bool = False) -> None:
        self.running = False
        self.host.processes.end(self._pid)
        self.host.processes.end(self._second)
        if self.model.unit and failed:
            self._put_unit(failed=True)
        elif self.model.unit:  # a transient unit that ended well, or was stopped, is forgotten
            self.host.units.forget(self.model.manager, self.model.unit)
            self.host.files.remove(self._cgroup)
        self.memory = 0.0

    @property
    def _cgroup(self) -> str:
        return "/sys/fs/cgroup" + cgroup_of(self.model.manager, self.model.unit)

    def _command(self) -> list[str]:
        tool = ["/home/ops/.local/share/uv/tools/huggingface-hub/bin/python", "/home/ops/.local/bin/hf", "download"]
        return [*tool, self.checkpoint.name, "--revision", self.model.revision, "--max-workers", str(self._workers)]

    def _put_unit(self, started: float | None = None, *, failed: bool = False) -> None:
        model = self.model
        if not model.unit:
            return
        cap, enforced = int(model.cap_gib * GIB), model.cap_gib > 0 and model.in_force
        since = self.host.wall if failed else started if started is not None else self._since
        self._since = since
        current, peak = str(int(self.memory)), str(int(max(self.memory, self._peak)))
        properties = {
            "Description": " ".join(self._command()[1:]),
            "ActiveState": "failed" if failed else "active",
            "SubState": "failed" if failed else "running",
            "Result": "oom-kill" if failed else "success",
            "MainPID": "0" if failed else str(self._pid),
            "ExecMainCode": "2" if failed else "0",
            "ExecMainStatus": "9" if failed else "0",
            "MemoryCurrent": current if enforced and not failed else "[not set]",
            "MemoryPeak": peak if enforced else "[not set]",
            "MemoryMax": str(cap) if cap else "infinity",
            "MemorySwapMax": "0" if cap else "infinity",
            "ControlGroup": "" if failed else cgroup_of(model.manager, model.unit),
        }
        times = {"StateChangeTimestamp": since, "ActiveEnterTimestamp": since, "ExecMainStartTimestamp": since}
        self.host.units.put(model.manager, model.unit, properties, times)
        if failed:
            self.host.files.remove(self._cgroup)
            return
        self._peak = float(peak)
        self._put_cgroup(cap, enforced, current, peak)

    def _put_cgroup(self, cap: int, enforced: bool, current: str, peak: str) -> None:
        files = {"cgroup.controllers": "cpu pids", "cgroup.procs": str(self._pid)}
        if enforced or not self.model.cap_gib:
            files |= {
                "cgroup.controllers": "cpuset cpu io memory pids",
                "memory.current": current,
                "memory.peak": peak,
                "memory.max": str(cap) if cap else "max",
                "memory.swap.max": "0" if cap else "max",
                "memory.events": f"low 0\nhigh 0\nmax 41\noom {self._killed}\noom_kill {self._killed}",
            }
        for name, text in files.items():
            self.host.files.text(f"{self._cgroup}/{name}", text + "\n")
