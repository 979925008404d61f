"""Plans of Docker lanes, as data: what they rest on, what they cut, what they leave alone, when they are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import scenes
from hypothesis import given
from hypothesis import strategies as st
from scenes import NEW, OLD, RETIRED, SERVING, box, docker, ids, step

from console.actions.plan import Plan, Probe, Stage, Verb
from console.actions.plans import plan_of, toggled, way_back_id
from console.execution.carrying import with_debts
from console.readings.acting_types import Acting, Operation, OperationState, StepState, StepView
from console.readings.boot import BootRecord
from console.readings.containers import Container, Containers, ContainerState, belongs
from console.readings.health import LaneState, LaneVerdict
from console.readings.watchdog import WatchdogState
from console.snapshot import RankView

EXITED, RUNNING = ContainerState.EXITED, ContainerState.RUNNING


def words_of(probes: Sequence[Probe]) -> list[str]:
    return [probe.words for probe in probes]


def rollback(*boxes: Container, **more: Any) -> Plan:
    return docker(*boxes, **more).plan(Verb.ROLLBACK)


def test_the_way_back_stops_by_id_starts_by_id_and_waits_until_it_serves() -> None:
    plan = rollback()
    assert ids(plan) == ["save-station", "stop-station", "start-station", "rename-station"]
    assert (plan.origin, plan.target) == (f"{SERVING.name} 89abcde", f"{RETIRED.name} 0123456")
    assert plan.cuts == "2 running requests; used by Milo custom[dsv41]"
    stop, start = step(plan, "stop-station"), step(plan, "start-station")
    assert stop.argv[3:7] == ("/var/run/docker.sock", "a" * 64, "120", "no")
    assert words_of(stop.before) == [f"{RETIRED.name} can be started"]
    assert words_of(stop.after) == [
        f"{SERVING.name} has ended",
        f"processes of {SERVING.name} are gone",
        "port 30006 is closed",
    ]
    assert start.argv[4] == "b" * 64
    assert words_of(start.after) == [f"{RETIRED.name} runs", "health is 200 and dsv41-flash-uva is served"]
    assert (start.usual, start.basis, start.limit) == (480.0, "the recipe's usual", 6030.0)
    assert (stop.detached, start.detached) == (True, True)
    assert not plan.refused and not plan.owes and not plan.pays


def test_evidence_never_holds_up_the_way_back() -> None:
    plan = rollback()
    saved, stop = step(plan, "save-station"), step(plan, "stop-station")
    assert (saved.optional, saved.limit, saved.together) == (True, 5.0, stop.together)
    assert plan.total == 500.0
    assert [one.id for one in plan.rescue] == ["rescue-save-station"]
    assert all(one.optional for one in plan.rescue)


def test_the_lanes_own_boots_bound_the_start() -> None:
    boots = (BootRecord(1.0, 400.0, revision=OLD), BootRecord(2.0, 4000.0, revision=OLD))
    start = step(docker().but(boots=boots).plan(Verb.ROLLBACK), "start-station")
    assert (start.usual, start.basis, start.limit) == (2200.0, "median of 2 boots of 0123456", 8030.0)


@pytest.mark.parametrize(
    ("serving", "retired", "stops_with", "starts_with", "notes"),
    [
        ("unless-stopped", "no", "no", "unless-stopped", 2),
        ("no", "no", "-", "no", 0),
        ("no", "unless-stopped", "unless-stopped", "no", 2),
        ("unless-stopped", "unless-stopped", "-", "unless-stopped", 0),
        ("always", "always", "no", "always", 2),
        ("on-failure:3", "no", "no", "on-failure:3", 2),
        ("", "no", "-", "-", 0),
        ("weird policy", "no", "no", "-", 1),
    ],
)
def test_restart_policies_change_with_the_roles_and_what_is_kept_stays_down(
    serving: str, retired: str, stops_with: str, starts_with: str, notes: int
) -> None:
    """C034: a retired container with `always` would come back after a daemon restart and fight for the GPU."""
    plan = rollback(replace(SERVING, restart_policy=serving), replace(RETIRED, restart_policy=retired))
    assert step(plan, "stop-station").argv[6] == stops_with
    assert step(plan, "start-station").argv[5] == starts_with
    assert len([note for note in plan.notes if "restart" in note and "watchdog" not in note]) == notes
    if retired == "always":
        assert any(f"{RETIRED.name} has restart=always: it comes back" in note for note in plan.notes)


@pytest.mark.parametrize("glob", ["dsv41-*", "*-REF", "dsv41-*-R[EF]*"])
def test_a_name_that_a_cut_off_renaming_leaves_is_one_of_the_lane(glob: str) -> None:
    """Else the container that was kept would be gone from the lane, and with it the way back."""
    lane = docker(SERVING, RETIRED, rest=f'containers = "{glob}"')
    left = step(lane.plan(Verb.ROLLBACK), "rename-station").argv[-1]
    assert "laneswap" in left and belongs(replace(SERVING, name=left), 0, glob)


def test_the_mark_of_a_cut_off_renaming_goes_with_the_next_one() -> None:
    left = replace(RETIRED, name="dsv41-1017.laneswap-RETIRED-REF")
    assert step(rollback(SERVING, left), "rename-station").argv[6] == "dsv41-1017-BOUND-REF"


def test_names_that_carry_the_state_change_places() -> None:
    renames = step(rollback(), "rename-station")
    assert renames.argv[4:] == (
        "b" * 64, RETIRED.name, "dsv41-v21-BOUND-REF", "a" * 64, SERVING.name, "dsv41-1017-RETIRED-REF",
        "dsv41-1017.laneswap-RETIRED-REF",
    )  # fmt: skip
    assert renames.optional
    candidate = step(rollback(replace(SERVING, name="dsv41-1017-EXP"), RETIRED), "rename-station")
    assert candidate.argv[-2:] == ("dsv41-1017-RETIRED-REF", "dsv41-1017.laneswap-RETIRED-REF")
    plain = rollback(replace(SERVING, name="dsv41-new"), replace(RETIRED, name="dsv41-old"))
    assert "rename-station" not in ids(plain)
    assert "rename-station" not in ids(docker(recipe="docker-generic").plan(Verb.ROLLBACK))


def test_a_name_that_a_third_one_holds_keeps_the_names_but_not_the_way_back() -> None:
    """C091: who holds it is named, nothing is removed, and the lane comes back all the same."""
    holder = box("dsv41-1017-RETIRED-REF", "4", EXITED, revision="c" * 40, finished_at=1.0)
    plan = rollback(SERVING, RETIRED, holder)
    assert not plan.refused
    assert "rename-station" not in ids(plan)
    assert plan.warnings[0] == (
        "station: name in use: dsv41-1017-RETIRED-REF is held by 444444444444 (exited); names stay as they are"
    )


@pytest.mark.parametrize(
    ("retired", "why"),
    [
        (replace(RETIRED, state=ContainerState.DEAD), "dead, it cannot be started again"),
        (replace(RETIRED, state=ContainerState.REMOVING), "removing, it cannot be started again"),
        (replace(RETIRED, auto_remove=True), "removes itself when it stops (--rm)"),
        (None, "no stopped container is kept"),
    ],
)
def test_a_way_back_that_is_proved_impossible_is_refused_before_anything_stops(
    retired: Container | None, why: str
) -> None:
    """C039."""
    plan = rollback(SERVING, *([retired] if retired is not None else []))
    assert why in plan.refused
    assert (plan.steps, plan.rescue) == ((), ())


def test_what_was_not_read_is_told_and_does_not_refuse() -> None:
    plan = rollback()
    assert any(text.startswith("bind sources: ") for text in plan.warnings)
    assert plan.unknown == ()  # what nobody can prove beforehand is told, and is in nobody's way
    old = docker().host_but("station", containers=scenes.pictures.reading(Containers((SERVING, RETIRED)), 300.0, 5.0))
    plan = old.plan(Verb.ROLLBACK)
    assert not plan.refused
    assert "station containers: last read 5m ago" in plan.unknown


def test_without_any_reading_of_containers_no_command_can_be_made() -> None:
    blind = docker().host_but("station", containers=scenes.pictures.unread(error="timed out"))
    assert "timed out" in blind.plan(Verb.ROLLBACK).refused
    away = docker().away("station")
    assert "station cannot be reached" in away.plan(Verb.ROLLBACK).refused


def test_a_lane_that_is_down_is_only_started() -> None:
    ended = replace(SERVING, state=EXITED, finished_at=scenes.WALL - 3)
    plan = rollback(ended, RETIRED)
    stop = step(plan, "stop-station")
    assert (stop.usual, stop.basis) == (1.0, "it has ended already")
    assert stop.argv[6] == "no"


def test_the_frozen_target_is_kept_whatever_ended_since() -> None:
    """The window was opened with RETIRED as the way back; then the switch stopped SERVING."""
    frozen = rollback()
    later = box("dsv41-candidate", "c", RUNNING, revision="d" * 40)
    stopped = replace(SERVING, state=EXITED, finished_at=scenes.WALL)
    now = docker(later, stopped, replace(RETIRED, name="dsv41-v21-moved"))
    assert now.plan(Verb.ROLLBACK).target.startswith(SERVING.name)
    plan = now.plan(Verb.ROLLBACK, frozen=frozen)
    assert plan.target == "dsv41-v21-moved 0123456"
    assert way_back_id(plan) == way_back_id(frozen) != way_back_id(now.plan(Verb.ROLLBACK))
    gone = docker(later, stopped).plan(Verb.ROLLBACK, frozen=frozen)
    assert gone.refused == f"station: container removed: {'b' * 12}, frozen as the way back"


def test_once_the_frozen_target_serves_the_same_key_rolls_forward() -> None:
    frozen = rollback()
    back = replace(RETIRED, state=RUNNING, finished_at=None)
    left = replace(SERVING, state=EXITED, finished_at=scenes.WALL)
    lane = docker(back, left)
    plan = lane.plan(Verb.ROLLBACK, frozen=frozen)
    assert not plan.refused and plan.target.startswith(SERVING.name)
    assert plan == lane.plan(Verb.ROLLBACK)


def test_the_id_of_the_way_back_never_depends_on_the_live_engine() -> None:
    first = rollback()
    other = rollback(replace(SERVING, id="9" * 64, image_id="sha256:x", revision="e" * 40), RETIRED)
    assert first.id != other.id
    assert way_back_id(first) == way_back_id(other)
    moved = replace(RETIRED, image_id="sha256:" + "1" * 64)
    assert way_back_id(rollback(SERVING, moved)) != way_back_id(first)


def test_a_running_operation_is_named_as_what_ends() -> None:
    at = StepView("stop-n1", "stop", "stop rank 0", "n1", StepState.RUNNING)
    running = Operation("op-1", "relaunch", "station", "ben", "p", "t", OperationState.RUNNING, 1.0, None, (at,))
    acting = scenes.pictures.reading(Acting(1.0, operation=running), 1.0, 5.0)
    assert docker().but(acting=acting).plan(Verb.ROLLBACK).ends == ("relaunch by ben (op-1), step stop rank 0",)
    over = replace(running, state=OperationState.DONE)
    acting = scenes.pictures.reading(Acting(1.0, operation=over), 1.0, 5.0)
    assert docker().but(acting=acting).plan(Verb.ROLLBACK).ends == ()


def test_a_stranger_on_the_port_is_named() -> None:
    stranger = box("glm", "e", RUNNING, ports=(30006,))
    plan = rollback(stranger, replace(SERVING, state=EXITED, revision=OLD), RETIRED)
    assert any("glm holds the port and is stopped" in words for words in plan.warnings)


# --- several ranks ---------------------------------------------------------------------------------------------------


def two_ranks(worker: tuple[Container, ...]) -> scenes.Lane:
    """The same lane with a second rank on another host."""
    made = docker()
    fleet = made.snapshot.fleet.model_copy(
        update={"hosts": {**made.snapshot.fleet.hosts, "second": made.snapshot.fleet.hosts["station"]}}
    )
    lane = made.view.lane.model_copy(update={"ranks": ("station", "second")})
    second = replace(
        made.snapshot.hosts[0], name="second", containers=scenes.pictures.reading(Containers(worker), 1.0, 5.0)
    )
    ranks = (*made.view.ranks, RankView(1, "second", worker[0], "serving", worker[0].revision))
    view = replace(made.view, lane=lane, ranks=ranks)
    snapshot = replace(made.snapshot, fleet=fleet, hosts=(*made.snapshot.hosts, second), lanes=(view,))
    return scenes.Lane(snapshot, made.recipe, made.places)


WORKER = box("dsv41-w-BOUND-REF", "c", RUNNING, ports=(), revision=NEW, engine=scenes.pictures.EngineKind.VLLM)
KEPT = box("dsv41-w-RETIRED-REF", "d", EXITED, ports=(), revision=OLD)


def test_every_rank_goes_back_workers_first_and_a_dead_one_ends_the_wait() -> None:
    plan = two_ranks((WORKER, KEPT)).plan(Verb.ROLLBACK)
    assert ids(plan) == [
        "save-station", "save-second", "stop-station", "stop-second", "start-second", "start-station",
        "rename-station", "rename-second",
    ]  # fmt: skip
    assert {one.together for one in plan.steps[:4]} == {"stop"}
    for one in plan.steps[2:4]:
        assert words_of(one.before) == [f"{RETIRED.name} can be started", f"{KEPT.name} can be started"]
    start = step(plan, "start-station")
    assert [(probe.host, probe.words) for probe in start.watch] == [("second", f"{KEPT.name} on second runs")]
    assert "port 30006 is closed" not in words_of(step(plan, "stop-second").after)


def test_one_rank_without_its_old_container_shuts_the_way() -> None:
    plan = two_ranks((WORKER,)).plan(Verb.ROLLBACK)
    assert "second: no stopped container of 0123456" in plan.refused


# --- stop and relaunch -----------------------------------------------------------------------------------------------


def test_a_stop_names_the_policy_that_it_sets_aside() -> None:
    plan = docker(replace(SERVING, restart_policy="always"), RETIRED).plan(Verb.STOP)
    stop = step(plan, "stop-station")
    assert (stop.argv[6], stop.already) == ("no", ())
    assert any("restart policy always of dsv41-1017-BOUND-REF is set aside" in note for note in plan.notes)
    none = docker(replace(SERVING, restart_policy="no"), RETIRED).plan(Verb.STOP)
    assert (step(none, "stop-station").argv[6], len(step(none, "stop-station").already)) == ("-", 1)
    assert plan.target == "stopped" and not plan.rescue


def test_a_stop_waits_for_gpu_memory_that_was_in_use() -> None:
    after = words_of(step(docker().plan(Verb.STOP), "stop-station").after)
    assert "50 % of the GPU memory of station is free" in after


def test_a_drain_is_asked_for_and_bounded() -> None:
    assert "drain" not in ids(docker().plan(Verb.STOP))
    plan = docker().plan(Verb.STOP, drain_s=90)
    first = plan.steps[0]
    assert (first.id, first.limit, first.optional, first.argv[-1]) == ("drain", 120.0, True, "90")


def test_what_removes_itself_has_its_log_kept_first_and_is_warned_about() -> None:
    plan = docker(replace(SERVING, auto_remove=True), RETIRED).plan(Verb.STOP)
    assert [one.together for one in plan.steps] == ["save", "stop"]
    assert not plan.steps[0].optional
    assert any("removes itself when it stops (--rm)" in text for text in plan.warnings)
    relaunch = docker(replace(SERVING, auto_remove=True), RETIRED).plan(Verb.RELAUNCH)
    assert "removes itself when it stops" in relaunch.refused
    back = docker(replace(SERVING, auto_remove=True), RETIRED).plan(Verb.ROLLBACK)
    assert [one.together for one in back.steps[:2]] == ["save", "stop"] and back.steps[0].optional
    assert [one.together for one in docker().plan(Verb.ROLLBACK).steps[:2]] == ["stop", "stop"]


def test_a_paused_engine_is_told_to_be_unpaused() -> None:
    plan = docker(replace(SERVING, state=ContainerState.PAUSED), RETIRED).plan(Verb.STOP)
    assert any("is paused and is unpaused first" in text for text in plan.warnings)


def test_nothing_to_stop_is_refused() -> None:
    nothing = docker().but(ranks=(RankView(0, "station", None, "no container", ""),))
    assert "nothing to stop" in nothing.plan(Verb.STOP).refused
    assert "nothing can be started again" in nothing.plan(Verb.RELAUNCH).refused


def test_what_is_not_read_now_is_not_said_to_be_nothing() -> None:
    """As right after a sleep of the console."""
    unread = docker().host_but("station", containers=scenes.pictures.unread())
    plan = unread.but(ranks=(RankView(0, "station", None, "containers stale", ""),)).plan(Verb.STOP)
    assert plan.refused == "what runs is not known: the containers of station are not read now"


def test_a_relaunch_stops_and_starts_the_same_container() -> None:
    plan = docker().plan(Verb.RELAUNCH)
    assert ids(plan) == ["save-station", "stop-station", "start-station"]
    assert step(plan, "start-station").argv[4:7] == ("a" * 64, "-", "-")
    assert step(plan, "stop-station").argv[6] == "-"
    assert [one.id for one in plan.rescue] == ["rescue-save-station"]


def test_a_lane_without_a_watchdog_says_who_else_acts() -> None:
    plan = docker().plan(Verb.DISARM)
    assert plan.refused == "this lane has no watchdog: restart policies are all there is"
    assert toggled(docker().view) is Verb.DISARM


@pytest.mark.parametrize("verb", [Verb.STOP, Verb.RELAUNCH, Verb.ROLLBACK])
def test_a_host_without_docker_is_refused_with_the_key(verb: Verb) -> None:
    made = docker()
    host = made.snapshot.fleet.hosts["station"].model_copy(update={"docker": ""})
    fleet = made.snapshot.fleet.model_copy(update={"hosts": {"station": host}})
    blind = scenes.Lane(replace(made.snapshot, fleet=fleet), made.recipe, made.places)
    assert blind.plan(verb).refused == "station has no Docker: hosts.station.docker is empty"


def test_cuts_are_told_also_where_nobody_counts() -> None:
    flow = scenes.pictures.unread(error="refused")
    assert docker().but(throughput=flow).plan(Verb.STOP).cuts.startswith("requests: not known how many")
    down = docker().but(throughput=flow, verdict=LaneVerdict(LaneState.DOWN, "x"))
    assert down.plan(Verb.STOP).cuts == "used by Milo custom[dsv41]"


# --- whatever a host says --------------------------------------------------------------------------------------------

HOSTILE = st.text(min_size=0, max_size=30) | st.sampled_from(["$(reboot)", "a;b", "-rf", "{evidence}", "../x", "a\nb"])


@given(name=HOSTILE, identity=HOSTILE, policy=HOSTILE, image=HOSTILE, served=HOSTILE, verb=st.sampled_from(Verb))
def test_no_command_holds_what_was_not_checked(
    name: str, identity: str, policy: str, image: str, served: str, verb: Verb
) -> None:
    changed = {"restart_policy": policy, "image_id": image, "served_name": served}
    boxes = (
        replace(SERVING, name=name, **changed),
        replace(RETIRED, id=identity, **changed),
    )
    made = docker(*boxes)
    plan = plan_of(verb, made.snapshot, made.view, made.recipe, made.places)
    for one in (*plan.steps, *plan.rescue):
        for argv in (one.argv, *(probe.argv for probe in (*one.before, *one.after, *one.already, *one.watch))):
            assert all(word.isprintable() for word in argv)
            assert argv[:3] == ("sh", "-s", "--")
            assert "$(reboot)" not in argv and "a;b" not in argv and "../x" not in argv
    stages = [one.stage for one in plan.steps]
    assert stages == sorted(stages, key=list(Stage).index) or verb is not Verb.STOP


# --- a container lane with a watchdog of its own ----------------------------------------------------------------------


DOG = """
[watchdog]
kind = "systemd"
unit = "dog.service"
pause_flag = "/run/dog.pause"

