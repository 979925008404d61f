"""Containers as the Docker Engine API describes them, and what their exits mean."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ContainerState(StrEnum):
    """The one word for a container's state; `paused` wins over `running`."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    RESTARTING = "restarting"
    REMOVING = "removing"
    EXITED = "exited"
    DEAD = "dead"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Mount:
    """One bind or volume mount."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Container:
    """One container, from `inspect` (whole) or `list` (what a list row says; the rest None or empty)."""

    id: str
    name: str
    image: str
    image_id: str
    state: ContainerState
    started_at: float | None
    """Unix seconds; None if never started."""
    finished_at: float | None
    exit_code: int | None
    oom_killed: bool | None
    exit_meaning: str
    """Words for the operator, '' while running: `stopped by SIGTERM`, `OOM-killed`, ..."""
    restart_policy: str
    restart_count: int
    auto_remove: bool
    health: str
    """Docker's own health verdict: healthy, unhealthy, starting or '' where no check is set."""
    mounts: tuple[Mount, ...]
    args: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    network_mode: str
    ports: tuple[int, ...]
    """Host ports: published ones, and with host networking those of `--port` arguments."""
    revision: str
    """40-hex commit of the snapshot really mounted or named in the arguments; '' if it cannot be read."""
    revision_source: str
    """Where `revision` was read: `mount /models/...` or `argument --model-path`; '' if unknown."""
    served_name: str
    autoheal: bool
    """A third party (docker-autoheal label) may restart this container."""
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Containers:
    """All containers of one host, or why they cannot be read (never an empty list instead)."""

    items: tuple[Container, ...]
    problem: str = ""
    """Safe words: `permission: docker group not active in this session, reconnect`."""
    hint: str = ""
    api_version: str = ""
