"""The keys that act, pressed in a real terminal on a real host: window, back, stop, relaunch, ledger, window closed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from acting_docker import ActingDocker
from acting_operator import Head, Operator
from acting_parts import NEW, OLD
from bed.system import wait_for

pytestmark = [pytest.mark.bed, pytest.mark.timeout(180)]

LIMIT = 60.0
LETTER = re.compile(r"every key but ([a-z]) cancels")
"""On the key line of a strip that is armed."""


class Tmux:
    """A console at 120x40 in a tmux server of its own."""

    def __init__(self, who: Operator) -> None:
        self.socket = f"laneswap-keys-{who.file.parent.parent.name}"
        argv = [sys.executable, "-m", "console", "-f", str(who.file)]
        given = {key: who.environment()[key] for key in ("LANESWAP_STATE", "LANESWAP_OPERATOR")}
        words = " ".join(f"{key}={shlex.quote(value)}" for key, value in given.items())
        self._run(
            "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", f"exec env {words} {shlex.join(argv)}"
        )

    def _run(self, *words: str) -> str:
        argv = ["tmux", "-L", self.socket, *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=LIMIT).stdout

    def screen(self) -> str:
        """What stands on the screen."""
        return self._run("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """Keys, as tmux names them."""
        self._run("send-keys", *keys)

    def type(self, text: str) -> None:
        """A line, typed."""
        self._run("send-keys", "-l", text)
        self.press("Enter")

    def until(self, *words: str) -> str:
        """Wait until one of these stands on the screen."""
        try:
            wait_for(lambda: any(word in self.screen() for word in words), f"{words}", limit=LIMIT)
        except Exception:
            raise AssertionError(f"never showed {words}:\n{self.screen()}") from None
        return self.screen()

    def pid(self) -> int:
        """Of the console itself."""
        return int(self._run("list-panes", "-F", "#{pane_pid}").split()[0])

    def end(self) -> None:
        """No console and no server is left."""
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True, timeout=LIMIT, check=False)

    def letter(self) -> str:
        """The letter of the strip that is armed, once it is shown."""
        found = LETTER.search(self.until("every key but"))
        assert found is not None, self.screen()
        return found[1]

    def opened(self, key: str) -> None:
        """Press a guarded key, read the letter from the screen, press that. A strip whose state flips while it is read
        cancels itself: then the key is pressed again, as an operator would."""
        for _ in range(3):
            self.press(key)
            if LETTER.search(self.until("every key but", "CANCELLED")):
                break
        self.press(self.letter())

    def answers(self, *asked: tuple[str, str]) -> None:
        """Answer what a strip asks, each question once it is on the screen and takes keys."""
        for question, answer in asked:
            self.until(f"type the {question}")
            self.type(answer)


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
