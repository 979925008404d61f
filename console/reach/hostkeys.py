"""Host keys: a new key and a changed one are told apart, and neither is ever accepted by itself."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from console.readings.hostkeys import HostKeyProblem, KnownKey, fingerprint, known_keys

if TYPE_CHECKING:
    import asyncssh

USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
"""OpenSSH's defaults for UserKnownHostsFile and GlobalKnownHostsFile (ssh_config(5))."""
SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class KnownFile:
    """One known_hosts file; `name` as messages show it."""

    name: str
    text: str


class KnownHosts:
    """The lines of some known_hosts files. Lines that cannot be read are left out, as OpenSSH does."""

    def __init__(self, files: Sequence[KnownFile]) -> None:
        import asyncssh

        self._files = tuple(files)
        self.trusted: asyncssh.SSHKnownHosts = asyncssh.import_known_hosts("")
        for row in (row for file in self._files for row in file.text.split("\n")):
            try:
                self.trusted.load(_bare(row))
            except ValueError:
                continue

    def judge(self, host: str, address: str, port: int, key: asyncssh.SSHKey, *, hop: str = "") -> HostKeyProblem:
        """Why an offered key that asyncssh did not find trusted is refused.

        `host` is the name that was looked up (HostKeyAlias, else HostName), `hop` the machine as the operator knows it.
        """
        key_type, offered = key.get_algorithm(), fingerprint(key.public_data)
        entries = self._entries(host, address, port)
        revoked = [e for e in entries if e[1].marker == "@revoked" and e[1].fingerprint == offered]
        plain = [e for e in entries if not e[1].marker]
        old = revoked or [e for e in plain if e[1].key_type == key_type] or plain
        return HostKeyProblem(
            changed=bool(plain or revoked),
            key_type=key_type,
            fingerprint=offered,
            known_hosts=old[0][0] if old else (self._files[0].name if self._files else ""),
            line=old[0][1].line if old else None,
            known=tuple(entry.fingerprint for _, entry in old),
            hop=hop or host,
            revoked=bool(revoked),
        )

    def _entries(self, host: str, address: str, port: int) -> list[tuple[str, KnownKey]]:
        """File and entry. As asyncssh does, an entry without a port also counts where there is none with it."""
        for at in dict.fromkeys((port, SSH_PORT)):
            found = [
                (file.name, entry)
                for file in self._files
                for name in dict.fromkeys(filter(None, (host, address)))
                for entry in known_keys(file.text, name, at)
            ]
            if found:
                return found
        return []


def _bare(row: str) -> str:
    """A line without its comment: OpenSSH takes any bytes there, asyncssh refuses the key where they are not ASCII."""
    fields = row.split()
    return " ".join(fields[: 4 if fields and fields[0].startswith("@") else 3])


def advice(problem: HostKeyProblem, host: str, port: int) -> str:
    """What the operator can do about a key that was refused."""
    if problem.changed:
        spelled = host if port == SSH_PORT else f"[{host}]:{port}"
        file = shlex.quote(problem.known_hosts)
        return (
            "only if the host was reinstalled: compare the new fingerprint on its console, "
            f"then ssh-keygen -f {file} -R {shlex.quote(spelled)} and log in once with ssh"
        )
    where = host if port == SSH_PORT else f"-p {port} {host}"
    return f"compare the fingerprint on the host's console, then add it with: ssh {_into(problem.known_hosts)}{where}"


def _into(file: str) -> str:
    """The option without which ssh would add the key to another file than the one that is looked in."""
    usual = {os.path.expanduser(name) for name in USER_FILES}
    return f"-o UserKnownHostsFile={shlex.quote(file)} " if os.path.isabs(file) and file not in usual else ""


def from_files(files: Sequence[str]) -> KnownHosts:
    """Known hosts of these files (`~` allowed), in order; a file that is not there holds nothing. Blocking, cached."""
    return _from_files(tuple(_stamp(os.path.expanduser(file)) for file in files))


def from_bytes(data: bytes, name: str = "known_hosts") -> KnownHosts:
    """Known hosts of this text; `name` stands for the file in messages."""
    return KnownHosts([KnownFile(name, data.decode("utf-8", "replace"))])


def _stamp(file: str) -> tuple[str, int, int]:
    try:
        found = os.stat(file)
    except OSError:
        return file, 0, 0
    return file, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)
def _from_files(stamps: tuple[tuple[str, int, int], ...]) -> KnownHosts:
    files = []
    for name, _, _ in stamps:
        try:
            files.append(KnownFile(name, Path(name).read_text(encoding="utf-8", errors="replace")))
        except OSError:
            files.append(KnownFile(name, ""))
    return KnownHosts(files)
