"""`laneswap init --from-site HOST:FILE`: one file of one host is read, and nothing else happens there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncssh
import pytest
from ssh_host import SshHost

from console.fleet.inventory import FleetError, parse
from console.fleet.sitefile import MOST_BYTES
from console.setup.init import from_site

DATA = Path(__file__).parents[1] / "data" / "fleet"
USER_KEY = asyncssh.generate_private_key("ssh-ed25519")


def ssh_config(home: Path, host: SshHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own ssh files, under which `node` is that host."""
    folder = home / ".ssh"
    folder.mkdir()
    (folder / "id").write_bytes(USER_KEY.export_private_key())
    (folder / "id").chmod(0o600)
    (folder / "known_hosts").write_bytes(f"[127.0.0.1]:{host.port} ".encode() + host.keys[0].export_public_key())
    (folder / "config").write_text(
        f"Host node\n HostName 127.0.0.1\n Port {host.port}\n User ops\n IdentityAgent none\n"
        f" IdentityFile {folder / 'id'}\n"
    )
    monkeypatch.setenv("HOME", str(home))


def authorized() -> asyncssh.SSHAuthorizedKeys:
    return asyncssh.import_authorized_keys(USER_KEY.export_public_key().decode())


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if ".ssh" not in path.parts)


async def test_a_site_file_is_read_from_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there" / "launch"
    there.mkdir(parents=True)
    (there / "fleet.env").write_bytes((DATA / "fleet.env.sample").read_bytes())
    before = files(tmp_path)
    async with SshHost(authorized=authorized(), env={"HOME": str(tmp_path)}) as host:
        ssh_config(tmp_path, host, monkeypatch)
        made = await asyncio.to_thread(from_site, "node:~/there/launch/fleet.env", "f", "main")
        assert host.logins == 1
        assert host.running == 0
    fleet = parse(made.text)
    assert fleet.hosts["node"].ssh == "node", "the head is reached as the file was"
    assert fleet.lanes["main"].ranks == ("node", "node-1", "node-2", "node-3")
    assert fleet.lanes["main"].vars == {"root": "~/there"}
    assert any("alice@192.0.2.11" in row for row in made.taken)
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.env", "no such file on that host"),
        ("", "no regular file that can be read"),
        ("large.env", "not recognised"),
    ],
)
async def test_what_cannot_be_read_is_said_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "large.env").write_bytes(b"NODES=(a b)\nSNAP=x\n" + b"#" * (MOST_BYTES + 10))
    async with SshHost(authorized=authorized()) as host:
        ssh_config(tmp_path, host, monkeypatch)
        with pytest.raises(FleetError) as caught:
            await asyncio.to_thread(from_site, f"node:{folder}/{name}", "f", "main")
    assert words in str(caught.value)
    assert str(caught.value).startswith("node:") or name == "large.env"


async def test_a_host_that_refuses_the_key_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    async with SshHost(authorized=asyncssh.import_authorized_keys(other)) as host:
        ssh_config(tmp_path, host, monkeypatch)
        with pytest.raises(FleetError, match=r"node:/x/fleet\.env: .*key"):
            await asyncio.to_thread(from_site, "node:/x/fleet.env", "f", "main")
        assert host.commands == []
