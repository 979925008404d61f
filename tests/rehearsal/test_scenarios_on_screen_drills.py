"""Scenarios on the screen: drills, as they stand before anybody acts."""

from __future__ import annotations

import answers
import pytest
import told


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    told.look_often(monkeypatch)


@pytest.mark.parametrize("scenario", answers.of_group("drills"))
async def test_the_operator_reads_it_at_every_size_in_every_mode(scenario: str) -> None:
    assert await answers.read(scenario) == []
