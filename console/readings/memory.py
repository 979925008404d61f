"""Node memory: /proc/meminfo, pressure and NUMA nodes. All sizes are bytes unless a name says otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from console.readings.quality import Basis
from console.sanitize import line


class MeminfoUnreadable(ValueError):
    """A meminfo text without what every kernel prints; names the missing key and shows what was there instead."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """One line pair of /proc/pressure/memory: stall shares in percent over 10 s and 60 s."""

    some_avg10: float
    some_avg60: float
    full_avg10: float
    full_avg60: float


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node. A node with memory and no CPU is device memory (HBM of a Grace system)."""

    node: int
    cpus: int
    total: int
    free: int
    used: int
    cached: int
    mlocked: int | None = None
    """Pinned by user space; what the driver pins shows only as `used`."""
    unevictable: int | None = None
    shmem: int | None = None

    @property
    def is_device_memory(self) -> bool:
        """True for memory without CPUs (HBM seen as a NUMA node)."""
        return self.cpus == 0 and self.total > 0


@dataclass(frozen=True, slots=True)
class Memory:
    """What /proc/meminfo says, in bytes. None means the kernel has no such line."""

    total: int
    free: int
    available: int | None
    available_basis: Basis
    buffers: int
    cached: int
    """Page cache that can be dropped: Buffers + Cached - Shmem."""
    shmem: int
    dirty: int | None
    writeback: int | None
    mlocked: int | None
    unevictable: int | None
    reclaimable_slab: int | None
    swap_total: int
    swap_free: int
    hugepage_size: int | None
    hugetlb_total: int
    hugetlb_free: int
    hugetlb_reserved: int
    pressure: Pressure | None = None
    numa: tuple[NumaNode, ...] = ()
    hugetlb_all: int | None = None
    """Pages of every huge page size (the Hugetlb line); None where the kernel has no such line."""

    @property
    def swap_used(self) -> int:
        """Swap in use, bytes."""
        return self.swap_total - self.swap_free

    @property
    def used(self) -> int | None:
        """total - available, bytes; None when available is unknown."""
        return None if self.available is None else self.total - self.available

    @property
    def hugetlb_in_use(self) -> int:
        """Huge pages in use or promised (total - free + reserved), bytes."""
        return self.hugetlb_total - self.hugetlb_free + self.hugetlb_reserved

    @property
    def used_without_hugetlb(self) -> int | None:
        """`used` without the huge page pools, which are set aside whether used or not; bytes."""
        pool = max(self.hugetlb_all or 0, self.hugetlb_total)
        return None if self.used is None else max(0, self.used - pool)

    @property
    def allocatable(self) -> int:
        """What a GPU driver on unified memory can get at once, bytes: MemFree, or the free huge pages of a pool.

        NVIDIA's DGX Spark known issues: where a hugetlb pool is configured, read the pool.
        """
        return self.hugetlb_free if self.hugetlb_total else self.free

    @property
    def device_memory(self) -> int:
        """Memory of NUMA nodes without CPUs (HBM), which MemTotal counts too; bytes."""
        return sum(node.total for node in self.numa if node.is_device_memory)


def parse_memory(meminfo: str, *, psi: str = "", numa: str = "", zoneinfo: str = "", page_size: int = 4096) -> Memory:
    """A node's memory from the texts of /proc and /sys (proc(5), sysfs-devices-node). Raises MeminfoUnreadable.

    Where the kernel has no MemAvailable it is estimated from `zoneinfo` as si_mem_available() does; without zoneinfo
    it stays unknown. `page_size` in bytes is only for that estimate.
    """
    table = _meminfo_table(meminfo)
    total, free = _needed(table, "MemTotal", meminfo), _needed(table, "MemFree", meminfo)
    if total == 0 or free > total:
        raise MeminfoUnreadable(f"meminfo: MemFree {free} of MemTotal {total} bytes cannot be")
    reported = table.get("MemAvailable")
    available = reported if reported is not None else _estimated_available(table, zoneinfo, page_size)
    buffers, cached, shmem = table.get("Buffers", 0), _needed(table, "Cached", meminfo), table.get("Shmem", 0)
    size = table.get("Hugepagesize")
    return Memory(
        total=total,
        free=free,
        available=None if available is None else min(max(available, 0), total),
        available_basis=Basis.MEASURED if reported is not None else Basis.ESTIMATE,
        buffers=buffers,
        cached=max(0, buffers + cached - shmem),
        shmem=shmem,
        dirty=table.get("Dirty"),
        writeback=table.get("Writeback"),
        mlocked=table.get("Mlocked"),
        unevictable=table.get("Unevictable"),
        reclaimable_slab=table.get("SReclaimable"),
        swap_total=table.get("SwapTotal", 0),
        swap_free=table.get("SwapFree", 0),
        hugepage_size=size,
        hugetlb_total=table.get("HugePages_Total", 0) * (size or 0),
        hugetlb_free=table.get("HugePages_Free", 0) * (size or 0),
        hugetlb_reserved=table.get("HugePages_Rsvd", 0) * (size or 0),
        hugetlb_all=table.get("Hugetlb"),
        pressure=parse_pressure(psi),
        numa=parse_numa(numa),
    )


