"""A sequence in the console: the same runner over links, its journal here and on the head, cut and carried on."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from host_bench import Bent, local, lost, until
from runner_real import RealWorld
from runner_world import HOSTS

from console.execution import detached, files
from console.execution.detached import Phase
from console.execution.policy import Refused
from console.execution.sequence import taken_over
from console.execution.sequence_console import InConsole, run_in_console
from console.execution.sequence_head import stored
from console.reach.local import LocalLink
from console.readings.output import Outcome, Output


@pytest.fixture
async def link() -> AsyncIterator[LocalLink]:
    async with local() as here:
        yield here


@pytest.fixture
def real(tmp_path: Path) -> RealWorld:
    return RealWorld(tmp_path)


class Away:
    """A link that can be cut, and that says what it ran."""

    def __init__(self, link: LocalLink) -> None:
        self.link, self.cut = link, False

    async def run(self, argv: Any, *, stdin: str = "", limit: float = 10.0, operator: bool = False) -> Output:
        if self.cut:
            return Output("away", tuple(argv), Outcome.UNREACHABLE, None, "", "", "", 0.0, hint="no connection")
        return await self.link.run(argv, stdin=stdin, limit=limit, operator=operator)


class Bench:
    """Three hosts behind links, a folder for the journal here."""

    def __init__(self, link: LocalLink, real: RealWorld) -> None:
        self.real = real
        self.links: dict[str, Any] = {host: Away(link) for host in HOSTS}
        self.keep = real.root / "keep"

    def operation(self, made: Any, **changes: Any) -> dict[str, Any]:
        return self.real.write(made, reach={host: [] for host in HOSTS}, **changes)

    async def begin(self, operation: dict[str, Any], **more: Any) -> InConsole:
        return await run_in_console(self.links, operation, keep=self.keep, **more)

    async def run(self, operation: dict[str, Any], **more: Any) -> str:
        running = await self.begin(operation, **more)
        async with asyncio.timeout(60):
            return await running.wait()

    @property
    def here(self) -> list[dict[str, Any]]:
        return [json.loads(row) for row in (self.keep / f"{self.real.id}.jsonl").read_text().splitlines()]


@pytest.fixture
def bench(link: LocalLink, real: RealWorld) -> Bench:
    return Bench(link, real)


async def test_it_is_carried_out_and_the_head_has_the_same_journal(bench: Bench) -> None:
    operation = bench.operation(bench.real.swap())
    assert await bench.run(operation) == "done"
    assert bench.real.up == {"old", "noted"}
    assert bench.here == bench.real.lines
    assert bench.here[0]["runs_on"] == "console"
    assert (bench.real.folder / "current").read_text() == f"{bench.real.id}\n" and (bench.real.op / "sheet.sh").exists()
    assert set(bench.real.ran().values()) == {1}


async def test_its_times_are_those_of_the_heads_clock(bench: Bench) -> None:
    operation = bench.operation(bench.real.plan(bench.real.step("a", "spark-0", "start", "x")))
    assert await bench.run(operation, ahead=-1_000_000.0) == "done"
    assert all(-1_000_100 < line["t"] - time.time() < -999_900 for line in bench.here)


async def test_an_answer_of_the_head_that_is_lost_doubles_no_line(bench: Bench, link: LocalLink) -> None:
    losing = 0

    def sometimes(output: Output) -> Output:
        nonlocal losing
        if output.command[1] == "-c" and f"ops/{bench.real.id}/journal.jsonl" in output.command:
            losing += 1
            return lost(output) if losing % 2 else output
        return output

    bench.links["spark-0"] = Bent(link, after=sometimes)
    made = bench.real.plan(*(bench.real.step(f"s{n}", "spark-1", "start", f"c{n}") for n in range(4)))
    assert await bench.run(bench.operation(made)) == "done"
    assert losing
    assert bench.real.lines == bench.here
    assert [line["seq"] for line in bench.real.lines] == list(range(1, len(bench.real.lines) + 1))


async def test_closed_it_says_on_every_console_how_far_it_got(bench: Bench) -> None:
    steps = [bench.real.step("a", "spark-1", "start", "x"), bench.real.step("b", "spark-2", "slow", "6", limit=60.0)]
    running = await bench.begin(bench.operation(bench.real.plan(*steps, bench.real.step("c", "spark-1", "start", "y"))))
    await until(lambda: "slow 6" in bench.real.ran(), "the unit runs")
    await running.close()
    assert running.over
    assert bench.real.end == (
        "stopped",
        "HALF DONE after a, next: b on spark-2 (unknown): the console that carried it out was closed; "
        "left running on spark-2",
    )
    state = await detached.state(bench.links["spark-2"], str(bench.real.folder), bench.real.id, "b")
    assert state.phase is Phase.RUNNING
    await detached.stop(bench.links["spark-2"], str(bench.real.folder), bench.real.id, "b")


async def test_pre_empted_under_a_newer_epoch_it_ends_its_units(bench: Bench) -> None:
    made = bench.real.plan(bench.real.step("b", "spark-2", "slow", "30", limit=60.0))
    running = await bench.begin(bench.operation(made))
    await until(lambda: bench.real.ran(), "the unit runs")
    (bench.real.folder / "epoch").write_text("4\n")
    await running.close("ben rolls back", steps=True, epoch=4)
    assert running.over and bench.here[-1]["words"] == "ben rolls back; it was ended"
    state = await detached.state(bench.links["spark-2"], str(bench.real.folder), bench.real.id, "b")
    assert state.phase is Phase.STOPPED


async def test_a_console_that_died_is_carried_on_by_another_and_no_step_runs_twice(bench: Bench) -> None:
    steps = [bench.real.step("a", "spark-1", "start", "x"), bench.real.step("b", "spark-2", "slow", "2", limit=60.0)]
    made = bench.real.plan(*steps, bench.real.step("c", "spark-1", "start", "y"))
    first = await bench.begin(bench.operation(made))
    await until(lambda: "slow 2" in bench.real.ran(), "the unit runs")
    await first.let_go()
    assert await first.wait() == "lost" and bench.real.lines[-1]["kind"] != "end"
    kept = await stored(bench.links["spark-0"], str(bench.real.folder), bench.real.id)
    assert kept is not None
    bench.keep = bench.real.root / "another"  # another machine
    assert await bench.run(taken_over(kept, operator="ben", console="ben@desk 2", epoch=4)) == "done"
    assert bench.real.ran() == {"start x": 1, "slow 2": 1, "start y": 1}
    assert bench.real.lines == bench.here
    assert [line["operator"] for line in bench.here if line["kind"] == "takeover"] == ["ben"]


async def test_two_consoles_of_one_machine_do_not_carry_it_out_at_once(bench: Bench) -> None:
    operation = bench.operation(bench.real.plan(bench.real.step("a", "spark-1", "slow", "3", limit=60.0)))
    first = await bench.begin(operation)
    with pytest.raises(Refused, match="another console"):
        await bench.begin(operation)
    async with asyncio.timeout(60):
        assert await first.wait() == "done"
    assert bench.real.ran() == {"slow 3": 1}


async def test_without_the_head_break_glass_goes_and_the_head_hears_of_it_later(bench: Bench) -> None:
    bench.links["spark-0"].cut = True
    steps = [bench.real.step("a", "spark-1", "start", "x"), bench.real.step("b", "spark-1", "slow", "3", limit=60.0)]
    running = await bench.begin(bench.operation(bench.real.plan(*steps), epoch=None, ledgered=False))
    await until(lambda: "slow 3" in bench.real.ran(), "it goes on")
    assert running.unsynced and running.behind
    bench.links["spark-0"].cut = False
    async with asyncio.timeout(60):
        assert await running.wait() == "done"
    assert running.unsynced == 0
    assert bench.real.lines == bench.here


async def test_a_console_that_wakes_up_fenced_acts_no_more(bench: Bench) -> None:
    steps = [bench.real.step("a", "spark-1", "slow", "2", limit=60.0), bench.real.step("b", "spark-2", "start", "x")]
    running = await bench.begin(bench.operation(bench.real.plan(*steps)))
    await until(lambda: bench.real.ran(), "it runs")
    lease = "id=ab\nepoch=8\noperator=ben\nconsole=c\npurpose=p\nacquired=1796000700\nrenewed=1796000700\nttl=60\n"
    (bench.real.folder / "lease").write_text(lease)
    async with asyncio.timeout(60):
        assert await running.wait() == "half done"
    assert bench.here[-1]["words"].endswith("(fenced): ben holds the lease since 01:05:00Z (epoch 8)")
    assert bench.real.ran() == {"slow 2": 1}
    assert not [line for line in bench.real.lines if line["kind"] == "end"], "an older epoch writes nothing there"


async def test_fenced_at_the_beginning_nothing_is_begun(bench: Bench) -> None:
    (bench.real.folder / "epoch").write_text("9\n")
    with pytest.raises(Refused, match="newer lease"):
        await bench.begin(bench.operation(bench.real.swap()))
    assert not bench.real.ran() and not (bench.keep / f"{bench.real.id}.jsonl").exists()


async def test_a_rank_that_is_away_is_asked_again(bench: Bench) -> None:
    steps = [bench.real.step("a", "spark-1", "slow", "2", limit=60.0), bench.real.step("b", "spark-1", "start", "x")]
    running = await bench.begin(bench.operation(bench.real.plan(*steps)))
    await until(lambda: bench.real.ran(), "it runs")
    bench.links["spark-1"].cut = True
    await until(lambda: any(line["kind"] == "seen" for line in bench.here), "it says so")
    bench.links["spark-1"].cut = False
    async with asyncio.timeout(60):
        assert await running.wait() == "done"
    assert bench.real.ran() == {"slow 2": 1, "start x": 1}


async def test_another_journal_on_the_head_is_not_written_over(bench: Bench) -> None:
    operation = bench.operation(bench.real.plan(bench.real.step("a", "spark-1", "start", "x")))
    running = await bench.begin(operation)
    async with asyncio.timeout(60):
        assert await running.wait() == "done"
    await files.put(
        bench.links["spark-0"], str(bench.real.folder), None, f"ops/{bench.real.id}/journal.jsonl", "something\n"
    )
    again = await bench.begin(operation)
    async with asyncio.timeout(60):
        assert await again.wait() == "done"
    assert "another journal" in again.behind
    assert (bench.real.op / "journal.jsonl").read_text() == "something\n"
