"""What happened on the hosts between two pictures, and by whom as far as it can be known. Pure.

Docker names nobody: that a signal came through it, and that it was not this console, is all that it tells
(docs.docker.com/reference/cli/docker/system/events). A restart policy and a watchdog leave traces of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from console import format as fmt
from console.feed.acting_story import acting_changes
from console.feed.foreign import NOT_US
from console.readings.acting_types import Acting
from console.readings.containers import Container, Containers
from console.readings.download import Download, DownloadState
from console.readings.exits import ASKED_SIGNALS, DIE_SLACK, SIGNALS, ContainerEvent, explain_exit, last_run
from console.readings.facts import HostFacts
from console.readings.rows import RowCopies, RowState
from console.readings.throughput import EngineKind
from console.readings.watchdog import Watchdog, WatchdogState
from console.sanitize import word
from console.snapshot import Event, HostView, LaneView, Severity

NOW = 0.0
"""Time of an event of which nobody says when it happened: it is dated when it is noted."""
MOST_IMAGES = 500
"""Image names that are remembered of one host."""


@dataclass(frozen=True, slots=True)
class HostKnown:
    """What was last known of a host; it outlives readings that failed."""

    facts: HostFacts | None = None
    containers: Mapping[str, Container] | None = None
    """By id; None before they were read."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Image id by the name that a container was started from: of the newest one of that name."""


@dataclass(frozen=True, slots=True)
class LaneKnown:
    """What was last known of a lane."""

    revisions: Mapping[str, str] = field(default_factory=dict)
    """Mounted revision by host."""
    site: Mapping[str, str] | None = None
    """Every effective assignment of the site file, and its revision under ''."""
    download: Download | None = None
    watchdog: Watchdog | None = None
    copying: Mapping[tuple[bool, int], float] = field(default_factory=dict)
    """Unix time at which a copy was first seen being written, by (for the next revision, rank)."""
    upstream: str = ""
    acting: Acting | None = None


# --- hosts -----------------------------------------------------------------------------------------------------------


def host_changes(
    known: HostKnown, view: HostView, told: Collection[tuple[str, float]] = ()
) -> tuple[HostKnown, tuple[Event, ...]]:
    """What is known now, and what happened since. `told` are the ends that Docker's events told: (id, Unix time)."""
    events: list[Event] = []
    if view.facts.value is not None:
        events += _facts(view.name, known.facts, view.facts.value)
        known = replace(known, facts=view.facts.value)
    found = view.containers.value
    if found is not None and not found.problem:
        by_id = {item.id: item for item in found.items if item.id}
        if known.containers is not None:
            ahead = view.drift or 0.0
            events += _containers(view.name, known.containers, by_id, found, ahead, told)
            events += _images(view.name, known, by_id)
        known = replace(known, containers=by_id, images=_newest_images(known.images, by_id))
    return known, tuple(events)


def _facts(host: str, before: HostFacts | None, after: HostFacts) -> Iterator[Event]:
    if before is None or before == after:
        return
    if before.hostname and after.hostname and before.hostname != after.hostname and before.boot_id != after.boot_id:
        text = f"another machine answers: {after.hostname}, before it {before.hostname}"
        yield Event(NOW, host, text, Severity.LOOK)
    elif before.boot_id and after.boot_id and before.boot_id != after.boot_id:
        known = before.kernel and after.kernel and before.kernel != after.kernel
        kernel = f", kernel {before.kernel} -> {after.kernel}" if known else ""
        yield Event(NOW, host, f"the host was restarted{kernel}", Severity.LOOK)


