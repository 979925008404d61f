"""Who may begin something: one lease, one beginning at a time, and nothing past a lease that another holds."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hands_scene import go, plan, step, typed

from console.actions.plan import Verb
from console.execution import files, lease
from console.execution.policy import Need, Refused
from console.readings.acting import Texts, answered, read_acting
from console.readings.acting_types import OperationState
from console.readings.ledger import Kind


async def test_break_glass_never_goes_past_a_lease_that_another_holds(scene, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    async def full() -> bool:
        return False

    async with scene.hands() as hands:
        monkeypatch.setattr(hands.deciding, "writable", full)
        made, decision = await hands.plan("lane", Verb.STOP)
        assert decision.break_glass
        link, folder = hands.tenure.way("lane")
        assert (await lease.take(link, folder, "ben", "ben@there 1", "a window")).granted
        with pytest.raises(Refused, match="ben holds the lease"):
            await hands.begin(made, decision, typed(made, reason="the disk is full"))
        assert scene.lines() == []


async def test_a_lease_that_ran_out_is_taken_from_nobody_else(scene, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    async with scene.hands() as hands:
        link, folder = hands.tenure.way("lane")
        await lease.take(link, folder, "ben", "ben@there 1", "a window", ttl=1)
        await scene.until(lambda: (a := scene.acting()).lease and a.lease.expired(a.clock), "it ran out")
        made, decision = await hands.plan("lane", Verb.STOP)
        assert decision.takes_over
        before = scene.feed.snapshot()
        monkeypatch.setattr(scene.feed, "snapshot", lambda: before)  # the picture has not heard of it yet
        assert (await lease.take(link, folder, "cara", "cara@else 1", "hers", over=True)).granted
        with pytest.raises(Refused, match=r"held by cara|cara holds the lease"):
            await hands.begin(made, decision, typed(made))
        assert scene.lines() == []


async def test_a_damaged_lease_can_be_taken_over(scene) -> None:  # type: ignore[no-untyped-def]
    async with scene.hands() as hands:
        link, folder = hands.tenure.way("lane")
        await lease.take(link, folder, "ben", "ben@there 1", "a window", ttl=1)
        (scene.folder / "state" / "here.lane" / "lease").write_text("garbage\n")
        assert "is yours" in await hands.take_over("lane", "lane", scene.shown())


async def test_two_consoles_of_one_operator_begin_one_operation(scene) -> None:  # type: ignore[no-untyped-def]
    go_on = scene.folder / "go on"
    waits = f"until [ -e '{go_on}' ]; do sleep 0.1; done; echo a >>{scene.marks}"
    scene.plan = plan(step("a", "sh", "-c", waits, limit=120.0))
    async with scene.hands() as one, scene.hands() as two:
        await one.open_window("lane", "swap to the new one", 1500, "lane")
        await scene.until(lambda: scene.acting().window is not None, "the window is seen")
        first, second = await one.plan("lane", Verb.STOP), await two.plan("lane", Verb.RELAUNCH)
        begun = await asyncio.gather(
            one.begin(*first, typed(first[0])), two.begin(*second, typed(second[0])), return_exceptions=True
        )
        assert sum(isinstance(item, Refused) for item in begun) == 1, begun
        go_on.touch()
        await scene.until(lambda: scene.lines() == ["a"], "the other one is carried out")


async def test_what_was_just_begun_is_not_begun_beside(scene) -> None:  # type: ignore[no-untyped-def]
    go_on = scene.folder / "go on"
    waits = f"until [ -e '{go_on}' ]; do sleep 0.1; done; echo a >>{scene.marks}"
    scene.plan = plan(step("a", "sh", "-c", waits, limit=120.0))
    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.RELAUNCH)
        op = await go(hands)
        with pytest.raises(Refused, match=rf"stop (by ana )?.operation {op}.*(runs|is running)"):
            await hands.begin(made, decision, typed(made))
        go_on.touch()
        await scene.until(scene.lines, "it was carried out")
        await scene.ended(op)
        assert scene.lines() == ["a"]


async def test_what_another_began_a_moment_ago_is_named(scene, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """It is not read here yet: the head is asked whose it is, instead of telling the operator to look again."""
    go_on = scene.folder / "go on"
    waits = f"until [ -e '{go_on}' ]; do sleep 0.1; done; echo a >>{scene.marks}"
    scene.plan = plan(step("a", "sh", "-c", waits, limit=120.0))
    async with scene.hands() as ana, scene.hands("ben") as ben:
        back, stop = await ben.plan("lane", Verb.ROLLBACK), await ben.plan("lane", Verb.STOP)
        before = ben.deciding.view("lane")
        monkeypatch.setattr(ben.deciding, "view", lambda lane: before)
        op = await go(ana, Verb.ROLLBACK)
        with pytest.raises(Refused, match=f"rollback by ana .operation {op}. runs already"):
            await ben.begin(*back, typed(back[0]))
        with pytest.raises(Refused, match=f"rollback by ana .operation {op}. was begun since this was shown"):
            await ben.begin(*stop, typed(stop[0]))
        go_on.touch()
        await scene.until(scene.lines, "it was carried out")
        await scene.ended(op)
        assert scene.lines() == ["a"]


async def test_a_lease_that_was_taken_meanwhile_is_named(scene) -> None:  # type: ignore[no-untyped-def]
    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.ROLLBACK)
        link, folder = hands.tenure.way("lane")
        assert (await lease.take(link, folder, "ben", "ben@there 1", "a window")).granted
        await scene.until(lambda: scene.acting().lease is not None, "the lease is seen")
        with pytest.raises(Refused, match=r"takes the lane over from ben since .* now, which was not shown"):
            await hands.begin(made, decision, typed(made))


async def test_what_a_rollback_ended_has_an_outcome_too(scene) -> None:  # type: ignore[no-untyped-def]
    scene.plan = plan(step("a", "sleep", "30", limit=60))
    async with scene.hands() as hands:
        stop = await go(hands)
        await scene.until(lambda: (op := scene.operation()) and op.id == stop and op.steps, "it runs")
        scene.plan = plan(step("b", "true"))
        await scene.ended(await go(hands, Verb.ROLLBACK))
        await scene.until(lambda: not hands.recording.lanes(), "both are recorded")
        told = [record for record in await hands.ledger() if record.op == stop and record.kind is Kind.OUTCOME]
        assert [record.result for record in told] == ["stopped"]


async def test_a_read_only_console_neither_offers_nor_takes_nor_closes(scene) -> None:  # type: ignore[no-untyped-def]
    async with scene.hands(read_only=True) as hands:
        for words in (
            await hands.offer("lane", "ben"),
            await hands.accept("lane"),
            await hands.take_over("lane", "lane", scene.shown()),
            await hands.close_window("lane", "lane"),
        ):
            assert "read-only" in words
        assert not (scene.folder / "state").exists()


async def test_an_offer_outlives_its_console(scene) -> None:  # type: ignore[no-untyped-def]
    async with scene.hands() as ana:
        assert "is offered to ben" in await ana.offer("lane", "ben")
    async with scene.hands("ben") as ben:
        assert "is yours now, from ana" in await ben.accept("lane")


async def test_the_window_of_another_wants_the_name_after_a_take_over(scene) -> None:  # type: ignore[no-untyped-def]
    async with scene.hands() as ana, scene.hands("ben") as ben:
        await ana.open_window("lane", "swap to the new one", 1500, "lane")
        await scene.until(lambda: scene.acting().window is not None, "the window is seen")
        await ben.take_over("lane", "lane", scene.shown())
        await scene.until(lambda: (held := scene.acting().lease) and held.operator == "ben", "it is ben's")
        assert [(await ben.plan("lane", verb))[1].need for verb in (Verb.STOP, Verb.ROLLBACK)] == [Need.NAME] * 2


async def test_a_rollback_that_nobody_can_see_does_not_keep_the_next_one_away(scene) -> None:  # type: ignore[no-untyped-def]
    async with scene.hands() as hands:
        op = await go(hands, Verb.ROLLBACK)
        await scene.ended(op)
        for name in ("plan.json", "journal.jsonl"):
            (scene.folder / "state" / "here.lane" / "ops" / op / name).unlink()
        gone = (OperationState.UNKNOWN, OperationState.LOST)  # lost once its runner is seen to be gone
        await scene.until(lambda: scene.operation().state in gone, "its files are gone")
        assert not (await hands.plan("lane", Verb.ROLLBACK))[1].denied


async def test_a_console_that_slept_looks_again_before_it_says_what_changed(scene, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Right after a sleep every reading is old: what is not seen then has not changed."""
    async with scene.hands() as hands:
        made, decision = await hands.plan("lane", Verb.STOP)
        whole, blind, asleep = scene.plan, plan(), True
        snapshot = scene.feed.snapshot

        def old():  # type: ignore[no-untyped-def]
            found = snapshot()
            return replace(found, now=found.now + 3600.0) if asleep else found

        monkeypatch.setattr(scene.feed, "snapshot", old)
        scene.plan = blind
        begun = asyncio.create_task(hands.begin(made, decision, typed(made)))
        await asyncio.sleep(0.3)
        assert not begun.done(), "it looks again"
        scene.plan, asleep = whole, False
        await begun
        await scene.until(lambda: scene.lines() == ["a"], "it was carried out")


