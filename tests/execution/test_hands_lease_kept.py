"""Nothing lets go of a lease under which something is being begun, or was begun a moment ago."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hands_scene import go, plan, step, typed

from console.actions.plan import Verb
from console.execution import lease
from console.execution.policy import Refused
from console.readings.acting_types import OperationState


def waiting(scene: Any, name: str) -> Any:
    """A step that writes its name and waits for a file of that name."""
    return step(
        name,
        "sh",
        "-c",
        f"echo {name} >>{scene.marks}; until [ -e '{scene.folder}/{name}' ]; do sleep 0.1; done",
        limit=120.0,
    )


def let_go(scene: Any, name: str) -> None:
    (scene.folder / name).touch()


async def running(scene: Any, hands: Any, verb: Verb = Verb.RELAUNCH) -> str:
    """One that waits, and is seen to run."""
    scene.plan = plan(waiting(scene, "first"))
    op = await go(hands, verb)
    await scene.until(
        lambda: (o := scene.operation()) and o.id == op and any(s.state.value == "running" for s in o.steps), "it runs"
    )
    return op


def ends_slowly(hands: Any, monkeypatch: pytest.MonkeyPatch, until: asyncio.Event) -> None:
    real = hands._carrying._end

    async def end(*arguments: Any) -> str:
        said: str = await real(*arguments)
        await until.wait()
        return said

    monkeypatch.setattr(hands._carrying, "_end", end)


async def on_head(hands: Any) -> lease.LeaseAnswer:
    return await lease.show(*hands.tenure.way("lane"))


async def test_the_end_of_what_a_rollback_ended_does_not_give_its_lease_back(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host takes its time to end a step; meanwhile the outcome of what was ended is recorded. No window is open."""
    slow = asyncio.Event()
    async with scene.hands() as hands:
        first = await running(scene, hands)
        ends_slowly(hands, monkeypatch, slow)
        scene.plan = plan(waiting(scene, "back"))
        made, decision = await hands.plan("lane", Verb.ROLLBACK)
        begun = asyncio.create_task(hands.begin(made, decision, typed(made)))
        await scene.until(lambda: any("relaunch stopped" in words for words in scene.said), "its outcome is recorded")
        await asyncio.sleep(3 * 0.5)  # looks of the recording
        slow.set()
        op = (await begun).operation
        held = hands.tenure.held("lane")
        assert op != first and held is not None
        await scene.until(
            lambda: (o := scene.operation()) and o.id == op and scene.lines() == ["first", "back"], "runs"
        )
        link, folder = hands.tenure.way("lane")
        assert not (await lease.take(link, folder, "ben", "ben@there 1", "a window")).granted
        assert (found := (await on_head(hands)).lease) is not None and found.id == held.id
        let_go(scene, "back")
        assert (await scene.ended(op)).state is OperationState.DONE
        await scene.until(lambda: scene.acting().lease is None, "then it is given back")


async def test_a_lease_that_was_lost_while_something_was_ended_begins_nothing(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper believes in its lease for a minute: the head is asked."""
    slow = asyncio.Event()
    async with scene.hands() as hands:
        await running(scene, hands)
        ends_slowly(hands, monkeypatch, slow)
        scene.plan = plan(waiting(scene, "back"))
        made, decision = await hands.plan("lane", Verb.ROLLBACK)
        begun = asyncio.create_task(hands.begin(made, decision, typed(made)))
        await scene.until(lambda: any("relaunch stopped" in words for words in scene.said), "its outcome is recorded")
        link, folder = hands.tenure.way("lane")
        assert (await lease.take(link, folder, "ben", "ben@there 1", "hers", over=True)).granted
        slow.set()
        with pytest.raises(Refused, match="the lease is not ours any more: ben holds the lease"):
            await begun
        assert scene.lines() == ["first"]


async def test_a_window_is_not_closed_over_what_is_being_begun(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`w` while a confirmed action is on its way: it goes under the lease of the window."""
    scene.plan = plan(waiting(scene, "stop"))
    async with scene.hands() as hands:
        await hands.open_window("lane", "swap to the new one", 1500, "lane")
        made, decision = await hands.plan("lane", Verb.STOP)
        intent, reached, on = hands._intent, asyncio.Event(), asyncio.Event()

        async def slow(*arguments: Any, **more: Any) -> bool:
            reached.set()
            await on.wait()
            return await intent(*arguments, **more)

        monkeypatch.setattr(hands, "_intent", slow)
        begun = asyncio.create_task(hands.begin(made, decision, typed(made)))
        await reached.wait()
        closed = asyncio.create_task(hands.close_window("lane", "lane"))
        await asyncio.sleep(0.5)
        assert not closed.done() and (await on_head(hands)).lease is not None
        on.set()
        op = (await begun).operation
        words = await closed
        assert "the window stays open" in words and op in words, words
        assert (await on_head(hands)).lease is not None
        let_go(scene, "stop")
        assert (await scene.ended(op)).state is OperationState.DONE


async def test_what_another_console_of_ours_has_begun_keeps_the_lease(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both hold one lease; the picture of the one does not show yet what the other has begun."""
    scene.plan = plan(waiting(scene, "one"))
    async with scene.hands() as one, scene.hands() as two:
        first = await go(one)
        let_go(scene, "one")
        held = scene.feed.snapshot
        await scene.until(
            lambda: (o := scene.operation()) and o.id == first and o.state is OperationState.DONE, "ended"
        )
        before = held()
        await one.tenure.hold(before.lane("lane"), "stop")
        await scene.until(lambda: scene.acting().lease is not None, "the lease is seen")
        scene.plan = plan(waiting(scene, "two"))
        second = await go(two)
        assert two.tenure.held("lane").id == one.tenure.held("lane").id
        with monkeypatch.context() as old:
            old.setattr(scene.feed, "snapshot", lambda: before)
            assert not await one._settling.settled("lane")
        assert (await on_head(two)).lease is not None
        let_go(scene, "two")
        await scene.ended(second)
