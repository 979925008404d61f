"""Prometheus text exposition: the wanted series only, in bounded time and memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of one scrape. `value` may be NaN (\"not measured\"): never treat it as 0."""

    name: str
    """Sample name with its prefix colon restored: `vllm:generation_tokens_total`."""
    labels: tuple[tuple[str, str], ...]
    """Sorted label pairs, values unescaped and cut at a fixed length."""
    value: float

    def label(self, name: str) -> str | None:
        """The value of label `name`, or None."""
        for key, value in self.labels:
            if key == name:
                return value
        return None
