"""What is played beside machines and containers: disks, checkpoints, downloads, row copies, watchdogs, their faults."""

from __future__ import annotations

import time
from collections.abc import Mapping

from console.rehearsal.faults import (
    DiskFault,
    DownloadFault,
    Fault,
    FileFault,
    RowsFault,
    SnapshotFault,
    UpstreamFault,
    WatchdogFault,
)
from console.rehearsal.fetching import PlayedDownload
from console.rehearsal.files import host_path
from console.rehearsal.hosts import PlayedHost
from console.rehearsal.hub import Checkpoint
from console.rehearsal.rowcopies import PlayedCopy
from console.rehearsal.scenario import Scenario
from console.rehearsal.watching import PlayedWatchdog, played_watchdog

GIB = 1 << 30
IDLE_B_S = 1_500
"""Bytes a second that a host receives for nothing in particular."""
NET_HEAD = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
"""


class World:
    """Everything that lies on the hosts' disks and runs beside their engines."""

    def __init__(self, scenario: Scenario, hosts: Mapping[str, PlayedHost]) -> None:
        self.hosts, now = hosts, time.time()
        files = {name: host.files for name, host in hosts.items()}
        self._scenario = scenario
        self._stepped = time.monotonic()
        self._free: dict[str, float] = {}
        """GiB by host, where a fault says so."""
        self._texts: dict[tuple[str, str], str] = {}
        self.checkpoints = {name: Checkpoint(model, files, now) for name, model in scenario.checkpoints.items()}
        self.downloads = {
            name: PlayedDownload(model, self.checkpoints[model.checkpoint], self._holder(model.checkpoint))
            for name, model in scenario.downloads.items()
        }
        self.copies: dict[tuple[str, str], PlayedCopy] = {}
        for name, rows in scenario.rows.items():
            ranks = scenario.fleet.lanes[rows.lane].rank_hosts
            for host in rows.hosts:
                self.copies[name, host] = PlayedCopy(rows, hosts[host], ranks.index(host), len(ranks))
        self.watchdogs: dict[str, PlayedWatchdog] = {
            lane: played_watchdog(model, hosts[model.host]) for lane, model in scenario.watchdogs.items()
        }

    def install(self) -> None:
        """Everything as it is at the start. Machines must be installed."""
        for host in self.hosts.values():
            host.units.install()
            host.processes.boot(host.machine.booted)
        for entry in self._scenario.files.values():
            for name in entry.hosts:
                self.hosts[name].files.text(entry.path, entry.text, self.hosts[name].wall - entry.age_s)
        for process in self._scenario.processes.values():
            for name in process.hosts:
                host = self.hosts[name]
                host.processes.start(process.pid, process.command, host.wall - process.age_s)
        self._units()
        for checkpoint in self.checkpoints.values():
            checkpoint.install()
        for played in (*self.downloads.values(), *self.copies.values(), *self.watchdogs.values()):
            played.install()
        self._mounts()
        self._disks()

    def _units(self) -> None:
        for unit in self._scenario.units.values():
            for name in unit.hosts:
                since = self.hosts[name].wall - unit.age_s
                properties = {
                    "Description": unit.description or unit.name,
                    "ActiveState": unit.active,
                    "SubState": unit.sub,
                    "Result": unit.result,
                    "MainPID": str(unit.main_pid),
                    **unit.properties,
                }
                times = {"StateChangeTimestamp": since, "ActiveEnterTimestamp": since}
                self.hosts[name].units.put(unit.manager, unit.name, properties, times)

    def step(self, clock: float) -> None:
        """Everything as it is at scenario time `clock`; rates count real seconds."""
        now = time.monotonic()
        seconds, self._stepped = now - self._stepped, now
        for download in self.downloads.values():
            download.step(seconds)
        for copy in self.copies.values():
            copy.step(seconds, clock)
        for watchdog in self.watchdogs.values():
            watchdog.step()
        self._disks()
        self._net()
        for host in self.hosts.values():
            host.files.write()

    def memory_gib(self, host: str) -> float:
        """What downloaders hold there."""
        return sum(item.memory for item in self.downloads.values() if item.host.name == host) / GIB

    def full(self, host: str) -> bool:
        """Whether nothing more can be written on that host's disk."""
        return self._free.get(host, 1.0) <= 0.0

    def free_gib(self, host: str) -> float:
        """Room on that host's disk."""
        machine = self.hosts[host].machine.machine
        return max(0.0, self._free.get(host, machine.disk_free_gib - self._written(host) / GIB))

    def _written(self, host: str) -> float:
        written = sum(item.written for item in self.downloads.values() if item.host.name == host)
        return written + sum(copy.written for (_, there), copy in self.copies.items() if there == host)

    def copy_at(self, host: str, folder: str) -> PlayedCopy | None:
        """The row copy in that folder."""
        wanted = host_path(folder)
        found = (copy for (_, there), copy in self.copies.items() if there == host)
        return next((copy for copy in found if host_path(copy.model.folder) == wanted), None)

    def build(self, host: str, folder: str, revision: str, gib_s: float) -> PlayedCopy:
        """A copy of a revision's rows begins to be built there. Raises KeyError where the host never had one."""
        like = self.copy_at(host, folder) or next(copy for (_, at), copy in self.copies.items() if at == host)
        for key in [key for key, copy in self.copies.items() if copy is self.copy_at(host, folder)]:
            self.copies.pop(key).befall("gone")
        fresh: dict[str, object] = {
            "folder": folder,
            "revision": revision,
            "share": 0.0,
            "gib_s": gib_s,
            "starts_at": None,
        }
        fresh |= {"manifest": None, "on": {}}
        copy = PlayedCopy(like.model.model_copy(update=fresh), self.hosts[host], like.rank, like.ranks)
        self.copies[f"built {folder}", host] = copy
        return copy

    def inject(self, fault: Fault) -> bool:
        """Carry out a fault of this part of the fleet; False for one that is not. Raises ValueError."""
        if isinstance(fault, DownloadFault):
            self.downloads[fault.name].befall(fault.what)
        elif isinstance(fault, RowsFault):
            self.copies[fault.name, fault.host].befall(fault.what)
        elif isinstance(fault, WatchdogFault):
            self.watchdogs[fault.lane].become(fault.state, fault.attempt)
        elif isinstance(fault, SnapshotFault):
            self._snapshot(fault)
        elif isinstance(fault, FileFault):
            self._file(fault)
        elif isinstance(fault, DiskFault):
            self._disk(fault)
        elif isinstance(fault, UpstreamFault):
            checkpoint = self.checkpoints[fault.checkpoint]
            last = checkpoint.model.upstream or checkpoint.model.revisions[-1].revision
            checkpoint.upstream = fault.revision or last
        else:
            return False
        self._mounts()
        self._disks()
        for host in self.hosts.values():
            host.files.write()
        return True

    def host_goes_down(self, name: str) -> None:
        """Whatever runs there ends."""
        for download in self.downloads.values():
            if download.host.name == name and download.running:
                download.befall("kill")
        for (_, host), copy in self.copies.items():
            if host == name:
                copy.stop()
        host_there = self.hosts[name]
        host_there.processes.boot(host_there.wall)

    def host_comes_back(self, name: str, *, mounts: bool) -> None:
        """It has started anew."""
        host = self.hosts[name]
        host.processes.boot(host.machine.booted)
        for watchdog in self.watchdogs.values():
            if watchdog.host is host:
                watchdog.host_restarted()
        for checkpoint in self.checkpoints.values():
            if not mounts and name in checkpoint.model.mounted_on:
                checkpoint.unmount(name)
        self._mounts()
        host.files.write()

    def _snapshot(self, fault: SnapshotFault) -> None:
        checkpoint = self.checkpoints[fault.checkpoint]
        if fault.what == "dangle":
            revision = fault.revision or checkpoint.model.revisions[-1].revision
            checkpoint.dangle(fault.host, revision, fault.shard)
        elif fault.what == "unmount":
            checkpoint.unmount(fault.host)
        elif fault.what == "hang":
            checkpoint.hang(fault.host)
        else:
            checkpoint.put_back(fault.host)

    def _file(self, fault: FileFault) -> None:
        files, key = self.hosts[fault.host].files, (fault.host, fault.path)
        if fault.what == "back":
            if key in self._texts:
                files.text(fault.path, self._texts.pop(key))
            return
        try:
            with open(files.real(fault.path), encoding="utf-8", newline="") as file:
                text = file.read()
        except FileNotFoundError:
            raise ValueError(f"path: no file {fault.path!r} on {fault.host}") from None
        self._texts.setdefault(key, text)
        if fault.what == "remove":
            files.remove(fault.path)
        elif fault.old not in text:
            raise ValueError(f"old: {fault.old!r} does not stand in {fault.path!r} on {fault.host}")
        else:
            files.text(fault.path, text.replace(fault.old, fault.new))

    def _disk(self, fault: DiskFault) -> None:
        if fault.free_gib is None:
            self._free.pop(fault.host, None)
        else:
            self._free[fault.host] = fault.free_gib

    def _holder(self, checkpoint: str) -> PlayedHost:
        return self.hosts[self._scenario.checkpoints[checkpoint].host]

    def _disks(self) -> None:
        """Free space falls as downloads and copies grow; a mount has the room of the disk behind it."""
        room: dict[str, tuple[int, int]] = {}
        for name, host in self.hosts.items():
            room[name] = int(host.machine.machine.disk_gib * GIB), int(self.free_gib(name) * GIB)
            host.files.system("/", *room[name])
        for checkpoint in self.checkpoints.values():
            for name in checkpoint.model.mounted_on:
                if name in checkpoint.mounted:
                    self.hosts[name].files.system(checkpoint.model.mount, *room[checkpoint.model.host])

    def _net(self) -> None:
        """/proc/net/dev: what downloaders fetch comes by the first interface; the engines' own traffic is RDMA."""
        for name, host in self.hosts.items():
            fetched = sum(item.received for item in self.downloads.values() if item.host.name == name)
            up = time.time() - host.machine.booted
            rows = {"lo": int(up * 9_000), "enP7s7": int(up * IDLE_B_S) + fetched, "enp1s0f0np0": 918_273_645}
            text = "".join(
                f"{key:>11}: {count} {count // 900} 0 0 0 0 0 0 {count // 3} 9 0 0 0 0 0 0\n"
                for key, count in rows.items()
            )
            host.files.text("/proc/net/dev", NET_HEAD + text)

    def _mounts(self) -> None:
        rows = {name: ["30 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw"] for name in self.hosts}
        for number, checkpoint in enumerate(self.checkpoints.values()):
            model = checkpoint.model
            for name in model.mounted_on:
                if name in checkpoint.mounted:
                    source = f"{model.host}:{host_path(model.folder)}"
                    place = f"{71 + number} 30 0:{63 + number} / {model.mount} ro,relatime shared:{40 + number}"
                    rows[name].append(f"{place} - nfs4 {source} ro,vers=4.2,hard,proto=tcp")
        for name, lines in rows.items():
            self.hosts[name].files.text("/proc/self/mountinfo", "\n".join(lines) + "\n")
