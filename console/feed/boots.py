"""A lane's present start, from the logs of its ranks' containers: read while it boots, left alone once it is up.

Only what the lines say is kept, never the lines. The head's log tells the phases; the others are read because a rank
that cannot come up often says so in its own log alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from console import format as fmt
from console.feed.boot_start import Key, RankStart, facts, phrase
from console.feed.host import Note
from console.feed.kept import Kept
from console.feed.records import LaneRecords
from console.fleet.inventory import Lane
from console.reach.docker_engine import DockerEngine
from console.readings.boot import Boot, BootFailure, BootProgress
from console.readings.boot_progress import LONGEST_S, progress, record
from console.readings.boot_reader import NO_WORD, BootReader
from console.readings.boot_words import BootWords
from console.readings.containers import Container, Containers, serving_container
from console.readings.health import HttpVerdict, Lights
from console.readings.quality import Reading
from console.snapshot import HostView, Severity

CHECK_EVERY_S = 0.5
"""How often the containers are compared with what is read."""
YOUNG_S = 2 * 3600.0
"""Age up to which the log of a start is read back when the console finds it serving, or ended."""
HOLD_S = 3.0
"""Seconds to wait for the lane's first health answer: of a lane that serves only one log is read, and only once."""
LAST_WORDS_S = 5.0
"""Seconds in which a container that ended may still hand over its last lines."""
AT_START_S = 20.0
"""Age up to which free memory is that of the start: an engine's imports take about as long."""
READ_BACK_S = 60.0
"""Seconds in which the log of a container that had ended before must be read."""
LASTS_S = 365 * 86400.0
"""What is known of a start does not grow old: it changes with the next one."""
STOPPED = (130, 143)
"""Exit codes of SIGINT and SIGTERM: somebody asked, where nothing else is on record."""


class BootHost(Protocol):
    """What is needed of a host's feed."""

    @property
    def docker(self) -> DockerEngine | None: ...

    def view_containers(self) -> Reading[Containers]: ...

    def drift(self) -> float | None: ...

    def view(self) -> HostView: ...


