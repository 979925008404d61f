"""The scripts of the Docker lane's plans, run for real: a fake daemon, real processes, real ports."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scenes
from play import HERE, World, free_port, until

from console.actions.plan import Plan, Verb
from console.readings.containers import Container, Containers, ContainerState
from console.snapshot import RankView

UP, ENDED = ContainerState.RUNNING, ContainerState.EXITED


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "w")
    yield made
    made.close()


class Lane:
    """A Docker lane whose containers are the world's own."""

    def __init__(self, world: World, serving: str = "unless-stopped", retired: str = "no") -> None:
        self.world, self.port = world, free_port()
        engine = world.engine(self.port)
        world.box("a", "dsv41-1017-BOUND-REF", engine, restart=serving)
        world.box("b", "dsv41-v21-RETIRED-REF", engine, restart=retired, status="exited")
        assert world.docker("start", "a" * 64).code == 0
        until(lambda: world.script("port_closed.sh", str(self.port)).code == 1)

    def view(self) -> scenes.Lane:
        """What the console would see of it now."""
        found = [self._container(letter) for letter in "ab"]
        found.sort(key=lambda item: not item.up)
        made = scenes.docker(*found)
        lane = made.view.lane.model_copy(update={"url": f"http://127.0.0.1:{self.port}"})
        ranks = (RankView(0, "station", found[0], "serving", found[0].revision),)
        made = made.but(lane=lane, ranks=ranks)
        return made.host_but("station", containers=scenes.pictures.reading(Containers(tuple(found)), 1.0, 5.0), gpus=
                             scenes.pictures.unread())  # fmt: skip

    def _container(self, letter: str) -> Container:
        told: dict[str, Any] = self.world.seen(letter)
        base = scenes.SERVING if letter == "a" else scenes.RETIRED
        policy = told["HostConfig"]["RestartPolicy"]["Name"]
        return replace(
            base,
            id=told["Id"],
            name=told["Name"].lstrip("/"),
            state=ContainerState(told["State"]["Status"]),
            restart_policy=policy,
            ports=(self.port,),
            finished_at=None if told["State"]["Status"] == "running" else scenes.WALL - 5,
        )

    def plan(self, verb: Verb) -> Plan:
        made = self.view().plan(verb)
        assert not made.refused, made.refused
        return made

    def names(self) -> dict[str, tuple[str, str, str]]:
        """(name, state, restart policy) by letter."""
        found = {}
        for letter in "ab":
            told = self.world.seen(letter)
            policy = told["HostConfig"]["RestartPolicy"]["Name"]
            found[letter] = (told["Name"].lstrip("/"), told["State"]["Status"], policy)
        return found


def well(done: list[tuple[str, int, str]]) -> list[str]:
    assert all(code == 0 for _, code, _ in done), done
    return [name for name, _, _ in done]


def test_a_rollback_swaps_engines_names_and_policies_and_the_same_key_rolls_forward(world: World) -> None:
    lane = Lane(world)
    back = lane.plan(Verb.ROLLBACK)
    assert well(world.carry_out(back)) == ["save-station", "stop-station", "start-station", "rename-station"]
    assert lane.names() == {
        "a": ("dsv41-1017-RETIRED-REF", "exited", "no"),
        "b": ("dsv41-v21-BOUND-REF", "running", "unless-stopped"),
    }
    assert (world.evidence / "dsv41-1017-BOUND-REF.inspect.json").stat().st_size > 0
    assert (world.evidence / "meminfo").exists()
    forward = lane.plan(Verb.ROLLBACK)
    assert forward.target.startswith("dsv41-1017-RETIRED-REF")
    well(world.carry_out(forward))
    assert lane.names() == {
        "a": ("dsv41-1017-BOUND-REF", "running", "unless-stopped"),
        "b": ("dsv41-v21-RETIRED-REF", "exited", "no"),
    }
    assert not [call for call in world.calls() if "rm" in call]


