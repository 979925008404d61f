"""Switching a watchdog, run for real: scripts with locks, processes that only look like one, flags, units."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from play import Done, World, alive, until

from console.actions.probes import pattern

ALSO = pattern("watchdog.sh")
DOG = """#!/bin/bash
exec 9>"$HOME/.lock"
flock -n 9 || exit 1
echo $$ >"$HOME/.lock"
trap 'echo "watchdog stopped (pid $$, signal)" >>"$HOME/log"; exit 0' TERM
echo "watchdog started (pid $$)" >>"$HOME/log"
while :; do sleep 0.1 & wait $!; [ "$(cat "$HOME/.lock" 2>/dev/null)" = $$ ] || exit 0; done
"""
LOCK = "~/.lock"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "w")
    folder = made.home / "kit" / "launch"
    folder.mkdir(parents=True)
    (folder / "watchdog.sh").write_text(DOG)
    (folder / "watchdog.sh").chmod(0o755)
    yield made
    made.close()


def script_of(world: World) -> str:
    """The watchdog's script, by its whole path: other tests run theirs on the same machine."""
    return f"{world.home}/kit/launch/watchdog.sh"


def kind(world: World) -> str:
    return pattern(script_of(world))


def start(world: World, by_hand: bool = False) -> subprocess.Popen[bytes]:
    how = "watchdog.sh" if by_hand else script_of(world)
    dog = world.spawn(["bash", how], cwd=world.home / "kit" / "launch")
    until(lambda: (world.home / ".lock").exists() and (world.home / ".lock").read_text().strip() == str(dog.pid))
    return dog


def end(world: World, pid: str) -> Done:
    return world.script("watchdog_end.sh", pid, LOCK, kind(world), ALSO, str(world.evidence))


def mine(world: World) -> Done:
    """Whether it runs, by its lock."""
    return world.script("watchdog_runs.sh", LOCK, kind(world), ALSO)


def test_it_is_asked_to_end_its_lock_is_removed_and_it_is_gone(world: World) -> None:
    dog = start(world)
    assert mine(world).last == f"runs as pid {dog.pid}"
    done = end(world, str(dog.pid))
    assert done.code == 0
    assert f"ended pid {dog.pid}:" in done.words
    dog.wait(60)
    assert not (world.home / ".lock").exists()
    assert "watchdog stopped" in (world.home / "log").read_text()
    assert mine(world).code == 1


def test_its_lock_is_enough_where_nobody_read_its_number(world: World) -> None:
    dog = start(world)
    assert end(world, "-").code == 0
    dog.wait(60)


def test_one_that_was_started_by_hand_from_inside_the_folder_is_ended_by_its_lock(world: World) -> None:
    dog = start(world, by_hand=True)
    assert end(world, "-").code == 0
    dog.wait(60)


def test_one_from_inside_the_folder_whose_lock_is_gone_still_runs(world: World) -> None:
    """It was started as `./watchdog.sh`, and somebody removed its lock: it would launch the lane again."""
    dog = world.spawn(["bash", "./watchdog.sh"], cwd=world.home / "kit" / "launch")
    until(lambda: (world.home / ".lock").exists() and (world.home / ".lock").read_text().strip() == str(dog.pid))
    assert mine(world).last == f"runs as pid {dog.pid}"
    dog.send_signal(signal.SIGSTOP)
    (world.home / ".lock").unlink()
    gone = world.script("watchdog_gone.sh", LOCK, kind(world), ALSO)
    assert (gone.code, gone.last) == (1, f"runs as pid {dog.pid}")
    done = end(world, "-")
    assert (done.code, f"pid {dog.pid} looks like it" in done.last) == (1, True)
    again = world.script("watchdog_start.sh", kind(world), ALSO, str(world.home / "kit"), script_of(world))
    assert again.last == f"runs already as pid {dog.pid}"


def test_another_program_of_that_name_holds_nothing_up(world: World) -> None:
    """`gpu-watchdog.sh`, or the watchdog of something else, by its own path or from inside its own folder."""
    other = world.home / "other"
    other.mkdir()
    for name in ("watchdog.sh", "gpu-watchdog.sh"):
        (other / name).write_text("sleep 300; :\n")
    children = [world.spawn(["bash", word], cwd=other) for word in ("watchdog.sh", str(other / "gpu-watchdog.sh"))]
    for child in children:
        until(lambda pid=child.pid: b"watchdog.sh" in Path(f"/proc/{pid}/cmdline").read_bytes())  # type: ignore[misc]
    assert world.script("watchdog_gone.sh", LOCK, kind(world), ALSO).last == "none runs"


def test_a_number_that_belongs_to_another_program_is_never_signalled(world: World) -> None:
    """C057: log and lock name a pid that is a weight copy by now."""
    other = world.spawn(["sleep", "300"])
    (world.home / ".lock").write_text(f"{other.pid}\n")
    done = end(world, str(other.pid))
    assert f"pid {other.pid} is another program: not signalled" in done.words
    assert alive(other.pid)
    assert not (world.home / ".lock").exists()  # it was nobody's any more


