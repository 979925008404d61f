"""Where the things of a lane lie, host by host: what recipe, site file and the operator's own words come to. Pure."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from console.fleet.sitetypes import Site
from console.readings.rows import ManifestUnreadable, RowRange, parse_ranges

if TYPE_CHECKING:
    from console.fleet.filling import Filling
    from console.fleet.inventory import Lane
    from console.fleet.recipe_model import Recipe, RowsRecipe

_MODEL_FOLDER = re.compile(r"models--(.+?)--(.+)")


@dataclass(frozen=True, slots=True)
class RankPlace:
    """One rank's paths as that host sees them; '' where it has none or nobody says."""

    rank: int
    host: str
    repo: str = ""
    """The hub repository folder (`models--org--name`) through this rank's own mount."""
    rows: str = ""
    """Folder of its Engram row copy."""
    next_rows: str = ""
    """Folder of the copy that is being prepared for the next revision."""
    previous_rows: str = ""
    """Folder of the copy that was kept of the revision that served before."""
    reads_shards: bool = False
    """It holds the checkpoint and reads rows from the shards themselves."""


@dataclass(frozen=True, slots=True)
class DownloadPlace:
    """Where a checkpoint comes to be."""

    host: str
    repo: str
    revision: str = ""
    """The wanted one; '' lets the console tell: the newest that no rank serves."""
    manifest: str = ""
    """A file of the operator's machine with the expected files, or ''."""
    hub: str = ""
    """Base URL of a Hub to ask for the expected files and for the main branch; '' asks nobody."""
    model: str = ""
    """`org/name`, from the folder's name where it is not given."""
    unit: str = ""
    """The downloader's systemd unit; '' where it has none."""
    manager: str = "user"
    """`user` or `system`."""


@dataclass(frozen=True, slots=True)
class WatchdogPlace:
    """What a recipe says about its watchdog, with paths filled in."""

    kind: str
    """`log` or `systemd`."""
    host: str
    log: str = ""
    lock: str = ""
    process: str = ""
    """Part of its command line."""
    process_also: tuple[str, ...] = ()
    """Other parts that one started by hand may have."""
    unit: str = ""
    manager: str = "system"
    pause_flag: str = ""
    gaveup_flag: str = ""
    interval: float | None = None
    """Seconds between its checks."""
    foreign: tuple[str, ...] = ()
    """Units and timers of others that act on the same GPUs."""


@dataclass(frozen=True, slots=True)
class Places:
    """All of one lane."""

    ranks: tuple[RankPlace, ...]
    head: str = ""
    """Host that serves HTTP; the site file and the watchdog are there."""
    site_file: str = ""
    """On the head; '' for a recipe without one."""
    revision: str = ""
    """What the site file says; 40 hex or ''."""
    next_revision: str = ""
    """What is being prepared, in the operator's own words; 40 hex or ''."""
    previous_revision: str = ""
    """What served before, in the operator's own words or by an earlier text of the site file; 40 hex or ''."""
    holder: str = ""
    """Host that holds the checkpoint; '' if none is named."""
    holder_rows: tuple[RowRange, ...] = ()
    """Ranges that the holder serves from the shards."""
    download: DownloadPlace | None = None
    watchdog: WatchdogPlace | None = None
    unfilled: tuple[str, ...] = ()
    """What could not be filled in, each with the key that would: `rows: vars.root is not set`."""
    table_rows: dict[int, int] = field(default_factory=dict)
    """Rows of each layer's Engram table, where the recipe states them."""
    layout: str = "hub"
    """Of the checkpoint's folder: `hub` (blobs, snapshots, refs) or `folder` (the files themselves)."""
    rows_manifest: str = ""
    """Name of the manifest in a rank's copy; '' for a recipe without copies."""
    rows_shards: tuple[str, ...] = ()
    """Names of the files that hold rows."""
    tp: int = 0
    """Number of parts that the row tables are cut into; 0 for a recipe without copies."""
    downloaders: tuple[str, ...] = ()
    """Parts of the command lines of what may be fetching the checkpoint."""


def places(name: str, lane: Lane, recipe: Recipe, site: Site | None) -> Places:
    """Where the things of a lane lie. `lane` is filled from its recipe; without a site file most are not known yet."""
    from console.fleet.filling import Filling  # it knows recipes, whose watchdog knows this module

    fill = Filling(recipe, lane.vars, site, name)
    site_file = fill.path("site file", recipe.site.path, 0) if recipe.site else ""
    if recipe.site and not site_file:
        site = None
    if site is not None:
        _check_site(lane, site, fill)
    holder = _holder(lane, recipe, fill)
    ranks = tuple(_rank(rank, lane, recipe, fill, holder) for rank in range(len(lane.rank_hosts)))
    rows = recipe.rows
    return Places(
        ranks=ranks,
        head=lane.head,
        site_file=site_file,
        revision=site.revision if site else "",
        next_revision=lane.next.revision,
        previous_revision=lane.previous.revision,
        holder="" if holder is None else lane.rank_hosts[holder],
        holder_rows=_holder_rows(recipe, fill, holder),
        download=_download(name, lane, recipe, ranks, holder, fill),
        watchdog=_watchdog(lane, recipe, fill),
        unfilled=fill.unfilled,
        table_rows=dict(rows.tables) if rows else {},
        layout=recipe.checkpoint.layout if recipe.checkpoint else "hub",
        rows_manifest=rows.manifest if rows else "",
        rows_shards=rows.shards if rows else (),
        tp=_parts(rows, len(fill.words("hosts")) or len(ranks)),
        downloaders=recipe.checkpoint.downloaders if recipe.checkpoint else _usual_downloaders(),
    )


