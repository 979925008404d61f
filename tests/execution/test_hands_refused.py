"""What is said of an action that was refused: what did happen before, and that nothing did only where that is so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hands_scene import go, plan, step, typed

from console.actions.plan import Verb
from console.commands.acting import _refuse
from console.execution import lease
from console.execution.ledger import Ledger, LedgerError
from console.execution.policy import Refused
from console.readings.acting_types import OperationState

STILL = "launch on spark-2: no answer from spark-2"


async def running(scene: Any, hands: Any) -> str:
    scene.plan = plan(step("long", "sh", "-c", f"echo long >>{scene.marks}; sleep 120", limit=240.0))
    op: str = await go(hands, Verb.RELAUNCH)
    await scene.until(
        lambda: (o := scene.operation()) and o.id == op and any(s.state.value == "running" for s in o.steps), "it runs"
    )
    return op


async def cannot_be_ended(*_: Any) -> str:
    return STILL


async def test_a_stop_that_ended_what_ran_and_did_not_begin_says_so(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene.hands() as hands:
        op = await running(scene, hands)
        monkeypatch.setattr(hands._carrying, "_end", cannot_be_ended)
        scene.plan = plan(step("b", "true"))
        made, decision = await hands.plan("lane", Verb.STOP)
        with pytest.raises(Refused) as refused:
            await hands.begin(made, decision, typed(made))
        assert (await scene.ended(op)).state is OperationState.STOPPED
        assert refused.value.half and refused.value.whole == (
            "relaunch by ana was fenced off and told to end; stop did not begin: HALF DONE, "
            f"what should have been ended may still act: {STILL}"
        )


async def test_what_ended_a_relaunch_and_could_not_be_carried_out_says_so(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_room(*_: Any, **__: Any) -> Any:
        raise Refused("spark-0 has no room")

    async with scene.hands() as hands:
        await running(scene, hands)
        monkeypatch.setattr(hands._carrying, "begin", no_room)
        made, decision = await hands.plan("lane", Verb.ROLLBACK)
        with pytest.raises(Refused) as refused:
            await hands.begin(made, decision, typed(made))
        words = "relaunch by ana was ended; rollback did not begin: HALF DONE, spark-0 has no room"
        assert refused.value.whole == words


async def test_a_stop_goes_on_past_a_step_on_a_host_that_it_leaves_out(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The strip named the host: it cannot be waited for each time anew."""
    async with scene.hands() as hands:
        await running(scene, hands)
        monkeypatch.setattr(hands._carrying, "_end", cannot_be_ended)
        scene.plan = plan(step("b", "sh", "-c", f"echo b >>{scene.marks}"), left_out=("me",))
        made, decision = await hands.plan("lane", Verb.STOP)
        assert any("me: out of reach" in words for words in decision.warnings)
        op = (await hands.begin(made, decision, typed(made))).operation
        assert (await scene.ended(op)).state is OperationState.DONE
        assert scene.lines() == ["long", "b"] and any(STILL in words for words in scene.said)


@pytest.mark.parametrize(
    ("refused", "code", "words"),
    [
        (Refused("ben holds it"), 4, "refused: ben holds it. Nothing was sent.\n"),
        (
            Refused("ben holds it", "relaunch by ana was ended; stop did not begin", half=True),
            1,
            "refused: relaunch by ana was ended; stop did not begin: HALF DONE, ben holds it\n",
        ),
        (
            Refused("a", "a lease was taken; stop did not begin"),
            4,
            "refused: a lease was taken; stop did not begin: a\n",
        ),
    ],
)
def test_the_command_says_so_too(capsys: pytest.CaptureFixture[str], refused: Refused, code: int, words: str) -> None:
    assert _refuse(refused) == code
    assert capsys.readouterr().err == words