@pytest.mark.parametrize("shows", ["tail", "vi"])
def test_what_only_shows_the_script_is_no_watchdog(world: World, shows: str) -> None:
    shown = world.spawn(["bash", "-c", f"exec -a {shows} tail -f {script_of(world)}"], stdout=subprocess.DEVNULL)
    until(lambda: Path(f"/proc/{shown.pid}/cmdline").read_bytes().startswith(f"{shows}\0".encode()))
    done = end(world, str(shown.pid))
    assert f"pid {shown.pid} is another program: not signalled" in done.words
    assert alive(shown.pid)
    assert world.script("watchdog_gone.sh", "-", kind(world), ALSO).code == 0


def test_a_watchdog_that_nobody_names_is_not_signalled_but_told(world: World) -> None:
    dog = world.spawn(["bash", "-c", f"sleep 300; {script_of(world)}"])
    until(lambda: script_of(world).encode() in Path(f"/proc/{dog.pid}/cmdline").read_bytes())
    done = end(world, "-")
    assert done.code == 1
    assert f"pid {dog.pid} looks like it, but neither its log nor its lock names it: not signalled" in done.words
    assert alive(dog.pid)


def test_what_starts_a_step_of_ours_is_no_watchdog_though_it_names_one(world: World) -> None:
    """It waits beside the step until that has begun, with the watchdog's command among its own words."""
    words = ["start", "/tmp", "op", "arm", "7", "auto", "1", "60", "-", "--", "sh", "-s", "--", script_of(world)]
    starter = world.spawn(["sh", "-c", "sleep 300; :", "laneswap", *words])
    until(lambda: script_of(world).encode() in Path(f"/proc/{starter.pid}/cmdline").read_bytes())
    assert world.script("watchdog_gone.sh", "-", kind(world), ALSO).code == 0
    folder = str(world.home / "kit")
    assert world.script("watchdog_start.sh", kind(world), ALSO, folder, script_of(world)).last == "started"
    until(lambda: mine(world).code == 0)
    assert end(world, "-").code == 0


def test_a_lock_that_names_another_watchdog_by_then_ends_that_one_and_only_it(world: World) -> None:
    dog = start(world)
    other = world.spawn(["sleep", "300"])
    assert end(world, str(other.pid)).code == 0
    dog.wait(60)
    assert alive(other.pid)


def test_without_a_watchdog_there_is_nothing_to_end(world: World) -> None:
    (world.home / ".lock").write_text("999999\n")
    done = world.script("watchdog_end.sh", "-", LOCK, kind(world), ALSO, str(world.evidence))
    assert done.code == 0
    assert not (world.home / ".lock").exists()
    assert world.script("watchdog_gone.sh", LOCK, kind(world), ALSO).code == 0


def test_it_is_gone_only_without_process_and_without_lock(world: World) -> None:
    dog = start(world)
    probe = world.script("watchdog_gone.sh", LOCK, kind(world), ALSO)
    assert (probe.code, str(dog.pid) in probe.words) == (1, True)
    assert end(world, str(dog.pid)).code == 0
    dog.wait(60)
    (world.home / ".lock").touch()
    assert world.script("watchdog_gone.sh", LOCK, kind(world), ALSO).last == "its lock is still there"


def test_it_is_started_in_a_session_of_its_own(world: World) -> None:
    folder = str(world.home / "kit")
    done = world.script("watchdog_start.sh", kind(world), ALSO, folder, script_of(world))
    assert (done.code, done.last) == (0, "started")
    until(lambda: mine(world).code == 0)
    pid = int((world.home / ".lock").read_text())
    assert os.getsid(pid) == pid
    again = world.script("watchdog_start.sh", kind(world), ALSO, folder, script_of(world))
    assert again.last.startswith("runs already as pid")
    assert end(world, str(pid)).code == 0
    until(lambda: not alive(pid))
    missing = world.script("watchdog_start.sh", kind(world), ALSO, folder, f"{folder}/launch/none.sh")
    assert (missing.code, "cannot be run" in missing.words) == (5, True)


def test_a_launch_that_is_under_way_is_seen(world: World) -> None:
    (world.home / "kit" / "launch" / "production.sh").write_text("sleep 300\n")
    mark = f"{world.home}/kit/launch/production.sh"
    part = pattern(mark)
    assert world.script("no_launch.sh", part).code == 0
    launch = world.spawn(["bash", mark])
    until(lambda: Path(f"/proc/{launch.pid}/cmdline").read_bytes().startswith(b"bash\0"))
    done = world.script("no_launch.sh", pattern("something else"), part)
    assert (done.code, f"pid {launch.pid}" in done.words) == (1, True)


