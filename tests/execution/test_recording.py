"""Intents of a console that was killed get their outcome from the next one, however soon that one ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hands_scene import Scene, go

from console.execution import recording
from console.execution.ledger import Entry, Ledger, ledger_file
from console.readings.ledger import Kind

KILLED = "20260101T000000Z-rollback-0a1b2c"


@pytest.fixture
async def unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """A fleet of which nothing was read yet, and an intent of a console that was killed before it sent anything."""
    made = Scene(tmp_path, monkeypatch)
    entry = Entry("lane", "rollback lane on here", host="me", op=KILLED, epoch=1, plan="48a405b23d5f")
    Ledger(ledger_file("here"), "here", "ana").intent(entry)
    try:
        yield made
    finally:
        await made.feed.stop()


async def outcomes(hands: Any) -> list[str]:
    return [one.result for one in await hands.ledger() if one.op == KILLED and one.kind is Kind.OUTCOME]


async def test_an_intent_is_closed_as_soon_as_the_head_was_read(unread: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command is over before the next look: it begins with nothing read, and ends when it has followed."""
    monkeypatch.setattr(recording, "LATE_S", 0.0)
    monkeypatch.setattr(recording, "UP_EVERY_S", 3600.0)
    async with unread.hands() as hands:
        await asyncio.sleep(2 * recording.EVERY_S)  # its first looks find that nothing is known yet
        await unread.feed.start()
        await unread.until(lambda: not hands.recording.lanes(), "it has its outcome")
        assert await outcomes(hands) == [recording.NOT_BEGUN]


async def test_what_may_still_arrive_is_looked_for_at_the_end(unread: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "LATE_S", 3600.0)
    monkeypatch.setattr(recording, "UP_EVERY_S", 3600.0)
    await unread.feed.start()
    await unread.until(lambda: unread.acting() is not None, "the head was read")
    async with unread.hands() as hands:
        await unread.until(hands.recording.lanes, "it was taken up")
        await asyncio.sleep(2 * recording.EVERY_S)
        assert await outcomes(hands) == [], "its console may have sent it right before it died"
        monkeypatch.setattr(recording, "LATE_S", 0.0)
    assert await outcomes(hands) == [recording.NOT_BEGUN]


async def test_what_came_in_between_closes_it_too(unread: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next operation is the newest one by then: the head is asked for the other by its name."""
    monkeypatch.setattr(recording, "LATE_S", 0.0)
    await unread.feed.start()
    await unread.until(lambda: unread.acting() is not None, "the head was read")
    async with unread.hands() as hands:
        await unread.ended(await go(hands))
        await unread.until(lambda: not hands.recording.lanes(), "both are recorded")
        assert await outcomes(hands) == [recording.NOT_BEGUN]
