"""Memory limits of control groups, v1 and v2."""

from __future__ import annotations

import pytest

from console.readings.cgroup import Cgroup, CgroupUnreadable, parse_cgroup

GIB = 1024**3


def test_v2_working_set_leaves_out_what_goes_first() -> None:
    group = parse_cgroup(
        {
            "memory.max": f"{112 * GIB}\n",
            "memory.high": "max\n",
            "memory.current": f"{106 * GIB}",
            "memory.stat": f"anon 1\ninactive_file {60 * GIB}\ntotal_bogus\n",
            "memory.events": "low 0\nhigh 3\nmax 7\noom 1\noom_kill 1\n",
        }
    )
    assert group == Cgroup(2, 112 * GIB, None, 106 * GIB, 60 * GIB, 1)
    assert group.working_set == 46 * GIB
    assert group.working_set_share == pytest.approx(100 * 46 / 112)
    assert group.current_share == pytest.approx(100 * 106 / 112)


@pytest.mark.parametrize("page", [4096, 16384, 65536])
def test_v1_number_for_no_limit_whatever_the_page_size(page: int) -> None:
    none = (2**63 - 1) // page * page
    assert parse_cgroup({"memory.limit_in_bytes": str(none)}).limit is None


@pytest.mark.parametrize(
    ("text", "limit"),
    [("max", None), ("max\n", None), ("0", 0), ("4294967296\n", 4 * GIB), (str(2**64 - 1), None), (str(2**62), 2**62)],
)
def test_v2_limits(text: str, limit: int | None) -> None:
    assert parse_cgroup({"memory.max": text}).limit == limit


def test_a_limit_that_is_not_below_the_hosts_memory_is_none() -> None:
    files = {"memory.max": str(256 * GIB)}
    assert parse_cgroup(files).limit == 256 * GIB
    assert parse_cgroup(files, host_total=256 * GIB).limit is None
    assert parse_cgroup(files, host_total=257 * GIB).limit == 256 * GIB


def test_v1_counts_children_and_the_limit_of_a_parent() -> None:
    group = parse_cgroup(
        {
            "memory.limit_in_bytes": str((2**63 - 1) // 4096 * 4096),
            "memory.usage_in_bytes": "900",
            "memory.stat": "inactive_file 1\nhierarchical_memory_limit 1000\ntotal_inactive_file 400\n",
        }
    )
    assert (group.version, group.limit, group.current, group.working_set) == (1, 1000, 900, 500)


def test_what_is_absent_is_none() -> None:
    group = parse_cgroup({"memory.max": "1000"})
    assert (group.current, group.working_set, group.working_set_share, group.oom_kills) == (None, None, None, None)
    assert (
        parse_cgroup({"memory.current": "5", "memory.max": "0", "memory.stat": "inactive_file 9"}).current_share is None
    )
    assert parse_cgroup({"memory.current": "5", "memory.stat": "inactive_file 9"}).working_set == 0


@pytest.mark.parametrize(
    "files",
    [
        {}, {"cpu.max": "1"}, {"memory.max": ""}, {"memory.max": "unlimited"}, {"memory.max": "-1"},
        {"memory.current": "1e9"}, {"memory.max": "٣"},
    ],
)  # fmt: skip
def test_what_the_kernel_does_not_write_is_refused(files: dict[str, str]) -> None:
    with pytest.raises(CgroupUnreadable):
        parse_cgroup(files)