def test_a_stop_is_observed_and_its_policy_comes_back_with_the_next_start(world: World) -> None:
    lane = Lane(world, serving="always")
    assert well(world.carry_out(lane.plan(Verb.STOP))) == ["save-station", "stop-station"]
    assert lane.names()["a"] == ("dsv41-1017-BOUND-REF", "exited", "no")
    assert (world.state / f"restart-policy.{'a' * 12}").read_text() == "always no\n"
    assert world.script("port_closed.sh", str(lane.port)).code == 0
    well(world.carry_out(lane.plan(Verb.RELAUNCH)))
    assert lane.names()["a"] == ("dsv41-1017-BOUND-REF", "running", "always")
    assert not (world.state / f"restart-policy.{'a' * 12}").exists()


def test_a_policy_that_a_stop_set_aside_goes_to_what_serves_after_a_rollback(world: World) -> None:
    lane = Lane(world, serving="always")
    well(world.carry_out(lane.plan(Verb.STOP)))
    well(world.carry_out(lane.plan(Verb.ROLLBACK)))
    assert lane.names() == {
        "a": ("dsv41-1017-RETIRED-REF", "exited", "no"),
        "b": ("dsv41-v21-BOUND-REF", "running", "always"),
    }


def test_a_policy_that_was_set_aside_is_found_in_either_folder(world: World) -> None:
    """Stopped while the state folder could not be written, started when it can, and the other way round."""
    spare = world.folder / "spare" / world.state.name
    spare.mkdir(parents=True)
    both = f"{spare}:{world.state}"
    for kept in (spare, world.state):
        world.box("a", "engine", ["sleep", "300"], restart="always")
        world.docker("start", "engine")
        stop = world.script("stop_container.sh", "/s", "a" * 64, "5", "no", "5", str(world.evidence), str(kept))
        assert stop.code == 0 and world.seen("a")["HostConfig"]["RestartPolicy"]["Name"] == "no"
        assert world.script("start_container.sh", "/s", "a" * 64, "-", "-", str(world.evidence), both).code == 0
        assert world.seen("a")["HostConfig"]["RestartPolicy"]["Name"] == "always", kept
        assert not list(kept.glob("restart-policy.*"))
        world.script("stop_container.sh", "/s", "a" * 64, "5", "-", "5", str(world.evidence), str(kept))


def in_memory(world: World) -> Path:
    """The file that stands for the state folder's, where that cannot be written."""
    return Path(f"/dev/shm/laneswap-{os.getuid()}", world.state.name, "restart-policy." + "a" * 12)


@pytest.mark.parametrize("policy", ["always", "unless-stopped", "on-failure:3"])
def test_a_policy_that_the_disk_has_no_room_for_is_kept_in_memory_or_told(world: World, policy: str) -> None:
    world.state = world.folder / f"state-{os.getpid()}-{policy[:2]}"
    world.state.touch()  # no folder: nothing can be written there
    evidence, asked = str(world.folder / "evidence"), ["/s", "a" * 64]
    world.box("a", "engine", ["sleep", "300"], restart=policy)
    world.docker("start", "engine")
    stop = [*asked, "5", "no", "5", evidence, str(world.state)]
    assert world.script("stop_container.sh", *stop).code == 0
    assert in_memory(world).read_text() == f"{policy} no\n"
    done = world.script("start_container.sh", *asked, "-", "-", evidence, str(world.state))
    assert f"restart policy was no, is {policy}" in done.words
    assert not in_memory(world).exists()
    in_memory(world).parent.rmdir()
    in_memory(world).parent.touch()  # nor there
    try:
        done = world.script("stop_container.sh", *stop)
    finally:
        in_memory(world).parent.unlink()
    assert done.code == 0, done.words
    left = world.seen("a")["HostConfig"]["RestartPolicy"]["Name"]
    assert left == ("unless-stopped" if policy == "unless-stopped" else "no")
    words = (
        "restart policy stays unless-stopped: it" if left != "no" else f"docker update --restart {policy} aaaaaaaaaaaa"
    )
    assert words in done.words and "could not be kept anywhere" in done.words