def _containers(
    host: str,
    before: Mapping[str, Container],
    after: Mapping[str, Container],
    whole: Containers,
    ahead: float,
    told: Collection[tuple[str, float]],
) -> Iterator[Event]:
    """What Docker's events did not tell: their stream may have been down. `ahead`: the host's clock, seconds."""
    for ident, was in before.items():
        item = after.get(ident)
        if item is None:
            listed = whole.total is None or whole.total <= len(whole.items)
            if was.up and listed and not _told(told, ident, None):
                yield Event(NOW, host, f"container {was.name} is gone", Severity.LOOK, deed="container")
            continue
        at = item.finished_at
        if was.up and not item.up and not _told(told, ident, at):
            text = f"container {item.name} ended: {item.exit_meaning or item.state}"
            yield Event(NOW if at is None else at - ahead, host, text, Severity.LOOK)
        if item.restart_count > was.restart_count:
            policy = f" (policy {item.restart_policy})" if item.restart_policy else ""
            text = f"container {item.name} was restarted by Docker itself{policy}, {item.restart_count} times so far"
            yield Event(NOW, host, text, Severity.LOOK)
        if item.tag_moved and not was.tag_moved:
            text = f"the tag {item.image} of {item.name} names another image now: its next start takes that one"
            yield Event(NOW, host, f"{text}; {NOT_US}", Severity.LOOK, deed="image")


def _told(told: Collection[tuple[str, float]], ident: str, at: float | None) -> bool:
    return any(ident == known and (at is None or abs(at - when) <= DIE_SLACK) for known, when in told)


def _images(host: str, known: HostKnown, after: Mapping[str, Container]) -> Iterator[Event]:
    """Containers that came to be from a name that meant another image the last time."""
    for ident, item in after.items():
        was = known.images.get(item.image, "")
        if known.containers is None or ident in known.containers or not was or not item.image_id:
            continue
        if was != item.image_id:
            text = f"container {item.name} runs another image under the same tag {item.image}"
            yield Event(NOW, host, f"{text}: {_image(was)} -> {_image(item.image_id)}", Severity.LOOK)


def _newest_images(known: Mapping[str, str], after: Mapping[str, Container]) -> Mapping[str, str]:
    newest = {
        item.image: item.image_id
        for item in sorted(after.values(), key=lambda item: item.created_at or item.started_at or 0.0)
        if item.image and item.image_id
    }
    if newest.items() <= known.items():
        return known
    return dict(list({**known, **newest}.items())[-MOST_IMAGES:])


def _image(ident: str) -> str:
    return ident.removeprefix("sha256:")[:12]


_HEARD = {
    "update": "was given other settings",
    "rename": "was renamed",
    "start": "started",
    "pause": "paused",
    "unpause": "goes on",
    "destroy": "was removed",
    "create": "was made",
}
_BY_HAND = ("pause", "unpause", "destroy")
_DEEDS = (*_BY_HAND, "stop", "restart", "rename", "update", "create")
"""What somebody does; `start` may be Docker's own doing, `die` is what comes of it."""


def container_event(event: ContainerEvent, earlier: Collection[ContainerEvent], known: Container | None) -> Event:
    """Docker's event in words, dated by the host's clock. `earlier` are the same host's, oldest first, `known` the
    container as last read."""
    name, severity = f"container {event.name}", Severity.NORMAL
    if event.action == "die":
        text, severity = f"{name} died{_exit(event, earlier, known)}", Severity.LOOK
    elif event.action == "oom":
        text, severity = f"{name} ran out of memory", Severity.LOOK
    elif event.action == "health_status":
        text = f"{name}: Docker says {event.health}"
    elif event.action == "kill":
        text = f"{name} was sent {_signal(event.signal)} through Docker, {NOT_US}"
        severity = Severity.LOOK if event.signal in ASKED_SIGNALS or event.signal == 9 else Severity.NORMAL
    elif event.action in _BY_HAND:
        text = f"{name} {_HEARD[event.action]}, {NOT_US}"
    else:
        text = f"{name} {_HEARD.get(event.action, event.action)}"
    asked = event.action == "kill" and (event.signal in ASKED_SIGNALS or event.signal == 9)
    deed = "container" if asked or event.action in _DEEDS or _started_by_hand(event, earlier, known) else ""
    return Event(event.time or NOW, event.name, text, severity, deed=deed)


def _started_by_hand(event: ContainerEvent, earlier: Collection[ContainerEvent], known: Container | None) -> bool:
    """A start that no restart policy explains: the policy is `no`, or somebody had asked it to stop before."""
    if event.action != "start" or known is None:
        return False
    if known.restart_policy.partition(":")[0] in ("", "no"):
        return known.restart_policy != ""
    run = last_run(tuple(earlier), event.id, event.name)
    return bool(run) and any(item.action == "kill" and item.signal in ASKED_SIGNALS for item in run)


