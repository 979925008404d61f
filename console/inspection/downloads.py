"""`inspect` of a download: listings with their times, and what was captured of its unit. Bytes, seconds, percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from console.inspection.arguments import Argument, InspectError, one, reject_unknown
from console.inspection.checkpoint_files import expected_of, listing_of, partial, processes_of, upstream_of, words
from console.readings.cgroup import CgroupUnreadable, parse_cgroup
from console.readings.download import Download, DownloadSample, read_download
from console.readings.downloader import last_bar, parse_environment, read_settings
from console.readings.hubcache import HubRepo, read_repo
from console.readings.units import UnitMemory, Units, parse_units

GROUP_FILES = ("cgroup.controllers", "memory.max", "memory.current", "memory.peak", "memory.events")
ROLES = ("expected", "expected_bytes", "unit", "stdout", "env", "cgroup", "processes", "pin", "serving", "upstream")


def download(arguments: Sequence[Argument]) -> dict[str, Any]:
    """`0=LISTING@T 1=LISTING@T [expected=F] [unit=SHOW] [cgroup=DIR] [processes=PS] [env=F] [stdout=F]...`."""
    listings = [item for item in arguments if item.role.isdecimal() or not item.role]
    reject_unknown([item for item in arguments if item not in listings], ROLES)
    if not arguments:
        raise InspectError("download: nothing to look at; say 0=LISTING@SECONDS 1=LISTING@SECONDS, or unit=SHOW")
    units = _units(one(arguments, "unit"), _group(one(arguments, "cgroup")))
    unit = units.items[0].name if units and units.items else ""
    table = one(arguments, "processes")
    samples = _samples(listings, units, None if table is None else processes_of(table))
    environment = one(arguments, "env")
    named = None if environment is None else parse_environment(environment.text())
    expected = expected_of(one(arguments, "expected") or one(arguments, "expected_bytes"))
    found = read_download(
        samples,
        revision=words(arguments, "pin") or (expected.revision if expected is not None else ""),
        expected=expected,
        serving=words(arguments, "serving"),
        unit=unit,
        upstream=upstream_of(one(arguments, "upstream")),
        environment=named,
    )
    return {
        **_download(found),
        "cap": _cap(found.memory, units, _group(one(arguments, "cgroup"))),
        "memory": asdict(found.memory) if found.memory else None,
        "settings": _settings(named),
        "bar": _bar(one(arguments, "stdout")),
    }


def _samples(listings: Sequence[Argument], units: Units | None, processes: Any) -> list[DownloadSample]:
    """Readings in the order of time; what was captured once belongs to the newest."""
    read = []
    for argument in listings:
        listing = listing_of(argument)
        at = argument.seconds if argument.seconds is not None else listing.taken
        if at is None and len(listings) > 1:
            raise InspectError(f"{argument.path}: no time; say {argument.role or 0}={argument.path}@SECONDS")
        read.append((at or 0.0, listing))
    read.sort(key=lambda item: item[0])
    samples = [DownloadSample(at, read_repo(listing), wall=listing.taken) for at, listing in read]
    if not samples:
        nothing = HubRepo("", (), (), {}, 0, (), problem="no listing was given")
        samples = [DownloadSample(0.0, nothing)]
    newest = samples[-1]
    return [*samples[:-1], DownloadSample(newest.at, newest.repo, processes, units, newest.wall)]


def _group(argument: Argument | None) -> Mapping[str, str] | None:
    """The files of a captured cgroup by name."""
    if argument is None:
        return None
    if not argument.path.is_dir():
        return {argument.path.name: argument.text()}
    paths = [argument.path / name for name in GROUP_FILES]
    found = {path.name: Argument("", path).text() for path in paths if path.is_file()}
    if not found:
        raise InspectError(f"{argument.path}: none of {', '.join(GROUP_FILES)} is in it")
    return found


def _units(show: Argument | None, group: Mapping[str, str] | None) -> Units | None:
    if show is None:
        return None
    text = show.text()
    units = parse_units(text)
    if not units.items:
        raise InspectError(f"{show.path}: no unit in it; take it with `systemctl show UNIT`")
    if group:
        rows = [f"@{units.items[0].name}/{name}={_escaped(value)}" for name, value in group.items()]
        units = parse_units("\n".join(["ok code=0", text.rstrip("\n"), *rows]))
    return units


def _escaped(text: str) -> str:
    return text.rstrip("\n").replace("\n", "\\n")


def _cap(memory: UnitMemory | None, units: Units | None, group: Mapping[str, str] | None) -> dict[str, Any] | None:
    """The cap that was asked for against the one that the kernel enforces."""
    if memory is None and group is not None and units is None:
        return _group_cap(group)
    if memory is None:
        return None
    states = {True: "in force", False: "not in force", None: "unknown" if memory.cap_asked else "none"}
    return {
        "asked": memory.cap_asked,
        "bytes": memory.cap,
        "state": states[memory.in_force],
        "why": memory.why or None,
    }


def _group_cap(group: Mapping[str, str]) -> dict[str, Any]:
    """What a cgroup enforces, where nobody says what was asked for."""
    controllers = group.get("cgroup.controllers")
    limit, state, why = None, "unknown", None
    if "memory.max" in group:
        try:
            limit = parse_cgroup(group).limit
        except CgroupUnreadable as error:
            raise InspectError(f"cgroup: {error}") from error
        state = "none" if limit is None else "in force"
    elif controllers is not None and "memory" not in controllers.split():
        state, why = "not in force", "the memory controller is not delegated"
    return {"asked": None, "bytes": limit, "state": state, "why": why}


def _settings(environment: Mapping[str, str] | None) -> dict[str, Any] | None:
    if environment is None:
        return None
    found = read_settings(environment)
    return {
        "high_performance": found.high_performance,
        "buffer_limit_asked": found.asked_limit,
        "buffer_limit_before_943": found.limit_before_943,
        "buffer_limit": found.limit,
        "xet_off": found.xet_off,
        "shared_blob_store": found.shared_store,
        "warnings": list(found.warnings),
    }


def _bar(argument: Argument | None) -> dict[str, Any] | None:
    found = last_bar(argument.text()) if argument else None
    if found is None:
        return None
    return {
        "label": found.label,
        "bytes": found.done,
        "of": found.of or None,
        "total_incomplete": found.total_incomplete,
    }


def _download(found: Download) -> dict[str, Any]:
    share = found.share
    return {
        "state": found.state.value,
        "why": found.why or None,
        "revision": found.revision or None,
        "repo": found.repo or None,
        "done": found.done,
        "expected": found.expected,
        "progress_percent": None if share is None else 100 * share,
        "files_done": found.files_done,
        "files_total": found.files_total,
        "shards_done": found.shards_done,
        "shards_total": found.shards_total,
        "rate": found.rate,
        "window_s": found.window,
        "usual_rate": list(found.usual_rate) if found.usual_rate else None,
        "stalled_for_s": found.stalled_for,
        "eta_s": found.eta,
        "clocks": asdict(found.clocks) if found.clocks else None,
        "current": partial(found.current) if found.current else None,
        "current_file": found.current_file or None,
        "attempt": found.attempt,
        "partials": found.partials,
        "orphans": [partial(item) for item in found.orphans],
        "downloaders": found.processes,
        "pids": list(found.pids),
        "upstream": found.upstream or None,
        "warnings": list(found.warnings),
        "notes": list(found.notes),
    }
