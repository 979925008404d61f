"""Node memory: /proc/meminfo, pressure and NUMA nodes. All sizes are bytes unless a name says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from console.readings.quality import Basis


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
