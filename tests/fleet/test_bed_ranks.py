"""Ranks that differ, on real hosts: mounts over the network, images under one tag, environment, arguments, clocks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from bed.client import Bed, BedHost
from bed_lane import HELD, IMAGE, OLD, SmallLane
from bed_watch import LaneWatch, feeding, shown

from console.alarms import Alarm, alarms
from console.feed import Feed
from console.fleet import looks
from console.readings.drift import Difference
from console.readings.quality import Quality
from console.snapshot import LaneView, Snapshot

pytestmark = [pytest.mark.bed, pytest.mark.timeout(420)]

SKEW = "/etc/ssh/sshd_config.d/skew.conf"
HOURS = 3


@pytest.fixture
def lane(bed: Bed, three: tuple[BedHost, ...]) -> Iterator[SmallLane]:
    """Three ranks that do not differ: the checkpoint mounted, copies built, a container on each."""
    found = SmallLane(bed, three)
    try:
        found.write_site(OLD)
        found.write_checkpoint(OLD)
        for client in found.clients:
            found.mount(client)
        for rank in (1, 2):
            found.build(rank, OLD)
        found.share_image()
        for host in found.hosts:
            found.launch(host)
        yield found
    finally:
        found.clear()


async def test_what_differs_between_ranks_is_named(
    lane: SmallLane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "SLOW_S", 1.0)
    async with feeding(lane.fleet_file(tmp_path), lane.hosts) as feed:
        watch = LaneWatch(feed, "dsv41")
        await watch.until(alike, "ranks that do not differ", compared)
        await containers_story(feed, watch, lane)
        await watch.until(alike, "ranks that do not differ", compared)
        await mounts_story(feed, watch, lane)
        await watch.until(alike, "ranks that do not differ", compared)
        await clock_story(feed, watch, lane)


def compared(view: LaneView) -> object:
    """What there is instead of what was waited for."""
    repos = [(host, item.error, item.value.problem if item.value else None) for host, item in view.repos]
    return view.drift, repos, [rank.word for rank in view.ranks]


def alike(view: LaneView) -> bool:
    """Everything that matters here was compared, and nothing differs."""
    drift = view.drift
    wanted = {"container", "arguments and mounts", "environment", "clock", "snapshot", "row copy"}
    return drift is not None and wanted <= set(drift.compared) and not drift.differences


async def until_difference(watch: LaneWatch, what: str, *odd: BedHost) -> Difference:
    """Wait until these hosts, which are looked at one after the other, are said to differ in this."""
    names = tuple(host.name for host in odd)

    def seen(view: LaneView) -> Difference | None:
        found = view.drift.differences if view.drift else ()
        return next((item for item in found if (item.what, item.odd) == (what, names)), None)

    return await watch.until(seen, f"{names} differ in {what}", compared)


async def until_alarm(feed: Feed, key: str) -> Alarm:
    """Wait for an alarm."""
    return await shown(
        feed,
        lambda snapshot: next((alarm for alarm in alarms(snapshot) if alarm.key == key), None),
        f"alarm {key}",
        lambda snapshot: [alarm.key for alarm in alarms(snapshot)],
    )


async def containers_story(feed: Feed, watch: LaneWatch, lane: SmallLane) -> None:
    """Rank 2 is started from another build under the same tag, with another environment, argument and mount."""
    host = lane.hosts[2]
    before = await asyncio.to_thread(host.docker, "image", "inspect", "--format", "{{.Id}}", IMAGE)
    again = ("--change", "LABEL build=other", "/srv/images/busybox.tar", IMAGE)
    await asyncio.to_thread(host.docker, "import", *again)
    try:
        more = {"env": ("NCCL_IB_HCA=rocep1s0f1",), "mounts": ("/srv/other:/sgl-cache",)}
        await asyncio.to_thread(lambda: lane.launch(host, "--chunked-prefill-size", "4096", **more))
        image = await until_difference(watch, "image id", host)
        assert image.severity == "act" and dict(image.values)[host.name] != before
        argument = await until_difference(watch, "argument --chunked-prefill-size", host)
        assert dict(argument.values)[host.name] == "4096"
        variable = await until_difference(watch, "environment NCCL_IB_HCA", host)
        assert "never reaches the engine" in variable.why
        mount = await until_difference(watch, "mount /sgl-cache", *lane.clients)  # the holder has mounts of its own
        assert dict(mount.values)[host.name] == "/srv/other"
        await until_alarm(feed, "rank:dsv41:image id")
    finally:
        await asyncio.to_thread(host.docker, "tag", before, IMAGE)
    await asyncio.to_thread(lane.launch, host)


async def mounts_story(feed: Feed, watch: LaneWatch, lane: SmallLane) -> None:
    """An absolute link, a lost mount, and a file server that no longer answers."""
    head, client = lane.head, lane.hosts[1]
    link = f"{HELD}/snapshots/{OLD}/config.json"
    target = (await asyncio.to_thread(head.root, "readlink", "-f", link)).strip()
    relative = (await asyncio.to_thread(head.root, "readlink", link)).strip()
    await asyncio.to_thread(head.root, "ln", "-sfn", target, link)
    difference = await until_difference(watch, "snapshot", *lane.clients)  # on the holder it resolves
    assert all("config.json" in dict(difference.values)[host.name] for host in lane.clients)
    await until_alarm(feed, f"snapshot:dsv41:{client.name}")
    assert f"snapshot:dsv41:{head.name}" not in {alarm.key for alarm in alarms(feed.snapshot())}
    await asyncio.to_thread(head.root, "ln", "-sfn", relative, link)
    await watch.until(alike, "ranks that do not differ", compared)

    await asyncio.to_thread(lane.unmount, client)
    alarm = await until_alarm(feed, f"snapshot:dsv41:{client.name}")
    assert "is not in the checkpoint's folder, which has none" in alarm.text
    await until_difference(watch, "snapshot", client)
    await asyncio.to_thread(lane.mount, client)
    await watch.until(alike, "ranks that do not differ", compared)

    servers = await asyncio.to_thread(lane.file_servers)
    assert len(servers) >= len(lane.clients), "a container holds on to the mount that was lost"
    await asyncio.to_thread(head.root, "kill", "-STOP", *map(str, servers))
    try:
        await watch.until(lambda view: hung(view, client.name), "the mount hangs", lambda view: repo(view, client.name))
        snapshot = feed.snapshot()
        view = snapshot.lane("dsv41")
        reading = dict(view.repos)[client.name]
        assert reading.current(snapshot.now) is None, "what was seen before is not shown as current"
        assert snapshot.host(client.name).memory.quality(snapshot.now) is Quality.LIVE
        assert dict(view.repos)[head.name].current(snapshot.now) is not None
        await until_difference(watch, "snapshot", *lane.clients)
    finally:
        await asyncio.to_thread(head.root, "kill", "-CONT", *map(str, servers))
    await watch.until(alike, "ranks that do not differ", compared)


def repo(view: LaneView, host: str) -> object:
    """The repository through one host's mount."""
    return dict(view.repos)[host]


