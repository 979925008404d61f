"""Engram row copies with the real layout, built on real hosts: sparse shards, ranges, the manifest last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import engram_build
import pytest
from bed.client import Bed, BedHost
from bed_lane import NEW, OLD, ROWS, SmallLane
from bed_watch import LaneWatch, feeding

from console.alarms import alarms
from console.feed import Feed
from console.fleet import looks
from console.readings.rows import RowCopies, RowCopy, RowState
from console.snapshot import LaneView

pytestmark = [pytest.mark.bed, pytest.mark.timeout(420)]

SMALL_DISK = "/srv/small"
HURRY = "/srv/hurry"
"""A file that is made once a slow build was seen."""
SLOWLY = 0.25
"""MB a second: a copy of 16 MB would take a minute."""
NEXT = f"""
[lanes.dsv41.next]
revision = "{NEW}"
rows = "{SMALL_DISK}/next"
"""


@pytest.fixture
def lane(bed: Bed, three: tuple[BedHost, ...]) -> Iterator[SmallLane]:
    """fleet.env names the new revision; no copies yet; rank 1 has a disk that is too small for the next copy."""
    found = SmallLane(bed, three)
    found.write_site(NEW)
    host = found.hosts[1]
    host.root("mkdir", "-p", SMALL_DISK)
    host.root("mount", "-t", "tmpfs", "-o", "size=8m,mode=1777", "tmpfs", SMALL_DISK)
    host.root("mkdir", "--mode=1777", f"{SMALL_DISK}/next")
    yield found
    host.root("umount", SMALL_DISK)
    for one in found.hosts:
        one.root("rm", "-f", HURRY)
    found.clear()


async def test_copies_are_shown_while_they_are_built_and_for_what_they_are(
    lane: SmallLane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "SLOW_S", 1.5)
    async with feeding(lane.fleet_file(tmp_path, NEXT), lane.hosts) as feed:
        watch = LaneWatch(feed, "dsv41")
        found = await watch.until(
            lambda view: view.site.value if view.site else None, "the site file", lambda view: view.site
        )
        assert found.revision == NEW
        await until_copy(watch, 0, RowState.SHARDS)
        await asyncio.gather(first_rank(feed, watch, lane), second_rank(watch, lane))
        copies = await until_tiled(watch, True)
        assert copies.tiling.family == "N*r//tp (SGLang)"
        assert not row_alarms(feed)

        # a part of another partition leaves a gap
        other = [f"{layer}:{rows * 2 // 3 + 400}:{rows}" for layer, rows in engram_build.TABLES.items()]
        await asyncio.to_thread(lane.build, 2, NEW, ranges=other)
        copies = await until_tiled(watch, False)
        assert copies.copies[2].state is RowState.WRONG_RANGES and "gap" in copies.tiling.words
        assert any(key.startswith("tiling:") for key in row_alarms(feed))


async def first_rank(feed: Feed, watch: LaneWatch, lane: SmallLane) -> None:
    """Built slowly; meanwhile its next copy does not fit. Then one with holes."""
    await until_copy(watch, 1, RowState.WAITS)
    building = asyncio.create_task(asyncio.to_thread(lane.build, 1, NEW, f"--mb-s={SLOWLY}", f"--hurry={HURRY}"))
    found = await until_copy(watch, 1, RowState.COPYING, "copying, no manifest")
    whole = {layer: engram_build.HEADER + rows * engram_build.ROW for layer, rows in engram_build.TABLES.items()}
    assert found.apparent in (whole[1], sum(whole.values())), "shards have their whole size at once"
    found = await watch.until(lambda view: moving(view, 1), "a rate and a share", lambda view: view.rows)
    assert found.rate == pytest.approx(SLOWLY * 1e6, rel=0.5)
    assert found.share is not None and 0 < found.share < 1 and found.left is not None
    assert found.basis == "its share of the tables"
    await next_rank(watch, lane)
    await asyncio.to_thread(lane.hosts[1].root, "touch", HURRY)
    await building
    found = await until_copy(watch, 1, RowState.READY)
    assert found.manifest is not None and found.manifest.revision == NEW
    assert (found.present or 0) >= found.manifest.bytes

    await asyncio.to_thread(remove, lane, 1)
    await asyncio.to_thread(lane.build, 1, NEW, "--holes")
    await until_copy(watch, 1, RowState.HOLES, "missing, rebuild")
    assert any(key == f"rows:dsv41:{lane.hosts[1].name}" for key in row_alarms(feed))
    await asyncio.to_thread(remove, lane, 1)
    await asyncio.to_thread(lane.build, 1, NEW)
    await until_copy(watch, 1, RowState.READY)


async def next_rank(watch: LaneWatch, lane: SmallLane) -> None:
    """The copy for the next revision, on a disk that fills up under the tool."""
    await until_copy(watch, 1, RowState.NO_ROOM, "no room: 1.0 GiB needed", coming=True)
    await asyncio.to_thread(lane.build, 1, NEW, into=f"{SMALL_DISK}/next", check=False)
    found = await watch.until(lambda view: begun(view, 1), "bytes of the next copy", lambda view: view.next_rows)
    assert found.state is RowState.NO_ROOM and found.free == 0 and (found.present or 0) > 6_000_000


async def second_rank(watch: LaneWatch, lane: SmallLane) -> None:
    """Of the old revision; written over; another rank's rows."""
    await asyncio.to_thread(lane.build, 2, OLD)
    await until_copy(watch, 2, RowState.OLD_REVISION, f"old revision {OLD[:8]}")
    building = asyncio.create_task(asyncio.to_thread(lane.build, 2, NEW, f"--mb-s={SLOWLY}", f"--hurry={HURRY}"))
    await until_copy(watch, 2, RowState.COPYING, f"its manifest of {OLD[:8]} is still there")
    await asyncio.to_thread(lane.hosts[2].root, "touch", HURRY)
    await building
    await until_copy(watch, 2, RowState.READY)
    await asyncio.to_thread(remove, lane, 2)
    await asyncio.to_thread(lane.build, 2, NEW, ranges=lane.ranges(1))
    await until_copy(watch, 2, RowState.WRONG_RANK, "the rows of rank 1")
    await asyncio.to_thread(remove, lane, 2)
    await asyncio.to_thread(lane.build, 2, NEW)
    await until_copy(watch, 2, RowState.READY)


