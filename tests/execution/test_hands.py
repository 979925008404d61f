"""The operator's hands on a lane of this machine: policy, lease, ledger, sequence and outcome, with real processes."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace

import pytest
from hands_scene import PATIENCE, Scene, go, plan, step, typed

from console.actions.plan import Plan, Stage, Verb
from console.execution import deadman
from console.execution import deciding as deciding_module
from console.execution.carrying import OWED_S
from console.execution.deciding import Wish
from console.execution.hands import Hands
from console.execution.policy import Confirmation, Decision, How, Need, Refused, clock
from console.readings.acting_types import OperationState
from console.readings.ledger import Kind


async def test_an_action_is_recorded_before_it_goes_and_when_it_ended(scene: Scene) -> None:
    async with scene.hands() as hands:
        op = await go(hands)
        assert (await scene.ended(op)).state is OperationState.DONE
        assert scene.lines() == ["a"]
        await scene.until(lambda: any("done" in words for words in scene.said), "the outcome was recorded")
        records = await hands.ledger()
        kinds = [record.kind for record in records if record.op == op]
        assert kinds[0] is Kind.INTENT and kinds[-1] is Kind.OUTCOME and records[-1].result == "done"
        await scene.until(lambda: scene.acting().lease is None, "the lease was given back")  # type: ignore[union-attr]
        copied = scene.folder / "state" / "here.lane" / "ledger.jsonl"
        await scene.until(lambda: copied.exists() and copied.read_text().count("\n") >= len(records), "head copy")


@pytest.mark.parametrize("name", ["", "Lane", "lane "])
async def test_without_the_lanes_name_nothing_is_sent(scene: Scene, name: str) -> None:
    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.STOP)
        with pytest.raises(Refused):
            await hands.act(made, decision, typed(made, name=name))
        assert scene.operation() is None and scene.lines() == []
        assert await hands.ledger() == ()


async def test_a_decision_made_elsewhere_asks_for_no_less(scene: Scene) -> None:
    async with scene.hands() as hands:
        made = scene.plan
        letter = Confirmation(How.LETTER, made.id, clock())
        with pytest.raises(Refused, match="name typed"):
            await hands.act(made, Decision(Verb.STOP, "lane", need=Need.LETTER), letter)
        assert scene.lines() == []


async def test_a_plan_that_comes_out_different_is_refused(scene: Scene) -> None:
    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.STOP)
        scene.plan = replace(scene.plan, facts=(("container", "other"),))
        with pytest.raises(Refused, match=r"has changed.*other"):
            await hands.act(made, decision, typed(made))
        assert scene.lines() == []


async def test_read_only_hands_do_nothing(scene: Scene) -> None:
    async with scene.hands(read_only=True) as hands:
        made, decision = await hands.plan("lane", Verb.STOP)
        assert "read-only" in decision.denied
        with pytest.raises(Refused, match="read-only"):
            await hands.act(made, decision, typed(made))
        assert "read-only" in await hands.open_window("lane", "a reason", 1500, "lane")
        assert not (scene.folder / "state").exists()


async def test_a_failed_step_is_told_and_recorded(scene: Scene) -> None:
    mark = scene.marks
    scene.plan = plan(
        step("a", "sh", "-c", f"echo a >>{mark}"),
        step("b", "sh", "-c", "echo no such thing >&2; exit 7"),
        step("c", "sh", "-c", f"echo c >>{mark}"),
    )
    async with scene.hands() as hands:
        op = await go(hands)
        found = await scene.ended(op)
        assert found.state is OperationState.HALF_DONE and "do b" in found.words
        assert scene.lines() == ["a"]
        await scene.until(lambda: any("half done" in words for words in scene.said), "it was told")
        assert (await hands.ledger())[-1].result == "half done"


async def test_a_console_that_is_gone_leaves_no_gap_in_the_record(scene: Scene) -> None:
    scene.plan = plan(step("a", "sh", "-c", f"sleep 2; echo a >>{scene.marks}"))
    first = Hands(scene.feed, "ana", tell=scene.said.append)
    op = await go(first)  # its recording never runs: as if it was killed right after the start
    await scene.until(lambda: scene.lines() == ["a"], "the step was carried out without it")
    async with scene.hands() as second:
        await scene.until(lambda: any("done" in words for words in scene.said), "the next console records it")
        assert [record.kind for record in await second.ledger() if record.op == op][-1] is Kind.OUTCOME
    assert scene.lines() == ["a"]


async def test_another_operator_is_denied_and_may_take_over(scene: Scene) -> None:
    async with scene.hands() as ana, scene.hands("ben") as ben:
        assert "open until" in await ana.open_window("lane", "swap to the new one", 1500, "lane")
        await scene.until(lambda: (a := scene.acting()) is not None and a.window is not None, "the window is seen")
        _, decision = await ben.plan("lane", Verb.STOP)
        assert "held by ana" in decision.denied
        assert "yours now" in await ben.take_over("lane", "lane", scene.shown())
        made, decision = await ana.plan("lane", Verb.STOP)
        with pytest.raises(Refused):
            await ana.act(made, decision, typed(made))
        assert scene.lines() == []
        kinds = [record.kind for record in await ben.ledger()]
        assert Kind.TAKEOVER in kinds


async def test_a_window_is_handed_over_with_its_way_back(scene: Scene) -> None:
    async with scene.hands() as ana, scene.hands("ben") as ben:
        await ana.open_window("lane", "swap to the new one", 1500, "lane")
        await scene.until(lambda: (a := scene.acting()) is not None and a.lease is not None, "the lease is seen")
        assert "offered to ben" in await ana.offer("lane", "ben")
        assert "yours now, from ana" in await ben.accept("lane")
        opened = await ben.tenure.read_window("lane")
        assert opened is not None and opened.operator == "ben"


async def test_without_a_ledger_only_break_glass_goes(scene: Scene) -> None:
    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.STOP)
        blocked = scene.folder / "own"
        shutil.rmtree(blocked / "ledger")
        (blocked / "ledger").write_text("a file where the folder should be")
        with pytest.raises(Refused, match="break-glass"):
            await hands.begin(made, decision, typed(made))
        assert scene.lines() == []
        made, decision = await hands.plan("lane", Verb.STOP)
        assert decision.break_glass
        op = (await hands.begin(made, decision, typed(made, reason="the disk is full"))).operation
        found = await scene.ended(op)
        assert not found.ledgered and scene.lines() == ["a"]
        (blocked / "ledger").unlink()
        await scene.until(lambda: (blocked / "ledger").is_dir(), "it was written up")
        await scene.until(lambda: any(op in words or "stop done" in words for words in scene.said), "its outcome")
        assert any("UNLEDGERED" in record.text for record in await hands.ledger())


async def test_a_rollback_ends_what_runs(scene: Scene) -> None:
    long = step("long", "sh", "-c", f"echo long >>{scene.marks}; sleep 60; echo over >>{scene.marks}", limit=90.0)
    scene.plan = plan(long)
    async with scene.hands() as hands:
        first = await go(hands)
        await scene.until(lambda: scene.lines() == ["long"], "it runs")
        await scene.until(lambda: (o := scene.operation()) is not None and o.id == first, "it is seen")
        scene.plan = plan(step("back", "sh", "-c", f"echo back >>{scene.marks}"), verb=Verb.ROLLBACK)
        second = await go(hands, Verb.ROLLBACK)
        assert (await scene.ended(second)).state is OperationState.DONE
        assert scene.lines() == ["long", "back"]


async def test_with_a_webhook_the_head_is_told_to_watch_over_an_open_window(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANESWAP_WEBHOOK", "http://127.0.0.1:9/hook")
    async with scene.hands() as hands:
        await hands.open_window("lane", "swap to the new one", 1500, "lane")
        link, folder = hands.tenure.way("lane")

        async def armed() -> bool:
            return (await deadman.state(link, folder)).armed

        async with asyncio.timeout(PATIENCE):
            while not await armed():  # noqa: ASYNC110 - a host is asked
                await asyncio.sleep(0.1)
        assert "http://127.0.0.1:9/hook" not in str(await hands.ledger())
        await deadman.disarm(link, folder)
        await hands.close_window("lane", "")


async def test_what_runs_goes_on_under_the_next_holder(scene: Scene) -> None:
    """Handing over between two steps must not leave the lane half done."""
    mark = scene.marks
    scene.plan = plan(
        step("one", "sh", "-c", f"echo one >>{mark}; sleep 3", limit=30.0),
        step("two", "sh", "-c", f"echo two >>{mark}"),
    )
    async with scene.hands() as ana, scene.hands("ben") as ben:
        op = await go(ana)
        await scene.until(lambda: scene.lines() == ["one"], "it runs")
        await scene.until(
            lambda: (o := scene.operation()) is not None and o.id == op and o.state is OperationState.RUNNING, "seen"
        )
        words = await ben.take_over("lane", "lane", scene.shown())
        assert f"{op} goes on" in words, words
        found = await scene.ended(op)
        assert found.state is OperationState.DONE, found
        assert scene.lines() == ["one", "two"]
        await scene.until(lambda: any("stop done" in words for words in scene.said), "it was told")
        assert [record.result for record in await ben.ledger() if record.op == op][-1] == "done"


async def test_what_has_ended_is_not_carried_on(scene: Scene) -> None:
    scene.plan = plan(step("a", "sh", "-c", f"echo a >>{scene.marks}"), step("b", "sh", "-c", "exit 7"))
    async with scene.hands() as hands:
        op = await go(hands)
        assert (await scene.ended(op)).state is OperationState.HALF_DONE
        with pytest.raises(Refused, match="has ended"):
            await hands.carry_on("lane", "lane", scene.shown())


async def test_forward_from_a_rollback_that_is_not_finished_goes_only_for_the_asking(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Break-glass does not open it, and the plan that is made again at the confirmation is asked for the same way."""

    def planned(verb: Verb, *_: object, forward: bool = False, **__: object) -> Plan:
        made = replace(scene.plan, verb=verb)
        return made if forward else replace(made, steps=(), refused="not finished")

    monkeypatch.setattr(deciding_module, "plan_of", planned)
    async with scene.hands() as hands:
        for wish in (Wish(), Wish(break_glass=True, take_over=True)):
            _, decision = await hands.plan("lane", Verb.ROLLBACK, wish)
            assert (decision.denied, decision.or_break_glass) == ("not finished", False)
        made, decision = await hands.plan("lane", Verb.ROLLBACK, Wish(forward=True))
        assert not decision.denied and decision.need is Need.NAME
        with pytest.raises(Refused, match="not finished"):
            await hands.begin(made, decision, typed(made))
        assert scene.lines() == []
        made, decision = await hands.plan("lane", Verb.ROLLBACK, Wish(forward=True))
        op = (await hands.begin(made, decision, typed(made), Wish(forward=True))).operation
        assert (await scene.ended(op)).state is OperationState.DONE


