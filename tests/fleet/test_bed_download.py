"""The real `hf download` against a small Hub: how far, how fast, under which cap, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bed import cgroups, downloader
from bed.client import Bed, BedHost
from bed.system import wait_for
from bed_watch import LaneWatch, feeding, fleet_file

from console.alarms import alarms
from console.feed import Feed
from console.fleet import looks
from console.readings.download import Download, DownloadState
from console.snapshot import LaneView

pytestmark = [pytest.mark.bed, pytest.mark.timeout(420)]

RATE = 3.6e6
"""Bytes a second of one connection; there are two."""
HF = f"{downloader.INSIDE}/bin/hf"
LANE = """
[lanes.{lane}]
recipe = "docker-generic"
url = "http://127.0.0.1:1"
head = "{host}"
[lanes.{lane}.download]
repo = "~/{home}/hub/{folder}"
revision = "{revision}"
hub = "{url}"
unit = "hf.service"
manager = "{manager}"
"""


@dataclass(frozen=True)
class Hub:
    """The running server."""

    process: subprocess.Popen[bytes]
    told: dict[str, Any]

    @property
    def total(self) -> int:
        """Bytes of the revision."""
        return sum(self.told["files"].values())

    @property
    def folder(self) -> str:
        """Name of the repository's folder in a cache."""
        return "models--" + str(self.told["model"]).replace("/", "--")


