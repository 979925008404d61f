"""`inspect sitefile`: what a launcher's site file sets for its consumer, and what an edit would make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from console.fleet.proposal import propose
from console.fleet.sitefile import Assignment, SiteFile, SiteKind, parse_site
from console.fleet.sitetypes import visible
from console.inspection.arguments import Argument, InspectError, one, reject_unknown

_OTHER = {SiteKind.BASH: SiteKind.DOCKER, SiteKind.DOCKER: SiteKind.BASH}


def sitefile(arguments: Sequence[Argument]) -> dict[str, Any]:
    """Keys with values, lines and warnings; with `change=` also the smallest edit."""
    reject_unknown(arguments, ("bash", "docker", "json", "change"))
    file, kind = _file(arguments)
    data = file.read()
    site = parse_site(data, kind)
    keys = dict.fromkeys(item.key for item in site.assignments)
    answer: dict[str, Any] = {
        "kind": kind.value,
        "count": len(keys),
        "crlf_lines": site.crlf_lines,
        "byte_order_mark": site.bom,
        "final_newline": site.final_newline,
        "warnings": list(site.warnings),
        "keys": {visible(key): _key(found) for key in keys if (found := site.get(key))},
    }
    if (other := _OTHER.get(kind)) is not None:
        answer["differs"] = _differs(site, parse_site(data, other))
    if change := one(arguments, "change"):
        answer["proposal"] = _proposal(data, kind, change, file.path.name)
    return answer


def _file(arguments: Sequence[Argument]) -> tuple[Argument, SiteKind]:
    found = [(item, SiteKind(role)) for role in ("bash", "docker", "json") if (item := one(arguments, role))]
    plain = [item for item in arguments if not item.role]
    found += [(item, SiteKind.JSON if item.path.suffix == ".json" else SiteKind.BASH) for item in plain]
    if len(found) != 1:
        raise InspectError("sitefile: name one file, as FILE, bash=FILE, docker=FILE or json=FILE")
    return found[0]


def _key(found: Assignment) -> dict[str, Any]:
    """`value` is what the consumer gets, letter for letter; `shown` what a person sees."""
    good = not found.error
    return {
        "value": found.value if good and not found.array and found.values else None,
        "values": list(found.values) if good and found.array else None,
        "shown": _shown(found),
        "line": found.line or None,
        "array": found.array,
        "exported": found.exported,
        "literal": found.literal,
        "error": visible(found.error) or None,
    }


def _shown(found: Assignment) -> str:
    if found.error:
        return visible(f"error: {found.error}")
    if not found.values:
        return "(no elements)" if found.array else "(from the environment)"
    return visible(" ".join(found.values), 2000) or "(empty)"


def _differs(site: SiteFile, other: SiteFile) -> list[dict[str, Any]]:
    """Keys that the other consumer would read in another way."""
    rows: list[dict[str, Any]] = []
    for key in dict.fromkeys(item.key for item in (*site.assignments, *other.assignments)):
        here, there = site.get(key), other.get(key)
        shown = [_read_as(found) for found in (here, there)]
        if shown[0] != shown[1]:
            rows.append({"key": visible(key), site.kind.value: shown[0], other.kind.value: shown[1]})
    return rows


def _read_as(found: Assignment | None) -> str:
    if found is None:
        return "(not set)"
    return _shown(found) + (" (expanded)" if not found.literal and found.values and not found.error else "")


def _proposal(data: bytes, kind: SiteKind, change: Argument, name: str) -> Mapping[str, Any]:
    wanted = parse_site(change.read(), SiteKind.DOCKER)  # one KEY=value a line, taken as it stands
    if not wanted.assignments or wanted.warnings:
        raise InspectError(f"{change.path}: expected KEY=value lines; {'; '.join(wanted.warnings) or 'there are none'}")
    changes = {item.key: item.value for item in wanted.assignments}
    made = propose(data, changes, kind, name)
    after = parse_site(made.data, kind)
    return {
        "lines_changed": len(made.lines),
        "lines": list(made.lines),
        "refusals": list(made.refusals),
        "notes": list(made.notes),
        "diff": made.diff.split("\n") if made.diff else [],
        "sha256": made.sha256,
        "after": {visible(key): _shown(found) if (found := after.get(key)) else "(not set)" for key in changes},
    }