def with_former(new: Places, former: Places | None) -> Places:
    """The same with the row folders that the site file named before it was edited, as the previous ones. A folder that
    it names still is no previous one: what is in it is looked at already."""
    known = former if former is not None and former.revision != new.revision else None
    kept = {rank.rank: rank.rows for rank in known.ranks} if known is not None else {}
    folders = [(rank, kept.get(rank.rank, rank.previous_rows)) for rank in new.ranks]
    ranks = tuple(replace(rank, previous_rows="" if folder == rank.rows else folder) for rank, folder in folders)
    return replace(new, ranks=ranks, previous_revision=known.revision if known is not None else new.previous_revision)


def _parts(rows: RowsRecipe | None, ranks: int) -> int:
    """Into how many parts the row tables are cut. A lane that fleet.toml knows in part still has all its ranks."""
    if rows is None:
        return 0
    return ranks if rows.tp == "ranks" else rows.tp


def _usual_downloaders() -> tuple[str, ...]:
    from console.fleet.recipe_model import CheckpointRecipe

    return CheckpointRecipe().downloaders


def _check_site(lane: Lane, site: Site, fill: Filling) -> None:
    """What of the site file cannot be used, and whether it speaks of as many ranks as the lane has."""
    for item in site.unread:
        what, _, why = item.partition(": ")
        fill.miss(what, why)
    hosts = fill.words("hosts")
    if hosts and len(hosts) != len(lane.rank_hosts):
        fill.miss("ranks", f"the site file names {len(hosts)} hosts, fleet.toml {len(lane.rank_hosts)} ranks")


def _holder(lane: Lane, recipe: Recipe, fill: Filling) -> int | None:
    """Number of the rank that holds the checkpoint; None if there is none or it cannot be told."""
    template = recipe.checkpoint.holder if recipe.checkpoint else ""
    text = fill.text("holder", template) if template else ""
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,4}", text) or int(text) >= len(lane.rank_hosts):
        fill.miss("holder", f"{text!r} is the number of no rank of this lane")
        return None
    return int(text)


def _rank(number: int, lane: Lane, recipe: Recipe, fill: Filling, holder: int | None) -> RankPlace:
    host = lane.rank_hosts[number]
    holds = number == holder
    checkpoint, rows = recipe.checkpoint, recipe.rows
    repo = ""
    if checkpoint:
        template = checkpoint.holder_repo if holds and checkpoint.holder_repo else checkpoint.repo
        repo = fill.path("checkpoint", template, number)
    elif lane.download.repo and host == (lane.download.host or lane.head):
        repo = fill.path("checkpoint", lane.download.repo, number)
    own_rows = rows is not None and not holds
    return RankPlace(
        rank=number,
        host=host,
        repo=repo,
        rows=fill.path("row copies", rows.path, number) if rows and own_rows else "",
        next_rows=fill.below_home(lane.next.rows, number) if own_rows else "",
        previous_rows=fill.below_home(lane.previous.rows, number) if own_rows else "",
        reads_shards=rows is not None and holds,
    )


def _holder_rows(recipe: Recipe, fill: Filling, holder: int | None) -> tuple[RowRange, ...]:
    if not recipe.rows or not recipe.rows.holder_rows or holder is None:
        return ()
    text = fill.text("rows of the holder", recipe.rows.holder_rows)
    try:
        return parse_ranges(text)
    except ManifestUnreadable as error:
        fill.miss("rows of the holder", str(error))
        return ()


def _download(
    name: str, lane: Lane, recipe: Recipe, ranks: tuple[RankPlace, ...], holder: int | None, fill: Filling
) -> DownloadPlace | None:
    """Where the checkpoint is fetched to: what the operator says, else the folder of the rank that holds it."""
    wish = lane.download
    at = lane.rank_hosts.index(wish.host) if wish.host in lane.rank_hosts else None
    source = at if at is not None else holder if holder is not None else lane.rank_hosts.index(lane.head)
    host = wish.host or lane.rank_hosts[source]
    repo = fill.below_home(wish.repo, source)
    if not repo and (host == lane.rank_hosts[source]):
        repo = ranks[source].repo
    if not repo:
        if not recipe.checkpoint:
            fill.miss("download", f"lanes.{name}.download.repo is not set (folder that the checkpoint is fetched to)")
        return None
    return DownloadPlace(
        host=host,
        repo=repo,
        revision=wish.revision or lane.next.revision,
        manifest=wish.manifest,
        hub=wish.hub,
        model=wish.model or _model_in(repo),
        unit=wish.unit,
        manager=wish.manager,
    )


def _model_in(repo: str) -> str:
    """`org/name` from a cache folder's name; '' from any other."""
    match = _MODEL_FOLDER.fullmatch(posixpath.basename(repo))
    return f"{match[1]}/{match[2]}" if match else ""


def _watchdog(lane: Lane, recipe: Recipe, fill: Filling) -> WatchdogPlace | None:
    if recipe.watchdog is None:
        return None
    return recipe.watchdog.place(lane.head, lambda text: fill.text("watchdog", text, 0))
