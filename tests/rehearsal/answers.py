"""What an operator reads of each shipped scenario, at every size and in every mode, without a key pressed."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from itertools import product

import screenful
import told

from console.snapshot import Snapshot
from screens.lanes import worst_lane
from widgets.theme import COLOURS, palette_for

SIZES = screenful.SIZES
MODES = ((False, False), (True, False), (False, True), (True, True))
"""ASCII glyphs, NO_COLOR."""

# What must be read at 80x24 as well as at 200x60, without a key: words of a lamp, of the alarm line or of a pane.
ANSWERS: dict[str, tuple[str, ...]] = {
    "spark4": ("tok/s", "no alarms", "ARMED"),
    "station": ("tok/s", "no alarms", r"NONE \(unless-stopped\)", "BACK"),
    "cluster4": ("tok/s", "no alarms", "ARMED", "1bae0e1 by the site file"),
    "counter-reset": ("tok/s", "no alarms", "counters started again"),
    "boot": ("BOOT 0m", "of 0m14s", "no alarms"),
    "boot-autotune-missed": ("BOOT", "autotune", "station"),
    "boot-late": ("▲ BOOT|BOOT", "boot takes|free"),
    "boot-oom": ("DOWN", "out of GPU memory", "exited 1"),
    "boot-stock": ("BOOT FAILS", "stock engine"),
    "boot-tiling": ("DOWN", "NO TILING", "exited 1"),
    "dangling-link": ("CRIT", "spark-1: 1bae0e1: 1 file leads nowhere"),
    "disk-full": ("spark-3 disk: 0.4 GiB free",),
    "download-cap-not-in-force": ("LOOK", "memory cap of 4.00 GiB", "is not"),
    "download-done": ("48 of 48 shards", "DONE"),
    "download-interrupted": ("44 of 48 shards", "no alarms|download"),
    "download-oom": ("FAILED: MEMORY CAP", "download failed: memory cap"),
    "download-stalled": ("STALLED", "no new byte on disk"),
    "download-two": ("2 downloads run",),
    "download-waiting": ("NO NEW BYTE",),
    "drift-clock": ("ranks differ in clock: spark-2", r"\+9[45]"),
    "drift-env": ("ranks differ in", "--chunked-prefill-size: spark-2 512"),
    "drift-gpu-latch": ("ranks differ in GPU clock: spark-1",),
    "drift-image": ("ranks differ in image", "spark-2"),
    "drift-mount": ("spark-1", "1bae0e1 is not in the checkpoint's folder|missing", "NO WAY BACK"),
    "drill-bind-replaced": ("LOOK", "bind sources", "way back no longer sure"),
    "drill-exits-at-once": ("tok/s", "no alarms", "BACK"),
    "drill-head-deaf": ("tok/s", "no alarms", "ARMED"),
    "drill-head-full": ("tok/s", "ARMED"),
    "drill-head-reboots": ("tok/s", "no alarms", "ARMED"),
    "drill-host-lost": ("tok/s", "no alarms", "ARMED"),
    "drill-image-removed": ("tok/s", "no alarms", "BACK"),
    "drill-lease-held": ("tok/s", "no alarms", "no window +(by )?ben"),
    "drill-port-taken": ("tok/s", "no alarms", "BACK"),
    "drill-preflight": ("LOOK", "ranks differ in row copy: spark-1", "tok/s", "spark-1 waits"),
    "drill-relaunch-underneath": ("BOOT", "foreign: container sgldsv41", "OFF"),
    "drill-stop-hangs": ("tok/s", "no alarms", "BACK"),
    "drill-stop-underneath": ("tok/s", "no alarms", "BACK"),
    "drill-watchdog-fires": ("tok/s", "no alarms", "ARMED"),
    "drill-worker-dies": ("tok/s", "no alarms", "ARMED"),
    "engine-503": ("DRAINING|DOWN", "503"),
    "engine-dead": ("DOWN", "spark-0 exited 1"),
    "engine-empty": ("UP, BLIND", "empty"),
    "engine-html": ("DOWN", "200 with an HTML page"),
    "engine-hung": ("STALLED", "3 running", "health says 200"),
    "engine-other": ("other engine|another engine",),
    "engine-silent": ("STALLED|DEGRADED", "timed out|timeout"),
    "engine-truncated": ("UP, BLIND", "truncated"),
    "front-down": ("CRIT", "front http://", "the engine is well"),
    "host-gone": ("spark-1 unreachable|UNREACHABLE", "not all ranks"),
    "host-reboots": ("spark-2 unreachable|UNREACHABLE",),
    "image-moved": ("spark-0 sgldsv41: the tag",),
    "memory-low": ("spark-2 free 2.9 of 119.7 GiB", "stop copy or drop cache"),
    "mount-hangs": ("ranks differ in snapshot: spark-1 no answer",),
    "prepare": ("44 of 48 shards", "NO ROOM", "spark-0"),
    "prune-risk": (
        "INFO",
        "`hf cache prune` would delete 1bae0e1",
    ),
    "retired-always": ("restart FAIL|restart STALE",),
    "retired-gone": ("NO WAY BACK",),
    "rows-holes": ("spark-1 row copy: holes", "HOLES"),
    "rows-rebuilt": ("row copy: manifest older than its data|COPYING|copying|%",),
    "rows-stale": ("rows of df42c10", "spark-2 row copy: old revision df42c10", "OLD REVISION"),
    "rows-stop": ("spark-0", "no new byte|NO NEW BYTE|%"),
    "rows-wrong-partition": ("row copy: other ranges", "NO TILING"),
    "rows-wrong-rank": ("row copy: ", "ANOTHER RANK'S SLICE|NO TILING"),
    "shared-blobs": ("spark-0", "59 files lead nowhere"),
    "site-changed": ("site file df42c10", "1bae0e1"),
    "upstream-moved": ("44 of 48 shards",),
    "watchdog-busy": ("ARMED, BUSY",),
    "watchdog-dead": ("DEAD LOCK", "watchdog dead lock, not protecting"),
    "watchdog-flag": ("GAVE UP",),
    "watchdog-gaveup": ("GAVE UP", "DOWN"),
    "watchdog-paused": ("PAUSED", "ben"),
    "watchdog-pid-reused": ("PID REUSED",),
    "watchdog-recovery": ("IN RECOVERY",),
    "watchdog-stopped": ("OFF",),
    "watchdog-two": ("TWO OF THEM",),
    "watchdog-unit-failed": ("UNIT FAILED",),
    "watchdog-unknown": ("WATCHDOG", "UNKNOWN"),
    "worker-dead": ("spark-2 exited 137", "DEGRADED"),
}
"""Regular expressions, by scenario."""
SETTLES = 20.0
"""Seconds in which the other readings have to follow the one that tells the point."""
CALM = ("spark4", "station", "cluster4")
"""Where nothing is wrong nothing is orange or red."""

GROUPS: dict[str, tuple[str, ...]] = {
    "engine": ("boot", "counter", "engine", "front", "memory", "worker", "spark4", "station", "cluster4"),
    "files": ("dangling", "disk", "drift", "mount", "prune", "rows", "shared", "site"),
    "fetching": ("download", "prepare", "upstream"),
    "drills": ("drill",),
    "hosts": ("host", "image", "retired", "watchdog"),
}
"""Beginnings of names: each group has a file of its own, so that four processes share them."""


def of_group(name: str) -> list[str]:
    """The scenarios of one group, in the order of ANSWERS."""
    return [scenario for scenario in ANSWERS if scenario.startswith(GROUPS[name])]


def check(
    scenario: str,
    snapshot: Snapshot,
    sizes: Sequence[tuple[int, int]] = SIZES,
    modes: Sequence[tuple[bool, bool]] = MODES,
) -> list[str]:
    """What is missing or wrong in the drawings of one picture."""
    wrong: list[str] = []
    for (columns, rows), (ascii_only, no_colour) in product(sizes, modes):
        shown = screenful.look_at(snapshot, columns, rows, ascii=ascii_only, no_colour=no_colour)
        drawn = screenful.draw(shown, columns, rows)
        where = f"{scenario} at {columns}x{rows}{' ascii' * ascii_only}{' NO_COLOR' * no_colour}"
        text = drawn.text
        wrong += [
            f"{where}: not on screen: {words}\n{text}" for words in ANSWERS[scenario] if not re.search(words, text)
        ]
        if "cannot be drawn" in text:
            wrong.append(f"{where}: a pane cannot be drawn\n{text}")
        if ascii_only and not text.isascii():
            wrong.append(f"{where}: {sorted({char for char in text if not char.isascii()})}")
        if scenario in CALM:
            # A machine under load is late, and says so in ages and events.
            quiet = [span for span in drawn.spans_of("events") if not span.age]
            loud = {span.text.strip() for span in quiet if {span.ink.fg, span.ink.bg} & {"look", "act"}}
            wrong += [f"{where}: {sorted(loud)} is loud where nothing is wrong"] if loud - {""} else []
        inks = {span.ink for span in drawn.spans}
        for theme in COLOURS:
            palette = palette_for(theme, no_colour)
            assert all(palette.style(ink) is not None for ink in inks)
    return wrong


async def read(scenario: str) -> list[str]:
    """Run a scenario, live, until its point is there, and draw it. What is missing or wrong on screen."""
    async with told.played(scenario) as feed:
        snapshot = await told.told(scenario, feed)
        worst = snapshot.lane(worst_lane(snapshot))
        feed.follow(worst.name, worst.lane.head)
        end = time.monotonic() + SETTLES
        while (wrong := check(scenario, snapshot, SIZES[:2], MODES[:1])) and time.monotonic() < end:
            await asyncio.sleep(0.2)
            snapshot = feed.snapshot()
    return wrong or check(scenario, snapshot)