async def test_a_lease_that_was_given_back_at_the_end_of_one_action_keeps_the_next_from_nothing(scene: Scene) -> None:
    """The strip was opened while the lease of what went before was still ours."""
    async with scene.hands() as hands:
        await hands.tenure.hold(scene.feed.snapshot().lane("lane"), "stop")
        await scene.until(lambda: (a := scene.acting()) is not None and a.lease is not None, "the lease is seen")
        made, decision = await hands.plan("lane", Verb.STOP)
        assert decision.epoch
        await hands.tenure.release("lane")
        await scene.until(lambda: (a := scene.acting()) is not None and a.lease is None, "it was given back")
        op = (await hands.begin(made, decision, typed(made))).operation
        assert (await scene.ended(op)).state is OperationState.DONE


async def test_a_debt_that_stands_keeps_its_beginning(scene: Scene) -> None:
    off = step("off", "true", stage=Stage.WATCHDOG)
    scene.plan = plan(off, owes="watchdog")
    async with scene.hands() as hands:
        await scene.ended(await go(hands))
        await scene.until(lambda: (a := scene.acting()) is not None and bool(a.debts), "the debt is seen")
        before = scene.acting().debts  # type: ignore[union-attr]
        scene.plan = plan(off, step("more", "true"), owes="watchdog")
        await scene.ended(await go(hands))
        assert scene.acting().debts == before  # type: ignore[union-attr]
        scene.plan = plan(step("on", "true", stage=Stage.ARM), pays="watchdog")
        await scene.ended(await go(hands, Verb.ARM))
        await scene.until(lambda: (a := scene.acting()) is not None and not a.debts, "the debt is struck out")


