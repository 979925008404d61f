"""A start whose answer was lost is looked up by the same console, told and recorded; one that never came never will."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hands_scene import typed
from host_bench import lost

from console.actions.plan import Verb
from console.commands import acting
from console.execution import detached, recording
from console.execution.carrying import Unclear
from console.execution.clearing import Cleared
from console.readings.acting_types import OperationState
from console.readings.ledger import Kind
from console.readings.output import Outcome, Output


class Line:
    """The way to the head, which loses what it is told to lose."""

    def __init__(self, link: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = link.run
        self.arrives, self.names, self.dark = True, True, False
        self.start: tuple[Sequence[str], dict[str, Any]] | None = None
        monkeypatch.setattr(link, "run", self.run)
        monkeypatch.setattr(recording, "UP_EVERY_S", 0.2)
        monkeypatch.setattr(detached, "_PAUSE", 0.0)

    async def run(self, argv: Sequence[str], **more: Any) -> Output:
        if list(argv[3:5]) == ["laneswap", "start"] and "sequence" in argv:
            self.start, self.dark = (argv, more), True
            nothing = Output("me", tuple(argv), Outcome.UNKNOWN, None, "", "", "", 0.0, hint="connection lost")
            return lost(await self._run(argv, **more)) if self.arrives else nothing
        if self.dark and "state" in argv:
            return lost(await self._run(argv, **more))
        if not self.names and "current" in argv[4:]:
            return lost(await self._run(["true"], limit=5.0))
        return await self._run(argv, **more)  # type: ignore[no-any-return]


async def unclear(hands: Any) -> str:
    made, decision = await hands.plan("lane", Verb.STOP)
    with pytest.raises(Unclear, match="is being looked up") as caught:
        await hands.begin(made, decision, typed(made))
    assert hands.cleared(caught.value.operation) is Cleared.UNKNOWN
    return caught.value.operation


@pytest.mark.parametrize("names", [True, False], ids=["named", "its name was lost too"])
async def test_one_that_began_is_told_and_recorded_by_the_same_console(
    scene: Any, monkeypatch: pytest.MonkeyPatch, names: bool
) -> None:
    async with scene.hands() as hands:
        line = Line(scene.feed.links["me"], monkeypatch)
        line.names = names
        op = await unclear(hands)
        line.dark, line.names = False, True
        await scene.until(lambda: hands.cleared(op) is Cleared.BEGAN, "it is found")
        assert (await scene.ended(op)).state is OperationState.DONE
        await scene.until(lambda: any("stop done" in words for words in scene.said), "its end is told")
        assert any(f"{op} did begin" in words for words in scene.said)
        kinds = [(record.kind, record.result) for record in await hands.ledger() if record.op == op]
        assert kinds[0][0] is Kind.INTENT and kinds[-1] == (Kind.OUTCOME, "done")
        assert scene.lines() == ["a"]


async def test_one_that_never_arrived_is_told_and_cannot_arrive_any_more(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "LOST_S", 1.0)
    async with scene.hands() as hands:
        line = Line(scene.feed.links["me"], monkeypatch)
        line.arrives = False
        op = await unclear(hands)
        line.dark = False
        await scene.until(lambda: any(f"{op} never began" in words for words in scene.said), "it is told")
        assert hands.cleared(op) is Cleared.NEVER
        (told,) = [record for record in await hands.ledger() if record.op == op and record.kind is Kind.OUTCOME]
        assert told.result == "not begun"
        assert line.start is not None
        late = await line._run(line.start[0], **line.start[1])
        assert late.exit_status == 3 and "stopped by an operator before it began" in late.stdout
        await scene.until(lambda: scene.acting().lease is None, "the lease is given back")
        assert scene.lines() == []


async def test_while_the_head_does_not_say_nothing_is_said(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "LOST_S", 0.0)
    async with scene.hands() as hands:
        line = Line(scene.feed.links["me"], monkeypatch)
        line.names = False
        op = await unclear(hands)
        await scene.until(lambda: scene.lines() == ["a"], "it runs all the same")
        assert hands.cleared(op) is Cleared.UNKNOWN
        assert [record.kind for record in await hands.ledger() if record.op == op] == [Kind.INTENT]
        line.dark, line.names = False, True
        await scene.until(lambda: hands.cleared(op) is Cleared.BEGAN, "it is found")


async def test_the_command_line_waits_for_it_too(
    scene: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with scene.hands() as hands:
        line = Line(scene.feed.links["me"], monkeypatch)
        op = await unclear(hands)
        line.dark = False
        assert await acting._looked_up(acting.Ready(scene.feed, hands, "lane", asyncio.Event()), op) == 0
        assert "do a" in capsys.readouterr().out
