"""What the bed needs on this machine: five small Debian packages, no daemon among them."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from bed.system import BedError, run

PACKAGES = ("debian-archive-keyring", "iproute2", "mmdebstrap", "openssh-client", "systemd-container")
"""sshd and Docker Engine are not among them: they are installed inside the hosts' root file system only."""


def check_machine() -> None:
    """Refuse, with the reason, a machine on which the bed cannot come up. Raises BedError."""
    if platform.system() != "Linux":
        raise BedError("real hosts", f"need Linux, this is {platform.system()}")
    release = Path("/etc/os-release")
    ids = _ids(release.read_text()) if release.exists() else set()
    if not ids & {"debian", "ubuntu"}:
        raise BedError("real hosts", f"need Debian or Ubuntu, this is {' '.join(sorted(ids)) or 'neither'}")
    if os.geteuid() != 0:
        raise BedError("real hosts", "need root for network namespaces and systemd-nspawn", "sudo make bed")


def _ids(text: str) -> set[str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {word for key, _, value in pairs if key in ("ID", "ID_LIKE") for word in value.strip('"').split()}


def missing() -> list[str]:
    """Packages that are not installed."""
    wanted = run(["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\\n", *PACKAGES], check=False)
    there = {line.split()[0] for line in wanted.splitlines() if line.endswith(" installed")}
    return [name for name in PACKAGES if name not in there]


def install() -> None:
    """Install what is missing with apt-get; asks nothing. Raises BedError."""
    check_machine()
    if not (names := missing()):
        return
    print(f"bed: installing {' '.join(names)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for argv in (["update", "-qq"], ["install", "-qq", "--yes", "--no-install-recommends", *names]):
        done = subprocess.run(
            ["apt-get", *argv],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != 0:
            raise BedError(f"apt-get {argv[0]}", f"exit {done.returncode}: {done.stdout[-2000:]}")
