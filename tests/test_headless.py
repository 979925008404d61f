"""When one reading of everything is whole, and what its exit code says."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "widgets"))
sys.path.insert(0, str(Path(__file__).parent / "screens"))

import pictures
import strips

from console.headless import EXIT_GOOD, EXIT_NEEDS_OPERATOR, EXIT_UNKNOWN, exit_code, lane_settled, settled, text_lines
from console.readings.acting_types import Acting, Operation, OperationState
from console.readings.containers import Containers
from console.readings.facts import parse_facts
from console.readings.health import LaneState, LaneVerdict
from console.readings.link import LinkState, LinkStatus
from console.snapshot import Snapshot


def with_host(**changes: Any) -> Snapshot:
    snapshot = pictures.spark4()
    return replace(snapshot, hosts=(replace(snapshot.hosts[0], **changes), *snapshot.hosts[1:]))


def test_gpus_are_waited_for_where_there_are_any() -> None:
    """They tell whether memory is unified: without them low free memory would read as well."""
    unread = pictures.unread()
    assert settled(pictures.spark4())
    for said, whole in (("/usr/bin/nvidia-smi", False), ("nvidia-smi is not on PATH", True), ("", True)):
        facts = pictures.reading(parse_facts({"gpu": said}))
        assert settled(with_host(gpus=unread, facts=facts)) is whole
    assert not settled(with_host(gpus=unread, facts=unread))
    failed = replace(unread, error="nvidia-smi has not answered for 10 s")
    assert settled(with_host(gpus=failed, facts=unread))


def test_every_source_is_waited_for_unless_its_host_is_known_to_be_away() -> None:
    unread = pictures.unread()
    snapshot = pictures.spark4()
    assert not settled(with_host(memory=unread))
    assert not settled(with_host(containers=unread))
    assert not settled(with_host(link=LinkState(LinkStatus.CONNECTING, snapshot.now)))
    gone = LinkState(LinkStatus.DOWN, snapshot.now, "no route")
    assert settled(with_host(link=gone, memory=unread, containers=unread, gpus=unread))


def test_exit_codes() -> None:
    snapshot = pictures.spark4()
    assert exit_code(snapshot) == EXIT_GOOD
    down = replace(snapshot.lanes[0], verdict=LaneVerdict(LaneState.DOWN, "gone"))
    assert exit_code(replace(snapshot, lanes=(down,))) == EXIT_NEEDS_OPERATOR
    unknown = replace(snapshot.lanes[0], verdict=LaneVerdict(LaneState.UNKNOWN, "not read"))
    assert exit_code(replace(snapshot, lanes=(unknown,))) == EXIT_UNKNOWN
    assert exit_code(with_host(link=LinkState(LinkStatus.DOWN, snapshot.now, "no route"))) == EXIT_UNKNOWN
    assert exit_code(with_host(containers=pictures.reading(Containers((), "permission denied")))) == EXIT_UNKNOWN
    assert exit_code(with_host(memory=pictures.reading(None, error="cannot be read"))) == EXIT_UNKNOWN


def test_text_says_what_to_do_about_an_alarm() -> None:
    snapshot = pictures.spark4()
    assert text_lines(snapshot)[-1] == "no alarms"
    gone = LinkState(LinkStatus.DOWN, snapshot.now - 5, "host key changed", "compare it, then ssh-keygen -R n1")
    rows = text_lines(with_host(link=gone, memory=pictures.unread()))
    at = next(at for at, row in enumerate(rows) if row.startswith("LOOK  n1: unreachable 5s: host key changed"))
    assert rows[at + 1] == "      compare it, then ssh-keygen -R n1"
    assert next(row for row in rows if row.startswith("host n1:")).endswith("host key changed (never read)")
    assert "no alarms" not in rows


@pytest.mark.parametrize(
    ("changes", "waited"),
    [
        ({"unread": True}, True),
        ({"state": OperationState.UNKNOWN}, True),
        ({"state": OperationState.UNKNOWN, "ended": 2.0}, False),
        ({}, False),
    ],
)
def test_an_operation_that_may_run_for_all_that_was_seen_is_waited_for(changes: dict[str, Any], waited: bool) -> None:
    """Whether it still runs decides what may be done to the lane."""
    snapshot = pictures.spark4()
    found = Operation("20261130T215510Z-stop-3f9ac1", "stop", "", "", "", "stop", OperationState.RUNNING, 1.0, None, ())
    acting = pictures.reading(Acting(1.0, operation=replace(found, **changes)))
    assert lane_settled(snapshot, replace(snapshot.lanes[0], acting=acting)) is not waited


def test_the_text_says_who_has_the_lane_and_what_is_done_to_it() -> None:
    rows = {row.split()[0]: row.strip() for row in text_lines(strips.under_way()) if row.startswith("  ")}
    assert rows["WINDOW"].startswith("WINDOW    of ana for 6m12s, 18m48s left: ")
    assert rows["LEASE"].startswith("LEASE     of ana (")
    assert rows["OWED"].startswith("OWED      watchdog off for ")
    assert "RUNNING for" in rows["OPERATION"] and strips.SWITCH.id in rows["OPERATION"]
    quiet = text_lines(pictures.spark4())
    assert not [row for row in quiet if row.split()[0] in ("WINDOW", "LEASE", "OWED", "OPERATION")]
