"""Work that grows with the fleet grows as the fleet does: counted in calls, since a test machine cannot time."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.crowd_server import machine_texts
from console.alarms import alarms
from console.document import document
from console.feed import Feed
from console.feed.kept import Kept
from console.feed.same import Same
from console.fleet.inventory import Fleet, build
from console.lamps import lamps
from console.reach.files_host import MIB, rough
from console.reach.limits import HandshakeLimits, allow_open_files
from console.reach.link import Frame
from console.readings.containers import Containers
from console.readings.link import LinkState, LinkStatus

T = TypeVar("T")
FEW, FACTOR = 64, 4
GROWS = 1.1 * FACTOR
"""Four times the fleet may take so much more; what looks at each host for each host takes sixteen times as much."""
RANKS = 4


def fleet(hosts: int) -> Fleet:
    """Lanes of four ranks each over so many hosts, with site files, checkpoints, row copies and watchdogs."""
    names = [f"n{number:04}" for number in range(hosts)]
    lanes = {
        f"lane{at:04}": {
            "recipe": "sglang-fleet-env",
            "url": "http://127.0.0.1:8210",
            "head": names[at],
            "ranks": names[at : at + RANKS],
            "vars": {"root": "/r"},
            "free_alarm_gib": 2.0,
        }
        for at in range(0, hosts, RANKS)
    }
    return build({"name": "wide", "hosts": {name: {"ssh": f"{name}.invalid"} for name in names}, "lanes": lanes})


class Texts:
    """What every host says."""

    def __init__(self, folder: Path) -> None:
        self.node, self.csv = machine_texts(folder)

    def heard(self, feed: Feed) -> None:
        """One frame of every kind from every host, and its containers."""
        now, wall = time.monotonic(), time.time()
        for name, host in feed._hosts.items():
            host.link._state = LinkState(LinkStatus.UP, 0.0)  # type: ignore[attr-defined]
            host._take_facts(Frame("facts", 0, now, wall, now, {"hostname": name}))
            host._take_node(Frame("node", 0, now, wall, now, dict(self.node)))
            host._take_gpu(Frame("gpu", 0, now, wall, now, {"csv": self.csv}))
            host._containers.put(Containers(()), now)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    return Texts(tmp_path_factory.mktemp("machine"))


def calls(work: Callable[[], T]) -> tuple[T, int]:
    """What `work` gives, and the calls of Python and C functions that it made."""
    found = 0

    def seen(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        answer = work()
    finally:
        sys.setprofile(before)
    return answer, found


def counted(hosts: int, texts: Texts) -> dict[str, int]:
    """Calls of each step, for a fleet of so many hosts."""
    wanted = fleet(hosts)
    found: dict[str, int] = {}
    feed, found["build"] = calls(lambda: Feed(wanted))
    _, found["frames"] = calls(lambda: texts.heard(feed))
    _, found["first picture"] = calls(feed.snapshot)
    texts.heard(feed)
    for lane in feed._lanes.values():
        lane._judged_at = float("-inf")
    picture, found["everything anew"] = calls(feed.snapshot)
    _, found["nothing new"] = calls(feed.snapshot)
    _, found["lamps"] = calls(lambda: [lamps(picture, lane) for lane in picture.lanes])
    _, found["alarms"] = calls(lambda: alarms(picture))
    _, found["document"] = calls(lambda: document(picture))
    return found


async def test_no_work_grows_with_the_square_of_the_hosts(texts: Texts) -> None:
    fleet(RANKS)  # what is imported or read once
    counted(RANKS, texts)
    few, many = counted(FEW, texts), counted(FACTOR * FEW, texts)
    grown = {step: many[step] / few[step] for step in few}
    assert {step: ratio for step, ratio in grown.items() if ratio > GROWS} == {}, (few, many)


async def test_a_picture_in_which_nothing_is_new_costs_a_few_calls_a_host(texts: Texts) -> None:
    assert counted(FEW, texts)["nothing new"] <= 40 * FEW


async def test_each_host_is_only_told_what_its_own_lane_wants_to_know() -> None:
    feed = Feed(fleet(FEW))
    asked = {name: set(host._wanted) for name, host in feed._hosts.items()}
    for lane in feed._lanes.values():
        others = asked.keys() - set(lane.lane.rank_hosts)
        assert not any(lane.name in asked[name] for name in others)
    assert all(asked[lane.lane.head] == {lane.name, f"{lane.name}:acting"} for lane in feed._lanes.values())


async def test_one_set_of_handshakes_bounds_the_whole_fleet() -> None:
    feed = Feed(fleet(FEW))
    assert all(host.link._connector._limits is feed.limits for host in feed._hosts.values())  # type: ignore[attr-defined]
    assert isinstance(feed.limits, HandshakeLimits)


# what was worked out before


def test_a_value_stands_until_what_it_rests_on_is_another_object() -> None:
    same: Same[list[int]] = Same()
    made: list[list[int]] = []

    def make(*numbers: int) -> Callable[[], list[int]]:
        def run() -> list[int]:
            made.append(list(numbers))
            return made[-1]

        return run

    read = Kept[str]("host", 5.0)
    read.put("text", 1.0)
    first = same.of((read.reading(None), 1000, "words"), make(1))
    again = same.of((read.reading(None), 1000, "words".replace("w", "w")), make(2))
    assert again is first and made == [[1]], "read: the very object; numbers and words by value"
    read.put("text", 2.0)
    assert same.of((read.reading(None), 1000, "words"), make(1)) is first, "what comes out equal stays the same object"
    assert made == [[1], [1]]
    assert same.of((read.reading(None), 1001, "words"), make(3)) == [3]
    assert same.of((read.reading(None), 1001), make(4)) == [4], "one part less is another basis"
    assert same.of((read.reading(None), 1001.0), make(5)) == [5], "a number of another kind is another one"


# what hosts send and may have


@given(st.integers(0, 1 << 60))
def test_free_bytes_are_rounded_down_a_little(size: int) -> None:
    told = rough(size)
    assert told <= size and size - told <= max(MIB - 1, size / 64)
    assert rough(told) == told


def test_free_bytes_of_a_disk_that_others_write_to_stay_the_same_for_a_while() -> None:
    free = 640 << 30
    told = {rough(free - (second << 20)) for second in range(1, 1000)}  # 1 MiB a second
    assert len(told) == 1


def test_the_limit_of_open_files_is_never_lowered() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert allow_open_files(16) >= 16
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


def test_the_limit_of_open_files_is_raised_as_far_as_it_goes() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 20 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert allow_open_files(300) == 300 == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert allow_open_files(most + (hard != resource.RLIM_INFINITY)) == most
        assert allow_open_files(300) == most, "never lower"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
