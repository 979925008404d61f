"""What is handed to the comparison of ranks: nothing that was not seen counts as a difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from manual import beside

from console.feed.rankfacts import RankDrift
from console.feed.surveyed import Surveyed
from console.readings.hubcache import read_repo
from console.readings.listing import Listing, parse_listing
from console.readings.quality import Reading

pictures, upkeep = beside("../widgets", "pictures"), beside("../widgets", "upkeep")
REVISION = upkeep.SERVING
WHOLE = parse_listing(
    f"# root\t/mnt/models--x--y\nd\t0\t0\t1\t1\t1\t1\tsnapshots/{REVISION}\n"
    f"f\t9\t9\t1\t1\t2\t1\tsnapshots/{REVISION}/config.json\n"
)


def differences(odd: Reading[Any]) -> list[tuple[str, tuple[str, ...]]]:
    """What of the snapshot differs where three ranks see it whole and the third sees this."""
    snapshot = pictures.spark4()
    lane = snapshot.lanes[0]
    ranks = tuple(replace(rank, revision=REVISION) for rank in lane.ranks)
    repos = [(rank.host, pictures.reading(read_repo(WHOLE), 2, 5.0)) for rank in ranks]
    repos[2] = (repos[2][0], odd)
    hosts = {host.name: host for host in snapshot.hosts}
    found = RankDrift().of(ranks, hosts, Surveyed(repos=tuple(repos)), pictures.NOW)
    assert found is not None
    return [(item.severity, item.odd) for item in found.differences if item.what == "snapshot"]


def seen(listing: Listing) -> Reading[Any]:
    reading: Reading[Any] = pictures.reading(read_repo(listing), 2, 5.0)
    return reading


@pytest.mark.parametrize(
    "odd",
    [
        seen(WHOLE),
        seen(replace(WHOLE, entries=WHOLE.entries[:1], truncated=True)),
        seen(replace(WHOLE, unread=("snapshots/x: no permission",))),
        seen(Listing("", (), problem="no permission")),
        pictures.unread(),
        pictures.unread(error="no python3: nothing can be looked at"),
        pictures.unread(error="dsv41:watchdog.log (file /mnt/w.log last 65536): the look killed after 60 s"),
    ],
)
def test_a_folder_that_was_not_seen_whole_is_no_other_one(odd: Reading[Any]) -> None:
    """A host without python3, or one whose large cache is listed in part, would be critical for good."""
    assert differences(odd) == []


@pytest.mark.parametrize(
    "odd",
    [
        seen(Listing("", (), problem="missing")),
        seen(Listing("", (), problem="Stale file handle")),
        seen(replace(WHOLE, entries=())),
        pictures.unread(error="dsv41:repo (tree /mnt/dsv41 4 6000): the look killed after 60 s without an answer"),
        pictures.unread(
            error="dsv41:repo (tree /mnt/dsv41 4 6000) has not answered for 12 s; a thread cannot be ended"
        ),
    ],
)
def test_a_folder_that_is_not_well_is_named(odd: Reading[Any]) -> None:
    assert differences(odd) == [("act", (pictures.spark4().lanes[0].ranks[2].host,))]
