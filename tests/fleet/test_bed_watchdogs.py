"""Both kinds of watchdogs as real processes and units: what the console says of them, and that it says it in time."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from bed.client import BedHost
from bed.system import wait_for
from bed_watch import LaneWatch, feeding, fleet_file, own_recipe

from console.alarms import alarms
from console.feed import Feed
from console.fleet import looks
from console.readings.watchdog import Watchdog, WatchdogState
from console.snapshot import LaneView

pytestmark = [pytest.mark.bed, pytest.mark.timeout(420)]

SCRIPT = Path(__file__).parent / "watchdog.sh"
FOLDER = "recipe/launch"
UNIT = "dsv41-fleet.service"
FOREIGN = "glm53-fleet.service"
PAUSE, GAVE_UP = "/var/tmp/dsv41-watchdog.pause", "/var/tmp/dsv41-watchdog.gaveup"
UNIT_LOG = "/var/tmp/dsv41-logs/watchdog.log"
UNIT_FILE = """[Unit]
Description=fleet watchdog
[Service]
ExecStart=/bin/sh -c 'mkdir -p /var/tmp/dsv41-logs; \
echo "$(date -u +%%FT%%TZ) watchdog started: 4 every 60s" >>{log}; exec sleep infinity'
Restart=always
RestartSec=8
"""
FOREIGN_FILE = "[Service]\nExecStart=/bin/sleep infinity\n"
LANES = """
[lanes.script]
recipe = "sglang-fleet-env"
url = "http://127.0.0.1:8210"
head = "{script.name}"
vars.root = "~/recipe"
[lanes.unit]
recipe = "vllm-cluster-env"
url = "http://127.0.0.1:8000"
head = "{unit.name}"
vars.root = "/srv/none"
[lanes.bus]
recipe = "user-watchdog.toml"
url = "http://127.0.0.1:8000"
head = "{bus.name}"
vars.root = "/srv/none"
"""


class ScriptHost:
    """The pid/lock/log kind on a host, started as relaunch.sh starts it."""

    def __init__(self, host: BedHost) -> None:
        self.host = host
        self.home = f"/home/{host.user}"

    def install(self) -> None:
        """Put the script where the recipe has it."""
        self.host.write(f"{self.home}/{FOLDER}/watchdog.sh", SCRIPT.read_text())
        self.host.root("chown", "-R", f"{self.host.user}:", f"{self.home}/recipe")

    def start(self, command: str = f"{FOLDER}/watchdog.sh") -> int:
        """Its pid; the ssh connection that started it is gone when this returns."""
        known = self.pids()
        self.host.ssh(f"nohup setsid bash {command} >/dev/null 2>&1 </dev/null &")
        wait_for(lambda: bool(self.pids() - known), "the watchdog runs", limit=20)
        (pid,) = self.pids() - known
        wait_for(lambda: self.lock() == str(pid), "the watchdog holds its lock", limit=20)
        return pid

    def pids(self) -> set[int]:
        """Of every watchdog that runs."""
        rows = self.host.root("ps", "-e", "-o", "pid=,ppid=,args=").splitlines()
        found = [row.split(None, 2) for row in rows if "bash" in row and "watchdog.sh" in row and "nohup" not in row]
        own = {int(pid) for pid, _, args in found if args.startswith("bash ")}
        return {int(pid) for pid, parent, args in found if int(pid) in own and int(parent) not in own}

    def lock(self) -> str:
        """What stands in the lock."""
        return self.host.root("cat", f"{self.home}/.sgl-watchdog.lock", check=False).strip()

    def tell(self, line: str) -> None:
        """What its next check finds: one line of its log."""
        told = shlex.quote(f"{self.home}/.sgl-watchdog.told")
        self.host.root("sh", "-c", f"cat >{told}.new && mv {told}.new {told}", stdin=f"{line}\n")

    def signal(self, word: str, pid: int) -> None:
        """STOP, CONT, TERM, KILL."""
        self.host.root("kill", f"-{word}", str(pid))

    def reuse(self, pid: int) -> None:
        """Have another program run under this pid, as after the kernel went round once."""
        # the kernel gives the number behind this one to whatever is forked next in the host
        command = "echo $1 >/proc/sys/kernel/ns_last_pid; sleep 600 </dev/null >/dev/null 2>&1 & echo $!"
        for _ in range(50):
            got = int(self.host.in_pid_namespace("sh", "-c", command, "sh", str(pid - 1)))
            if got == pid:
                return
            self.signal("KILL", got)
        raise AssertionError(f"pid {pid} was not to be had again")

    def clear(self) -> None:
        """Nothing of it is left."""
        for pid in self.pids():
            self.signal("KILL", pid)
        self.host.root(
            "sh", "-c", f"rm -rf {self.home}/recipe {self.home}/sgl-watchdog.log {self.home}/.sgl-watchdog.*"
        )


@pytest.fixture
def script(three: tuple[BedHost, ...]) -> Iterator[ScriptHost]:
    """The host with the script, before it is started."""
    found = ScriptHost(three[0])
    found.install()
    yield found
    found.clear()


@pytest.fixture
def unit(three: tuple[BedHost, ...]) -> Iterator[BedHost]:
    """The host with the unit, not started: the one with python3-minimal alone."""
    host = three[2]
    host.write(f"/etc/systemd/system/{UNIT}", UNIT_FILE.format(log=UNIT_LOG))
    host.write(f"/etc/systemd/system/{FOREIGN}", FOREIGN_FILE)
    host.root("systemctl", "daemon-reload")
    yield host
    host.root("systemctl", "stop", UNIT, FOREIGN, check=False)
    host.root("rm", "-rf", f"/etc/systemd/system/{UNIT}", f"/etc/systemd/system/{FOREIGN}", PAUSE, GAVE_UP, UNIT_LOG)
    host.root("systemctl", "daemon-reload")


async def test_watchdogs_are_shown_for_what_they_are(
    three: tuple[BedHost, ...],
    script: ScriptHost,
    unit: BedHost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three lanes in one feed, side by side, as each state takes seconds to be seen."""
    monkeypatch.setattr(looks, "SLOW_S", 1.5)
    own_recipe(tmp_path, "vllm-cluster-env", "user-watchdog", ('manager = "system"', 'manager = "user"'))
    lanes = LANES.format(script=script.host, unit=unit, bus=three[1])
    async with feeding(fleet_file(tmp_path, three, lanes), three) as feed:
        await asyncio.gather(script_story(feed, script), unit_story(feed, unit), bus_story(feed, three[1]))


