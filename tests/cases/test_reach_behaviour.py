"""What the ssh cases ask of the live link, against a real ssh server on loopback that runs real shells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
from case_table import case_file, inspect_case

from console.fleet.inventory import Host, Rates
from console.reach.limits import HandshakeLimits, Timings
from console.reach.ssh import SshLink
from console.readings.link import LinkStatus
from console.readings.output import Outcome, classify
from console.sanitize import lines

USER_KEY = asyncssh.generate_private_key("ssh-ed25519")
HOST_KEY = asyncssh.generate_private_key("ssh-ed25519")
OTHER_KEY = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
QUICK = Timings(first_retry=0.05, longest_retry=0.2, stubborn_retry=0.1, close_limit=2.0)


class Sshd(asyncssh.SSHServer):
    """A server that runs every command in /bin/sh, with MaxSessions, and counts."""

    def __init__(self, most: int = 10) -> None:
        self.most = most
        self.open = 0
        self.highest = 0
        self.refused = 0
        self.logins = 0
        self.auths = 0
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.children: list[asyncio.subprocess.Process] = []

    def connection_made(self, connection: asyncssh.SSHServerConnection) -> None:
        self.logins += 1
        self.connections.append(connection)

    def begin_auth(self, username: str) -> bool:
        self.auths += 1
        return True

    def session_requested(self) -> asyncssh.SSHServerProcess[bytes]:
        if self.open >= self.most:
            self.refused += 1
            # what OpenSSH answers beyond MaxSessions
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "open failed")
        self.open += 1
        self.highest = max(self.highest, self.open)
        return asyncssh.SSHServerProcess(self.run, None, 3, False)

    async def run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        try:
            pipe = asyncio.subprocess.PIPE
            child = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", process.command or "", stdin=pipe, stdout=pipe, stderr=pipe
            )
            self.children.append(child)
            feed = asyncio.create_task(pump(process.stdin, child.stdin))
            await asyncio.gather(pump(child.stdout, process.stdout), pump(child.stderr, process.stderr))
            status = await child.wait()
            feed.cancel()
            await asyncio.gather(feed, return_exceptions=True)
            process.exit(status)
        finally:
            self.open -= 1


async def pump(reader: Any, writer: Any) -> None:
    """Copy until the end, or until one side is gone."""
    try:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
    except (asyncssh.Error, OSError):
        return
    finally:
        if isinstance(writer, asyncio.StreamWriter):
            writer.close()


@asynccontextmanager
async def server(sshd: Sshd) -> AsyncIterator[int]:
    listener = await asyncssh.create_server(
        lambda: sshd,
        "127.0.0.1",
        0,
        server_host_keys=[HOST_KEY],
        authorized_client_keys=asyncssh.import_authorized_keys(USER_KEY.export_public_key().decode()),
        encoding=None,
    )
    try:
        yield listener.get_port()
    finally:
        listener.close()
        for connection in sshd.connections:
            connection.abort()
        await listener.wait_closed()
        for child in sshd.children:
            if child.returncode is None:
                child.kill()
            await child.wait()


@asynccontextmanager
async def link_to(port: int, known_hosts: bytes | str | None = None) -> AsyncIterator[SshLink]:
    known = f"[127.0.0.1]:{port} {HOST_KEY.export_public_key().decode()}".encode()
    overrides: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": port,
        "username": "ops",
        "client_keys": [USER_KEY],
        "known_hosts": known if known_hosts is None else known_hosts,
        "config": None,
        "agent_path": None,
    }
    link = SshLink("node", Host(ssh="node"), Rates(), limits=HandshakeLimits(), overrides=overrides, timings=QUICK)
    await link.start()
    try:
        yield link
    finally:
        await link.close()


async def until(what: Any, seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 (what is waited for has no event)
            await asyncio.sleep(0.01)


async def test_more_requests_than_sessions_are_all_answered() -> None:
    """C047: with 4 sessions allowed and 12 requests all 12 answers arrive."""
    requests = int(case_file("C047", "requests.txt").read_text())
    allowed = inspect_case("C047", "output", "sshd_config=sshd_config.fragment")["sshd"]["max_sessions"]
    assert (requests, allowed) == (12, 4)
    sshd = Sshd(most=allowed)
    async with server(sshd) as port, link_to(port) as link:
        work = [link.run(["sh", "-c", f"sleep 0.1; echo {number}"], limit=60) for number in range(requests)]
        answers = await asyncio.gather(*work)
        assert link.state.status is LinkStatus.UP
    assert [answer.stdout for answer in answers if answer.ok] == [f"{number}\n" for number in range(requests)]
    assert sshd.refused > 0, "the server's limit was really met"
    assert sshd.highest == allowed
    assert sshd.logins == 1


async def test_open_failed_is_our_limit() -> None:
    """C047: a refused session is our limit and never a host that is down."""
    words = case_file("C047", "error.txt").read_text().strip()
    assert classify("node", ["x"], error=words).outcome is Outcome.OUR_LIMIT
    assert inspect_case("C047", "output", "error=error.txt")["outcome"] == "our session limit"
    sshd = Sshd(most=0)
    async with server(sshd) as port, link_to(port) as link:
        answer = await link.run(["true"], limit=1)
        assert answer.outcome is Outcome.OUR_LIMIT
        assert "not sent" in answer.hint
        assert link.state.status is LinkStatus.UP
    assert sshd.refused > 0
    assert sshd.children == []


async def test_a_changed_host_key_is_never_accepted(tmp_path: Path) -> None:
    """C051: the key of the old entry is another one: refused before any login, told with file and line."""
    sshd = Sshd()
    async with server(sshd) as port:
        entry = f"[127.0.0.1]:{port} {OTHER_KEY.export_public_key().decode()}".strip()
        known = tmp_path / "known_hosts"
        known.write_text("# comment\n" * 46 + entry + "\n")
        before = known.read_bytes()
        async with link_to(port, str(known)) as link:
            answer = await link.run(["true"], limit=10)
            await until(lambda: link.state.attempts >= 2)
            assert link.state.status is not LinkStatus.UP
            said = f"{link.state.error} {link.state.hint}"
        assert known.read_bytes() == before
    assert answer.outcome is Outcome.HOST_KEY_CHANGED
    for part in ("host key changed", f"{known}:47", HOST_KEY.get_fingerprint(), OTHER_KEY.get_fingerprint()):
        assert part in said
        assert part in answer.hint
    assert (sshd.auths, sshd.children) == (0, []), "not even a login was tried"


async def test_a_new_host_key_is_told_apart_and_not_accepted_either(tmp_path: Path) -> None:
    """C051's neighbour: no entry at all."""
    sshd = Sshd()
    async with server(sshd) as port:
        known = tmp_path / "known_hosts"
        known.write_text("")
        async with link_to(port, str(known)) as link:
            answer = await link.run(["true"], limit=10)
        assert known.read_bytes() == b""
    assert answer.outcome is Outcome.HOST_KEY_UNKNOWN
    assert HOST_KEY.get_fingerprint() in answer.hint
    assert sshd.auths == 0


