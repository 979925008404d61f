"""What every console reads of an operation, against what the runner that carries it out writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from runner_world import FakeClock, MemoryJournal, World, operation, states, swap

from console.execution.runner import Runner
from console.readings.acting import Pulse, Texts, answered, read_acting
from console.readings.acting_types import Operation, OperationState


def carried_out(world: World) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    made, journal = operation(swap()), MemoryJournal()
    Runner(made, world, journal, clock=FakeClock()).run()
    return made, journal.lines


def read(made: dict[str, Any], lines: list[dict[str, Any]], *, later: float = 0.0, torn: str = "") -> Operation:
    text = "".join(json.dumps(line) + "\n" for line in lines) + torn
    files = Texts(current=answered(made["id"]), plan=answered(json.dumps(made)), journal=answered(text))
    clock = max([line["t"] for line in lines], default=made["created"]) + later
    found = read_acting(files, clock, pulse=Pulse(alive=False))
    assert found.problem == ""
    assert found.operation is not None
    return found.operation


def worlds() -> list[World]:
    return [World(), World(fails={"start": 1}), World(fails={"stop spark-1/new": 5}), World(fails={"save": 2})]


@pytest.mark.parametrize("number", range(4))
def test_whatever_the_runner_wrote_is_read_back(number: int) -> None:
    made, lines = carried_out(worlds()[number])
    for end in range(1, len(lines) + 1):
        journal = MemoryJournal(lines[:end])
        found = read(made, lines[:end], torn='{"t": 1, "ki')
        told = states(journal)
        ended = lines[end - 1]["kind"] == "end"
        for step in found.steps:
            assert step.state.value == told.get(step.id, "skipped" if ended else "waiting"), step.id
        assert found.state is (OperationState(lines[end - 1]["state"]) if ended else OperationState.RUNNING)


@pytest.mark.parametrize("number", range(4))
def test_a_runner_that_dies_after_any_line_leaves_words_on_every_console(number: int) -> None:
    made, lines = carried_out(worlds()[number])
    for end in range(1, len(lines)):
        found = read(made, lines[:end], later=60.0)
        assert found.state in (OperationState.HALF_DONE, OperationState.LOST, OperationState.DONE)
        begun = any(line["kind"] == "step" and line["id"] != "save" for line in lines[:end])
        assert found.words.startswith("HALF DONE") is (found.state is OperationState.HALF_DONE)
        assert (found.state is OperationState.LOST) is not begun
