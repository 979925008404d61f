"""One run of the bed, first link to last: bring up, describe, tear down, and sweep what a killed run left."""

from __future__ import annotations

import contextlib
import functools
import shutil
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed import host, network, record, rootfs
from bed.record import HostRecord, Record
from bed.system import BedError, locked, run, wait_for

MINIMAL_HOSTS = 1
"""The last host of a run has python3-minimal alone."""
IMAGES = {"engine": "laneswap/engine:bed", "busybox": "laneswap/busybox:bed"}


def sweep() -> None:
    """Clean up after runs whose owner is gone."""
    with locked(rootfs.STATE / "runs.lock"):
        for old in record.stored():
            if not old.owner.alive:
                print(f"bed: cleaning up after run {old.identifier}, whose owner is gone", file=sys.stderr)
                tear_down(old)


@dataclass(frozen=True, slots=True)
class Running:
    """A bed that is up."""

    record: Record
    base: rootfs.Base
    description: dict[str, Any]
    """What the tests are told of it."""

    def restart(self, name: str) -> dict[str, Any]:
        """Start a host again that has ended itself; what is new of it. Raises BedError."""
        one = next(one for one in self.record.hosts if one.name == name)
        host.restart(self.record, one, self.base)
        self.record.save()
        return _answering(self.record, one, self.description)


@contextlib.contextmanager
def bed(count: int) -> Iterator[Running]:
    """Bring up `count` hosts, yield them, tear down on the way out. Raises BedError."""
    sweep()
    base = rootfs.ensure()
    with locked(rootfs.STATE / "runs.lock"):
        subnet = network.free_subnet({other.subnet for other in record.stored()})
        current = _named(record.new_record(subnet), count)
        current.save()
        network.make_bridge(current)
    try:
        yield Running(current, base, _bring_up(current, base))
    finally:
        with _no_interruption():
            tear_down(current)


def _named(new: Record, count: int) -> Record:
    for index in range(count):
        own = f"{new.bridge}n{index}"
        python = "minimal" if index >= count - MINIMAL_HOSTS else "full"
        address = f"{new.subnet}.{index + 1}"
        new.hosts.append(HostRecord(f"node-{index}", python, address, own, own, f"laneswap-{own}"))
    return new


def _bring_up(current: Record, base: rootfs.Base) -> dict[str, Any]:
    forwarding = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    key = current.folder / "id_ed25519"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "laneswap-bed", "-f", str(key)])
    for one in current.hosts:
        host.start(current, one, base, key)
        current.save()
    known_hosts = current.folder / "known_hosts"
    known_hosts.write_text("".join(host.known_hosts_line(current, one) for one in current.hosts))
    ssh_config = current.folder / "ssh_config"
    ssh_config.write_text("".join(_ssh_config_entry(one, key, known_hosts) for one in current.hosts))
    description = {
        "identifier": current.identifier,
        "folder": str(current.folder),
        "key": str(key),
        "known_hosts": str(known_hosts),
        "ssh_config": str(ssh_config),
        "user": rootfs.USER,
        "stranger": rootfs.STRANGER,
        "images": IMAGES,
        "forwarding_before": forwarding,
        "gateway": f"{current.subnet}.254",
    }
    with ThreadPoolExecutor(len(current.hosts)) as pool:
        ready = pool.map(lambda one: _ready(current, one, description), current.hosts)
        return {**description, "hosts": list(ready)}


def _ssh_config_entry(one: HostRecord, key: Path, known_hosts: Path) -> str:
    """The host under its own name, as an operator's ssh_config would have it."""
    return (
        f"Host {one.name}\n  HostName {one.address}\n  User {rootfs.USER}\n"
        f"  IdentityFile {key}\n  IdentitiesOnly yes\n  UserKnownHostsFile {known_hosts}\n"
    )


def _ready(current: Record, one: HostRecord, description: dict[str, Any]) -> dict[str, Any]:
    """Wait until ssh and Docker answer, and load the images. Raises BedError with the end of the host's console."""
    answering = _answering(current, one, description)
    ssh = ssh_command(description, one.address)
    for name, tag in IMAGES.items():
        run([*ssh, f"docker import --change 'ENV PATH=/usr/bin:/bin' /srv/images/{name}.tar {tag}"], limit=120)
    return answering


def _answering(current: Record, one: HostRecord, description: dict[str, Any]) -> dict[str, Any]:
    """Wait until ssh and Docker answer. Raises BedError with the end of the host's console."""
    try:
        init = host.init_pid(one)
        ssh = ssh_command(description, one.address)
        wait_for(lambda: run([*ssh, "echo", "up"], check=False).endswith("up\n"), f"{one.name}: ssh")
        wait_for(lambda: run([*ssh, "docker version"], check=False).count("Version:") > 1, f"{one.name}: Docker")
    except BedError as error:
        console = (current.host_folder(one) / "console.log").read_text(errors="replace")
        raise BedError(one.name, f"{error}\n{console[-3000:]}") from error
    return {"name": one.name, "address": one.address, "python": one.python, "init": init, "netns": one.netns}


def ssh_command(description: dict[str, Any], address: str) -> list[str]:
    """The OpenSSH client, with this run's key and known hosts and nothing of the user's own."""
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "3",
        "IdentitiesOnly": "yes",
        "LogLevel": "ERROR",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": description["known_hosts"],
    }
    flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "none", *flags, "-i", description["key"], f"{description['user']}@{address}"]


def tear_down(current: Record) -> None:
    """End the hosts and remove all that the run made; goes on after a failure and raises the first one."""
    failures: list[Exception] = []
    steps = [functools.partial(host.remove, current, one) for one in current.hosts]
    for step in (*steps, functools.partial(network.remove_bridge, current)):
        try:
            step()
        except (BedError, OSError) as error:
            failures.append(error)
    if failures:
        raise failures[0]
    current.forget()


@contextlib.contextmanager
def _no_interruption() -> Iterator[None]:
    """A second ctrl+c must not leave half a bed behind."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def remove_all() -> None:
    """Remove bases and left-over runs; a run that is up is left alone."""
    sweep()
    if record.stored():
        raise BedError("clean", "a run is up", "end it first")
    for folder in rootfs.STATE.glob("base-*"):
        shutil.rmtree(folder) if folder.is_dir() else Path(folder).unlink()
