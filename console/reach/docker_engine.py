"""The Docker Engine of one host: the docker SDK over a forwarded socket, in threads that end on close.

What is asked, and nothing else (a stand-in for Docker needs only these five; all are GET, none changes anything):

`/version`
    Unversioned, once a connection. Read: `ApiVersion`, `MinAPIVersion`. The version used is the highest that both
    sides know, here called N.
`/vN/containers/json?all=1&limit=-1&size=0&trunc_cmd=0`
    A JSON list. Read of each row: `Id`, `Names`, `Image`, `ImageID`, `Created`, `State`, `Status`, `Labels`,
    `Ports[].PublicPort`, `Mounts[].{Source,Destination,RW}`, `HostConfig.NetworkMode`.
`/vN/containers/{id}/json`
    One object. Read: `Id`, `Name`, `Image`, `Created`, `RestartCount`, `Path`, `Args`, `State.*` (with
    `Health.Status`), `Mounts[].{Source,Destination,RW}`, `Config.{Image,Entrypoint,Cmd,Labels}`,
    `HostConfig.{RestartPolicy,AutoRemove,NetworkMode,Binds,PortBindings}`, `NetworkSettings.Ports`.
    404 with `{"message": "No such container: ..."}` for one that is gone.
`/vN/events?since=T&filters={"type":["container"],"event":[...]}`
    One kept-open answer with `Transfer-Encoding: chunked` and a `Date` header; past events since T first, then live
    ones, one JSON object a line. Read: `Type`, `Action` (old: `status`), `Actor.ID` (old: `id`),
    `Actor.Attributes.{name,exitCode,signal}`, `timeNano` (old: `time`). A server may ignore the filters: what is not
    wanted is dropped here.
`/vN/containers/{id}/logs?stdout=1&stderr=1&timestamps=1&follow=1&tail=200` (`tail=1000&since=T` after a reconnect;
`tail=20000&since=T`, with or without `follow`, for the log of a start)
    One kept-open chunked answer. Unless the container has a TTY, frames of an 8-byte header (stream 1 or 2, three
    zero bytes, length as big-endian 32 bits) and that many bytes; each line starts with an RFC 3339 time and a space.

Errors are status 400 and above with `{"message": "..."}`. Connections are kept alive where the server allows it; event
and log streams each hold a connection of their own, so a stand-in must serve several at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from console import sanitize
from console.reach.docker_door import PROBED_BY_SOCKET, DockerDoor
from console.reach.docker_follow import LogFollower, OnLine
from console.reach.docker_log import Lines, api_time
from console.reach.docker_scan import LogScan, Take
from console.reach.docker_threads import DockerSilent, DockerUnreadable, NoSuchContainer, Threads
from console.reach.link import Link, ReachError
from console.readings.container_rows import freshness, parse_list_row, tag_moved
from console.readings.containers import Container, Containers, ContainersUnreadable, parse_inspect, with_exit
from console.readings.docker_errors import DockerProblem
from console.readings.exits import ContainerEvent, parse_event

if TYPE_CHECKING:
    from console.reach.docker_sdk import Sdk

INSPECT_MOST = 32
"""Containers of a host that are inspected; of the others a list row is shown."""
SHOW_MOST = 200
"""Containers of a host that are kept at all; `Containers.total` says how many there are."""
REFRESH_AFTER = 60.0
"""Seconds after which a container is inspected again although nothing said that it changed."""
EVENTS = (
    "create",
    "start",
    "restart",
    "die",
    "stop",
    "kill",
    "oom",
    "pause",
    "unpause",
    "rename",
    "update",
    "health_status",
    "destroy",
)
REMEMBERED = 24 * 3600
"""Seconds of past events that are asked for at first, to learn why what is down went down."""
HISTORY_EACH, HISTORY_CONTAINERS = 64, 512
SEEN_MOST = 1024
EVENT_LINE = 1 << 20
"""Bytes of one event: it carries all labels of its container."""
RETRY_FIRST, RETRY_MOST = 0.5, 15.0
"""Seconds before the event stream is opened again."""
STEADY = 30.0
"""Seconds that a stream must have lived for the next wait to be short again."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A container as inspected, and the list row that it went with."""

    row: tuple[str, ...]
    at: float
    container: Container


@dataclass(slots=True)
class _History:
    """Events by container, bounded, and which were seen: a replay after a reconnect says nothing twice."""

    newest: int = 0
    """Unix nanoseconds of the host's clock."""
    _by_id: dict[str, deque[ContainerEvent]] = field(default_factory=dict)
    _seen: deque[tuple[int, str, str]] = field(default_factory=lambda: deque(maxlen=SEEN_MOST))

    def add(self, nanos: int, event: ContainerEvent) -> bool:
        """Remember an event; False if it was here before."""
        key = (nanos, event.id, event.action)
        if key in self._seen:
            return False
        self._seen.append(key)
        self.newest = max(self.newest, nanos)
        own = self._by_id.pop(event.id, None) or deque(maxlen=HISTORY_EACH)
        own.append(event)
        self._by_id[event.id] = own
        while len(self._by_id) > HISTORY_CONTAINERS:
            del self._by_id[next(iter(self._by_id))]
        return True

    def of(self, container_id: str) -> tuple[ContainerEvent, ...]:
        """A container's events, oldest first."""
        return tuple(self._by_id.get(container_id, ()))


