"""One host's readings: its sampler stream and its Docker, each on its own clock."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, Protocol

from console.feed.asleep import Asleep, slept_so_far
from console.feed.changes import container_event
from console.feed.foreign import Deed
from console.feed.history import History
from console.feed.kept import Kept
from console.feed.supervise import forever
from console.fleet.inventory import Host, Rates
from console.reach.docker_engine import DockerEngine
from console.reach.link import Frame, Link
from console.readings.containers import Containers
from console.readings.exits import LAST_TIME, ContainerEvent
from console.readings.facts import HostFacts, parse_facts
from console.readings.gpu import Gpu, GpuUnreadable, parse_gpus
from console.readings.link import LinkStatus
from console.readings.look import Look, LookKind
from console.readings.memory import MeminfoUnreadable, Memory, parse_memory
from console.readings.quality import Reading
from console.sanitize import line
from console.snapshot import Event, HostView, MemoryPoint, Severity

HISTORY_POINTS = 900
FACTS_INTERVAL = 365 * 86400.0
"""They come once a stream: what they say changes with a reboot alone, and that ends the stream."""
DRIFT_FRAMES = 30
"""Frames over which the least delayed one decides the clock drift."""
CLOCK_STEP_S = 1.5
"""A host's wall clock that moves by more against its monotonic one was set; plain sh counts in whole seconds."""
CLOCK_SKEW = 0.001
"""Seconds a second by which two monotonic clocks may part; NTP slews by half of it."""
LINK_CHECK_S = 0.2
"""Seconds between two looks at a link that is not up."""
EVENTS_HEARD = 256
"""Docker events that are kept to say why a container ended."""
EVENT_PAUSE = 0.05
"""Seconds to let a burst of container events arrive before one re-read answers them all."""


class Note(Protocol):
    """Keeps an event and returns it as kept; `wall` is Unix seconds, now if left out, `deed` as in Event."""

    def __call__(
        self, subject: str, text: str, severity: Severity, wall: float | None = None, deed: str = ""
    ) -> Event | None: ...


