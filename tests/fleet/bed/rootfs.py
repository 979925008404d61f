"""The root file system that all hosts share: built once from Debian packages, kept under a hash of how it is built."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

from bed import downloader
from bed.system import BedError, locked, run

STATE = Path(os.environ.get("LANESWAP_BED_STATE", "/var/tmp/laneswap-bed"))
SUITE = "bookworm"
USER = "ops"
STRANGER = "guest"
KEEP_DAYS = 14

PACKAGES = (
    "dbus",
    "dbus-user-session",
    "docker.io",
    "iproute2",
    "iptables",
    "libfaketime",
    "libpam-systemd",
    "openssh-server",
    "procps",
    "python3",
    "busybox-static",
    "sshfs",
    "sudo",
    "systemd",
    "systemd-sysv",
)
MINIMAL_DROPS = ("python3", "python3.11", "libpython3-stdlib", "libpython3.11-stdlib")
"""Purged for the host whose python3 is Debian's python3-minimal: it runs, but cannot import json."""

IMAGE_PACKAGES = (
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libssl3",
    "libuuid1",
    "python3-minimal",
    "python3.11-minimal",
    "zlib1g",
)
"""What a container needs to run a Python program: the files of these packages make the engine image."""

SETUP = f"""
set -e
useradd --create-home --shell /bin/bash --groups sudo,adm,systemd-journal,docker {USER}
useradd --create-home --shell /bin/sh {STRANGER}
usermod --password '*' {USER}
usermod --password '*' {STRANGER}
echo '{USER} ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/{USER}
echo 'Authorised use only. {{"kind": "banner"}}' > /etc/motd
mkdir -p /var/lib/systemd/linger
touch /var/lib/systemd/linger/{USER}
systemctl enable ssh.service docker.service containerd.service
systemctl mask systemd-resolved.service systemd-networkd.service systemd-networkd-wait-online.service \
  getty@tty1.service console-getty.service apt-daily.timer apt-daily-upgrade.timer systemd-timesyncd.service \
  fstrim.timer e2scrub_all.timer dpkg-db-backup.timer e2scrub_reap.service
rm -f /etc/ssh/ssh_host_*
mkdir -p /etc/docker
echo '{{"bip": "172.31.0.1/24", "storage-driver": "overlay2"}}' > /etc/docker/daemon.json
"""
NOISY_BASHRC = 'echo "{\\"kind\\": \\"noise\\"} from .bashrc"; echo "warning from .bashrc" >&2\n'


@dataclass(frozen=True, slots=True)
class Base:
    """Where the parts of a finished base lie."""

    folder: Path

    @property
    def full(self) -> Path:
        """The root file system, with the whole of python3."""
        return self.folder / "full"

    @property
    def minimal(self) -> Path:
        """An overlay layer upon `full` that leaves python3-minimal alone."""
        return self.folder / "minimal"

    @property
    def downloader(self) -> Path:
        """The `hf` command and its libraries."""
        return self.folder / "hf"

    @property
    def images(self) -> Path:
        """Container images as tar files for `docker import`."""
        return self.folder / "images"


def content_hash() -> str:
    """Twelve hex digits over everything that decides what the base holds: this file and the downloader's."""
    files = (Path(__file__), Path(downloader.__file__))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def ensure() -> Base:
    """The base, built now if it is not there yet (about a minute). Raises BedError."""
    STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
    if STATE.stat().st_uid != os.geteuid():
        raise BedError(str(STATE), "belongs to another user", "set LANESWAP_BED_STATE to a folder of your own")
    base = Base(STATE / f"base-{content_hash()}")
    with locked(STATE / "base.lock"):
        if not base.folder.exists():
            print(f"bed: building the hosts' root file system in {base.folder} (once, about a minute)", file=sys.stderr)
            _prune()
            _build(base)
        os.utime(base.folder)
    return base


def _build(base: Base) -> None:
    half = Base(base.folder.with_suffix(".half"))
    shutil.rmtree(half.folder, ignore_errors=True)
    half.images.mkdir(parents=True)
    archive = half.folder / "full.tar"
    run(
        ["mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(archive)],
        limit=400,
    )
    half.full.mkdir()
    run(["tar", "--directory", str(half.full), "--extract", "--numeric-owner", "--file", str(archive)], limit=300)
    archive.unlink()
    run(["chroot", str(half.full), "/bin/bash", "-c", SETUP], limit=120)
    _make_noisy(half.full)
    _make_minimal(half)
    _pack_engine(half)
    _pack_busybox(half)
    half.downloader.mkdir()
    downloader.fetch(half.downloader)
    half.folder.rename(base.folder)


def _make_noisy(root: Path) -> None:
    bashrc = root / "home" / USER / ".bashrc"
    bashrc.write_text(NOISY_BASHRC + bashrc.read_text())


def _make_minimal(base: Base) -> None:
    work, merged = base.folder / "work", base.folder / "merged"
    for folder in (base.minimal, work, merged):
        folder.mkdir()
    script = (
        'mount --type overlay overlay --options "lowerdir=$1,upperdir=$2,workdir=$3" "$4" && shift 4'
        ' && exec chroot "$@"'
    )
    purge = [str(merged), "dpkg", "--purge", *MINIMAL_DROPS]
    paths = [str(path) for path in (base.full, base.minimal, work, merged)]
    run(["unshare", "--mount", "sh", "-c", script, "sh", *paths, *purge], limit=120)
    shutil.rmtree(work)
    merged.rmdir()


def _pack_engine(base: Base) -> None:
    listed = run(["chroot", str(base.full), "dpkg", "-L", *IMAGE_PACKAGES]).splitlines()
    with tarfile.open(base.images / "engine.tar", "w") as archive:
        for link in ("bin", "lib", "lib64", "sbin"):
            archive.add(base.full / link, arcname=link, recursive=False)
        _add_folders(archive, "tmp", "etc", "root", "proc", "sys", "dev", "usr")
        for name in sorted({_resolved(base.full, line) for line in listed}):
            if "/" in name and not name.startswith("usr/share") and os.path.lexists(base.full / name):
                archive.add(base.full / name, arcname=name, recursive=False)


def _resolved(root: Path, listed: str) -> str:
    name = listed.strip().lstrip("/")
    top = name.split("/", 1)[0]
    return f"usr/{name}" if (root / top).is_symlink() and "/" in name else name


def _pack_busybox(base: Base) -> None:
    with tarfile.open(base.images / "busybox.tar", "w") as archive:
        archive.add((base.full / "bin" / "busybox").resolve(), arcname="bin/busybox")
        for applet in run(["chroot", str(base.full), "busybox", "--list"]).split():
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            if applet != "busybox":
                archive.addfile(link)
        _add_folders(archive, "tmp", "etc", "root", "proc", "sys", "dev")


def _add_folders(archive: tarfile.TarFile, *names: str) -> None:
    for name in names:
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)


def _prune() -> None:
    """Remove bases that nobody used for a while, and halves of interrupted builds."""
    for folder in STATE.glob("base-*"):
        if folder.is_dir() and folder.stat().st_mtime < time.time() - KEEP_DAYS * 86400:
            shutil.rmtree(folder)