class BootFeed:
    """Follows one lane's starts."""

    def __init__(
        self,
        lane: Lane,
        hosts: Mapping[str, BootHost],
        words: BootWords,
        records: LaneRecords,
        note: Note,
        *,
        name: str,
    ) -> None:
        """`words` are the recipe's; boots that came up go into `records`."""
        self.name = name
        self._lane, self._hosts = lane, hosts
        self._words, self._records, self._note = words, records, note
        self._starts: dict[str, RankStart] = {}
        self._drift: dict[str, float] = {}
        self._kept: Kept[Boot] = Kept(f"{lane.head}: container log", LASTS_S)
        self._told: tuple[bool | None, Key] = (None, ("", None))
        self._chosen: dict[str, tuple[Containers, Container | None]] = {}
        self._settled: Key | None = None
        """The head's start of which all is known and handed on."""
        self._watched: Key | None = None
        """The head's start that was seen before it was up: how long it took is known."""
        self._recorded: Key | None = None
        self._free: tuple[Key, int] | None = None
        self._missed: Key | None = None
        self._began = time.monotonic()

    # What the lane asks and tells

    def tell(self, lights: Lights) -> None:
        """What the lane last judged by: whether health has answered 200, and of which start of the head's container."""
        http = lights.http
        silent = http.verdict in (HttpVerdict.UNKNOWN, HttpVerdict.UNREACHABLE) or http.old_process
        healthy = True if http.ever_ok else None if silent else False
        self._told = (healthy, (lights.process.id, lights.process.started_at))

    @property
    def _healthy(self) -> bool | None:
        """Whether the head's present start has come up; None while that is not known."""
        head = self._starts.get(self._lane.head)
        return self._told[0] if head is not None and head.container.up and head.key == self._told[1] else None

    def fail(self, why: str) -> None:
        """Note that reading failed as a whole."""
        self._kept.fail(why)

    def reading(self, down: float | None) -> Reading[Boot] | None:
        """The present start; `down` is the monotonic time since which the head is away. None: it has no log to read."""
        if self._lane.runs_in == "host" or self._hosts[self._lane.head].docker is None:
            return None
        return self._kept.reading(down)

    def failures(self) -> tuple[tuple[str, BootFailure], ...]:
        """(host, why its rank will not come up), in rank order."""
        found = []
        for host in self._lane.rank_hosts:
            start = self._starts.get(host)
            boot = None if start is None else start.boot(self._host_now(host))
            if boot is not None and boot.failure is not None:
                found.append((host, boot.failure))
        return tuple(found)

    def progress(self) -> BootProgress | None:
        """The present boot against earlier ones; None while nothing boots."""
        start = self._starts.get(self._lane.head)
        if start is None or not self._boots(start) or start.container.started_at is None:
            return None
        return progress(
            self._kept.value if not self._kept.error else None,
            started=start.container.started_at,
            now=self._host_now(start.host),
            earlier=self._records.boots,
            usual_boot_s=self._lane.usual_boot_s,
        )

    def phrase(self) -> str:
        """For the lane's verdict: `post-process 4m10s, weights read`; '' unless the log shows a boot that goes on."""
        start, boot = self._starts.get(self._lane.head), self._kept.value
        if start is None or boot is None or self._kept.error or not self._boots(start):
            return ""
        if boot.failure is not None:
            return f"will not come up: {boot.failure.cause}"
        return phrase(boot, self._host_now(start.host))

    # The loop

    async def run(self) -> None:
        """Keep reading the right logs until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(CHECK_EVERY_S)

    async def close(self) -> None:
        """End every reading."""
        for start in self._starts.values():
            await self._stop(start)

    async def look(self) -> None:
        """Compare the containers with what is read, once."""
        for host in self._lane.rank_hosts:
            await self._rank(host)
        head = self._starts.get(self._lane.head)
        if head is None:
            return
        if self._healthy and head.container.up:
            self._up(head)
        elif self._healthy is False and head.container.up:
            self._watched = head.key
            self._free_at_start(head)
        self._put(head)

    async def _rank(self, host: str) -> None:
        feed = self._hosts[host]
        if (drift := feed.drift()) is not None:
            self._drift[host] = drift
        reading = feed.view_containers()
        if feed.docker is None or reading.value is None or reading.value.problem or reading.error:
            return  # nothing is known of its containers at present: what is being read goes on
        start = await self._start(host, self._choose(host, reading.value))
        if start is not None:
            await self._follow(start, feed.docker)

    def _choose(self, host: str, containers: Containers) -> Container | None:
        known = self._chosen.get(host)
        if known is None or known[0] is not containers:
            found = serving_container(containers.items, self._lane.port, self._lane.containers)
            known = self._chosen[host] = (containers, found)
        return known[1]

    async def _start(self, host: str, found: Container | None) -> RankStart | None:
        """The present start of a rank; another one than before begins anew."""
        start = self._starts.get(host)
        if start is not None and (found is None or start.key != (found.id, found.started_at)):
            await self._stop(start)
            start = None
            del self._starts[host]
            if host == self._lane.head:
                self._kept = Kept(self._kept.source, LASTS_S)
                if found is None:
                    self._kept.fail("its container is gone")
        if found is None or found.started_at is None:
            return None
        if start is None:
            start = self._starts[host] = RankStart(host, found, BootReader(self._words, started=found.started_at))
        start.container = found
        return start

    async def _follow(self, start: RankStart, docker: DockerEngine) -> None:
        """Begin, go on with or end reading one log."""
        if start.closed:
            return
        if start.scan is None:
            if self._may_begin(start):
                start.scan = docker.scan_log(
                    start.container.id,
                    start.take,
                    since=start.container.started_at,
                    follow=start.container.up and not self._healthy,
                )
            return
        if not start.container.up:
            await self._end(start)
        elif start.scan.done or (self._healthy and start.scan.following):
            await self._stop(start)
            start.closed = True

    def _may_begin(self, start: RankStart) -> bool:
        """Whether this log is worth reading; if not, why."""
        up, now = start.container.up, self._host_now(start.host)
        since = start.container.started_at if up else start.container.finished_at
        age = 0.0 if since is None else now - since
        if up and self._healthy is None and time.monotonic() - self._began < HOLD_S:
            return False
        if up and self._healthy and start.host != self._lane.head:
            return False
        if age > (LONGEST_S if up and self._healthy is False else YOUNG_S):
            start.words = f"{'up' if up else 'ended'} for {fmt.duration(age)}: the log of its start is not read back"
            start.closed = not up or self._healthy is not None
            return False
        return True

    async def _end(self, start: RankStart) -> None:
        """The container has ended: take its last lines, then judge."""
        start.ended_at = time.monotonic() if start.ended_at is None else start.ended_at
        scan, since = start.scan, time.monotonic() - start.ended_at
        limit = LAST_WORDS_S if scan is None or scan.following else READ_BACK_S
        if scan is not None and not (scan.done or (scan.following and scan.at_end)) and since < limit:
            return
        await self._stop(start)
        start.closed = True
        item = start.container
        asked = item.exit_unasked is False or (item.exit_unasked is None and item.exit_code in STOPPED)
        if not asked:
            with start.lock:
                start.reader.ended()

    async def _stop(self, start: RankStart) -> None:
        scan = start.scan
        if scan is not None and not scan.closed:
            await scan.close()
            if scan.problem:
                start.words = scan.problem

    # What comes of it

    def _host_now(self, host: str) -> float:
        return time.time() + self._drift.get(host, 0.0)

    def _boots(self, start: RankStart) -> bool:
        """It is on its way up: its container runs, not for too long, and nothing has said that it is ready."""
        age = start.container.age(self._host_now(start.host))
        limit = LONGEST_S if self._healthy is False else YOUNG_S
        return age is not None and age <= limit and self._healthy is not True and not start.reader.ready

    def _up(self, start: RankStart) -> None:
        """The lane serves: say when it came up, and keep how long that took, once for each start."""
        watched = self._watched == start.key
        now = self._host_now(start.host)
        if watched and not start.reader.ready:
            with start.lock:
                start.reader.answered(now)
        boot = start.boot(now)
        waits = start.scan is not None and not start.closed and not start.reader.ready
        if self._recorded == start.key or start.container.started_at is None or waits:
            return
        self._recorded = start.key
        kept = record(
            boot,
            started=start.container.started_at,
            healthy=now if watched else None,
            revision=start.container.revision,
            free_at_start=self._free[1] if self._free and self._free[0] == start.key else None,
        )
        if kept is None:
            return
        self._records.add_boot(kept)
        if kept.kv_tokens is not None:
            self._records.add_pool(kept.started, kept.kv_tokens)
        if watched:
            self._note(self.name, f"up {fmt.duration(kept.total)} after its start{facts(boot)}", Severity.NORMAL)

    def _free_at_start(self, start: RankStart) -> None:
        """Lowest MemFree of the ranks, taken once, while the engine has not allocated anything yet."""
        if self._free is not None and self._free[0] == start.key:
            return
        age = start.container.age(self._host_now(start.host))
        found = [self._hosts[host].view().memory.value for host in self._lane.rank_hosts]
        known = [memory.free for memory in found if memory is not None]
        if age is not None and age <= AT_START_S and len(known) == len(found):
            self._free = (start.key, min(known))

    def _put(self, start: RankStart) -> None:
        if self._settled == start.key and not self._kept.error:
            return
        boot = start.boot(self._host_now(start.host))
        problem = start.scan.problem if start.scan is not None and not start.closed else start.words
        if boot is not None and self._healthy and start.closed and boot.ready is None:
            boot, problem = None, problem or "its log does not go back to its start"
        if boot is None:
            if problem:
                self._kept.fail(problem)
            return
        boot = self._with_ranks(boot)
        if boot.autotune == "missed" and self._missed != start.key and boot.ready is None:
            self._missed = start.key
            self._note(self.name, "autotune cache missed: tuning anew takes an hour or more", Severity.LOOK)
        if problem and not start.closed:
            self._kept.fail(problem)
        elif boot != self._kept.value or self._kept.error:
            self._kept.put(boot)
        over = boot.ended and all(other.closed for other in self._starts.values())
        if start.closed and (boot.ready is not None or over):
            self._settled = start.key

    def _with_ranks(self, boot: Boot) -> Boot:
        """The head's start with what keeps another rank from coming up, where the head's own log does not say."""
        if boot.ready is not None or (boot.failure is not None and NO_WORD not in boot.failure.cause):
            return boot
        for host, failure in self.failures():
            if host != self._lane.head and NO_WORD not in failure.cause:
                return replace(boot, failure=replace(failure, cause=f"{host}: {failure.cause}"))
        return boot
