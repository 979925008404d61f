"""The way back of a lane that is launched from a site file: name the old revision again, relaunch on its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from console import format as fmt
from console.readings.containers import Container
from console.readings.download import DownloadState
from console.readings.hubcache import HubRepo, SnapshotFiles
from console.readings.lights import LaneState
from console.readings.quality import Reading
from console.readings.rows import ROOM_BESIDE, RowCopies, RowCopy, RowState
from console.snapshot import LaneView, Snapshot
from console.wayback.items import (
    LATER,
    LONG_AGO,
    STOP_S,
    Item,
    WayBack,
    Word,
    boot_time,
    consumers_item,
    frozen_target,
    gpu_item,
    graded,
    last_deed,
    port_item,
    timed,
    verdict,
)
from console.wayback.standing import served, told

BUILD_S, BUILD_AT_STOP_S = 90.0, 480.0
"""Seconds to build one rank's copy: beside the old one from local NVMe, or in its place where two have no room. Of a
copy of BUILD_BYTES (the 4x Spark page, 2026-10-18)."""
BUILD_BYTES = 50_700_000_000
MISSING = "missing"
"""The one trouble of a folder that says what is in it: nothing. After all others there may be more than was seen."""


@dataclass(frozen=True, slots=True)
class _Target:
    """Where to go back to, and why there."""

    revision: str
    why: str


def by_site(snapshot: Snapshot, lane: LaneView) -> WayBack:
    """The way back by the site file: to the revision that served last, or to the other one that is there."""
    up = [rank.container for rank in lane.ranks if rank.container is not None and rank.container.up]
    target = _target(lane, up)
    if frozen := _frozen(lane, frozen_target(snapshot, lane), up):
        target = _Target(frozen, f"{fmt.revision(frozen)} was frozen when the window was opened")
    if not target.revision:
        if not _not_looked(snapshot, lane) and _plain(lane):
            return WayBack(None, "", "site", (), (), None, why="no other folder is known: this one holds one revision")
        unread = _not_looked(snapshot, lane) or ("" if _serving_seen(lane, up) else target.why)
        ages = [age for _, reading in lane.repos if (age := reading.age(snapshot.now)) is not None]
        word = Word.UNKNOWN if unread else Word.FAIL
        item = Item("old snapshot", word, unread or target.why, max(ages, default=None), shuts=not unread)
        return WayBack(None if unread else False, "", "site", (item,), (), None, why=item.text)
    rows_item, builds = _rows(snapshot, lane, target.revision)
    items = tuple(_items(snapshot, lane, target.revision, up, rows_item))
    possible, why = verdict(items, "old snapshot")
    boot, basis = boot_time(lane, target.revision)
    stop = 0.0 if lane.verdict.state is LaneState.DOWN and not up else STOP_S
    parts, total = timed(stop, max((build.seconds for build in builds), default=0.0), boot)
    if rows_item is not None and rows_item.word is Word.UNKNOWN:
        total = None  # a copy that nobody sees may have to be built, which takes as long as a boot
    slow = tuple((build.host, build.seconds) for build in builds if build.at_stop)
    return WayBack(
        possible,
        target.revision,
        "site",
        items,
        parts,
        total,
        why=why or target.why,
        slow=slow,
        boot_basis=basis,
        last_deed=last_deed(lane),
    )


def _frozen(lane: LaneView, target: str, up: Sequence[Container]) -> str:
    """The whole revision that an open window leads back to; '' without one, where it is not there, where it is not the
    only one of its first digits, and where it serves already: then the key rolls forward."""
    _, short = told(target)
    found = [revision for revision in _there(lane) if short and revision.startswith(short)]
    return found[0] if len(found) == 1 and all(item.revision != found[0] for item in up) else ""


def _not_looked(snapshot: Snapshot, lane: LaneView) -> str:
    """Why nobody knows which revisions are there; '' where every rank's folder was read whole."""
    if not lane.repos:
        return lane.unfilled[0] if lane.unfilled else "no repository folder is known"
    for host, reading in lane.repos:
        repo = reading.current(snapshot.now)
        if repo is None:
            return "the checkpoint's folder was not read"
        if repo.problem and repo.problem != MISSING:
            return f"the checkpoint's folder was not read: {host} {repo.problem}"
    return ""


# --- where to --------------------------------------------------------------------------------------------------------


def _target(lane: LaneView, up: Sequence[Container]) -> _Target:
    """The revision to go back to.

    With a lane that is up, or whose containers cannot be read: another one that is there, the one that this lane
    served before, else the newest; never the one that is only being prepared. With a lane that is down: the one that
    served last.
    """
    there = _there(lane)
    serving = next((item.revision for item in up if item.revision), "")
    coming = _coming(lane, serving)
    before_now = served(lane)
    if not serving and not _serving_seen(lane, up):
        serving = _named(lane)
        if not serving:
            return _Target("", "which revision serves is not known: no container was read")
    if not serving:
        if before_now and before_now[0] in there:
            return _Target(before_now[0], f"{fmt.revision(before_now[0])} served last")
        named = _named(lane)
        if named and named in there and coming and named != coming:
            return _Target(named, f"the site file still names {fmt.revision(named)}")
        serving = named
    others = {revision for revision in there if revision not in (serving, coming)}
    earlier = next((one for one in before_now if one in there and one != serving), "")
    # where it is on record that what serves came up last, the record knows better than an earlier text what was before
    recorded = earlier if before_now[:1] == [serving] else ""
    named_before = (lane.lane.previous.revision, recorded, _previous(lane))
    # what the fleet file calls the previous one may serve by now: then it is the earlier text's other one
    before = next((one for one in named_before if one and one != serving), "")
    if before in there and before in (lane.lane.previous.revision, _previous(lane)):
        return _Target(before, f"{fmt.revision(before)} is named as the previous one")
    if earlier:
        return _Target(earlier, f"{fmt.revision(earlier)} was served by this lane before")
    if not others:
        beside = f"; {fmt.revision(coming)} is only being prepared" if coming in there and coming != serving else ""
        return _Target("", f"no other revision is kept{beside}")
    best = max(sorted(others), key=lambda revision: (there[revision].complete is True, there[revision].newest or 0.0))
    return _Target(best, f"{fmt.revision(best)} is the newest other revision that is there")


def _serving_seen(lane: LaneView, up: Sequence[Container]) -> bool:
    """Whether it is known what serves, or that nothing does: a lane whose containers cannot be read is not down."""
    return bool(up) or not lane.lights.process.unknown


def _named(lane: LaneView) -> str:
    """The revision that the site file names; '' where it names none or was never read."""
    return lane.site.value.revision if lane.site is not None and lane.site.value is not None else ""


def _there(lane: LaneView) -> dict[str, SnapshotFiles]:
    """Every revision that some rank sees, the fullest view of each."""
    found: dict[str, SnapshotFiles] = {}
    for _, reading in lane.repos:
        for files in reading.value.snapshots if reading.value is not None else ():
            if not files.revision:  # a plain folder: which revision it holds is not to be seen
                continue
            best = found.get(files.revision)
            if best is None or files.resolvable > best.resolvable:
                found[files.revision] = files
    return found


def _plain(lane: LaneView) -> bool:
    """Whether the checkpoint is one plain folder of files; another revision then lies in a folder that nobody named."""
    return any(
        not files.revision
        for _, reading in lane.repos
        for files in (reading.value.snapshots if reading.value is not None else ())
    )


def _previous(lane: LaneView) -> str:
    """The revision that served before, by an earlier text of the site file or in the operator's words; '' if none."""
    rows = lane.previous_rows.value if lane.previous_rows is not None else None
    return rows.revision if rows is not None and rows.revision else lane.lane.previous.revision


def _coming(lane: LaneView, serving: str) -> str:
    """The revision that is being prepared; '' if none is named."""
    if lane.lane.next.revision:
        return lane.lane.next.revision
    rows = lane.next_rows.value if lane.next_rows is not None else None
    if rows is not None and rows.revision:
        return rows.revision
    fetched = lane.download.value if lane.download is not None else None
    if fetched is None or (fetched.state is DownloadState.COMPLETE and _older(lane, fetched.revision, serving)):
        return ""
    return fetched.revision


def _older(lane: LaneView, revision: str, serving: str) -> bool:
    """Whether a revision came before the one that serves: then it is the old one, not one that is being prepared."""
    there = _there(lane)
    times = [there[item].newest if item in there else None for item in (revision, serving)]
    return times[0] is not None and times[1] is not None and times[0] < times[1]


# --- what it rests on ------------------------------------------------------------------------------------------------


def _items(
    snapshot: Snapshot, lane: LaneView, revision: str, up: Sequence[Container], rows: Item | None
) -> Iterator[Item]:
    head = snapshot.host(lane.lane.head)
    yield _old_snapshot(snapshot, lane, revision)
    if rows is not None:
        yield rows
    yield _image(snapshot, lane, up)
    yield _site_file(snapshot, lane, revision)
    serving = next((rank.container for rank in lane.ranks if rank.host == lane.lane.head), None)
    yield port_item(snapshot, lane, serving, head.containers.value.items if head.containers.value else ())
    if up:
        text = "the serving ranks give theirs back at the stop, and the same arguments are started"
        yield graded("memory", Word.OK, text, head.containers, snapshot.now)
    else:
        yield Item("memory", Word.UNKNOWN, f"what it will find is not known: {LATER}", head.memory.age(snapshot.now))
    gpu = gpu_item(snapshot, lane.lane.rank_hosts)
    if gpu is not None:
        yield gpu
    text = "the launcher's own dry run is asked by the plan, before anything is stopped"
    yield Item("dry run", Word.UNKNOWN, text, None)
    consumers = consumers_item(lane, serving, None)
    if consumers is not None:
        yield consumers


def _old_snapshot(snapshot: Snapshot, lane: LaneView, revision: str) -> Item:
    """The old checkpoint on every rank, through that rank's own mount."""
    broken, unread, ages, stale = [], [], [], False
    for host, reading in lane.repos:
        fault, current = _fault(reading.value, revision), reading.current(snapshot.now) is not None
        if fault is None:
            unread.append(f"{host}: {_unread(reading)}")
            continue
        if fault and not current:
            unread.append(f"{host}: {fault}, {LONG_AGO}")
            continue
        if fault:
            broken.append(f"{host}: {fault}")
        stale = stale or not current
        ages.append(reading.age(snapshot.now) or 0.0)
    short, age = fmt.revision(revision), max(ages, default=None)
    if broken:
        more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        return Item("old snapshot", Word.FAIL, f"{short} {broken[0]}{more}", age, shuts=True)
    if unread:
        return Item("old snapshot", Word.UNKNOWN, f"{short} {'; '.join(unread[:3])}", age)
    ranks = len(lane.repos)
    files = _there(lane)[revision]
    shards = f", {files.shards_done} of {files.shards_total} shards" if files.shards_total else ""
    text = f"{short}{shards} on {ranks} of {ranks} ranks, each through its own mount; contents not compared"
    return Item("old snapshot", Word.STALE if stale else Word.OK, text, age)


def _unread(reading: Reading[HubRepo]) -> str:
    """Why a rank's view says nothing of a revision."""
    problem = reading.value.problem if reading.value is not None else ""
    unknown = "its files cannot be counted" if reading.value is not None else "not read"
    return fmt.no_answer(reading.error) or problem or unknown


def _fault(repo: HubRepo | None, revision: str) -> str | None:
    """What is wrong with a revision in one rank's view; '' for nothing, None where it cannot be told."""
    if repo is None:
        return None
    if repo.problem:
        return repo.problem if repo.problem == MISSING else None
    files = repo.snapshot(revision)
    if files is None:
        return "not there"
    if files.dangling or files.outside:
        nowhere = len(files.dangling) + len(files.outside)
        return "1 file leads nowhere" if nowhere == 1 else f"{nowhere} files lead nowhere"
    if files.complete is False:
        return f"{files.shards_done} of {files.shards_total} shards"
    return "" if files.complete else None


