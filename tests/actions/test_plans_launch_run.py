"""The launcher's step, run for real: what it leaves, what is ended with it, what is said of a launch that failed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from play import Done, World, alive, until

from console.actions.probes import scripted

LAUNCHER = """#!/bin/bash
echo "flags: $# dir: $(pwd) umask: $(umask)"
[ -z "${LEAKED:-}" ] || echo leaked
"""
NAME = "sgldsv41"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "w")
    (made.home / "kit" / "launch").mkdir(parents=True)
    yield made
    made.close()


def launcher(world: World, text: str) -> str:
    path = world.home / "kit" / "launch" / "relaunch.sh"
    path.write_text(LAUNCHER + text + "\n")
    path.chmod(0o755)
    return "~/kit/launch/relaunch.sh"


def words(world: World, command: str, *more: str, log: str = "-", name: str = NAME) -> list[str]:
    meanings = ["1=the launch failed, or so it says", "3=the head's container ended"]
    return ["~/kit", str(world.evidence), "/s", name, log, *meanings, "--", command, *more]


def launch(world: World, text: str, *more: str, log: str = "-") -> Done:
    return world.script("launch.sh", *words(world, launcher(world, text), *more, log=log))


def new_box(letter: str, name: str = NAME) -> str:
    """Shell text that makes and starts a container as a launcher does."""
    data = json.dumps({"id": letter * 64, "name": name, "cmd": ["sleep", "300"]})
    return f"echo '{data}' >$FAKE_DOCKER/{letter}.json; docker start {letter * 64} >/dev/null"


def test_it_runs_in_its_folder_with_its_words_and_nothing_on_its_input(world: World) -> None:
    done = launch(world, 'cat; echo "got $1"', "two words")
    assert (done.code, done.last) == (0, "the launcher ended well")
    assert f"flags: 1 dir: {world.home}/kit umask: 0022" in done.words
    assert "got two words" in done.words


def test_daemons_in_sessions_of_their_own_live_on_after_it(world: World) -> None:
    done = launch(world, 'nohup setsid sleep 300 >/dev/null 2>&1 & echo $! >"$HOME/daemon"')
    assert done.code == 0
    pid = int((world.home / "daemon").read_text())
    assert alive(pid)
    subprocess.run(["kill", str(pid)], check=True)


def test_when_it_is_ended_its_children_end_and_its_daemons_live_on(world: World) -> None:
    """Its unit leaves processes alone, so what the launcher waits for has to be ended by hand."""
    command = launcher(
        world,
        'nohup setsid sleep 300 >/dev/null 2>&1 & echo $! >"$HOME/daemon"\n'
        'sleep 300 & echo $! >"$HOME/child"\nbash -c "echo \\$\\$ >$HOME/deeper; sleep 300" &\nwait',
    )
    argv, stdin = scripted("launch.sh", *words(world, command))
    running = world.spawn(world.words(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert running.stdin is not None
    running.stdin.write(stdin.encode())
    running.stdin.close()
    running.stdin = None
    files = [world.home / name for name in ("daemon", "child", "deeper")]
    until(lambda: all(path.exists() and path.read_text().strip() for path in files))
    daemon, child, deeper = (int(path.read_text()) for path in files)
    running.send_signal(signal.SIGTERM)
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 143
    assert b"the launcher was ended" in said
    until(lambda: not alive(child) and not alive(deeper))
    assert alive(daemon)
    subprocess.run(["kill", str(daemon)], check=True)


def test_a_failed_launch_is_told_by_what_is_seen_not_by_its_last_line(world: World) -> None:
    """It says that the fleet is down; the old engine was never touched."""
    world.box("a", NAME, ["sleep", "300"])
    assert world.docker("start", "a" * 64).code == 0
    done = launch(world, 'echo "launch failed — the fleet is DOWN and the watchdog is DISARMED"; exit 1')
    assert done.code == 1
    assert "the launcher ended with 1: the launch failed, or so it says" in done.words
    assert done.last == f"seen now: {NAME} is the one from before (running): this launch replaced nothing on the head"


def test_a_failed_launch_that_removed_the_old_engine_says_so(world: World) -> None:
    world.box("a", NAME, ["sleep", "300"])
    done = launch(world, f"docker rm -f {NAME}; exit 1")
    assert done.last == f"seen now: no container {NAME} is there"
    world.box("a", NAME, ["sleep", "300"])
    done = launch(world, f"docker rm -f {NAME}; {new_box('b')}; exit 3")
    assert "the launcher ended with 3: the head's container ended" in done.words
    assert done.last == f"seen now: {NAME} is a new one (running)"
    assert launch(world, "exit 7").words.count("the launcher ended with 7\n") == 1


def test_its_own_log_is_kept_the_newest_of_this_launch(world: World) -> None:
    logs = world.home / "logs"
    logs.mkdir()
    (logs / "relaunch-old.log").write_text("yesterday\n")
    subprocess.run(["touch", "-d", "2020-01-01", str(logs / "relaunch-old.log")], check=True)
    done = launch(world, 'echo "ABORT preflight" >"$HOME/logs/relaunch-1.log"; exit 1', log="~/logs/relaunch-*.log")
    assert "ABORT preflight" in done.words
    assert (world.evidence / "launcher.log").read_text() == "ABORT preflight\n"
    (logs / "relaunch-1.log").unlink()
    done = launch(world, "exit 1", log="~/logs/relaunch-*.log")
    assert "yesterday" not in done.words


def test_only_a_new_process_counts_as_launched(world: World) -> None:
    world.box("a", NAME, ["sleep", "300"])
    assert world.docker("start", "a" * 64).code == 0
    ask = ["/s", NAME, str(world.evidence)]
    launch(world, "exit 0")
    assert world.script("launched.sh", *ask).last == "it is still the one from before"
    launch(world, f"docker rm -f {NAME} >/dev/null; exit 0")
    assert world.script("launched.sh", *ask).last == f"no container {NAME} yet"
    launch(world, f"{new_box('b')}; exit 0")
    assert world.script("launched.sh", *ask).code == 0
    launch(world, f"docker stop -t 5 {NAME}; docker start {NAME}; exit 0")
    assert world.script("launched.sh", *ask).code == 0, "the same container, but another process"
    world.docker("stop", "-t", "5", NAME)
    assert world.script("launched.sh", *ask).last == "it is exited with 0"


def test_without_a_word_of_what_ran_before_nothing_is_a_new_one(world: World) -> None:
    """Docker was asked before the launch and did not answer: the engine from before is not called new."""
    world.box("a", NAME, ["sleep", "300"])
    world.docker("start", NAME)
    noted = world.evidence / "before.launch"
    noted.parent.mkdir(parents=True)
    for text in (None, "", "unknown\n"):
        if text is not None:
            noted.write_text(text)
        done = world.script("launched.sh", "/s", NAME, str(world.evidence))
        assert (done.code, "whether it is a new one is not known" in done.words) == (2, True), text
    noted.write_text("absent\n")
    assert world.script("launched.sh", "/s", NAME, str(world.evidence)).last == "a new one runs"


def test_nothing_is_launched_while_docker_does_not_say_what_runs(world: World) -> None:
    (world.boxes / "down").touch()
    done = launch(world, 'touch "$HOME/launched"')
    assert (done.code, (world.home / "launched").exists()) == (5, False)
    assert "not launched: what runs there is not known: Cannot connect to the Docker daemon" in done.words


def test_what_is_there_after_a_failed_launch_is_not_known_without_docker(world: World) -> None:
    world.box("a", NAME, ["sleep", "300"])
    world.docker("start", NAME)
    done = launch(world, 'touch "$FAKE_DOCKER/down"; exit 1')
    assert done.last.startswith(f"seen now: whether {NAME} is there is not known: Cannot connect")


def test_a_rank_that_ends_is_seen_and_the_one_from_before_is_not_taken_for_it(world: World) -> None:
    former = "a" * 64
    assert world.script("rank_alive.sh", "/s", NAME, former).last == "not made yet"
    world.box("a", NAME, ["sleep", "300"], status="exited", code=137)
    assert world.script("rank_alive.sh", "/s", NAME, former).last == "not replaced yet"
    (world.boxes / "a.json").unlink()
    world.box("b", NAME, ["sleep", "300"])
    assert world.script("rank_alive.sh", "/s", NAME, former).last == "created"
    world.docker("start", NAME)
    assert world.script("rank_alive.sh", "/s", NAME, former).code == 0
    (world.boxes / "b.json").unlink()
    world.box("c", NAME, ["true"], status="exited", code=137, oom=True)
    done = world.script("rank_alive.sh", "/s", NAME, former)
    assert (done.code, done.last) == (1, "it is exited with 137, out of memory")


def test_a_rank_that_its_policy_restarts_has_ended(world: World) -> None:
    world.box("b", NAME, ["sleep", "300"])
    world.docker("start", NAME)
    path = world.boxes / "b.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "restarts": 1}))
    for script, more in (("rank_alive.sh", "a" * 64), ("launched.sh", str(world.evidence))):
        done = world.script(script, "/s", NAME, more)
        assert (done.code, done.last) == (1, "restarted by its policy once"), script
    path.write_text(json.dumps({**data, "restarts": 3, "status": "restarting", "code": 9}))
    for script, more in (("rank_alive.sh", "a" * 64), ("launched.sh", str(world.evidence))):
        done = world.script(script, "/s", NAME, more)
        assert (done.code, done.last) == (1, "restarted by its policy 3 times, last exit code 9"), script


def test_survivors_are_stopped_and_what_ran_before_is_left_alone(world: World) -> None:
    world.box("a", NAME, ["sleep", "300"])
    world.docker("start", NAME)
    done = world.script("survivors_stop.sh", "/s", NAME, "a" * 64, "5")
    assert (done.last, world.seen("a")["State"]["Status"]) == ("it is the one from before: left alone", "running")
    done = world.script("survivors_stop.sh", "/s", NAME, "-", "5")
    assert (done.last, world.seen("a")["State"]["Status"]) == ("stopped", "exited")
    assert world.script("survivors_stop.sh", "/s", NAME, "-", "5").last == "it has ended"
    assert world.script("survivors_stop.sh", "/s", "none", "-", "5").last == "no container is there"


def test_a_plain_command_ends_as_it_ends(world: World) -> None:
    command = launcher(world, "exit ${1:-0}")
    assert world.script("launcher.sh", "~/kit", command).code == 0
    done = world.script("launcher.sh", "-", command, "9")
    assert (done.code, done.last) == (9, f"{world.home}/kit/launch/relaunch.sh ended with 9")
    assert f"dir: {world.home} " in done.words
    assert world.script("launcher.sh", "~/none", command).code == 5


@pytest.mark.parametrize("name", ["a; touch PWNED", "$(touch PWNED)", "-rf", "a\tb", "*", "`touch PWNED`", "a'b\"c"])
def test_hostile_words_stay_words(world: World, name: str) -> None:
    """What reaches a script is one word, whatever is in it."""
    for script, more in (
        ("container_stopped.sh", []),
        ("container_named.sh", [name]),
        ("rank_alive.sh", [name]),
        ("container_gone.sh", []),
        ("start_container.sh", [name, name, str(world.evidence), str(world.state)]),
        ("stop_container.sh", ["1", name, "1", str(world.evidence), str(world.state)]),
        ("survivors_stop.sh", [name, "1"]),
    ):
        world.script(script, "/s", name, *more)
    world.script("file_there.sh", name)
    world.script("launcher.sh", "-", "echo", name)
    world.script("serving.sh", f"http://127.0.0.1:1/{name}", name, name)
    world.script("watchdog_end.sh", name, name, name, name, str(world.evidence))
    assert not list(world.folder.rglob("PWNED"))
    assert not Path("PWNED").exists()
