"""What differs between the ranks of one lane: one different rank paces or hangs them all. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which ranks differ."""

    what: str
    """`image id`, `argument --context-length`, `environment NCCL_IB_HCA`, `mount /models/repo`, `driver`, `clock`,
    `snapshot`, `row copy`, `GPU clock`, `GPU power`, `kernel`."""
    values: tuple[tuple[str, str], ...]
    """(host, value) of every rank that was read, in rank order; safe text, secrets hidden."""
    odd: tuple[str, ...]
    """The hosts in the minority; all where there is no majority."""
    severity: str
    """`act`, `look` or `info`."""
    why: str
    """What it leads to, in one sentence."""


@dataclass(frozen=True, slots=True)
class Drift:
    """All differences, worst first."""

    differences: tuple[Difference, ...]
    compared: tuple[str, ...] = ()
    """What could be compared, in words."""
    unread: tuple[tuple[str, str], ...] = ()
    """(host, what could not be read)."""
