"""What the cases ask of actions: what is refused, what comes first, what is never touched."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from case_table import case_file, inspect_case

sys.path.insert(0, str(Path(__file__).parents[1] / "actions"))

import scenes
from play import World

from console.actions.disarm import acts_after
from console.actions.plan import Verb
from console.actions.plans import toggled
from console.actions.site_steps import site_edit_step
from console.fleet.recipe import load_recipe
from console.readings.answers import HttpAnswer, Transport
from console.readings.boot import BootProgress, PhaseName
from console.readings.containers import Containers, parse_inspect
from console.readings.health import LaneState, LaneVerdict
from console.readings.look import Answer, Status
from console.readings.watchdog import WatchdogState
from console.readings.watchdog_log import parse_stamp, read_story


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "w")
    yield made
    made.close()


def one(case: str, name: str) -> Any:
    raw = json.loads(case_file(case, name).read_text())
    return raw[0] if isinstance(raw, list) else raw


def seconds(text: str) -> float:
    stamp = parse_stamp(text)
    assert stamp is not None
    return stamp.seconds


# --- containers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "warned"), [("retired.json", True), ("retired_ok.json", False)])
def test_a_retired_container_that_returns_by_itself_gets_a_policy_that_stays_down(name: str, warned: bool) -> None:
    """C034: it is told, and once it is retired again its policy is one that keeps it down."""
    retired = replace(parse_inspect(one("C034", name)), id="b" * 64, revision=scenes.OLD)
    lane = scenes.docker(scenes.SERVING, retired, rest='containers = "*"')
    plan = lane.plan(Verb.ROLLBACK)
    assert not plan.refused
    told = [note for note in plan.notes if "comes back after a daemon restart" in note]
    assert bool(told) is warned
    serves_again = replace(
        retired, id="c" * 64, state=scenes.ContainerState.RUNNING, ports=(30006,), restart_policy="always"
    )
    back = scenes.docker(serves_again, scenes.RETIRED, rest='containers = "*"').plan(Verb.ROLLBACK)
    assert scenes.step(back, "stop-station").argv[6] == "no"


@pytest.mark.parametrize("name", ["dead.json", "removing.json", "gone_404.json"])
def test_a_way_back_that_is_no_more_is_refused_with_nothing_to_run(name: str) -> None:
    """C039: before anything is stopped: there are no steps at all."""
    raw = one("C039", name)
    boxes = [scenes.SERVING]
    if "Id" in raw:
        boxes.append(replace(parse_inspect(raw), ports=(30006,)))
    plan = scenes.docker(*boxes).plan(Verb.ROLLBACK)
    assert plan.refused
    assert (plan.steps, plan.rescue) == ((), ())
    reason = {"dead.json": "dead", "removing.json": "removing", "gone_404.json": "no stopped container is kept"}
    assert reason[name] in plan.refused
    fleet = scenes.spark().plan(Verb.ROLLBACK)
    assert "edit-site" in scenes.ids(fleet), "a fleet whose launcher removes containers goes back by its site file"


def test_a_name_in_use_is_refused_and_its_holder_stays(world: World) -> None:
    """C091: refused: name in use; the holder 444444444444 is exited/0 and is neither removed nor renamed."""
    message = one("C091", "error_409.json")["message"]
    holder = parse_inspect(one("C091", "holder.json"))
    identity = message.rpartition('by container "')[2][:12]
    assert (identity, holder.id[:12]) == ("444444444444", "444444444444")
    assert f"{holder.state.value}/{holder.exit_code}" == "exited/0"
    world.box("a", "dsv41-1017-BOUND-REF", ["true"], status="exited")
    world.box("b", "dsv41-vllm-v20-RETIRED-REF", ["true"], status="exited")
    world.box("4", holder.name, ["true"], status="exited")
    words = ["/s", "b" * 64, "dsv41-vllm-v20-RETIRED-REF", "dsv41-vllm-v20-BOUND-REF"]
    done = world.script("rename_containers.sh", *words, "a" * 64, "dsv41-1017-BOUND-REF", holder.name, "dsv41.laneswap")
    assert done.code == 1
    assert done.words.startswith(f"refused: name in use: {holder.name} is held by 444444444444 (exited)")
    assert world.seen("4")["Name"] == f"/{holder.name}"
    assert {call[2] for call in world.calls() if call[0] == "-H"} == {"inspect"}

    lane = scenes.spark()  # the launcher would remove it by force
    kept = replace(holder, name="sgldsv41", labels=(("role", "retired"),), ports=(8210,))
    held = lane.host_but("n2", containers=scenes.pictures.reading(Containers((kept,)), 1.0, 5.0))
    refused = held.plan(Verb.RELAUNCH).refused
    assert refused.startswith("n2: name in use: sgldsv41 is held by 444444444444 (exited/0)")


# --- a connection that is lost ---------------------------------------------------------------------------------------


def test_a_launch_whose_outcome_was_not_seen_is_never_made_again() -> None:
    """C053: the step is detached under its own name, and what is there is asked before anything is run again."""
    outcome = inspect_case("C053", "output", "stdout=stdout_partial.bin exit=exit.json")
    assert outcome["outcome"] == "unknown"
    plan = scenes.spark().plan(Verb.RELAUNCH)
    launch = scenes.step(plan, "launch")
    assert launch.detached, "it outlives the connection, and a second start under its name is refused"
    assert launch.after[0].words == "a new sgldsv41 runs"
    guard = scenes.step(plan, "disarm")
    assert [probe.words for probe in guard.before] == [f"no launch is under way on {host}" for host in scenes.HOSTS]


# --- watchdogs -------------------------------------------------------------------------------------------------------


def test_a_stop_without_disarm_is_undone_by_the_watchdog() -> None:
    """C055: 150 s after this stop, 120 s at the soonest: three checks that fail, 60 s apart."""
    recipe = load_recipe("vllm-cluster-env").watchdog
    assert recipe is not None
    text = case_file("C055", "watchdog.log").read_text()
    rows = text.splitlines()
    says = recipe.spec(recipe.place("")).says
    first = read_story(says, Answer(Status.OK, body="\n".join(rows[:1])), seconds(rows[0]))
    failed = read_story(says, Answer(Status.OK, body="\n".join(rows[:4])), seconds(rows[3]))
    assert first.every is not None and failed.attempt is not None
    assert (first.every, failed.attempt[1]) == (60, 3)
    stop = seconds(case_file("C055", "operator.log").read_text())
    took = acts_after(first.every, failed.attempt[1], stop - seconds(rows[0]))
    assert took == 150 == seconds(rows[-1]) - stop
    assert acts_after(first.every, failed.attempt[1]) == 120


def test_no_rank_is_stopped_before_the_watchdog_is_read_as_off() -> None:
    """C055: whatever it seemed to be when the plan was made."""
    for state in (WatchdogState.ARMED, WatchdogState.OFF, WatchdogState.UNKNOWN):
        plan = scenes.spark(watchdog=scenes.watchdog(state)).plan(Verb.STOP)
        assert scenes.ids(plan)[0] == "disarm"
        assert scenes.step(plan, "disarm").after
        for step in plan.steps:
            if step.id.startswith("stop-"):
                assert [probe.words for probe in step.before] == ["no watchdog runs, its lock is gone"]
    unswitchable = scenes.spark(watchdog=scenes.watchdog(next_check=60.0, attempt=(1, 3))).recipe_but(watchdog=None)
    refused = unswitchable.plan(Verb.STOP).refused
    assert "would launch it again 2m00s after the stop at the soonest" in refused


def test_a_pid_that_was_given_to_another_program_is_left_alone(world: World) -> None:
    """C057: neither the plan nor its script signals it."""
    answer = inspect_case("C057", "watchdog", "log=sgl-watchdog.log ps=ps_5151.txt booted=uptime_since.txt")
    seen = scenes.watchdog(WatchdogState.REUSED_PID, pid=answer["pid"], may_signal=answer["may_signal"])
    plan = scenes.spark(watchdog=seen).plan(Verb.DISARM)
    assert "5151" not in " ".join(scenes.step(plan, "disarm").argv)
    copy = world.spawn(["sleep", "300"])
    done = world.script(
        "watchdog_end.sh", str(copy.pid), "-", "[l]aunch/[w]atchdog.[s]h.none", "[n]one", str(world.evidence)
    )
    assert f"pid {copy.pid} is another program: not signalled" in done.words
    assert copy.poll() is None


def test_arming_waits_for_the_engine_where_a_timer_is_overdue() -> None:
    """C059: not safe to arm while the engine boots; it says since when the timer is due and that it fires at once."""
    assert case_file("C059", "engine.txt").read_text().strip() == "booting"
    late = inspect_case("C059", "watchdog", "unit=timer_show.txt now=now.txt")["overdue"][0]["words"]
    assert late == "was due 17 min ago, runs at once when it is started"
    timer = scenes.watchdog(WatchdogState.OFF, words=f"disarmed: fleet-watchdog.timer is dead, {late}")
    booting = BootProgress(120.0, None, None, PhaseName.WEIGHTS, 60.0, None, None, False)
    lane = scenes.spark(watchdog=timer)
    assert lane.but(boot_progress=booting).plan(Verb.ARM).refused.startswith("a start is under way")
    refused = scenes.pictures.reading(HttpAnswer(scenes.NOW - 1, 0.1, Transport.REFUSED), 1.0, 10.0)
    down = lane.but(health=refused, verdict=LaneVerdict(LaneState.DOWN, "x")).plan(Verb.ARM)
    assert late in down.refused
    serving = lane.plan(Verb.ARM)
    assert not serving.refused
    assert any(late in text for text in serving.warnings)
    assert "health is 200" in scenes.step(serving, "arm").before[0].words


@pytest.mark.parametrize(
    ("folder", "verb"), [("gaveup", Verb.ARM), ("paused", Verb.ARM), ("armed", Verb.DISARM), ("both", Verb.ARM)]
)
def test_the_key_knows_a_watchdog_that_gave_up_from_an_armed_one(folder: str, verb: Verb) -> None:
    """C060: the unit is active in all four; arming removes both flags, or it would still not watch."""
    flags = {"gaveup": "gaveup", "paused": "pause"}
    words = [f"is_active={folder}/is_active.txt"]
    for name, role in flags.items():
        if folder in (name, "both"):
            words.append(f"{role}={folder}/dsv41-watchdog.{role}")
    state = WatchdogState(inspect_case("C060", "watchdog", " ".join(words))["state"])
    lane = scenes.spark("vllm-cluster-env", watchdog=scenes.watchdog(state, kind="systemd"))
    assert toggled(lane.view) is verb
    arm = scenes.step(lane.plan(Verb.ARM), "arm")
    assert [word for word in arm.argv if word.startswith("/var/tmp/")] == [
        "/var/tmp/dsv41-watchdog.pause",
        "/var/tmp/dsv41-watchdog.gaveup",
    ]


# --- the site file ---------------------------------------------------------------------------------------------------


def test_the_way_back_changes_the_assignment_that_counts() -> None:
    """C064: of a key that is set twice the last one; exactly two lines differ, to the byte."""
    data, wanted = case_file("C064", "fleet.env").read_bytes(), case_file("C064", "expected_after.env").read_bytes()
    change = dict(row.split("=", 1) for row in case_file("C064", "change.txt").read_text().split() if "=" in row)
    step = site_edit_step("n1", "/x/fleet.env", data, change)
    assert hashlib.sha256(wanted).hexdigest() in step.argv
    assert hashlib.sha256(data).hexdigest() in step.argv
    assert step.before and step.already and step.after


# --- what is left over -----------------------------------------------------------------------------------------------


def test_what_a_former_connection_left_is_no_launch_and_no_watchdog(world: World) -> None:
    """C094: a stray poll loop neither holds up a disarm nor is it taken for a watchdog and ended."""
    loop = world.spawn(["sh", "-c", "while :; do sleep 5; : /health launch/watchdog.log; done"])
    assert world.script("no_launch.sh", f"[n]one{loop.pid}/[p]roduction.[s]h").code == 0
    done = world.script(
        "watchdog_end.sh", str(loop.pid), "-", "[l]aunch/[w]atchdog.[s]h", "[w]atchdog.[s]h", str(world.evidence)
    )
    assert f"pid {loop.pid} is another program: not signalled" in done.words
    assert loop.poll() is None
