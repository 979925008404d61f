"""`inspect rows` and `inspect drift`: what each rank of a lane has, and in what the ranks differ."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from console.fleet.recipe import Recipe, load_recipe
from console.fleet.sitefile import read_site
from console.fleet.sitetypes import Site
from console.inspection.arguments import Argument, InspectError, one, reject_unknown
from console.inspection.checkpoint_files import listing_of, repo_of, words
from console.readings.containers import Container, ContainersUnreadable, parse_inspect
from console.readings.drift import RankFacts, compare_ranks
from console.readings.gpu import Gpu, GpuUnreadable, parse_gpus
from console.readings.row_build import parse_build
from console.readings.rows import (
    MANIFEST,
    ManifestUnreadable,
    RowCopies,
    RowCopy,
    RowRange,
    RowSample,
    RowState,
    judge_manifest,
    parse_ranges,
    rank_share,
    read_copy,
    read_rows,
)
from console.sanitize import line

RECIPES = ("sglang-fleet-env", "vllm-cluster-env")
"""Shipped recipes whose site files name a checkpoint; which one it is, is told by the keys."""
_RANK = re.compile(r"(?:rank)?([0-9]{1,4})")


# --- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lane:
    """What the site file and the arguments say of the lane."""

    revision: str
    tp: int | None
    holder: int | None
    holder_rows: tuple[RowRange, ...]
    tables: Mapping[int, int]
    shards: tuple[str, ...]


def rows(arguments: Sequence[Argument]) -> dict[str, Any]:
    """`0=DIR-OR-LISTING-OR-MANIFEST 2=... [site=FILE] [revision=REV] [tp=N] [holder_rows=RANGES] [progress=OUTPUT]`."""
    ranks = _by_rank(arguments)
    others = [item for item in arguments if not _RANK.fullmatch(item.role)]
    reject_unknown(others, ("site", "revision", "tp", "holder_rows", "progress"))
    if stray := next((item for item in others if not item.role), None):
        raise InspectError(f"{stray.path}: of which rank? say 0={stray.path} or rank0={stray.path}")
    output = one(arguments, "progress")
    if not ranks and output is None:
        raise InspectError("rows: no copy; say 0=FOLDER 1=FOLDER..., or 0=engram-local.json...")
    lane = _lane(arguments)
    copies = [_copy(rank, given, lane) for rank, given in sorted(ranks.items())]
    if lane.holder is not None and lane.holder not in ranks:
        copies.append(RowCopy(lane.holder, "", "", RowState.SHARDS, RowState.SHARDS.value))
        copies.sort(key=lambda item: item.rank)
    found = read_rows(copies, revision=lane.revision, holder_rows=lane.holder_rows, table_rows=lane.tables, tp=lane.tp)
    return {
        "revision": lane.revision or None,
        "tp": lane.tp,
        "ranks": {str(item.rank): _described(item) for item in found.copies},
        "tiling": _tiling(found),
        "progress": asdict(parse_build(output.text())) if output else None,
    }


def _by_rank(arguments: Sequence[Argument]) -> dict[int, list[Argument]]:
    found: dict[int, list[Argument]] = {}
    for item in arguments:
        if match := _RANK.fullmatch(item.role):
            found.setdefault(int(match[1]), []).append(item)
    return found


def _lane(arguments: Sequence[Argument]) -> _Lane:
    recipe, site = _site(one(arguments, "site"))
    values = site.values if site else {}
    hosts = values.get("hosts", ())
    given_tp = words(arguments, "tp")
    if given_tp and not re.fullmatch(r"[1-9][0-9]{0,3}", given_tp):
        raise InspectError(f"tp: expected a number of ranks, found {given_tp!r}")
    holder = next(iter(values.get("holder", ())), "")
    ranges = words(arguments, "holder_rows") or next(iter(values.get("holder_rows", ())), "")
    try:
        holder_rows = parse_ranges(ranges)
    except ManifestUnreadable as error:
        raise InspectError(f"holder_rows: {error}") from error
    return _Lane(
        revision=words(arguments, "revision") or (site.revision if site else ""),
        tp=int(given_tp) if given_tp else len(hosts) or None,
        holder=int(holder) if re.fullmatch(r"[0-9]{1,4}", holder) else None,
        holder_rows=holder_rows,
        tables=recipe.rows.tables if recipe and recipe.rows else {},
        shards=tuple(recipe.rows.shards) if recipe and recipe.rows else (),
    )


def _site(argument: Argument | None) -> tuple[Recipe | None, Site | None]:
    """The site file, read by the first shipped recipe whose keys find a revision in it. Raises InspectError."""
    if argument is None:
        return None, None
    data = argument.read()
    for name in RECIPES:
        recipe = load_recipe(name)
        site = read_site(data, line(argument.path.name), recipe)
        if site.revision:
            return recipe, site
    raise InspectError(f"{argument.path}: names no revision, as SNAP=snapshots/<commit> or MODEL_REVISION=<commit>")


def _copy(rank: int, given: Sequence[Argument], lane: _Lane) -> RowCopy:
    path = line(str(given[-1].path), 300)
    only = given[0]
    if len(given) == 1 and only.path.is_file() and only.path.suffix == ".json":
        return judge_manifest(rank, "", path, only.text(), revision=lane.revision, tp=lane.tp)
    samples = [_sample(argument, number, len(given)) for number, argument in enumerate(given)]
    samples.sort(key=lambda sample: sample.at)
    return read_copy(
        rank,
        "",
        path,
        samples,
        revision=lane.revision,
        tp=lane.tp,
        reads_shards=False,
        want=rank_share(rank, lane.tp, lane.tables) if lane.tp else (),
        now=samples[-1].at,
        shards=_shards(samples, lane.shards),
    )


def _shards(samples: Sequence[RowSample], shards: tuple[str, ...]) -> tuple[str, ...]:
    """The recipe's names, where the folder has such files at all."""
    names = {entry.path for sample in samples for entry in sample.listing.entries}
    return shards if any(name.startswith(shard) for name in names for shard in shards) else ()


def _sample(argument: Argument, number: int, of: int) -> RowSample:
    """A folder of this machine, or a captured listing (which holds no manifest's text)."""
    if argument.seconds is None and of > 1:
        raise InspectError(f"{argument.path}: no time; say {argument.role}={argument.path}@SECONDS")
    listing = listing_of(argument)
    manifest = argument.path / MANIFEST
    text = Argument("", manifest).text() if argument.path.is_dir() and manifest.is_file() else None
    return RowSample(argument.seconds if argument.seconds is not None else float(number), listing, text)


def _described(copy: RowCopy) -> dict[str, Any]:
    share = copy.share
    return {
        "state": copy.state.value,
        "words": copy.words,
        "note": copy.note or None,
        "path": copy.path or None,
        "present": copy.present,
        "apparent": copy.apparent,
        "expected": copy.expected,
        "expected_by": copy.basis or None,
        "present_percent": None if share is None else 100 * share,
        "free": copy.free,
        "rate": copy.rate,
        "left_s": copy.left,
        "newest": copy.newest,
        "manifest": _manifest(copy),
    }


def _manifest(copy: RowCopy) -> dict[str, Any] | None:
    found = copy.manifest
    if found is None:
        return None
    return {
        "form": found.form,
        "revision": found.revision or None,
        "source": found.source or None,
        "rank": found.rank,
        "tp_size": found.tp_size,
        "created": found.created,
        "digests": found.digests,
        "bytes": found.bytes,
        "ranges": [{"layer": item.layer, "start": item.start, "end": item.end} for item in found.ranges],
    }


def _tiling(found: RowCopies) -> dict[str, Any]:
    tiling = found.tiling
    return {
        "ok": tiling.ok,
        "words": tiling.words,
        "family": tiling.family or None,
        "families": {"holder" if rank < 0 else str(rank): family for rank, family in sorted(tiling.families.items())},
        "layers": [{"layer": item.layer, "rows": item.rows, "faults": list(item.faults)} for item in tiling.layers],
    }


