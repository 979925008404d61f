"""The log of a start, read from its beginning: every line, bounded, across lost connections, with an end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fake_docker import FakeDocker, container, fake_docker, frame
from fake_link import FakeLink

from console.reach import docker_scan
from console.reach.docker_engine import DockerEngine
from console.reach.docker_scan import LogScan

PATIENCE = 60.0
STARTED = 1_792_314_000.0
"""2026-10-18T09:00:00Z."""


@pytest.fixture
def docker(tmp_path: Path) -> Iterator[FakeDocker]:
    with fake_docker(tmp_path / "docker.sock") as running:
        yield running


class Taken:
    """Takes lines in the reading thread."""

    def __init__(self, enough: str = "") -> None:
        self.lines: list[tuple[float | None, str]] = []
        self.growing = ""
        self.enough = enough
        self.threads: set[str] = set()

    def __call__(self, lines: Sequence[tuple[float | None, str]], growing: str) -> bool:
        self.threads.add(threading.current_thread().name)
        self.lines += lines
        self.growing = growing or self.growing
        return bool(self.enough) and any(self.enough in text for _, text in lines)

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.lines]


@asynccontextmanager
async def scanned(
    docker: FakeDocker, taken: Taken, *, follow: bool = True, link: FakeLink | None = None
) -> AsyncIterator[tuple[LogScan, str]]:
    raw = docker.add(container(1, "serving")) if not docker.containers else next(iter(docker.containers.values()))
    engine = DockerEngine(link or FakeLink(), str(docker.path), lambda _: None)
    try:
        yield engine.scan_log(raw["Id"], taken, since=STARTED, follow=follow), raw["Id"]
    finally:
        await engine.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - threads and sockets set no event
            await asyncio.sleep(0.005)


def put(docker: FakeDocker, *pieces: bytes) -> None:
    raw = docker.add(container(1, "serving"))
    docker.log_pieces[raw["Id"]] = list(pieces)


async def test_all_lines_of_a_start_and_then_new_ones(docker: FakeDocker) -> None:
    put(docker, *(frame(2, b"2026-10-18T09:00:%02dZ line %d\n" % (n % 60, n)) for n in range(3000)))
    taken = Taken()
    async with scanned(docker, taken) as (scan, _):
        await until(lambda: len(taken.lines) == 3000)
        docker.send(frame(1, b"2026-10-18T09:10:00.5Z ready \x1b[31mto roll\n"))
        await until(lambda: len(taken.lines) == 3001)
        assert (scan.done, scan.problem, scan.skipped) == (False, "", False)
    assert taken.texts[:3] == ["line 0", "line 1", "line 2"]
    assert taken.lines[-1] == (STARTED + 600.5, "ready to roll")
    assert taken.threads == {"docker-spark-0"}
    asked = [query for path, query in docker.queries if path.endswith("/logs")]
    assert asked == [
        {
            "stdout": ["1"],
            "stderr": ["1"],
            "timestamps": ["1"],
            "follow": ["1"],
            "tail": ["20000"],
            "since": ["1792313999.800000000"],
        }
    ]


async def test_without_following_it_ends_with_the_newest_line(docker: FakeDocker) -> None:
    put(docker, frame(1, b"2026-10-18T09:00:01Z one\n"), frame(1, b"2026-10-18T09:00:02Z half a line"))
    taken = Taken()
    async with scanned(docker, taken, follow=False) as (scan, _):
        await until(lambda: scan.done)
        assert taken.texts == ["one", "half a line"]
        assert scan.problem == ""
    assert "follow" not in docker.queries[-1][1]


async def test_what_was_enough_ends_it(docker: FakeDocker) -> None:
    put(docker, frame(1, b"2026-10-18T09:00:01Z one\n"), frame(1, b"2026-10-18T09:00:02Z ready\n"))
    taken = Taken("ready")
    async with scanned(docker, taken) as (scan, _):
        await until(lambda: scan.done)
        await until(lambda: not docker.streams)  # the connection is given back, not only left alone
        docker.send(frame(1, b"2026-10-18T09:00:03Z more\n"))
    assert taken.texts == ["one", "ready"]


async def test_a_bar_is_seen_before_its_line_ends(docker: FakeDocker) -> None:
    bar = b"2026-10-18T09:00:01Z \rshards:  0% Completed | 0/9 [\rshards: 11% Completed | 1/9 ["
    put(docker, frame(2, bar))
    taken = Taken()
    async with scanned(docker, taken):
        await until(lambda: taken.growing)
        assert taken.growing == "shards: 11% Completed | 1/9 ["
        docker.send(frame(2, b"\rshards: 22% Completed | 2/9 ["))
        await until(lambda: "2/9" in taken.growing)
        docker.send(frame(2, b"\n"))
        await until(lambda: taken.lines)
    assert taken.texts == ["shards: 22% Completed | 2/9 ["]


async def test_a_lost_connection_loses_and_repeats_nothing(docker: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_scan, "RETRY_FIRST", 0.01)
    put(docker, frame(1, b"2026-10-18T09:00:01Z one\n"))
    taken = Taken()
    async with scanned(docker, taken) as (scan, key):
        await until(lambda: taken.lines)
        docker.log_pieces[key].append(frame(1, b"2026-10-18T09:00:02Z two\n"))
        docker.send(None)
        await until(lambda: len(taken.lines) == 2)
        await until(lambda: not scan.at_end)
    assert taken.texts == ["one", "two"]
    assert docker.queries[-1][1]["since"] == ["1792314001.000000000"]


async def test_a_log_that_ended_with_its_container_says_so(docker: FakeDocker) -> None:
    put(docker, frame(1, b"2026-10-18T09:00:01Z last words\n"))
    taken = Taken()
    async with scanned(docker, taken) as (scan, _):
        await until(lambda: taken.lines and docker.streams)
        assert not scan.at_end
        docker.send(None)
        await until(lambda: scan.at_end)
        assert not scan.done


@pytest.mark.parametrize(
    ("status", "body", "problem", "done"),
    [
        (
            501,
            b'{"message": "configured logging driver does not support reading"}',
            "its log driver keeps nothing",
            True,
        ),
        (404, b'{"message": "No such container: x"}', "container is gone", True),
        (500, b'{"message": "out of file handles"}', "the daemon answers 500: out of file handles", False),
    ],
)
async def test_a_log_that_cannot_be_read(
    docker: FakeDocker, status: int, body: bytes, problem: str, done: bool
) -> None:
    raw = docker.add(container(1, "serving"))
    docker.answers[f"/containers/{raw['Id']}/logs"] = (status, body)
    taken = Taken()
    async with scanned(docker, taken) as (scan, _):
        await until(lambda: scan.problem)
        assert problem in scan.problem
        assert scan.done is done
    assert taken.lines == []


async def test_a_host_that_is_away_is_asked_again(docker: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_scan, "RETRY_FIRST", 0.01)
    put(docker, frame(1, b"2026-10-18T09:00:01Z one\n"))
    link, taken = FakeLink(), Taken()
    link.down = True
    async with scanned(docker, taken, link=link) as (scan, _):
        await until(lambda: scan.problem.startswith("log lost, asking again"))
        link.down = False
        await until(lambda: taken.texts == ["one"])
        assert scan.problem == ""


async def test_a_flood_is_paused_and_then_followed_where_it_is(
    docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_scan, "MOST_BYTES", 200_000)
    monkeypatch.setattr(docker_scan, "FLOOD_PAUSE", 0.05)
    put(docker, *(frame(1, (b"2026-10-18T09:00:%02dZ " % n + b"x" * 900 + b"\n") * 20) for n in range(60)))
    taken = Taken()
    async with scanned(docker, taken) as (scan, _):
        await until(lambda: scan.skipped)
        first = len(taken.lines)
        assert 200 <= first <= 400
        await until(lambda: sum(path.endswith("/logs") for path, _ in docker.queries) >= 2)
        assert docker.queries[-1][1]["tail"] == ["200"]


async def test_a_flood_of_what_is_only_read_back_ends_it(docker: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_scan, "MOST_BYTES", 50_000)
    put(docker, *(frame(1, (b"2026-10-18T09:00:%02dZ " % n + b"x" * 900 + b"\n") * 20) for n in range(60)))
    taken = Taken()
    async with scanned(docker, taken, follow=False) as (scan, _):
        await until(lambda: scan.done)
        assert len(taken.lines) < 200


async def test_after_close_nothing_is_taken_and_nothing_runs(docker: FakeDocker) -> None:
    put(docker, frame(1, b"2026-10-18T09:00:01Z one\n"))
    taken = Taken()
    async with scanned(docker, taken) as (scan, _):
        await until(lambda: taken.lines)
        await scan.close()
        await scan.close()
        await until(lambda: not docker.streams)
        docker.send(frame(1, b"2026-10-18T09:00:02Z two\n"))
    assert taken.texts == ["one"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("docker-spark")]
