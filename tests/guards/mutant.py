"""One guard, and how it is taken away."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of the sources without which a fault of the field is not held off, and who notices."""

    guard: str
    """What it keeps from happening, in words."""
    file: str
    """Below the root of the checkout."""
    old: str
    """Stands exactly once in the file."""
    new: str
    tests: tuple[str, ...]
    """`FILE::FUNCTION`, without parameters: every one of them must fail (of a function with parameters, one case)."""
    bed: bool = False
    """Its tests need real hosts."""


def row(guard: str, file: str, old: str, new: str, *tests: str, bed: bool = False) -> Mutant:
    """One row of the table."""
    return Mutant(guard, file, old, new, tests, bed)
