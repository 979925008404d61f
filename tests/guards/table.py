"""The whole table."""

from __future__ import annotations

from guards import actions, beds, policy, readings, record, sequence, steps, strip
from guards.mutant import Mutant

ROWS: tuple[Mutant, ...] = (
    *strip.ROWS,
    *policy.ROWS,
    *record.ROWS,
    *steps.ROWS,
    *sequence.ROWS,
    *actions.ROWS,
    *readings.ROWS,
    *beds.ROWS,
)