def remove(lane: SmallLane, rank: int) -> None:
    """Delete a rank's copy."""
    host = lane.hosts[rank]
    host.root("rm", "-rf", f"/home/{host.user}/{ROWS}")


async def until_copy(watch: LaneWatch, rank: int, state: RowState, words: str = "", *, coming: bool = False) -> RowCopy:
    """Wait for a state of one rank's copy, and for these words."""

    def seen(view: LaneView) -> RowCopy | None:
        found = copy_of(view, rank, coming=coming)
        return found if found is not None and found.state is state and words in found.words else None

    return await watch.until(seen, f"rank {rank} {state} {words}", lambda view: copy_of(view, rank, coming=coming))


def copy_of(view: LaneView, rank: int, *, coming: bool = False) -> RowCopy | None:
    """One rank's copy as last read."""
    reading = view.next_rows if coming else view.rows
    return reading.value.copies[rank] if reading is not None and reading.value is not None else None


def moving(view: LaneView, rank: int) -> RowCopy | None:
    """The copy, once it has a rate."""
    found = copy_of(view, rank)
    return found if found is not None and found.rate else None


def begun(view: LaneView, rank: int) -> RowCopy | None:
    """The next copy, once something of it is there."""
    found = copy_of(view, rank, coming=True)
    return found if found is not None and found.present else None


async def until_tiled(watch: LaneWatch, ok: bool) -> RowCopies:
    """Wait until the ranges of all ranks are known to tile, or not to."""

    def seen(view: LaneView) -> RowCopies | None:
        found = view.rows.value if view.rows else None
        return found if found is not None and found.tiling.ok is ok else None

    return await watch.until(seen, f"tiling {ok}", lambda view: view.rows)


def row_alarms(feed: Feed) -> list[str]:
    """Keys of the alarms about row copies."""
    return [alarm.key for alarm in alarms(feed.snapshot()) if alarm.key.startswith(("rows:", "tiling:"))]
