"""A repository folder of the Hugging Face cache: blobs, partial files, snapshots, refs. Pure.

Layout as of huggingface_hub 2.4.0: `blobs/<etag>`, `snapshots/<revision>/<file>` links, `refs/<name>` files; partial
files `blobs/<etag>.incomplete` (older: resumed) and `blobs/<etag>.<8 hex>.incomplete` (since PR 4228: not resumed). A
fresh xet download may turn `blobs/<etag>` into a link to the cache's shared store, outside of the repository folder
(`utils/_shared_blobs.py`). A `--local-dir` folder holds the files themselves, and its partial files as
`.cache/huggingface/download/<hash>.<etag>[.<8 hex>].incomplete` (`_local_folder.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import basename, dirname, normpath
from sys import intern

from console.readings.listing import Entry, Leads, Listing

_REPO = re.compile(r"(?:models|datasets|spaces|kernels)--[^/]+")
_REVISION = re.compile(r"[0-9a-f]{40}")
_SHARD = re.compile(r"(.*)-([0-9]{5})-of-([0-9]{5})\.safetensors", re.DOTALL)
_PARTIAL = re.compile(r"(.+?)(\.[0-9a-f]{8})?\.incomplete", re.DOTALL)
_OURS = {"blobs", "snapshots"}
_LOCAL_CACHE = ".cache/huggingface/"


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
    on_disk: Mapping[str, int] = field(default_factory=dict)
    """Bytes really there by path in the snapshot, of what resolves."""
    unreadable: tuple[str, ...] = ()
    """Links behind which nobody may look: there may be a file or none."""
    absolute: tuple[str, ...] = ()
    """Files whose link is an absolute path: they resolve only where the folder has that very path."""
    newest: float | None = None
    """Unix seconds at which something was last put into it; None where the listing has no times."""
    elsewhere: str = ""
    """The revision's folder is itself a link, and leads here: what is in it was not listed."""

    @property
    def complete(self) -> bool | None:
        """Whether all that is there resolves and every shard number is there; None where shards are not numbered."""
        if self.dangling or self.outside:
            return False
        if self.unreadable or self.elsewhere:
            return None
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
    blobs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """(apparent size, bytes really there) of each whole blob, by its name: sha256, or the git id of a small file."""
    loose: int = 0
    """Bytes of whole blobs that no snapshot names yet, each inode once."""
    taken: float | None = None
    """Unix seconds by the host's clock at which it was listed."""
    unseen: bool = False
    """The problem is that not all of it was seen, or may be: nothing says that the folder itself is not well."""

    def snapshot(self, revision: str) -> SnapshotFiles | None:
        """The snapshot of a revision (40 hex, or the beginning of one); None if it is not there."""
        return next((item for item in self.snapshots if revision and item.revision.startswith(revision)), None)

    def attempts(self, etag: str) -> int:
        """Partial files of one file: how often it was begun, as far as the attempts left something behind."""
        return sum(1 for item in self.partials if item.etag == etag)


def read_repo(listing: Listing, repo: str = "") -> HubRepo:
    """The repository in a listing: its own folder, a `--local-dir` folder, or one of several in a whole cache.

    `repo` names the folder (`models--org--name`) where the root is a cache. Never raises; see `problem`.
    """
    root, entries, problem = _scope(listing, repo)
    empty = HubRepo(
        root,
        (),
        (),
        {},
        0,
        (),
        listing.free,
        listing.fstype,
        listing.mount,
        problem,
        taken=listing.taken,
        unseen=bool(problem) and listing.problem in ("", "no permission"),
    )
    if not entries:
        return empty
    if not _REPO.fullmatch(basename(root.rstrip("/"))) and not _OURS & {item.path.split("/", 1)[0] for item in entries}:
        return _local_folder(empty, entries)
    below = {item.path: item for item in entries}
    blobs = [item for item in entries if dirname(item.path) == "blobs" and item.kind in "fl"]
    whole = {basename(item.path): item for item in blobs if _is_whole(item)}
    partials = _partials(blobs, whole)
    refs = _refs(entries)
    files = _by_revision(entries)
    snapshots = tuple(_snapshot(name, files[name], below, refs) for name in sorted(files))
    named = _linked(item for found in files.values() for item in found)
    loose = [item for name, item in whole.items() if name not in named and _key(item) not in named]
    unfinished = [below[item.path] for item in partials]
    inside = [item for item in entries if item.kind == "f" and item.path.startswith("snapshots/")]
    return replace(
        empty,
        snapshots=snapshots,
        partials=partials,
        refs=refs,
        present=_once([*whole.values(), *unfinished, *inside]),
        prunable=tuple(item.revision for item in snapshots if not item.refs),
        blobs={intern(name): (item.apparent, item.present) for name, item in whole.items()},
        loose=_once(loose),
    )