async def test_who_took_the_lane_meanwhile_is_named(scene) -> None:  # type: ignore[no-untyped-def]
    async with scene.hands() as hands:
        await hands.open_window("lane", "swap to the new one", 1500, "lane")
        await scene.until(lambda: scene.acting().lease is not None, "the lease is seen")
        shown = [await hands.plan("lane", verb) for verb in (Verb.STOP, Verb.ROLLBACK)]
        link, folder = hands.tenure.way("lane")
        assert (await lease.take(link, folder, "ben", "ben@there 1", "a window", over=True)).granted
        await scene.until(lambda: scene.acting().lease.operator == "ben", "ben's lease is seen")
        for made, decision in shown:
            with pytest.raises(Refused, match="ben since"):
                await hands.begin(made, decision, typed(made))
        assert scene.lines() == []


async def test_a_console_knows_its_own_window_as_soon_as_the_head_has_it(scene) -> None:  # type: ignore[no-untyped-def]
    """Not a look later: `w` again would open a second one, and `B` would ask for the lane's name."""
    async with scene.hands() as hands:
        assert "window open" in await hands.open_window("lane", "swap to the new one", 1500, "lane")
        seen = scene.acting()
        assert seen.window is not None and seen.window.reason == "swap to the new one"
        assert seen.lease is not None and hands.mine("lane")
        assert seen.window == (await read_back(hands)), "what the head has"
        await hands.offer("lane", "ben")
        assert scene.acting().lease.offered_to == "ben"
        await hands.offer("lane", "")
        assert "nothing owed" in await hands.close_window("lane", "lane")
        assert scene.acting().window is None and scene.acting().lease is None


