"""One measured figure against its budget, and the table of all of them."""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata

import psutil

MET, MISSED, NO_BUDGET, NOT_RUN = "met", "MISSED", "-", "not run"
_LIBRARIES = ("textual", "asyncssh", "httpx", "docker", "pydantic")


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table. Without a value it was not measured and `how` says why; without a budget it is for context.

    A ratio's budget (`peer` is set) is met by the figure that is not above the budget, whatever the peer needs; the
    peer ran beside it, so that a slow machine shows in both.
    """

    what: str
    value: float | None
    unit: str
    budget: float | None
    how: str
    digits: int = 1
    peer: str = ""

    @property
    def verdict(self) -> str:
        """`met` or `MISSED`; `-` without a budget."""
        if self.value is None:
            return NOT_RUN
        if self.budget is None:
            return NO_BUDGET
        return MET if round(self.value, self.digits) <= self.budget else MISSED

    def cells(self) -> tuple[str, str, str, str]:
        """What, figure, budget, verdict."""
        figure = "-" if self.value is None else f"{self.value:.{self.digits}f} {self.unit}"
        budget = "-" if self.budget is None else f"{self.budget:g} {self.unit}"
        return self.what, figure, budget, self.verdict


def not_run(what: str, why: str) -> Figure:
    """A row that could not be measured here."""
    return Figure(what, None, "", None, why)


def table(figures: Sequence[Figure]) -> str:
    """All rows with aligned columns; below, how each was measured."""
    rows = [("what", "figure", "budget", "verdict"), *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d:<{widths[3]}}".rstrip() for a, b, c, d in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += ["", "how it was measured"]
    for figure in figures:
        lines.append(f"  {figure.what}: {figure.how}" + (f"; beside it: {figure.peer}" if figure.peer else ""))
    return "\n".join(lines)


def machine() -> list[str]:
    """What the figures were measured on."""
    memory = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[0]
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in _LIBRARIES)
    return [
        f"machine  {_cpu()}, {os.cpu_count()} CPUs, {memory:.0f} GiB, {platform.system()} {platform.release()}",
        f"python   {platform.python_version()} ({sys.implementation.name}); {libraries}",
        f"when     {time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime())}, load average {load:.2f} at the start"
        + (": BUSY, times are worse than on a quiet machine" if load > 0.5 * (os.cpu_count() or 1) else ""),
    ]


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]
