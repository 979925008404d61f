"""The way back of a lane whose former container was kept stopped: stop the serving one, start that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from console import format as fmt
from console.fleet.inventory import Lane
from console.readings import launch
from console.readings.binds import BAD, GOOD, BindSource, BindState
from console.readings.containers import Container
from console.readings.hubcache import HubRepo, SnapshotFiles
from console.readings.quality import Reading
from console.readings.roles import Role, restart_words, returns_by_itself, role_of
from console.readings.roles import way_back as startable
from console.snapshot import HostView, LaneView, Snapshot
from console.wayback.items import (
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
from console.wayback.standing import Meant, meant, stands_for, told

LEAST_ROOM = fmt.GIB
"""Bytes that a start needs on the disks that it writes to: logs and compiled kernels."""
SAME_ROOM = 0.97
"""Share of what an earlier start found free that counts as the same."""
_MEMORY_FLAGS = ("--cpu-offload-gb", "--gpu-memory-utilization", "--mem-fraction-static", "--kv-cache-memory-bytes")


def by_container(snapshot: Snapshot, lane: LaneView) -> WayBack:
    """The way back by the container that was kept on the head (and on every other rank)."""
    head = snapshot.host(lane.lane.head)
    held = head.containers.value
    if held is None or held.problem:
        why = held.problem if held is not None else head.containers.error or "containers not read yet"
        item = Item("container", Word.UNKNOWN, f"{head.name}: {why}", head.containers.age(snapshot.now))
        return WayBack(None, "", "container", (item,), (), None, why=why)
    serving = stands_for(lane, head.name, held.items)
    kept = kept_containers(held.items, serving, lane.lane)
    if not kept:
        none = graded("container", Word.FAIL, "no stopped container is kept", head.containers, snapshot.now, shuts=True)
        return WayBack(False if none.shuts else None, "", "container", (none,), (), None, why=none.text)
    retired, chosen = _chosen(kept, frozen_target(snapshot, lane), meant(lane))
    items = tuple(_items(snapshot, lane, head, serving, retired))
    possible, why = verdict(items, "container")
    boot, basis = boot_time(lane, retired.revision)
    parts, total = timed(STOP_S if serving is not None and serving.up else 0.0, 0.0, boot)
    return WayBack(
        possible,
        retired.revision,
        "container",
        items,
        parts,
        total,
        why=why or chosen,
        subject=retired.name,
        container=retired.id,
        boot_basis=basis,
        last_deed=last_deed(lane),
    )


def _chosen(kept: Sequence[Container], target: str, found: Meant | None) -> tuple[Container, str]:
    """The one to go back to, and why: what a window has frozen, what was tried last, else the best of those kept."""
    frozen = _frozen(kept, target)
    if frozen is not None:
        return frozen, f"{frozen.name}, frozen when the window was opened"
    tried = next((item for item in kept if found is not None and item.name == found.tried), None)
    if tried is not None and found is not None:
        return tried, f"{tried.name} once more: {found.words}; R starts {found.name} {found.short} again"
    if len(kept) > 1:
        return kept[0], f"{kept[0].name}, the one that ended last of {len(kept)} kept"
    return kept[0], kept[0].name


def _frozen(kept: Sequence[Container], target: str) -> Container | None:
    """The one that an open window leads back to: by id, by name and revision, or by a revision that only one of them
    has, as a way back gives containers other names."""
    if not target:
        return None
    name, short = told(target)
    for item in kept:
        if len(target) >= 12 and item.id.startswith(target):
            return item
        if name and item.name == name and item.revision.startswith(short):
            return item
    same = [item for item in kept if short and item.revision.startswith(short)]
    return same[0] if len(same) == 1 else None


def kept_containers(containers: Sequence[Container], serving: Container | None, lane: Lane) -> list[Container]:
    """Containers that are a way back, best first: named so, of another revision, the one that ended last."""
    port, glob = lane.port, lane.containers
    own = [item for item in containers if role_of(item, serving, port, glob) is Role.RETIRED]
    other = [item for item in own if serving is None or item.id != serving.id]
    return sorted(other, key=lambda item: _standing(item, serving), reverse=True)


def _standing(item: Container, serving: Container | None) -> tuple[bool, bool, bool, float]:
    changes = bool(item.revision) and (serving is None or item.revision != serving.revision)
    startable_ = startable(item).possible is not False
    return startable_, "retired" in item.name.lower(), changes, item.finished_at or 0.0


def _items(
    snapshot: Snapshot, lane: LaneView, head: HostView, serving: Container | None, retired: Container
) -> Iterator[Item]:
    yield _container(snapshot, lane, head, retired)
    words = f"{retired.image or 'image'}, id {_short(retired.image_id)}: kept as long as the container is"
    yield graded("image", Word.OK if retired.image_id else Word.UNKNOWN, words, head.containers, snapshot.now)
    yield _binds(snapshot, lane, head, serving, retired)
    yield _old_snapshot(snapshot, lane, head, retired)
    yield port_item(snapshot, lane, serving, head.containers.value.items if head.containers.value else ())
    yield _memory(snapshot, lane, head, serving, retired)
    gpu = gpu_item(snapshot, lane.lane.rank_hosts)
    if gpu is not None:
        yield gpu
    yield _autotune(snapshot, lane, serving, retired)
    returns = returns_by_itself(retired)
    word = Word.UNKNOWN if returns is None else Word.FAIL if returns else Word.OK
    yield graded("restart", word, restart_words(retired), head.containers, snapshot.now)
    consumers = consumers_item(lane, serving, retired)
    if consumers is not None:
        yield consumers


def _short(identifier: str) -> str:
    return identifier.removeprefix("sha256:")[:12] or "unknown"


def _container(snapshot: Snapshot, lane: LaneView, head: HostView, retired: Container) -> Item:
    """The container itself, and one of the same revision on every other rank."""
    found = startable(retired)
    if found.possible is not True:
        word = Word.FAIL if found.possible is False else Word.UNKNOWN
        return graded("container", word, found.why, head.containers, snapshot.now, shuts=True)
    for host in lane.lane.rank_hosts:
        other = snapshot.host(host)
        if host == head.name:
            continue
        if other.containers.value is None or other.containers.value.problem:
            return Item("container", Word.UNKNOWN, f"{host}: containers not read", other.containers.age(snapshot.now))
        serving = stands_for(lane, host, other.containers.value.items)
        others = kept_containers(other.containers.value.items, serving, lane.lane)
        same = [item for item in others if item.revision == retired.revision]
        if not any(startable(item).possible for item in same):
            text = f"{host}: no stopped container of {fmt.revision(retired.revision)}"
            return graded("container", Word.FAIL, text, other.containers, snapshot.now, shuts=True)
    code = f" {retired.exit_code}" if retired.exit_code is not None else ""
    text = f"{retired.name} exists, id {_short(retired.id)}, {retired.state.value}{code}"
    return graded("container", Word.OK, text, head.containers, snapshot.now)


def _binds(snapshot: Snapshot, lane: LaneView, head: HostView, serving: Container | None, retired: Container) -> Item:
    """Every source of the kept containers, held against what it was when it was first seen."""
    sources = [item for item in lane.binds if item.container == retired.id or _kept_elsewhere(item, lane, serving)]
    if not retired.mounts:
        return graded("bind sources", Word.OK, "it binds none", head.containers, snapshot.now)
    if not sources:
        return _bound_by_others(snapshot, lane, head, serving, retired)
    item = _worst_bind(snapshot, lane, sources, retired)
    room = [seen.free for one in sources if (seen := one.now.value) is not None and seen.free is not None]
    if item.word is Word.OK and room and min(room) < LEAST_ROOM:
        text = f"{fmt.gib(min(room))} GiB are left on a disk that it writes to"
        return Item("bind sources", Word.FAIL, text, item.age)
    return item


def _kept_elsewhere(item: BindSource, lane: LaneView, serving: Container | None) -> bool:
    """Whether it is a source of a kept container of another rank."""
    if item.host == lane.lane.head:
        return False
    return all(rank.container is None or rank.container.id != item.container for rank in lane.ranks)


def _worst_bind(snapshot: Snapshot, lane: LaneView, sources: Sequence[BindSource], retired: Container) -> Item:
    ages = [one.now.age(snapshot.now) for one in sources]
    age = max((known for known in ages if known is not None), default=None)
    bad = [one for one in sources if one.state in BAD and one.now.current(snapshot.now) is not None]
    if bad:
        one = max(bad, key=lambda item: (_needed(item, retired), item.state is BindState.MISSING))
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        since = f" since {fmt.clock(one.since)}" if one.since is not None else ""
        text = f"{_where(one, lane)}{one.source} {one.words}{since}{more}"
        gone = one.state in (BindState.MISSING, BindState.EMPTY) and _needed(one, retired)
        return Item("bind sources", Word.FAIL, text, one.now.age(snapshot.now), shuts=gone)
    unknown = [one for one in sources if one.state not in GOOD or (one.now.error and one.now.value is None)]
    if unknown:
        one = unknown[0]
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        why = fmt.no_answer(one.now.error) or one.words or "not read yet"
        text = f"{len(sources) - len(unknown)} of {len(sources)} seen; {_where(one, lane)}{one.source}{more}: {why}"
        return Item("bind sources", Word.UNKNOWN, text, age)
    marked = [one.mark.at for one in sources if one.mark is not None]
    since = f", the same as {_on(min(marked), snapshot.wall)}" if marked else ""
    odd = next((one for one in sources if one.words), None)
    text = f"{len(sources)} of {len(sources)} there{since}" + (f"; {odd.source}: {odd.words}" if odd else "")
    stale = any(one.now.current(snapshot.now) is None for one in sources)
    return Item("bind sources", Word.STALE if stale else Word.OK, text, age)


def _on(wall: float, now: float) -> str:
    return f"at {fmt.clock(wall)}" if now - wall < 43200 else f"on {fmt.day(wall)}"


def _where(item: BindSource, lane: LaneView) -> str:
    return f"{item.host} " if len(lane.lane.rank_hosts) > 1 else ""


def _needed(item: BindSource, retired: Container) -> bool:
    """Whether the engine cannot do without it: it is mounted read-only, or its checkpoint was seen there."""
    mark = item.mark
    checkpoint = mark is not None and mark.sentinel not in ("", ".")
    by_revision = f"mount {item.source} at " in retired.revision_source
    return checkpoint or by_revision or any(m.source == item.source and m.read_only for m in retired.mounts)


def _bound_by_others(
    snapshot: Snapshot, lane: LaneView, head: HostView, serving: Container | None, retired: Container
) -> Item:
    """Where nobody looked at the sources themselves: those in use by the serving container, or seen in a listing."""
    sources = [mount.source for mount in retired.mounts]
    in_use = {mount.source for mount in serving.mounts} if serving is not None and serving.up else set()
    seen = [source for source in sources if source in in_use or _listed(lane, head.name, source)]
    rest = [source for source in sources if source not in seen]
    if not rest:
        text = f"{len(sources)} of {len(sources)} are in use by the serving container or were listed"
        return graded("bind sources", Word.OK, text, head.containers, snapshot.now)
    more = f" and {len(rest) - 1} more" if len(rest) > 1 else ""
    text = f"{len(seen)} of {len(sources)} seen; {rest[0]}{more}: not looked at, docker start makes a missing one empty"
    return Item("bind sources", Word.UNKNOWN, text, head.containers.age(snapshot.now))


def _listed(lane: LaneView, host: str, source: str) -> bool:
    for name, reading in lane.repos:
        repo = reading.value
        if name == host and repo is not None and not repo.problem and repo.root:
            snapshots = [f"{repo.root}/snapshots/{item.revision}" for item in repo.snapshots]
            if source.rstrip("/") in (repo.root, *snapshots):
                return True
    return False


def _old_snapshot(snapshot: Snapshot, lane: LaneView, head: HostView, retired: Container) -> Item:
    revision = retired.revision
    if not revision:
        text = f"which revision {retired.name} mounts stands in neither its mounts nor its arguments"
        return Item("old snapshot", Word.UNKNOWN, text, None)
    readings = [reading for host, reading in lane.repos if host == head.name]
    readings += [] if lane.kept_repo is None else [lane.kept_repo]
    for reading in readings:
        files = _files_of(reading.value, revision)
        if files is not None:
            return _complete(snapshot, reading, files, revision)
    if lane.kept_repo is not None and lane.kept_repo.value is not None:
        problem = lane.kept_repo.value.problem or "it is not in its folder any more"
        word = Word.UNKNOWN if lane.kept_repo.value.unseen else Word.FAIL
        text = f"{fmt.revision(revision)}: {problem}"
        return graded("old snapshot", word, text, lane.kept_repo, snapshot.now, shuts=True)
    why = "its folder was not read yet" if lane.kept_repo is not None else "its folder on the host is not known"
    why = fmt.no_answer(lane.kept_repo.error) if lane.kept_repo is not None and lane.kept_repo.error else why
    return Item("old snapshot", Word.UNKNOWN, f"{fmt.revision(revision)}: {why}", None)


def _files_of(repo: HubRepo | None, revision: str) -> SnapshotFiles | None:
    """The files of a revision; a plain folder that a container mounts for it holds that one."""
    if repo is None or repo.problem:
        return None
    plain = len(repo.snapshots) == 1 and not repo.snapshots[0].revision
    return repo.snapshot(revision) or (repo.snapshots[0] if plain else None)


def _complete(snapshot: Snapshot, reading: Reading[HubRepo], files: SnapshotFiles, revision: str) -> Item:
    short, nowhere = fmt.revision(revision), len(files.dangling) + len(files.outside)
    if nowhere:
        text = f"{short}: {nowhere} file{'s lead' if nowhere > 1 else ' leads'} nowhere that is mounted"
        return graded("old snapshot", Word.FAIL, text, reading, snapshot.now, shuts=True)
    word = Word.UNKNOWN if files.complete is None else Word.OK if files.complete else Word.FAIL
    shards = f"{files.shards_done} of {files.shards_total or '-'} shards there"
    why = "" if files.complete is not None else ", its index does not say how many there should be"
    return graded("old snapshot", word, f"{short}, {shards}{why}", reading, snapshot.now, shuts=True)


def _memory(snapshot: Snapshot, lane: LaneView, head: HostView, serving: Container | None, retired: Container) -> Item:
    """What it needs against what it will find: by its flags, else by what earlier starts found free."""
    wants, has = _memory_flags(retired), _memory_flags(serving) if serving is not None else ()
    enough = min((free for free in _free_at_starts(lane, retired.revision)), default=None)
    if serving is not None and serving.up:
        if wants == has and serving.inspected and retired.inspected:
            shown = " ".join(f"{name} {value}" for name, value in wants)
            text = f"the serving one has the same{f' ({shown})' if shown else ''} and gives it back at its stop"
            return graded("memory", Word.OK, text, head.containers, snapshot.now)
        floor = next(iter(_free_at_starts(lane, serving.revision)), None)
        if floor is None or enough is None:
            what = "its own" if enough is None else "the serving one's"
            text = f"it asks for another share than the serving one, and what {what} start found free is not on record"
            return Item("memory", Word.UNKNOWN, text, head.containers.age(snapshot.now))
        text = f"{fmt.gib(floor)} GiB free before the serving one began; an earlier start needed no more than"
        word = Word.OK if floor >= SAME_ROOM * enough else Word.FAIL
        return graded("memory", word, f"{text} {fmt.gib(enough)}", head.containers, snapshot.now)
    memory = head.memory.current(snapshot.now)
    offload = _gib(dict(wants).get("--cpu-offload-gb", ""))
    needed = offload * fmt.GIB if offload is not None else enough
    there = None if memory is None else memory.available if offload is not None else memory.free
    if there is None or needed is None:
        why = "memory was not read" if there is None else "its arguments do not say how much it takes"
        return Item("memory", Word.UNKNOWN, f"what it will find is not known: {why}", head.memory.age(snapshot.now))
    word = Word.OK if there >= (1.0 if offload is not None else SAME_ROOM) * needed else Word.FAIL
    how = "wanted" if offload is not None else "free at an earlier start that came up"
    text = f"{fmt.gib(there)} GiB to be had, {fmt.gib(needed)} {how}"
    return graded("memory", word, text, head.memory, snapshot.now)


def _free_at_starts(lane: LaneView, revision: str) -> list[int]:
    """Bytes that were free when starts of a revision began that came up, newest first."""
    own = [record for record in reversed(lane.boots) if revision and record.revision == revision]
    return [record.free_at_start for record in own if record.free_at_start is not None]


def _memory_flags(container: Container) -> tuple[tuple[str, str], ...]:
    found = ((name, launch.flag(container.args, name)) for name in _MEMORY_FLAGS)
    return tuple((name, value) for name, value in found if value is not None)


def _gib(text: str) -> float | None:
    return float(text) if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 9 else None


def _autotune(snapshot: Snapshot, lane: LaneView, serving: Container | None, retired: Container) -> Item:
    """A first start on a cache that does not fit takes 75 to 90 minutes instead of eight."""
    caches = [mount.source for mount in retired.mounts if not mount.read_only]
    for item in lane.binds:
        gone = item.state in (BindState.MISSING, BindState.EMPTY)
        if item.container == retired.id and item.source in caches and "cache" in item.source and gone:
            text = f"its cache {item.source} {item.words}: the first start tunes for over an hour"
            return Item("autotune", Word.FAIL, text, item.now.age(snapshot.now))
    boot = lane.boot.value if lane.boot is not None else None
    if serving is not None and lane.boot is not None and boot is not None and boot.autotune == "hit":
        held = {mount.source for mount in serving.mounts if not mount.read_only}
        if serving.image_id and serving.image_id == retired.image_id and caches and set(caches) <= held:
            text = "same image and same cache folder as the boot that hit it"
            return graded("autotune", Word.OK, text, lane.boot, snapshot.now)
    return _tuned_before(snapshot, lane, retired, caches)


def _tuned_before(snapshot: Snapshot, lane: LaneView, retired: Container, caches: Sequence[str]) -> Item:
    """By its last start on record, and the folders that it wrote to, which are as they were."""
    last = next((item for item in reversed(lane.boots) if item.revision and item.revision == retired.revision), None)
    own = [item for item in lane.binds if item.container == retired.id and item.source in caches]
    if last is None or not last.autotune:
        why = f"no start of {fmt.revision(retired.revision)} on record tells whether it hit its cache"
        return Item("autotune", Word.UNKNOWN, why, None)
    whole = bool(caches) and len(own) == len(set(caches)) and all(item.state in GOOD for item in own)
    if not whole:
        why = "its cache folders are not all seen" if caches else "it mounts no folder that keeps a cache"
        return Item("autotune", Word.UNKNOWN, why, None)
    oldest = max(own, key=lambda item: item.now.age(snapshot.now) or 0.0)
    if last.autotune == "missed":
        text = "its last start tuned anew and filled its cache, whose folder is as it was"
        return graded("autotune", Word.OK, text, oldest.now, snapshot.now)
    text = "its last start hit its cache, whose folder is as it was"
    return graded("autotune", Word.OK, text, oldest.now, snapshot.now)