def _signal(number: int | None) -> str:
    return "a signal" if number is None else SIGNALS.get(number, f"signal {number}")


def _exit(event: ContainerEvent, earlier: Collection[ContainerEvent], known: Container | None) -> str:
    """`, exit 143: stopped by SIGTERM`: as far as Docker's events tell why."""
    code = "" if event.exit_code is None else f", exit {event.exit_code}"
    run = last_run((*earlier, event), event.id, event.name, event.time or None)
    engine = known is not None and known.engine is not EngineKind.UNKNOWN
    meaning = explain_exit(event.exit_code, None, engine=engine, events=run)
    return f"{code}: {meaning.cause}"


# --- lanes -----------------------------------------------------------------------------------------------------------


def lane_changes(
    known: LaneKnown, view: LaneView, *, now: float, wall: float, ahead: float = 0.0
) -> tuple[LaneKnown, tuple[Event, ...]]:
    """What is known now, and what happened since. `now` is monotonic, `wall` Unix time; `ahead` is how far the head's
    clock is ahead of the console's, seconds."""
    events: list[Event] = []
    revisions = dict(known.revisions)
    for rank in view.ranks:
        if rank.revision:
            events += _revision(view.name, rank.host, revisions.get(rank.host, ""), rank.revision)
            revisions[rank.host] = rank.revision
    known = replace(known, revisions=revisions) if revisions != known.revisions else known
    known = _site(view, known, ahead, events)
    if (watchdog := view.watchdog.current(now) if view.watchdog else None) is not None:
        events += _watchdog(view.name, known.watchdog, watchdog, ahead)
        known = replace(known, watchdog=watchdog)
    acting = view.acting.current(now) if view.acting else None
    if acting is not None and (acting.operation is None or not acting.operation.unread):
        events += acting_changes(view.name, known.acting, acting, ahead)
        known = replace(known, acting=acting)
    if (download := view.download.current(now) if view.download else None) is not None:
        events += _download(known, download)
        known = replace(known, download=download, upstream=download.upstream or known.upstream)
    for reading in (view.rows, view.next_rows):
        if reading is not None and (copies := reading.current(now)) is not None:
            copying, told = _rows(copies, known.copying, wall)
            events += told
            known = replace(known, copying=copying)
    return known, tuple(events)


def _revision(lane: str, host: str, before: str, after: str) -> Iterator[Event]:
    if before and before != after:
        text = f"{host} mounts another revision: {fmt.revision(before)} -> {fmt.revision(after)}"
        yield Event(NOW, lane, text, Severity.LOOK)


def _site(view: LaneView, known: LaneKnown, ahead: float, events: list[Event]) -> LaneKnown:
    """Names of what was changed, never values but the revision: among them may be secrets."""
    site = view.site.value if view.site is not None and not view.site.error else None
    if site is None:
        return known
    values = {item.key: "\0".join(item.values) for item in site.file.assignments} | {"": site.revision}
    before = known.site
    if before is not None and before != values:
        at = NOW if site.mtime is None else site.mtime - ahead
        changed = [key for key in {**before, **values} if key and before.get(key) != values.get(key)]
        names = [word(key, 60) for key in changed]
        text = f"site file changed: {', '.join(names[:4])}{' and more' if len(names) > 4 else ''}, {NOT_US}"
        if before[""] != values[""]:
            mounts = "the next launch mounts that one" if values[""] else "it names none that can be used"
            text = f"site file changed: revision {_short(before[''])} -> {_short(values[''])}, {mounts}, {NOT_US}"
        events.append(Event(at, view.name, text, Severity.LOOK, deed="site"))
    return known if before == values else replace(known, site=values)


def _short(revision: str) -> str:
    return fmt.revision(revision) if revision else "none"


