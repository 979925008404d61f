"""GPU figures as nvidia-smi gives them; on unified memory (GB10) it has no memory figures at all."""

from __future__ import annotations

from dataclasses import dataclass


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
