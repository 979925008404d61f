"""Alarms of what keeps a lane alive: watchdog, boot, row copies, checkpoint, download, drift between ranks, front."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from console import format as fmt
from console.alarms.alarm import Alarm
from console.readings import underway
from console.readings.answers import HttpAnswer, Transport
from console.readings.containers import Container
from console.readings.download import Download, DownloadState
from console.readings.health import LaneState
from console.readings.hubcache import HubRepo
from console.readings.quality import Reading
from console.readings.rows import RowCopies, RowCopy, RowState
from console.readings.watchdog import Watchdog, WatchdogState
from console.snapshot import LaneView, Severity, Snapshot

OLD_CHECKPOINT_ADVICE = "rebuild the copy before the next launch"


def upkeep_alarms(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    """Everything that makes the next minutes or the next launch unsafe; what cannot be read is on its lamp."""
    yield from _watchdog(snapshot, lane)
    yield from _boot(snapshot, lane)
    yield from _site(snapshot, lane)
    yield from _rows(snapshot, lane)
    yield from _checkpoint(snapshot, lane)
    yield from _download(snapshot, lane)
    yield from _drift(snapshot, lane)
    yield from _front(snapshot, lane)


_WATCHDOG: dict[WatchdogState, tuple[Severity, str]] = {
    WatchdogState.GAVE_UP: (Severity.ACT, "nobody restarts the lane: find the cause, then clear it"),
    WatchdogState.FAILED: (Severity.ACT, "nobody restarts the lane: read the unit's journal"),
    WatchdogState.DEAD_LOCK: (Severity.ACT, "its process is gone: remove the lock, start it again"),
    WatchdogState.REUSED_PID: (Severity.ACT, "nothing watches; never signal that pid"),
    WatchdogState.TWO: (Severity.ACT, "two relaunch against each other: end one"),
    WatchdogState.RECOVERY: (Severity.LOOK, "it relaunches the lane: do not start or stop by hand"),
    WatchdogState.CHECKING: (Severity.LOOK, "it will relaunch soon"),
    WatchdogState.PAUSED: (Severity.LOOK, "nobody restarts the lane until it goes on"),
    WatchdogState.OFF: (Severity.LOOK, "nobody restarts the lane: arm it"),
    WatchdogState.STANDING_DOWN: (Severity.LOOK, "nobody restarts the lane: start it again"),
    WatchdogState.UNKNOWN: (Severity.LOOK, "do not take it for off"),
}


_DISARMED = (WatchdogState.OFF, WatchdogState.PAUSED, WatchdogState.STANDING_DOWN)


def _watchdog(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    if lane.watchdog is None:
        return
    found: Watchdog | None = lane.watchdog.current(snapshot.now)
    if found is None or found.state not in _WATCHDOG:
        return
    severity, advice = _WATCHDOG[found.state]
    acting = None if lane.acting is None else lane.acting.value
    owed = underway.debt(acting)
    if owed is not None and acting is not None and found.state in _DISARMED and acting.clock <= owed.deadline:
        severity, advice = Severity.INFO, f"to be armed by {fmt.clock(owed.deadline)}"
    text = f"watchdog {found.words}"
    yield Alarm(f"watchdog:{lane.name}", severity, lane.name, text, advice)


def _boot(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    boot = None if lane.boot is None else lane.boot.current(snapshot.now)
    if boot is not None and boot.failure is not None and lane.verdict.state not in _UP:
        failure = boot.failure
        heals = "" if failure.heals else ": will not heal by waiting"
        severity = Severity.LOOK if failure.heals else Severity.ACT
        yield Alarm(f"boot:{lane.name}", severity, lane.name, f"boot: {failure.cause}{heals}", failure.advice)
    if boot is not None and boot.missing:
        text = f"boot without {', '.join(boot.missing)}"
        yield Alarm(f"boot-missing:{lane.name}", Severity.LOOK, lane.name, text, "is this the right image?")
    progress = lane.boot_progress
    if progress is not None and progress.late and lane.verdict.state is LaneState.BOOTING:
        usual = f", longest before {fmt.duration(progress.usual[1])}" if progress.usual else ""
        phase = f" in {progress.phase}" if progress.phase else ""
        text = f"boot takes {fmt.duration(progress.elapsed)}{usual}{phase}"
        yield Alarm(f"boot-late:{lane.name}", Severity.LOOK, lane.name, text, "read the log (l)")


def _site(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    site = None if lane.site is None else lane.site.current(snapshot.now)
    if site is None:
        if lane.site is not None and lane.site.error:
            text = f"site file cannot be read: {lane.site.error}"
            yield Alarm(f"site:{lane.name}", Severity.LOOK, lane.name, text, "")
        return
    running = {rank.revision for rank in lane.ranks if rank.revision}
    acts = underway.running(None if lane.acting is None else lane.acting.current(snapshot.now)) is not None
    if not acts and site.revision and len(running) == 1 and site.revision not in running:
        text = f"site file says {fmt.revision(site.revision)}, {fmt.revision(running.pop())} is mounted"
        advice = "the next launch changes the checkpoint"
        yield Alarm(f"site-revision:{lane.name}", Severity.LOOK, lane.name, text, advice)
    for warning in site.file.warnings[:1]:
        yield Alarm(f"site-text:{lane.name}", Severity.LOOK, lane.name, f"site file: {warning}", "")


_ROWS_ACT = (RowState.OLD_REVISION, RowState.WRONG_RANK, RowState.WRONG_RANGES, RowState.HOLES)
_ROWS_LOOK = (RowState.OLD_MANIFEST, RowState.UNREADABLE)


def _rows(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    copies: RowCopies | None = None if lane.rows is None else lane.rows.current(snapshot.now)
    if copies is None:
        return
    for copy in copies.copies:
        severity = _row_severity(copy)
        if severity is not None:
            text = f"{copy.host} row copy: {copy.words}"
            yield Alarm(f"rows:{lane.name}:{copy.host}", severity, lane.name, text, _row_advice(snapshot, lane, copy))
    if copies.tiling.ok is False:
        text = f"row ranges do not tile: {copies.tiling.words}"
        yield Alarm(f"tiling:{lane.name}", Severity.ACT, lane.name, text, "the next boot fails; rebuild the odd copy")


def _row_severity(copy: RowCopy) -> Severity | None:
    if copy.state in _ROWS_ACT:
        return Severity.ACT
    return Severity.LOOK if copy.state in _ROWS_LOOK else None


def _row_advice(snapshot: Snapshot, lane: LaneView, copy: RowCopy) -> str:
    if copy.state not in (RowState.OLD_REVISION, RowState.HOLES, RowState.WRONG_RANK):
        return OLD_CHECKPOINT_ADVICE
    site = None if lane.site is None else lane.site.current(snapshot.now)
    container = next((rank.container for rank in lane.ranks if rank.host == copy.host), None)
    up = container is not None and container.up
    if container is not None and up and (site is None or site.revision in ("", container.revision)):
        return "it serves wrong rows without an error: rebuild it"
    if container is not None and up and copy.read_by(mount.source for mount in container.mounts):
        return "it is mounted, and the site file names another checkpoint: find out which rows are meant"
    return "the next launch would serve wrong rows without an error: rebuild it first"


def _checkpoint(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    """The snapshot that serves, seen through each rank's own mount."""
    serving = {rank.host: rank.revision for rank in lane.ranks if rank.revision}
    mounted = {rank.host: rank.container for rank in lane.ranks}
    for host, reading in lane.repos:
        repo = reading.current(snapshot.now)
        if repo is None or host not in serving:
            continue
        if repo.problem:
            text = f"{host} cannot read the checkpoint's folder: {repo.problem}"
            severity, advice = (Severity.INFO, "") if repo.unseen else (Severity.ACT, "is it mounted?")
            yield Alarm(f"snapshot:{lane.name}:{host}", severity, lane.name, text, advice)
            continue
        files = repo.snapshot(serving[host])
        if files is None and _lost(repo, mounted.get(host)):
            text = f"{host}: {fmt.revision(serving[host])} is not in the checkpoint's folder, which has {_has(repo)}"
            yield Alarm(f"snapshot:{lane.name}:{host}", Severity.ACT, lane.name, text, "is it mounted?")
        broken = (*files.dangling, *files.outside) if files is not None else ()
        if broken:
            counted = "1 file leads nowhere" if len(broken) == 1 else f"{len(broken)} files lead nowhere"
            text = f"{host}: {fmt.revision(serving[host])}: {counted}: {broken[0]}"
            yield Alarm(f"snapshot:{lane.name}:{host}", Severity.ACT, lane.name, text, "the next boot there fails")


