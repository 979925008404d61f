"""The pictures that panes are drawn from serve the screens too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "widgets"))


@pytest.fixture(autouse=True)
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot rests 20 ms two or three times a key; that messages are handled it waits for apart from that."""
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 0.004)


@pytest.fixture(autouse=True)
def patient_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes any screen stand still for more than a second; that it cancels a strip is told elsewhere, on
    times that are made up."""
    monkeypatch.setattr("console.actions.strip.GAP_S", 60.0)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No keymap or fault file of the person who runs the tests; no colour setting of their terminal."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LANESWAP_OPERATOR", "ana")
    monkeypatch.delenv("NO_COLOR", raising=False)
