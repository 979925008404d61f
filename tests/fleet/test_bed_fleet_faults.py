"""What goes wrong while the launcher-and-watchdog lane is acted upon, on three real hosts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from acting_console import (
    GOOD,
    NEEDS_OPERATOR,
    REFUSED,
    Console,
    ended,
    journal,
    kept,
    newest,
    steps_of,
    until_ended,
    until_step,
)
from acting_fleet import CONTAINER, ActingFleet
from acting_parts import NEW, OLD, STATE, shut_out
from bed.client import Bed, BedHost
from bed.system import wait_for

pytestmark = [pytest.mark.bed, pytest.mark.soak, pytest.mark.timeout(900)]

LAUNCHES = "launch/relaunch.sh", "launch/production.sh"


@pytest.fixture(scope="module")
def installed(bed: Bed, three: tuple[BedHost, ...]) -> Iterator[ActingFleet]:
    """The lane on three hosts."""
    found = ActingFleet(bed, three)
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
def console(fleet: ActingFleet, tmp_path: Path) -> Console:
    """One operator's console."""
    return Console(fleet.fleet_file(tmp_path), tmp_path / "state", fleet.name)


def launches(fleet: ActingFleet) -> list[str]:
    """Command lines of launches that are under way on the head."""
    rows = fleet.head.root("ps", "-ww", "-e", "-o", "args=").splitlines()
    return [row for row in rows if any(part in row for part in LAUNCHES) and "ps -ww" not in row]


def signal_launch(fleet: ActingFleet, word: str) -> list[str]:
    """Send a signal to the launchers that run on the head; their pids."""
    rows = [row.split(None, 1) for row in fleet.head.root("ps", "-ww", "-e", "-o", "pid=,args=").splitlines()]
    pids = [pid for pid, args in rows if "launch/production.sh" in args]
    assert pids, "a launcher runs"
    fleet.head.root("kill", f"-{word}", *pids, check=False)
    return pids


def test_a_preflight_that_fails_is_told_truthfully(fleet: ActingFleet, console: Console) -> None:
    """The launcher says `the fleet is DOWN`, though nothing was stopped: the old engine serves, unwatched."""
    before = fleet.standing()
    fleet.drop_rows(2, NEW)
    try:
        done = console.do("relaunch")
        assert done.code == NEEDS_OPERATOR, done.text
        last = next(one for one in reversed(journal(fleet.head, "dsv41")) if one.get("id") == "launch")
        assert "replaced nothing" in last["words"], last
        assert fleet.standing() == before and fleet.statuses() == ["running"] * 3
        assert kept(fleet.head, "dsv41", "debts.json") or fleet.watchdogs(), "the watchdog is armed, or owed"
        console.ledger_good()
    finally:
        fleet.build(2, NEW)


def test_a_worker_that_dies_at_boot_ends_the_launcher_at_once(fleet: ActingFleet, console: Console) -> None:
    """The launcher alone would wait for its head as long as it has patience."""
    fleet.fault(1, dies=2)
    for rank in (0, 2):
        fleet.fault(rank, boot=30)
    done = console.do("relaunch")
    assert done.code == NEEDS_OPERATOR, done.text
    assert steps_of(fleet.head, "dsv41")["launch"] == "failed"
    last = next(one for one in reversed(journal(fleet.head, "dsv41")) if one.get("id") == "launch")
    assert fleet.hosts[1].name in last["words"], last
    assert launches(fleet) == [], "no launcher waits any more"
    assert "running" not in fleet.statuses(), "the survivors were stopped"
    folder = f"{STATE}/bed.dsv41/ops/{newest(fleet.head, 'dsv41')}/evidence"
    logs = fleet.hosts[1].root("sh", "-c", f"cat {folder}/*.log")
    assert "CUDA error" in logs, "the log of the rank that died was kept"
    assert fleet.watchdogs() == [] and kept(fleet.head, "dsv41", "debts.json")
    console.ledger_good()

    fleet.heal()
    leads_to = console.plan("rollback")["to"]
    done = console.do("rollback")
    assert done.code == GOOD, done.text
    found = fleet.standing()
    assert found is not None and found.revision.startswith(leads_to) and set(found.rows.values()) == {"own"}
    fleet.until_armed()
    assert not kept(fleet.head, "dsv41", "debts.json")


