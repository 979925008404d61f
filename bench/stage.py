"""A fleet to watch: the embedded fleet, started beforehand, and the fleet file that an operator would have for it."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.fleet.inventory import Lane
from console.rehearsal import Rehearsal

ROOT = Path(__file__).resolve().parents[1]


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
            home, lane = Path(folder), rehearsal.fleet.lanes["dsv41"]
            places = {name: rehearsal.overrides[name] for name in lane.rank_hosts}
            write_key(home, places[lane.head]["client_keys"][0], b"".join(p["known_hosts"] for p in places.values()))
            fleet = home / "fleet.toml"
            hosts = {name: int(place["port"]) for name, place in places.items()}
            fleet.write_text(HEAD + host_rows(home, hosts, docker=True) + lane_rows(lane))
            yield Stage(home, fleet, rehearsal)


@asynccontextmanager
async def crowd(count: int) -> AsyncIterator[Stage]:
    """The four hosts with their engine, and with sampler-only hosts beside them `count` hosts in all."""
    async with four_hosts() as stage:
        lane = stage.rehearsal.fleet.lanes["dsv41"]
        key = stage.rehearsal.overrides[lane.head]["client_keys"][0]
        argv = [sys.executable, "-m", "bench.crowd_server", str(count - len(lane.rank_hosts))]
        process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE, cwd=ROOT)
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(key.export_public_key())
            async with asyncio.timeout(60):
                said = json.loads(await process.stdout.readline())
            hosts = {f"crowd-{number:03}": port for number, port in enumerate(said["ports"])}
            with (stage.home / "known_hosts").open("ab") as known:
                known.writelines(f"[127.0.0.1]:{port} {said['key']}\n".encode() for port in said["ports"])
            first = {name: int(stage.rehearsal.overrides[name]["port"]) for name in lane.rank_hosts}
            rows = host_rows(stage.home, first, docker=True) + host_rows(stage.home, hosts, docker=False)
            fleet = stage.home / "crowd.toml"
            fleet.write_text(HEAD + rows + lane_rows(lane))
            yield Stage(stage.home, fleet, stage.rehearsal)
        finally:
            process.stdin.close()
            async with asyncio.timeout(10):
                await process.wait()


def write_key(home: Path, key: Any, known: bytes) -> None:
    """The operator's key and known_hosts."""
    file = home / "id"
    file.touch(mode=0o600)
    file.write_bytes(key.export_private_key("openssh"))
    (home / "known_hosts").write_bytes(known)
    (home / "ssh_config").write_text("Host *\n  User ops\n")


HEAD = 'name = "bench"\noperator = "bench"\nproduction = false\n[hosts]\n'


def host_rows(home: Path, ports: Mapping[str, int], *, docker: bool) -> str:
    """Rows of [hosts] for ssh servers on loopback."""
    files = f'identity = "{home / "id"}", known_hosts = "{home / "known_hosts"}", config = "{home / "ssh_config"}"'
    more = "" if docker else ', docker = ""'
    return "".join(f'{name} = {{ ssh = "ops@127.0.0.1:{port}", {files}{more} }}\n' for name, port in ports.items())


def lane_rows(lane: Lane) -> str:
    """The lane's own table."""
    written = lane.model_dump(mode="json", exclude_defaults=True)
    return "\n[lanes.dsv41]\n" + "".join(f"{name} = {toml(value)}\n" for name, value in written.items())


def toml(value: Any) -> str:
    """A value as TOML has it, tables in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(name)} = {toml(item)}" for name, item in value.items()) + " }"
    return json.dumps(value)
