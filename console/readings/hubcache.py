"""A repository folder of the Hugging Face cache: blobs, partial files, snapshots, refs. Pure.

Layout as of huggingface_hub 2.4.0: `blobs/<etag>`, `snapshots/<revision>/<file>` links, `refs/<name>` files; partial
files `blobs/<etag>.incomplete` (older: resumed) and `blobs/<etag>.<8 hex>.incomplete` (since PR 4228: not resumed).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Partial:
    """One unfinished file. Bytes."""

    path: str
    etag: str
    apparent: int
    present: int
    mtime: float | None
    resumable: bool
    """Old naming: an interrupted download goes on where it stopped."""
    orphan: bool
    """A newer attempt at the same file exists, or the file is whole: nobody will finish this one."""


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """One revision's folder, as seen through the path that was listed."""

    revision: str
    entries: int
    resolvable: int
    dangling: tuple[str, ...]
    """Files whose link leads nowhere, by path in the snapshot."""
    outside: tuple[str, ...]
    """Files whose link leaves the listed root: they dangle wherever only the root is exported or mounted."""
    present: int
    """Bytes of the files that resolve, each blob once."""
    shards_done: int
    """Distinct numbers of `NAME-00001-of-00048.safetensors` that resolve; 0 where files are not numbered."""
    shards_total: int | None
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Apparent size by path in the snapshot, of what resolves."""
    refs: tuple[str, ...] = ()
    """Branches and tags that name it."""

    @property
    def complete(self) -> bool | None:
        """Whether all that is there resolves and every shard number is there; None where shards are not numbered."""
        if self.dangling or self.outside:
            return False
        return None if self.shards_total is None else self.shards_done == self.shards_total


@dataclass(frozen=True, slots=True)
class HubRepo:
    """One repository folder."""

    root: str
    snapshots: tuple[SnapshotFiles, ...]
    partials: tuple[Partial, ...]
    refs: Mapping[str, str]
    """Revision by branch or tag; names without a readable content are ''."""
    present: int
    """Bytes of all blobs and partial files, each inode once."""
    prunable: tuple[str, ...]
    """Revisions that `hf cache prune` would delete: no ref names them."""
    free: int | None = None
    fstype: str = ""
    mount: str = ""
    problem: str = ""

    def snapshot(self, revision: str) -> SnapshotFiles | None:
        """The snapshot of a revision (40 hex, or the beginning of one); None if it is not there."""
        return next((item for item in self.snapshots if revision and item.revision.startswith(revision)), None)
