"""One lane's readings: scrape, health and identity of its endpoint, and the containers of its ranks."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Coroutine, Mapping
from operator import is_
from typing import Any

from console.feed.asleep import Asleep
from console.feed.boots import BootFeed
from console.feed.front import FrontFeed
from console.feed.health_age import not_too_old, while_waiting
from console.feed.host import HostFeed, Note
from console.feed.kept import Kept
from console.feed.lane_history import LaneHistory
from console.feed.rankfacts import RankDrift
from console.feed.ranks import Ranks
from console.feed.records import LaneRecords
from console.feed.silence import WORDS, Silence
from console.feed.supervise import forever
from console.feed.survey import LaneSurvey
from console.feed.underway import Underway
from console.fleet.inventory import SGLANG_HEALTH_INTERVAL, Lane, Rates
from console.fleet.places import Places
from console.fleet.recipe import Recipe
from console.reach.engine_http import EngineHttp
from console.readings.containers import Container
from console.readings.health import (
    HttpAnswer,
    HttpLight,
    LaneState,
    LaneVerdict,
    Lights,
    ProcessLight,
    ProgressLight,
    ScrapeLight,
    Transport,
    http_light,
    judge,
    old_process,
    progress_light,
    refuses_at_once,
)
from console.readings.link import LinkStatus
from console.readings.quality import STALE_AFTER
from console.readings.served import UnreadableModels, parse_models
from console.readings.throughput import EngineKind, Scrape, ScrapeVerdict, Throughput, read_scrape, throughput
from console.snapshot import LaneView, RankView, Severity

WINDOW_S = 60.0
"""Window of percentiles and hit rates; `throughput` itself takes the last 10 s of it for rates."""
SCRAPE_LIMIT_S = 5.0
TOO_LARGE_PAUSE_S = 10.0
IDENTITY_INTERVAL = 30.0
PROBES_KEPT = 60
SLOW_HEALTH_LIMIT_S = 25.0
"""SGLang answers an unhealthy probe after 20 s; a shorter limit would leave orphan requests behind."""
FAST_HEALTH_LIMIT_S = 5.0
IN_THREAD_BYTES = 256 * 1024
"""Bodies over this size are parsed in a thread, so that keys and repaints never wait for one."""
REACHABLE_CHECK_S = 0.1
STARTING_PACE_S = 2.0
"""Between two probes of a server that says 503 at once: what it said while it started is not to stand any longer."""
JUDGE_EVERY_S = 1.0
"""Longest time between two judgements: what was read also ages."""


class LaneFeed:
    """Keeps one lane's newest readings and hands out its view."""

    def __init__(
        self,
        name: str,
        lane: Lane,
        recipe: Recipe,
        hosts: Mapping[str, HostFeed],
        rates: Rates,
        note: Note,
        records: LaneRecords,
        folder: str,
    ) -> None:
        """`folder`: where its head keeps what is under way."""
        self.name = name
        self.lane = lane
        self._hosts = hosts
        self._rates = rates
        self._note = note
        self._head = hosts[lane.head]
        self._ranks = Ranks(lane, hosts)
        self._survey = LaneSurvey(name, lane, recipe, hosts)
        self.underway = Underway(name, lane, hosts, records, folder, self._tell)
        self._drift = RankDrift()
        link = None if lane.via == "direct" else self._head.link
        self._http = EngineHttp(lane.url, link)
        self._silence = Silence(self._head, rates.node, direct=link is None)
        self._front = FrontFeed(lane.front, link, self._silence) if lane.front else None
        self._throughput: Kept[Throughput] = Kept(f"{lane.url}{lane.metrics_path}", rates.scrape)
        self._health: Kept[HttpAnswer] = Kept(f"{lane.url}{lane.health_path}", lane.health_every)
        self._served: Kept[str] = Kept(f"{lane.url}/v1/models", IDENTITY_INTERVAL)
        self._scrapes: deque[Scrape] = deque(maxlen=math.ceil(max(WINDOW_S, lane.stall_after + 30) / rates.scrape) + 2)
        self._probes: deque[HttpAnswer] = deque(maxlen=PROBES_KEPT)
        self._history = LaneHistory(records)
        words = recipe.boot.words(lane.engine)
        self._boots = BootFeed(lane, hosts, words, records, note, name=name)
        self._started: float | None = None
        """When the head's container was started, Unix seconds by the head's clock."""
        self._verdict = LaneVerdict(LaneState.UNKNOWN, "not read yet")
        self._state_since = time.monotonic()
        self._http_light = HttpLight()
        self._progress_light: ProgressLight | None = None
        self._probing_since: float | None = None
        self._ask_health = asyncio.Event()
        """Set when the port opened or closed: the health endpoint is worth asking at once."""
        self._heard = 0
        """Answers so far, good and bad."""
        self._view: LaneView | None = None
        self._rests_on: tuple[object, ...] = ()
        self._judged_at = -math.inf
        self._asleep = Asleep()

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """The loops to run while the feed lives."""
        loops = [
            forever(f"{self.name} scrape", self._scrape_loop, self._throughput.fail),
            forever(f"{self.name} health", self._health_loop, self._health.fail),
            forever(f"{self.name} identity", self._identity_loop, self._served.fail),
            forever(f"{self.name} records", self._history.records.run, lambda why: self._tell(why, Severity.LOOK)),
        ]
        loops.append(
            forever(f"{self.name} hub", self._survey.run, lambda why: self._tell(f"hub: {why}", Severity.LOOK))
        )
        if self._head.docker is not None and self.lane.runs_in == "docker":
            loops.append(forever(f"{self.name} boots", self._boots.run, self._boots.fail))
        if self._front is not None:
            loops.append(forever(f"{self.name} front", self._front.run, self._front.fail))
        return loops

    @property
    def places(self) -> Places:
        """Where the lane's things lie, as far as known."""
        return self._survey.places

    def told(self, file: str, text: str | None) -> None:
        """What the head has just said of one of the lane's files, because this console wrote it; None: it is gone."""
        self.underway.told(file, text)
        self._heard += 1

    async def close(self) -> None:
        """Close the connections to the engine and to what stands in front of it; write what is to be remembered."""
        await self._http.close()
        await self._boots.close()
        await self._history.records.close()
        if self._front is not None:
            await self._front.close()

    def _tell(self, text: str, severity: Severity) -> None:
        self._note(self.name, text, severity)

    # The loops

    def _reachable(self) -> bool:
        return self.lane.via == "direct" or self._head.link.state.status is LinkStatus.UP

    async def _until_reachable(self) -> None:
        # The link says what it is when asked; it has no event to wait for.
        while not self._reachable():  # noqa: ASYNC110
            await asyncio.sleep(REACHABLE_CHECK_S)

    async def _paced(self, began: float, interval: float) -> None:
        await asyncio.sleep(max(0.05, interval - (time.monotonic() - began)))

    async def _scrape_loop(self) -> None:
        while True:
            await self._until_reachable()
            began = time.monotonic()
            answer = await self._http.get(self.lane.metrics_path, limit=SCRAPE_LIMIT_S)
            if len(answer.body) > IN_THREAD_BYTES:
                scrape = await asyncio.to_thread(read_scrape, answer, self.lane.kind)
            else:
                scrape = read_scrape(answer, self.lane.kind)
            self._take_scrape(scrape)
            # A body without end costs the engine and us: asked again, but not every second.
            endless = scrape.verdict is ScrapeVerdict.TOO_LARGE
            await self._paced(began, TOO_LARGE_PAUSE_S if endless else self._rates.scrape)

    def _engine(self) -> EngineKind:
        """The declared engine, else the one that the series told last."""
        value = self._throughput.value
        return self.lane.kind if self.lane.kind is not EngineKind.UNKNOWN or value is None else value.engine

    def health_pace(self) -> tuple[float, float]:
        """Seconds between two health probes, and the longest wait for one.

        SGLang's probe is a real generation that goes on when its asker has left, so that any engine that may be one is
        given the time, and one that turned out to be one is asked as seldom, unless the operator says otherwise. A 503
        at once is the server's own word and costs no generation: while it starts it is asked until it says 200.
        """
        engine = self._engine()
        quick = engine in (EngineKind.VLLM, EngineKind.LLAMACPP)
        every = self.lane.health_every
        if engine is EngineKind.SGLANG and self.lane.health_interval is None:
            every = max(every, SGLANG_HEALTH_INTERVAL)
        if self._probes and refuses_at_once(self._probes[-1]):
            every = min(every, STARTING_PACE_S)
        return every, FAST_HEALTH_LIMIT_S if quick else SLOW_HEALTH_LIMIT_S

    async def _health_loop(self) -> None:
        while True:
            await self._until_reachable()
            self._ask_health.clear()
            _, limit = self.health_pace()
            began = self._probing_since = time.monotonic()
            try:
                answer = await self._http.get(self.lane.health_path, limit=limit, max_bytes=64 * 1024)
            finally:
                self._probing_since = None
            self._take_probe(answer)
            every, _ = self.health_pace()
            try:
                async with asyncio.timeout(max(0.05, every - (time.monotonic() - began))):
                    await self._ask_health.wait()
            except TimeoutError:
                pass

    def _take_probe(self, answer: HttpAnswer) -> None:
        self._heard += 1
        if self._silence.swallows(answer):
            self._health.fail(WORDS)
            return
        self._probes.append(answer)
        if answer.transport is Transport.UNREACHABLE:
            self._health.fail(answer.detail or "unreachable")
        else:
            self._health.put(answer, answer.at)

    async def _identity_loop(self) -> None:
        while True:
            await self._until_reachable()
            began = time.monotonic()
            answer = await self._http.get("/v1/models", limit=SCRAPE_LIMIT_S, max_bytes=1024 * 1024)
            try:
                self._served.put(parse_models(answer), answer.at)
            except UnreadableModels as error:
                self._served.fail(str(error))
            interval = IDENTITY_INTERVAL if not self._served.error else 5.0
            await self._paced(began, interval)

    def _wake(self) -> None:
        """Across a sleep of this machine no rate and no freeze can be told: seconds that nobody counted lie between."""
        if slept := self._asleep.since():
            for kept in (self._throughput, self._health, self._served):
                kept.age_by(slept)
            if self._front is not None:
                self._front.age_by(slept)
            self._scrapes.clear()
            self._probes.clear()
            self._progress_light = None

    def _take_scrape(self, scrape: Scrape) -> None:
        self._wake()
        closed = scrape.verdict is ScrapeVerdict.REFUSED
        if self._scrapes and closed is not (self._scrapes[-1].verdict is ScrapeVerdict.REFUSED):
            self._ask_health.set()
        self._heard += 1
        if self._silence.swallows(scrape):
            self._throughput.fail(WORDS)
            self._history.missed(scrape.at)
            return
        self._scrapes.append(scrape)
        if scrape.verdict is not ScrapeVerdict.OK:
            self._throughput.fail(f"{scrape.verdict}: {scrape.detail}" if scrape.detail else str(scrape.verdict))
            self._history.missed(scrape.at)
            return
        found = throughput(self._scrapes_since(scrape.at - WINDOW_S))
        again = found.restarted and not (self._throughput.value and self._throughput.value.restarted)
        if again:
            self._note(self.name, "counters started again: the engine was restarted", Severity.LOOK)
        self._throughput.put(found, scrape.at)
        self._history.take(scrape.at, found, self._started)

    def _scrapes_since(self, at: float) -> list[Scrape]:
        return [item for item in self._scrapes if item.at >= at]

    # The view

    def view(self, now: float, wall: float) -> LaneView:
        """The lane at this moment; the same object until something is heard, or `JUDGE_EVERY_S` has passed."""
        self._wake()
        rests_on = self._basis()
        same = len(rests_on) == len(self._rests_on) and all(map(is_, rests_on, self._rests_on))
        if self._view is None or not same or not 0 <= now - self._judged_at < JUDGE_EVERY_S:
            self._view, self._rests_on, self._judged_at = self._look(now, wall), rests_on, now
        return self._view

    def _basis(self) -> tuple[object, ...]:
        """All that the view rests on, but for the time of day."""
        down = self._unreachable_since()
        own = (self._health.reading(down), self._throughput.reading(down), self._served.reading(down))
        containers = [self._hosts[host].view_containers() for host in self.lane.rank_hosts]
        looked = [self._hosts[host].looks_heard for host in self.lane.rank_hosts]
        return (*own, *containers, *looked, self._heard, self._probing_since)

    def _look(self, now: float, wall: float) -> LaneView:
        down = self._unreachable_since()
        ranks = self._ranks.views(now)
        lights = self._lights(ranks, now, wall)
        self._boots.tell(lights)
        self._settle(self._silence.verdict(self._verdict, now, lambda: self._judged(lights, wall)), now)
        surveyed = self._survey.view(now, self._serving(ranks), self._all_containers(now))
        views = {rank.host: self._hosts[rank.host].view() for rank in ranks}
        view = LaneView(
            name=self.name,
            lane=self.lane,
            health=self._health.reading(down),
            throughput=self._throughput.reading(down),
            served=self._served.reading(down),
            lights=lights,
            verdict=self._verdict,
            state_since=self._state_since,
            ranks=ranks,
            history=self._history.points,
            pools=self._history.pools,
            usual_decode=self._history.usual,
            last_decode=self._history.last_decode,
            boot=self._boots.reading(self._head.down_since()),
            boot_progress=self._boots.progress(),
            boots=self._history.records.boots,
            usual_by_running=self._history.records.usual_by_running,
            site=surveyed.site,
            repos=surveyed.repos,
            download=surveyed.download,
            rows=surveyed.rows,
            next_rows=surveyed.next_rows,
            previous_rows=surveyed.previous_rows,
            watchdog=surveyed.watchdog,
            drift=self._drift.of(ranks, views, surveyed, now),
            front=None if self._front is None else self._front.reading(down),
            unfilled=surveyed.unfilled,
            looked=now,
        )
        return self.underway.added(view, now, self._survey.places)

    def _serving(self, ranks: tuple[RankView, ...]) -> Mapping[str, str]:
        return {rank.host: rank.revision for rank in ranks if rank.revision}

    def _all_containers(self, now: float) -> Mapping[str, tuple[Container, ...]]:
        read = {host: self._hosts[host].view_containers().current(now) for host in self.lane.rank_hosts}
        return {host: containers.items for host, containers in read.items() if containers is not None}

    def _unreachable_since(self) -> float | None:
        return None if self.lane.via == "direct" else self._head.down_since()

    def _judged(self, lights: Lights, wall: float) -> LaneVerdict:
        return judge(
            lights,
            stall_after=self.lane.stall_after,
            engine=self._engine(),
            wall=wall + (self._head.drift() or 0.0),
            booting=self._boots.phrase(),
        )

    def _settle(self, verdict: LaneVerdict, now: float) -> None:
        if verdict.word != self._verdict.word:
            loud = verdict.state in (LaneState.DOWN, LaneState.STALLED, LaneState.DEGRADED, LaneState.PAUSED)
            self._note(self.name, f"{verdict.word}: {verdict.why}", Severity.ACT if loud else Severity.NORMAL)
        if verdict.state is not self._verdict.state:
            self._state_since = now
        self._verdict = verdict

    def _lights(self, ranks: tuple[RankView, ...], now: float, wall: float) -> Lights:
        process = self._ranks.light(ranks)
        return self._silence.lights(process, self._http_light, lambda: self._lights_heard(process, now, wall))

    def _lights_heard(self, process: ProcessLight, now: float, wall: float) -> Lights:
        self._started = process.started_at
        drift = self._head.drift() or 0.0
        started = None if process.started_at is None else now - (wall + drift - process.started_at)
        down = self._unreachable_since() is not None
        newest = self._scrapes[-1] if self._scrapes else None
        http = http_light(
            self._probes,
            started=started,
            previous=self._http_light,
            old_process=old_process(self._scrapes, started),
            down=down,
        )
        self._http_light = http
        if down:
            # What the engine said before the link went is not what it says now.
            return Lights(process=process, http=http)
        every, limit = self.health_pace()
        if self._probes:
            http = not_too_old(http, now - self._probes[-1].at, STALE_AFTER * every + limit)
        waited = 0.0 if self._probing_since is None else now - self._probing_since
        self._progress_light = progress_light(
            self._scrapes,
            now,
            self.lane.stall_after,
            probes=self._probes,
            probing_since=self._probing_since,
            reading=self._throughput.value,
            previous=self._progress_light,
        )
        return Lights(
            process=process,
            http=while_waiting(http, waited, first=not self._probes),
            scrape=ScrapeLight(newest.verdict, newest.detail, len(newest.samples)) if newest else ScrapeLight(),
            progress=self._progress_light,
        )

    def container_on(self, host: str) -> Container | None:
        """The container of this lane on `host`, as last read."""
        return self._ranks.container_on(host)