@contextlib.contextmanager
def running_hub(bed: Bed) -> Iterator[Hub]:
    """A Hub on this machine, which the hosts reach over their bridge."""
    program = [sys.executable, str(Path(__file__).parent / "hub_server.py"), bed.gateway, str(RATE)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            ready, _, _ = select.select([process.stdout], [], [], 60.0)
            assert ready, "the Hub does not come up"
            yield Hub(process, json.loads(process.stdout.readline()))
        finally:
            process.send_signal(signal.SIGCONT)
            process.stdin.close()


@dataclass(frozen=True)
class Downloads:
    """Downloads into one cache of one host."""

    host: BedHost
    hub: Hub
    home: str

    def lane(self, name: str, manager: str) -> str:
        """As it stands in fleet.toml."""
        told = self.hub.told
        where = {"host": self.host.name, "home": self.home, "folder": self.hub.folder}
        return LANE.format(lane=name, manager=manager, revision=told["revision"], url=told["url"], **where)

    def command(self) -> str:
        """What an operator would type."""
        return f"{HF} download {self.hub.told['model']} --revision {self.hub.told['revision']} --max-workers 2"

    def environment(self) -> dict[str, str]:
        """Of the downloader; the Hub's hang must not end it."""
        home = f"/home/{self.host.user}/{self.home}"
        return {"HF_ENDPOINT": self.hub.told["url"], "HF_HOME": home, "HF_HUB_DOWNLOAD_TIMEOUT": "300"}

    def run_unit(self, manager: str, cap: str) -> None:
        """As a transient unit with a memory cap, in the way of the switch runbooks."""
        who = "systemd-run --user" if manager == "user" else f"sudo systemd-run --uid={self.host.user}"
        setting = " ".join(f"--setenv={name}={value}" for name, value in self.environment().items())
        self.host.ssh(f"{who} --quiet --unit=hf -p MemoryMax={cap} -p MemorySwapMax=0 {setting} {self.command()}")

    def run_bare(self) -> None:
        """Without a unit, as from a shell."""
        setting = " ".join(f"{name}={value}" for name, value in self.environment().items())
        self.host.ssh(f"nohup setsid env {setting} {self.command()} >/dev/null 2>&1 </dev/null &")

    def pids(self) -> list[int]:
        """Of the running downloaders on the host."""
        rows = self.host.root("ps", "-ww", "-e", "-o", "pid=,args=").splitlines()
        found = [row.split(None, 1) for row in rows]
        return [int(pid) for pid, args in found if args.startswith("/usr/bin/python3") and f"{HF} download" in args]

    def kill(self) -> None:
        """SIGKILL to all of them."""
        for pid in self.pids():
            self.host.root("kill", "-9", str(pid), check=False)

    def partials(self) -> list[str]:
        """Names of partial files, as they lie there."""
        blobs = f"/home/{self.host.user}/{self.home}/hub/{self.hub.folder}/blobs"
        return [name for name in self.host.root("ls", blobs, check=False).split() if name.endswith(".incomplete")]

    def clear(self) -> None:
        """Nothing runs, nothing is left."""
        self.kill()
        for scope in ([], ["--user", f"--machine={self.host.user}@.host"]):
            for verb in ("stop", "reset-failed"):
                self.host.root("systemctl", *scope, verb, "hf.service", check=False)
        self.host.root("rm", "-rf", f"/home/{self.host.user}/{self.home}")


@pytest.fixture
def calm(bed: Bed, three: tuple[BedHost, ...]) -> Iterator[Downloads]:
    """Where a download goes well, but for a Hub that hangs."""
    with running_hub(bed) as hub:
        found = Downloads(three[0], hub, "hf-calm")
        yield found
        found.clear()


@pytest.fixture
def rough(bed: Bed, three: tuple[BedHost, ...]) -> Iterator[Downloads]:
    """Where downloads are killed."""
    with running_hub(bed) as hub:
        found = Downloads(three[1], hub, "hf-rough")
        yield found
        found.clear()


async def test_downloads_are_shown_for_what_they_are(
    three: tuple[BedHost, ...],
    calm: Downloads,
    rough: Downloads,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two lanes in one feed, side by side, as rates and standstills take their time."""
    monkeypatch.setattr(looks, "SLOW_S", 1.5)
    lanes = calm.lane("calm", "user") + rough.lane("rough", "system")
    async with feeding(fleet_file(tmp_path, three, lanes), three) as feed:
        await asyncio.gather(rough_story(feed, rough), calm_story(feed, calm))


async def until_download(lane: LaneWatch, state: DownloadState, more: str = "") -> Download:
    """Wait for a state, and for these words among its reasons, warnings and notes."""

    def seen(view: LaneView) -> Download | None:
        found = view.download.current(lane.feed.snapshot().now) if view.download else None
        if found is None or found.state is not state:
            return None
        return found if more in "\n".join((found.why, *found.warnings, *found.notes)) else None

    return await lane.until(seen, f"download {state} {more}", lambda view: view.download)


def with_rate(view: LaneView) -> Download | None:
    """The download, once there are readings enough for a rate."""
    found = view.download.value if view.download else None
    return found if found is not None and found.rate else None


def measured(view: LaneView) -> Download | None:
    """The same, once the Hub's list was read as well: it comes by itself."""
    found = with_rate(view)
    return found if found is not None and found.shards_total is not None else None


async def calm_story(feed: Feed, calm: Downloads) -> None:
    """From nothing to complete; the Hub hangs on the way."""
    lane, hub = LaneWatch(feed, "calm"), calm.hub
    await until_download(lane, DownloadState.NONE, "not there")
    await asyncio.to_thread(calm.run_unit, "user", "1G")
    await until_download(lane, DownloadState.RUNNING)

    found = await lane.until(measured, "a rate, and what the Hub lists", lambda view: view.download)
    assert found.rate == pytest.approx(2 * RATE, rel=0.5)
    assert (found.expected, found.shards_total, found.files_total) == (hub.total, 4, 6)
    assert found.processes == 1 and found.eta is not None and found.partials >= 1
    assert found.upstream == hub.told["main"] and any("main has moved on" in note for note in found.notes)
    enforced = cgroups.is_v2()
    assert found.memory is not None and (found.memory.cap_asked, found.memory.in_force) == (1 << 30, enforced)
    assert any("is not in force" in text for text in found.warnings) is not enforced

    hub.process.send_signal(signal.SIGSTOP)
    found = await until_download(lane, DownloadState.WAITING, "too early to say")
    assert found.eta is None
    found = await until_download(lane, DownloadState.STALLED)
    assert found.stalled_for is not None and found.stalled_for >= 30 and found.eta is None
    assert any(alarm.key == "download:calm" for alarm in alarms(feed.snapshot()))
    hub.process.send_signal(signal.SIGCONT)
    await until_download(lane, DownloadState.RUNNING)

    found = await until_download(lane, DownloadState.COMPLETE, "all 6 files in their size")
    assert (found.done, found.shards_done) == (hub.total, 4)
    await asyncio.to_thread(wait_for, lambda: not calm.pids(), "the downloader has ended")
    await lane.until(
        lambda view: view.download and view.download.value and view.download.value.processes == 0,
        "nobody downloads any more",
        lambda view: view.download,
    )
    await until_download(lane, DownloadState.COMPLETE, "`hf cache prune` would delete")


async def rough_story(feed: Feed, rough: Downloads) -> None:
    """Killed at its cap, killed by hand, orphans, two at once."""
    lane = LaneWatch(feed, "rough")
    await until_download(lane, DownloadState.NONE, "not there")
    await asyncio.to_thread(rough.run_unit, "system", "20M")  # python and its libraries alone take more
    found = await until_download(lane, DownloadState.FAILED)
    assert "hf.service" in found.why and "cap" in found.why
    await asyncio.to_thread(rough.host.root, "systemctl", "reset-failed", "hf.service")

    await asyncio.to_thread(rough.run_unit, "system", "600M")
    found = await until_download(lane, DownloadState.RUNNING)
    assert found.memory is not None
    assert (found.memory.cap_asked, found.memory.cap, found.memory.in_force) == (600 << 20, 600 << 20, True)
    assert found.memory.current is not None and found.memory.current > 10 << 20
    assert not any("in force" in text for text in found.warnings)

    await asyncio.to_thread(rough.kill)
    left = await asyncio.to_thread(rough.partials)
    assert left, "hf leaves its partial files when it is killed"
    found = await until_download(lane, DownloadState.FAILED, "left-over partial files")
    assert {item.path.rpartition("/")[2] for item in found.orphans} == set(left)
    await asyncio.to_thread(rough.host.root, "systemctl", "reset-failed", "hf.service")
    found = await until_download(lane, DownloadState.INCOMPLETE, "nobody downloads")

    await asyncio.to_thread(rough.run_bare)
    await asyncio.to_thread(rough.run_bare)
    found = await until_download(lane, DownloadState.RUNNING, "2 downloads run for")
    assert found.processes == 2 and sorted(found.pids) == await asyncio.to_thread(lambda: sorted(rough.pids()))
    await asyncio.to_thread(rough.kill)
    await until_download(lane, DownloadState.INCOMPLETE, "left-over partial files")
