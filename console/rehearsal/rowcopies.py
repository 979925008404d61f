"""Played Engram row copies: sparse shards that fill, a manifest at the end, and what goes wrong with both.

Table sizes, splits and manifest forms are the published ones of aidendle94/sparkrun-recipes and tsw2k; the layers' rows
lie in shards 47 and 48, 264 bytes each.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from console.rehearsal.hosts import PlayedHost
from console.rehearsal.hub import files_of, shard_name
from console.rehearsal.stage import RowsModel, RowsOn

GIB = 1 << 30
ROW_BYTES = 264
TABLES = {1: 384_006_168, 14: 384_016_682}
"""Rows by layer."""
HEADS = {
    1: (0, 96_000_564, 192_001_740, 288_003_654, 384_006_168),
    14: (0, 96_003_054, 192_007_016, 288_011_564, 384_016_682),
}
"""Bounds of whole hash heads, by layer."""
SHARD_OF = {1: 47, 14: 48}
PIDS = 52_300


def ranges_of(partition: str, rank: int, ranks: int) -> dict[int, tuple[int, int]]:
    """[start, end) by layer. Raises ValueError where that split has no such number of ranks."""
    if partition == "sglang":
        return {layer: (rows * rank // ranks, rows * (rank + 1) // ranks) for layer, rows in TABLES.items()}
    if ranks != len(HEADS[1]) - 1:
        raise ValueError(f"the vllm split is known for {len(HEADS[1]) - 1} ranks, not for {ranks}")
    return {layer: (bounds[rank], bounds[rank + 1]) for layer, bounds in HEADS.items()}


class PlayedCopy:
    """One host's copy. Steps in real seconds; sizes in bytes."""

    def __init__(self, model: RowsModel, host: PlayedHost, rank: int, ranks: int) -> None:
        own = model.on.get(host.name, RowsOn())
        self.model, self.host, self.rank, self.ranks = model, host, rank, ranks
        self.revision = own.revision or model.revision
        self.holds = rank if own.slice_of is None else own.slice_of
        self.ranges = ranges_of(own.partition or model.partition, self.holds, ranks)
        self.starts_at = model.starts_at if own.starts_at is None else own.starts_at
        self._rate = GIB * (model.gib_s if own.gib_s is None else own.gib_s)
        self._bytes = {layer: (end - start) * ROW_BYTES for layer, (start, end) in self.ranges.items()}
        self.whole = sum(self._bytes.values())
        self.there = self.whole * (model.share if own.share is None else own.share)
        said = model.manifest if own.manifest is None else own.manifest
        self._manifest = self.there >= self.whole if said is None else said
        self._first = self.there
        self._stopped = False
        self._shown: set[str] = set()
        self.running = False

    @property
    def written(self) -> float:
        """Bytes written since the rehearsal began."""
        return self.there - self._first

    def install(self) -> None:
        """What is there at the start."""
        if self.there:
            self._show(self.host.wall - (self.model.age_s if self._manifest else 0.0))
        if self._manifest:
            self._write_manifest(self.host.wall - self.model.age_s + 2)
        if self._copies(0.0):
            self._start(self.there / self._rate)

    def _copies(self, clock: float) -> bool:
        due = self.starts_at is None or clock >= self.starts_at
        return due and self._rate > 0 and self.there < self.whole and not self._stopped

    def step(self, seconds: float, clock: float) -> None:
        """`seconds` later, at scenario time `clock`."""
        if not self._copies(clock):
            return
        if not self.running:
            self._start(0.0)
        self.there = min(self.whole, self.there + self._rate * seconds)
        self._show(self.host.wall)
        if self.there >= self.whole:
            self._finish()

    def befall(self, what: str) -> None:
        """One of `RowsFault.what`."""
        if what == "stop":
            self._stopped = True
            self._end()
        elif what == "go":
            self._stopped = False
        elif what == "holes":
            self.there = 0.83 * self.whole
            self._show(self.host.wall - self.model.age_s)
        elif what == "rebuild":  # into the same folder: the old manifest stays until the end
            self._rate, self.there, self._stopped = self._rate or 0.53 * GIB, 0.4 * self.whole, False
            self._start(0.0)
        elif what == "done":
            self.there = self.whole
            self._show(self.host.wall)
            self._finish()
        elif what == "gone":
            self._end()
            self.host.files.remove(self.model.folder)
            self._shown.clear()
            self.there = 0.0

    def stop(self) -> None:
        """The copying process is gone, for whatever reason."""
        self.befall("stop")

    @property
    def _pid(self) -> int:
        return PIDS + 10 * self.rank

    def _start(self, ago: float) -> None:
        self.running = True
        ranges = [f"{layer}:{start}:{end}" for layer, (start, end) in self.ranges.items()]
        command = ["python3", "tools/engram_local.py", self._source, self.model.folder, *ranges, "--mbps=600"]
        self.host.processes.start(self._pid, command, self.host.wall - ago, state="D")

    def _end(self) -> None:
        self.running = False
        self.host.processes.end(self._pid)

    def _finish(self) -> None:
        self._end()
        self._write_manifest(self.host.wall + 0.5)

    @property
    def _source(self) -> str:
        return f"{self.model.source}/snapshots/{self.revision}"

    def _show(self, wall: float) -> None:
        """Shards have their whole apparent size at once; the first layer's rows are copied first."""
        left = self.there
        sizes = {file.shard: file.size for file in files_of(self.revision)}
        for layer, whole in self._bytes.items():
            here = min(left, whole)
            left -= here
            name = shard_name(SHARD_OF[layer])
            self.host.files.sized(
                f"{self.model.folder}/{name}", sizes[SHARD_OF[layer]], int(here) // 4096 * 4096 + 4096, wall
            )
        index = "model.safetensors.index.json"
        if index not in self._shown:
            self._shown.add(index)
            size = next(file.size for file in files_of(self.revision) if file.name == index)
            self.host.files.sized(f"{self.model.folder}/{index}", size, size // 4096 * 4096 + 4096, wall)

    def _write_manifest(self, wall: float) -> None:
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall))
        layers = {str(layer): list(bounds) for layer, bounds in self.ranges.items()}
        if self.model.form == "local":
            said: Mapping[str, object] = {
                "source": self._source,
                "layers": layers,
                "quant": "fp8",
                "created": created,
                "note": "sparse copy: only these rows exist; tools/engram_local.py",
            }
        else:
            said = {
                "layers": layers,
                "rank": self.holds,
                "tp_size": self.ranks,
                "revision": self.revision,
                "source": f"pack:rank-{self.holds}.pack",
                "sha256": {key: "0" * 64 for key in self._digests()},
                "created": created,
                "note": "sparse per-rank Engram slice; weights/engram-slice.py",
            }
        self.host.files.text(f"{self.model.folder}/engram-local.json", json.dumps(said, indent=1) + "\n", wall)

    def _digests(self) -> list[str]:
        return [
            f"{shard_name(SHARD_OF[layer])}:layers.{layer}.engram.embed.{part}[{start}:{end}]"
            for layer, (start, end) in self.ranges.items()
            for part in ("weight", "scale")
        ]
