"""A fleet to watch: the embedded fleet, started beforehand, and the fleet file that an operator would have for it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from console.rehearsal import Rehearsal


@dataclass(frozen=True, slots=True)
class Stage:
    """A played fleet and the files that lead to it."""

    home: Path
    fleet: Path
    rehearsal: Rehearsal


@asynccontextmanager
async def four_hosts(scenario: str = "spark4") -> AsyncIterator[Stage]:
    """Four hosts and one engine, as `laneswap watch -f` finds any fleet: ssh names, a key file, known hosts."""
    with tempfile.TemporaryDirectory(prefix="laneswap-bench-") as folder:
        async with Rehearsal(scenario) as rehearsal:
            lane = rehearsal.fleet.lanes["dsv41"]
            home = Path(folder)
            hosts = {name: int(rehearsal.overrides[name]["port"]) for name in lane.rank_hosts}
            key = rehearsal.overrides[lane.head]["client_keys"][0]
            known = b"".join(rehearsal.overrides[name]["known_hosts"] for name in hosts)
            write_key(home, key.export_private_key("openssh"), known)
            fleet = home / "fleet.toml"
            text = fleet_text(home, hosts, docker=True)
            text += "\n[lanes.dsv41]\n" + "".join(
                f"{name} = {json.dumps(value)}\n"
                for name, value in lane.model_dump(mode="json", exclude_defaults=True, exclude={"vars"}).items()
            )
            fleet.write_text(text)
            yield Stage(home, fleet, rehearsal)


def write_key(home: Path, private: bytes, known: bytes) -> None:
    """The operator's key and known_hosts."""
    file = home / "id"
    file.touch(mode=0o600)
    file.write_bytes(private)
    (home / "known_hosts").write_bytes(known)
    (home / "ssh_config").write_text("Host *\n  User ops\n")


def fleet_text(home: Path, ports: dict[str, int], *, docker: bool, user: str = "ops") -> str:
    """The [hosts] part of a fleet file for ssh servers on loopback."""
    rows: Sequence[str] = [
        f'{name} = {{ ssh = "{user}@127.0.0.1:{port}", identity = "{home / "id"}", '
        f'known_hosts = "{home / "known_hosts"}", config = "{home / "ssh_config"}"'
        + ("" if docker else ', docker = ""')
        + " }"
        for name, port in ports.items()
    ]
    return 'name = "bench"\noperator = "bench"\nproduction = false\n[hosts]\n' + "\n".join(rows) + "\n"
