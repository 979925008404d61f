"""When one reading of everything is whole, and what its exit code says."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "widgets"))

import pictures

from console.headless import EXIT_GOOD, EXIT_NEEDS_OPERATOR, EXIT_UNKNOWN, exit_code, settled
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
