"""A head that falls silent: its engine is not called down for it, what was known is said with its age."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "widgets"))
sys.path.insert(0, str(Path(__file__).parents[1] / "rehearsal"))

import pictures
from test_lane_feed import hear, lane_feed, metrics, probed, reachable
from told import until

from console.alarms import alarms
from console.feed import Feed
from console.feed.lane import LaneFeed
from console.lamps import serving
from console.readings.answers import HttpAnswer, Transport
from console.readings.health import HttpVerdict, LaneState
from console.rehearsal import Rehearsal
from console.snapshot import LaneView, Severity


def timed_out() -> HttpAnswer:
    return HttpAnswer(time.monotonic(), 5.0, Transport.READ_TIMEOUT)


def serves(silent: float) -> LaneFeed:
    """A lane that served, whose head has said nothing for so many seconds."""
    lane = lane_feed(engine="vllm")
    reachable(lane)
    now = time.monotonic()
    for ago in (4.0, 3.0, 2.0, 1.0):
        hear(lane, metrics(now - silent - ago, steps=int(100 - ago), running=1))
    probed(lane, now - silent - 0.5)
    lane._head.heard = now
    assert lane.view(now - silent, time.time()).verdict.state is LaneState.SERVING
    lane._head.heard = lane._silence._answered = now - silent
    return lane


def seen(lane: LaneFeed) -> LaneView:
    lane._heard += 1
    return lane.view(time.monotonic(), time.time())


def ask_in_vain(lane: LaneFeed) -> None:
    """Every question ran into its limit, and one more waits."""
    for _ in range(4):
        lane._take_probe(timed_out())
        hear(lane, timed_out())
    lane._probing_since = time.monotonic() - 12.0


def test_for_the_first_seconds_what_was_known_counts_on() -> None:
    lane = serves(silent=3.5)
    ask_in_vain(lane)
    found = seen(lane)
    assert (found.verdict.state, found.lights.http.verdict) == (LaneState.SERVING, HttpVerdict.OK)


def test_then_the_lane_is_late_and_never_down() -> None:
    lane = serves(silent=12.0)
    ask_in_vain(lane)
    found = seen(lane)
    assert (found.verdict.word, found.verdict.last) == ("LATE", LaneState.SERVING)
    assert found.verdict.why == "nothing heard from a for 12 s, last known SERVING"
    assert found.lights.http.verdict is HttpVerdict.UNREACHABLE
    snapshot = replace(pictures.spark4(), lanes=(found,), hosts=(lane._head.view(),), now=time.monotonic())
    lamp = serving(snapshot, found)
    assert (lamp.word, lamp.rest, lamp.severity) == ("LATE 12s", "last known SERVING", Severity.LOOK)
    told = next(alarm for alarm in alarms(snapshot) if "state:" in alarm.key)
    assert (told.severity, told.text.split(":")[0]) == (Severity.LOOK, "LATE")
    assert seen(lane).verdict.last is LaneState.SERVING  # also the second time


def test_what_the_link_swallowed_does_not_count_once_the_head_is_heard_again() -> None:
    lane = serves(silent=12.0)
    ask_in_vain(lane)
    assert seen(lane).verdict.word == "LATE"
    lane._probing_since = None
    lane._head.heard = time.monotonic()
    hear(lane, metrics(time.monotonic(), steps=120, running=1))
    probed(lane, time.monotonic())
    found = seen(lane)
    assert (found.verdict.state, found.lights.http.misses) == (LaneState.SERVING, 0)


@pytest.mark.parametrize("heard", [0.5, 40.0])
def test_an_engine_that_hangs_is_told_where_its_head_is_heard_or_the_link_has_proved_itself(heard: float) -> None:
    """40 s without a frame and no connection lost: keepalives were answered, it is the sampler that is silent."""
    lane = serves(silent=heard)
    ask_in_vain(lane)
    found = seen(lane)
    assert found.verdict.late_since is None
    assert found.verdict.state in (LaneState.DEGRADED, LaneState.STALLED, LaneState.DOWN)


async def test_a_cut_link_goes_from_serving_to_late_to_unreachable_and_to_no_other_word() -> None:
    bad = {LaneState.DOWN, LaneState.DEGRADED, LaneState.STALLED, LaneState.DRAINING, LaneState.PAUSED}
    async with Rehearsal("station") as rehearsal:
        feed = Feed(rehearsal.fleet, rehearsal.overrides, remembered=rehearsal.remembered)
        await feed.start()
        said: list[LaneState] = []

        def watch(view: LaneView) -> LaneView:
            said.append(view.verdict.state)
            return view

        try:
            name = next(iter(rehearsal.fleet.lanes))
            await until(feed, name, lambda view: view.verdict.state is LaneState.SERVING, "it serves")
            await rehearsal.inject("host", host="station", mode="silent")
            said.clear()
            await until(feed, name, lambda view: watch(view).verdict.word == "LATE", "it is late")
            down = await until(feed, name, lambda view: watch(view).health.down_since is not None, "unreachable")
            assert down.lane(name).verdict.state is LaneState.UNKNOWN
            assert not bad & set(said), said
        finally:
            await feed.stop()
