"""A console in a tmux server of its own: real keys in a real terminal, and what stands on it."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
import time

from acting_console import Console
from bed.system import BedError, wait_for

LIMIT = 60.0
TRIES = 5
SEEN_S = 10.0
"""Seconds after which a key that nothing came of is pressed again."""
LETTER = re.compile(r"every key but ([a-z]) cancels")
"""On the key line of a strip that is armed."""


class Tmux:
    """A console at 120x40 in a tmux server of its own."""

    def __init__(self, who: Console) -> None:
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

    def opened(self, key: str) -> None:
        """Press a guarded key, read the letter from the screen, press that."""
        found = LETTER.search(self._asks(key, "every key but"))
        assert found is not None, self.screen()
        self.press(found[1])

    def named(self, key: str, lane: str) -> None:
        """Press a guarded key outside a window, or the window's own, and type the lane's name."""
        for _ in range(TRIES):
            self._asks(key, "type the lane name")
            self.type(lane)
            wait_for(lambda: "type the lane name" not in self.screen(), f"{key}: an answer to the name", limit=LIMIT)
            if "CANCELLED" not in self.screen():
                return
            time.sleep(1.5)
        raise AssertionError(f"{key}: its strip cancelled itself {TRIES} times:\n{self.screen()}")

    def _asks(self, key: str, words: str) -> str:
        """Press a guarded key until its strip takes an answer. One whose state flips while it is read, or whose screen
        stood still on a busy machine, cancels itself: then the key is pressed again, as an operator would."""
        for _ in range(TRIES):
            self.press(key)
            time.sleep(0.3)  # what became of the strip before stands there until this one has opened
            with contextlib.suppress(BedError):  # a key that comes within a second of typed ones is dropped
                wait_for(lambda: words in self.screen() or "CANCELLED" in self.screen(), words, limit=SEEN_S)
            if words in (shown := self.screen()):
                return shown
            time.sleep(1.5)  # keys are dropped until none came for a second
        raise AssertionError(f"{key}: its strip cancelled itself {TRIES} times:\n{self.screen()}")

    def answers(self, *asked: tuple[str, str]) -> None:
        """Answer what a strip asks, each question once it is on the screen and takes keys."""
        for question, answer in asked:
            self.until(f"type the {question}")
            self.type(answer)
