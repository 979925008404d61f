"""A boot against the lane's own earlier ones: how long it takes as a rule, what is left, whether it is late. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from console.readings.boot import Boot, BootProgress, BootRecord, PhaseName

LATE = 1.5
"""Times the longest earlier boot (or the recipe's usual) after which a boot is late."""
COMPARED = 10
"""Newest boots that are looked at: hardware, checkpoint and settings change over the months."""
SAME_START_S = 5.0
"""Two starts of one container are further apart."""
LONGEST_S = 6 * 3600.0
"""A boot that takes longer is none: somebody stopped in the middle, or a clock was set."""


def progress(
    boot: Boot | None,
    *,
    started: float,
    now: float,
    earlier: Sequence[BootRecord] = (),
    usual_boot_s: float | None = None,
) -> BootProgress:
    """`started` (of the container) and `now` in Unix seconds by the host's clock; `usual_boot_s` is the recipe's."""
    elapsed = max(0.0, now - started)
    others = compared(earlier, started)
    totals = [item.total for item in others]
    phase, since, turn = _phase(boot, started)
    usual_phase = [took for item in others if (took := _took(item, phase, turn)) is not None]
    in_phase = None if since is None else max(0.0, now - since)
    usual = median(totals) if totals else usual_boot_s
    limit = max(totals) if totals else usual_boot_s
    late = limit is not None and elapsed > LATE * limit
    failed = boot is not None and boot.failure is not None
    return BootProgress(
        elapsed=elapsed,
        usual=(min(totals), max(totals)) if totals else None,
        median=usual,
        phase=phase,
        phase_elapsed=in_phase,
        phase_usual=median(usual_phase) if usual_phase else None,
        left=None if late or failed else _left(others, phase, turn, in_phase, elapsed, usual),
        late=late,
        earlier=tuple(others),
    )


def compared(earlier: Sequence[BootRecord], started: float) -> list[BootRecord]:
    """The earlier boots to hold this one against; those that tuned anew for an hour only if there are no others."""
    others = [item for item in earlier if abs(item.started - started) > SAME_START_S and 0 < item.total <= LONGEST_S]
    quick = [item for item in others if item.autotune != "missed"]
    return (quick or others)[-COMPARED:]


def record(
    boot: Boot | None, *, started: float, healthy: float | None, revision: str = "", free_at_start: int | None = None
) -> BootRecord | None:
    """What is kept of a boot that came up; times in Unix seconds by the host's clock. None where it is not known when.

    The log's own word for ready counts before the first answer seen, which a slow prober sees late.
    """
    up = boot.ready if boot is not None and boot.ready is not None else healthy
    if up is None or not 0 < up - started <= LONGEST_S:
        return None
    return BootRecord(
        started=started,
        total=up - started,
        phases=() if boot is None else _spans(boot, started, up),
        kv_tokens=None if boot is None else boot.kv_tokens,
        revision=revision,
        free_at_start=free_at_start,
        autotune="" if boot is None else boot.autotune,
    )


def _spans(boot: Boot, started: float, up: float) -> tuple[tuple[str, float], ...]:
    """(phase, seconds) that add up to the whole: the first begins with the container, the last ends when it is up."""
    begins = [(phase.name, phase.began) for phase in boot.phases if phase.name is not PhaseName.READY]
    known = [(name, at) for name, at in begins if at is not None]
    if len(known) != len(begins) or not known:
        return ()
    marks = [started, *(at for _, at in known[1:]), up]
    return tuple(
        (name.value, max(0.0, after - before))
        for (name, _), before, after in zip(known, marks, marks[1:], strict=False)
    )


def _phase(boot: Boot | None, started: float) -> tuple[PhaseName | None, float | None, int]:
    """The running phase, since when it runs, and which time it runs (graphs may be recorded twice)."""
    if boot is None or boot.now is None:
        return None, None, 0
    began = started if len(boot.phases) == 1 else boot.phases[-1].began
    return boot.now, began, sum(phase.name is boot.now for phase in boot.phases) - 1


def _at(record: BootRecord, phase: PhaseName | None, turn: int) -> int | None:
    """Where in an earlier boot the phase stands; None if it had none."""
    found = [number for number, (name, _) in enumerate(record.phases) if name == phase]
    return found[turn] if 0 <= turn < len(found) else None


def _took(record: BootRecord, phase: PhaseName | None, turn: int) -> float | None:
    at = _at(record, phase, turn)
    return None if at is None else record.phases[at][1]


def _left(
    others: Sequence[BootRecord],
    phase: PhaseName | None,
    turn: int,
    in_phase: float | None,
    elapsed: float,
    usual: float | None,
) -> float | None:
    """The rest of the running phase and all that follow, as the earlier boots took; None where nothing tells."""
    rests: list[float] = []
    for item in others:
        at = _at(item, phase, turn)
        if at is None or in_phase is None:
            continue
        after = sum(seconds for _, seconds in item.phases[at + 1 :])
        rests.append(max(0.0, item.phases[at][1] - in_phase) + after)
    if rests:
        return median(rests)
    return usual - elapsed if usual is not None and usual > elapsed else None
