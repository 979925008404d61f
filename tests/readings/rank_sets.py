"""Four ranks as a published launcher starts them, for the tests of what differs between ranks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from console.readings.containers import Container, parse_inspect
from console.readings.drift import RankFacts
from console.readings.hubcache import SnapshotFiles
from console.readings.rows import RowCopy, RowState

FLEET = Path(__file__).parents[1] / "data" / "fleet"
REVISION = "0123456789abcdef0123456789abcdef01234567"
HOSTS = ("spark-0", "spark-1", "spark-2", "spark-3")
IMAGE_ID = "sha256:" + "5b" * 32


def launch_lines() -> list[str]:
    """The launcher's own four `docker run` lines."""
    text = (FLEET / "dry-run.current.rendered.txt").read_text()
    return [row.partition("; ")[2] for row in text.splitlines() if row.startswith("mkdir")]


def inspected(command: str, **changes: Any) -> dict[str, Any]:
    """What `docker inspect` would say of the container that this `docker run` starts."""
    words = shlex.split(command)
    options: dict[str, list[str]] = {}
    index = 2
    while words[index].startswith("-"):
        if words[index] == "-d":
            index += 1
            continue
        options.setdefault(words[index], []).append(words[index + 1])
        index += 2
    image, *args = words[index:]
    mounts = [re.split(":", volume) for volume in options["-v"]]
    return {
        "Id": "ab" * 32,
        "Name": "/" + options["--name"][0],
        "Image": IMAGE_ID,
        "Path": options["--entrypoint"][0],
        "Args": args,
        "State": {"Status": "running", "StartedAt": "2026-10-18T02:11:09Z", "Pid": 7},
        "HostConfig": {"NetworkMode": "host", "RestartPolicy": {"Name": "no"}},
        "Mounts": [{"Source": part[0], "Destination": part[1], "RW": part[-1] != "ro"} for part in mounts],
        "Config": {"Image": image, "Env": ["PATH=/usr/bin", *options["-e"]], "Labels": {}},
        **changes,
    }


def containers() -> list[Container]:
    """The four containers."""
    return [parse_inspect(inspected(command)) for command in launch_lines()]


def snapshot(**changes: Any) -> SnapshotFiles:
    """A whole snapshot of 88 files."""
    sizes = {f"model-{n:05}-of-00048.safetensors": 10_000_000_000 + n for n in range(1, 49)}
    values: dict[str, Any] = {
        "revision": REVISION,
        "entries": 88,
        "resolvable": 88,
        "dangling": (),
        "outside": (),
        "present": sum(sizes.values()),
        "shards_done": 48,
        "shards_total": 48,
        "sizes": sizes,
    }
    return SnapshotFiles(**{**values, **changes})


def ranks() -> list[RankFacts]:
    """Four ranks that serve and agree; rank 1 holds the checkpoint, rank 2 has another GID index."""
    found = []
    for rank, (host, container) in enumerate(zip(HOSTS, containers(), strict=True)):
        state = RowState.SHARDS if rank == 1 else RowState.READY
        found.append(
            RankFacts(
                host=host,
                container=container,
                driver="580.95.05",
                kernel="6.14.0-1013-nvidia",
                clock=(0.1, 0.0, -0.2, 0.1)[rank],
                snapshot=snapshot(),
                rows=RowCopy(rank, host, "/rows", state, state.value),
                gpu_mhz=(2411.0, 2405.0, 2398.0, 2411.0)[rank],
                gpu_watts=(58.0, 57.0, 58.0, 58.0)[rank],
                gpu_busy=97.0,
            )
        )
    return found
