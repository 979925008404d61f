"""However a rehearsal ends, no process, folder or task of it stays."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import psutil
import pytest

from console.fleet.inventory import Rates
from console.reach.limits import Timings
from console.reach.sampler import loader, script
from console.readings.output import SHELL_LINE
from console.rehearsal import Rehearsal, RehearsalError

LIMIT = 90.0
MARK = "0123456789abcdef"
PLAYER = """
import asyncio, sys
from console.rehearsal import Rehearsal
async def main():
    async with Rehearsal("station") as rehearsal:
        print(rehearsal.pid, rehearsal.root, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


def family(pid: int) -> list[psutil.Process]:
    """The process and everything below it; psutil tells them from later ones of the same number."""
    one = psutil.Process(pid)
    return [one, *one.children(recursive=True)]


def words(process: psutil.Process) -> list[str]:
    """Its command line; none once it has ended."""
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def wait_until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}"
        time.sleep(0.05)


def all_gone(processes: list[psutil.Process]) -> bool:
    return all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in processes)


@asynccontextmanager
async def sampling(rehearsal: Rehearsal, host: str) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A connection with a sampler running at the other end."""
    async with asyncio.timeout(LIMIT):
        connection = await asyncssh.connect(**rehearsal.overrides[host])
        process: Any = await connection.create_process(SHELL_LINE, encoding=None)
        process.stdin.write(loader(MARK, Rates(), Timings()).encode())
        await process.stdout.readuntil(b" python\n")
        process.stdin.write(script("python").encode())
        await process.stdout.readline()
    try:
        yield connection
    finally:
        connection.abort()


async def test_leaving_ends_everything() -> None:
    before = asyncio.all_tasks()
    async with Rehearsal("station") as rehearsal:
        root, processes = rehearsal.root, family(rehearsal.pid)
        async with sampling(rehearsal, "station"):
            processes += family(rehearsal.pid)[1:]
            assert any("engine.py" in " ".join(words(one)) for one in processes)
            assert any("laneswap-sampler" in words(one) for one in processes)
    assert root is not None and not root.exists()
    assert all_gone(processes)
    assert asyncio.all_tasks() == before
    assert rehearsal.pid == 0 and rehearsal.overrides == {} and rehearsal.root is None


async def test_leaving_with_an_error_ends_everything() -> None:
    with pytest.raises(ZeroDivisionError):
        async with Rehearsal("station") as rehearsal:
            root, processes = rehearsal.root, family(rehearsal.pid)
            raise ZeroDivisionError
    assert root is not None and not root.exists() and all_gone(processes)


async def test_leaving_while_the_host_is_silent_ends_everything() -> None:
    async with Rehearsal("station") as rehearsal:
        root, processes = rehearsal.root, family(rehearsal.pid)
        async with sampling(rehearsal, "station"):
            processes += family(rehearsal.pid)[1:]
            await rehearsal.inject("host", host="station", mode="silent")
    assert root is not None and not root.exists() and all_gone(processes)


async def test_a_sampler_ends_with_its_connection() -> None:
    async with Rehearsal("station") as rehearsal:
        alone = {one.pid for one in family(rehearsal.pid)}
        async with sampling(rehearsal, "station"):
            samplers = [one for one in family(rehearsal.pid) if one.pid not in alone]
            assert any("laneswap-sampler" in words(one) for one in samplers)
        end = time.monotonic() + LIMIT
        while not all_gone(samplers):
            assert time.monotonic() < end, "the sampler outlives its connection"
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_console_is_the_end_of_its_fleet(number: signal.Signals, tmp_path: Path) -> None:
    player = tmp_path / "player.py"
    player.write_text(PLAYER)
    console = subprocess.Popen([sys.executable, player], stdout=subprocess.PIPE, text=True)
    try:
        assert console.stdout is not None
        pid, root = console.stdout.readline().split()
        processes = family(int(pid))
        assert len(processes) >= 2 and Path(root).is_dir()
        console.send_signal(number)
        console.wait(LIMIT)
        wait_until(lambda: all_gone(processes), "every process gone")
        wait_until(lambda: not Path(root).exists(), "the folder gone")
    finally:
        console.kill()
        console.wait(LIMIT)
        assert console.stdout is not None
        console.stdout.close()


async def test_a_killed_fleet_is_told_and_cleaned_up() -> None:
    async with Rehearsal("station") as rehearsal:
        root, processes = rehearsal.root, family(rehearsal.pid)
        os.kill(rehearsal.pid, signal.SIGKILL)
        with pytest.raises(RehearsalError, match=r"ended|does not run"):
            async with asyncio.timeout(LIMIT):
                while True:
                    await rehearsal.truth("station")
    assert root is not None and not root.exists()
    end = time.monotonic() + LIMIT
    while not all_gone(processes):
        assert time.monotonic() < end, "an engine outlives its fleet"
        await asyncio.sleep(0.05)


async def test_a_fleet_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no room in /tmp' >&2\nexit 3\n")
    broken.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(RehearsalError, match="did not start: no room in /tmp"):
        async with Rehearsal("station"):
            pass
