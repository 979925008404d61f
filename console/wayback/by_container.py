"""The way back of a lane whose former container was kept stopped: stop the serving one, start that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from console import format as fmt
from console.readings import launch
from console.readings.containers import Container, serving_container
from console.readings.roles import Role, restart_words, returns_by_itself, role_of
from console.readings.roles import way_back as startable
from console.snapshot import HostView, LaneView, Snapshot
from console.wayback.items import (
    LATER,
    STOP_S,
    Item,
    WayBack,
    Word,
    boot_time,
    consumers_item,
    graded,
    port_item,
    timed,
    verdict,
)

_MEMORY_FLAGS = ("--cpu-offload-gb", "--gpu-memory-utilization", "--mem-fraction-static", "--kv-cache-memory-bytes")


def by_container(snapshot: Snapshot, lane: LaneView) -> WayBack:
    """The way back by the container that was kept on the head (and on every other rank)."""
    head = snapshot.host(lane.lane.head)
    held = head.containers.value
    if held is None or held.problem:
        why = held.problem if held is not None else head.containers.error or "containers not read yet"
        item = Item("container", Word.UNKNOWN, f"{head.name}: {why}", head.containers.age(snapshot.now))
        return WayBack(None, "", "container", (item,), (), None, why=why)
    serving = serving_container(held.items, lane.lane.port, lane.lane.containers)
    kept = _kept(held.items, serving, lane)
    if not kept:
        none = graded("container", Word.FAIL, "no stopped container is kept", head.containers, snapshot.now, shuts=True)
        return WayBack(False if none.shuts else None, "", "container", (none,), (), None, why=none.text)
    retired = kept[0]
    items = tuple(_items(snapshot, lane, head, serving, retired))
    possible, why = verdict(items, "container")
    boot, basis = boot_time(lane, retired.revision)
    parts, total = timed(STOP_S if serving is not None and serving.up else 0.0, 0.0, boot)
    chosen = f"{retired.name}, the one that ended last of {len(kept)} kept" if len(kept) > 1 else retired.name
    return WayBack(
        possible,
        retired.revision,
        "container",
        items,
        parts,
        total,
        why=why or chosen,
        subject=retired.name,
        boot_basis=basis,
    )


def _kept(containers: Sequence[Container], serving: Container | None, lane: LaneView) -> list[Container]:
    """Containers that are a way back, best first: named so, of another revision, the one that ended last."""
    port, glob = lane.lane.port, lane.lane.containers
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
    yield _memory(snapshot, head, serving, retired)
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
        serving = serving_container(other.containers.value.items, lane.lane.port, lane.lane.containers)
        same = [it for it in _kept(other.containers.value.items, serving, lane) if it.revision == retired.revision]
        if not any(startable(item).possible for item in same):
            text = f"{host}: no stopped container of {fmt.revision(retired.revision)}"
            return graded("container", Word.FAIL, text, other.containers, snapshot.now, shuts=True)
    code = f" {retired.exit_code}" if retired.exit_code is not None else ""
    text = f"{retired.name} exists, id {_short(retired.id)}, {retired.state.value}{code}"
    return graded("container", Word.OK, text, head.containers, snapshot.now)


def _binds(snapshot: Snapshot, lane: LaneView, head: HostView, serving: Container | None, retired: Container) -> Item:
    """What is bound into it: in use by the serving one, or seen in a listing; of the rest nobody knows."""
    sources = [mount.source for mount in retired.mounts]
    if not sources:
        return graded("bind sources", Word.OK, "it binds none", head.containers, snapshot.now)
    in_use = {mount.source for mount in serving.mounts} if serving is not None and serving.up else set()
    seen = [source for source in sources if source in in_use or _listed(lane, head.name, source)]
    rest = [source for source in sources if source not in seen]
    if not rest:
        text = f"{len(sources)} of {len(sources)} are in use by the serving container or were listed"
        return graded("bind sources", Word.OK, text, head.containers, snapshot.now)
    more = f" and {len(rest) - 1} more" if len(rest) > 1 else ""
    text = f"{len(seen)} of {len(sources)} seen; {rest[0]}{more}: {LATER}, docker start makes a missing one empty"
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
        text = f"which revision {retired.name} mounts cannot be read: {LATER}"
        return Item("old snapshot", Word.UNKNOWN, text, None)
    for host, reading in lane.repos:
        files = reading.value.snapshot(revision) if host == head.name and reading.value is not None else None
        if files is not None:
            whole = files.complete
            word = Word.UNKNOWN if whole is None else Word.OK if whole else Word.FAIL
            text = f"{fmt.revision(revision)}, {files.shards_done} of {files.shards_total or '-'} shards there"
            return graded("old snapshot", word, text, reading, snapshot.now, shuts=True)
    return Item("old snapshot", Word.UNKNOWN, f"{fmt.revision(revision)}: its files are not looked at; {LATER}", None)


def _memory(snapshot: Snapshot, head: HostView, serving: Container | None, retired: Container) -> Item:
    wants, has = _memory_flags(retired), _memory_flags(serving) if serving is not None else ()
    if serving is not None and serving.up:
        if wants == has and serving.inspected and retired.inspected:
            shown = " ".join(f"{name} {value}" for name, value in wants)
            text = f"the serving one has the same{f' ({shown})' if shown else ''} and gives it back at its stop"
            return graded("memory", Word.OK, text, head.containers, snapshot.now)
        text = f"it asks for another share than the serving one: {LATER}"
        return Item("memory", Word.UNKNOWN, text, head.containers.age(snapshot.now))
    memory = head.memory.current(snapshot.now)
    offload = _gib(dict(wants).get("--cpu-offload-gb", ""))
    if memory is None or memory.available is None or offload is None:
        return Item("memory", Word.UNKNOWN, f"what it will find is not known: {LATER}", head.memory.age(snapshot.now))
    there = memory.available / fmt.GIB
    word = Word.OK if there >= offload else Word.FAIL
    text = f"{fmt.number(there)} GiB to be had, {fmt.number(offload)} wanted"
    return graded("memory", word, text, head.memory, snapshot.now)


def _memory_flags(container: Container) -> tuple[tuple[str, str], ...]:
    found = ((name, launch.flag(container.args, name)) for name in _MEMORY_FLAGS)
    return tuple((name, value) for name, value in found if value is not None)


def _gib(text: str) -> float | None:
    return float(text) if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 9 else None


def _autotune(snapshot: Snapshot, lane: LaneView, serving: Container | None, retired: Container) -> Item:
    """A first start on a cache that does not fit takes 75 to 90 minutes instead of eight."""
    boot = lane.boot.value if lane.boot is not None else None
    if serving is not None and lane.boot is not None and boot is not None and boot.autotune == "hit":
        caches = [{mount.source for mount in item.mounts if not mount.read_only} for item in (serving, retired)]
        if serving.image_id and serving.image_id == retired.image_id and caches[1] and caches[1] <= caches[0]:
            text = "same image and same cache folder as the boot that hit it"
            return graded("autotune", Word.OK, text, lane.boot, snapshot.now)
    return Item("autotune", Word.UNKNOWN, f"whether its cache still fits is not read: {LATER}", None)
