"""The console over a fixed picture, started by the tests in a terminal of its own."""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("widgets", "screens", "pty")]

import pictures  # noqa: E402
from hostile import hostile_snapshot  # noqa: E402

from console import app as console_app  # noqa: E402
from console.snapshot import Snapshot  # noqa: E402


class ChildSource:
    """A fixed picture whose clock goes on by `step` seconds a tick for `ticks` ticks; notes what happens in a file."""

    def __init__(self, picture: Snapshot, notes: Path | None, step: float, ticks: int, hang: bool) -> None:
        self.picture = picture
        self.notes = notes
        self.step = step
        self.ticks = ticks
        self.hang = hang
        self.taken = 0

    def note(self, text: str) -> None:
        if self.notes is not None:
            with self.notes.open("a") as out:
                out.write(text + "\n")

    async def start(self) -> None:
        self.note("start")
        # The heavy libraries come only now, after the first paint.
        self.note("heavy " + " ".join(m for m in ("asyncssh", "httpx", "docker", "psutil") if m in sys.modules))

    async def stop(self) -> None:
        self.note("stop begins")
        await asyncio.sleep(3600 if self.hang else 0.05)
        self.note("stop ends")

    def snapshot(self) -> Snapshot:
        self.taken += 1
        gone = min(self.taken, self.ticks) * self.step
        if self.taken in (5, self.ticks):
            self.note(f"tick {self.taken}")
        return aged(self.picture, gone) if gone else self.picture

    def follow(self, lane: str, host: str) -> None:
        self.note(f"follow {lane} {host}")


def aged(base: Snapshot, gone: float) -> Snapshot:
    """The picture as a healthy fleet would give it later: every second a new reading of the same value."""
    whole = float(int(gone))
    hosts = tuple(
        replace(
            host,
            memory=replace(host.memory, taken_mono=(host.memory.taken_mono or 0) + whole),
            gpus=replace(host.gpus, taken_mono=(host.gpus.taken_mono or 0) + whole - whole % 5),
            containers=replace(host.containers, taken_mono=(host.containers.taken_mono or 0) + whole - whole % 5),
        )
        for host in base.hosts
    )
    lanes = tuple(
        replace(
            lane,
            throughput=replace(lane.throughput, taken_mono=(lane.throughput.taken_mono or 0) + whole),
            health=replace(lane.health, taken_mono=(lane.health.taken_mono or 0) + whole - whole % 10),
        )
        for lane in base.lanes
    )
    return replace(base, now=base.now + gone, wall=base.wall + gone, hosts=hosts, lanes=lanes)


def main() -> int:
    """Run until the terminal says quit, or a signal does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", default="spark4")
    parser.add_argument("--notes", type=Path)
    parser.add_argument("--step", type=float, default=0.0)
    parser.add_argument("--ticks", type=int, default=1)
    parser.add_argument("--tick", type=float, default=0.25)
    parser.add_argument("--stop-limit", type=float, default=10.0)
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--ascii", action="store_true")
    options = parser.parse_args()
    console_app.TICK = options.tick
    console_app.STOP_LIMIT = options.stop_limit
    picture = hostile_snapshot() if options.picture == "hostile" else pictures.PICTURES[options.picture]()
    source = ChildSource(picture, options.notes, options.step, options.ticks, options.hang)
    return console_app.run_console(source, ascii=options.ascii)


if __name__ == "__main__":
    sys.exit(main())
