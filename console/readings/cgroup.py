"""Memory limits and use of one control group, v1 and v2 (cgroups(7)). All sizes are bytes.

GPU memory is outside these figures: driver allocations are not charged to a cgroup, on unified memory neither.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

FILES = (
    "memory.max",
    "memory.high",
    "memory.current",
    "memory.stat",
    "memory.events",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
)
"""The files that `parse_cgroup` reads, v2 first."""

NO_LIMIT = 2**63 - 2**20
"""v1 prints LONG_MAX rounded down to a page for no limit: any number from here on, whatever the page size."""


class CgroupUnreadable(ValueError):
    """A cgroup file with something else than what the kernel writes; names the file."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """One control group's memory. None means that the file is not there."""

    version: int
    limit: int | None
    """Bytes; None means no limit, or none below what the host has."""
    throttled_at: int | None
    """memory.high of v2, bytes; None means no limit."""
    current: int | None
    inactive_file: int | None
    """Page cache that goes first: not a sign of running out."""
    oom_kills: int | None

    @property
    def working_set(self) -> int | None:
        """current - inactive_file, bytes; the figure that an alarm may rest on."""
        if self.current is None or self.inactive_file is None:
            return None
        return max(0, self.current - self.inactive_file)

    @property
    def working_set_share(self) -> float | None:
        """Percent of the limit; None without a limit."""
        return _share(self.working_set, self.limit)

    @property
    def current_share(self) -> float | None:
        """Percent of the limit with reclaimable cache counted as use; never drives an alarm."""
        return _share(self.current, self.limit)


def parse_cgroup(files: Mapping[str, str], *, host_total: int | None = None) -> Cgroup:
    """The memory figures of a cgroup from its files by name. Raises CgroupUnreadable.

    `host_total` is MemTotal in bytes: a limit that is not below it is no limit.
    """
    if not files.keys() & set(FILES):
        raise CgroupUnreadable(f"no cgroup memory file; known: {', '.join(FILES)}")
    version = 1 if {"memory.limit_in_bytes", "memory.usage_in_bytes"} & files.keys() else 2
    stat = _table(files.get("memory.stat", ""))
    limit = _size(files, "memory.limit_in_bytes" if version == 1 else "memory.max")
    if version == 1 and "hierarchical_memory_limit" in stat:
        limit = min(stat["hierarchical_memory_limit"], NO_LIMIT if limit is None else limit)
    events = _table(files.get("memory.events", ""))
    return Cgroup(
        version=version,
        limit=_real(limit, host_total),
        throttled_at=_real(_size(files, "memory.high"), host_total),
        current=_size(files, "memory.usage_in_bytes" if version == 1 else "memory.current"),
        # the v1 file counts its children only under total_
        inactive_file=stat.get("total_inactive_file", stat.get("inactive_file")),
        oom_kills=events.get("oom_kill"),
    )


def _real(limit: int | None, host_total: int | None) -> int | None:
    if limit is None or limit >= NO_LIMIT or (host_total is not None and limit >= host_total):
        return None
    return limit


def _size(files: Mapping[str, str], name: str) -> int | None:
    """The number in a one-line file; None for the word `max` and for a file that is not there."""
    if name not in files:
        return None
    text = files[name].strip()
    if text == "max":
        return None
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise CgroupUnreadable(f"{name}: expected a number of bytes or max, found {text[:40]!a}")
    return int(text)


def _table(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in re.findall(r"^([a-z_0-9]+) ([0-9]{1,20})[ \r]*$", text, re.MULTILINE)}


def _share(part: int | None, whole: int | None) -> float | None:
    return 100.0 * part / whole if part is not None and whole else None