async def test_a_lost_command_is_not_sent_again(tmp_path: Path) -> None:
    """C053: the connection dies in the middle: outcome unknown, reconnected, and the command ran once."""
    trace = tmp_path / "trace"
    partial = case_file("C053", "stdout_partial.bin")
    sshd = Sshd()
    async with server(sshd) as port, link_to(port) as link:
        script = f"echo run >> {trace}; cat {partial}; exec sleep 600"
        running = asyncio.create_task(link.run(["sh", "-c", script], limit=60))
        await until(lambda: trace.exists() and trace.read_text() == "run\n")
        await asyncio.sleep(0.2)
        sshd.connections[0].abort()
        answer = await running
        await until(lambda: sshd.logins == 2 and link.state.status is LinkStatus.UP)
        again = await link.run(["cat", str(trace)], limit=20)
    assert answer.outcome is Outcome.UNKNOWN
    assert (answer.exit_status, answer.ok) == (None, False)
    assert answer.last_line == "  rank 3 launched"
    assert "look at the host before trying again" in answer.hint
    assert again.ok and again.stdout == "run\n", "it was not run a second time"
    assert sshd.logins == 2


async def test_bytes_that_are_not_utf8_do_not_end_the_connection() -> None:
    """C072: the bad bytes come through replaced, and the same connection answers the next command."""
    log = case_file("C072", "log.bin")
    sshd = Sshd()
    async with server(sshd) as port, link_to(port) as link:
        answer = await link.run(["cat", str(log)], limit=20)
        after = await link.run(["echo", "still here"], limit=20)
    assert answer.ok
    assert lines(answer.stdout) == inspect_case("C072", "log", "log.bin")["lines"]
    assert answer.stdout.count("\ufffd") == 5
    assert after.stdout == "still here\n"
    assert (sshd.logins, link.connections) == (1, 1)


async def test_noise_around_the_answer_is_cut_off_on_the_live_link(tmp_path: Path) -> None:
    """C045: what start-up and logout files print never becomes part of an answer."""
    prefix, suffix = case_file("C045", "noise_prefix.bin"), case_file("C045", "noise_suffix.bin")
    meminfo = case_file("C001", "meminfo.txt")

    class Noisy(Sshd):
        async def run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
            process.stdout.write(prefix.read_bytes())
            process.stderr.write(prefix.read_bytes())
            await super().run(process)

    async with server(Noisy()) as port, link_to(port) as link:
        answer = await link.run(["sh", "-c", f"trap 'cat {suffix} >&2' EXIT; cat {meminfo}"], limit=20)
    assert answer.ok
    assert answer.stdout == meminfo.read_text()
    assert "wiki" not in answer.stderr
