"""systemd units as `systemctl show` and `is-active` describe them, and the memory cap that is really in force. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit at one time."""

    name: str
    load: str
    """LoadState: `loaded`, `not-found`..., '' if not said. A unit that is not found reads `Result=success`."""
    active: str
    """ActiveState: `active`, `inactive`, `activating`, `failed`..."""
    sub: str = ""
    result: str = ""
    main_pid: int | None = None
    since: float | None = None
    """Unix seconds at which it became what it is."""
    description: str = ""
    next_run: float | None = None
    """Of a timer: Unix seconds at which it fires next."""


@dataclass(frozen=True, slots=True)
class UnitMemory:
    """Memory of a unit against its cap. Bytes; None where it cannot be read."""

    current: int | None
    peak: int | None
    cap_asked: int | None
    """MemoryMax as systemd has it; None for no cap."""
    cap: int | None
    """What the kernel enforces: memory.max of the unit's cgroup; None where there is none."""
    in_force: bool | None
    """Whether the asked cap is the enforced one; None without one asked, or where it cannot be told."""
    why: str = ""
    """Why not: `the memory controller is not delegated`."""
    oom_kills: int | None = None


@dataclass(frozen=True, slots=True)
class Units:
    """One answer of systemd: units by name, or why it could not be asked."""

    items: tuple[Unit, ...]
    memory: tuple[tuple[str, UnitMemory], ...] = ()
    problem: str = ""
    """`no user bus`, `wrong user bus`, `no systemctl`...; '' where it answered."""

    def unit(self, name: str) -> Unit | None:
        """The unit of that name; None if it was not answered for."""
        return next((item for item in self.items if item.name == name), None)
