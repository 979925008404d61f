"""The fleets to act on behave as those that they stand for: by hand over ssh, and as the console's feed sees them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from acting_cluster import ActingCluster
from acting_docker import RETIRED, SERVING, ActingDocker
from acting_fleet import CONTAINER, ActingFleet
from acting_parts import NEW, OLD
from bed.client import Bed, BedHost
from bed.system import wait_for
from bed_watch import LaneWatch, feeding

from console.readings.health import LaneState
from console.readings.watchdog import WatchdogState
from console.snapshot import LaneView
from console.wayback import way_back

pytestmark = [pytest.mark.bed, pytest.mark.soak, pytest.mark.timeout(420)]

SERVES = (LaneState.SERVING, LaneState.READY, LaneState.IDLE)
DRY = "bash recipe/launch/production.sh --dry-run"


@pytest.fixture(scope="module")
def fleet(bed: Bed, three: tuple[BedHost, ...]) -> Iterator[ActingFleet]:
    """The launcher-and-watchdog lane on three hosts, installed."""
    found = ActingFleet(bed, three)
    try:
        found.install()
        yield found
    finally:
        found.clear()


@pytest.fixture
def serving_fleet(fleet: ActingFleet) -> ActingFleet:
    """The same, serving NEW with an armed watchdog."""
    fleet.reset()
    return fleet


@pytest.fixture
def docker(three: tuple[BedHost, ...]) -> Iterator[ActingDocker]:
    """The Docker lane on one host, serving."""
    found = ActingDocker(three[1])
    try:
        found.install()
        found.serve()
        yield found
    finally:
        found.clear()


@pytest.fixture
def cluster(bed: Bed) -> Iterator[ActingCluster]:
    """The flag-file lane on two hosts, serving."""
    found = ActingCluster(bed.hosts[:2])
    try:
        found.install()
        found.serve()
        yield found
    finally:
        found.clear()


# --- the launcher-and-watchdog lane, by hand


def by_hand(fleet: ActingFleet, command: str) -> tuple[int, str]:
    """Exit code and both outputs of a command on the head, over ssh."""
    out = fleet.head.ssh(f"{{ {command}; }} 2>&1; echo exit $?", limit=120)
    text, _, code = out.rstrip().rpartition("exit ")
    return int(code), text


def test_the_launcher_stops_tells_and_starts_as_the_real_one(serving_fleet: ActingFleet) -> None:
    fleet = serving_fleet
    before = fleet.standing()
    assert before is not None and (before.revision, set(before.rows.values())) == (NEW, {"own"})

    code, dry = by_hand(fleet, DRY)
    assert code == 0
    parts = re.findall(r"^== rank (\d)\n(mkdir -p \S+; docker run -d --name sgldsv41 .*)$", dry, re.MULTILINE)
    assert [rank for rank, _ in parts] == ["0", "1", "2"]
    assert all(f"--model-path /models/repo/snapshots/{NEW}" in line for _, line in parts)
    site = f"/home/{fleet.head.user}/candidate.env"
    fleet.head.write(site, fleet.site_text(OLD))
    _, candidate = by_hand(fleet, f"FLEET_ENV={site} {DRY}")
    changed = set(re.findall(r"\S+", candidate)) ^ set(re.findall(r"\S+", dry))
    assert all(OLD in word or NEW in word or "dsv41-engram-" in word for word in changed), changed
    fleet.drift(1, 4)
    _, drifted = by_hand(fleet, DRY)
    changed = set(re.findall(r"\S+", drifted)) ^ set(re.findall(r"\S+", dry))
    assert changed == {"NCCL_IB_GID_INDEX=4"}
    fleet.head.root("rm", site)
    assert fleet.standing() == before, "a dry run changes nothing"

    fleet.end_watchdogs()
    code, told = by_hand(fleet, "bash recipe/launch/production.sh --stop")
    assert code == 0 and re.findall(r"^  .*$", told, re.MULTILINE) == [f"  stopped rank {rank}" for rank in range(3)]
    assert fleet.statuses() == ["absent"] * 3 and fleet.standing() is None
    code, told = by_hand(fleet, "bash recipe/launch/production.sh --stop")
    assert "  rank 0: nothing to stop" in told

    fleet.write_site(OLD)
    after = fleet.serve()
    assert (after.revision, after.rows) == (OLD, {0: "own", 1: "own", 2: "own"})


def test_a_relaunch_that_fails_says_so_in_the_real_words(serving_fleet: ActingFleet) -> None:
    fleet = serving_fleet
    before = fleet.standing()
    fleet.drop_rows(2, NEW)
    code, told = by_hand(fleet, "bash recipe/launch/relaunch.sh")
    assert code == 1 and "launch failed — the fleet is DOWN and the watchdog is DISARMED" in told
    log = fleet.head.ssh("cat $(ls -t sgl-dsv41-logs/*.log | head -n 1)")
    assert "rank 2: image-ok overlay-ok rows-MISSING — image" in log
    assert "ABORT preflight (nothing was stopped or started)" in log
    assert fleet.standing() == before, "it says DOWN, and the old engine serves"
    assert fleet.watchdogs() == []
    fleet.build(2, NEW)

    # the launcher waits for the head alone: a worker's death leaves it waiting
    fleet.fault(1, dies=1)
    code, told = by_hand(fleet, "READY_LIMIT=8 bash recipe/launch/relaunch.sh")
    assert code == 2 and "not healthy after 40 min" in told
    assert fleet.statuses() == ["running", "exited", "running"]
    assert "CUDA error" in fleet.hosts[1].root("sh", "-c", f"docker logs {CONTAINER} 2>&1")

    fleet.heal()
    fleet.fault(0, dies=1)
    code, told = by_hand(fleet, "bash recipe/launch/relaunch.sh")
    assert code == 3 and "head container exited" in told
    wait_for(lambda: fleet.statuses() == ["exited"] * 3, "the workers ended with their head", limit=20)
    codes = [seen.exit_code for seen in fleet.states().values() if seen]
    assert codes == [1, 0, 0]

    fleet.heal()
    host = fleet.hosts[1]
    with host.ssh_stopped():
        code, told = by_hand(fleet, DRY)
        assert code == 1 and f"ABORT: rank 1: cannot ssh to {host.user}@{host.address}: ssh: connect" in told


def test_old_rows_under_a_new_revision_serve_and_only_the_engine_knows(serving_fleet: ActingFleet) -> None:
    fleet = serving_fleet
    home = f"/home/{fleet.head.user}"
    fleet.end_watchdogs()
    fleet.head.root("sed", "-i", f"s#^SNAP=.*#SNAP=snapshots/{OLD}#", f"{home}/recipe/launch/fleet.env")
    code, _ = by_hand(fleet, "bash recipe/launch/relaunch.sh")
    assert code == 0
    found = fleet.standing()
    assert found is not None and (found.revision, found.rows) == (OLD, {0: "own", 1: "foreign", 2: "foreign"})


def test_a_fleet_whose_rows_do_not_tile_does_not_boot(serving_fleet: ActingFleet) -> None:
    fleet = serving_fleet
    fleet.build(1, NEW, ranges=fleet.ranges(2))
    code, _ = by_hand(fleet, "bash recipe/launch/relaunch.sh")
    assert code == 3
    logs = [host.root("sh", "-c", f"docker logs {CONTAINER} 2>&1") for host in fleet.hosts]
    assert all("engram layer 1: the TP ranks' row ranges do not tile [0, 24000) exactly" in log for log in logs)
    fleet.build(1, NEW)


def test_the_watchdog_recovers_a_lane_that_lost_a_rank(serving_fleet: ActingFleet) -> None:
    fleet = serving_fleet
    before, pid = fleet.standing(), fleet.watchdogs()[0]
    fleet.hosts[1].docker("kill", CONTAINER)
    wait_for(lambda: "RECOVERY attempt 1/3" in fleet.watchdog_log(), "the watchdog recovers", limit=90)
    wait_for(lambda: "fleet healthy" in fleet.watchdog_log(), "the watchdog's launch is healthy", limit=60)
    after = fleet.standing()
    assert before is not None and after is not None and after.started > before.started
    assert fleet.until_armed() == pid


# --- as the console sees it


async def until_lane(watch: LaneWatch, *states: LaneState) -> LaneView:
    """Wait until the lane is in one of these."""
    return await watch.until(lambda view: view if view.verdict.state in states else None, f"{states}")


async def until_watchdog(watch: LaneWatch, state: WatchdogState) -> None:
    """Wait until the watchdog is in this state."""

    def seen(view: LaneView) -> bool:
        found = view.watchdog.current(watch.feed.snapshot().now) if view.watchdog else None
        return found is not None and found.state is state

    await watch.until(seen, f"watchdog {state}", lambda view: view.watchdog)


async def until_way(watch: LaneWatch, possible: bool | None, revision: str = "") -> str:
    """Wait until the way back is so; the reason in its words."""

    def seen(view: LaneView) -> bool:
        found = way_back(watch.feed.snapshot(), view)
        return found.possible is possible and (not revision or found.revision == revision)

    def tell(view: LaneView) -> object:
        return way_back(watch.feed.snapshot(), view)

    await watch.until(seen, f"way back {possible} to {revision}", tell)
    return way_back(watch.feed.snapshot(), watch.view()).why


async def test_the_console_sees_the_fleet_serve_lose_a_rank_and_boot(
    serving_fleet: ActingFleet, tmp_path: Path
) -> None:
    fleet = serving_fleet
    async with feeding(fleet.fleet_file(tmp_path), fleet.hosts) as feed:
        watch = LaneWatch(feed, "dsv41")
        view = await until_lane(watch, *SERVES)
        await until_watchdog(watch, WatchdogState.ARMED)
        await until_way(watch, True, OLD)
        await watch.until(
            lambda view: [rank.revision for rank in view.ranks] == [NEW] * 3,
            "all ranks with their revision",
            lambda view: view.ranks,
        )
        assert not view.unfilled

        await asyncio.to_thread(fleet.end_watchdogs)
        await asyncio.to_thread(fleet.hosts[2].docker, "kill", CONTAINER)
        view = await until_lane(watch, LaneState.DEGRADED)
        assert "exited 137" in view.verdict.why

        for rank in range(3):
            await asyncio.to_thread(lambda rank=rank: fleet.fault(rank, boot=8))  # type: ignore[misc]
        relaunch = asyncio.create_task(asyncio.to_thread(by_hand, fleet, "bash recipe/launch/relaunch.sh"))
        await until_lane(watch, LaneState.BOOTING)
        await watch.until(
            lambda view: view.boot is not None and view.boot.value is not None and view.boot.value.now is not None,
            "a phase of the boot",
            lambda view: view.boot,
        )
        assert (await relaunch)[0] == 0
        await until_lane(watch, *SERVES)
        await until_watchdog(watch, WatchdogState.ARMED)


async def test_the_console_sees_the_docker_lane_and_what_takes_its_way_back(
    docker: ActingDocker, tmp_path: Path
) -> None:
    async with feeding(docker.fleet_file(tmp_path), docker.hosts) as feed:
        watch = LaneWatch(feed, "station")
        view = await until_lane(watch, *SERVES)
        assert view.ranks[0].revision == NEW
        await until_way(watch, True, OLD)
        await asyncio.to_thread(docker.behind, "stop", SERVING)
        await until_lane(watch, LaneState.DOWN)
        await asyncio.to_thread(docker.behind, "start", RETIRED)
        await until_lane(watch, *SERVES)
        await asyncio.to_thread(docker.behind, "stop", RETIRED)
        await asyncio.to_thread(docker.behind, "start", SERVING)
        await until_lane(watch, *SERVES)
        await asyncio.to_thread(docker.remove_retired)
        await until_way(watch, False)


def test_the_faults_of_the_docker_lane_are_those_of_docker(docker: ActingDocker) -> None:
    state = docker.containers()
    assert state[SERVING].up and not state[RETIRED].up and state[RETIRED].exit_code == 0
    docker.behind("stop", SERVING)

    docker.replace_source(OLD, NEW)
    docker.behind("start", RETIRED)
    docker.until_healthy()
    found = docker.standing()
    assert found is not None and found.revision == NEW, "the path says OLD, the files are NEW's"
    docker.behind("stop", RETIRED)

    docker.remove_source(OLD)
    docker.behind("start", RETIRED)
    wait_for(lambda: not docker.running(), "without its files it ends at once", limit=20)
    assert docker.containers()[RETIRED].exit_code == 1
    assert docker.host.root("ls", "-A", docker.folder(OLD)) == "", "docker start made an empty folder"

    docker.reset()
    docker.fault(NEW, deaf=1)
    docker.behind("restart", "-t", "1", SERVING)
    docker.until_healthy()
    docker.behind("stop", "-t", "1", SERVING)
    assert docker.containers()[SERVING].exit_code == 137, "it had to be killed"
    with docker.port_taken():
        docker.behind("start", RETIRED)
        wait_for(lambda: RETIRED not in docker.running(), "it ends: its port is taken", limit=30)
    docker.remove_image()
    docker.behind("start", RETIRED)
    docker.until_healthy()
    docker.behind("stop", RETIRED)
    docker.restart_policy(RETIRED, "always")
    assert docker.containers()[RETIRED].restart == "always"


async def test_the_console_sees_the_flag_file_lane_and_its_watchdog(cluster: ActingCluster, tmp_path: Path) -> None:
    async with feeding(cluster.fleet_file(tmp_path), cluster.hosts) as feed:
        watch = LaneWatch(feed, "cluster")
        await until_lane(watch, *SERVES)
        await until_watchdog(watch, WatchdogState.ARMED)
        await asyncio.to_thread(cluster.hosts[1].docker, "kill", "vllm_dsv41")
        await asyncio.to_thread(cluster.until_logged, "=== RECOVERY OK")
        await until_lane(watch, *SERVES)
        await asyncio.to_thread(cluster.head.ssh, "bash cluster/launch/cluster.sh down")
        await until_watchdog(watch, WatchdogState.PAUSED)
        await until_lane(watch, LaneState.DOWN)
        assert cluster.flags() == ["pause"] and cluster.statuses() == ["absent"] * 2
        assert cluster.watchdog_active()
