"""What goes wrong while the Docker lane is acted upon, on a real host: what is said, what is left, what goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from acting_console import (
    GOOD,
    NEEDS_OPERATOR,
    REFUSED,
    UNKNOWN,
    USAGE,
    Console,
    ended,
    journal,
    kept,
    newest,
    steps_of,
    until_ended,
    until_step,
)
from acting_docker import PORT, RETIRED, SERVING, ActingDocker
from acting_operator import Operator
from acting_parts import NEW, OLD, STATE
from bed.client import Bed
from bed.system import wait_for
from bed_watch import own_recipe

pytestmark = [pytest.mark.bed, pytest.mark.timeout(600)]


def starts(lane: ActingDocker, since: str) -> dict[str, int]:
    """How often each container was started since a moment, by Docker's own events."""
    argv = ["events", "--since", since, "--until", now(lane), "--filter", "event=start", "--format", "{{.ID}}"]
    found = lane.host.docker(*argv).split()
    return {name: found.count(name) for name in found}


def now(lane: ActingDocker) -> str:
    """Unix seconds of the host."""
    return lane.host.root("date", "+%s.%N").strip()


# --- the console is killed

POINTS: dict[str, Callable[[ActingDocker, Operator], bool]] = {
    "its intent is on its disk": lambda lane, console: bool(console.records()),
    "the lease is there": lambda lane, console: bool(kept(lane.host, "station", "lease")),
    "the operation has its name": lambda lane, console: bool(newest(lane.host, "station")),
    "the sequence has begun": lambda lane, console: bool(journal(lane.host, "station")),
    "the serving one is stopped": lambda lane, console: f"stop-{lane.host.name}" in steps_of(lane.host, "station"),
    "the retired one boots": lambda lane, console: RETIRED in lane.running(),
    "all is over": lambda lane, console: bool(ended(lane.host, "station")),
}
IN_CI = ("its intent is on its disk", "the lease is there", "the operation has its name")
"""Before anything runs; test_bed_lid.py kills later ones."""


@pytest.mark.parametrize(
    "point", [point if point in IN_CI else pytest.param(point, marks=pytest.mark.soak) for point in POINTS]
)
def test_a_console_that_is_killed_leaves_a_lane_that_serves_and_a_record(
    lane: ActingDocker, ana: Operator, point: str
) -> None:
    """With -9, wherever it is; another console then finishes or finds what was begun, and nothing runs twice."""
    since = now(lane)
    with ana.doing("rollback") as process:
        wait_for(lambda: POINTS[point](lane, ana), point, limit=60, pause=0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    operation = newest(lane.host, "station")
    if operation and (journal(lane.host, "station") or kept(lane.host, "station", f"ops/{operation}/sequence/begun")):
        assert until_ended(lane.host, "station", limit=60) == "done", "it goes on without its console"
    lane.until_healthy()
    found = lane.standing()
    assert found is not None and found.revision in (OLD, NEW), "the lane serves, whatever became of it"

    if found.revision == NEW:
        again = ana.do("rollback")  # what was on its way to its unit may run by now: then it is joined below
        assert again.code == GOOD or "runs already" in again.text, again.text
    attached = ana.run("attach", "station")
    assert attached.code == GOOD and "DONE" in attached.out, attached.text
    found = lane.standing()
    assert found is not None and found.revision == OLD
    assert lane.running() == ["dsv41-vllm-v20-nightly-BOUND-REF"]
    assert starts(lane, since) == {lane.id_of(OLD): 1}, "no step ran twice"
    ana.ledger_good()
    assert ana.outcome(newest(lane.host, "station")) == "done"
    open_ends = {one["op"] for one in ana.records() if one["kind"] == "intent"}
    assert all(ana.outcome(name) for name in open_ends), f"every intent has an outcome: {ana.records()}"


def test_a_host_that_is_out_of_reach_for_a_while_finishes_by_itself(lane: ActingDocker, ana: Operator) -> None:
    lane.fault(OLD, boot=6)
    with ana.doing("rollback") as process:
        until_step(lane.host, "station", f"stop-{lane.host.name}", "done")
        with lane.host.dropped():
            wait_for(lambda: ended(lane.host, "station") == "done", "it ends without us", limit=60)
        assert process.wait(120) in (GOOD, UNKNOWN)
    attached = ana.run("attach", "station")
    assert attached.code == GOOD, attached.text
    found = lane.standing()
    assert found is not None and found.revision == OLD
    ana.ledger_good()


@pytest.mark.soak  # test_bed_cut.py cuts the sessions as well
def test_ssh_that_is_killed_and_restarted_does_not_matter(lane: ActingDocker, ana: Operator) -> None:
    lane.fault(OLD, boot=6)
    with ana.doing("rollback") as process:
        until_step(lane.host, "station", f"stop-{lane.host.name}", "done")
        lane.host.kill_ssh_sessions()
        lane.host.root("systemctl", "restart", "ssh.service")
        assert process.wait(120) == GOOD
    assert set(steps_of(lane.host, "station").values()) == {"done"}
    ana.ledger_good()


def test_a_host_that_reboots_in_the_middle_says_what_is_half_done_and_is_carried_on(
    lane: ActingDocker, ana: Operator, bed: Bed
) -> None:
    lane.fault(OLD, boot=30)
    with ana.doing("rollback") as process:
        until_step(lane.host, "station", "start-", "running")
        wait_for(lambda: RETIRED in lane.running(), "the retired one boots", limit=30)
        lane.host.root("systemctl", "reboot", check=False)
        bed.restart(lane.host)
        process.wait(120)
    lane.fault(OLD)
    attached = ana.run("attach", "station")
    assert attached.code in (NEEDS_OPERATOR, UNKNOWN) and "next: start" in attached.out, attached.text
    went_on = ana.run("attach", "station", "--carry-on", "--yes-lane", "station")
    assert went_on.code == GOOD and "DONE" in went_on.out, went_on.text
    found = lane.standing()
    assert found is not None and found.revision == OLD
    assert lane.running() == ["dsv41-vllm-v20-nightly-BOUND-REF"]
    ana.ledger_good()


@pytest.mark.soak  # test_bed_cut.py has one
def test_a_full_disk_at_the_head_sends_nothing(lane: ActingDocker, ana: Operator) -> None:
    lane.host.ssh(f"mkdir -p {STATE}")
    uid = lane.host.root("id", "-u", lane.host.user).strip()
    lane.host.root("mount", "-t", "tmpfs", "-o", f"size=64k,mode=755,uid={uid}", "tmpfs", STATE)
    try:
        lane.host.root("sh", "-c", f"head -c 100000 /dev/zero >{STATE}/full", check=False)
        before = lane.standing()
        done = ana.do("stop")
        assert done.code == USAGE and "BREAK-GLASS" in done.text and "give --reason" in done.text, done.text
        assert "state folder is broken" in done.text and lane.standing() == before
    finally:
        lane.host.root("umount", STATE)
    done = ana.do("stop")
    assert done.code == GOOD and lane.running() == [], done.text
    ana.ledger_good()


# --- two operators


def test_who_comes_second_is_told_who_holds_the_lane(lane: ActingDocker, ana: Operator, ben: Operator) -> None:
    lane.fault(OLD, boot=25)
    with ana.doing("rollback") as process:
        until_step(lane.host, "station", f"stop-{lane.host.name}", "done")
        denied = ben.do("stop")
        assert denied.code == REFUSED and "ana" in denied.text, denied.text
        attached = ben.run("attach", "station")
        assert attached.code == GOOD, attached.text
        assert process.wait(60) == GOOD
    assert ben.records() == [] and lane.standing() is not None


@pytest.mark.soak  # test_bed_cut.py has two
def test_a_console_that_slept_is_fenced_off(lane: ActingDocker, ana: Operator, ben: Operator) -> None:
    """ana's laptop sleeps while ben takes the lane over and rolls back; awake again she is told, and sends nothing."""
    lane.fault(NEW, boot=25)
    with ana.doing("relaunch") as process:
        until_step(lane.host, "station", "start-", "running")
        process.send_signal(signal.SIGSTOP)
        done = ben.do("rollback", "--take-over")
        assert done.code == GOOD, done.text
        process.send_signal(signal.SIGCONT)
        assert process.wait(90) != GOOD
    found = lane.standing()
    assert found is not None and found.revision == OLD and lane.running() == ["dsv41-vllm-v20-nightly-BOUND-REF"]
    taken = [one for one in ben.records() if one["kind"] == "takeover"]
    assert taken and all(name in taken[0]["text"] for name in ("ana", "ben")), "the ledger names both"
    ana.ledger_good()
    ben.ledger_good()


# --- foreign hands and containers that do not do as they are told


def test_a_retired_container_that_is_removed_after_the_look_is_refused(lane: ActingDocker, ana: Operator) -> None:
    looked_at = ana.plan("rollback")["plan"]
    lane.remove_retired()
    before = lane.standing()
    done = ana.run("do", "station", "rollback", "--plan", looked_at)
    assert done.code == REFUSED and lane.standing() == before, done.text
    plan = ana.plan("rollback")
    assert plan["refused"], "no way back is left"


def test_a_bind_source_that_is_gone_is_no_way_back(lane: ActingDocker, ana: Operator) -> None:
    """Docker would make an empty folder of it at the start, and the engine would end at once."""
    lane.remove_source(OLD)
    before = lane.standing()
    done = ana.do("rollback")
    assert done.code == REFUSED and lane.folder(OLD) in done.text, done.text
    assert lane.standing() == before


@pytest.mark.soak  # test_bed_underneath.py has one
def test_a_retired_container_that_exits_at_once_fails_the_rollback_and_says_so(
    lane: ActingDocker, ana: Operator
) -> None:
    lane.fault(OLD, dies=0)
    done = ana.do("rollback")
    assert done.code == NEEDS_OPERATOR, done.text
    assert ended(lane.host, "station") in ("failed", "half done") and "exited with 1" in done.text
    assert lane.running() == []
    evidence = f"{STATE}/bed.station/ops/{newest(lane.host, 'station')}/evidence"
    assert RETIRED in lane.host.root("ls", evidence), "its log was kept"
    assert {one["result"] for one in ana.records() if one["kind"] == "outcome"} <= {"failed", "half done"}
    ana.ledger_good()
    back = ana.do("relaunch")
    assert back.code == GOOD, back.text
    found = lane.standing()
    assert found is not None and found.revision == NEW


@pytest.mark.soak  # test_bed_underneath.py has one
def test_an_operators_own_stop_underneath_ends_the_wait(lane: ActingDocker, ana: Operator) -> None:
    lane.fault(OLD, boot=60)
    with ana.doing("rollback") as process:
        until_step(lane.host, "station", "start-", "running")
        wait_for(lambda: RETIRED in lane.running(), "the retired one boots", limit=30)
        lane.behind("stop", RETIRED)
        assert process.wait(60) == NEEDS_OPERATOR
    assert ended(lane.host, "station") in ("failed", "half done")


def test_a_container_that_hangs_at_its_stop_is_killed_after_the_grace(lane: ActingDocker, tmp_path: Path) -> None:
    file = lane.fleet_file(tmp_path)
    own_recipe(tmp_path, "vllm-docker", "hasty-docker", ("grace_s = 120", "grace_s = 3"))
    file.write_text(file.read_text().replace('"vllm-docker"', '"hasty-docker.toml"'))
    console = Console(file, tmp_path / "ana", lane.name)
    lane.fault(NEW, deaf=1)
    lane.behind("restart", "-t", "1", SERVING)
    lane.until_healthy()
    done = console.do("stop")
    assert done.code == GOOD and "exited 137" in done.text, done.text
    assert lane.running() == []


def test_a_port_that_is_taken_is_named_before_anything_is_started(lane: ActingDocker, ana: Operator) -> None:
    assert ana.do("stop").code == GOOD
    with lane.port_taken():
        done = ana.do("relaunch")
        assert done.code != GOOD and str(PORT) in done.text, done.text
        assert lane.running() == []
    done = ana.do("relaunch")
    assert done.code == GOOD, done.text
