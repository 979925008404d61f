"""What is looked at once more between confirmation and beginning, and what is not written off too early after it."""

from __future__ import annotations

import asyncio
import fcntl
import os
from dataclasses import replace
from typing import Any

import pytest
from hands_scene import go, typed

from console.actions.plan import Verb
from console.execution import inflight, lease, policy, recording, sequence_head
from console.execution.inflight import beginning
from console.execution.ledger import Entry, Ledger, LedgerError, ledger_file
from console.execution.policy import Holder, Refused
from console.execution.situation import situation
from console.execution.tenure import HeldByAnother
from console.readings.acting_types import OperationState
from console.readings.ledger import Kind

OP = "20261201T021500Z-stop-3f9ac1"


# --- before it begins


async def test_a_record_that_cannot_be_made_in_the_last_moment_keeps_the_action_from_going(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was room when it was asked; there is none when the intent is written."""

    def full(self: Ledger, entry: Entry) -> None:
        raise LedgerError("the ledger cannot be written: No space left on device")

    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.STOP)
        assert not decision.break_glass
        monkeypatch.setattr(Ledger, "intent", full)
        with pytest.raises(Refused, match="no record, no action"):
            await hands.begin(made, decision, typed(made))
    assert scene.lines() == [] and scene.operation() is None


async def test_what_was_not_shown_is_refused(scene: Any) -> None:
    """The strip said nothing of a takeover: meanwhile somebody took the lane and let their lease run out."""
    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.STOP)
        assert not decision.takes_over
        link, folder = hands.tenure.way("lane")
        assert (await lease.take(link, folder, "ben", "ben@there 1", "a window", ttl=1)).granted
        await scene.until(lambda: (a := scene.acting()).lease and a.lease.expired(a.clock), "it ran out")
        with pytest.raises(Refused, match=r"takes over the lease that ran out: ben .* now, which was not shown"):
            await hands.begin(made, decision, typed(made))
    assert scene.lines() == []


async def test_every_grant_is_spent(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    left: dict[int, Any] = {}
    monkeypatch.setattr(policy, "_leaves", left)
    async with scene.hands() as hands:
        found = await scene.ended(await go(hands))
    assert found.state is OperationState.DONE, found
    assert scene.lines() == ["a"] and left == {}


@pytest.mark.parametrize("use", ["take_up", "spend"])
async def test_a_leave_that_cannot_be_used_begins_nothing(
    scene: Any, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    """Whatever stands between grant and use: one that is gone keeps the action from going."""

    def refuses(*_: Any) -> None:
        raise Refused("this leave was spent already")

    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.STOP)
        monkeypatch.setattr(policy, use, refuses)
        with pytest.raises(Refused, match="spent already"):
            await hands.begin(made, decision, typed(made))
        kinds = [(record.kind, record.result) for record in await hands.ledger() if record.op]
        assert kinds == ([(Kind.INTENT, ""), (Kind.OUTCOME, "not begun")] if use == "spend" else [])
    assert scene.lines() == []


async def test_what_is_carried_on_spends_a_grant_itself(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    async def stored(link: Any, folder: str, op: str) -> dict[str, Any]:
        return {"id": op, "verb": "stop", "plan_id": "48a405b23d5f", "reach": {"me": []}, "head": "me", "steps": []}

    async def carried_on(link: Any, found: Any) -> sequence_head.OnHead:
        begun.append(found["id"])
        return sequence_head.OnHead(True)

    monkeypatch.setattr(sequence_head, "stored", stored)
    monkeypatch.setattr(sequence_head, "carry_on", carried_on)
    async with scene.hands() as hands:
        view = scene.feed.snapshot().lane("lane")
        held, _ = await hands.tenure.hold(view, "stop")
        with pytest.raises(Refused, match="never given"):
            await hands._carrying.carry_on(view, OP, held, object.__new__(policy.Grant))
        assert begun == []
        leave = policy.adopt(Verb.STOP, "lane", "48a405b23d5f", held.epoch, policy.clock(), read_only=False)
        await hands._carrying.carry_on(view, OP, held, leave)
    assert begun == [OP]


async def test_what_the_picture_does_not_show_yet_is_not_begun_beside(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two keys in a row, or two consoles: the second one is meant for the lane as it was before the first."""
    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.RELAUNCH)
        before = scene.feed.snapshot()
        op = await go(hands)
        with monkeypatch.context() as held:
            held.setattr(scene.feed, "snapshot", lambda: before)
            with pytest.raises(Refused, match=op):
                await hands.begin(made, decision, typed(made))
        await scene.ended(op)
    assert scene.lines() == ["a"]


