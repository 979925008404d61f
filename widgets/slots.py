"""Which panes a lane has, their numbers, and which digit stands before their names. Pure.

Numbers are identities and never move. A digit is what the operator types: panes from 10 on have none, but that the
containers take the 2 where a lane has nothing to download.
"""

from __future__ import annotations

from collections.abc import Mapping

from widgets.glance import Glance

NUMBERS: Mapping[str, int] = {
    **{"nodes": 1, "download": 2, "rows": 3, "lane": 4, "decode": 5, "kv": 6, "events": 7, "log": 8, "wayback": 9},
    **{"containers": 10, "watchdog": 11, "drift": 12},
}
"""By the name that `:focus` takes."""
LAST_DIGIT = 9


def in_containers(glance: Glance) -> bool:
    """Whether the lane's engine runs in containers that can be asked for."""
    hosts = glance.snapshot.fleet.hosts
    asked = [name for name in glance.lane.lane.rank_hosts if name not in hosts or hosts[name].docker]
    return glance.lane.lane.runs_in != "host" and bool(asked)


def has_download(glance: Glance) -> bool:
    """Whether the lane has a pane for its download: it has several ranks, names one, or has no containers to show."""
    lane = glance.lane
    return len(lane.ranks) > 1 or lane.download is not None or has_rows(glance) or not in_containers(glance)


def has_rows(glance: Glance) -> bool:
    """Whether the lane has a pane for row copies: it has several ranks, or copies are looked at."""
    lane = glance.lane
    return len(lane.ranks) > 1 or lane.rows is not None or lane.next_rows is not None


def panes_of(glance: Glance) -> tuple[str, ...]:
    """All panes of the lane in view, in the order in which they stand. Follows from the fleet file, not from state."""
    staged = ("download",) if has_download(glance) else ()
    rows = ("rows",) if has_rows(glance) else ()
    boxes = ("containers",) if in_containers(glance) else ()
    drift = ("drift",) if len(glance.lane.ranks) > 1 else ()
    return ("nodes", *staged, *rows, *boxes, "wayback", "lane", "decode", "kv", "events", "log", "watchdog", *drift)


def digit(glance: Glance, number: int) -> str:
    """What is typed to focus the pane of this number; '' for one that is reached by name."""
    if number == NUMBERS["containers"]:
        return "" if has_download(glance) else str(NUMBERS["download"])
    return str(number) if 0 < number <= LAST_DIGIT else ""
