"""The feed without a screen: `python -m bench.headless_feed FLEET SECONDS`.

Reads the fleet as `laneswap status` does, makes a document once a second for SECONDS after everything has been read,
and prints one JSON line: seconds until everything was read, CPU in % of a core, RSS in MB, the longest stall of the
loop in ms, the most handshakes at once, and ms for one document.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from statistics import median

from bench.stall import Stall
from console.document import document
from console.feed import Feed
from console.fleet.inventory import load
from console.headless import settled

LIMIT = 180.0


def cpu_seconds() -> float:
    """CPU time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rss() -> float:
    """Resident memory, MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


async def measure(fleet: Path, seconds: float) -> dict[str, float]:
    """See above. Raises TimeoutError where not everything is read within LIMIT."""
    began = time.monotonic()
    feed = Feed(load(fleet))
    try:
        await feed.start()
        async with asyncio.timeout(LIMIT):
            while not settled(feed.snapshot()):  # noqa: ASYNC110 - a snapshot has no event
                await asyncio.sleep(0.25)
        everything = time.monotonic() - began
        began, cpu, spans = time.monotonic(), cpu_seconds(), []
        async with Stall() as stall:
            while time.monotonic() - began < seconds:
                at = time.perf_counter()
                json.dumps(document(feed.snapshot()))
                spans.append(1000 * (time.perf_counter() - at))
                await asyncio.sleep(1.0)
        used = 100 * (cpu_seconds() - cpu) / (time.monotonic() - began)
        return {
            "all": everything,
            "cpu": used,
            "rss": rss(),
            "stall": stall.longest,
            "handshakes": feed.limits.highest,
            "document": median(spans),
        }
    finally:
        await feed.stop()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1]), float(sys.argv[2])))), flush=True)
