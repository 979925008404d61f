"""What the readings mean for the operator: alarms, worst first. Pure functions of a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from console.snapshot import Severity, Snapshot


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


def alarms(snapshot: Snapshot) -> tuple[Alarm, ...]:
    """All alarms of the fleet, worst first."""
    raise NotImplementedError