@pytest.mark.parametrize("step", ["disarm", "edit-site", "launch"])
def test_a_console_that_is_killed_is_not_needed(fleet: ActingFleet, console: Console, step: str) -> None:
    """The lid is closed right after the stop, or before: the lane serves again, watched, without any console."""
    with console.doing("rollback") as process:
        until_step(fleet.head, "dsv41", step, "running" if step == "launch" else "done")
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert until_ended(fleet.head, "dsv41") == "done"
    found = fleet.standing()
    assert found is not None and (found.revision, fleet.site_revision()) == (OLD, OLD)
    fleet.until_armed()
    attached = console.run("attach", "dsv41")
    assert attached.code == GOOD and "DONE" in attached.out, attached.text
    assert console.outcome(newest(fleet.head, "dsv41")) == "done"
    console.ledger_good()


def test_a_knob_in_the_operators_shell_does_not_reach_the_engine(fleet: ActingFleet, console: Console) -> None:
    home = f"/home/{fleet.head.user}"
    fleet.head.root("sh", "-c", f"echo 'export CHUNK=4096 EXTRA_ARGS=--leaked' >>{home}/.profile")
    try:
        console.more = {"CHUNK": "4096"}
        done = console.do("relaunch")
        assert done.code == GOOD, done.text
        argv = fleet.head.docker("inspect", "--format", '{{join .Args " "}}', CONTAINER)
        assert "--chunked-prefill-size 2048" in argv and "--leaked" not in argv
    finally:
        fleet.head.root("sed", "-i", "/export CHUNK=/d", f"{home}/.profile")


def test_a_head_that_reaches_no_rank_leaves_the_sequence_in_the_console(fleet: ActingFleet, console: Console) -> None:
    """It is said when it begins; cut in the middle, every console says what is half done and what is next."""
    fleet.end_watchdogs()
    shut_out(fleet.head, fleet.clients)
    try:
        with console.doing("stop") as process:
            until_step(fleet.head, "dsv41", "stop-", "running")
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        begin = journal(fleet.head, "dsv41")[0]
        assert begin["runs_on"] == "console"
        attached = console.run("attach", "dsv41")
        assert "HALF DONE" in attached.text and "next: stop" in attached.text, attached.text
        done = console.do("stop")
        assert done.code == GOOD and "keep it open" in done.out, done.text
        assert fleet.statuses() == ["exited"] * 3
        console.ledger_good()
    finally:
        fleet.clear()
        fleet.install()


def test_a_rank_out_of_reach_for_a_while_holds_the_stop_up_and_no_more(fleet: ActingFleet, console: Console) -> None:
    with console.doing("stop") as process:
        until_step(fleet.head, "dsv41", "disarm", "done")
        with fleet.hosts[2].dropped():
            wait_for(lambda: fleet.states()[fleet.head.name].status == "exited", "the head is stopped", limit=60)  # type: ignore[union-attr]
        assert process.wait(200) == GOOD
    assert fleet.statuses() == ["exited"] * 3
    assert ended(fleet.head, "dsv41") == "done"
    console.ledger_good()


def test_a_watchdog_whose_launch_is_under_way_is_left_alone(fleet: ActingFleet, console: Console) -> None:
    """Ended half-way it would leave containers that nobody looks after."""
    for rank in range(3):
        fleet.fault(rank, boot=25)
    fleet.hosts[1].docker("kill", CONTAINER)
    wait_for(lambda: "running launch/production.sh" in fleet.watchdog_log(), "the watchdog launches", limit=90)
    pid = fleet.watchdogs()
    held = signal_launch(fleet, "STOP")
    try:
        done = console.do("disarm")
        assert done.code in (NEEDS_OPERATOR, REFUSED) and "launch is under way" in done.text, done.text
        assert fleet.watchdogs() == pid
    finally:
        fleet.head.root("kill", "-CONT", *held, check=False)


def test_an_operators_own_relaunch_underneath_is_not_run_into(fleet: ActingFleet, console: Console) -> None:
    for rank in range(3):
        fleet.fault(rank, boot=20)
    fleet.head.ssh("nohup bash recipe/launch/relaunch.sh >/dev/null 2>&1 </dev/null &")
    wait_for(lambda: bool(launches(fleet)), "a relaunch by hand runs", limit=20)
    done = console.do("relaunch")
    assert done.code in (NEEDS_OPERATOR, REFUSED) and "launch" in done.text, done.text
    fleet.until_healthy()
    fleet.until_armed()
    found = fleet.standing()
    assert found is not None and found.revision == NEW
