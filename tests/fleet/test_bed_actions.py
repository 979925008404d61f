"""The four actions from the command line on real hosts: what the lane is afterwards, and what the ledger says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from acting_cluster import ActingCluster
from acting_console import GOOD, REFUSED, Console, Done, kept, newest, steps_of
from acting_docker import ActingDocker
from acting_fleet import CONTAINER, ActingFleet
from acting_parts import NEW, OLD, STATE
from bed.client import Bed, BedHost

pytestmark = [pytest.mark.bed, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def installed(bed: Bed, three: tuple[BedHost, ...]) -> Iterator[ActingFleet]:
    """The launcher-and-watchdog lane on three hosts."""
    found = ActingFleet(bed, three, boot=1.5)
    try:
        found.install()
        yield found
    finally:
        found.clear()


@pytest.fixture
def fleet(installed: ActingFleet) -> ActingFleet:
    """The same, serving NEW with an armed watchdog."""
    installed.reset()
    return installed


@pytest.fixture
def cluster(bed: Bed) -> Iterator[ActingCluster]:
    """The flag-file lane on two hosts, serving NEW."""
    found = ActingCluster(bed.hosts[:2], boot=1.5)
    try:
        found.install()
        found.serve()
        yield found
    finally:
        found.clear()


def console_for(lane: ActingFleet | ActingDocker | ActingCluster, folder: Path) -> Console:
    """A console over a lane."""
    return Console(lane.fleet_file(folder), folder / "state", lane.name)


def went_well(console: Console, head: BedHost, done: Done) -> None:
    """The command says so, the head's journal says so of every step, and the ledger, here and on the head, too."""
    assert done.code == GOOD, done.text
    operation = newest(head, console.lane)
    steps = steps_of(head, console.lane, operation)
    assert steps and set(steps.values()) <= {"done", "satisfied"}, done.out
    told = [line for line in done.out.splitlines() if line.startswith(("  done ", "  satisfied "))]
    assert len(told) == len(steps), f"every step's end is told: {done.out}"
    assert console.outcome(operation) == "done"
    console.ledger_good()
    copy = [json.loads(line) for line in kept(head, console.lane, "ledger.jsonl").splitlines()]
    assert copy == console.records(), "the head has the same record"
    assert not kept(head, console.lane, "lease"), "the lease was given back"


# --- the launcher-and-watchdog lane


def test_disarm_and_arm_the_fleets_watchdog(fleet: ActingFleet, tmp_path: Path) -> None:
    console, serving = console_for(fleet, tmp_path), fleet.standing()
    went_well(console, fleet.head, console.do("disarm"))
    assert fleet.watchdogs() == [] and fleet.lock() == ""
    debts = json.loads(kept(fleet.head, "dsv41", "debts.json"))
    assert [(one["what"], one["operator"]) for one in debts] == [("watchdog", "ana")]
    assert console.status()["acting"]["value"]["debts"][0]["what"] == "watchdog"

    went_well(console, fleet.head, console.do("arm"))
    pid = fleet.until_armed()
    assert fleet.lock() == str(pid)
    assert not kept(fleet.head, "dsv41", "debts.json"), "the debt is struck out"
    assert fleet.standing() == serving, "the lane served all the time"


def test_stop_and_relaunch_the_fleet(fleet: ActingFleet, tmp_path: Path) -> None:
    console, before = console_for(fleet, tmp_path), fleet.standing()
    went_well(console, fleet.head, console.do("stop"))
    assert fleet.statuses() == ["exited"] * 3 and fleet.watchdogs() == [] and fleet.standing() is None
    folder = f"{STATE}/bed.dsv41/ops/{newest(fleet.head, 'dsv41')}/evidence"
    for host in fleet.hosts:
        saved = host.root("sh", "-c", f"cat {folder}/{CONTAINER}.log")
        assert "engram layer 1" in saved, f"the log of {host.name} was kept"
    refused = console.do("arm")
    assert refused.code == REFUSED and fleet.watchdogs() == [], "its next check would relaunch the lane"

    went_well(console, fleet.head, console.do("relaunch"))
    after = fleet.standing()
    assert before is not None and after is not None
    assert (after.revision, after.rows, after.started > before.started) == (NEW, before.rows, True)
    pid = fleet.until_armed()
    units = fleet.head.root("sh", "-c", "systemctl list-units --all 'laneswap-*' --plain --no-legend | wc -l")
    assert units.strip() == "0" and fleet.watchdogs() == [pid], "it lives on though the unit that started it is gone"