async def test_a_lease_that_was_taken_for_nothing_is_told(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Ledger, entry: Any) -> None:
        raise LedgerError("the ledger cannot be written: No space left on device")

    async with scene.hands() as hands:
        link, folder = hands.tenure.way("lane")
        made, decision = await hands.plan("lane", Verb.STOP)
        monkeypatch.setattr(Ledger, "intent", full)
        with pytest.raises(Refused) as refused:
            await hands.begin(made, decision, typed(made))
        assert not refused.value.half
        assert refused.value.whole.startswith("a lease was taken and given back; stop did not begin: the ledger cannot")
        assert (await lease.show(link, folder)).lease is None
        with pytest.raises(Refused) as refused:
            await hands.begin(made, decision, typed(made, name="other"))
        assert refused.value.whole == "other was typed, the lane is lane. Nothing was sent."


# --- a lease that was taken for nothing


async def of_nobody(scene: Any, hands: Any) -> None:
    assert hands.tenure.held("lane") is None
    assert (await lease.show(*hands.tenure.way("lane"))).lease is None


def unwritable(monkeypatch: pytest.MonkeyPatch, *kinds: str) -> None:
    """There was room when it was asked; there is none when it is written."""

    def full(self: Ledger, entry: Any) -> None:
        raise LedgerError("the ledger cannot be written: No space left on device")

    for kind in kinds:
        monkeypatch.setattr(Ledger, kind, full)


async def test_a_window_that_was_not_opened_keeps_no_lease(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene.hands() as hands:
        with monkeypatch.context() as patched:
            unwritable(patched, "note")
            words = await hands.open_window("lane", "swap to the new one", 1500, "lane")
        assert words.startswith("no window was opened: the ledger cannot be written"), words
        assert words.endswith("; a lease was taken and given back")
        await of_nobody(scene, hands)


async def test_a_window_that_was_not_opened_leaves_a_lease_that_was_there(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene.hands() as hands:
        before, _ = await hands.tenure.hold(scene.feed.snapshot().lane("lane"), "stop")
        with monkeypatch.context() as patched:
            unwritable(patched, "note")
            assert "no window was opened" in await hands.open_window("lane", "swap to the new one", 1500, "lane")
        assert hands.tenure.held("lane") == before


async def test_a_take_over_without_a_record_takes_nothing(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene.hands() as hands:
        link, folder = hands.tenure.way("lane")
        await lease.take(link, folder, "ben", "ben@there 1", "a window")
        await scene.until(lambda: scene.acting().lease is not None, "the lease is seen")

        async def full() -> bool:
            return False

        with monkeypatch.context() as patched:
            patched.setattr(hands.deciding, "writable", full)
            assert "no record, no lease" in await hands.take_over("lane", "lane", scene.shown())
        found = (await lease.show(link, folder)).lease
        assert found is not None and found.operator == "ben"
        unwritable(monkeypatch, "takeover")
        words = await hands.take_over("lane", "lane", scene.shown())
        assert words.endswith("; lane was taken over from ben and given back"), words
        await of_nobody(scene, hands)


@pytest.mark.parametrize("fails", ["note", "carry_on"])
async def test_what_is_not_carried_on_keeps_no_lease(scene: Any, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    async def cannot(*_: Any) -> Any:
        raise Refused("its operation file is not there")

    async with scene.hands() as hands:
        op = await go(hands)
        await scene.ended(op)
        await scene.until(lambda: scene.acting().lease is None, "the lease was given back")
        snapshot = scene.feed.snapshot

        def lost() -> Any:
            seen = snapshot()
            view = seen.lane("lane")
            found = replace(view.acting.value.operation, state=OperationState.LOST, ended=None)
            acting = replace(view.acting, value=replace(view.acting.value, operation=found))
            return replace(seen, lanes=(replace(view, acting=acting),))

        with monkeypatch.context() as patched:
            patched.setattr(scene.feed, "snapshot", lost)
            if fails == "note":
                unwritable(patched, "note")
            else:
                patched.setattr(hands._carrying, "carry_on", cannot)
            with pytest.raises(Refused) as refused:
                await hands.carry_on("lane", "lane", scene.shown())
        assert refused.value.did == "a lease was taken and given back"
        await of_nobody(scene, hands)
