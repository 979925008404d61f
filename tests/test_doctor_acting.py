"""What acting needs, as `laneswap doctor` judges it: state folder, disk, steps, docker, the head and the recipe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from test_doctor import FLEET, GIB, by_name

from console.doctor import acting
from console.doctor.acting import HostActing, LaneActing, acting_host_checks, acting_lane_checks
from console.doctor.check import Check, Verdict
from console.execution.aftercare import Boxed
from console.execution.detached import Mode, Modes
from console.execution.sequence_reach import Reach
from console.fleet.inventory import parse
from console.fleet.recipe import apply_recipes, load_recipe
from console.readings.doctor_acting import ActingSetup, Folder

STATE = "/var/tmp/laneswap"
MADE = Folder("folder", True, 0o2770, "root", "docker")
NONE = Folder("none", False)
READY = ActingSetup(
    user="ana",
    uid=1000,
    groups=("ana", "docker"),
    missing=(),
    above=Folder("folder", True, 0o1777, "root", "root"),
    state=MADE,
    lanes=(NONE,),
    group="docker",
    members=("ana", "ben"),
    fstype="ext4",
    free=200 * GIB,
    aged="",
    docker="socket",
    complete=True,
)
LINGERS = Modes(Mode.USER, account="ana")


def ready(modes: Modes = LINGERS, **changes: Any) -> dict[str, Check]:
    heard = HostActing("spark-0", STATE, replace(READY, **changes), modes, (f"{STATE}/x.l",))
    return by_name(acting_host_checks(heard))


def test_a_host_that_is_ready_to_be_acted_on_has_nothing_to_do() -> None:
    found = ready()
    assert {check.verdict for check in found.values()} == {Verdict.OK}
    assert found["state folder"].found == f"{STATE}: 2770 root:docker; ana, ben can take over"
    assert found["detached steps"].found == "units of ana, which lingers"


@pytest.mark.parametrize(
    ("changes", "name", "verdict", "words"),
    [
        ({"missing": ("flock",)}, "acting tools", Verdict.FAIL, "no flock: no action"),
        ({"missing": None}, "acting tools", Verdict.UNKNOWN, "could not be looked for"),
        ({"state": None}, "state folder", Verdict.UNKNOWN, "could not be looked at"),
        ({"state": Folder("link", True, 0o777, "x", "x")}, "state folder", Verdict.FAIL, "symbolic link"),
        ({"state": Folder("other", False, 0o644, "x", "x")}, "state folder", Verdict.FAIL, "no folder"),
        ({"state": NONE}, "state folder", Verdict.OK, "makes it for group docker; ana, ben can take over"),
        ({"state": NONE, "groups": ("ana",)}, "state folder", Verdict.LOOK, "for ana alone: nobody else can take over"),
        ({"state": NONE, "uid": 0, "groups": ("root",)}, "state folder", Verdict.OK, "for group docker"),
        (
            {"state": NONE, "uid": 0, "groups": ("root",), "group": "", "members": None},
            "state folder",
            Verdict.LOOK,
            "-g GROUP",
        ),
        ({"state": NONE, "above": NONE}, "state folder", Verdict.FAIL, "/var/tmp is not there sudo install -d -m 2770"),
        (
            {"state": NONE, "above": Folder("folder", False, 0o755, "root", "root")},
            "state folder",
            Verdict.FAIL,
            "/var/tmp cannot be written by ana",
        ),
        ({"state": replace(MADE, mode=0o777)}, "state folder", Verdict.FAIL, f"sudo chmod o-w {STATE}"),
        ({"state": replace(MADE, ours=False)}, "state folder", Verdict.FAIL, "sudo usermod -aG docker ana"),
        ({"state": Folder("folder", False, 0o700, "ben", "ben")}, "state folder", Verdict.FAIL, "sudo install -d"),
        ({"state": replace(MADE, mode=0o3770)}, "state folder", Verdict.LOOK, "chmod -t"),
        (
            {"state": Folder("folder", True, 0o700, "ana", "ana")},
            "state folder",
            Verdict.LOOK,
            "nobody but ana can take",
        ),
        ({"members": ()}, "state folder", Verdict.OK, "nobody is in group docker: root alone"),
        ({"members": None}, "state folder", Verdict.OK, "who is in group docker is not known"),
        ({"members": tuple(f"u{n}" for n in range(11))}, "state folder", Verdict.OK, "u7 and 3 more can take over"),
        (
            {"lanes": (Folder("link", True, 0o777, "x", "x"),)},
            "state folder",
            Verdict.FAIL,
            f"{STATE}/x.l: a symbolic link",
        ),
        ({"lanes": (Folder("folder", False, 0o755, "ben", "x"),)}, "state folder", Verdict.FAIL, "sudo chmod 2777"),
        ({"lanes": (replace(MADE, mode=0o2777),)}, "state folder", Verdict.OK, "can take over"),
        ({"fstype": "nfs4"}, "state disk", Verdict.FAIL, "over the network"),
        ({"fstype": "tmpfs"}, "state disk", Verdict.LOOK, "a restart empties it"),
        ({"free": 100 << 20}, "state disk", Verdict.LOOK, "make room"),
        ({"free": None}, "state disk", Verdict.UNKNOWN, "dead mount"),
        ({"aged": "30d under /var/tmp"}, "clearing by age", Verdict.LOOK, f"echo 'x {STATE}' | sudo tee"),
        ({"aged": None}, "clearing by age", Verdict.UNKNOWN, "could not be read"),
        ({"reapers": ("tmpreaper",)}, "clearing by age", Verdict.LOOK, "tmpreaper is installed"),
        ({"docker": "none"}, "docker command", Verdict.FAIL, "install Docker's command line"),
        ({"docker": "refused"}, "docker command", Verdict.FAIL, "sudo usermod -aG docker ana"),
        ({"docker": "gone"}, "docker command", Verdict.UNKNOWN, "socket is not there"),
        ({"docker": "sudo"}, "docker command", Verdict.OK, "by sudo"),
        ({"complete": False}, "acting", Verdict.UNKNOWN, "cut off"),
    ],
)
def test_what_acting_lacks_on_a_host_is_told(changes: dict[str, Any], name: str, verdict: Verdict, words: str) -> None:
    check = ready(**changes)[name]
    assert check.verdict is verdict
    assert words in f"{check.found} {check.advice}"
    assert check.advice or verdict in (Verdict.OK, Verdict.UNKNOWN)


@pytest.mark.parametrize(
    ("modes", "verdict", "words"),
    [
        (Modes(Mode.SYSTEM, "ana does not linger", "", "ana"), Verdict.OK, "units of the machine"),
        (
            Modes(Mode.NONE, "ana does not linger", "ana has no sudo", "ana"),
            Verdict.LOOK,
            "sudo loginctl enable-linger ana",
        ),
        (Modes(Mode.NONE, "no systemd here", "no systemd here", "ana"), Verdict.LOOK, "control group: no systemd here"),
        (Modes(None, problem="connection lost"), Verdict.UNKNOWN, "connection lost"),
    ],
)
def test_where_steps_run_is_told(modes: Modes, verdict: Verdict, words: str) -> None:
    check = ready(modes)["detached steps"]
    assert (check.verdict, words in f"{check.found} {check.advice}") == (verdict, True)


def test_a_host_that_did_not_say_is_unknown_and_one_without_containers_is_not_asked_for_docker() -> None:
    (check,) = acting_host_checks(HostActing("spark-0", STATE, None, LINGERS, why="connection lost"))
    assert (check.name, check.verdict) == ("acting", Verdict.UNKNOWN) and "connection lost" in check.found
    assert "docker command" not in ready(docker="")


def lane_acting(recipe: str = "sglang-fleet-env", text: str = FLEET, **changes: Any) -> dict[str, Check]:
    fleet = apply_recipes(parse(text.replace("sglang-fleet-env", recipe)))
    heard = LaneActing("l", fleet.lanes["l"], load_recipe(recipe), reached=True)
    return by_name(acting_lane_checks(replace(heard, **changes)))


@pytest.mark.parametrize(
    ("changes", "name", "verdict", "words"),
    [
        ({}, "acts", Verdict.OK, "stop by docker, start by launcher, watchdog by term"),
        ({}, "head's python3", Verdict.OK, "sequences can run on spark-0"),
        ({}, "head's ssh", Verdict.OK, "the lane has one host"),
        ({"python": "spark-0 has no python3"}, "head's python3", Verdict.LOOK, "sequences stay in the console"),
        (
            {"reach": Reach({"b": ["ssh", "b"]}, ("c: Permission denied (publickey).",))},
            "head's ssh",
            Verdict.LOOK,
            "on spark-0: ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -a c true",
        ),
        ({"reach": Reach({"b": ["ssh", "b"]}, ())}, "head's ssh", Verdict.OK, "not from inside a unit"),
        ({"reached": False}, "head's python3", Verdict.UNKNOWN, "spark-0 is not reached"),
        ({"box": "~/l.md", "boxed": Boxed(True)}, "box ledger", Verdict.OK, "spark-0:~/l.md can be written"),
        ({"box": "~/l.md", "boxed": Boxed(False, problem="~/l.md is not there")}, "box ledger", Verdict.LOOK, "make"),
        ({"box": "~/l.md", "boxed": Boxed(False, again=True)}, "box ledger", Verdict.UNKNOWN, "~/l.md"),
        ({"unnamed": ("box ledger: vars.x is not set",)}, "box ledger", Verdict.LOOK, "vars.x is not set"),
    ],
)
def test_what_a_lane_needs_beyond_its_hosts(changes: dict[str, Any], name: str, verdict: Verdict, words: str) -> None:
    check = lane_acting(**changes)[name]
    assert check.verdict is verdict
    assert words in f"{check.found} {check.advice}"


def test_a_lane_without_a_ledger_of_people_is_not_asked_for_one() -> None:
    assert "box ledger" not in lane_acting()


@pytest.mark.parametrize(
    "name", ["sglang-fleet-env", "vllm-cluster-env", "vllm-docker", "docker-generic", "systemd-generic"]
)
def test_every_shipped_recipe_has_its_acts(name: str) -> None:
    recipe = load_recipe(name)
    text = FLEET.replace('vars.root = "/opt/r"\n', "") if "root" not in recipe.vars else FLEET
    check = lane_acting(name, text)["acts"]
    if name == "vllm-cluster-env":  # its rows are built by hand
        assert check.found == "recipe vllm-cluster-env: " + acting.NO_COPIER
    else:
        assert check.verdict is Verdict.OK


def test_acts_that_a_recipe_lacks_are_told_with_the_key_that_does_not_go() -> None:
    recipe = load_recipe("sglang-fleet-env")
    bare = recipe.model_copy(update={"acts": type(recipe.acts)()})
    fleet = apply_recipes(parse(FLEET))
    (check,) = [
        check
        for check in acting_lane_checks(LaneActing("l", fleet.lanes["l"], bare, reached=False))
        if check.name == "acts"
    ]
    assert check.verdict is Verdict.LOOK
    for words in ("D: no [acts.watchdog]", "B: no launcher", "B: no copier in [acts.rows]"):
        assert words in check.found
    outside = fleet.lanes["l"].model_copy(update={"runs_in": "host"})
    (check,) = [one for one in acting_lane_checks(LaneActing("l", outside, bare, reached=False)) if one.name == "acts"]
    assert "S: [acts.stop]" in check.found and "R: [acts.launch]" in check.found
