"""Speculative decoding over the window: acceptance, accepted drafts per step, draft length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.readings.quality import Basis
from console.readings.rates import increase
from console.readings.scrape import Scrape
from console.readings.series import (
    ACCEPTED,
    ACCEPTED_BY_POSITION,
    DRAFT_TOKENS,
    DRAFTS,
    SPEC_CAP_LENGTH,
    SPEC_DRAFT_TOKENS,
    SPEC_LENGTH,
    SPEC_RATE,
    EngineKind,
    total,
    values,
)


@dataclass(frozen=True, slots=True)
class Speculation:
    """Speculative decoding over the window."""

    basis: Basis
    acceptance: float | None
    """Accepted / drafted, 0..1."""
    accepted_per_step: float | None
    """Accepted drafts per step, bonus token NOT counted."""
    length_with_bonus: float | None
    """Tokens per step with the bonus token."""
    drafted_per_step: float | None
    """Which band of a draft schedule is in force."""
    by_position: tuple[float, ...] = ()
    """Acceptance per draft position, 0..1."""
    lifetime_acceptance: float | None = None
    steps: float | None = None
    """Steps with a draft in the window; steps without one are not counted by the engines."""


def speculation(scrapes: Sequence[Scrape], *, idle: bool) -> tuple[Speculation | None, tuple[str, ...]]:
    """Speculation over the scrapes (one engine, newest last) and notes; None where it is off.

    `idle` says that nothing was decoded in the window: SGLang's gauges then hold their last value.
    """
    newest = scrapes[-1]
    if newest.engine is EngineKind.SGLANG:
        return _from_gauges(newest, idle)
    return _from_counters(scrapes, newest), ()


def _from_counters(scrapes: Sequence[Scrape], newest: Scrape) -> Speculation | None:
    prefix = f"{newest.engine}:"
    if prefix + DRAFTS not in newest.index:
        return None
    drafted_ever, accepted_ever = total(newest.index, prefix + DRAFT_TOKENS), total(newest.index, prefix + ACCEPTED)
    lifetime = accepted_ever / drafted_ever if drafted_ever and accepted_ever is not None else None
    moved = [increase(scrapes, prefix + name) for name in (DRAFTS, DRAFT_TOKENS, ACCEPTED)]
    steps, drafted, accepted = (item.amount if item else None for item in moved)
    if not steps or not drafted or accepted is None:
        return Speculation(Basis.MEASURED, None, None, None, None, (), lifetime, steps)
    return Speculation(
        basis=Basis.MEASURED,
        acceptance=accepted / drafted,
        accepted_per_step=accepted / steps,
        length_with_bonus=accepted / steps + 1,
        drafted_per_step=drafted / steps,
        by_position=_by_position(scrapes, prefix + ACCEPTED_BY_POSITION, steps),
        lifetime_acceptance=lifetime,
        steps=steps,
    )


def _by_position(scrapes: Sequence[Scrape], name: str, steps: float) -> tuple[float, ...]:
    """Share of the window's steps in which the draft at each position was accepted, by position from 0."""
    told = {sample.label("position") or "" for sample in scrapes[-1].index.get(name, ())}
    positions = sorted((text for text in told if text.isdecimal() and len(text) < 4), key=int)
    shares = []
    for expected, position in enumerate(positions):
        moved = increase(scrapes, name, position=position)
        if moved is None or int(position) != expected:
            break
        shares.append(moved.amount / steps)
    return tuple(shares)


def _mean(scrape: Scrape, name: str) -> float | None:
    found = [value for value in values(scrape.index, name).values() if math.isfinite(value)]
    mean = sum(found) / len(found) if found else math.nan
    return mean if math.isfinite(mean) else None


def _from_gauges(newest: Scrape, idle: bool) -> tuple[Speculation | None, tuple[str, ...]]:
    """SGLang: means over its last 40 decode iterations; the rate's meaning changed twice, the length's never did."""
    length, rate = _mean(newest, SPEC_LENGTH), _mean(newest, SPEC_RATE)
    if not length:
        return None, ()
    if idle:
        empty = Speculation(Basis.ENGINE_REPORTED, None, None, None, None)
        return empty, (f"speculation: {SPEC_LENGTH} stands at {length:.2f} from the last decode, not a current value",)
    draft_tokens = _mean(newest, SPEC_DRAFT_TOKENS)
    drafted = draft_tokens - 1 if draft_tokens and draft_tokens > 1 else None
    accepted = length - 1
    acceptance, notes = rate, []
    if drafted is not None:
        acceptance = accepted / drafted
    elif rate is not None and _counts_bonus(length, rate):
        notes.append(f"{SPEC_RATE} is that of an old build: it counts the bonus token and reads too high")
    if drafted is not None and _mean(newest, SPEC_CAP_LENGTH):
        notes.append("acceptance is too low where the draft window is capped (DSpark): drafts per step vary")
    basis = Basis.ENGINE_REPORTED
    if (acceptance is not None and acceptance > 1.0) or accepted < 0:
        basis = Basis.SUSPECT
        notes.append(f"speculation: the engine reports length {length:.2f} and rate {acceptance}, which cannot be")
    return Speculation(basis, acceptance, accepted, length, drafted), tuple(notes)


def _counts_bonus(length: float, rate: float) -> bool:
    """Whether rate = length / n for a whole n of draft tokens, as builds 0.5.6 to 0.5.9 computed it."""

    def whole(ratio: float) -> bool:
        return math.isfinite(ratio) and abs(ratio - round(ratio)) < 1e-3

    return rate > 0 and whole(length / rate) and not whole((length - 1) / rate)


def from_meta_info(meta: Mapping[str, object]) -> Speculation | None:
    """Speculation of one finished request out of SGLang's `meta_info`; None where its counts are absent."""
    names = ("spec_verify_ct", "spec_num_correct_drafts", "spec_num_proposed_drafts", "completion_tokens")
    steps, accepted, proposed, completed = (_count(meta.get(name)) for name in names)
    if not steps or accepted is None:
        return None
    return Speculation(
        basis=Basis.MEASURED,
        acceptance=accepted / proposed if proposed else None,
        accepted_per_step=accepted / steps,
        length_with_bonus=completed / steps if completed else accepted / steps + 1,
        drafted_per_step=proposed / steps if proposed else None,
        steps=steps,
    )


def _count(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return float(value)
