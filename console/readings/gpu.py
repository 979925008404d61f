"""GPU figures as nvidia-smi gives them; on unified memory (GB10) it has no memory figures at all."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.sanitize import line, word

QUERY_FIELDS = (
    "index",
    "name",
    "uuid",
    "driver_version",
    "memory.total",
    "memory.used",
    "utilization.gpu",
    "power.draw",
    "power.limit",
    "temperature.gpu",
    "clocks.sm",
)
"""What the sampler asks: `nvidia-smi --query-gpu=... --format=csv,noheader,nounits`."""

MIB = 1024**2
_MOST = 64
"""GPUs of one host that are read; more is not a host of this world."""


class GpuUnreadable(ValueError):
    """nvidia-smi said something else than figures; the message is its own words, safe."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. None means that the driver does not say."""

    index: int
    name: str
    uuid: str
    unified: bool
    """True when the driver has no memory figures: see the node's memory instead."""
    memory_total: int | None
    """Bytes."""
    memory_used: int | None
    """Bytes."""
    utilisation: float | None
    """Percent."""
    power_w: float | None
    power_limit_w: float | None
    temperature_c: float | None
    clock_mhz: float | None
    driver: str = ""
    faults: tuple[str, ...] = ()
    """What the driver says instead of a figure when something is wrong: `memory.used: GPU requires reset`."""


_NOT_SAID = re.compile(r"^\[?\s*(?:N/?A|Not Supported|Not Available|Unknown|Requested functionality.*)?\s*\]?$", re.I)
_WITHHELD = re.compile(r"insufficient permissions", re.I)
"""Said to an account that may not see a figure: no fault of the GPU, and no sign of unified memory."""
_NUMBER = re.compile(r"^(-?[0-9]{1,12}(?:\.[0-9]{1,6})?)(?:\s*(%|[A-Za-z]{1,4}))?$")
_UNITS = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """The GPUs in nvidia-smi's CSV, with or without header and units. Raises GpuUnreadable for its error messages.

    Without a header the columns are QUERY_FIELDS. Memory is MiB unless a unit says otherwise.
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(_printable(text), skipinitialspace=True) if row]
    if not rows or _says_none(text):
        return ()
    header = _header(rows[0])
    body = rows[1:] if header else rows
    names = header or QUERY_FIELDS
    good = [row for row in body if len(row) == len(names)]
    if body and not good:
        raise GpuUnreadable(f"nvidia-smi: {line(text.strip()[:400], 200)}")
    return tuple(_gpu(dict(zip(names, row, strict=True)), number) for number, row in enumerate(good[:_MOST]))


def _printable(text: str) -> list[str]:
    return [line(row, 1000) for row in text.split("\n")[: _MOST + 2] if row.strip()]


def _says_none(text: str) -> bool:
    return "no devices were found" in text.lower()


def _header(row: Sequence[str]) -> tuple[str, ...] | None:
    """The field names of a header row, `[MiB]` and the like taken off; None if the row holds figures."""
    names = tuple(re.sub(r"\s*\[[^\]]*\]$", "", cell) for cell in row)
    known = {*QUERY_FIELDS, "memory.free", "clocks.current.sm", "pid", "timestamp"}
    if not known & set(names):
        return None
    return tuple({"clocks.current.sm": "clocks.sm"}.get(name, name) for name in names)


def _gpu(cells: Mapping[str, str], number: int) -> Gpu:
    faults: list[str] = []

    def figure(field: str) -> float | None:
        value, fault = _figure(cells.get(field, ""))
        if fault:
            faults.append(f"{field}: {word(fault, 60)}")
        return value

    index = figure("index")
    total, used = figure("memory.total"), figure("memory.used")
    memory = [cells[field] for field in ("memory.total", "memory.used") if field in cells]
    return Gpu(
        index=number if index is None else int(index),
        name=_text(cells.get("name", "")),
        uuid=_text(cells.get("uuid", "")),
        unified=bool(memory) and all(_NOT_SAID.match(cell) for cell in memory),
        memory_total=_bytes(total),
        memory_used=_bytes(used),
        utilisation=figure("utilization.gpu"),
        power_w=figure("power.draw"),
        power_limit_w=figure("power.limit"),
        temperature_c=figure("temperature.gpu"),
        clock_mhz=figure("clocks.sm"),
        driver=_text(cells.get("driver_version", "")),
        faults=tuple(faults),
    )


def _figure(cell: str) -> tuple[float | None, str]:
    """The number in a cell (MiB for memory), or what the driver says instead when that is a fault."""
    if _NOT_SAID.match(cell) or _WITHHELD.search(cell):
        return None, ""
    match = _NUMBER.match(cell)
    value = float(match[1]) * _UNITS.get(match[2] or "", 1.0) if match else math.nan
    if not math.isfinite(value) or value < 0:
        return None, cell.strip("[] ")
    return value, ""


def _bytes(mib: float | None) -> int | None:
    return None if mib is None else round(mib * MIB)


def _text(cell: str) -> str:
    return "" if _NOT_SAID.match(cell) else word(cell)