class DockerEngine:
    """Containers, events and logs of one host. Nothing here raises because Docker or the host is down.

    `read` is asked again and again and at once after an event; `watch` runs until `close`; every thread, socket and
    forwarded file is gone after `close`.
    """

    def __init__(
        self, link: Link, socket_path: str, on_event: Callable[[ContainerEvent], None], *, limit: float = 10.0
    ) -> None:
        """`on_event` is called on the event loop for each new event; `limit` is in seconds, for each question."""
        self._link, self._on_event, self._limit = link, on_event, limit
        self._path = socket_path
        self._threads = Threads(f"docker-{link.name}")
        self._door = DockerDoor(link, socket_path, self._threads, limit)
        self._reader: Sdk | None = None
        self._followers: list[LogFollower | LogScan] = []
        self._stream: asyncio.Task[str] | None = None
        self._turn = asyncio.Lock()
        self._known: dict[str, _Known] = {}
        self._changed: set[str] = set()
        self._history = _History()
        self._closing = asyncio.Event()
        self.watching = False
        """Whether the event stream is open: while it is not, a change shows only at the next read."""
        self.watch_problem = ""
        """Why it is not; safe text."""

    def events_of(self, container_id: str) -> tuple[ContainerEvent, ...]:
        """What Docker told of a container, the last day before the first question included; oldest first."""
        return self._history.of(container_id)

    async def read(self) -> Containers:
        """All containers of the host, or why they cannot be read: then `items` is empty and `problem` is not."""
        async with self._turn:
            try:
                return _CLOSED if self._closing.is_set() else await self._read()
            except asyncio.CancelledError:
                self._forget_reader()
                raise
            except DockerUnreadable as error:
                return _refused(error.problem)
            except TimeoutError:
                self._forget_reader()
                hint = "the daemon may hang; a stuck GPU driver stops it too"
                return _refused(DockerProblem(f"Docker does not answer within {self._limit:g} s", hint))
            except (ReachError, DockerSilent) as error:
                await self._shut()
                return _CLOSED if self._closing.is_set() else _refused(await self._why(error))

    async def _why(self, error: ReachError | DockerSilent) -> DockerProblem:
        if isinstance(error, DockerSilent) or error.reason in PROBED_BY_SOCKET:
            return await self._door.explain()
        return DockerProblem(f"cannot read Docker: {sanitize.line(error.problem, 300)}", sanitize.line(error.hint, 300))

    async def _read(self) -> Containers:
        if self._reader is None:
            self._reader = await self._door.client()
        sdk, api = self._reader, self._door.api
        changed, self._changed = self._changed, set()
        known = self._known
        try:
            found, total = await self._threads.call(
                partial(_collect, sdk, known, changed, self.watching), limit=self._limit, abort=sdk.abort
            )
        except BaseException:
            self._changed |= changed
            raise
        self._known = {item.id: entry for item, entry in found if entry is not None}
        items = tuple(with_exit(item, self._history.of(item.id)) for item, _ in found)
        return Containers(items, api_version=api, total=total if total > len(items) else None)

    def _forget_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    async def _shut(self) -> None:
        """The connection is broken: the next question comes through a new one."""
        self._forget_reader()
        self._known = {}
        await self._door.drop()

    async def watch(self) -> None:
        """Pass new events on until `close`; opens the stream again when it ends, asking for what was missed."""
        wait = RETRY_FIRST
        while not self._closing.is_set():
            began = time.monotonic()
            stream = self._stream = asyncio.create_task(self._watched())
            try:
                await asyncio.wait((stream,))
            finally:
                stream.cancel()
                await asyncio.gather(stream, return_exceptions=True)
                self.watching = False
            self.watch_problem = "closed" if stream.cancelled() else stream.result()
            wait = RETRY_FIRST if time.monotonic() - began > STEADY else min(RETRY_MOST, wait * 2)
            with contextlib.suppress(TimeoutError):
                spread = random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, hides nothing
                await asyncio.wait_for(self._closing.wait(), wait * spread)

    async def _watched(self) -> str:
        """One life of the stream; why it ended."""
        try:
            sdk = await self._door.client()
        except DockerUnreadable as error:
            return error.problem.problem
        except (ReachError, DockerSilent, TimeoutError) as error:
            return f"no events: {sanitize.line(str(error), 200) or 'no answer in time'}"
        try:
            await self._threads.call(
                partial(self._listen, sdk, asyncio.get_running_loop()), limit=None, abort=sdk.abort
            )
            return "the event stream ended"
        except DockerUnreadable as error:
            return error.problem.problem
        except DockerSilent as error:
            return f"no events: {sanitize.line(str(error), 200)}"
        finally:
            sdk.close()

    def _listen(self, sdk: Sdk, loop: asyncio.AbstractEventLoop) -> None:
        """In the thread: events until the stream ends."""
        newest = self._history.newest
        filters = json.dumps({"type": ["container"], "event": list(EVENTS)})
        since = api_time(newest) if newest else str(int(time.time()) - REMEMBERED)
        stream = sdk.events({"since": since, "filters": filters})
        live_from = 0.0 if newest else stream.server_time or time.time()
        loop.call_soon_threadsafe(self._opened, int(live_from * 1e9))
        lines = Lines(EVENT_LINE)
        for piece in stream.pieces():
            batch = [event for line in lines.feed(piece) if (event := _event(line)) is not None]
            if batch:
                loop.call_soon_threadsafe(self._take, batch, live_from)

    def _opened(self, from_nanos: int) -> None:
        self.watching = not self._closing.is_set()
        self.watch_problem = ""
        self._history.newest = self._history.newest or from_nanos
        self._changed.update(self._known)

    def _take(self, batch: Iterable[tuple[int, ContainerEvent]], live_from: float) -> None:
        for nanos, event in batch:
            if not self._history.add(nanos, event) or self._closing.is_set():
                continue
            self._changed.add(event.id)
            if event.time >= live_from:
                self._on_event(event)

    def follow_log(self, container_id: str, on_line: OnLine) -> LogFollower:
        """Follow a container's log: its last 200 lines, then new ones. `on_line` gets Unix seconds (or None) and safe
        text, on the event loop, in batches. Ends with its own `close` or the engine's."""
        follower = LogFollower(self._door, self._threads, container_id, on_line)
        self._followers = [*(known for known in self._followers if not known.closed), follower]
        return follower

    def scan_log(self, container_id: str, take: Take, *, since: float | None, follow: bool) -> LogScan:
        """Read the log of a start (`since`, Unix seconds) line by line; `take` is called in the reading thread."""
        scan = LogScan(self._door, self._threads, container_id, take, since=since, follow=follow)
        self._followers = [*(known for known in self._followers if not known.closed), scan]
        return scan

    async def close(self) -> None:
        """End every thread, connection and forwarded file. May be called twice."""
        self._closing.set()
        for follower in self._followers:
            await follower.close()
        if self._stream is not None:
            self._stream.cancel()
            await asyncio.gather(self._stream, return_exceptions=True)
        if self._reader is not None:
            self._reader.abort()
        await self._threads.ended()
        self._forget_reader()
        await self._door.close()


