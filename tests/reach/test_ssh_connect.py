"""Logging in: ssh_config, jump hosts, host keys, and every way it can fail, each in its own words."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from shutil import which
from typing import Any

import asyncssh
import key_agent
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ssh_host import QUICK, SshHost, eventually, up

from console.fleet.inventory import Host, Rates
from console.reach import connection, hostkeys
from console.reach.limits import HandshakeLimits, SessionSlots, Timings
from console.reach.ssh import SshLink
from console.reach.targets import resolve, split_target
from console.readings.link import LinkStatus
from console.readings.output import Outcome

USER_KEY = asyncssh.generate_private_key("ssh-ed25519")
RSA_KEY = asyncssh.generate_private_key("ssh-rsa", key_size=2048)


def authorized(key: asyncssh.SSHKey = USER_KEY) -> Any:
    return asyncssh.import_authorized_keys(key.export_public_key().decode())


def key_file(folder: Path, key: asyncssh.SSHKey = USER_KEY, *, passphrase: str | None = None) -> Path:
    path = folder / "id"
    path.write_bytes(key.export_private_key("pkcs8-pem", passphrase=passphrase))
    path.chmod(0o600)
    return path


def config_link(folder: Path, text: str, name: str = "node", *, limits: HandshakeLimits | None = None) -> SshLink:
    file = folder / "config"
    file.write_text(text)
    host = Host(ssh=name, config=str(file))
    return SshLink(name, host, Rates(), limits=limits or HandshakeLimits(), timings=QUICK)


async def failed(link: SshLink) -> str:
    """What the link says once it has failed to connect."""
    async with up(link):
        await eventually(lambda: link.state.attempts >= 1, "a first failure")
        assert link.state.status is LinkStatus.DOWN
        assert link.state.retry_at is not None
        return f"{link.state.error} | {link.state.hint}"


async def test_ssh_config_is_honoured(tmp_path: Path) -> None:
    async with SshHost(authorized=authorized()) as host:
        (tmp_path / "known").write_bytes(host.known_hosts)
        link = config_link(
            tmp_path,
            f"Host node\n HostName 127.0.0.1\n Port {host.port}\n User ops\n IdentityFile {key_file(tmp_path)}\n"
            f" UserKnownHostsFile {tmp_path / 'known'}\n IdentityAgent none\n",
        )
        async with up(link):
            answer = await link.run(["echo", "hello"], limit=30.0)
    assert answer.stdout == "hello\n", answer.hint
    assert host.logins == 1


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param(key_agent.stand_in, id="stand-in"),
        pytest.param(
            key_agent.openssh,
            id="openssh",
            marks=pytest.mark.skipif(which("ssh-agent") is None, reason="no ssh-agent here (package openssh-client)"),
        ),
    ],
)
async def test_keys_of_the_agent_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: Callable[..., AbstractAsyncContextManager[None]]
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    monkeypatch.setenv("HOME", str(tmp_path))
    async with agent(tmp_path / "agent", USER_KEY), SshHost(authorized=authorized()) as host:
        (tmp_path / "known").write_bytes(host.known_hosts)
        text = f"Host node\n HostName 127.0.0.1\n Port {host.port}\n User ops\n"
        async with up(config_link(tmp_path, f"{text} UserKnownHostsFile {tmp_path / 'known'}\n")) as link:
            assert (await link.run(["true"], limit=30.0)).ok, link.state


async def test_certificates_of_user_and_host(tmp_path: Path) -> None:
    authority = asyncssh.generate_private_key("ssh-ed25519")
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    file = key_file(tmp_path)
    (tmp_path / "id-cert.pub").write_bytes(
        authority.generate_user_certificate(USER_KEY, "ana", principals=["ops"]).export_certificate()
    )
    signed = authority.generate_host_certificate(host_key, "node", principals=["127.0.0.1"])
    public = authority.export_public_key().decode()
    trusted = asyncssh.import_authorized_keys(f"cert-authority {public}")
    async with SshHost(keys=[(host_key, signed)], authorized=trusted) as host:
        base = f"Host node\n HostName 127.0.0.1\n Port {host.port}\n User ops\n IdentityAgent none\n"
        base += f" IdentityFile {file}\n CertificateFile {tmp_path / 'id-cert.pub'}\n"
        base += f" UserKnownHostsFile {tmp_path / 'known'}\n"
        (tmp_path / "known").write_text(f"@cert-authority [127.0.0.1]:{host.port} {public}")
        async with up(config_link(tmp_path, base)) as link:
            assert (await link.run(["true"], limit=30.0)).ok, link.state
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
        (tmp_path / "known").write_text(f"@cert-authority [127.0.0.1]:{host.port} {other}")
        said = await failed(config_link(tmp_path, base))
    assert "host key" in said
    assert authority.get_fingerprint() in said


async def test_user_host_and_port_in_one_word(tmp_path: Path) -> None:
    async with SshHost(authorized=authorized()) as host:
        (tmp_path / "known").write_bytes(host.known_hosts)
        target = Host(
            ssh=f"ops@127.0.0.1:{host.port}",
            identity=str(key_file(tmp_path)),
            known_hosts=str(tmp_path / "known"),
            config="/dev/null",
        )
        link = SshLink("n1", target, Rates(), limits=HandshakeLimits(), timings=QUICK)
        async with up(link):
            assert (await link.run(["true"], limit=30.0)).ok


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("node", ("", "node", None)),
        ("ana@node", ("ana", "node", None)),
        ("ana@node:2222", ("ana", "node", 2222)),
        ("[::1]:22", ("", "::1", 22)),
        ("::1", ("", "::1", None)),
        ("a@b@node", ("a@b", "node", None)),
    ],
)
def test_targets_are_split(text: str, parts: tuple[str, str, int | None]) -> None:
    assert split_target(text) == parts


@pytest.mark.parametrize("text", ["node:0", "node:99999", "node:http", "@", "ana@:22", "[::1]x", "[::1"])
def test_targets_that_make_no_sense(text: str) -> None:
    with pytest.raises(ValueError, match=r"port is a number|no host name|in brackets"):
        split_target(text)


async def test_one_connection_to_a_jump_host_serves_all_behind_it(tmp_path: Path) -> None:
    keys = authorized()
    async with SshHost(authorized=keys) as bastion, SshHost(authorized=keys) as one, SshHost(authorized=keys) as two:
        (tmp_path / "known").write_bytes(bastion.known_hosts + one.known_hosts + two.known_hosts)
        text = (
            f"Host *\n User ops\n HostName 127.0.0.1\n IdentityFile {key_file(tmp_path)}\n IdentityAgent none\n"
            f" UserKnownHostsFile {tmp_path / 'known'}\n"
            f"Host bastion\n Port {bastion.port}\nHost one\n Port {one.port}\n ProxyJump bastion\n"
            f"Host two\n Port {two.port}\n ProxyJump bastion\nHost far\n Port {two.port}\n ProxyJump bastion,one\n"
        )
        limits = HandshakeLimits()
        links = [config_link(tmp_path, text, name, limits=limits) for name in ("one", "two", "far")]
        for link in links:
            await link.start()
        answers = await asyncio.gather(*(link.run(["echo", link.name], limit=30.0) for link in links))
        assert [answer.stdout for answer in answers] == ["one\n", "two\n", "far\n"], [a.hint for a in answers]
        assert bastion.logins == 1
        for link in links[:2]:
            await link.close()
        assert (await links[2].run(["true"], limit=30.0)).ok, "the jump host stays for its last user"
        await links[2].close()
        await eventually(lambda: bastion.gone == 1, "the jump host's connection is closed after its last user")


async def test_a_jump_host_that_dies_is_made_again(tmp_path: Path) -> None:
    keys = authorized()
    async with SshHost(authorized=keys) as bastion, SshHost(authorized=keys) as one:
        (tmp_path / "known").write_bytes(bastion.known_hosts + one.known_hosts)
        text = (
            f"Host *\n User ops\n HostName 127.0.0.1\n IdentityFile {key_file(tmp_path)}\n IdentityAgent none\n"
            f" UserKnownHostsFile {tmp_path / 'known'}\n"
            f"Host bastion\n Port {bastion.port}\nHost one\n Port {one.port}\n ProxyJump bastion\n"
        )
        async with up(config_link(tmp_path, text, "one")) as link:
            assert (await link.run(["true"], limit=30.0)).ok
            bastion.cut()
            await eventually(lambda: link.connections == 2 and link.state.status is LinkStatus.UP, "connected again")
            assert (await link.run(["true"], limit=30.0)).ok
        assert (bastion.logins, one.logins) == (2, 2)


async def test_a_jump_host_that_hangs_is_tried_once_for_all_behind_it(tmp_path: Path) -> None:
    knocks = 0

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal knocks
        knocks += 1
        await reader.read()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        file = tmp_path / "config"
        file.write_text(f"Host bastion\n HostName 127.0.0.1\n Port {port}\nHost node-*\n ProxyJump bastion\n")
        slow = dataclasses.replace(QUICK, login_limit=2.0, first_retry=300.0, longest_retry=300.0)
        limits = HandshakeLimits()
        links = [
            SshLink(f"node-{n}", Host(ssh=f"node-{n}", config=str(file)), Rates(), limits=limits, timings=slow)
            for n in range(12)
        ]
        async with AsyncExitStack() as stack:
            for link in links:
                await stack.enter_async_context(up(link))
            await eventually(lambda: all(link.state.attempts == 1 for link in links), "all have failed once")
            said = {link.state.error for link in links}
    assert len(said) == 1
    assert "jump host bastion" in said.pop()
    assert knocks <= 3, "far fewer logins than hosts"


async def test_the_key_of_a_jump_host_names_the_hop(tmp_path: Path) -> None:
    async with SshHost(authorized=authorized()) as bastion:
        (tmp_path / "known").write_text("")
        text = (
            f"Host *\n User ops\n HostName 127.0.0.1\n IdentityFile {key_file(tmp_path)}\n IdentityAgent none\n"
            f" UserKnownHostsFile {tmp_path / 'known'}\nHost bastion\n Port {bastion.port}\n"
            "Host one\n Port 1\n ProxyJump bastion\n"
        )
        said = await failed(config_link(tmp_path, text, "one"))
    assert said.startswith("jump host bastion: host key unknown")


async def test_jump_hosts_in_a_ring_are_noticed(tmp_path: Path) -> None:
    text = "Host *\n HostName 127.0.0.1\n IdentityAgent none\nHost a\n ProxyJump b\nHost b\n ProxyJump a\n"
    link = config_link(tmp_path, text, "a")
    said = await failed(link)
    assert "jump hosts" in said
    assert "ring" in said


async def test_a_key_that_is_not_known_is_never_accepted(tmp_path: Path) -> None:
    async with SshHost() as host:
        link = host.link(known_hosts=b"")
        async with up(link):
            answer = await link.run(["true"], limit=30.0)
            await eventually(lambda: link.state.attempts >= 3, "tried again")
            assert link.state.status is LinkStatus.DOWN
    assert answer.outcome is Outcome.HOST_KEY_UNKNOWN
    assert answer.host_key is not None
    assert answer.host_key.fingerprint == host.keys[0].get_fingerprint()
    assert host.keys[0].get_fingerprint() in answer.hint
    assert "add it" in answer.hint
    assert host.children == []


async def test_the_advice_for_an_unknown_key_fills_the_file_that_is_looked_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    async with SshHost(authorized=authorized()) as host:
        text = f"Host node\n HostName 127.0.0.1\n Port {host.port}\n IdentityAgent none\n"
        said = await failed(config_link(tmp_path, text))
        assert f"add it with: ssh -p {host.port} 127.0.0.1" in said, "ssh adds it to the user's own file"
        own = tmp_path / "ours"
        said = await failed(config_link(tmp_path, f"{text} UserKnownHostsFile {own}\n"))
        assert f"add it with: ssh -o UserKnownHostsFile={own} -p {host.port} 127.0.0.1" in said


@pytest.mark.parametrize("new", ["same type", "other type"])
async def test_a_changed_key_tells_both_fingerprints_and_the_line(tmp_path: Path, new: str) -> None:
    async with SshHost() as host:
        old = asyncssh.generate_private_key("ssh-ed25519") if new == "same type" else RSA_KEY
        entry = f"[127.0.0.1]:{host.port} {old.export_public_key().decode()}"
        file = tmp_path / "known"
        file.write_text("# a comment\n" * 46 + entry)
        link = host.link(known_hosts=str(file))
        async with up(link):
            answer = await link.run(["true"], limit=30.0)
            state = link.state
        assert file.read_text().count("\n") == 47, "the file is left as it was"
    assert answer.outcome is Outcome.HOST_KEY_CHANGED
    problem = answer.host_key
    assert problem is not None
    assert (problem.known_hosts, problem.line) == (str(file), 47)
    assert problem.fingerprint == host.keys[0].get_fingerprint()
    assert problem.known == (old.get_fingerprint(),)
    assert state.error.startswith("host key changed: ")
    assert old.get_fingerprint() in state.error
    assert f"ssh-keygen -f {file} -R '[127.0.0.1]:{host.port}'" in state.hint


async def test_a_changed_key_stops_that_host_only() -> None:
    async with SshHost() as good, SshHost() as reinstalled:
        stale = good.known_hosts.replace(str(good.port).encode(), str(reinstalled.port).encode())
        limits = HandshakeLimits()
        async with up(reinstalled.link("n1", known_hosts=stale, limits=limits)) as bad:
            async with up(good.link("n2", limits=limits)) as fine:
                assert (await fine.run(["true"], limit=30.0)).ok
                assert (await bad.run(["true"], limit=30.0)).outcome is Outcome.HOST_KEY_CHANGED


async def test_turning_host_keys_off_in_ssh_config_is_not_honoured(tmp_path: Path) -> None:
    async with SshHost() as host:
        link = config_link(
            tmp_path,
            f"Host node\n HostName 127.0.0.1\n Port {host.port}\n User ops\n StrictHostKeyChecking no\n"
            " UserKnownHostsFile none\n GlobalKnownHostsFile none\n IdentityAgent none\n",
        )
        said = await failed(link)
    assert "host key unknown" in said
    assert host.children == []


async def test_a_revoked_key_is_changed() -> None:
    async with SshHost() as host:
        link = host.link(known_hosts=b"@revoked " + host.known_hosts)
        async with up(link):
            answer = await link.run(["true"], limit=30.0)
    assert answer.outcome is Outcome.HOST_KEY_CHANGED or "revoked" in answer.hint
    assert not answer.ok


@given(st.binary(max_size=300))
def test_broken_lines_of_known_hosts_do_no_harm(garbage: bytes) -> None:
    key = RSA_KEY
    entry = b"node " + key.export_public_key()
    known = hostkeys.from_bytes(garbage.replace(b"@", b"") + b"\n" + entry)
    trusted, *_ = known.trusted.match("node", "", None)
    assert key.convert_to_public() in list(trusted)
    assert known.judge("node", "", 22, USER_KEY.convert_to_public()).changed


async def test_permission_denied_and_its_reasons(tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    async with SshHost(authorized=authorized(other)) as host:
        (tmp_path / "known").write_bytes(host.known_hosts)
        base = (
            f"Host node\n HostName 127.0.0.1\n Port {host.port}\n User ops\n UserKnownHostsFile {tmp_path / 'known'}\n"
            " IdentityAgent none\n"
        )
        plain = key_file(tmp_path)
        wrong = await failed(config_link(tmp_path, f"{base} IdentityFile {plain}\n"))
        locked = key_file(tmp_path, passphrase="secret")
        encrypted = await failed(config_link(tmp_path, f"{base} IdentityFile {locked}\n"))
        async with up(config_link(tmp_path, f"{base} IdentityFile {locked}\n")) as link:
            answer = await link.run(["true"], limit=30.0)
    assert f"permission denied for ops@127.0.0.1:{host.port}" in wrong
    assert "authorized_keys" in wrong
    assert f"{locked} has a passphrase and no agent runs" in encrypted
    assert answer.outcome is Outcome.PERMISSION
    assert "secret" not in wrong + encrypted


async def test_an_identity_that_is_not_there_is_said_before_any_login(tmp_path: Path) -> None:
    async with SshHost() as host:
        target = Host(ssh=f"ops@127.0.0.1:{host.port}", identity=str(tmp_path / "none"), config="/dev/null")
        link = SshLink("n1", target, Rates(), limits=HandshakeLimits(), timings=QUICK)
        said = await failed(link)
    assert f"{tmp_path / 'none'} is not there" in said
    assert host.logins == 0


async def test_a_broken_ssh_config_is_named(tmp_path: Path) -> None:
    said = await failed(config_link(tmp_path, "Host node\n Port none-of-your-business\n"))
    assert "ssh_config cannot be read" in said


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("Include {folder}/config\n", "node", "node: ssh_config includes itself | correct its Include lines"),
        ("", "a..b", "a..b is no host name | correct its spelling"),
        ("", "x" * 64, "is no host name"),
        ("CertificateFile {folder}/config\nIdentityFile {folder}/config\n", "node", "key file cannot be used"),
    ],
)
async def test_what_ssh_config_may_say_never_ends_the_attempts(
    tmp_path: Path, text: str, name: str, words: str
) -> None:
    link = config_link(tmp_path, text.format(folder=tmp_path), name)
    async with up(link):
        await eventually(lambda: link.state.attempts >= 2, "a second attempt")
        said = f"{link.state.error} | {link.state.hint}"
    assert words in said


async def test_a_library_that_fails_in_an_unknown_way_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by\x1b[31mzero")

    monkeypatch.setattr(connection, "resolve", odd)
    link = config_link(tmp_path, "")
    async with up(link):
        await eventually(lambda: link.state.attempts >= 2, "a second attempt")
        said = link.state.error
    assert "node: ZeroDivisionError: " in said
    assert "\x1b" not in said


async def test_a_match_that_hangs_is_said_and_holds_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, go_on = 0, threading.Event()

    def hang(*_: object, **__: object) -> None:
        nonlocal running
        running += 1
        go_on.wait(30)
        raise ValueError("late")

    monkeypatch.setattr(connection, "resolve", hang)
    link = config_link(tmp_path, "")
    link._connector._timings = dataclasses.replace(QUICK, login_limit=0.05)
    try:
        async with up(link):
            await eventually(lambda: link.state.attempts >= 3, "a third attempt")
            said, threads = f"{link.state.error} | {link.state.hint}", running
    finally:
        go_on.set()
    assert "was not read within 0.05 s" in said
    assert "Match exec" in said
    assert threads == 1


@pytest.mark.parametrize("ciphers", ["aes256-ctr", ""])
async def test_ciphers_of_ssh_config_go_before_ours(tmp_path: Path, ciphers: str) -> None:
    async with SshHost(authorized=authorized()) as host:
        (tmp_path / "known").write_bytes(host.known_hosts)
        link = config_link(
            tmp_path,
            f"Host node\n HostName 127.0.0.1\n Port {host.port}\n User ops\n IdentityFile {key_file(tmp_path)}\n"
            f" UserKnownHostsFile {tmp_path / 'known'}\n IdentityAgent none\n"
            + (f" Ciphers {ciphers}\n" if ciphers else ""),
        )
        async with up(link):
            assert (await link.run(["true"], limit=30.0)).ok
            used = host.connections[-1].get_extra_info("recv_cipher")
    assert used == (ciphers or "aes128-gcm@openssh.com")


def test_addresses_in_messages_are_ones_that_can_be_typed() -> None:
    six = resolve("ops@[::1]:2222", Host(ssh="x", config="/dev/null"), Timings())
    assert (six.where, six.address) == ("ops@[::1]:2222", "[::1]:2222")
    plain = resolve("ssh://ops@node", Host(ssh="x", config="/dev/null"), Timings())
    assert (plain.where, plain.address) == ("ops@node", "node:22")


async def test_refused_unknown_name_and_silence_have_their_own_words() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    async with SshHost() as host:
        refused = await failed(host.link(port=port))
        unknown = await failed(host.link(host="no-such-host.invalid"))
    assert f"connection refused by 127.0.0.1:{port}" in refused
    assert "name no-such-host.invalid does not resolve" in unknown

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with SshHost() as host, silent:
        quick = Timings(connect_limit=1.0, login_limit=0.5, first_retry=0.05, close_limit=1.0)
        hung = await failed(host.link(port=silent.sockets[0].getsockname()[1], timings=quick))
    assert "accepts connections, but no login comes about" in hung
    assert len({refused, unknown, hung}) == 3


async def test_what_is_no_ssh_server_is_said() -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with SshHost() as host, await asyncio.start_server(speak, "127.0.0.1", 0) as web:
        said = await failed(host.link(port=web.sockets[0].getsockname()[1]))
    assert "closed the connection during the login" in said


@pytest.mark.parametrize(
    ("command", "words"),
    [("sleep 600", "comes about through its ProxyCommand"), ("false", "ProxyCommand of"), ("/no/such", "/no/such")],
)
async def test_a_proxy_command_that_does_not_work_is_named(tmp_path: Path, command: str, words: str) -> None:
    quick = dataclasses.replace(QUICK, connect_limit=5.0, login_limit=0.5)
    (tmp_path / "config").write_text(f"Host node\n User ops\n ProxyCommand {command}\n")
    host = Host(ssh="node", config=str(tmp_path / "config"))
    said = await failed(SshLink("node", host, Rates(), limits=HandshakeLimits(), timings=quick))
    assert words in said


async def test_logins_that_sshd_drops_are_tried_again_within_the_attempt() -> None:
    async with SshHost() as host:
        host.drop_logins = 3
        async with up(host.link()) as link:
            assert (await link.run(["true"], limit=30.0)).ok
        assert host.logins == 4
        assert link.connections == 1


async def test_handshakes_are_bounded() -> None:
    limits = HandshakeLimits(per_host=2, total=3)
    async with SshHost() as one, SshHost() as two:
        links = [host.link(f"n{n}", limits=limits) for n, host in enumerate((one, one, one, one, two, two, two, two))]
        for link in links:
            await link.start()
        answers = await asyncio.gather(*(link.run(["true"], limit=60.0) for link in links))
        for link in links:
            await link.close()
    assert all(answer.ok for answer in answers)
    assert limits.highest == 3
    assert limits.in_flight == 0


async def test_a_host_that_is_down_is_found_when_it_comes_up() -> None:
    host = SshHost()
    async with host:
        port = host.port
        await host.stop()
        async with up(host.link(port=port)) as link:
            await eventually(lambda: link.state.attempts >= 2, "failed twice")
            down = link.state.since
            answer = await link.run(["true"], limit=30.0)
            assert answer.outcome is Outcome.UNREACHABLE
            assert link.state.since == down, "down since the first failure"
            await host.listen()
            await eventually(lambda: link.state.status is LinkStatus.UP, "up")
            assert (await link.run(["true"], limit=30.0)).ok


def test_retries_grow_are_capped_and_spread() -> None:
    timings = Timings()
    first = [timings.retry_delay(1) for _ in range(50)]
    late = [timings.retry_delay(40) for _ in range(50)]
    assert all(0.25 <= delay <= 0.5 for delay in first)
    assert all(15.0 <= delay <= 30.0 for delay in late)
    assert len(set(late)) > 40
    assert timings.retry_delay(1, stubborn=True) >= 7.5


async def test_slots_learn_the_servers_limit_and_never_starve_the_last() -> None:
    slots = SessionSlots(6)
    for _ in range(5):
        await slots.acquire()
    slots.refused()
    slots.release()
    assert (slots.allowed, slots.in_use) == (4, 4)
    queued = asyncio.create_task(slots.acquire())
    mine = asyncio.create_task(slots.acquire(operator=True))
    await asyncio.sleep(0)
    assert slots.waiting == 2
    slots.release()
    await asyncio.wait([mine], timeout=5)
    assert mine.done()
    assert not queued.done()
    queued.cancel()
    await asyncio.gather(queued, return_exceptions=True)
    for _ in range(4):
        slots.release()
    assert slots.in_use == 0
    await slots.acquire()
    slots.refused()
    assert slots.allowed == 3, "sessions that linger at the server are not its limit"
    slots.release()