_ROW = re.compile(r"^([A-Z][A-Za-z0-9_]*(?:\([a-z_]+\))?):[ \t]+([0-9]{1,18})( kB)?[ \t\r]*$")


def _meminfo_table(text: str) -> dict[str, int]:
    """Lines `Key:  N kB` (bytes) and `Key:  N` (a count); any other line is not of the kernel and is passed over.

    The kernel prints MemTotal and MemFree one after the other, so what a login script printed before them
    (even well-formed lines) is left out.
    """
    rows = [_ROW.match(row) for row in text.split("\n")]
    start = 0
    for number, (first, second) in enumerate(pairwise(rows)):
        if first and second and (first[1], second[1]) == ("MemTotal", "MemFree"):
            start = number
            break
    table: dict[str, int] = {}
    for row in rows[start:]:
        if row:
            table.setdefault(row[1], int(row[2]) * (1024 if row[3] else 1))
    return table


def _needed(table: Mapping[str, int], key: str, text: str) -> int:
    if key in table:
        return table[key]
    seen = line(text.strip()[:200], 80)
    raise MeminfoUnreadable(f"meminfo: no {key} line" + (f"; it begins with {seen!r}" if seen else "; it is empty"))


def _estimated_available(table: Mapping[str, int], zoneinfo: str, page_size: int) -> int | None:
    """si_mem_available() of Linux: free less low watermarks, plus file LRU and slab less what is kept of each."""
    low = sum(int(pages) for pages in re.findall(r"^[ \t]+low[ \t]+([0-9]{1,15})[ \t]*$", zoneinfo, re.MULTILINE))
    if low == 0 or "Active(file)" not in table or "Inactive(file)" not in table:
        return None
    watermark = low * page_size
    cache = table["Active(file)"] + table["Inactive(file)"]
    slab = table.get("SReclaimable", 0)
    return table["MemFree"] - watermark + cache - min(cache // 2, watermark) + slab - min(slab // 2, watermark)


_PSI = re.compile(r"^(some|full)[ \t]+avg10=([0-9.]{1,9})[ \t]+avg60=([0-9.]{1,9})\b", re.MULTILINE)


def parse_pressure(psi: str) -> Pressure | None:
    """/proc/pressure/memory; None where the kernel has none (psi=0) or only part of it came."""
    found = {kind: (ten, sixty) for kind, ten, sixty in _PSI.findall(psi)}
    try:
        some, full = ([float(share) for share in found[kind]] for kind in ("some", "full"))
    except (KeyError, ValueError):
        return None
    return Pressure(some[0], some[1], full[0], full[1])


_NODE_HEAD = re.compile(r"^(?:== \S*/node([0-9]{1,5})|node ([0-9]{1,5})(?: cpulist[ \t]*([0-9,-]*))?)[ \t\r]*$")
_NODE_ROW = re.compile(r"^Node ([0-9]{1,5}) ([A-Za-z0-9_()]+):[ \t]+([0-9]{1,18})( kB)?[ \t\r]*$")
_CPULIST = re.compile(r"^[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*[ \t\r]*$")


def parse_numa(text: str) -> tuple[NumaNode, ...]:
    """NUMA nodes: for each a line `node N cpulist LIST` (or `== .../nodeN` and LIST) and the lines of nodeN/meminfo.

    A node whose cpulist did not come is left out: without it HBM and host memory cannot be told apart.
    """
    cpus: dict[int, int] = {}
    tables: dict[int, dict[str, int]] = {}
    head: int | None = None
    for row in text.split("\n"):
        if match := _NODE_HEAD.match(row):
            head = int(match[1] or match[2])
            cpus[head] = _count_cpus(match[3] or "")
        elif match := _NODE_ROW.match(row):
            tables.setdefault(int(match[1]), {})[match[2]] = int(match[3]) * (1024 if match[4] else 1)
        elif head is not None and _CPULIST.match(row):
            cpus[head] = _count_cpus(row.strip())
    return tuple(
        _numa_node(node, cpus[node], table)
        for node, table in sorted(tables.items())
        if node in cpus and {"MemTotal", "MemFree"} <= table.keys()
    )


def _numa_node(node: int, cpus: int, table: Mapping[str, int]) -> NumaNode:
    total, free = table["MemTotal"], table["MemFree"]
    return NumaNode(
        node=node,
        cpus=cpus,
        total=total,
        free=free,
        used=table.get("MemUsed", max(0, total - free)),
        cached=max(0, table.get("FilePages", 0) - table.get("Shmem", 0)),
        mlocked=table.get("Mlocked"),
        unevictable=table.get("Unevictable"),
        shmem=table.get("Shmem"),
    )


def _count_cpus(cpulist: str) -> int:
    count = 0
    for part in cpulist.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            count += max(0, int(last) - int(first)) + 1 if last.isdigit() else 1
    return count


def doubts(memory: Memory) -> tuple[str, ...]:
    """Why a figure of `memory` is not what the kernel itself says, in words."""
    if memory.available_basis is not Basis.ESTIMATE:
        return ()
    if memory.available is None:
        return ("the kernel reports no MemAvailable: available is unknown, at least MemFree",)
    return ("the kernel reports no MemAvailable: available is an estimate",)
