"""Detached steps, the lease and the fence on real hosts: systemd as it is, sshd as it is, and what breaks them."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from bed.client import Bed, BedHost
from bed_links import PATIENCE, linked, until, until_status

from console.execution import detached, files, lease
from console.execution.detached import DetachedState, Fenced, Mode, Phase, Refused, Started
from console.execution.scripts import script
from console.reach.ssh import SshLink
from console.readings.link import LinkStatus

pytestmark = [pytest.mark.bed, pytest.mark.timeout(420)]

STATE = "/var/tmp/laneswap"
FOLDER = f"{STATE}/bed.lane"
MODES = {"user": Mode.USER, "system": Mode.SYSTEM, "none": Mode.NONE}
LAUNCHER = """\
echo "knobs: ${CHUNK-unset} ${SSH_AUTH_SOCK-unset}"
nohup setsid sh -c 'echo $$ >"$1"; exec sleep 600' sh "$1" </dev/null >/dev/null 2>&1 &
sleep 0.5
echo launched
"""
"""As relaunch.sh starts its watchdog."""


@dataclass
class Steps:
    """Steps of one operation on one host."""

    link: SshLink
    host: BedHost
    op: str = field(default_factory=lambda: f"20261201T120000Z-stop-{secrets.token_hex(3)}")

    @property
    def path(self) -> str:
        return f"{FOLDER}/ops/{self.op}"

    async def start(self, step: str, *argv: str, epoch: int | None = None, **options: Any) -> Any:
        options.setdefault("limit", 60.0)
        return await detached.start(self.link, FOLDER, self.op, step, epoch, argv, **options)

    async def started(self, step: str, *argv: str, **options: Any) -> DetachedState:
        answer = await self.start(step, *argv, **options)
        assert isinstance(answer, Started) and not answer.joined, answer
        return answer.state

    async def state(self, step: str) -> DetachedState:
        return await detached.state(self.link, FOLDER, self.op, step)

    async def until(self, step: str, right: Callable[[DetachedState], object]) -> DetachedState:
        found = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await self.state(step)
                    if right(found):
                        return found
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"{step}: {found}") from None

    async def ended(self, step: str) -> DetachedState:
        return await self.until(step, lambda found: found.over)

    async def running(self, step: str) -> DetachedState:
        return await self.until(step, lambda found: found.phase is Phase.RUNNING and found.pid)

    async def log(self, step: str) -> str:
        return (await detached.log(self.link, FOLDER, self.op, step) or b"").decode()

    async def root(self, *argv: str, check: bool = True, stdin: str = "") -> str:
        """Something done as root on the host."""
        return await asyncio.to_thread(self.host.root, *argv, check=check, stdin=stdin)

    async def lives(self, pid: str) -> bool:
        """Whether a process runs there."""
        said = await self.root("ps", "-o", "stat=", "-p", pid, check=False)
        return bool(said.strip()) and not said.strip().startswith("Z")

    async def daemon(self, pidfile: str) -> str:
        """The pid of what a launcher has left behind."""
        return (await self.root("cat", pidfile)).strip()


@pytest.fixture
def clean(three: tuple[BedHost, ...]) -> Iterator[tuple[BedHost, ...]]:
    """Three hosts on which nobody has ever done anything."""
    wipe(three)
    yield three
    wipe(three)


def wipe(hosts: tuple[BedHost, ...]) -> None:
    for host in hosts:
        units = "systemctl list-units --all --plain --no-legend 'laneswap-*' | cut -d' ' -f1 | xargs -r systemctl stop"
        host.root("sh", "-c", units, check=False)
        pids = [row.split()[0] for row in host.root("ps", "-e", "-o", "pid=,args=").splitlines() if "sleep 6" in row]
        if pids:
            host.root("kill", "-9", *pids, check=False)
        host.root("sh", "-c", f"umount {STATE} 2>/dev/null; rm -rf {STATE} /tmp/laneswap-test-*", check=False)


@contextlib.asynccontextmanager
async def steps_on(host: BedHost, ssh: str = "") -> AsyncIterator[Steps]:
    async with linked(host, ssh=ssh or host.name) as link:
        yield Steps(link, host)


def stranger(host: BedHost) -> str:
    """The account without sudo, Docker and lingering, as ssh names it."""
    return f"{host.stranger}@{host.name}"


@contextlib.asynccontextmanager
async def not_lingering(steps: Steps) -> AsyncIterator[None]:
    mark = f"/var/lib/systemd/linger/{steps.host.user}"
    await steps.root("mv", mark, "/tmp/laneswap-linger")
    try:
        yield
    finally:
        await steps.root("mv", "/tmp/laneswap-linger", mark)


async def shared(steps: Steps) -> None:
    """The state folder for two accounts that no group has in common, as an administrator makes one."""
    owner, group = steps.host.stranger, steps.host.user
    await steps.root("install", "-d", "-m", "2770", "-o", owner, "-g", group, STATE)


# -- where a step runs


async def test_each_account_gets_what_its_host_gives_it(clean: tuple[BedHost, ...]) -> None:
    host = clean[2]  # python3-minimal
    async with steps_on(host) as steps, steps_on(host, ssh=stranger(host)) as poor:
        await shared(steps)
        assert (await detached.modes(steps.link, FOLDER)).mode is Mode.USER
        found = await detached.modes(poor.link, FOLDER)
        assert found.mode is Mode.NONE
        assert "enable-linger" in found.why_not_user and "no sudo" in found.why_not_system
        async with not_lingering(steps):
            # logind remembers what it has read
            await steps.root("loginctl", "disable-linger", host.user, check=False)
            found = await detached.modes(steps.link, FOLDER)
            assert found.mode is Mode.SYSTEM and "enable-linger" in found.why_not_user
        await steps.root("loginctl", "enable-linger", host.user)
        begun = await steps.started("one", "true")
        assert (begun.mode, begun.unit) == ("user", f"laneswap-{steps.op}-one.service")
        assert (await poor.started("one", "true")).mode == "none"
        refused = await poor.start("two", "true", mode=Mode.SYSTEM)
        assert isinstance(refused, Refused) and "no sudo" in refused.problem


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
async def test_a_step_is_the_same_whatever_keeps_it(clean: tuple[BedHost, ...], mode: Mode) -> None:
    host = clean[0]
    text = "first\nlast without an end"
    awkward = ["it's", "$HOME ${HOME} `id` $$ %n %%", "two\nlines\n", "", '"', "-x"]
    async with steps_on(host) as steps:
        command = 'cat; printf "<%s>" "$@"; id -un; id -Gn; pwd; umask; env; exit 7'
        begun = await steps.started("one", "sh", "-c", command, "sh", *awkward, stdin=text, mode=mode)
        assert (begun.mode, begun.same_boot) == (mode.value, True)
        found = await steps.ended("one")
        assert (found.phase, found.code, found.words) == (Phase.FAILED, 7, "exit status 7")
        said = await steps.log("one")
        groups = await steps.root("id", "-Gn", host.user)
        assert said.startswith(text + "".join(f"<{word}>" for word in awkward) + f"{host.user}\n")
        rows = said.split("<-x>")[1].splitlines()
        assert set(rows[1].split()) == set(groups.split()) and rows[2] == f"/home/{host.user}"
        assert rows[3] in ("0022", "0002")
        environment = {row.partition("=")[0] for row in rows[4:]}
        assert environment - {"PWD", "OLDPWD", "SHLVL", "_", "LANESWAP_STEP"} == {
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "LANG",
            "XDG_RUNTIME_DIR",
        }
        # every account may read it, its own alone may write it
        assert (await steps.root("stat", "-c", "%a %U", f"{steps.path}/one")).split() == ["2755", host.user]

        await steps.started("two", "sh", "-c", "ps -o oom_score_adj= -p $$ || cat /proc/$$/oom_score_adj", mode=mode)
        assert (await steps.ended("two")).phase is Phase.DONE
        assert "900" in await steps.log("two")


async def test_a_manager_without_the_accounts_groups_is_not_used(clean: tuple[BedHost, ...]) -> None:
    host = clean[0]
    await asyncio.to_thread(host.root, "groupadd", "--force", "latecomers")
    await asyncio.to_thread(host.root, "usermod", "-aG", "latecomers", host.user)
    try:
        async with steps_on(host) as steps:
            found = await detached.modes(steps.link, FOLDER)
            assert found.mode is Mode.SYSTEM and "joined a group" in found.why_not_user
    finally:
        await asyncio.to_thread(host.root, "gpasswd", "-d", host.user, "latecomers")


async def test_what_the_manager_was_told_does_not_leak_into_a_step(clean: tuple[BedHost, ...]) -> None:
    host = clean[0]
    bus = "XDG_RUNTIME_DIR=/run/user/$(id -u)"
    await asyncio.to_thread(host.ssh, f"{bus} systemctl --user set-environment CHUNK=4096")
    try:
        async with steps_on(host) as steps:
            await steps.started("one", "sh", "-c", "echo ${CHUNK-unset}", mode=Mode.USER)
            await steps.ended("one")
            assert await steps.log("one") == "unset\n"
    finally:
        await asyncio.to_thread(host.ssh, f"{bus} systemctl --user unset-environment CHUNK")


# -- the launcher that leaves a daemon behind


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
async def test_a_launchers_daemon_lives_on_only_where_the_step_keeps_it(clean: tuple[BedHost, ...], mode: Mode) -> None:
    async with steps_on(clean[0]) as steps:
        pids = {}
        for step, keeps in (("dies", False), ("lives", True)):
            pidfile = f"/tmp/laneswap-test-{steps.op}-{step}"
            await steps.started(step, "sh", "-c", LAUNCHER, "sh", pidfile, keeps=keeps, mode=mode)
            found = await steps.ended(step)
            assert (found.phase, found.code) == (Phase.DONE, 0)
            assert await steps.log(step) == "knobs: unset unset\nlaunched\n"
            pids[step] = await steps.daemon(pidfile)
        assert not await steps.lives(pids["dies"])
        # well after the unit has ended; its manager remembers it for as long as the daemon runs
        await unit_has_ended(steps, "lives", mode)
        await asyncio.sleep(3.0)
        assert await steps.lives(pids["lives"])
        assert (await steps.state("lives")).phase is Phase.DONE
        await steps.root("kill", pids["lives"])


async def unit_has_ended(steps: Steps, step: str, mode: Mode) -> None:
    """The service manager does not run the unit any more."""
    if mode is Mode.NONE:
        return
    unit = f"laneswap-{steps.op}-{step}.service"
    flag = "--user" if mode is Mode.USER else ""
    command = f"XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl {flag} show -p ActiveState {unit}"
    await until(lambda: "ActiveState=inactive" in steps.host.ssh(command), f"{unit} has ended")


# -- ends


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
async def test_ends_are_told_apart(clean: tuple[BedHost, ...], mode: Mode) -> None:
    async with steps_on(clean[0]) as steps:
        for step in ("stopped", "termed", "killed", "stubborn"):
            command = "trap '' TERM; " if step == "stubborn" else ""
            await steps.started(step, "sh", "-c", f"{command}sleep 600 & while :; do sleep 0.2; done", mode=mode)
        await steps.started("limited", "sleep", "600", mode=mode, limit=1.0)

        found = await detached.stop(steps.link, FOLDER, steps.op, "stopped")
        assert (found.phase, found.signal) == (Phase.STOPPED, "TERM")
        assert found.words.startswith("stopped by an operator")

        for step, word, phase in (("termed", "TERM", Phase.STOPPED), ("killed", "KILL", Phase.FAILED)):
            running = await steps.running(step)
            await steps.root("kill", f"-{word}", str(running.pid))
            found = await steps.ended(step)
            assert (found.phase, found.signal) == (phase, word), found

        found = await detached.stop(steps.link, FOLDER, steps.op, "stubborn", seconds=1)
        assert (found.phase, found.signal) == (Phase.STOPPED, "KILL"), found

        found = await steps.ended("limited")
        assert (found.phase, found.words) == (Phase.FAILED, "ended at its time limit"), found

        await until(lambda: not sleepers(steps.host), "nothing of any step runs")


def sleepers(host: BedHost) -> list[str]:
    return [row for row in host.root("ps", "-e", "-o", "stat=,args=").splitlines() if "sleep 600" in row]


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
async def test_a_stop_spares_the_daemons_that_are_kept_and_nothing_else(clean: tuple[BedHost, ...], mode: Mode) -> None:
    async with steps_on(clean[0]) as steps:
        pidfile = f"/tmp/laneswap-test-{steps.op}"
        command = f"{LAUNCHER}\nsleep 611 & sleep 612"
        await steps.started("one", "sh", "-c", command, "sh", pidfile, keeps=True, mode=mode)
        await until(lambda: "launched" in steps.host.root("cat", f"{steps.path}/one/log"), "it has launched")
        found = await detached.stop(steps.link, FOLDER, steps.op, "one")
        assert found.phase is Phase.STOPPED, found
        rows = [row for row in (await steps.root("ps", "-e", "-o", "stat=,args=")).splitlines() if "sleep 61" in row]
        assert not rows
        assert await steps.lives(await steps.daemon(pidfile))
        await steps.root("kill", await steps.daemon(pidfile))


async def test_a_copier_is_ended_at_its_memory_cap(clean: tuple[BedHost, ...]) -> None:
    async with steps_on(clean[0]) as steps:
        eats = "head -c 200000000 /dev/zero | tail -c 190000000 >/dev/null"
        await steps.started("one", "sh", "-c", eats, mode=Mode.SYSTEM, memory="32M")
        found = await steps.ended("one")
        assert found.phase is Phase.FAILED, found
        for mode in (Mode.USER, Mode.NONE):
            begun = await steps.started(mode.value, "sleep", "5", mode=mode, memory="32M")
            enforced = mode is Mode.USER and await has_controller(steps)
            assert enforced is not (begun.words == "the memory cap is not enforced on this host"), begun


async def has_controller(steps: Steps) -> bool:
    """Whether user managers may cap memory: only where there is one hierarchy of control groups."""
    return "memory" in await steps.root("cat", "/sys/fs/cgroup/cgroup.controllers", check=False)


async def test_no_unit_is_left_as_failed_once_it_was_looked_at(clean: tuple[BedHost, ...]) -> None:
    async with steps_on(clean[0]) as steps:
        for name in ("user", "system"):
            await steps.started(name, "false", mode=MODES[name])
            found = await steps.ended(name)
            assert (found.phase, found.code) == (Phase.FAILED, 1)

            async def same(name: str = name, found: DetachedState = found) -> None:
                # once it was tidied its manager does not know it any more
                now = await steps.state(name)
                assert replace(now, load_state="") == replace(found, load_state="")

            flag = "--user" if name == "user" else ""
            command = (
                f"XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl {flag} list-units --failed --all --plain --no-legend"
            )
            try:
                async with asyncio.timeout(PATIENCE):
                    while found.unit in await asyncio.to_thread(steps.host.ssh, command):
                        await same()
            except TimeoutError:
                raise AssertionError(f"{found.unit} is still failed") from None
            await same()


SLOW = "/tmp/laneswap-test-slow"
SLOW_RUN = """#!/bin/sh
(
    left=1200
    while [ ! -e {folder}/go ] && [ "$left" -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
    /usr/bin/systemd-run "$@"
    : >{folder}/came
) </dev/null >/dev/null 2>&1 &
echo 'Failed to start transient service unit: Connection timed out' >&2
exit 1
"""


async def test_a_manager_that_comes_to_it_too_late_begins_nothing(clean: tuple[BedHost, ...]) -> None:
    """systemd-run has given up and the console was told so: the unit that comes all the same must not be a second
    runner beside what the console did instead."""
    async with steps_on(clean[0]) as steps:
        await steps.root("mkdir", "-m", "777", SLOW)
        text = shlex.quote(SLOW_RUN.format(folder=SLOW))
        await steps.root("sh", "-c", f"printf %s {text} >{SLOW}/systemd-run; chmod 755 {SLOW}/systemd-run")
        run = steps.link.run

        async def slow(argv: Any, **more: Any) -> Any:
            return await run(["env", f"PATH={SLOW}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", *argv], **more)

        steps.link.run = slow  # type: ignore[method-assign]
        command = ("sh", "-c", f"echo ran >>{SLOW}/ran")
        refused = await steps.start("one", *command, mode=Mode.USER)
        steps.link.run = run  # type: ignore[method-assign]
        assert isinstance(refused, Refused) and not refused.unknown, refused
        await steps.root("touch", f"{SLOW}/go")
        await until_status_of(steps, f"test -e {SLOW}/came")
        await steps.until("one", lambda found: found.phase is Phase.ABSENT)
        assert await steps.root("cat", f"{SLOW}/ran", check=False) == ""
        begun = await steps.started("one", *command, mode=Mode.USER)
        assert begun.mode == "user"
        assert (await steps.ended("one")).phase is Phase.DONE
        assert await steps.root("cat", f"{SLOW}/ran") == "ran\n"


async def until_status_of(steps: Steps, command: str) -> None:
    """Until it says yes on the host. Fails after PATIENCE seconds."""
    async with asyncio.timeout(PATIENCE):
        while await steps.root("sh", "-c", f"{command} && echo yes", check=False) != "yes\n":  # noqa: ASYNC110
            await asyncio.sleep(0.2)


# -- nothing dies with the console


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
async def test_a_step_outlives_the_session_that_started_it(clean: tuple[BedHost, ...], mode: Mode) -> None:
    host = clean[0]
    async with steps_on(host) as steps:
        await steps.started("one", "sh", "-c", "echo a; sleep 4; echo b", mode=mode)
        await asyncio.to_thread(host.kill_ssh_sessions)
    async with steps_on(host) as again:
        again.op = steps.op
        followed = await detached.follow(again.link, FOLDER, again.op, "one", 0)
        assert followed.state.phase is Phase.RUNNING and followed.data == b"a\n"
        joined = await again.start("one", "sh", "-c", "echo never", mode=mode)
        assert isinstance(joined, Started) and joined.joined and joined.state.phase is Phase.RUNNING
        assert (await again.ended("one")).phase is Phase.DONE
        rest = await detached.follow(again.link, FOLDER, again.op, "one", followed.next)
        assert rest.data == b"b\n"


async def test_a_start_whose_session_is_killed_is_found_again_or_known_not_to_be(clean: tuple[BedHost, ...]) -> None:
    """Killed at many moments of a start: never twice, and what is told is so."""
    host = clean[0]
    async with steps_on(host) as steps:
        for number in range(8):
            step, mark = f"s{number}", f"/tmp/laneswap-test-{steps.op}-{number}"
            mode = list(MODES.values())[number % 3]
            starting = asyncio.create_task(steps.start(step, "sh", "-c", f"echo x >>{mark}; sleep 600", mode=mode))
            await asyncio.sleep(0.04 * number)
            await asyncio.to_thread(host.kill_ssh_sessions)
            await until_status(steps.link, LinkStatus.UP)
            answer = await starting
            assert isinstance(answer, Started | Refused), answer
            found = await steps.until(step, lambda found: found.phase is not Phase.UNKNOWN)
            if isinstance(answer, Started):
                assert found.phase is Phase.RUNNING, found
            elif not answer.unknown:
                assert found.phase is Phase.ABSENT, found
            # whatever became of the first one, the second is it or joins it
            second = await steps.start(step, "sh", "-c", f"echo x >>{mark}; sleep 600", mode=mode)
            assert isinstance(second, Started), second
            await steps.running(step)
            assert (await steps.root("cat", mark)) == "x\n"
            await detached.stop(steps.link, FOLDER, steps.op, step, seconds=2)


async def test_a_silent_network_is_unknown_and_the_step_is_found_again(clean: tuple[BedHost, ...]) -> None:
    host = clean[0]
    async with steps_on(host) as steps:
        await steps.started("one", "sleep", "600")
        with host.dropped():
            assert (await steps.state("one")).phase is Phase.UNKNOWN
        await until_status(steps.link, LinkStatus.UP)
        assert (await steps.running("one")).phase is Phase.RUNNING
        await detached.stop(steps.link, FOLDER, steps.op, "one", seconds=1)


async def test_a_host_that_was_restarted_has_lost_its_steps(clean: tuple[BedHost, ...], bed: Bed) -> None:
    host = bed.spare
    async with steps_on(host) as steps:
        for name, mode in MODES.items():
            await steps.started(f"{name}-done", "true", mode=mode)
            await steps.ended(f"{name}-done")
            await steps.started(name, "sleep", "600", mode=mode)
            await steps.running(name)
        # cut off as by a power loss: nobody gets the time to write anything
        await asyncio.to_thread(host.root, "systemctl", "reboot", "--force", "--force", check=False)
        await asyncio.to_thread(bed.restart, host)
        await until_status(steps.link, LinkStatus.UP)
        for name in MODES:
            found = await steps.until(name, lambda found: found.phase is not Phase.UNKNOWN)
            assert (found.phase, found.same_boot) == (Phase.LOST, False), found
            assert found.words == "the host was restarted while it ran"
            assert (await steps.state(f"{name}-done")).phase is Phase.DONE


async def test_a_unit_that_is_gone_without_a_result_is_lost(clean: tuple[BedHost, ...]) -> None:
    async with steps_on(clean[0]) as steps:
        for name, mode in MODES.items():
            await steps.started(name, "sleep", "600", mode=mode)
            await steps.running(name)
            # whatever would write the result cannot
            await steps.root("rm", f"{steps.path}/{name}/ending")
            await steps.root("mkdir", f"{steps.path}/{name}/ending")
            running = await steps.state(name)
            await steps.root("kill", "-9", str(running.pid))
        for name, mode in MODES.items():
            found = await steps.ended(name)
            if mode is Mode.NONE:
                assert (found.phase, found.same_boot) == (Phase.LOST, True), found
                continue
            # the manager still has it
            assert (found.phase, found.signal) == (Phase.FAILED, "KILL"), found
            assert "could not write its result file" in found.words
            reset = f"XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user reset-failed {found.unit}"
            if mode is Mode.USER:
                await asyncio.to_thread(steps.host.ssh, reset)
            else:
                await steps.root("systemctl", "reset-failed", found.unit)
            found = await steps.state(name)
            assert (found.phase, found.same_boot, found.load_state) == (Phase.LOST, True, "not-found"), found


async def test_a_dead_user_manager_takes_its_steps_with_it(clean: tuple[BedHost, ...]) -> None:
    host = clean[0]
    uid = (await asyncio.to_thread(host.root, "id", "-u", host.user)).strip()
    async with steps_on(host) as steps:
        await steps.started("one", "sleep", "600", mode=Mode.USER)
        await steps.running("one")
        await steps.root("systemctl", "kill", "--signal=KILL", f"user@{uid}.service")
        await steps.root("systemctl", "stop", f"user@{uid}.service")
        try:
            found = await steps.ended("one")
            assert found.phase in (Phase.LOST, Phase.FAILED, Phase.STOPPED), found
            modes = await detached.modes(steps.link, FOLDER)
            assert modes.mode is Mode.SYSTEM and "does not answer" in modes.why_not_user
        finally:
            await steps.root("systemctl", "start", f"user@{uid}.service")


# -- a full disk


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
async def test_a_disk_that_fills_up_swallows_no_result(clean: tuple[BedHost, ...], mode: Mode) -> None:
    host = clean[0]
    async with steps_on(host) as steps:
        await shared(steps)
        await steps.root("mount", "-t", "tmpfs", "-o", "size=1m,mode=2770", "tmpfs", STATE)
        await steps.root("chgrp", host.user, STATE)
        filling = 'cat /dev/zero >"$1" 2>/dev/null; exit 3'
        await steps.started("one", "sh", "-c", filling, "sh", f"{FOLDER}/filler", mode=mode)
        found = await steps.ended("one")
        assert (found.phase, found.code) == (Phase.FAILED, 3), found
        refused = await steps.start("two", "true", mode=mode)
        assert isinstance(refused, Refused) and "No space left" in refused.problem, refused
        assert (await steps.state("two")).phase is Phase.ABSENT
        before = await lease.show(steps.link, FOLDER)
        taken = await lease.take(steps.link, FOLDER, "ana", "x", "y")
        assert not taken.granted and not taken.unknown and "No space left" in taken.problem
        assert (await lease.show(steps.link, FOLDER)).lease == before.lease
        written = await files.put(steps.link, FOLDER, None, "x", "y" * 5000)
        assert not written.ok and "No space left" in written.problem
        assert not (await files.read(steps.link, FOLDER, "x")).there
        await steps.root("rm", f"{FOLDER}/filler")
        await steps.started("two", "true", mode=mode)
        assert (await steps.ended("two")).phase is Phase.DONE


# -- one operator at a time


async def test_an_older_epoch_is_refused_on_every_host(clean: tuple[BedHost, ...]) -> None:
    head, rank = clean[0], clean[1]
    async with steps_on(head) as first, steps_on(rank) as second:
        ana = await lease.take(first.link, FOLDER, "ana", "ana@laptop 1", "switch")
        assert ana.lease is not None
        await second.started("one", "true", epoch=ana.lease.epoch)
        ben = await lease.take(first.link, FOLDER, "ben", "ben@laptop 1", "switch", over=True, seen=ana.lease.id)
        assert ben.granted and ben.taken_from == "ana" and ben.lease is not None
        # the head knows at once, the rank with the first step of the new holder
        refused = await first.start("two", "true", epoch=ana.lease.epoch)
        assert isinstance(refused, Fenced) and refused.operator == "ben" and refused.since == ben.lease.acquired
        await second.started("two", "true", epoch=ben.lease.epoch)
        refused = await second.start("three", "touch", "/tmp/laneswap-test-fenced", epoch=ana.lease.epoch)
        assert isinstance(refused, Fenced) and refused.epoch == ben.lease.epoch
        fence = ["sh", "-c", script("fence"), "laneswap", FOLDER, str(ana.lease.epoch), "--", "touch"]
        output = await second.link.run([*fence, "/tmp/laneswap-test-fenced"])
        assert output.exit_status == 4 and f"epoch={ben.lease.epoch}" in output.stdout
        assert (await second.root("ls", "/tmp/laneswap-test-fenced", check=False)) == ""
        renewed = await lease.renew(first.link, FOLDER, ana.lease.id)
        assert renewed.fenced and renewed.lease == ben.lease


async def test_two_accounts_share_a_folder(clean: tuple[BedHost, ...]) -> None:
    host = clean[0]
    async with steps_on(host) as mine, steps_on(host, ssh=stranger(host)) as other:
        await shared(mine)
        ana = await lease.take(mine.link, FOLDER, "ana", "ana@laptop 1", "switch")
        assert ana.lease is not None
        assert (await files.put(mine.link, FOLDER, 1, "ops/x/plan.json", "ana's")).ok
        await mine.started("one", "sleep", "600", epoch=1)
        ben = await lease.take(other.link, FOLDER, "ben", "ben@laptop 1", "switch", over=True)
        assert ben.granted and ben.lease is not None and ben.lease.epoch == 2
        assert (await files.put(other.link, FOLDER, 2, "ops/x/plan.json", "ben's")).ok
        assert (await files.append(other.link, FOLDER, 2, "ops/x/journal.jsonl", "{}\n")).ok
        assert (await files.append(mine.link, FOLDER, 2, "ops/x/journal.jsonl", "{}\n")).ok
        assert (await files.read(mine.link, FOLDER, "ops/x/plan.json")).text == "ben's"
        other.op = mine.op
        # it can be seen by every account, and ended by its own or with sudo
        refused = await detached.stop(other.link, FOLDER, mine.op, "one", epoch=2)
        assert refused.phase is Phase.UNKNOWN and "belongs to another account" in refused.words
        await other.started("theirs", "sleep", "600", epoch=2)
        assert (await mine.running("theirs")).mode == "none"
        assert (await detached.stop(mine.link, FOLDER, mine.op, "theirs", epoch=2)).phase is Phase.STOPPED
        assert (await other.running("one")).phase is Phase.RUNNING
        joined = await other.start("one", "true", epoch=2)
        assert isinstance(joined, Started) and joined.joined
        ended = await detached.stop(mine.link, FOLDER, mine.op, "one", epoch=2)
        assert ended.phase is Phase.STOPPED
        assert await other.state("one") == await mine.state("one")
        # a file of the step is no file of theirs
        output = await other.link.run(["sh", "-c", f"echo x >{mine.path}/one/result"])
        assert not output.ok


async def test_hidden_processes_are_unknown_not_lost(clean: tuple[BedHost, ...]) -> None:
    host = clean[0]
    async with steps_on(host) as mine, steps_on(host, ssh=stranger(host)) as other:
        await shared(mine)
        await mine.started("one", "sleep", "600", mode=Mode.NONE)
        other.op = mine.op
        await other.running("one")
        await mine.root("mount", "-o", "remount,hidepid=2", "/proc")
        try:
            found = await other.state("one")
            assert found.phase is Phase.UNKNOWN and "hidepid" in found.words, found
            assert (await mine.state("one")).phase is Phase.RUNNING
        finally:
            await mine.root("mount", "-o", "remount,hidepid=0", "/proc")
        await detached.stop(mine.link, FOLDER, mine.op, "one", seconds=1)


async def test_root_takes_over_what_an_account_began(clean: tuple[BedHost, ...]) -> None:
    host = clean[0]
    async with steps_on(host) as steps:
        for name, mode in MODES.items():
            await steps.started(name, "sleep", "600", mode=mode)
            await steps.running(name)
            stop = shlex.join(["sh", "-c", script("starter"), "laneswap", "stop", FOLDER, steps.op, name])
            said = await steps.root("sh", "-c", stop)
            assert "state=stopped" in said, said
            assert (await steps.state(name)).phase is Phase.STOPPED


async def test_a_lease_is_renewed_and_handed_over_between_accounts(clean: tuple[BedHost, ...]) -> None:
    host = clean[0]
    async with steps_on(host) as mine, steps_on(host, ssh=stranger(host)) as other:
        await shared(mine)
        ana = await lease.take(mine.link, FOLDER, "ana", "ana@laptop 1", "switch")
        assert ana.lease is not None
        keeper = lease.Keeper(mine.link, FOLDER, ana.lease, every=0.2)
        keeper.start()
        assert (await lease.offer(mine.link, FOLDER, ana.lease.id, "ben")).granted
        ben = await lease.accept(other.link, FOLDER, "ben", "ben@desk 2")
        assert ben.granted and ben.lease is not None
        async with asyncio.timeout(PATIENCE):
            await keeper.lost.wait()
        assert keeper.words.startswith("ben holds the lease on ben@desk 2 since ")
        assert not await keeper.mine()
        await keeper.close()
