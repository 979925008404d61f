"""What of a wanted revision is on disk, against a list of its files or without one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.readings.expected import Expected
from console.readings.hubcache import HubRepo, Partial, SnapshotFiles

Missing = tuple[str, int, str]
"""Path, bytes and digest of a file that is not whole yet."""


@dataclass(frozen=True, slots=True)
class Files:
    """What of the wanted revision is there. Bytes."""

    snapshot: SnapshotFiles | None
    done: int | None
    """None where the folder could not be read."""
    whole: int | None = None
    """Files of the list that stand in the snapshot in their exact size; None without a list."""
    missing: tuple[Missing, ...] = ()
    """Files of the list that are not whole."""
    wrong: tuple[str, ...] = ()
    """Of these, what stands in the snapshot in another size."""
    sparse: tuple[str, ...] = ()
    """Whole files with fewer bytes on disk than their size."""
    total: int | None = None

    @property
    def complete(self) -> bool | None:
        """Whether every file of the list is there; None without a list."""
        return None if self.whole is None else not self.missing


def wanted(repo: HubRepo, revision: str) -> SnapshotFiles | None:
    """The snapshot of a revision; of a plain folder, whose revision nobody knows, its only one."""
    found = repo.snapshot(revision)
    if found is None and len(repo.snapshots) == 1 and not repo.snapshots[0].revision:
        return repo.snapshots[0]
    return found


def fetched(repo: HubRepo, serving: Sequence[str]) -> str:
    """The revision that is being fetched, where nobody says: the newest snapshot that does not serve; '' if none.

    Beside one that serves only what is unfinished or came later counts: an older whole one is kept for the way back.
    """
    served = [item for item in repo.snapshots if _serves(item, serving)]
    found = [item for item in repo.snapshots if not _serves(item, serving)]
    times = [item.newest for item in served if item.newest is not None]
    if times:
        found = [item for item in found if item.complete is not True or (item.newest or 0.0) > max(times)]
    if len(found) < 2:
        return found[0].revision if found else ""
    if any(item.newest is None for item in found):
        return ""
    return max(found, key=lambda item: item.newest or 0.0).revision


def _serves(item: SnapshotFiles, serving: Sequence[str]) -> bool:
    return any(served and item.revision.startswith(served) for served in serving)


def name_of(digest: str) -> str:
    """The blob's name that a digest stands for."""
    return digest.removeprefix("git:")


def look_for(repo: HubRepo, revision: str, expected: Expected | None) -> Files:
    """What of the revision is there; without a list of its files, its snapshot and what no other snapshot holds."""
    snapshot = wanted(repo, revision)
    total = expected.total if expected is not None and expected.known else None
    if repo.problem and not (repo.snapshots or repo.partials or repo.blobs):
        return Files(snapshot, None, total=total)
    live = {item.etag: item for item in repo.partials if not item.orphan}
    if expected is not None and expected.files:
        return _against(repo, snapshot, live, expected)
    done = (snapshot.present if snapshot else 0) + repo.loose + sum(item.present for item in live.values())
    return Files(snapshot, done, total=total)


def _against(repo: HubRepo, snapshot: SnapshotFiles | None, live: Mapping[str, Partial], expected: Expected) -> Files:
    done = 0
    missing: list[Missing] = []
    wrong: list[str] = []
    sparse: list[str] = []
    for path, size, digest in expected.files:
        name = name_of(digest)
        there = snapshot.sizes.get(path) if snapshot else None
        if snapshot and there is not None:
            have = snapshot.on_disk.get(path, there)
        else:
            partial = live.get(name)
            have = repo.blobs[name][1] if name in repo.blobs else partial.present if partial else 0
        done += min(size, have)
        if there != size:
            missing.append((path, size, digest))
            if there is not None:
                wrong.append(path)
        elif have < size and size > 1 << 16:
            sparse.append(path)
    whole = len(expected.files) - len(missing)
    return Files(snapshot, done, whole, tuple(missing), tuple(wrong), tuple(sparse), expected.total)