def test_a_policy_that_was_given_by_hand_since_counts(world: World) -> None:
    world.box("a", "engine", ["sleep", "300"], restart="always")
    world.docker("start", "engine")
    stop = ["/s", "a" * 64, "5", "no", "5", str(world.evidence), str(world.state)]
    start = ["/s", "a" * 64, "-", "-", str(world.evidence), str(world.state)]
    assert world.script("stop_container.sh", *stop).code == 0
    world.docker("update", "--restart", "unless-stopped", "engine")
    world.docker("start", "engine")
    done = world.script("start_container.sh", *start)
    assert "was given restart policy unless-stopped since its always was set aside: that one counts" in done.words
    assert world.seen("a")["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"
    (world.state / f"restart-policy.{'a' * 12}").write_text("always no\n")
    assert world.script("stop_container.sh", *stop).code == 0, "and so it does at the next stop"
    assert (world.state / f"restart-policy.{'a' * 12}").read_text() == "unless-stopped no\n"


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_way_back_that_is_gone_by_then_stops_nothing(world: World) -> None:
    """C039: between plan and key somebody pruned: the live engine is not touched."""
    lane = Lane(world)
    plan = lane.plan(Verb.ROLLBACK)
    (world.boxes / "b.json").rename(world.folder / "pruned")
    done = world.carry_out(plan)
    assert [name for name, code, _ in done if code] == ["stop-station"]
    assert "dsv41-v21-RETIRED-REF can be started: container removed" in done[-1][2]
    assert world.script("port_closed.sh", str(lane.port)).code == 1
    assert not [call for call in world.calls() if "stop" in call]


def test_a_container_of_another_image_is_not_the_one_that_was_frozen(world: World) -> None:
    lane = Lane(world)
    plan = lane.plan(Verb.ROLLBACK)
    world.box("b", "dsv41-v21-RETIRED-REF", ["true"], image="sha256:" + "0" * 64, status="exited")
    done = world.carry_out(plan)
    assert "its image is another one" in done[-1][2]
    assert world.script("port_closed.sh", str(lane.port)).code == 1


def test_a_container_that_exits_at_once_ends_the_wait_with_its_code(world: World) -> None:
    lane = Lane(world)
    plan = lane.plan(Verb.ROLLBACK)
    world.box("b", "dsv41-v21-RETIRED-REF", ["sh", "-c", "exit 3"], status="exited", code=3)
    done = world.carry_out(plan)
    name, code, words = done[-1]
    assert (name, code) == ("start-station", 1)
    assert "it is exited with 3" in words
    assert [step.id for step in plan.rescue] == ["rescue-save-station"]
    assert world.step(plan.rescue[0]).code == 0


def restarting(world: World, letter: str, times: int, **more: Any) -> None:
    """Its policy has restarted it so often, by what Docker counts."""
    path = world.boxes / f"{letter}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "restarts": times, **more}))


def test_an_engine_that_its_policy_restarts_has_not_come_up(world: World) -> None:
    """It crashes at once, Docker starts it again and again: no boot to be waited for until its limit."""
    lane = Lane(world, serving="always")
    plan = lane.plan(Verb.ROLLBACK)
    crash = f"""sleep 1; sed -i 's/"restarts": 0/"restarts": 2/' {world.boxes}/b.json; sleep 300"""
    world.box("b", "dsv41-v21-RETIRED-REF", ["sh", "-c", crash], status="exited", restarts=7)
    name, code, words = world.carry_out(plan)[-1]
    assert (name, code) == ("start-station", 1)
    assert "restarted by its policy 2 times, after " in words, words


def test_a_worker_that_its_policy_restarts_ends_the_wait_for_the_head(world: World) -> None:
    world.box("b", "worker", ["sleep", "300"], status="exited", restarts=7)
    ask = ["/s", "b" * 64, str(world.evidence)]
    assert world.script("container_runs.sh", *ask).last == "not started yet"
    start = ["/s", "b" * 64, "-", "-", str(world.evidence), str(world.state)]
    assert world.script("start_container.sh", *start).code == 0
    assert world.script("container_runs.sh", *ask).last == "running"
    restarting(world, "b", 1)
    done = world.script("container_runs.sh", *ask)
    assert (done.code, done.last) == (1, "restarted by its policy once")
    restarting(world, "b", 2, status="restarting", code=3)
    done = world.script("container_runs.sh", *ask)
    assert (done.code, done.last) == (1, "restarted by its policy 2 times, last exit code 3")


def test_how_often_it_was_restarted_before_this_operation_does_not_count(world: World) -> None:
    """It was running already, with restarts of last month; a second try of the step counts from the first one."""
    world.box("b", "worker", ["sleep", "300"])
    world.docker("start", "worker")
    restarting(world, "b", 7)
    start = ["/s", "b" * 64, "-", "-", str(world.evidence), str(world.state)]
    ask = ["/s", "b" * 64, str(world.evidence)]
    assert world.script("start_container.sh", *start).code == 0
    assert world.script("container_runs.sh", *ask).last == "running"
    restarting(world, "b", 8)
    assert world.script("start_container.sh", *start).code == 0
    assert world.script("container_runs.sh", *ask).last == "restarted by its policy once"


def test_a_port_that_somebody_else_took_is_named_and_nothing_is_started(world: World) -> None:
    port = free_port()
    world.box("b", "retired", world.engine(port), status="exited")
    places = ("-", "-", str(world.evidence), str(world.state), f"http://127.0.0.1:{port}", "/health", "", "30")
    with socket.create_server(("127.0.0.1", port)):
        done = world.script("start_container.sh", "/s", "b" * 64, *places)
    assert (done.code, world.seen("b")["State"]["Status"]) == (1, "exited")
    assert f"somebody else listens on {port}: it could not serve there" in done.words


def test_docker_that_cannot_start_it_says_why(world: World) -> None:
    lane = Lane(world)
    plan = lane.plan(Verb.ROLLBACK)
    engine = world.engine(lane.port)
    world.box("b", "dsv41-v21-RETIRED-REF", engine, status="exited", fails="could not select device driver")
    done = world.carry_out(plan)
    assert done[-1][:2] == ("start-station", 1)
    assert "could not select device driver" in done[-1][2]


def test_an_engine_that_ignores_the_request_to_end_is_killed_after_its_grace(world: World) -> None:
    world.box("a", "hangs", ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"])
    assert world.docker("start", "a" * 64).code == 0
    done = world.script("stop_container.sh", "/s", "a" * 64, "1", "-", "30", str(world.evidence), str(world.state))
    assert (done.code, world.seen("a")["State"]["ExitCode"]) == (0, 137)


def test_a_process_that_outlives_its_container_is_stuck_and_named(world: World) -> None:
    left = world.spawn(["sleep", "300"])
    world.box("a", "engine", ["sleep", "300"], also=[left.pid])
    assert world.docker("start", "a" * 64).code == 0
    done = world.script("stop_container.sh", "/s", "a" * 64, "5", "-", "1", str(world.evidence), str(world.state))
    assert done.code == 1
    assert f"STUCK: the container ended, its process {left.pid} in state S does not die" in done.words
    probe = world.script("processes_gone.sh", str(world.evidence), "a" * 64)
    assert (probe.code, f"STUCK: pid {left.pid} (sleep)" in probe.words) == (1, True)
    left.kill()
    left.wait()
    assert world.script("processes_gone.sh", str(world.evidence), "a" * 64).code == 0


def test_a_paused_container_is_unpaused_first(world: World) -> None:
    world.box("a", "engine", ["sleep", "300"])
    assert world.docker("start", "a" * 64).code == 0
    data = world.box("a", "engine", ["sleep", "300"], **{
        key: value for key, value in json.loads((world.boxes / "a.json").read_text()).items()
        if key in ("pid", "born", "started")
    }, status="paused")  # fmt: skip
    assert data["status"] == "paused"
    done = world.script("stop_container.sh", "/s", "a" * 64, "5", "-", "5", str(world.evidence), str(world.state))
    assert done.code == 0, done.words
    verbs = [call[2] for call in world.calls() if call[0] == "-H"]
    assert verbs.index("unpause") < verbs.index("stop")


def test_a_container_that_removes_itself_was_stopped_all_the_same(world: World) -> None:
    world.box("a", "engine", ["sleep", "300"], auto_remove=True)
    assert world.docker("start", "a" * 64).code == 0
    done = world.script("stop_container.sh", "/s", "a" * 64, "5", "-", "5", str(world.evidence), str(world.state))
    assert done.code == 0, done.words
    assert world.script("container_stopped.sh", "/s", "a" * 64).code == 0
    assert world.script("container_startable.sh", "/s", "a" * 64, "-").words == "container removed\n"


def test_a_second_stop_finds_nothing_to_do(world: World) -> None:
    world.box("a", "engine", ["sleep", "300"], status="exited")
    done = world.script("stop_container.sh", "/s", "a" * 64, "5", "no", "5", str(world.evidence), str(world.state))
    assert (done.code, done.last) == (0, "it is exited")
    assert not [call for call in world.calls() if "stop" in call]


def test_without_a_daemon_nothing_is_known_and_nothing_is_claimed(world: World) -> None:
    world.box("a", "engine", ["sleep", "300"])
    (world.boxes / "down").touch()
    identity = "a" * 64
    probes = {
        "container_stopped.sh": ["/s", identity],
        "container_up.sh": ["/s", identity],
        "container_startable.sh": ["/s", identity, "-"],
        "container_named.sh": ["/s", identity, "engine"],
        "container_gone.sh": ["/s", "engine"],
        "rank_alive.sh": ["/s", "engine", "-"],
        "launched.sh": ["/s", "engine", str(world.evidence)],
    }
    for name, words in probes.items():
        done = world.script(name, *words)
        assert (done.code, "Cannot connect" in done.words) == (2, True), name
    for name in ("stop_container.sh", "start_container.sh"):
        more = ["5", "-", "5"] if name.startswith("stop") else ["-", "-"]
        done = world.script(name, "/s", identity, *more, str(world.evidence), str(world.state))
        assert done.code == 5, name


@pytest.mark.parametrize("same_stem", [False, True])
def test_names_change_places_also_where_one_needs_the_other_ones(world: World, same_stem: bool) -> None:
    serving = "x-BOUND-REF" if same_stem else "y-BOUND-REF"
    wanted = "x-RETIRED-REF" if same_stem else "y-RETIRED-REF"
    world.box("a", serving, ["true"], status="exited")
    world.box("b", "x-RETIRED-REF", ["true"], status="exited")
    words = ["/s", "b" * 64, "x-RETIRED-REF", "x-BOUND-REF", "a" * 64, serving, wanted, "x.laneswap-REF"]
    done = world.script("rename_containers.sh", *words)
    assert done.code == 0, done.words
    assert (world.seen("a")["Name"], world.seen("b")["Name"]) == (f"/{wanted}", "/x-BOUND-REF")
    assert world.script("rename_containers.sh", *words).code == 0  # again: nothing left to do
    assert (world.seen("a")["Name"], world.seen("b")["Name"]) == (f"/{wanted}", "/x-BOUND-REF")


SWAP = [
    "/s",
    "b" * 64,
    "x-RETIRED-REF",
    "x-BOUND-REF",
    "a" * 64,
    "x-BOUND-REF",
    "x-RETIRED-REF",
    "x.laneswap-RETIRED-REF",
]


def names(world: World) -> tuple[str, str]:
    """What a and b are called."""
    return world.seen("a")["Name"].lstrip("/"), world.seen("b")["Name"].lstrip("/")


def pair(world: World, broken: str) -> None:
    """Two that change names; `broken` is shell text for the n-th call of docker rename, `$n`."""
    world.box("a", "x-BOUND-REF", ["true"], status="exited")
    world.box("b", "x-RETIRED-REF", ["true"], status="exited")
    world.command(
        "docker",
        f"""case $* in *' rename '*) echo >>{world.folder}/tries; n=$(wc -l <{world.folder}/tries); {broken} ;; esac
exec {sys.executable} -S {HERE / "fake_docker.py"} "$@" """,
    )


CUT = """all=; up=$PPID
    while read -r _ who _ <"/proc/$up/stat"; do
        case $who in '(sh)' | '(dash)' | '(timeout)') ;; *) break ;; esac
        all="$up $all"; read -r _ _ _ up _ <"/proc/$up/stat"
    done; kill -KILL $all; exit 1"""
"""Kills the script that asks, and all between."""


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_rename_that_is_cut_off_leaves_names_of_the_lane_and_goes_on_from_there(world: World, after: int) -> None:
    pair(world, f"[ $n -le {after} ] || {{ {CUT}; }}")
    assert world.script("rename_containers.sh", *SWAP).code == -9
    assert names(world)[0] == ("x-BOUND-REF", SWAP[-1], SWAP[-1])[after]
    world.plain_docker()
    assert world.script("rename_containers.sh", *SWAP).code == 0
    assert names(world) == ("x-RETIRED-REF", "x-BOUND-REF")


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_a_rename_that_docker_refuses_leaves_both_names_as_they_were(world: World, fails: int) -> None:
    pair(world, f"[ $n -ne {fails} ] || {{ echo 'Error: no space left on device' >&2; exit 1; }}")
    done = world.script("rename_containers.sh", *SWAP)
    assert (done.code, done.last) == (1, "docker rename: Error: no space left on device; they are called as before")
    assert names(world) == ("x-BOUND-REF", "x-RETIRED-REF")


def test_names_that_cannot_be_put_back_are_told(world: World) -> None:
    pair(world, "[ $n -le 1 ] || exit 1")
    done = world.script("rename_containers.sh", *SWAP)
    assert done.code == 1
    assert done.last.endswith("bbbbbbbbbbbb is called x-RETIRED-REF now, aaaaaaaaaaaa x.laneswap-RETIRED-REF"), (
        done.last
    )


def test_a_name_that_a_third_one_holds_is_refused_and_nobody_is_removed(world: World) -> None:
    """C091: the holder is named; neither it nor the pair is touched."""
    world.box("a", "y-BOUND-REF", ["true"], status="exited")
    world.box("b", "x-RETIRED-REF", ["true"], status="exited")
    world.box("4", "y-RETIRED-REF", ["true"], status="exited")
    done = world.script(
        "rename_containers.sh",
        *("/s", "b" * 64, "x-RETIRED-REF", "x-BOUND-REF", "a" * 64, "y-BOUND-REF", "y-RETIRED-REF", "y.laneswap"),
    )
    assert done.code == 1
    assert done.words.startswith("refused: name in use: y-RETIRED-REF is held by 444444444444 (exited)")
    assert [world.seen(one)["Name"] for one in "ab4"] == ["/y-BOUND-REF", "/x-RETIRED-REF", "/y-RETIRED-REF"]
    assert {call[2] for call in world.calls() if call[0] == "-H"} == {"inspect"}


def test_somebody_renamed_it_meanwhile(world: World) -> None:
    world.box("a", "else", ["true"], status="exited")
    world.box("b", "x-RETIRED-REF", ["true"], status="exited")
    done = world.script(
        "rename_containers.sh",
        *("/s", "b" * 64, "x-RETIRED-REF", "x-BOUND-REF", "a" * 64, "y-BOUND-REF", "y-RETIRED-REF", "y.laneswap"),
    )  # fmt: skip
    assert (done.code, "it is called else by now" in done.words) == (1, True)
    assert world.seen("b")["Name"] == "/x-RETIRED-REF"


def test_evidence_is_kept_and_what_is_missing_is_no_failure(world: World) -> None:
    world.box("a", "engine", ["sh", "-c", "echo boot line"])
    assert world.docker("start", "a" * 64).code == 0
    until(lambda: (world.boxes / "a.log").read_text() == "boot line\n")
    done = world.script("evidence.sh", str(world.evidence), "5", "all", "/s", "a" * 64, "none-there")
    assert done.code == 0, done.words
    assert (world.evidence / "engine.log").read_text() == "boot line\n"
    assert '"Id"' in (world.evidence / "engine.inspect.json").read_text()
    (world.boxes / "down").touch()
    done = world.script("evidence.sh", str(world.evidence), "5", "all", "/s", "a" * 64)
    assert (done.code, "logs of 0 of 1" in done.words) == (1, True)


def test_a_folder_that_cannot_be_made_is_told(world: World) -> None:
    (world.folder / "file").touch()
    done = world.script("evidence.sh", str(world.folder / "file" / "x"), "5", "all", "/s", "a" * 64)
    assert (done.code, "cannot be made" in done.words) == (5, True)


@pytest.mark.parametrize("tool", ["curl", "bash"])
def test_serving_is_health_and_the_name_among_the_models(world: World, tool: str) -> None:
    if tool == "bash":  # a host without curl
        hidden = world.folder / "no-curl"
        hidden.mkdir()
        for name in ("sh", "bash", "head", "tr", "timeout", "printf", "cat", "date", "sleep", "grep", "python3"):
            found = shutil.which(name)
            (hidden / name).symlink_to(found)
        world.env = lambda: {"PATH": str(hidden), "HOME": str(world.home)}  # type: ignore[method-assign]
    port, sick = free_port(), free_port()
    world.spawn(world.engine(port))
    world.spawn(world.engine(sick, health=503))
    until(lambda: world.script("port_closed.sh", str(port)).code == 1)
    until(lambda: world.script("port_closed.sh", str(sick)).code == 1)
    good = world.script("serving.sh", f"http://127.0.0.1:{port}", "/health", "dsv41-flash-uva")
    assert (good.code, good.last) == (0, "health 200, serves dsv41-flash-uva")
    assert world.script("serving.sh", f"http://127.0.0.1:{port}", "/health", "").code == 0
    other = world.script("serving.sh", f"http://127.0.0.1:{port}", "/health", "dsv41-flash")
    assert (other.code, other.last) == (1, "health 200, dsv41-flash is not among the models")
    assert world.script("serving.sh", f"http://127.0.0.1:{sick}", "/health", "x").last == "health 503"
    assert world.script("serving.sh", f"http://127.0.0.1:{free_port()}", "/health", "x").last == "health 000"


def test_running_requests_are_waited_for_but_not_for_ever(world: World) -> None:
    port = free_port()
    world.spawn(world.engine(port))
    metrics = world.folder / "metrics"
    metrics.write_text('vllm:num_requests_running{model="x"} 2.0\nvllm:num_requests_waiting{model="x"} 1.0\n')
    until(lambda: world.script("port_closed.sh", str(port)).code == 1)
    done = world.script("drain.sh", f"http://127.0.0.1:{port}/metrics", "1")
    assert (done.code, done.last) == (1, "3 requests still run after 1 s")
    metrics.write_text("sglang:num_running_reqs 0.0\nsglang:num_queue_reqs 0.0\n")
    assert world.script("drain.sh", f"http://127.0.0.1:{port}/metrics", "5").code == 0
    done = world.script("drain.sh", f"http://127.0.0.1:{free_port()}/metrics", "1")
    assert (done.code, "not known what runs" in done.words) == (1, True)


def test_the_share_of_memory_is_asked_of_the_kernel(world: World) -> None:
    assert world.script("memory_back.sh", "0").code == 0
    assert world.script("memory_back.sh", "101").code == 1
    world.command("nvidia-smi", 'echo "GPU-1, 1000, 10000"; echo "GPU-2, 9000, 10000"')
    assert world.script("gpu_back.sh", "50", "GPU-1").code == 0
    assert world.script("gpu_back.sh", "50", "GPU-1", "GPU-2").code == 1
    assert world.script("gpu_back.sh", "50", "GPU-3").code == 2
    world.command("nvidia-smi", "exit 9")
    assert world.script("gpu_back.sh", "50", "GPU-1").code == 2
