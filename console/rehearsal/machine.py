"""A simulated machine: /proc, /sys and nvidia-smi of one host as files that a real sampler process reads."""

from __future__ import annotations

import math
import secrets
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from console.rehearsal.faults import GpuFault, MemoryFault
from console.rehearsal.files import HostFiles
from console.rehearsal.scenario import Machine

GIB = 1 << 30
# nvidia-smi as the sampler calls it: --query-gpu=FIELDS --format=csv,noheader,nounits, values one a file and field.
NVIDIA_SMI = """#!/bin/sh
fields=
for argument do
  case $argument in
    --query-gpu=*) fields=${argument#--query-gpu=} ;;
    --format=csv,noheader,nounits) ;;
    *) echo "rehearsal: nvidia-smi $argument is not played here" >&2; exit 2 ;;
  esac
done
cd "${0%/*}/../gpu" 2>/dev/null || { echo "No devices were found" >&2; exit 6; }
IFS=,
for card in [0-9]*; do
  line=
  for field in $fields; do
    if ! read -r value <"$card/$field"; then
      echo "Field \\"$field\\" is not a valid field to query." >&2; exit 2
    fi
    line="$line${line:+, }$value"
  done
  echo "$line"
done
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What the containers of a host hold and do at one moment."""

    memory_gib: float = 0.0
    hbm_gib: float = 0.0
    loading: float = 0.0
    """0..1: how far a boot has come; 0 or 1 when nothing boots."""
    busy: bool = False
    other_gib: float = 0.0
    """Held by what runs beside the engines."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Node memory in GiB."""

    used: float
    cached: float
    free: float