def test_a_container_that_is_being_made_is_a_launch_too(world: World) -> None:
    seconds = f"{300 + os.getpid() % 97}.5"  # of this test alone
    making = world.spawn(["bash", "-c", f"exec -a docker sleep {seconds}"])
    until(lambda: Path(f"/proc/{making.pid}/cmdline").read_bytes().startswith(b"docker\0"))
    assert world.script("no_launch.sh", pattern(f"sleep {seconds}")).code == 0
    assert world.script("no_launch.sh", pattern(f"docker {seconds}")).code == 1


# --- flags and units -------------------------------------------------------------------------------------------------


def test_a_pause_flag_says_who_and_when_and_an_older_one_stays(world: World) -> None:
    flag = world.folder / "dog.pause"
    assert world.script("file_there.sh", str(flag)).code == 1
    assert world.script("flag_set.sh", str(flag), "paused by ana with laneswap").code == 0
    text = flag.read_text()
    assert text.startswith("paused by ana with laneswap at 2") and text.endswith("Z\n")
    probe = world.script("file_there.sh", str(flag))
    assert (probe.code, probe.words) == (0, text)
    assert world.script("flag_set.sh", str(flag), "paused by ben").last == "it is there already"
    assert flag.read_text() == text
    assert [path.name for path in world.folder.iterdir() if "laneswap" in path.name] == []


def test_a_flag_that_cannot_be_written_or_looked_for(world: World) -> None:
    blocked = world.folder / "file"
    blocked.touch()
    assert world.script("flag_set.sh", f"{blocked}/x", "w").code == 5
    assert world.script("file_there.sh", f"{blocked}/x").code == 2
    assert world.script("file_absent.sh", f"{blocked}/x").code == 2


def test_arming_removes_both_flags_and_starts_the_unit(world: World) -> None:
    pause, gaveup = world.folder / "pause", world.folder / "gaveup"
    for path in (pause, gaveup):
        path.touch()
    world.command("systemctl", f'echo "$@" >>{world.folder}/asked; [ "$1" != is-active ] || exit 3')
    assert world.script("file_absent.sh", str(pause)).code == 1
    done = world.script("watchdog_on.sh", "system", "dog.service", str(pause), str(gaveup))
    assert (done.code, done.last) == (0, "systemctl start dog.service")
    assert not pause.exists() and not gaveup.exists()
    assert "start -- dog.service" in (world.folder / "asked").read_text()
    assert world.script("file_absent.sh", str(pause)).code == 0


@pytest.mark.parametrize(
    ("code", "said", "active", "inactive"),
    [
        (0, "active", 0, 1),
        (0, "reloading", 0, 1),
        (3, "inactive", 1, 0),
        (3, "failed", 1, 0),
        (3, "activating", 1, 1),
        (4, "inactive", 2, 2),
        (1, "Failed to connect to bus: No medium found", 2, 2),
        (0, "", 1, 1),
        (255, "", 2, 2),
    ],
)
def test_only_a_unit_that_answers_is_known(world: World, code: int, said: str, active: int, inactive: int) -> None:
    """`systemctl --user` without a bus is not known: neither a yes nor a no."""
    world.command("systemctl", f"echo '{said}'; exit {code}")
    for manager in ("user", "system"):
        assert world.script("unit_is.sh", manager, "dog.service", "active").code == active
        assert world.script("unit_is.sh", manager, "dog.service", "inactive").code == inactive


@pytest.mark.parametrize("manager", ["user", "system"])
def test_a_unit_that_takes_long_is_waited_for_by_what_is_asked_afterwards(world: World, manager: str) -> None:
    """A client that gave up says nothing of the job: memory of 250 GB takes longer to give back than it waited."""
    world.command("timeout", 'shift 3; exec /usr/bin/timeout -k 1 0.2 "$@"')
    world.command("systemctl", "case $* in *is-active*) echo deactivating; exit 3 ;; esac; exec sleep 30")
    done = world.script("unit.sh", "stop", manager, "engine.service")
    assert (done.code, done.last) == (0, "systemctl stop engine.service: not through after 100 s, it goes on")
    assert world.script("unit_is.sh", manager, "engine.service", "inactive").code == 1, "and it is not stopped by that"
    done = world.script("watchdog_on.sh", manager, "dog.service")
    assert (done.code, done.last) == (0, "systemctl start dog.service: not through after 20 s, it goes on")


def test_a_unit_that_cannot_be_stopped_says_why(world: World) -> None:
    world.command("systemctl", "echo 'Failed to stop dog.service: Access denied' >&2; exit 1")
    done = world.script("unit.sh", "stop", "user", "dog.service")
    assert (done.code, "Access denied" in done.words) == (1, True)


# --- patterns --------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=3, max_size=20))
def test_a_pattern_finds_what_it_was_made_of_and_never_holds_it(part: str) -> None:
    made = pattern(part)
    if any(one.isalnum() for one in part):
        assert part not in made
    shown = subprocess.run(
        ["dash", "-c", "case $1 in *$2*) exit 0 ;; esac; exit 1", "x", f"bash /opt/{part} --x", made], check=False
    )
    assert shown.returncode == 0, (part, made)