async def until_state(lane: LaneWatch, state: WatchdogState, words: str = "") -> Watchdog:
    """Wait for a state, and for these words in it."""

    def seen(view: LaneView) -> Watchdog | None:
        found = view.watchdog.current(lane.feed.snapshot().now) if view.watchdog else None
        return found if found is not None and found.state is state and words in found.words else None

    return await lane.until(seen, f"watchdog {state} {words}", lambda view: view.watchdog)


async def do(act: object, *arguments: object) -> object:
    """Something on a host, without holding up the feed."""
    assert callable(act)
    return await asyncio.to_thread(act, *arguments)


async def script_story(feed: Feed, script: ScriptHost) -> None:
    lane = LaneWatch(feed, "script")
    await until_state(lane, WatchdogState.OFF, "no process of it runs, no log of one")

    pid = await asyncio.to_thread(script.start)
    found = await until_state(lane, WatchdogState.STARTING)
    assert (found.protecting, found.pid, found.may_signal) == (False, pid, True)

    await do(script.tell, "armed: /health 200 and the chat probe answered; checking every 60s")
    found = await until_state(lane, WatchdogState.ARMED)
    assert (found.protecting, found.pid, found.instances) == (True, pid, 1)
    assert not alarm_texts(feed, "watchdog:script")

    await do(script.tell, "check failed 2/3: /health answered HTTP 503 (SGLang: 503 = starting)")
    found = await until_state(lane, WatchdogState.CHECKING)
    assert found.attempt == (2, 3)

    await do(script.tell, "RECOVERY attempt 1/3: capturing evidence into /home/ops/sgl-dsv41-logs/postmortem/x")
    found = await until_state(lane, WatchdogState.RECOVERY)
    assert found.attempt == (1, 3) and "capturing evidence" in found.last_act

    await do(script.tell, "GIVING UP after 3 relaunch attempts: keeps probing, arms again once the fleet is healthy")
    found = await until_state(lane, WatchdogState.GAVE_UP)
    assert found.protecting is False and found.pid == pid
    assert alarm_texts(feed, "watchdog:script")

    await do(script.signal, "STOP", pid)
    await until_state(lane, WatchdogState.PAUSED, "stopped by a signal")
    await do(script.signal, "CONT", pid)
    await until_state(lane, WatchdogState.GAVE_UP)

    await do(script.signal, "KILL", pid)
    found = await until_state(lane, WatchdogState.DEAD_LOCK, str(pid))
    assert (found.protecting, found.may_signal) == (False, False)

    await do(script.reuse, pid)
    found = await until_state(lane, WatchdogState.REUSED_PID, "never signal it")
    assert (found.pid, found.may_signal) == (pid, False)
    await do(script.signal, "KILL", pid)

    # a new one takes the lock over; a third one, for which the lock was removed by hand, makes two
    second = await asyncio.to_thread(script.start)
    await do(script.tell, "armed: /health 200 and the chat probe answered; checking every 60s")
    found = await until_state(lane, WatchdogState.ARMED)
    assert found.pid == second
    await do(script.signal, "STOP", second)
    await do(script.host.root, "rm", f"{script.home}/.sgl-watchdog.lock")
    third = await asyncio.to_thread(script.start)
    found = await until_state(lane, WatchdogState.TWO)
    assert str(second) in found.words and str(third) in found.words
    await do(script.signal, "CONT", second)  # it sees the other's lock and stands down

    await do(script.tell, "armed: /health 200 and the chat probe answered; checking every 60s")
    found = await until_state(lane, WatchdogState.ARMED)
    assert (found.pid, found.instances) == (third, 1)

    await do(script.signal, "TERM", third)
    await do(script.host.root, "rm", f"{script.home}/.sgl-watchdog.lock")
    found = await until_state(lane, WatchdogState.OFF, "watchdog stopped")
    assert found.protecting is False


