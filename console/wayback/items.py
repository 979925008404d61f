"""What a way back consists of, and the items that both kinds have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from console import format as fmt
from console.readings.answers import Transport
from console.readings.containers import Container
from console.readings.quality import Reading
from console.snapshot import LaneView, Snapshot

LATER = "a later action will prove it"
LONG_AGO = "when it was last read"
"""What follows a failure that nobody can look at again now."""
STOP_S = 20.0
"""Seconds that an engine takes to end: an estimate, no stop of this lane was timed."""


class Word(StrEnum):
    """How far an item of a way back is known to hold."""

    OK = "OK"
    STALE = "STALE"
    """It held when it was last read, which is too long ago."""
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"
    """Nobody read it."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a way back rests on; texts are safe."""

    name: str
    word: Word
    text: str
    age: float | None
    """Seconds since the oldest reading behind it; None where nothing was read."""
    shuts: bool = False
    """A failure that makes this way impossible; other failures make it slower or less sure."""


@dataclass(frozen=True, slots=True)
class WayBack:
    """One lane's way back."""

    possible: bool | None
    """False where an item shuts it, None where what it rests on was not read."""
    revision: str
    """Where it leads; '' if that is not known."""
    by: str
    """`container`: one that was kept is started again; `site`: the site file is edited and the lane relaunched."""
    items: tuple[Item, ...]
    parts: tuple[tuple[str, float], ...]
    """(`stop`, `rows`, `boot`; seconds), in order. Estimates; without `boot` where nothing tells how long it takes."""
    total: float | None
    """Seconds until the lane serves again; None where the boot's time is not known."""
    why: str = ""
    """Why there is none; else which target was chosen and by what."""
    subject: str = ""
    """Name of the container that is started again."""
    container: str = ""
    """Its id."""
    slow: tuple[tuple[str, float], ...] = ()
    """(host, seconds) of row copies that can only be built at the stop."""
    boot_basis: str = ""
    """Where the boot's time comes from: `median of 3 boots`, `the recipe's usual`."""
    last_deed: tuple[float, float] | None = None
    """(Unix seconds of its end, seconds it took) when it was last done; None while nothing records it."""


def lamp_words(way: WayBack) -> str:
    """`BACK ≈8m10s to c0ffee1`, `BACK ≈17m35s (n3 rows 8m)`, `NO WAY BACK: container removed`, `UNKNOWN`."""
    if way.possible is None:
        return "UNKNOWN"
    if not way.possible:
        return f"NO WAY BACK: {way.why}"
    time = f" ≈{fmt.duration(way.total)}" if way.total is not None else ""
    if way.slow:
        host, seconds = max(way.slow, key=lambda item: item[1])
        return f"BACK{time} ({host} rows {round(seconds / 60)}m)"
    return f"BACK{time} to {fmt.revision(way.revision)}"


def graded(name: str, word: Word, text: str, reading: Reading[Any], now: float, *, shuts: bool = False) -> Item:
    """An item as good as its reading: what is no longer current is STALE where it held, no proof where it failed."""
    if reading.current(now) is None and word is not Word.UNKNOWN:
        if word is Word.FAIL:
            return Item(name, Word.UNKNOWN, f"{text}, {LONG_AGO}", reading.age(now))
        return Item(name, Word.STALE, text, reading.age(now))
    return Item(name, word, text, reading.age(now), shuts and word is Word.FAIL)


def verdict(items: Sequence[Item], first: str) -> tuple[bool | None, str]:
    """Whether the way is open, by its items: the one named `first` is what it rests on. With the reason if not."""
    shut = next((item for item in items if item.shuts), None)
    if shut is not None:
        return False, shut.text
    base = next((item for item in items if item.name == first), None)
    if base is None or base.word is Word.UNKNOWN:
        return None, base.text if base else ""
    return True, ""


def boot_time(lane: LaneView, revision: str) -> tuple[float | None, str]:
    """Seconds of a boot and where they come from: this lane's own boots, of that revision if there are any."""
    own = [record.total for record in lane.boots if revision and record.revision == revision]
    totals = own or [record.total for record in lane.boots]
    if totals:
        of = f" of {fmt.revision(revision)}" if own else ""
        return median(totals), f"median of {len(totals)} boot{'s' if len(totals) > 1 else ''}{of}"
    if lane.lane.usual_boot_s is not None:
        return lane.lane.usual_boot_s, "the recipe's usual"
    return None, ""


