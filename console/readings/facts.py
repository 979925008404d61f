"""What changes only with a reboot: the host's name, kernel, boot and what python3 it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from console.sanitize import word

PAGE_SIZES = (4096, 16384, 65536)
"""Base page sizes that Linux has on x86-64 and arm64, bytes."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What changes only with a reboot. An empty string or 0 means that the host did not say."""

    hostname: str
    kernel: str
    boot_id: str
    cpus: int
    python: str
    """What the sampler runs on: `python3 3.11.2` or `sh`."""
    page_size: int = 4096
    """Bytes."""
    nvidia_smi: bool | None = None
    """Whether the host has an nvidia-smi, so that GPU figures are to be expected; None if it did not say."""


def parse_facts(texts: Mapping[str, str]) -> HostFacts:
    """Facts from the texts `hostname kernel boot_id cpus page_size python gpu`, one value each; any may be absent."""
    page_size = _number(texts.get("page_size", ""))
    return HostFacts(
        hostname=word(texts.get("hostname", ""), 64),
        kernel=word(texts.get("kernel", ""), 80),
        boot_id=word(texts.get("boot_id", ""), 40),
        cpus=_number(texts.get("cpus", "")),
        python=word(texts.get("python", ""), 40),
        page_size=page_size if page_size in PAGE_SIZES else 4096,
        nvidia_smi="/" in texts["gpu"] if texts.get("gpu") else None,
    )


def _number(text: str) -> int:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 7 else 0
