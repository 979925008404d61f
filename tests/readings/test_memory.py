"""Node memory from the texts of /proc and /sys."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.readings.memory import MeminfoUnreadable, doubts, parse_memory, parse_numa, parse_pressure
from console.readings.quality import Basis

ROOT = Path(__file__).parents[1]
H200 = ROOT / "data/hosts/h200"
CASES = ROOT / "cases/inputs"
KB = 1024
GIB = 1024**3


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_a_discrete_h200_host_read_off_a_real_machine() -> None:
    memory = parse_memory(read(H200 / "meminfo.txt"), psi=read(H200 / "psi_memory.txt"), numa=read(H200 / "numa.txt"))
    assert memory.total == 131_981_020 * KB
    assert memory.free == 130_715_452 * KB
    assert memory.available == 131_475_312 * KB
    assert memory.available_basis is Basis.MEASURED
    assert memory.cached == (13_948 + 953_508 - 7_368) * KB
    assert (memory.shmem, memory.dirty, memory.writeback) == (7_368 * KB, 9_796 * KB, 0)
    assert (memory.mlocked, memory.unevictable) == (6_888 * KB, 8_596 * KB)
    assert memory.reclaimable_slab == 12_944 * KB
    assert (memory.swap_total, memory.swap_used) == (0, 0)
    assert (memory.hugepage_size, memory.hugetlb_total, memory.hugetlb_all) == (2048 * KB, 0, 0)
    assert memory.pressure is not None and memory.pressure.full_avg60 == 0.0
    (node,) = memory.numa
    assert (node.node, node.cpus, node.total, node.free) == (0, 16, 4_550_128 * KB, 3_284_412 * KB)
    assert (node.used, node.cached) == (1_265_716 * KB, (967_456 - 7_368) * KB)
    assert (node.mlocked, node.unevictable, node.shmem) == (6_888 * KB, 8_596 * KB, 7_368 * KB)
    assert not node.is_device_memory and memory.device_memory == 0
    assert doubts(memory) == ()


GRACE = """\
node 0 cpulist 0-71
Node 0 MemTotal:       502000000 kB
Node 0 MemFree:         90000000 kB
Node 0 MemUsed:        412000000 kB
Node 0 Mlocked:        262144000 kB
Node 0 Unevictable:    262150000 kB
Node 0 FilePages:       30000000 kB
Node 0 Shmem:            2000000 kB
node 1 cpulist
Node 1 MemTotal:       262144000 kB
Node 1 MemFree:         12144000 kB
Node 1 MemUsed:        250000000 kB
Node 1 FilePages:              0 kB
node 2 cpulist\x20
Node 2 MemTotal:               0 kB
Node 2 MemFree:                0 kB
"""


def test_hbm_is_the_node_without_cpus_and_pinned_host_memory_is_named() -> None:
    host, hbm, empty = parse_numa(GRACE)
    assert (host.cpus, host.is_device_memory) == (72, False)
    assert host.mlocked == 262_144_000 * KB
    assert host.unevictable == 262_150_000 * KB
    assert host.cached == 28_000_000 * KB
    assert hbm.is_device_memory and hbm.used == 250_000_000 * KB
    assert (hbm.mlocked, hbm.shmem) == (None, None), "absent is absent, not 0"
    assert not empty.is_device_memory, "an empty node is no memory at all"


@pytest.mark.parametrize(
    ("head", "cpus"),
    [
        ("node 0 cpulist 0-3,8-11", 8),
        ("node 0 cpulist 5", 1),
        ("node 0 cpulist", 0),
        ("== /sys/devices/system/node/node0\n0-15", 16),
        ("== /sys/devices/system/node/node0\n", 0),
        ("node 0\n0-15", 16),
    ],
)
def test_cpu_lists(head: str, cpus: int) -> None:
    (node,) = parse_numa(head + "\nNode 0 MemTotal: 8 kB\nNode 0 MemFree: 4 kB\n")
    assert (node.cpus, node.used) == (cpus, 4 * KB)


def test_a_node_whose_cpu_list_did_not_come_is_not_called_hbm() -> None:
    assert parse_numa("Node 1 MemTotal: 8 kB\nNode 1 MemFree: 4 kB\n") == ()


def meminfo(**lines: int) -> str:
    rows = {"MemTotal": 1000, "MemFree": 500, "Cached": 100} | lines
    return "".join(f"{key}: {value} kB\n" for key, value in rows.items())


ZONES = read(CASES / "C002/zoneinfo.txt")


def test_available_is_estimated_as_the_kernel_does_and_says_so() -> None:
    text = read(CASES / "C002/meminfo.txt")
    memory = parse_memory(text, zoneinfo=ZONES)
    assert memory.available == 103_415_808 * KB
    assert memory.available_basis is Basis.ESTIMATE
    assert doubts(memory) == ("the kernel reports no MemAvailable: available is an estimate",)
    wide = parse_memory(text, zoneinfo=ZONES, page_size=65536)
    low = 32_768 * 64
    assert wide.available == (41_943_040 - low + 57_671_680 - low + 4_194_304 - low) * KB


def test_without_zoneinfo_available_is_unknown_never_zero_and_never_free() -> None:
    memory = parse_memory(read(CASES / "C002/meminfo.txt"))
    assert memory.available is None
    assert memory.used is None and memory.used_without_hugetlb is None
    assert memory.free == 40 * GIB
    assert doubts(memory) == ("the kernel reports no MemAvailable: available is unknown, at least MemFree",)


REAL_ZONE = """\
Node 0, zone   Normal
  per-node stats
      nr_inactive_anon 12
  pages free     500
        boost    0
        min      5
        low      10
        high     20
        spanned  1000
  pagesets
    cpu: 0
              count: 7
              high:  378
              low:   99
              batch: 63
