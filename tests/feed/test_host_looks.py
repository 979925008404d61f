"""What a host's answers to looks are kept for: the question they answer, and the trouble that is theirs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from console.feed.host import HostFeed
from console.fleet.inventory import Host, Rates
from console.reach.link import Frame, Link
from console.readings.link import LinkState, LinkStatus
from console.readings.look import Look, LookKind
from console.readings.quality import Quality
from console.snapshot import Severity


@dataclass
class Wire:
    """A link that is up, and what it was told to look at."""

    state: LinkState = field(default_factory=lambda: LinkState(LinkStatus.UP, time.monotonic()))
    asked: list[Sequence[Look]] = field(default_factory=list)

    def look(self, looks: Sequence[Look]) -> None:
        self.asked.append(looks)


def note(subject: str, text: str, severity: Severity, wall: float | None = None, deed: str = "") -> None:
    raise AssertionError(f"{subject}: {text}")


def host() -> HostFeed:
    return HostFeed("n0", Host(ssh="n0", docker=""), Rates(), cast(Link, Wire()), note)


def rows(path: str, every: float = 5.0) -> Look:
    return Look("lane:rows", LookKind.TREE, (path, "1", "1000"), every)


def dogs(*parts: str) -> Look:
    return Look("lane:watchdog.processes", LookKind.PROCESSES, parts, 15.0)


def answered(feed: HostFeed, **texts: str) -> None:
    now = time.monotonic()
    feed._take_look(Frame("look", 1, now, time.time(), now, {f"lane:{key}": text for key, text in texts.items()}))


def failed(feed: HostFeed, words: str, **named: str) -> None:
    now = time.monotonic()
    feed._take_error(Frame("error", 1, now, time.time(), now, dict(named), error=words, source="look"))


@pytest.mark.parametrize("other", [rows("/rows-1017"), Look("lane:rows", LookKind.FILE, ("/rows",))])
def test_the_answer_of_one_folder_is_never_that_of_another(other: Look) -> None:
    feed = host()
    feed.look("lane", [rows("/rows")])
    answered(feed, rows="missing")
    before = feed.looked("lane:rows")
    assert before is not None and before.value == "missing"
    feed.look("lane", [other])
    after = feed.looked("lane:rows")
    assert after is not None and (after.value, after.quality(time.monotonic())) == (None, Quality.ABSENT)
    assert (after.source, after.interval) == (f"n0:{other.arguments[0]}", other.every)


def test_a_look_that_is_to_be_made_less_often_keeps_its_answer_and_may_be_older() -> None:
    feed = host()
    feed.look("lane", [rows("/rows")])
    answered(feed, rows="missing")
    assert feed.looked("lane:rows") is not None
    feed.look("lane", [rows("/rows", 15.0)])
    kept = feed.looked("lane:rows")
    assert kept is not None and (kept.value, kept.interval) == ("missing", 15.0)


def test_a_look_that_stays_keeps_its_answer_when_another_comes_or_goes() -> None:
    feed = host()
    feed.look("lane", [rows("/rows")])
    answered(feed, rows="missing")
    feed.look("other", [Look("other:site", LookKind.FILE, ("/x",))])
    feed.look("other", [])
    kept = feed.looked("lane:rows")
    assert kept is not None and kept.value == "missing"
    assert feed.looked("other:site") is None


def test_a_pid_more_to_look_for_does_not_make_the_processes_unknown() -> None:
    feed = host()
    feed.look("lane", [dogs("watchdog.sh")])
    answered(feed, **{"watchdog.processes": "ok"})
    feed.look("lane", [dogs("watchdog.sh", "pid:4711")])
    kept = feed.looked("lane:watchdog.processes")
    assert kept is not None and kept.value == "ok"


def test_a_folder_that_hangs_is_the_trouble_of_that_folder_alone() -> None:
    feed = host()
    feed.look("lane", [rows("/rows"), dogs("watchdog.sh")])
    answered(feed, rows="missing", **{"watchdog.processes": "ok"})
    failed(feed, "lane:rows (tree /rows): the look was ended after 60 s", key="lane:rows")
    hung, well = feed.looked("lane:rows"), feed.looked("lane:watchdog.processes")
    now = time.monotonic()
    assert hung is not None and hung.current(now) is None and "ended after 60 s" in hung.error
    assert well is not None and well.current(now) == "ok"


def test_where_nothing_can_be_looked_at_all_of_it_is_in_trouble() -> None:
    feed = host()
    feed.look("lane", [rows("/rows"), dogs("watchdog.sh")])
    failed(feed, "no python3: nothing can be looked at")
    for key in ("lane:rows", "lane:watchdog.processes"):
        reading = feed.looked(key)
        assert reading is not None and reading.error.startswith("no python3")