def test_roll_the_fleet_back_and_forward(fleet: ActingFleet, tmp_path: Path) -> None:
    """One rank's old rows are gone: they are built anew. Afterwards the same key leads to where it came from."""
    fleet.drop_rows(1, OLD)
    console = console_for(fleet, tmp_path)
    went_well(console, fleet.head, console.do("rollback"))
    found = fleet.standing()
    assert found is not None and (found.revision, found.rows) == (OLD, {0: "own", 1: "own", 2: "own"})
    assert fleet.site_revision() == OLD
    fleet.until_armed()
    site = fleet.head.root("stat", "-c", "%U %a", f"{fleet.root}/launch/fleet.env").split()
    assert site == [fleet.head.user, "644"]

    went_well(console, fleet.head, console.do("rollback"))
    found = fleet.standing()
    assert found is not None and (found.revision, found.rows) == (NEW, {0: "own", 1: "own", 2: "own"})
    assert fleet.site_revision() == NEW


@pytest.mark.soak  # test_bed_docker_actions.py says it of another recipe
def test_a_plan_that_was_looked_at_is_the_one_that_goes(fleet: ActingFleet, tmp_path: Path) -> None:
    console = console_for(fleet, tmp_path)
    looked_at = console.plan("stop")["plan"]
    fleet.end_watchdogs()
    fleet.hosts[1].docker("rm", "--force", CONTAINER)
    done = console.run("do", "dsv41", "stop", "--plan", looked_at)
    assert done.code == REFUSED and "running" in fleet.statuses(), done.text
    assert not newest(fleet.head, "dsv41"), "nothing was sent"


# --- the Docker lane


@pytest.mark.soak  # as test_bed_docker_actions.py does, with other questions
def test_the_actions_on_the_docker_lane(lane: ActingDocker, tmp_path: Path) -> None:
    console, ids = console_for(lane, tmp_path), {name: seen.id for name, seen in lane.containers().items()}
    new, old = lane.id_of(NEW), lane.id_of(OLD)
    refused = console.do("disarm")
    assert refused.code == REFUSED and "has no watchdog" in refused.text

    went_well(console, lane.host, console.do("stop"))
    assert lane.running() == [] and lane.standing() is None
    went_well(console, lane.host, console.do("relaunch"))
    assert {name: seen.id for name, seen in lane.containers().items()} == ids, "started again, not made anew"
    found = lane.standing()
    assert found is not None and found.revision == NEW

    went_well(console, lane.host, console.do("rollback"))
    found = lane.standing()
    assert found is not None and found.revision == OLD
    names = {seen.id: name for name, seen in lane.containers().items()}
    assert names == {
        new: "dsv41-vllm-v21-fused-split-RETIRED-REF",
        old: "dsv41-vllm-v20-nightly-BOUND-REF",
    }, "the names carry the state"

    went_well(console, lane.host, console.do("rollback"))
    found = lane.standing()
    assert found is not None and found.revision == NEW
    assert {name: seen.id for name, seen in lane.containers().items()} == ids


@pytest.mark.soak  # within test_bed_docker_actions.py
def test_restart_policies_go_with_the_roles(lane: ActingDocker, tmp_path: Path) -> None:
    new, old = lane.id_of(NEW), lane.id_of(OLD)
    lane.restart_policy(new, "unless-stopped")
    console = console_for(lane, tmp_path)
    went_well(console, lane.host, console.do("rollback"))
    policies = {seen.id: seen.restart for seen in lane.containers().values()}
    assert policies == {new: "no", old: "unless-stopped"}, "what is kept stopped does not come back by itself"


# --- the flag-file lane


def test_the_actions_on_the_flag_file_lane(cluster: ActingCluster, tmp_path: Path) -> None:
    console, before = console_for(cluster, tmp_path), cluster.standing()
    went_well(console, cluster.head, console.do("disarm"))
    assert cluster.flags() == ["pause"] and cluster.watchdog_active()
    went_well(console, cluster.head, console.do("arm"))
    assert cluster.flags() == [] and cluster.standing() == before

    went_well(console, cluster.head, console.do("stop"))
    assert cluster.statuses() == ["absent"] * 2 and cluster.flags() == ["pause"]
    went_well(console, cluster.head, console.do("relaunch"))
    after = cluster.standing()
    assert before is not None and after is not None and after.revision == NEW and after.started > before.started
    assert cluster.flags() == [] and cluster.watchdog_active()