def _lost(repo: HubRepo, container: Container | None) -> bool:
    """Whether what the rank mounts must be in this folder: a mount that is gone leaves an empty one."""
    root = repo.root.rstrip("/")
    sources = [mount.source.rstrip("/") for mount in container.mounts] if container is not None else []
    by_revision = all(len(item.revision) == 40 for item in repo.snapshots)
    return by_revision and any(root == source or source.startswith(f"{root}/") for source in sources)


def _has(repo: HubRepo) -> str:
    if not repo.snapshots:
        return "none"
    return " and ".join(fmt.revision(item.revision) for item in repo.snapshots[:2])


_DOWNLOAD: dict[DownloadState, tuple[Severity, str]] = {
    DownloadState.STALLED: (Severity.LOOK, "end it and start it again"),
    DownloadState.FAILED_CAP: (Severity.LOOK, "start it again with a higher cap, or fewer workers"),
    DownloadState.FAILED: (Severity.LOOK, "read its output"),
}


def _download(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    found: Download | None = None if lane.download is None else lane.download.current(snapshot.now)
    if found is None:
        return
    if found.state in _DOWNLOAD:
        severity, advice = _DOWNLOAD[found.state]
        text = f"download {found.state}: {found.why}" if found.why else f"download {found.state}"
        yield Alarm(f"download:{lane.name}", severity, found.host, text, advice)
    yield from _download_warnings(snapshot, lane, found)


_LEFT_OVER = (DownloadState.INCOMPLETE, DownloadState.FAILED, DownloadState.FAILED_CAP)
"""States that leave something behind, which somebody may want to tidy up."""


def _download_warnings(snapshot: Snapshot, lane: LaneView, found: Download) -> Iterator[Alarm]:
    """One alarm for each kind of warning: its words change with every reading, its key does not."""
    by_kind: dict[str, list[str]] = {}
    for kind, text in zip_longest(found.warning_kinds, found.warnings, fillvalue="other"):
        by_kind.setdefault(kind, []).append(text)
    for kind, texts in by_kind.items():
        more = f" (and {len(texts) - 1} more like it)" if len(texts) > 1 else ""
        severity, advice = Severity.LOOK, ""
        if kind == "prune":
            severity = Severity.LOOK if _may_be_pruned(snapshot, lane, found) else Severity.INFO
            advice = "let nothing prune that cache; remove left-overs by name"
        yield Alarm(f"download-warning:{lane.name}:{kind}", severity, found.host, f"{texts[0]}{more}", advice)


def _may_be_pruned(snapshot: Snapshot, lane: LaneView, found: Download) -> bool:
    """Of a checkpoint fetched by its commit no ref names anything, for as long as it is used: good to know. It asks for
    a look where something prunes by itself, or where left-overs ask for somebody to do it."""
    watchdog: Watchdog | None = None if lane.watchdog is None else lane.watchdog.current(snapshot.now)
    return found.state in _LEFT_OVER or any("prune" in actor for actor in (watchdog.competing if watchdog else ()))


_SEVERITY = {"act": Severity.ACT, "look": Severity.LOOK}


def _drift(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    copies = None if lane.rows is None else lane.rows.current(snapshot.now)
    told = copies is not None and any(_row_severity(copy) is not None for copy in copies.copies)
    for difference in lane.drift.differences if lane.drift is not None else ():
        severity = _SEVERITY.get(difference.severity)
        if severity is None or (told and difference.what == "row copy"):  # each bad copy has an alarm of its own
            continue
        values = dict(difference.values)
        odd = ", ".join(f"{host} {values.get(host, '?')}" for host in difference.odd[:2])
        odd += f" and {len(difference.odd) - 2} more" if len(difference.odd) > 2 else ""
        text = f"ranks differ in {difference.what}: {odd}"
        yield Alarm(f"rank:{lane.name}:{difference.what}", severity, lane.name, text, difference.why)


_UP = (LaneState.SERVING, LaneState.IDLE, LaneState.BUSY, LaneState.READY)


def _front(snapshot: Snapshot, lane: LaneView) -> Iterator[Alarm]:
    """Clients come through the front: a healthy engine behind a dead one serves nobody."""
    reading: Reading[HttpAnswer] | None = lane.front
    if reading is None or lane.verdict.state not in _UP:
        return
    answer = reading.current(snapshot.now)
    if answer is None:
        if reading.error:
            text = f"front {lane.lane.front}: {reading.error}"
            yield Alarm(f"front:{lane.name}", Severity.ACT, lane.name, text, "clients do not get through")
        return
    if answer.transport is not Transport.ANSWERED or (answer.status or 500) >= 500:
        says = f"answers {answer.status}" if answer.transport is Transport.ANSWERED else f"is {answer.transport}"
        text = f"front {lane.lane.front} {says}, the engine is well"
        yield Alarm(f"front:{lane.name}", Severity.ACT, lane.name, text, "clients do not get through")
