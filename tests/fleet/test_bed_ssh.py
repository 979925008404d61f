"""The ssh link on stock OpenSSH: commands, limits of sshd, lost connections, host keys."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bed.client import Bed, BedHost
from bed_links import PATIENCE, linked, until, until_status

from console.reach.limits import HandshakeLimits
from console.reach.ssh import SshLink
from console.readings.link import LinkStatus
from console.readings.output import Outcome, Output

pytestmark = pytest.mark.bed


async def test_a_command_gives_its_own_output_past_motd_and_bashrc(bed: Bed) -> None:
    for host in bed.hosts:
        async with linked(host) as link:
            output = await link.run(["hostname"])
            assert (output.outcome, output.exit_status, output.stdout) == (Outcome.DONE, 0, f"{host.name}\n")


async def test_a_login_shell_that_is_not_bash_runs_the_same_command(bed: Bed) -> None:
    host = bed.full
    async with linked(host, ssh=f"{host.stranger}@{host.name}") as link:
        output = await link.run(["printf", "%s", "a b 'c' $HOME \\"])
        assert output.ok
        assert output.stdout == "a b 'c' $HOME \\"


async def test_an_exit_status_is_failed_and_kept(bed: Bed) -> None:
    async with linked(bed.full) as link:
        output = await link.run(["sh", "-c", "echo before; exit 7"])
        assert (output.outcome, output.exit_status, output.stdout) == (Outcome.FAILED, 7, "before\n")


async def test_many_commands_at_once_stay_within_maxsessions_of_one_connection(bed: Bed) -> None:
    async with linked(bed.full) as link:
        outputs = await asyncio.gather(*(link.run(["sh", "-c", f"sleep 0.2; echo {n}"], limit=60) for n in range(30)))
        assert [output.stdout for output in outputs] == [f"{n}\n" for n in range(30)]
        assert link.connections == 1


async def test_many_logins_at_once_survive_maxstartups(bed: Bed) -> None:
    limits = HandshakeLimits()
    async with asyncio.timeout(2 * PATIENCE):
        links = [linked(bed.full, limits=limits) for _ in range(24)]
        opened = [await link.__aenter__() for link in links]
        try:
            for link in opened:
                await until_status(link, LinkStatus.UP)
        finally:
            await asyncio.gather(*(link.__aexit__(None, None, None) for link in links))
    assert 1 <= limits.highest <= 6


async def test_a_killed_session_makes_the_running_command_unknown_and_the_link_comes_back(bed: Bed) -> None:
    host = bed.full
    async with linked(host) as link:
        running = await started(link, host, "601")
        assert host.kill_ssh_sessions() >= 1
        output = await asyncio.wait_for(running, PATIENCE)
        assert (output.outcome, output.exit_status) == (Outcome.UNKNOWN, None)
        await until(lambda: link.connections == 2, "logged in again")
        assert (await link.run(["true"])).ok
        await until(lambda: not host.remote_processes(), "nothing of the lost command is left")


async def test_a_command_under_drop_is_unknown_and_ends_by_its_own_limit(bed: Bed) -> None:
    host = bed.full
    async with linked(host) as link:
        running = await started(link, host, "602", limit=6.0)
        with host.dropped():
            output = await asyncio.wait_for(running, PATIENCE)
            assert (output.outcome, output.exit_status) == (Outcome.UNKNOWN, None)
            await until_status(link, LinkStatus.DOWN)
            late = await asyncio.wait_for(link.run(["true"]), PATIENCE)
            assert late.outcome is Outcome.UNREACHABLE
            assert link.state.error
            await until(lambda: not host.remote_processes(), "the host has ended it by itself")
        await until_status(link, LinkStatus.UP)
        assert (await link.run(["true"])).ok


async def test_a_stopped_sshd_is_named_and_the_link_comes_up_when_it_starts(bed: Bed) -> None:
    host = bed.full
    with host.ssh_stopped():
        async with linked(host) as link:
            await until_status(link, LinkStatus.DOWN)
            assert "refused" in link.state.error
            output = await link.run(["true"])
            assert output.outcome is Outcome.UNREACHABLE
            await asyncio.to_thread(host.root, "systemctl", "start", "ssh.service")
            await until_status(link, LinkStatus.UP)


async def test_a_changed_and_an_unknown_host_key_are_told_apart(bed: Bed, tmp_path: Path) -> None:
    host, other = bed.full, bed.minimal
    keys = {line.split()[0]: line.split(" ", 1)[1] for line in host.known_hosts.read_text().splitlines()}
    changed, unknown = tmp_path / "changed", tmp_path / "unknown"
    changed.write_text(f"{host.address} {keys[other.address]}\n")
    unknown.write_text("")
    fingerprint = host.root("ssh-keygen", "-l", "-f", "/etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    for file, outcome in ((changed, Outcome.HOST_KEY_CHANGED), (unknown, Outcome.HOST_KEY_UNKNOWN)):
        async with linked(host, known_hosts=str(file)) as link:
            await until_status(link, LinkStatus.DOWN)
            output = await link.run(["true"])
            assert output.outcome is outcome
            assert fingerprint in f"{link.state.error} {link.state.hint}"


async def test_a_refused_key_is_permission(bed: Bed, tmp_path: Path) -> None:
    host = bed.full
    async with linked(host, ssh=f"root@{host.name}") as link:
        await until_status(link, LinkStatus.DOWN)
        output = await link.run(["true"])
        assert output.outcome is Outcome.PERMISSION
        assert link.state.hint


async def test_a_closed_link_leaves_no_process_on_the_host(bed: Bed) -> None:
    host = bed.full
    async with linked(host) as link:
        running = await started(link, host, "603")
    assert (await running).outcome is Outcome.UNKNOWN
    await until(lambda: not host.remote_processes(), "nothing is left")


async def started(link: SshLink, host: BedHost, seconds: str, limit: float = 120.0) -> asyncio.Task[Output]:
    """A `sleep` that is seen to run on the host."""
    running = asyncio.create_task(link.run(["sleep", seconds], limit=limit))
    await until(lambda: any(f"sleep {seconds}" in line for line in host.remote_processes()), f"sleep {seconds} runs")
    return running