"""


def test_only_the_watermarks_of_zones_count() -> None:
    text = meminfo(**{"Active(file)": 0, "Inactive(file)": 0})
    assert parse_memory(text, zoneinfo=REAL_ZONE).available == (500 - 40) * KB


def test_a_kernel_that_reports_available_is_believed_over_the_estimate() -> None:
    memory = parse_memory(meminfo(MemAvailable=700), zoneinfo=REAL_ZONE)
    assert (memory.available, memory.available_basis) == (700 * KB, Basis.MEASURED)


def test_huge_pages_of_64k_kernels() -> None:
    memory = parse_memory(read(CASES / "C004/meminfo.txt"))
    assert memory.hugepage_size == 512 * 1024**2
    assert memory.hugetlb_total == 32 * GIB
    assert memory.hugetlb_in_use == 10 * GIB
    assert memory.allocatable == 24 * GIB, "where there is a pool the driver takes from it"
    assert memory.used == 230 * GIB
    assert memory.used_without_hugetlb == 198 * GIB


def test_pools_of_other_page_sizes_are_in_the_hugetlb_line() -> None:
    text = meminfo(MemAvailable=200, Hugepagesize=2, Hugetlb=300) + "HugePages_Total: 10\nHugePages_Free: 10\n"
    memory = parse_memory(text)
    assert memory.hugetlb_total == 20 * KB
    assert memory.used_without_hugetlb == (1000 - 200 - 300) * KB


def test_without_a_pool_memfree_is_what_the_driver_gets() -> None:
    memory = parse_memory(read(CASES / "C001/meminfo.txt"))
    assert memory.allocatable == memory.free == 3 * GIB


def test_lines_of_login_scripts_are_not_the_kernels() -> None:
    kernel = read(CASES / "C001/meminfo.txt")
    for noise in (
        "MemAvailable:        1 kB  <- sample from our wiki\n",
        "MemAvailable:        1 kB\n",
        "MemTotal:  5 kB\nCached: 7 kB\n",
        "  Memory:   7.6 GiB / 121.7 GiB\n",
    ):
        assert parse_memory(noise + kernel + noise) == parse_memory(kernel)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no MemTotal line; it is empty"),
        ("<html>502</html>", "no MemTotal line; it begins with '<html>502</html>'"),
        ("MemTotal: 5 kB\n", "no MemFree line"),
        ("MemTotal: 5 kB\nMemFree: 3 k", "no MemFree line"),
        ("MemTotal: 5 kB\nMemFree: 3 kB\nBuffers: 1 kB\nCach", "no Cached line"),
        ("MemTotal: 5 kB\nMemFree: 9 kB\nCached: 1 kB", "cannot be"),
        ("MemTotal: 0 kB\nMemFree: 0 kB\nCached: 0 kB", "cannot be"),
        ("MemTotal: -5 kB\nMemFree: 3 kB\n", "no MemTotal line"),
        ("MemTotal: " + "9" * 400 + " kB\nMemFree: 3 kB\n", "no MemTotal line"),
        ("\x1b]0;t\x07x\x00", "begins with 'x␀'"),
    ],
)
def test_what_is_not_meminfo_names_the_missing_key(text: str, word: str) -> None:
    with pytest.raises(MeminfoUnreadable, match="meminfo: ") as caught:
        parse_memory(text)
    assert word in str(caught.value)


def test_a_text_cut_after_the_needed_lines_has_unknowns_not_zeros() -> None:
    memory = parse_memory("MemTotal: 9 kB\nMemFree: 3 kB\nMemAvailable: 4 kB\nCached: 2 kB\nDir")
    assert (memory.dirty, memory.mlocked, memory.unevictable, memory.hugepage_size) == (None, None, None, None)


def test_available_is_never_more_than_there_is() -> None:
    assert parse_memory(meminfo(MemAvailable=99_999)).available == 1000 * KB


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("some avg10=1.50 avg60=0.70 avg300=0.10 total=9\nfull avg10=0.25 avg60=0.05 avg300=0.00 total=3\n", 0.25),
        ("some avg10=1.50 avg60=0.70 avg300=0.10 total=9\n", None),
        ("cat: /proc/pressure/memory: Operation not supported\n", None),
        ("some avg10=1.5.0 avg60=0.70\nfull avg10=0.25 avg60=0.05\n", None),
        ("", None),
    ],
)
def test_pressure(text: str, full: float | None) -> None:
    pressure = parse_pressure(text)
    assert (pressure.full_avg10 if pressure else None) == full


fragments = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(
            ["MemTotal: 10 kB\n", "MemFree: 5 kB\n", "MemFree: 11 kB\n", "Cached: 3 kB\n", "Hugepagesize: 2 kB\n", "\n"]
        ),
        st.sampled_from(
            ["HugePages_Total: 9\n", "Node 0 MemTotal: 5 kB\n", "node 0 cpulist 9-1\n", "  low  5\n", "\0"]
        ),
    ),
    max_size=14,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(fragments, fragments)
def test_hostile_text_is_read_or_refused(text: str, other: str) -> None:
    try:
        memory = parse_memory(text, psi=other, numa=other, zoneinfo=other)
    except MeminfoUnreadable as error:
        assert str(error).isprintable()
        return
    assert 0 <= memory.free <= memory.total
    assert memory.available is None or 0 <= memory.available <= memory.total
    assert all(node.cpus >= 0 for node in memory.numa)


def test_a_serving_gb10_of_a_published_run() -> None:
    """Figures of a published run: 2.9 GiB free of 121.6 while it serves, with 10.5 GiB of page cache."""
    text = (Path(__file__).parents[1] / "data" / "fleet" / "meminfo-serving-gb10.txt").read_text()
    memory = parse_memory(text)
    assert (memory.total, memory.free, memory.available) == (127535336 * 1024, 3015476 * 1024, 5326972 * 1024)
    assert memory.cached == (50716 + 10947632) * 1024
