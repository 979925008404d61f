"""The plans of a launcher-and-watchdog lane on one rank, run for real: launcher, watchdog, engine are processes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import scenes
from play import World, alive, free_port, until

from console.actions.plan import Plan, Verb
from console.fleet.places import places
from console.fleet.sitefile import read_site
from console.readings.containers import Containers, ContainerState
from console.readings.watchdog import WatchdogState
from console.snapshot import RankView

DOG = """#!/bin/bash
exec 9>"$HOME/.sgl-watchdog.lock"
echo $$ >"$HOME/.sgl-watchdog.lock"
trap 'exit 0' TERM
while :; do sleep 0.1 & wait $!; [ "$(cat "$HOME/.sgl-watchdog.lock" 2>/dev/null)" = $$ ] || exit 0; done
"""
LAUNCHER = """#!/bin/bash
. "${FLEET_ENV:-$HOME/kit/launch/fleet.env}"
echo "relaunch start, $# words, $SNAP"
[ ! -e "$HOME/broken" ] || { echo "launch failed, the fleet is DOWN and the watchdog is DISARMED"; exit 1; }
docker rm -f sgldsv41 >/dev/null 2>&1
id=$(printf '%s' "$SNAP $(date +%N)" | sha256sum | cut -c1-64)
sed "s/ID/$id/" "$HOME/box.json" >"$FAKE_DOCKER/new.json"
docker start sgldsv41 >/dev/null
[ ! -e "$HOME/dies" ] || sleep 300
until python3 -S -c "import socket; socket.create_connection(('127.0.0.1', PORT))" 2>/dev/null; do sleep 0.1; done
nohup setsid "$HOME/kit/launch/watchdog.sh" >/dev/null 2>&1 &
echo healthy
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "w")
    yield made
    made.close()


def lock(world: World) -> int:
    path = world.home / ".sgl-watchdog.lock"
    text = path.read_text().strip() if path.exists() else ""
    return int(text) if text else 0


class Fleet:
    """One rank that serves NEW under its watchdog."""

    def __init__(self, world: World) -> None:
        self.world, self.port = world, free_port()
        self.kit = world.home / "kit"
        launch = self.kit / "launch"
        launch.mkdir(parents=True)
        self.site = launch / "fleet.env"
        self.site.write_bytes(
            scenes.site_bytes(NODES="(192.0.2.11)", USERS="(me)", HOMES=f"({world.home})", MODEL_HOST_RANK="0",
                              SNAP=f"snapshots/{scenes.NEW}", ENGRAM_LOCAL_DIR="rows-new")
        )  # fmt: skip
        engine = world.engine(self.port, "deepseek-v4.1-flash")
        (world.home / "box.json").write_text(json.dumps({"id": "ID", "name": "sgldsv41", "cmd": engine}))
        for name, text in (("watchdog.sh", DOG), ("relaunch.sh", LAUNCHER.replace("PORT", str(self.port)))):
            (launch / name).write_text(text)
            (launch / name).chmod(0o755)
        (launch / "production.sh").write_text("#!/bin/sh\necho '== rank 0'; echo 'docker run x'\n")
        (launch / "production.sh").chmod(0o755)
        assert world.run((str(launch / "relaunch.sh"),)).code == 0
        until(lambda: lock(world) > 0 and alive(lock(world)))

    def lane(self) -> scenes.Lane:
        """What the console sees of it now."""
        base = scenes.spark()
        recipe = base.recipe
        assert recipe.watchdog is not None
        own = str(self.kit / "launch" / "watchdog.sh")  # other tests run theirs on this machine
        dog = recipe.watchdog.model_copy(update={"process": own, "process_also": ()})
        parts = (str(self.kit / "launch" / "relaunch.sh"),)
        acts = recipe.acts.model_copy(
            update={
                "launch": recipe.acts.launch.model_copy(update={"processes": parts}),
                "stop": recipe.acts.stop.model_copy(update={"memory_share": 0.0, "grace_s": 5}),
            }
        )
        recipe = recipe.model_copy(update={"watchdog": dog, "acts": acts})
        lane = base.view.lane.model_copy(
            update={"ranks": (), "url": f"http://127.0.0.1:{self.port}", "vars": {"root": str(self.kit)}}
        )
        site = read_site(self.site.read_bytes(), str(self.site), recipe)
        told = self.world.docker("inspect", "sgldsv41")
        boxes = ()
        if told.code == 0:
            raw = json.loads(told.words)[0]
            state = ContainerState(raw["State"]["Status"])
            boxes = (
                scenes.box(
                    "sgldsv41", "c", state, id=raw["Id"], revision=scenes.NEW, restart_policy="no", ports=(self.port,)
                ),
            )
        host = replace(base.snapshot.hosts[0], containers=scenes.pictures.reading(Containers(boxes), 1.0, 5.0))
        pid = lock(self.world)
        view = replace(
            base.view,
            lane=lane,
            ranks=(RankView(0, "n1", boxes[0] if boxes else None, "up", scenes.NEW),),
            site=scenes.pictures.reading(site, 1.0, 5.0),
            repos=base.view.repos[:1],
            rows=None,
            previous_rows=None,
            watchdog=scenes.watchdog(WatchdogState.ARMED if pid else WatchdogState.OFF, pid=pid or None),
        )
        snapshot = replace(base.snapshot, hosts=(host,), lanes=(view,))
        return scenes.Lane(snapshot, recipe, places("dsv41", lane, recipe, site))

    def plan(self, verb: Verb) -> Plan:
        made = self.lane().plan(verb)
        assert not made.refused, made.refused
        return made

    def box(self) -> str:
        """Id of the container."""
        found: str = json.loads(self.world.docker("inspect", "sgldsv41").words)[0]["Id"]
        return found


