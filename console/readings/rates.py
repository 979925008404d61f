"""How far counters moved between scrapes: resets handled per series, then summed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from console.readings.exposition import Labels
from console.readings.scrape import Scrape
from console.readings.series import CREATED, PROCESS_START, Names, Series, present, scope, total, values

WINDOW_S = 10.0
"""Longest window of a rate, seconds: single pairs of scrapes scatter by 30 % at constant load, 5 to 10 s do not."""

QUIET_S = 3.0
"""Seconds without a token, or without any step, after which the past rate no longer says what goes on."""


@dataclass(frozen=True, slots=True)
class Increase:
    """How far one counter moved, summed over its series."""

    amount: float
    seconds: float
    """Between the first and the last scrape that hold the counter; more than 0."""
    resets: int
    """Falls seen in any one series."""
    since: float | None = None
    """Time of the first scrape after the last restart among them; None without one."""

    @property
    def per_second(self) -> float:
        """The rate."""
        return self.amount / self.seconds


def window(scrapes: Sequence[Scrape], longest: float = WINDOW_S) -> Sequence[Scrape]:
    """The scrapes of the last `longest` seconds; at least the last two, so that a missed scrape widens the window."""
    first = len(scrapes) - 1
    while first > 0 and scrapes[-1].at - scrapes[first - 1].at <= longest:
        first -= 1
    return scrapes[min(first, max(0, len(scrapes) - 2)) :]


def new_process(before: Scrape, after: Scrape) -> bool:
    """The process says that it started anew between two scrapes; False where it says nothing."""
    pairs = zip(_started(before), _started(after), strict=True)
    return any(old is not None and new is not None and abs(new - old) > 1.0 for old, new in pairs)


def _started(scrape: Scrape) -> tuple[float | None, ...]:
    if "started" not in scrape.memo:
        scrape.memo["started"] = tuple(total(scrape.index, names) for names in ((PROCESS_START,), CREATED))
    found: tuple[float | None, ...] = scrape.memo["started"]
    return found


def _values(scrape: Scrape, name: str | None, only: dict[str, str]) -> Series:
    """`values`, kept: a scrape stays in the window for ten seconds, and each of them asks for the same counters."""
    kept: dict[tuple[str | None, ...], Series] = scrape.memo.setdefault("values", {})
    key = (name, *only, *only.values())
    if key not in kept:
        kept[key] = values(scrape.index, name, **only)
    return kept[key]


def forget(scrapes: Sequence[Scrape]) -> None:
    """Let go of what was kept of scrapes that lie behind the window, newest last."""
    for item in reversed(scrapes):
        if item.memo.pop("values", None) is None:
            return


def increase(scrapes: Sequence[Scrape], names: Names | str, **only: str) -> Increase | None:
    """How far the first alias present in the newest scrape moved; None without two scrapes that hold it.

    A series that fell started again at 0, so its new value is its movement; so are the values of every series of
    the same data-parallel engine, and all of them after a start of the process. A series that appears is a
    baseline, unless the process is known to be new. Infinite values are no counts.
    """
    name = present(scrapes[-1].index, (names,) if isinstance(names, str) else names) if scrapes else None
    held = [(item, found) for item in scrapes if (found := _values(item, name, only))]
    if len(held) < 2 or held[-1][0].at <= held[0][0].at:
        return None
    amount = 0.0
    resets = 0
    since: float | None = None
    last: Series = held[0][1]
    for (before, _), (after, now) in pairwise(held):
        fresh = new_process(before, after)
        fallen = {scope(key) for key, value in now.items() if value < last.get(key, -math.inf)}
        resets += bool(fallen)
        since = after.at if fallen or fresh else since
        amount += sum(_moved(value, last.get(key), fresh or scope(key) in fallen) for key, value in now.items())
        last = {**last, **now}
    if not math.isfinite(amount):
        return None
    return Increase(amount, held[-1][0].at - held[0][0].at, resets, since)


def _moved(value: float, before: float | None, fresh: bool) -> float:
    if fresh:
        return value
    return 0.0 if before is None else max(0.0, value - before)


def movement(first: Scrape, last: Scrape, name: str) -> dict[Labels, float]:
    """Movement of each series of `name` between two scrapes, resets taken as in `increase`; for buckets."""
    old, new = values(first.index, name), values(last.index, name)
    fresh = new_process(first, last)
    fallen = {scope(key) for key, value in new.items() if value < old.get(key, -math.inf)}
    return {key: value if fresh or scope(key) in fallen else value - old.get(key, 0.0) for key, value in new.items()}
