"""100,000 log lines at once, from the daemon's socket to the log screen: counted, since a test machine cannot time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.flood_daemon import Daemon, log_line
from console.app import LaneswapApp
from console.feed import Feed
from console.feed.follow import LINES_KEPT, LogFeed
from console.fleet.inventory import build
from console.reach.docker_follow import BATCH
from console.reach.docker_log import MAX_PENDING, Demultiplexer
from console.snapshot import LogLine, LogView
from screens.logs import LogsScreen
from screens.timeline import KEPT_LINES, Timeline

LINES = 100_000
LIMIT = 120.0


@asynccontextmanager
async def daemon(socket: Path) -> AsyncIterator[Daemon]:
    """A daemon in this loop, without its line a second."""
    docker = Daemon()
    server = await asyncio.start_unix_server(docker.serve, str(socket))
    try:
        yield docker
    finally:
        server.close()


def flooded(socket: Path) -> Feed:
    """A feed on this machine with a lane in that daemon's container."""
    lane = {"recipe": "docker-generic", "url": "http://127.0.0.1:8210", "engine": "sglang", "head": "here"}
    hosts = {"here": {"ssh": "local", "docker": str(socket)}}
    return Feed(build({"name": "flood", "hosts": hosts, "lanes": {"lane": {**lane, "via": "direct"}}}))


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(LIMIT):
        while not true():  # noqa: ASYNC110 - the log has no event to wait for
            await asyncio.sleep(0.02)


class Turns:
    """How many lines were handed on within one turn of the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self.lines = self._now = 0
        take, own = LogFeed._take, self

        def counted(feed: LogFeed, wall: float | None, text: str) -> None:
            if not own._now:
                asyncio.get_running_loop().call_soon(own._next)
            own._now += 1
            own.lines += 1
            own.most = max(own.most, own._now)
            take(feed, wall, text)

        monkeypatch.setattr(LogFeed, "_take", counted)

    def _next(self) -> None:
        self._now = 0


async def test_a_flood_is_handed_on_in_small_parts_and_every_line_is_accounted_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(monkeypatch)
    laid_out: list[int] = []
    body = LogsScreen.body

    def counted(screen: LogsScreen, glance: Any, width: int) -> Any:
        title, rows = body(screen, glance, width)
        laid_out.append(len(rows))
        return title, rows

    monkeypatch.setattr(LogsScreen, "body", counted)
    monkeypatch.setenv("LANESWAP_STATE", str(tmp_path / "state"))
    socket = tmp_path / "docker.sock"
    async with daemon(socket) as docker:
        app = LaneswapApp(flooded(socket), faults=tmp_path / "faults.log")
        async with app.run_test(size=(120, 40)):
            await until(lambda: docker._logs)
            app.perform("logs")
            await until(lambda: isinstance(app.front(), LogsScreen) and laid_out)
            await docker.write(LINES)

            def log() -> LogView | None:
                return app.timeline.newest.log if app.timeline.newest is not None else None

            await until(
                lambda: (seen := log()) is not None and seen.lines and f"line {LINES - 1}:" in seen.lines[-1].text
            )
            seen = log()
            assert seen is not None and app.faults.newest == ""
    numbers = [int(line.text.split(" ")[1].rstrip(":")) for line in seen.lines]
    assert len(numbers) == LINES_KEPT and numbers == sorted(set(numbers)), "the newest, each once, in order"
    assert turns.lines + seen.skipped == LINES, "what was left out is counted"
    assert turns.most <= BATCH < MAX_PENDING
    assert max(laid_out) <= 40, "only what is in view is laid out"


def long_log(lines: int, first: int = 0) -> LogView:
    return LogView(
        "here", "flood", tuple(LogLine(1.0, f"line {first + number}: " + "x" * 300) for number in range(lines))
    )


async def test_who_scrolls_back_from_the_newest_line_finds_all_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole log is laid out once it is held, and not before."""
    socket = tmp_path / "none.sock"
    app = LaneswapApp(flooded(socket), faults=tmp_path / "faults.log")
    log = long_log(LINES_KEPT)
    take = app.source.snapshot
    monkeypatch.setattr(app.source, "snapshot", lambda: replace(take(), log=log))
    async with app.run_test(size=(120, 40)) as pilot:
        app.perform("logs")
        await until(lambda: isinstance(app.front(), LogsScreen))
        screen = app.front()
        assert isinstance(screen, LogsScreen)
        await until(lambda: screen.reader.length)
        await pilot.pause()
        assert screen.following and screen.reader.length <= 40
        screen.do_scroll_up("")
        assert screen.reader.length == LINES_KEPT
        assert screen.reader.first == LINES_KEPT - screen.reader.room - 1
        screen.do_end("")
        app.redraw()
        screen.do_top("")
        assert (screen.following, screen.reader.first) == (False, 0)
        app.redraw()
        assert "line 0:" in "".join(text for row in screen.reader.rows_now for text, _, _ in row)


def test_older_pictures_of_a_flooded_log_keep_a_screen_of_it() -> None:
    timeline = Timeline()
    first = flooded(Path("none.sock")).snapshot()
    for second in range(5):
        log = long_log(LINES_KEPT, second * LINES_KEPT)
        timeline.add(replace(first, now=first.now + second, log=log))
    newest = timeline.newest
    assert newest is not None and newest.log is not None and len(newest.log.lines) == LINES_KEPT
    assert timeline.pause() and timeline.shown is newest
    assert timeline.step(-1)
    shown = timeline.shown
    assert shown is not None and shown.log is not None
    assert [len(shown.log.lines), shown.log.lines[-1].text[:11]] == [KEPT_LINES, "line 7999: "]


def test_a_piece_of_many_frames_is_taken_apart_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting off the front of what is left, frame by frame, would copy a flood hundreds of times over."""

    class Counted(bytes):
        copied = 0

        def __getitem__(self, key: Any) -> Any:
            part = super().__getitem__(key)
            if isinstance(key, slice):
                Counted.copied += len(part)
            return part

    piece = Counted(b"".join(log_line(number) for number in range(500)))
    assert len(list(Demultiplexer().feed(piece))) == 500
    assert Counted.copied <= len(piece)