async def read_back(hands):  # type: ignore[no-untyped-def]
    link, folder = hands.tenure.way("lane")
    found = await files.read(link, folder, "window.json", most=1 << 20)
    return read_acting(Texts(window=answered(found.data.decode())), 0.0).window


@pytest.mark.parametrize("ran_out", [False, True])
async def test_a_take_over_goes_against_whom_it_was_shown_with(scene, ran_out: bool) -> None:  # type: ignore[no-untyped-def]
    """The strip says that ben's lease ran out; cara has it by the time the name is typed, and is alive."""
    async with scene.hands() as hands:
        link, folder = hands.tenure.way("lane")
        await lease.take(link, folder, "ben", "ben@there 1", "hers", ttl=1 if ran_out else 60)
        await scene.until(lambda: (a := scene.acting()).lease and a.lease.expired(a.clock) is ran_out, "it is seen")
        shown = scene.shown()
        taken = await lease.take(link, folder, "cara", "cara@else 1", "hers", over=True)
        for before in (shown, ""):
            words = await hands.take_over("lane", "lane", before)
            assert words == "not taken over: held by cara by now, which was not shown; look again"
        found = (await lease.show(link, folder)).lease
        assert found is not None and taken.lease is not None and found.id == taken.lease.id
        assert "taken from cara" in await hands.take_over("lane", "lane", found.id)


async def test_what_is_carried_on_takes_the_lane_from_whom_it_was_shown_with(scene, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """ben's lease ran out; cara holds the lane by the time the name is typed, which this picture does not show yet."""
    async with scene.hands() as hands:
        op = await go(hands)
        await scene.ended(op)
        await scene.until(lambda: scene.acting().lease is None, "the lease was given back")
        link, folder = hands.tenure.way("lane")
        await lease.take(link, folder, "ben", "ben@there 1", "hers", ttl=1)
        await scene.until(lambda: (a := scene.acting()).lease and a.lease.expired(a.clock), "it ran out")
        lost = of_lost(scene.feed.snapshot())
        await lease.take(link, folder, "cara", "cara@else 1", "hers", over=True)
        with monkeypatch.context() as old:
            old.setattr(scene.feed, "snapshot", lambda: lost)
            with pytest.raises(Refused, match="held by cara by now, which was not shown"):
                await hands.carry_on("lane", "lane", lost.lane("lane").acting.value.lease.id)
        assert (await lease.show(link, folder)).lease.operator == "cara"


def of_lost(seen):  # type: ignore[no-untyped-def]
    """The picture, with its newest operation lost."""
    view = seen.lane("lane")
    found = replace(view.acting.value.operation, state=OperationState.LOST, ended=None)
    acting = replace(view.acting, value=replace(view.acting.value, operation=found))
    return replace(seen, lanes=(replace(view, acting=acting),))
