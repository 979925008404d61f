"""However a rehearsal ends in the middle of an operation, no process, folder or task of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from drills import drill
from test_nothing_left_behind import LIMIT, all_gone, family, wait_until

from console.actions.plan import Verb
from console.readings.acting_types import OperationState

PLAYER = """
import asyncio, sys
sys.path[:0] = {paths!r}
from drills import drill
from console.actions.plan import Verb
async def main():
    async with drill("spark4", "dsv41", 1.0) as made:
        begun = await made.begin(Verb.RELAUNCH)
        def launches():
            found = made.operation()
            return found is not None and any(step.id == "launch" and step.began for step in found.steps)
        await made.until(launches, "it launches")
        print(made.source.rehearsal.pid, made.root, begun.operation, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_leaving_in_the_middle_of_a_sequence_ends_everything() -> None:
    before = asyncio.all_tasks()
    async with drill("spark4", "dsv41", 2.0) as made:
        await made.begin(Verb.STOP)
        await made.until(lambda: (found := made.operation()) and found.state is OperationState.RUNNING, "it runs")
        root, processes = made.root, family(made.source.rehearsal.pid)
    assert all_gone(processes) and root.name not in os.listdir(root.parent)
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_console_that_is_killed_in_the_middle_takes_its_rehearsal_with_it(
    number: signal.Signals, tmp_path: Path
) -> None:
    """The sequence lives on the head, and the head of a rehearsal ends with the console: nothing of it may stay."""
    player = tmp_path / "player.py"
    here = Path(__file__).parent
    player.write_text(PLAYER.format(paths=[str(here), str(here.parent)]))
    environment = {**os.environ, "LANESWAP_STATE": str(tmp_path / "state")}
    console = subprocess.Popen([sys.executable, player], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert console.stdout is not None
        pid, root, op = console.stdout.readline().split()
        journal = Path(root, "spark-0/var/tmp/laneswap/spark4.dsv41/ops", op, "journal.jsonl")
        assert json.loads(journal.read_text().partition("\n")[0])["kind"] == "begin"
        processes = family(int(pid))
        console.send_signal(number)
        console.wait(LIMIT)
        wait_until(lambda: all_gone(processes), "every process gone")
        wait_until(lambda: not Path(root).exists(), "the folder gone")
    finally:
        console.kill()
        console.wait(LIMIT)
        assert console.stdout is not None
        console.stdout.close()
    assert not (tmp_path / "state").exists()