# --- drift -----------------------------------------------------------------------------------------------------------


def drift(arguments: Sequence[Argument]) -> dict[str, Any]:
    """`0=INSPECT 1=INSPECT... [gpu0=CSV] [snapshot0=DIR-OR-LISTING] [clock0=SECONDS] [kernel0=WORDS] [site=FILE]`."""
    allowed = re.compile(r"(?:rank|gpu|snapshot|clock|kernel)?[0-9]{1,4}|site")
    for item in arguments:
        if not allowed.fullmatch(item.role):
            what = f"unknown role {item.role!r}" if item.role else f"{item.path}: of which rank? say 0={item.path}"
            raise InspectError(f"drift: {what}; ranks are 0=, 1=..., with gpu0=, snapshot0=, clock0=, kernel0=")
    ranks = _by_rank(arguments)
    if len(ranks) < 2:
        raise InspectError("drift: at least two ranks, as 0=inspect.json 1=inspect.json")
    _, site = _site(one(arguments, "site"))
    holder = next(iter(site.values.get("holder", ())), "") if site else ""
    facts = [_facts(rank, given, arguments, holder == str(rank)) for rank, given in sorted(ranks.items())]
    found = compare_ranks(facts)
    return {
        "same": not found.differences,
        "worst": found.differences[0].severity if found.differences else None,
        "compared": list(found.compared),
        "unread": [{"rank": host, "what": what} for host, what in found.unread],
        "differences": [
            {
                "what": item.what,
                "severity": item.severity,
                "odd": list(item.odd),
                "values": dict(item.values),
                "why": item.why,
            }
            for item in found.differences
        ],
    }


def _facts(rank: int, given: Sequence[Argument], arguments: Sequence[Argument], holder: bool) -> RankFacts:
    if len(given) > 1:
        raise InspectError(f"rank {rank} is given {len(given)} times")
    container = _container(given[0])
    card = _card(one(arguments, f"gpu{rank}"))
    folder = one(arguments, f"snapshot{rank}")
    looks = any(item.role.startswith("snapshot") for item in arguments)
    repo = repo_of(folder) if folder else None
    snapshot = repo.snapshot(container.revision) if repo else None
    missing = repo is not None and snapshot is None
    return RankFacts(
        host=f"rank {rank}",
        container=container,
        driver=card.driver if card else "",
        kernel=words(arguments, f"kernel{rank}"),
        clock=_seconds(words(arguments, f"clock{rank}"), rank),
        snapshot=snapshot,
        snapshot_problem=(repo.problem if repo else "") or ("missing" if missing else ""),
        rows=RowCopy(rank, "", "", RowState.SHARDS, RowState.SHARDS.value) if holder else None,
        gpu_mhz=card.clock_mhz if card else None,
        gpu_watts=card.power_w if card else None,
        gpu_busy=card.utilisation if card else None,
        reads_rows=False,
        looks_at_snapshot=looks,
    )


def _container(source: Argument) -> Container:
    try:
        raw = json.loads(source.text())
        first = raw[0] if isinstance(raw, list) and raw else raw
        if not isinstance(first, Mapping):
            raise InspectError(f"{source.path}: expected what `docker inspect NAME` prints")
        return parse_inspect(first)
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, ContainersUnreadable) else f"not JSON: {error}"
        raise InspectError(f"{source.path}: {line(what, 200)}") from error


def _card(source: Argument | None) -> Gpu | None:
    if source is None:
        return None
    try:
        found = parse_gpus(source.text())
    except GpuUnreadable as error:
        raise InspectError(f"{source.path}: {error}") from error
    return found[0] if found else None


def _seconds(text: str, rank: int) -> float | None:
    if not text:
        return None
    if not re.fullmatch(r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,6})?", text):
        raise InspectError(f"clock{rank}: expected seconds ahead of the others, such as -0.3")
    return float(text)
