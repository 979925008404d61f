"""What one alarm is: the type that all of them share."""

from __future__ import annotations

from dataclasses import dataclass

from console.snapshot import Severity


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that is not as it should be."""

    key: str
    """Stable identity for acknowledging: `memory:spark-2`."""
    severity: Severity
    subject: str
    """Host or lane."""
    text: str
    """`free 2.9 of 119.7 GiB, 61.0 cached`."""
    advice: str
    """`stop copy or drop cache`; '' when there is none."""
