"""An sshd of our own on loopback: the machine's own is never touched, and nothing is installed."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PLACES = "/usr/sbin:/usr/local/sbin"
PACKAGES = ("openssh-server", "libwrap0")
START_LIMIT = 10.0
CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/client_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
PrintMotd no
LogLevel ERROR
"""
# sshd run by root wants its own user and an empty folder; both are there only in a mount namespace of its own.
PRIVATE = """\
mount --bind {folder}/passwd /etc/passwd
mount -t tmpfs -o mode=755 none /run
mkdir /run/sshd
exec {sshd}
"""


class NoSshd(Exception):
    """There is no sshd here; says why."""


@dataclass(frozen=True, slots=True)
class Sshd:
    """A running sshd and what a client needs to log in."""

    port: int
    user: str
    version: str
    key: Path
    known_hosts: Path


@contextmanager
def own_sshd(folder: Path) -> Iterator[Sshd]:
    """sshd with its own host key on a free port of 127.0.0.1. Raises NoSshd."""
    binary, libraries = _find(folder)
    for name in ("host_key", "client_key"):
        _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(folder / name)])
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = folder / "sshd_config"
    config.write_text(CONFIG.format(port=port, folder=folder))
    public = (folder / "host_key.pub").read_text()
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {public}")
    argv = [str(binary), "-D", "-e", "-f", str(config)]
    if os.geteuid() == 0:
        argv = _private(argv, folder)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)} if libraries else None
    log = folder / "sshd.log"
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
    try:
        _wait(port, process, log)
        user = pwd.getpwuid(os.geteuid()).pw_name
        yield Sshd(port, user, _version(binary, libraries), folder / "client_key", known)
    finally:
        process.terminate()
        process.wait(timeout=START_LIMIT)


def _find(folder: Path) -> tuple[Path, Path | None]:
    """sshd, and where its libraries lie if it is not installed."""
    if shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        raise NoSshd("no OpenSSH client on this machine")
    found = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:{PLACES}")
    if found:
        return Path(found), None
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NoSshd("no sshd on this machine (package openssh-server)")
    try:
        _run(["apt-get", "download", "-qq", *PACKAGES], cwd=folder)
        for package in folder.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), str(folder / "root")])
    except NoSshd as error:
        raise NoSshd(f"no sshd on this machine, and {error}") from error
    (libraries,) = {file.parent for file in (folder / "root").rglob("libwrap.so.0")}
    return folder / "root/usr/sbin/sshd", libraries


def _private(argv: list[str], folder: Path) -> list[str]:
    """Root gets a plain shell and an empty home there: nobody's .bashrc is measured."""
    users = Path("/etc/passwd").read_text().splitlines(keepends=True)
    rows = [row for row in users if not row.startswith(("root:", "sshd:"))]
    rows += [f"root:x:0:0:root:{folder}:/bin/sh\n", "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"]
    (folder / "passwd").write_text("".join(rows))
    script = PRIVATE.format(folder=shlex.quote(str(folder)), sshd=shlex.join(argv))
    return ["unshare", "--mount", "sh", "-ec", script]


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_LIMIT
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise NoSshd(f"sshd did not start: {log.read_text()[-300:].strip()}") from None
            time.sleep(0.02)


def _version(binary: Path, libraries: Path | None) -> str:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)} if libraries else None
    said = subprocess.run([binary, "-V"], capture_output=True, text=True, env=environment, check=False).stderr
    return next((word.rstrip(",") for word in said.split() if word.startswith("OpenSSH_")), "OpenSSH")


def _run(argv: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoSshd(f"{argv[0]} failed: {(done.stderr or done.stdout).strip()[-200:]}")
