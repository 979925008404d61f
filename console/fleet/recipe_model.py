"""What a recipe says about one family of lanes: its tables and keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator, model_validator

from console.fleet.recipe_acts import Acts
from console.fleet.recipe_boot import BootRecipe
from console.fleet.recipe_watchdog import WatchdogRecipe
from console.fleet.sitetypes import SiteKind
from console.fleet.tomlfile import Strict

SiteName = Literal[
    "hosts", "users", "homes", "revision", "repo", "holder", "holder_repo", "holder_rows", "rows",
    "image", "container", "address", "port", "root",
]  # fmt: skip
"""laneswap's own names for what a site file says."""

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
"""`{root}` (a value of `[lanes.NAME.vars]`), `{site.KEY}` (a key of the site file) or `{home}`."""


class Reads(Strict):
    """How a lane of this family is read."""

    engine: Literal["", "sglang", "vllm", "llamacpp"] = ""
    """Empty means: told by the series present."""
    runs_in: Literal["docker", "host"] = "docker"
    """`host`: the engine runs outside containers, so none is looked for."""
    containers: str = ""
    """Glob over container names; empty means: observed by the port they own."""
    health_path: str = "/health"
    """Path of the health endpoint."""
    metrics_path: str = "/metrics"
    """Path of the metrics."""
    health_interval: float | None = Field(default=None, ge=0.2, le=300)
    """Seconds between two health probes; default 10 for SGLang, else 2."""
    stall_after: float = Field(default=15.0, ge=1, le=3600)
    """Seconds with work present and a frozen step counter before the lane is STALLED."""
    usual_boot_s: float | None = Field(default=None, gt=0)
    """Seconds from start to healthy that this family is known for."""


class Variable(Strict):
    """A value that the operator gives in `[lanes.NAME.vars]`."""

    help: str = Field(min_length=1)
    """What it is, in a few words: shown where it is missing."""
    default: str | None = None
    """Used where the operator gives none."""


class SiteRecipe(Strict):
    """The launcher's own configuration, a file on the head."""

    path: str = Field(min_length=1)
    """Where it lies; may hold `{names}`."""
    kind: SiteKind = SiteKind.BASH
    """Who reads it: `bash` sources it, `docker` takes it as --env-file, `json`."""
    keys: dict[SiteName, str] = Field(default_factory=dict)
    """The file's key for each of laneswap's names."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """Port of the endpoint where the file names none; for `laneswap init`."""
    container: str = ""
    """Name of the containers where the file names none; for `laneswap init`."""


class CheckpointRecipe(Strict):
    """Where the weights lie."""

    repo: str = ""
    """Folder as the ranks see it; may hold `{names}`. Relative: below the rank's home folder."""
    layout: Literal["hub", "folder"] = "hub"
    """`hub`: a cache folder with blobs, snapshots and refs; `folder`: the files themselves (`--local-dir`)."""
    holder: str = ""
    """Number of the rank that holds it and exports it to the others; may hold `{names}`."""
    holder_repo: str = ""
    """Folder as that rank sees it."""
    downloaders: tuple[str, ...] = ("hf download", "huggingface-cli download", "snapshot_download", "hf_transfer")
    """Parts of the command lines of what may be fetching it."""


class RowsRecipe(Strict):
    """Engram row copies: each rank's node-local part of the row tables."""

    path: str = Field(min_length=1)
    """Folder of a rank's copy; may hold `{names}`. Relative: below the rank's home folder."""
    holder_rows: str = ""
    """Ranges that the holder serves from the shards, as `LAYER:START:END,...`; may hold `{names}`."""
    manifest: str = Field(default="engram-local.json", pattern=r"^[A-Za-z0-9._-]+$")
    """Its manifest in that folder."""
    shards: tuple[str, ...] = ("model-00047-of-00048.safetensors", "model-00048-of-00048.safetensors")
    """The files that hold rows."""
    tp: Literal["ranks"] | int = "ranks"
    """Number of parts that the tables are cut into; `ranks`: as many as the lane has."""
    tables: dict[int, int] = Field(default_factory=dict)
    """Rows of each layer's table, by layer."""

    @field_validator("tp")
    @classmethod
    def _whole(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError('"ranks", or a number from 1')
        return value

    @field_validator("tables")
    @classmethod
    def _counts(cls, value: dict[int, int]) -> dict[int, int]:
        if any(layer < 0 or rows < 1 for layer, rows in value.items()):
            raise ValueError("layer = rows, for example 1 = 384006168")
        return value


class Recipe(Strict):
    """One family of lanes."""

    name: str
    """Its name: that of the file without `.toml`."""
    title: str
    """One line about it."""
    reads: Reads = Reads()
    """How its engine is asked."""
    vars: dict[str, Variable] = Field(default_factory=dict)
    """What the operator gives in `[lanes.NAME.vars]`, by name."""
    site: SiteRecipe | None = None
    """Its site file; left out: none."""
    checkpoint: CheckpointRecipe | None = None
    """Its checkpoint; left out: only what `lanes.NAME.download.repo` names."""
    rows: RowsRecipe | None = None
    """Its Engram row copies; left out: none."""
    watchdog: WatchdogRecipe | None = None
    """Its watchdog; left out: none, restart policies are all there is."""
    boot: BootRecipe = BootRecipe()
    """What the log of its starts always shows, and how they fail."""
    acts: Acts = Acts()
    """How it is stopped, launched, guarded and named."""

    @model_validator(mode="after")
    def _filled_by_something(self) -> Recipe:
        for where, text in self.templates():
            for name in PLACEHOLDER.findall(text):
                if name.startswith("site.") and self.site is None:
                    raise ValueError(f"{where}: {{{name}}} needs a [site] table")
                if not name.startswith("site.") and name != "home" and name not in self.vars:
                    raise ValueError(f'{where}: {{{name}}} is not declared; add [vars.{name}] with help = "..."')
        if self.site and any(name.startswith("site.") for name in PLACEHOLDER.findall(self.site.path)):
            raise ValueError("site.path: cannot depend on the site file")
        self._guarded()
        return self

    def _guarded(self) -> None:
        """What `[acts.watchdog]` says has to fit the watchdog."""
        guard, dog = self.acts.watchdog, self.watchdog
        if guard is None:
            return
        wanted = {"term": "process", "flag": "pause_flag", "unit": "unit"}[guard.disarm]
        if dog is None or not getattr(dog, wanted):
            raise ValueError(f"acts.watchdog: disarm {guard.disarm!r} needs watchdog.{wanted}")

    def templates(self) -> Iterator[tuple[str, str]]:
        """Every text that may hold `{names}`, with its key."""
        if self.site:
            yield "site.path", self.site.path
        if self.checkpoint:
            yield from (
                (f"checkpoint.{key}", getattr(self.checkpoint, key)) for key in ("repo", "holder", "holder_repo")
            )
        if self.rows:
            yield from ((f"rows.{key}", getattr(self.rows, key)) for key in ("path", "holder_rows"))
        if self.watchdog:
            for key in ("log", "lock", "process", "unit", "pause_flag", "gaveup_flag"):
                yield f"watchdog.{key}", getattr(self.watchdog, key)
        yield from self.acts.templates()
