"""Differences between the ranks of a lane, on four ranks as a published launcher starts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_sets import HOSTS, inspected, launch_lines, ranks, snapshot

from console.readings.containers import Container, Mount, parse_inspect
from console.readings.drift import Difference, Drift, RankFacts, compare_ranks
from console.readings.drift_rules import arguments
from console.readings.rows import RowState

GID = (
    Difference(
        "environment B12X_ROCE_GID_INDEX",
        (("spark-0", "3"), ("spark-1", "3"), ("spark-2", "4"), ("spark-3", "3")),
        ("spark-2",),
        "info",
        "asked of each host at the start; it may move after a reboot, and a wrong one hangs all ranks",
    ),
    Difference(
        "environment NCCL_IB_GID_INDEX",
        (("spark-0", "3"), ("spark-1", "3"), ("spark-2", "4"), ("spark-3", "3")),
        ("spark-2",),
        "info",
        "asked of each host at the start; it may move after a reboot, and a wrong one hangs all ranks",
    ),
)


def changed(rank: int, **changes: Any) -> Drift:
    """The four ranks with one fact of one rank changed."""
    facts = ranks()
    facts[rank] = replace(facts[rank], **changes)
    return compare_ranks(facts)


def with_container(rank: int, change: Callable[[Container], Container]) -> Drift:
    facts = ranks()
    container = facts[rank].container
    assert container is not None
    facts[rank] = replace(facts[rank], container=change(container))
    return compare_ranks(facts)


def relaunched(rank: int, *swap: tuple[str, str]) -> Drift:
    """One rank started by a launch line in which words were swapped."""
    command = launch_lines()[rank]
    for old, new in swap:
        assert old in command
        command = command.replace(old, new)
    return with_container(rank, lambda _: parse_inspect(inspected(command)))


def only(found: Drift) -> Difference:
    """The one difference besides the site drift of the captured fleet."""
    (difference,) = (item for item in found.differences if item not in GID)
    return difference


def test_a_fleet_as_published_differs_only_where_its_hosts_do() -> None:
    found = compare_ranks(ranks())
    assert found.differences == GID
    assert found.unread == ()
    assert found.compared == (
        "container",
        "arguments and mounts",
        "environment",
        "driver",
        "kernel",
        "clock",
        "snapshot",
        "row copy",
        "GPU clock",
        "GPU power",
    )


def test_images_are_compared_by_id_not_by_tag() -> None:
    found = with_container(3, lambda container: replace(container, image_id="sha256:" + "77" * 32))
    difference = only(found)
    assert (difference.what, difference.odd, difference.severity) == ("image id", ("spark-3",), "act")
    assert found.differences[0] is difference
    assert compare_ranks([replace(rank, container=None) for rank in ranks()]).differences == ()
    assert with_container(3, lambda container: replace(container, image="another:tag")).differences == GID


@pytest.mark.parametrize(
    ("swap", "what", "values", "severity"),
    [
        (("--context-length 524288", "--context-length 262144"), "argument --context-length", "262144", "act"),
        (("--context-length 524288", ""), "argument --context-length", "not given", "act"),
        (("--trust-remote-code", ""), "argument --trust-remote-code", "not given", "act"),
        (("0.80", "0.70"), "argument --mem-fraction-static", "0.70", "look"),
        (("--port 8210", "--port 8888"), "argument --port", "8888", "info"),
        (("snapshots/0123456", "snapshots/fedcba9"), "argument --model-path", None, "act"),
        (("--dist-init-addr 192.0.2.11", "--dist-init-addr 192.0.2.12"), "argument --dist-init-addr", None, "act"),
        (("-e SPARK_MXFP8_BACKEND=b12x", ""), "environment SPARK_MXFP8_BACKEND", "not set", "look"),
        (("_IFNAME=enp1s0f0np0", "_IFNAME=eth0"), "environment NCCL_SOCKET_IFNAME", "eth0", "look"),
        (("-e SPARK_ROCE_AR=1", "-e SPARK_ROCE_AR=1 -e LANG=C"), "environment LANG", "C", "info"),
        (("-v /home/bob/dsv41-engram-local:/engram-local:ro", ""), "mount /engram-local", "not mounted", "act"),
        (("dsv41-engram-local:", "rows-1017:"), "mount /engram-local", "~/rows-1017 read-only", "look"),
        (("-v /mnt/dsv41:", "-v /mnt/other:"), "mount /models/repo", "/mnt/other read-only", "look"),
    ],
)  # fmt: skip
def test_one_rank_started_otherwise(swap: tuple[str, str], what: str, values: str | None, severity: str) -> None:
    difference = only(relaunched(3, swap))
    assert (difference.what, difference.odd, difference.severity) == (what, ("spark-3",), severity)
    assert values is None or dict(difference.values)["spark-3"] == values
    assert difference.why


def test_homes_and_the_holder_may_differ() -> None:
    """alice on two hosts, bob on two; the holder mounts its own cache, no copy, and names its rows."""
    values = [item for item in compare_ranks(ranks()).differences if item.what.startswith("mount")]
    assert values == []
    facts = ranks()
    facts[1] = replace(facts[1], rows=replace(facts[0].rows, rank=1) if facts[0].rows else None)
    whats = {item.what for item in compare_ranks(facts).differences}
    assert {"mount /engram-local", "mount /models/repo", "environment SPARK_ENGRAM_ROWS"} <= whats


def test_a_number_that_two_ranks_claim() -> None:
    difference = only(relaunched(3, ("--node-rank 3", "--node-rank 2")))
    assert (difference.what, difference.odd, difference.severity) == (
        "argument --node-rank",
        ("spark-2", "spark-3"),
        "act",
    )


def test_a_ranks_own_address_may_stand_in_other_arguments() -> None:
    facts = []
    for rank, command in zip(ranks(), launch_lines(), strict=True):
        address = command.partition("HOST_IP=")[2].split()[0]
        own = f"-e MY_ADDRESS={address} --entrypoint"
        started = command.replace("--entrypoint", own, 1) + f" --my-address {address}"
        facts.append(replace(rank, container=parse_inspect(inspected(started))))
    assert compare_ranks(facts).differences == GID


def test_secrets_are_compared_by_name_only() -> None:
    found = relaunched(0, ("-e SPARK_ROCE_AR=1", "-e SPARK_ROCE_AR=1 -e HF_TOKEN=hf_secret"))
    difference = only(found)
    assert (difference.what, dict(difference.values)["spark-0"]) == ("environment HF_TOKEN", "***")
    assert "hf_secret" not in repr(found)


def test_two_against_two_have_no_majority() -> None:
    facts = ranks()
    for rank in (2, 3):
        facts[rank] = replace(facts[rank], driver="570.1")
    (difference,) = (item for item in compare_ranks(facts).differences if item.what == "driver")
    assert (difference.odd, difference.severity) == (HOSTS, "look")
    assert dict(difference.values) == {
        "spark-0": "580.95.05",
        "spark-1": "580.95.05",
        "spark-2": "570.1",
        "spark-3": "570.1",
    }


def test_kernels_are_good_to_know() -> None:
    assert only(changed(2, kernel="6.11.0")).severity == "info"


@pytest.mark.parametrize(
    ("clock", "severity"), [(1.0, None), (1.2, "look"), (-1.9, "look"), (2.2, "act"), (-10800.0, "act")]
)
def test_clocks(clock: float, severity: str | None) -> None:
    facts = [replace(rank, clock=0.0) for rank in ranks()]
    facts[1] = replace(facts[1], clock=clock)
    found = [item for item in compare_ranks(facts).differences if item.what == "clock"]
    assert [(item.odd, item.severity) for item in found] == ([(("spark-1",), severity)] if severity else [])
    assert all(dict(item.values)["spark-1"] == f"{clock:+.1f}s" for item in found)


def test_two_clocks_are_both_odd() -> None:
    facts = [replace(rank, clock=offset) for rank, offset in zip(ranks()[:2], (0.0, 1.5), strict=True)]
    (difference,) = (item for item in compare_ranks(facts).differences if item.what == "clock")
    assert (difference.odd, difference.severity) == (("spark-0", "spark-1"), "look")


def test_all_clocks_apart_have_no_majority() -> None:
    facts = [replace(rank, clock=5.0 * number) for number, rank in enumerate(ranks())]
    (difference,) = (item for item in compare_ranks(facts).differences if item.what == "clock")
    assert difference.odd == HOSTS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"snapshot": snapshot(resolvable=87, dangling=("tokenizer.json",))},
            "0123456, 87 of 88 files, 1 lead nowhere (tokenizer.json)",
        ),
        (
            {"snapshot": snapshot(resolvable=87, outside=("config.json",))},
            "0123456, 87 of 88 files, 1 lead out of the mount (config.json)",
        ),
        ({"snapshot": None, "snapshot_problem": "missing"}, "missing"),
        ({"snapshot": None, "snapshot_problem": "mounted, no answer for 40s"}, "mounted, no answer for 40s"),
    ],
)
def test_a_snapshot_that_one_rank_cannot_load(changes: dict[str, Any], words: str) -> None:
    difference = only(changed(2, **changes))
    assert (difference.what, difference.odd, difference.severity) == ("snapshot", ("spark-2",), "act")
    assert dict(difference.values) == {
        "spark-0": "0123456, 88 of 88 files",
        "spark-1": "0123456, 88 of 88 files",
        "spark-2": words,
        "spark-3": "0123456, 88 of 88 files",
    }


@pytest.mark.parametrize("hidden", [{"unreadable": ("config.json",)}, {"elsewhere": "/srv/x"}])
def test_a_snapshot_that_cannot_be_seen_whole_is_not_compared(hidden: dict[str, Any]) -> None:
    found = changed(2, snapshot=snapshot(resolvable=87, **hidden))
    assert (found.differences, found.unread) == (GID, (("spark-2", "snapshot"),))


def test_snapshots_with_other_contents() -> None:
    sizes = {**snapshot().sizes, "model-00001-of-00048.safetensors": 5}
    assert only(changed(2, snapshot=snapshot(sizes=sizes))).why == "the ranks would load different files"
    assert only(changed(2, snapshot=snapshot(entries=87, resolvable=87))).odd == ("spark-2",)
    assert only(changed(2, snapshot=snapshot(revision="f" * 40))).odd == ("spark-2",)


def test_a_snapshot_broken_on_every_rank_is_told_too() -> None:
    facts = [replace(rank, snapshot=snapshot(resolvable=87, dangling=("x",))) for rank in ranks()]
    (difference,) = (item for item in compare_ranks(facts).differences if item.what == "snapshot")
    assert difference.odd == HOSTS


@pytest.mark.parametrize(
    ("state", "words", "severity"),
    [
        (RowState.OLD_REVISION, "old revision df42c109, rebuild", "act"),
        (RowState.WRONG_RANGES, "other ranges: vLLM split in an SGLang lane, rebuild", "act"),
        (RowState.HOLES, "holes", "act"),
        (RowState.COPYING, "copying, no manifest", "look"),
        (RowState.WAITS, "waits", "look"),
    ],
)
def test_a_row_copy_that_is_not_ready(state: RowState, words: str, severity: str) -> None:
    rows = ranks()[2].rows
    assert rows is not None
    difference = only(changed(2, rows=replace(rows, state=state, words=words)))
    assert (difference.what, difference.odd, difference.severity) == ("row copy", ("spark-2",), severity)
    assert dict(difference.values)["spark-2"] == words
    assert dict(difference.values)["spark-1"] == "reads the shards"


def test_one_slow_gpu_paces_all() -> None:
    difference = only(changed(2, gpu_mhz=1500.0))
    assert (difference.what, difference.odd, difference.severity) == ("GPU clock", ("spark-2",), "look")
    assert dict(difference.values) == {
        "spark-0": "2411 MHz",
        "spark-1": "2405 MHz",
        "spark-2": "1500 MHz",
        "spark-3": "2411 MHz",
    }
    assert changed(2, gpu_mhz=2000.0).differences == GID
    assert changed(2, gpu_mhz=208.0, gpu_busy=3.0).differences == GID


def test_busy_at_little_power_is_a_hang() -> None:
    difference = only(changed(3, gpu_watts=20.0, gpu_busy=96.0))
    assert (difference.what, difference.odd) == ("GPU power", ("spark-3",))
    assert difference.why.startswith("busy at little power is the sign of a rank that waits")
    assert not only(changed(3, gpu_watts=40.0)).why.startswith("busy at little power")


def test_what_was_not_read_is_named_and_never_compared() -> None:
    found = changed(
        2,
        container=None,
        driver="",
        kernel="",
        clock=None,
        snapshot=None,
        rows=None,
        gpu_mhz=None,
        gpu_watts=None,
        gpu_busy=None,
    )
    assert found.differences == ()
    assert found.unread == tuple(
        ("spark-2", what) for what in ("container", "driver", "kernel", "clock", "snapshot", "row copy", "GPU")
    )
    nothing = compare_ranks([RankFacts(host) for host in HOSTS])
    assert (nothing.differences, nothing.compared, len(nothing.unread)) == ((), (), 28)
    assert compare_ranks(ranks()[:1]) == Drift(())


def test_what_a_lane_does_not_have_is_not_missed() -> None:
    bare = [RankFacts(host, reads_rows=False, looks_at_snapshot=False, in_container=False) for host in HOSTS]
    assert {what for _, what in compare_ranks(bare).unread} == {"driver", "kernel", "clock", "GPU"}


def test_a_list_row_has_no_arguments() -> None:
    found = with_container(2, lambda container: replace(container, inspected=False, args=(), mounts=(), env=()))
    assert found.differences == ()
    assert found.unread == (("spark-2", "arguments and mounts"),)


def test_an_environment_that_was_not_told_is_not_empty() -> None:
    found = with_container(2, lambda container: replace(container, env=()))
    assert found.differences == ()
    assert found.unread == (("spark-2", "environment"),)


def test_the_worst_comes_first() -> None:
    facts = ranks()
    facts[0] = replace(facts[0], driver="1", kernel="2", snapshot=None, snapshot_problem="missing")
    assert [item.severity for item in compare_ranks(facts).differences] == ["act", "look", "info", "info", "info"]


def test_arguments_of_a_command_line() -> None:
    line = ("python3", "-m", "sglang", "--tp=4", "--node_rank", "1", "--flag", "-1", "--a", "x", "y", "--a", "z")
    assert arguments(line) == {
        "": "python3",
        "-m": "sglang",
        "--tp": "4",
        "--node-rank": "1",
        "--flag": "-1",
        "--a": "x y z",
    }
    assert arguments(("a", "--on")) == {"": "a", "--on": "given"}


WORDS = st.sampled_from(["--tp", "4", "--node-rank", "--x=1", "-1", "y", "[red]", "/home/bob/x"])


@given(
    st.lists(
        st.tuples(
            st.lists(WORDS, max_size=5).map(tuple),
            st.lists(st.tuples(st.sampled_from("ABC"), WORDS), max_size=3).map(tuple),
            st.lists(st.builds(Mount, WORDS, st.sampled_from(["/a", "/b"]), st.booleans()), max_size=2).map(tuple),
            st.none() | st.floats(-1e6, 1e6),
            st.none() | st.floats(0, 1e4),
            st.none() | st.floats(0, 100),
        ),
        max_size=5,
    )
)
def test_any_ranks_are_compared(made: list[tuple[Any, ...]]) -> None:
    base = ranks()[0].container
    assert base is not None
    facts = [
        RankFacts(
            f"n{number}", replace(base, args=args, env=env, mounts=mounts), clock=clock, gpu_mhz=mhz, gpu_busy=busy
        )
        for number, (args, env, mounts, clock, mhz, busy) in enumerate(made)
    ]
    for item in compare_ranks(facts).differences:
        assert item.odd and item.why and item.severity in ("act", "look", "info")
        assert set(item.odd) <= {host for host, _ in item.values}
        assert item.what.startswith(("argument", "clock", "GPU")) or len({value for _, value in item.values}) > 1


def test_what_differs_is_not_among_what_is_equal() -> None:
    kernels = compare_ranks(
        [RankFacts("a", kernel="6.17"), RankFacts("b", kernel="6.17"), RankFacts("c", kernel="6.14")]
    )
    assert [item.what for item in kernels.differences] == ["kernel"]
    assert kernels.compared == ("kernel",) and kernels.equal == ()
    many = Drift(
        tuple(
            Difference(what, (), (), "look", "")
            for what in ("image id", "argument --context-length", "environment NCCL_IB_HCA", "row copy")
        ),
        ("container", "arguments and mounts", "environment", "driver", "row copy"),
    )
    assert many.equal == ("driver",)
