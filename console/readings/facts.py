"""What changes only with a reboot: the host's name, kernel, boot and what python3 it has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What changes only with a reboot."""

    hostname: str
    kernel: str
    boot_id: str
    cpus: int
    python: str
    """What the sampler runs on: `python3 3.11.2` or `sh`."""
