"""Rows of Docker's list of containers: what can be said without inspecting each. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from console import sanitize
from console.readings import launch
from console.readings.containers import (
    ALIVE,
    Container,
    ContainerState,
    ContainersUnreadable,
    has_autoheal,
    named_state,
    parse_labels,
    parse_mounts,
    part,
    read_revision,
    text,
)
from console.readings.throughput import EngineKind


def parse_list_row(raw: Mapping[str, Any]) -> Container:
    """One row of `/containers/json`; what a row does not say is None or empty. Raises ContainersUnreadable."""
    names = raw.get("Names")
    name = text(names[0]).lstrip("/") if isinstance(names, Sequence) and not isinstance(names, str) and names else ""
    if not raw.get("Id") and not name:
        raise ContainersUnreadable("a list row without Id and Names")
    status = str(raw.get("Status") or "")[:200]
    state = _row_state(raw.get("State"), status)
    labels = parse_labels(raw.get("Labels"))
    mounts = parse_mounts(raw.get("Mounts"), None)
    revision = read_revision((), EngineKind.UNKNOWN, mounts)
    image = text(raw.get("Image"))
    code = re.match(r"(?:Exited|Restarting) \((-?[0-9]{1,9})\)", status)
    health = re.search(r"\((healthy|unhealthy|health: starting)\)", status)
    return Container(
        id=text(raw.get("Id")),
        name=name,
        image=image,
        image_id=text(raw.get("ImageID")),
        state=state,
        started_at=None,
        finished_at=None,
        exit_code=int(code[1]) if code and state not in ALIVE else None,
        oom_killed=None,
        exit_meaning="",
        restart_policy="",
        restart_count=0,
        auto_remove=False,
        health=health[1].removeprefix("health: ") if health else "",
        mounts=mounts,
        args=(),
        labels=labels,
        network_mode=text(part(raw, "HostConfig").get("NetworkMode")),
        ports=_row_ports(raw.get("Ports")),
        revision=revision.commit,
        revision_source=sanitize.line(revision.source, 300),
        served_name="",
        autoheal=has_autoheal(labels),
        created_at=_seconds(raw.get("Created")),
        engine=launch.engine_kind(image, ()),
        inspected=False,
    )


def _row_state(state: object, status: str) -> ContainerState:
    """The row's state; the `Status` text speaks where very old daemons send no `State`, and `(Paused)` always wins."""
    if status.startswith("Up") and status.rstrip().endswith("(Paused)"):
        return ContainerState.PAUSED
    if (named := named_state(state)) is not None:
        return named
    for start, word in _STATUS_WORDS:
        if status.startswith(start):
            return word
    return ContainerState.UNKNOWN


_STATUS_WORDS = (
    ("Up", ContainerState.RUNNING),
    ("Exited", ContainerState.EXITED),
    ("Created", ContainerState.CREATED),
    ("Restarting", ContainerState.RESTARTING),
    ("Dead", ContainerState.DEAD),
    ("Removal", ContainerState.REMOVING),
)


def _row_ports(ports: object) -> tuple[int, ...]:
    rows = ports if isinstance(ports, list) else []
    found = {launch.port_number(row.get("PublicPort")) for row in rows if isinstance(row, Mapping)}
    return tuple(sorted(port for port in found if port))


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**40 else None


def tag_moved(row: Container, inspected: Container) -> bool:
    """Whether the name that a container was started from means another image now, or none.

    Docker lists the bare image id in place of such a name (moby, daemon/list.go).
    """
    bare, ident = row.image.removeprefix("sha256:"), inspected.image_id.removeprefix("sha256:")
    return row.image != inspected.image and len(bare) >= 12 and ident.startswith(bare)


def freshness(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """What of a row changes when the container does: its state without the ages that `Status` counts up."""
    status = str(raw.get("Status") or "")[:200]
    marks = re.findall(r"\([^)]*\)", status)
    names = raw.get("Names")
    return (str(raw.get("State")), status.split(" ", 1)[0], *marks, str(names)[:1000])