def well(done: list[tuple[str, int, str]]) -> list[str]:
    assert all(code == 0 for _, code, _ in done), done
    return [name for name, _, _ in done]


def test_a_relaunch_replaces_the_engine_and_leaves_a_watchdog_that_lives(world: World) -> None:
    fleet = Fleet(world)
    before, dog = fleet.box(), lock(world)
    done = world.carry_out(fleet.plan(Verb.RELAUNCH))
    assert well(done) == ["dry-run", "save-n1", "disarm", "launch", "arm", "armed-still"]
    assert fleet.box() != before
    assert not alive(dog) and alive(lock(world)) and lock(world) != dog
    words = {name: text for name, _, text in done}
    assert "== rank 0" in words["dry-run"]
    assert f"relaunch start, 0 words, snapshots/{scenes.NEW}" in words["launch"]
    assert words["arm"] == "satisfied", "the launcher armed it"
    assert (world.evidence / "sgldsv41.inspect.json").exists()


def test_a_stop_ends_watchdog_and_engine_and_a_second_one_finds_nothing_to_do(world: World) -> None:
    fleet = Fleet(world)
    dog = lock(world)
    assert well(world.carry_out(fleet.plan(Verb.STOP))) == ["disarm", "save-n1", "stop-n1"]
    assert not alive(dog) and not lock(world)
    assert world.script("port_closed.sh", str(fleet.port)).code == 0
    again = world.carry_out(fleet.plan(Verb.STOP))
    assert [text for name, _, text in again if name != "save-n1"] == ["satisfied", "satisfied"]


def test_a_watchdog_that_was_started_after_the_plan_holds_up_the_stop(world: World) -> None:
    """C055: off when the plan was made, armed when the stop would run."""
    fleet = Fleet(world)
    plan = fleet.plan(Verb.STOP)
    stop = next(one for one in plan.steps if one.id == "stop-n1")
    done = world.step(stop)
    assert (done.code, "before: no watchdog runs" in done.words) == (101, True)
    assert world.script("port_closed.sh", str(fleet.port)).code == 1


def test_the_way_back_edits_the_site_file_and_launches_from_it(world: World) -> None:
    fleet = Fleet(world)
    before = fleet.site.read_bytes()
    done = world.carry_out(fleet.plan(Verb.ROLLBACK))
    names = [name for name, code, _ in done if code == 0]
    assert names[-6:] == ["quiet", "disarm", "edit-site", "launch", "arm", "armed-still"], done
    words = {name: text for name, _, text in done}
    assert f"snapshots/{scenes.OLD}" in words["launch"]
    after = fleet.site.read_text()
    assert f"SNAP=snapshots/{scenes.OLD}\n" in after
    assert len([one for one in after.splitlines() if one not in before.decode().splitlines()]) == 1
    assert alive(lock(world))


def test_a_launch_that_fails_at_once_leaves_the_old_engine_and_says_so(world: World) -> None:
    fleet = Fleet(world)
    before = fleet.box()
    (world.home / "broken").touch()
    plan = fleet.plan(Verb.RELAUNCH)
    done = world.carry_out(plan)
    name, code, words = done[-1]
    assert (name, code) == ("launch", 1)
    assert "is the one from before (running): this launch replaced nothing" in words
    for step in plan.rescue:
        assert world.step(step).code == 0
    assert fleet.box() == before
    assert world.script("port_closed.sh", str(fleet.port)).code == 1


def test_a_rank_that_dies_is_seen_while_the_launcher_still_waits(world: World) -> None:
    fleet = Fleet(world)
    plan = fleet.plan(Verb.RELAUNCH)
    launch = next(one for one in plan.steps if one.id == "launch")
    (watch,) = launch.watch
    assert world.ask(watch).last == "not replaced yet"
    (world.home / "dies").touch()
    dead = {"id": "ID", "name": "sgldsv41", "cmd": [sys.executable, "-c", "raise SystemExit(1)"], "code": 1}
    (world.home / "box.json").write_text(json.dumps(dead))
    running = world.spawn(["sh", "-c", f"exec {fleet.kit}/launch/relaunch.sh"])
    until(lambda: world.ask(watch).code == 1)
    assert "it is exited with 1" in world.ask(watch).words
    running.kill()
