"""One host: systemd as PID 1 under systemd-nspawn, with its own network namespace, control groups and Docker data."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

from bed import cgroups, downloader, network
from bed.record import HostRecord, Record
from bed.rootfs import STRANGER, USER, Base
from bed.system import BedError, Process, children, namespace_pids, run, wait_for

LAUNCH = """
groups=$1; lower=$2; home=$3; shift 3
for group in $groups; do echo $$ > "$group/cgroup.procs" || exit 1; done
exec unshare --mount --propagation private sh -c '
  mount --type overlay overlay --options "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root" || exit 1
  shift 2
  exec "$@"' sh "$lower" "$home" "$@"
"""
"""The overlay is mounted in a mount namespace of its own, so that it goes with the last process of the host."""

V1_INIT = """
for name in memory pids cpu cpuacct blkio devices freezer cpuset; do
  mount --options remount,rw,bind /sys/fs/cgroup/$name
done
exec /sbin/init
"""
"""nspawn mounts version 1 controllers read-only: then no limit is enforced and Docker cannot start a container."""


def start(record: Record, host: HostRecord, base: Base, key: Path) -> None:
    """Make the host and start its PID 1; returns at once. It is in the record, with its process, when this returns."""
    home = record.host_folder(host)
    for part in ("upper", "work", "root", "docker"):
        (home / part).mkdir(parents=True, exist_ok=True)
    _write_identity(home / "upper", host, base, key)
    network.make_namespace(record, host)
    _launch(record, host, base)


def restart(record: Record, host: HostRecord, base: Base) -> None:
    """Start PID 1 again once it has ended by itself: a reboot ends systemd-nspawn. Raises BedError."""
    before = host.nspawn
    assert before is not None
    wait_for(lambda: not before.alive, f"{host.name}: end of the host", limit=60)
    cgroups.remove(host.cgroup)
    _launch(record, host, base)


def _launch(record: Record, host: HostRecord, base: Base) -> None:
    home = record.host_folder(host)
    groups = " ".join(str(folder) for folder in cgroups.make(host.cgroup))
    lower = f"{base.minimal}:{base.full}" if host.python == "minimal" else str(base.full)
    argv = ["sh", "-c", LAUNCH, "sh", groups, lower, str(home), *_nspawn(record, host, base)]
    environment = {**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}
    with (home / "console.log").open("ab") as log:
        started = subprocess.Popen(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    host.nspawn = Process.of(started.pid)


def _write_identity(upper: Path, host: HostRecord, base: Base, key: Path) -> None:
    """Hostname, machine id, host key and authorized keys, in the host's own layer."""
    for name in ("", "etc", "etc/ssh", "home"):
        _copy_folder(base.full, upper, name)
    (upper / "etc/hostname").write_text(f"{host.name}\n")
    (upper / "etc/hosts").write_text(f"127.0.0.1 localhost {host.name}\n{host.address} {host.name}\n")
    (upper / "etc/machine-id").write_text(f"{os.urandom(16).hex()}\n")
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", host.name, "-f", f"{upper}/etc/ssh/ssh_host_ed25519_key"])
    for user in (USER, STRANGER):
        _copy_folder(base.full, upper, f"home/{user}")
        folder = upper / f"home/{user}/.ssh"
        listing = folder / "authorized_keys"
        folder.mkdir(exist_ok=True)
        shutil.copy(f"{key}.pub", listing)
        owner = (base.full / f"home/{user}").stat()
        folder.chmod(0o700)
        listing.chmod(0o600)
        for path in (folder, listing):
            os.chown(path, owner.st_uid, owner.st_gid)


def _copy_folder(root: Path, upper: Path, name: str) -> None:
    (upper / name).mkdir(parents=True, exist_ok=True)
    shutil.copystat(root / name, upper / name)
    owner = (root / name).stat()
    os.chown(upper / name, owner.st_uid, owner.st_gid)


def _nspawn(record: Record, host: HostRecord, base: Base) -> list[str]:
    home = record.host_folder(host)
    init = ["/sbin/init"] if cgroups.is_v2() else ["/bin/sh", "-c", V1_INIT]
    return [
        "systemd-nspawn",
        "--quiet",
        f"--directory={home}/root",
        "--register=no",
        "--keep-unit",
        f"--machine={host.cgroup}",
        f"--hostname={host.name}",
        f"--network-namespace-path=/run/netns/{host.netns}",
        "--capability=CAP_NET_ADMIN",
        # With CAP_SYS_TIME a clock set in the host sets the clock of this machine.
        "--drop-capability=CAP_SYS_TIME",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        f"--bind={home}/docker:/var/lib/docker",
        f"--bind-ro={base.images}:/srv/images",
        f"--bind-ro={base.downloader}:{downloader.INSIDE}",
        *(["--bind=/dev/fuse"] if Path("/dev/fuse").exists() else []),
        "--system-call-filter=add_key keyctl bpf",
        *init,
    ]


def init_pid(host: HostRecord) -> int:
    """Pid, on this machine, of the host's PID 1. Raises BedError when it does not come up or is gone."""
    nspawn = host.nspawn
    assert nspawn is not None
    wait_for(lambda: bool(_inits(nspawn)) or not nspawn.alive, f"{host.name}: PID 1", limit=20, pause=0.05)
    if not (inits := _inits(nspawn)):
        raise BedError(f"{host.name}: PID 1", "systemd-nspawn ended", "its console says why")
    return inits[0]


def _inits(nspawn: Process) -> list[int]:
    """The children that are PID 1 in a namespace of their own; nspawn also has short-lived helpers."""
    return [pid for pid in children(nspawn.pid) if namespace_pids(pid)[1:] == [1]]


def known_hosts_line(record: Record, host: HostRecord) -> str:
    """The host's public key as a line of a known_hosts file."""
    public = (record.host_folder(host) / "upper/etc/ssh/ssh_host_ed25519_key.pub").read_text().split()
    return f"{host.address} {public[0]} {public[1]}\n"


def remove(record: Record, host: HostRecord) -> None:
    """End the host and all that runs in it, and remove what it left: works on a record of a run that was killed."""
    if host.nspawn is not None and host.nspawn.alive:
        for pid in children(host.nspawn.pid):
            with contextlib.suppress(ProcessLookupError):
                Process.of(pid).end()
        host.nspawn.end()
    cgroups.remove(host.cgroup)
    network.remove_namespace(host)
