"""The progress light: does the engine step while work is present?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from console import sanitize
from console.readings.answers import HttpAnswer
from console.readings.exposition import Labels
from console.readings.lights import Progress, ProgressLight
from console.readings.rates import QUIET_S, increase, new_process
from console.readings.scrape import Scrape
from console.readings.series import (
    GENERATION,
    PROMPT,
    REALTIME,
    RUNNING,
    SGLANG_USED,
    STEPS,
    VLLM_USAGE,
    WAITING,
    EngineKind,
    present,
    scope,
    values,
)
from console.readings.throughput import Throughput, heartbeat, live_series, same_engine, throughput

MOVING_TPS = 1.0
"""Tokens a second below which an engine without requests is at rest: health probes that generate make less."""
PREFILL_PAUSE_S = 5.0
"""Longest pause between two chunks of one prefill that still reads as prefill."""
SLOW_FACTOR = 4.0
"""How much longer a counter that moves at request end must stand still before it counts as frozen."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """What changes when an engine steps: counters, and gauges that only a step sets."""

    tokens: tuple[tuple[Labels, float], ...]
    steps: float | None
    use: tuple[tuple[Labels, float], ...]
    running: float
    waiting: float
    decoded: float | None
    """Tokens that came out, where the engine counts them as they come."""
    prompts: float | None
    """Prompt tokens read: by SGLang as they are computed, by the others when a prompt is done."""

    def stood(self, other: Pulse) -> bool:
        """Whether nothing stepped between two pulses.

        Steps that schedule nothing (requests wait, none runs) are no progress; nor are arrivals.
        """
        if (self.tokens, self.use) != (other.tokens, other.use):
            return False
        if not self.running and not other.running:
            return True
        return (self.steps, self.running, self.waiting) == (other.steps, other.running, other.waiting)

    def reads_prompts(self, earlier: Pulse) -> bool:
        """Whether what stepped since `earlier` was more than the last tokens of a decode."""
        if earlier.stood(self):
            return False
        return self.decoded == earlier.decoded or (self.prompts, self.use) != (earlier.prompts, earlier.use)


def pulse(scrape: Scrape, only: str | None = None) -> Pulse:
    """The pulse of a scrape; `only` narrows it to one data-parallel engine."""
    memo = scrape.memo
    name = f"pulse {only}" if only is not None else "pulse"
    if name not in memo:
        memo[name] = _pulse(scrape, only)
    found: Pulse = memo[name]
    return found


def _pulse(scrape: Scrape, only: str | None) -> Pulse:
    engine, index = scrape.engine, scrape.index

    def narrowed(found: dict[Labels, float]) -> dict[Labels, float]:
        return {key: value for key, value in found.items() if only is None or scope(key) == only}

    def read(names: tuple[str, ...]) -> dict[Labels, float]:
        return narrowed(values(index, present(index, names)))

    tokens = {**read(GENERATION[engine]), **{(("of", "prompt"), *key): v for key, v in read(PROMPT[engine]).items()}}
    steps = read(STEPS[engine])
    if engine is EngineKind.SGLANG:
        tokens.update(read((REALTIME,)))
    live = engine is EngineKind.VLLM
    decoded = read(GENERATION[engine]) if live else narrowed(values(index, REALTIME, mode="decode"))
    prompts = narrowed(values(index, REALTIME, mode="prefill_compute")) or read(PROMPT[engine])
    use = read(VLLM_USAGE) if live else read(SGLANG_USED)
    return Pulse(
        tokens=tuple(sorted(tokens.items())),
        steps=sum(steps.values()) if steps else None,
        use=tuple(sorted(use.items())),
        running=sum(read(RUNNING[engine]).values()),
        waiting=sum(read(WAITING[engine]).values()),
        decoded=sum(decoded.values()) if decoded else None,
        prompts=sum(prompts.values()) if prompts else None,
    )


def progress_light(
    scrapes: Sequence[Scrape],
    now: float,
    stall_after: float,
    *,
    probes: Sequence[HttpAnswer] = (),
    probing_since: float | None = None,
    reading: Throughput | None = None,
    previous: ProgressLight | None = None,
) -> ProgressLight:
    """Whether the engine steps, over the scrapes (oldest first, at least `stall_after` seconds of them).

    `probes` are the console's own health probes and `probing_since` the start of the one under way: SGLang answers
    them with a real generation, which never counts as work. `reading` is `throughput(scrapes)` if it is known already.
    `previous` is the last light: a freeze or a prefill that fills all the scrapes kept began when it says.
    FROZEN is said after `stall_after` seconds without a step while work is present; it was MOVING until then if a step
    was seen, else UNKNOWN. `now` bounds nothing but the age: a newest scrape older than `stall_after` proves nothing.
    """
    run = same_engine(scrapes)
    if not run or now - run[-1].at > max(stall_after, 1.0):
        return ProgressLight()
    found = reading if reading is not None else throughput(run)
    walk = _Walk(run, stall_after, probes, probing_since)
    frozen_for = walk.frozen_for()
    progress = walk.progress(found, frozen_for)
    prefill_for = walk.prefill_for() if progress is Progress.MOVING and walk.has_work else None
    frozen_since = _since(run, frozen_for, previous.frozen_since if previous else None)
    prefill_since = _since(run, prefill_for, previous.prefill_since if previous else None)
    return ProgressLight(
        progress=progress,
        steps=found.steps,
        frozen_for=None if frozen_since is None else run[-1].at - frozen_since,
        decode_tps=found.decode_tps,
        prefill_tps=found.prefill_tps,
        running=found.running,
        waiting=found.waiting,
        moving_for=None if prefill_since is None else run[-1].at - prefill_since,
        prefill_only=prefill_for is not None,
        frozen_ranks=walk.frozen_ranks() if progress is Progress.MOVING else (),
        restarted=found.restarted,
        live_gauges=live_series(run[-1]),
        live_steps=heartbeat(run[-1])[1],
        frozen_since=frozen_since,
        prefill_since=prefill_since,
    )


def _since(run: Sequence[Scrape], lasted: float | None, told: float | None) -> float | None:
    """When what has `lasted` until now began; as `told` before, where that is older than the scrapes kept."""
    if lasted is None:
        return None
    began = run[-1].at - lasted
    return min(began, told) if told is not None and began <= run[0].at else began


class _Walk:
    """Backwards over the scrapes of one engine, as far as needed."""

    def __init__(
        self, run: Sequence[Scrape], stall_after: float, probes: Sequence[HttpAnswer], probing_since: float | None
    ) -> None:
        self.run = run
        self.last = len(run) - 1
        self.stall_after = stall_after
        self.spans = [(item.at - item.took, item.at) for item in probes]
        if probing_since is not None:
            self.spans.append((probing_since, math.inf))
        self.has_work = self._work(self.last)
        self.still = self._still_since(None if self.has_work else QUIET_S)

    def _work(self, position: int) -> bool:
        scrape = self.run[position]
        seen = pulse(scrape)
        own = sum(began <= scrape.at <= ended for began, ended in self.spans)
        return seen.running > (own if scrape.engine is EngineKind.SGLANG else 0) or seen.waiting > 0

    def _still_since(self, enough: float | None) -> int:
        """Position of the first scrape since which nothing has stepped; not looked for beyond `enough` seconds."""
        first = self.last
        while first > 0 and pulse(self.run[first - 1]).stood(pulse(self.run[first])):
            first -= 1
            if enough is not None and self.run[-1].at - self.run[first].at >= enough:
                break
        return first

    def frozen_for(self) -> float | None:
        """Seconds without a step while work was present without a break; None without work."""
        if not self.has_work:
            return None
        first = self.last
        while first > self.still and self._work(first - 1):
            first -= 1
        return self.run[-1].at - self.run[first].at

    def progress(self, found: Throughput, frozen_for: float | None) -> Progress:
        if frozen_for is None:
            return self._without_work(found)
        if not found.steps:
            return Progress.NO_STEP_YET if found.steps is not None or found.running is not None else Progress.UNKNOWN
        patience = self.stall_after if found.steps_live else SLOW_FACTOR * self.stall_after
        if frozen_for >= patience:
            return Progress.FROZEN
        return Progress.MOVING if self.still > 0 else Progress.UNKNOWN

    def _without_work(self, found: Throughput) -> Progress:
        rates = [rate for rate in (found.decode_tps, found.prefill_tps) if rate is not None]
        if found.running is None and not rates:
            return Progress.UNKNOWN
        if sum(rates) >= MOVING_TPS and self.run[-1].at - self.run[self.still].at < QUIET_S:
            return Progress.MOVING
        return Progress.NO_WORK if found.steps else Progress.NO_STEP_YET

    def prefill_for(self) -> float | None:
        """Seconds of steps without a token: prompts are read. None if tokens come out, or nothing steps.

        vLLM counts a prompt only when it is done; its pool's use grows before. A freeze is no prefill: then the last
        step is the last token.
        """
        first = self._without_token()
        since_token = self.run[-1].at - self.run[first].at
        if since_token < QUIET_S:
            return None
        pause = max(PREFILL_PAUSE_S, self._last_pair())
        for position in range(self.last, first, -1):
            if self.run[-1].at - self.run[position].at > pause:
                break
            if pulse(self.run[position]).reads_prompts(pulse(self.run[position - 1])):
                return since_token
        return None

    def _last_pair(self) -> float:
        return self.run[-1].at - self.run[-2].at if self.last else 0.0

    def _without_token(self) -> int:
        """Position of the first scrape since which work was present and no token came out."""
        first = self.last
        while first > 0 and self._work(first - 1):
            earlier, later = pulse(self.run[first - 1]).decoded, pulse(self.run[first]).decoded
            span = self.run[first].at - self.run[first - 1].at
            if earlier is None or later is None or later - earlier >= MOVING_TPS * span:
                break
            first -= 1
        return first

    def frozen_ranks(self) -> tuple[str, ...]:
        """Data-parallel engines with requests that stand still although the lane moves."""
        newest = self.run[-1]
        scopes = sorted({scope(key) for key in values(newest.index, present(newest.index, RUNNING[newest.engine]))})
        found = []
        for name in scopes if len(scopes) > 1 else ():
            last = pulse(newest, name)
            first = self.last
            while first > 0 and last.running and pulse(self.run[first - 1], name) == last:
                first -= 1
            stood = newest.at - self.run[first].at
            if last.running and stood >= self.stall_after:
                found.append(f"engine {sanitize.word(name, 20)} ({last.running:.0f} running, {stood:.0f} s)")
        return tuple(found)


def old_process(scrapes: Sequence[Scrape], started: float | None) -> bool:
    """Whether counters prove that the answering process is older than the container's start at `started` (monotonic).

    A counter that went on counting across the start belongs to a process that was there before it.
    """
    if started is None:
        return False
    run = same_engine(scrapes)
    before = [item for item in run if item.at < started]
    if not before or run[-1].at < started:
        return False
    earlier, later = heartbeat(before[-1])[0], heartbeat(run[-1])[0]
    if not earlier or later is None or later < earlier:
        return False
    across = [before[-1], *(item for item in run if item.at >= started)]
    if any(new_process(one, other) for one, other in pairwise(across)):
        return False
    counters = (GENERATION[run[-1].engine], PROMPT[run[-1].engine], (REALTIME,), STEPS[run[-1].engine])
    moved = [increase(across, names) for names in counters]
    return not any(item.resets for item in moved if item is not None)