def timed(stop: float, rows: float, boot: float | None) -> tuple[tuple[tuple[str, float], ...], float | None]:
    """The parts of a way back that take time, and their sum."""
    parts = [(name, seconds) for name, seconds in (("stop", stop), ("rows", rows)) if seconds]
    if boot is None:
        return tuple(parts), None
    parts.append(("boot", boot))
    return tuple(parts), sum(seconds for _, seconds in parts)


def last_deed(lane: LaneView) -> tuple[float, float] | None:
    """When a way back was last gone, and how long it took."""
    newest = max(lane.deeds, key=lambda deed: deed.began, default=None)
    return None if newest is None else (newest.began + newest.took, newest.took)


def frozen_target(snapshot: Snapshot, lane: LaneView) -> str:
    """Where the open window says that `B` leads, in a plan's words: `NAME 0123456`, a revision or an id, or ''."""
    acting = None if lane.acting is None else lane.acting.current(snapshot.now)
    return acting.window.target if acting is not None and acting.window is not None else ""


def gpu_item(snapshot: Snapshot, hosts: Sequence[str]) -> Item | None:
    """Whether the GPUs answer; None where no host ever told of one."""
    views = [snapshot.host(name) for name in hosts]
    told = [view for view in views if view.gpus.value]
    if not told:
        return None
    for view in told:
        for gpu in view.gpus.current(snapshot.now) or ():
            if gpu.faults:
                text = f"{view.name} GPU {gpu.index}: {', '.join(gpu.faults)}"
                return graded("gpu", Word.FAIL, text, view.gpus, snapshot.now)
    oldest = max(told, key=lambda view: view.gpus.age(snapshot.now) or 0.0)
    failed = next((view for view in views if view.gpus.error), None)
    if failed is not None:
        return Item("gpu", Word.UNKNOWN, f"{failed.name}: {failed.gpus.error}", failed.gpus.age(snapshot.now))
    count = sum(len(view.gpus.value or ()) for view in told)
    on = f" on {len(told)} of {len(views)} hosts" if len(views) > 1 else ""
    text = f"{count} GPU{'s' if count > 1 else ''}{on} answer, without a fault"
    return graded("gpu", Word.OK, text, oldest.gpus, snapshot.now)


def port_item(snapshot: Snapshot, lane: LaneView, serving: Container | None, others: Sequence[Container]) -> Item:
    """Whether the lane's port will be free: held by the lane itself, or by nobody."""
    port = lane.lane.port
    reading = snapshot.host(lane.lane.head).containers
    taken = [item for item in others if item.up and port in item.ports and (serving is None or item.id != serving.id)]
    if taken:
        return graded("port", Word.FAIL, f"{port} is held by {taken[0].name}", reading, snapshot.now)
    if serving is not None and serving.up:
        return graded("port", Word.OK, f"{port} is held by the lane itself, free after its stop", reading, snapshot.now)
    answer = lane.health.current(snapshot.now)
    if answer is not None and answer.transport is Transport.REFUSED:
        return graded("port", Word.OK, f"nobody listens on {port}", lane.health, snapshot.now)
    return Item("port", Word.UNKNOWN, f"who listens on {port} was not read", None)


def consumers_item(lane: LaneView, serving: Container | None, retired: Container | None) -> Item | None:
    """Whether those who use the lane find it again under its name and port; None where none are named."""
    if not lane.lane.consumers:
        return None
    who = ", ".join(lane.lane.consumers)
    if retired is None:
        return Item("consumers", Word.UNKNOWN, f"{who}: the name that it serves is not changed by the site file", None)
    asked = serving.served_name if serving is not None and serving.served_name else lane.lane.served
    if not asked or not retired.served_name:
        return Item("consumers", Word.UNKNOWN, f"{who}: the name that it serves is not known", None)
    if retired.served_name != asked:
        return Item("consumers", Word.FAIL, f"{who} ask for {asked}; it serves {retired.served_name}", None)
    return Item("consumers", Word.OK, f"{who}: same name", None)
