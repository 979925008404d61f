"""Where the things of a lane lie, host by host: what recipe, site file and the operator's own words come to. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from console.readings.rows import RowRange


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
    site_file: str = ""
    """On the head; '' for a recipe without one."""
    revision: str = ""
    """What the site file says; 40 hex or ''."""
    next_revision: str = ""
    """What is being prepared, in the operator's own words; 40 hex or ''."""
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
