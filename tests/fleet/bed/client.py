"""A bed as the tests see it: hosts with addresses and keys, and the faults that can be done to them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import select
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.session import ssh_command
from bed.system import BedError, run

BRING_UP_LIMIT = 420.0
"""Seconds for everything, the base built from Debian packages included."""
RESTART_LIMIT = 120.0
"""Seconds for one host to end and to come up again."""
STANDING = ("sshd: ", "/lib/systemd/systemd --user", "(sd-pam)", "/usr/bin/dbus-daemon")
"""What an account with a user manager has anyway."""
DROP_RULES = (["INPUT", "--in-interface", "eth0"], ["FORWARD", "--in-interface", "eth0"])


@dataclass(frozen=True, slots=True)
class BedHost:
    """One real host."""

    name: str
    address: str
    python: str
    """`full`, or `minimal`: a python3 that cannot import json."""
    description: dict[str, Any]

    @property
    def init(self) -> int:
        """Pid, on this machine, of the host's PID 1; another one after a restart."""
        return next(int(one["init"]) for one in self.description["hosts"] if one["name"] == self.name)

    @property
    def user(self) -> str:
        """The account with sudo and Docker; its .bashrc prints on both outputs."""
        return str(self.description["user"])

    @property
    def stranger(self) -> str:
        """An account with neither, whose login shell is /bin/sh."""
        return str(self.description["stranger"])

    @property
    def key(self) -> Path:
        """The private key that both accounts accept."""
        return Path(self.description["key"])

    @property
    def known_hosts(self) -> Path:
        """The keys of all hosts."""
        return Path(self.description["known_hosts"])

    @property
    def ssh_config(self) -> Path:
        """An ssh_config that knows every host by its name."""
        return Path(self.description["ssh_config"])

    def ssh(self, command: str, *, limit: float = 60.0) -> str:
        """Standard output of a command run as the user through the OpenSSH client. Raises BedError."""
        return run([*ssh_command(self.description, self.address), command], limit=limit)

    def root(self, *argv: str, check: bool = True, limit: float = 60.0, stdin: str = "") -> str:
        """Standard output of a command run as root inside the host, past its network. Raises BedError."""
        enter = ["nsenter", f"--target={self.init}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd"]
        clean = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]
        return run([*enter, *clean, *argv], check=check, limit=limit, stdin=stdin)

    def in_pid_namespace(self, *argv: str) -> str:
        """Standard output of a program of this machine run among the host's processes, as root. Raises BedError."""
        return run(["nsenter", f"--target={self.init}", "--pid", *argv])

    def write(self, path: str, text: str) -> None:
        """Write a file inside the host, as root."""
        self.root("mkdir", "-p", str(Path(path).parent))
        self.root("sh", "-c", f"cat > {shlex.quote(path)}", stdin=text)

    def remote_processes(self) -> list[str]:
        """Command lines of what the user runs over ssh: the account's processes without sshd and systemd's own."""
        lines = self.root("ps", "-ww", "-u", self.user, "-o", "args=", check=False).splitlines()
        return [line for line in lines if not line.startswith(STANDING)]

    @contextlib.contextmanager
    def dropped(self) -> Iterator[None]:
        """Every packet to the host is lost, silently."""
        for rule in DROP_RULES:
            self.root("iptables", "--insert", *rule, "--jump", "DROP")
        try:
            yield
        finally:
            self.undrop()

    def undrop(self) -> None:
        """Let packets through again."""
        for rule in DROP_RULES:
            self.root("iptables", "--delete", *rule, "--jump", "DROP", check=False)

    def kill_ssh_sessions(self) -> int:
        """SIGKILL every sshd that serves a connection; the listener lives on. Returns how many there were."""
        listed = self.root("ps", "-e", "-o", "pid=,args=").splitlines()
        pids = [line.split()[0] for line in listed if line.split(None, 1)[1].startswith(f"sshd: {self.user}")]
        if pids:
            self.root("kill", "-9", *pids, check=False)
        return len(pids)

    @contextlib.contextmanager
    def ssh_stopped(self) -> Iterator[None]:
        """The sshd service is stopped: new connections are refused, old ones live on."""
        self.root("systemctl", "stop", "ssh.service")
        try:
            yield
        finally:
            self.root("systemctl", "start", "ssh.service")

    def as_json(self) -> str:
        """All fields, for another process of the same test."""
        return json.dumps(dataclasses.asdict(self))

    def docker(self, *argv: str, limit: float = 60.0) -> str:
        """Standard output of the docker client inside the host. Raises BedError."""
        return self.root("docker", *argv, limit=limit).strip()


@dataclass(frozen=True, slots=True)
class Bed:
    """All hosts of one run."""

    hosts: tuple[BedHost, ...]
    description: dict[str, Any]
    ask: Callable[[str], str]
    """Have the process that keeps the bed do something; its answer is one line of JSON."""

    def restart(self, host: BedHost) -> None:
        """Start a host again that has ended itself, as `systemctl reboot` does. Raises BedError."""
        answer = json.loads(self.ask(f"restart {host.name}"))
        if "error" in answer:
            raise BedError(f"restart of {host.name}", answer["error"])
        own = next(one for one in self.description["hosts"] if one["name"] == host.name)
        own.update(answer)

    @property
    def gateway(self) -> str:
        """This machine's own address on the hosts' network."""
        return str(self.description["gateway"])

    @property
    def full(self) -> BedHost:
        """A host with the whole of python3."""
        return next(host for host in self.hosts if host.python == "full")

    @property
    def spare(self) -> BedHost:
        """The host to break Docker on: with three hosts or more, no engine of the other tests runs there."""
        return [host for host in self.hosts if host.python == "full"][-1]

    @property
    def minimal(self) -> BedHost:
        """The host with python3-minimal alone."""
        return next(host for host in self.hosts if host.python == "minimal")


@contextlib.contextmanager
def running_bed(count: int) -> Iterator[Bed]:
    """Bring up a bed in a process of its own, which tears it down when this process ends, however it ends."""
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "bed", "serve", str(count)],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        assert server.stdin is not None and server.stdout is not None
        try:
            ready, _, _ = select.select([server.stdout], [], [], BRING_UP_LIMIT)
            line = server.stdout.readline() if ready else b""
            if not line:
                raise BedError("the bed did not come up", _text(log))
            yield _described(json.loads(line), functools.partial(_ask, server))
        finally:
            server.stdin.close()
            code = server.wait(120)
        if code != 0:
            raise BedError("the bed was not torn down cleanly", _text(log))


def _ask(server: subprocess.Popen[bytes], request: str) -> str:
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(f"{request}\n".encode())
    server.stdin.flush()
    ready, _, _ = select.select([server.stdout], [], [], RESTART_LIMIT)
    if not ready:
        raise BedError(request, f"no answer after {RESTART_LIMIT:.0f} s")
    return os.fsdecode(server.stdout.readline())


def _text(log: Any) -> str:
    log.seek(0)
    return os.fsdecode(log.read())[-4000:]


def _described(raw: dict[str, Any], ask: Callable[[str], str]) -> Bed:
    hosts = tuple(BedHost(one["name"], one["address"], one["python"], raw) for one in raw["hosts"])
    return Bed(hosts, raw, ask)
