"""One lane's download out of what its host was asked to look at, and out of what a Hub or a manifest says of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from console.feed.host import HostFeed
from console.feed.hub import HubFeed
from console.feed.same import Same
from console.feed.surveyed import Parsed, oldest
from console.fleet.places import DownloadPlace
from console.readings.download import Download, DownloadSample, read_download
from console.readings.download_pace import parse_received
from console.readings.hubcache import HubRepo
from console.readings.look import parse_answer
from console.readings.processes import Process, parse_processes
from console.readings.quality import Reading
from console.readings.units import Units, parse_units

DOWNLOAD_SAMPLES = 150
"""Samples of the repository kept for rate and stall: over ten minutes."""
SERVING_SAMPLES = 3
"""Looks at the repository after which a download is told also where no container could be read."""
JUDGE_EVERY_S = 5.0
"""Seconds between two judgements of a download or a watchdog of which nothing new was read: only times passed."""

Looked = Callable[[str, str], Reading[str] | None]
"""The newest answer of a host to one of the lane's looks; None where it is not asked."""


class DownloadSurvey:
    """Keeps samples of the folder, and asks what should be in it."""

    def __init__(self, place: DownloadPlace | None, looked: Looked, hosts: Mapping[str, HostFeed]) -> None:
        self._place, self._looked, self._hosts = place, looked, hosts
        self._answers = Parsed(parse_answer)
        self._units = Parsed(parse_units)
        self._processes = Parsed(parse_processes)
        self._samples: deque[DownloadSample] = deque(maxlen=DOWNLOAD_SAMPLES)
        self._judged: Same[Download] = Same()
        self._hub: HubFeed | None = None
        self._moved = asyncio.Event()
        """Set when the place is another one than before."""

    async def run(self) -> None:
        """Ask Hub or manifest what the download should come to, wherever it lies at present; until cancelled."""
        while True:
            self._moved.clear()
            place = self._place
            if place is None or not (place.hub or place.manifest):
                await self._moved.wait()
                continue
            self._hub = HubFeed(place)
            asking = asyncio.create_task(self._hub.run())
            waiting = asyncio.create_task(self._moved.wait())
            try:
                await asyncio.wait((asking, waiting), return_when=asyncio.FIRST_COMPLETED)
                if asking.done():
                    asking.result()
            finally:
                for task in (asking, waiting):
                    task.cancel()
                await asyncio.gather(asking, waiting, return_exceptions=True)
                self._hub = None

    def move(self, place: DownloadPlace | None) -> None:
        """It lies there from now on; at another place nothing of before counts."""
        if place != self._place:
            self._place = place
            self.forget()
            self._moved.set()

    def forget(self) -> None:
        """No rate and no standstill can be told from what came before."""
        self._samples.clear()

    def read(
        self, place: DownloadPlace, repo: Reading[HubRepo], serving: Mapping[str, str], *, known: bool, now: float
    ) -> Reading[Download]:
        """The download at monotonic time `now`. `serving` is the mounted revision by host; `known`: all of it was read,
        or cannot be."""
        units_read = self._looked(place.host, "download.units")
        units = self._units.of("download", units_read)
        if repo.value is not None and repo.taken_mono is not None:
            self._sample(repo.taken_mono, repo.value, units, place.host)
        if not self._samples or not (known or len(self._samples) > SERVING_SAMPLES):
            # before it is known which revision serves a kept one looks like a new one
            return oldest(f"{place.host}:{place.repo}", [repo], None)
        value = self._judge(place, tuple(dict.fromkeys(serving.values())), now)
        if self._hub is not None and value.revision:
            self._hub.want(value.revision)  # a later download is another revision: its list is asked for then
        return oldest(f"{place.host}:{place.repo}", [repo, units_read], value)

    def _judge(self, place: DownloadPlace, served: tuple[str, ...], now: float) -> Download:
        expected, upstream = (None, "") if self._hub is None else (self._hub.expected, self._hub.upstream)
        return self._judged.of(
            (place, self._samples[-1], expected, upstream, *served, int(now / JUDGE_EVERY_S)),
            lambda: read_download(
                tuple(self._samples),
                host=place.host,
                revision=place.revision or (expected.revision if expected is not None and place.manifest else ""),
                expected=expected,
                serving=served,
                unit=place.unit,
                upstream=upstream,
                now=max(now, self._samples[-1].at),
                model=place.model,
            ),
        )

    def _sample(self, at: float, repo: HubRepo, units: Units | None, host: str) -> None:
        processes: tuple[Process, ...] | None = self._processes.of("", self._looked(host, "download.processes"))
        network = self._answers.of("", self._looked(host, "download.net"))
        if self._samples and self._samples[-1].at >= at:
            return
        received = parse_received(network.body) if network is not None else None
        wall = self._hosts[host].host_wall(at)
        self._samples.append(DownloadSample(at, repo, processes, units, wall=wall, received=received))
