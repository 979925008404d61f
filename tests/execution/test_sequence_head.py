"""A sequence on the head, which is this machine: started, joined, followed, killed, carried on, stopped, fenced."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from host_bench import Bent, lacking, local, lost, until
from runner_real import RealWorld

from console.actions.plan import Plan
from console.execution import detached, files
from console.execution.detached import Phase
from console.execution.sequence import Operation, taken_over
from console.execution.sequence_head import Journal, can_run, carry_on, newest_run, start_on_head, stop, stored
from console.execution.sequence_reach import reach_from_head
from console.reach.local import LocalLink


@pytest.fixture
async def link() -> AsyncIterator[LocalLink]:
    async with local() as here:
        yield here


@pytest.fixture
def real(tmp_path: Path) -> RealWorld:
    """Nothing is on the head yet."""
    made = RealWorld(tmp_path)
    shutil.rmtree(made.folder)
    return made


def written(real: RealWorld, made: Plan) -> Operation:
    """The operation of a plan, put nowhere."""
    real.op.mkdir(parents=True)
    found = real.write(made)
    shutil.rmtree(real.folder)
    return found


async def ended(link: LocalLink, real: RealWorld) -> Journal:
    """The journal once it has its last line."""
    journal = Journal(link, str(real.folder), real.id)
    async with asyncio.timeout(60):
        while journal.end is None:
            await journal.read()
            await asyncio.sleep(0.05)
    return journal


async def runner_pid(link: LocalLink, real: RealWorld) -> int:
    _, state = await newest_run(link, str(real.folder), real.id)
    assert state.pid is not None
    return state.pid


async def test_it_is_put_on_the_head_started_there_and_read_back(link: LocalLink, real: RealWorld) -> None:
    operation = written(real, real.swap())
    begun = await start_on_head(link, operation)
    assert begun.started and begun.unit == "sequence", begun
    journal = await ended(link, real)
    assert journal.end is not None and journal.end["state"] == "done"
    assert real.up == {"old", "noted"}
    assert (real.folder / "current").read_text() == f"{real.id}\n"
    assert (real.op / "sheet.sh").exists() and (real.op / "runner.py").exists()
    assert await stored(link, str(real.folder), real.id) == json.loads(json.dumps(operation))
    assert set(real.ran().values()) == {1}
    assert journal.lines == real.lines


async def test_a_second_start_joins_the_first(link: LocalLink, real: RealWorld) -> None:
    operation = written(real, real.plan(real.step("a", "spark-1", "slow", "2", limit=60.0)))
    assert (await start_on_head(link, operation)).started
    await until(lambda: real.ran(), "it runs")
    assert (await start_on_head(link, operation)).started
    await ended(link, real)
    assert real.ran() == {"slow 2": 1}


async def test_a_start_whose_answer_is_lost_is_looked_up(link: LocalLink, real: RealWorld) -> None:
    operation = written(real, real.plan(real.step("a", "spark-1", "start", "old")))
    bent = Bent(link, after=lambda output: lost(output) if "start" in output.command else output)
    assert (await start_on_head(bent, operation)).started
    await ended(link, real)
    assert real.ran() == {"start old": 1}


async def test_a_start_of_which_nothing_is_heard_is_begun_nowhere_else(
    link: LocalLink, real: RealWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a dead connection holds may still arrive: were it carried out in the console meanwhile, all ran twice."""
    monkeypatch.setattr(detached, "_PAUSE", 0.01)
    operation = written(real, real.plan(real.step("a", "spark-1", "start", "old")))
    bent = Bent(
        link,
        before=lambda argv: ["true"] if "start" in argv else argv,
        after=lambda output: lost(output) if output.command == ("true",) else output,
    )
    begun = await start_on_head(bent, operation)
    assert not begun.started and begun.unknown and not begun.cannot, begun
    assert not real.ran()


async def test_a_head_without_python_cannot(link: LocalLink, real: RealWorld, tmp_path: Path) -> None:
    operation = written(real, real.swap())
    bare = Bent(link, before=lacking(tmp_path, "python3"))
    begun = await start_on_head(bare, operation)
    assert not begun.started and begun.cannot and "no python3" in begun.problem
    assert not real.ran()
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "python3").write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'json'\" >&2\nexit 1\n")
    (folder / "python3").chmod(0o755)
    old = Bent(link, before=lambda argv: ["env", f"PATH={folder}:{os.environ['PATH']}", *argv])
    assert "3.8 or newer" in await can_run(old)
    assert await can_run(link) == ""


async def test_under_an_older_epoch_nothing_is_put_there(link: LocalLink, real: RealWorld) -> None:
    operation = written(real, real.swap())
    real.folder.mkdir(parents=True, exist_ok=True)
    (real.folder / "epoch").write_text("9\n")
    begun = await start_on_head(link, operation)
    assert not begun.started and begun.fenced and not begun.cannot
    assert not (real.folder / "current").exists() and not real.ran()


