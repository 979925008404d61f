"""What the feed and the alarms make of hosts that lie about time, say nothing, or fail in odd ways."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "widgets"))
sys.path.insert(0, str(Path(__file__).parent / "reach"))

import pictures
from fake_link import FakeLink
from ssh_host import eventually

from console.alarms import FIRST_SECONDS, alarms
from console.feed import Feed
from console.feed.host import HostFeed
from console.feed.supervise import forever
from console.fleet.inventory import Host, Rates, build
from console.headless import text_lines
from console.reach.link import Frame
from console.readings.exits import ContainerEvent
from console.readings.link import LinkState, LinkStatus
from console.readings.quality import Reading
from console.snapshot import Severity, Snapshot

MEMINFO = "MemTotal: 1024 kB\nMemFree: 512 kB\nMemAvailable: 600 kB\nCached: 90 kB\n"


class Told(FakeLink):
    """A link whose frames the test writes."""

    def __init__(self, *frames: Frame) -> None:
        super().__init__("n1")
        self.told = frames
        self.is_up = LinkState(LinkStatus.UP, time.monotonic())

    @property
    def state(self) -> LinkState:
        return self.is_up

    async def frames(self) -> AsyncIterator[Frame]:
        for frame in self.told:
            yield frame


def node(wall: float) -> Frame:
    return Frame("node", 0, 1.0, wall, time.monotonic(), {"meminfo": MEMINFO})


def error(words: str, source: str, wall: float = 0.0) -> Frame:
    return Frame("error", 0, 0.0, wall, time.monotonic(), error=words, source=source)


async def fed(*frames: Frame) -> HostFeed:
    host = HostFeed("n1", Host(ssh="n1", docker=""), Rates(), Told(*frames), lambda *_: None)
    await host._read_frames()
    return host


async def test_a_stream_that_ended_says_nothing_about_the_hosts_clock() -> None:
    host = await fed(error("sampler: the remote shell ended it", "sampler"))
    assert host.view().drift is None and host.view().memory.error.startswith("sampler")
    host = await fed(error("sampler: ended", "sampler"), node(time.time() + 5.0))
    assert host.view().drift == pytest.approx(5.0, abs=0.5)


async def test_frames_that_queued_up_behind_a_slow_link_are_as_old_as_they_are() -> None:
    """The stream's first frame took 50 ms; of the others each came a second later than it was due."""
    now = time.monotonic() - 60.0
    late = [replace(node(time.time()), host_mono=500.0 + at, received=now + 0.05 + 2.0 * at) for at in range(20)]
    host = await fed(*late)
    taken = host.view().memory.taken_mono
    assert taken == pytest.approx(now + 0.05 + 19.0, abs=0.1)
    healed = replace(late[-1], host_mono=560.0, received=now + 60.05)
    host = await fed(*late, healed)
    assert host.view().memory.taken_mono == pytest.approx(now + 60.05, abs=0.1)


async def test_a_value_is_as_old_as_the_moment_at_which_it_was_asked_for() -> None:
    came = time.monotonic()
    asked = replace(node(time.time()), host_mono=100.0, started=92.0, received=came)
    assert (await fed(asked)).view().memory.taken_mono == pytest.approx(came - 8.0)


@pytest.mark.parametrize("mono", [0.0, -5.0, 1e18])
async def test_no_monotonic_clock_makes_a_reading_newer_than_its_arrival(mono: float) -> None:
    frames = [replace(node(time.time()), host_mono=value, started=value + 7.0) for value in (50.0, mono, 51.0)]
    host = await fed(*frames)
    taken = host.view().memory.taken_mono
    assert taken is not None and taken <= time.monotonic()


async def test_a_host_that_boots_begins_with_a_clock_of_its_own() -> None:
    before = replace(node(time.time()), host_mono=90_000.0)
    after = replace(node(time.time()), host_mono=3.0, received=before.received + 40.0)
    host = await fed(before, after)
    assert host.view().memory.taken_mono == pytest.approx(before.received + 40.0)


@pytest.mark.parametrize("wall", [1e300, -1e18, 0.0, 3e11])
async def test_a_clock_that_no_calendar_holds_is_no_clock(wall: float) -> None:
    host = await fed(node(wall))
    assert host.view().drift is None and host.view().memory.value is not None


async def test_a_clock_that_is_set_shows_at_once() -> None:
    """The least delayed of 30 frames decides, but not across a step, in either direction."""
    now = time.time()
    steady = [replace(node(now + 600.0 + at / 10), host_mono=at / 10) for at in range(10)]
    host = await fed(*steady)
    assert host.view().drift == pytest.approx(600.0, abs=2.0)
    host = await fed(*steady, replace(node(now), host_mono=1.0))
    assert host.view().drift == pytest.approx(0.0, abs=2.0)


async def test_an_error_belongs_to_the_source_that_it_names() -> None:
    host = await fed(error("sampler: the remote shell ended it: nvidia-smi: not found", "sampler"))
    assert host.view().memory.error and not host.view().gpus.error
    host = await fed(error("killed", "nvidia-smi", time.time()))
    assert host.view().gpus.error == "killed" and not host.view().memory.error