[acts.watchdog]
disarm = "DISARM"
"""


def guarded(tmp_path: Path, disarm: str = "flag", acts: bool = True, **extra: Any) -> scenes.Lane:
    """A lane of a recipe that somebody wrote: the shipped one with a watchdog."""
    text = (resources.files("console.fleet.recipes") / "vllm-docker.toml").read_text()
    dog = DOG.replace("DISARM", disarm) if acts else DOG.partition("[acts")[0]
    file = tmp_path / "own-docker.toml"
    file.write_text(text.replace('name = "vllm-docker"', 'name = "own-docker"') + dog)
    return docker(recipe=str(file), watchdog=scenes.watchdog(kind="systemd", host="station"), **extra)


@pytest.mark.parametrize("disarm", ["flag", "unit"])
def test_the_way_back_disarms_first_and_arms_last(tmp_path: Path, disarm: str) -> None:
    """An armed one would end what is started here, or start again what is stopped."""
    plan = guarded(tmp_path, disarm).plan(Verb.ROLLBACK)
    assert not plan.refused, plan.refused
    swap = ["save-station", "stop-station", "start-station", "rename-station"]
    assert ids(plan) == ["disarm", *swap, "arm", "armed-still"]
    assert (plan.owes, plan.pays) == ("watchdog", "watchdog")
    off = words_of(step(plan, "disarm").after)
    can_start = f"{RETIRED.name} can be started"
    assert words_of(step(plan, "disarm").before) == [can_start], "nothing is switched off for a way back that is none"
    assert words_of(step(plan, "stop-station").before) == [can_start, *off]
    assert words_of(step(plan, "arm").before) == ["health is 200 and dsv41-flash-uva is served"]
    owed = with_debts(plan, "/s", "[]")
    assert ids(owed)[:2] == ["owe-watchdog", "disarm"] and ids(owed)[-1] == "settle-watchdog"


def test_the_way_back_waits_for_a_recovery_that_is_under_way(tmp_path: Path) -> None:
    lane = guarded(tmp_path)
    launch = lane.recipe.acts.launch.model_copy(update={"processes": ("dog/recover.sh",)})
    lane = lane.recipe_but(launch=launch).but(watchdog=scenes.watchdog(WatchdogState.RECOVERY, kind="systemd"))
    plan = lane.plan(Verb.ROLLBACK)
    assert ids(plan)[:2] == ["quiet", "disarm"]
    assert words_of(step(plan, "quiet").after) == ["no launch is under way on station"]


def test_a_watchdog_that_nobody_says_how_to_switch_is_told_with_the_way_back(tmp_path: Path) -> None:
    plan = guarded(tmp_path, acts=False).plan(Verb.ROLLBACK)
    assert not plan.refused and "disarm" not in ids(plan)
    assert any("would launch it again" in text for text in plan.warnings)