async def test_killed_it_is_seen_as_lost_and_another_operator_carries_it_on(link: LocalLink, real: RealWorld) -> None:
    made = real.plan(real.step("a", "spark-1", "slow", "2", limit=60.0), real.step("b", "spark-2", "start", "old"))
    operation = written(real, made)
    assert (await start_on_head(link, operation)).started
    await until(lambda: real.ran(), "it runs")
    os.kill(await runner_pid(link, real), signal.SIGKILL)
    unit, state = "", None
    while state is None or not state.over:
        unit, state = await newest_run(link, str(real.folder), real.id)
    assert unit == "sequence" and state.phase in (Phase.FAILED, Phase.LOST)
    assert real.lines[-1]["kind"] != "end"
    later = taken_over(operation, operator="ben", console="ben@desk 2", epoch=5)
    begun = await carry_on(link, later)
    assert begun.started and begun.unit == "sequence-2"
    journal = await ended(link, real)
    assert journal.end is not None and journal.end["state"] == "done"
    assert real.ran() == {"slow 2": 1, "start old": 1}
    assert [line["operator"] for line in journal.lines if line["kind"] == "takeover"] == ["ben"]
    assert (real.folder / "epoch").read_text() == "5\n"


async def test_taken_over_while_it_runs_it_goes_on_under_the_new_epoch(link: LocalLink, real: RealWorld) -> None:
    made = real.plan(real.step("a", "spark-1", "slow", "3", limit=60.0), real.step("b", "spark-2", "start", "old"))
    operation = written(real, made)
    assert (await start_on_head(link, operation)).started
    await until(lambda: real.ran(), "it runs")
    begun = await carry_on(link, taken_over(operation, operator="ben", console="ben@desk 2", epoch=6))
    assert begun.started and begun.unit == "sequence"
    journal = await ended(link, real)
    assert journal.end is not None and journal.end["state"] == "done", journal.lines
    assert [line["from"] for line in journal.lines if line["kind"] == "takeover"] == ["ana"]
    assert (await newest_run(link, str(real.folder), real.id))[0] == "sequence"


@pytest.mark.parametrize("steps", [False, True])
async def test_stopped_it_says_by_whom_and_units_end_only_if_meant(
    link: LocalLink, real: RealWorld, steps: bool
) -> None:
    made = real.plan(real.step("a", "spark-1", "slow", "9", limit=60.0), real.step("b", "spark-2", "start", "old"))
    operation = written(real, made)
    assert (await start_on_head(link, operation)).started
    await until(lambda: real.ran(), "it runs")
    assert await stop(link, operation, operator="ben", epoch=7, steps=steps) == ""
    assert real.end[0] == "stopped" and "stopped by ben" in real.end[1]
    state = await detached.state(link, str(real.folder), real.id, "a")
    assert state.phase is (Phase.STOPPED if steps else Phase.RUNNING)
    await detached.stop(link, str(real.folder), real.id, "a")
    assert real.ran() == {"slow 9": 1}


async def test_the_journal_is_read_by_offset_and_a_torn_line_later(link: LocalLink, real: RealWorld) -> None:
    journal = Journal(link, str(real.folder), real.id)
    assert await journal.read() == []
    path = real.op / "journal.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"seq": 1, "kind": "begin"}\n{"seq": 2, "ki')
    assert [line["seq"] for line in await journal.read() or ()] == [1]
    with path.open("a") as file:
        file.write('nd": "end", "state": "done"}\n')
    assert [line["seq"] for line in await journal.read() or ()] == [2]
    assert journal.end is not None


async def test_an_operation_file_that_is_damaged_is_none(link: LocalLink, real: RealWorld) -> None:
    assert await stored(link, str(real.folder), real.id) is None
    await files.put(link, str(real.folder), None, f"ops/{real.id}/plan.json", '{"v": 1')
    assert await stored(link, str(real.folder), real.id) is None


async def test_ways_are_tried_from_inside_a_unit_and_its_answers_are_kept(link: LocalLink, real: RealWorld) -> None:
    real.folder.mkdir(parents=True, exist_ok=True)
    (real.world / "cut-spark-2").touch()
    shows = real.root / "shows"
    shows.write_text(f'#!/bin/sh\necho "agent=$SSH_AUTH_SOCK" >{real.world}/agent\nshift\nexec "$@"\n')
    shows.chmod(0o755)
    os.environ["SSH_AUTH_SOCK"] = "/tmp/agent-of-the-console"
    try:
        candidates = {
            "spark-0": [[str(shows), "spark-0"]],
            "spark-1": [["no-such-ssh", "spark-1"], [str(real.ssh), "spark-1"]],
            "spark-2": [[str(real.ssh), "spark-2"], [str(real.ssh), "spark-2"]],
            "spark-3": [],
        }
        found = await reach_from_head(link, str(real.folder), candidates, op=real.id)
    finally:
        del os.environ["SSH_AUTH_SOCK"]
    assert found.ways == {"spark-0": [str(shows), "spark-0"], "spark-1": [str(real.ssh), "spark-1"]}
    assert found.problems == ("spark-2: connect to spark-2: timed out", "spark-3: the head did not say")
    assert (real.world / "agent").read_text() == "agent=\n"
    kept = await detached.log(link, str(real.folder), real.id, "reach")
    assert found.unit == f"{real.id}/reach" and kept is not None and b"spark-2\t1\t255\tconnect to spark-2" in kept
