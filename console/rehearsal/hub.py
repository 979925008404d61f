"""A checkpoint's folder as the Hub's cache lays it out, on the host that holds it and through the others' mounts.

Layout of huggingface_hub 2.4.0: `blobs/<etag>`, `snapshots/<revision>/<file>` links, `refs/<name>`; a partial file is
`blobs/<etag>.<8 hex>.incomplete`, in older releases `blobs/<etag>.incomplete`. Total, number of shards and the sizes
of shards 1 to 3 and 46 to 48 are the published ones of DeepSeek-V4.1-Flash; the others share what is left.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from posixpath import basename, dirname, relpath

from console.rehearsal.files import HostFiles, host_path
from console.rehearsal.stage import CheckpointModel, RevisionModel

TOTAL, SHARDS = 510_313_353_565, 48
_KNOWN = {
    1: 970_533_624,
    2: 1_323_858_272,
    3: 7_389_759_032,
    46: 2_706_402_896,
    47: 101_535_150_936,
    48: 101_537_926_640,
}
_SMALL = {
    "LICENSE": 1_084,
    "README.md": 14_912,
    "config.json": 3_311,
    "encoding/encoding.py": 31_870,
    "encoding/test_encoding.py": 48_245,
    "generation_config.json": 171,
    "inference/config.json": 1_204,
    "inference/model.py": 52_816,
    "model.safetensors.index.json": 7_470_294,
    "tokenizer.json": 7_847_602,
    "tokenizer_config.json": 801,
}
BIG = 10_600_000_000
"""Bytes of the odd shards between 4 and 45."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a revision. `shard` is its number, 0 for one that is no shard."""

    name: str
    size: int
    etag: str
    shard: int


@lru_cache(maxsize=16)
def files_of(revision: str) -> tuple[HubFile, ...]:
    """What a revision consists of: shards of its own, small files that all revisions share. TOTAL bytes."""
    small = [HubFile(name, size, _hex(f"small/{name}", 40), 0) for name, size in _SMALL.items()]
    middle = {number: BIG for number in range(5, 46, 2)}
    rest = TOTAL - sum(_SMALL.values()) - sum(_KNOWN.values()) - sum(middle.values())
    even = range(4, 46, 2)
    middle |= {number: rest // len(even) for number in even}
    middle[44] += rest - rest // len(even) * len(even)
    sizes = {**_KNOWN, **middle}
    shards = [
        HubFile(shard_name(number), sizes[number], _hex(f"{revision}/{number}", 64), number)
        for number in range(1, SHARDS + 1)
    ]
    return tuple(sorted((*small, *shards), key=lambda file: file.name))


def shard_name(number: int) -> str:
    """`model-00045-of-00048.safetensors`."""
    return f"model-{number:05d}-of-{SHARDS:05d}.safetensors"


def _hex(seed: str, digits: int) -> str:
    return hashlib.sha256(seed.encode()).hexdigest()[:digits]


def hub_answer(model: str, revision: str) -> bytes:
    """What the Hub's API says of a revision with `blobs=true`."""
    siblings = []
    for file in files_of(revision):
        sibling: dict[str, object] = {"rfilename": file.name, "size": file.size, "blobId": _hex(file.etag, 40)}
        if file.shard:
            sibling["lfs"] = {"sha256": file.etag, "size": file.size, "pointerSize": 135}
        else:
            sibling["blobId"] = file.etag
        siblings.append(sibling)
    return json.dumps({"id": model, "modelId": model, "sha": revision, "siblings": siblings}).encode()


class Checkpoint:
    """One checkpoint: the holder's folder, and what other hosts see of it through their mounts."""

    def __init__(self, model: CheckpointModel, hosts: dict[str, HostFiles], wall: float) -> None:
        self.model = model
        self.upstream = model.upstream or model.revisions[-1].revision
        self.mounted = set(model.mounted_on)
        """Hosts whose mount is there now."""
        self._hosts, self._files = hosts, hosts[model.host]
        self._wall = wall
        self._hidden: set[tuple[str, str]] = set()

    @property
    def name(self) -> str:
        """`org/name`, from the folder's name."""
        return basename(self.model.folder).removeprefix("models--").replace("--", "/", 1)

    def install(self) -> None:
        """Every revision's files, as far as they are there, and the mounts."""
        for revision in self.model.revisions:
            mtime = self._wall - revision.age_s
            for file in files_of(revision.revision):
                if file.shard not in revision.missing:
                    self.add(revision, file, mtime)
            for ref in revision.refs if self.model.layout == "hub" else ():
                self._files.text(f"{self.model.folder}/refs/{ref}", revision.revision, mtime)
        for host in self.model.mounted_on:
            self._hosts[host].mount(self.model.mount, self._files, self.model.folder)

    def add(self, revision: RevisionModel, file: HubFile, mtime: float) -> None:
        """One whole file: its blob, and the link in the snapshot."""
        if self.model.layout == "folder":
            self._files.sized(f"{self.model.folder}/{file.name}", file.size, _blocks(file.size), mtime)
            return
        blob = self._blob(file)
        entry = host_path(f"{self.model.folder}/snapshots/{revision.revision}/{file.name}")
        self._files.sized(blob, file.size, _blocks(file.size), mtime)
        if not self._files.has(entry):
            self._files.link(entry, relpath(host_path(blob), dirname(entry)))

    def partial(self, name: str, apparent: int, allocated: int, mtime: float) -> None:
        """A partial file in `blobs/`."""
        self._files.sized(f"{self.model.folder}/blobs/{name}", apparent, allocated, mtime)

    def drop(self, name: str) -> None:
        """A partial file is gone."""
        self._files.remove(f"{self.model.folder}/blobs/{name}")

    def revision(self, wanted: str) -> RevisionModel:
        """The revision of that name. Raises KeyError."""
        for item in self.model.revisions:
            if item.revision == wanted:
                return item
        raise KeyError(wanted)

    def place(self, host: str) -> str:
        """The folder as that host sees it."""
        return self.model.folder if host == self.model.host else self.model.mount

    def dangle(self, host: str, revision: str, shard: int) -> None:
        """A shard's bytes are gone, as this host sees it; the link stays."""
        file = next(file for file in files_of(revision) if file.shard == shard)
        name = file.name if self.model.layout == "folder" else f"blobs/{file.etag}"
        path = f"{self.place(host)}/{name}"
        self._hidden.add((host, path))
        self._hosts[host].hide(path, True)

    def unmount(self, host: str) -> None:
        """The mount is gone: an empty folder is left where it was."""
        self.mounted.discard(host)
        self._hosts[host].unmount(self.model.mount)

    def hang(self, host: str) -> None:
        """The mount no longer answers."""
        self._hosts[host].hang(self.place(host), True)

    def put_back(self, host: str) -> None:
        """Whatever was gone there is back."""
        self._hosts[host].hang(self.place(host), False)
        for there, path in tuple(self._hidden):
            if there == host:
                self._hosts[host].hide(path, False)
                self._hidden.discard((there, path))
        if host in self.model.mounted_on and host not in self.mounted:
            self.mounted.add(host)
            self._hosts[host].mount(self.model.mount, self._files, self.model.folder)

    def _blob(self, file: HubFile) -> str:
        return f"{self.model.store or self.model.folder + '/blobs'}/{file.etag}"


def _blocks(size: int) -> int:
    """Bytes that a whole file of this size takes on disk."""
    return -(-size // 4096) * 4096
