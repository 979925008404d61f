"""The script as it is sent: one text of parts that any python3 from 3.6 on can run, and children that nothing ends."""

from __future__ import annotations

import ast
import os
import signal
from collections.abc import Callable

import pytest

from console.reach import looks_host
from console.reach.child_host import Child, Out
from console.reach.looks_host import Looks
from console.reach.sampler import IMPORTS, LOADER, script


def test_it_is_python_3_6_part_by_part_and_as_a_whole() -> None:
    parts = script("python").split("\f")
    assert len(parts) == 5
    for text in (*parts, script("python")):
        ast.parse(text, feature_version=(3, 6))


def test_it_needs_no_more_than_the_loader_has_tried() -> None:
    tree = ast.parse(script("python"))
    wanted = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert wanted == set(IMPORTS.split(", "))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)], "nothing of ours is there"
    assert LOADER.count("\\f") == 1


def test_every_name_of_a_part_is_there_when_it_is_one_text() -> None:
    names = {"__name__": "laneswap"}
    for part in script("python").split("\f"):
        exec(part, names)
    assert {"tree", "file", "processes", "units", "answer", "Looks", "Gpu", "Sampler", "main"} <= names.keys()


class Words(Out):
    """What was said, and nothing sent."""

    def __init__(self) -> None:
        super().__init__("mark")
        self.said: list[tuple[str, dict[str, str], str]] = []

    def frame(self, kind: str, texts: dict[str, str], begun: float, error: str = "", source: str = "") -> bool:
        self.said.append((kind, texts, error))
        return True


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A child in the kernel's hands: no signal reaches it. Nothing here can make a real one; waitpid plays it."""
    real = os.waitpid
    monkeypatch.setattr(os, "waitpid", lambda pid, options: (0, 0))
    monkeypatch.setattr(os, "killpg", lambda pid, number: None)
    return lambda: monkeypatch.setattr(os, "waitpid", real)


def test_what_cannot_be_killed_is_said_and_never_followed_by_a_second(
    stuck: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[float] = []

    def start(self: Child, now: float) -> None:
        started.append(now)
        self.pid, self.begun, self.since, self.reported, self.killed = 4711, now, now, now, False

    monkeypatch.setattr(Child, "start", start)
    out = Words()
    looks = Looks(out, 5.0, 10.0, 60.0)
    looks.order(b"look 2\n1\tmain:repo\ttree\t5\t/dead\t6\t100\n2\tmain:log\tfile\t5\t/log\tlast\t9\n")
    looks.tick(100.0)
    looks.took(b"? 1\n")
    for now in range(101, 300):
        looks.tick(float(now))
        assert looks.next(float(now)) <= now + 1.0
    words = [error for _, texts, error in out.said if texts == {"look": "1"}]
    assert words[0] == "main:repo (tree /dead 6 100) has not answered for 10 s"
    assert "main:repo (tree /dead 6 100) has not answered for 60 s, killed" in words
    assert words[-1].endswith("and cannot be killed: it is stuck in the kernel, as on a dead mount")
    assert started == [100.0]
    monkeypatch.setattr(os, "waitpid", lambda pid, options: (4711, signal.SIGKILL))
    looks.tick(300.0)
    assert out.said[-1][2] == "main:repo (tree /dead 6 100): the look killed after 200 s without an answer"
    looks.tick(300.5)
    assert started == [100.0, 300.5], "the others go on once it is gone"
    assert [one.key for one in looks.asked] == ["main:log"], "and the one that hung has to wait"


def test_answers_of_a_set_that_was_replaced_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    monkeypatch.setattr(Child, "start", lambda self, now: setattr(self, "pid", 4711))
    monkeypatch.setattr(Out, "raw", lambda self, kind, body, begun, error="", source="": sent.append(body) or True)
    looks = Looks(Out("mark"), 5.0, 10.0, 60.0)
    looks.order(b"look 2\n1\ta\tfile\t5\t/a\tlast\t9\n2\tb\tfile\t5\t/b\tlast\t9\n")
    looks.tick(100.0)
    looks.order(b"look 1\n2\tb\tfile\t5\t/b\tlast\t9\n")
    for byte in b'? 1\n= 1 5\n"odd"? 2\n= 2 4\n"b\n"!\n':
        looks.took(bytes([byte]))
    assert not looks.busy
    assert sent == [b'"2":"b\n"']


def test_escapes_of_a_line() -> None:
    assert looks_host.unescaped(r"a\tb\\tc\nd\\\\n") == "a\tb\\tc\nd\\\\n"
