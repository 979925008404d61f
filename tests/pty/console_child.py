"""The console over a fixed picture, started by the tests in a terminal of its own."""

from __future__ import annotations

import argparse
import asyncio
import math
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("widgets", "screens", "pty")]

import pictures  # noqa: E402
import strips  # noqa: E402
from hostile import hostile_reads, hostile_snapshot  # noqa: E402
from textual.drivers._writer_thread import WriterThread  # noqa: E402

from console import app as console_app  # noqa: E402
from console.actions import strip  # noqa: E402
from console.readings.quality import Reading  # noqa: E402
from console.snapshot import Snapshot  # noqa: E402

T = TypeVar("T")
SITUATIONS = {"window": strips.IN_WINDOW, "no-window": strips.NO_WINDOW, "break-glass": strips.GLASS}
PICTURES = {
    **pictures.PICTURES,
    "under-way": strips.under_way,
    "hostile": hostile_snapshot,
    "hostile-reads": hostile_reads,
}


class ChildSource:
    """A fixed picture whose clock goes on by `step` seconds a tick for `ticks` ticks; notes what happens in a file."""

    def __init__(
        self, picture: Snapshot, notes: Path | None, step: float, ticks: int, hang: bool, linger: bool
    ) -> None:
        self.picture = picture
        self.notes = notes
        self.step = step
        self.ticks = ticks
        self.hang = hang
        self.linger = linger
        self.taken = 0
        self.turn = math.inf
        """Seconds of the picture's own time after which memory runs low."""

    def note(self, text: str) -> None:
        if self.notes is not None:
            with self.notes.open("a") as out:
                out.write(text + "\n")

    async def start(self) -> None:
        self.note("start")
        if self.linger:
            asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)
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
        picture = self.turned(gone)
        return aged(picture, gone) if gone else picture

    def turned(self, gone: float) -> Snapshot:
        """With `turn`: n3 is low on memory from then on, n1 too a second later."""
        hosts = list(self.picture.hosts)
        for number, after in ((2, self.turn), (0, self.turn + 1.0)):
            if gone >= after:
                hosts[number] = replace(hosts[number], memory=pictures.reading(pictures.memory(2.9, 62.0, 61.0)))
        return replace(self.picture, hosts=tuple(hosts))

    def follow(self, lane: str, host: str) -> None:
        self.note(f"follow {lane} {host}")


def aged(base: Snapshot, gone: float) -> Snapshot:
    """The picture as a healthy fleet would give it later: every second a new reading of the same value."""
    hosts = tuple(
        replace(
            host,
            memory=again(host.memory, gone, 1),
            gpus=again(host.gpus, gone, 5),
            containers=again(host.containers, gone, 5),
        )
        for host in base.hosts
    )
    lanes = tuple(
        replace(lane, throughput=again(lane.throughput, gone, 1), health=again(lane.health, gone, 10))
        for lane in base.lanes
    )
    return replace(base, now=base.now + gone, wall=base.wall + gone, hosts=hosts, lanes=lanes)


def again(reading: Reading[T], gone: float, every: float) -> Reading[T]:
    """The same value read again, at the last whole interval."""
    if reading.taken_mono is None or reading.taken_wall is None:
        return reading
    later = gone - gone % every
    return replace(reading, taken_mono=reading.taken_mono + later, taken_wall=reading.taken_wall + later)


def continued_while_writing() -> None:
    """After SIGUSR1 the next write is interrupted by SIGCONT while it holds the lock of the writer's queue."""
    wanted: list[int] = []
    write = WriterThread.write

    def interrupted(writer: WriterThread, text: str) -> None:
        if wanted:
            wanted.clear()
            with writer._queue.mutex:
                signal.raise_signal(signal.SIGCONT)
        write(writer, text)

    WriterThread.write = interrupted  # type: ignore[method-assign]
    signal.signal(signal.SIGUSR1, lambda number, _: wanted.append(number))


def main() -> int:
    """Run until the terminal says quit, or a signal does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", default="spark4")
    parser.add_argument("--notes", type=Path)
    parser.add_argument("--step", type=float, default=0.0)
    parser.add_argument("--ticks", type=int, default=1)
    parser.add_argument("--tick", type=float, default=0.25)
    parser.add_argument("--stop-limit", type=float, default=10.0)
    parser.add_argument("--turn", type=float, default=math.inf)
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--linger", action="store_true")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--acts", type=Path, help="act, by hands that write what they were asked to do into this file")
    parser.add_argument("--situation", choices=sorted(SITUATIONS), default="window")
    parser.add_argument("--carries", default="", help="the lane whose operation runs in this console")
    parser.add_argument("--stall", action="store_true", help="SIGUSR1 holds the loop up for 1.5 s")
    parser.add_argument("--continued", action="store_true", help="SIGUSR1 has the next write interrupted by SIGCONT")
    parser.add_argument("--patient", action="store_true", help="the screen may stand still for a minute")
    options = parser.parse_args()
    console_app.TICK = options.tick
    console_app.STOP_LIMIT = options.stop_limit
    picture = PICTURES[options.picture]()
    source = ChildSource(picture, options.notes, options.step, options.ticks, options.hang, options.linger)
    source.turn = options.turn
    hands = strips.FakeHands(SITUATIONS[options.situation], options.acts) if options.acts is not None else None
    if hands is not None:
        hands.started = lambda: source.note("hands")
        hands.carried = (options.carries,) if options.carries else ()
    if options.patient:
        strip.GAP_S = 60.0
    if options.stall:
        signal.signal(signal.SIGUSR1, lambda *_: time.sleep(1.5))
    if options.continued:
        continued_while_writing()
    return console_app.run_console(source, ascii=options.ascii, hands=hands)


if __name__ == "__main__":
    sys.exit(main())
