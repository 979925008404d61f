"""A real watchdog process with log and lock, looked at as on a host and read: alive, stopped, ended, killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from ssh_host import eventually

from console.fleet.recipe import load_recipe
from console.reach import survey_host
from console.readings.look import parse_answer
from console.readings.processes import parse_processes
from console.readings.watchdog import Watchdog, WatchdogSpec, WatchdogState, read_watchdog

SCRIPT = r"""
LOG=$1/sgl-watchdog.log LOCK=$1/.sgl-watchdog.lock
exec 9>>"$LOCK"; flock -n 9 || exit 1
echo $$ >"$LOCK"
say() { printf '%s %s\n' "$(date '+%F %T')" "$*" >>"$LOG"; }
now=$(date '+%F %T')
printf 'watchdog started (pid %s, %s, port 8210, check every 60s, relaunch after 3 failures)\n' $$ "$now" >>"$LOG"
trap 'say "watchdog stopped (pid $$, signal): no automatic recovery"; rm -f "$LOCK"; kill $! ; exit 0' TERM
say "armed: /health 200 and the chat probe answered"
while :; do sleep 100 9>&- & wait $!; done
"""
"""Says and does what the published script does around its checks."""


def spec_in(folder: Path) -> WatchdogSpec:
    recipe = load_recipe("sglang-fleet-env").watchdog
    assert recipe is not None
    spec = recipe.spec(recipe.place("here"))
    # several of these tests may run on one machine
    names = {"log": str(folder / "sgl-watchdog.log"), "lock": str(folder / ".sgl-watchdog.lock")}
    return replace(spec, process=f"{folder}/launch/watchdog.sh", process_also=(), **names)


def looked(spec: WatchdogSpec, pids: tuple[int, ...] = (), after: float = 0.0) -> Watchdog:
    """As the console does it: each file and the processes, looked at on the host, then read together."""
    return read_watchdog(
        spec,
        log=parse_answer(survey_host.file(spec.log, "last", 65536)),
        lock=parse_answer(survey_host.file(spec.lock, "first", 65536)),
        processes=parse_processes(survey_host.processes([spec.process, *(f"pid:{pid}" for pid in pids)])),
        now=time.time() + after,
        booted=float(survey_host.booted()),
    )


@asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    script = folder / "launch" / "watchdog.sh"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    child = await asyncio.create_subprocess_exec(
        *("bash", str(script), str(folder)), env={**os.environ, "TZ": "<+0545>-05:45"}, start_new_session=True
    )
    try:
        log = folder / "sgl-watchdog.log"
        await eventually(lambda: log.exists() and "armed: " in log.read_text(), "the watchdog arms itself")
        yield child
    finally:
        for number in (signal.SIGCONT, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                break
        await child.wait()


async def test_alive_stopped_and_ended(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    async with watching(tmp_path) as child:
        armed = looked(spec)
        assert (armed.state, armed.pid, armed.may_signal) == (WatchdogState.ARMED, child.pid, True)
        assert (armed.instances, armed.next_check, armed.words) == (1, 60.0, "armed")
        # the log is in the time of Nepal, and nobody says so
        assert armed.since is not None and abs(armed.since - time.time()) < 60
        os.kill(child.pid, signal.SIGSTOP)
        await eventually(lambda: looked(spec).state is WatchdogState.PAUSED, "a stopped process is paused")
        os.kill(child.pid, signal.SIGCONT)
        await eventually(lambda: looked(spec).state is WatchdogState.ARMED, "it goes on")
        child.terminate()
        assert await child.wait() == 0
        ended = looked(spec, (child.pid,))
    assert (ended.state, ended.instances, ended.may_signal) == (WatchdogState.OFF, 0, False)
    assert ended.words.startswith(f"disarmed: watchdog stopped (pid {child.pid}, signal)")


async def test_killed_it_leaves_a_dead_lock(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    async with watching(tmp_path) as child:
        child.kill()
        await child.wait()
        assert looked(spec, (child.pid,)).state is WatchdogState.UNKNOWN  # so new a lock may not have its process yet
        dead = looked(spec, (child.pid,), after=60.0)
    assert (dead.state, dead.protecting) == (WatchdogState.DEAD_LOCK, False)


async def test_a_second_one_is_seen_beside_the_first(tmp_path: Path) -> None:
    """Two of them, as where the lock lies on a folder that was swapped under the first."""
    spec = spec_in(tmp_path)
    async with watching(tmp_path):
        script = str(tmp_path / "launch" / "watchdog.sh")
        other = tmp_path / "other"
        other.mkdir()
        second = await asyncio.create_subprocess_exec("bash", script, str(other), start_new_session=True)
        try:
            await eventually(lambda: looked(spec).state is WatchdogState.TWO, "both are seen")
            assert looked(spec).instances == 2
        finally:
            os.killpg(second.pid, signal.SIGKILL)
            await second.wait()
        # a child that it was just forking dies with the group, but not before it is waited for
        await eventually(lambda: looked(spec).state is WatchdogState.ARMED, "one is left")
        assert looked(spec).instances == 1


def test_another_program_under_the_pid_of_the_log(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    other = subprocess.Popen(["sleep", "100"])
    try:
        end = time.monotonic() + 10
        while not Path(f"/proc/{other.pid}/cmdline").read_bytes():  # the kernel fills it in a moment after the start
            assert time.monotonic() < end
        Path(spec.log).write_text(f"2026-10-17 21:00:00 watchdog started (pid {other.pid}, interval 60)\n")
        os.utime(spec.log, (time.time() - 3600, time.time() - 3600))
        found = looked(spec, (other.pid,))
    finally:
        other.kill()
        other.wait()
    assert (found.state, found.pid, found.may_signal) == (WatchdogState.REUSED_PID, other.pid, False)
    assert "`sleep 100`: never signal it" in found.words
