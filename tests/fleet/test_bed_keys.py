"""The keys that act, pressed in a real terminal on a real host: window, back, stop, relaunch, ledger, window closed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from acting_docker import ActingDocker
from acting_operator import Head, Operator
from acting_parts import NEW, OLD
from bed.system import wait_for
from tmux_console import LIMIT, Tmux

pytestmark = [pytest.mark.bed, pytest.mark.timeout(180)]


@pytest.fixture
def tmux(ana: Operator) -> Iterator[Tmux]:
    """Her console, which has seen the lane."""
    found = Tmux(ana)
    try:
        found.until(NEW[:7])
        found.until("● 66.3 tok/s")
        yield found
    finally:
        found.end()


def serves(lane: ActingDocker, revision: str) -> None:
    """Wait until the host itself says so."""

    def so() -> bool:
        found = lane.standing()
        return found is not None and found.revision == revision

    wait_for(so, f"the engine serves {revision[:7]}", limit=LIMIT)


def test_a_window_back_stop_and_relaunch_by_keys(lane: ActingDocker, ana: Operator, tmux: Tmux) -> None:
    head = Head(lane.host, "station")
    tmux.press("w")
    tmux.answers(("lane name", "station"), ("reason", "swap to v22"), ("deadline", "25"))
    tmux.until("in the window: one letter")
    assert '"swap to v22"' in head.text("window.json") and head.lease()["operator"] == "ana"

    tmux.opened("B")
    serves(lane, OLD)
    assert head.until_ended() == "done" and len(lane.running()) == 1
    tmux.until(f"REVISION {OLD[:7]}", OLD[:7])
    tmux.until("last: rollback done")

    tmux.opened("S")
    wait_for(lambda: not lane.running(), "nothing runs", limit=LIMIT)
    assert head.until_ended() == "done" and lane.standing() is None
    tmux.until("last: stop done")

    tmux.opened("R")
    serves(lane, OLD)
    assert head.until_ended() == "done"
    tmux.until("last: relaunch done")

    wait_for(lambda: len(ana.outcomes()) == 3, "all outcomes are recorded", limit=LIMIT)
    tmux.press("e")
    shown = tmux.until("done  relaunch station on bed")
    assert "opened until" in shown and "done  roll back station" in shown and "done  stop station" in shown, shown
    tmux.press("Escape")
    tmux.until("1 nodes")  # before that Esc and w would be one key to the terminal
    tmux.press("w")
    tmux.answers(("lane name", "station"))
    wait_for(lambda: not head.text("window.json"), "the window is closed", limit=LIMIT)
    wait_for(lambda: not head.lease(), "the lease is given back", limit=LIMIT)
    tmux.press("q")
    ana.ledger_good()
    assert [result for _, result in ana.outcomes()] == ["done"] * 3
    assert not head.begun_twice()


@pytest.mark.soak
def test_a_console_that_is_killed_after_its_key_leaves_the_way_back_to_the_head(
    lane: ActingDocker, ana: Operator, tmux: Tmux
) -> None:
    head = Head(lane.host, "station")
    tmux.press("w")
    tmux.answers(("lane name", "station"), ("reason", "swap to v22"), ("deadline", "25"))
    tmux.until("in the window: one letter")
    pid = tmux.pid()
    tmux.opened("B")
    wait_for(lambda: head.told("stop", "running"), "it stops", limit=LIMIT, pause=0.002)
    os.kill(pid, signal.SIGKILL)
    serves(lane, OLD)
    assert head.until_ended() == "done"
    followed = ana.run("attach", "station")
    assert followed.code == 0 and "DONE" in followed.out, followed.text
    ana.ledger_good()
    assert ana.outcomes() == [(head.current(), "done")] and not head.begun_twice()
    assert head.text("window.json"), "a window is never closed by itself"
