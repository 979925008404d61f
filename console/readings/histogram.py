"""Percentiles out of cumulative buckets: differenced over the window, then interpolated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.readings.rates import movement
from console.readings.scrape import Scrape
from console.readings.series import Names, present

ENOUGH = 20
"""Observations below which no percentile is given."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Interpolated from cumulative buckets between two scrapes, seconds. None: fewer than 20 observations."""

    observations: int
    p50: float | None
    p95: float | None
    p99: float | None
    beyond: float | None = None
    """The last finite bound, where a percentile lies above it: that percentile is None and reads `> bound`."""


def percentile(buckets: Mapping[float, float], fraction: float) -> float | None:
    """Linear interpolation in cumulative `buckets` (upper bound -> count, +Inf included), as Prometheus does it.

    None without observations, without a +Inf bucket, or where the percentile lies in the +Inf bucket.
    """
    bounds = sorted(buckets)
    if not bounds or not math.isinf(bounds[-1]) or not buckets[bounds[-1]] > 0:
        return None
    rank = fraction * buckets[bounds[-1]]
    lower = below = 0.0
    for bound in bounds[:-1]:
        count = max(buckets[bound], below)
        if count >= rank and count > below:
            return lower + (bound - lower) * (rank - below) / (count - below)
        lower, below = bound, count
    return None


def percentiles(scrapes: Sequence[Scrape], names: Names, *, enough: int = ENOUGH) -> Percentiles | None:
    """Percentiles of the observations between the first and the last scrape, summed over data-parallel ranks.

    None where the series is absent or there are no two scrapes. Bounds are read from the data: they can be configured.
    """
    if len(scrapes) < 2:
        return None
    name = present(scrapes[-1].index, [f"{name}_bucket" for name in names])
    if name is None:
        return None
    buckets: dict[float, float] = {}
    for labels, moved in movement(scrapes[0], scrapes[-1], name).items():
        bound = _bound(dict(labels).get("le", ""))
        if bound is not None:
            buckets[bound] = buckets.get(bound, 0.0) + moved
    seen = buckets.get(math.inf)
    if seen is None or not math.isfinite(seen):
        return None
    observations = round(seen)
    if observations < enough:
        return Percentiles(observations, None, None, None)
    p50, p95, p99 = (percentile(buckets, fraction) for fraction in (0.50, 0.95, 0.99))
    finite = [bound for bound in buckets if math.isfinite(bound)]
    return Percentiles(observations, p50, p95, p99, max(finite) if p99 is None and finite else None)


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound
