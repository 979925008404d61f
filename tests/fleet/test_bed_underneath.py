"""Other hands and broken things under a rollback of the Docker lane: what is said, and what the host has then."""

from __future__ import annotations

from pathlib import Path

import pytest
from acting_console import GOOD, LIMIT, NEEDS_OPERATOR, REFUSED
from acting_docker import BLOCKER, RETIRED, SERVING, ActingDocker
from acting_operator import DockerEvents, Head, Operator, operator
from acting_parts import NEW, OLD, STATE
from bed.system import wait_for
from bed_watch import own_recipe

pytestmark = [pytest.mark.bed, pytest.mark.timeout(120)]


def revision_of(lane: ActingDocker) -> str:
    """What serves; '' for nothing."""
    found = lane.standing()
    return found.revision if found is not None else ""


# --- two at once


def test_two_consoles_at_once_swap_once(lane: ActingDocker, ana: Operator, ben: Operator) -> None:
    events, head = DockerEvents(lane.host), Head(lane.host, "station")
    old, new = lane.id_of(OLD), lane.id_of(NEW)
    both = [(who, who.begin_do("rollback")) for who in (ana, ben)]
    ended = [(who, who.finish(child)) for who, child in both]
    codes = sorted(done.code for _, done in ended)
    assert codes == [GOOD, REFUSED], [done.text for _, done in ended]
    loser = next(done for _, done in ended if done.code == REFUSED)
    winner = next(who for who, done in ended if done.code == GOOD)
    assert winner.operator in loser.text or "runs already" in loser.text, loser.text
    lane.until_healthy()
    assert revision_of(lane) == OLD
    counts = events.counts()
    assert (counts[f"die {new[:12]}"], counts[f"start {old[:12]}"], counts[f"start {new[:12]}"]) == (1, 1, 0), counts
    assert len(head.operations()) == 1 and not head.begun_twice()
    for who in (ana, ben):
        who.ledger_good()


@pytest.mark.soak
def test_two_consoles_of_one_operator_at_once_swap_once(lane: ActingDocker, ana: Operator, tmp_path: Path) -> None:
    events = DockerEvents(lane.host)
    old, new = lane.id_of(OLD), lane.id_of(NEW)
    with operator(lane, tmp_path / "second") as second:
        both = [(who, who.begin_do("rollback")) for who in (ana, second)]
        ended = [who.finish(child) for who, child in both]
    assert any(done.code == GOOD for done in ended), [done.text for done in ended]
    lane.until_healthy()
    assert revision_of(lane) == OLD
    counts = events.counts()
    assert (counts[f"die {new[:12]}"], counts[f"start {old[:12]}"], counts[f"start {new[:12]}"]) == (1, 1, 0), counts
    assert not Head(lane.host, "station").begun_twice()


# --- other hands


def test_an_operator_stops_the_container_that_a_rollback_starts(
    lane: ActingDocker, ana: Operator, ben: Operator
) -> None:
    lane.fault(OLD, boot=30.0)
    head = Head(lane.host, "station")
    child = ana.begin_do("rollback")
    head.until_step("start", "running", child)
    wait_for(lambda: RETIRED in lane.running(), "it boots", limit=LIMIT)
    lane.behind("stop", "-t", "1", RETIRED)
    done = ana.finish(child)
    assert done.code == NEEDS_OPERATOR and "HALF DONE after stop" in done.out, done.text
    assert "next: start" in done.out and "exited" in done.out, done.text
    assert lane.running() == []
    alarms = ben.alarms()
    assert any("rollback by ana: HALF DONE after stop" in text for text in alarms), alarms
    lane.fault(OLD)
    again = ana.do("relaunch")
    assert again.code == GOOD, again.text
    assert revision_of(lane) in (OLD, NEW)
    ana.ledger_good()
    assert [result for _, result in ana.outcomes()] == ["half done", "done"]


@pytest.mark.soak
def test_an_operator_stops_the_serving_container_first(lane: ActingDocker, ana: Operator) -> None:
    plan = ana.plan("rollback")
    lane.behind("stop", SERVING)
    done = ana.run("do", "station", "rollback", "--plan", plan["plan"])
    assert done.code == GOOD and "satisfied" in done.out, done.text
    assert revision_of(lane) == OLD


def test_a_retired_container_that_was_removed_is_no_way_back(lane: ActingDocker, ana: Operator) -> None:
    words = ("--reason", "swap", "--deadline", "25m", "--yes-lane", "station")
    assert ana.run("window", "open", "station", *words).code == GOOD
    ana.status()
    before = lane.containers()[SERVING]
    lane.remove_retired()
    lamp = ana.lamp("rollback")
    assert lamp.startswith("NO WAY BACK") and ("removed" in lamp or "no stopped container" in lamp), lamp
    refused = ana.do("rollback")
    assert refused.code == REFUSED and "DENIED" in refused.out and "container" in refused.out, refused.text
    assert lane.containers() == {SERVING: before}
    assert not Head(lane.host, "station").operations()
    alarms = ana.alarms()
    assert any("way back lost" in text and "removed at" in text for text in alarms), alarms


@pytest.mark.soak
def test_an_image_that_was_removed_takes_no_way_back(lane: ActingDocker, ana: Operator) -> None:
    lane.remove_image()
    assert ana.lamp("rollback").startswith("BACK"), "the container keeps it"
    done = ana.do("rollback")
    assert done.code == GOOD and revision_of(lane) == OLD, done.text


def test_a_bind_source_that_is_another_folder_now_is_told(lane: ActingDocker, ana: Operator) -> None:
    ana.status()
    lane.replace_source(OLD, NEW)
    lamp = ana.lamp("rollback")
    assert "bind" in lamp, lamp
    shown = ana.plan("rollback")
    told = " ".join((*shown["warnings"], *shown["unknown"], *shown["policy"]["warnings"], shown["refused"]))
    assert f"{lane.folder(OLD)} the folder is another one" in told, shown
    assert any("way back no longer sure: bind sources" in text for text in ana.alarms())


@pytest.mark.soak
def test_a_bind_source_that_is_gone_refuses_and_docker_makes_no_empty_one(lane: ActingDocker, ana: Operator) -> None:
    ana.status()
    lane.remove_source(OLD)
    lamp = ana.lamp("rollback")
    assert lamp.startswith("NO WAY BACK"), lamp
    refused = ana.do("rollback")
    assert refused.code == REFUSED and "is gone" in refused.out, refused.text
    assert revision_of(lane) == NEW
    assert not lane.host.root("sh", "-c", f"ls -d {lane.folder(OLD)} 2>/dev/null", check=False).strip()


# --- things that break


@pytest.mark.soak
def test_a_port_that_is_taken_ends_the_start_and_says_so(lane: ActingDocker, ana: Operator) -> None:
    lane.behind("stop", SERVING)
    with lane.port_taken():
        shown = ana.plan("rollback")
        told = " ".join((*shown["warnings"], *shown["unknown"], shown["refused"]))
        assert "port" in told and str(30016) in told, shown
        done = ana.do("rollback")
        assert done.code in (NEEDS_OPERATOR, REFUSED), done.text
        assert BLOCKER in done.text or "port" in done.text, done.text
    again = ana.do("rollback")
    assert again.code == GOOD, again.text
    assert revision_of(lane) in (OLD, NEW)
    ana.ledger_good()


def test_a_container_that_exits_at_once_is_told_and_left_as_evidence(lane: ActingDocker, ana: Operator) -> None:
    lane.fault(OLD, dies=0)
    done = ana.do("rollback")
    assert done.code == NEEDS_OPERATOR and "exited with 1" in done.out, done.text
    assert "HALF DONE after stop" in done.out and "next: start" in done.out, done.text
    head = Head(lane.host, "station")
    kept = lane.host.root("sh", "-c", f"cat {STATE}/bed.station/ops/{head.current()}/evidence/*.log")
    assert "CUDA error" in kept, "the log of the one that ended"
    assert any("rollback by ana: HALF DONE" in text for text in ana.alarms())
    again = ana.do("relaunch")
    assert again.code == GOOD, again.text
    assert revision_of(lane) == NEW, "what served before is started again"
    ana.ledger_good()


@pytest.mark.soak
def test_a_container_that_does_not_hear_is_killed_after_its_grace(lane: ActingDocker, tmp_path: Path) -> None:
    folder = tmp_path / "ana"
    folder.mkdir()
    own_recipe(folder, "vllm-docker", "short", ("grace_s = 120", "grace_s = 3"))
    with operator(lane, folder) as ana:
        ana.file.write_text(ana.file.read_text().replace('recipe = "vllm-docker"', 'recipe = "./short.toml"'))
        lane.fault(NEW, deaf=1)
        lane.behind("restart", "-t", "1", SERVING)
        lane.until_healthy()
        new = lane.id_of(NEW)
        done = ana.do("rollback")
        assert done.code == GOOD, done.text
        assert revision_of(lane) == OLD
        assert next(one for one in lane.containers().values() if one.id == new).exit_code == 137
        ana.ledger_good()


@pytest.mark.soak
def test_the_way_back_ends_a_stop_that_hangs(lane: ActingDocker, ana: Operator) -> None:
    lane.fault(NEW, deaf=1)
    lane.behind("restart", "-t", "1", SERVING)
    lane.until_healthy()
    head = Head(lane.host, "station")
    child = ana.begin_do("stop")
    head.until_step("stop", "running", child)
    stop = head.current()
    back = ana.begin_do("rollback")
    wait_for(lambda: head.current() != stop or back.poll() is not None, "the rollback begins", limit=LIMIT)
    lane.host.docker("kill", SERVING)
    done = ana.finish(back)
    assert done.code == GOOD and f"ends stop (operation {stop})" in done.out, done.text
    ended = ana.finish(child)
    assert ended.code == NEEDS_OPERATOR, ended.text
    assert revision_of(lane) == OLD
    ana.ledger_good()
    assert dict(ana.outcomes())[head.current()] == "done" and len(dict(ana.outcomes())) == 2