_LOUD_WATCHDOG = {
    WatchdogState.GAVE_UP: Severity.ACT,
    WatchdogState.FAILED: Severity.ACT,
    WatchdogState.DEAD_LOCK: Severity.ACT,
    WatchdogState.REUSED_PID: Severity.ACT,
    WatchdogState.TWO: Severity.ACT,
    WatchdogState.ARMED: Severity.NORMAL,
    WatchdogState.STARTING: Severity.NORMAL,
    WatchdogState.BUSY: Severity.NORMAL,
    WatchdogState.IN_FLIGHT: Severity.NORMAL,
    WatchdogState.NONE: Severity.NORMAL,
}


_DISARMED = (WatchdogState.OFF, WatchdogState.PAUSED, WatchdogState.STANDING_DOWN)


def _watchdog(lane: str, before: Watchdog | None, after: Watchdog, ahead: float) -> Iterator[Event]:
    """Its acts in its own words and at its own time, and what became of it."""
    if before is None:
        return
    acted = after.last_act and after.last_act_at is not None
    if acted and (after.last_act, after.last_act_at) != (before.last_act, before.last_act_at):
        text = f"watchdog on {after.host} says: {after.last_act}"
        yield Event((after.last_act_at or 0.0) - ahead, lane, text, Severity.LOOK)
    if (before.state, before.attempt) != (after.state, after.attempt):
        flipped = {before.state, after.state} & set(_DISARMED) and bool(before.protecting) is not bool(after.protecting)
        severity = _LOUD_WATCHDOG.get(after.state, Severity.LOOK)
        yield Event(NOW, lane, f"watchdog {after.words}", severity, deed="watchdog" if flipped else "")


_FETCHES = (DownloadState.RUNNING, DownloadState.WAITING, DownloadState.STALLED)


def _download(known: LaneKnown, after: Download) -> Iterator[Event]:
    before = known.download
    if before is None:
        return
    what = f"download of {fmt.revision(after.revision)}" if after.revision else "download"
    if after.upstream and known.upstream and after.upstream != known.upstream:
        yield Event(NOW, after.host, f"the main branch moved on: {_short(known.upstream)} -> {_short(after.upstream)}")
    if before.state is after.state and before.revision == after.revision:
        return
    went_on = before.state in _FETCHES and before.revision == after.revision
    why = f": {after.why}" if after.why else ""
    if after.state is DownloadState.COMPLETE:
        size = f", {fmt.gib(after.done)} GiB" if after.done is not None else ""
        yield Event(NOW, after.host, f"{what} is complete{size}", Severity.INFO)
    elif after.state in (DownloadState.FAILED, DownloadState.FAILED_CAP):
        yield Event(NOW, after.host, f"{what} {after.state}{why}", Severity.LOOK)
    elif after.state is DownloadState.STALLED:
        yield Event(NOW, after.host, f"{what} stands still{why}", Severity.LOOK)
    elif after.state is DownloadState.INCOMPLETE and went_on:
        yield Event(NOW, after.host, f"{what} ended before it was whole{why}", Severity.LOOK)
    elif after.state is DownloadState.RUNNING and before.state is DownloadState.STALLED:
        yield Event(NOW, after.host, f"{what} goes on")
    elif after.state is DownloadState.RUNNING and not went_on and before.state is not DownloadState.UNKNOWN:
        yield Event(NOW, after.host, f"{what} began, {NOT_US}", Severity.INFO)


def _rows(
    copies: RowCopies, copying: Mapping[tuple[bool, int], float], wall: float
) -> tuple[Mapping[tuple[bool, int], float], list[Event]]:
    """Copies that became whole. Every other state of a copy is an alarm, or is on its pane."""
    since, events = dict(copying), list[Event]()
    for copy in copies.copies:
        key = (copies.for_next, copy.rank)
        if copy.state is RowState.COPYING:
            since.setdefault(key, wall)
        elif key in since and copy.state is not RowState.UNKNOWN:
            began = since.pop(key)
            if copy.state is RowState.READY:
                size = f", {fmt.gib(copy.present)} GiB" if copy.present is not None else ""
                of = f" of {fmt.revision(copies.revision)}" if copies.revision else ""
                text = f"row copy{of} is done{size}, seen copying for {fmt.duration(wall - began)}"
                events.append(Event(NOW, copy.host, text, Severity.INFO))
    return (since if since != copying else copying), events
