"""Many ssh servers in one process that answer the sampler themselves: `python -m bench.crowd_server COUNT`.

One sampler process a host would be more than a small machine can run beside the console; so the frames are made here,
at 1 Hz with each server's own phase, out of simulated machines' files. stdin: the client's public key, then nothing
until it ends; stdout: one JSON line `{"ports": [...], "key": "..."}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncssh

from console.reach.local_texts import node_texts
from console.reach.sampler import LABEL
from console.readings.output import SHELL_LINE
from console.rehearsal.machine import Load, SimulatedMachine
from console.rehearsal.scenario import load_scenario

if TYPE_CHECKING:
    Process = asyncssh.SSHServerProcess[bytes]

_MARK = re.compile(rf"{LABEL} ([0-9a-f]+) ".encode())
EVERY = 1.0
GPU_EVERY = 5
STEPS = 64
"""Different answers of a machine; all hosts share them, so that a thousand cost this process little."""
CSV = "0, NVIDIA GB10, GPU-1, 580.173.02, [N/A], [N/A], 96, 58.00, [N/A], 71, 2411\n"


class _Server(asyncssh.SSHServer):
    """Lets in who shows the one key."""

    def __init__(self, client: asyncssh.SSHKey) -> None:
        self._client = client

    def public_key_auth_supported(self) -> bool:
        """Keys only."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """The operator's key."""
        return key.public_data == self._client.public_data


class Answers:
    """What every host says, as JSON already."""

    def __init__(self, texts: Mapping[str, str], csv: str) -> None:
        self._texts = texts
        self.nodes = [json.dumps({**texts, "meminfo": self._moved(step)}) for step in range(STEPS)]
        self.gpu = json.dumps({"csv": csv})

    def _moved(self, step: int) -> str:
        """Free memory and page cache move by a few MiB a second."""

        def shift(match: re.Match[str]) -> str:
            sign = -1 if match[1] == "MemFree" else 1
            return f"{match[1]}:{int(match[2]) + sign * 4096 * step:>16} kB"

        return re.sub(r"(MemFree|Cached):\s+(\d+) kB", shift, self._texts["meminfo"], count=2)


class Host:
    """One played host."""

    def __init__(self, number: int, answers: Answers) -> None:
        self.number = number
        self._answers = answers

    async def session(self, process: Process) -> None:
        """The sampler's dialogue: loader, flavour, frames; script and heartbeats are taken and not looked at."""
        if process.command != SHELL_LINE:
            process.exit(126)
            return
        said = b""
        while not (mark := _MARK.search(said)):
            data = await process.stdin.read(65536)
            if not data:
                return
            said += data
        process.stdout.write(b"\n" + mark[1] + b" python\n")
        frames = asyncio.create_task(self._frames(process, mark[1].decode()))
        try:
            while await process.stdin.read(65536):
                pass
        finally:
            frames.cancel()
            process.exit(0)

    async def _frames(self, process: Process, mark: str) -> None:
        numbers = {"facts": 0, "node": 0, "gpu": 0}

        def say(kind: str, texts: str) -> None:
            now = f"{time.monotonic():.3f}"
            head = f'{mark} {{"k":"{kind}","n":{numbers[kind]},"m":{now},"w":{time.time():.3f},"b":{now}'
            numbers[kind] += 1
            process.stdout.write(f'{head},"t":{texts}}}\n'.encode())

        names = {"hostname": f"crowd-{self.number}", "kernel": "6.17", "cpus": "20", "page_size": "4096"}
        say("facts", json.dumps(names))
        while True:
            say("node", self._answers.nodes[(self.number + numbers["node"]) % STEPS])
            if numbers["node"] % GPU_EVERY == 1:
                say("gpu", self._answers.gpu)
            await process.stdout.drain()
            await asyncio.sleep(EVERY)


def machine_texts(folder: Path) -> tuple[dict[str, str], str]:
    """What a sampler reads on one of the embedded fleet's hosts."""
    model = load_scenario("spark4").machines["spark-0"]
    machine = SimulatedMachine(folder, "crowd", model)
    machine.install()
    machine.step(1.0, Load(memory_gib=94.9, busy=True))
    return node_texts(str(folder)), CSV


async def serve(count: int) -> None:
    """Until stdin ends."""
    loop = asyncio.get_running_loop()
    stdin = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    client = asyncssh.import_public_key((await stdin.readline()).decode())
    key = asyncssh.generate_private_key("ssh-ed25519")
    with tempfile.TemporaryDirectory(prefix="laneswap-bench-crowd-") as folder:
        answers = Answers(*machine_texts(Path(folder)))
    servers: list[Any] = []
    for number in range(count):
        host = Host(number, answers)
        servers.append(
            await asyncssh.listen(
                "127.0.0.1",
                0,
                server_factory=lambda: _Server(client),
                server_host_keys=[key],
                process_factory=host.session,
                encoding=None,
                compression_algs=None,
                allow_pty=False,
            )
        )
    said = {"ports": [server.get_port() for server in servers], "key": key.export_public_key().decode().strip()}
    print(json.dumps(said), flush=True)
    while await stdin.read(4096):
        pass
    for server in servers:
        server.close()


def main() -> None:
    """Entry point of the process."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
