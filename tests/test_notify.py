"""Webhooks: delivered in order, retried, given up with words, and nothing secret in any of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from console import notify
from console.alarms import Alarm
from console.alarms.book import AlarmState, Booked, Change
from console.notify import (
    OPENING_S,
    Caller,
    Message,
    Webhook,
    WebhookError,
    message,
    notification_sequence,
    redacted,
    webhook_url,
)
from console.snapshot import Severity

WALL = 1_760_000_000.0
LIMIT = 60.0


@dataclass
class Receiver:
    """An HTTP server that answers what it is told to."""

    answers: list[int] = field(default_factory=list)
    """Status codes, first one first; 200 when they are used up."""
    bodies: list[dict[str, object]] = field(default_factory=list)
    asked: int = 0
    port: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = next(int(r.split(b":")[1]) for r in head.split(b"\r\n") if r.lower().startswith(b"content-le"))
                body = json.loads(await reader.readexactly(size))
                self.asked += 1
                status = self.answers.pop(0) if self.answers else 200
                if status == 200:
                    self.bodies.append(body)
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)
                await writer.drain()
                self.came.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(LIMIT):
            while self.asked < count:
                self.came.clear()
                await self.came.wait()


@asynccontextmanager
async def hooked(*answers: int) -> AsyncIterator[tuple[Receiver, Webhook, list[str]]]:
    receiver, said = Receiver(list(answers)), list[str]()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    hook = Webhook(f"http://127.0.0.1:{receiver.port}/s3cr3t-path", said.append)
    task = asyncio.create_task(hook.run())
    try:
        yield receiver, hook, said
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        server.close()


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not true():  # noqa: ASYNC110 - the condition has no event to wait for
            await asyncio.sleep(0.01)


def told(text: str = "free 2.9 GiB", key: str = "memory:spark-2") -> Message:
    alarm = Alarm(key, Severity.ACT, "spark-2", text, "stop copy or drop cache")
    booked = Booked(alarm, AlarmState.ACTIVE, WALL, 0.0)
    return message("spark4", Change.RAISED, booked, WALL, rehearsal=False)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(notify, "MOST_PAUSE_S", 0.02)


async def test_messages_arrive_in_order_with_stable_keys() -> None:
    async with hooked() as (receiver, hook, said):
        hook.post(told())
        hook.post(told("free 2.8 GiB"))
        await receiver.until(2)
        assert [body["detail"] for body in receiver.bodies] == ["free 2.9 GiB", "free 2.8 GiB"]
        assert receiver.bodies[0]["text"] == "[spark4] CRIT spark-2: free 2.9 GiB (stop copy or drop cache)"
        assert set(receiver.bodies[0]) == {
            *("text", "fleet", "change", "severity", "key", "subject", "detail", "advice", "at", "rehearsal"),
            "laneswap",
        }
        assert said == []


async def test_a_busy_receiver_is_asked_again_and_told_of_once() -> None:
    async with hooked(503, 429) as (receiver, hook, said):
        hook.post(told())
        await receiver.until(3)
        await eventually(lambda: len(said) == 2)
        assert len(receiver.bodies) == 1
        assert said[0] == "webhook fails: HTTP 503, trying again"
        assert said[1].startswith("webhook works again")


async def test_one_that_refuses_the_message_is_not_asked_again_and_the_next_goes_out() -> None:
    async with hooked(404) as (receiver, hook, said):
        hook.post(told())
        hook.post(told("the next"))
        await receiver.until(2)
        await eventually(lambda: bool(receiver.bodies))
        assert [body["detail"] for body in receiver.bodies] == ["the next"]
        assert "HTTP 404; 1 alarm not delivered" in said[0]
        assert hook.dropped == 1


async def test_words_about_a_failure_never_hold_the_url() -> None:
    said: list[str] = []
    hook = Webhook("http://127.0.0.1:9/s3cr3t-path", said.append)
    task = asyncio.create_task(hook.run())
    hook.post(told())
    await eventually(lambda: hook.dropped == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert said and not any("s3cr3t" in text for text in said)


async def test_what_waits_is_bounded() -> None:
    hook = Webhook("http://127.0.0.1:9/", lambda _: None)
    for number in range(notify.MOST_WAITING + 5):
        hook.post(told(str(number)))
    assert hook.dropped == 5


def test_what_looks_like_a_credential_does_not_leave() -> None:
    assert redacted("engine says Bearer abc123 refused") == "engine says Bearer *** refused"
    assert redacted("pull http://ana:pw@registry/x failed") == "pull http://***@registry/x failed"
    assert redacted("api_key=sk-1234 and token: t0k") == "api_key=*** and token: ***"
    assert redacted("token usage 99 %, monkey business") == "token usage 99 %, monkey business"
    assert "\x1b" not in redacted("\x1b[31mred")


def test_the_end_of_an_alarm_says_ok_and_a_rehearsal_says_so() -> None:
    alarm = Alarm("memory:spark-2", Severity.ACT, "spark-2", "free 2.9 GiB", "stop copy")
    booked = Booked(alarm, AlarmState.RETURNED, WALL, 0.0, WALL + 9)
    text = message("spark4", Change.ENDED, booked, WALL + 9, rehearsal=True).payload()["text"]
    assert text == "REHEARSAL [spark4] OK spark-2: free 2.9 GiB"


def test_the_url_comes_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANESWAP_WEBHOOK", raising=False)
    assert webhook_url("LANESWAP_WEBHOOK") == ""
    monkeypatch.setenv("LANESWAP_WEBHOOK", "https://hooks.example/x")
    assert webhook_url("LANESWAP_WEBHOOK") == "https://hooks.example/x"
    monkeypatch.setenv("LANESWAP_WEBHOOK", "hooks.example")
    with pytest.raises(WebhookError, match="LANESWAP_WEBHOOK: not an http"):
        webhook_url("LANESWAP_WEBHOOK")


def alarm(severity: Severity = Severity.ACT, key: str = "memory:spark-2", text: str = "free 2.9 GiB") -> Alarm:
    return Alarm(key, severity, "spark-2", text, "")


class Heard:
    """What a caller did."""

    def __init__(self, **options: Any) -> None:
        self.bells, self.notes, self.posts = 0, list[str](), list[Message]()
        self.caller = Caller(
            "spark4", bell=self.ring, notification=self.notes.append, webhook=self.posts.append, **options
        )
        self.caller.take([], 0.0, WALL)

    def ring(self) -> None:
        self.bells += 1

    def take(self, at: float, *found: Alarm, expected: dict[str, str] | None = None) -> None:
        self.caller.take(found, at, WALL + at, expected)


def test_a_new_alarm_calls_once_by_every_way_and_its_end_only_by_webhook() -> None:
    heard = Heard()
    heard.take(OPENING_S, alarm())
    heard.take(OPENING_S + 1, alarm(text="free 2.8 GiB"))
    heard.take(OPENING_S + 60)
    assert (heard.bells, len(heard.notes), [m.change for m in heard.posts]) == (1, 1, [Change.RAISED, Change.ENDED])
    assert heard.notes == ["laneswap spark4: CRIT spark-2 free 2.9 GiB"]


def test_several_at_once_ring_one_bell() -> None:
    heard = Heard()
    heard.take(OPENING_S, alarm(), alarm(key="state:dsv41"))
    assert (heard.bells, len(heard.posts)) == (1, 2)


def test_nobody_is_called_for_what_was_wrong_when_the_console_was_opened_nor_for_its_end() -> None:
    heard = Heard()
    heard.take(1.0, alarm())
    heard.take(OPENING_S + 1, alarm())
    heard.take(OPENING_S + 60)
    assert (heard.bells, heard.notes, heard.posts) == (0, [], [])


def test_milder_ones_and_planned_ones_call_nobody() -> None:
    heard = Heard()
    heard.take(OPENING_S, alarm(Severity.LOOK), alarm(key="state:dsv41"), expected={"state:dsv41": "stop"})
    assert (heard.bells, heard.posts) == (0, [])
    heard.take(OPENING_S + 1, alarm(Severity.ACT))
    assert [m.change for m in heard.posts] == [Change.WORSE]


def test_the_least_severity_is_the_operators() -> None:
    heard = Heard(least=Severity.LOOK)
    heard.take(OPENING_S, alarm(Severity.LOOK))
    assert heard.bells == 1


@pytest.mark.parametrize(
    ("environment", "start"),
    [
        ({"TERM": "xterm-256color"}, "\x1b]9;laneswap"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, "\x1b]777;notify;laneswap;laneswap"),
        ({"TERM": "foot"}, "\x1b]777;"),
    ],
)
def test_a_notification_is_one_sequence_whatever_the_text(environment: dict[str, str], start: str) -> None:
    found = notification_sequence("laneswap \x1b]0;evil\x07 9;4;1 \x1b\\ x\u202e", environment)
    assert found.startswith(start)
    assert found.endswith("\x1b\\")
    assert not any(ord(c) < 32 or c in "\x7f\u202e" for c in found[1:-2])


@pytest.mark.parametrize("environment", [{"TERM": "linux"}, {}, {"TERM": "screen", "TMUX": "/tmp/tmux-0/default,1,0"}])
def test_no_sequence_where_none_works(environment: dict[str, str]) -> None:
    assert notification_sequence("laneswap", environment) == ""