async def test_while_another_console_of_ours_begins_nothing_is_begun_beside(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But the way back, which waits for nobody."""
    monkeypatch.setattr(inflight, "WAIT_S", 0.2)
    folder = ledger_file("here").parent / inflight.FOLDER
    folder.mkdir(parents=True)
    other = os.open(folder / "@lane", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        async with scene.hands() as hands:
            made, decision = await hands.plan("lane", Verb.STOP)
            with pytest.raises(Refused, match="another console of yours is just beginning something on lane"):
                await hands.begin(made, decision, typed(made))
            assert scene.lines() == []
            found = await scene.ended(await go(hands, Verb.ROLLBACK))
            assert found.state is OperationState.DONE, found
            assert scene.lines() == ["a"]
    finally:
        os.close(other)


async def test_a_console_that_was_overtaken_drops_what_was_queued(scene: Any) -> None:
    """Also where nobody holds the lane by then: what was confirmed under the old lease is not begun under a new one."""
    async with scene.hands() as hands:
        await hands.open_window("lane", "swap to the new one", 1500, "lane")
        view = scene.feed.snapshot().lane("lane")
        link, folder = hands.tenure.way("lane")
        taken = await lease.take(link, folder, "ben", "ben@there 1", "hers", over=True)
        assert taken.lease is not None
        await hands.tenure._keepers["lane"].renew()
        assert (await lease.release(link, folder, taken.lease.id)).granted
        with pytest.raises(HeldByAnother, match=r"ben holds the lease .* Queued keys were dropped"):
            await hands.tenure.hold(view, "stop")


async def test_who_holds_the_lane_is_unknown_once_the_reading_is_old(scene: Any) -> None:
    async with scene.hands() as hands:
        made, _ = await hands.plan("lane", Verb.STOP)
        now = scene.feed.snapshot()
        late = replace(now, now=now.now + 3600.0)
        holders = [situation(seen, seen.lane("lane"), made, hands.own).holder for seen in (now, late)]
    assert holders == [Holder.NOBODY, Holder.UNKNOWN]


# --- what an earlier console meant


def meant() -> None:
    """An intent of a console that is gone; nothing of it is on the head."""
    Ledger(ledger_file("here"), "here", "ana").intent(Entry("lane", "stop lane on here", op=OP, epoch=3))


def outcomes() -> list[str]:
    found = Ledger(ledger_file("here"), "here", "ana").verify()
    assert found.problem == ""
    return [record.result for record in found.text.records if record.op == OP and record.kind is Kind.OUTCOME]


class Looks:
    """How often the head was asked for the operation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        real = recording.files.read

        async def read(link: Any, folder: str, name: str, **more: Any) -> Any:
            found = await real(link, folder, name, **more)
            self.count += name == f"ops/{OP}/plan.json"
            return found

        monkeypatch.setattr(recording.files, "read", read)
        monkeypatch.setattr(recording, "UP_EVERY_S", 0.05)


async def test_an_intent_is_not_written_off_while_what_was_sent_may_still_arrive(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    monkeypatch.setattr(recording, "LATE_S", 1e9)
    meant()
    async with scene.hands():
        await scene.until(lambda: looks.count >= 3, "the head was asked more than once")
        assert outcomes() == []
        monkeypatch.setattr(recording, "LATE_S", 0.0)
        await scene.until(lambda: outcomes() == ["not begun"], "it is written off once nothing can come any more")


async def test_an_intent_of_a_console_that_lives_is_not_written_off(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    monkeypatch.setattr(recording, "LATE_S", 0.0)
    meant()
    with beginning(ledger_file("here"), OP):
        async with scene.hands():
            await scene.until(lambda: looks.count >= 3, "the head was asked more than once")
            assert await asyncio.to_thread(outcomes) == []
    async with scene.hands():
        await scene.until(lambda: outcomes() == ["not begun"], "it is written off once its console is gone")