def at_home(listing: Listing) -> tuple[Listing, str]:
    """A moved or copied folder as it reads where its absolute links say that it lies, and that path ('' without any).

    An absolute link that leads nowhere, but names the folder itself and a file that is in it, leads to that file.
    """
    name = f"/{basename(listing.root.rstrip('/'))}/"
    files = {item.path: item for item in listing.entries if item.kind == "f"}
    home = ""
    entries = []
    for item in listing.entries:
        before, found, path = item.target.partition(name)
        blob = files.get(path) if found and item.leads is Leads.NOWHERE and before.startswith("/") else None
        if blob is not None:
            home = f"{before}{name.rstrip('/')}"
            item = replace(item, leads=Leads.INSIDE, apparent=blob.apparent, allocated=blob.allocated, inode=blob.inode)
        entries.append(item)
    return replace(listing, entries=tuple(entries)), home


def _scope(listing: Listing, repo: str) -> tuple[str, Sequence[Entry], str]:
    """Root, entries and problem of the one repository that is meant."""
    if listing.problem:
        return listing.root, (), listing.problem
    problem = _partly(listing)
    names = {item.path.split("/", 1)[0] for item in listing.entries}
    repos = sorted(name for name in names if _REPO.fullmatch(name))
    if not repos:
        return listing.root, listing.entries, problem
    if repo not in repos:
        if repo or len(repos) > 1:
            shown = ", ".join(repos[:5]) + (", ..." if len(repos) > 5 else "")
            asked = f"no {repo} in it" if repo else f"{len(repos)} repositories in it: name one"
            return listing.root, (), f"a whole cache, {asked} ({shown})"
        repo = repos[0]
    cut = len(repo) + 1
    inside = [replace(item, path=item.path[cut:]) for item in listing.entries if item.path.startswith(f"{repo}/")]
    return f"{listing.root.rstrip('/')}/{repo}" if listing.root else repo, inside, problem


def _partly(listing: Listing) -> str:
    """Why a listing holds less than there is; '' for a whole one."""
    if listing.truncated:
        return f"the listing was cut after {len(listing.entries)} entries"
    if listing.unread:
        return f"not all could be read: {listing.unread[0]}"
    return f"{listing.faulty} rows of the listing are damaged" if listing.faulty else ""


def _is_whole(blob: Entry) -> bool:
    return not blob.path.endswith(".incomplete") and (blob.kind == "f" or blob.leads in (Leads.INSIDE, Leads.OUTSIDE))


def _partials(blobs: Iterable[Entry], whole: Mapping[str, Entry], cut: str = "") -> tuple[Partial, ...]:
    """The partial files among `blobs`; `cut` is what stands before the etag in their names."""
    found: list[tuple[Entry, str, bool]] = []
    for item in blobs:
        match = _PARTIAL.fullmatch(basename(item.path)) if item.kind == "f" else None
        if match:
            found.append((item, re.sub(cut, "", match[1], count=1) if cut else match[1], match[2] is None))
    newest: dict[str, float] = {}
    for item, etag, _ in found:
        if item.mtime is not None:
            newest[etag] = max(item.mtime, newest.get(etag, item.mtime))
    return tuple(
        Partial(
            path=item.path,
            etag=etag,
            apparent=item.apparent,
            present=item.present,
            mtime=item.mtime,
            resumable=old,
            orphan=etag in whole or (item.mtime is not None and item.mtime < newest[etag]),
        )
        for item, etag, old in found
    )


def _refs(entries: Iterable[Entry]) -> dict[str, str]:
    refs = {}
    for item in entries:
        if item.kind == "f" and item.path.startswith("refs/"):
            content = item.target.strip()
            refs[item.path.removeprefix("refs/")] = content if _REVISION.fullmatch(content) else ""
    return refs