def _image(snapshot: Snapshot, lane: LaneView, up: Sequence[Container]) -> Item:
    reading = snapshot.host(lane.lane.head).containers
    images = {item.image_id for item in up if item.image_id}
    if not images:
        return Item("image", Word.UNKNOWN, f"no rank is up to read it from: {LATER}", reading.age(snapshot.now))
    if len(images) > 1:
        return graded("image", Word.FAIL, f"{len(images)} different ones on {len(up)} ranks", reading, snapshot.now)
    text = f"{up[0].image or 'image'}, the same on {len(up)} ranks that are up"
    if unread := sum(rank.container is None for rank in lane.ranks):
        return Item("image", Word.UNKNOWN, f"{text}; no container seen on {unread}", reading.age(snapshot.now))
    return graded("image", Word.OK, text, reading, snapshot.now)


def _site_file(snapshot: Snapshot, lane: LaneView, revision: str) -> Item:
    reading = lane.site
    if reading is None or reading.value is None:
        why = reading.error if reading is not None and reading.error else "not read"
        return Item("site file", Word.UNKNOWN, why, None if reading is None else reading.age(snapshot.now))
    named = reading.value.revision
    if not named:
        return graded("site file", Word.FAIL, f"{reading.value.path} names no revision", reading, snapshot.now)
    same = named == revision
    does = "names it already" if same else f"names {fmt.revision(named)}, to be edited: revision and row folder"
    return graded("site file", Word.OK, does, reading, snapshot.now)


# --- row copies ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Build:
    """One copy that has to be built first."""

    host: str
    seconds: float
    at_stop: bool
    """There is no room for it beside the one in use."""


def _rows(snapshot: Snapshot, lane: LaneView, revision: str) -> tuple[Item | None, list[_Build]]:
    """Which ranks have rows of the old revision, and what the others must build; None for a lane without copies."""
    if lane.rows is None:
        return None, []
    readings = [reading for reading in (lane.rows, lane.next_rows, lane.previous_rows) if reading is not None]
    builds, unknown, ready = [], [], 0
    by_rank: dict[int, list[RowCopy]] = {}
    for copy in (copy for reading in readings for copy in _copies(reading)):
        by_rank.setdefault(copy.rank, []).append(copy)
    for rank, host in enumerate(lane.lane.rank_hosts):
        copies = by_rank.get(rank, [])
        if any(_of(copy, revision) for copy in copies):
            ready += 1
        elif not copies or all(copy.state is RowState.UNKNOWN for copy in copies):
            unknown.append(host)
        else:
            builds.append(_build(host, copies))
    text = f"{ready} of {len(lane.lane.rank_hosts)} ranks have them in the folders that are looked at"
    if builds:
        text += "; to be built: " + ", ".join(_build_words(build) for build in builds[:4])
    ages = [age for reading in readings if (age := reading.age(snapshot.now)) is not None]
    if unknown:
        text += f"; not read: {', '.join(unknown[:4])}"
        return Item("old rows", Word.UNKNOWN, text, max(ages, default=None)), builds
    return graded(
        "old rows", Word.OK, text, max(readings, key=lambda item: item.age(snapshot.now) or 0.0), snapshot.now
    ), builds


def _copies(reading: Reading[RowCopies]) -> tuple[RowCopy, ...]:
    return reading.value.copies if reading.value is not None else ()


def _of(copy: RowCopy, revision: str) -> bool:
    """Whether a copy holds all rows of a revision: also one that is the old one to those who look for the new."""
    if copy.state is RowState.SHARDS:
        return True
    manifest = copy.manifest
    whole = manifest is not None and copy.present is not None and copy.present >= manifest.bytes
    right = manifest is not None and bool(manifest.revision) and revision.startswith(manifest.revision)
    return whole and right and copy.state in (RowState.READY, RowState.OLD_REVISION)


def _build(host: str, copies: Sequence[RowCopy]) -> _Build:
    sizes = [copy.manifest.bytes if copy.manifest else copy.expected or 0 for copy in copies]
    size = max(sizes) or BUILD_BYTES
    free = next((copy.free for copy in copies if copy.free is not None), None)
    at_stop = free is not None and free < size + ROOM_BESIDE
    return _Build(host, (BUILD_AT_STOP_S if at_stop else BUILD_S) * size / BUILD_BYTES, at_stop)


def _build_words(build: _Build) -> str:
    where = "at the stop, no room for two" if build.at_stop else "beside the one in use"
    return f"{build.host} ≈{fmt.short_age(build.seconds)} {where}"
