"""What one run of the bed makes, on disk before it is made: a later run can clean up after one that was killed."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bed.rootfs import STATE
from bed.system import Process

RUNS = STATE / "runs"


@dataclass(slots=True)
class HostRecord:
    """One host: the names of all that belongs to it, and its systemd-nspawn process once there is one."""

    name: str
    python: str
    address: str
    netns: str
    veth: str
    cgroup: str
    nspawn: Process | None = None


@dataclass(slots=True)
class Record:
    """One run: who owns it and what it made. `identifier` is unique to the run and part of every name."""

    identifier: str
    owner: Process
    bridge: str
    subnet: str
    """The first three numbers of a /24, for example `10.91.7`."""
    hosts: list[HostRecord] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where the run keeps its files."""
        return RUNS / self.identifier

    def host_folder(self, host: HostRecord) -> Path:
        """Where one host keeps its overlay, Docker data and console log."""
        return self.folder / host.name

    def save(self) -> None:
        """Write the record; atomic."""
        self.folder.mkdir(parents=True, exist_ok=True)
        half = self.folder / "record.half"
        half.write_text(json.dumps(asdict(self), indent=1))
        half.replace(self.folder / "record.json")

    def forget(self) -> None:
        """Remove the run's files, the record last."""
        for part in self.folder.iterdir():
            if part.name != "record.json":
                shutil.rmtree(part) if part.is_dir() else part.unlink()
        shutil.rmtree(self.folder)


def new_record(subnet: str) -> Record:
    """A record for a run owned by this process; names of at most 15 characters, as the kernel wants for links."""
    identifier = secrets.token_hex(3)
    return Record(identifier, Process.of(os.getpid()), f"lsb{identifier}", subnet)


def stored() -> list[Record]:
    """All runs on disk, running or left behind."""
    return [_load(json.loads(path.read_text())) for path in sorted(RUNS.glob("*/record.json"))]


def _load(raw: dict[str, Any]) -> Record:
    hosts = [HostRecord(**{**host, "nspawn": host["nspawn"] and Process(**host["nspawn"])}) for host in raw["hosts"]]
    return Record(raw["identifier"], Process(**raw["owner"]), raw["bridge"], raw["subnet"], hosts)
