"""What becomes of operations is recorded by the head's own word, however far behind a console's picture is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hands_scene import go, plan, step

from console.actions.plan import Verb
from console.execution.hands import Hands
from console.execution.recording import Recording
from console.readings.acting_types import OperationState
from console.readings.ledger import Kind, Record
from console.snapshot import Snapshot


class Behind:
    """A ground whose picture of the lane stands still until it is let go."""

    def __init__(self, feed: Any) -> None:
        self._feed, self._old = feed, feed.snapshot().lane("lane").acting
        self.judges: Callable[[Snapshot], Snapshot] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)

    def snapshot(self) -> Snapshot:
        newest: Snapshot = self._feed.snapshot()
        if self.judges is not None:
            return self.judges(newest)
        if self._old is None:
            return newest
        return replace(newest, lanes=tuple(replace(view, acting=self._old) for view in newest.lanes))

    def let_go(self) -> None:
        self._old = None


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations that the head was asked about by name, one entry an answered look."""
    done: list[str] = []
    found_out = Recording._found_out

    async def counted(self: Any, op: str, *more: Any) -> None:
        await found_out(self, op, *more)
        done.append(op)

    monkeypatch.setattr(Recording, "_found_out", counted)
    monkeypatch.setattr("console.execution.recording.UP_EVERY_S", 0.2)
    return done


def outcomes(records: tuple[Record, ...], op: str) -> list[str]:
    return [record.result for record in records if record.op == op and record.kind is Kind.OUTCOME]


def long(scene: Any) -> Any:
    """A step that goes on until the test lets it."""
    return step(
        "a", "sh", "-c", f"until [ -e {scene.folder}/go ]; do sleep 0.1; done; echo a >>{scene.marks}", limit=90
    )


@pytest.mark.parametrize("before", [False, True], ids=["nothing", "an older one"])
async def test_what_runs_is_not_written_off_by_a_console_that_does_not_see_it_yet(
    scene: Any, looks: list[str], *, before: bool
) -> None:
    if before:
        async with scene.hands() as earlier:
            scene.plan = plan(step("old", "true"))
            await scene.ended(old := await go(earlier))
            await scene.until(lambda: not earlier.recording.lanes(), "the older one is recorded")
        await scene.until(lambda: scene.acting().lease is None, "its lease was given back")
        scene.said.clear()
        assert scene.operation().id == old
    behind = Behind(scene.feed)
    scene.plan = plan(long(scene))
    op = await go(Hands(scene.feed, "ana"))  # its recording never runs: as if it was killed right after the start
    second = Hands(behind, "ana", tell=scene.said.append)
    await second.start()
    try:
        await scene.until(
            lambda: len(looks) > 2 or (looks and not second.recording.lanes()), "the head was asked about it"
        )
        assert outcomes(await second.ledger(), op) == [] and second.recording.lanes() == {"lane"}
        (scene.folder / "go").touch()
        assert (await scene.ended(op)).state.value == "done"
        behind.let_go()
        await scene.until(lambda: not second.recording.lanes(), "it is recorded")
    finally:
        (scene.folder / "go").touch()
        await second.close()
    assert outcomes(await second.ledger(), op) == ["done"]
    assert [words for words in scene.said if "stop done" in words], scene.said


async def recorded(hands: Hands, *operations: str) -> tuple[Record, ...]:
    """The ledger once each of them has an outcome."""
    async with asyncio.timeout(60):
        while True:
            records = await hands.ledger()
            if all(outcomes(records, op) for op in operations):
                return records
            await asyncio.sleep(0.1)


async def test_what_another_one_followed_is_told_and_recorded_step_by_step(scene: Any, looks: list[str]) -> None:
    op = await go(Hands(scene.feed, "ana"))
    await scene.ended(op)
    scene.plan = plan(step("b", "true"))
    later = await go(Hands(scene.feed, "ana"), Verb.RELAUNCH)
    await scene.ended(later)
    async with scene.hands() as next_one:
        records = await recorded(next_one, op, later)
    assert op in looks
    assert outcomes(records, op) == outcomes(records, later) == ["done"]
    assert "step a done" in [record.result for record in records if record.op == op]
    assert sorted(words.split(":")[0] for words in scene.said) == ["relaunch done", "stop done"]


async def test_what_nobody_carries_on_is_lost_once_its_runner_is_gone(scene: Any, looks: list[str]) -> None:
    """A journal without an end is no proof that it goes on, nor that it does not: its runner is."""
    op = await go(Hands(scene.feed, "ana"))
    await scene.ended(op)
    scene.plan = plan(step("b", "true"))
    later = await go(Hands(scene.feed, "ana"), Verb.ROLLBACK)
    await scene.ended(later)
    journal = scene.folder / "state" / "here.lane" / "ops" / op / "journal.jsonl"
    journal.write_text("".join(line for line in journal.read_text().splitlines(True) if '"end"' not in line))
    async with scene.hands() as next_one:
        assert outcomes(await recorded(next_one, op, later), op) == ["lost"]
    assert [words for words in scene.said if words.startswith("stop lost: nobody carries it on")], scene.said


async def test_what_is_taken_for_lost_while_its_runner_runs_keeps_its_record_open(scene: Any) -> None:
    """A picture may be wrong of a runner that it cannot see: what is written down is by the head's own word."""

    def lost(newest: Snapshot) -> Snapshot:
        def judged(view: Any) -> Any:
            found = view.acting.value
            if found is None or found.operation is None or found.operation.ended is not None:
                return view
            operation = replace(found.operation, state=OperationState.LOST, words="its runner is gone")
            return replace(view, acting=replace(view.acting, value=replace(found, operation=operation)))

        return replace(newest, lanes=tuple(map(judged, newest.lanes)))

    behind = Behind(scene.feed)
    behind.judges = lost
    scene.plan = plan(long(scene))
    hands = Hands(behind, "ana", tell=scene.said.append)
    await hands.start()
    try:
        op = await go(hands)
        await scene.until(lambda: (o := behind.snapshot().lane("lane").acting.value.operation) and o.id == op, "seen")
        for _ in range(20):
            await hands.recording._step()
        assert outcomes(await hands.ledger(), op) == [] and scene.acting().lease is not None
        (scene.folder / "go").touch()
        await scene.until(lambda: not hands.recording.lanes(), "it is recorded")
    finally:
        (scene.folder / "go").touch()
        await hands.close()
    assert outcomes(await hands.ledger(), op) == ["done"]
