"""What scripts hear from the runner that began them is what the docker program would have said, for every container."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from play import World

from console.actions.probes import scripted
from console.execution import runner_docker
from console.execution.runner_docker import told
from console.execution.sequence import runner_text

GONE = "f" * 64


class Daemon:
    """Docker's socket in front of the fake docker; counts what it was asked."""

    def __init__(self, world: World, path: Path) -> None:
        self.world, self.asked = world, 0
        self.status = 200
        self.silent = False
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(16)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self.asked += 1
            if self.silent:
                continue
            with client:
                client.sendall(self._answer(client.recv(4096).split(b" ")[1].decode()))

    def _answer(self, url: str) -> bytes:
        words = ("top", url.split("/")[2]) if "/top?" in url else ("inspect", url.split("/")[2])
        done = self.world.docker(*words)
        status = self.status if self.status != 200 else 404 if "No such container" in done.words else 200
        body = "{}"
        if status == 200 and done.code == 0:
            rows = done.words.split("\n")[1:-1]
            body = json.dumps(
                {"Processes": [[row] for row in rows]} if words[0] == "top" else json.loads(done.words)[0]
            )
        return f"HTTP/1.0 {status} X\r\nContent-Type: application/json\r\n\r\n{body}".encode()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path)
    made.box("a", "up", ["sleep", "600"], restart="on-failure:3")
    made.box("b", "down", ["true"])
    made.box("c", "pausing", ["sleep", "600"], auto_remove=True)
    made.docker("start", "up")
    made.docker("start", "pausing")
    data = json.loads((made.boxes / "c.json").read_text())
    (made.boxes / "c.json").write_text(json.dumps({**data, "status": "paused"}))
    for key, value in made.env().items():
        monkeypatch.setenv(key, value)
    yield made
    made.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "docker.sock"


@pytest.fixture
def daemon(world: World, path: Path) -> Iterator[Daemon]:
    made = Daemon(world, path)
    yield made
    made.close()


HARNESS = """
import json, runpy, sys
names = runpy.run_path(sys.argv[1])
shell = names["Shell"]({"": []})
print(json.dumps(shell.run("", *json.load(sys.stdin), 60.0)))
"""
"""One command by the runner's own file: in this process the descriptor belongs to somebody else."""


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runner") / "runner.py"
    path.write_text(runner_text())
    return path


def run(runner: Path, name: str, *words: str) -> tuple[int, str]:
    """A script as a child of the runner."""
    command = [sys.executable, "-I", "-c", HARNESS, str(runner)]
    given = json.dumps(scripted(name, *words))
    made = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=True)
    status, out, err = json.loads(made.stdout)
    return status, out + err


QUESTIONS = [
    ("container_gone.sh",),
    ("container_stopped.sh",),
    ("container_up.sh",),
    ("container_named.sh", "up"),
    ("container_startable.sh", "-"),
    ("container_startable.sh", "sha256:" + "a" * 64),
]


@pytest.mark.parametrize("letter", ["a", "b", "c", "f"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_runner_and_the_docker_program_say_the_same(
    runner: Path, world: World, daemon: Daemon, path: Path, question: tuple[str, ...], letter: str
) -> None:
    name, *more = question
    plain = world.script(name, str(path), letter * 64, *more)
    before = len(world.calls())
    code, words = run(runner, name, str(path), letter * 64, *more)
    assert (code, words) == (plain.code, plain.words)
    assert daemon.asked == 1 and len(world.calls()) == before + 1  # by the daemon itself, here


def test_a_stop_notes_the_same_processes(runner: Path, world: World, daemon: Daemon, path: Path) -> None:
    assert daemon
    pid = str(world.seen("a")["State"]["Pid"])
    code, words = run(
        runner, "stop_container.sh", str(path), "a" * 64, "5", "-", "9", str(world.evidence), str(world.state)
    )
    assert code == 0, words
    assert (world.evidence / ("pids." + "a" * 12)).read_text().split()[0] == pid
    assert world.seen("a")["State"]["Status"] == "exited"
    assert "top" not in [call[0] for call in world.calls() if call[0] == "-H"]


@pytest.mark.parametrize("trouble", ["no socket", "not docker", "an error"])
def test_where_the_runner_cannot_say_the_script_asks_by_itself(
    runner: Path, world: World, path: Path, trouble: str
) -> None:
    with_daemon = Daemon(world, path) if trouble == "an error" else None
    if with_daemon is not None:
        with_daemon.status = 500
    elif trouble == "not docker":
        path.write_text("")
    code, words = run(runner, "container_up.sh", str(path), "a" * 64)
    if with_daemon is not None:
        with_daemon.close()
        assert (code, words) == (2, "docker says 500\n")
    else:
        assert (code, words) == (0, "running\n")


def test_a_daemon_that_never_answers_is_not_known(daemon: Daemon, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.silent = True
    monkeypatch.setattr(runner_docker, "DOCKER_LIMIT", 0.2)
    assert told(f"{path}\tlook\t{'a' * 64}\t{{{{.State.Status}}}}") == "2 docker does not answer"


@pytest.mark.parametrize(
    "request_line",
    ["", "x", "\t\t\t", "{path}\tlook\t../../info\t{{.Id}}", "{path}\trm\taa\t", "{path}\tlook\t{id}\t{{len .Id}}"],
)
def test_anything_else_is_left_to_docker(daemon: Daemon, path: Path, request_line: str) -> None:
    assert told(request_line.replace("{path}", str(path)).replace("{id}", "a" * 64)) == "-"


def test_a_value_of_several_lines_is_one(daemon: Daemon, world: World, path: Path) -> None:
    world.box("d", "two\nlines\t\x1b[31m", ["true"])
    assert told(f"{path}\tlook\t{'d' * 64}\t{{{{.Name}}}}") == "0 /two lines  [31m"


def test_a_script_whose_runner_is_gone_asks_by_itself(world: World, path: Path) -> None:
    argv, stdin = scripted("container_up.sh", str(path), "a" * 64)
    ours, theirs = socket.socketpair()
    ours.close()
    made = subprocess.run(
        ["sh", "-c", 'exec 7<&0; printf %s "$TEXT" | "$@"', "sh", *argv],
        stdin=theirs,
        env={**os.environ, runner_docker.SAYS: "7", "TEXT": stdin},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert world.calls() and (made.returncode, made.stdout) == (0, "running\n")
