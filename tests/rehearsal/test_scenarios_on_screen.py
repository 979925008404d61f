"""Every shipped scenario on the screen, live: engines, boots and fleets with nothing wrong."""

from __future__ import annotations

import answers
import pytest
import told

from console.rehearsal.scenario import list_scenarios


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    told.look_often(monkeypatch)


def test_every_shipped_scenario_has_its_answer_and_its_file() -> None:
    assert set(answers.ANSWERS) == set(list_scenarios())
    assert sorted(name for group in answers.GROUPS for name in answers.of_group(group)) == sorted(list_scenarios())


@pytest.mark.parametrize("scenario", answers.of_group("engine"))
async def test_the_operator_reads_it_at_every_size_in_every_mode(scenario: str) -> None:
    assert await answers.read(scenario) == []