def small_feed() -> Feed:
    lane = {"recipe": "vllm-docker", "url": "http://127.0.0.1:9", "head": "n1"}
    return Feed(build({"name": "f", "hosts": {"n1": {"ssh": "n1"}}, "lanes": {"x": lane}}))


@pytest.mark.parametrize("wall", [0.0, -5.0, 1e300, float("nan"), float("inf"), 4e9])
def test_an_absurd_time_of_an_event_becomes_the_time_at_which_it_was_heard(wall: float) -> None:
    feed = small_feed()
    before = time.time()
    feed.note("n1", "odd", Severity.NORMAL, wall)
    feed.note("n1", "after", Severity.NORMAL)
    events = feed.snapshot().events
    assert [event.text for event in events] == ["odd", "after"]
    assert all(before <= event.wall <= time.time() for event in events)


async def test_an_event_of_a_host_whose_clock_is_wrong_stands_where_it_happened() -> None:
    noted: list[float | None] = []
    link = Told(node(time.time() - 7200.0))
    host = HostFeed("n1", Host(ssh="n1"), Rates(), link, lambda *event: noted.append(event[3]))
    await host._read_frames()
    host._on_docker_event(ContainerEvent(time.time() - 7200.0, "die", "1", "vllm", 137, None, ""))
    assert noted[0] == pytest.approx(time.time(), abs=5.0)


async def test_a_fault_of_a_source_is_safe_text_and_never_printed(capfd: pytest.CaptureFixture[str]) -> None:
    fault_text: list[str] = []

    async def work() -> None:
        raise LookupError("odd \x1b]52;c;ZXZpbA==\x07\u202etext")

    logger = logging.getLogger("laneswap.feed")
    propagate, logger.propagate = logger.propagate, False  # without pytest's own handlers, as in the console
    try:
        task = asyncio.create_task(forever("x", work, fault_text.append))
        await eventually(lambda: fault_text, "the fault in words")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    finally:
        logger.propagate = propagate
    assert fault_text[0] == "LookupError: odd text"
    assert capfd.readouterr() == ("", "")


def test_a_reading_that_failed_is_not_called_live_in_text() -> None:
    picture = pictures.spark4()
    broken = changed(memory=replace(picture.hosts[0].memory, error="/proc/meminfo: Permission denied"))
    row = next(line for line in text_lines(broken) if line.startswith(f"host {broken.hosts[0].name}:"))
    assert "UNREADABLE /proc/meminfo: Permission denied (last reading" in row and "LIVE" not in row


# no alarm is never the answer where something cannot be read


def changed(**changes: object) -> Snapshot:
    picture = pictures.spark4()
    first = replace(picture.hosts[0], **changes)  # type: ignore[arg-type]
    return replace(picture, hosts=(first, *picture.hosts[1:]))


def words(picture: Snapshot) -> dict[str, str]:
    return {alarm.key: alarm.text for alarm in alarms(picture)}


def test_a_host_whose_turn_to_connect_does_not_come_is_an_alarm() -> None:
    now = pictures.spark4().now
    young = changed(link=LinkState(LinkStatus.CONNECTING, now - FIRST_SECONDS + 1))
    old = changed(link=LinkState(LinkStatus.CONNECTING, now - 40.0))
    name = old.hosts[0].name
    assert f"link:{name}" not in words(young)
    assert words(old)[f"link:{name}"] == "not reached yet: connecting for 40s"


@pytest.mark.parametrize(("field", "key"), [("memory", "stale"), ("containers", "docker")])
def test_a_source_that_never_said_anything_is_an_alarm(field: str, key: str) -> None:
    picture = pictures.spark4()
    reading: Reading[object] = Reading("n1:x", 5.0)
    link = LinkState(LinkStatus.UP, picture.now - 20.0)
    silent = changed(link=link, **{field: reading})
    name = silent.hosts[0].name
    assert words(silent)[f"{key}:{name}"].endswith("not read yet, 20s after the host was reached")
    assert f"{key}:{name}" not in words(changed(link=LinkState(LinkStatus.UP, picture.now - 2.0), **{field: reading}))


@pytest.mark.parametrize(("field", "key"), [("memory", "stale"), ("gpus", "gpu"), ("containers", "docker")])
def test_a_source_that_fell_silent_is_an_alarm(field: str, key: str) -> None:
    picture = pictures.spark4()
    host = picture.hosts[0]
    silent = replace(getattr(host, field), taken_mono=picture.now - 900.0)
    assert "no reading for 15m" in words(changed(**{field: silent}))[f"{key}:{host.name}"]


def test_a_host_without_docker_or_gpu_is_no_alarm() -> None:
    picture = pictures.spark4()
    none = changed(containers=Reading("spark-0:no docker", 5.0), gpus=Reading("spark-0:nvidia-smi", 5.0))
    assert not {key for key in words(none) if key.startswith(("docker:", "gpu:"))}
    assert picture.hosts[0].name == none.hosts[0].name
