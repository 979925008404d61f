"""Each shipped fault scenario does what its title says, when it says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncssh
import pytest
from inside import Inside

from console.readings.memory import parse_memory
from console.rehearsal import RehearsalError
from console.rehearsal.faults import ContainerFault, EngineFault, Fault, HostFault

LIMIT = 90.0
SPEED = 200.0


async def until(true: Callable[[], Awaitable[object]], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not await true():
        assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}"
        await asyncio.sleep(0.05)


async def whole_story(rehearsal: Inside) -> list[Fault]:
    """Everything that the scenario tells, in the order in which it happened."""
    wanted = sum(1 if fault.until is None else 2 for fault in rehearsal.scenario.faults)
    assert wanted

    async def told() -> bool:
        return len(rehearsal.played) == wanted

    await until(told, f"{wanted} entries of the story")
    return rehearsal.played


@pytest.mark.parametrize(
    ("scenario", "fault"),
    [
        ("engine-hung", "hang"),
        ("engine-503", "503"),
        ("engine-html", "html"),
        ("engine-silent", "silent"),
        ("engine-other", "other-engine"),
        ("engine-truncated", "truncated"),
        ("engine-empty", "empty"),
    ],
)
async def test_engine_stories_begin_and_end(scenario: str, fault: str) -> None:
    async with Inside(scenario, speed=SPEED) as rehearsal:
        story = await whole_story(rehearsal)
        assert [entry.fault for entry in story if isinstance(entry, EngineFault)] == [fault, "none"]

        async def works_again() -> bool:
            truth = await rehearsal.truth("dsv41")
            return bool(truth["fault"] == "none" and truth["rate"] == 66.3)

        await until(works_again, "work after the fault")


async def test_counter_reset() -> None:
    async with Inside("counter-reset", speed=SPEED) as rehearsal:
        assert len(await whole_story(rehearsal)) == 2

        async def restarted() -> bool:  # three days of tokens are gone, the rate is the same
            truth = await rehearsal.truth("dsv41")
            return bool(truth["decode"] < 66.3 * 3600 and truth["rate"] == 66.3)

        await until(restarted, "counters from 0 at the same rate")


async def test_worker_dead_behind_a_200() -> None:
    async with Inside("worker-dead", speed=SPEED) as rehearsal:
        await whole_story(rehearsal)

        async def refused() -> bool:
            async with asyncssh.connect(**rehearsal.overrides["spark-2"]) as connection:
                try:
                    _, writer = await connection.open_connection("127.0.0.1", 8210)
                except asyncssh.ChannelOpenError:
                    return True
                writer.close()
                return False

        await until(refused, "rank 2's port closed")

        async def hangs() -> bool:
            truth = await rehearsal.truth("dsv41")
            return bool(truth["fault"] == "hang" and truth["running"] == 3 and truth["rate"] == 0)

        await until(hangs, "the head hanging with requests present")


async def test_engine_dead_is_refused_until_it_boots_again() -> None:
    async with Inside("engine-dead", speed=SPEED) as rehearsal:
        story = await whole_story(rehearsal)
        assert [entry.action for entry in story if isinstance(entry, ContainerFault)] == ["exit", "start"]

        async def young() -> bool:
            try:
                return bool((await rehearsal.truth("dsv41"))["decode"] < 66.3 * 60)
            except RehearsalError:
                return False

        await until(young, "a new engine, its counters near 0")


async def test_memory_low_and_back(tmp_path: Path) -> None:
    stays = tmp_path / "stays.toml"
    stays.write_text(
        'extends = "memory-low"\n[[faults]]\nkind = "memory"\nhost = "spark-2"\n'
        "free_gib = 2.9\ncached_gib = 61.0\nover = 15\nat = 10\n"
    )
    for scenario, low, high in (("memory-low", 50.0, 60.0), (str(stays), 2.85, 2.95)):
        async with Inside(scenario, speed=SPEED) as rehearsal:
            assert rehearsal.root is not None
            meminfo = rehearsal.root / "spark-2/proc/meminfo"
            await whole_story(rehearsal)

            async def there() -> bool:
                return low < parse_memory(meminfo.read_text()).free / 2**30 < high  # noqa: B023

            await until(there, f"{low} to {high} GiB free at the end of {scenario}")


async def test_host_gone_and_back() -> None:
    async with Inside("host-gone", speed=SPEED) as rehearsal:
        story = await whole_story(rehearsal)
        assert [entry.mode for entry in story if isinstance(entry, HostFault)] == ["silent", "open"]
        async with asyncio.timeout(LIMIT):
            async with asyncssh.connect(**rehearsal.overrides["spark-1"]):
                pass


async def test_a_boot_of_575_s_takes_seconds_and_the_rate_stays_true() -> None:
    async with Inside("boot", speed=SPEED) as rehearsal:
        assert rehearsal.fleet.lanes["dsv41"].usual_boot_s == pytest.approx(575 / SPEED)
        assert rehearsal.root is not None
        meminfo = rehearsal.root / "spark-0/proc/meminfo"
        first_free = parse_memory(meminfo.read_text()).free
        with pytest.raises(RehearsalError, match="does not listen"):
            await rehearsal.truth("dsv41")

        async def serving() -> bool:
            try:
                return bool((await rehearsal.truth("dsv41"))["running"] == 3)
            except RehearsalError:
                return False

        await until(serving, "the end of the boot")
        first = await rehearsal.truth("dsv41")

        async def later() -> bool:
            return bool((await rehearsal.truth("dsv41"))["now"] - first["now"] > 0.5)

        await until(later, "half a second")
        second = await rehearsal.truth("dsv41")
        assert first["rate"] == 66.3
        assert second["decode"] - first["decode"] == pytest.approx(66.3 * (second["now"] - first["now"]), rel=0.01)

        async def loaded() -> bool:
            return parse_memory(meminfo.read_text()).free < first_free - 60 * 2**30

        await until(loaded, "the weights in memory")


async def test_the_story_is_told_in_order_of_time(tmp_path: Path) -> None:
    story = tmp_path / "story.toml"
    story.write_text(
        'extends = "station"\n'
        '[[faults]]\nkind = "engine"\nlane = "station"\nfault = "503"\nat = 80\n'
        '[[faults]]\nkind = "engine"\nlane = "station"\nfault = "hang"\nat = 10\nuntil = 60\n'
    )
    async with Inside(story, speed=SPEED) as rehearsal:
        told = await whole_story(rehearsal)
        assert [entry.fault for entry in told if isinstance(entry, EngineFault)] == ["hang", "none", "503"]


async def test_a_clock_factor_out_of_range_is_refused() -> None:
    with pytest.raises(RehearsalError, match="clock factor 0"):
        Inside("station", speed=0)