class SimulatedMachine:
    """Writes the files of one host below `root`; every write is a new file renamed over the old one."""

    def __init__(self, root: Path, name: str, machine: Machine) -> None:
        self.root, self.name, self.machine = root, name, machine
        self.files = HostFiles(root)
        self.booted = time.time() - machine.uptime_s
        """Unix seconds by the true clock."""
        self._latched: dict[int, GpuFault] = {}
        self._fault: MemoryFault | None = None
        self._ramp: tuple[float, float, Figures | None] = (0.0, 0.0, None)
        self._now: Figures | None = None
        self._written: dict[str, str] = {}

    def install(self) -> None:
        """Write what does not change while the machine is up."""
        self.files.install()
        if self.machine.gpus:
            smi = self.root / "bin/nvidia-smi"
            smi.write_text(NVIDIA_SMI)
            smi.chmod(stat.S_IRWXU)
        self._write("proc/sys/kernel/hostname", f"{self.name}\n")
        self._write("proc/sys/kernel/osrelease", f"{self.machine.kernel}\n")
        self._write_boot_id()
        self._write("proc/cpuinfo", "".join(f"processor\t: {cpu}\n\n" for cpu in range(self.machine.cpus)))
        cpus = f"0-{self.machine.cpus - 1}\n"
        self._write("sys/devices/system/cpu/online", cpus)
        self._write("sys/devices/system/node/node0/cpulist", cpus)
        self._write("sys/devices/system/node/has_cpu", "0\n")
        nodes = 2 if self.machine.hbm_gib else 1
        self._write("sys/devices/system/node/online", "0-1\n" if nodes == 2 else "0\n")
        if nodes == 2:
            self._write("sys/devices/system/node/node1/cpulist", "\n")

    def reboot(self) -> None:
        """It starts anew this moment."""
        self.booted = time.time()
        self._fault = None
        self._write_boot_id()

    def _write_boot_id(self) -> None:
        boot = secrets.token_hex(16)
        parts = (boot[:8], boot[8:12], boot[12:16], boot[16:20], boot[20:])
        self._write("proc/sys/kernel/random/boot_id", "-".join(parts) + "\n")

    def set_gpu(self, fault: GpuFault) -> None:
        """From now on a GPU's clock is stuck, or is no longer."""
        if fault.mhz is None:
            self._latched.pop(fault.index, None)
        else:
            self._latched[fault.index] = fault

    def set_fault(self, fault: MemoryFault, now: float) -> None:
        """From scenario time `now` on, move to the figures of `fault`."""
        self._fault = fault
        self._ramp = (now, max(fault.over, 1e-3), self._now)

    def step(self, now: float, load: Load) -> None:
        """Write the files as they stand at scenario time `now`."""
        figures = self._now = self.figures(now, load)
        self._write("proc/meminfo", self._meminfo(figures, load))
        self._write("proc/pressure/memory", pressure(figures.free))
        up = time.time() - self.booted
        self._write("proc/uptime", f"{up:.2f} {0.95 * up * self.machine.cpus:.2f}\n")
        self._write("sys/devices/system/node/node0/meminfo", node_meminfo(0, self.machine.total_gib, figures))
        if self.machine.hbm_gib:
            used = min(self.machine.hbm_gib, load.hbm_gib)
            hbm = Figures(used, 0.0, self.machine.hbm_gib - used)
            self._write("sys/devices/system/node/node1/meminfo", node_meminfo(1, self.machine.hbm_gib, hbm))
        self._gpus(now, load)

    def figures(self, now: float, load: Load) -> Figures:
        """Node memory at scenario time `now`: cache grows in a saw-tooth, a fault moves free and cache on a ramp."""
        m = self.machine
        used = min(m.total_gib, m.system_gib + load.memory_gib + load.other_gib)
        saw = math.fmod(now * m.growth_mib_s / 1024, m.growth_span_gib) if m.growth_span_gib else 0.0
        shards = 96 * load.loading * (1 - load.loading)  # read shards stay in the page cache, up to 24 GiB
        cached = max(0.0, min(m.cached_gib + saw + shards, m.total_gib - used - 3.0))
        plain = Figures(used, cached, max(0.0, m.total_gib - used - cached))
        if self._fault is None:
            return plain
        start, over, origin = self._ramp
        share = min(1.0, (now - start) / over)
        free = plain.free if self._fault.free_gib is None else self._fault.free_gib
        cached = plain.cached if self._fault.cached_gib is None else self._fault.cached_gib
        if origin is not None:
            free = origin.free + (free - origin.free) * share
            cached = origin.cached + (cached - origin.cached) * share
        return Figures(max(0.0, m.total_gib - free - cached), cached, free)

    def _meminfo(self, f: Figures, load: Load) -> str:
        m = self.machine
        hbm_free = max(0.0, m.hbm_gib - load.hbm_gib)
        buffers, shmem = 0.05, 0.4
        pinned = load.memory_gib if m.hbm_gib else 0.02  # a Grace system pins the experts that do not fit its HBM
        rows = {
            "MemTotal": m.total_gib + m.hbm_gib,
            "MemFree": f.free + hbm_free,
            "MemAvailable": max(0.0, f.free + hbm_free + 0.95 * f.cached - 0.9),
            "Buffers": min(buffers, f.cached),
            "Cached": max(0.0, f.cached - buffers) + shmem,
            "SwapCached": 0.0,
            "Active": 0.3 * f.used,
            "Inactive": 0.7 * f.cached,
            "Unevictable": pinned,
            "Mlocked": pinned,
            "SwapTotal": m.swap_gib,
            "SwapFree": m.swap_gib,
            "Dirty": 0.01,
            "Writeback": 0.0,
            "AnonPages": 0.9 * m.system_gib,
            "Mapped": 0.4,
            "Shmem": shmem,
            "KReclaimable": 0.3,
            "Slab": 0.9,
            "SReclaimable": 0.3,
            "SUnreclaim": 0.6,
            "Committed_AS": f.used,
        }
        text = "".join(f"{key + ':':<16}{int(gib * GIB) // 1024:>8} kB\n" for key, gib in rows.items())
        pages = (
            "HugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\nHugePages_Surp:        0\n"
        )
        return f"{text}{pages}Hugepagesize:       2048 kB\nHugetlb:               0 kB\n"

    def _gpus(self, now: float, load: Load) -> None:
        for index, gpu in enumerate(self.machine.gpus):
            works = load.busy and gpu.busy > 0
            sway = math.sin(now / 7 + index)
            latched = self._latched.get(index)
            watts, mhz = (latched.watts, latched.mhz or 0.0) if latched else (gpu.watts, gpu.mhz)
            memory = "[N/A]" if gpu.memory_mib is None else str(gpu.memory_mib)
            used = "[N/A]"
            if gpu.memory_mib is not None:
                used = str(int(min(gpu.memory_mib, load.hbm_gib * 1024)) if gpu.busy > 0 else 35)
            values = {
                "index": str(index),
                "name": gpu.name,
                "uuid": f"GPU-{0:08x}-0000-0000-0000-{index + 1:012x}",
                "driver_version": gpu.driver,
                "memory.total": memory,
                "memory.used": used,
                "utilization.gpu": str(round(gpu.busy + sway) if works else 0),
                "power.draw": f"{(watts + sway) if works else 0.22 * gpu.watts:.2f}",
                "power.limit": "[N/A]" if gpu.limit_w is None else f"{gpu.limit_w:.2f}",
                "temperature.gpu": str(round(gpu.celsius + sway) if works else round(0.65 * gpu.celsius)),
                "clocks.sm": str(round(mhz + 6 * sway) if works else 208),
            }
            for field, value in values.items():
                self._write(f"gpu/{index}/{field}", value + "\n")

    def _write(self, path: str, text: str) -> None:
        if self._written.get(path) == text:
            return
        target = self.root / path
        if path not in self._written:
            target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(target.name + ".new")
        fresh.write_text(text)
        fresh.replace(target)
        self._written[path] = text


def pressure(free_gib: float) -> str:
    """/proc/pressure/memory: stalls begin below 4 GiB free."""
    some = max(0.0, (4.0 - free_gib) * 4.5)
    full = some / 3
    return (
        f"some avg10={some:.2f} avg60={some / 2:.2f} avg300={some / 6:.2f} total=0\n"
        f"full avg10={full:.2f} avg60={full / 2:.2f} avg300={full / 6:.2f} total=0\n"
    )


def node_meminfo(node: int, total_gib: float, f: Figures) -> str:
    """/sys/devices/system/node/nodeN/meminfo."""
    rows = {
        "MemTotal": total_gib,
        "MemFree": f.free,
        "MemUsed": total_gib - f.free,
        "FilePages": f.cached,
        "AnonPages": 0.1 * f.used,
        "Shmem": 0.4 if node == 0 else 0.0,
    }
    return "".join(f"Node {node} {key + ':':<16}{int(gib * GIB) // 1024:>8} kB\n" for key, gib in rows.items())
