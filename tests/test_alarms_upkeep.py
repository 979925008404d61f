"""Alarms of what keeps a lane alive: loud where something is wrong, in words that hold, quiet where nobody knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from manual import beside

from console.alarms import Alarm, upkeep_alarms
from console.lamps import lamps
from console.readings.boot import Boot, BootFailure
from console.readings.containers import Mount
from console.readings.health import LaneState, LaneVerdict
from console.readings.hubcache import HubRepo, read_repo
from console.readings.listing import Listing, parse_listing
from console.readings.rows import RowCopies, RowState
from console.snapshot import LaneView, Severity, Snapshot

pictures, upkeep = beside("widgets", "pictures"), beside("widgets", "upkeep")
SERVING, NEXT = upkeep.SERVING, upkeep.NEXT


def lane_with(**changes: Any) -> tuple[Snapshot, LaneView]:
    snapshot: Snapshot = pictures.spark4()
    return snapshot, replace(snapshot.lanes[0], **changes)


def by_key(snapshot: Snapshot, lane: LaneView) -> dict[str, Alarm]:
    return {alarm.key: alarm for alarm in upkeep_alarms(snapshot, lane)}


# --- the checkpoint's folder -----------------------------------------------------------------------------------------


def folder(**changes: Any) -> HubRepo:
    listing = parse_listing(f"# root\t/mnt/models--x--y\nd\t0\t0\t1\t1\t1\t1\tsnapshots/{SERVING}\n")
    return read_repo(replace(listing, **changes))


@pytest.mark.parametrize(
    ("repo", "severity"),
    [
        (folder(truncated=True), Severity.INFO),
        (folder(unread=("snapshots/x: no permission",)), Severity.INFO),
        (folder(faulty=3), Severity.INFO),
        (read_repo(Listing("", (), problem="no permission")), Severity.INFO),
        (read_repo(Listing("", (), problem="missing")), Severity.ACT),
        (read_repo(Listing("", (), problem="Stale file handle")), Severity.ACT),
        (folder(), None),
    ],
)
def test_only_a_folder_that_is_not_well_is_critical(repo: HubRepo, severity: Severity | None) -> None:
    """A large cache whose listing is cut would be critical for good, and its snapshot is there."""
    snapshot, lane = lane_with()
    host = lane.ranks[2].host
    found = by_key(snapshot, replace(lane, repos=((host, pictures.reading(repo, 2, 5.0)),)))
    alarm = found.get(f"snapshot:{lane.name}:{host}")
    assert (None if alarm is None else alarm.severity) is severity


# --- row copies ------------------------------------------------------------------------------------------------------


def rows_lane(site_revision: str, path: str = "/srv/engram-1017", *mounts: Mount) -> tuple[Snapshot, LaneView]:
    """Copies of NEXT in a folder, and a site file that names a revision; SERVING runs."""
    held = tuple(upkeep.copy(rank, manifest=upkeep.manifest(rank, NEXT), path=path) for rank in range(4))
    held = (replace(held[0], state=RowState.HOLES, words="holes: 1.0 of 47.2 GiB missing, rebuild"), *held[1:])
    rows = pictures.reading(RowCopies(site_revision, held, upkeep.TILES), 0.7, 5.0)
    site = pictures.reading(replace(upkeep.site(), revision=site_revision), 3, 5.0)
    snapshot, lane = lane_with(rows=rows, site=site)
    ranks = tuple(
        replace(
            rank,
            host=f"n{rank.rank + 1}",
            revision=SERVING,
            container=None if rank.container is None else replace(rank.container, revision=SERVING, mounts=mounts),
        )
        for rank in lane.ranks
    )
    return snapshot, replace(lane, ranks=ranks)


def test_rows_of_the_next_checkpoint_in_their_own_folder_are_not_those_that_serve() -> None:
    """Between the edit of the site file and the relaunch."""
    snapshot, lane = rows_lane(NEXT)
    lamp = lamps(snapshot, lane)[1]
    assert (lamp.rest, lamp.severity) == (f"site file: {NEXT[:7]}", Severity.LOOK)
    alarm = by_key(snapshot, lane)[f"rows:{lane.name}:n1"]
    assert alarm.advice == "the next launch would serve wrong rows without an error: rebuild it first"


@pytest.mark.parametrize(
    ("path", "source"),
    [("/srv/engram", "/srv/engram/"), ("~/engram", "/home/ops/engram"), ("/home/ops/engram/", "/home/ops/engram")],
)
def test_rows_that_are_mounted_and_of_another_checkpoint_are_critical_whatever_the_site_file_says(
    path: str, source: str
) -> None:
    snapshot, lane = rows_lane(NEXT, path, Mount(source, "/engram-local", True))
    lamp = lamps(snapshot, lane)[1]
    assert (lamp.rest, lamp.severity) == (f"rows of {NEXT[:7]} on n1", Severity.ACT)
    alarm = by_key(snapshot, lane)[f"rows:{lane.name}:n1"]
    assert (alarm.severity, alarm.advice[:13]) == (Severity.ACT, "it is mounted")
    snapshot, lane = rows_lane(SERVING, path)
    assert by_key(snapshot, lane)[f"rows:{lane.name}:n1"].advice == "it serves wrong rows without an error: rebuild it"


# --- the boot --------------------------------------------------------------------------------------------------------


def failing() -> Boot:
    booting: Boot = upkeep.BOOTING
    return replace(booting, failure=BootFailure("no NCCL", "NCCL WARN", False, "check the fabric"), missing=())


@pytest.mark.parametrize(
    ("state", "raised"),
    [
        (LaneState.BOOTING, True),
        (LaneState.DOWN, True),
        (LaneState.SERVING, False),
        (LaneState.IDLE, False),
        (LaneState.BUSY, False),
        (LaneState.READY, False),
    ],
)
def test_a_boot_that_failed_is_no_alarm_of_a_lane_that_is_up(state: LaneState, raised: bool) -> None:
    snapshot, lane = lane_with(boot=pictures.reading(failing(), 9, 1e6), verdict=LaneVerdict(state, "because"))
    assert (f"boot:{lane.name}" in by_key(snapshot, lane)) is raised


def test_what_the_log_said_before_the_head_went_away_is_not_what_it_says() -> None:
    away = replace(pictures.reading(failing(), 9, 1e6), down_since=pictures.NOW - 5)
    snapshot, lane = lane_with(boot=away, verdict=LaneVerdict(LaneState.UNKNOWN, "host unreachable"))
    assert f"boot:{lane.name}" not in by_key(snapshot, lane)