class HostFeed:
    """Keeps one host's newest readings and hands out its view."""

    def __init__(self, name: str, host: Host, rates: Rates, link: Link, note: Note) -> None:
        self.name = name
        self.link = link
        self._note = note
        self._rates = rates
        self._memory: Kept[Memory] = Kept(f"{name}:/proc/meminfo", rates.node)
        self._gpus: Kept[tuple[Gpu, ...]] = Kept(f"{name}:nvidia-smi", rates.gpu)
        self._facts: Kept[HostFacts] = Kept(f"{name}:facts", FACTS_INTERVAL)
        self._containers: Kept[Containers] = Kept(f"{name}:{host.docker or 'no docker'}", rates.containers)
        self._wanted: dict[str, tuple[Look, ...]] = {}
        self._looked: dict[str, tuple[Look, Kept[str]]] = {}
        self.heard: float | None = None
        """Monotonic time at which the newest frame came; None before the first."""
        self.looks_heard = 0
        """Answers to looks so far that said something new."""
        self._history: History[MemoryPoint] = History(HISTORY_POINTS)
        self._view: HostView | None = None
        self._asleep = Asleep()
        self._booted = 0.0
        """The host's clock at its monotonic zero, Unix seconds."""
        self._newest_mono, self._newest_received, self._shortest_way = 0.0, 0.0, math.inf
        self._offsets: deque[float] = deque(maxlen=DRIFT_FRAMES)
        self._ahead: deque[float] = deque(maxlen=DRIFT_FRAMES)
        """How far its clock is ahead of the console's that nobody sets, by frame."""
        self._latest = 0.0
        """The newest time that was said to be its own, Unix seconds."""
        self._changed = asyncio.Event()
        self._heard: deque[ContainerEvent] = deque(maxlen=EVENTS_HEARD)
        self.told_ends: deque[tuple[str, float]] = deque(maxlen=EVENTS_HEARD)
        """Containers whose end Docker's events told: id, and Unix time by the host's clock."""
        self.deeds: deque[Deed] = deque(maxlen=EVENTS_HEARD)
        """What somebody did to its containers, until it is known who; whoever takes them removes them."""
        self._page_size = 4096
        self._link_word = LinkStatus.CONNECTING
        self.docker = DockerEngine(link, host.docker, self._on_docker_event) if host.docker else None

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """The loops to run while the feed lives."""
        loops = [forever(f"{self.name} sampler", self._read_frames, self._memory.fail)]
        if self.docker is not None:
            loops.append(forever(f"{self.name} containers", self._read_containers, self._containers.fail))
            loops.append(forever(f"{self.name} events", self.docker.watch, lambda _why: None))
        return loops

    async def close(self) -> None:
        """End Docker access and the link; leaves nothing running on the host."""
        if self.docker is not None:
            await self.docker.close()
        await self.link.close()

    def look(self, owner: str, looks: Sequence[Look]) -> None:
        """What `owner` wants to have looked at from now on; what nobody wants any more is forgotten."""
        if self._wanted.get(owner, ()) == tuple(looks):
            return
        self._wanted[owner] = tuple(looks)
        wanted = [look for group in self._wanted.values() for look in group]
        self._looked = {look.key: (look, self._kept_for(look)) for look in wanted}
        self.link.look(wanted)

    def _kept_for(self, look: Look) -> Kept[str]:
        """What keeps the answers to a look. Of another folder, file or unit than before nothing is known yet; of
        processes that are told apart by other words the last ones seen still count."""
        before, kept = self._looked.get(look.key, (None, None))
        if before is not None and kept is not None and before.kind is look.kind:
            if before.arguments == look.arguments or look.kind is LookKind.PROCESSES:
                kept.pace(look.every)
                return kept
        return Kept(f"{self.name}:{' '.join(look.arguments[:1])}", look.every)

    def looked(self, key: str) -> Reading[str] | None:
        """The newest answer to a look, raw; None for one that nobody asked for."""
        found = self._looked.get(key)
        return None if found is None else found[1].reading(self.down_since())

    def down_since(self) -> float | None:
        """Monotonic time since which the host cannot be asked; None while it can, or at the first attempt."""
        state = self.link.state
        if state.status is LinkStatus.UP or not state.error:
            return None
        return state.since

    def view(self) -> HostView:
        """The host at this moment; the same object for as long as nothing was read and the link stays as it is."""
        if slept := self._asleep.since():
            self._memory.age_by(slept)
            self._gpus.age_by(slept)
            self._containers.age_by(slept)
            for _, looked in self._looked.values():
                looked.age_by(slept)
        down = self.down_since()
        self._note_link_change()
        link, drift = self.link.state, self.drift()
        memory, gpus = self._memory.reading(down), self._gpus.reading(down)
        facts, containers = self._facts.reading(down), self._containers.reading(down)
        seen = self._view
        if (
            seen is not None
            and seen.link is link
            and seen.memory is memory
            and seen.gpus is gpus
            and seen.facts is facts
            and seen.containers is containers
            and seen.drift == drift
        ):
            return seen
        self._view = HostView(
            name=self.name,
            link=link,
            memory=memory,
            gpus=gpus,
            facts=facts,
            containers=containers,
            drift=drift,
            unified=any(gpu.unified for gpu in self._gpus.value or ()),
            history=self._history.view(),
        )
        return self._view

    def drift(self) -> float | None:
        """Seconds the host's clock is ahead of the console's, by the least delayed of the newest frames."""
        return max(self._offsets) if self._offsets and self.down_since() is None else None

    @property
    def booted(self) -> float | None:
        """Unix seconds, by the host's own clock, at which it was started; None before it was heard."""
        return self._booted or None

    def host_wall(self, now: float) -> float:
        """Unix seconds by the host's clock at the console's monotonic time `now`.

        It rests on the console's clock that nobody sets, and holds still rather than go back: what counts by it never
        shows less than before, unless the host's own clock was set.
        """
        own = now + slept_so_far() if self._ahead else time.time() - (time.monotonic() - now)
        found = own + (max(self._ahead) if self._ahead else 0.0)
        self._latest = max(found, self._latest) if self._ahead else found
        return self._latest if 0.0 <= self._latest - found < CLOCK_STEP_S else found

    def view_containers(self) -> Reading[Containers]:
        """The containers at this moment."""
        return self._containers.reading(self.down_since())

    def removed_at(self, container_id: str) -> float | None:
        """Unix seconds by the console's clock at which a container was removed, as far as Docker's events tell."""
        events = self.docker.events_of(container_id) if self.docker is not None and container_id else ()
        at = next((event.time for event in reversed(events) if event.action == "destroy" and event.time), None)
        return None if at is None else at - (self.drift() or 0.0)

    def _note_link_change(self) -> None:
        state = self.link.state
        if state.status is self._link_word or (state.status is LinkStatus.CONNECTING and state.error):
            return
        was, self._link_word = self._link_word, state.status
        if state.status is LinkStatus.UP and was is LinkStatus.DOWN:
            self._note(self.name, "reachable again", Severity.INFO)
        elif state.status is LinkStatus.DOWN:
            self._note(self.name, f"unreachable: {state.error}", Severity.LOOK)

    async def _read_frames(self) -> None:
        takers = {
            "node": self._take_node,
            "gpu": self._take_gpu,
            "facts": self._take_facts,
            "look": self._take_look,
            "error": self._take_error,
        }
        async for frame in self.link.frames():
            self._take_clock(frame)
            frame = replace(frame, received=self._measured(frame))
            taker = takers.get(frame.kind)
            if taker is not None:
                taker(frame)

    def _take_clock(self, frame: Frame) -> None:
        if not 0 < frame.host_wall < LAST_TIME:
            return  # the stream's own errors carry no host clock
        self.heard = frame.received
        booted = frame.host_wall - frame.host_mono
        if abs(booted - self._booted) > CLOCK_STEP_S:  # the clock was set, or the host has booted: begin anew
            self._offsets.clear()
            self._ahead.clear()
            self._latest = 0.0
        self._booted = booted
        self._ahead.append(frame.host_wall - frame.received - slept_so_far())
        self._offsets.append(frame.host_wall - (time.time() - (time.monotonic() - frame.received)))

    def _measured(self, frame: Frame) -> float:
        """When the host measured what the frame says, in the console's monotonic time; never later than it came.

        Frames queue up behind a slow link, and a source may take long: both make a value old before it is here.
        The frame that was on its way for the shortest time tells the clocks apart.
        """
        way = frame.received - frame.host_mono
        if frame.error or frame.host_mono <= 0:
            return frame.received
        if frame.host_mono < self._newest_mono:  # the host has booted
            self._shortest_way = math.inf
        elapsed = frame.received - self._newest_received
        self._newest_mono, self._newest_received = frame.host_mono, frame.received
        self._shortest_way = min(way, self._shortest_way + max(0.0, elapsed) * CLOCK_SKEW)
        took = max(0.0, frame.host_mono - frame.started) if frame.started is not None else 0.0
        return frame.received - (way - self._shortest_way) - took

    def _take_node(self, frame: Frame) -> None:
        texts = frame.texts
        try:
            memory = parse_memory(
                texts.get("meminfo", ""),
                psi=texts.get("psi_memory", ""),
                numa=texts.get("numa", ""),
                zoneinfo=texts.get("zoneinfo", ""),
                page_size=self._page_size,
            )
        except MeminfoUnreadable as error:
            self._memory.fail(line(str(error)))
            return
        self._memory.put(memory, frame.received)
        used = float(memory.total - memory.free - memory.cached)
        self._history.append(MemoryPoint(frame.received, used, float(memory.cached), float(memory.free)))

    def _take_gpu(self, frame: Frame) -> None:
        try:
            self._gpus.put(parse_gpus(frame.texts.get("csv", "")), frame.received)
        except GpuUnreadable as error:
            self._gpus.fail(line(str(error)))

    def _take_facts(self, frame: Frame) -> None:
        facts = parse_facts(frame.texts)
        self._facts.put(facts, frame.received)
        self._page_size = facts.page_size or self._page_size

    def _take_look(self, frame: Frame) -> None:
        for key, text in frame.texts.items():
            if key in self._looked:
                kept = self._looked[key][1]
                self.looks_heard += kept.value is not text or bool(kept.error)
                kept.put(text, frame.received)

    def _take_error(self, frame: Frame) -> None:
        why = line(frame.error)
        if frame.source == "look":  # one that hangs holds up the others: they grow old, and are asked again after it
            self.looks_heard += 1
            hung = frame.texts.get("key")
            for key, (_, kept) in self._looked.items():
                if hung is None or key == hung:
                    kept.fail(why)
            return
        (self._gpus if frame.source == "nvidia-smi" else self._memory).fail(why)

    async def _read_containers(self) -> None:
        assert self.docker is not None
        while True:
            if self.link.state.status is LinkStatus.UP:
                began = time.monotonic()
                self._containers.put(
                    await self.docker.read(), began
                )  # as old as the question: the answer may take long
                pause = self._rates.containers
            else:
                pause = LINK_CHECK_S
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
                await asyncio.sleep(EVENT_PAUSE)
            except TimeoutError:
                pass
            self._changed.clear()

    def _on_docker_event(self, event: ContainerEvent) -> None:
        self._changed.set()
        containers = self._containers.value
        known = next((item for item in containers.items if item.id == event.id), None) if containers else None
        told = container_event(event, self._heard, known)
        self._heard.append(event)
        if event.action in ("die", "destroy"):
            self.told_ends.append((event.id, event.time))
        # told by the host's clock, kept by ours
        wall = told.wall - (self.drift() or 0.0) if told.wall else None
        noted = self._note(self.name, told.text, told.severity, wall, told.deed)
        if noted is not None and noted.deed:
            self.deeds.append(Deed(noted, self.name, time.monotonic(), container=event.name))
