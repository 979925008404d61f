"""Docker over a socket: what is read, how fast a death shows, what a refusal says, and that nothing stays behind."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_docker import CLOCK, FakeDocker, container, dead_socket, fake_docker, frame
from fake_link import FakeLink

from console.reach import docker_engine
from console.reach.docker_engine import DockerEngine
from console.reach.link import Reason
from console.readings.containers import Containers, ContainerState
from console.readings.exits import ContainerEvent

PATIENCE = 60.0
NOW = CLOCK * 10**9


@pytest.fixture
def docker(tmp_path: Path) -> Iterator[FakeDocker]:
    with fake_docker(tmp_path / "docker.sock") as running:
        yield running


def engine_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("docker-spark")]


def sockets_open() -> int:
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
        except FileNotFoundError:
            continue
    return found


@asynccontextmanager
async def opened(
    path: Path, link: FakeLink | None = None, *, limit: float = 10.0
) -> AsyncIterator[tuple[DockerEngine, list[ContainerEvent]]]:
    events: list[ContainerEvent] = []
    engine = DockerEngine(link or FakeLink(), str(path), events.append, limit=limit)
    try:
        yield engine, events
    finally:
        await engine.close()


@asynccontextmanager
async def watched(path: Path, link: FakeLink | None = None) -> AsyncIterator[tuple[DockerEngine, list[ContainerEvent]]]:
    async with opened(path, link) as (engine, events):
        task = asyncio.create_task(engine.watch())
        await until(lambda: engine.watching)
        try:
            yield engine, events
        finally:
            await engine.close()
            await asyncio.wait_for(task, PATIENCE)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - threads and sockets set no event
            await asyncio.sleep(0.005)


def names(answer: Containers) -> list[str]:
    return [item.name for item in answer.items]


async def test_reads_all_containers_whole(docker: FakeDocker) -> None:
    docker.add(container(1, "old", state="exited", code=137))
    docker.add(container(2, "new"))
    async with opened(docker.path) as (engine, _):
        answer = await engine.read()
    assert answer.problem == ""
    assert answer.api_version == "1.41"
    assert answer.total is None
    assert names(answer) == ["new", "old"]
    assert answer.items[0].revision == "1bae0e10" * 5
    assert answer.items[0].ports == (30006,)
    assert answer.items[1].exit_code == 137
    assert "cause not recorded" in answer.items[1].exit_meaning


async def test_a_host_without_containers_is_read_and_empty(docker: FakeDocker) -> None:
    async with opened(docker.path) as (engine, _):
        answer = await engine.read()
    assert (answer.items, answer.problem) == ((), "")


async def test_speaks_the_highest_version_both_know(docker: FakeDocker) -> None:
    docker.version = {"ApiVersion": "1.52", "MinAPIVersion": "1.44"}
    async with opened(docker.path) as (engine, _):
        assert (await engine.read()).api_version == "1.47"
    assert docker.asked == ["/version", "/v1.47/containers/json"]


async def test_inspects_again_only_what_changed(docker: FakeDocker) -> None:
    raws = [docker.add(container(n, f"c{n}", state="exited" if n else "running")) for n in range(5)]
    async with watched(docker.path) as (engine, events):
        await engine.read()
        docker.asked.clear()
        await engine.read()
        assert docker.asked == ["/v1.41/containers/json"]
        raws[0]["State"].update(Status="exited", Running=False, ExitCode=0)
        docker.emit(raws[0], "die", NOW, exitCode="0")
        await until(lambda: bool(events))
        docker.asked.clear()
        answer = await engine.read()
        assert docker.asked == ["/v1.41/containers/json", f"/v1.41/containers/{raws[0]['Id']}/json"]
    assert {item.state for item in answer.items} == {ContainerState.EXITED}


async def test_without_events_what_is_up_is_always_inspected(docker: FakeDocker) -> None:
    up = docker.add(container(1, "up"))
    docker.add(container(2, "down", state="exited"))
    async with opened(docker.path) as (engine, _):
        await engine.read()
        docker.asked.clear()
        up["State"]["StartedAt"] = "2026-10-18T09:30:00Z"
        answer = await engine.read()
    assert docker.asked == ["/v1.41/containers/json", f"/v1.41/containers/{up['Id']}/json"]
    assert answer.items[0].started_at == 1_792_315_800.0


async def test_many_containers_are_bounded_and_counted(docker: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_engine, "INSPECT_MOST", 3)
    monkeypatch.setattr(docker_engine, "SHOW_MOST", 6)
    for number in range(10):
        docker.add(container(number, f"c{number}", state="running" if number == 0 else "exited"))
    async with opened(docker.path) as (engine, _):
        answer = await engine.read()
    assert names(answer) == ["c0", "c9", "c8", "c7", "c6", "c5"]
    assert [item.inspected for item in answer.items] == [True] * 3 + [False] * 3
    assert answer.total == 10
    assert len([path for path in docker.asked if path.endswith("/json") and "containers/0" in path]) == 3


async def test_a_container_removed_while_reading_is_left_out(docker: FakeDocker) -> None:
    docker.add(container(1, "stays"))
    going = docker.add(container(2, "goes"))
    docker.answers[f"/containers/{going['Id']}/json"] = (404, b'{"message":"No such container: goes"}')
    async with opened(docker.path) as (engine, _):
        answer = await engine.read()
    assert names(answer) == ["stays"]


async def test_a_death_is_told_with_its_cause(docker: FakeDocker) -> None:
    raw = docker.add(container(1, "sgldsv41"))
    async with watched(docker.path) as (engine, events):
        await engine.read()
        docker.emit(raw, "exec_create: /bin/sh -c curl", NOW)
        docker.emit(raw, "kill", NOW, signal="15")
        docker.emit(raw, "kill", NOW + 10 * 10**9, signal="9")
        raw["State"].update(Status="exited", Running=False, ExitCode=137, FinishedAt="2026-10-18T09:10:21Z")
        docker.emit(raw, "die", NOW + 10 * 10**9 + 1, exitCode="137")
        await until(lambda: len(events) == 3)
        answer = await engine.read()
    assert [event.action for event in events] == ["kill", "kill", "die"]
    assert events[-1].exit_code == 137
    assert answer.items[0].exit_meaning == "killed after stop timeout: 10 s after the stop it had not ended"


async def test_past_events_explain_but_are_no_news(docker: FakeDocker) -> None:
    raw = docker.add(container(1, "old", state="exited", code=0))
    raw["State"]["FinishedAt"] = "2026-10-18T09:00:11Z"
    docker.emit(raw, "kill", NOW - 601 * 10**9, signal="15")
    docker.emit(raw, "die", NOW - 600 * 10**9, exitCode="0")
    async with watched(docker.path) as (engine, events):
        await until(lambda: len(engine._history.of(raw["Id"])) == 2)
        answer = await engine.read()
        assert events == []
    assert answer.items[0].exit_meaning == "stopped on request, exit 0"


async def test_events_missed_while_the_stream_was_down_come_once(
    docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_engine, "RETRY_FIRST", 0.01)
    raw = docker.add(container(1, "c"))
    async with watched(docker.path) as (engine, events):
        docker.emit(raw, "pause", NOW)
        await until(lambda: len(events) == 1)
        docker.past.append({**docker.past[-1], "Action": "unpause", "timeNano": NOW + 5})
        docker.send(None)
        await until(lambda: len(events) == 2)
        docker.emit(raw, "die", NOW + 9, exitCode="1")
        await until(lambda: len(events) == 3)
        assert [event.action for event in events] == ["pause", "unpause", "die"]
        assert engine.watching
    since = [query["since"][0] for path, query in docker.queries if path == "/events"]
    assert since[1] == f"{NOW // 10**9}.000000000"


async def test_noise_of_health_checks_is_asked_away(docker: FakeDocker) -> None:
    async with watched(docker.path):
        filters = [json.loads(query["filters"][0]) for path, query in docker.queries if path == "/events"]
    assert filters[0]["type"] == ["container"]
    assert "die" in filters[0]["event"]
    assert not [action for action in filters[0]["event"] if action.startswith("exec")]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, b'{"message":"client version 1.43 is too old. Minimum supported API version is 1.44"}', "1.44 or newer"),
        (400, b'{"message":"client version 1.52 is too new. Maximum supported API version is 1.41"}', "at most 1.41"),
        (500, b'{"message":"boom \\u001b[31mred"}', "the daemon answers 500: boom red"),
        (503, b"<html>nope</html>", "the daemon answers 503"),
        (200, b"<html>hello</html>", "does not speak its API"),
        (200, b'{"not": "a list"}', "does not speak its API"),
        (200, b'[{"no": "id"}]', "a list row without Id and Names"),
        (200, b'[{"Id": ', "does not speak its API"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_no_empty_list(
    docker: FakeDocker, status: int, body: bytes, words: str
) -> None:
    docker.answers["/containers/json"] = (status, body)
    async with opened(docker.path) as (engine, _):
        answer = await engine.read()
    assert answer.items == ()
    assert words in answer.problem
    assert "\x1b" not in answer.problem


async def test_versions_that_do_not_meet_are_both_named(docker: FakeDocker) -> None:
    docker.version = {"ApiVersion": "1.99", "MinAPIVersion": "1.90"}
    async with opened(docker.path) as (engine, _):
        answer = await engine.read()
    assert answer.problem == "incompatible: Docker speaks API 1.90-1.99, this client 1.24-1.47"


async def test_an_endless_answer_is_bounded(docker: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    from console.reach import docker_sdk

    monkeypatch.setattr(docker_sdk, "MAX_ANSWER", 1 << 20)
    docker.answers["/containers/json"] = (200, b"[" + b" " * (3 << 20) + b"]")
    async with opened(docker.path) as (engine, _):
        answer = await engine.read()
    assert "over 1 MiB" in answer.problem


async def test_a_daemon_that_hangs_is_said_to_and_costs_no_thread(docker: FakeDocker) -> None:
    docker.hang.add("/containers/json")
    async with opened(docker.path, limit=1.0) as (engine, _):
        answer = await engine.read()
        assert answer.problem == "Docker does not answer within 1 s"
        await until(lambda: not engine_threads())
        docker.hang.clear()
        docker.add(container(1, "back"))
        assert names(await engine.read()) == ["back"]


async def test_a_dead_daemon_is_told_from_a_missing_one(tmp_path: Path) -> None:
    dead_socket(tmp_path / "dead.sock")
    async with opened(tmp_path / "dead.sock") as (engine, _):
        assert (await engine.read()).problem.startswith("Docker is down: its socket")
    async with opened(tmp_path / "none.sock") as (engine, _):
        assert (await engine.read()).problem == f"no Docker socket at {tmp_path / 'none.sock'}"
    (tmp_path / "file").write_text("")
    async with opened(tmp_path / "file") as (engine, _):
        assert (await engine.read()).problem.endswith("is not a socket")


async def test_a_group_that_is_not_active_yet_wants_a_reconnect(tmp_path: Path) -> None:
    link = FakeLink()
    link.refuse = Reason.FORBIDDEN
    link.probe = (
        "kind=socket\nwritable=no\ngroup=docker\nid=uid=1000(ops) gid=1000(ops) groups=1000(ops),27(sudo)\n"
        "getent=docker:x:988:ops\n"
    )
    async with opened(tmp_path / "docker.sock", link) as (engine, _):
        answer = await engine.read()
    assert answer.problem == "permission: docker group not active in this session, reconnect"
    assert link.ran[0][0] == "sh"
    assert link.ran[0][-1] == str(tmp_path / "docker.sock")


async def test_a_lost_host_is_not_an_empty_one_and_comes_back(docker: FakeDocker) -> None:
    docker.add(container(1, "c"))
    link = FakeLink()
    async with opened(docker.path, link) as (engine, _):
        assert names(await engine.read()) == ["c"]
        await engine._shut()
        link.down = True
        lost = await engine.read()
        assert lost.items == ()
        assert "connection lost" in lost.problem
        assert link.ran == []
        link.down = False
        assert names(await engine.read()) == ["c"]


async def test_reading_twice_at_once_asks_once_at_a_time(docker: FakeDocker) -> None:
    docker.add(container(1, "c"))
    async with opened(docker.path) as (engine, _):
        answers = await asyncio.gather(*(engine.read() for _ in range(4)))
    assert [names(answer) for answer in answers] == [["c"]] * 4
    assert docker.asked.count("/version") == 1


async def follow(engine: DockerEngine, container_id: str) -> tuple[Any, list[tuple[float | None, str]]]:
    lines: list[tuple[float | None, str]] = []
    return engine.follow_log(container_id, lambda wall, text: lines.append((wall, text))), lines


async def test_follows_a_log_with_both_streams_and_times(docker: FakeDocker) -> None:
    raw = docker.add(container(1, "c"))
    docker.log_pieces[raw["Id"]] = [
        frame(1, b"2026-10-18T09:00:00.000000001Z out \x1b[31mred\n")
        + frame(2, b"2026-10-18T09:00:01.500000000Z err one\n2026-10"),
        frame(2, b"-18T09:00:02.000000000Z err two\n"),
    ]
    async with opened(docker.path) as (engine, _):
        follower, lines = await follow(engine, raw["Id"])
        await until(lambda: len(lines) == 3)
        docker.send(frame(1, b"2026-10-18T09:00:03Z live\n"))
        await until(lambda: len(lines) == 4)
        assert follower.problem == ""
    assert [text for _, text in lines] == ["out red", "err one", "err two", "live"]
    assert [wall for wall, _ in lines] == [1_792_314_000.000000001, 1_792_314_001.5, 1_792_314_002.0, 1_792_314_003.0]
    assert [query["tail"] for path, query in docker.queries if path.endswith("/logs")] == [["200"]]


async def test_a_log_goes_on_after_its_stream_ended_without_repeating(
    docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from console.reach import docker_follow

    monkeypatch.setattr(docker_follow, "RETRY_FIRST", 0.01)
    raw = docker.add(container(1, "c"))
    pieces = docker.log_pieces[raw["Id"]] = [frame(1, b"2026-10-18T09:00:00.5Z one\n")]
    async with opened(docker.path) as (engine, _):
        _, lines = await follow(engine, raw["Id"])
        await until(lambda: len(lines) == 1)
        pieces.append(frame(1, b"2026-10-18T09:00:01Z two\n"))
        docker.send(None)
        await until(lambda: len(lines) == 2)
    assert [text for _, text in lines] == ["one", "two"]
    asked = [query for path, query in docker.queries if path.endswith("/logs")]
    assert asked[1]["since"] == ["1792314000.500000000"]


async def test_a_flood_keeps_the_newest_lines_and_counts_the_rest(docker: FakeDocker) -> None:
    raw = docker.add(container(1, "c"))
    row = b"2026-10-18T09:00:00Z "
    flood = b"".join(frame(1, row + b"line %d\n" % number) for number in range(20_000))
    docker.log_pieces[raw["Id"]] = [flood]
    async with opened(docker.path) as (engine, _):
        follower, lines = await follow(engine, raw["Id"])
        await until(lambda: bool(lines) and lines[-1][1] == "line 19999")
        assert follower.skipped + len(lines) == 20_000
        assert follower.skipped > 0


async def test_the_log_of_a_container_that_is_gone_says_so(docker: FakeDocker) -> None:
    async with opened(docker.path) as (engine, _):
        follower, lines = await follow(engine, "f" * 64)
        await until(lambda: follower.problem != "")
        assert (follower.problem, lines) == ("container is gone", [])


async def test_nothing_is_left_after_close(docker: FakeDocker) -> None:
    raw = docker.add(container(1, "c"))
    docker.log_pieces[raw["Id"]] = [frame(1, b"2026-10-18T09:00:00Z one\n")]
    link = FakeLink()
    before, tasks = sockets_open(), len(asyncio.all_tasks())
    async with watched(docker.path, link) as (engine, _):
        await engine.read()
        _, lines = await follow(engine, raw["Id"])
        await until(lambda: len(lines) == 1)
        await until(lambda: len(engine_threads()) == 2)
    assert engine_threads() == []
    assert link.forwards_open == 0
    assert not any(folder.exists() for folder in link.folders)
    assert len(asyncio.all_tasks()) == tasks
    await until(lambda: docker.open_connections == 0)
    await until(lambda: sockets_open() == before)
    assert (await engine.read()).problem == "no longer asked: closed"


async def test_closing_ends_a_read_that_hangs(docker: FakeDocker) -> None:
    docker.hang.add("/containers/json")
    async with opened(docker.path) as (engine, _):
        reading = asyncio.create_task(engine.read())
        await until(lambda: "/v1.41/containers/json" in docker.asked)
        await engine.close()
        answer = await asyncio.wait_for(reading, PATIENCE)
    assert answer.problem == "no longer asked: closed"
    assert engine_threads() == []


async def test_a_cancelled_read_leaves_no_thread_and_the_next_one_works(docker: FakeDocker) -> None:
    docker.add(container(1, "c"))
    docker.hang.add("/containers/json")
    async with opened(docker.path) as (engine, _):
        reading = asyncio.create_task(engine.read())
        await until(lambda: "/v1.41/containers/json" in docker.asked)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await until(lambda: not engine_threads())
        docker.hang.clear()
        assert names(await engine.read()) == ["c"]


@pytest.mark.parametrize("text", ["null", "[]", '{"proxies": []}'])
async def test_an_odd_client_configuration_is_said(
    docker: FakeDocker, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(text)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    async with opened(docker.path) as (engine, _):
        found = await engine.read()
    assert "the docker SDK cannot be set up here" in found.problem
    assert "config.json" in found.hint


async def test_a_quiet_log_wakes_nobody(docker: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    from console.reach import docker_follow

    monkeypatch.setattr(docker_follow, "FEED_EVERY", 0.001)
    raw = docker.add(container(1, "c"))
    docker.log_pieces[raw["Id"]] = [frame(1, b"2026-10-18T09:00:00Z one\n")]
    taken: list[int] = []
    async with opened(docker.path) as (engine, _):
        follower, lines = await follow(engine, raw["Id"])
        await until(lambda: len(lines) == 1)
        monkeypatch.setattr(follower._pending, "take", lambda: taken.append(1) or [])
        await asyncio.sleep(0.2)
    assert len(taken) <= 1


def test_the_sdk_is_imported_only_when_a_docker_is_asked() -> None:
    script = "import sys, console.reach.docker_engine; print(*{'docker', 'requests', 'urllib3'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""


async def test_cancelling_the_watch_ends_its_thread(docker: FakeDocker) -> None:
    async with opened(docker.path) as (engine, _):
        task = asyncio.create_task(engine.watch())
        await until(lambda: engine.watching)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not engine.watching
        await until(lambda: not engine_threads())