_CLOSED = Containers((), "no longer asked: closed")


def _refused(problem: DockerProblem) -> Containers:
    return Containers((), problem.problem, problem.hint)


def _event(line: bytes) -> tuple[int, ContainerEvent] | None:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None  # half a line at the start of a stream, or no JSON: nothing that could be shown
    if not isinstance(raw, Mapping) or (event := parse_event(raw)) is None or event.action not in EVENTS:
        return None
    nanos = raw.get("timeNano")
    return (nanos if isinstance(nanos, int) else int(event.time * 1e9)), event


def _collect(
    sdk: Sdk, known: Mapping[str, _Known], changed: set[str], watching: bool
) -> tuple[list[tuple[Container, _Known | None]], int]:
    """In the thread: the list, and what inspect says of the containers that matter, asked where it may differ."""
    rows = sdk.list_all()
    now = time.monotonic()
    found: list[tuple[Container, _Known | None]] = []
    for row, brief in sorted(_briefs(rows), key=lambda pair: _weight(pair[1]), reverse=True)[:SHOW_MOST]:
        entry = known.get(brief.id)
        if len(found) >= INSPECT_MOST:
            found.append((brief, None))
            continue
        if entry is None or not _fresh(entry, row, brief, now, brief.id in changed, watching):
            try:
                entry = _Known(freshness(row), now, parse_inspect(sdk.inspect(brief.id)))
            except NoSuchContainer:
                continue  # removed since it was listed
            except ContainersUnreadable:
                found.append((brief, None))
                continue
        if (moved := tag_moved(brief, entry.container)) is not entry.container.tag_moved:
            entry = replace(entry, container=replace(entry.container, tag_moved=moved))
        found.append((entry.container, entry))
    return found, len(rows)


def _briefs(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Container]]:
    briefs: list[tuple[Mapping[str, Any], Container]] = []
    for row in rows:
        try:
            briefs.append((row, parse_list_row(row)))
        except ContainersUnreadable as error:
            raise DockerUnreadable(DockerProblem(f"cannot read Docker: {error}")) from error
    return briefs


def _weight(container: Container) -> tuple[bool, float]:
    return container.up, container.created_at or 0.0


def _fresh(entry: _Known, row: Mapping[str, Any], brief: Container, now: float, changed: bool, watching: bool) -> bool:
    """Whether what is known still holds. Without events a container that is up may have been restarted unseen."""
    if changed or entry.row != freshness(row) or now - entry.at >= REFRESH_AFTER:
        return False
    return watching or not brief.up
