"""An operation that is being begun, an outcome that is told once: what consoles of one account see of each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from console.execution.inflight import beginning, is_beginning
from console.execution.ledger import CARRIED_ON, Entry, Ledger
from console.execution.recording import unfinished
from console.readings.ledger import Kind

HELD = """
import sys
from pathlib import Path
from console.execution.inflight import beginning
with beginning(Path(sys.argv[1]), "op-1"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_console_that_is_killed_begins_nothing_any_more(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    assert not is_beginning(file, "op-1")
    argv = [sys.executable, "-c", HELD, str(file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        assert is_beginning(file, "op-1") and not is_beginning(file, "op-2")
        child.kill()
        child.wait(60)
    assert not is_beginning(file, "op-1")


def test_what_is_begun_is_told_while_it_lasts(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    with beginning(file, "op-1"):
        assert is_beginning(file, "op-1")
    assert not is_beginning(file, "op-1")


def test_an_outcome_is_told_once_by_however_many_consoles(tmp_path: Path) -> None:
    first, second = (Ledger(tmp_path / "ledger.jsonl", "bed", "ana", known={}) for _ in range(2))
    first.intent(Entry("lane", op="op-1"))
    note = Entry("lane", op="op-1", result="step a done")
    assert first.once(Kind.NOTE, note) is not None and second.once(Kind.NOTE, note) is None
    outcome = Entry("lane", op="op-1", result="half done")
    assert second.once(Kind.OUTCOME, outcome) is not None and first.once(Kind.OUTCOME, outcome) is None
    assert not unfinished(first.verify().text.records)
    first.note(Entry("lane", op="op-1", result=CARRIED_ON))
    assert list(unfinished(first.verify().text.records)) == ["op-1"], "it goes on"
    assert first.once(Kind.OUTCOME, outcome) is not None, "half done once more, since it was carried on"
    assert not first.verify().problem