def hung(view: LaneView, host: str) -> bool:
    """The look at the mount is said not to come back."""
    return "has not answered for" in dict(view.repos)[host].error


async def clock_story(feed: Feed, watch: LaneWatch, lane: SmallLane) -> None:
    """Everything that ssh starts on one host is three hours behind, as on a host that lost its time server."""
    host = lane.hosts[1]
    with skewed(host):
        snapshot = await shown(
            feed, lambda snapshot: is_behind(snapshot, host.name), f"{host.name} is {HOURS} h behind", drifts
        )
        assert snapshot.host(host.name).memory.quality(snapshot.now) is Quality.LIVE
        difference = await until_difference(watch, "clock", host)
        assert difference.severity == "act"
        assert dict(difference.values)[host.name].startswith("-10")
        await until_alarm(feed, f"drift:{host.name}")
        copies = feed.snapshot().lane("dsv41").rows
        assert copies is not None and copies.value is not None
        assert [copy.words for copy in copies.value.copies] == ["reads the shards", "ready", "ready"]
    await watch.until(alike, "ranks that do not differ", compared)


@contextlib.contextmanager
def skewed(host: BedHost) -> Iterator[None]:
    """Processes of new ssh sessions are HOURS behind; their monotonic clock is the kernel's."""
    library = host.root("sh", "-c", "ls /usr/lib/*/faketime/libfaketime.so.1").strip()
    setting = f"SetEnv LD_PRELOAD={library} FAKETIME=-{HOURS}h FAKETIME_DONT_FAKE_MONOTONIC=1\n"
    host.write(SKEW, setting)
    try:
        host.root("systemctl", "reload", "ssh.service")
        host.kill_ssh_sessions()
        yield
    finally:
        host.root("rm", "-f", SKEW)
        host.root("systemctl", "reload", "ssh.service")
        host.kill_ssh_sessions()


