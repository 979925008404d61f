"""A Hub on this machine, asked for a revision's files and for its main branch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from console.feed.hub import MOST_BYTES, HubFeed, _token
from console.fleet.places import DownloadPlace
from console.readings.logtext import control_characters

NEW = "1bae0e1088993b9b82de08f59de5be5a34e42170"
OLD = "df42c109" + "0" * 32
MAIN = "/api/models/org/m"
LIST = f"/api/models/org/m/revision/{NEW}?blobs=true"


def listing(revision: str) -> bytes:
    return json.dumps({"sha": revision, "siblings": [{"rfilename": "a", "size": 7, "blobId": "a" * 40}]}).encode()


@dataclass
class Answer:
    body: bytes = b""
    status: str = "200 OK"
    headers: tuple[str, ...] = ()


@dataclass
class Hub:
    """A small server: answers by path, and keeps the heads of what it was asked."""

    answers: dict[str, Answer]
    asked: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    port: int = 0

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Hub]:
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split(" ")[1]
                self.asked.append(path)
                self.heads.append(head.lower())
                found = self.answers.get(path, Answer(status="404 Not Found"))
                etag = next((row for row in found.headers if row.startswith("etag: ")), "")
                if etag and f"if-none-match: {etag[6:]}" in head.lower():
                    found = Answer(status="304 Not Modified", headers=(etag,))
                rows = (f"HTTP/1.1 {found.status}", f"content-length: {len(found.body)}", *found.headers, "", "")
                writer.write("\r\n".join(rows).encode() + found.body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def place(self, **more: str) -> DownloadPlace:
        given = {"revision": NEW, "model": "org/m", "hub": f"http://127.0.0.1:{self.port}", **more}
        return DownloadPlace("spark-0", "/models/hub/models--org--m", **given)

    def count(self, path: str) -> int:
        return self.asked.count(path)


@asynccontextmanager
async def running(feed: HubFeed) -> AsyncIterator[HubFeed]:
    task = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


def both(revision: str = NEW, main: str = NEW) -> dict[str, Answer]:
    return {LIST: Answer(listing(revision)), MAIN: Answer(listing(main))}


async def test_a_list_is_asked_for_once_and_the_main_branch_again() -> None:
    changes: list[None] = []
    async with Hub(both(main=OLD)).serve() as hub:
        feed = HubFeed(hub.place(), changed=lambda: changes.append(None), environment={}, main_every=0.1)
        async with running(feed):
            await until(lambda: feed.upstream == OLD and hub.count(MAIN) >= 3)
            assert feed.expected is not None
            assert feed.expected.files == (("a", 7, "git:" + "a" * 40),)
            assert feed.expected.source == f"127.0.0.1:{hub.port}/org/m at 1bae0e1"
            assert hub.count(LIST) == 1
            assert len(changes) == 2
            hub.answers[MAIN] = Answer(listing(NEW))
            await until(lambda: feed.upstream == NEW)
            assert len(changes) == 3
    assert all("authorization" not in head for head in hub.heads)


async def test_an_unchanged_answer_is_not_sent_again() -> None:
    async with Hub(both()).serve() as hub:
        hub.answers[MAIN] = Answer(listing(NEW), headers=('etag: "x1"',))
        feed = HubFeed(hub.place(), environment={}, main_every=0.1)
        async with running(feed):
            await until(lambda: hub.count(MAIN) >= 3)
            assert feed.upstream == NEW
    assert any('if-none-match: "x1"' in head for head in hub.heads)


async def test_another_revision_is_asked_for_when_it_is_wanted() -> None:
    async with Hub(both()).serve() as hub:
        hub.answers[LIST.replace(NEW, OLD)] = Answer(listing(OLD))
        feed = HubFeed(hub.place(revision=""), environment={})
        async with running(feed):
            await until(lambda: feed.upstream == NEW)
            assert feed.expected is None
            feed.want(OLD)
            await until(lambda: feed.expected is not None)
            assert feed.expected is not None
            assert feed.expected.revision == OLD
            feed.want(OLD)
            feed.want(NEW)
            assert feed.expected is None
            await until(lambda: feed.expected is not None)
    assert hub.count(LIST.replace(NEW, OLD)) == 1


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer(status="404 Not Found"), "HTTP 404: no such model or revision there"),
        (Answer(status="401 Unauthorized"), "HTTP 401: set HF_TOKEN to a token that may read it"),
        (Answer(status="500 Oops"), "HTTP 500"),
        (
            Answer(status="307 Away", headers=("location: http://127.0.0.2:1/x",)),
            "HTTP 307: it sends to another place, which is not asked",
        ),
        (Answer(b"<html>"), "line 1: expected path, bytes and digest parted by tabs, found '<html>'"),
        (Answer(b"{}"), "no `siblings`: this is no listing of a model's files"),
        (Answer(listing(OLD)), "it answers for df42c10"),
        (Answer(b"{" + b" " * MOST_BYTES + b"}"), "an answer of more than 16 MiB"),
        (Answer(b'{"siblings": [{"rfilename": "\\u001b[31m"}]}'), "no size for : ask with ?blobs=true"),
    ],
)
async def test_a_failure_is_said_and_asked_again(answer: Answer, problem: str) -> None:
    async with Hub({LIST: answer, MAIN: answer}).serve() as hub:
        feed = HubFeed(hub.place(), environment={}, main_every=0.2, retry_first=0.05)
        async with running(feed):
            await until(lambda: feed.expected is not None)
            assert feed.expected is not None
            assert (feed.expected.problem, feed.expected.known) == (problem, False)
            assert control_characters(feed.expected.problem) == 0
            hub.answers.update(both())
            await until(lambda: feed.expected is not None and feed.expected.known)
            await until(lambda: feed.upstream == NEW)


async def test_a_main_branch_that_can_no_longer_be_had_is_not_shown() -> None:
    async with Hub(both()).serve() as hub:
        feed = HubFeed(hub.place(), environment={}, main_every=0.1, retry_first=0.1)
        async with running(feed):
            await until(lambda: feed.upstream == NEW)
            hub.answers[MAIN] = Answer(status="503 Busy")
            await until(lambda: feed.main.error == "HTTP 503")
            assert feed.upstream == ""
            assert feed.main.value == NEW


async def test_a_hub_that_asks_to_wait_is_left_alone() -> None:
    async with Hub(both()).serve() as hub:
        hub.answers[MAIN] = Answer(status="429 Slow", headers=("retry-after: 600",))
        feed = HubFeed(hub.place(), environment={}, retry_first=0.01)
        async with running(feed):
            await until(lambda: feed.main.error == "HTTP 429")
            hub.answers[LIST] = Answer(status="503 Busy")
            feed.want(OLD)
            feed.want(NEW)
            await until(lambda: hub.count(LIST) >= 4)
            assert hub.count(MAIN) == 1


async def test_nobody_there_is_said() -> None:
    async with Hub({}).serve() as hub:
        place = hub.place()
    feed = HubFeed(place, environment={})
    async with running(feed):
        await until(lambda: feed.expected is not None and feed.main.error)
        assert feed.expected is not None
        assert feed.expected.problem == feed.main.error == "connection refused"


async def test_a_renamed_model_is_followed_on_the_same_hub() -> None:
    async with Hub(both()).serve() as hub:
        hub.answers["/api/models/old/m"] = Answer(status="307 Moved", headers=(f"location: {MAIN}",))
        feed = HubFeed(hub.place(model="old/m", revision=""), environment={})
        async with running(feed):
            await until(lambda: feed.upstream == NEW)


async def test_the_token_goes_to_this_machine() -> None:
    async with Hub(both()).serve() as hub:
        feed = HubFeed(hub.place(), environment={"HF_TOKEN": "hf_secret"})
        async with running(feed):
            await until(lambda: feed.upstream == NEW)
    assert all("authorization: bearer hf_secret" in head for head in hub.heads)


@pytest.mark.parametrize(
    ("hub", "sent"),
    [
        ("https://huggingface.co", True),
        ("http://127.0.0.1:9000", True),
        ("http://[::1]:9000", True),
        ("http://localhost:9000/hf", True),
        ("http://huggingface.co", False),
        ("http://127.0.0.1.example.org", False),
        ("http://10.0.0.5", False),
        ("", False),
    ],
)
def test_the_token_goes_nowhere_in_the_clear(hub: str, sent: bool) -> None:
    assert _token(hub, {"HF_TOKEN": " hf_secret\n"}) == ("hf_secret" if sent else "")
    assert _token(hub, {"HF_TOKEN": "hf\nx: y"}) == ""


async def test_a_manifest_of_ones_own_is_read_and_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.feed.hub.MANIFEST_EVERY_S", 0.05)
    path = tmp_path / "manifest.tsv"
    async with Hub(both()).serve() as hub:
        feed = HubFeed(hub.place(manifest=str(path)), environment={})
        async with running(feed):
            await until(lambda: feed.expected is not None)
            assert feed.expected is not None
            assert feed.expected.problem == "cannot be read: No such file or directory"
            path.write_text("a.json\t5\n")
            await until(lambda: feed.expected is not None and feed.expected.total == 5)
            path.write_text("a.json\t5\nb.json\t70\n")
            await until(lambda: feed.expected is not None and feed.expected.total == 75)
            feed.want(OLD)
            assert feed.expected is not None
            await until(lambda: feed.upstream == NEW)
    assert hub.count(LIST) == 0


async def test_a_manifest_needs_no_hub(tmp_path: Path) -> None:
    path = tmp_path / "manifest.tsv"
    path.write_text("a.json\t5\n")
    feed = HubFeed(DownloadPlace("spark-0", "/m", manifest=str(path)))
    async with running(feed):
        await until(lambda: feed.expected is not None)
        assert feed.upstream == ""