def _by_revision(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """What stands in each `snapshots/<revision>`, by path in it; the folder itself is the entry without a slash."""
    found: dict[str, list[Entry]] = {}
    for item in entries:
        top, _, rest = item.path.partition("/")
        if top == "snapshots" and rest:
            name, _, path = rest.partition("/")
            if path or item.kind in "dl":
                found.setdefault(name, []).append(replace(item, path=f"/{path}" if path else ""))
    return found


def _snapshot(
    revision: str, found: Sequence[Entry], below: Mapping[str, Entry], refs: Mapping[str, str]
) -> SnapshotFiles:
    files = [item for item in found if item.path and item.kind != "d"]
    named = tuple(sorted(name for name, commit in refs.items() if commit == revision))
    places = [(item, _leads(item, f"snapshots/{revision}", below)) for item in files]
    good = [item for item, leads in places if leads in (Leads.INSIDE, Leads.OUTSIDE)]
    done, total = _shards([item.path for item in files], [item.path for item in good])
    times = [item.mtime for item in found if item.mtime is not None]
    return SnapshotFiles(
        revision=revision,
        entries=len(files),
        resolvable=len(good),
        dangling=tuple(item.path[1:] for item, leads in places if leads in (Leads.NOWHERE, Leads.FOLDER)),
        outside=tuple(item.path[1:] for item, leads in places if leads is Leads.OUTSIDE),
        present=_once(good),
        shards_done=done,
        shards_total=total,
        # one text for the same path in every reading that is kept: a series of them is as large as one
        sizes={intern(item.path[1:]): item.apparent for item in good},
        refs=named,
        on_disk={intern(item.path[1:]): item.present for item in good},
        unreadable=tuple(item.path[1:] for item, leads in places if leads is None),
        absolute=tuple(item.path[1:] for item in good if item.target.startswith("/") and item.kind == "l"),
        newest=max(times) if times else None,
        elsewhere=next((item.target or "?" for item in found if not item.path and item.kind == "l"), ""),
    )


def _leads(item: Entry, folder: str, below: Mapping[str, Entry]) -> Leads | None:
    """Where a file of a snapshot leads in the end; NOWHERE for what is no file, None where it could not be seen."""
    if item.kind == "f":
        return Leads.INSIDE
    if item.kind != "l":
        return Leads.NOWHERE
    if item.leads is Leads.INSIDE and not item.target.startswith("/"):
        blob = below.get(normpath(f"{folder}{dirname(item.path)}/{item.target}"))
        if blob is not None and blob.kind == "l" and blob.leads in (Leads.OUTSIDE, Leads.NOWHERE):
            return blob.leads
    return item.leads


def _shards(paths: Iterable[str], resolved: Iterable[str]) -> tuple[int, int | None]:
    """Shard numbers there and in all, over every set that the names speak of."""
    totals: dict[tuple[str, str], int] = {}
    for path in paths:
        if match := _SHARD.fullmatch(path):
            totals[match[1], match[3]] = int(match[3])
    done = {
        (match[1], match[3], match[2])
        for path in resolved
        if (match := _SHARD.fullmatch(path)) and 1 <= int(match[2]) <= int(match[3])
    }
    return len(done), sum(totals.values()) if totals else None


def _linked(files: Iterable[Entry]) -> set[object]:
    """Names and inodes of the blobs that files of snapshots lead to."""
    named: set[object] = set()
    for item in files:
        if item.kind == "l":
            named.add(basename(item.target))
        if item.inode is not None:
            named.add(item.inode)
    return named


def _key(item: Entry) -> object:
    """What tells one file from another: its inode, else where a link leads, else its path."""
    if item.inode is not None:
        return item.inode
    return basename(item.target) if item.kind == "l" and item.target else item.path


def _once(files: Iterable[Entry]) -> int:
    """Bytes of files, each inode once."""
    seen = {_key(item): item.present for item in files}
    return sum(seen.values())


def _local_folder(empty: HubRepo, entries: Sequence[Entry]) -> HubRepo:
    """A folder of the files themselves, read as one snapshot; its revision is the folder's name, if it is one."""
    files = [item for item in entries if item.kind in "flo" and not item.path.startswith(_LOCAL_CACHE)]
    hidden = [item for item in entries if item.kind == "f" and item.path.startswith(f"{_LOCAL_CACHE}download/")]
    partials = _partials(hidden, {}, r"^[^.]*\.")
    below = {item.path: item for item in entries}
    name = basename(empty.root.rstrip("/"))
    revision = name if _REVISION.fullmatch(name) else ""
    moved = [replace(item, path=f"/{item.path}") for item in files]
    snapshots = (_snapshot(revision, moved, below, {}),) if files else ()
    good = [item for item in files if item.kind == "f" or item.leads in (Leads.INSIDE, Leads.OUTSIDE)]
    present = _once([*good, *(below[item.path] for item in partials)])
    return replace(empty, snapshots=snapshots, partials=partials, present=present)
