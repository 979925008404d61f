"""The followed log: whose lines they are, also while the choice changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from console.feed.follow import LogFeed

Line = Callable[[float | None, str], None]


class Follower:
    def __init__(self) -> None:
        self.skipped, self.problem, self.closed = 3, "", False

    async def close(self) -> None:
        self.closed = True


class Docker:
    """Hands out followers and keeps the way in for their lines."""

    def __init__(self) -> None:
        self.followed: list[tuple[str, Line, Follower]] = []

    def follow_log(self, container_id: str, on_line: Line) -> Follower:
        self.followed.append((container_id, on_line, Follower()))
        return self.followed[-1][2]


@asynccontextmanager
async def following(feed: LogFeed) -> AsyncIterator[None]:
    task = asyncio.create_task(feed.run())
    try:
        yield
    finally:
        task.cancel()
        await feed.close()


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - the follower has no event to wait for
            await asyncio.sleep(0.01)


def choose(feed: LogFeed, host: str, docker: Docker, choice: tuple[str, str] | None) -> None:
    feed.choose(host, cast(Any, docker), lambda: choice)


async def test_lines_of_the_host_before_are_not_shown_as_those_of_the_new_one() -> None:
    feed, one, two = LogFeed(), Docker(), Docker()
    choose(feed, "one", one, ("id1", "first"))
    async with following(feed):
        await until(lambda: one.followed)
        _, line, follower = one.followed[0]
        line(1.0, "of the first")
        view = feed.view()
        assert view is not None and (view.host, view.container, len(view.lines)) == ("one", "first", 1)
        choose(feed, "two", two, ("id2", "second"))
        line(2.0, "late, of the first")
        view = feed.view()
        assert view is not None and (view.host, view.container, view.lines) == ("two", "", ())
        await until(lambda: two.followed)
        assert follower.closed and two.followed[0][0] == "id2"
        two.followed[0][1](3.0, "of the second")
        view = feed.view()
        assert view is not None and (view.container, [item.text for item in view.lines]) == (
            "second",
            ["of the second"],
        )


async def test_there_and_back_is_followed_anew() -> None:
    feed, one, two = LogFeed(), Docker(), Docker()
    choose(feed, "one", one, ("id1", "first"))
    async with following(feed):
        await until(lambda: one.followed)
        choose(feed, "two", two, ("id2", "second"))
        choose(feed, "one", one, ("id1", "first"))
        await until(lambda: len(one.followed) == 2)
        assert one.followed[0][2].closed and not two.followed


async def test_a_host_without_a_container_says_so() -> None:
    feed, one = LogFeed(), Docker()
    assert feed.view() is None
    choose(feed, "one", one, None)
    async with following(feed):
        await asyncio.sleep(0)
        view = feed.view()
        assert view is not None and view.problem == "no container of this lane to follow"
