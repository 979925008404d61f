"""One bridge and one network namespace a host, on a subnet that nothing else on this machine uses."""

from __future__ import annotations

import ipaddress
import json
import secrets

from bed.record import HostRecord, Record
from bed.system import BedError, run


def free_subnet(taken: set[str]) -> str:
    """The first three numbers of a 10.x.y.0/24 that overlaps no address, no route and no other run."""
    known = _known_networks()
    for _ in range(200):
        subnet = f"10.{64 + secrets.randbelow(191)}.{secrets.randbelow(256)}"
        network = ipaddress.ip_network(f"{subnet}.0/24")
        if subnet not in taken and not any(network.overlaps(other) for other in known):
            return subnet
    raise BedError("subnet", "no free 10.x.y.0/24 found in 200 tries")


def _known_networks() -> list[ipaddress.IPv4Network]:
    texts = [
        f"{address['local']}/{address['prefixlen']}"
        for link in json.loads(run(["ip", "-json", "-4", "address"]))
        for address in link.get("addr_info", [])
    ]
    routes = json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all"]))
    texts += [route["dst"] for route in routes if route["dst"] not in ("default", "0.0.0.0/0")]
    return [ipaddress.IPv4Network(text, strict=False) for text in texts]


def make_bridge(record: Record) -> None:
    """The run's bridge, with this machine's own address on it (.254)."""
    run(["ip", "link", "add", record.bridge, "type", "bridge"])
    run(["ip", "address", "add", f"{record.subnet}.254/24", "dev", record.bridge])
    run(["ip", "link", "set", record.bridge, "up"])


def make_namespace(record: Record, host: HostRecord) -> None:
    """The host's network namespace, joined to the bridge by its eth0."""
    inside = ["ip", "-netns", host.netns]
    run(["ip", "netns", "add", host.netns])
    run(["ip", "link", "add", host.veth, "type", "veth", "peer", "name", "eth0", "netns", host.netns])
    run(["ip", "link", "set", host.veth, "master", record.bridge, "up"])
    run([*inside, "address", "add", f"{host.address}/24", "dev", "eth0"])
    run([*inside, "link", "set", "eth0", "up"])
    run([*inside, "link", "set", "lo", "up"])


def remove_namespace(host: HostRecord) -> None:
    """Remove what `make_namespace` made, as far as it is there."""
    if host.veth in _links():
        run(["ip", "link", "delete", host.veth])
    if host.netns in {entry["name"] for entry in json.loads(run(["ip", "-json", "netns", "list"]) or "[]")}:
        run(["ip", "netns", "delete", host.netns])


def remove_bridge(record: Record) -> None:
    """Remove the run's bridge, if it is there."""
    if record.bridge in _links():
        run(["ip", "link", "delete", record.bridge])


def _links() -> set[str]:
    return {link["ifname"] for link in json.loads(run(["ip", "-json", "link"]))}