def alarm_texts(feed: Feed, key: str) -> list[str]:
    """The alarms of this key now."""
    return [alarm.text for alarm in alarms(feed.snapshot()) if alarm.key == key]


async def unit_story(feed: Feed, host: BedHost) -> None:
    lane = LaneWatch(feed, "unit")
    found = await until_state(lane, WatchdogState.OFF, "is dead")
    assert found.protecting is False

    await do(host.root, "systemctl", "start", UNIT)
    found = await until_state(lane, WatchdogState.ARMED)
    pid = int(host.root("systemctl", "show", "-P", "MainPID", UNIT))
    assert (found.protecting, found.pid, found.next_check) == (True, pid, 60.0)

    await do(host.write, PAUSE, "2026-11-30T21:00:00Z paused by ana: switch window\n")
    found = await until_state(lane, WatchdogState.PAUSED, "paused by ana")
    assert found.protecting is False
    await do(host.write, GAVE_UP, "2026-11-30T21:10:00Z 3 recoveries failed\n")
    await until_state(lane, WatchdogState.GAVE_UP, "3 recoveries failed")
    await do(host.root, "rm", PAUSE)
    await until_state(lane, WatchdogState.GAVE_UP)
    await do(host.root, "rm", GAVE_UP)
    await until_state(lane, WatchdogState.ARMED)

    await do(host.root, "systemctl", "start", FOREIGN)
    await lane.until(
        lambda view: view.watchdog and view.watchdog.value and FOREIGN in " ".join(view.watchdog.value.competing),
        "the former model's watchdog competes",
        lambda view: view.watchdog,
    )
    await do(host.root, "systemctl", "stop", FOREIGN)

    await do(host.root, "kill", "-9", str(pid))
    await until_state(lane, WatchdogState.IN_FLIGHT)
    found = await until_state(lane, WatchdogState.ARMED)
    assert found.pid != pid

    await do(host.root, "systemctl", "stop", UNIT)
    await until_state(lane, WatchdogState.OFF)


async def bus_story(feed: Feed, host: BedHost) -> None:
    lane = LaneWatch(feed, "bus")
    found = await until_state(lane, WatchdogState.UNKNOWN, "no such unit")
    assert found.protecting is None
    uid = host.root("id", "-u", host.user).strip()
    await do(host.root, "systemctl", "stop", f"user@{uid}.service")
    try:
        await until_state(lane, WatchdogState.UNKNOWN, "no user bus")
    finally:
        await do(host.root, "systemctl", "start", f"user@{uid}.service")
    await until_state(lane, WatchdogState.UNKNOWN, "no such unit")