@pytest.mark.parametrize("left_s", [-600.0, 300.0, 7200.0])
async def test_a_debt_is_not_overdue_before_there_was_time_to_pay_it(scene: Scene, left_s: float) -> None:
    """The window's deadline, where it has not passed; else half an hour."""
    scene.plan = plan(step("off", "true", stage=Stage.WATCHDOG), owes="watchdog")
    async with scene.hands() as hands:
        await hands.open_window("lane", "swap to the new one", 1500, "lane")
        await hands.deciding.read_frozen("lane")
        seen = scene.acting()
        assert seen is not None
        deadline = seen.clock + left_s
        hands.deciding.frozen["lane"] = replace(hands.deciding.frozen["lane"], deadline=deadline)
        await scene.ended(await go(hands))
        await scene.until(lambda: (a := scene.acting()) is not None and bool(a.debts), "the debt is seen")
        debt = scene.acting().debts[0]  # type: ignore[union-attr]
        assert debt.deadline == (deadline if left_s > 0 else pytest.approx(debt.since + OWED_S, abs=1.0))


async def test_an_outcome_is_that_of_whoever_began_it(scene: Scene) -> None:
    """Two operators of one account share a ledger file: whose console writes a line down does not make it theirs."""
    ben = Hands(scene.feed, "ben", tell=scene.said.append)
    op = await go(ben)  # its recording never runs
    await scene.ended(op)
    async with scene.hands() as ana:
        await scene.until(lambda: any("done" in words for words in scene.said), "ana's console records it")
        assert {record.operator for record in await ana.ledger() if record.op == op} == {"ben"}