def drifts(snapshot: Snapshot) -> dict[str, float | None]:
    """How far each host's clock is ahead."""
    return {host.name: host.drift for host in snapshot.hosts}


def is_behind(snapshot: Snapshot, host: str) -> Snapshot | None:
    """The snapshot, once the host's clock is known to be behind."""
    drift = snapshot.host(host).drift
    return snapshot if drift is not None and drift == pytest.approx(-3600 * HOURS, abs=60) else None


def test_a_host_that_reboots_is_lost_and_comes_back_as_it_is(lane: SmallLane, bed: Bed, tmp_path: Path) -> None:
    asyncio.run(reboot_story(lane, bed, tmp_path))


async def reboot_story(lane: SmallLane, bed: Bed, tmp_path: Path) -> None:
    host = lane.hosts[1]
    async with feeding(lane.fleet_file(tmp_path), lane.hosts) as feed:
        watch = LaneWatch(feed, "dsv41")
        await watch.until(alike, "ranks that do not differ", compared)
        first = feed.snapshot().host(host.name).facts.value
        assert first is not None and first.boot_id
        uptime = host.root("cat", "/proc/sys/kernel/random/boot_id").strip()
        assert uptime == first.boot_id

        await asyncio.to_thread(host.root, "systemctl", "reboot", check=False)
        snapshot = await shown(feed, lambda s: gone(s, host.name), "the host is gone", lambda s: s.host(host.name).link)
        assert snapshot.host(host.name).drift is None
        view = snapshot.lane("dsv41")
        assert view.ranks[1].word == "unknown" and not view.ranks[1].revision
        assert dict(view.repos)[host.name].current(snapshot.now) is None
        assert view.drift is not None and (host.name, "container") in view.drift.unread
        await until_alarm(feed, f"link:{host.name}")

        await asyncio.to_thread(bed.restart, host)
        await shown(
            feed, lambda s: booted_anew(s, host.name, first.boot_id), "the host is back", lambda s: s.host(host.name)
        )
        await watch.until(lambda view: view.ranks[1].word.startswith("exited"), "its container is down", ranks_of)
        await until_alarm(feed, f"snapshot:dsv41:{host.name}")

        await asyncio.to_thread(lane.mount, host)
        await asyncio.to_thread(lane.launch, host)
        await watch.until(lambda view: view.ranks[1].word == "up", "its container is up", ranks_of)
        await watch.until(alike, "ranks that do not differ", compared)
        texts = [event.text for event in feed.snapshot().events if event.subject == host.name]
        assert any(text.startswith("unreachable") for text in texts) and "reachable again" in texts, texts


def ranks_of(view: LaneView) -> list[str]:
    """The words of all ranks."""
    return [rank.word for rank in view.ranks]


def gone(snapshot: Snapshot, name: str) -> Snapshot | None:
    """The snapshot, once nothing of the host is shown as current."""
    host = snapshot.host(name)
    readings = (host.memory, host.facts, host.containers)
    lost = all(item.quality(snapshot.now) is Quality.UNREACHABLE for item in readings)
    return snapshot if lost and all(item.current(snapshot.now) is None for item in readings) else None


def booted_anew(snapshot: Snapshot, name: str, before: str) -> bool:
    """The host is read again, and is known to have been started since."""
    host = snapshot.host(name)
    facts = host.facts.current(snapshot.now)
    return facts is not None and facts.boot_id not in ("", before) and host.memory.current(snapshot.now) is not None
