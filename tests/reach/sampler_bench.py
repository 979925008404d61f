"""Runs the sampler in a real shell, without ssh: what the host sees, down to its last process."""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import shutil
import signal
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from console.fleet.inventory import Rates
from console.reach.framing import FrameReader
from console.reach.limits import Timings
from console.reach.link import Frame
from console.reach.looking import Looking
from console.reach.sampler import loader, script

MEMINFO = "MemTotal:       127600748 kB\nMemFree:         3145728 kB\nMemAvailable:   99614720 kB\nDirty:   128 kB\n"
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"

SHELLS = {
    "python": ["/bin/sh"],
    "dash": ["/bin/dash"],
    "bash": ["/bin/bash", "--posix"],
    "busybox": [shutil.which("busybox") or "", "ash"],
}
FLAVOURS = [name for name, argv in SHELLS.items() if os.access(argv[0], os.X_OK)]
"""`python` is the script for python3; the others are the sh script under that shell. busybox where it is installed."""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def program(path: Path, text: str) -> None:
    write(path, text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def machine(root: Path) -> None:
    """The files of a small machine with two NUMA nodes, one of them empty."""
    write(root / "proc/meminfo", MEMINFO)
    write(root / "proc/pressure/memory", PRESSURE)
    write(root / "proc/sys/kernel/hostname", "spark-2\n")
    write(root / "proc/sys/kernel/osrelease", "6.11.0-1016-nvidia\n")
    write(root / "proc/sys/kernel/random/boot_id", "6c9e0d3e-0000-4000-8000-000000000001\n")
    write(root / "sys/devices/system/cpu/online", "0-15,20\n")
    for node, total in ((0, 4096), (1, 0)):
        folder = root / f"sys/devices/system/node/node{node}"
        write(folder / "cpulist", "0-19\n" if node == 0 else "\n")
        write(folder / "meminfo", f"Node {node} MemTotal:       {total} kB\nNode {node} MemFree:        {total} kB\n")


class Bench:
    """One sampler on pipes. `flavour` is one of FLAVOURS."""

    def __init__(
        self, folder: Path, flavour: str, *, rates: Rates | None = None, timings: Timings | None = None
    ) -> None:
        self.flavour = flavour
        self.root = folder / "root"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.path = ""
        """Goes before everything else on PATH."""
        machine(self.root)
        if flavour != "python":
            program(
                self.bin / "python3", "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'select'\" >&2\nexit 1\n"
            )
        self.rates = rates or Rates(node=0.2, gpu=1)
        self.timings = timings or Timings(beat_limit=30.0, slow_after=1.0, slow_limit=2.0)
        self.tag = secrets.token_hex(8)
        self.mark = secrets.token_hex(8)
        self.looking = Looking()
        self.reader = FrameReader(self.mark, self.looking)
        self.frames: list[Frame] = []
        self.child: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Bench:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.child is not None:
            self.child._transport.close()  # type: ignore[attr-defined]
            await self.child.wait()

    async def start(self, *, read: bool = True, send: bool = True) -> None:
        shell = SHELLS[self.flavour]
        self.child = await asyncio.create_subprocess_exec(
            *shell,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            cwd=self.root,
            env={
                "PATH": ":".join(filter(None, (self.path, str(self.bin), os.environ["PATH"]))),
                "HOME": str(self.root),
                "LANESWAP_SAMPLER_ROOT": str(self.root),
                "LANESWAP_TEST": self.tag,
            },
            limit=1 << 12,
        )
        text = loader(self.mark, self.rates, self.timings)
        if self.flavour not in ("python", "dash"):
            text = text.replace("exec /bin/sh", f"exec {' '.join(shell)}")
        self.write(text)
        while not self.reader.flavour:
            await self.read_once()
        assert self.reader.flavour == ("python" if self.flavour == "python" else "sh")
        if send:
            self.write(script(self.reader.flavour))
        if read:
            self._reading = asyncio.create_task(self._read())

    def write(self, text: str) -> None:
        assert self.child is not None
        assert self.child.stdin is not None
        self.child.stdin.write(text.encode())

    def end_of_stdin(self) -> None:
        assert self.child is not None
        assert self.child.stdin is not None
        self.child.stdin.close()

    async def read_once(self) -> bool:
        assert self.child is not None
        assert self.child.stdout is not None
        data = await self.child.stdout.read(65536)
        self.reader.feed(data, time.monotonic())
        self.frames += self.reader.take()
        if self.frames and self.looking.send is None:
            self.looking.send = lambda data: self.write(data.decode())
            self.looking.tell()
        return bool(data)

    async def _read(self) -> None:
        while await self.read_once():
            pass

    def resume(self) -> None:
        """Begin to read what was left unread."""
        self._reading = asyncio.create_task(self._read())

    def kinds(self, kind: str) -> list[Frame]:
        return [frame for frame in self.frames if frame.kind == kind]

    def processes(self) -> list[int]:
        """Every process that this sampler or its children started and that has not ended."""
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if self._is_ours(entry)]

    def _is_ours(self, entry: Path) -> bool:
        try:
            environ = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return f"LANESWAP_TEST={self.tag}".encode() in environ.split(b"\0") and state != "Z"


async def until(condition: Callable[[], object], what: str, limit: float = 60.0) -> None:
    """Wait until the condition holds; a bound, not a measurement."""
    end = asyncio.get_running_loop().time() + limit
    while not condition():
        assert asyncio.get_running_loop().time() < end, f"never came about: {what}"
        await asyncio.sleep(0.05)


def counts(values: Sequence[int]) -> bool:
    """Whether they grow by one each."""
    return all(after == before + 1 for before, after in itertools.pairwise(values))
